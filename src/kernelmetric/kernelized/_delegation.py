"""What an inner estimator can do, the outer one can: predictions, and being a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import like, namespace, on_clusters, on_devices, to_numpy
from kernelmetric.metric import Metric


def in_dtype_of(Z: Any, E: Any) -> Any:
    """Learned coordinates in the precision and library of those they were made from.

    Some learners widen, and those of others answer in NumPy's arrays.
    """
    dtype = getattr(E, "dtype", Z.dtype)  # a frame has none, and stays as it is
    if dtype == Z.dtype or (not hasattr(E, "__array__") and not hasattr(E, "__array_namespace__")):
        return E
    return like(E, Z) if namespace(E).isdtype(dtype, "real floating") else E


def placed_among(metric: Any, X: Any, rows: np.ndarray, E: Any) -> Any:
    """Coordinates of rows that a fit has seen, among those of the others as new points."""
    seen_as_new = metric._embed(X)
    places = np.array(to_numpy(seen_as_new))
    places[rows] = to_numpy(E)
    return like(places, seen_as_new)


def inner_has(*methods: str):
    """Condition for ``available_if``: the inner estimator, fitted or not, has one of these."""

    def check(self: Any) -> bool:
        if not any(hasattr(self._inner, method) for method in methods):
            getattr(self._inner, methods[0])  # its AttributeError is ours
        return True

    return check


def attribute_of(part: str, name: str, meaning: str) -> Any:
    """A property that is the attribute of a part."""

    def attribute(self: Any) -> Any:
        return getattr(getattr(self, part), name)

    return property(attribute, doc=meaning)


def _delegated(name: str, summary: str, shape: str) -> Any:
    """A method of the inner estimator, there where that has it."""

    def method(self: Any, X: Any) -> Any:
        return self._through(name, X)

    method.__name__, method.__qualname__ = name, f"Predictions.{name}"
    method.__doc__ = f"""{summary}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape {shape}
            One for each point.
        """
    return available_if(inner_has(name))(on_clusters(on_devices(method)))


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

    predict = _delegated("predict", "Predictions of the inner estimator.", "(n_samples,)")
    predict_proba = _delegated(
        "predict_proba", "Class probabilities by the inner estimator.", "(n_samples, n_classes)"
    )
    predict_log_proba = _delegated(
        "predict_log_proba", "Logarithms of class probabilities.", "(n_samples, n_classes)"
    )
    decision_function = _delegated(
        "decision_function", "Decision values of the inner estimator.", "(n_samples, ...)"
    )
    score_samples = _delegated(
        "score_samples",
        "Score of every point by the inner density, or outlier detector: the lower, the stranger.",
        "(n_samples,)",
    )

    classes_ = attribute_of("_inner", "classes_", "Classes known to the inner classifier.")
    offset_ = attribute_of("_inner", "offset_", "What an outlier detector takes from its scores.")


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

    def places(self, X: Any) -> Any:
        """Where the rows of a table lie among each other.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, n_components)
            As the ``places`` of ``best_estimator_`` gives them.
        """
        check_is_fitted(self)
        with config_context(transform_output="default"):
            return self._best.places(X)

    def get_mahalanobis_matrix(self) -> Any:
        """The matrix M of the best metric, on the coordinates of its space.

        Returns
        -------
        array of shape (rank, rank)
            As ``best_estimator_`` gives it.
        """
        check_is_fitted(self)
        return self._best.get_mahalanobis_matrix()

    components_ = attribute_of("_best", "components_", "The learner's map on the coordinates.")
    n_features_in_ = attribute_of("_best", "n_features_in_", "Number of features seen in fit.")
    feature_names_in_ = attribute_of("_best", "feature_names_in_", "Names of these features.")
    recipe_ = attribute_of("_best", "recipe_", 'What "auto" became in the best metric.')
    _n_features_out = attribute_of("_best", "_n_features_out", "Number of learned coordinates.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    @property
    def _best(self) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"This {type(self).__name__} holds no fitted metric: expected fit with refit=True."
            )
        return vars(self)["best_estimator_"]
