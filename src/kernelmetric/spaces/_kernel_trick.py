"""The training points themselves as a basis."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import namespace, to_numpy
from kernelmetric.solvers import Gram
from kernelmetric.spaces._base import Space, as_float64, map_rows, refuse_indefinite


class KernelTrick(Space):
    r"""Coordinates with respect to the training points, the classical kernel trick.

    .. math:: z(x) = (k(x, x_1), \dots, k(x, x_n))

    The map is not centred and the basis :math:`\phi(x_1), \dots, \phi(x_n)` not orthonormal: its
    Gram matrix is K, and a learner has to know it (``gram_``). Distances in the feature space are
    :math:`(z_i - z_j)^\top K^+ (z_i - z_j)`. O(n² d) time and one n × n array; what the
    learner does with K takes O(n³).

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

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Keep the training points and return their coordinates, the Gram matrix.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training points, or their Gram matrix when the kernel is precomputed.
        y : array-like of shape (n_samples,), default=None
            Passed to the kernel's ``bind``.

        Returns
        -------
        array of shape (n_samples, n_samples)
            Coordinates, as ``transform`` gives them.
        """
        X = self._begin(X, y)
        self._learn(X)
        return namespace(self.basis_gram_).astype(self.basis_gram_, X.dtype, copy=True)

    def _learn(self, X: Any) -> None:
        self.__dict__.pop("eigenvalues_", None)
        single = str(X.dtype).endswith("float32")
        X = as_float64(X)
        self.anchors_ = self.kernel_.anchors(X)
        K = self.kernel_(X)
        # A symmetric copy: X itself may be K, and belongs to the caller.
        self.basis_gram_ = (K + K.T) / 2
        self.gram_ = Gram(self.basis_gram_, singular=self.singular, ridge=self.ridge)
        values = self.gram_.eigenvalues
        refuse_indefinite(float(values[0]), float(values[-1]), single=single)
        self.explained_variance_ratio_ = 1.0

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
        n = self.basis_gram_.shape[0]
        return map_rows(self._features, X, n, n)
