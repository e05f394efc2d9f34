"""Vectors that are there already: better neighbours, fewer dimensions, another model.

A network has made vectors of texts, images or products, and some pairs are known to belong
together. :class:`Adapter` looks for linear maps of queries and documents, and keeps them only
where queries left out find more by them::

    _adapter.py    Adapter: the estimator
    _search.py     candidates, and what they give queries left out
    _forms.py      closed forms: whitening, ridge regression, rotations, canonical correlations
    _softmax.py    a softmax over batches, a few steps from the best of these
    _choice.py     which one, if any
    _drift.py      Drift: vectors of one model, mapped to those of another
    _plda.py       PLDA: log-likelihood ratios of the same and not the same
"""

from kernelmetric.retrieval._adapter import Adapter
from kernelmetric.retrieval._drift import Drift
from kernelmetric.retrieval._plda import PLDA

__all__ = ["PLDA", "Adapter", "Drift"]
