"""What a search tries, and on which folds: lists of them, from what a user writes."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    column_or_1d,
)

from kernelmetric.compute import to_numpy
from kernelmetric.inputs import check_labels, check_numbers, check_points
from kernelmetric.inputs._labels import require_target
from kernelmetric.inputs._parameters import check_flags
from kernelmetric.kernelized import _parts
from kernelmetric.kernelized._kernelized import Kernelized
from kernelmetric.kernels import Kernel, is_frame, is_table, polynomial_degrees, rbf_widths
from kernelmetric.selection import automatic_kernel

_MOST_JOBS = 2**15  # more processes than any machine has; what is beyond is a slip
# The smoothest first, because the first of equals wins.
FAMILIES = {"rbf": lambda: rbf_widths()[::-1], "poly": polynomial_degrees}


def listed_kernels(kernels: Any) -> list[Any]:
    """The kernels to try, at least one: all take points, or all are precomputed."""
    if kernels is None:
        kernels = "rbf"
    if isinstance(kernels, str) and kernels in FAMILIES:
        return list(FAMILIES[kernels]())
    listed = _listed(kernels, isinstance(kernels, (str, Kernel)) or callable(kernels))
    if not listed:
        raise ValueError(
            f"Got kernels={kernels!r}, but expected at least one kernel: try kernels='rbf', the 21 "
            "widths of the papers, or a list such as [RBF(sigma=1), 'linear']."
        )
    known = [automatic_kernel(kernel) for kernel in listed]
    if len({(kernel.pairwise, kernel.takes_objects) for kernel in known}) > 1:
        raise ValueError(
            f"Got kernels={kernels!r}, but expected either kernels of rows of numbers, of objects, "
            "or a precomputed one: X cannot be all of them."
        )
    return listed


def listed_ranks(n_components: Any) -> list[int | None]:
    """The ranks to try: at least one, each positive or None."""
    alone = n_components is None or isinstance(n_components, Integral | str | bytes)
    listed = _listed(n_components, alone)
    good = [rank is None or (isinstance(rank, Integral) and int(rank) >= 1) for rank in listed]
    if not listed or not all(good) or any(isinstance(rank, bool) for rank in listed):
        raise ValueError(
            f"Got n_components={n_components!r}, but expected None (full rank), a positive integer "
            "or a list of them: try n_components=[10, 50, None]."
        )
    return listed


def _listed(value: Any, alone: bool) -> list[Any]:
    """One value or several; none where these cannot be listed."""
    try:
        return [value] if alone else list(value)
    except TypeError:
        return []


def listed_folds(
    cv: Any, judge: Any, X: Any, y: Any, split_params: dict[str, Any]
) -> list[tuple[Any, Any]]:
    """The folds, at least one: row numbers to train on and to score on, neither empty."""
    n_samples = _num_samples(y)
    if isinstance(cv, bool) or (isinstance(cv, Integral) and not 2 <= int(cv) <= n_samples):
        raise ValueError(
            f"Got cv={cv!r}, but expected from 2 to n_samples={n_samples} folds, a splitter such "
            "as StratifiedKFold(5), or a list of pairs (train, test) of row numbers: try cv=3."
        )
    plain = cv is None or isinstance(cv, Integral) or (hasattr(cv, "split") and callable(cv.split))
    if plain and not isinstance(cv, str | bytes):
        splitter = check_cv(cv, y, classifier=is_classifier(judge))
        return checked_folds(cv, list(splitter.split(X, y, **split_params)), n_samples)
    return checked_folds(cv, cv, n_samples)


def checked_folds(cv: Any, folds: Any, n_samples: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds as row numbers of so many points, refused where they are none of these."""
    try:
        found = [(_numbers(train, n_samples), _numbers(test, n_samples)) for train, test in folds]
    except (TypeError, ValueError, OverflowError):
        found = []
    if not found or any(len(rows) == 0 for fold in found for rows in fold):
        raise ValueError(
            f"Got cv={cv!r}, but expected at least one pair (train, test) of row numbers below "
            f"{n_samples}, neither of them empty: try cv=3."
        )
    return found


def _numbers(rows: Any, n_samples: int) -> np.ndarray:
    """Row numbers, also from a mask."""
    rows = np.asarray(rows)
    if rows.dtype.kind == "b" and rows.shape == (n_samples,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not np.all(rows < n_samples):
        raise ValueError("Got something else than row numbers.")
    return rows


def judge_of(search: Any, y: Any = None) -> Any:
    """What is fitted on learned coordinates: a regressor for learners from numbers."""
    if search.estimator is not None:
        return search.estimator
    numbers = getattr(search.learner, "learns_from", "labels") == "targets"
    if not numbers and y is not None and _parts.is_estimator(search.learner):
        values = np.asarray(to_numpy(y) if is_array_api_obj(y) else y)
        takes_both = get_tags(search.learner).target_tags.multi_output
        fractions = values.dtype.kind == "f" and np.any(values != np.round(values))
        numbers = takes_both and bool(fractions or values.ndim > 1)
    return KNeighborsRegressor(1) if numbers else KNeighborsClassifier(1)


def checked_data(search: Any, X: Any, y: Any, judge: Any) -> tuple[Any, Any]:
    """Points that folds can be cut from, and labels; nothing is written into the search."""
    require_target(y, type(search).__name__, "what candidates are scored by")
    if is_frame(X) and is_table(X):  # of arrays of objects scikit-learn says what is wrong
        raise ValueError(
            f"Got a table with names, dates or gaps, but {type(search).__name__} expected "
            "numbers: put TableSchema() before it in a Pipeline, or search over Kernelized "
            "with GridSearchCV."
        )
    probe, sparse = Kernelized(search.learner), get_tags(search).input_tags.sparse
    points = check_points(probe, X, reset=True, accept_sparse=sparse, ensure_min_samples=2)
    check_consistent_length(X, y)
    if is_classifier(judge):
        check_labels(y, points)
        y = column_or_1d(y)
    elif is_regressor(judge):
        y = check_numbers(y, X)
    return points, y


def check_search(search: Any, judge: Any) -> Any:
    """Refuse parameters of a search that mean nothing; the scorer(estimator, E, y) -> float."""
    _parts.check_learner(search)
    if search.estimator is not None:
        _parts.check_estimator(search, "estimator", "KNeighborsClassifier(3)")
    learner = search.learner
    if _parts.is_indefinite(learner):
        raise ValueError(
            f"Got learner={learner!r}, whose metric may be indefinite, but expected one whose "
            "distances coordinates can hold, because these are scored: try psd='solve'."
        )
    if not hasattr(learner, "transform"):
        raise ValueError(
            f"Got learner={learner!r}, which has no transform, but expected a learner of "
            "coordinates: for estimators that predict, use GridSearchCV over Kernelized."
        )
    check_error_score(search.error_score)
    check_flags(search)
    jobs = search.n_jobs
    good = isinstance(jobs, Integral) and not isinstance(jobs, bool)
    if jobs is not None and not (good and 0 < abs(int(jobs)) < _MOST_JOBS):
        raise ValueError(
            f"Got n_jobs={jobs!r}, but expected None, a number of processes, or -1 for one on each "
            "processor."
        )
    return _scorer(search.scoring, judge)


def check_error_score(score: Any) -> None:
    """Refuse what cannot stand for the score of a failure."""
    number = isinstance(score, Real) and not isinstance(score, bool)
    if not number and not (isinstance(score, str) and score == "raise"):
        raise ValueError(
            f"Got error_score={score!r}, but expected 'raise' or a number: try error_score=np.nan."
        )


_PREDICTS = ("predict", "predict_proba", "decision_function")


def _scorer(scoring: Any, judge: Any) -> Any:
    named = scoring is None or isinstance(scoring, str)
    if not named and (not callable(scoring) or isinstance(scoring, type)):
        raise ValueError(
            f"Got scoring={scoring!r}, but expected one score: None, a name such as "
            "'balanced_accuracy', or a function scorer(estimator, X, y) -> float."
        )
    if scoring is None and not hasattr(judge, "score"):
        raise ValueError(
            f"Got estimator={judge!r}, which has no score, but expected one that predicts: try "
            "KNeighborsClassifier(3), or pass scoring."
        )
    if isinstance(scoring, str) and not any(hasattr(judge, name) for name in _PREDICTS):
        raise ValueError(
            f"Got estimator={judge!r} with scoring={scoring!r}, but expected an estimator that "
            "predicts: try KNeighborsClassifier(3)."
        )
    return check_scoring(judge, scoring=scoring)
