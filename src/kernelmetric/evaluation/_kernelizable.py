"""Whether an estimator, run on kernel coordinates, becomes its kernel version: an experiment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg
from sklearn.base import clone, is_regressor
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state

from kernelmetric.evaluation._outcomes import Answer, answers, constant, difference
from kernelmetric.inputs._parameters import POSITIVE

DECISIVE = ("translation", "rotation", "embedding", "pca")

_HOLDS = {
    "translation": "{name} does not notice where the origin is.",
    "rotation": "{name} is rotation-invariant.",
    "embedding": "{name} does not notice dimensions in which nothing happens.",
    "pca": "{name} says of full-rank principal components what it says of the points.",
    "span": "{name} depends on new points only through their projections onto the span.",
}
_FAILS = {
    "translation": "{name} depends on where the origin is: try an intercept without a penalty.",
    "rotation": "{name} is not rotation-invariant: scale or select features before the kernel.",
    "embedding": "{name} notices empty dimensions: set what depends on their number by hand.",
    "pca": "{name} says something else of full-rank principal components than of the points.",
    "span": "{name} also looks at what leaves the span: kernelized, it answers for projections.",
}
_ADDED = 3  # dimensions that an isometric embedding adds
_PROBES = 150
_ROUND_OFF = 1e-14  # relative size of the noise that stands for round-off


@dataclass(frozen=True)
class Condition:
    """One condition of the KPCA trick, tried out.

    Parameters
    ----------
    name : str
        'translation', 'rotation', 'embedding', 'pca' or 'span'.
    holds : bool
        Whether the result stayed the same.
    change : float
        By how much it changed; infinite where the estimator raised an error.
    sentence : str
        What that means, and what to do about it.
    """

    name: str
    holds: bool
    change: float
    sentence: str


@dataclass(frozen=True, repr=False)
class KernelizableReport:
    """What :func:`check_kernelizable` found.

    Parameters
    ----------
    estimator, tol : estimator, float
        The estimator that was tried, and the change up to which a condition holds.
    conditions : tuple of Condition
        One for each experiment.
    floor : float
        Change by noise of the size of round-off, in the original coordinates.
    constant : bool
        Whether the estimator says the same of all points, so that nothing could be seen.
    """

    estimator: Any
    conditions: tuple[Condition, ...]
    tol: float
    floor: float
    constant: bool

    @property
    def kernelizable(self) -> bool:
        """Whether ``Kernelized(estimator)`` is the estimator's kernel version, as far as seen."""
        return not self.undecided and not self.failed

    @property
    def undecided(self) -> bool:
        """Whether these data can tell nothing: all answers alike, or chaotic."""
        return self.constant or self.floor > self.tol

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the decisive conditions that fail."""
        return tuple(name for name in DECISIVE if not self[name].holds)

    def __getitem__(self, name: str) -> Condition:
        found = {condition.name: condition for condition in self.conditions}
        if name not in found:
            raise KeyError(f"Got {name!r}, but expected one of {', '.join(found)}.")
        return found[name]

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        if self.constant:
            return "Its result is the same for all points, so nothing can be seen: pass other data."
        if self.undecided:
            return f"Round-off alone changes its result by {self.floor:.0e}: nothing can be told."
        if not self.kernelizable:
            return f"Not kernelizable as it is: see {', '.join(self.failed)}."
        return "Kernelizable: run on kernel coordinates it is its kernel version."

    def __repr__(self) -> str:
        lines = [" ".join(repr(self.estimator).split()), self.verdict, ""]
        for c in self.conditions:
            mark = "holds" if c.holds else "fails"
            amount = "error" if c.change == np.inf else f"{c.change:.1e}"
            lines.append(f"  {c.name:<12}{mark}   {amount:>8}   {c.sentence}")
        return "\n".join(lines)


class Cloud(NamedTuple):
    """Training points and the points an estimator is asked about."""

    X: np.ndarray
    probes: np.ndarray

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Both, moved by the same function."""
        return type(self)(*map(function, self))


def check_kernelizable(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    tol: float = 0.01,
    random_state: Any = 0,
    **fit_params,
) -> KernelizableReport:
    """Find out whether an estimator meets the conditions of the KPCA trick.

    ``Kernelized(estimator)`` is the estimator's kernel version if its result does not depend on
    the coordinates in which the points are written, the mild conditions of [1]_. Each condition
    is tried out: all points are moved by one vector (*translation*), turned (*rotation*), put into
    more dimensions (*embedding*), or replaced by their full-rank principal components (*pca*).
    Points that leave the span of the training points (*span*) do not decide: an optimum within it
    exists (Theorem 1 of [2]_).

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn-style estimator, or a pipeline.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,), default=None
        Points to try it on, with labels or targets; None makes 90 points of three overlapping
        classes in four dimensions.
    tol : float, default=0.01
        Change up to which a condition holds: the part of labels that differ; for numbers the root
        mean square relative to their spread.
    random_state : int, RandomState or None, default=0
        For the moves, and for every ``random_state`` of the estimator that is None.
    **fit_params : dict
        Further arguments of the estimator's ``fit``.

    Returns
    -------
    KernelizableReport
        ``report.kernelizable``, and for each condition whether it holds, the change, a sentence.

    See Also
    --------
    Kernelized : What to put the learner into.

    References
    ----------
    .. [1] Zhang, Nie and Xiang, "A general kernelization framework for learning algorithms based
       on kernel PCA", Neurocomputing 73 (2009).
    .. [2] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).

    Examples
    --------
    >>> from sklearn.linear_model import Lasso, Ridge
    >>> from kernelmetric import check_kernelizable
    >>> check_kernelizable(Ridge()).kernelizable
    True
    >>> report = check_kernelizable(Lasso(alpha=0.02))
    >>> report.kernelizable, report.failed
    (False, ('rotation', 'pca'))
    """
    POSITIVE.require("tol", tol, hint="try 0.01")
    rng = check_random_state(random_state)
    tried = _with_fixed_randomness(estimator, rng)
    if X is None:
        X, y = _default_data(is_regressor(tried))
    X = np.asarray(X, dtype=np.float64)
    cloud = Cloud(X, _between(X, rng))

    def ask(points: Cloud, which: Any = tried) -> list[Answer]:
        return answers(which, points.X, y, points.probes, fit_params)

    original = ask(cloud)
    noise = _ROUND_OFF * X.std() * rng.standard_normal(X.shape)
    floor = difference(original, ask(Cloud(X + noise, cloud.probes)))
    conditions = []
    for name, (before, after) in _experiments(cloud, rng).items():
        known = original if before is cloud else None
        change, error = _change(ask, before, after, known)
        holds = change <= tol
        blamed = tried if holds else _culprit(tried, before, after, tol, ask)
        sentence = (_HOLDS if holds else _FAILS)[name].format(name=type(blamed).__name__)
        sentence += f" It raised {error}" if error else ""
        conditions.append(Condition(name, holds, change, sentence))
    return KernelizableReport(estimator, tuple(conditions), tol, floor, constant(original))


def assert_kernelizable(estimator: Any, X: Any = None, y: Any = None, **options) -> None:
    """Fail, with the sentences of the report, unless an estimator is kernelizable.

    Parameters
    ----------
    estimator, X, y, **options : estimator, array-like, array-like, dict
        As in :func:`check_kernelizable`.

    Raises
    ------
    AssertionError
        Where a condition fails, or where the data cannot tell.

    Examples
    --------
    >>> from sklearn.neighbors import NearestCentroid
    >>> from kernelmetric.evaluation import assert_kernelizable
    >>> assert_kernelizable(NearestCentroid())
    """
    report = check_kernelizable(estimator, X, y, **options)
    if not report.kernelizable:
        raise AssertionError(str(report))


def _experiments(cloud: Cloud, rng: np.random.RandomState) -> dict[str, tuple[Cloud, Cloud]]:
    """For each condition two clouds that should give the same result."""
    d = cloud.X.shape[1]
    scale = cloud.X.std(axis=0).mean()
    shift = -3 * scale * (1 + rng.uniform(size=d)) - cloud.X.mean(axis=0)
    Q = linalg.qr(rng.standard_normal((d, d)))[0]
    R = linalg.qr(rng.standard_normal((d + _ADDED, d + _ADDED)))[0]
    added = scale * rng.standard_normal((1, d + _ADDED))
    padded = cloud.map(lambda A: np.pad(A, ((0, 0), (0, _ADDED))))
    off_span = padded.probes.copy()
    off_span[:, d:] = scale * rng.standard_normal((len(off_span), _ADDED))
    hidden = padded.map(lambda A: A @ R + added)
    rank = np.linalg.matrix_rank(hidden.X - hidden.X.mean(axis=0))
    pca = PCA(rank, svd_solver="full").set_output(transform="default")
    return {
        "translation": (cloud, cloud.map(lambda A: A + shift)),
        "rotation": (cloud, cloud.map(lambda A: A @ Q)),
        "embedding": (cloud, padded),
        "pca": (hidden, hidden.map(pca.fit(hidden.X).transform)),
        "span": (padded, Cloud(padded.X, off_span)),
    }


def _change(
    ask: Callable, before: Cloud, after: Cloud, known: list[Answer] | None
) -> tuple[float, str]:
    """How much the answers differ; infinitely where the estimator gives up, and its words."""
    try:
        return difference(ask(before) if known is None else known, ask(after)), ""
    except Exception as error:  # noqa: BLE001, RUF100 (whatever an estimator raises, it gave up)
        return float("inf"), f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _culprit(estimator: Any, before: Cloud, after: Cloud, tol: float, ask: Callable) -> Any:
    """Of a pipeline, the first step that fails by itself."""
    for _, step in getattr(estimator, "steps", []):
        if hasattr(step, "fit"):
            single = _change(lambda points, step=step: ask(points, step), before, after, None)
            if single[0] > tol:
                return step
    return estimator


def _with_fixed_randomness(estimator: Any, rng: np.random.RandomState) -> Any:
    """A copy whose every ``random_state`` is set, so that two fits make the same choices."""
    estimator = clone(estimator)
    seeds = {
        name: int(rng.randint(2**31 - 1))
        for name, value in estimator.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return estimator.set_params(**seeds)


def _between(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Points between pairs of points: new ones, within the span of the old."""
    first, second = rng.randint(len(X), size=(2, _PROBES))
    t = rng.uniform(0.05, 0.45, size=(_PROBES, 1))  # never half-way: a tie would fall either way
    return (1 - t) * X[first] + t * X[second]


def _default_data(continuous: bool) -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping classes with correlated features; positive, for those who insist."""
    rng = np.random.RandomState(0)
    y = np.arange(90) % 3
    X = 0.4 * rng.standard_normal((90, 4)) * [1.2, 0.9, 0.6, 0.3]
    X[:, 0] += 0.8 * (y == 1)
    X[:, 1] += 0.8 * (y == 2)
    X = X @ (np.eye(4) + 0.5 * np.eye(4, k=1) - 0.3 * np.eye(4, k=-2))
    X[::30] += rng.standard_normal((3, 4))  # something for those who look for outliers
    X += 0.1 - X.min(axis=0)
    target = np.exp(0.5 * X[:, 0]) + np.sin(2 * X[:, 1]) + 0.1 * rng.uniform(size=90) + 1
    return X, target if continuous else y
