"""The map of a space and that of a learner as one matrix, for points that are checked once.

A space gives f(x)ᵀ P - o, a learner multiplies that by Lᵀ. Together they are f(x)ᵀ A - b, where
A = P Lᵀ and b = o Lᵀ are computed once. Rounding changes f(x)ᵀ P Lᵀ by up to some
(m + r) eps |f(x)|ᵀ |P| |Lᵀ| either way.
"""

from typing import Any

import numpy as np
from sklearn import config_context

from kernelmetric.compute import like, map_rows, namespace, to_numpy
from kernelmetric.learners import Learner
from kernelmetric.spaces import KernelTrick, Space


class FoldedMap:
    """The one matrix of a metric, made when it is first needed and again when its parts change."""

    _made: tuple[Any, ...] = (None,) * 5  # of P, o and L, then A and b

    def __call__(self, space: Space, L: Any, X: Any) -> Any:
        """Learned coordinates of points, in their library and dtype.

        The space is one that :func:`can_fold` knows, L of shape (q, r) the learner's map, and the
        points are checked.
        """
        if isinstance(space, KernelTrick):  # its coordinates are the features themselves
            return space._affine(X, L.T, like(np.zeros((1, L.shape[0])), L))
        P, o, L = space.projection_, to_numpy(space.offset_), to_numpy(L)
        of_P, of_o, of_L, A, b = self._made
        if of_P is not P or not (np.array_equal(of_o, o) and np.array_equal(of_L, L)):
            A, b = _product(P, L), _product(like(o, P), L)
            self._made = P, o.copy(), L.copy(), A, b
        return space._affine(X, A, b)


def _product(P: Any, L: np.ndarray) -> Any:
    """P Lᵀ, computed in float64, in the library and dtype of P."""
    xp = namespace(P)

    def work(rows: slice) -> Any:
        wide = xp.astype(P[rows, :], xp.float64)
        return xp.astype(wide @ like(L.T, wide), P.dtype)

    return map_rows(work, P.shape[0], 8 * (2 * P.shape[1] + L.shape[0]))


def can_fold(space: Any, learner: Any) -> bool:
    """Whether the two are known to be linear: classes of this library, as they stand there."""
    return (
        _checks_itself(space)
        and type(space)._coordinates in _COORDINATES
        and isinstance(learner, Learner)
        and type(learner).transform is Learner.transform
        and getattr(learner, "space_", None) is None  # or its map is one on coordinates of its own
    )


# Whoever defines another one computes something else.
_COORDINATES = (Space._coordinates, KernelTrick._coordinates)


def _checks_itself(space: Any) -> bool:
    """Whether a space's methods are a check of X and what comes after it, which is had alone."""
    kind = type(space)
    names = ("transform", "fit_transform")
    return isinstance(space, Space) and all(
        getattr(kind, name) is getattr(Space, name) for name in names
    )


@config_context(transform_output="default", assume_finite=True)
def fit_coordinates(space: Any, X: Any, y: Any) -> Any:
    """``space.fit_transform(X, y)`` of points that are checked, which are not checked again."""
    return space._fit_checked(X, y) if _checks_itself(space) else space.fit_transform(X, y)


@config_context(transform_output="default", assume_finite=True)
def coordinates(space: Any, X: Any) -> Any:
    """``space.transform(X)`` of points that are checked, which are not checked again."""
    return space._coordinates(X) if _checks_itself(space) else space.transform(X)
