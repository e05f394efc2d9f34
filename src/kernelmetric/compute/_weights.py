"""Weights of rows: the one door through which they come, and what they mean inside.

A weight says how many rows a row stands for. So the weighted form of a formula is the plain one on
repeated rows, with equal rows put together: a row of weight 3 counts three times, is three
neighbours of every other row, and meets two copies of itself at distance zero. Whole numbers are
such counts. Other weights say what rows matter beside each other: they are scaled to a mean of one,
and no row meets itself. Weights of classes change how much each row's own part of an objective
counts, and not who its neighbours are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from kernelmetric.compute._arrays import is_sparse, streamed, take_rows, to_numpy
from kernelmetric.compute._budget import require_memory
from kernelmetric.compute._refusals import refuse_unsaid

_ROUNDING = 1e-9  # of a weight: so near to each other they are equal, so near to a whole number one
_MOST = 1e100  # sums of products of weights stay in range


class Weights(NamedTuple):
    """What rows count, all of them something.

    Parameters
    ----------
    counts : ndarray of shape (n,)
        How many rows each row stands for.
    own : ndarray of shape (n,)
        How many copies of itself each row meets at distance zero: one less than it stands for, or
        none, where weights are not counts.
    shares : ndarray of shape (n,)
        What each row's own part of an objective counts, its class's weight included; the sum is
        that of the counts.
    """

    counts: np.ndarray
    own: np.ndarray
    shares: np.ndarray

    @property
    def total(self) -> float:
        """How many rows they stand for."""
        return float(np.sum(self.counts))

    @property
    def classes(self) -> np.ndarray:
        """What the class of each row counts beside the others."""
        return self.shares / self.counts

    def take(self, rows: Any) -> Weights:
        """Those of some rows."""
        return Weights(*(part[rows] for part in self))

    def others(self, codes: np.ndarray) -> np.ndarray:
        """How many other rows each row meets in its own group, copies of itself included."""
        inside = np.bincount(codes, weights=self.counts)[codes] - self.counts
        return np.where(inside < _ROUNDING * self.total, 0.0, inside) + self.own

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Mean of the rows of X, by shares."""
        return self.shares @ X / self.total


class Weighed(NamedTuple):
    """Labels, or none, of rows that have weights: what ``bind`` and ``_learn`` get in their place.

    Kernels and spaces hand y on as it is; who looks at it calls :func:`unweighed`.
    """

    labels: Any
    weights: Weights


def unweighed(y: Any) -> tuple[Any, Weights | None]:
    """Labels and weights; the latter None where there are none."""
    return (y.labels, y.weights) if isinstance(y, Weighed) else (y, None)


def weigh(sample_weight: Any, X: Any) -> tuple[np.ndarray | None, Weights | None]:
    """Check weights of rows.

    Parameters
    ----------
    sample_weight : array-like of shape (n,) or None
        Weights; equal ones are none.
    X : array-like
        The rows.

    Returns
    -------
    rows : ndarray of int or None
        Those with a weight, where some have none; None means all.
    weights : Weights or None
        Of these rows; None where all count alike.
    """
    if sample_weight is None:
        return None, None
    refuse_streams(X)
    w = checked_weights(sample_weight, _num_samples(X))
    rows = np.flatnonzero(w > 0)
    kept = w[rows]
    some = rows if len(rows) < len(w) else None
    if np.ptp(kept) <= _ROUNDING * kept[0]:
        return some, None
    whole = np.round(kept)
    if np.all(whole >= 1) and np.max(np.abs(kept - whole)) <= _ROUNDING:
        return some, Weights(whole, whole - 1.0, whole)
    kept = kept / np.mean(kept)
    return some, Weights(kept, np.zeros_like(kept), kept)


def refuse_streams(X: Any) -> None:
    """Refuse rows that stay where they are: weights of them are not looked at there."""
    if streamed(X):
        raise ValueError(
            "Got weights with rows that stay on their workers, but expected rows that fit into "
            "memory: take some of them, or leave the weights out."
        )


def with_classes(
    weights: Weights | None, class_weight: Any, y: Any, rows: np.ndarray | None = None
) -> Weights | None:
    """Weights of rows, with those of their classes; refused where a class is left without any.

    Parameters
    ----------
    weights : Weights or None
        As :func:`weigh` gives them.
    class_weight : dict, 'balanced' or None
        Weights of the classes, one where a dict has none; 'balanced' lets all classes count alike.
    y : array-like of shape (n,)
        Labels of all rows, also of those without weight.
    rows : ndarray of int, default=None
        The rows with weight.

    Returns
    -------
    Weights or None
        Only the ratios of weights of classes matter.
    """
    labels = np.asarray(to_numpy(y) if is_array_api_obj(y) else y).reshape(-1)
    if class_weight is None and rows is None:
        return weights
    classes, codes = np.unique(labels, return_inverse=True)
    kept = codes if rows is None else codes[rows]
    empty = np.setdiff1d(np.arange(len(classes)), kept)
    if len(empty):
        raise ValueError(
            f"Got sample_weight of zero for all rows of class {classes.tolist()[empty[0]]!r}, but "
            "expected some weight in every class: give it some, or leave its rows out."
        )
    if class_weight is None:
        return weights
    counts = np.ones(len(kept)) if weights is None else weights.counts
    of_class = _of_classes(class_weight, classes, np.bincount(kept, weights=counts))
    if np.ptp(of_class) <= _ROUNDING * of_class[0]:
        return weights
    shares = counts * of_class[kept]
    shares *= np.sum(counts) / np.sum(shares)
    return Weights(counts, np.zeros_like(counts) if weights is None else weights.own, shares)


def rows_of(X: Any, rows: np.ndarray | None) -> Any:
    """Some rows of anything that has rows: arrays of any library, lists and data frames."""
    if X is None or rows is None:
        return X
    if is_array_api_obj(X) or is_sparse(X):
        return take_rows(X.tocsr() if is_sparse(X) else X, rows)
    return _safe_indexing(X, rows)


def repeated_quantiles(values: np.ndarray, counts: np.ndarray, shares: Any) -> np.ndarray:
    """Quantiles of values as if each stood there as often as its count says.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Values.
    counts : ndarray of shape (n,)
        Counts, whole or not.
    shares : array-like
        Where, from 0 to 1; between two values, as :func:`numpy.quantile` does it.

    Returns
    -------
    ndarray
        One for each of the shares.
    """
    order = np.argsort(values, kind="stable")
    values, ends = values[order], np.cumsum(counts[order])
    # The r-th of the repeated values, r from 0 on, is the first whose counts exceed r.
    place = np.maximum(ends[-1] - 1.0, 0.0) * np.asarray(shares, dtype=np.float64)
    below = np.floor(place + _ROUNDING)
    at = [
        np.minimum(np.searchsorted(ends - _ROUNDING * ends[-1], r, side="right"), len(values) - 1)
        for r in (below, below + 1.0)
    ]
    low, high = values[at[0]], values[at[1]]
    return low + np.maximum(place - below, 0.0) * (high - low)


def repeated_rows(weights: Weights) -> np.ndarray:
    """Row numbers in which each row stands as often as it counts, or nearly so.

    Parameters
    ----------
    weights : Weights
        Whole numbers are counts. Others, and shares that know of classes, are rounded to multiples
        of half their mean, so that the sums over the first rows are right.

    Returns
    -------
    ndarray of int
        Ascending.
    """
    counts = weights.counts
    if not (weights.own.any() and np.array_equal(counts, weights.shares)):
        ends = np.cumsum(weights.shares) * (2.0 * len(counts) / weights.total)
        counts = np.diff(np.floor(np.concatenate([[0.0], ends]) + 0.5))
    return np.repeat(np.arange(len(counts)), counts.astype(np.intp))


def copies(weights: Weights | None) -> tuple[np.ndarray | None, Weights | None]:
    """Row numbers in which counted rows stand as often as they count, and what each then counts.

    For formulas in which two copies of a row are not the same: where either may be left out, or
    has neighbours of its own.

    Parameters
    ----------
    weights : Weights or None
        Of rows.

    Returns
    -------
    rows : ndarray of int or None
        None where no row stands for several.
    weights : Weights or None
        Of these rows: no more than their classes, where they were counts.
    """
    if weights is None or not weights.own.any():
        return None, weights
    require_memory(
        100 * weights.total,
        f"Counts of rows that are {weights.total:.3g} in all",
        "divide them by their mean: weights that are no whole numbers repeat no row.",
    )
    rows = np.repeat(np.arange(len(weights.counts)), weights.counts.astype(np.intp))
    ones, shares = np.ones(len(rows)), weights.classes[rows]
    equal = np.ptp(shares) <= _ROUNDING * shares[0]
    return rows, None if equal else Weights(ones, np.zeros(len(rows)), shares)


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is neither None, 'balanced' nor a dict of finite numbers from zero on."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"Got class_weight={class_weight!r}, but expected None, 'balanced' or a dict from "
            "classes to weights."
        )
    for value in _values(class_weight):
        if not 0 < value < _MOST:
            raise ValueError(
                f"Got class_weight={class_weight!r}, but expected a finite weight above zero for "
                "each class: leave the rows of a class out if it should not count."
            )


def _values(class_weight: Mapping) -> Iterator[float]:
    for value in class_weight.values():
        try:
            yield float(value)
        except (TypeError, ValueError):
            yield np.nan


def _of_classes(class_weight: Any, classes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The weight of each class."""
    check_class_weight(class_weight)
    if isinstance(class_weight, str):
        return np.sum(sizes) / (len(classes) * sizes)
    known = classes.tolist()
    unknown = [name for name in class_weight if name not in known]
    if unknown:
        raise ValueError(
            f"Got class_weight for {unknown[0]!r}, but expected classes of y: {known[:5]!r}"
            f"{' and others' if len(known) > 5 else ''}."
        )
    return np.array([float(class_weight.get(name, 1.0)) for name in known])


def checked_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of n rows as a new array of float64, refused where they cannot be weights."""
    refuse_unsaid(sample_weight, "sample_weight")
    given = to_numpy(sample_weight) if is_array_api_obj(sample_weight) else sample_weight
    try:
        w = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"Got sample_weight of type {type(sample_weight).__name__}, but expected a number for "
            "each row."
        ) from None
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(
            f"Got sample_weight of shape {w.shape}, but expected ({n},): one number for each row "
            "of X."
        )
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(
            f"Got sample_weight {w[bad[0]]:g} for row {bad[0]}, but expected finite weights that "
            "are not negative: zero leaves a row out."
        )
    if not w.any():
        raise ValueError(
            "Got sample_weight of zero for all rows, but expected some weight: leave sample_weight "
            "out, and all rows count alike."
        )
    if w.max() > _MOST or w.max() > w[w > 0].min() * _MOST:
        raise ValueError(
            f"Got sample_weight from {w[w > 0].min():g} to {w.max():g}, but expected numbers whose "
            "products are in range."
        )
    return w
