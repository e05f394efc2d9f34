"""The softmax of NCA over all other points: loss and gradient by row blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from kernelmetric.compute._arrays import is_numpy, namespace, set_entries
from kernelmetric.compute._budget import itemsize_of, row_blocks, tile_rows
from kernelmetric.compute._threads import over_threads, own_threads

_TILE_BYTES = 2**20  # a block of the softmax stays in the second-level cache
# exp(-40) is far below float32 resolution beside the largest term, 1; smaller exponents would
# make denormals, which slow the product that follows down by an order of magnitude.
_LOWEST_EXPONENT = -40.0


def nca_loss(L: Any, X: Any, codes: np.ndarray) -> tuple[float, Any]:
    """NCA objective and its gradient, eq. (3) and (5) of [1]_.

    ``f(L) = -Σ_i Σ_{j: y_j = y_i} p_ij`` with ``p_ij ∝ exp(-|L x_i - L x_j|²)``, ``p_ii = 0``:
    minus the expected number of points that pick a neighbour of their own class.

    Parameters
    ----------
    L : array of shape (r, d)
        The linear map.
    X : array of shape (n, d)
        The points, **rows sorted by class**.
    codes : ndarray of shape (n,)
        Class codes, ascending.

    Returns
    -------
    value : float
        Between -n and 0.
    gradient : array of shape (r, d)
        ∂f/∂L.

    Notes
    -----
    With ``W_ij = p_ij ([y_i = y_j] - p_i)`` the rows of W sum to zero, and
    ``∂f/∂E = 2 (diag(Wᵀ1) - W - Wᵀ) E`` for the embedding ``E = X Lᵀ``. O(n² r + n r d) time,
    one block of rows × n in memory.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    """
    with own_threads(6.0 * X.shape[0] ** 2 * L.shape[0]):
        return _nca_loss(L, X, codes)


def _nca_loss(L: Any, X: Any, codes: np.ndarray) -> tuple[float, Any]:
    xp = namespace(L, X)
    E = X @ L.T
    # Moving the embedding changes no distance but keeps its squares small in float32.
    E = E - xp.mean(E, axis=0, keepdims=True)
    square = xp.sum(E * E, axis=1)
    ones = xp.ones_like(E[:, :1])
    columns = xp.concat([2.0 * E, -square[:, None]], axis=1).T  # one product gives the exponents
    augmented = xp.concat([E, ones], axis=1)
    own = xp.zeros_like(E)  # W E, written row by row

    def work(blocks: list[tuple[slice, slice]]) -> tuple[float, Any]:
        """The share of some blocks in the objective and in Wᵀ [E, 1]."""
        total, transposed = 0.0, xp.zeros_like(augmented)
        for rows, members in blocks:
            P = _exponentials(augmented[rows, :], columns, rows.start, xp)
            scale = 1.0 / xp.sum(P, axis=1)
            p = xp.sum(P[:, members], axis=1) * scale
            total += float(xp.sum(p))
            inside = P[:, members] * (scale * (1.0 - p))[:, None]
            P *= (-p * scale)[:, None]
            P[:, members] = inside
            own[rows, :] = P @ E
            transposed += P.T @ augmented[rows, :]
        return total, transposed

    shares = over_threads(work, _blocks(codes, E), threads=is_numpy(E))
    total = sum(share for share, _ in shares)
    transposed = sum((part for _, part in shares[1:]), start=shares[0][1])
    gradient_E = 2.0 * (transposed[:, -1:] * E - own - transposed[:, :-1])
    return -total, gradient_E.T @ X


def _blocks(codes: np.ndarray, E: Any) -> list[tuple[slice, slice]]:
    """Blocks of rows of one class, each with the columns of that class."""
    n = len(codes)
    most = tile_rows(E, n, _TILE_BYTES)
    return [
        (slice(start + block.start, start + block.stop), slice(start, stop))
        for start, stop in class_slices(codes)
        for block in row_blocks(stop - start, 6 * n * itemsize_of(E), most=most)
    ]


def _exponentials(rows: Any, columns: Any, first: int, xp: Any) -> Any:
    """Unnormalised softmax of a block of rows, its own points left out."""
    S = rows @ columns
    own = np.arange(first, first + S.shape[0])
    S = set_entries(S, own, -np.inf)
    S -= xp.max(S, axis=1, keepdims=True)
    if is_numpy(S):
        np.exp(np.maximum(S, _LOWEST_EXPONENT, out=S), out=S)
    else:
        S = xp.exp(xp.clip(S, _LOWEST_EXPONENT, None))
    return set_entries(S, own, 0.0)


def class_slices(codes: np.ndarray) -> list[tuple[int, int]]:
    """Start and stop of every run of equal codes."""
    if np.any(codes[1:] < codes[:-1]):
        raise ValueError("Got unsorted codes, but expected rows sorted by class.")
    borders = np.flatnonzero(np.diff(codes)) + 1
    edges = [0, *borders.tolist(), len(codes)]
    return list(pairwise(edges))
