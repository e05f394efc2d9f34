"""The eigenproblem (3), as it is or within the range of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from kernelmetric.solvers import Eigenpairs, smallest_eigenvectors
from kernelmetric.transductive._costs import gram_form
from kernelmetric.transductive._penalties import Geometry

N_COMPONENTS = 10  # unless the user asks for others


def check_n_components(n_components: Any, geometry: Geometry, n_samples: int) -> int:
    """How many eigenvectors are wanted; refused where there are fewer."""
    most = n_samples - 1 if geometry.basis is None else geometry.basis.shape[1]
    if n_components is None:
        return max(1, min(N_COMPONENTS, n_samples - 2, most))
    if n_components > most:
        raise ValueError(
            f"Got n_components={n_components!r}, but expected an integer from 1 to {most}: "
            f"{n_samples} points "
            + ("have no more directions." if geometry.basis is None else "in range(K).")
        )
    return int(n_components)


def solve(
    geometry: Geometry,
    C: sparse.csr_array,
    lam: float,
    n_components: int,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    random_state: Any = None,
) -> Eigenpairs:
    """Smallest eigenpairs of ``C' + λP``, problem (3); coefficients where there is a basis."""
    if np.isinf(lam):  # the penalty alone
        C, lam = 0.0 * C, 1.0
    cost = gram_form(C)
    if geometry.basis is not None:
        return _solve_in_range(geometry, cost, lam, n_components)
    A = lam * geometry.matrix
    if sparse.issparse(A):
        A = (A + cost).tocsr()
    else:
        entries = cost.tocoo()
        np.add.at(A, (entries.row, entries.col), entries.data)
    return smallest_eigenvectors(
        A, n_components, null=geometry.null, start=start, tol=tol, random_state=random_state
    )


def _solve_in_range(
    geometry: Geometry, cost: sparse.csr_array, lam: float, n_components: int
) -> Eigenpairs:
    """Eq. (7), with x = Uβ in range(K): ``Uᵀ(C' + λM)U + λS⁻¹``."""
    # S⁻¹ spans ten orders of magnitude and would drown the small eigenvalues that are wanted. Its
    # inverse does not: with σ such that the matrix plus σ is positive, the largest eigenvalues of
    # S^½ (λI + S^½ (Uᵀ(C' + λM)U + σI) S^½)⁻¹ S^½ are those of the smallest.
    U, S = geometry.basis, geometry.values
    assert U is not None and S is not None  # for the type checker: the caller has looked
    B = U.T @ (cost @ U)
    if geometry.matrix is not None:
        B = B + lam * geometry.matrix
    shift = float(abs(cost).sum(axis=1).max()) if cost.nnz else 0.0
    B[np.diag_indices_from(B)] += shift
    root = np.sqrt(S)
    inner = root[:, None] * B * root
    inner[np.diag_indices_from(inner)] += lam
    T = linalg.solve_triangular(linalg.cholesky(inner, lower=True), np.diag(root), lower=True)
    r = len(S)
    inverse, V = linalg.eigh(T.T @ T, subset_by_index=(r - n_components, r - 1))
    inverse, V = inverse[::-1], V[:, ::-1]
    residuals = np.linalg.norm(T.T @ (T @ V) - V * inverse, axis=0)
    return Eigenpairs(1.0 / inverse - shift, V, residuals, True, 0)
