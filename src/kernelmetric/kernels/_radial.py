"""Radial kernels: functions of the squared Euclidean distance."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from kernelmetric.compute import (
    Weights,
    exp_of_negative,
    is_sparse,
    median_squared_distance,
    namespace,
    squared_distances,
    to_numpy,
    unweighed,
)
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._points import check_number, ones

_DELTA_FRACTION = 0.01
_LEAST_SPREAD = 1e-290  # one over a squared distance below this overflows, or nearly


class RadialKernel(Kernel):
    """Base class of kernels exp(-γ ‖x - y‖²), which share one block of squared distances.

    A subclass says what γ is (``_gamma``); ``Sum`` computes the distances once for all its
    radial terms.
    """

    accepts_sparse = True
    is_radial = True

    def _gamma(self) -> float:
        raise NotImplementedError(f"{type(self).__name__} must define _gamma().")

    def _evaluate(self, A: Any, B: Any) -> Any:
        return exp_of_negative(squared_distances(A, B), self._gamma(), overwrite=True)

    def _at_distances(self, D2: Any) -> Any:
        return exp_of_negative(D2, self._gamma())

    def _diagonal(self, A: Any) -> Any:
        return ones(A)


class RBF(RadialKernel):
    r"""Gaussian kernel, the radial basis function.

    .. math:: k(x, y) = \exp(-\gamma \|x - y\|^2)

    A block of n × m values takes O(n m d) time and one n × m array.

    Parameters
    ----------
    gamma : float or {"median", "scale", "auto"}, default=None
        The inverse squared width. "median": one over the median squared distance between
        training points; "scale": 1 / (d var(X)), as in scikit-learn's SVC; "auto": 1 / d.
        None means "median" unless ``sigma`` is given.
    sigma : float, default=None
        The width scaled by the number of features, γ = 1 / (2 d σ²), the form used in [1]_.

    References
    ----------
    .. [1] R. Chatpatanasiri, T. Korsrilabutr, P. Tangchanachaianan, B. Kijsirikul. "A new
       kernelization framework for Mahalanobis distance learning algorithms". Neurocomputing,
       2010.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import RBF
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> kernel = RBF(gamma="median").bind(X)
    >>> kernel
    RBF(gamma=0.25)
    >>> kernel(X).round(3)
    array([[1.   , 0.779, 0.368],
           [0.779, 1.   , 0.287],
           [0.368, 0.287, 1.   ]])
    """

    def __init__(self, gamma: float | str | None = None, sigma: float | None = None):
        self.gamma = gamma
        self.sigma = sigma

    @property
    def is_bound(self) -> bool:
        """Whether gamma is a number."""
        return isinstance(self.gamma, Real) and self.sigma is None

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        if self.gamma is not None and self.sigma is not None:
            raise ValueError(
                f"Got gamma={self.gamma!r} and sigma={self.sigma!r}, but expected one of them: "
                "each of the two sets the width."
            )
        word = "median" if self.gamma is None else self.gamma if isinstance(self.gamma, str) else ""
        if self.sigma is not None:
            sigma = check_number("sigma", self.sigma, positive=True)
            gamma = _inverse_square("sigma", sigma, 2.0 * X.shape[1])
        elif isinstance(self.gamma, Real):
            gamma = check_number("gamma", self.gamma)
        elif word == "median":
            gamma = _inverse(median_distance(X, unweighed(y)[1]))
        elif word == "scale":
            gamma = _inverse(X.shape[1] * _variance(X, unweighed(y)[1]))
        elif word == "auto":
            gamma = 1.0 / X.shape[1]
        else:
            raise ValueError(
                f"Got gamma={self.gamma!r}, but expected a number, 'median', 'scale' or 'auto': "
                "try gamma='median'."
            )
        return {"gamma": gamma, "sigma": None}

    def _gamma(self) -> float:
        return check_number("gamma", self.gamma)


class Delta(RadialKernel):
    r"""Ridge as a kernel: one for a point with itself, zero between different points.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2 w^2}\right)

    with a width w far below the distances between points. ``K + rho * Delta()`` gives every
    training point a private coordinate, like the ridge of a soft margin. It is a very narrow
    Gaussian, not a test of equality: last-bit differences between batches do not change it, so
    training points keep their coordinates in ``transform``. O(n m d) time for a block.

    Parameters
    ----------
    width : float, default=None
        The width w. None: 0.01 times the median distance between training points, fixed by
        ``bind``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import RBF, Delta
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Delta().bind(X)(X).round(6)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> RBF(gamma=1.0) + 0.1 * Delta()
    RBF(gamma=1.0) + 0.1 * Delta()
    """

    def __init__(self, width: float | None = None):
        self.width = width

    @property
    def is_bound(self) -> bool:
        """Whether the width is a number."""
        return isinstance(self.width, Real)

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        if self.width is None:
            return {"width": _DELTA_FRACTION * float(np.sqrt(median_distance(X, unweighed(y)[1])))}
        return {"width": check_number("width", self.width, positive=True)}

    def _gamma(self) -> float:
        width = check_number("width", self.width, positive=True)
        return _inverse_square("width", width, 2.0)


def median_distance(X: Any, weights: Weights | None = None) -> float:
    """Median squared distance of X, refused when it overflows."""
    if X.shape[0] < 2:
        return 1.0  # no pair of points says anything about a width
    median = median_squared_distance(X, weights=weights)
    return median if median > _LEAST_SPREAD else 1.0  # below: for float64 the points coincide


def _variance(X: Any, weights: Weights | None = None) -> float:
    if weights is not None:
        share = weights.counts / (weights.total * X.shape[1])
        first, second = (
            float(share @ np.asarray(M.sum(axis=1)).reshape(-1))
            for M in ((X, X.multiply(X)) if is_sparse(X) else (to_numpy(X), to_numpy(X) ** 2))
        )
        return second - first**2
    if is_sparse(X):
        return float(X.multiply(X).mean() - X.mean() ** 2)
    with np.errstate(all="ignore"):
        return float(namespace(X).var(X))


def _inverse(value: float) -> float:
    if not np.isfinite(value):
        raise ValueError(
            f"Got a spread of {value} between the points, but expected a finite number: "
            "try rescaling the features, for instance with StandardScaler."
        )
    return 1.0 / value if value > _LEAST_SPREAD else 1.0


def _inverse_square(name: str, width: float, factor: float) -> float:
    square = factor * width * width
    if not _LEAST_SPREAD <= square < np.inf:
        fault, wish = ("underflows", "wider") if square < 1 else ("overflows", "narrower")
        raise ValueError(
            f"Got {name}={width!r}, whose square {fault}, but expected a {wish} kernel: "
            "try rescaling the features."
        )
    return 1.0 / square
