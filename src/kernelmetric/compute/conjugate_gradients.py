"""Conjugate gradients for many right sides at once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from kernelmetric.compute.watch import ended_by_limit


class Solved(NamedTuple):
    """Solutions in columns, how many products it took, and the largest relative residual."""

    X: Any
    n_iter: int
    residual: float


def conjugate_gradients(
    multiply: Callable[[Any], Any],
    B: Any,
    *,
    tol: float,
    max_iter: int = 2000,
    precondition: Callable[[Any], Any] = lambda R: R,
    every: int = 4,
    what: str = "",
) -> Solved:
    """Solve ``A X = B`` for a positive semi-definite A, known by its products with a block.

    Every column of B is a problem of its own and lies in the range of A. Products begin and stay in
    the space of B, so a projection may be part of them. After ``every`` so many iterations the
    residuals are looked at, for which a device has to wait. A time limit ends what has a name.
    """
    xp = array_namespace(B)

    def dots(U: Any, V: Any) -> Any:
        return xp.sum(U * V, axis=0)

    def quotient(a: Any, b: Any) -> Any:  # of columns that are solved, zero
        return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(b))

    X, R, P, size = xp.zeros_like(B), B, xp.zeros_like(B), dots(B, B)
    along, n_iter, residual = xp.ones_like(size), 0, np.inf
    for n_iter in range(max_iter + 1):
        if n_iter % every == 0 or n_iter == max_iter:
            left = quotient(dots(R, R), size)
            residual = float(xp.max(left)) ** 0.5 if B.shape[1] else 0.0
            if residual <= tol or n_iter == max_iter or (what and ended_by_limit(what)):
                break
        Z = precondition(R)
        before, along = along, dots(R, Z)
        P = Z + quotient(along, before) * P
        Q = multiply(P)
        step = quotient(along, dots(P, Q))
        X, R = X + step * P, R - step * Q
    return Solved(X, n_iter, residual)
