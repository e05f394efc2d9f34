"""Scores of a classifier that uneven classes do not flatter."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss, roc_auc_score
from sklearn.pipeline import Pipeline

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
    def measure(self) -> str:
        """The score that fits the classes: accuracy, or if they are uneven how rows are ranked."""
        sizes = np.sum(self.confusion, axis=1)
        if not _uneven(sizes[sizes > 0]):
            return "accuracy"
        return "roc_auc" if np.isfinite(self.roc_auc) else "balanced_accuracy"

    def error(self, measure: str) -> float:
        """Standard error of a score.

        Parameters
        ----------
        measure : 'accuracy', 'balanced_accuracy' or 'roc_auc'
            Which score.

        Returns
        -------
        float
            Binomial; for the area that of Hanley and McNeil: of the smaller of two classes, or of
            the mean of each class beside the others.
        """
        table = np.asarray(self.confusion, dtype=float)
        sizes = table.sum(axis=1)
        right, sizes = np.diag(table)[sizes > 0], sizes[sizes > 0]
        n, a = sizes.sum(), float(getattr(self, measure))
        if measure == "accuracy":
            return float(np.sqrt(a * (1 - a) / n))
        if measure == "balanced_accuracy":
            shares = right / sizes
            return float(np.sqrt(np.sum(shares * (1 - shares) / sizes)) / len(sizes))
        few = np.sort(sizes)[:1] if len(sizes) == 2 else sizes
        many = n - few
        both = (few - 1) * (a / (2 - a) - a**2) + (many - 1) * (2 * a**2 / (1 + a) - a**2)
        variances = (a * (1 - a) + both) / (few * np.maximum(many, 1))
        return float(np.sqrt(np.sum(variances)) / len(few))

    @property
    def warning(self) -> str:
        """A sentence where always answering the largest class may well be right as often."""
        reach = 2 * self.error("accuracy")
        if self.accuracy - reach > self.majority:
            return ""
        return (
            f"accuracy {100 * self.accuracy:.1f} ± {100 * reach:.1f} % is no better than always "
            f"answering {self.largest!r}, which is right for {100 * self.majority:.1f} %."
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
    return _uneven(np.unique(np.asarray(y), return_counts=True)[1])


def _uneven(sizes: np.ndarray) -> bool:
    return bool(sizes.max() > _UNEVEN * sizes.min())


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
    scores, probable = _graded(classifier, X)
    last = classifier[-1] if isinstance(classifier, Pipeline) else classifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are in one of the two only
        if hasattr(last, "_decided"):  # the neighbours of new rows are not looked for again
            predicted = last._decided(scores)
        else:
            predicted = np.asarray(classifier.predict(X))
        balanced = float(balanced_accuracy_score(y, predicted, sample_weight=w))
        table = confusion_matrix(y, predicted, labels=every, sample_weight=w)
    loss = area = float("nan")
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
