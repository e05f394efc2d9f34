"""What choosing the kernel costs, and how well ridge regression predicts with what was chosen.

    python benchmarks/kernel_choice.py --out new.jsonl generated bundled   # stored: data by name
    python benchmarks/kernel_choice.py --out new.jsonl --beside old.jsonl  # the table of both

Processor time of one thread. The error is the mean squared one on test points, for targets of unit
variance or columns of ±1; the second file comes from another version of the library.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import linalg
from sklearn import datasets as bundled
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kernelmetric import datasets
from kernelmetric.kernels import Rescaled
from kernelmetric.selection import LeaveOneOutRidge
from reproduction.datasets import load

SIZES = (400, 2000)
N_TEST = 2000
PIXELS = ("digits", "usps", "m_usps", "mnist")  # share one scale


def in_noise(draw, n_noise, spread=1.0):
    """The set with features that say nothing."""

    def noisy(n, rng):
        X, y = draw(n, rng)
        return np.hstack([X, spread * rng.standard_normal((n, n_noise))]), y

    return noisy


def moons(n, rng):
    return bundled.make_moons(n, noise=0.25, random_state=rng)


def board(n, rng, n_noise=4, n_cells=4):
    return datasets.make_checkerboard(n, n_noise=n_noise, n_cells=n_cells, random_state=rng)


def xor(n, rng):
    X = rng.standard_normal((n, 8))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0).astype(int)


def gaussians(n, rng, n_classes=3, d=2, apart=4.0):
    which = rng.randint(3 * n_classes, size=n)
    centres = np.random.RandomState(7).uniform(-apart, apart, size=(3 * n_classes, d))
    return centres[which] + 0.7 * rng.standard_normal((n, d)), which % n_classes


def blobs(n, rng, n_classes, d, apart):
    y = rng.randint(n_classes, size=n)
    X = apart * np.random.RandomState(8).standard_normal((n_classes, d))[y]
    return X + rng.standard_normal((n, d)), y


def informative(n, rng, **options):
    """Clusters on the corners of a cube, the same for every seed; only the sample differs."""
    options = {"n_features": 16, "n_informative": 6, "flip_y": 0.05} | options
    X, y = bundled.make_classification(12_000, random_state=3, **options)
    rows = rng.permutation(len(y))[:n]
    return X[rows], y[rows]


def steps(n, rng):
    X = rng.uniform(-1, 1, (n, 5))
    signal = np.floor(2 * X[:, 0]) + np.floor(2 * X[:, 1]) + X[:, 2]
    return X, signal + 0.3 * rng.standard_normal(n)


def waves(n, rng):
    X = rng.standard_normal((n, 10))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n)


def linear(n, rng):
    X = rng.standard_normal((n, 20))
    return X, X @ np.linspace(0, 1, 20) + rng.standard_normal(n)


def rules(n, rng):
    """A tree of thresholds on a few of many skewed features."""
    X = np.exp(rng.standard_normal((n, 12)))
    y = np.where(X[:, 0] > 1, X[:, 1] > 1.5, (X[:, 2] > 0.7) & (X[:, 3] < 2)).astype(int)
    return X, np.where(rng.uniform(size=n) < 0.05, 1 - y, y)


def kept(X, y):
    def draw(n, rng):
        rows = rng.permutation(len(y))[:n]
        return X[rows], y[rows]

    return draw


GENERATED = {
    "board": lambda n, rng: board(n, rng, 0),
    "board, 2 noise": lambda n, rng: board(n, rng, 2),
    "board, 4 noise": board,
    "board 3, 6 noise": lambda n, rng: board(n, rng, 6, 3),
    "moons": moons,
    "moons, 6 noise": in_noise(moons, 6),
    "close moons": lambda n, rng: kept(*datasets.make_close_moons(n, random_state=rng))(n, rng),
    "circles": lambda n, rng: bundled.make_circles(n, noise=0.15, factor=0.5, random_state=rng),
    "xor": xor,
    "gaussians, 4 noise": in_noise(gaussians, 4, 3.0),
    "gaussians, 30": lambda n, rng: gaussians(n, rng, 5, 30, 0.6),
    "many classes": lambda n, rng: blobs(n, rng, 60, 6, 3.0),
    "high dimensional": lambda n, rng: blobs(n, rng, 4, 200, 0.15),
    "classification": informative,
    "classification, 60": lambda n, rng: informative(n, rng, n_features=60, n_informative=8),
    "classification, 5": lambda n, rng: informative(
        n, rng, n_classes=5, n_informative=10, n_clusters_per_class=3
    ),
    "rules": rules,
    "hastie": lambda n, rng: bundled.make_hastie_10_2(n, random_state=rng),
    "friedman": lambda n, rng: bundled.make_friedman1(n, 10, noise=1.0, random_state=rng),
    "swiss roll": lambda n, rng: bundled.make_swiss_roll(n, noise=0.5, random_state=rng),
    "steps": steps,
    "waves": waves,
    "linear": linear,
}
BUNDLED = {
    name: kept(*getattr(bundled, f"load_{name}")(return_X_y=True))
    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes")
}
NAMES = """balance breast glass ionosphere musk2 pima satellite yeast sonar m_usps usps colon mnist
letter shuttle covtype"""
STORED = {
    name: lambda n, rng, name=name: kept(*load(name, return_X_y=True))(n, rng)
    for name in NAMES.split()
}
GROUPS = {"generated": GENERATED, "bundled": BUNDLED, "stored": STORED}


def split(name, n, seed):
    """Training and test points, scaled as the training points say; two thirds train if few."""
    draw = next(group[name] for group in GROUPS.values() if name in group)
    X, y = draw(n + N_TEST, np.random.RandomState(seed))
    n = min(n, 2 * len(y) // 3)
    X = X.astype(np.float64)
    if name in PIXELS:
        X = (X - X[:n].mean()) / X[:n].std()
    else:
        X = StandardScaler().fit(X[:n]).transform(X)
    if y.dtype.kind == "f" and len(np.unique(y)) > len(y) / 4:
        Y = ((y - y[:n].mean()) / y[:n].std())[:, None]
    else:
        classes, y = np.unique(y, return_inverse=True)
        Y = np.where(y[:, None] == np.arange(len(classes)), 1.0, -1.0)
    return X[:n], X[n:], y[:n], Y[:n], Y[n:]


def measure(name, n, seed):
    """Seconds of choosing, and the errors of ridge regression with what was chosen."""
    X, X_test, y, Y, Y_test = split(name, n, seed)
    start = time.process_time()
    kernel = LeaveOneOutRidge().bind(X, y)
    seconds = time.process_time() - start
    G = kernel(X) + 1.0
    predicted = (kernel(X_test, X) + 1.0) @ (linalg.pinvh(G) if n < 500 else linalg.inv(G)) @ Y
    wrong = None
    if Y.shape[1] > 1:
        wrong = float(np.mean(predicted.argmax(axis=1) != Y_test.argmax(axis=1)))
    inner = kernel.kernel if isinstance(kernel, Rescaled) else kernel
    return {
        "name": name,
        "n": n,
        "seed": seed,
        "seconds": round(seconds, 4),
        "error": float(np.mean((predicted - Y_test) ** 2)),
        "wrong": wrong,
        "chosen": type(inner.kernels[0]).__name__ + ("*" if inner is not kernel else ""),
        "gamma": float(inner.kernels[0].gamma),
        "ridge": float(inner.weights[1]),
        "candidates": {k: round(float(v), 4) for k, v in kernel.candidates_.items()},
    }


def read(path):
    """Cells by set, size and seed."""
    if not path.exists():
        return {}
    cells = map(json.loads, path.read_text().splitlines())
    return {(cell["name"], cell["n"], cell["seed"]): cell for cell in cells}


def table(new, old):
    """Lines that compare two versions, set by set and in the mean."""
    by_set = defaultdict(list)
    for key in new.keys() & old.keys():
        by_set[key[1], key[0]].append((new[key], old[key]))
    yield f"{'n':>5} {'set':20} {'seconds':>13} {'error':>15} {'ratio':>6} {'wrong':>13}  chosen"
    summary = defaultdict(list)
    for (n, name), pairs in sorted(by_set.items()):
        means = {
            field: [np.mean([cell[field] for cell in side]) for side in zip(*pairs, strict=True)]
            for field in (
                "seconds",
                "error",
                *(["wrong"] if pairs[0][0]["wrong"] is not None else []),
            )
        }
        ratio = means["error"][0] / means["error"][1]
        summary[n].append((*means["seconds"], np.log(ratio), *means.get("wrong", (np.nan, np.nan))))
        wrong = "{:.4f} {:.4f}".format(*means["wrong"]) if "wrong" in means else ""
        chosen = " ".join(f"{a['chosen']}/{b['chosen']}" for a, b in pairs)
        yield (
            f"{n:5d} {name:20} {means['seconds'][0]:6.2f} {means['seconds'][1]:6.2f} "
            f"{means['error'][0]:7.4f} {means['error'][1]:7.4f} {ratio:6.3f} {wrong:>13}  {chosen}"
        )
    for n, rows in sorted(summary.items()):
        a, b, logs, *wrong = np.nanmean(rows, axis=0)
        slowest = max(row[0] for row in rows)
        yield (
            f"{n:5d} {len(rows)} sets: {a:.3f} s (at most {slowest:.2f}) beside {b:.3f} s; errors "
            f"× {np.exp(logs):.4f}; wrong {wrong[0]:.4f} beside {wrong[1]:.4f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}, or names of sets")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--beside", type=Path, help="JSON lines of another version")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    done = read(arguments.out)
    names = [name for group in arguments.groups for name in GROUPS.get(group, [group])]
    with threadpool_limits(1), arguments.out.open("a") as out:
        measure("moons", 100, 0)  # what is loaded at the first call does not count
        for n in arguments.sizes:
            for name in names:
                for seed in range(arguments.seeds):
                    if (name, n, seed) not in done:
                        print(json.dumps(measure(name, n, seed)), file=out, flush=True)
    if arguments.beside:
        print(*table(read(arguments.out), read(arguments.beside)), sep="\n")


if __name__ == "__main__":
    main()
