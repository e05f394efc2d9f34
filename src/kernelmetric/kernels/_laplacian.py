"""The Laplacian kernel: a function of the L1 distance."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import (
    Weights,
    all_finite,
    exp_of_negative,
    l1_distances,
    take_rows,
    to_numpy,
    unweighed,
    weighted_quantiles,
)
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._points import check_number, ones

_MEDIAN_ROWS = 400  # 80 000 pairs settle a median to well under a percent


class Laplacian(Kernel):
    r"""Laplacian kernel, less smooth than the Gaussian and milder on outlying features.

    .. math:: k(x, y) = \exp(-\gamma \|x - y\|_1)

    A block of n × m values takes O(n m d) time.

    Parameters
    ----------
    gamma : float or {"auto", "median"}, default=None
        The inverse width. "auto" or None: 1 / d, as in scikit-learn; "median": one over the
        median L1 distance between training points.

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
        if isinstance(self.gamma, Real):
            return {"gamma": check_number("gamma", self.gamma)}
        word = "auto" if self.gamma is None else self.gamma if isinstance(self.gamma, str) else ""
        if word == "auto":
            return {"gamma": 1.0 / X.shape[1]}
        if word == "median":
            return {"gamma": 1.0 / _median_l1(X, unweighed(y)[1])}
        raise ValueError(
            f"Got gamma={self.gamma!r}, but expected a number, 'auto' or 'median': "
            "try gamma='median'."
        )

    def _gamma(self) -> float:
        return check_number("gamma", self.gamma)

    def _evaluate(self, A: Any, B: Any) -> Any:
        D1 = l1_distances(A, B)
        if not all_finite(D1):
            raise ValueError(
                "Got L1 distances that overflow, but expected finite numbers: "
                "try rescaling the features, for instance with StandardScaler."
            )
        return exp_of_negative(D1, self._gamma(), overwrite=True)

    def _diagonal(self, A: Any) -> Any:
        return ones(A)


def _median_l1(X: Any, weights: Weights | None = None) -> float:
    n = X.shape[0]
    rows = np.arange(n)
    if n > _MEDIAN_ROWS:
        rows = check_random_state(0).choice(n, _MEDIAN_ROWS, replace=False)
        X = take_rows(X, rows)
    with np.errstate(all="ignore"):
        D1 = l1_distances(to_numpy(X).astype(np.float64))
        apart = D1 > 0
        if not apart.any():
            median = 1.0
        elif weights is None:
            median = float(np.median(D1[apart]))
        else:
            counts = np.outer(weights.counts[rows], weights.counts[rows])
            median = float(weighted_quantiles(D1[apart], counts[apart], 0.5))
    if not np.isfinite(median):
        raise ValueError(
            f"Got a median L1 distance of {median}, but expected a finite number: "
            "try rescaling the features, for instance with StandardScaler."
        )
    return median if np.isfinite(1.0 / median) else 1.0
