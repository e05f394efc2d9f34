"""Numbers, and intervals around them, in a learned metric."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from kernelmetric.compute.reductions import weighted_quantiles
from kernelmetric.inputs import check_numbers, rows_and_weights, rows_of
from kernelmetric.inputs._parameters import SHARE
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import MLKR
from kernelmetric.prediction._base import MetricPredictor
from kernelmetric.prediction._cross_fit import parts_of, without_copies
from kernelmetric.prediction._held_out import Choice, HeldOut
from kernelmetric.prediction._neighbors import Neighbors, weighted_moments
from kernelmetric.prediction._scores import RIDGES, sum_of_numbers

_LARGEST = 1e150  # of a target: sums of squares of larger ones overflow
_FLOORS = (0.3, 1.0, 3.0, 100.0)  # of local spreads, in typical residuals; the last leaves no local
_TYPICAL = 0.9  # coverage for which intervals are made short


class MetricRegressor(RegressorMixin, MetricPredictor):
    r"""Numbers by neighbours in a learned metric, with intervals.

    The prediction combines up to five numbers. Two come from the learned coordinates: the mean of
    the k nearest training points, weighted by :math:`\exp(-d^2 / 2\tau^2)`, and ridge regression.
    Three come from the features themselves: ridge regression, a forest of trees, and the neighbours
    by the features, each in its deviations. Points that were left out choose k, the width τ, the
    ridge and the weights, none of them negative. Their residuals make the intervals.

    Parameters
    ----------
    metric : estimator, default=None
        Any metric of this library that learns from numbers, or anything else that has ``fit(X, y)``
        and ``transform``. None is ``Kernelized(MLKR())``. A metric that is not fitted again
        (``FrozenEstimator``) must not have seen X, or intervals are too short.
    cv : 'auto', int, splitter or list of splits, default='auto'
        How points are held out, as in :class:`MetricClassifier`. Up to 150 points, 'auto' is ten
        folds.
    random_state : int, RandomState or None, default=0
        For the folds, and for what the trees draw.
    use_features : {'auto', True, False}, default='auto'
        Whether the features count beside the metric, as in :class:`MetricClassifier`.

    Attributes
    ----------
    metric_ : estimator
        The metric, fitted on all points.
    embedding_ : ndarray of shape (n_samples, n_components)
        The training points in learned coordinates, without those of weight zero and copies.
    targets_ : ndarray of shape (n_samples,)
        Their targets.
    n_neighbors_ : int
        How many neighbours are averaged.
    temperature_ : float
        The width τ, as a multiple of the spread of ``embedding_``.
    weights_ : ndarray of shape (2,) or (5,)
        What the mean of neighbours and the linear score count; then, where features are used, their
        linear score, the mean of the trees, and that of the neighbours by the features.
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
    MetricClassifier : For classes.
    Kernelized : The metric that it learns.

    Notes
    -----
    Intervals are cross-conformal [1]_. A residual is divided by the spread of the neighbours'
    targets and a floor. The interval of coverage 0.9 ends at the 0.9-quantile of such residuals of
    points held out. Each of them is judged by a metric and by choices that have not seen it. So
    nine of ten new points lie within, on average over points and training sets. For one kind of
    points by itself it may be more or fewer.

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

    _target = "number"
    _few_rows = 150  # without a fifth of them, errors are larger than those of all rows

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

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        y = column_or_1d(check_numbers(y, X), warn=True)
        sample_weight = without_copies(self, X, y, sample_weight)
        self._kept, weights = rows_and_weights(sample_weight, X)
        y = np.array(rows_of(y, self._kept))
        if np.max(np.abs(y)) > _LARGEST:
            raise ValueError(
                f"Got y with numbers up to {np.max(np.abs(y)):.3g}, but expected at most "
                f"{_LARGEST:g}, whose squares are in range: use a larger unit."
            )
        self.targets_ = y
        folds = self._learn(X, y, sample_weight, weights, classes=False)
        held_out = self._held_out(_HeldOut, folds, y, y[:, None])
        choice = held_out.choose()
        self._store(choice, y, y[:, None], 0)
        self.bias_ = float(choice.combined.biases[0])
        self.floor_, scale = held_out.floor(choice)
        ratios = held_out.ratios(parts_of(folds)) / scale
        order = np.argsort(ratios, kind="stable")
        self.residuals_ = ratios[order]
        self._residual_mass = held_out.mass_of(order)

    def _moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        def combine(votes: list[np.ndarray], linear: np.ndarray, features: Any) -> np.ndarray:
            predicted = _stacked(votes, linear, features) @ self.weights_
            return np.stack([predicted + self.bias_, votes[0][:, 1]], axis=1)

        both = self._combined(X, combine)
        return both[:, 0], both[:, 1]

    def _votes(self, found: Neighbors, k: int, width: float, rows: Any = slice(None)) -> np.ndarray:
        weights = self._vote_weights(found, k, width, rows)
        return np.stack(weighted_moments(found, weights, self.targets_[rows]), axis=1)

    def _gain(self, said: np.ndarray, sums: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return -((said / sums - truth) ** 2)

    def _quantile(self, coverage: float) -> float:
        n = len(self.residuals_)
        SHARE.require("coverage", coverage, hint="try 0.9")
        mass = vars(self).get("_residual_mass")
        mass = np.ones(n) if mass is None else mass
        needed = (np.sum(mass) + 1.0) * float(coverage)  # a new point counts one, as on average
        place = int(np.searchsorted(np.cumsum(mass), needed * (1 - 1e-12))) + 1
        if place > n:
            raise ValueError(
                f"Got coverage={coverage!r}, but {n} points held out can promise at most "
                f"{n / (n + 1):.3f}: try less, or more training points."
            )
        return float(self.residuals_[place - 1])


@dataclass
class _HeldOut(HeldOut):
    """Points held out: votes are means and spreads of the neighbours' targets."""

    combine = staticmethod(sum_of_numbers)
    gives_classes = False
    known = 0.5, 0.5  # of neighbours and of linear scores
    ridges = RIDGES

    stacked = staticmethod(lambda votes, lines, features: _stacked(votes, lines, features))

    def floor(self, choice: Choice, rows: Any = slice(None)) -> tuple[float, float]:
        """The floor for local spreads that makes intervals short, and the mean spread then."""
        residuals, mass = self._residuals(choice, rows), self.mass_of(rows)
        if not len(residuals):
            return _FLOORS[0], 1.0
        counts = np.ones(len(residuals)) if mass is None else mass
        typical = float(np.sqrt(np.average(residuals**2, weights=mass))) or 1.0
        choices = []
        for floor in _FLOORS:
            local = np.hypot(self._spreads(choice)[rows], floor * typical)
            end = float(weighted_quantiles(residuals / local, counts, _TYPICAL))
            choices.append((end * local.mean(), floor * typical, float(local.mean())))
        return min(choices, key=lambda each: each[0])[1:]

    def ratios(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Residuals by local spreads relative to their mean, each as the other parts chose."""
        ratios = np.empty(len(self.truth))
        for others, own in parts:
            choice = self.choose(others)
            floor, scale = self.floor(choice, others)
            local = np.hypot(self._spreads(choice)[own], floor)
            ratios[own] = self._residuals(choice, own) / local * scale
        return ratios

    def _spreads(self, choice: Choice) -> np.ndarray:
        return self.votes[0].said(choice.votes[0])[:, 1]

    def _residuals(self, choice: Choice, rows: Any) -> np.ndarray:
        predicted = self.scores(choice.votes, choice.ridge, rows) @ choice.combined.weights
        return np.abs(self.truth[rows] - predicted - choice.combined.biases[0])


def _stacked(votes: list[np.ndarray], linear: np.ndarray, features: Any) -> np.ndarray:
    """Means of neighbours, linear scores, and what features say."""
    scores = [votes[0][:, :1], linear[:, :1], *([] if features is None else [features[:, 0, :]])]
    return np.hstack([*scores, *(means[:, :1] for means in votes[1:])])
