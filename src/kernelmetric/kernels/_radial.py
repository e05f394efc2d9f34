"""Kernels that are functions of a distance: the squared Euclidean one, or L1."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import all_finite, is_sparse, namespace, reductions, take_rows, to_numpy
from kernelmetric.inputs import Weights, labels_and_weights
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._points import check_gamma, check_number, ones

_DELTA_FRACTION = 0.01
_MEDIAN_ROWS = 400  # 80 000 pairs settle a median to well under a percent
_LEAST_SPREAD = 1e-290  # one over a squared distance below this overflows, or nearly


class DecayingKernel(Kernel):
    """Base class of kernels exp(-γ D) of a distance, which are one for a point with itself."""

    gamma: Any

    def _gamma(self) -> float:
        return check_number("gamma", self.gamma)

    def _diagonal(self, A: Any) -> Any:
        return ones(A)


class RadialKernel(DecayingKernel):
    """Base class of kernels exp(-γ ‖x - y‖²), which share one block of squared distances."""

    accepts_sparse = True
    is_radial = True

    def _evaluate(self, A: Any, B: Any) -> Any:
        D2 = reductions.squared_distances(A, B)
        return reductions.exp_of_negative(D2, self._gamma(), overwrite=True)

    def _at_distances(self, D2: Any) -> Any:
        return reductions.exp_of_negative(D2, self._gamma())


class RBF(RadialKernel):
    r"""Gaussian kernel, the radial basis function.

    .. math:: k(x, y) = \exp(-\gamma \|x - y\|^2)

    Parameters
    ----------
    gamma : float or {"median", "scale", "auto"}, default=None
        The inverse squared width. "median": one over the median squared distance between
        training points; "scale": 1 / (d var(X)), as in scikit-learn's SVC; "auto": 1 / d.
        None means "median" unless ``sigma`` is given.
    sigma : float, default=None
        The width scaled by the number of features, γ = 1 / (2 d σ²), the form used in [1]_.

    See Also
    --------
    Laplacian : With absolute differences; less smooth.
    LeaveOneOutRidge : Chooses among them by the labels.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).

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
        if self.sigma is not None:
            sigma = check_number("sigma", self.sigma, positive=True)
            return {"gamma": _inverse_square("sigma", sigma, 2.0 * X.shape[1]), "sigma": None}
        weights = labels_and_weights(y)[1]
        words = {
            "median": lambda: _inverse(reductions.median_squared_distance(X, weights=weights)),
            "scale": lambda: _inverse(X.shape[1] * _variance(X, weights)),
            "auto": lambda: 1.0 / X.shape[1],
        }
        gamma = check_gamma("median" if self.gamma is None else self.gamma, words)
        return {"gamma": gamma, "sigma": None}


class Delta(RadialKernel):
    r"""Ridge as a kernel: one for a point with itself, zero between different points.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2 w^2}\right)

    with a width w far below the distances between points. ``K + rho * Delta()`` gives every
    training point a private coordinate, like the ridge of a soft margin. It is a very narrow
    Gaussian, so last-bit differences between batches do not change it.

    Parameters
    ----------
    width : float, default=None
        The width w. None: 0.01 times the median distance between training points, fixed by
        ``bind``.

    See Also
    --------
    RBF : A kernel to add it to.

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
            median = reductions.median_squared_distance(X, weights=labels_and_weights(y)[1])
            return {"width": _DELTA_FRACTION * _inverse(median) ** -0.5}
        return {"width": check_number("width", self.width, positive=True)}

    def _gamma(self) -> float:
        return _inverse_square("width", check_number("width", self.width, positive=True), 2.0)


class Laplacian(DecayingKernel):
    r"""Laplacian kernel, less smooth than the Gaussian and milder on outlying features.

    .. math:: k(x, y) = \exp(-\gamma \|x - y\|_1)

    Parameters
    ----------
    gamma : float or {"auto", "median"}, default=None
        The inverse width. "auto" or None: 1 / d, as in scikit-learn; "median": one over the
        median L1 distance between training points.

    See Also
    --------
    RBF : With squared differences; smoother.

    Examples
    --------
    >>> from kernelmetric.kernels import Laplacian
    >>> kernel = Laplacian(gamma=1.0)
    >>> kernel([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.5]]).round(3)
    array([[1.   , 0.368]])
    """

    def __init__(self, gamma: float | str | None = None):
        self.gamma = gamma

    @property
    def is_bound(self) -> bool:
        """Whether gamma is a number."""
        return isinstance(self.gamma, Real)

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        words = {
            "auto": lambda: 1.0 / X.shape[1],
            "median": lambda: _inverse(_median_l1(X, labels_and_weights(y)[1])),
        }
        return {"gamma": check_gamma("auto" if self.gamma is None else self.gamma, words)}

    def _evaluate(self, A: Any, B: Any) -> Any:
        D1 = reductions.l1_distances(A, B)
        if not all_finite(D1):
            raise reductions.out_of_range("L1 distances that overflow")
        return reductions.exp_of_negative(D1, self._gamma(), overwrite=True)


def rbf_widths() -> list[RBF]:
    r"""The 21 scaled Gaussian kernels of [1]_, from almost a delta to almost a constant.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2 D \sigma^2}\right)

    Returns
    -------
    list of RBF
        By increasing σ, from 0.01 to 1000; D, the number of features, is settled by ``bind``.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 5.1.

    Examples
    --------
    >>> from kernelmetric.kernels import rbf_widths
    >>> len(rbf_widths())
    21
    >>> rbf_widths()[:3]
    [RBF(sigma=0.01), RBF(sigma=0.025), RBF(sigma=0.05)]
    """
    factors = [(factor, power) for power in (-2, -1, 0, 1, 2) for factor in (1, 2.5, 5, 7.5)]
    widths = [float(f"{factor}e{power}") for factor, power in factors]
    return [RBF(sigma=sigma) for sigma in [*widths, 1000.0]]


def _median_l1(X: Any, weights: Weights | None = None) -> float:
    n = X.shape[0]
    rows = np.arange(n)
    if n > _MEDIAN_ROWS:
        rows = check_random_state(0).choice(n, _MEDIAN_ROWS, replace=False)
        X = take_rows(X, rows)
    with np.errstate(all="ignore"):
        D1 = reductions.l1_distances(to_numpy(X).astype(np.float64))
        apart = D1 > 0
    if not apart.any():
        return 1.0
    if weights is None:
        return float(np.median(D1[apart]))
    counts = np.outer(weights.counts[rows], weights.counts[rows])
    return float(reductions.weighted_quantiles(D1[apart], counts[apart], 0.5))


def _variance(X: Any, weights: Weights | None = None) -> float:
    if weights is not None or is_sparse(X):
        counts = np.ones(X.shape[0]) if weights is None else weights.counts
        share = counts / (counts.sum() * X.shape[1])
        first, second = (
            float(share @ np.asarray(M.sum(axis=1)).reshape(-1))
            for M in ((X, X.multiply(X)) if is_sparse(X) else (to_numpy(X), to_numpy(X) ** 2))
        )
        return second - first**2
    with np.errstate(all="ignore"):
        return float(namespace(X).var(X))


def _inverse(value: float) -> float:
    if not np.isfinite(value):
        raise reductions.out_of_range(f"a spread of {value} between the points")
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
