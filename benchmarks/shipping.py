"""What smaller models lose and save, and what ONNX takes: digits, and others of KERNELMETRIC_DATA.

Run it as: python benchmarks/shipping.py [--data usps satellite letter] [--quick]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import DNE, LMNN, NCA, Kernelized, MetricClassifier, compress, save, to_onnx
from reproduction.datasets import load


def seconds(function, *arguments, times=3):
    """The least processor time of some calls."""
    took = []
    for _ in range(times):
        started = time.process_time()
        function(*arguments)
        took.append(time.process_time() - started)
    return min(took)


def file_size(model):
    with tempfile.TemporaryDirectory() as folder:
        return save(model, Path(folder) / "a.metric").stat().st_size


def accuracy(metric, X, y, X_new, y_new):
    return KNeighborsClassifier(1).fit(metric.places(X), y).score(metric.transform(X_new), y_new)


def distance_error(metric, small, X):
    d, e = metric.pairwise_distances(X), small.pairwise_distances(X)
    return np.sqrt(np.mean((d - e) ** 2) / np.mean(d**2))


def show_metric(name, metric, data):
    X, y, X_new, y_new = data
    metric.fit(X, y)
    whole, size = seconds(metric.transform, X_new), file_size(metric)
    print(f"\n{name}, {metric!r}: {len(X)} points, {size / 1e6:.2f} MB")
    print("| landmarks | stated error | on new points | 1-NN accuracy | file | transform |")
    print("|---|---|---|---|---|---|")
    print(f"| all {len(X)} | | | {accuracy(metric, X, y, X_new, y_new):.3f} | 1 | 1 |")
    for m in (len(X) // 20, len(X) // 10, len(X) // 5):
        small = compress(metric, m)
        print(
            f"| {m} | {small.compression_['distance_error']:.3f} "
            f"| {distance_error(metric, small, X_new[:1000]):.3f} "
            f"| {accuracy(small, X, y, X_new, y_new):.3f} "
            f"| 1/{size / file_size(small):.0f} "
            f"| 1/{whole / seconds(small.transform, X_new):.0f} |",
            flush=True,
        )


def in_onnx(model, X, P):
    """Seconds of one row and of all rows in onnxruntime, and the largest difference."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        to_onnx(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    kind = np.float64 if "double" in session.get_inputs()[0].type else np.float32
    X = X.astype(kind)

    def ask(rows):
        return session.run(["probabilities"], {"X": rows})[0]

    difference = np.abs(ask(X) - P).max()
    return seconds(ask, X[:1], times=20), seconds(ask, X), difference


def show_predictor(name, data):
    X, y, X_new, y_new = data
    model = MetricClassifier().fit(X, y)
    print(f"\n{name}, MetricClassifier(): {len(X)} points, {len(X_new)} new ones")
    print("| landmarks | accuracy | log-loss | one row | all | one row, ONNX | all | difference |")
    print("|---|---|---|---|---|---|---|---|")
    for m in (None, len(X) // 10, len(X) // 5):
        each = model if m is None else compress(model, m)
        P = each.predict_proba(X_new)
        one, whole = seconds(each.predict_proba, X_new[:1], times=20), seconds(each.predict, X_new)
        one_there, whole_there, difference = in_onnx(each, X_new, P)
        print(
            f"| {m or 'all'} | {np.mean(each.classes_[P.argmax(axis=1)] == y_new):.3f} "
            f"| {log_loss(y_new, P, labels=each.classes_):.3f} "
            f"| {1e3 * one:.1f} ms | {1e3 * whole:.0f} ms "
            f"| {1e3 * one_there:.1f} ms | {1e3 * whole_there:.0f} ms | {difference:.0e} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=[], help="2,000 points of these as well")
    parser.add_argument("--quick", action="store_true", help="300 points")
    given = parser.parse_args()
    sets = {"digits": (*load_digits(return_X_y=True), 1200)}
    sets |= {name: (*load(name, return_X_y=True), 2000) for name in given.data}
    for name, (X, y, n) in sets.items():
        n = 300 if given.quick else n
        order = np.random.RandomState(0).permutation(len(X))[: n + 2000]
        X, y = np.asarray(X, dtype=float)[order], np.asarray(y)[order]
        data = X[:n], y[:n], X[n:], y[n:]
        show_metric(name, Kernelized(NCA()), data)
        show_metric(name, Kernelized(DNE(20), "rbf"), data)
        if name == "digits":
            show_metric(name, Kernelized(LMNN(20, tol=1e-2), "rbf"), data)
        show_predictor(name, data)


if __name__ == "__main__":
    main()
