"""Targets: what labels become where numbers are predicted."""

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from kernelmetric.compute import is_sparse, to_numpy
from kernelmetric.inputs._labels import coded_labels

_SORTED = 2**20  # rows that a sample is spread over, however many more there are
_ROWS_PER_VALUE = 4  # floating-point targets with fewer rows per value are no classes


class Targets(NamedTuple):
    """Labels or continuous targets, as ridge regression predicts them.

    ``key`` sorts: codes of classes in order of appearance, or the target. ``values`` (n, p) are
    standardized targets, None for classes.
    """

    key: np.ndarray
    values: np.ndarray | None

    def columns(self, rows: Any = slice(None)) -> np.ndarray:
        """The targets of some rows; of classes, a column of ±1 for each."""
        if self.values is not None:
            return self.values[rows]
        return np.where(self.key[rows, None] == np.arange(self.key.max() + 1), 1.0, -1.0)

    def sample(self, most: int, random_state: Any) -> np.ndarray:
        """All rows, or a sample in proportion to the classes (or spread over the target)."""
        n = len(self.key)
        if most >= n:
            return np.arange(n)
        shuffled = check_random_state(random_state).permutation(n)[: max(_SORTED, most)]
        by_key = shuffled[np.argsort(self.key[shuffled], kind="stable")]
        return by_key[np.linspace(0, len(by_key) - 1, most).round().astype(np.intp)]

    def sample_of_all(self, most: int, least: int) -> np.ndarray:
        """So many rows, ascending; of classes that have next to none of them, some more."""
        rows = np.sort(self.sample(most, 0))
        if self.values is not None:
            return rows
        counts = np.bincount(self.key[rows], minlength=int(self.key.max()) + 1)
        if least * len(counts) > most:
            return rows
        order = np.argsort(self.key, kind="stable")
        codes = self.key[order]
        place = np.arange(len(order)) - np.searchsorted(codes, codes)  # of each row in its class
        more = order[(place < least) & (counts[codes] < least)]
        return np.union1d(rows, more)

    def spread(self, X: Any, rows: Any = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """:func:`spread_rows` of some rows, whose points are X."""
        n_columns = self.key.max() + 1 if self.values is None else self.values.shape[1]
        return spread_rows(X, self.key[rows], int(n_columns))


def coded_targets(y: Any, X: Any) -> Targets:
    """What ridge regression predicts for y, labels or targets, one for each row of X."""
    y = np.asarray(to_numpy(y) if is_array_api_obj(y) else y)
    check_consistent_length(X, y)
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity, but expected a label for every row.")
    if not y.size:
        raise ValueError(f"Got y of shape {y.shape}, but expected a label or number per row of X.")
    table = y.reshape(len(y), -1)
    classes, first, codes = coded_labels(table[:, 0])
    if table.shape[1] > 1 or _is_continuous(table[:, 0], len(classes)):
        table = _numbers(table)
        spread = table.std(axis=0)
        scaled = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return Targets(table[:, 0], scaled)
    return Targets(np.argsort(np.argsort(first))[codes], None)


def _numbers(table: np.ndarray) -> np.ndarray:
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Got {table.shape[1]} columns of type {table.dtype} as y, but expected numbers: a "
            "class for every row goes into one column."
        ) from None


def _is_continuous(y: np.ndarray, n_values: int) -> bool:
    if y.dtype.kind != "f" or n_values < 3:
        return False
    return bool(np.any(y != np.round(y))) or n_values * _ROWS_PER_VALUE > len(y)


def spread_rows(X: Any, key: np.ndarray, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """An order of rows in which any evenly spaced ones resemble all, and one of targets.

    Rows go along a direction within each class, and classes in the order of their first points
    there: neither the order of rows nor the names of classes change the result.
    """
    along = X @ _direction(X)
    if key.dtype.kind != "i":
        return np.lexsort((along, key)), np.arange(n_columns)
    first = np.full(n_columns, np.inf)
    np.minimum.at(first, key, along)
    return np.lexsort((along, key, np.bincount(key)[key], first[key])), np.argsort(first)


def rows_by_place(X: np.ndarray) -> np.ndarray:
    """Rows from the mean outwards, for draws that their order may not decide."""
    apart = X - X.mean(axis=0)
    outwards = np.einsum("ij,ij->i", apart, apart)
    from_farthest = np.square(X - X[np.argmax(outwards)]).sum(axis=1)
    return np.lexsort((from_farthest, outwards))


def _direction(X: Any) -> np.ndarray:
    """A direction whose entries columns take by kurtosis and skewness, which scaling leaves."""
    if is_sparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        raw = [np.asarray(X.power(k).mean(axis=0)).ravel() for k in (2, 3, 4)]
        second = raw[0] - mean**2
        third = raw[1] - 3 * mean * raw[0] + 2 * mean**3
        fourth = raw[2] - 4 * mean * raw[1] + 6 * mean**2 * raw[0] - 3 * mean**4
    else:
        apart = X - X.mean(axis=0)
        apart /= np.maximum(np.abs(apart).max(axis=0), np.finfo(np.float64).tiny)
        second, third, fourth = ((apart**k).mean(axis=0) for k in (2, 3, 4))
    second = np.maximum(second, np.finfo(np.float64).eps)
    moments = np.round([third / second**1.5, fourth / second**2], 9)  # ties are ties
    direction = np.empty(X.shape[1])
    direction[np.lexsort(moments)] = np.random.RandomState(0).standard_normal(X.shape[1])
    return direction
