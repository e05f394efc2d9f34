"""Records with text: F1 on labelled pairs of products and papers, seconds and memory.

``python benchmarks/linkage_text.py FOLDER [SET ...]`` reads the sets of a folder, each with
``left.csv.gz``, ``right.csv.gz`` and ``pairs.csv.gz`` (columns split, left, right, match), and
prints the F1 on the split test with all training labels, with 100 of them (means of five draws),
and without any. ``--split valid`` judges on the validation split, as was done while choosing;
``--without KIND`` leaves a kind of evidence out: bags (of words and letters), parts (model numbers,
numbers, years, spellings), names (of people), rivals (how much more alike than other candidates),
whole (all of the whole record), fields (how alike their values are). ``--ablation`` leaves out each
of them, and all of texts, one after the other. ``--labels`` compares 100 training pairs that were
chosen as ``LabellingSession`` does, five at a time, with 100 and 1,000 drawn ones, ``--draws 2``
twice instead of five times.

With all labels, the threshold is the one of the largest F1 on the training pairs, each held out;
with 100 or none, of the largest F1 that the candidates' probabilities let expect. Seconds are those
of the processor, on one thread where BLAS and OpenMP are held to one: candidates, evidence,
learning and held-out probabilities.
"""

import argparse
import resource
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kernelmetric.evaluation import pairs_to_label
from kernelmetric.linkage._decision import guessed
from kernelmetric.linkage._known import cross_fitted, groups_of
from kernelmetric.linkage._linker import _MOST_IN_FOLDS as MOST
from kernelmetric.linkage._linker import found_candidates
from kernelmetric.linkage._parts import PARTS
from kernelmetric.linkage._text import _BAGS, _NAMES, WHOLE
from kernelmetric.tables import read_table

PRODUCTS = ("abt_buy", "amazon_google", "walmart_amazon", "walmart_amazon_dirty")
PAPERS = ("dblp_acm", "dblp_acm_dirty")
DRAWS, FEW, MANY = 5, 100, 1_000
EVERY = 5  # answers between two fits of a session
KINDS = {"bags": _BAGS, "parts": PARTS, "names": _NAMES}
MORE_KINDS = ("rivals", "whole", "fields")  # beside other candidates; of the whole record; neither


def f1(same, linked):
    """Of pairs that are linked."""
    return 2 * np.sum(same & linked) / (same.sum() + linked.sum())


def best_threshold(same, p):
    """The probability above which F1 is largest."""
    order = np.argsort(-p, kind="stable")
    hits = np.cumsum(same[order])
    values = 2 * hits / (np.arange(1, len(p) + 1) + same.sum())
    values[:-1][np.diff(p[order]) == 0] = 0
    return p[order][np.argmax(values)]


def expected_threshold(p):
    """The probability above which F1 would be largest if the probabilities are right."""
    order = -np.sort(-p)
    return order[np.argmax(2 * np.cumsum(order) / (np.arange(1, len(p) + 1) + p.sum()))]


class Given(NamedTuple):
    """A set, compared: candidates, labelled pairs, and pairs that judge."""

    found: Any
    S: np.ndarray
    said: np.ndarray
    groups: np.ndarray
    S_test: np.ndarray
    same: np.ndarray
    recall: float
    seconds: float


def compared(folder, split):
    """A set with all evidence."""
    left, right = (
        read_table(folder / f"{side}.csv.gz").drop(columns="id") for side in ("left", "right")
    )
    pairs = pd.read_csv(folder / "pairs.csv.gz")
    rows, same = pairs[["left", "right"]].to_numpy(), pairs["match"].to_numpy() > 0
    train = np.flatnonzero(pairs["split"] == "train")
    test = np.flatnonzero(pairs["split"] == split)
    answers, place = {}, {}
    for k in train:  # contradictions count by the share of answers
        answers.setdefault(tuple(rows[k]), []).append(same[k])
        place[tuple(rows[k])] = k
    known = np.array(sorted(place.values()))
    said = np.array([np.mean(answers[tuple(rows[k])]) for k in known])

    begin = time.process_time()
    found = found_candidates(left, right, None, None)
    S, groups = found.compare(rows[known]), groups_of(rows[known], True)
    seconds = time.process_time() - begin
    listed = set(map(tuple, found.candidates.tolist()))
    recall = np.mean([tuple(pair) in listed for pair in rows[same].tolist()])
    S_test = found.compare(rows[test])
    return Given(found, S, said, groups, S_test, same[test], recall, seconds)


def judged(given, without=()):
    """F1 with all labels, with 100 and without; their deviation, seconds, the parts."""
    found, S, said, groups, S_test, same, _, seconds = given
    if without:
        names = found.start.names[: found.S.shape[1]]
        lost = np.array([any(is_of(name, kind) for kind in without) for name in names])
        found, S, S_test = masked(found, lost), np.where(lost, 0, S), np.where(lost, 0, S_test)
    begin = time.process_time()
    learn = partial(found.learn, by_kind=False)  # the labels are drawn as the test pairs are
    model = learn(S, said, groups=groups)
    held_out = cross_fitted(learn, S, said, groups)
    seconds += time.process_time() - begin

    threshold = best_threshold(said > 0.5, held_out)
    values = [f1(same, model.probability(S_test) >= threshold)]
    draws = []
    for seed in range(DRAWS):
        some = np.random.RandomState(seed).permutation(len(said))[:FEW]
        few = learn(S[some], said[some], groups=groups[some])
        linked = few.probability(S_test) >= expected_threshold(few.probability(found.S))
        draws.append(f1(same, linked))
    start = found.start
    linked = start.probability(S_test) >= expected_threshold(start.probability(found.S))
    values += [np.mean(draws), f1(same, linked)]
    return values, np.std(draws, ddof=1), seconds, model.counts


def chosen(given, seed):
    """Places of the training pairs that a session asks about, one fit after the other."""
    found, S, said, groups, *_ = given
    found = found._replace(S=found.S[:: -(-len(found.S) // MOST)])
    points = found._replace(S=S).points
    rng, known, model = np.random.RandomState(seed), np.empty(0, dtype=np.intp), found.start
    while len(known) < FEW:
        p = model.probability(S)
        more = pairs_to_label(p, points, EVERY, known=known, random_state=rng)
        known = np.append(known, more)
        model = found.learn(S[known], said[known], by_kind=False, groups=groups[known])
    return known


def labels(folder, names, split, draws):
    """F1 of 100 chosen answers beside drawn ones: as it comes, and at the best cut."""
    print("set                      100 drawn         1,000 drawn        100 chosen     matches")
    for name in names:
        given = compared(folder / name, split)
        found, S, said, groups, S_test, same, *_ = given
        rows, matches = {}, []
        for seed in range(draws):
            order = np.random.RandomState(seed).permutation(len(said))
            asked = chosen(given, seed)
            matches.append(said[asked].sum())
            for way, some in (("few", order[:FEW]), ("many", order[:MANY]), ("chosen", asked)):
                model = found.learn(S[some], said[some], by_kind=False, groups=groups[some])
                p, cut = model.probability(S_test), expected_threshold(model.probability(found.S))
                pair = f1(same, p >= cut), f1(same, p >= best_threshold(same, p))
                rows.setdefault(way, []).append(pair)
        told = [
            f"{np.mean(each, axis=0)[0]:.3f} ±{np.std(each, axis=0, ddof=1)[0]:.3f} / "
            f"{np.mean(each, axis=0)[1]:.3f}"
            for each in rows.values()
        ]
        print(f"{name:22s} {'   '.join(told)}   {np.mean(matches):.0f}", flush=True)


def is_of(name, kind):
    """Whether a column of evidence is of a kind."""
    scope, _, said = name.rpartition(": ")
    if kind in KINDS:
        return said in KINDS[kind]
    if kind == "rivals":
        return " beside other partners of the " in said
    return scope == (WHOLE if kind == "whole" else "")  # fields are in no scope


def masked(found, lost):
    """Candidates without some of their evidence."""
    S = np.where(lost, 0, found.S)
    best = found.compare.texts.each_others_best(found.candidates[:: found.step])
    start = guessed(S, found.start.names[: S.shape[1]], found.start.n_fields, best)
    return found._replace(S=S, start=start)


def ablation(folder, names, split):
    """F1 without each kind of evidence: what is lost."""
    print("set, without                        all labels   100 labels     none")
    texts = ("bags", "parts", "names", "rivals")
    variants = ((), *([kind] for kind in (*texts, "whole", "fields")), texts)
    results = {}
    for name in names:
        given = compared(folder / name, split)
        for without in variants:
            values, spread, _, _ = judged(given, without)
            results[name, tuple(without)] = values
            said = f"{name} {' '.join(without) or 'nothing'}"
            print(
                f"{said:36s}    {values[0]:.4f}   {values[1]:.4f} ±{spread:.3f}  {values[2]:.4f}",
                flush=True,
            )
    for title, sets in (("products", PRODUCTS), ("papers", PAPERS)):
        for without in variants if set(sets) <= set(names) else ():
            mean = np.mean([results[name, tuple(without)] for name in sets], axis=0)
            said = " ".join(without) or "nothing"
            print(f"mean of {title}, {said}: " + ", ".join(f"{value:.4f}" for value in mean))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--split", default="test", choices=("valid", "test"))
    parser.add_argument("--without", action="append", default=[], choices=(*KINDS, *MORE_KINDS))
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of --labels")
    given = parser.parse_intermixed_args()
    names = given.sets or (*PRODUCTS, *PAPERS)
    if given.labels:
        labels(given.folder, names, given.split, given.draws)
        return
    if given.ablation:
        ablation(given.folder, names, given.split)
        return
    print(
        "set                    all labels   100 labels     none   seconds   recall   "
        "line, trees, fields"
    )
    results = {}
    for name in names:
        known = compared(given.folder / name, given.split)
        values, spread, seconds, counts = judged(known, given.without)
        results[name] = values
        print(
            f"{name:22s}      {values[0]:.4f}   {values[1]:.4f} ±{spread:.3f}  {values[2]:.4f}   "
            f"{seconds:7.1f}   {known.recall:.4f}   {np.round(counts, 2)}",
            flush=True,
        )
    for title, names in (("products", PRODUCTS), ("papers", PAPERS)):
        if set(names) <= set(results):
            mean = np.mean([results[name] for name in names], axis=0)
            print(f"mean of {title}: " + ", ".join(f"{value:.4f}" for value in mean))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak {peak:.2f} GB")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
