"""What the fuzzer draws: an estimator, its parameters and its data, typical ones and absurd ones.

A case is all of its two numbers: ``draw(seed, number)`` gives the same one in every process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kernelmetric import (
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    MetricRegressor,
    Pairs,
    PairVerifier,
    TransductiveDistance,
    Triplets,
    kernels,
    selection,
    spaces,
    transductive,
)
from kernelmetric.learners import LDA, LEARNERS, NCA


@dataclass
class Case:
    """One thing to try.

    Attributes
    ----------
    estimator : object
        Not fitted.
    X, y : object
        What it is fitted to.
    new : object
        Points for its answers.
    options : dict
        What else ``fit`` is given.
    about : str
        What the data are, in words.
    foreign : bool
        Whether a part of the estimator is scikit-learn's own, whose errors are not ours.
    """

    estimator: Any
    X: Any
    y: Any
    new: Any
    options: dict[str, Any] = field(default_factory=dict)
    about: str = ""
    foreign: bool = False

    def __str__(self) -> str:
        try:
            said = " ".join(repr(self.estimator).split())
        except Exception as error:
            said = f"{type(self.estimator).__name__}, whose repr raises {error!r}"
        options = {name: _short(value) for name, value in self.options.items()}
        return f"{said[:600]} on {self.about}; y={_short(self.y)} {options or ''}"


class Draw:
    """The choices of one case; of a tame one, hardly anything is strange.

    Attributes
    ----------
    rng : Generator
        All randomness there is.
    tame : bool
        Whether nothing strange is drawn.
    absurd : float
        The share of parameters that make no sense.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.tame = bool(rng.random() < 0.4)
        self.absurd = 0.0 if self.tame else self.one([0.0, 0.04, 0.1])

    def one(self, things: Any) -> Any:
        """One of some things; a function among them is called with this object only if asked."""
        return things[int(self.rng.integers(len(things)))]

    def happens(self, chance: float) -> bool:
        """Whether something of this chance comes about."""
        return bool(self.rng.random() < chance)

    def odd(self, chance: float) -> bool:
        """Whether something strange comes about."""
        return self.happens(chance) and not self.tame

    def of(self, kind: type, **given: Any) -> Any:
        """An object of a class: typical parameters, and where the dice say so absurd ones."""
        for name, parameter in inspect.signature(kind).parameters.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if self.happens(self.absurd):
                given[name] = _absurd_jobs(self) if name == "n_jobs" else absurd(self)
            elif name in given:
                continue
            elif name in ALWAYS or self.happens(0.35):
                choices = TYPICAL.get(f"{kind.__name__}.{name}", TYPICAL.get(name))
                if choices is not None:
                    given[name] = self.one(choices)
        return kind(**given)


# Short fits: these are set in every case.
ALWAYS = ("C", "max_iter", "max_pairs", "max_tuples", "batch_size", "n_landmarks", "max_samples")
TYPICAL: dict[str, list[Any]] = {
    "n_components": [None, 1, 1, 2],
    "KPCA.n_components": [None, 1, 3, 0.9],
    "Nystroem.n_components": [None, 1, 3, 0.9],
    "KernelizedCV.n_components": [None, 1, [1, 2], [None, 2]],
    "TransductiveDistance.n_components": [None, 1, 2],
    "n_neighbors": [1, 2, 3],
    "TransductiveDistance.n_neighbors": ["auto", 1, 3],
    "n_others": [1, 3],
    "beta": [0.01, 1.0, 2.0],
    "reg": [0.0, 0.1],
    "NCA.reg": [0.0, 0.1, "spread"],
    "class_weight": [None, "balanced", "balanced", {0: 1.0, 1: 2.0}, {}],
    "gamma": [0.1, 1.0, 10.0],
    "Polynomial.gamma": [None, 0.5, "scale"],
    "RBF.gamma": [None, 0.5, "median"],
    "Laplacian.gamma": [None, 0.5, "median"],
    "sigma": [None],
    "degree": [1, 2, 3],
    "coef0": [0.0, 1.0],
    "width": [None, 1.0],
    "prior": [None],
    "bounds": [None, (0.5, 2.0)],
    "percentiles": [(5, 95), (20, 80)],
    "NCA.solver": ["lbfgs", "minibatch"],
    "KPCA.solver": ["auto", "dense", "randomized"],
    "max_pairs": [5, 50],
    "max_tuples": [5, 50],
    "tol": [1e-3, 1e-5],
    "max_iter": [1, 3, 8],
    "warm_start": [False, True],
    "random_state": [0, None],
    "C": [1.0, 10.0, 100.0],  # the choice of C takes seconds
    "C_similar": [None, 1.0],
    "C_dissimilar": [None, 1.0],
    "nu": [0.2, 0.8],
    "psd": ["solve", "clip", "none"],
    "radius": ["median", None, 1.0],
    "shrinkage": ["auto", 0.0, 0.1, 1.0],
    "c": [0.5, 1.0],
    "init": ["auto", "identity", "pca", "lda", "random"],
    "batch_size": [3, 10],
    "early_stopping": ["auto", True, False],
    "regression": ["laplace", "rbf"],
    "diagonal": [False, True],
    "max_samples": [8, 30],
    "n_basis": [None, 5],
    "basis": [None],
    "balance": [0.5],
    "sparsity": [0.1, 0.5],
    "singular": ["range", "ridge", "raw"],
    "ridge": [1e-6, 1e-2],
    "landmarks": ["auto", "kmeans", "uniform", "rpcholesky"],
    "n_landmarks": [3, 10, 40],
    "n_features": [1, 10, 50],
    "neighbors": ["feature", "input"],
    "lam": ["auto", 0.1, 1.0, np.inf],
    "penalty": ["laplacian", "normalized", "kernel", "warped"],
    "graph": ["auto", "neighbors", "gaussian"],
    "cost": ["robust", "paper"],
    "n_votes": [1, 3],
    "criterion": ["accuracy", "f_beta", "max_tpr", "max_tnr"],
    "min_rate": [0.5, 0.95],
    "calibration": ["logistic", "isotonic"],
    "target": ["classes", "same", "regression"],
    "centered": [False, True],
    "groups": [None],
    "cv": [2, 3],
    "refit": [True, False],
    "error_score": [np.nan, "raise", 0.0],
    "scoring": [None, "accuracy", "r2", "f1_macro"],
    "index": [None],
}


def draw(seed: int, number: int) -> Case:
    """The case of this number."""
    draw = Draw(np.random.default_rng([seed, number]))
    kind, chances = zip(*FAMILIES.items(), strict=True)
    return kind[draw.rng.choice(len(kind), p=chances)](draw)


# --- values ---------------------------------------------------------------------------------------


def absurd(draw: Draw) -> Any:
    """A value that hardly any parameter expects, made anew."""
    return draw.one(ABSURD)()


def _absurd_jobs(draw: Draw) -> Any:
    return draw.one([0, np.nan, "x", None, 1, 10**30, 1.5])  # none that starts processes


def _value(value: Any) -> Callable[[], Any]:
    return lambda: value


ABSURD: list[Callable[[], Any]] = [
    *map(_value, (0, -1, 1, 2, 1.5, 0.5, 10**9, 10**30, 10**400, -(10**30), 2**63, 2**31)),
    *map(_value, (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, 5e-324, -0.0, 1e19)),
    *map(_value, ("x", "auto", "", b"x", "nan", "1", None, True, False, 1j, Ellipsis)),
    *map(_value, (np.float32(np.nan), np.int8(-1), np.bool_(True), np.float64(2.0), np.uint8(3))),
    *(list, dict, set, tuple, object, lambda: len, lambda: int, lambda: NCA, lambda: range(3)),
    *(lambda: [3], lambda: ["x"], lambda: [None], lambda: [np.nan], lambda: {"a": 1}),
    *(lambda: (1, 2), lambda: (2, 1), lambda: (np.nan, 1), lambda: {0: -1.0}, lambda: {0: np.nan}),
    *(lambda: np.zeros(3), lambda: np.array(2), lambda: np.zeros((2, 2)), lambda: np.zeros(0)),
    *(lambda: np.full((3, 3), 1e308), lambda: np.full((2, 3), np.nan), lambda: np.eye(4)),
    *(lambda: np.eye(3) * 1e-300, lambda: -np.eye(2), lambda: np.array(["a", "b"])),
    *(lambda: np.zeros((2, 2, 2)), lambda: sparse.eye_array(3).tocsr(), NCA, kernels.RBF),
    *(lambda: iter([1, 2]), lambda: np.random.RandomState(0), lambda: np.random.default_rng(0)),
    *(lambda: pd.Series([1, 2, 3]), lambda: np.ma.masked_array([1, 2], [0, 1]), spaces.KPCA),
]


def _short(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"{type(value).__name__}{value.shape}{getattr(value, 'dtype', '')}"
    if isinstance(value, list | tuple) and len(value) > 6:
        return f"{type(value).__name__} of {len(value)}"
    return repr(value)[:120]


# --- data -----------------------------------------------------------------------------------------


def points(draw: Draw) -> tuple[Any, Any, np.ndarray, str]:
    """Rows to learn from, further rows, class numbers and words for all this."""
    rng = draw.rng
    few = draw.odd(0.12)
    n = int(rng.integers(1, 6)) if few else int(rng.integers(6, 41 if draw.happens(0.8) else 61))
    d = int(rng.integers(1, 5 if draw.happens(0.7) else 9))
    codes = rng.integers(0, draw.one([2, 3, 4, 1, 60] if draw.odd(0.5) else [2, 3]), size=n)
    whole = rng.standard_normal((n + 5, d))
    whole[:n, 0] += 2 * codes
    about = f"{n} x {d}"
    if draw.odd(0.6):
        change = draw.one(CHANGES)
        whole, said = change(draw, whole, n)
        about += f", {said}"
    X, new = whole[:n], whole[n:]
    if isinstance(X, pd.DataFrame):
        new = new.reset_index(drop=True)
    if (
        isinstance(whole, np.ndarray)
        and whole.ndim == 2
        and whole.dtype in (np.float64, np.float32, np.int64)
        and draw.odd(0.2)
    ):
        X, new, said = draw.one(CONTAINERS)(X, new)
        about += f", {said}"
    return X, new, codes, about


def _scaled(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    exponent = draw.one([-300, -200, -160, -150, -100, -40, -15, 15, 40, 100, 150, 155, 200, 300])
    columns = draw.happens(0.5)
    scale = np.ones(X.shape[1])
    scale[: 1 if columns else None] = 10.0**exponent
    return X * scale, f"{'a column' if columns else 'all'} times 1e{exponent}"


def _moved(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    offset = draw.one([1e3, 1e6, 1e8, 1e12, 1e16, -1e100, 1e300])
    return X + offset, f"offset {offset:g}"


def _copies(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    return X[draw.rng.integers(0, draw.one([1, 2, 3]), size=len(X))], "copies of few rows"


def _constant(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    X[:, : draw.one([1, X.shape[1]])] = draw.one([0.0, 0.1, 1e9])
    return X, "constant columns"


def _sentinel(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    value = draw.one([9999.0, -1e9, 1e30, 1e155, 1e308, 5e-324])
    X[draw.rng.integers(n), 0] = value
    return X, f"one cell {value:g}"


def _not_finite(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    value = draw.one([np.nan, np.inf, -np.inf])
    X[draw.rng.integers(n), 0] = value
    return X, f"one cell {value}"


def _gone(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    return (X[:, :0], "no columns") if draw.happens(0.5) else (X[n:], "no rows but those to come")


def _typed(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    kind = draw.one(["float32", "float16", "int64", "uint8", "bool", "complex128", "object"])
    with np.errstate(invalid="ignore"):
        return (10 * X).astype(kind), kind


def _whole(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    return np.round(X), "whole numbers"


def _text(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    return np.array([[f"{cell:.0f}" for cell in row] for row in X]), "text"


def _collinear(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    return X[:, :1] @ np.ones((1, X.shape[1])), "collinear columns"


def _shape(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    return draw.one([(X[:, 0], "one dimension"), (X[:, :, None], "three dimensions")])


def _frame(draw: Draw, X: np.ndarray, n: int) -> tuple[Any, str]:
    frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})
    for _ in range(draw.one([1, 1, 2])):
        kind = draw.one(list(COLUMNS))
        frame[kind] = COLUMNS[kind](draw.rng, len(frame))
    return frame, f"a frame with {', '.join(map(str, frame.columns[X.shape[1] :]))}"


def _texts(rng: np.random.Generator, n: int) -> Any:
    return rng.choice(["red", "green", "blue", "", "ä"], size=n)


COLUMNS: dict[Any, Callable[[np.random.Generator, int], Any]] = {
    "colour": _texts,
    "text": lambda rng, n: [f"word{i} {i * i}" for i in rng.integers(0, 99, size=n)],
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.random(n)),
    "nothing": lambda rng, n: [None] * n,
    "day": lambda rng, n: pd.to_datetime(rng.integers(0, 10**9, size=n), unit="s"),
    "while": lambda rng, n: pd.to_timedelta(rng.integers(0, 10**6, size=n), unit="s"),
    "category": lambda rng, n: pd.Categorical(_texts(rng, n)),
    "yes": lambda rng, n: rng.random(n) < 0.5,
    "mixed": lambda rng, n: [*[1, "a", None, 2.5, True] * n][:n],
    "big": lambda rng, n: [10 ** int(e) for e in rng.choice([2, 30, 400], size=n)],
    "Int64": lambda rng, n: pd.array([None, *range(n - 1)], dtype="Int64"),
    "lists": lambda rng, n: [[1, 2]] * n,
    7: lambda rng, n: rng.random(n),
}
CHANGES = [
    *(_scaled, _scaled, _moved, _copies, _constant, _sentinel, _not_finite, _gone, _typed),
    *(_whole, _text, _collinear, _shape, _frame, _frame),
]
CONTAINERS: list[Callable[[Any, Any], tuple[Any, Any, str]]] = [
    lambda X, new: (X.tolist(), new.tolist(), "lists"),
    lambda X, new: (sparse.csr_array(X), sparse.csr_array(new), "sparse"),
    lambda X, new: (sparse.csc_matrix(X), sparse.csr_matrix(new), "sparse, by columns"),
    lambda X, new: (pd.DataFrame(X), pd.DataFrame(new), "a frame"),
    lambda X, new: (np.asfortranarray(X), new[::-1], "Fortran order"),
    lambda X, new: (np.ma.masked_array(X), new, "a masked array"),
    lambda X, new: (X[:, ::-1], new[:, ::-1], "a view"),
]


def labels(draw: Draw, codes: np.ndarray) -> Any:
    """Labels of classes, mostly as they should be."""
    return draw.one(LABELS if draw.odd(0.3) else LABELS[:4])(draw, codes)


def targets(draw: Draw, codes: np.ndarray) -> Any:
    """Targets of regression, mostly as they should be."""
    return draw.one(TARGETS if draw.odd(0.4) else TARGETS[:2])(draw, codes)


def _with(codes: Any, place: int, value: Any, dtype: Any = None) -> np.ndarray:
    changed = np.array(codes, dtype=dtype)
    changed[place : place + 1] = value
    return changed


LABELS: list[Callable[[Draw, np.ndarray], Any]] = [
    lambda draw, codes: codes,
    lambda draw, codes: np.array(list("abcdefgh"))[codes % 8],
    lambda draw, codes: codes > 0,
    lambda draw, codes: codes.tolist(),
    lambda draw, codes: np.array(list("abcdefgh"), dtype=object)[codes % 8],
    lambda draw, codes: codes.astype(float),
    lambda draw, codes: codes - 1,
    lambda draw, codes: np.zeros(len(codes)),
    lambda draw, codes: np.arange(len(codes)),
    lambda draw, codes: pd.Series(codes, index=codes),
    lambda draw, codes: pd.Series(pd.Categorical(codes)),
    lambda draw, codes: _with(codes, 0, np.nan, float),
    lambda draw, codes: _with(codes, 0, np.inf, float),
    lambda draw, codes: _with(codes, 0, None, object),
    lambda draw, codes: _with(codes, 0, "a", object),
    lambda draw, codes: np.where(draw.rng.random(len(codes)) < 0.5, -1, codes),
    lambda draw, codes: codes[:-1],
    lambda draw, codes: codes[:, None],
    lambda draw, codes: np.c_[codes, codes],
    lambda draw, codes: codes + 0.5,
    lambda draw, codes: codes * 2**62,
    lambda draw, codes: codes.astype("datetime64[D]"),
    lambda draw, codes: codes + 1j,
    lambda draw, codes: [[code] for code in codes],
    lambda draw, codes: None,
    lambda draw, codes: 3,
    lambda draw, codes: "labels",
]
TARGETS: list[Callable[[Draw, np.ndarray], Any]] = [
    lambda draw, codes: codes + draw.rng.standard_normal(len(codes)),
    lambda draw, codes: draw.rng.standard_normal((len(codes), 2)),
    lambda draw, codes: codes,
    lambda draw, codes: np.full(len(codes), 3.5),
    lambda draw, codes: 1e300 * draw.rng.standard_normal(len(codes)),
    lambda draw, codes: 1e-300 * draw.rng.standard_normal(len(codes)),
    lambda draw, codes: 1e9 + draw.rng.standard_normal(len(codes)).astype(np.float32),
    lambda draw, codes: np.array(list("abcdefgh"))[codes % 8],
    lambda draw, codes: np.array(list("abcdefgh"), dtype=object)[codes % 8],
    lambda draw, codes: [f"{code}" for code in codes],
    lambda draw, codes: (codes + 0.5).astype(object),
    lambda draw, codes: _with(codes, 0, "a", object),
    lambda draw, codes: _with(codes, 0, np.nan, float),
    lambda draw, codes: _with(codes, 0, 1e308, float),
    lambda draw, codes: codes > 0,
    lambda draw, codes: codes.astype("datetime64[D]"),
    lambda draw, codes: codes + 0.5j,
    lambda draw, codes: (codes + 0.5).tolist(),
    lambda draw, codes: pd.Series(codes + 0.5),
    lambda draw, codes: codes[:-1] + 0.5,
    lambda draw, codes: np.zeros((len(codes), 0)),
    lambda draw, codes: None,
]


def weights(draw: Draw, n: int) -> Any:
    """Weights of rows: good ones, strange ones and bad ones."""
    rng = draw.rng
    some = rng.random(n)
    good = [some, rng.integers(0, 3, size=n), rng.integers(1, 4, size=n)]
    if not draw.odd(0.6):
        return draw.one([*good, np.where(some < 0.3, 0.0, some)])
    return draw.one(
        [
            np.zeros(n),
            some * 1e-300,
            some * 1e300,
            _with(some, 0, 1e308),
            _with(some, 0, 1e-308),
            _with(some, 0, -1.0),
            _with(some, 0, np.nan),
            _with(some, 0, np.inf),
            some > 0.5,
            some.astype(np.float32),
            some.tolist(),
            pd.Series(some),
            some[:-1],
            some[:, None],
            np.array(["a"] * n),
            np.eye(1, n)[0],
            1.0,
            "balanced",
            rng.integers(0, 3, size=n) * 10**15,
        ]
    )


def tuples(draw: Draw, n: int, size: int) -> Any:
    """Row numbers of tuples of points, mostly of different ones."""
    count = draw.one([1, 5, 20])
    rows = np.array([draw.rng.permutation(max(n, size))[:size] for _ in range(count)]) % max(n, 1)
    if not draw.odd(0.4):
        return rows
    bad = draw.one([-1, n, 10**12, 0])
    return draw.one(
        [
            rows.tolist(),
            rows.astype(float),
            rows + 0.5,
            rows[:0],
            rows[:, :1],
            np.where(rows == rows[0, 0], bad, rows),
            [],
            rows[0],
            "rows",
            rows > 0,
            rows.astype(object),
            np.r_[rows, rows],
        ]
    )


def _len(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


# --- estimators -----------------------------------------------------------------------------------


def supervision(draw: Draw, learner: Any, codes: np.ndarray, n: int) -> tuple[Any, dict[str, Any]]:
    """What a learner learns from: y, and what else its fit takes."""
    known = inspect.signature(learner.fit).parameters
    need = getattr(learner, "learns_from", "labels")
    options: dict[str, Any] = {}
    y = targets(draw, codes) if need == "targets" else labels(draw, codes)
    if type(learner).__name__ == "RFM" and draw.happens(0.4):
        y = targets(draw, codes)
    other = draw.happens(0.5)
    if need == "pairs" and other:
        y = None if draw.happens(0.8) else y
        if draw.happens(0.3) and len(np.unique(codes)) > 1:
            options["pairs"] = Pairs.from_labels(codes)
        elif draw.happens(0.8) or "triplets" not in known:
            options["similar"] = tuples(draw, n, 2)
            if draw.happens(0.8):
                options["dissimilar"] = tuples(draw, n, 2)
        else:
            options["triplets"] = tuples(draw, n, 3)
    elif (need == "comparisons" or "triplets" in known) and (other and draw.happens(0.6)):
        y = None if draw.happens(0.8) else y
        if draw.happens(0.5):
            options["triplets"] = tuples(draw, n, 3)
        else:
            options["quadruplets"] = tuples(draw, n, 4)
    elif need == "chunks" and other:
        y = None
        options["chunks"] = draw.one([codes, codes - 1, np.arange(n) // 2, labels(draw, codes)])
    elif need == "points" and other:
        y = None
    elif draw.odd(0.04):
        y = draw.one([Triplets([[0, 1, 2]], 4), Pairs([[0, 1]], n_samples=4), absurd(draw)])
    if "neighbors" in known and draw.odd(0.08):
        options["neighbors"] = draw.one(
            [np.random.default_rng(0).random((n, 2)), np.zeros((n, 1), int), absurd(draw)]
        )
    if draw.happens(0.2) and "sample_weight" in known:
        options["sample_weight"] = weights(draw, n)
    return y, options


def learner_case(draw: Draw) -> Case:
    """A learner by itself."""
    X, new, codes, about = points(draw)
    learner = draw.of(draw.one(LEARNERS))
    if hasattr(learner, "C") and draw.happens(0.15):
        learner.C = "auto"
    y, options = supervision(draw, learner, codes, _len(X))
    return Case(learner, X, y, new, options, about)


def plain_learner(draw: Draw, *kinds: type) -> Any:
    """A learner to put into something else."""
    if not kinds and draw.odd(0.12):
        return draw.one([PCA(1), StandardScaler(), KNeighborsClassifier(1), Ridge(), absurd(draw)])
    return draw.of(draw.one(kinds or LEARNERS))


def linear(A: Any, B: Any) -> Any:
    """A kernel that is a function."""
    return np.asarray(A) @ np.asarray(B).T


def kernel(draw: Draw, depth: int = 0) -> Any:
    """A kernel: a word, an object, a function."""
    if draw.happens(0.3):
        return draw.one(
            [
                *("auto", "aligned", "rbf", "poly", "linear", "laplacian", "cosine", "sigmoid"),
                *("auto", "rbf", "linear", "chi2", linear, kernels.RBF),
                lambda A, B: np.zeros((len(A), len(B))),
            ]
        )
    some = [kernels.RBF, kernels.Laplacian, kernels.Polynomial, kernels.Linear, kernels.Cosine]
    some += [kernels.Delta, kernels.Tanimoto]
    if depth or draw.happens(0.6):
        return draw.of(draw.one(some))
    inner = [kernel(draw, 1) if draw.happens(0.7) else kernels.RBF() for _ in range(2)]
    kind = draw.one(
        [
            *(kernels.Sum, kernels.Product, kernels.Rescaled, kernels.Columns),
            *(kernels.PairwiseKernel, kernels.FunctionKernel, selection.AlignedSum),
            *(selection.AlignedScales, selection.KernelAlignment, selection.LeaveOneOutRidge),
        ]
    )
    given: dict[Any, dict[str, Any]] = {
        kernels.Sum: {"kernels": inner},
        kernels.Product: {"kernels": inner},
        kernels.Rescaled: {"kernel": inner[0], "scales": draw.one([[1.0], [2.0, 0.5], None])},
        kernels.Columns: {"columns": draw.one([[0], ["x0"], [0, 1], None]), "kernel": inner[0]},
        kernels.PairwiseKernel: {"metric": draw.one(["rbf", "chi2", "x"])},
        kernels.FunctionKernel: {"function": linear},
        selection.AlignedSum: {"kernels": inner},
        selection.AlignedScales: {"kernel": draw.one([None, inner[0]])},
        selection.KernelAlignment: {"kernels": draw.one([None, "rbf", inner])},
        selection.LeaveOneOutRidge: {},
    }
    return draw.of(kind, **given[kind])


def space(draw: Draw) -> Any:
    """A space without a kernel."""
    if draw.happens(0.3):
        return draw.one(["auto", "auto", "auto", absurd(draw)])
    kind = draw.one(
        [
            *(spaces.KPCA, spaces.KernelTrick, spaces.Nystroem, spaces.RandomFeatures),
            *(spaces.PairKPCA, selection.RidgeKPCA),
        ]
    )
    given = {"kernel": None}
    if kind is spaces.RandomFeatures:
        given["n_features"] = draw.one([1, 10, 50])
    return draw.of(kind, **given)


def with_gram(draw: Draw, X: Any, new: Any, about: str) -> tuple[Any, Any, str]:
    """A Gram matrix instead of points, where there are some."""
    with np.errstate(all="ignore"):
        try:
            bound = kernels.RBF().bind(np.asarray(X, dtype=float))
            return bound(np.asarray(X, float)), bound(np.asarray(new, float), X), f"Gram of {about}"
        except Exception:
            return X, new, about


def kernelized_case(draw: Draw) -> Case:
    """Kernel, space and learner."""
    X, new, codes, about = points(draw)
    learner = plain_learner(draw)
    given = {"learner": learner, "kernel": kernel(draw), "space": space(draw)}
    if draw.happens(0.06):
        given["kernel"] = "precomputed"
        X, new, about = with_gram(draw, X, new, about)
    estimator = draw.of(Kernelized, **given)
    if not hasattr(learner, "fit"):
        return Case(estimator, X, labels(draw, codes), new, {}, about)
    y, options = supervision(draw, learner, codes, _len(X))
    return Case(estimator, X, y, new, options, about)


def splitter(draw: Draw, n: int, codes: np.ndarray) -> Any:
    """What cuts folds."""
    rows = np.arange(n)
    return draw.one(
        [
            *(2, 3, 2, 3, 5, KFold(2), StratifiedKFold(2), LeaveOneOut() if n < 9 else 4),
            *(PredefinedSplit(rows % 2), PredefinedSplit(rows % 3 - 1), ShuffleSplit(1)),
            *(GroupKFold(2), [(rows[::2], rows[1::2])], iter([(rows[::2], rows[1::2])])),
            *([(rows > 2, rows <= 2)], [(rows + 1, rows)], absurd(draw)),
        ]
    )


def search_case(draw: Draw) -> Case:
    """A search for a kernel and a rank."""
    X, new, codes, about = points(draw)
    learner = plain_learner(draw)
    given: dict[str, Any] = {
        "learner": learner,
        "kernels": draw.one([["rbf"], ["rbf", "linear"], kernel(draw), [kernel(draw)]]),
        "cv": splitter(draw, _len(X), codes),
        "n_jobs": None,
        "space": draw.one(["auto", "auto", space(draw)]),
        "estimator": draw.one([None, None, KNeighborsClassifier(2), Ridge(), plain_learner(draw)]),
    }
    estimator = draw.of(KernelizedCV, **given)
    y: Any = labels(draw, codes)
    if getattr(learner, "learns_from", "labels") == "targets":
        y = targets(draw, codes)
    options: dict[str, Any] = {}
    if draw.happens(0.3):
        options["sample_weight"] = weights(draw, _len(X))
    if draw.happens(0.15):
        options["groups"] = draw.one([codes, np.arange(len(codes)) // 3, absurd(draw)])
    return Case(estimator, X, y, new, options, about)


def predictor_case(draw: Draw) -> Case:
    """A classifier or a regressor in a learned metric."""
    X, new, codes, about = points(draw)
    numbers = draw.happens(0.4)
    metric = draw.one(
        [
            *(None, plain_learner(draw), plain_learner(draw), StandardScaler()),
            *(FunctionTransformer(), LinearDiscriminantAnalysis()),
            Kernelized(plain_learner(draw), kernel(draw), space(draw)),
        ]
    )
    cv = splitter(draw, _len(X), codes)
    estimator = draw.of(MetricRegressor if numbers else MetricClassifier, metric=metric, cv=cv)
    y = (targets if numbers else labels)(draw, codes)
    options = {"sample_weight": weights(draw, _len(X))} if draw.happens(0.25) else {}
    foreign = type(metric).__module__.startswith("sklearn.")
    return Case(estimator, X, y, new, options, about, foreign)


def transductive_case(draw: Draw) -> Case:
    """A distance from few labels and many points."""
    X, new, codes, about = points(draw)
    n = _len(X)
    given: dict[str, Any] = {}
    if draw.happens(0.3):
        penalty = draw.one(
            [
                *(
                    transductive.KernelPenalty,
                    transductive.WarpedPenalty,
                    transductive.GraphLaplacian,
                ),
                *(transductive.NormalizedLaplacian,),
            ]
        )
        given["penalty"] = draw.of(penalty)
    if draw.happens(0.2):
        given["cost"] = draw.of(draw.one([transductive.PaperCost, transductive.RobustCost]))
    if draw.happens(0.15):
        given["graph"] = draw.one(
            [np.ones((n, n)), np.zeros((n, n)), tuples(draw, n, 2), lambda X: np.ones((n, n))]
        )
    estimator = draw.of(TransductiveDistance, **given)
    y: Any = np.where(draw.rng.random(len(codes)) < 0.5, -1, codes)
    options: dict[str, Any] = {}
    how = draw.one(["y", "y", "y", "any", "pairs", "graph", "none"])
    if how == "any":
        y = labels(draw, codes)
    elif how != "y":
        y = None
    if how == "pairs":
        options = {"similar": tuples(draw, n, 2), "dissimilar": tuples(draw, n, 2)}
    if how == "graph":
        options["cost_graph"] = draw.one(
            [np.eye(n), np.ones((n, n)), np.zeros((n, n)), sparse.eye_array(n), absurd(draw)]
        )
    if draw.happens(0.15):
        options["sample_weight"] = weights(draw, n)
    return Case(estimator, X, y, new, options, about)


class Fitted:
    """A metric that needs no fit, as a verifier wants it."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def transform(self, X: Any) -> Any:
        """Points times the scale."""
        return np.asarray(X, dtype=float) * self.scale


def verifier_case(draw: Draw) -> Case:
    """A threshold on the distances of pairs."""
    X, _, _, about = points(draw)
    table = X if isinstance(X, np.ndarray) and X.ndim == 2 else np.zeros((6, 2))
    n = max(1, table.shape[0])
    metric: Any = Fitted(draw.one([1.0, 1.0, 0.0, 1e200, np.nan]))
    if draw.happens(0.4):
        rng = np.random.default_rng(0)
        d = max(1, table.shape[1])
        metric = LDA().fit(rng.standard_normal((8, d)), np.arange(8) % 2)
    estimator = draw.of(PairVerifier, metric=metric)
    if table.shape[0]:
        pairs = table[draw.rng.integers(0, n, size=(draw.one([2, 10, 30]), 2))]
    else:
        pairs = np.zeros((0, 2, 2))
    y = labels(draw, draw.rng.integers(0, 2, size=len(pairs)))
    options = {"sample_weight": weights(draw, len(pairs))} if draw.happens(0.25) else {}
    return Case(estimator, pairs, y, pairs[:5], options, f"pairs of {about}")


def space_case(draw: Draw) -> Case:
    """A space with its kernel, by itself."""
    X, new, codes, about = points(draw)
    found = space(draw)
    if not isinstance(found, spaces.Space):
        found = spaces.KPCA()
    if not draw.happens(0.1):
        found = clone(found).set_params(kernel=kernel(draw)) if _clones(found) else found
    y = labels(draw, codes) if draw.happens(0.5) else None
    if isinstance(found, spaces.PairKPCA) and len(np.unique(codes)) > 1 and draw.happens(0.8):
        y = Pairs.from_labels(codes)
    options = {"sample_weight": weights(draw, _len(X))} if draw.happens(0.2) else {}
    return Case(found, X, y, new, options, about)


def _clones(found: Any) -> bool:
    try:
        clone(found)
    except Exception:
        return False
    return True


def kernel_case(draw: Draw) -> Case:
    """A kernel by itself, bound to points."""
    X, new, codes, about = points(draw)
    found: Any = kernel(draw)
    y = (labels if draw.happens(0.6) else targets)(draw, codes) if draw.happens(0.6) else None
    return Case(found, X, y, new, {}, about)


def schema_case(draw: Draw) -> Case:
    """What the columns of a table are."""
    X, new, codes, about = points(draw)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        whole, said = _frame(draw, np.r_[X, new], len(X))
        X, new, about = whole[: len(X)], whole[len(X) :], f"{about}, {said}"
    return Case(kernels.TableSchema(), X, labels(draw, codes), new, {}, about)


FAMILIES: dict[Callable[[Draw], Case], float] = {
    learner_case: 0.34,
    kernelized_case: 0.26,
    search_case: 0.08,
    predictor_case: 0.10,
    transductive_case: 0.07,
    verifier_case: 0.04,
    space_case: 0.05,
    kernel_case: 0.05,
    schema_case: 0.01,
}
