"""How a fitted :class:`Kernelized` answers for points: the space, then the learner."""

from __future__ import annotations

from typing import Any

from sklearn import config_context
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import map_rows, to_host
from kernelmetric.graphs import are_tuples, points_of_tuples
from kernelmetric.kernelized._delegation import Predictions, attribute_of
from kernelmetric.kernelized._folded import coordinates
from kernelmetric.kernelized._tables import points_like_fitted
from kernelmetric.kernelized._tuples import coordinates_of_tuples
from kernelmetric.metric import Metric


class NewPoints(Predictions):
    """Points, or tuples of them, through ``space_`` and a method of ``learner_``."""

    learner: Any
    learner_: Any
    kernel_: Any
    space_: Any

    components_ = attribute_of("learner_", "components_", "The learner's map on the coordinates.")
    labels_ = attribute_of("learner_", "labels_", "Labels given by the wrapped clusterer.")

    @property
    def _inner(self) -> Any:
        return getattr(self, "learner_", self.learner)

    @property
    def signature_(self) -> Any:
        """Signs of the rows of ``components_``, where the learner has any; else None."""
        return getattr(self.learner_, "signature_", None)

    @property
    def _n_features_out(self) -> int:
        if hasattr(self.learner_, "_n_features_out"):
            return self.learner_._n_features_out
        return len(self.learner_.get_feature_names_out())

    def _checked(self, X: Any) -> Any:
        return points_like_fitted(self, X)

    def _coordinates(self, X: Any) -> Any:
        check_is_fitted(self)
        if are_tuples(X):
            points, rows = points_of_tuples(X)
            return coordinates_of_tuples(self._coordinates(points), rows)
        return coordinates(self.space_, self._checked(X))

    def _through(self, method: str, X: Any) -> Any:
        return self._apply(lambda Z: getattr(self.learner_, method)(Z), X)

    @config_context(transform_output="default")
    def _apply(self, function: Any, X: Any) -> Any:
        """Space, then a function of coordinates, one block of rows at a time."""
        if are_tuples(X):
            return function(self._coordinates(X))
        check_is_fitted(self)
        X = self._checked(X)
        width = self.space_._n_features_out + X.shape[1]

        def work(rows: slice) -> Any:
            Z = coordinates(self.space_, X[rows, :])
            return function(Z if isinstance(self.learner_, Metric) else to_host(Z))

        return map_rows(work, X.shape[0], 4 * 8 * width)
