"""Kernel principal components: all of them, or the leading ones, of the centred Gram matrix."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelmetric._warnings import warn
from kernelmetric.compute import (
    fits_budget,
    like,
    precise,
    rough,
    rounding_of,
    to_numpy,
    within_budget,
)
from kernelmetric.compute.reductions import out_of_range
from kernelmetric.inputs import Weights, labels_and_weights
from kernelmetric.inputs._parameters import require_word
from kernelmetric.solvers import OnSubspace, column_signs, krylov_eigenpairs
from kernelmetric.spaces import _base
from kernelmetric.spaces._centred_gram import CentredGram

_RELATIVE_CUT = 1e-10
_DENSE_ROWS = 500  # below, LAPACK needs a tenth of a second for the whole spectrum
_ALWAYS_DENSE_ROWS = 5000  # for a fraction of the variance: up to here it is under 1 GB
_DENSE_SHARE = 10  # for so large a share of the eigenvectors LAPACK beats one Krylov cycle
_ENTRY_BYTES = 1.5 * 8  # of an entry of K, with the tiles that fill it
_FIRST_RANK = 64  # where the search for a fraction of the variance starts
_RESIDUAL, _TIMES_ROUNDING = 1e-7, 80.0  # of eigenvectors, relative


@dataclass(eq=False, repr=False)
class KPCA(_base.Space):
    r"""Coordinates along the kernel principal components of the training points.

    With the centred Gram matrix :math:`HKH = V \Lambda V^\top`, training points have coordinates
    :math:`Z = V \Lambda^{1/2}`, and a new point with kernel values k(x) has

    .. math:: z(x) = k(x)^\top P - o, \qquad P = V \Lambda^{-1/2},\quad o = \bar{k}^\top P,

    where :math:`\bar k` are the column means of K. At full rank :math:`ZZ^\top = HKH`: distances
    in the feature space are preserved, and any linear learner run on Z is its own kernel
    version (the KPCA trick [1]_).

    Full rank takes O(n³) time and a few n × n arrays of float64. The k leading components take
    O(n² (d + k)) per pass over the Gram matrix and a handful of passes; where n × n does not fit
    the memory budget, its blocks are computed anew in every pass.

    Parameters
    ----------
    n_components : int or float, default=None
        None: full rank, all eigenvalues above max(tol λmax, n eps trace K). An integer: that
        many, or the rank if it is lower. A fraction in (0, 1): as many as keep that fraction of
        the variance.
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width.
    tol : float, default=None
        Relative eigenvalue cut-off; None means 1e-10.
    solver : {"auto", "dense", "randomized"}, default="auto"
        "dense": LAPACK, the whole spectrum. "randomized": block Krylov iteration from a random
        start. "auto": dense where points are few or many of the components are wanted.
    random_state : int, RandomState or None, default=None
        For the starts of iterations.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    eigenvalues_ : ndarray of shape (rank_,)
        Eigenvalues of the centred Gram matrix, descending.
    rank_ : int
        Number of components kept.
    explained_variance_ratio_ : float
        Fraction of the variance that they keep.
    anchors_ : array of shape (n, d)
        The training points (column indices for a precomputed kernel).
    projection_ : array of shape (n, rank_)
        The matrix P.
    offset_ : array of shape (1, rank_)
        The row o.
    solver_ : str
        The solver that was used.
    basis_gram_ : None
        The basis is orthonormal.
    n_features_in_ : int
        Number of features seen in ``fit``.

    See Also
    --------
    Nystroem : For more points than an n × n array holds.
    KernelTrick : The same optimum, without an eigenproblem.

    References
    ----------
    .. [1] R. Chatpatanasiri, T. Korsrilabutr, P. Tangchanachaianan, B. Kijsirikul. "A new
       kernelization framework for Mahalanobis distance learning algorithms". Neurocomputing,
       2010.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.spaces import KPCA
    >>> X = np.random.RandomState(0).randn(20, 3)
    >>> space = KPCA(kernel="rbf").fit(X)
    >>> Z, K = space.transform(X), space.kernel_(X)
    >>> H = np.eye(20) - 1 / 20
    >>> bool(np.allclose(Z @ Z.T, H @ K @ H))
    True
    >>> KPCA(n_components=0.9).fit(X).transform(X).shape
    (20, 8)
    """

    n_components: int | float | None = None
    _: KW_ONLY
    kernel: Any = None
    tol: float | None = None
    solver: str = "auto"
    random_state: Any = None

    _advice = "try n_components=100, or Nystroem(500), which needs no n × n array."

    def _check_parameters(self) -> None:
        _base.check_n_components(self.n_components)
        _base.CUT_OFF.check(self, "tol")
        require_word("solver", self.solver, ("auto", "dense", "randomized"))
        if self.n_components is None and self.solver == "randomized":
            raise ValueError(
                f"Got solver={self.solver!r} for full rank, but expected 'dense': an iterative "
                "solver needs a number of components; try n_components=100."
            )

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        self.solver_ = self._chosen_solver(X.shape[0])
        gram = self._gram(X, labels_and_weights(y)[1])
        values, V = self._eigenpairs(gram, rounding_of(X))
        values, V = values[::-1], gram.xp.flip(V, axis=1)
        cut_off, total = self._cut_off(gram, values), gram.centred_trace
        kept = _base.n_kept(values, cut_off, self.n_components, total)
        if kept == 0:
            _base.refuse_rank_zero(gram.n, self.kernel_)
        V = V[:, :kept] * column_signs(V[:, :kept])
        self.eigenvalues_ = np.array(values[:kept])
        self.rank_ = kept
        self.explained_variance_ratio_ = min(1.0, float(np.sum(self.eigenvalues_)) / total)
        self.anchors_ = _base.own(gram.anchors)
        # Round-off leaves a trace of the constant vector in the last eigenvectors; without it the
        # map needs no other centring than the offset.
        P = gram.centre(V) / like(np.sqrt(self.eigenvalues_), V)
        self.projection_ = gram.scaled(P)
        self.offset_ = gram.column_means @ self.projection_
        if self.solver_ == "dense":
            return lambda: gram.unscaled(V * like(np.sqrt(self.eigenvalues_), V))
        # One product with K makes this what transform gives, whatever the residuals.
        return lambda: gram.unscaled(gram.centred_times(P))

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        held = 0.0
        if self._chosen_solver(n_samples) != "dense":
            held = within_budget(_ENTRY_BYTES * n_samples * n_samples)
        return held + self._bytes_in_full(n_samples, n_features)

    def _bytes_in_full(self, n_samples: int, n_features: int) -> float:
        n = n_samples
        if self._chosen_solver(n) == "dense":
            return 8.0 * (3 * n * n + 2 * n * n_features)
        k = self.n_components
        rank = min(int(k) if isinstance(k, Integral) else 4 * _FIRST_RANK, n)
        return 8.0 * n * (12 * (rank + 10) + 2 * n_features)

    def _chosen_solver(self, n: int) -> str:
        """By the size and the parameters alone: the memory decides nothing but the speed."""
        k = self.n_components
        if self.solver != "auto":
            return self.solver
        if k is None or n <= _DENSE_ROWS:
            return "dense"
        if isinstance(k, Integral):
            return "dense" if _DENSE_SHARE * k >= n else "randomized"
        return "dense" if n <= _ALWAYS_DENSE_ROWS else "randomized"

    def _gram(self, X: Any, weights: Weights | None = None) -> CentredGram:
        n = X.shape[0]
        given, X = X, X if self.solver_ == "randomized" else precise(X)
        norms = to_numpy(self.kernel_.diag(X))
        norms = norms if weights is None else weights.counts * norms
        trace = float(np.sum(norms, dtype=np.float64))
        if not np.isfinite(trace * (n if self.solver_ == "dense" else trace)):
            raise out_of_range(f"values of {self.kernel_!r} whose sums or squares are not finite")
        return CentredGram(
            self.kernel_,
            X,
            hold=self.solver_ == "dense" or fits_budget(_ENTRY_BYTES * n * n),
            # Iterations square what they multiply with K.
            kind=rough(precise(like(np.zeros(1), X)), rounding_of(X), size=trace),
            trace=trace,
            rounding=rounding_of(given if self.kernel_.pairwise else X),
            weights=weights,
        )

    def _eigenpairs(self, gram: CentredGram, eps: float) -> tuple[np.ndarray, Any]:
        rng = check_random_state(self.random_state)
        k = self.n_components
        rank = min(int(k) if isinstance(k, Integral) else _FIRST_RANK, gram.n - 1)
        while True:
            if self.solver_ == "dense":
                values, V = gram.eigenpairs()
                smallest = float(values[0])
            else:
                values, V, smallest = self._leading(gram, rank, rng)
            _base.refuse_indefinite(smallest, float(values[-1]), rounding=gram.round_off, eps=eps)
            done = self.solver_ == "dense" or isinstance(k, Integral) or rank == gram.n - 1
            if done or values[0] <= 0 or values.sum() >= float(k or 0) * gram.centred_trace:
                return values, V
            rank = min(2 * rank, gram.n - 1)

    def _leading(
        self, gram: CentredGram, rank: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, Any, float]:
        """Leading eigenpairs, and the smallest Ritz value."""
        A = OnSubspace(gram.centred_times, gram.centre, gram.n - 1)
        tol, floor = max(_RESIDUAL, _TIMES_ROUNDING * rounding_of(gram.kind)), gram.round_off
        found = krylov_eigenpairs(
            A, rank, lambda width: gram.sketch(width, rng), tol=tol, floor=floor
        )
        values, V, smallest, residual, n_cycles = found
        if residual > max(tol * values[-1], floor):
            warn(
                f"The leading {rank} eigenvectors have residuals up to "
                f"{residual / values[-1]:.1e} of the largest eigenvalue after {n_cycles} cycles, "
                f"above {tol:.0e}. Try solver='dense' or another number of components.",
                ConvergenceWarning,
            )
        return values, V, smallest

    def _cut_off(self, gram: CentredGram, values: np.ndarray) -> float:
        relative = _RELATIVE_CUT if self.tol is None else self.tol
        eps = rounding_of(gram.kind)
        if self.solver_ == "dense":
            # The last of n eigenvalues hold the round-off of all n² entries.
            return max(relative * values[0], gram.n * eps * gram.trace, 0.0)
        return max(relative, 10 * eps) * max(values[0], 0.0)
