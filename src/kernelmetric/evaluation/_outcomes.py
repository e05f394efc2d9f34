"""What an estimator says of points, and by how much two answers differ."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import rand_score
from sklearn.utils import get_tags

from kernelmetric.compute import is_sparse
from kernelmetric.compute.reductions import squared_distances


class Answer(NamedTuple):
    """One result of a fitted estimator: the method it came from, what kind, the array."""

    method: str
    kind: str
    values: np.ndarray


def answers(
    estimator: Any, X: np.ndarray, y: Any, probes: np.ndarray, fit_params: dict[str, Any]
) -> list[Answer]:
    """Everything a clone of the estimator says of the probes after a fit on X and y.

    Where it knows only its training points, what it says of those; its warnings are not repeated.
    """
    target = () if y is None else (y,)
    with warnings.catch_warnings(), config_context(transform_output="default"):
        warnings.simplefilter("ignore")  # a fit that did not converge is judged by its result
        fitted = clone(estimator)
        if not any(hasattr(fitted, m) for m in ("predict", "transform", "score_samples")):
            return [_on_training_points(fitted, X, target, fit_params)]
        fitted.fit(X, *target, **fit_params)
        return _on_probes(fitted, probes)


def difference(before: list[Answer], after: list[Answer]) -> float:
    """The largest change between two lists of answers, over the methods that are in both."""
    later = {answer.method: answer.values for answer in after}
    return max(
        _CHANGE[answer.kind](answer.values, later[answer.method])
        for answer in before
        if answer.method in later
    )


def constant(found: list[Answer]) -> bool:
    """Whether every answer is the same for all points: then no change would be seen."""
    return all(len(np.unique(answer.values, axis=0)) < 2 for answer in found)


def _on_probes(fitted: Any, probes: np.ndarray) -> list[Answer]:
    kind = "clusters"  # labels without names, also those of a mixture
    if is_classifier(fitted) or get_tags(fitted).estimator_type == "outlier_detector":
        kind = "labels"
    elif is_regressor(fitted):
        kind = "values"
    found = [_ask(fitted, "predict", kind, probes), _ask(fitted, "transform", "points", probes)]
    labels = found[0]
    if labels is not None and kind != "values":
        # Scores see more than labels do, but count only where the labels are made of them:
        # NearestCentroid predicts by distances, and its decision function is another classifier.
        scores = ("predict_proba", "decision_function")
        graded = (_ask(fitted, method, "values", probes) for method in scores)
        classes = getattr(fitted, "classes_", None)
        found += [
            score._replace(kind="values" if kind == "labels" else "points")  # clusters: no order
            for score in graded
            if score is not None and _decides(score.values, labels.values, classes)
        ]
    if labels is None and found[1] is None:
        found.append(_ask(fitted, "score_samples", "values", probes))
    return [answer for answer in found if answer is not None]


def _ask(fitted: Any, method: str, kind: str, probes: np.ndarray) -> Answer | None:
    try:
        values = _dense(getattr(fitted, method)(probes))
        if method == "decision_function" and values.ndim == 2:
            # what all classes share decides nothing
            values = values - values.mean(axis=1, keepdims=True)
        return Answer(method, kind, values)
    except (AttributeError, NotImplementedError):  # LDA has a transform for some solvers only
        return None


def _decides(scores: np.ndarray, labels: np.ndarray, classes: Any) -> bool:
    """Whether the labels are those of the largest score, or of the sign of a single one."""
    if scores.ndim == 1:
        classes = np.array([-1, 1]) if classes is None else classes
        return bool(np.all(classes[(scores > 0).astype(int)] == labels))
    largest = np.argmax(scores, axis=1)
    return bool(np.all((largest if classes is None else classes[largest]) == labels))


def _on_training_points(fitted: Any, X: np.ndarray, target: tuple, fit_params: dict) -> Answer:
    for method, kind in (("fit_predict", "clusters"), ("fit_transform", "points")):
        if hasattr(fitted, method):
            return Answer(method, kind, _dense(getattr(fitted, method)(X, *target, **fit_params)))
    raise ValueError(
        f"Got {type(fitted).__name__}, but expected an estimator with predict, transform, "
        "score_samples, fit_predict or fit_transform: nothing it learns could be compared."
    )


def _dense(values: Any) -> np.ndarray:
    values = values.toarray() if is_sparse(values) else values
    return np.asarray(values[0] if isinstance(values, tuple) else values)


def _value_change(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square of the difference, relative to the spread of the first."""
    if a.shape != b.shape:
        return float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    infinite = ~(np.isfinite(a) & np.isfinite(b))
    if np.any(infinite & (a != b)):
        return float("inf")
    a, b = a[~infinite], b[~infinite]
    spread = np.sqrt(np.mean((a - a.mean(axis=0)) ** 2)) or np.sqrt(np.mean(a**2)) or 1.0
    return float(np.sqrt(np.mean((a - b) ** 2)) / spread)


def _point_change(a: np.ndarray, b: np.ndarray) -> float:
    """The same for distances: signs, order and rotation of coordinates mean nothing."""
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return float("inf")
    Da, Db = (np.sqrt(squared_distances(Z.reshape(len(Z), -1).astype(float))) for Z in (a, b))
    return float(np.sqrt(np.mean((Da - Db) ** 2) / (np.mean(Da**2) or 1.0)))


_CHANGE: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "values": _value_change,
    "points": _point_change,
    "labels": lambda a, b: float(np.mean(a != b)),
    "clusters": lambda a, b: 1.0 - float(rand_score(a, b)),
}
