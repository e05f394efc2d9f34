"""The work that is timed: every case has contenders, every contender runs in its own process.

``python benchmarks/cases.py CASE CONTENDER`` runs one and prints a JSON object; ``run.py`` calls
it for all of them and writes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from five_percent import PRIORS, SOLVERS, few_labels
from kernelmetric import (
    DNE,
    KPCA,
    LMNN,
    NCA,
    RBF,
    KernelAlignment,
    Kernelized,
    KernelizedCV,
    Nystroem,
)
from kernelmetric.compute.reductions import nca_loss, nearest_neighbors
from kernelmetric.kernels import rbf_widths
from pairs import solved
from reproduction.datasets import load

Row = dict[str, Any]
CASES: dict[str, dict[str, Callable[..., Row]]] = {}


def contender(case: str, name: str) -> Callable:
    """Register a function as one contender of a case."""

    def register(function: Callable[..., Row]) -> Callable[..., Row]:
        CASES.setdefault(case, {})[name] = function
        return function

    return register


def best_time(function: Callable[[], Any], repeats: int = 7) -> tuple[float, Any]:
    result = function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def digits(scale: float = 16.0) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X / scale, y


def mnist(n: int | None, n_components: int | None = None) -> tuple[np.ndarray, ...]:
    """MNIST in float32 in [0, 1]: training points, their labels, test points, their labels."""
    X, y = load("mnist", return_X_y=True)
    X = X.astype(np.float32) / 255
    train = np.random.default_rng(0).permutation(60_000)[: n or 60_000]
    A, B = X[train], X[60_000:]
    if n_components is not None:
        pca = PCA(n_components, random_state=0, svd_solver="covariance_eigh").fit(A)
        A, B = pca.transform(A), pca.transform(B)
    return A, y[train], B, y[60_000:]


def error_1nn(E: np.ndarray, y: np.ndarray, F: np.ndarray, z: np.ndarray) -> float:
    found, _ = nearest_neighbors(E, 1, queries=F)
    return float(np.mean(y[found[:, 0]] != z))


def nca_value(L: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    order = np.argsort(y, kind="stable")
    return nca_loss(np.asarray(L, dtype=np.float64), X[order].astype(np.float64), y[order])[0]


# --- the softmax of NCA, once -----------------------------------------------------------------


@contender("nca-gradient", "scikit-learn")
def _sklearn_gradient(**_) -> Row:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    X, y = digits()
    nca = NeighborhoodComponentsAnalysis()
    same = y[:, None] == y[None, :]

    def evaluate():
        nca.n_iter_ = 1
        return nca._loss_grad_lbfgs(np.eye(64).ravel(), X, same, -1.0)

    seconds, (value, gradient) = best_time(evaluate)
    return {"seconds": seconds, "value": value, "norm": float(np.linalg.norm(gradient))}


@contender("nca-gradient", "kernelmetric")
def _our_gradient(**_) -> Row:
    X, y = digits()
    order = np.argsort(y, kind="stable")
    X, y = X[order].astype(np.float32), y[order]
    L = np.eye(64, dtype=np.float32)
    seconds, (value, gradient) = best_time(lambda: nca_loss(L, X, y))
    return {
        "seconds": seconds,
        "value": value,
        "norm": float(np.linalg.norm(gradient)),
        "floor": softmax_floor(*X.shape),
    }


def softmax_floor(n: int, r: int) -> float:
    """Seconds for the products and exponentials alone, at the rates of this machine.

    By symmetry: half of the n × n distances and exponentials, all of W [E, 1].
    """
    A = np.ones((1500, 1500), dtype=np.float32)
    product, _ = best_time(lambda: A @ A)
    E = np.full((64, 1800), -1.0, dtype=np.float32)
    out = np.empty_like(E)
    exponential, _ = best_time(lambda: np.exp(E, out=out))
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return 1.5 * n * n * (r + 1) * product / 1500**3 + 0.5 * n * n * exponential / E.size / threads


# --- NCA, fitted ------------------------------------------------------------------------------


class Stopwatch:
    """A callback of scikit-learn: the seconds after every iteration."""

    max_propagation_depth = None

    def __init__(self):
        self.seconds: list[float] = []
        self.started = time.perf_counter()

    def setup(self, estimator, context):
        """Begin."""

    def on_fit_task_begin(self, estimator, context, **_):
        """Nothing to do."""

    def on_fit_task_end(self, estimator, context, **_):
        """Read the clock."""
        if context.task_name == "iteration":
            self.seconds.append(time.perf_counter() - self.started)

    def teardown(self, estimator, context):
        """End."""


def _nca_splits(case: str):
    """Training points, labels, test points, labels, rank: five splits of the digits, or MNIST."""
    if case == "digits":
        X, y = digits()
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(y))
            a, b = order[:1347], order[1347:]
            yield X[a], y[a], X[b], y[b], None
    else:
        A, y, B, z = mnist(4000, 50)
        yield A.astype(np.float64), y, B.astype(np.float64), z, 20


def _nca_rows(case: str, fit: Callable[..., tuple[np.ndarray, float, int, Row]]) -> Row:
    """Times and errors added up over the splits; what each reached, and when, one by one."""
    row: Row = {"seconds": 0.0, "value": 0.0, "error": [], "iterations": 0, "values": []}
    for A, y, B, z, r in _nca_splits(case):
        if not row["values"]:  # what every process does once is not the learner's work
            fit(A[:200], y[:200], r)
        time.sleep(0.2)  # threads of BLAS that judged the last split spin for a while
        L, seconds, iterations, more = fit(A, y, r)
        value = nca_value(L, A, y)
        row["seconds"] += seconds
        row["value"] += value
        row["values"].append(value)
        row["iterations"] += iterations
        row["error"].append(error_1nn(A @ L.T, y, B @ L.T, z))
        for key, item in more.items():
            row.setdefault(key, []).append(item)
    row["error"] = float(np.mean(row["error"]))
    return row


def _sklearn_nca(A: np.ndarray, y: np.ndarray, r: int | None):
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    model = NeighborhoodComponentsAnalysis(r, random_state=0)
    seconds, _ = timed(lambda: model.fit(A, y))
    return model.components_, seconds, int(model.n_iter_), {}


def _our_nca(A: np.ndarray, y: np.ndarray, r: int | None):
    model, watch = NCA(r), Stopwatch()
    if hasattr(model, "set_callbacks"):
        model.set_callbacks(watch)
    seconds, _ = timed(lambda: model.fit(A, y))
    curve = list(zip(watch.seconds, model.loss_curve_, strict=False))
    return model.components_, seconds, model.n_iter_, {"curves": curve}


for _case in ("digits", "mnist-4000"):
    contender(f"nca-fit {_case}", "scikit-learn")(lambda _c=_case, **_: _nca_rows(_c, _sklearn_nca))
    contender(f"nca-fit {_case}", "kernelmetric")(lambda _c=_case, **_: _nca_rows(_c, _our_nca))


# --- LMNN -------------------------------------------------------------------------------------


def lmnn_value(L: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """The objective with k = 3, c = 1 and targets by Euclidean distance, at a given map."""
    from kernelmetric.compute.reductions import mine_impostors
    from kernelmetric.graphs import target_neighbors

    order = np.argsort(y, kind="stable")
    X, y = X[order].astype(np.float64), y[order]
    return mine_impostors(X @ L.T, target_neighbors(X, y, 3), y, 1.0)[0]


def _lmnn_digits(model: LMNN) -> Row:
    X, y = digits(1.0)
    A, z = X[:1347], y[:1347]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference may end at its limit of iterations
        seconds, _ = timed(lambda: model.fit(A, z))
    return {
        "seconds": seconds,
        "value": lmnn_value(model.components_, A, z),
        "error": error_1nn(model.transform(A), z, model.transform(X[1347:]), y[1347:]),
        "iterations": model.n_iter_,
    }


LMNN_CONTENDERS = {
    "kernelmetric": LMNN(),
    "kernelmetric, tol=0.2": LMNN(tol=0.2),  # to where metric-learn ends: equal objective
}
for _name, _model in LMNN_CONTENDERS.items():
    contender("lmnn-fit digits", _name)(lambda _m=_model, **_: _lmnn_digits(_m))


def _mnist_60000(model: Any, quick: bool) -> Row:
    A, y, B, z = mnist(6000 if quick else None, 50)
    before = error_1nn(A, y, B, z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fifty iterations are not meant to converge
        seconds, _ = timed(lambda: model.fit(A, y))
    return {
        "seconds": seconds,
        "value": model.loss_,
        "error": error_1nn(model.transform(A), y, model.transform(B), z),
        "euclidean": before,
        "iterations": model.n_iter_,
    }


MNIST_60000 = {
    ("lmnn-60000", "kernelmetric"): LMNN(tol=1e-2),
    ("nca-60000", "kernelmetric"): NCA(30, max_iter=50, tol=0),
    # The weight with the least error of 0, 1, 3, 10, 30 and 100 on 10,000 training points held out.
    ("nca-60000", "kernelmetric, reg=30"): NCA(30, max_iter=50, tol=0, reg=30.0),
    ("nca-60000", "kernelmetric, minibatch"): NCA(30, solver="minibatch", random_state=0),
}
for (_case, _name), _learner in MNIST_60000.items():
    contender(_case, _name)(lambda _m=_learner, quick=False, **_: _mnist_60000(_m, quick))


# --- kernel PCA -------------------------------------------------------------------------------


def _kpca_data(quick: bool) -> tuple[np.ndarray, float]:
    A, _, _, _ = mnist(2000 if quick else 8000)
    return A, RBF(gamma="median").bind(A).gamma


@contender("kpca-8000", "scikit-learn")
def _sklearn_kpca(quick: bool = False, **_) -> Row:
    from sklearn.decomposition import KernelPCA

    A, gamma = _kpca_data(quick)
    model = KernelPCA(100, kernel="rbf", gamma=gamma)
    seconds, _ = timed(lambda: model.fit(A))
    return {"seconds": seconds, "value": float(model.eigenvalues_.sum())}


@contender("kpca-8000", "kernelmetric")
def _our_kpca(quick: bool = False, **_) -> Row:
    A, gamma = _kpca_data(quick)
    model = KPCA(100, kernel=RBF(gamma=gamma), random_state=0)
    seconds, _ = timed(lambda: model.fit(A))
    return {
        "seconds": seconds,
        "value": float(model.eigenvalues_.sum()),
        "note": model.solver_,
    }


@contender("kpca-60000", "kernelmetric")
def _kpca_60000(quick: bool = False, **_) -> Row:
    from kernelmetric import memory_budget

    A, _, _, _ = mnist(6000 if quick else None)
    model = KPCA(100, random_state=0)
    with memory_budget("1GB"):
        seconds, _ = timed(lambda: model.fit(A))
    return {
        "seconds": seconds,
        "value": model.explained_variance_ratio_,
        "note": model.solver_,
    }


# --- neighbours -------------------------------------------------------------------------------


def _knn_data(quick: bool) -> np.ndarray:
    X, _ = load("mnist", return_X_y=True)
    return X[: 7000 if quick else None].astype(np.float32)


@contender("knn-70000", "scikit-learn")
def _sklearn_knn(quick: bool = False, **_) -> Row:
    from sklearn.neighbors import NearestNeighbors

    X = _knn_data(quick)
    model = NearestNeighbors(n_neighbors=20, algorithm="brute").fit(X)
    seconds, (distances, _) = timed(model.kneighbors)
    return {"seconds": seconds, "value": float(distances.mean())}


@contender("knn-70000", "kernelmetric")
def _our_knn(quick: bool = False, **_) -> Row:
    X = _knn_data(quick)
    seconds, (_, squared) = timed(lambda: nearest_neighbors(X, 20))
    return {"seconds": seconds, "value": float(np.sqrt(squared).mean())}


# --- few labels ---------------------------------------------------------------------------------


for _prior in PRIORS:
    for _solver in SOLVERS:
        contender(f"few-labels {_prior}", _solver)(
            lambda _p=_prior, _s=_solver, quick=False, **_: few_labels(_p, _s, quick)
        )


# --- memory of a kernelized fit ---------------------------------------------------------------


@contender("kernelized-20000", "kernelmetric")
def _kernelized_20000(quick: bool = False, **_) -> Row:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000 if quick else 20_000, 50)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 2] ** 2 > 1)
    model = Kernelized(NCA(max_iter=3), kernel="rbf", space=Nystroem(500, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: model.fit(X, y))
    return {"seconds": seconds, "value": model.learner_.loss_, "iterations": 3}


# --- points through a fitted kernel -------------------------------------------------------------


def _transformed(embed: Callable[[Kernelized, np.ndarray], np.ndarray]) -> Row:
    X, y = digits()
    metric = Kernelized(DNE(9), RBF(gamma=0.02), KPCA()).fit(X[:800], y[:800])
    Q = np.vstack([X, X])
    embed(metric, Q)
    wall, cpu = [], []
    for _ in range(7):
        starts = time.perf_counter(), time.process_time()
        E = embed(metric, Q)
        wall.append(time.perf_counter() - starts[0])
        cpu.append(time.process_time() - starts[1])
    spread = float(np.linalg.norm(E - E.mean(axis=0)))
    return {"seconds": min(wall), "value": spread, "note": f"{min(cpu):.3f} s of CPU"}


@contender("transform-800", "kernelmetric")
def _transform_800(**_) -> Row:
    return _transformed(lambda metric, X: metric.transform(X))


@contender("transform-800", "space, then learner")
def _transform_800_apart(**_) -> Row:
    return _transformed(lambda metric, X: metric.learner_.transform(metric.space_.transform(X)))


# --- kernels learned from data ------------------------------------------------------------------


@contender("alignment-20000", "kernelmetric")
def _alignment_20000(quick: bool = False, **_) -> Row:
    X = np.random.default_rng(0).normal(size=(2000 if quick else 20_000, 50)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    seconds, kernel = timed(lambda: KernelAlignment(centered=True).bind(X, y))
    return {"seconds": seconds, "value": kernel.alignment_}


RANKS = [5, 10, 20, 50, 100]


def _search_data(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = digits()
    order = np.random.default_rng(0).permutation(len(y))[: 150 if quick else 800]
    return X[order], y[order]


def _searched(search: Any, quick: bool) -> Row:
    X, y = _search_data(quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: search.fit(X, y))
    return {"seconds": seconds, "value": float(search.best_score_), "note": "value: best CV score"}


@contender("search", "scikit-learn")
def _sklearn_search(quick: bool = False, **_) -> Row:
    from sklearn.decomposition import KernelPCA
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
    from sklearn.pipeline import Pipeline

    d = _search_data(quick)[0].shape[1]
    pipeline = Pipeline(
        [
            ("kpca", KernelPCA(kernel="rbf")),
            ("nca", NeighborhoodComponentsAnalysis(random_state=0)),
            ("knn", KNeighborsClassifier(1)),
        ]
    )
    gammas = [1 / (2 * d * kernel.sigma**2) for kernel in rbf_widths()]
    grid = {"kpca__gamma": gammas, "kpca__n_components": RANKS}
    return _searched(GridSearchCV(pipeline, grid, cv=3, refit=False), quick)


@contender("search", "kernelmetric")
def _our_search(quick: bool = False, **_) -> Row:
    search = KernelizedCV(NCA(max_iter=50, tol=1e-3), n_components=RANKS, cv=3, refit=False)
    return _searched(search, quick)


# --- metrics from pairs -------------------------------------------------------------------------

# The Hessian of all pairs × all pairs is formed up to 4,000 pairs: 128 MB, and several of them.
PAIRS = {
    ("pairs-4000", "kernelmetric"): (4000, "first-order"),
    ("pairs-4000", "dense interior point"): (4000, "interior"),
    ("pairs-100000", "kernelmetric"): (100_000, "first-order"),
    ("pairs-1000000", "kernelmetric"): (1_000_000, "first-order"),
}
for (_case, _name), (_n, _solver) in PAIRS.items():
    contender(_case, _name)(
        lambda _m=_n, _s=_solver, quick=False, **_: solved(_m // 10 if quick else _m, _s)
    )


# --- growth -----------------------------------------------------------------------------------


def _growth(work: str, n: int) -> Row:
    A, y, _, _ = mnist(n, 50)
    if work == "nca step":
        order = np.argsort(y, kind="stable")
        A, y = A[order], y[order]
        L = np.eye(30, 50, dtype=np.float32)
        return {"seconds": timed(lambda: nca_loss(L, A, y))[0], "n": n}
    if work == "lmnn fit":
        return {"seconds": timed(lambda: LMNN(tol=1e-2).fit(A, y))[0], "n": n}
    if work == "knn":
        return {"seconds": timed(lambda: nearest_neighbors(A, 20))[0], "n": n}
    return {"seconds": timed(lambda: KPCA(50, random_state=0).fit(A))[0], "n": n}


SIZES = (1000, 2000, 4000, 8000, 16_000, 32_000, 60_000)
for _work in ("nca step", "lmnn fit", "knn", "kpca fit"):
    # The last sizes of these two are cases of their own: lmnn-60000 and kpca-60000.
    for _n in SIZES[:-1] if _work in ("lmnn fit", "kpca fit") else SIZES:
        contender(f"growth {_work}", str(_n))(lambda _w=_work, _m=_n, **_: _growth(_w, _m))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("contender")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    row = CASES[arguments.case][arguments.contender](quick=arguments.quick)
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(row))


if __name__ == "__main__":
    main()
