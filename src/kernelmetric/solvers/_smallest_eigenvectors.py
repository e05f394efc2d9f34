"""Smallest eigenvectors of a large symmetric matrix, which may be indefinite.

Davidson's method with a Chebyshev filter: what is added to the basis for a Ritz pair (θ, v) is
``T_d(X) v - T_d(x) v`` with ``X = (A - c)/e``, ``x = (θ - c)/e`` and a filter that is small on
[c - e, c + e], the unwanted part of the spectrum. Its recurrence starts from the residual and so
has all its digits: the filter may be rough.
"""

import warnings
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelmetric import compute
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.reductions import BlockProduct
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.solvers._leading_eigenvectors import OnSubspace, ritz_interval
from kernelmetric.solvers._symmetric import column_signs

BLOCK = 16  # vectors filtered together: narrow enough for the cache
GUARD = 10  # Ritz vectors kept beyond those wanted: the filter's edge lies behind them
_DEGREE = 10
_LARGEST = 1e6  # of the filter: beyond, few digits show the smallest eigenvectors only
_LOOKS = 4  # random vectors that look for overlooked eigenvectors: one would do
_MARGIN = 0.9  # of the tolerance, so that the residuals measured at the end are within it
TINY = np.finfo(np.float64).tiny


class Deflated:
    """Products with P A P, counted, on the device in use where it is ``far``."""

    def __init__(self, A: Any, null: np.ndarray, *, far: bool = False):
        self.count, self.far = 0, far
        self._product = BlockProduct(A, far=far)
        Q, R, _ = linalg.qr(null, mode="economic", pivoting=True)
        sizes = np.abs(np.diagonal(R))
        self.null = self.here(Q[:, sizes > 1e-12 * np.max(sizes, initial=TINY)])

    def __call__(self, V: Any) -> Any:
        self.count += V.shape[1]
        return self.project(self._product(V))

    def here(self, values: np.ndarray) -> Any:
        """An array where the products are."""
        return compute.to_device(values) if self.far else values

    def project(self, V: Any) -> Any:
        Q = compute.namespace(V).astype(self.null, V.dtype, copy=False)
        return V - Q @ (Q.T @ V) if Q.shape[1] else V

    def require_symmetry(self, rng: np.random.RandomState) -> None:
        """Refuse an A with uᵀAv ≠ vᵀAu for two random vectors: by chance none passes."""
        U = self.project(self.here(rng.standard_normal((self.null.shape[0], 2))))
        T = compute.to_numpy(U.T @ self(U))
        if not np.all(np.isfinite(T)):
            raise ValueError("Got a matrix with NaN or infinity, but expected finite entries.")
        if abs(T[0, 1] - T[1, 0]) > 1e-6 * np.linalg.norm(T):
            raise ValueError(
                "Got a matrix that is not symmetric, but expected A = Aᵀ: try (A + A.T) / 2."
            )


class Davidson:
    """An orthonormal basis V with its image AV, and H, their inner products."""

    def __init__(
        self, A: Any, multiply: Deflated, k: int, width: int, most: int, rng: np.random.RandomState
    ):
        self.multiply, self.k, self.width, self.rng = multiply, k, width, rng
        self.kept = k + GUARD
        self._rough = BlockProduct(A, rough=True, far=multiply.far)
        n = multiply.null.shape[0]
        A_there = OnSubspace(multiply, multiply.project, n - multiply.null.shape[1])
        lowest, self.upper = ritz_interval(A_there, multiply.here(rng.standard_normal((n, 1))))
        self.scale = max(abs(lowest), abs(self.upper))
        self.m = 0
        self.V, self.AV = (multiply.here(np.zeros((n, most))) for _ in range(2))
        self.xp = compute.namespace(self.V)
        self.H = np.zeros((most, most))

    def run(self, start: np.ndarray, tol: float, max_iter: int) -> tuple[np.ndarray, np.ndarray]:
        """Grow the basis until the residuals and a last look around are fine."""
        self._grow(self.multiply.here(np.ascontiguousarray(start[:, : self.kept])))
        if self.m < self.k:
            self._grow(self._random(self.width))
        looked_around = False
        found = np.full(self.k, np.inf)
        needed = -(-self.k // self.width)  # steps to so many vectors, whatever their quality
        for _ in range(max(max_iter, needed)):
            self._rotate()
            open_pairs = self._open_pairs(tol)
            if looked_around and np.any(self.theta[: self.k] < found - tol * self.scale):
                looked_around = False  # some had been overlooked
            if len(open_pairs):
                chosen = open_pairs[: self.width]
                block = self._filter(self._residuals(chosen), self.theta[chosen])
            elif looked_around:
                break
            else:
                looked_around, found = self.m >= self.k, self.theta[: self.k]
                block = self._filter(self._random(_LOOKS if looked_around else self.width), None)
            self._grow(block)
        self._rotate()
        return self.theta[: self.k], self.V[:, : self.m] @ compute.like(self.S[:, : self.k], self.V)

    def _random(self, width: int) -> Any:
        return self.multiply.here(self.rng.standard_normal((self.V.shape[0], width)))

    def _grow(self, block: Any) -> None:
        """Add the directions of a block to the basis, which is cut back when it is full."""
        if self.m + block.shape[1] > self.V.shape[1]:
            self._restart()
        m = self.m
        W = block
        for _ in range(2):  # twice is enough
            W = self.multiply.project(W)
            W = W - self.V[:, :m] @ (self.V[:, :m].T @ W)
            W = _orthonormal(W)
        if not W.shape[1]:
            return
        new = slice(m, m + W.shape[1])
        AW = self.multiply(W)
        self.V[:, new], self.AV[:, new] = W, AW
        self.m = new.stop
        self.H[: self.m, new] = compute.to_numpy(self.V[:, : self.m].T @ AW)
        self.H[new, : self.m] = self.H[: self.m, new].T

    def _rotate(self) -> None:
        """Ritz values, ascending, and the coordinates S of their vectors in the basis."""
        self.theta, self.S = np.linalg.eigh(self.H[: self.m, : self.m])

    def _restart(self) -> None:
        m, kept = self.m, min(self.kept, self.m)
        S = compute.like(self.S[:, :kept], self.V)
        for basis in (self.V, self.AV):
            basis[:, :kept] = basis[:, :m] @ S
        self.H[:kept, :kept] = np.diag(self.theta[:kept])
        self.m = kept

    def _residuals(self, chosen: np.ndarray) -> Any:
        S, theta = compute.like(self.S[:, chosen], self.V), compute.like(self.theta[chosen], self.V)
        return self.AV[:, : self.m] @ S - (self.V[:, : self.m] @ S) * theta

    def _open_pairs(self, tol: float) -> np.ndarray:
        """Which of the wanted Ritz pairs have residuals beyond the tolerance."""
        size = compute.to_numpy(column_norms(self._residuals(np.arange(min(self.k, self.m)))))
        return np.flatnonzero(size > _MARGIN * tol * self.scale)

    def _edge(self) -> float:
        """Where the unwanted part of the spectrum begins: at the last Ritz value kept."""
        # Until that is a good one, an eighth of the wanted part behind its end.
        last, m = self.theta[min(self.kept, self.m) - 1], self.m
        behind = (self.theta[self.k - 1] - self.theta[0]) / 8 if m >= self.k else 0.0
        if behind <= 1e-3 * self.scale:
            return last
        beyond = self.theta[self.k - 1] + behind
        return beyond if m == self.k else min(last, beyond)

    def _filter(self, R: Any, theta: np.ndarray | None) -> Any:
        """T_d(X) v - T_d(x) v from the residuals of Ritz pairs; T_d(X) R without Ritz values."""
        edge = self._edge()
        center, half = (self.upper + edge) / 2, (self.upper - edge) / 2
        if half <= 1e-12 * self.scale:
            return R  # nothing lies beyond the edge
        lowest = max((center - self.theta[0]) / half, 1.0 + 1e-12)
        most = _DEGREE if theta is not None else 10 * _DEGREE  # random vectors have a longer way
        degree = int(np.clip(np.arccosh(_LARGEST) / np.arccosh(lowest), 1, most))
        xp = self.xp
        R = compute.rough(R / xp.clip(column_norms(R), TINY, None), 1e-6)
        x = np.zeros(R.shape[1]) if theta is None else (theta - center) / half
        t_before, t = np.ones_like(x), x
        before, E = xp.zeros_like(R), R
        if theta is None:  # T_0 and T_1 of the block itself
            before, E = R, self._shifted(R, center, half)
        for _ in range(degree - 1):
            after = 2 * self._shifted(E, center, half) - before
            if theta is not None:
                after += compute.like(2 * t, R) * R
            before, E = E, after
            t_before, t = t, 2 * x * t - t_before
        return compute.precise(E)

    def _shifted(self, V: Any, center: float, half: float) -> Any:
        """X V with the spectrum beyond the edge moved to [-1, 1]."""
        self.multiply.count += V.shape[1]
        image = self.multiply.project(self._rough(V))
        image -= float(center) * V
        image /= float(half)
        return image


def _orthonormal(W: Any) -> Any:
    """An orthonormal basis of the span, without directions that only round-off gives it."""
    # From the eigenvectors of WᵀW: a Householder QR of so few columns takes five times as long.
    W = W / compute.namespace(W).clip(column_norms(W), TINY, None)
    squared, S = np.linalg.eigh(compute.to_numpy(W.T @ W))
    fine = squared > 1e-12 * np.max(squared, initial=0.0)
    return W @ compute.like(S[:, fine] / np.sqrt(squared[fine]), W)


def column_norms(V: Any) -> Any:
    """Lengths of the columns."""
    if isinstance(V, np.ndarray):
        return np.sqrt(np.einsum("ij,ij->j", V, V))  # without an array of squares
    xp = compute.namespace(V)
    return xp.sqrt(xp.sum(V * V, axis=0))


_DENSE = 1000  # rows up to which LAPACK takes less than a second
_ROUNDS = 4  # blocks added to the basis before it is cut back


class Eigenpairs(NamedTuple):
    """Eigenvalues, ascending, orthonormal eigenvectors, and how good they are.

    Within ``residuals``, ``‖A v - value v‖``, of each value lies an eigenvalue. ``n_matvecs``
    counts rough products too.
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    converged: bool
    n_matvecs: int


def smallest_eigenvectors(
    A: Any,
    n_components: int,
    *,
    null: np.ndarray | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
    random_state: Any = None,
) -> Eigenpairs:
    """Eigenvectors of the smallest eigenvalues of a symmetric matrix, negative ones first.

    Up to a thousand rows, or where many of all eigenvectors are wanted, by LAPACK; beyond, by
    Davidson's method with a Chebyshev filter [1]_. Those found are eigenvectors of P A P with the
    projection P onto the complement of ``null``. ``tol`` is in units of the largest absolute
    eigenvalue; ``max_iter`` counts blocks of 16 vectors.

    .. [1] Zhou, Saad, "A Chebyshev-Davidson algorithm for large symmetric eigenproblems", SIAM
       Journal on Matrix Analysis and Applications 29 (2007).
    """
    rng = check_random_state(random_state)
    A = A if hasattr(A, "shape") else np.asarray(A)
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"Got a matrix of shape {A.shape}, but expected a square one.")
    n = A.shape[0]
    width = min(BLOCK, max(4, n_components))
    most = n_components + GUARD + _ROUNDS * width
    dense = n <= _DENSE or 3 * most > n
    multiply = Deflated(A, _columns(null, n), far=not dense)
    multiply.require_symmetry(rng)
    c = multiply.null.shape[1]
    hint = f"{n} rows less {c} vectors projected out"
    Numbers(Integral, 1, n - c).require("n_components", n_components, hint=hint)
    if dense:
        values, vectors, scale = _dense(A, multiply, n_components)
        tol = max(tol, n * np.finfo(np.float64).eps)  # LAPACK gives no more
    else:
        search = Davidson(A, multiply, n_components, width, most, rng)
        values, vectors = search.run(_columns(start, n), tol, max_iter)
        scale = search.scale
    residuals = compute.to_numpy(column_norms(multiply(vectors) - vectors * multiply.here(values)))
    vectors = compute.to_numpy(vectors)
    converged = bool(np.all(residuals <= tol * scale))
    if not converged:
        warnings.warn(
            f"{int(np.sum(residuals > tol * scale))} of {n_components} eigenvectors have residuals "
            f"above tol={tol:g}, the largest {residuals.max() / max(scale, TINY):.1e} of the "
            f"largest eigenvalue. Try a larger max_iter (now {max_iter}) or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    signs = column_signs(vectors)
    return Eigenpairs(values, vectors * signs, residuals, converged, multiply.count)


def _dense(A: Any, multiply: Deflated, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The k smallest eigenpairs by LAPACK, and a bound of the largest absolute eigenvalue."""
    Q, n = multiply.null, len(multiply.null)
    hint = "ask for fewer eigenvectors."
    compute.require_memory(4 * 8 * n * n, "A dense eigendecomposition", hint)
    A = A if isinstance(A, np.ndarray) else A @ np.eye(n)
    A = multiply.project(multiply.project((A + A.T) / 2).T)
    scale = float(np.linalg.norm(A, 1))
    A = A + (2 * scale + 1) * (Q @ Q.T)  # what is projected out comes last
    values, vectors = eigh(A, subset=(0, k - 1), overwrite=True)
    return values, vectors, scale


def _columns(vectors: Any, n: int) -> np.ndarray:
    """Vectors as float64 columns of n entries; none for None."""
    if vectors is None:
        return np.empty((n, 0))
    return np.asarray(vectors, dtype=np.float64).reshape(n, -1)
