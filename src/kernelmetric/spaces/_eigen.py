"""Leading eigenvectors of a centred Gram matrix."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from kernelmetric.compute import orthonormal_columns, symmetric_eigenpairs, to_numpy
from kernelmetric.spaces._centred_gram import CentredGram

_DEPTH = 6  # blocks of one Krylov cycle: one is then enough for most kernels of a medium width
_MAX_CYCLES = 40
_LANCZOS_STEPS = 15


def dense_eigenpairs(gram: CentredGram) -> tuple[np.ndarray, Any]:
    """All eigenpairs of H K H, ascending as LAPACK gives them: O(n³) time, 3 n × n arrays."""
    gram.refuse_coincident()
    Kc = gram.K
    Kc -= gram.column_means
    Kc -= gram.xp.mean(Kc, axis=1, keepdims=True)
    gram.K = None  # it is no more
    return symmetric_eigenpairs(Kc.T)  # transposed it lies as LAPACK wants it


def lanczos_eigenpairs(
    gram: CentredGram, k: int, rng: np.random.RandomState
) -> tuple[np.ndarray, Any]:
    """The k leading eigenpairs by ARPACK, ascending."""
    xp, dtype = gram.xp, gram.dtype
    gram.refuse_coincident()

    def multiply(v: np.ndarray) -> np.ndarray:
        block = xp.asarray(v.reshape(gram.n, -1), dtype=dtype, device=gram.device)
        return to_numpy(gram.centred_times(block))

    operator = LinearOperator(
        (gram.n, gram.n), matvec=multiply, matmat=multiply, dtype=np.dtype(np.float64)
    )
    start = rng.uniform(-1, 1, gram.n)
    try:
        values, V = eigsh(operator, k=min(k, gram.n - 2), which="LA", v0=start - start.mean())
    except ArpackNoConvergence as error:
        warnings.warn(
            f"Lanczos found {len(error.eigenvalues)} of {k} eigenvectors; the others are left out. "
            "Try solver='dense' or fewer components.",
            ConvergenceWarning,
            stacklevel=5,
        )
        values, V = error.eigenvalues, error.eigenvectors
    order = np.argsort(values)
    return values[order], xp.asarray(V[:, order], dtype=dtype, device=gram.device)


def krylov_eigenpairs(
    gram: CentredGram, k: int, rng: np.random.RandomState, tol: float
) -> tuple[np.ndarray, Any, float]:
    """The k leading eigenpairs by randomized block Krylov iteration, ascending.

    A random block is multiplied a few times by the matrix; the leading Ritz vectors of all the
    blocks together start the next cycle. Products with wide blocks run at the speed of a GEMM,
    which is why this beats one-vector Lanczos when many vectors are wanted.

    Parameters
    ----------
    gram : CentredGram
        The matrix.
    k : int
        Number of eigenpairs.
    rng : RandomState
        For the start.
    tol : float
        Stop when every residual ‖Kv - λv‖ is below ``tol`` λmax.

    Returns
    -------
    values : ndarray of shape (k,)
        Eigenvalues.
    V : array of shape (n, k)
        Eigenvectors.
    smallest : float
        The smallest Ritz value: negative beyond round-off only if the matrix is indefinite.
    """
    xp, n = gram.xp, gram.n
    width = k + max(10, k // 10)
    # Where two blocks would not fit, one block spans the whole space and is exact at once.
    width, depth = (n - 1, 1) if 2 * width > n - 1 else (width, min(_DEPTH, (n - 1) // width))
    V = _orthonormal(gram, gram.sketch(width, rng), [])
    image = gram.centred_times(V)
    gram.refuse_coincident()  # not sooner: the first product brings the column means along
    smallest = np.inf
    for _cycle in range(_MAX_CYCLES):
        basis, images = [V], [image]
        for _ in range(depth - 1):
            block = _orthonormal(gram, images[-1], basis)
            basis.append(block)
            images.append(gram.centred_times(block))
        Q, KQ = xp.concat(basis, axis=1), xp.concat(images, axis=1)
        T = to_numpy(Q.T @ KQ).astype(np.float64)
        ritz, S = np.linalg.eigh((T + T.T) / 2)
        smallest = min(smallest, float(ritz[0]))
        values = ritz[-width:]
        S = xp.asarray(S[:, -width:], dtype=gram.dtype, device=gram.device)
        V, image = Q @ S, KQ @ S
        scale = xp.asarray(values[-k:], dtype=gram.dtype, device=gram.device)
        residuals = image[:, -k:] - V[:, -k:] * scale
        worst = float(xp.max(xp.sqrt(xp.sum(residuals * residuals, axis=0))))
        if worst <= max(tol * values[-1], gram.round_off) or depth == 1:
            break
    else:
        warnings.warn(
            f"The leading {k} eigenvectors have residuals up to {worst / values[-1]:.1e} of the "
            f"largest eigenvalue after {_MAX_CYCLES} cycles, above {tol:.0e}. "
            "Try solver='dense' or another number of components.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return values[-k:], V[:, -k:], smallest


def smallest_ritz_value(gram: CentredGram, rng: np.random.RandomState) -> float:
    """Upper bound of the smallest eigenvalue by a few Lanczos steps: cheap, sees indefiniteness."""
    xp = gram.xp
    steps = min(_LANCZOS_STEPS, gram.n - 1)
    start = xp.asarray(rng.standard_normal((gram.n, 1)), dtype=gram.dtype, device=gram.device)
    v, _ = xp.linalg.qr(gram.centre(start))
    basis, images = [v], [gram.centred_times(v)]
    for _ in range(steps - 1):
        basis.append(_orthonormal(gram, images[-1], basis))
        images.append(gram.centred_times(basis[-1]))
    T = to_numpy(xp.concat(basis, axis=1).T @ xp.concat(images, axis=1)).astype(np.float64)
    return float(np.linalg.eigvalsh((T + T.T) / 2)[0])


def _orthonormal(gram: CentredGram, block: Any, basis: list[Any]) -> Any:
    # Twice is enough; the second pass also repairs arbitrary columns of a rank-deficient block.
    for _ in range(2):
        block = gram.centre(block)
        for Q in basis:
            block = block - Q @ (Q.T @ block)
        block = orthonormal_columns(block)
    return block
