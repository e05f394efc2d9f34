"""What Newton steps over pairs are solved with, for :mod:`kernelmetric.solvers._pair_interior`.

A Newton step solves with ``Θ + F Ω Fᵀ``: F has the row δδᵀ for a pair, Ω a weight from 0 to 1 for
every two eigenvectors of the scaling. Conjugate gradients do it in few products, with an inverse
that is formed for the pairs Θ has not decided yet: by its low rank, or for few pairs as it is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import sum_rows
from kernelmetric.solvers._pair_dual import PairDual

MOST_DENSE = 4000  # pairs whose Hessian is formed
_DECIDED = 1e3  # a pair whose Θ exceeds its own curvature so much does without that of others
_MOST_PRODUCTS = 40
_EXHAUSTED = 20  # products after which the formed inverse is not what it should be
_WORTH_DIGITS = 10.0  # so many times the operations of a low rank
TILE_ROWS = 768  # differences of a tile, so that every thread has some


class Cone:
    """The scaling of Nesterov and Todd: G with ``G⁻¹ M G⁻ᵀ = Gᵀ S G``, a diagonal matrix.

    With the singular vectors ``G = Q √w Yᵀ`` what steps need is elementwise in the basis Q.
    """

    def __init__(self, M: np.ndarray, S: np.ndarray):
        L, R = (linalg.cholesky(X, lower=True, check_finite=False) for X in (M, S))
        _, self.d, Vt = linalg.svd(R.T @ L, check_finite=False)
        if not self.d[-1] > 0:
            raise linalg.LinAlgError("a metric at the boundary")
        self.Q, root, self.Yt = linalg.svd((L @ Vt.T) / np.sqrt(self.d), check_finite=False)
        self.root, self.w = root, root**2
        product = np.outer(self.w, self.w)
        self.weights = product / (1.0 + product)  # Ω
        self.halfway = np.outer(root, root) / (1.0 + product)

    def pull(self, target: float, second: Any) -> np.ndarray:
        """What M and S, both scaled, shall change by together."""
        d = self.d
        T = np.diag(target - d * d) - second
        return self.Yt @ (T * (2.0 / (d[:, None] + d))) @ self.Yt.T

    def damped(self, missing: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """How far M moves back while the pairs stay."""
        inside = self.weights * (self.Q.T @ missing @ self.Q) - self.halfway * pull
        return self.Q @ inside @ self.Q.T

    def moves(self, dF: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The changes of M and of S, both scaled, that go with that of the pairs."""
        dM = self.halfway * (self.Q.T @ dF @ self.Q) + (1.0 - self.weights) * pull
        return self.Yt.T @ dM @ self.Yt, self.Yt.T @ (pull - dM) @ self.Yt

    def unscaled(self, dM: np.ndarray, dS: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same in the units of the metric."""
        G, back = (self.Q * self.root) @ self.Yt, (self.Q / self.root) @ self.Yt
        dM, dS = G @ dM @ G.T, back @ dS @ back.T
        return 0.5 * (dM + dM.T), 0.5 * (dS + dS.T)

    def longest(self, *moves: np.ndarray) -> float:
        """The longest step, at most one, that keeps both positive semi-definite."""
        scale = 1.0 / np.sqrt(np.outer(self.d, self.d))
        lowest = min(float(np.linalg.eigvalsh(scale * move)[0]) for move in moves)
        return min(1.0, -1.0 / lowest) if lowest < 0 else 1.0


class Hessian:
    """``Θ + F Ω Fᵀ`` over the free pairs, and its inverse by conjugate gradients."""

    def __init__(self, problem: PairDual, free: np.ndarray, root: float):
        self.problem, self.free = problem, free
        self.scale = (root * problem.signs * problem.upper)[free]
        self.root, self.chosen = root, np.flatnonzero(free)
        sizes = problem.sizes()[free]
        self.diagonal = np.maximum((self.scale * sizes) ** 2, 1e-300)  # where all weights are 1
        self.gram: np.ndarray | None = None
        self.n_products, self.solved = 0, True  # of the last solution, and whether they sufficed
        self.digits = False  # whether the last ones are needed, which a low rank loses

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Products F X: forms of the pairs."""
        return self.scale * self.problem.forms(X)[self.free]

    def sum(self, x: np.ndarray) -> np.ndarray:
        """The matrix Fᵀ x."""
        full = np.zeros(len(self.problem))
        full[self.free] = x
        return self.root * self.problem.matrix(self.problem.upper * full)

    def move_to(self, cone: Cone | None, theta: np.ndarray) -> None:
        """Look at the curvature of another point, and form an inverse nearly right."""
        self.cone, self.theta = cone, theta
        self.some = np.flatnonzero(theta < _DECIDED * self.diagonal)
        n, r = len(self.some), self.problem.Z.shape[1]
        self.i, self.j = np.triu_indices(r)
        self.widths = np.where(self.i == self.j, 1.0, np.sqrt(2.0))
        if cone is not None:
            self.widths = self.widths * np.sqrt(cone.weights[self.i, self.j])
        width = len(self.i)
        formed = n * n * (r if cone is None else np.sum(self.widths > 1e-5)) + n**3 / 3
        reduced = n * width**2 + width**3 / 3
        self.digits = self.digits or self.n_products > _EXHAUSTED
        worth = _WORTH_DIGITS if self.digits else 1.0
        self.low_rank = (n > 600 and worth * reduced < formed) or n > MOST_DENSE
        if self.low_rank:
            small = self._small()
            small[np.diag_indices_from(small)] += 1.0
            self.inverse = _inverse(small)
        elif n:
            H = self._formed()
            H[np.diag_indices_from(H)] += theta[self.some]
            self.inverse = _inverse(H)

    def solve(self, rhs: np.ndarray, precision: float) -> np.ndarray:
        """Conjugate gradients: the fewer products, the better the formed inverse is."""
        x, rest = np.zeros(len(rhs)), rhs
        before, direction = 1.0, rhs
        for step in range(_MOST_PRODUCTS):
            if not np.max(np.abs(rest)) > precision:
                break
            turned = self._nearly(rest)
            size = float(rest @ turned)
            direction = turned if step == 0 else turned + size / before * direction
            image = self._times(direction)
            along = size / float(direction @ image)
            x, rest, before = x + along * direction, rest - along * image, size
        self.n_products, self.solved = step, step < _MOST_PRODUCTS - 1
        return x

    def _times(self, x: np.ndarray) -> np.ndarray:
        if self.cone is None and self.gram is not None:
            return self.theta * x + self.scale * (self.gram @ (self.scale * x))
        E = self.sum(x)
        if self.cone is not None:
            E = self._back(self.cone.weights * self._turned(E))
        return self.theta * x + self.rows(E)

    def _turned(self, E: np.ndarray) -> np.ndarray:
        """A matrix in the basis of the cone."""
        return E if self.cone is None else self.cone.Q.T @ E @ self.cone.Q

    def _back(self, E: np.ndarray) -> np.ndarray:
        """A matrix from the basis of the cone."""
        return E if self.cone is None else self.cone.Q @ E @ self.cone.Q.T

    def _nearly(self, rhs: np.ndarray) -> np.ndarray:
        """The formed inverse, times a vector: by the formula of Woodbury, or of some pairs."""
        x, some = rhs / self.theta, self.some
        if not self.low_rank:
            if len(some):
                x[some] = self.inverse(rhs[some])
            return x
        undecided = np.zeros(len(x))
        undecided[some] = x[some]
        E = self._turned(self.sum(undecided))
        y = self.inverse(E[self.i, self.j] * self.widths)
        E = np.zeros_like(E)
        E[self.i, self.j] = 0.5 * y * self.widths
        x[some] -= self.rows(self._back(E + E.T))[some] / self.theta[some]
        return x

    def _parts(self, rows: slice) -> list[tuple[float, np.ndarray]]:
        """Differences of some undecided pairs in the basis of the cone, in columns."""
        parts = self.problem.parts(self.chosen[self.some[rows]])
        turned = [(s, d if self.cone is None else d @ self.cone.Q) for s, d in parts]
        return [(sign, np.ascontiguousarray(delta.T)) for sign, delta in turned]

    def _small(self) -> np.ndarray:
        """The matrix of the low rank: products of two coordinates, times each other."""
        size = np.abs(self.scale[self.some]) / np.sqrt(self.theta[self.some])
        n, width, r = len(self.some), len(self.i), self.problem.Z.shape[1]
        starts = np.flatnonzero(self.i == self.j)

        def square(rows: slice) -> np.ndarray:
            F = np.zeros((width, len(size[rows])))
            for sign, delta in self._parts(rows):
                for k, first in enumerate(starts):  # coordinate k with those that follow
                    F[first : first + r - k] += delta[k:] * (sign * size[rows] * delta[k])
            return F @ F.T

        small = sum_rows(square, n, 6 * 8 * width, most=TILE_ROWS, flops=n * width**2)
        return small * np.outer(self.widths, self.widths)

    def _formed(self) -> np.ndarray:
        """``F Ω Fᵀ`` of some pairs; without weights a part of what was formed once."""
        some, scale = self.some, self.scale[self.some]
        if self.cone is None:
            if self.gram is None:
                parts = self.problem.parts(self.chosen)
                self.gram = sum(s * t * (a @ b.T) ** 2 for s, a in parts for t, b in parts)
            H = self.gram.copy() if len(some) == len(self.gram) else self.gram[np.ix_(some, some)]
        else:
            parts = self._parts(slice(None))
            kept = np.flatnonzero(self.widths > 1e-5)

            def product(part: slice) -> np.ndarray:
                columns = kept[part]
                i, j = self.i[columns], self.j[columns]
                F = sum(sign * delta[i] * delta[j] for sign, delta in parts)
                F *= self.widths[columns, None]
                return F.T @ F

            H = sum_rows(product, len(kept), 4 * 8 * len(some), most=2048)
        H *= scale[:, None]
        H *= scale
        return H


def _inverse(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What multiplies a vector by the inverse of a matrix, moved as rounding makes necessary."""
    for shift in (0.0, 1e-15, 1e-14, 1e-13, 1e-12):
        moved = H + shift * np.max(np.diag(H)) * np.eye(len(H)) if shift else H
        # A factor of SciPy's cho_factor may come by rows: every solution would copy it. That of
        # cho_solve takes three times as long for a single vector.
        (factor,) = linalg.get_lapack_funcs(("potrf",), (moved,))
        (solve,) = linalg.get_blas_funcs(("trsv",), (moved,))
        # The transpose is the same, and in the order of LAPACK.
        L, failed = factor(moved.T, lower=1, clean=0)
        if not failed:
            return lambda x: solve(L, solve(L, x, lower=1), lower=1, trans=1)
    raise linalg.LinAlgError("not positive definite")
