"""Values on the points of a graph that labels pull at: Poisson learning, and a ridge between."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from kernelmetric.compute import rough, to_device, to_numpy
from kernelmetric.compute.reductions import BlockProduct
from kernelmetric.solvers import conjugate_gradients
from kernelmetric.transductive._given import nearest_points
from kernelmetric.transductive._penalties import degrees_of

_PER_PART = 200  # points of a part that look for the nearest point outside
_TOL = 1e-4


class Diffusion:
    """The Laplacian ``L = D - W`` of a connected graph, and what solves its equations.

    With :math:`v = D^{1/2} f` they are ``(I - D^-½ W D^-½ + diag(μ)) v = D^-½ b``: eigenvalues lie
    between zero and two, whatever the degrees.
    """

    def __init__(self, W: Any):
        degrees = degrees_of(W)
        root = np.sqrt(degrees)
        scale = sparse.diags_array(1.0 / root)
        S = scale @ W @ scale if sparse.issparse(W) else W / np.outer(root, root)
        self._product = BlockProduct(S, rough=True, far=True)
        self.degrees, self.n_products, self.residual = degrees, 0, 0.0
        self._root = self._here(root[:, None])
        self._flat = self._here(root[:, None] / np.linalg.norm(root))

    def spread(self, targets: np.ndarray, mass: np.ndarray, lam: float) -> np.ndarray:
        """The f that minimises ``Σ m_i (f_i - y_i)² + λ fᵀLf / d̄`` with ``Σ d_i f_i = 0``.

        Times λ, so that an infinite one is Poisson learning, ``L f / d̄ = m y``. Targets and mass
        have shape (n, p), a problem in every column; the result has, too.
        """
        mean = self.degrees.mean()
        pull = None if np.isinf(lam) else mean / lam * mass / self.degrees[:, None]
        return self._solve(mean * mass * targets, pull, centred=True)

    def smooth(self, targets: np.ndarray, mass: np.ndarray, start: Any = None) -> np.ndarray:
        """The f that minimises ``Σ d_i m_i (f_i - y_i)² + fᵀLf``; start is another one."""
        return self._solve(self.degrees[:, None] * mass * targets, mass, start=start)

    def _here(self, values: np.ndarray) -> Any:
        return to_device(rough(np.asarray(values)))

    def _solve(
        self, b: np.ndarray, pull: np.ndarray | None, *, centred: bool = False, start: Any = None
    ) -> np.ndarray:
        diagonal = 1.0 if pull is None else self._here(1.0 + pull)
        flat = self._flat

        def centre(V: Any) -> Any:
            return V - flat @ (flat.T @ V) if centred else V

        found = conjugate_gradients(
            lambda V: centre(diagonal * V - self._product(V)),
            centre(self._here(b) / self._root),
            start=None if start is None else self._here(start) * self._root,
            tol=_TOL,
        )
        self.n_products += found.n_iter * b.shape[1]
        self.residual = max(self.residual, found.residual)
        return to_numpy(found.X / self._root)


def joined(W: Any, points: Any) -> tuple[Any, np.ndarray]:
    """The graph with every part joined to the largest at their nearest points, and the parts.

    An edge between parts is as weak as the weakest edge of a usual point. Of a large part, some
    points from all over look for the largest part.
    """
    pattern = W if sparse.issparse(W) else sparse.csr_array(W > 0)
    n_parts, part = connected_components(pattern, directed=False)
    if n_parts == 1:
        return W, part
    largest = np.argmax(np.bincount(part))
    inside, outside = np.flatnonzero(part == largest), np.flatnonzero(part != largest)
    outside = outside[np.argsort(part[outside], kind="stable")]
    sizes = np.bincount(part[outside], minlength=n_parts)[part[outside]]
    rank = np.arange(len(outside)) - np.searchsorted(part[outside], part[outside])
    some = outside[rank * _PER_PART // sizes != (rank - 1) * _PER_PART // sizes]
    nearest, squares = nearest_points(points[inside], 1, queries=points[some])
    order = np.lexsort((squares[:, 0], part[some]))
    first = order[np.unique(part[some][order], return_index=True)[1]]
    rows, columns = some[first], inside[nearest[first, 0]]
    pattern = sparse.csr_array(W)
    weakest = np.minimum.reduceat(pattern.data, pattern.indptr[:-1][np.diff(pattern.indptr) > 0])
    weight = float(np.median(weakest)) if len(weakest) else 1.0
    bridges = sparse.csr_array((np.full(len(rows), weight), (rows, columns)), shape=W.shape)
    joined = W + bridges + bridges.T
    return (joined.tocsr() if sparse.issparse(W) else np.asarray(joined)), part
