"""Records with text: F1 on labelled pairs of products and papers, seconds and memory.

``python benchmarks/linkage_text.py FOLDER [SET ...]`` reads the sets of a folder, each with
``left.csv.gz``, ``right.csv.gz`` and ``pairs.csv.gz`` (columns split, left, right, match), and
prints the F1 on the split test with all training labels, with 100 of them (means of five draws),
and without any. ``--split valid`` judges on the validation split, as was done while choosing;
``--without KIND`` leaves kinds of evidence out: rivals, parts, bags, fields.

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

import numpy as np
import pandas as pd

from kernelmetric.linkage._known import cross_fitted, groups_of
from kernelmetric.linkage._linker import found_candidates
from kernelmetric.tables import read_table

PRODUCTS = ("abt_buy", "amazon_google", "walmart_amazon", "walmart_amazon_dirty")
PAPERS = ("dblp_acm", "dblp_acm_dirty")
DRAWS, FEW = 5, 100


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


def measured(folder, split, without):
    """F1 with all labels, with 100 and without; their deviation, seconds, recall, the parts."""
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
    kept = None
    if without:
        names = found.start.names[: found.S.shape[1]]
        kept = np.array([not any(left_out(name, kind) for kind in without) for name in names])
        found, S = masked(found, kept), S * 1.0
        S[:, ~kept] = 0.0
    learn = partial(found.learn, by_kind=False)  # the labels are drawn as the test pairs are
    model = learn(S, said, groups=groups)
    held_out = cross_fitted(learn, S, said, groups)
    seconds = time.process_time() - begin
    S_test = found.compare(rows[test])
    if kept is not None:
        S_test[:, ~kept] = 0.0

    threshold = best_threshold(said > 0.5, held_out)
    values = [f1(same[test], model.probability(S_test) >= threshold)]
    draws = []
    for seed in range(DRAWS):
        some = np.random.RandomState(seed).permutation(len(known))[:FEW]
        few = learn(S[some], said[some], groups=groups[some])
        linked = few.probability(S_test) >= expected_threshold(few.probability(found.S))
        draws.append(f1(same[test], linked))
    start = found.start
    linked = start.probability(S_test) >= expected_threshold(start.probability(found.S))
    values += [np.mean(draws), f1(same[test], linked)]
    listed = set(map(tuple, found.candidates.tolist()))
    recall = np.mean([tuple(pair) in listed for pair in rows[same].tolist()])
    return values, np.std(draws, ddof=1), seconds, recall, model.counts


def left_out(name, kind):
    """Whether a column of evidence is of a kind."""
    if kind == "rivals":
        return "beside other partners" in name
    if kind == "whole":
        return name.startswith("whole record: ")
    if kind == "parts":
        return (
            any(
                word in name
                for word in ("model number", "numbers", "quantities", "years", "partner", "first")
            )
            and "beside other partners" not in name
        )
    return kind in name


def masked(found, kept):
    """Candidates without some of their evidence."""
    from kernelmetric.linkage._decision import guessed

    S = found.S.copy()
    S[:, ~kept] = 0.0
    best = found.compare.texts.each_others_best(found.candidates[:: found.step])
    start = guessed(S, found.start.names[: S.shape[1]], found.start.n_fields, best)
    return found._replace(S=S, start=start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--split", default="test", choices=("valid", "test"))
    parser.add_argument("--without", action="append", default=[])
    given = parser.parse_intermixed_args()
    print(
        "set                    all labels   100 labels     none   seconds   recall   "
        "line, trees, fields"
    )
    results = {}
    for name in given.sets or (*PRODUCTS, *PAPERS):
        values, spread, seconds, recall, counts = measured(
            given.folder / name, given.split, given.without
        )
        results[name] = values
        print(
            f"{name:22s}      {values[0]:.4f}   {values[1]:.4f} ±{spread:.3f}  {values[2]:.4f}   "
            f"{seconds:7.1f}   {recall:.4f}   {np.round(counts, 2)}",
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
