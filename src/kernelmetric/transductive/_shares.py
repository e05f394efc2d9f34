"""Probabilities of classes from distances to the nearest label of each."""

from typing import Any

import numpy as np

from kernelmetric.solvers import evenly
from kernelmetric.transductive._given import nearest_points

_POWERS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_JUDGED = 1000  # labels that are left out in turn
_DOUBT = 0.01  # of a probability, shared by all classes
_LEAST = 1e-12  # of a ratio of squared distances: at a label, others are no farther than that


def shares_by_distance(E: np.ndarray, codes: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """``p_c ∝ d_c^-2t``, with the distance from each row of Q to the nearest label of class c.

    The t under which every label is most probable when it is left out.
    """
    labelled = np.flatnonzero(codes >= 0)
    some = labelled[evenly(len(labelled), _JUDGED)]
    squares, own = _nearest_of_classes(E, codes, E[some], some), codes[some]
    known = np.isfinite(squares[np.arange(len(some)), own])  # those that are not alone

    def loss(power: float) -> float:
        P = _shares(squares[known], power)
        return -float(np.sum(np.log(P[np.arange(len(P)), own[known]])))

    best = min(_POWERS, key=loss) if known.any() else 1.0
    return _shares(_nearest_of_classes(E, codes, Q), best)


def nearest_evidence(points: Any, codes: np.ndarray, queries: Any) -> np.ndarray:
    """``-log d_c²``, less the largest, with the distance to the nearest label of each class c."""
    return np.log(np.maximum(_nearness(_nearest_of_classes(points, codes, queries)), _LEAST))


def _nearest_of_classes(
    E: Any, codes: np.ndarray, Q: Any, rows: np.ndarray | None = None
) -> np.ndarray:
    """Squared distances from Q to the nearest label of each class; ``rows`` are left out of it."""
    n_classes = int(codes.max()) + 1
    squares = np.empty((Q.shape[0], n_classes))
    for c in range(n_classes):
        members = np.flatnonzero(codes == c)
        k = min(1 if rows is None else 2, len(members))
        nearest, found = nearest_points(E[members], k, queries=Q)
        squares[:, c] = found[:, 0]
        if rows is not None:  # its own label does not count
            itself = members[nearest] == rows[:, None]
            squares[:, c] = np.where(itself, np.inf, found).min(axis=1)
    return squares


def _shares(squares: np.ndarray, power: float) -> np.ndarray:
    """Shares in proportion to a power of one over the squares, with a little doubt."""
    near = _nearness(squares)
    P = np.where(near > _LEAST, near, 0.0) ** power  # nearer to a label is round-off
    P /= P.sum(axis=1, keepdims=True)
    return (1.0 - _DOUBT) * P + _DOUBT / P.shape[1]


def _nearness(squares: np.ndarray) -> np.ndarray:
    """The least square of each row over the others; one at the nearest."""
    least = squares.min(axis=1, keepdims=True)
    return np.where(squares > 0, least / np.where(squares > 0, squares, 1.0), 1.0)
