"""Neighbours among learned coordinates, and what their distances make them weigh."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import nearest_neighbors

MOST = 100  # neighbours that may vote
NUMBERS = (5, 10, 20, 50, MOST)
TEMPERATURES = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 3.0)


class Neighbors(NamedTuple):
    """The nearest training points of some points, nearest first.

    Attributes
    ----------
    rows : ndarray of shape (m, k)
        Row numbers; -1 where an approximate index found fewer.
    squares : ndarray of shape (m, k)
        Squared learned distances; inf where there is no neighbour.
    """

    rows: np.ndarray
    squares: np.ndarray

    def weights(self, n_neighbors: int, width: float) -> np.ndarray:
        """``exp(-(d² - d₁²) / 2 width²)`` of the first so many, d₁ the nearest distance."""
        squares = self.squares[:, :n_neighbors]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(np.exp((squares[:, :1] - squares) / (2 * width**2)))


def nearest(E: np.ndarray, queries: np.ndarray, k: int) -> Neighbors:
    """The exact k nearest rows of E, or all there are."""
    return Neighbors(*nearest_neighbors(E, min(k, len(E)), queries=queries))


def nearest_by_faiss(index: Any, E: np.ndarray, queries: np.ndarray, k: int) -> Neighbors:
    """The k nearest rows of E that an index of them finds, with their distances in float64."""
    _, rows = index.search(np.ascontiguousarray(queries, dtype=np.float32), min(k, len(E)))
    squares = np.stack([np.sum((E[column] - queries) ** 2, axis=1) for column in rows.T], axis=1)
    squares[rows < 0] = np.inf
    order = np.argsort(squares, axis=1, kind="stable")
    return Neighbors(
        np.take_along_axis(rows, order, axis=1).astype(np.intp),
        np.take_along_axis(squares, order, axis=1),
    )


def faiss_index(E: np.ndarray, factory: str) -> Any:
    """A faiss index of learned coordinates."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError(
            f"index={factory!r} needs the package faiss-cpu, which is not installed: try pip "
            'install "kernelmetric[faiss]".'
        ) from error
    points = np.ascontiguousarray(E, dtype=np.float32)
    try:
        index = faiss.index_factory(points.shape[1], factory, faiss.METRIC_L2)
        if not index.is_trained:
            index.train(points)
        index.add(points)
    except RuntimeError as error:
        raise ValueError(
            f"Got index={factory!r}, but expected what faiss.index_factory makes of {len(E)} "
            "points: try 'Flat', or 'HNSW32'."
        ) from error
    return index


def spread(E: np.ndarray) -> float:
    """Root mean squared distance of the points from their mean; 1 where they coincide.

    Widths are multiples of it, because metrics that were learned in different folds have
    different scales.
    """
    size = float(np.sqrt(np.sum(np.var(E, axis=0))))
    return size if size > 0 else 1.0


def class_shares(
    found: Neighbors, weights: np.ndarray, codes: np.ndarray, priors: np.ndarray
) -> np.ndarray:
    """Share of every class in the votes, with one more vote that is divided as the classes are.

    Without that vote a class that no neighbour has would be impossible.

    Parameters
    ----------
    found : Neighbors
        Neighbours of m points.
    weights : ndarray of shape (m, k)
        What each of the first k counts.
    codes : ndarray of shape (n,)
        Classes of the training points.
    priors : ndarray of shape (c,)
        Shares of the classes among the training points.

    Returns
    -------
    ndarray of shape (m, c)
        Positive, each row with sum one.
    """
    (m, k), c = weights.shape, len(priors)
    cells = np.arange(m)[:, None] * c + codes[found.rows[:, :k]]
    votes = np.bincount(cells.ravel(), weights=weights.ravel(), minlength=m * c).reshape(m, c)
    return (votes + priors) / (votes.sum(axis=1, keepdims=True) + 1.0)


def weighted_moments(
    found: Neighbors, weights: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean of the neighbours' targets, and their standard deviation around it."""
    values = y[found.rows[:, : weights.shape[1]]]
    total = weights.sum(axis=1)
    mean = np.sum(weights * values, axis=1) / total
    variance = np.sum(weights * (values - mean[:, None]) ** 2, axis=1) / total
    return mean, np.sqrt(variance)
