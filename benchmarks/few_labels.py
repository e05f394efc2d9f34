"""1 to 50 labels of each class, beside graphlearning, LabelSpreading and the nearest label.

``python benchmarks/few_labels.py RESULTS.jsonl`` adds a line for each set, number of labels, draw
and method, and passes over those that are there. ``--sets``, ``--points``, ``--draws`` and
``--quick`` take less; ``--jobs`` asks for processes; ``--table`` prints the means. "Poisson
learning" is written out here. Where graphlearning 1.7 is installed, its methods run too, all on
its usual graph, exp(-4 d²/t) of ten neighbours; without it, a sentence says that they are left out.
``--device cuda`` runs ours there, for full sets; others are for ``--jobs``.
Fashion-MNIST is read from ``--fashion``, a folder with the four gz files of its Debian package.
``--pack FOLDER`` writes the points as they are used, ``--packed FOLDER`` reads them from there.

Log-losses of peers are those of their scores, in units of their spread, at the temperature that is
best for the very points they are judged on; ours are of ``predict_proba``. "ours, new points" is
asked of a fifth of the points, which its fit has not seen, and "ours, the same points" of them too.
A fit of fewer points is worse by itself: "ours, the others" is asked of the other four fifths when
all points are there, and "ours, a fifth away" when the new ones are not.

``--gpu`` measures seconds alone, on the device of torch: 70,000 x 784 and 10⁶ x 50 points drawn
from clusters, with the graph given and with it. ``--million`` measures 10⁶ x 50 points on as many
cores as there are, on a graph of approximate neighbours by faiss.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import resource
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.preprocessing import StandardScaler, minmax_scale
from sklearn.semi_supervised import LabelSpreading

from few_labels_peers import best_loss, of_graphlearning, peer_graph, poisson
from kernelmetric import TransductiveDistance, use_device
from kernelmetric.compute import to_device
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.graphs import local_graph
from reproduction.datasets import load

SETS = ("mnist", "fashion", "usps", "letter", "satellite", "covtype")
COUNTS = (1, 2, 3, 5, 10, 50)
_COVTYPE = 50_000
_TIMED = ((2000, 20), (70_000, 784), (1_000_000, 50))  # the first warms up
_SPREADS = 20_000  # points up to which LabelSpreading is asked
_MANY, _SLOW_DRAWS = 20, 2  # classes from which on PoissonMBO takes long, and draws of it
_NEW = 5  # one point of so many is new
_PARTS = (  # of points, of which accuracies are told too
    ("ours", "same", "ours, the same points"),
    ("ours", "others", "ours, the others"),
    ("ours, new points", "others", "ours, a fifth away"),
)


def read(
    name: str, n: int, fashion: Path | None, packed: Path | None
) -> tuple[np.ndarray, np.ndarray]:
    """A random part of a set, and class codes; pixels in [0, 1], other features scaled."""
    if packed is not None:
        with np.load(packed / f"{name}.npz") as file:
            X = file["X"][:n]
            return X.astype(np.float32) / np.float32(255 if X.dtype == np.uint8 else 1), file["y"][
                :n
            ]
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


def nearest_to(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Which point is nearest to each query."""
    return nearest_neighbors(to_device(points), 1, queries=to_device(queries))[0][:, 0]


def methods(W: sparse.csr_matrix, X: np.ndarray, y: np.ndarray) -> dict:
    """What finds the classes of all points, and log-probabilities or scores where it has them."""
    shares = np.bincount(y) / len(y)

    def ours(known):
        model = TransductiveDistance(random_state=0).fit(X, known)
        return model.transduction_, model.predict_proba(X)

    def sized(known):
        model = TransductiveDistance(random_state=0, class_sizes=shares).fit(X, known)
        return model.transduction_, model.predict_proba(X)

    def nearest_label(known):
        labelled = np.flatnonzero(known >= 0)
        return known[labelled][nearest_to(X[labelled], X)], None

    def by_poisson(known):
        U = poisson(W, known)
        return U.argmax(axis=1), U

    found = {
        "nearest label": nearest_label,
        "ours": ours,
        "ours, given sizes": sized,
        "Poisson learning": by_poisson,
    }
    if len(X) <= _SPREADS:

        def spreading(known):
            model = LabelSpreading(kernel="knn", n_neighbors=10).fit(X, known)
            return model.transduction_, np.log(np.maximum(model.label_distributions_, 1e-12))

        found["LabelSpreading"] = spreading
    return found | of_graphlearning(W, shares)


def measure(method: str, run, y: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Accuracy and log-loss on the points without a label, and seconds."""
    begun, used = time.perf_counter(), time.process_time()
    labels, scores = run(known)
    row = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - used}
    rest = known < 0
    row["accuracy"] = float(np.mean(labels[rest] == y[rest]))
    if method.startswith("ours") and scores is not None:
        P = np.nan_to_num(scores[rest, y[rest]])
        row["log_loss"] = -float(np.mean(np.log(np.maximum(P, 1e-3))))
        new = rest & (np.arange(len(y)) % _NEW == 0)
        row["same"] = float(np.mean(labels[new] == y[new]))
        row["others"] = float(np.mean((labels == y)[rest & ~new]))
    elif scores is not None and "MBO" not in method:  # which makes corners of all
        row["log_loss"] = best_loss(np.asarray(scores)[rest], y[rest])
    return row


def new_points(X: np.ndarray, y: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Accuracy on points that were not there in fit."""
    new = (known < 0) & (np.arange(len(y)) % _NEW == 0)
    model = TransductiveDistance(random_state=0).fit(X[~new], known[~new])
    there = (model.transduction_ == y[~new])[known[~new] < 0]
    return {
        "accuracy": float(np.mean(model.predict(X[new]) == y[new])),
        "others": float(np.mean(there)),
    }


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
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", help="of torch, such as cuda; with one job")
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--packed", type=Path)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--quick", action="store_true", help="2,000 points, two draws")
    parser.add_argument("--table", action="store_true", help="print the means of what is there")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.points, arguments.draws = 2000, 2
    warnings.simplefilter("ignore")  # of single labels
    if arguments.gpu:
        measure_device(arguments)
        return
    if arguments.million:
        measure_million()
        return
    if arguments.pack:
        pack(arguments)
        return
    if arguments.results is None:
        parser.error("RESULTS.jsonl says where results go")
    if arguments.device and arguments.jobs > 1:
        parser.error("--device is for one job: processes do not share it")
    if not arguments.table:
        with use_device(arguments.device) if arguments.device else nullcontext():
            run_all(arguments)
    print_table(arguments.results)


def run_all(arguments: argparse.Namespace) -> None:
    done = {row["key"] for row in rows_of(arguments.results)}
    if not importlib.util.find_spec("graphlearning"):
        print("graphlearning is not installed, so its methods (gl ...) are left out.", flush=True)
    for name in arguments.sets:
        try:
            X, y = read(name, arguments.points, arguments.fashion, arguments.packed)
        except FileNotFoundError as missing:
            print(f"{name} is left out: {missing}")
            continue
        begun = time.perf_counter()
        W = peer_graph(*nearest_neighbors(to_device(X), 10))
        print(f"{name}: {X.shape}, 10 neighbours {time.perf_counter() - begun:.1f} s", flush=True)
        there = [*methods(W, X, y), "ours, new points"]
        asked = [method for method in arguments.methods or there if method in there]
        slow = y.max() >= _MANY
        cells = [
            (method, count, seed)
            for seed in range(arguments.draws)
            for count in arguments.counts
            for method in asked
            if f"{name} {len(X)} {count} {seed} {method}" not in done
            and not (method.startswith("gl PoissonMBO") and slow and seed >= _SLOW_DRAWS)
        ]
        run = Parallel(arguments.jobs, return_as="generator_unordered")
        for row in run(delayed(one)(W, X, y, *cell) for cell in cells):
            row |= {"key": f"{name} {len(X)} {row['count']} {row['seed']} {row['method']}"}
            with arguments.results.open("a") as file:
                file.write(json.dumps(row | {"set": name, "n": len(X)}) + "\n")


def one(W: sparse.csr_matrix, X: np.ndarray, y: np.ndarray, method: str, count: int, seed: int):
    """A line of the results."""
    warnings.simplefilter("ignore")  # of single labels
    known = draw(y, count, seed)
    if method == "ours, new points":
        found = new_points(X, y, known)
    else:
        found = measure(method, methods(W, X, y)[method], y, known)
    return {"method": method, "count": count, "seed": seed} | found


def pack(arguments: argparse.Namespace) -> None:
    """The points as they are used, in files that --packed reads."""
    arguments.pack.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets:
        X, y = read(name, arguments.points, arguments.fashion, arguments.packed)
        if name in ("mnist", "fashion"):
            X = np.round(255 * X).astype(np.uint8)
        np.savez_compressed(arguments.pack / f"{name}.npz", X=X, y=y.astype(np.int8))


def measure_million() -> None:
    """Seconds and memory for 10⁶ x 50 points on the cores there are, neighbours by faiss."""
    import faiss

    n, d, k = 1_000_000, 50, 10
    X, y = clusters(n, d)
    begun = time.perf_counter()
    index = faiss.index_factory(d, "IVF4096,Flat")
    index.train(X[:200_000])
    index.add(X)
    index.nprobe = 16
    squares, nearest = index.search(X, k + 1)
    own = nearest == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # one too many is left out in any case
    nearest, squares = (part[~own].reshape(n, k) for part in (nearest, squares))
    seconds = time.perf_counter() - begun
    some = slice(0, 500)
    exact = nearest_neighbors(X, k + 1, queries=X[some])[0]
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(nearest[some], exact, strict=True)])
    W = local_graph(nearest, np.maximum(squares, 0.0))
    print(
        f"{len(os.sched_getaffinity(0))} cores, graph {seconds:.0f} s, recall {recall:.3f}",
        flush=True,
    )
    for count in (1, 10):
        known, begun = draw(y, count, 0), time.perf_counter()
        model = TransductiveDistance(graph=W, method="diffusion").fit(X, known)
        found = float(np.mean((model.transduction_ == y)[known < 0]))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{count} labels of each class: fit {time.perf_counter() - begun:.0f} s, accuracy "
            f"{found:.4f}, at most {most:.1f} GiB",
            flush=True,
        )


def clusters(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of ten Gaussians."""
    rng = np.random.RandomState(0)
    y = rng.randint(10, size=n)
    X = rng.standard_normal((10, d)).astype(np.float32)[y] * np.float32((36.0 / d) ** 0.5)
    return X + rng.standard_normal((n, d)).astype(np.float32), y


def measure_device(arguments: argparse.Namespace) -> None:
    """Seconds of a default fit on a device, and what of them the graph takes."""
    with use_device(arguments.gpu):
        print("| points | labels of each class | graph | with it given | default | accuracy |")
        print("|---|---|---|---|---|---|")
        for n, d in _TIMED:
            X, y = clusters(n, d)
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
    both = {row["key"].removesuffix(", new points") for row in rows if "new points" in row["key"]}
    rows += [
        {**row, "method": told, "accuracy": row[kind]}
        for row in rows
        for method, kind, told in _PARTS
        if row["method"] == method
        and kind in row
        and row["key"].removesuffix(", new points") in both
    ]
    sets = dict.fromkeys((row["set"], row["n"]) for row in rows)
    names = dict.fromkeys(row["method"] for row in rows)
    counts = sorted({row["count"] for row in rows})
    there = {(row["set"], row["method"], row["count"]) for row in rows}
    print("| set | method |", " | ".join(map(str, counts)), "| mean | s | log-loss | draws |")
    print("|---|---|" + "---|" * (len(counts) + 4))
    for kind, n in [*sets, ("mean of all", "")]:
        for name in names:
            some = [
                row for row in rows if row["method"] == name and kind in (row["set"], "mean of all")
            ]
            means = [[100 * row["accuracy"] for row in some if row["count"] == c] for c in counts]
            if kind == "mean of all":  # every set counts alike; those that all have
                by_set = {key: [] for key in there}
                for row in some:
                    by_set[row["set"], name, row["count"]].append(100 * row["accuracy"])
                whole = [[one for one, _ in sets if all((one, m, c) in there for m in names)]
                         for c in counts]  # fmt: skip
                means = [
                    [np.mean(by_set[one, name, c]) for one in ones]
                    for ones, c in zip(whole, counts, strict=True)
                ]
            if not some or not all(means):
                continue
            cells = [f"{np.mean(part):.1f}" for part in means]
            loss = [row["log_loss"] for row in some if "log_loss" in row]
            cells += [f"{np.mean([np.mean(part) for part in means]):.2f}"]
            cells += [f"{np.median([row.get('seconds', np.nan) for row in some]):.2f}"]
            cells += [f"{np.mean(loss):.2f}" if loss else "", f"{min(map(len, means))}"]
            print(f"| {kind} {n} | {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
