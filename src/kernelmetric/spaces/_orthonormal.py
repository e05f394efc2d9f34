"""Points in an orthonormal basis, and the way of linear maps to it and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import in_float64, like, namespace, to_numpy
from kernelmetric.solvers import right_singular
from kernelmetric.spaces._gram import Gram


class Coordinates(NamedTuple):
    """Centred points in an orthonormal basis, as :func:`orthonormal` gives them."""

    Z: Any  # (n, r)
    size: float  # of a unit of Z in those of X
    rotation: np.ndarray | None  # (r, d): orthonormal rows that span the points, where asked for
    gram: Gram | None  # of the basis of X, where it is not orthonormal

    @property
    def basis(self) -> np.ndarray:
        """The rows B with ``Z = (X - mean) Bᵀ``; shape (r, d)."""
        return self.leave(np.eye(self.Z.shape[1]))

    def leave(self, A: np.ndarray) -> np.ndarray:
        """From a map on these coordinates to one on those of X: A B."""
        A = A / self.size
        A = A if self.rotation is None else A @ self.rotation
        return A if self.gram is None else A @ self.gram.inv_sqrt().T

    def enter(self, L: np.ndarray) -> np.ndarray:
        """From a map on the coordinates of X to one on these."""
        L = L if self.gram is None else L @ self.gram.matrix @ self.gram.inv_sqrt()
        L = L if self.rotation is None else L @ self.rotation.T
        return L * self.size


def orthonormal(
    X: Any, gram: Gram | None = None, *, span: bool = True, unit: bool = True
) -> Coordinates:
    """Coordinates that moving and scaling the points, or another basis, leaves alike.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    gram : Gram, default=None
        Of the basis of X, where it is not orthonormal.
    span : bool, default=True
        Whether to use no more dimensions than the points span, in float64 of NumPy: scatter
        matrices have full rank there. Otherwise Z stays in the library and dtype of X.
    unit : bool, default=True
        Whether the mean squared length of the points becomes one: its powers stay in range.

    Returns
    -------
    Coordinates
        O(n d²) time.
    """
    X = in_float64(to_numpy(X)) if span else X
    xp = namespace(X)
    Z = X if gram is None else like(gram.whiten(X), X)
    Z = Z - xp.mean(Z, axis=0, keepdims=True)  # last: what whitening rounds would be a direction
    # Divided by the largest entry first: squares of features at 1e200 leave the range.
    top = (float(xp.max(xp.abs(Z))) or 1.0) if unit else 1.0
    if not span:
        size = top * float(xp.sqrt(xp.mean((Z / top) ** 2) * Z.shape[1])) if unit else 1.0
        return Coordinates(Z / (size or 1.0), size or 1.0, None, gram)
    Z = Z / top
    rotation = _spanning_rows(Z)
    Z = Z @ rotation.T
    length = float(np.sqrt(np.sum(Z * Z) / len(Z))) if unit else 1.0
    return Coordinates(Z / length, top * length, rotation, gram)


def _spanning_rows(Z: np.ndarray) -> np.ndarray:
    """Orthonormal rows that span those of Z; the identity where these have all directions."""
    R: Any = np.linalg.qr(Z, mode="r") if len(Z) > Z.shape[1] else Z
    s, Vt = right_singular(R)
    rows = Vt[s > max(Z.shape) * np.finfo(np.float64).eps * s[0]]
    return np.eye(Z.shape[1]) if len(rows) == Z.shape[1] else rows
