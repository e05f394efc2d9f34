"""What a classifier and a regressor in a learned metric share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric.compute import CollectionsMixin, Weights, checked_weights, weigh
from kernelmetric.kernelized._delegation import attribute_of
from kernelmetric.kernelized._parts import check_estimator, tags_of
from kernelmetric.metric import refuse_signed
from kernelmetric.prediction._cross_fit import (
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
from kernelmetric.prediction._linear import OWN, left_out_scores, linear_scores, own_scores
from kernelmetric.prediction._neighbors import (
    MOST,
    Neighbors,
    faiss_index,
    nearest,
    nearest_by_faiss,
    nearest_others,
    spread,
)
from kernelmetric.prediction._novelty import (
    RANK,
    has_kernel_distance,
    kernel_distances,
    usual_kernel_distance,
)

FEW = 500  # points: with so few, a kernel that was chosen with a point knows its label
_FOLDS = 5
_LARGEST = 1e150  # of a target: sums of squares of larger ones overflow


class MetricPredictor(CollectionsMixin, BaseEstimator):
    """A metric, its training points in learned coordinates, and what neighbours there say.

    Classes that mix it in define ``_default_metric()``, call ``_learn`` in their fit and
    ``_neighbors`` in their predictions.
    """

    metric: Any
    metric_: Any
    embedding_: np.ndarray
    n_neighbors_: int
    temperature_: float
    _kept: np.ndarray | None
    _n_given: int

    def __init__(self, metric=None, *, cv="auto", index=None, random_state=0):
        self.metric = metric
        self.cv = cv
        self.index = index
        self.random_state = random_state

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
        whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
        if not whole or not 1 <= k <= len(self.embedding_):
            raise ValueError(
                f"Got n_neighbors={k!r}, but expected an integer from 1 to "
                f"{len(self.embedding_)}, the number of training points: try 5."
            )
        found = self._neighbors(embedded(self.metric_, X), int(k))
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
            Minus the distance to the fifth nearest training point, divided by the median that
            points which were left out have. The distance is that of the kernel, where the metric
            has one, so it stops growing where the kernel is zero; otherwise the learned one.
        """
        check_is_fitted(self)
        if has_kernel_distance(self.metric_):
            return -kernel_distances(self.metric_, X) / self.usual_distance_
        found = self._neighbors(embedded(self.metric_, X), min(RANK, len(self.embedding_)))
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

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in super().__getstate__().items() if name != "_faiss"}

    def _default_metric(self) -> Any:
        raise NotImplementedError

    def _given_metric(self) -> Any:
        return self._default_metric() if self.metric is None else self.metric

    def _check_parameters(self) -> None:
        if self.metric is not None:
            check_estimator(self, "metric", "Kernelized(LMNN())")
            if not hasattr(self.metric, "transform"):
                raise ValueError(
                    f"Got metric={self.metric!r}, which has no transform, but expected a metric: "
                    "try Kernelized(LMNN())."
                )
        if isinstance(self.cv, str) and not self._chooses_folds:
            raise ValueError(
                f"Got cv={self.cv!r}, but expected 'auto', a number of folds, or a splitter of "
                "scikit-learn's: try 'auto'."
            )
        if self.index is not None and not isinstance(self.index, str):
            raise ValueError(
                f"Got index={self.index!r}, but expected None for an exact search, or what "
                "faiss.index_factory makes: try 'HNSW32'."
            )

    def _weighed(
        self, X: Any, sample_weight: Any
    ) -> tuple[np.ndarray | None, Weights | None, np.ndarray | None]:
        """The rows with weight, None for all; their weights; and the same as a metric gets them."""
        rows, weights = weigh(sample_weight, X)
        self._kept, self._n_given = rows, _num_samples(X)
        if sample_weight is None:
            return rows, weights, None
        w = checked_weights(sample_weight, _num_samples(X))
        return rows, weights, w if rows is None else w[rows]

    def _learn(
        self, X: Any, y: np.ndarray, *, classes: bool, sample_weight: np.ndarray | None = None
    ) -> list[Fold]:
        """Fit the metric on all points; coordinates of points that metrics have not seen.

        A metric whose space leaves points out gives them by its one fit. Of 500 points or fewer,
        whose labels a kernel and a map that were chosen with them know, all is fitted in folds.
        """
        (X,) = indexable(X)
        if not classes and np.max(np.abs(y)) > _LARGEST:
            raise ValueError(
                f"Got y with numbers up to {np.max(np.abs(y)):.3g}, but expected at most "
                f"{_LARGEST:g}, whose squares are in range: use a larger unit."
            )
        if get_tags(self).input_tags.pairwise and not is_array_api_obj(X):
            X = np.asarray(X)  # of a Gram matrix, folds take columns too
        metric = clone(self._given_metric())
        E = learned_coordinates(metric, X, y, sample_weight)
        refuse_signed(metric)
        n_given = self.__dict__.pop("_n_given")  # rows without weight among them
        kept = None if self._kept is None else (self._kept, n_given)
        if self._chooses_folds and len(y) > FEW and leaves_out(metric):
            n_classes = int(np.max(y)) + 1 if classes else 0
            own = own_scores(metric, E, y, n_classes, vars(self).get("_mass"))
            folds = [left_out_fold(E, self.random_state, own)]
        else:
            cv = _FOLDS if self._chooses_folds else self.cv
            splits = splits_of(cv, X, y, self.random_state, classes=classes, kept=kept)
            fresh = settled(metric) if classes and len(y) > FEW else unsettled(metric)
            folds = list(cross_fitted(fresh, X, y, splits, sample_weight, classes=classes))
        self.__dict__.pop("_faiss", None)  # of an earlier fit
        self.metric_, self.embedding_ = metric, E.copy()  # a metric may hand on the caller's X
        self.usual_distance_ = self._usual_distance(folds)
        if self.index is not None:
            self._faiss  # noqa: B018 (a wrong factory is refused by fit, not by predict)
        return folds

    @property
    def _chooses_folds(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "auto"

    def _usual_distance(self, folds: list[Fold]) -> float:
        if has_kernel_distance(self.metric_):
            return usual_kernel_distance(self.metric_)
        ratios = [
            near.squares[:, min(RANK, near.squares.shape[1]) - 1] ** 0.5 / spread(fold.E)
            for near, fold in zip(found_in(folds), folds, strict=True)
        ]
        usual = float(np.median(np.concatenate(ratios))) if ratios else 1.0
        return (usual or 1.0) * spread(self.embedding_)

    def _neighbors(self, E: np.ndarray, k: int) -> Neighbors:
        if self.index is None:
            return nearest(self.embedding_, E, k)
        return nearest_by_faiss(self._faiss, self.embedding_, E, k)

    def _votes_of(self, found: Neighbors, k: int, width: float, rows: Any = None) -> np.ndarray:
        """What each of the first k neighbours counts: by distance, and by its own weight."""
        votes, mass = found.weights(k, width), vars(self).get("_mass")
        if mass is None:
            return votes
        return votes * (mass if rows is None else mass[rows])[found.rows[:, :k]]

    def _held_out_mass(self, folds: list[Fold]) -> np.ndarray | None:
        """What the points held out count; None where all count alike."""
        mass = vars(self).get("_mass")
        return None if mass is None else np.concatenate([mass[fold.test] for fold in folds] or [[]])

    @property
    def _width(self) -> float:
        return self.temperature_ * spread(self.embedding_)

    @cached_property
    def _faiss(self) -> Any:
        return faiss_index(self.embedding_, self.index)


def found_in(folds: list[Fold]) -> list[Neighbors]:
    """Neighbours of the points held out, among those that their metric saw."""
    return [
        nearest_others(fold.E, fold.test, MOST)
        if fold.left_out
        else nearest(fold.E, fold.E_new, MOST)
        for fold in folds
    ]


def held_out_scores(fold: Fold, Y: np.ndarray, ridge: float, mass: np.ndarray | None) -> np.ndarray:
    """Linear scores of the points held out, by the others."""
    if ridge == OWN and fold.own is not None:
        return fold.own(fold.E_new)
    own = None if mass is None else mass[fold.train]
    if fold.left_out:
        return left_out_scores(fold.E, Y, ridge, own)[fold.test]
    return linear_scores(fold.E, Y[fold.train], ridge, own)(fold.E_new)


def require_points(X: Any) -> None:
    """Refuse a table without rows, before anybody counts its classes."""
    if _num_samples(X) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={np.shape(X)}), but expected some points."
        )
