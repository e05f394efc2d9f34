"""``IdealizedKernel()`` as it comes: seconds, certified gaps and objectives, beside those before.

``python benchmarks/pair_defaults.py [--quick]`` prints a line for every set: what
``pair_defaults.json`` recorded of the solver that was there before, and what is measured now, both
in CPU seconds of one thread, with the area under the ROC curve of pairs of points never seen, where
there are any. The last column has seconds by the clock with the threads that BLAS takes by itself:
what people meet. ``--sets`` names the sets to run; with ``--full`` the kernelized ones learn in all
coordinates, ``space=KPCA()``. ``--record FILE`` writes what was measured, so that any two versions
can be compared: ``--before FILE`` reads it. ``KERNELMETRIC_DATA`` names a folder with the sets.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine, make_classification
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kernelmetric import KPCA, IdealizedKernel, Kernelized, Pairs
from reproduction.datasets import load

N_POINTS, N_PAIRS, N_NEW = 400, 3000, 1000
QUICK = ("generated, 10 features", "generated, 16 features", "pima", "letter", "wine, raw, labels")


def generated(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of scikit-learn's generator, half of the features informative."""
    return make_classification(
        N_POINTS + N_NEW,
        n_features,
        n_informative=max(4, n_features // 2),
        n_redundant=0,
        n_classes=3,
        flip_y=0.05,
        random_state=0,
    )


def stored(name: str, *, raw: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Some points of a set, standardized unless raw."""
    X, y = load(name, return_X_y=True)
    chosen = np.random.RandomState(0).permutation(len(X))[: N_POINTS + N_NEW]
    X, y = (
        np.asarray(X, dtype=float)[chosen],
        np.unique(np.asarray(y)[chosen], return_inverse=True)[1],
    )
    return X if raw else StandardScaler().fit(X[:N_POINTS]).transform(X), y


def random_pairs(y: np.ndarray) -> Pairs:
    """Pairs drawn at random, half of them similar."""
    rng = np.random.RandomState(0)
    rows = rng.randint(len(y), size=(8 * N_PAIRS, 2))
    rows = np.unique(rows[rows[:, 0] < rows[:, 1]], axis=0)
    rows = rows[rng.permutation(len(rows))]
    same = y[rows[:, 0]] == y[rows[:, 1]]
    similar = rows[same][: N_PAIRS // 2]
    return Pairs(similar, rows[~same][: N_PAIRS - len(similar)], len(y))


def cases() -> dict[str, tuple[Callable[[], Any], bool, str | None]]:
    """By name: points and labels, whether pairs are drawn at random, and the kernel if any."""
    found: dict[str, Any] = {
        f"generated, {d} features": (lambda d=d: generated(d), True, None)
        for d in (5, 10, 15, 16, 30, 50, 60)
    }
    for name in ("pima", "letter", "satellite"):
        found[name] = (lambda name=name: stored(name), True, None)
    found["wine, raw, labels"] = (lambda: load_wine(return_X_y=True), False, None)
    found["covtype, raw, labels"] = (lambda: stored("covtype", raw=True), False, None)
    for d in (5, 10, 15, 30, 60):
        found[f"generated, {d} features, kernel"] = (lambda d=d: generated(d), True, "auto")
    for name in ("letter", "satellite"):
        found[f"{name}, kernel"] = (lambda name=name: stored(name), True, "auto")
    return found


def measured(
    make: Callable[[], Any], drawn: bool, kernel: str | None, space: Any
) -> dict[str, Any]:
    """Fit twice, and say what came out."""
    X, y = make()
    X, y, X_new, y_new = X[:N_POINTS], y[:N_POINTS], X[N_POINTS:], y[N_POINTS:]
    model = IdealizedKernel() if kernel is None else Kernelized(IdealizedKernel(), kernel, space)
    given = {"pairs": random_pairs(y)} if drawn else {"y": y}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap is shown
        start = time.perf_counter()
        model.fit(X, **given)
        wall = time.perf_counter() - start
        with threadpool_limits(1):
            start = time.process_time()
            model.fit(X, **given)
            seconds = time.process_time() - start
    learner = model if kernel is None else model.learner_
    return {
        "seconds": round(seconds, 2),
        "gap": float(learner.duality_gap_),
        "objective": float(learner.loss_),
        "C": float(learner.C_),
        "wall": round(wall, 2),
        "area": round(area(model, X_new, y_new), 4) if len(X_new) > 20 else float("nan"),
    }


def area(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """How well learned distances tell pairs of new points apart: area under the ROC curve."""
    Z, pairs = model.transform(X), random_pairs(y)
    delta = Z[pairs.rows[:, 0]] - Z[pairs.rows[:, 1]]
    return float(roc_auc_score(~pairs.is_similar, np.sum(delta**2, axis=1)))


def main() -> None:
    """Measure, compare, print."""
    here = Path(__file__).with_suffix(".json")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the sets that take seconds")
    parser.add_argument("--sets", nargs="+", help="names of the sets to run")
    parser.add_argument("--full", action="store_true", help="kernelized in all coordinates")
    parser.add_argument("--before", type=Path, default=here)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    before = json.loads(options.before.read_text()) if options.before.exists() else {}
    results = {}
    print(f"{'':28} | {'before':^38} | now: CPU s, gap, objective, C, area, s")
    for name, case in cases().items():
        if options.quick and name not in QUICK:
            continue
        if options.sets and name not in options.sets:
            continue
        results[name] = measured(*case, KPCA() if options.full else "auto")
        if options.record is not None:
            options.record.write_text(json.dumps(results, indent=1) + "\n")
        texts = [
            f"{row['seconds']:8.2f} {row['gap']:8.1e} {row['objective']:13.7g} {row['C']:5.0e}"
            + (f" {row['area']:.3f}" if "area" in row else "")
            + (f" {row['wall']:6.2f}" if "wall" in row else "")
            if row
            else ""
            for row in (before.get(name), results[name])
        ]
        print(f"{name:28} | {texts[0]:38} | {texts[1]}", flush=True)


if __name__ == "__main__":
    main()
