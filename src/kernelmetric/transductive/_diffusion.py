"""Values on the points of a graph that labels pull at: Poisson learning, and a ridge between."""

from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from kernelmetric._warnings import warn
from kernelmetric.compute import to_device, to_numpy
from kernelmetric.compute.conjugate_gradients import conjugate_gradients
from kernelmetric.compute.reductions import BlockProduct
from kernelmetric.solvers import evenly
from kernelmetric.transductive._given import nearest_points
from kernelmetric.transductive._penalties import degrees_of

_PER_PART = 200  # points of a part that look for the nearest point outside
_SMALL = 20  # points of parts that look together
DIRECT = 3000  # points up to which a Cholesky factor is quicker than many solutions
_TOL = 1e-6  # relative: parts that a weak edge joins have eigenvalues of 1e-4 and less


class Diffusion:
    """The Laplacian ``L = D - W`` of a connected graph, and what solves its equations.

    With :math:`v = D^{1/2} f` they are ``(I - D^-½ W D^-½ + diag(μ)) v = D^-½ b``: eigenvalues lie
    between zero and two, whatever the degrees. ``place`` says which point of the graph each row is,
    where copies are one. Small graphs keep what a unit at each of the ``labelled`` rows does to
    all points, of which every solution is a sum.
    """

    def __init__(self, W: Any, place: np.ndarray | None = None, labelled: Any = None):
        degrees = degrees_of(W)
        root = np.sqrt(degrees)
        scale = sparse.diags_array(1.0 / root)
        S = scale @ W @ scale if sparse.issparse(W) else W / np.outer(root, root)
        self._product = BlockProduct(S, far=True)
        self.degrees, self.n_products = degrees, 0
        self._root = self._here(root[:, None])
        self._place = np.arange(len(root)) if place is None else place
        ones, rows = np.ones(len(self._place)), np.arange(len(self._place))
        self._sums = sparse.csr_array((ones, (self._place, rows)), (len(root), len(rows)))
        self._flat = self._here(root[:, None] / np.linalg.norm(root))
        self._effects: Any = None
        if labelled is not None and len(root) <= DIRECT:
            at = np.unique(self._place[labelled])
            self._effects = at, _effects(S, root, at)

    def spread(self, targets: np.ndarray, mass: np.ndarray, lam: float) -> np.ndarray:
        """The f that minimises ``Σ m_i (f_i - y_i)² + λ fᵀLf / d̄``, less its mean by degrees.

        Times λ, so that an infinite one is Poisson learning, ``L f / d̄ = m y``. Targets and mass
        have shape (n, p), a problem in every column; the result has, too.
        """
        mean, endless = self.degrees.mean(), np.isinf(lam)
        pulled, mass = self._sums @ (mass * targets), self._sums @ mass
        if self._effects is not None:
            F = self._summed(pulled, mass, lam)
        else:
            pull = None if endless else mean / lam * mass / self.degrees[:, None]
            F = self._solve(mean * pulled, pull, centred=endless)
        return (F - self.degrees @ F / self.degrees.sum())[self._place]

    def _summed(self, pulled: np.ndarray, mass: np.ndarray, lam: float) -> np.ndarray:
        """The effects that add up to the solution: as strong as what the errors leave to pull.

        With the effects H between labelled points, their strengths w and a constant c are
        those of ``w / m + H w / λ + c = y``, where w adds up to zero.
        """
        at, H = self._effects
        there = mass[at, 0] > 0
        at, H = at[there], H[:, there]
        n, unit = len(at), min(lam, 1.0)  # of strengths, which a small λ makes small
        A = np.ones((n + 1, n + 1))
        A[:n, :n] = unit / lam * H[at] + np.diag(unit / mass[at, 0])
        A[n, n] = 0.0
        y = np.vstack([pulled[at] / mass[at], np.zeros((1, pulled.shape[1]))])
        return H @ (unit * np.linalg.solve(A, y)[:n])

    def walk(self, values: np.ndarray, fixed: np.ndarray, n_steps: int) -> np.ndarray:
        """Means of values after steps of a random walk, ``D^-1 W``; some rows keep theirs."""
        counts = np.asarray(self._sums.sum(axis=1)).ravel()[:, None]
        held = (self._sums @ fixed)[:, None]
        own = np.where(held > 0, self._sums @ (fixed[:, None] * values), self._sums @ values)
        begin = self._here(own / np.where(held > 0, held, counts)) * self._root
        keep, V = self._here(held > 0), begin
        for _ in range(n_steps):
            V = keep * begin + (1.0 - keep) * self._product(V)
        self.n_products += n_steps * values.shape[1]
        return to_numpy(V / self._root)[self._place]

    def covariance(self, rows: np.ndarray, values: np.ndarray, leak: float) -> np.ndarray:
        """``(L + leak D)⁻¹`` from some rows to all points, times values of shape (m, p)."""
        b = self._sums[:, rows] @ values
        return self._solve(b, np.full((len(b), 1), leak))[self._place]

    def _here(self, values: np.ndarray) -> Any:
        return to_device(np.asarray(values, dtype=np.float64))

    def _solve(
        self, b: np.ndarray, pull: np.ndarray | None, *, centred: bool = False
    ) -> np.ndarray:
        # A strong pull at few points would rule every residual. So the unknowns are what it leaves.
        r = 1.0 if pull is None else self._here(1.0 + pull) ** -0.5
        flat, b = self._flat, r * self._here(b) / self._root

        def multiply(V: Any) -> Any:
            W = V - r * self._product(r * V)
            return W - flat @ (flat.T @ W) if centred else W

        b = b - flat @ (flat.T @ b) if centred else b
        first = 0.0 * b if pull is None else b
        found = conjugate_gradients(
            multiply, b - multiply(first), tol=_TOL, what="the spread of labels"
        )
        if found.residual > 1e3 * _TOL:
            warn(
                f"The spread of labels has residuals up to {found.residual:.1e} after "
                f"{found.n_iter} steps: try a smaller lam, or more neighbours.",
                ConvergenceWarning,
            )
        self.n_products += found.n_iter * b.shape[1]
        return to_numpy(r * (first + found.X) / self._root)


def _effects(S: Any, root: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The solutions of ``L f = d̄ e`` for units e at some points, up to constants."""
    # What S does not see, sums of zero do not ask for.
    A = np.asarray(np.outer(root, root) / (root @ root) - S)
    A[np.diag_indices_from(A)] += 1.0
    units = np.zeros((len(root), len(at)))
    units[at, np.arange(len(at))] = np.mean(root**2) / root[at]
    factor = linalg.cho_factor(A.T, lower=True, overwrite_a=True)  # symmetric: nothing is copied
    return linalg.cho_solve(factor, units, overwrite_b=True) / root[:, None]


def places_of(points: Any) -> tuple[Any, np.ndarray | None]:
    """The distinct points, and which of them each row is; None where no row has a copy."""
    seen: dict[int, int] = {}
    if sparse.issparse(points):
        points = sparse.csr_array(points, copy=True)
        points.sum_duplicates()
        points.eliminate_zeros()
        ends = zip(points.indptr[:-1], points.indptr[1:], strict=True)
        keys = (points.indices[a:b].tobytes() + points.data[a:b].tobytes() for a, b in ends)
    else:
        keys = ((row + 0.0).tobytes() for row in points)  # of zeros one has no sign
    place = np.array([seen.setdefault(hash(key), len(seen)) for key in keys], dtype=np.intp)
    if len(seen) == len(place):
        return points, None
    return points[np.unique(place, return_index=True)[1]], place


def joined(W: Any, points: Any) -> tuple[Any, np.ndarray]:
    """The graph with every part joined to the nearest other one, until there is one; and the parts.

    By one edge, as weak as the weakest edge of a usual point, at the nearest points of the two. Of
    a large part, some points from all over look for others, and the largest does not look.
    """
    pattern = sparse.csr_array(W)
    weakest = np.minimum.reduceat(pattern.data, pattern.indptr[:-1][np.diff(pattern.indptr) > 0])
    weight = float(np.median(weakest)) if len(weakest) else 1.0
    n_parts, first = connected_components(pattern, directed=False)
    part = first
    while n_parts > 1:
        rows, columns = _bridges(points, part)
        edges = sparse.csr_array((np.full(len(rows), weight), (rows, columns)), shape=W.shape)
        edges = edges.maximum(edges.T)
        W = (W + edges).tocsr() if sparse.issparse(W) else W + edges.toarray()
        pattern = pattern + edges
        n_parts, part = connected_components(pattern, directed=False)
    return W, first


def _bridges(points: Any, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every part but the largest, the point that is nearest to another part, and that one's."""
    sizes = np.bincount(part)
    small, largest = np.flatnonzero(sizes <= _SMALL), int(np.argmax(sizes))
    some = np.flatnonzero(np.isin(part, small) & (part != largest))
    found: list[tuple[int, int]] = []
    if len(some):  # no more than those of the own part are nearer than the first of another
        k = min(int(sizes[part[some]].max()) + 1, len(part))
        nearest, squares = nearest_points(points, k, queries=points[some])
        apart = part[nearest] != part[some][:, None]
        place = apart.argmax(axis=1)
        rows = np.arange(len(some))
        order = np.lexsort((squares[rows, place], part[some]))
        ahead = order[np.unique(part[some][order], return_index=True)[1]]
        found += zip(some[ahead], nearest[ahead, place[ahead]], strict=True)
    for p in np.flatnonzero(sizes > _SMALL):
        if p != largest:
            inside, outside = np.flatnonzero(part == p), np.flatnonzero(part != p)
            inside = inside[evenly(len(inside), _PER_PART)]
            nearest, squares = nearest_points(points[outside], 1, queries=points[inside])
            i = int(np.argmin(squares[:, 0]))
            found.append((inside[i], outside[nearest[i, 0]]))
    rows, columns = np.array(found, dtype=np.intp).T
    return rows, columns
