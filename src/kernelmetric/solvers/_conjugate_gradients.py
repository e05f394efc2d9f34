"""Conjugate gradients for many right sides at once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import namespace, to_numpy
from kernelmetric.compute.watch import ended_by_limit

_LOOKS = 4  # iterations between two looks at the residuals, for which a device has to wait


class Solved(NamedTuple):
    """Solutions in columns, how many products it took, and the largest relative residual."""

    X: Any
    n_iter: int
    residual: float


def conjugate_gradients(
    multiply: Callable[[Any], Any],
    B: Any,
    *,
    tol: float = 1e-5,
    max_iter: int = 2000,
    start: Any = None,
) -> Solved:
    """Solve ``A X = B`` for a positive semi-definite A, known by its products with a block.

    Every column of B is a problem of its own and lies in the range of A. Products begin and stay in
    the space of B, so a projection may be part of them. A time limit ends the iterations.
    """
    xp = namespace(B)

    def dots(U: Any, V: Any) -> Any:
        return xp.sum(U * V, axis=0)

    def quotient(a: Any, b: Any) -> Any:  # of columns that are solved, zero
        return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(b))

    X, R = (xp.zeros_like(B), B) if start is None else (start, B - multiply(start))
    P, rr, size, n_iter, residual = R, dots(R, R), dots(B, B), 0, np.inf
    for n_iter in range(max_iter + 1):
        if n_iter % _LOOKS == 0 or n_iter == max_iter:
            residual = float(np.sqrt(np.max(to_numpy(quotient(rr, size)), initial=0.0)))
            if residual <= tol or ended_by_limit("the spread of labels"):
                break
        if n_iter == max_iter:
            break
        Q = multiply(P)
        step = quotient(rr, dots(P, Q))
        X, R = X + step * P, R - step * Q
        rr, before = dots(R, R), rr
        P = R + quotient(rr, before) * P
    return Solved(X, n_iter, residual)
