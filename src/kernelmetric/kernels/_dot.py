"""Kernels that are functions of the inner product."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kernelmetric.compute import is_sparse, namespace
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._points import check_gamma, check_number

_HIGHEST_DEGREE = 10_000  # far beyond what floating-point numbers can take


class Linear(Kernel):
    r"""Inner product: the kernel that changes nothing.

    .. math:: k(x, y) = x^\top y

    See Also
    --------
    Polynomial : Products of features too.

    Examples
    --------
    >>> from kernelmetric.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
    array([[11.,  2.]])
    """

    accepts_sparse = True

    def _evaluate(self, A: Any, B: Any) -> Any:
        return inner_products(A, B)


class Polynomial(Kernel):
    r"""Polynomial kernel: all monomials of the features up to a degree.

    .. math:: k(x, y) = (\gamma\, x^\top y + c_0)^p

    Parameters
    ----------
    degree : int, default=2
        The degree p, at least 1.
    gamma : float or "auto", default=None
        Factor of the inner product. None: 1; "auto": 1 / d, fixed by ``bind``.
    coef0 : float, default=1.0
        The constant c₀, non-negative (a negative one would not be positive semi-definite);
        0 keeps the monomials of exactly degree p.

    See Also
    --------
    Linear : The same of degree one.

    Examples
    --------
    >>> from kernelmetric.kernels import Polynomial
    >>> Polynomial(degree=2, coef0=0.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])
    """

    accepts_sparse = True

    def __init__(self, degree: int = 2, gamma: float | str | None = None, coef0: float = 1.0):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def is_bound(self) -> bool:
        """Whether gamma is a number (None is the number 1)."""
        return self.gamma is None or isinstance(self.gamma, Real)

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        words = {"auto": lambda: 1.0 / X.shape[1]}
        gamma = check_gamma(1.0 if self.gamma is None else self.gamma, words)
        return dict(zip(("degree", "gamma", "coef0"), self._checked(gamma), strict=True))

    def _checked(self, gamma: Any) -> tuple[int, float, float]:
        hint = "fractional powers are not positive semi-definite; try 2"
        Numbers(Integral, 1, _HIGHEST_DEGREE).require("degree", self.degree, hint=hint)
        gamma = 1.0 if gamma is None else check_number("gamma", gamma)
        return int(self.degree), gamma, check_number("coef0", self.coef0)

    def _evaluate(self, A: Any, B: Any) -> Any:
        degree, gamma, coef0 = self._checked(self.gamma)
        return (gamma * inner_products(A, B) + coef0) ** degree


def polynomial_degrees() -> list[Polynomial]:
    r"""The polynomial kernels of degrees 1 to 5, scaled by the number of features D.

    .. math:: k(x, y) = \left(\frac{x^\top y}{D}\right)^p

    The family of [1]_ for images of digits.

    Returns
    -------
    list of Polynomial
        By increasing degree; D is settled by ``bind``.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 5.1.

    Examples
    --------
    >>> from kernelmetric.kernels import polynomial_degrees
    >>> [kernel.degree for kernel in polynomial_degrees()]
    [1, 2, 3, 4, 5]
    >>> polynomial_degrees()[2]
    Polynomial(coef0=0.0, degree=3, gamma='auto')
    """
    return [Polynomial(degree=degree, gamma="auto", coef0=0.0) for degree in range(1, 6)]


class Cosine(Kernel):
    r"""Cosine of the angle between two points.

    .. math:: k(x, y) = \frac{x^\top y}{\|x\| \|y\|}

    A point at the origin has kernel value 0 with every point.

    See Also
    --------
    Linear : Where lengths count too.

    Examples
    --------
    >>> from kernelmetric.kernels import Cosine
    >>> Cosine()([[1.0, 0.0]], [[3.0, 0.0], [1.0, 1.0]]).round(3)
    array([[1.   , 0.707]])
    """

    accepts_sparse = True

    def _evaluate(self, A: Any, B: Any) -> Any:
        A = unit_rows(A)
        return inner_products(A, None if B is None else unit_rows(B))


def inner_products(A: Any, B: Any) -> Any:
    """Return A Bᵀ, dense; B None means A."""
    return safe_sparse_dot(A, (A if B is None else B).T, dense_output=True)


def squared_norms(A: Any) -> Any:
    """Squared norms of the rows of A."""
    if is_sparse(A):
        return row_norms(A, squared=True)
    return namespace(A).sum(A * A, axis=1)


def unit_rows(A: Any) -> Any:
    """Rows of A scaled to norm one; rows of zeros stay."""
    if is_sparse(A):
        return normalize(normalize(A, "max"))
    xp = namespace(A)
    with np.errstate(over="ignore", under="ignore"):
        squares = xp.sum(A * A, axis=1, keepdims=True)
    least = 1e8 * xp.finfo(A.dtype).smallest_normal
    if not bool(xp.all((squares > least) & (squares < 1 / least))):  # not all squares are numbers
        sizes = xp.max(xp.abs(A), axis=1, keepdims=True)
        A = A / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        squares = xp.sum(A * A, axis=1, keepdims=True)
    lengths = xp.sqrt(squares)
    return A / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
