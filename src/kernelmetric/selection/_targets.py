"""Targets of ridge regression: what labels become, and how few columns say the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils.validation import check_consistent_length

from kernelmetric.compute import repeated_rows, rows_of, take_rows, to_numpy, unweighed

_ROWS_PER_VALUE = 4  # floating-point targets with fewer rows per value are no classes
_FEW = 4  # columns that need not become fewer


class Targets(NamedTuple):
    """Labels or continuous targets, as ridge regression predicts them.

    Parameters
    ----------
    key : ndarray of shape (n,)
        Codes of the classes in the order in which they appear, or the target, to sort by.
    values : ndarray of shape (n, p) or None
        The targets, standardized; None for classes.
    """

    key: np.ndarray
    values: np.ndarray | None

    def columns(self, rows: Any = slice(None)) -> np.ndarray:
        """The targets of some rows; of classes, a column of ±1 for each."""
        if self.values is not None:
            return self.values[rows]
        return np.where(self.key[rows, None] == np.arange(self.key.max() + 1), 1.0, -1.0)


def repeated(X: Any, y: Any) -> tuple[Any, Any]:
    """Points and labels, repeated as often as they count where y has weights."""
    labels, weights = unweighed(y)
    if weights is None:
        return X, y
    rows = repeated_rows(weights)
    return take_rows(X, rows), None if labels is None else rows_of(np.asarray(labels), rows)


def coded_targets(y: Any, X: Any) -> Targets:
    """What ridge regression predicts for y, labels or targets, one for each row of X."""
    y = np.asarray(to_numpy(y) if is_array_api_obj(y) else y)
    check_consistent_length(X, y)
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity, but expected a label for every row.")
    table = y.reshape(len(y), -1)
    classes, first, codes = np.unique(table[:, 0], return_index=True, return_inverse=True)
    if table.shape[1] > 1 or _is_continuous(table[:, 0], len(classes)):
        table = table.astype(np.float64)
        spread = table.std(axis=0)
        scaled = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return Targets(table[:, 0], scaled)
    return Targets(np.argsort(np.argsort(first))[codes], None)


def _is_continuous(y: np.ndarray, n_values: int) -> bool:
    if y.dtype.kind != "f" or n_values < 3:
        return False
    return bool(np.any(y != np.round(y))) or n_values * _ROWS_PER_VALUE > len(y)


def few_columns(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Columns that stand for those of Y wherever only the products of its rows matter.

    Squared errors, added up over columns, are such a place. With p columns of ±1, one for each
    class, Y Yᵀ = (p - 4) 11ᵀ + 4 E Eᵀ, where E has ones for the members of each class. A class of
    one point adds no more than an entry of the diagonal to E Eᵀ. Where most classes are of one,
    the diagonal is the identity, less the entries of other points.

    Parameters
    ----------
    Y : ndarray of shape (n, p)
        Targets.

    Returns
    -------
    F : ndarray of shape (n, q)
        Columns, q at most p.
    signs : ndarray of shape (q,)
        Their signs.
    own : float
        What the diagonal has besides, so that Y Yᵀ = own I + F diag(signs) Fᵀ.
    """
    n, p = Y.shape
    mine = Y == 1.0
    if p <= _FEW or not (np.all(mine | (Y == -1.0)) and np.all(mine.sum(axis=1) == 1)):
        return Y, np.ones(p), 0.0
    E = mine[:, mine.any(axis=0)].astype(np.float64)
    several = E[:, E.sum(axis=0) > 1]
    members = several.any(axis=1)
    mostly_single = several.shape[1] + np.count_nonzero(members) < E.shape[1]
    parts = [several, np.eye(n)[:, members]] if mostly_single else [E]
    F = 2.0 * np.hstack([np.full((n, 1), 0.5 * np.sqrt(p - 4.0)), *parts])
    if F.shape[1] >= p:
        return Y, np.ones(p), 0.0
    signs = np.ones(F.shape[1])
    signs[1 + parts[0].shape[1] :] = -1.0
    return F, signs, 4.0 if mostly_single else 0.0
