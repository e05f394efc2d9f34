"""A recorded set of fits, to see whether another version, machine or setting changes a result.

``python benchmarks/recorded.py record FILE.npz`` fits every learner, alone and in every space with
several kernels, and keeps what came out for points the training never saw. ``compare FILE.npz``
fits them again and prints the largest relative difference of each; it exits with 1 where one is
beyond 1e-10 (1e-4 in float32). Coordinates may turn and change sign between versions, so what is
compared are distances between them, eigenvalues, numbers of steps and the kernels chosen.

``compare FILE.npz --threads 1,2,4 --budget 20MB,1GB`` fits under each setting; without a file the
first setting is what the others are compared with. Optimizers make few steps, so that rounding
does not grow on the way. How much it grows all the same is measured while recording, on points
that are wrong in their last bits: ten times that is allowed where it is more than the tolerance,
and the table says so. A fit that is refused is recorded as such; a budget other than 1 GB
may refuse more.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from kernelmetric import datasets, memory_budget
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import RBF, Cosine, Delta, Laplacian, Linear, Polynomial
from kernelmetric.learners import (
    DLA,
    DNE,
    ITML,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    MCML,
    MLKR,
    MMC,
    NCA,
    RCA,
    IdealizedKernel,
)
from kernelmetric.selection import AlignedScales, KernelAlignment, LeaveOneOutRidge
from kernelmetric.spaces import KPCA, KernelTrick, Nystroem, RandomFeatures
from kernelmetric.transductive import TransductiveDistance

TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
BUDGET = "1GB"
STEPS = 6
WIDTHS = [RBF(gamma=gamma) for gamma in (0.01, 0.1, 1.0)]
HELD_OUT = 40
Outcome = dict[str, np.ndarray]


class Fit(NamedTuple):
    """One line of the table: what is fitted, on what."""

    name: str
    estimator: BaseEstimator
    data: str
    dtype: str = "float64"


# --- data -----------------------------------------------------------------------------------------


@lru_cache
def points(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and labels; the last ones are not trained on."""
    if name == "moons":
        return datasets.make_close_moons(160, random_state=0)[:2]
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return scale(X)[:200], scale(y)[:200]
    if name == "wine":
        X, y = load_wine(return_X_y=True)
        rows = np.random.RandomState(0).permutation(len(X))
        return scale(X)[rows], y[rows]
    if name == "pairs of wine":
        return points("wine")
    if name == "little wine":
        X, y = points("wine")
        return X[-90:], y[-90:]
    X, y = load_digits(return_X_y=True)
    n = {"sparse digits": 240, "digits": 640, "many digits": 1240, "few labels": 300}[name]
    X, y = X[:n] / 16.0, y[:n].copy()
    # Grey values are whole numbers: without some noise many distances are equal, and rounding
    # alone decides which of two points is the nearer one.
    X = np.where(X > 0, X + 1e-2 * np.random.RandomState(0).standard_normal(X.shape), 0.0)
    if name == "few labels":
        y[np.arange(n) % 10 > 0] = -1
    return X, y


# --- the fits -------------------------------------------------------------------------------------


def learners() -> list[BaseEstimator]:
    """Every learner that learns from labels, and its variants."""
    return [
        NCA(max_iter=STEPS),
        NCA(2, reg=0.1, max_iter=STEPS),
        NCA(2, solver="minibatch", max_iter=2, batch_size=50, random_state=0),
        LMNN(max_iter=STEPS),
        LMNN(3, reg=0.5, max_iter=STEPS),
        LMCA(2, max_iter=STEPS),
        MCML(max_iter=STEPS),
        LDA(),
        LFDA(2),
        LFDA(n_neighbors=3, shrinkage=0.1),
        DNE(2),
        DLA(2),
        LPP(2),
        RCA(2),
        ITML(max_iter=STEPS),
        MMC(max_iter=STEPS),
        MMC(diagonal=True, max_iter=STEPS),
        *(IdealizedKernel(C=100.0, nu=0.8, psd=psd) for psd in ("solve", "clip", "none")),
        IdealizedKernel(nu=0.8),
    ]


def spaces() -> list[BaseEstimator]:
    return [
        KPCA(),
        KPCA(8),
        KPCA(0.9),
        KPCA(8, solver="randomized", random_state=0),
        Nystroem(30, random_state=0),
        Nystroem(30, n_components=10, landmarks="kmeans", random_state=0),
        RandomFeatures(100, n_components=10, random_state=0),
        KernelTrick(),
        KernelTrick(singular="ridge", ridge=1e-3),
    ]


def kernels() -> list[Any]:
    return [
        RBF(),
        Polynomial(),
        Laplacian(),
        Linear(),
        Cosine(),
        RBF(gamma=0.1) + 0.1 * Polynomial(2),
        RBF() + 0.1 * Delta(),
        RBF(gamma=0.1) * Linear(),
    ]


def chosen_kernels() -> list[Any]:
    """Kernels that the labels have a say in."""
    return [
        "auto",
        KernelAlignment(WIDTHS),
        AlignedScales(RBF()),
        LeaveOneOutRidge(100),
    ]


def fits() -> Iterator[Fit]:
    """All of them, in the order of the table."""
    for learner in learners():
        yield _fit(learner, "wine")
        yield _fit(learner, "wine", "float32")
        yield _fit(Kernelized(learner, RBF(), KPCA(12)), "wine")
    for learner in (IdealizedKernel(C=100.0), ITML(max_iter=STEPS), MMC(max_iter=STEPS)):
        yield _fit(learner, "pairs of wine")
        yield _fit(Kernelized(learner, RBF(), KPCA(12)), "pairs of wine")
    yield _fit(TransductiveDistance(5, lam=100.0, random_state=0), "pairs of wine")
    yield _fit(MLKR(max_iter=STEPS), "diabetes")
    yield _fit(MLKR(2, reg=0.1, max_iter=STEPS), "diabetes", "float32")
    yield _fit(Kernelized(MLKR(2, max_iter=STEPS), RBF(), KPCA(12)), "diabetes")
    for space in spaces():
        for kernel in kernels():
            yield _fit(Kernelized(LFDA(2, shrinkage=0.1), kernel, space), "wine")
        yield _fit(Kernelized(NCA(2, max_iter=2), RBF(), space), "wine")
        yield _fit(Kernelized(LMNN(max_iter=2), RBF(), space), "wine")
        yield _fit(Kernelized(LDA(), RBF(), space), "sparse digits")
        yield _fit(Kernelized(LDA(), RBF(), space), "wine", "float32")
    for kernel in chosen_kernels():
        yield _fit(Kernelized(LFDA(2, shrinkage=0.1), kernel), "wine")
        yield _fit(Kernelized(LFDA(2, shrinkage=0.1), kernel), "moons")
    yield _fit(Kernelized(LMNN(max_iter=2), RBF(), neighbors="input"), "wine")
    yield _fit(Kernelized(KNeighborsClassifier(3), RBF(), KPCA(8)), "wine")
    for psd in ("solve", "clip", "none"):
        idealized = IdealizedKernel("rbf", C=100.0, nu=0.8, psd=psd)
        yield _fit(idealized, "little wine")
        yield _fit(idealized, "little wine", "float32")
    yield _fit(KernelizedCV(LDA(), WIDTHS, n_components=[2, 8], random_state=0), "wine")
    yield _fit(KernelizedCV(NCA(2, max_iter=2), [RBF(), Polynomial(2)], random_state=0), "wine")
    for penalty in ("laplacian", "normalized", "kernel", "warped"):
        yield _fit(
            TransductiveDistance(5, lam=100.0, penalty=penalty, random_state=0), "few labels"
        )
    yield _fit(TransductiveDistance(5, random_state=0), "few labels")
    yield _fit(TransductiveDistance(5, lam=10.0, cost="paper", random_state=0), "few labels")
    yield _fit(Kernelized(LMNN(max_iter=1), RBF(), KPCA()), "digits")
    # Enough work for several threads and for more than one block.
    many = (
        NCA(16, max_iter=3),
        NCA(init="identity", max_iter=3),
        LMNN(max_iter=3),
        MCML(16, max_iter=2),
        LPP(5),
        DNE(5),
        LFDA(5),
        Kernelized(LDA(), RBF(), KPCA(20, random_state=0)),
        Kernelized(NCA(10, init="identity", max_iter=2), RBF(), KPCA(50, random_state=0)),
        Kernelized(LDA(), RBF(), Nystroem(100, random_state=0)),
        Kernelized(LDA(), KernelAlignment(WIDTHS), KPCA(20, random_state=0)),
        TransductiveDistance(5, lam=100.0, random_state=0),
    )
    for estimator in many:
        yield _fit(estimator, "many digits")


def _fit(estimator: BaseEstimator, data: str, dtype: str = "float64") -> Fit:
    what = " ".join(repr(estimator).split())
    return Fit(f"{what} on {data}" + f", {dtype}" * (dtype == "float32"), estimator, data, dtype)


# --- what comes out -------------------------------------------------------------------------------


def outcome(fit: Fit, *, noise: int | None = None) -> Outcome:
    """What a fit gives for points that it never saw.

    Parameters
    ----------
    fit : Fit
        What is fitted.
    noise : int, default=None
        Seed of errors of one unit in the last place, at most, in every number of X.

    Returns
    -------
    dict
        Arrays by name, or the kind of the refusal.
    """
    X, y = points(fit.data)
    X = X.astype(fit.dtype)
    if noise is not None:
        signs = np.random.RandomState(noise).uniform(-1, 1, X.shape)
        X = (X * (1 + np.finfo(fit.dtype).eps * signs)).astype(fit.dtype)
    if fit.data.startswith("sparse"):
        X = sparse.csr_array(X)
    train, new = X[:-HELD_OUT], X[-HELD_OUT:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            metric = clone(fit.estimator).fit(train, **_supervision(fit.data, y[:-HELD_OUT]))
            found = {name: ask(metric, new, train[:60]) for name, ask in _asked(metric)}
        except (ValueError, TypeError, MemoryError) as error:
            return {"refused": np.array(type(error).__name__)}
    return found | dict(_numbers(metric))


def _supervision(data: str, y: np.ndarray) -> dict[str, np.ndarray]:
    if not data.startswith("pairs"):
        return {"y": y}
    rows = np.random.RandomState(0).permutation(len(y))[: len(y) // 2 * 2].reshape(-1, 2)
    alike = y[rows[:, 0]] == y[rows[:, 1]]
    return {"similar": rows[alike], "dissimilar": rows[~alike]}


def _asked(metric: Any) -> Iterator[tuple[str, Callable[[Any, Any, Any], Any]]]:
    if hasattr(metric, "transform"):
        yield "distances", lambda metric, new, old: metric.pairwise_distances(new, old)
        yield "kernels", lambda metric, new, old: metric.pairwise_kernels(new, old)
        yield "transform", lambda metric, new, old: metric.transform(new)
    elif hasattr(metric, "predict_proba"):
        yield "probabilities", lambda metric, new, old: metric.predict_proba(new)


def _numbers(metric: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Eigenvalues, steps, losses and chosen kernels of the metric and of its parts."""
    parts = {"": metric}
    parts |= {f"{name} ": getattr(metric, f"{name}_", None) for name in ("space", "learner")}
    for where, part in parts.items():
        for name in ("eigenvalues_", "n_iter_", "loss_", "alpha_", "lam_", "C_", "best_index_"):
            value = getattr(part, name, None)
            if value is not None:
                yield where + name, np.asarray(value)
    kernel = getattr(metric, "kernel_", None)
    if kernel is not None:
        yield "kernel", np.array(type(kernel).__name__)
        numbers = [v for _, v in sorted(kernel.get_params().items()) if _is_number(v)]
        yield "kernel numbers", np.concatenate([np.ravel(v).astype(float) for v in numbers] or [[]])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray) and np.asarray(value).dtype.kind in "bif"


def difference(found: Outcome, expected: Outcome) -> float:
    """The largest relative difference of two outcomes; infinity where their kinds differ.

    Parameters
    ----------
    found, expected : dict
        Arrays by name.

    Returns
    -------
    float
        Over all arrays, the largest difference over the largest entry.
    """
    if found.keys() != expected.keys():
        return np.inf
    return max(_relative(name, found[name], expected[name]) for name in expected)


def _relative(name: str, a: np.ndarray, b: np.ndarray) -> float:
    if a.dtype.kind not in "bif" or b.dtype.kind not in "bif":
        return 0.0 if np.array_equal(a, b) else np.inf
    a, b = (np.asarray(array, dtype=np.float64) for array in (a, b))
    if name == "transform":  # free to turn, and to change its sign
        a, b = cdist(a, a), cdist(b, b)
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    size = float(np.abs(b).max(initial=0.0))
    gap = float(np.abs(a - b).max(initial=0.0))
    return gap / size if size else gap


# --- commands -------------------------------------------------------------------------------------


def record(selected: Iterable[Fit]) -> dict[str, np.ndarray]:
    """Arrays of all fits, and how far rounding alone moves them."""
    kept = {}
    for fit in selected:
        start = time.perf_counter()
        plain = outcome(fit)
        moved = max(difference(outcome(fit, noise=seed), plain) for seed in range(2))
        kept |= {f"{fit.name}|{name}": array for name, array in plain.items()}
        kept[f"{fit.name}|rounding"] = np.array(moved)
        note = f"refused: {plain['refused']}" if "refused" in plain else ""
        print(f"{moved:9.1e}  {time.perf_counter() - start:6.2f} s  {fit.name}  {note}", flush=True)
    return kept


def compare(
    selected: Iterable[Fit],
    kept: dict[str, np.ndarray],
    tolerance: float | None = None,
    *,
    may_refuse: bool = False,
) -> list[str]:
    """Print a line for each fit; names of those that are too far from what was recorded."""
    far = []
    for fit in selected:
        expected = _of_fit(fit, kept)
        if not expected:
            print(f"{'new':>9}             {fit.name}", flush=True)
            continue
        rounding = float(expected.pop("rounding", 0.0))
        found = outcome(fit)
        if str(found.get("refused")) == "MemoryError" and may_refuse:
            print(f"{'refused':>9}             {fit.name}", flush=True)
            continue
        gap, note = difference(found, expected), ""
        limit = max(tolerance or TOLERANCE[fit.dtype], 10 * rounding)
        if not gap <= limit:
            far.append(fit.name)
            note = f"<- beyond {limit:.0e}, in {_farthest(found, expected)}"
        print(f"{gap:9.1e}  {rounding:9.1e}  {fit.name}  {note}", flush=True)
    return far


def _of_fit(fit: Fit, kept: dict[str, np.ndarray]) -> Outcome:
    start = f"{fit.name}|"
    return {key[len(start) :]: array for key, array in kept.items() if key.startswith(start)}


def _farthest(found: Outcome, expected: Outcome) -> str:
    both = [name for name in expected if name in found]
    return max(both, key=lambda name: _relative(name, found[name], expected[name]), default="kind")


@contextmanager
def setting(threads: int | None, budget: str) -> Iterator[None]:
    """So many threads of BLAS, and so much memory to work in."""
    with threadpool_limits(threads), memory_budget(budget):
        yield


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["record", "compare"])
    parser.add_argument("file", type=Path, nargs="?", help="an npz file")
    parser.add_argument("--only", default="", help="fits whose name contains this")
    parser.add_argument("--threads", default="1", help="of BLAS, a list with commas")
    parser.add_argument("--budget", default=BUDGET, help="working memory, a list with commas")
    parser.add_argument("--tolerance", type=float, default=None, help="instead of 1e-10 and 1e-4")
    options = parser.parse_args(arguments)
    selected = [fit for fit in fits() if options.only in fit.name]
    settings = [(int(t), b) for t in options.threads.split(",") for b in options.budget.split(",")]
    if options.command == "record":
        if options.file is None:
            parser.error("record needs a FILE.npz to write")
        with setting(*settings[0]):
            np.savez_compressed(options.file, **record(selected))
        return 0
    if options.file is None:
        print(f"recording with threads={settings[0][0]}, budget={settings[0][1]}")
        with setting(*settings[0]):
            kept = record(selected)
        settings = settings[1:]
    else:
        with np.load(options.file, allow_pickle=False) as file:
            kept = dict(file)
    far = []
    for threads, budget in settings:
        print(f"\nthreads={threads}, budget={budget}\n{'differs':>9}  {'rounding':>9}")
        with setting(threads, budget):
            far += compare(selected, kept, options.tolerance, may_refuse=budget != BUDGET)
    print(f"\n{len(far)} of {len(selected) * len(settings)} fits differ by more than they may")
    return int(bool(far))


if __name__ == "__main__":
    sys.exit(main())
