"""Scores of a classifier that uneven classes do not flatter."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss, roc_auc_score

from kernelmetric.inputs import check_weights, rows_of

_UNEVEN = 2.0  # the largest class has more than so many times the rows of the smallest


class ClassScores(NamedTuple):
    """What accuracy does not say about predicted classes.

    Parameters
    ----------
    accuracy, balanced_accuracy : float
        Share of rows predicted right, and the mean of such shares of each class.
    roc_auc : float
        Area under the ROC curve of a class against the others, a mean over the classes; NaN where
        the rows are of one class, or there are no scores.
    log_loss : float
        NaN where there are no probabilities.
    majority, largest : float, str
        Share of the largest class, which is the accuracy of always answering it, and that class.
    classes : tuple of str
        All classes.
    confusion : tuple of tuples of int
        Rows of each class, by what was predicted for them; their weights, where they have any.
    """

    accuracy: float
    balanced_accuracy: float
    roc_auc: float
    log_loss: float
    majority: float
    largest: str
    classes: tuple[str, ...]
    confusion: tuple[tuple[Any, ...], ...]

    @property
    def warning(self) -> str:
        """A sentence where always answering the largest class would be right more often."""
        if self.accuracy >= self.majority:
            return ""
        return (
            f"accuracy {100 * self.accuracy:.1f} % is below the {100 * self.majority:.1f} % of "
            f"always answering {self.largest!r}."
        )


def is_uneven(y: Any) -> bool:
    """Whether the largest class has more than twice the rows of the smallest.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.

    Returns
    -------
    bool
        Whether accuracy alone would flatter.

    Examples
    --------
    >>> from kernelmetric.evaluation import is_uneven
    >>> is_uneven([0, 0, 1]), is_uneven([0, 0, 0, 1])
    (False, True)
    """
    counts = np.unique(np.asarray(y), return_counts=True)[1]
    return bool(counts.max() > _UNEVEN * counts.min())


def class_scores(classifier: Any, X: Any, y: Any, sample_weight: Any = None) -> ClassScores:
    """Judge a fitted classifier by more than its accuracy.

    Parameters
    ----------
    classifier : fitted classifier
        With ``predict``; ranking takes its probabilities, or else its decision function.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,)
        Rows and their classes.
    sample_weight : array-like of shape (n_samples,), default=None
        What the rows count in every score, and in the table of confusions.

    Returns
    -------
    ClassScores
        The scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from kernelmetric.evaluation import class_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> class_scores(KNeighborsClassifier().fit(X, y), X, y).confusion
    ((50, 0, 0), (0, 47, 3), (0, 2, 48))
    """
    y, known = np.asarray(y), np.asarray(classifier.classes_)
    w = None
    if sample_weight is not None:
        w = check_weights(sample_weight, len(y))
        if not w.all():
            X, y, w = rows_of(X, np.flatnonzero(w)), y[w > 0], w[w > 0]
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, weights=w)
    every = np.union1d(known, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are in one of the two only
        predicted = np.asarray(classifier.predict(X))
        balanced = float(balanced_accuracy_score(y, predicted, sample_weight=w))
        table = confusion_matrix(y, predicted, labels=every, sample_weight=w)
    loss = area = float("nan")
    scores, probable = _graded(classifier, X)
    if np.isin(classes, known).all():
        if probable:
            loss = float(log_loss(y, scores, labels=known, sample_weight=w))
        if scores is not None and len(classes) > 1:
            columns = scores[:, np.searchsorted(known, classes)].T
            areas = [roc_auc_score(codes == c, s, sample_weight=w) for c, s in enumerate(columns)]
            area = float(np.mean(areas))
    return ClassScores(
        float(np.average(predicted == y, weights=w)),
        balanced,
        area,
        loss,
        float(counts.max() / counts.sum()),
        str(classes[counts.argmax()]),
        tuple(map(str, every)),
        tuple(tuple(row) for row in table.tolist()),
    )


def _graded(classifier: Any, X: Any) -> tuple[np.ndarray | None, bool]:
    """A score for every class, one column each, and whether the scores are probabilities."""
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X), dtype=np.float64), True
    if not hasattr(classifier, "decision_function"):
        return None, False
    values = np.asarray(classifier.decision_function(X), dtype=np.float64)
    return (np.column_stack([-values, values]) if values.ndim == 1 else values), False
