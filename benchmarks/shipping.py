"""What compress loses and saves: digits of scikit-learn, and USPS where KERNELMETRIC_DATA has it.

Run it as: python benchmarks/shipping.py [--usps]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import DNE, LMNN, Kernelized, compress, save
from reproduction.datasets import load


def seconds(function, *arguments):
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def file_size(metric):
    with tempfile.TemporaryDirectory() as folder:
        return save(metric, Path(folder) / "a.metric").stat().st_size


def accuracy(metric, X, y, X_new, y_new):
    knn = KNeighborsClassifier(1).fit(metric.transform(X), y)
    return knn.score(metric.transform(X_new), y_new)


def distance_error(metric, small, X):
    d, e = metric.pairwise_distances(X), small.pairwise_distances(X)
    return np.sqrt(np.mean((d - e) ** 2) / np.mean(d**2))


def show(name, metric, X, y, X_new, y_new):
    metric.fit(X, y)
    whole, size = min(seconds(metric.transform, X_new) for _ in range(3)), file_size(metric)
    print(f"\n{name}, {metric!r}: {len(X)} points, {size / 1e6:.2f} MB")
    print("| landmarks | stated error | error on new points | 1-NN accuracy | file | faster |")
    print("|---|---|---|---|---|---|")
    print(f"| all {len(X)} | | | {accuracy(metric, X, y, X_new, y_new):.3f} | 1 | 1 |")
    for m in (50, 100, 200, 400):
        small = compress(metric, m)
        faster = whole / min(seconds(small.transform, X_new) for _ in range(3))
        error = distance_error(metric, small, X_new[:1000])
        print(
            f"| {m} | {small.compression_['distance_error']:.3f} | {error:.3f} "
            f"| {accuracy(small, X, y, X_new, y_new):.3f} | 1/{size / file_size(small):.0f} "
            f"| {faster:.0f}x |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--usps", action="store_true", help="2,000 points of USPS as well")
    usps = parser.parse_args().usps
    X, y = load_digits(return_X_y=True)
    show("digits", Kernelized(DNE(20), "rbf"), X[:1200], y[:1200], X[1200:], y[1200:])
    lmnn = Kernelized(LMNN(20, tol=1e-2), "rbf")
    show("digits", lmnn, X[:600], y[:600], X[1200:], y[1200:])
    if usps:
        X, y = load("usps", return_X_y=True)
        order = np.random.RandomState(0).permutation(len(X))[:5000]
        X, y = X[order], y[order]
        show("USPS", Kernelized(DNE(30), "rbf"), X[:2000], y[:2000], X[2000:], y[2000:])


if __name__ == "__main__":
    main()
