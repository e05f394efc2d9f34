"""Families of base kernels: one formula, many widths or degrees."""

from __future__ import annotations

from kernelmetric.kernels._dot import Polynomial
from kernelmetric.kernels._radial import RBF

#: The 21 scaled widths σ of [1], section 5.1: 1, 2.5, 5 and 7.5 in every decade from 0.01 on.
WIDTHS = (
    *(float(f"{factor}e{power}") for power in (-2, -1, 0, 1, 2) for factor in (1, 2.5, 5, 7.5)),
    1000.0,
)
DEGREES = (1, 2, 3, 4, 5)


def rbf_widths() -> list[RBF]:
    r"""The 21 scaled Gaussian kernels of [1]_, from almost a delta to almost a constant.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2 D \sigma^2}\right)

    Returns
    -------
    list of RBF
        By increasing σ, from 0.01 to 1000; D, the number of features, is settled by ``bind``.

    References
    ----------
    .. [1] R. Chatpatanasiri, T. Korsrilabutr, P. Tangchanachaianan, B. Kijsirikul. "A new
       kernelization framework for Mahalanobis distance learning algorithms". Neurocomputing,
       2010, section 5.1.

    Examples
    --------
    >>> from kernelmetric.kernels import rbf_widths
    >>> len(rbf_widths())
    21
    >>> rbf_widths()[:3]
    [RBF(sigma=0.01), RBF(sigma=0.025), RBF(sigma=0.05)]
    """
    return [RBF(sigma=sigma) for sigma in WIDTHS]


def polynomial_degrees() -> list[Polynomial]:
    r"""The polynomial kernels of degrees 1 to 5, scaled by the number of features D.

    .. math:: k(x, y) = \left(\frac{x^\top y}{D}\right)^p

    The family of [1]_ for images of digits, whose pixels want one scale in common.

    Returns
    -------
    list of Polynomial
        By increasing degree; D is settled by ``bind``.

    References
    ----------
    .. [1] R. Chatpatanasiri, T. Korsrilabutr, P. Tangchanachaianan, B. Kijsirikul. "A new
       kernelization framework for Mahalanobis distance learning algorithms". Neurocomputing,
       2010, section 5.1.

    Examples
    --------
    >>> from kernelmetric.kernels import polynomial_degrees
    >>> [kernel.degree for kernel in polynomial_degrees()]
    [1, 2, 3, 4, 5]
    >>> polynomial_degrees()[2]
    Polynomial(coef0=0.0, degree=3, gamma='auto')
    """
    return [Polynomial(degree=degree, gamma="auto", coef0=0.0) for degree in DEGREES]
