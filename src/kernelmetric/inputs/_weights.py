"""Weights of rows: the one door through which they come, and what they mean inside.

A weight is importance: a row's part of an objective counts in proportion to it. Nothing rescales
weights; a row of weight zero is left out, and weights that are all one are no weights. They do not
change who is a neighbour of whom. Weights of classes change only what a row's own part counts.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from kernelmetric.compute import in_memory, is_sparse, take_rows, to_numpy
from kernelmetric.inputs._refusals import refuse_ambiguous

_ROUNDING = 1e-9  # of the sum of weights: what round-off may leave of none
_MOST = 1e100  # sums of products of weights stay in range


class Weights(NamedTuple):
    """Positive weights: of rows, and of their own parts of an objective; both have one sum."""

    counts: np.ndarray
    shares: np.ndarray

    @property
    def total(self) -> float:
        """What all rows count together."""
        return float(np.sum(self.counts))

    @property
    def unit(self) -> float:
        """What a row counts on average."""
        return self.total / len(self.counts)

    @property
    def masses(self) -> np.ndarray:
        """What each row counts beside the average row, as a neighbour of others."""
        return self.counts / self.unit

    def take(self, rows: Any) -> Self:
        """Those of some rows."""
        return type(self)(*(part[rows] for part in self))

    def others(self, codes: np.ndarray) -> np.ndarray:
        """What the other rows of its group count together, for each row."""
        inside = np.bincount(codes, weights=self.counts)[codes] - self.counts
        return np.where(inside < _ROUNDING * self.total, 0.0, inside)

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Mean of the rows of X, by shares."""
        return self.shares @ X / self.total


class WeightedLabels(NamedTuple):
    """Labels, or none, of rows that have weights: what ``bind`` and ``_learn`` get as y."""

    labels: Any
    weights: Weights


def labels_and_weights(y: Any) -> tuple[Any, Weights | None]:
    """Labels and weights; the latter None where there are none."""
    return (y.labels, y.weights) if isinstance(y, WeightedLabels) else (y, None)


def refuse_partial_gram(rows: np.ndarray | None, pairwise: bool) -> None:
    """Refuse to leave rows out of a precomputed kernel, where their columns would stay."""
    if rows is not None and pairwise:
        raise ValueError(
            "Got sample_weight of zero with a precomputed kernel, but expected some for every row: "
            "leave the rows and columns of these points out."
        )


def rows_and_weights(sample_weight: Any, X: Any) -> tuple[np.ndarray | None, Weights | None]:
    """Rows with a weight (None: all) and their weights (None: all count one), checked."""
    if sample_weight is None:
        return None, None
    refuse_streams(X)
    w = check_weights(sample_weight, _num_samples(X))
    rows = np.flatnonzero(w > 0)
    kept = w[rows]
    some = rows if len(rows) < len(w) else None
    return some, None if np.all(kept == 1.0) else Weights(kept, kept)


def refuse_streams(X: Any) -> None:
    """Refuse rows that stay where they are: weights of them are not looked at there."""
    if not in_memory(X):
        raise ValueError(
            "Got weights with rows that stay on their workers, but expected rows that fit into "
            "memory: take some of them, or leave the weights out."
        )


def with_class_weights(
    weights: Weights | None, class_weight: Any, y: Any, rows: np.ndarray | None = None
) -> Weights | None:
    """Weights of rows times those of their classes; refused where a class is left without any."""
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
    return Weights(counts, shares)


def rows_of(X: Any, rows: np.ndarray | None) -> Any:
    """Some rows of anything that has rows: arrays of any library, lists and data frames."""
    if X is None or rows is None:
        return X
    if is_array_api_obj(X) or is_sparse(X):
        return take_rows(X.tocsr() if is_sparse(X) else X, rows)
    return _safe_indexing(X, rows)


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is neither None, 'balanced' nor a dict of finite numbers from zero on."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"Got class_weight={class_weight!r}, but expected None, 'balanced' or a dict from "
            "classes to weights."
        )
    try:
        values = np.array(list(class_weight.values()), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array([np.nan])
    if values.ndim != 1 or not np.all((values > 0) & (values < _MOST)):
        raise ValueError(
            f"Got class_weight={class_weight!r}, but expected a finite weight above zero for "
            "each class: leave the rows of a class out if it should not count."
        )


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


def check_weights(sample_weight: Any, n: int, name: str = "sample_weight") -> np.ndarray:
    """Weights of n rows as a new array of float64, refused where they cannot be weights."""
    refuse_ambiguous(sample_weight, name)
    given = to_numpy(sample_weight) if is_array_api_obj(sample_weight) else sample_weight
    try:
        w = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Got {name} of type {type(sample_weight).__name__}, but expected a number for each "
            "row."
        ) from None
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(
            f"Got {name} of shape {w.shape}, but expected ({n},): one number for each row of "
            f"{'pairs' if name == 'pair_weight' else 'X'}."
        )
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(
            f"Got {name} {w[bad[0]]:g} for row {bad[0]}, but expected finite weights that "
            "are not negative: zero leaves a row out."
        )
    if not w.any():
        raise ValueError(
            f"Got {name} of zero for all rows, but expected some weight: leave {name} out, and all "
            "rows count alike."
        )
    if w.max() > _MOST or w.max() > w[w > 0].min() * _MOST:
        raise ValueError(
            f"Got {name} from {w[w > 0].min():g} to {w.max():g}, but expected numbers whose "
            "products are in range."
        )
    return w
