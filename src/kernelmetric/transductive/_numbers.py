"""Numbers of all points from few: a Gaussian process over a graph and over features.

Covariances are tried with noise of several sizes. Each counts by how probable it makes the known
numbers that are left out in turn, so no single choice has to be right.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import solve
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from kernelmetric._warnings import warn
from kernelmetric.compute import map_rows
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.reductions import median_squared_distance
from kernelmetric.compute.watch import without_limit
from kernelmetric.inputs import (
    check_points,
    refuse_ambiguous,
    refuse_text,
    unchanged_on_failure,
)
from kernelmetric.inputs._labels import require_target
from kernelmetric.inputs._parameters import SHARE, Numbers, check_parameters
from kernelmetric.learners._checks import check_spread
from kernelmetric.solvers import evenly
from kernelmetric.transductive._diffusion import Diffusion
from kernelmetric.transductive._given import interpolate
from kernelmetric.transductive._learn import placing_seconds, seconds_of_pairs
from kernelmetric.transductive._spread import LabelGraph

_WIDTHS = (0.25, 1.0, 4.0, 16.0)  # of Gaussians, in median squared distances
_LEAKS = (0.1, 0.01, 0.001)  # of walks on the graph: how far numbers speak
_NOISE = (0.001, 0.01, 0.1, 1.0)  # in mean variances
_CANDIDATES = len(_NOISE) * ((len(_LEAKS) + 1) * (len(_WIDTHS) + 2) - 1)  # with a linear one
_LEVEL = 100.0  # variance of the constant
_LEAST = 0.01  # weight of a covariance that is kept
_JUDGED = 200  # known numbers on which covariances are judged
_MOST = 5000  # known numbers
_COLUMNS = 64  # of the graph's covariance, solved for at once
_PASSES = 1000  # over the points of the graph, for each known number
_LEAST_ROWS = 100  # that a time limit leaves
_NEAREST = 5  # points between which a new one lies in the graph


class _Candidate(NamedTuple):
    """Names of covariances that are averaged, and what is added to the diagonal."""

    names: tuple[str, ...]
    noise: float


@dataclass(eq=False, repr=False)
class TransductiveRegressor(RegressorMixin, BaseEstimator):
    r"""Numbers of many points, from few that are known: NaN in y means unknown.

    The function is a Gaussian process. Covariances are those of a graph over all points,
    :math:`(L + \epsilon D)^{-1}` with its Laplacian L, of features (linear, and Gaussians of
    several widths), and means of both. Predictions of all of these are averaged, with weights in
    proportion to the density of known numbers that are left out in turn [1]_. O(n² d) time for
    the neighbours, and O(m³) for m known numbers.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each point in the graph.
    graph : str, array or callable, default='neighbors'
        As in :class:`TransductiveDistance`. Where it is given, features do not count.
    cv : int, default=10
        Folds of known numbers from whose errors intervals are made.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Numbers of all training points; the known ones as they are.
    candidates_ : list of dict
        By output, the weights of covariances, by their names and noise.
    residuals_ : list of ndarray
        By output, absolute errors on folds that were left out, ascending.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    TransductiveDistance : Classes instead of numbers.
    MetricRegressor : Where most numbers are known.

    References
    ----------
    .. [1] Yao, Vehtari, Simpson and Gelman, "Using stacking to average Bayesian predictive
       distributions", Bayesian Analysis, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_swiss_roll
    >>> from kernelmetric import TransductiveRegressor
    >>> X, along = make_swiss_roll(500, random_state=0)
    >>> y = np.where(np.arange(500) < 25, along, np.nan)
    >>> model = TransductiveRegressor().fit(X, y)
    >>> bool(np.corrcoef(model.transduction_, along)[0, 1] > 0.95)
    True
    >>> low, high = model.predict_interval(X, coverage=0.8).T
    >>> bool(np.mean((low < along) & (along < high)) > 0.7)
    True
    """

    n_neighbors: int = 10
    _: KW_ONLY
    graph: Any = "neighbors"
    cv: int = 10

    _allowed: ClassVar = {"n_neighbors": Numbers(Integral, 1), "cv": Numbers(Integral, 2)}

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the known numbers, and from where all points lie.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, with known numbers or not.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers, NaN where unknown; outputs may be unknown at different points.

        Returns
        -------
        TransductiveRegressor
            The fitted regressor.
        """
        with unchanged_on_failure(self):
            check_parameters(self)
            X = check_points(self, X, reset=True, ensure_min_samples=2)
            require_target(y, type(self).__name__, "numbers, NaN where unknown")
            refuse_ambiguous(y, "y")
            refuse_text(y)
            Y = check_array(
                y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan",
                input_name="y", ensure_min_samples=0,
            )  # fmt: skip
            check_consistent_length(X, Y)
            if Y.ndim > 2:
                raise ValueError(f"Got y of shape {Y.shape}, but expected one or two axes.")
            points = np.array(X, dtype=np.float64)
            check_spread(points)
            self._single = Y.ndim == 1
            Y = Y.reshape(len(Y), -1)
            known = ~np.isnan(Y)
            rows = self._rows_in_time(known, points.shape[1])
            with without_limit():
                self._learn(points[rows], Y[rows])
            F = np.where(known, Y, self._values(points))
            self.transduction_ = F[:, 0] if self._single else F
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Numbers of points, new ones too.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Features speak by formula; for the graph, five nearest training points do.
        """
        check_is_fitted(self)
        F = self._values(np.asarray(check_points(self, X, reset=False), dtype=np.float64))
        return F[:, 0] if self._single else F

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals that hold the number of a point with a given probability, all as wide.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        coverage : float, default=0.9
            The probability, below one. Needs ``coverage / (1 - coverage)`` known numbers: else
            intervals are infinite.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends.
        """
        SHARE.require("coverage", coverage)
        F, half = self.predict(X), np.empty(len(self.residuals_))
        for j, errors in enumerate(self.residuals_):
            rank = int(np.ceil(coverage * (len(errors) + 1) - 1e-9))
            half[j] = errors[rank - 1] if rank <= len(errors) else np.inf
        if np.isinf(half).any():
            warn(
                f"Got coverage={coverage:g}, but only {min(map(len, self.residuals_))} known "
                "numbers: intervals are infinite. Try a smaller coverage."
            )
        half = half[0] if self._single else half
        return np.stack([F - half, F + half], axis=-1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _rows_in_time(self, known: np.ndarray, n_features: int) -> Any:
        """Rows that a time limit leaves time for, half of them with numbers; a slice for all."""
        counts, n = known.sum(axis=0), len(known)
        if counts.min() < 2 or counts.max() > _MOST:
            wrong = counts.min() if counts.min() < 2 else counts.max()
            raise ValueError(
                f"Got {wrong} known number(s) in y, but expected 2 to {_MOST:,} for each output, "
                "and NaN where unknown: where most are known try MetricRegressor."
            )
        if not isinstance(self.graph, str):
            return slice(None)
        any_known = known.any(axis=1)
        told, others = np.flatnonzero(any_known), np.flatnonzero(~any_known)

        def n_told(m: int) -> int:
            return min(len(told), max(m // 2, m - len(others)))

        def seconds(m: int) -> float:
            k, fits = n_told(m), known.shape[1] * (min(self.cv, n_told(m)) + 1)
            judged = _CANDIDATES * 6 * min(k, _JUDGED) ** 3 + 5 * k**3
            walks = seconds_of_pairs(m * m, n_features) + _PASSES * k * m * rates().cell
            walks += 0.0 if m == n else placing_seconds(n, m, n_features)
            return walks + fits * judged * rates().product

        m = most_in_time(seconds, n, _LEAST_ROWS, type(self).__name__)
        if m == n:
            return slice(None)
        k = n_told(m)
        rows = np.union1d(told[evenly(len(told), k)], others[evenly(len(others), m - k)])
        return rows if known[rows].sum(axis=0).min() >= 2 else slice(None)

    def _learn(self, points: np.ndarray, Y: np.ndarray) -> None:
        known = ~np.isnan(Y)
        rows = np.flatnonzero(known.any(axis=1))
        graph = LabelGraph(self.graph, self.n_neighbors, points)
        diffusion = Diffusion(graph.weights, graph.place)
        self._points, self._anchors = points, points[rows]
        self._middle = points.mean(axis=0)
        self._width = median_squared_distance(points) or 1.0
        blocks: dict[str, np.ndarray] = {}
        for leak in _LEAKS:
            columns = [
                diffusion.covariance(some, np.eye(len(some)), leak)[rows]
                for some in np.array_split(rows, -(-len(rows) // _COLUMNS))
            ]
            blocks[f"graph {leak:g}"] = np.hstack(columns)
        walks = list(blocks)
        if graph.named:
            blocks |= dict(self._of_features(self._anchors))
        scales = {name: float(np.mean(np.diag(K))) or 1.0 for name, K in blocks.items()}
        blocks = {name: (K + K.T) / (2.0 * scales[name]) for name, K in blocks.items()}
        features = [name for name in blocks if name not in walks]
        pairs = [(g, f) for g, f in product([*walks, None], [*features, None]) if g or f]
        names = [tuple(name for name in pair if name) for pair in pairs]
        tried = [_Candidate(some, noise) for some in names for noise in _NOISE]
        p = Y.shape[1]
        self._coef = {name: np.zeros((len(rows), p)) for name in blocks}
        self._levels, self.candidates_, self.residuals_ = np.zeros(p), [], []
        for j in range(p):
            some = np.flatnonzero(known[rows, j])
            mine = {name: K[np.ix_(some, some)] for name, K in blocks.items()}
            z = Y[rows[some], j]
            weights, parts, self._levels[j] = _fitted(tried, mine, z)
            for name, alpha in parts.items():
                self._coef[name][some, j] = alpha / scales[name]
            self.candidates_.append(
                {f"{' + '.join(c.names)}, noise {c.noise:g}": w for c, w in weights.items()}
            )
            self.residuals_.append(_cross_fitted(tried, mine, z, min(self.cv, len(z))))
        self._along = np.zeros(Y.shape)
        for name in walks:
            self._along += diffusion.covariance(rows, self._coef.pop(name), float(name.split()[1]))

    def _of_features(self, X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Covariances of points with those whose numbers are known, by features."""
        Z = self._anchors - self._middle
        yield "linear", (X - self._middle) @ Z.T / self._width
        squares = euclidean_distances(X - self._middle, Z, squared=True) / self._width
        for width in _WIDTHS:
            yield f"gaussian {width:g}", np.exp(-squares / width)

    def _values(self, X: np.ndarray) -> np.ndarray:
        k = min(_NEAREST, len(self._points))
        F = self._levels + interpolate(self._points, self._along, X, k)[0]
        if not self._coef:
            return F

        def of_features(rows: slice) -> np.ndarray:
            return np.sum([K @ self._coef[name] for name, K in self._of_features(X[rows])], axis=0)

        return F + map_rows(of_features, len(X), 8 * 4 * len(self._anchors))


def _fitted(
    tried: list[_Candidate], blocks: dict[str, np.ndarray], y: np.ndarray
) -> tuple[dict[_Candidate, float], dict[str, np.ndarray], float]:
    """Weights of candidates; coefficients by covariance, and the constant, of their mean."""
    level, size = y.mean(), float(np.ptp(y)) or 1.0
    z, some = (y - level) / size, evenly(len(y), _JUDGED)
    judged = {name: K[np.ix_(some, some)] for name, K in blocks.items()}
    density = np.array([_left_out(c, judged, z[some]) for c in tried])
    share = np.exp(density - density.max())
    share[share < _LEAST * share.sum()] = 0.0
    share /= share.sum()
    parts = {name: np.zeros(len(y)) for name in blocks}
    for c, weight in zip(tried, share, strict=True):
        if weight:
            alpha = weight * size * solve(_covariance(c, blocks), z, assume_a="pos")
            level += _LEVEL * alpha.sum()
            for name in c.names:
                parts[name] += alpha / len(c.names)
    return {c: float(w) for c, w in zip(tried, share, strict=True) if w}, parts, level


def _covariance(candidate: _Candidate, blocks: dict[str, np.ndarray]) -> np.ndarray:
    K = np.mean([blocks[name] for name in candidate.names], axis=0) + _LEVEL
    K[np.diag_indices_from(K)] += candidate.noise
    return K


def _left_out(candidate: _Candidate, blocks: dict[str, np.ndarray], z: np.ndarray) -> float:
    """Log-density of numbers left out in turn, with the variance that fits them."""
    inverse = np.linalg.inv(_covariance(candidate, blocks))
    precision = np.diag(inverse)
    squares = (inverse @ z) ** 2 / precision  # squared errors over their variances
    variance = max(float(squares.mean()), 1e-12)
    return 0.5 * float(np.log(precision).sum() - len(z) * np.log(variance))


def _cross_fitted(
    tried: list[_Candidate], blocks: dict[str, np.ndarray], y: np.ndarray, n_folds: int
) -> np.ndarray:
    """Errors on numbers that neither the weights nor the function have seen, ascending."""
    order, errors = np.random.RandomState(0).permutation(len(y)), np.empty(len(y))
    for fold in range(n_folds):
        hidden = order[fold::n_folds]
        kept = np.setdiff1d(order, hidden)
        inner = {name: K[np.ix_(kept, kept)] for name, K in blocks.items()}
        _, parts, level = _fitted(tried, inner, y[kept])
        found = sum(blocks[name][np.ix_(hidden, kept)] @ a for name, a in parts.items())
        errors[hidden] = np.abs(y[hidden] - level - found)
    return np.sort(errors)
