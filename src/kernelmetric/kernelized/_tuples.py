"""Tuples of points, for learners from pairs, triplets or quadruplets that others wrote.

metric-learn and its kin fit on arrays of shape (n_tuples, t, n_features). A kernel wants every
point once: the points are told apart here, and tuples become row numbers; after the space they
become tuples of coordinates.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from kernelmetric.compute import take_rows
from kernelmetric.graphs import Pairs


def coordinates_of_tuples(Z: Any, tuples: Any) -> Any:
    """Tuples (n_tuples, t, r) of coordinates, from coordinates and row numbers."""
    rows = _check_tuples(tuples, Z.shape[0])
    return take_rows(Z, rows.ravel()).reshape(*rows.shape, -1)


def takes_pair_tuples(learner: Any) -> bool:
    """Whether a learner fits on pairs of points: metric-learn's say so, ``fit(pairs, y)``."""
    return next(iter(inspect.signature(learner.fit).parameters), None) == "pairs"


def tuples_of_pairs(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as metric-learn takes them: row numbers, and +1 for similar, -1 for dissimilar."""
    return pairs.rows, np.where(pairs.is_similar, 1, -1)


def _check_tuples(tuples: Any, n_samples: int) -> np.ndarray:
    """Row numbers of shape (n_tuples, t), refused where they do not number the points."""
    rows = np.asarray(tuples)
    if rows.ndim != 2 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"Got tuples of shape {rows.shape} and dtype {rows.dtype}, but expected integers of "
            "shape (n_tuples, t): row numbers of X. Tuples of points are passed as X itself."
        )
    if rows.size and (rows.min() < 0 or rows.max() >= n_samples):
        bad = rows[np.any((rows < 0) | (rows >= n_samples), axis=1)][0]
        raise ValueError(
            f"Got the tuple {tuple(bad.tolist())}, but expected row numbers from 0 to "
            f"{n_samples - 1}."
        )
    return rows
