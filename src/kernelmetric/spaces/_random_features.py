"""Random cosines whose inner products estimate the kernel."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from kernelmetric.compute import all_finite, in_library_of, is_sparse, like, namespace
from kernelmetric.compute.reductions import out_of_range
from kernelmetric.inputs import location_of
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.kernels import RBF, Kernel, Laplacian
from kernelmetric.spaces._base import times
from kernelmetric.spaces._features import FeatureMapSpace

_MOST_FEATURES = 10**12  # more memory than there is, and still a number to multiply
_RELATIVE_CUT = 1e-6  # far below the sampling error of any affordable number of features


@dataclass(eq=False, repr=False)
class RandomFeatures(FeatureMapSpace):
    r"""Principal components of random Fourier features.

    A shift-invariant kernel is an expected cosine, :math:`k(x, y) = E_\omega
    \cos \omega^\top(x - y)`, over a distribution of frequencies [1]_: Gaussian for the RBF, Cauchy
    for the Laplacian kernel. With P frequencies drawn from it,

    .. math:: f(x) = \sqrt{1/P}\,(\cos \omega_1^\top x, \sin \omega_1^\top x, \dots),

    then centred and rotated to its principal axes. The error of a kernel value is of order
    :math:`P^{-1/2}`; ``Nystroem`` is nearly always more accurate for as many features.
    O(n m (d + m)) time for m features, one block of rows in memory.

    Parameters
    ----------
    n_features : int, default=1000
        Number of features m = 2P; an odd number is rounded up.
    n_components : int or float, default=None
        None: all directions. An integer, or a fraction of the variance: the leading ones.
    kernel : RBF, Laplacian, or a weighted sum of them, default=None
        Terms of a sum get features in proportion to their weights. None is the RBF of median
        width.
    random_state : int, RandomState or None, default=None
        For the frequencies.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    frequencies_ : array of shape (d, P)
        The frequencies ω in columns.
    amplitudes_ : array of shape (1, P)
        Factor of the two features of every frequency.
    projection_ : array of shape (2P, rank_)
        Principal axes of the features.
    offset_ : array of shape (1, rank_)
        What centres them.
    eigenvalues_ : ndarray of shape (rank_,)
        Eigenvalues of the approximated centred Gram matrix, descending.
    rank_ : int
        Number of components kept.
    explained_variance_ratio_ : float
        Fraction of the features' variance that they keep.
    basis_gram_ : None
        The basis is orthonormal.
    moments_ : dict
        Mean and scatter of all features, after :meth:`partial_fit` alone.
    n_features_in_ : int
        Number of features seen in ``fit``.

    See Also
    --------
    Nystroem : Landmarks, usually better for as many features.

    References
    ----------
    .. [1] A. Rahimi, B. Recht. "Random features for large-scale kernel machines". NIPS, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import RBF
    >>> from kernelmetric.spaces import RandomFeatures
    >>> X = np.random.RandomState(0).randn(50, 3)
    >>> space = RandomFeatures(4000, kernel=RBF(gamma=0.5), random_state=0)
    >>> Z = space.fit_transform(X)
    >>> H = np.eye(50) - 1 / 50
    >>> bool(np.abs(Z @ Z.T - H @ space.kernel_(X) @ H).max() < 0.1)
    True
    """

    n_features: int = 1000

    _advice = "try a smaller n_features, or Nystroem(500), as accurate with fewer of them."

    def _n_map_features(self, n_samples: int) -> int:
        return int(min(self.n_features, _MOST_FEATURES))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        Numbers(Integral, low=2).check(self, "n_features")

    def _feature_map(self, X: Any, y: Any) -> tuple[Any | None, int, float]:
        rng = check_random_state(self.random_state)
        terms = [(weight, term) for weight, term in self.kernel_._flat() if weight > 0]
        if not terms:
            raise ValueError("Got a sum with weights 0 only, but expected a positive weight.")
        total = sum(weight for weight, _ in terms)
        n_pairs = (int(self.n_features) + 1) // 2
        drawn, amplitudes = [], []
        for weight, term in terms:
            share = max(1, round(n_pairs * weight / total))
            drawn.append(_frequencies(term, X.shape[1], share, rng))
            amplitudes.append(np.full(share, np.sqrt(weight / share)))
        with np.errstate(over="ignore"):  # of float32: angles that overflow are refused
            self.frequencies_ = like(np.hstack(drawn), X)
        self._location = location_of(X)
        self.amplitudes_ = like(np.hstack(amplitudes)[None, :], X)
        return None, 2 * self.frequencies_.shape[1], _RELATIVE_CUT

    def _features(self, X: Any) -> Any:
        parts = self.frequencies_, self.amplitudes_
        frequencies, amplitudes = (in_library_of(part, X) for part in parts)
        with np.errstate(all="ignore"):  # what overflows is reported below, in a sentence
            if is_sparse(X):
                angles = np.asarray(safe_sparse_dot(X, frequencies, dense_output=True))
            else:
                angles = times(X, frequencies)
        if not all_finite(angles):
            raise out_of_range("random features of angles that overflow")
        xp = namespace(angles)
        return xp.concat([xp.cos(angles) * amplitudes, xp.sin(angles) * amplitudes], axis=1)


def _frequencies(kernel: Kernel, d: int, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw n frequencies in columns from the Fourier transform of the kernel."""
    if isinstance(kernel, RBF):
        return np.sqrt(2.0 * kernel._gamma()) * rng.standard_normal((d, n))
    if isinstance(kernel, Laplacian):
        return kernel._gamma() * rng.standard_cauchy((d, n))
    raise ValueError(
        f"Got {kernel!r}, but RandomFeatures expected RBF, Laplacian or a weighted sum of them, "
        "whose frequencies are known: try Nystroem, which takes any kernel."
    )
