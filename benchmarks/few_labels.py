"""1 to 50 labels of each class, beside graphlearning, LabelSpreading and the nearest label.

``python benchmarks/few_labels.py RESULTS.jsonl`` adds a line for each set, number of labels and
draw, and passes over those that are there. ``--sets``, ``--points``, ``--draws`` and ``--quick``
take less; ``--table`` prints the means. Where graphlearning 1.7 is installed, its methods run on
its usual graph, exp(-4 d²/t) of ten neighbours. Fashion-MNIST is read from ``--fashion``, a folder
with the four gz files of its Debian package. ``--gpu`` measures seconds alone, on the device of
torch: 70,000 x 784 and 10⁶ x 50 points drawn from clusters, with the graph given and with it.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler, minmax_scale
from sklearn.semi_supervised import LabelSpreading

from kernelmetric import TransductiveDistance, use_device
from kernelmetric.compute import to_device
from kernelmetric.compute.reductions import nearest_neighbors
from reproduction.datasets import load

SETS = ("mnist", "fashion", "usps", "letter", "satellite", "covtype")
COUNTS = (1, 2, 3, 5, 10, 50)
_COVTYPE = 50_000
_TIMED = ((2000, 20), (70_000, 784), (1_000_000, 50))  # the first warms up
_SPREADS = 20_000  # points up to which LabelSpreading is asked


def read(name: str, n: int, fashion: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """A random part of a set, and class codes; pixels in [0, 1], other features scaled."""
    if name == "fashion":
        if fashion is None:
            raise FileNotFoundError("--fashion says where the gz files are")
        files = [[_idx(fashion / f"{part}-{kind}.gz") for part in ("train", "t10k")]
                 for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]  # fmt: skip
        X, y = np.concatenate(files[0]).reshape(-1, 784), np.concatenate(files[1])
    else:
        X, y = load(name, return_X_y=True)
    n = min(n, _COVTYPE) if name == "covtype" else n
    rows = np.random.RandomState(0).permutation(len(y))[:n]
    X, y = np.asarray(X[rows], dtype=np.float32), np.unique(y[rows], return_inverse=True)[1]
    image = name in ("mnist", "fashion", "usps")
    return minmax_scale(X.ravel()).reshape(X.shape) if image else StandardScaler().fit_transform(
        X
    ), y


def _idx(path: Path) -> np.ndarray:
    with gzip.open(path) as file:
        data = file.read()
    n_axes = data[3]
    shape = np.frombuffer(data, ">u4", n_axes, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def draw(y: np.ndarray, count: int, seed: int) -> np.ndarray:
    """So many labels of each class, at most half of it; -1 elsewhere."""
    rng, known = np.random.RandomState(seed), np.full(len(y), -1)
    for c in range(y.max() + 1):
        rows = rng.permutation(np.flatnonzero(y == c))
        known[rows[: min(count, len(rows) // 2)]] = c
    return known


def peer_graph(nearest: np.ndarray, squares: np.ndarray) -> sparse.csr_matrix:
    """The usual graph of the papers: ten neighbours, exp(-4 d²/t), (A + Aᵀ)/2, no loops."""
    nearest, squares = nearest[:, :10], squares[:, :10]
    W = np.exp(-4.0 * squares / np.maximum(squares[:, -1:], 1e-30))
    rows = np.repeat(np.arange(len(W)), W.shape[1])
    A = sparse.csr_matrix((W.ravel(), (rows, nearest.ravel())), shape=(len(W), len(W)))
    return (A + A.T) / 2


def methods(X: np.ndarray, y: np.ndarray, neighbors: tuple[np.ndarray, np.ndarray]) -> dict:
    """What finds the classes of all points, and probabilities where it has them."""
    shares = np.bincount(y) / len(y)

    def ours(**options):
        def run(known):
            model = TransductiveDistance(random_state=0, **options).fit(X, known)
            chance = model.predict_proba(X) if not options else None
            return model.transduction_, chance

        return run

    def nearest_label(known):
        labelled = np.flatnonzero(known >= 0)
        return known[labelled][nearest_neighbors(X[labelled], 1, queries=X)[0][:, 0]], None

    found = {
        "nearest label": nearest_label,
        "ours": ours(),
        "ours, given sizes": ours(class_sizes=shares),
    }
    if len(X) <= _SPREADS:

        def spreading(known):
            model = LabelSpreading(kernel="knn", n_neighbors=10).fit(X, known)
            return model.transduction_, model.label_distributions_

        found["LabelSpreading"] = spreading
    if importlib.util.find_spec("graphlearning"):
        import graphlearning as gl

        W = peer_graph(*neighbors)

        def peer(make):
            def run(known):
                train = np.flatnonzero(known >= 0)
                return make().fit_predict(train, known[train]), None

            return run

        found |= {
            "gl Laplace": peer(lambda: gl.ssl.laplace(W)),
            "gl Poisson": peer(lambda: gl.ssl.poisson(W)),
            "gl PoissonMBO, given sizes": peer(lambda: gl.ssl.poisson_mbo(W, class_priors=shares)),
            "gl volume MBO, given sizes": peer(lambda: gl.ssl.volume_mbo(W, class_priors=shares)),
        }
    return found


def measure(run, y: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Accuracy and log-loss on the points without a label, and seconds."""
    begun, used = time.perf_counter(), time.process_time()
    labels, chance = run(known)
    row = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - used}
    rest = known < 0
    row["accuracy"] = float(np.mean(labels[rest] == y[rest]))
    if chance is not None:
        P = np.nan_to_num(chance[rest, y[rest]])
        row["log_loss"] = -float(np.mean(np.log(np.maximum(P, 1e-3))))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--gpu", nargs="?", const="cuda", help="the device, if it is not cuda")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=SETS)
    parser.add_argument("--points", type=int, default=70_000)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--counts", nargs="*", type=int, default=COUNTS)
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--fashion", type=Path)
    parser.add_argument("--quick", action="store_true", help="2,000 points, two draws")
    parser.add_argument("--table", action="store_true", help="print the means of what is there")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.points, arguments.draws = 2000, 2
    warnings.simplefilter("ignore")  # of single labels
    if arguments.gpu:
        measure_device(arguments)
        return
    if arguments.results is None:
        parser.error("RESULTS.jsonl says where results go")
    if not arguments.table:
        run_all(arguments)
    print_table(arguments.results)


def run_all(arguments: argparse.Namespace) -> None:
    done = {row["key"] for row in rows_of(arguments.results)}
    for name in arguments.sets:
        try:
            X, y = read(name, arguments.points, arguments.fashion)
        except FileNotFoundError as missing:
            print(f"{name} is left out: {missing}")
            continue
        begun = time.perf_counter()
        neighbors = nearest_neighbors(X, 20)
        print(f"{name}: {X.shape}, 20 neighbours {time.perf_counter() - begun:.1f} s", flush=True)
        for method, run in methods(X, y, neighbors).items():
            if arguments.methods and method not in arguments.methods:
                continue
            for count in arguments.counts:
                for seed in range(arguments.draws):
                    key = f"{name} {len(X)} {count} {seed} {method}"
                    if key in done:
                        continue
                    row = {"key": key, "set": name, "n": len(X), "count": count, "method": method}
                    row |= measure(run, y, draw(y, count, seed))
                    with arguments.results.open("a") as file:
                        file.write(json.dumps(row) + "\n")


def measure_device(arguments: argparse.Namespace) -> None:
    """Seconds of a default fit on a device, and what of them the graph takes."""
    with use_device(arguments.gpu):
        print("| points | labels of each class | graph | with it given | default | accuracy |")
        print("|---|---|---|---|---|---|")
        for n, d in _TIMED:
            rng = np.random.RandomState(0)
            y = rng.randint(10, size=n)
            X = rng.standard_normal((10, d)).astype(np.float32)[y] * (36.0 / d) ** 0.5
            X += rng.standard_normal((n, d)).astype(np.float32)
            begun = time.perf_counter()
            W = peer_graph(*nearest_neighbors(to_device(X), 20))
            graph = time.perf_counter() - begun
            for count in (1, 10):
                known, cells = draw(y, count, 0), []
                for given in (W, "auto"):
                    begun = time.perf_counter()
                    model = TransductiveDistance(graph=given, method="diffusion").fit(X, known)
                    cells.append(f"{time.perf_counter() - begun:.2f} s")
                found = float(np.mean((model.transduction_ == y)[known < 0]))
                print(
                    f"| {n:,} x {d} | {count} | {graph:.2f} s |",
                    " | ".join(cells),
                    f"| {found:.3f} |",
                    flush=True,
                )


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def print_table(path: Path) -> None:
    """Mean accuracy in percent: sets and methods in rows, numbers of labels in columns."""
    rows = rows_of(path)
    sets = dict.fromkeys((row["set"], row["n"]) for row in rows)
    names = dict.fromkeys(row["method"] for row in rows)
    counts = sorted({row["count"] for row in rows})
    print("| set | method |", " | ".join(map(str, counts)), "| mean | s | log-loss |")
    print("|---|---|" + "---|" * (len(counts) + 3))
    for kind, n in [*sets, ("mean of all", "")]:
        for name in names:
            some = [
                row for row in rows if row["method"] == name and kind in (row["set"], "mean of all")
            ]
            means = [[100 * row["accuracy"] for row in some if row["count"] == c] for c in counts]
            if not some or not all(means):
                continue
            cells = [f"{np.mean(part):.1f}" for part in means]
            loss = [row["log_loss"] for row in some if "log_loss" in row]
            cells += [f"{np.mean([np.mean(part) for part in means]):.2f}"]
            cells += [f"{np.median([row['seconds'] for row in some]):.2f}"]
            print(
                f"| {kind} {n} | {name} |",
                " | ".join(cells),
                f"| {np.mean(loss):.2f} |" if loss else "| |",
            )


if __name__ == "__main__":
    main()
