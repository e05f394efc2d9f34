"""What the estimators inside can do, the outer one can: predictions, and being a metric."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric.compute import like, map_rows, namespace, to_device, to_numpy
from kernelmetric.graphs import are_tuples, points_of_tuples
from kernelmetric.inputs import check_points, on_clusters, to_host
from kernelmetric.inputs._methods import on_devices
from kernelmetric.kernelized._folded import coordinates
from kernelmetric.kernelized._places import fingerprint
from kernelmetric.kernelized._supervision import coordinates_of_tuples
from kernelmetric.kernels import is_frame
from kernelmetric.metric import Metric
from kernelmetric.spaces._base import own
from kernelmetric.spaces._pre_images import PreImages


def in_dtype_of(Z: Any, E: Any) -> Any:
    """Learned coordinates in the precision and library of those they were made from."""
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


def _of_points(method: Callable[..., Any], name: str, summary: str, shape: str) -> Any:
    """A function of points as a method with a docstring."""
    method.__name__, method.__qualname__ = name, f"Predictions.{name}"
    method.__doc__ = f"""{summary}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; for a precomputed kernel, kernel values with the training points.

        Returns
        -------
        array of shape {shape}
            One for each point.
        """
    return method


def _delegated(name: str, summary: str, shape: str = "(n_samples,)") -> Any:
    """A method of the inner estimator, available where that has it."""

    def method(self: Any, X: Any) -> Any:
        return self._through(name, X)

    method = _of_points(method, name, summary, shape)
    return available_if(inner_has(name))(on_clusters(on_devices(method)))


class Predictions:
    """``predict`` and its kin, wherever the inner estimator has them.

    Classes that mix it in say which estimator works on their coordinates (``_inner``: the fitted
    one, or before the fit the parameter) and how a method of it is reached (``_through``).
    """

    _inner: Any
    _through: Any

    predict = _delegated("predict", "Predictions of the inner estimator.")
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
        "score_samples", "Scores by the inner density or outlier detector: low ones are strange."
    )

    classes_ = attribute_of("_inner", "classes_", "Classes known to the inner classifier.")
    offset_ = attribute_of("_inner", "offset_", "What an outlier detector takes from its scores.")


class NewPoints(Predictions, PreImages, Metric):
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

    def places(self, X: Any) -> Any:
        """Where the rows of a table lie among each other.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, n_components)
            Of the table that the metric was fitted to, ``embedding_``, where it has one; of any
            other, what :meth:`transform` gives.
        """
        check_is_fitted(self)
        X = self.kernel_.points(X)
        E, known = (vars(self).get(name) for name in ("embedding_", "_training_table"))
        if E is None or are_tuples(X) or _num_samples(X) != len(E):
            return self.transform(X)
        return own(E) if fingerprint(self._checked(X)) == known else self.transform(X)

    @available_if(inner_has("score"))
    @on_clusters
    def score(self, X: Any, y: Any = None) -> float:
        """Score of the wrapped estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; tuples of them for a learner from tuples.
        y : array-like of shape (n_samples,), default=None
            Labels or targets.

        Returns
        -------
        float
            The score.
        """
        return self.learner_.score(self._coordinates(X), *(() if y is None else (y,)))

    def _checked(self, X: Any) -> Any:
        """Other points, which must be like those of the fit."""
        if (schema := getattr(self, "schema_", None)) is not None:
            return to_device(schema.transform(X if is_frame(X) else np.asarray(X)))
        X = self.kernel_.points(X)
        return check_points(self, X, reset=False, accept_sparse=self.kernel_.accepts_sparse)

    def _coordinates(self, X: Any) -> Any:
        check_is_fitted(self)
        X = self.kernel_.points(X)
        if are_tuples(X):
            points, rows = points_of_tuples(X)
            return coordinates_of_tuples(self._coordinates(points), rows)
        return coordinates(self.space_, self._checked(X))

    def _through(self, method: str, X: Any) -> Any:
        return self._apply(lambda Z: getattr(self.learner_, method)(Z), X)

    @config_context(transform_output="default")
    def _apply(self, function: Any, X: Any) -> Any:
        """Space, then a function of coordinates, one block of rows at a time."""
        check_is_fitted(self)
        X = self.kernel_.points(X)
        if are_tuples(X):
            return function(self._coordinates(X))
        X = self._checked(X)
        width = self.space_._n_features_out + X.shape[1]

        def work(rows: slice) -> Any:
            Z = coordinates(self.space_, X[rows, :])
            return function(Z if isinstance(self.learner_, Metric) else to_host(Z))

        return map_rows(work, X.shape[0], 4 * 8 * width)


def _of_best(name: str, summary: str) -> Any:
    """A method of the best metric."""

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        with config_context(transform_output="default"):
            return getattr(self._best, name)(X)

    return _of_points(method, name, summary, "(n_samples, n_components)")


class BestMetric(Metric):
    """The metric of ``best_estimator_``: what a search is once it has ended."""

    transform = _of_best("transform", "Map points to coordinates of the learned distance.")
    places = _of_best("places", "Where the rows of a table lie among each other.")

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
