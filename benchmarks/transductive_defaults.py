"""``TransductiveDistance()`` as it comes, beside what 001 sets by hand, on the same labels.

``python benchmarks/transductive_defaults.py`` prints a table: accuracy in percent on the points
without labels, mean over draws of the labels, and CPU seconds of a fit with the defaults. The sets
are those of Table 1 of 001 (100 draws; the table of the reproduction has the same ones) and 10,000
digits of MNIST (3 draws), by the protocol of ``reproduction.transductive``: features in [0, 1],
10 % of the points labelled, 5 % and 1 % of the digits.
"""

import argparse
import time
import warnings
from functools import partial

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import TransductiveDistance
from reproduction.transductive import FEW_LABELS, SETTINGS, partial_labels, points

PROBLEMS = {problem.name: problem for table in FEW_LABELS for problem in table.problems}


def nearest(X, known):
    labelled = known >= 0
    return KNeighborsClassifier(1).fit(X[labelled], known[labelled]).predict(X)


def default(X, known):
    return TransductiveDistance(random_state=0).fit(X, known).transduction_


def by_hand(settings, lam, X, known):
    model = TransductiveDistance(
        lam=lam, n_neighbors=20, cost="paper", random_state=0, **{"graph": "neighbors", **settings}
    )
    return model.fit(X, known).transduction_


def row(problem, n_splits):
    """Mean accuracies of the three, the standard error of a difference, and seconds."""
    X, y = points(problem)
    share, settings = SETTINGS[problem.name]
    hand = partial(by_hand, settings, 128.0 if len(X) > 1000 else 1024.0)
    scores, seconds = [], []
    for seed in range(n_splits):
        known = partial_labels(y, share, seed)
        rest = known < 0
        begin = time.process_time()
        found = [default(X, known)]
        seconds.append(time.process_time() - begin)
        found = [nearest(X, known), *found, hand(X, known)]
        scores.append([100 * np.mean(each[rest] == y[rest]) for each in found])
    scores = np.array(scores)
    gain = scores[:, 1] - scores[:, 2]
    return *scores.mean(axis=0), gain.std() / np.sqrt(n_splits), np.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, help="draws of the labels; 100, and 3 of MNIST")
    parser.add_argument("--sets", nargs="*", default=list(PROBLEMS), choices=PROBLEMS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # graphs in parts and classes of one label are no news
    print("| set | draws | 1-NN | default | by hand | difference | seconds of the default |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.sets:
        n_splits = arguments.splits or (3 if name.startswith("mnist") else 100)
        one, ours, hand, error, seconds = row(PROBLEMS[name], n_splits)
        print(
            f"| {name} | {n_splits} | {one:.2f} | {ours:.2f} | {hand:.2f} | {ours - hand:+.2f} ± "
            f"{error:.2f} | {seconds:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
