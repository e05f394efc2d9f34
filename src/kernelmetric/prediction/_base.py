"""What a classifier and a regressor in a learned metric share."""

import itertools
import math
from dataclasses import KW_ONLY, dataclass
from functools import cache
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric.compute import map_rows
from kernelmetric.compute.watch import stage, time_kept, time_left
from kernelmetric.inputs import Weights, check_weights, rows_of, unchanged_on_failure
from kernelmetric.inputs._methods import CollectionsMixin
from kernelmetric.inputs._parameters import Numbers, require_flag
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernelized._costs import check_shape, learner_seconds, neighbors_seconds, share_of
from kernelmetric.kernelized._delegation import attribute_of
from kernelmetric.kernelized._parts import check_estimator, is_auto, tags_of
from kernelmetric.kernelized._recipe import ShowsRecipe
from kernelmetric.kernelized._search import read_once
from kernelmetric.metric import refuse_signed
from kernelmetric.prediction import _neighbors as near
from kernelmetric.prediction._cross_fit import (
    ENOUGH,
    MOST_JUDGES,
    Fold,
    cross_fitted,
    embedded,
    learned_coordinates,
    leaves_out,
    left_out_fold,
    settled,
    splits_of,
    unsettled,
)
from kernelmetric.prediction._features import (
    Rows,
    asks_features,
    feature_rows,
    feature_seconds,
    placed_folds,
    score_features,
)
from kernelmetric.prediction._held_out import Choice, HeldOut, Vote, Votes, held_out_scores
from kernelmetric.prediction._scores import OWN, RIDGES, LinearScores, linear_scores, own_scores

FEW = 500  # points: with so few, a kernel that was chosen with a point knows its label
_FOLDS = 5
_TIME = 0.3  # of a time limit is kept for the folds, and at most so much for the judgement


@dataclass(eq=False, repr=False)
class MetricPredictor(ShowsRecipe, CollectionsMixin, BaseEstimator):
    """A metric, its training points in learned coordinates, and what neighbours there say.

    Classes that mix it in define ``_default_metric()``, ``_fit(X, y, sample_weight)``,
    ``_votes(found, k, width, rows)``: what the first k neighbours, of some training points, say;
    and ``_gain(said, sums, truth)``: how good votes are, by sums over neighbours that are right, or
    of their numbers, and of all weights.
    """

    metric: Any = None
    _: KW_ONLY
    cv: Any = "auto"
    random_state: Any = 0
    use_features: Any = "auto"

    _target: ClassVar[str]  # what y has for every row
    _few_rows: ClassVar[int] = 0  # up to so many are held out in twice as many folds

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the metric, and what predictions follow from it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, of any kind that the metric takes.
        y : array-like of shape (n_samples,)
            Classes, numbers or strings; for regression, numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts; zero leaves it out. It counts in the metric, in the votes, and
            among the points held out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                f"expected a {self._target} for every row."
            )
        with unchanged_on_failure(self), stage(type(self).__name__):
            X = read_once(self._given_metric(), X)
            self._fit(X, y, sample_weight)
        return self

    def estimate_time(self, n_samples: int, n_features: int) -> float:
        """Seconds that a fit takes on this machine: those of the metric's fits, and of the votes.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the training points.

        Returns
        -------
        float
            An estimate, as :meth:`Kernelized.estimate_time` gives it.

        Examples
        --------
        >>> from kernelmetric import MetricClassifier
        >>> MetricClassifier().estimate_time(100_000, 30) > 1
        True
        """
        check_shape(n_samples, n_features)
        self._check_parameters()
        metric = self._given_metric()
        one_fit = self._needs_one_fit(metric, n_samples)
        metric = metric[-1] if isinstance(metric, Pipeline) else metric

        def seconds(n: int) -> float:
            if hasattr(metric, "estimate_time"):
                return metric.estimate_time(n, n_features)
            return learner_seconds(metric, n, n_features)

        judged = neighbors_seconds(min(n_samples, MOST_JUDGES), n_samples)
        if self.use_features is True or (is_auto(self.use_features) and self.metric is None):
            judged += feature_seconds(
                n_samples, n_features, share_of(getattr(metric, "space", None))
            )
        if one_fit:
            return seconds(n_samples) + judged
        usual = self._n_folds(n_samples)
        n_folds = max(2, int(self.cv)) if isinstance(self.cv, Integral) else usual
        held_out = n_samples / n_folds  # of these, 1,000 suffice
        n_fits = min(n_folds, math.ceil(ENOUGH / held_out))
        return seconds(n_samples) + n_fits * seconds(math.ceil(n_samples - held_out)) + judged

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """The training points nearest to X in the learned metric, to show beside a prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        n_neighbors : int, default=None
            How many; None means as many as vote, ``n_neighbors_``.
        return_distance : bool, default=True
            Whether to return the distances as well.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Learned distances, ascending; only if asked for.
        rows : ndarray of shape (n_samples, n_neighbors)
            Row numbers of the training points.
        """
        check_is_fitted(self)
        k = self.n_neighbors_ if n_neighbors is None else n_neighbors
        Numbers(Integral, low=1, high=len(self.embedding_)).require("n_neighbors", k)
        found = near.nearest(self.embedding_, embedded(self.metric_, X), int(k))
        kept = vars(self).get("_kept")  # where rows without weight were left out
        rows = found.rows if kept is None else kept[found.rows]
        return (np.sqrt(found.squares), rows) if return_distance else rows

    def score_samples(self, X: Any) -> np.ndarray:
        """How usual every point is: about -1 for points like the training points, less farther off.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Minus the distance to the fifth nearest training point, divided by the median of points
            left out. The distance is that of the kernel, where the metric has one.
        """
        check_is_fitted(self)
        if near.has_kernel_distance(self.metric_):
            return -near.kernel_distances(self.metric_, X) / self.usual_distance_
        found = near.nearest(self.embedding_, embedded(self.metric_, X), near.RANK)
        return -np.sqrt(found.squares[:, -1]) / self.usual_distance_

    n_features_in_ = attribute_of("metric_", "n_features_in_", "Number of features seen in fit.")
    feature_names_in_ = attribute_of("metric_", "feature_names_in_", "Names of these features.")
    recipe_ = attribute_of("metric_", "recipe_", 'What "auto" became in the metric.')

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "metric_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = tags_of(self._given_metric(), tags)
        tags.input_tags, tags.non_deterministic = inner.input_tags, inner.non_deterministic
        tags.target_tags.required = True
        return tags

    def _given_metric(self) -> Any:
        return self._default_metric() if self.metric is None else self.metric

    def _check_parameters(self) -> None:
        if self.metric is not None:
            check_estimator(self, "metric", "Kernelized(LMNN())")
            if not hasattr(self.metric, "transform"):
                raise ValueError(
                    f"Got metric={self.metric!r}, which has no transform: try Kernelized(LMNN())."
                )
        require_flag("use_features", self.use_features)
        if isinstance(self.cv, str) and not is_auto(self.cv):
            raise ValueError(
                f"Got cv={self.cv!r}, but expected 'auto', a number of folds, or a splitter."
            )

    def _learn(
        self, X: Any, y: np.ndarray, sample_weight: Any, weights: Weights | None, *, classes: bool
    ) -> list[Fold]:
        """Fit the metric on rows with weight; coordinates of points that metrics have not seen."""
        self._mass = None if weights is None else weights.shares / weights.unit
        kept = None if self._kept is None else (self._kept, _num_samples(X))
        if sample_weight is not None:
            sample_weight = rows_of(check_weights(sample_weight, _num_samples(X)), self._kept)
        (X,) = indexable(rows_of(X, self._kept))
        if get_tags(self).input_tags.pairwise and not is_array_api_obj(X):
            X = np.asarray(X)  # of a Gram matrix, folds take columns too
        metric, wanted = clone(self._given_metric()), asks_features(self, X)
        one_fit = self._needs_one_fit(metric, len(y))
        judged = self._seconds_after(X, wanted)
        with time_kept(judged + (0.0 if one_fit else _TIME * time_left())):
            E = learned_coordinates(metric, X, y, sample_weight)
        refuse_signed(metric)
        # A metric whose space leaves points out gives them by its one fit. Of few points, whose
        # labels a kernel that was chosen with them knows, all is fitted in folds.
        if is_auto(self.cv) and len(y) > FEW and leaves_out(metric):
            n_classes = int(np.max(y)) + 1 if classes else 0
            own = own_scores(metric, E, y, n_classes, self._mass)
            folds = [left_out_fold(E, self.random_state, own)]
        else:
            cv = self._n_folds(len(y)) if is_auto(self.cv) else self.cv
            splits = splits_of(cv, X, y, self.random_state, classes=classes, kept=kept)
            fresh = settled(metric) if classes and len(y) > FEW else unsettled(metric)
            with time_kept(judged):
                folds = list(cross_fitted(fresh, X, y, splits, sample_weight, classes=classes))
        self.metric_, self.embedding_ = metric, E.copy()  # a metric may hand on the caller's X
        self.usual_distance_ = self._usual_distance(folds)
        self._rows = feature_rows(self.metric_, X) if wanted else None
        return folds

    @staticmethod
    def _seconds_after(X: Any, features: bool) -> float:
        """What a time limit keeps for the time when the metric is there."""
        if math.isinf(time_left()):
            return 0.0
        n = _num_samples(X)
        needed = 1.5 * neighbors_seconds(min(n, MOST_JUDGES), n)
        needed += feature_seconds(n, X.shape[1]) if features and hasattr(X, "shape") else 0.0
        return min(needed, _TIME * time_left())

    def _held_out(
        self, kind: type[HeldOut], folds: list[Fold], y: np.ndarray, Y: np.ndarray, **more: Any
    ) -> Any:
        """What every choice says of the points held out."""
        Z, mass, features = self.__dict__.pop("_rows"), self._mass, None
        self._features = self._points = None
        votes = [self._judged(folds, y, Y)]
        if Z is not None:
            given = Rows(Z, y, Y, mass, kind.gives_classes, self.random_state)
            scored = score_features(given, folds, one_by_one=self._draws_folds)
            self._features, features = scored
            self._points = self._features.located(Z)
            placed = placed_folds(self._points, folds, one_by_one=self._draws_folds)
            votes.append(self._judged(placed, y, Y))
        truth = np.concatenate([y[:0], *(y[fold.test] for fold in folds)])
        known = bool(folds) and all(fold.own is not None for fold in folds)
        lines = {
            ridge: _joined([held_out_scores(fold, Y, ridge, mass) for fold in folds], Y)
            for ridge in ((OWN, *kind.ridges) if known else RIDGES)
        }
        if mass is not None:
            mass = np.concatenate([[], *(mass[fold.test] for fold in folds)])
        return kind(truth, votes, lines, mass, features, **more)

    def _judged(self, folds: list[Fold], y: np.ndarray, Y: np.ndarray) -> Votes:
        """What neighbours in one space say of the points held out."""

        def said(vote: Vote) -> np.ndarray:
            k, width = vote
            parts = (self._votes(f.found, k, width * near.spread(f.E), f.train) for f in folds)
            return _joined(list(parts), Y)

        most = min([len(y), *(len(fold.E) for fold in folds)])
        numbers = sorted({min(k, most) for k in near.NUMBERS})
        none = np.empty((len(numbers) * len(near.TEMPERATURES), 0))
        gains = np.concatenate([none, *(self._gains(fold, numbers, y) for fold in folds)], axis=1)
        choices = itertools.product(numbers, near.TEMPERATURES)
        return Votes(cache(said), dict(zip(choices, gains, strict=True)))

    def _gains(self, fold: Fold, numbers: list[int], y: np.ndarray) -> np.ndarray:
        """How good votes of so many neighbours are, for each number and width, point by point."""
        found, truth = fold.found, y[fold.test]
        labels = y[fold.train][found.rows]
        values = labels == truth[:, None] if self._target == "class" else labels
        ends = np.minimum(numbers, found.rows.shape[1]) - 1
        gains = []
        for temperature in near.TEMPERATURES:
            width = temperature * near.spread(fold.E)
            weights = self._vote_weights(found, int(ends[-1]) + 1, width, fold.train)
            sums = np.cumsum(weights, axis=1)[:, ends]
            said = np.cumsum(weights * values[:, : ends[-1] + 1], axis=1)[:, ends]
            gains.append(self._gain(said, sums, truth[:, None]).T)
        return np.stack(gains, axis=1).reshape(-1, len(truth))

    def _store(self, choice: Choice, y: np.ndarray, Y: np.ndarray, n_classes: int) -> None:
        """Keep what was chosen, and the linear scores of all points that go with it."""
        (self.n_neighbors_, self.temperature_), *others = choice.votes
        for by_features in others:
            self._feature_neighbors, self._feature_width = by_features
        self.weights_ = choice.combined.weights
        linear = None
        if choice.ridge == OWN:
            linear = own_scores(self.metric_, self.embedding_, y, n_classes, self._mass)
        if linear is None:
            linear = linear_scores(self.embedding_, Y, choice.ridge or RIDGES[0], self._mass)
        self.coef_, self.intercept_ = linear

    def _combined(self, X: Any, combine: Any) -> np.ndarray:
        """What votes, linear scores and features together say of points."""
        check_is_fitted(self)
        E, said = embedded(self.metric_, X), None
        linear = LinearScores(self.coef_, self.intercept_)
        asked: list[Any] = [(self.embedding_, E, self.n_neighbors_, self.temperature_)]
        features = vars(self).get("_features")  # which models of version 0.1 lack
        if features is not None:
            Z = feature_rows(self.metric_, X)
            said = features(Z)
            vote = self._feature_neighbors, self._feature_width
            asked.append((self._points, features.located(Z), *vote))
        widths = [width * near.spread(points) for points, *_, width in asked]

        def work(rows: slice) -> np.ndarray:
            votes = [
                self._votes(near.nearest(points, at[rows], k), k, width)
                for (points, at, k, _), width in zip(asked, widths, strict=True)
            ]
            return combine(votes, linear(E[rows]), None if said is None else said[rows])

        return map_rows(work, len(E), 8 * (16 * near.MOST + 8 * self.coef_.shape[1]))

    def _n_folds(self, n_samples: int) -> int:
        """How many folds hold points out, where nobody says."""
        return 2 * _FOLDS if n_samples <= self._few_rows else _FOLDS

    @property
    def _draws_folds(self) -> bool:
        return is_auto(self.cv) or isinstance(self.cv, Integral)

    def _needs_one_fit(self, metric: Any, n_samples: int) -> bool:
        """Whether a metric, not fitted, will place points as if they were left out."""
        space = getattr(metric, "space", None)  # a pipeline has none
        by_labels = isinstance(metric, Kernelized) and (
            is_auto(space) or getattr(space, "knows_labels", False)
        )
        return is_auto(self.cv) and n_samples > FEW and by_labels

    def _usual_distance(self, folds: list[Fold]) -> float:
        if near.has_kernel_distance(self.metric_):
            return near.usual_kernel_distance(self.metric_)
        fifth = ((fold.found.squares[:, : near.RANK][:, -1], fold.E) for fold in folds)
        ratios = [np.sqrt(squares) / near.spread(E) for squares, E in fifth]
        usual = float(np.median(np.concatenate(ratios))) if ratios else 1.0
        return (usual or 1.0) * near.spread(self.embedding_)

    def _vote_weights(self, found: near.Neighbors, k: int, width: float, rows: Any) -> np.ndarray:
        """What each of the first k neighbours counts: by distance, and by its own weight."""
        votes, mass = found.weights(k, width), vars(self).get("_mass")
        return votes if mass is None else votes * mass[rows][found.rows[:, :k]]


def _joined(parts: list[np.ndarray], Y: np.ndarray) -> np.ndarray:
    """What is said of all points held out, a column for each of Y's."""
    return np.concatenate(parts) if parts else np.empty((0, Y.shape[1]))
