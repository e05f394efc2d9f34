"""From tables to linked records: candidates, comparisons, probabilities, links and clusters.

::

    _rules.py         rules for pairs worth a comparison, which need no labels
    _candidates.py    what the rules find together, and its recall
    _ngrams.py        texts as vectors of their n-grams
    _duckdb.py        link_files: tables in Parquet files, larger than the memory
    _joined.py        which of their records have equal keys
    _comparisons.py   RecordComparison: pairs of records as vectors, field by field
    _compared.py      pairs of two tables as rows of numbers, and what these say in words
    _words.py         what a text is made of: words, model numbers, numbers with units, names
    _bags.py          how rare words and three letters are, and texts as bags of them
    _text.py          TextEvidence: what two records say in common, and what only one says
    _evidence.py      what agreement of a field is worth, without labels and with few
    _decision.py      a line, trees and the fields' model: what the evidence is worth together
    _known.py         labelled pairs: read, counted, held out
    _linker.py        RecordLinker: all of it in a row, with probabilities
    _labelling.py     LabellingSession: which pairs to ask somebody about next
    _links.py         links, one-to-one where wanted, clusters and what contradicts them
    _fields.py        columns as texts

Thresholds with intervals and scores of clusters are in ``evaluation``. Tables need pandas, texts
rapidfuzz: both come with the extra ``linkage``.
"""

from kernelmetric.linkage._candidates import CandidateScores, candidate_pairs, score_candidates
from kernelmetric.linkage._comparisons import RecordComparison
from kernelmetric.linkage._duckdb import link_files
from kernelmetric.linkage._labelling import Expected, LabellingSession
from kernelmetric.linkage._linker import RecordLinker
from kernelmetric.linkage._links import Clusters, Links
from kernelmetric.linkage._rules import EqualKeys, NearestPoints, NearestText

__all__ = [
    "CandidateScores",
    "Clusters",
    "EqualKeys",
    "Expected",
    "LabellingSession",
    "Links",
    "NearestPoints",
    "NearestText",
    "RecordComparison",
    "RecordLinker",
    "candidate_pairs",
    "link_files",
    "score_candidates",
]
