"""Numbers, and intervals around them, in a learned metric."""

from __future__ import annotations

import itertools
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from kernelmetric.compute import (
    map_rows,
    refuse_text,
    refuse_unsaid,
    rows_of,
    to_numpy,
    unchanged_on_failure,
    weighted_quantiles,
)
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import MLKR
from kernelmetric.prediction._base import MetricPredictor, found_in, held_out_scores
from kernelmetric.prediction._combined import Combination, sum_of_numbers
from kernelmetric.prediction._cross_fit import Fold, embedded, parts_of
from kernelmetric.prediction._linear import OWN, RIDGES, LinearScores, linear_scores, own_scores
from kernelmetric.prediction._neighbors import (
    MOST,
    NUMBERS,
    TEMPERATURES,
    spread,
    weighted_moments,
)

_USUAL = np.array([0.5, 0.5])  # weights of neighbours and of linear scores, before any point spoke
_FLOORS = (0.3, 1.0, 3.0, 100.0)  # of local spreads, in typical residuals; the last leaves no local
_TYPICAL = 0.9  # coverage for which intervals are made short


class MetricRegressor(RegressorMixin, MetricPredictor):
    r"""Numbers by neighbours in a learned metric, with intervals.

    The prediction is a combination of the mean of the k nearest training points, weighted by
    :math:`\exp(-d^2 / 2\tau^2)`, and of ridge regression on the learned coordinates. k, the width
    τ, the ridge and the weights are those that predict points best which were left out, and the
    residuals there make the intervals.

    Parameters
    ----------
    metric : estimator, default=None
        Any metric of this library that learns from numbers, or anything else that has ``fit(X, y)``
        and ``transform``. None is ``Kernelized(MLKR())``. A metric that is not fitted again
        (``FrozenEstimator``) must not have seen X, or intervals are too short.
    cv : 'auto', int, splitter or list of splits, default='auto'
        How points are held out. 'auto' takes the places that the metric's one fit gives points
        left out. Of up to 500 points, and where the metric has no such places, it is fitted again
        in five folds. Of a number of folds only as many are fitted as hold 1,000 points out. Where
        rows belong together, such as several of one patient, give splits that keep them together.
    index : str, default=None
        None searches neighbours exactly. Otherwise what ``faiss.index_factory`` makes of the
        learned coordinates, such as 'HNSW32', for many training points.
    random_state : int, RandomState or None, default=0
        For the folds.

    Attributes
    ----------
    metric_ : estimator
        The metric, fitted on all points.
    embedding_ : ndarray of shape (n_samples, n_components)
        The training points in learned coordinates.
    targets_ : ndarray of shape (n_samples,)
        Their targets.
    n_neighbors_ : int
        How many neighbours are averaged.
    temperature_ : float
        The width τ, as a multiple of the spread of ``embedding_``.
    weights_ : ndarray of shape (2,)
        What the mean of neighbours and the linear score count.
    bias_ : float
        What is added.
    coef_, intercept_ : ndarray of shape (n_components, 1) and (1,)
        Ridge regression on the learned coordinates.
    residuals_ : ndarray of shape (n_held_out,)
        Absolute residuals of points held out, divided by their local spreads, ascending; each by
        what the other folds chose.
    floor_ : float
        What is added to the local spreads, squared.
    usual_distance_ : float
        What :meth:`score_samples` divides by.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of str
        Names of the features seen in fit, where X had any.

    See Also
    --------
    MetricClassifier : The same for classes.

    Notes
    -----
    With folds a fit takes about 1 + 4/5 times ``cv`` fits of the metric, above 500 points by
    default little more than one. Another order of rows makes other folds.

    Intervals are cross-conformal [1]_: a point is within that of coverage 0.9 where its residual,
    divided by the spread of its neighbours' targets and a floor, is below the 0.9-quantile of those
    held out, of n the ⌈0.9 (n + 1)⌉-th. A residual is that of a metric fitted without its fold, and
    of numbers k, τ, ridge, weights and floor that were chosen on the other folds. About so many new
    points are within, on average over points like the training points and over training sets, and
    more with few folds, whose metrics saw fewer points; measured, not proven, since folds share
    points. It is no promise for every kind of points by
    itself, nor for every training set: with n = 30 the share varies by 0.08 between them.

    References
    ----------
    .. [1] Barber, Candès, Ramdas and Tibshirani, "Predictive inference with the jackknife+", Annals
       of Statistics 2021: what residuals of folds can promise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import MetricRegressor
    >>> X = np.random.RandomState(0).uniform(-2, 2, size=(200, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.RandomState(1).standard_normal(200)
    >>> model = MetricRegressor().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> low, high = model.predict_interval(X[1::2], coverage=0.8).T
    >>> bool(np.mean((low < y[1::2]) & (y[1::2] < high)) > 0.65)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MetricRegressor:
        """Learn the metric, and what numbers and intervals follow from it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, of any kind that the metric takes.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts; zero leaves it out. It counts in the metric, in the votes, and
            among the points held out.

        Returns
        -------
        MetricRegressor
            The fitted regressor.
        """
        self._check_parameters()
        if y is None:
            raise ValueError(
                "MetricRegressor requires y to be passed, but the target y is None: expected a "
                "number for every row."
            )
        with unchanged_on_failure(self):
            refuse_unsaid(y, "y")
            refuse_text(y)
            y = to_numpy(y) if is_array_api_obj(y) else y
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            rows, weights, w = self._weighed(X, sample_weight)
            X, y = rows_of(X, rows), y if rows is None else y[rows]
            self.targets_ = y.copy()
            self._mass = None if weights is None else weights.masses
            folds = self._learn(X, y, classes=False, sample_weight=w)
            held_out = self._held_out(folds)
            choice = held_out.choose()
            self.n_neighbors_, self.temperature_ = choice.vote
            linear = None
            if choice.ridge == OWN:
                linear = own_scores(self.metric_, self.embedding_, y, 0, self._mass)
            if linear is None:
                ridge = choice.ridge or RIDGES[0]
                linear = linear_scores(self.embedding_, y[:, None], ridge, self._mass)
            self.coef_, self.intercept_ = linear
            self.weights_, self.bias_ = choice.combined.weights, float(choice.combined.biases[0])
            self.floor_ = choice.floor
            ratios = held_out.ratios(parts_of(folds)) / choice.scale
            order = np.argsort(ratios, kind="stable")
            self.residuals_ = ratios[order]
            self._residual_mass = None if held_out.mass is None else held_out.mass[order]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            One for each point.
        """
        return self._moments(X)[0]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals that hold the number of a new point with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        coverage : float, default=0.9
            The probability, below one.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends; wider where the neighbours disagree.
        """
        check_is_fitted(self)
        factor = self._quantile(coverage)
        middle, local = self._moments(X)
        half = factor * np.hypot(local, self.floor_)
        return np.stack([middle - half, middle + half], axis=1)

    def _default_metric(self) -> Any:
        return Kernelized(MLKR())

    def _moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        E = embedded(self.metric_, X)
        linear = LinearScores(self.coef_, self.intercept_)

        def work(rows: slice) -> np.ndarray:
            found = self._neighbors(E[rows], self.n_neighbors_)
            weights = self._votes_of(found, self.n_neighbors_, self._width)
            mean, local = weighted_moments(found, weights, self.targets_)
            predicted = np.stack([mean, linear(E[rows])[:, 0]], axis=1) @ self.weights_
            return np.stack([predicted + self.bias_, local], axis=1)

        both = map_rows(work, len(E), 8 * 8 * MOST)
        return both[:, 0], both[:, 1]

    def _held_out(self, folds: list[Fold]) -> _HeldOut:
        """What every choice says of the points held out."""
        y, found = self.targets_, found_in(folds)
        most = min([len(y), *(fold.E.shape[0] for fold in folds)])
        votes, lines = {}, {}
        for vote in itertools.product(sorted({min(k, most) for k in NUMBERS}), TEMPERATURES):
            parts = [np.empty((2, 0))]
            for fold, near in zip(folds, found, strict=True):
                weights = self._votes_of(near, vote[0], vote[1] * spread(fold.E), fold.train)
                parts.append(np.stack(weighted_moments(near, weights, y[fold.train])))
            votes[vote] = np.concatenate(parts, axis=1)
        known = bool(folds) and all(fold.own is not None for fold in folds)
        for ridge in (OWN, *RIDGES) if known else RIDGES:
            scores = [held_out_scores(fold, y[:, None], ridge, self._mass)[:, 0] for fold in folds]
            lines[ridge] = np.concatenate([np.empty(0), *scores])
        truth = np.concatenate([y[:0], *(y[fold.test] for fold in folds)])
        return _HeldOut(truth, votes, lines, self._held_out_mass(folds))

    def _quantile(self, coverage: float) -> float:
        n = len(self.residuals_)
        if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
            raise ValueError(
                f"Got coverage={coverage!r}, but expected a number between 0 and 1: try 0.9."
            )
        mass = vars(self).get("_residual_mass")
        if mass is None:
            place = int(np.ceil((n + 1) * float(coverage) - 1e-9))
        else:  # a new point counts one, as they do on average
            ends = np.cumsum(mass)
            needed = (ends[-1] + 1.0) * float(coverage)
            place = int(np.searchsorted(ends, needed * (1 - 1e-12))) + 1
        if place > n:
            raise ValueError(
                f"Got coverage={coverage!r}, but {n} points held out can promise at most "
                f"{n / (n + 1):.3f}: try less, or more training points."
            )
        return float(self.residuals_[place - 1])


class _Choice(NamedTuple):
    """What was chosen on some points held out, and the mean of their local spreads."""

    vote: tuple[int, float]
    ridge: float
    combined: Combination
    floor: float
    scale: float


class _HeldOut(NamedTuple):
    """Points held out: targets, means and spreads of neighbours, linear scores, what they count."""

    truth: np.ndarray
    votes: dict[tuple[int, float], np.ndarray]
    lines: dict[float, np.ndarray]
    mass: np.ndarray | None

    def choose(self, rows: Any = slice(None)) -> _Choice:
        """What predicts some of the points best, and makes their intervals short."""
        truth, mass = self.truth[rows], None if self.mass is None else self.mass[rows]
        if not len(truth):
            usual = Combination(_USUAL, np.zeros(1), np.nan)
            return _Choice((min(self.votes)[0], 0.25), RIDGES[0], usual, _FLOORS[0], 1.0)

        def error(vote: tuple[int, float]) -> float:
            return float(np.average((self.votes[vote][0, rows] - truth) ** 2, weights=mass))

        vote = min(self.votes, key=error)
        means, spreads = self.votes[vote][:, rows]
        sums = {
            ridge: sum_of_numbers(np.stack([means, line[rows]], axis=1), truth, _USUAL, mass)
            for ridge, line in self.lines.items()
        }
        ridge = min(sums, key=lambda each: sums[each].loss)
        choice = _Choice(vote, ridge, sums[ridge], 0.0, 1.0)
        floor, scale = _best_floor(self._residuals(choice, rows), spreads, mass)
        return choice._replace(floor=floor, scale=scale)

    def ratios(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Residuals by local spreads relative to their mean, each as the other parts chose."""
        ratios = np.empty(len(self.truth))
        for others, own in parts:
            choice = self.choose(others)
            local = np.hypot(self.votes[choice.vote][1, own], choice.floor)
            ratios[own] = self._residuals(choice, own) / local * choice.scale
        return ratios

    def _residuals(self, choice: _Choice, rows: Any) -> np.ndarray:
        both = np.stack([self.votes[choice.vote][0, rows], self.lines[choice.ridge][rows]], axis=1)
        return np.abs(self.truth[rows] - both @ choice.combined.weights - choice.combined.biases[0])


def _best_floor(
    residuals: np.ndarray, spreads: np.ndarray, mass: np.ndarray | None
) -> tuple[float, float]:
    """The floor for local spreads that makes intervals short on average, and their mean then."""
    typical = float(np.sqrt(np.average(residuals**2, weights=mass))) or 1.0
    choices = []
    for floor in _FLOORS:
        local = np.hypot(spreads, floor * typical)
        order = np.argsort(residuals / local, kind="stable")
        ratios = (residuals / local)[order]
        if mass is None:
            end = np.quantile(ratios, _TYPICAL)
        else:
            end = weighted_quantiles(ratios, mass[order], _TYPICAL)
        choices.append((float(end) * local.mean(), floor * typical, float(local.mean())))
    _, floor, scale = min(choices, key=lambda choice: choice[0])
    return floor, scale
