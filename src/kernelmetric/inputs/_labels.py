"""Labels as they come in, and the codes 0, 1, ... that stand for them."""

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from kernelmetric.compute import to_numpy
from kernelmetric.inputs._refusals import refuse_ambiguous, refuse_text


def require_target(y: Any, owner: str, expected: str) -> None:
    """Refuse to go without labels or numbers, with what was expected."""
    if y is None:
        raise ValueError(
            f"{owner} requires y to be passed, but the target y is None: expected {expected}."
        )


def check_labels(y: Any, X: Any) -> np.ndarray:
    """Codes 0, 1, ... of y in the order of the sorted labels; refused where they cannot teach."""
    require_target(y, "This learner", "one class label per row of X")
    y = label_column(y)
    check_consistent_length(X, y)
    classes, codes = classes_of(y)
    if not len(classes):
        raise ValueError("Got no labels, but expected at least two classes.")
    if len(classes) < 2:
        raise ValueError(
            f"Got 1 class ({classes[0]!r} for all {len(y)} samples), but expected at least two "
            "classes: a metric is learned from what tells classes apart."
        )
    return codes


def check_numbers(y: Any, X: Any) -> np.ndarray:
    """Numbers to predict, one or several for each row of X; text and dates are refused."""
    refuse_ambiguous(y, "y")
    refuse_text(y)
    y = to_numpy(y) if is_array_api_obj(y) else y
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return y


def label_column(y: Any) -> np.ndarray:
    """Labels as an array of one dimension, from whatever scikit-learn takes for that."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iub":
        return y  # as scikit-learn would leave it, after a search for data frames
    if isinstance(y, str):
        raise ValueError(
            f"Got y={y!r}, but expected a label for every row: of a data frame X, X.pop({y!r})."
        )
    y = column_or_1d(to_numpy(y) if is_array_api_obj(y) else y, warn=True)
    _refuse_unsorted(y)
    return y


def _refuse_unsorted(y: np.ndarray) -> None:
    """Refuse objects as labels of which one is neither before nor after another."""
    try:
        sorted(set(y.tolist() if y.dtype.kind == "O" else ()))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(
            f"Got labels of type {' and '.join(kinds)} in y, but expected labels that can be "
            "sorted: try y.astype(str)."
        ) from None


def classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted labels, each once, and the code of every row; refused if they are no classes."""
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity, but expected a label for every row.")
    classes, _, codes = coded_labels(y)
    # Whole numbers are classes, however many; scikit-learn warns of many.
    if y.dtype.kind not in "iub" or 2 * len(classes) > len(y):
        try:
            check_classification_targets(y)
        except ValueError as refusal:
            hint = "Try MetricRegressor or MLKR, which learn from numbers."
            raise ValueError(f"{refusal} {hint}") from None
    return classes, codes


def coded_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sorted labels, each once, the row where each is met first, and the code of every row."""
    _refuse_unsorted(y)
    return np.unique(y, return_index=True, return_inverse=True)
