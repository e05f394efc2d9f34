"""Ridge regression on a centred Gram matrix, and what it says of each row when that is left out.

With a free mean, K̃ = H K H and G = (K̃ + λ I)⁻¹, the regression of the columns of Y has the
weights α = G H Y and the residuals λ α. Without row i its residual would be α_i / (H G H)_ii. That
diagonal is the one of (K̃ + c qqᵀ + λ I)⁻¹, less q_i² / (c + λ), where q is the constant vector of
length one; with a c of the size of eigenvalues no digits are lost, however small λ is. Predictions
are told less the mean, that of a left-out row less the mean of the others: where the others predict
no more than their mean, that alone would tell the row's label. With weights w of rows, all of this
holds for K times the roots of w from both sides, and q is in proportion to these roots.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from kernelmetric.compute import (
    backend_of,
    like,
    map_rows,
    namespace,
    precise,
    rounding_of,
    small_steps,
    sum_rows,
    take_rows,
    to_numpy,
)
from kernelmetric.compute.reductions import out_of_range
from kernelmetric.compute.watch import stage
from kernelmetric.inputs import Weights
from kernelmetric.inputs._keys import keys_of
from kernelmetric.kernels import Delta, Kernel, Rescaled, Sum
from kernelmetric.solvers import OnSubspace, cholesky_factor, evenly, krylov_eigenpairs
from kernelmetric.spaces import Nystroem
from kernelmetric.spaces._base import block_size, own, refuse_indefinite
from kernelmetric.spaces._centred_gram import CentredGram

LEAST_OF_CLASS = 10  # rows that part classes: of each class so many, or all it has
_TILE = 1024  # rows that are centred at a time
_AS_GOOD = 1.001  # of the least error: of ridges within it, the largest
_RIDGES = 10.0 ** np.arange(-6.0, 2.0, 0.5)  # of a given kernel, relative to its mean variance
_DENSE_ROWS = 400  # below, LAPACK has the whole spectrum sooner than a few of its vectors
_LEADING_TOL = 1e-2  # of leading eigenvectors, which need only span what varies most
_LEVERAGES = 128  # random columns that tell how far a row moves its own prediction, of landmarks
_LEAST_LEFT = 0.1  # of a residual, where a row's part in its prediction is estimated
_LARGE_CALLS = 0.05  # of n³: operations that are not in many small products


class Solution(NamedTuple):
    """Predictions of rows and their leading components, and the same of any point.

    Of a point with the kernel values f(x) at the anchors, both are ``f(x)ᵀ basis - offset``, of
    which coordinates have the library and dtype of ``kind``. ``left_out`` are predictions of rows
    without themselves, less the mean; ``variance`` is that of the rows in the feature space.
    """

    left_out: np.ndarray
    components: np.ndarray
    variance: float
    basis: np.ndarray
    offset: np.ndarray
    anchors: Any
    kind: Any


def solved_exactly(
    kernel: Kernel,
    X: Any,
    Y: np.ndarray,
    ridge: float,
    weights: Weights | None,
    rank: int,
    random_state: Any,
    *,
    kind: Any,
) -> Solution:
    """Ridge regression and components of all points, the anchors; K has the digits of ``kind``."""
    given, X = X, precise(X)
    counts = np.ones(len(Y)) if weights is None else weights.counts
    norms = counts * to_numpy(kernel.diag(X))
    working = stage(f"ridge regression of {len(Y):,} rows")
    with small_steps(_LARGE_CALLS * len(Y) ** 3), working:
        gram = CentredGram(
            kernel,
            X,
            hold=True,
            kind=kind,
            trace=float(np.sum(norms, dtype=np.float64)),
            rounding=rounding_of(given if kernel.pairwise else X),
            weights=weights,
        )
        U = _leading(gram, min(rank, gram.n - 1), random_state)
        C = to_numpy(gram.centred_times(gram.array(U))).astype(np.float64)
        values = lengths(C)
        some = values > gram.round_off
        U, C = (A[:, some] / np.sqrt(values[some]) for A in (U, C))
        means = to_numpy(gram.column_means).astype(np.float64)
        roots = np.ones(gram.n) if gram.roots is None else to_numpy(gram.roots).astype(np.float64)
        alpha, left_out = _regression(gram, Y, ridge, roots)
    basis, q = np.hstack([alpha, U]), roots / linalg.norm(roots)
    basis = gram.scaled(basis - q[:, None] * (q @ basis))
    anchors, variance = own(gram.anchors), gram.centred_trace
    return Solution(left_out, gram.unscaled(C), variance, basis, means @ basis, anchors, X)


def _leading(gram: CentredGram, rank: int, random_state: Any) -> np.ndarray:
    """Orthonormal columns that span what the leading eigenvectors of HKH do, or nearly."""
    if gram.n <= _DENSE_ROWS:
        with small_steps(10.0 * gram.n**3):
            found, U = linalg.eigh(to_numpy(_centred(gram)), overwrite_a=True, check_finite=False)
        ends = float(found[0]), float(found[-1])
        refuse_indefinite(*ends, rounding=gram.round_off, eps=gram.rounding)
        return np.ascontiguousarray(U[:, : -rank - 1 : -1])
    rng = check_random_state(random_state)
    A = OnSubspace(gram.centred_times, gram.centre, gram.n - 1)
    pairs = krylov_eigenpairs(
        A, rank, lambda width: gram.sketch(width, rng), tol=_LEADING_TOL, floor=gram.round_off
    )
    return to_numpy(pairs.vectors)


def _regression(
    gram: CentredGram, Y: np.ndarray, ridge: float, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the rows, as ``gram`` has them, and predictions of left-out rows less the mean."""
    q = roots / linalg.norm(roots)
    scaled = roots[:, None] * Y
    scaled -= q[:, None] * (q @ scaled)
    try:
        K, along = _lifted(gram, q), gram.centred_trace / gram.n
        namespace(K).reshape(K, (-1,), copy=False)[:: gram.n + 1] += ridge
        solve = backend_of(K).positive_solver(K, ridge)
        alpha, diagonal = solve(scaled), solve.inverse_diagonal() - q**2 / (along + ridge)
    except linalg.LinAlgError:
        raise ValueError(
            f"Got a Gram matrix with a negative eigenvalue, which ridge={ridge:.3g} does not lift, "
            "but expected a positive semi-definite kernel: try another kernel, a larger ridge, or "
            "add a multiple of the identity to a precomputed one."
        ) from None
    # No inverse of a positive matrix is less than that of its trace.
    diagonal = np.maximum(diagonal, (1.0 - q**2) / (gram.centred_trace + ridge))
    left_out = scaled / (1.0 - q**2)[:, None] - alpha / diagonal[:, None]
    return alpha, left_out / roots[:, None]


def _lifted(gram: CentredGram, q: np.ndarray) -> Any:
    """H K H, with its mean diagonal as the eigenvalue of q; in place where memory is short."""
    along = gram.centred_trace / gram.n
    if rounding_of(gram.kind) <= rounding_of(gram.X):
        K = _centred(gram)
        K += along / gram.n if gram.roots is None else along * (gram.constant @ gram.constant.T)
        return K
    K, gram.K = np.ascontiguousarray(to_numpy(gram.K)), None
    q = like(q, K)
    image = K @ q
    image -= 0.5 * (float(q @ image) + along) * q
    for start in range(0, gram.n, _TILE):
        rows = slice(start, start + _TILE)
        K[rows] -= np.multiply.outer(q[rows], image)
        K[rows] -= np.multiply.outer(image[rows], q)
    return K


def _centred(gram: CentredGram) -> Any:
    """A copy of H K H, where K is."""
    if gram.roots is not None:
        K = gram.centre(gram.K)
        return K - (K @ gram.constant) @ gram.constant.T
    means = gram.column_means
    K = gram.K - means
    K -= means.T - gram.xp.mean(means)
    return K


def solved_by_landmarks(
    space: Nystroem,
    X: Any,
    Y: np.ndarray,
    ridge: float,
    weights: Weights | None,
    rank: int,
    random_state: Any,
) -> Solution:
    """The same of a kernel that landmarks approximate; what a row moves itself is estimated."""
    counts = np.ones(len(Y)) if weights is None else weights.counts
    space.fit(X, sample_weight=None if weights is None else counts)
    n, r, p = X.shape[0], min(rank, space.rank_), Y.shape[1]
    size = block_size(X, space.projection_.shape[0])
    share = counts / counts.sum()
    Y = Y - share @ Y

    def values(rows: slice) -> np.ndarray:
        return to_numpy(space._features(X[rows, :])).astype(np.float64, copy=False)

    # Coordinates are these values times P. Their scatter is diagonal, so ridge regression is a
    # division; and all that is asked of them has few columns, so P meets those first.
    P, offset = (to_numpy(a).astype(np.float64) for a in (space.projection_, space.offset_))
    weighted = counts[:, None] * Y
    beta = P.T @ sum_rows(lambda rows: values(rows).T @ weighted[rows], n, **size)
    shrunk = 1.0 / (space.eigenvalues_ + ridge)
    beta *= shrunk[:, None]
    drawn = check_random_state(random_state).standard_normal((space.rank_, _LEVERAGES))
    W = np.hstack([beta, np.eye(space.rank_, r), np.sqrt(shrunk)[:, None] * drawn])
    B, b = P @ W, offset @ W
    F = map_rows(lambda rows: values(rows) @ B - b, n, **size)
    moved = counts * np.mean(F[:, p + r :] ** 2, axis=1)
    # An estimate may pass one; no point of so many moves its prediction by that much.
    rest = np.maximum(1.0 - moved - share, _LEAST_LEFT)
    left_out = Y / (1.0 - share)[:, None] - (Y - F[:, :p]) / rest[:, None]
    variance = space.eigenvalues_.sum() / space.explained_variance_ratio_
    basis, offset = B[:, : p + r], b[:, : p + r]
    kind = space.projection_
    return Solution(left_out, F[:, p : p + r], variance, basis, offset, space.anchors_, kind)


def ridge_of(
    K: np.ndarray, Y: np.ndarray, roots: np.ndarray
) -> tuple[float, float, tuple[float, float]]:
    """The ridge that predicts left-out rows best, its mean squared error, the spectrum's ends."""
    q = roots / linalg.norm(roots)
    K = roots[:, None] * K * roots
    K = K - np.multiply.outer(q, q @ K)
    K = K - np.multiply.outer(K @ q, q)
    values, U = linalg.eigh(K, check_finite=False)
    spectrum = float(values[0]), float(values[-1])
    values = np.maximum(values, 0.0)
    Y = roots[:, None] * Y
    along, squares = U.T @ (Y - q[:, None] * (q @ Y)), U**2
    level = float(values.mean()) or 1.0
    errors = []
    for ridge in _RIDGES * level:
        shrunk = ridge / (values + ridge)
        diagonal = np.maximum(squares @ shrunk - q**2, shrunk.min() * (1.0 - q**2))
        errors.append(float(np.sum(((U @ (shrunk[:, None] * along)) / diagonal[:, None]) ** 2)))
    refuse_large(errors)
    good = np.flatnonzero(np.asarray(errors) <= _AS_GOOD * min(errors))
    return float(_RIDGES[good[-1]] * level), min(errors) / Y.size, spectrum


def boundary_rows(
    smooth: Kernel, ridge: float, X: Any, Y: np.ndarray, n_evenly: int, n_nearest: int
) -> np.ndarray:
    """Rows that ridge regression needs where classes are easily told apart, ascending."""
    n = len(Y)
    order = np.lexsort(Y.T)  # by class; within one, in the order of the rows
    begins = np.append(True, np.any(np.diff(Y[order], axis=0), axis=1))
    place = np.arange(n) - np.maximum.accumulate(np.where(begins, np.arange(n), 0))
    few, rest = order[place < LEAST_OF_CLASS], order[place >= LEAST_OF_CLASS]
    first = np.append(few, rest[evenly(len(rest), n_evenly - len(few))])
    some = take_rows(X, first)
    factor = cholesky_factor(to_numpy(smooth(some)).astype(np.float64) + 1.0, ridge)
    alpha = linalg.cho_solve((factor, True), Y[first], check_finite=False)

    def squares(rows: slice) -> np.ndarray:
        return np.sum((Y[rows] - (to_numpy(smooth(X[rows, :], some)) + 1.0) @ alpha) ** 2, axis=1)

    wrong = map_rows(squares, n, **block_size(X, n_evenly))
    wrong[first] = np.inf
    taken = len(first) + n_nearest
    return np.sort(np.argpartition(wrong, n - taken)[-taken:])


def without_ridge(kernel: Kernel) -> tuple[Kernel, float, Kernel | None]:
    """A kernel without its ``Delta`` terms, their weight, and ``Delta``; None where it has none."""
    if isinstance(kernel, Rescaled):
        smooth, ridge, delta = without_ridge(kernel.kernel)
        if delta is None:
            return kernel, 0.0, None
        return Rescaled(smooth, kernel.scales), ridge, Rescaled(delta, kernel.scales)
    if not isinstance(kernel, Sum):
        return kernel, 0.0, None
    terms = list(kernel._flat())
    deltas = [(weight, term) for weight, term in terms if isinstance(term, Delta) and weight > 0]
    others = [(weight, term) for weight, term in terms if not isinstance(term, Delta)]
    if not deltas or not others:
        return kernel, 0.0, None
    weights, kernels = zip(*others, strict=True)
    return Sum(list(kernels), list(weights)), sum(weight for weight, _ in deltas), deltas[0][1]


def mean_of_copies(F: np.ndarray, X: Any, counts: np.ndarray) -> np.ndarray:
    """Predictions of left-out rows; those of copies of a point are their mean."""
    # Copies share all but their own labels, which differences of left-out predictions would tell.
    _, group = np.unique(keys_of(X), return_inverse=True)
    masses = np.bincount(group, weights=counts)
    if len(masses) == len(F):
        return F
    sums = np.zeros((len(masses), F.shape[1]))
    np.add.at(sums, group, counts[:, None] * F)
    return (sums / masses[:, None])[group]


def lengths(A: np.ndarray) -> np.ndarray:
    """Lengths of columns, also where squares are out of range; refused where entries are."""
    largest = np.max(np.abs(A), axis=0, initial=0.0)
    refuse_large(largest)
    return largest * linalg.norm(A / np.where(largest > 0, largest, 1.0), axis=0)


def refuse_large(products: Any) -> None:
    """Refuse kernel values of which products are out of range."""
    if not np.all(np.isfinite(products)):
        raise out_of_range("points whose kernel values are too large to be multiplied")
