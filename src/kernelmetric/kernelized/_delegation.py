"""What an inner estimator can do, the outer one can: predictions, and being a metric."""

from __future__ import annotations

from typing import Any

from sklearn import config_context
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import namespace
from kernelmetric.metric import Metric


def in_dtype_of(Z: Any, E: Any) -> Any:
    """Learned coordinates in the precision of those they were made from: some learners widen."""
    dtype = getattr(E, "dtype", Z.dtype)  # a frame has none, and stays as it is
    if dtype == Z.dtype or (not hasattr(E, "__array__") and not hasattr(E, "__array_namespace__")):
        return E
    xp = namespace(E)
    return xp.astype(E, Z.dtype) if xp.isdtype(dtype, "real floating") else E


def inner_has(*methods: str):
    """Condition for ``available_if``: the inner estimator, fitted or not, has one of these."""

    def check(self: Any) -> bool:
        if not any(hasattr(self._inner, method) for method in methods):
            getattr(self._inner, methods[0])  # its AttributeError is ours
        return True

    return check


class Predictions:
    """``predict`` and its kin, wherever the inner estimator has them.

    Classes that mix it in say which estimator works on their coordinates (``_inner``: the fitted
    one, or before the fit the parameter) and how a method of it is reached (``_through``).
    """

    @property
    def _inner(self) -> Any:
        raise NotImplementedError

    def _through(self, method: str, X: Any) -> Any:
        raise NotImplementedError

    @available_if(inner_has("predict"))
    def predict(self, X: Any) -> Any:
        """What the inner estimator predicts for X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples,)
            Predictions.
        """
        return self._through("predict", X)

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities by the inner estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities.
        """
        return self._through("predict_proba", X)

    @available_if(inner_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Decision values of the inner estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array
            Decision values.
        """
        return self._through("decision_function", X)

    @available_if(inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of class probabilities by the inner estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Logarithms of probabilities.
        """
        return self._through("predict_log_proba", X)

    @available_if(inner_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Score of every point by the inner outlier detector or density.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples,)
            Scores: the lower, the stranger.
        """
        return self._through("score_samples", X)

    @property
    def classes_(self) -> Any:
        """Classes known to the inner classifier."""
        return self._inner.classes_

    @property
    def offset_(self) -> Any:
        """What the inner outlier detector takes from its scores to decide."""
        return self._inner.offset_


class BestMetric(Metric):
    """The metric of ``best_estimator_``: what a search is once it has ended."""

    def transform(self, X: Any) -> Any:
        """Map points to the coordinates in which Euclidean distance is the learned one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; for a precomputed kernel, kernel values with the training points.

        Returns
        -------
        array of shape (n_samples, n_components)
            As the ``transform`` of ``best_estimator_`` gives them.
        """
        check_is_fitted(self)
        with config_context(transform_output="default"):
            return self._best.transform(X)

    def get_mahalanobis_matrix(self) -> Any:
        """The matrix M of the best metric, on the coordinates of its space.

        Returns
        -------
        array of shape (rank, rank)
            As ``best_estimator_`` gives it.
        """
        check_is_fitted(self)
        return self._best.get_mahalanobis_matrix()

    @property
    def components_(self) -> Any:
        """The learner's map on the coordinates of the space."""
        return self._best.components_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in fit."""
        return self._best.n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features seen in fit."""
        return self._best.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    @property
    def _best(self) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"This {type(self).__name__} holds no fitted metric: expected fit with refit=True."
            )
        return vars(self)["best_estimator_"]

    @property
    def _n_features_out(self) -> int:
        return self._best._n_features_out
