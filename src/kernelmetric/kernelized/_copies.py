"""Copies of rows, told from rows that are equal by chance.

Rows that are left out judge what is chosen, and a copy knows the label of the row that is left out.
So copies count as one row with their weights. Rows of few categories are equal by chance, and stay:
where chance makes rows equal, it makes at least as many that differ by one step.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.spatial import KDTree
from sklearn import get_config

from kernelmetric._warnings import warn
from kernelmetric.compute import in_memory, is_sparse, take_rows, to_numpy
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs import is_objects
from kernelmetric.inputs._keys import keys_of
from kernelmetric.kernels import TableSchema, is_table

_SAMPLE = 2_000  # different rows, of which near pairs are counted
_FIRST = 3  # columns, those with most values, that find them
_NEAR = 1.5  # steps: one, and rounding
_MOST_COLUMNS = 256  # of sparse points
_FAR_MORE = 5.0  # rows that have copies, beside pairs of different rows that are near
_DIGITS = 1e9  # of a column's range: what differs by less is equal


class CopiesWarning(UserWarning):
    """Rows of a table are copies of others, with the same label."""


class Copies(NamedTuple):
    """The first row of each group of copies, ascending, and the group of every row."""

    rows: np.ndarray
    groups: np.ndarray

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """What the rows of each group count together."""
        return np.bincount(self.groups, weights=weights)


def copies_among(X: Any, y: Any, owner: Any, *, takes: bool, given: bool) -> Copies | None:
    """Copies, told in a warning; None without any, or where the owner takes no weights for them."""
    copies = copied_rows(X, y)
    if copies is None:
        return None
    n = len(copies.groups)
    told = f"Got {n - len(copies.rows):,} copies of other rows among {n:,}"
    # Metadata that are routed reach only who asked for them.
    if takes and (given or not get_config()["enable_metadata_routing"]):
        warn(f"{told}: a row and its copies count as one row with their weight.", CopiesWarning)
        return copies
    more = "cannot count by weights, so left-out rows look surer than new ones will be"
    warn(f"{told}, which {type(owner).__name__} {more}: leave the copies out.", CopiesWarning)
    return None


def numbers_of(X: Any) -> Any:
    """A table that was not checked, in numbers; None of what has none, such as texts."""
    if is_sparse(X) or is_objects(X):
        return X.tocsr() if is_sparse(X) else X
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever learns from it says it
            Z = TableSchema().fit_transform(X) if is_table(X) else X
            Z = Z if is_array_api_obj(Z) or not in_memory(Z) else np.asarray(Z)
    except (TypeError, ValueError):
        return None
    plain = not isinstance(Z, np.ndarray) or Z.dtype.kind in "biuf"
    return Z if plain and len(Z.shape) == 2 else None


def copied_rows(X: Any, y: Any) -> Copies | None:
    """Groups of rows that are equal in all columns and in y; None where chance may have done it."""
    if not in_memory(X):
        return None
    targets = coded_targets(y, X)
    values = targets.key[:, None] if targets.values is None else targets.values
    keys = keys_of(X) + keys_of(values, seed=1)
    _, first, groups, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rows = first[order]
    if is_objects(X):  # no steps lie between them: what is equal is a copy
        return Copies(rows, np.argsort(order)[groups.ravel()]) if len(rows) < len(groups) else None
    some = np.random.RandomState(0).permutation(rows)[:_SAMPLE]
    more = _FAR_MORE * (len(rows) / len(some)) ** 2
    if np.sum(counts > 1) <= 2 * more:
        return None
    Z = take_rows(X, some)
    if is_sparse(Z):
        Z = Z[:, np.argsort(-np.bincount(Z.indices, minlength=Z.shape[1]))[:_MOST_COLUMNS]]
        Z = Z.toarray()
    Z = to_numpy(Z) if targets.values is None else np.hstack([to_numpy(Z), values[some]])
    if np.sum(counts > 1) <= more * (2 + _near_pairs(Z)):
        return None
    return Copies(rows, np.argsort(order)[groups.ravel()])


def _near_pairs(Z: np.ndarray) -> int:
    """How many pairs of rows are at most a step apart in every column."""
    steps = sorted(map(_in_steps, Z.T), key=lambda column: -len(np.unique(column)))
    tree = KDTree(np.stack(steps[:_FIRST], axis=1))
    left, right = tree.query_pairs(_NEAR, p=np.inf, output_type="ndarray").T
    for column in steps[_FIRST:]:
        if np.ptp(column) > _NEAR:
            near = np.abs(column[left] - column[right]) < _NEAR
            left, right = left[near], right[near]
    return len(left)


def _in_steps(column: np.ndarray) -> np.ndarray:
    """A column in its steps: from one level to the next, or the least gap where all differ."""
    column = column.astype(np.float64)
    known = column[np.isfinite(column)]
    with np.errstate(all="ignore"):
        wide = np.ptp(known) if known.any() else 0.0
        column = np.round(_DIGITS * ((column - known[:1].sum()) / (wide or 1.0)))
    levels, codes = np.unique(np.nan_to_num(column), return_inverse=True)
    if 2 * len(levels) <= len(column) or len(levels) < 2:
        return codes.astype(np.float64)
    return levels[codes] / np.min(np.diff(levels))
