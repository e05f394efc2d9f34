"""The registry of dimensions: everything that can meet in one fit, and cases in which all do.

A new option of the library is one more value here. :func:`cases` draws a covering array of strength
two: for any two values of two dimensions there is a case that has both.
"""

import functools
import importlib.util
import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from kernelmetric import (
    DLA,
    DNE,
    ITML,
    KPCA,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    LSML,
    MCML,
    MLKR,
    MMC,
    NCA,
    RBF,
    RCA,
    RFM,
    SCML,
    SDML,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    MetricClassifier,
    MetricRegressor,
    Nystroem,
    Pairs,
    RandomFeatures,
    Triplets,
)
from kernelmetric.kernelized import _arguments
from kernelmetric.kernels import Columns, Delta, GlobalAlignment
from kernelmetric.learners import _margin, _nca
from kernelmetric.prediction import _base, _features
from kernelmetric.selection import RidgeKPCA, _leave_one_out, _ridge_kpca, _ridge_solution
from kernelmetric.spaces import _automatic, _kpca

N, D = 48, 4

LEARNERS = {
    "LMNN": LMNN(tol=1e-2),
    "LMCA": LMCA(2, tol=1e-2),
    "NCA": NCA(2, tol=1e-2),
    "NCA, shrunk": NCA(2, reg="shrink", tol=1e-2),
    "MCML": MCML(tol=1e-2),
    "MLKR": MLKR(2, tol=1e-2),
    "DNE": DNE(2),
    "DLA": DLA(2, beta=0.5),
    "LDA": LDA(),
    "LFDA": LFDA(2),
    "LPP": LPP(2),
    "RCA": RCA(),
    "RFM": RFM(max_iter=2),
    "ITML": ITML(tol=1e-3),
    "MMC": MMC(tol=1e-3),
    "SDML": SDML(),
    "IdealizedKernel": IdealizedKernel(C=10.0),
    "LSML": LSML(max_tuples=400),
    "SCML": SCML(n_basis=20),
    "scikit-learn's NCA": NeighborhoodComponentsAnalysis(2, max_iter=5, random_state=0),
    "scikit-learn's PCA": PCA(2),
}

RIDGES = ("ridge", "given ridge")  # spaces that know the labels
PACKAGES = ("dask", "torch")  # whose arrays are inputs, where they are installed

DIMENSIONS: dict[str, list[str]] = {
    "learner": list(LEARNERS),
    "kernel": [
        *("auto", "aligned", "rbf", "with a ridge", "linear", "poly"),
        *("gram", "columns", "objects"),
    ],
    "space": ["auto", "KPCA", "low rank", "landmarks", "random features", "trick", *RIDGES],
    "told": ["labels", "names", "numbers", "pairs", "row numbers", "triplets"],
    "weights": ["none", "ones", "whole", "fractions", "some zero", "classes"],
    "rows": ["plain", "copies", "constant", "offset", "rare class"],
    "size": ["exact", "single", "landmarks", "boundary", "sample"],
    "input": [
        *("float64", "float32", "sparse", "frame", "table", "columns first", "list", "series"),
        *(name for name in PACKAGES if importlib.util.find_spec(name)),
    ],
    "neighbors": ["feature", "input"],
    "folds": ["two", "auto"],
    "features": ["auto", "too"],
    "decision": ["accuracy", "balanced", "costs"],
    "limit": ["none", "ample"],
    "route": ["alone", "Kernelized", "search", "classifier", "regressor", "pipeline"],
}


# What can meet in one fit of an Adapter.
ADAPTED: dict[str, list[str]] = {
    "side": ["symmetric", "query", "both"],
    "geometry": ["cosine", "euclidean"],
    "n_components": ["all", "some"],
    "softmax": ["yes", "no"],
    "told": ["pairs", "labels", "triplets"],
    "weights": ["none", "fractions", "some zero"],
    "tables": ["two", "one"],
    "rows": ["plain", "copies", "offset", "constant"],
    "input": ["float64", "float32", "frame", "columns first", "list"],
    "limit": ["none", "ample"],
}

# What can meet where few labels spread to many points; and where few numbers do.
SPREAD: dict[str, list[str]] = {
    "method": ["auto", "diffusion", "eigenvectors"],
    "graph": ["auto", "neighbors", "gaussian", "given"],
    "told": ["labels", "names", "pairs"],
    "known": ["one", "few", "many"],
    "class_sizes": ["none", "equal", "given"],
    "weights": ["none", "fractions", "some zero"],
    "rows": ["plain", "copies", "offset", "constant", "two parts"],
    "input": ["float64", "float32", "sparse", "frame", "columns first", "list"],
    "prior": ["none", "function", "metric"],
    "later": ["nothing", "more labels"],
    "limit": ["none", "ample"],
    "lam": ["auto", "number", "infinite"],
    "n_neighbors": ["auto", "some"],
    "eigenproblem": ["usual", "normalized", "kernel", "warped", "cost", "n_votes"],
    "warm_start": ["no", "yes"],
}
SPREAD_NUMBERS: dict[str, list[str]] = {
    "graph": ["neighbors", "gaussian", "given"],
    "outputs": ["one", "two"],
    "known": ["two", "few", "many"],
    "rows": ["plain", "copies", "offset", "constant", "two parts"],
    "input": ["float64", "float32", "frame", "columns first", "list"],
    "limit": ["none", "ample"],
}


@dataclass(frozen=True)
class Case:
    """One value of every dimension; and whether only slow runs take it."""

    values: dict[str, str] = field(hash=False)
    is_slow: bool = False

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def __str__(self) -> str:
        return ", ".join(self.values.values())


@dataclass(frozen=True)
class Refusal:
    """Values that cannot be together, and what the library says then."""

    says: str
    of: tuple[str, ...]
    when: Callable[..., bool]

    def applies(self, values: dict[str, str]) -> bool:
        """Whether the values, some of which may still be open, are refused."""
        return all(name in values for name in self.of) and self.when(*(values[n] for n in self.of))


@functools.cache
def _takes(learner: str, argument: str) -> bool:
    return argument in inspect.signature(LEARNERS[learner].fit).parameters


NOT_ROWS = ("pairs", "row numbers", "triplets")  # y is None then
PREDICTS = ("search", "classifier", "regressor")
INSIDE = ("Kernelized", "pipeline", *PREDICTS)
HAS_NEIGHBORS = ("Kernelized", "pipeline", "classifier", "regressor")  # a parameter of that name
WEIGHTED = ("ones", "whole", "fractions", "some zero")
FREQUENCIES = ("rbf", "aligned")  # kernels with random features
TARGETS = ("MLKR", "RFM")  # learners from numbers
UNTOLD = ("scikit-learn's PCA",)  # learners that need no labels

REFUSALS = [
    Refusal(
        "unexpected keyword|learns from labels|requires y|does not learn from|Got neither y",
        ("learner", "told"),
        lambda learner, told: {
            "pairs": not _takes(learner, "pairs"),
            "row numbers": not _takes(learner, "dissimilar"),
            "triplets": not _takes(learner, "triplets"),
        }.get(told, False),
    ),
    Refusal(
        "unexpected keyword|requires y|is None|mean nothing in a fold",
        ("told", "route"),
        lambda told, route: told in NOT_ROWS and route in PREDICTS,
    ),
    Refusal(
        "expected one of them",
        ("learner", "told", "weights"),
        lambda learner, told, weights: (
            learner in ("LMNN", "LMCA", "IdealizedKernel")
            and told == "triplets"
            and weights in ("whole", "fractions", "some zero")
        ),
    ),
    Refusal(
        "takes none|unexpected keyword",
        ("learner", "weights"),
        lambda learner, weights: weights in WEIGHTED and not _takes(learner, "sample_weight"),
    ),
    Refusal(
        "label|classes",
        ("learner", "told"),
        lambda learner, told: told == "numbers" and learner not in (*TARGETS, *UNTOLD),
    ),
    Refusal(
        "classes|Unknown label type",
        ("learner", "told", "route"),
        lambda learner, told, route: told == "numbers" and learner in UNTOLD and route == "search",
    ),
    Refusal(
        "class_weight='balanced' with",
        ("learner", "told", "weights"),
        lambda learner, told, weights: (
            told in ("numbers", "triplets")
            and weights == "classes"
            and "class_weight" in LEARNERS[learner].get_params()
        ),
    ),
    Refusal(
        "numbers|convert string|[Cc]lass",
        ("learner", "told"),
        lambda learner, told: told == "names" and learner == "MLKR",
    ),
    Refusal(
        "labels|classes|class",
        ("told", "route"),
        lambda told, route: told == "numbers" and route == "classifier",
    ),
    Refusal(
        "numbers|string",
        ("told", "route"),
        lambda told, route: told == "names" and route == "regressor",
    ),
    Refusal(
        "class",
        ("told", "kernel", "route"),
        lambda told, kernel, route: told == "numbers" and kernel == "aligned" and route in INSIDE,
    ),
    Refusal(
        "requires y",
        ("told", "kernel", "route"),
        lambda told, kernel, route: told in NOT_ROWS and kernel == "aligned" and route in INSIDE,
    ),
    Refusal(
        "requires y",
        ("told", "space", "route"),
        lambda told, space, route: told in NOT_ROWS and space in RIDGES and route in INSIDE,
    ),
    Refusal(
        "RandomFeatures expected|fits failed",
        ("kernel", "space", "route"),
        lambda kernel, space, route: (
            space == "random features" and kernel not in FREQUENCIES and route in INSIDE
        ),
    ),
    Refusal(
        "cannot take the Gram matrix",
        ("learner", "space", "route"),
        lambda learner, space, route: (
            space == "trick" and not _takes(learner, "gram") and route in INSIDE
        ),
    ),
    Refusal(
        "leading coordinates can be taken",
        ("space", "route"),
        lambda space, route: space == "trick" and route == "search",
    ),
    Refusal(
        "weight of zero with a precomputed kernel|sample_weight of zero",
        ("kernel", "weights", "route"),
        lambda kernel, weights, route: (
            kernel == "gram" and weights == "some zero" and route in INSIDE
        ),
    ),
    Refusal(
        "looks for no neighbours",
        ("learner", "neighbors", "route"),
        lambda learner, neighbors, route: (
            neighbors == "input" and not _takes(learner, "neighbors") and route in HAS_NEIGHBORS
        ),
    ),
    Refusal(
        "no input space to look in",
        ("kernel", "neighbors", "route"),
        lambda kernel, neighbors, route: (
            neighbors == "input" and kernel == "gram" and route in HAS_NEIGHBORS
        ),
    ),
    Refusal(
        "neighbors.*expected one of them|Got triplets and neighbors",
        ("told", "neighbors", "route"),
        lambda told, neighbors, route: (
            neighbors == "input" and told == "triplets" and route in HAS_NEIGHBORS
        ),
    ),
    Refusal(
        "[Ss]parse",
        ("input", "route"),
        lambda input, route: input == "sparse" and route == "alone",
    ),
    Refusal(
        "[Ss]parse",
        ("input", "kernel", "route"),
        lambda input, kernel, route: input == "sparse" and kernel == "gram" and route in INSIDE,
    ),
    Refusal(
        "use_features=True with sparse points|[Ss]parse",
        ("input", "features", "route"),
        lambda input, features, route: (
            input == "sparse" and features == "too" and route in ("classifier", "regressor")
        ),
    ),
    Refusal(
        "expected a list of series|in row 0, but|frame of [45] columns",
        ("kernel", "input", "route"),
        lambda kernel, input, route: (
            kernel == "objects" and input in ("sparse", "frame", "table") and route in INSIDE
        ),
    ),
    Refusal(
        "use_features=True with sparse points, objects",
        ("kernel", "features", "route"),
        lambda kernel, features, route: (
            kernel == "objects" and features == "too" and route in ("classifier", "regressor")
        ),
    ),
    Refusal(
        "no input space to look in",
        ("kernel", "neighbors", "route"),
        lambda kernel, neighbors, route: (
            kernel == "objects" and neighbors == "input" and route in HAS_NEIGHBORS
        ),
    ),
    Refusal(
        "use_features=True with sparse points, objects or kernel values",
        ("kernel", "features", "route"),
        lambda kernel, features, route: (
            kernel == "gram" and features == "too" and route in ("classifier", "regressor")
        ),
    ),
    Refusal(
        "table|convert string|NaN|names",
        ("input", "route"),
        lambda input, route: input == "table" and route in ("alone", "search"),
    ),
    Refusal(
        "table|convert string|names|NaN",
        ("input", "kernel", "route"),
        lambda input, kernel, route: input == "table" and kernel == "gram" and route in INSIDE,
    ),
    Refusal(
        "Gram matrix of 48 points|Gram matrix of",
        ("kernel", "space", "size", "route"),
        lambda kernel, space, size, route: (
            kernel == "gram" and space in RIDGES and size != "exact" and route in INSIDE
        ),
    ),
    # --- where few labels spread ---
    Refusal(
        "method='diffusion' with",
        ("method", "told"),
        lambda method, told: method == "diffusion" and told == "pairs",
    ),
    Refusal(
        "eigenvectors know no sizes|method='diffusion' with",
        ("method", "class_sizes"),
        lambda method, class_sizes: method == "eigenvectors" and class_sizes != "none",
    ),
    Refusal(
        "eigenvectors know no sizes|method='diffusion' with",
        ("told", "class_sizes"),
        lambda told, class_sizes: told == "pairs" and class_sizes != "none",
    ),
    Refusal(
        "sparse X with settings|weight of zero beside|eigenvectors know|[Ss]parse data was passed",
        ("method", "input"),
        lambda method, input: method == "eigenvectors" and input == "sparse",
    ),
    Refusal(
        "sparse X with settings|eigenvectors know|method='diffusion'|[Ss]parse data was passed",
        ("told", "input", "class_sizes"),
        lambda told, input, class_sizes: told == "pairs" and input == "sparse",
    ),
    Refusal(
        "[Ss]parse data was passed",
        ("prior", "input"),
        lambda prior, input: prior == "metric" and input == "sparse",
    ),
    Refusal(
        "sample_weight of zero beside|sample_weight of zero|method='diffusion'|know no sizes",
        ("graph", "weights"),
        lambda graph, weights: graph == "given" and weights == "some zero",
    ),
    Refusal(
        "method='diffusion' with",
        ("method", "eigenproblem"),
        lambda method, eigenproblem: method == "diffusion" and eigenproblem != "usual",
    ),
    Refusal(
        "eigenvectors know no sizes|method='diffusion' with",
        ("method", "class_sizes", "lam", "eigenproblem"),
        lambda method, class_sizes, lam, eigenproblem: (
            method == "auto"
            and class_sizes != "none"
            and (lam != "auto" or eigenproblem != "usual")
        ),
    ),
    Refusal(
        "sparse X with settings|eigenvectors know|method='diffusion'|[Ss]parse data was passed",
        ("method", "input", "lam", "eigenproblem"),
        lambda method, input, lam, eigenproblem: (
            method == "auto" and input == "sparse" and (lam != "auto" or eigenproblem != "usual")
        ),
    ),
]


def refusals(values: dict[str, str]) -> list[Refusal]:
    """What stands against a case, whole or not."""
    return [refusal for refusal in REFUSALS if refusal.applies(values)]


def cases(dimensions: dict[str, list[str]] = DIMENSIONS, seed: int = 0) -> list[Case]:
    """A covering array of strength two, drawn greedily.

    Each case starts from a pair of values that no case has yet. Every other dimension, in random
    order, then takes the value that completes most pairs, of those that nothing stands against: a
    pair that is met only where a fit is refused has not been met. Pairs that are always refused
    are met in cases of their own.
    """
    rng = np.random.RandomState(seed)
    left = {
        frozenset([(a, u), (b, v)])
        for a, b in itertools.combinations(dimensions, 2)
        for u in dimensions[a]
        for v in dimensions[b]
    }
    found = []
    for pair in sorted(left, key=sorted):
        if pair not in left:
            continue
        start = dict(pair)
        tries = (_completed(start, dimensions, left, rng, allowed=True) for _ in range(20))
        case = next((case for case in tries if case is not None), None)
        if case is None:
            case = _completed(start, dimensions, left, rng, allowed=False)
            left -= {frozenset(start.items())}  # the others may be met where nothing is refused
        else:
            left -= {frozenset(pair) for pair in itertools.combinations(case.items(), 2)}
        found.append(Case({name: case[name] for name in dimensions}))
    return found


def _completed(
    start: dict[str, str], dimensions: dict, left: set, rng: Any, *, allowed: bool
) -> dict[str, str] | None:
    """A pair of values with one for every other dimension; None where nothing fits."""
    case = dict(start)
    order = rng.permutation([name for name in dimensions if name not in case])
    if allowed and refusals(case):
        return None
    for name in map(str, order):
        known = {*case, name}
        about = [r for r in REFUSALS if allowed and name in r.of and known.issuperset(r.of)]
        values = [
            value
            for value in dimensions[name]
            if not any(refusal.applies(case | {name: value}) for refusal in about)
        ]
        if not values:
            return None
        gains = [
            sum(frozenset([(name, value), other]) in left for other in case.items())
            for value in values
        ]
        best = np.flatnonzero(np.equal(gains, max(gains)))
        case[name] = values[int(rng.choice(best))]
    return case


def triples() -> list[Case]:
    """Cases in which three or four options meet that have to do with each other."""
    usual = {name: values[0] for name, values in DIMENSIONS.items()}
    usual |= {"learner": "LDA", "route": "Kernelized"}
    many = [
        {
            "kernel": "with a ridge",
            "learner": learner,
            "weights": weights,
            "size": size,
            "rows": rows,
        }
        for learner, weights, size, rows in itertools.product(
            ["LDA", "LMNN"],
            ["whole", "fractions", "some zero", "classes"],
            ["single", "landmarks", "boundary"],
            ["plain", "copies"],
        )
    ]
    repeated = [
        {"learner": learner, "kernel": kernel, "space": space, "weights": "whole"}
        for learner, kernel, space in itertools.product(
            ["LDA", "RCA"], ["rbf", "linear", "with a ridge"], ["KPCA", "low rank"]
        )
    ]
    tables = [
        {"learner": learner, "kernel": kernel, "input": "table"}
        for learner, kernel in itertools.product(["LDA", "LMNN"], ["auto", "rbf", "columns"])
    ]
    searches = [
        {"learner": learner, "kernel": kernel, "weights": weights, "route": "search"}
        for learner, kernel, weights in itertools.product(
            ["LDA", "NCA"], ["auto", "with a ridge", "rbf", "gram"], ["none", "some zero"]
        )
        if (kernel, weights) != ("gram", "some zero")
    ]
    predictions = [
        {"learner": learner, "told": told, "weights": "some zero", "route": route, "kernel": "rbf"}
        for learner, told, route in [
            ("LDA", "labels", "classifier"),
            ("LDA", "labels", "regressor"),
            ("MLKR", "numbers", "regressor"),
        ]
    ]
    left_out = [
        {"learner": learner, "told": told, "route": route, "size": size, "weights": weights}
        | {"folds": "auto"}
        for learner, told, route in [
            ("NCA", "labels", "classifier"),
            ("MLKR", "numbers", "regressor"),
        ]
        for size, weights in itertools.product(["single", "landmarks"], ["none", "some zero"])
    ]
    elsewhere = [
        {"learner": "LMNN", "kernel": "with a ridge", "size": size, "neighbors": "input"}
        for size in ("exact", "boundary")
    ]
    # Any two options meet among the cases of :func:`cases`: of these products every run takes half,
    # of the largest one a quarter, and slow runs the rest.
    halved = [
        Case(usual | own, is_slow)
        for share, product in ((4, many), (2, repeated), (2, searches), (2, left_out))
        for own, is_slow in zip(product, _left_to_slow_runs(product, share), strict=True)
    ]
    whole = [*tables, *predictions, *elsewhere]
    return [*halved, *(Case(usual | own) for own in whole)]


def _left_to_slow_runs(product: list[dict[str, str]], share: int) -> list[bool]:
    """All but one case of so many; by the sum of places every value is in one that is left."""
    places: dict[str, dict[str, int]] = {name: {} for name in product[0]}
    return [
        sum(places[name].setdefault(value, len(places[name])) for name, value in own.items())
        % share
        != 0
        for own in product
    ]


# --- the parts of a case --------------------------------------------------------------------------


def shrunk(monkeypatch: Any, size: str) -> None:
    """Let few points take the way of many; few trees do for all."""
    monkeypatch.setattr(_features, "_N_TREES", 8)
    if size == "exact":
        return
    monkeypatch.setattr(_nca, "_EARLY_FROM", 30)
    monkeypatch.setattr(_nca, "_COARSE", (30, 24, 1e-2))
    monkeypatch.setattr(_nca, "_PULLED_COARSE", (30, 24, 1e-2))
    monkeypatch.setattr(_margin, "_MANY_POINTS", 30)
    monkeypatch.setattr(_margin, "_SOME_POINTS", 24)
    monkeypatch.setattr(_margin, "FEW_POINTS", 10)
    monkeypatch.setattr(_automatic, "FULL_RANK_ROWS", 20)
    monkeypatch.setattr(_automatic, "LOW_RANK", 8)
    monkeypatch.setattr(_kpca, "_DENSE_ROWS", 10)
    monkeypatch.setattr(_ridge_solution, "_DENSE_ROWS", 10)
    monkeypatch.setattr(_ridge_kpca, "ALL_ROWS", 20)
    monkeypatch.setattr(_base, "FEW", 20)
    if size == "single":
        monkeypatch.setattr(_ridge_kpca, "DOUBLE_ROWS", 20)
        return
    monkeypatch.setattr(_ridge_kpca, "HELD_ROWS", 20)
    monkeypatch.setattr(_automatic, "LOW_RANK_ROWS", 20)
    monkeypatch.setattr(_automatic, "LANDMARKS", 16)
    if size == "sample":
        monkeypatch.setattr(_ridge_kpca, "ENOUGH_ROWS", 30)
        monkeypatch.setattr(_ridge_kpca, "_ROWS_OF_LANDMARKS", 20)
        monkeypatch.setattr(_leave_one_out, "MANY_ROWS", 30)
    if size == "boundary":
        monkeypatch.setattr(_ridge_kpca, "EASY_ROWS", (18, 10))
        for module in (_ridge_kpca, _ridge_solution, _arguments):
            monkeypatch.setattr(module, "LEAST_OF_CLASS", 5)
        monkeypatch.setattr(RidgeKPCA, "_easy", property(lambda self: self.rows != "all"))


def points(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the training rows, their classes, and numbers of new rows."""
    rng = np.random.RandomState(7)
    X, X_new = rng.standard_normal((N, D)), rng.standard_normal((9, D))
    codes = np.arange(N) % 3
    X[:, 0] += 1.5 * codes
    X[:, 1] -= codes == 1
    if case["rows"] == "copies":
        X[27:] = X[6:27]  # so many that chance cannot have made them, with the same classes
        X[1], codes[1], X[4], codes[4] = X[0], codes[0], X[3], (codes[3] + 1) % 3
    elif case["rows"] == "constant":
        X[:, 2] = X_new[:, 2] = 3.0
    elif case["rows"] == "offset":
        X, X_new = X + 1e2, X_new + 1e2
    elif case["rows"] == "rare class":
        codes = np.where(codes == 2, 0, codes)
        codes[:4] = 2
    if case["input"] == "sparse":
        X, X_new = (np.where(np.abs(A) < 0.5, 0.0, A) for A in (X, X_new))
    # values that float32 has, so that both precisions see the same points
    return X.astype(np.float32).astype(float), codes, X_new.astype(np.float32).astype(float)


def as_input(case: Case, X: np.ndarray, anchors: np.ndarray | None) -> Any:
    """Rows in the form of the case; of a precomputed kernel, kernel values with the anchors."""
    if anchors is not None:
        X = np.exp(-0.2 * np.square(X[:, None] - anchors[None]).sum(axis=2))
    kind = case["input"]
    if kind == "float32":
        return X.astype(np.float32)
    if kind == "sparse":
        return sparse.csr_array(X)
    if kind in ("frame", "table"):
        frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        if kind == "table":
            digits = np.floor(100 * np.abs(X)).astype(int)  # what a row holds, wherever it stands
            frame["name"] = np.array(["a", "b", "c"])[digits[:, 0] % 3]
            frame.loc[digits[:, 3] % 8 == 4, "name"] = "d"  # of which a part of the rows has none
            frame.loc[digits[:, 1] % 7 == 0, "c1"] = np.nan
        return frame
    if kind == "torch":
        return importlib.import_module("torch").from_numpy(X.copy())
    if kind == "dask":
        array = importlib.import_module("dask.array")
        return array.from_array(X, chunks=(max(1, len(X) // 2 - 3), X.shape[1]))
    if kind == "columns first":
        return np.asfortranarray(X)
    if kind == "series":
        return list(X)
    return X.tolist() if kind == "list" else X


def target(case: Case, codes: np.ndarray) -> Any:
    """The y of a case; None where it is told of rows in another way."""
    if case["told"] in ("pairs", "row numbers", "triplets"):
        return None
    if case["told"] == "names":
        return np.array(["low", "mid", "rare"])[codes]
    if case["told"] == "numbers":
        return codes + np.linspace(0.0, 0.9, len(codes))
    return codes


def weights(case: Case, n: int = N) -> np.ndarray | None:
    """The sample weights of a case."""
    rng = np.random.RandomState(5)
    return {
        "ones": np.ones(n),
        "whole": 1.0 + np.arange(n) % 3,
        "fractions": rng.uniform(0.3, 2.0, n),
        "some zero": np.where(np.arange(n) % 11 == 5, 0.0, 1.5),
    }.get(case["weights"])


def arguments(case: Case, codes: np.ndarray) -> dict[str, Any]:
    """What else a fit is given."""
    n = len(codes)
    rng = np.random.RandomState(3)
    given: dict[str, Any] = {}
    if case["told"] in ("pairs", "row numbers"):
        rows = np.array([rng.choice(n, 2, replace=False) for _ in range(60)])
        alike = codes[rows[:, 0]] == codes[rows[:, 1]]
        if case["told"] == "pairs":
            given["pairs"] = Pairs(rows[alike], rows[~alike], n)
        else:
            given |= {"similar": rows[alike], "dissimilar": rows[~alike]}
    elif case["told"] == "triplets":
        rows = np.array([rng.choice(n, 3, replace=False) for _ in range(200)])
        good = (codes[rows[:, 0]] == codes[rows[:, 1]]) & (codes[rows[:, 0]] != codes[rows[:, 2]])
        given["triplets"] = Triplets(rows[good], n)
    w = weights(case, n)
    return given if w is None else given | {"sample_weight": w}


def kernel(case: Case) -> Any:
    """The kernel parameter of a case."""
    return {
        "with a ridge": RBF(gamma=0.2) + 0.1 * Delta(),
        "gram": "precomputed",
        "columns": RBF(gamma=0.2) + Columns([0, 1]),
        "objects": GlobalAlignment(width=3.0, window=3, scale=False),
    }.get(case["kernel"], case["kernel"])


def space(case: Case) -> Any:
    """The space parameter of a case."""
    return {
        "KPCA": KPCA(),
        "low rank": KPCA(5),
        "landmarks": Nystroem(14, random_state=0),
        "random features": RandomFeatures(40, n_components=6, random_state=0),
        "trick": KernelTrick(),
        "ridge": RidgeKPCA(6),
        "given ridge": RidgeKPCA(ridge=0.3),
    }.get(case["space"], "auto")


def estimator(case: Case) -> Any:
    """The estimator of a case, and whether it is a metric that can be asked for distances."""
    learner = clone(LEARNERS[case["learner"]])
    if case["weights"] == "classes" and "class_weight" in learner.get_params():
        learner.set_params(class_weight="balanced")
    metric = Kernelized(learner, kernel(case), space(case), case["neighbors"], random_state=0)
    route, cv = case["route"], 2 if case["folds"] == "two" else "auto"
    features = True if case["features"] == "too" else "auto"
    if route == "alone":
        return learner
    if route == "search":
        return KernelizedCV(learner, [kernel(case)], 3, space=space(case), random_state=0)
    if route == "classifier":
        balanced = "balanced" if case["weights"] == "classes" else None
        costs = 1.0 + np.arange(9).reshape(3, 3) % 4 - np.diag([1, 1, 1])
        decision = costs if case["decision"] == "costs" else case["decision"]
        given = {"class_weight": balanced, "decision": decision}
        return MetricClassifier(metric, cv=cv, use_features=features, **given)
    if route == "regressor":
        return MetricRegressor(metric, cv=cv, use_features=features)
    return make_pipeline(FunctionTransformer(), metric) if route == "pipeline" else metric
