"""Low-rank kernel PCA as noise removal: accuracy and time against the rank.

    python benchmarks/low_rank.py          # prints the table, writes docs/_static/low-rank.png

Ionosphere (read by ``reproduction.datasets``), and the digits of scikit-learn as they are and with
noise added to every pixel. Times are processor time of one thread, kernel and space included.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from kernelmetric import KPCA, LMNN, RBF, Kernelized
from reproduction.datasets import load

RANKS = (2, 5, 10, 20, 40, 80, 160, None)  # None: full
N_TRAIN = 200
N_TEST = 150
LEARNERS = {"LDA": LinearDiscriminantAnalysis(), "LMNN": LMNN(max_iter=100, tol=1e-3)}
PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "low-rank.png"


def sets():
    digits, classes = load_digits(return_X_y=True)
    noisy = digits + 6 * np.random.RandomState(0).standard_normal(digits.shape)
    return {
        "ionosphere": load("ionosphere", return_X_y=True),
        "digits": (digits, classes),
        "digits with noise": (noisy, classes),
    }


def measure(learner, X, y, rank, seed):
    rows = np.random.RandomState(seed).permutation(len(X))[: N_TRAIN + N_TEST]
    train, test = rows[:N_TRAIN], rows[N_TRAIN:]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1)
    metric = Kernelized(learner, RBF(), KPCA(rank))
    start = time.process_time()
    metric.fit(X[train], y[train])
    seconds = time.process_time() - start
    if hasattr(metric, "predict"):
        return metric.score(X[test], y[test]), seconds
    knn = KNeighborsClassifier(1).fit(metric.transform(X[train]), y[train])
    return knn.score(metric.transform(X[test]), y[test]), seconds


def table(n_splits):
    """Mean accuracy and time for every learner, set and rank."""
    warnings.simplefilter("ignore")  # a descent cut short is judged by its accuracy
    rows = []
    for learner, estimator in LEARNERS.items():
        for name, (X, y) in sets().items():
            measure(estimator, X, y, RANKS[0], 0)  # the first fit also pays for imports
            for rank in RANKS:
                runs = [measure(estimator, X, y, rank, seed) for seed in range(n_splits)]
                accuracy, seconds = np.mean(runs, axis=0)
                spread = np.std([run[0] for run in runs])
                rows.append((learner, name, rank, accuracy, spread, seconds))
                print(
                    f"{learner:<5} {name:<18} {rank or 'full':>5} "
                    f"{100 * accuracy:5.1f} ± {100 * spread:3.1f} {seconds:7.3f} s",
                    flush=True,
                )
    return rows


def draw(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(row[1] for row in rows))
    figure, axes = plt.subplots(2, len(names), figsize=(9.5, 4.8), sharex=True, sharey="row")
    ticks = np.arange(len(RANKS))  # the ranks double, and so the axis is nearly logarithmic
    for learner, color in (("LDA", "C0"), ("LMNN", "C1")):
        for column, name in enumerate(names):
            chosen = [row for row in rows if row[0] == learner and row[1] == name]
            accuracy, spread, seconds = np.array([row[3:] for row in chosen]).T
            top, bottom = axes[:, column]
            top.plot(ticks, 100 * accuracy, "o-", color=color, label=learner, markersize=4)
            top.fill_between(
                ticks, 100 * (accuracy - spread), 100 * (accuracy + spread), color=color, alpha=0.15
            )
            bottom.plot(ticks, seconds, "o-", color=color, markersize=4)
            top.set_title(name)
            bottom.set(xlabel="rank", yscale="log")
    for axis in axes[1]:
        axis.set_xticks(ticks, [str(r or "full") for r in RANKS])
    axes[0, 0].set_ylabel("accuracy on new points, %")
    axes[1, 0].set_ylabel("processor time of fit, s")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rows", type=Path, help="draw these rows again instead of measuring")
    arguments = parser.parse_args()
    if arguments.rows and arguments.rows.exists():
        rows = json.loads(arguments.rows.read_text(encoding="utf-8"))
    else:
        with threadpool_limits(limits=1):
            rows = table(arguments.splits)
        if arguments.rows:
            arguments.rows.write_text(json.dumps(rows), encoding="utf-8")
    draw(rows, PICTURE)


if __name__ == "__main__":
    main()
