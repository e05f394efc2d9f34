"""Alternatives to a learned metric, and fits of them on the same splits, measured."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from kernelmetric.compute import repeatable
from kernelmetric.compute.watch import stage
from kernelmetric.evaluation._class_scores import ClassScores, class_scores
from kernelmetric.inputs import check_weights
from kernelmetric.inputs._parameters import SHARE

NEIGHBORS = 3  # of the Euclidean and of the learned metric: the same for both
NEIGHBORS_OF_NUMBERS = 5  # likewise, where their mean is the prediction
_INNER_FOLDS = 3
_INSIDE = ("estimator", "regressor", "learner")  # what others fit


class Trial(NamedTuple):
    """One method on one split.

    Parameters
    ----------
    method, split : str, int
        Name of the method, and number of the split from 0.
    accuracy : float
        Fraction of the test rows that were predicted right; of numbers R².
    seconds, note : float, str
        Processor time of fit and prediction, and what the method warned about.
    estimator : estimator
        The fitted method.
    scores : ClassScores or None
        What accuracy does not say; None where numbers are predicted.
    """

    method: str
    split: int
    accuracy: float
    seconds: float
    note: str
    estimator: Any
    scores: ClassScores | None


def baselines(y: Any, *, random_state: Any = 0, regression: bool = False) -> dict[str, Any]:
    """The alternatives to a learned metric: Euclidean distance, tuned neighbours, an RBF-SVM.

    Parameters
    ----------
    y, regression : array-like of shape (n_samples,), and bool, default=False
        Labels, and whether they are numbers to predict.
    random_state : int, RandomState or None, default=0
        For the inner folds.

    Returns
    -------
    dict of str to estimator
        "Euclidean": the 3 nearest neighbours, of numbers 5. "k-NN, tuned" and "RBF-SVM, tuned":
        their parameters by cross-validation. All expect scaled features.

    Examples
    --------
    >>> from kernelmetric.evaluation import baselines
    >>> list(baselines([0, 1] * 20))
    ['Euclidean', 'k-NN, tuned', 'RBF-SVM, tuned']
    """
    counts = np.unique(np.asarray(y), return_counts=True)[1]
    # An outer split may take half of a class.
    stratified = not regression and counts.min() >= 2 * _INNER_FOLDS
    folds: Any = StratifiedKFold if stratified else KFold
    inner = folds(_INNER_FOLDS, shuffle=True, random_state=random_state)
    most = max(1, counts.sum() // 4)
    grid = {
        "n_neighbors": [k for k in (1, 3, 5, 9, 15, 25) if k <= most],
        "weights": ["uniform", "distance"],
    }
    nearest: Any = KNeighborsRegressor if regression else KNeighborsClassifier
    usual = NEIGHBORS_OF_NUMBERS if regression else NEIGHBORS
    machine: Any
    if regression:
        svm = {"C": [0.3, 3, 30], "gamma": ["scale", 0.003, 0.03, 0.1]}
        # The width of its tube, and C, are in units of the target.
        search = GridSearchCV(SVR(), svm, cv=inner)
        machine = TransformedTargetRegressor(search, transformer=StandardScaler())
    else:
        svm = {"C": [0.5, 3, 20, 100], "gamma": ["scale", 0.003, 0.01, 0.03, 0.1]}
        machine = GridSearchCV(SVC(), svm, cv=inner)
    return {
        "Euclidean": nearest(min(usual, most)),
        "k-NN, tuned": GridSearchCV(nearest(), grid, cv=inner),
        "RBF-SVM, tuned": machine,
    }


def run_trials(
    methods: Mapping[str, Any],
    X: Any,
    y: Any,
    splits: Iterable[tuple[Any, Any]],
    *,
    sample_weight: Any = None,
) -> Iterator[Trial]:
    """Fit and judge every method on every split, one finished trial at a time.

    Parameters
    ----------
    methods : mapping of str to classifier or regressor
        The methods.
    X, y : array-like or data frame of shape (n_samples, n_features), and ndarray
        Points, and their labels or numbers.
    splits : iterable of (train, test)
        Row numbers, as scikit-learn's splitters give them.
    sample_weight : array-like of shape (n_samples,), default=None
        What the rows count, above zero: in every score, and in fits that take weights.

    Yields
    ------
    Trial
        In the order split, method.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric.evaluation import baselines, holdout, run_trials
    >>> X, y = load_iris(return_X_y=True)
    >>> [trial.accuracy > 0.9 for trial in run_trials(baselines(y), X, y, [holdout(y)])]
    [True, True, True]
    """
    w = None if sample_weight is None else check_weights(sample_weight, len(y))
    for number, (train, test) in enumerate(splits):
        for name, method in methods.items():
            fitted = clone(method)
            parts = _safe_split(fitted, X, y, train), _safe_split(fitted, X, y, test, train)
            counts = (None, None) if w is None else (w[train], w[test])
            (accuracy, scores), seconds, note = measured(fit_and_judge, fitted, *parts, *counts)
            yield Trial(name, number, accuracy, seconds, note, fitted, scores)


def fit_and_judge(
    estimator: Any, train: Any, test: Any, w_train: Any, w_test: Any
) -> tuple[float, ClassScores | None]:
    """Fit to rows with their targets, and judge on others: R², or accuracy and other scores."""
    name = None if w_train is None else name_of_weights(estimator)
    with stage("learning"):
        estimator.fit(*train, **({} if name is None else {name: w_train}))
    with stage("judging"):
        if is_regressor(estimator):
            return float(r2_score(test[1], estimator.predict(test[0]), sample_weight=w_test)), None
        scores = class_scores(estimator, test[0], test[1], w_test)
        return scores.accuracy, scores


def name_of_weights(estimator: Any) -> str | None:
    """What the fit of an estimator calls the weights of rows; None where it takes none."""
    if isinstance(estimator, Pipeline):  # they go to the first step that takes them
        names = [(step, name_of_weights(part)) for step, part in estimator.steps]
        return next((f"{step}__{name}" for step, name in names if name is not None), None)
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    inner = next((getattr(estimator, name) for name in _INSIDE if hasattr(estimator, name)), None)
    return None if inner is None else name_of_weights(inner)


def holdout(
    y: Any, test_size: float = 0.25, random_state: Any = 0, *, regression: bool = False
) -> tuple[Any, Any]:
    """Row numbers of a training and a test part, with the same share of every class.

    Parameters
    ----------
    y, regression : array-like of shape (n_samples,), and bool, default=False
        Labels, and whether they are numbers: both parts are then spread over them alike.
    test_size, random_state : float, default=0.25, and int, RandomState or None, default=0
        Share of the test part, and for the draw.

    Returns
    -------
    train, test : ndarray of int
        Row numbers. Classes of a single row are in the training part.

    Examples
    --------
    >>> from kernelmetric.evaluation import holdout
    >>> [len(part) for part in holdout([0, 1] * 50)]
    [75, 25]
    """
    SHARE.require("test_size", test_size)
    y = np.asarray(y)
    if regression:
        return _holdout_of_numbers(y, test_size, random_state)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[codes] > 1)
    alone = np.flatnonzero(counts[codes] == 1)
    if not len(several):
        raise ValueError(f"Got {len(y)} labels of which no two are equal: nothing can be held out.")
    n_test = max(round(test_size * len(several)), int(np.sum(counts > 1)))
    n_test = min(n_test, len(several) - int(np.sum(counts > 1)))
    split = StratifiedShuffleSplit(1, test_size=n_test, random_state=random_state)
    train, test = next(split.split(several[:, None], y[several]))
    return np.sort(np.concatenate([several[train], alone])), np.sort(several[test])


def _holdout_of_numbers(y: np.ndarray, test_size: float, random_state: Any) -> tuple[Any, Any]:
    if len(y) < 4:
        raise ValueError(f"Got {len(y)} rows, but expected at least 4 to hold some out.")
    n_test = min(max(round(test_size * len(y)), 2), len(y) - 2)
    rng = check_random_state(random_state)
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    # One of every so many along the numbers, whichever.
    groups = np.array_split(order, n_test)
    test = np.sort([rng.choice(group) for group in groups])
    return np.setdiff1d(np.arange(len(y)), test), test


class Measured(NamedTuple):
    """What came of a fit.

    Parameters
    ----------
    value, seconds, note : object, float, str
        What the function returned, processor time, and warnings.
    """

    value: Any
    seconds: float
    note: str


def measured(function: Callable[..., Any], *arguments: Any) -> Measured:
    """Call a function on one thread, and look at the clock and the warnings.

    Parameters
    ----------
    function, *arguments : callable, object
        What to call, and its arguments.

    Returns
    -------
    Measured
        Its value and what it took.

    Examples
    --------
    >>> from kernelmetric.evaluation import measured
    >>> measured(max, 1.0, 2.0).value
    2.0
    """
    begin = time.process_time()
    with repeatable(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = function(*arguments)
    seconds = round(time.process_time() - begin, 6)
    note = " ".join(dict.fromkeys(_in_a_line(str(warning.message)) for warning in caught))
    return Measured(value, seconds, note)


def _in_a_line(message: str) -> str:
    """A warning without the traceback that scikit-learn adds, and without its array of scores."""
    text, scores, _ = message.partition(": [nan")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return f"{lines[0]} {lines[-1]}."
    return f"{' '.join(lines)}." if scores else message
