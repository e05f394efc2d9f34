"""The ideal kernel: what a kernel would be that knew the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d

from kernelmetric.compute import check_labels, label_column, to_numpy

Block = Callable[[slice, slice], np.ndarray]


def ideal_kernel(
    y: Any, X: Any, target: str, rows: np.ndarray | None = None, weights: np.ndarray | None = None
) -> Block:
    """The kernel that the labels would like, as a function of two slices of ``rows``."""
    if not isinstance(target, str) or target not in ("classes", "same", "regression"):
        raise ValueError(f"Got target={target!r}, but expected 'classes', 'same' or 'regression'.")
    if y is None:
        raise ValueError(
            "Got y=None, but KernelAlignment requires y to be passed, as it learns the kernel from "
            "labels: try kernel='rbf' where there are none."
        )
    chosen: Any = slice(None) if rows is None else rows
    if target == "regression":
        t = _centred_numbers(y, X, weights)[chosen]
        return lambda i, j: np.outer(t[i], t[j])
    labels = label_column(y)
    unknown = labels.dtype.kind == "f" and not np.all(np.isfinite(labels))  # check_labels says so
    if not unknown and type_of_target(labels) == "continuous":
        raise ValueError(
            f"Got continuous y, but target={target!r} expected class labels: try "
            "target='regression'."
        )
    codes = check_labels(y, X)
    between = 0.0 if target == "same" else -1.0 / codes.max()  # p - 1 is the last code
    codes = codes[chosen]
    return lambda i, j: np.where(codes[i, None] == codes[None, j], 1.0, between)


def weighted_by(kernel: Any, X: Any, ideal: Block) -> Block:
    """An ideal kernel that asks only near points to be alike: the product with a bound kernel."""
    return lambda i, j: ideal(i, j) * to_numpy(kernel(X[i, :], None if i == j else X[j, :]))


def _centred_numbers(y: Any, X: Any, weights: np.ndarray | None) -> np.ndarray:
    t = np.asarray(column_or_1d(to_numpy(y) if is_array_api_obj(y) else np.asarray(y)))
    check_consistent_length(X, t)
    if t.dtype.kind not in "fiub" or not np.all(np.isfinite(t)) or np.all(t == t[:1]):
        raise ValueError(
            "Got y that is constant, not finite or not numeric, but target='regression' expected "
            "numbers that differ: try target='classes' for labels."
        )
    t = t.astype(np.float64)
    return t - np.average(t, weights=weights)
