"""The training points themselves as a basis."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import in_float64, is_single, to_numpy
from kernelmetric.spaces._base import Space, embedded, own, refuse_indefinite, round_off
from kernelmetric.spaces._gram import Gram


class KernelTrick(Space):
    r"""Coordinates with respect to the training points, the classical kernel trick.

    .. math:: z(x) = (k(x, x_1), \dots, k(x, x_n))

    The map is not centred and the basis :math:`\phi(x_1), \dots, \phi(x_n)` not orthonormal: its
    Gram matrix is K, and a learner has to know it (``gram_``). Distances in the feature space are
    :math:`(z_i - z_j)^\top K^+ (z_i - z_j)`. O(n² d) time and one n × n array.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width.
    singular : {"range", "ridge", "raw"}, default="range"
        What K⁺ means where K is singular: solve in its range, with K + εI, or with K as it is.
    ridge : float, default=1e-6
        ε as a fraction of the mean eigenvalue, for ``singular="ridge"``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    basis_gram_ : array of shape (n, n)
        The Gram matrix K.
    gram_ : Gram
        The same, with ``singular`` and ``ridge``.
    anchors_ : array of shape (n, d)
        The training points.
    eigenvalues_ : ndarray of shape (r,)
        Eigenvalues of the centred Gram matrix above round-off, descending; computed when asked.
    rank_ : int
        Numerical rank of K; computed when asked.
    explained_variance_ratio_ : float
        1: nothing is left out.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.spaces import KernelTrick
    >>> X = np.random.RandomState(0).randn(5, 2)
    >>> space = KernelTrick(kernel="linear").fit(X)
    >>> space.transform(X).shape
    (5, 5)
    >>> space.rank_
    2
    """

    def __init__(self, kernel: Any = None, *, singular: str = "range", ridge: float = 1e-6):
        self.kernel = kernel
        self.singular = singular
        self.ridge = ridge

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        return 8.0 * (4 * n_samples * n_samples + 2 * n_samples * n_features)

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        self.__dict__.pop("eigenvalues_", None)
        single = is_single(X)
        points = in_float64(X)
        self.anchors_ = own(self.kernel_.anchors(points))
        K = self.kernel_(points)
        # A symmetric copy: X itself may be K, and belongs to the caller.
        self.basis_gram_ = (K + K.T) / 2
        self.gram_ = Gram(self.basis_gram_, singular=self.singular, ridge=self.ridge)
        values = self.gram_.eigenvalues
        rounding = round_off(
            float(np.trace(self.gram_.matrix)),
            X.shape[1],
            single=single and self.kernel_.pairwise,
        )
        refuse_indefinite(float(values[0]), float(values[-1]), rounding=rounding, single=single)
        self.explained_variance_ratio_ = 1.0
        return lambda: own(self.basis_gram_)

    @cached_property
    def eigenvalues_(self) -> np.ndarray:
        """Eigenvalues of the centred Gram matrix, descending."""
        K = to_numpy(self.basis_gram_)
        Kc = K - K.mean(axis=0)
        Kc -= Kc.mean(axis=1, keepdims=True)
        values = linalg.eigvalsh(Kc)[::-1]
        return values[values > self.gram_.cut_off]

    @property
    def rank_(self) -> int:
        """Numerical rank of K."""
        return self.gram_.rank

    @property
    def _n_features_out(self) -> int:
        return int(self.basis_gram_.shape[0])

    def _coordinates(self, X: Any) -> Any:
        return embedded(self._features, X, self.basis_gram_.shape[0])
