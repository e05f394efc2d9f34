"""Leading eigenvectors of a symmetric matrix that is known by its products, in any library."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import backend_of, like, namespace, precise, rounding_of, to_numpy

_DEPTH = 6  # blocks of one Krylov cycle: one is then enough for most kernels of a medium width
_MAX_CYCLES = 40
_LANCZOS_STEPS = 15
_DEPENDENT, _TIMES_ROUNDING = 1e-12, 80.0  # eigenvalues of unit columns that are rounding


class OnSubspace(NamedTuple):
    """The symmetric matrix P A P, where P projects onto a subspace."""

    multiply: Callable[[Any], Any]  # from columns V to P A P V
    project: Callable[[Any], Any]  # from columns V to P V
    dimensions: int  # of the subspace


class Leading(NamedTuple):
    """Leading eigenpairs, ascending, and how they were found."""

    values: np.ndarray
    vectors: Any
    smallest: float  # Ritz value: negative beyond round-off only if the matrix is indefinite
    residual: float  # the largest ‖Av - λv‖
    n_cycles: int  # times that the Krylov space was begun


def krylov_eigenpairs(
    A: OnSubspace, k: int, start: Callable[[int], Any], *, tol: float, floor: float = 0.0
) -> Leading:
    """The k leading eigenpairs by randomized block Krylov iteration.

    A random block, ``start(width)``, is multiplied a few times by the matrix; the leading Ritz
    vectors of all the blocks together start the next cycle. It stops when every residual
    ‖Av - λv‖ is below ``tol`` λmax or ``floor``.
    """
    n = A.dimensions
    width = k + max(10, k // 10)
    # Where two blocks would not fit, one block spans the whole space and is exact at once.
    width, depth = (n, 1) if 2 * width > n else (width, min(_DEPTH, n // width))
    V = _orthonormal(A, start(width), [])
    xp = namespace(V)
    image = A.multiply(V)
    smallest = np.inf
    for cycle in range(_MAX_CYCLES):
        basis, images = [V], [image]
        for _ in range(depth - 1):
            basis.append(_orthonormal(A, images[-1], basis))
            images.append(A.multiply(basis[-1]))
        ritz, S = _ritz(basis, images)
        smallest = min(smallest, float(ritz[0]))
        values = ritz[-width:]
        V, image = _combined(basis, S[:, -width:]), _combined(images, S[:, -width:])
        rest = image[:, -k:] - V[:, -k:] * like(values[-k:], V)
        residual = float(xp.max(xp.sqrt(xp.sum(rest * rest, axis=0)))) if depth > 1 else 0.0
        found = Leading(values[-k:], V[:, -k:], smallest, residual, cycle + 1)
        if residual <= max(tol * values[-1], floor):
            break
    return found


def ritz_interval(A: OnSubspace, start: Any) -> tuple[float, float]:
    """Upper bounds of the smallest eigenvalue and of the largest one, by a few Lanczos steps."""
    basis = [namespace(start).linalg.qr(A.project(start))[0]]
    images = [A.multiply(basis[0])]
    for _ in range(min(_LANCZOS_STEPS, A.dimensions) - 1):
        basis.append(_orthonormal(A, images[-1], basis))
        images.append(A.multiply(basis[-1]))
    ritz, beyond = _ritz(basis, images)[0], to_numpy(_apart(A, images[-1], basis))
    return float(ritz[0]), float(ritz[-1] + np.linalg.norm(beyond))


def _ritz(basis: list[Any], images: list[Any]) -> tuple[np.ndarray, Any]:
    """Ritz values, ascending, and the coordinates of their vectors in a basis given in blocks."""
    xp = namespace(basis[0])
    rows = [xp.concat([precise(Q.T @ AQ) for AQ in images], axis=1) for Q in basis]
    T = xp.concat(rows, axis=0)
    T = (T + T.T) / 2
    return backend_of(T).symmetric_eigenpairs(T)


def _combined(blocks: list[Any], S: Any) -> Any:
    """The product of all columns of the blocks with S."""
    total, first = None, 0
    for block in blocks:
        last = first + block.shape[1]
        part = block @ like(S[first:last, :], block)
        total, first = part if total is None else total + part, last
    return total


def _orthonormal(A: OnSubspace, block: Any, basis: list[Any]) -> Any:
    """Orthonormal columns that span a block on the subspace, without what the basis has already."""
    block = _apart(A, block, basis)
    clear = _independent(block)
    missing = block.shape[1] - clear.shape[1]
    if missing:  # random ones: what rounding leaves of the others points out of the subspace
        drawn = np.random.RandomState(0).standard_normal((block.shape[0], missing))
        block = _apart(A, namespace(block).concat([clear, like(drawn, block)], axis=1), basis)
    orthonormal = backend_of(block).orthonormal_columns  # up to the condition: twice is enough
    return orthonormal(_apart(A, orthonormal(block), basis))


def _apart(A: OnSubspace, block: Any, basis: list[Any]) -> Any:
    """A block on the subspace, without its part in the span of the basis."""
    block = A.project(block)
    for Q in basis:
        block = block - Q @ (Q.T @ block)
    return block


def _independent(block: Any) -> Any:
    """The block itself or, where its columns depend on each other, fewer that span as much."""
    xp = namespace(block)
    lengths = to_numpy(xp.sqrt(xp.sum(block * block, axis=0)))
    unit = block / like(np.where(lengths > 0, lengths, 1.0), block)
    G = to_numpy(unit.T @ unit).astype(np.float64)
    least = max(_DEPENDENT, _TIMES_ROUNDING * rounding_of(block))
    try:  # a factor exists where all eigenvalues are above the least, and takes a tenth of the time
        np.linalg.cholesky(G - least * np.eye(len(G)))
    except np.linalg.LinAlgError:
        values, Q = np.linalg.eigh(G)
        return unit @ like(Q[:, values > least], block)
    return block
