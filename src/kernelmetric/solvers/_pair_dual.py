"""The quadratic program of metrics learned from pairs, without its Hessian.

The dual of Kwok and Tsang (2003), eqs. (14)-(16), with squared distances d_p² before learning ::

    max  Σ s_p d_p² α_p - ½ ‖M(α)‖²,   M(α) = Σ s_p α_p δ_p δ_pᵀ
    s.t. 0 <= α_p <= u_p,   Σ_D α_p >= least

With ``psd=True`` the norm is that of the positive part of M, which makes the metric positive
semi-definite. A step costs two passes over the pairs. Every answer comes with its duality gap.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from kernelmetric.compute import fits_budget, like, map_rows, rough, sum_rows
from kernelmetric.solvers._symmetric import positive_part

_BLOCK_ROWS = 8192  # differences of so many pairs stay in the cache while they are used twice
_CACHED_BYTES = 1e9  # differences kept between passes, at most
_PRODUCT_BYTES = 2.5e6  # products of their coordinates kept too: more would leave the cache


@dataclass
class Certificate:
    """Values of dual and primal, which the optimum lies between, their relative gap, the best γ."""

    dual: float
    primal: float
    gap: float
    gamma: float

    @classmethod
    def of(cls, dual: float, primal: float, scale: float, gamma: float) -> Certificate:
        """From both values, and what else they are to be compared with."""
        if not np.isfinite(primal - dual):  # values beyond the numbers certify nothing
            return cls(dual, primal, np.inf, gamma)
        scale = max(abs(primal), abs(dual), scale)
        return cls(dual, primal, (primal - dual) / scale if scale > 0 else 0.0, gamma)


@dataclass
class PairSolution:
    """Where a solver stopped: α, ``M(α)``, the metric (it or its positive part), certificate."""

    alpha: np.ndarray
    matrix: np.ndarray
    metric: np.ndarray
    certificate: Certificate
    n_iter: int
    converged: bool
    solver: str


class PairDual:
    """The problem: passes over the pairs in blocks, and the certificate.

    Signs are +1 for dissimilar, -1 for similar pairs; a ``prior`` of None is the identity.
    """

    def __init__(
        self,
        Z: np.ndarray,
        pairs: np.ndarray,
        signs: np.ndarray,
        upper: np.ndarray,
        least: float,
        *,
        prior: np.ndarray | None = None,
        psd: bool = True,
    ):
        self.Z = np.ascontiguousarray(Z - Z.mean(axis=0), dtype=np.float64)
        self.first, self.second = np.ascontiguousarray(np.asarray(pairs).T)
        self.signs = np.asarray(signs, dtype=np.float64)
        self.upper = np.asarray(upper, dtype=np.float64)
        self.least = float(least)
        self.psd = psd
        self.apart = self.signs > 0
        r = self.Z.shape[1]
        self._kept: np.ndarray | None = None
        n_bytes = 8.0 * r * len(self.first)
        if n_bytes <= _CACHED_BYTES and fits_budget(n_bytes, share=0.5):
            self._kept = self._of_pairs(self.differences)
        self._products = self._few_products()
        self.prior = np.eye(r) if prior is None else np.asarray(prior, dtype=np.float64)
        self.d2 = self.forms(self.prior)
        self.reach = self.d2  # of all that a constraint is about: what is large beside them
        if not (np.all(np.isfinite(self.upper * self.d2)) and np.isfinite(self.least)):
            raise ValueError(
                "Got a problem of pairs with NaN or infinity, but expected finite coordinates and "
                "bounds."
            )

    @property
    def least_scale(self) -> float:
        """What counts as nothing: where the optimum is zero, no gap is relative to it."""
        return 1e-9 * float(np.sum(self.upper * self.reach))

    def __len__(self) -> int:
        return len(self.signs)

    def sizes(self) -> np.ndarray:
        """Norms of the matrices δδᵀ of all pairs."""
        return self.forms(np.eye(self.Z.shape[1]))

    def parts(self, rows: np.ndarray) -> list[tuple[float, np.ndarray]]:
        """Differences of some pairs, with the sign of their product in the matrix of each."""
        return [(1.0, self.Z[self.first[rows]] - self.Z[self.second[rows]])]

    def rough(self, tol: float, size: float) -> PairDual:
        """The same for steps, not for the certificate, with metrics up to a size."""
        Z = rough(self.Z, tol, size=size)
        if Z is self.Z:
            return self
        found = copy(self)
        found.Z, found._kept = Z, None if self._kept is None else like(self._kept, Z)
        found._products = found._few_products()
        return found

    def part(self, rows: np.ndarray) -> PairDual:
        """The problem of some pairs, where all others are at zero: for steps too."""
        found, n = copy(self), len(self)
        both = np.concatenate([rows + start for start in range(0, len(self.first), n)])
        found.first, found.second = self.first[both], self.second[both]
        for name in ("signs", "upper", "apart", "d2"):
            setattr(found, name, getattr(self, name)[rows])
        kept = self._kept, self._products
        found._kept, found._products = (None if of is None else of[both] for of in kept)
        return found

    def _few_products(self) -> np.ndarray | None:
        """All products of two coordinates of each difference, if few: a pass is one product."""
        r = self.Z.shape[1]
        if 4 * r * (r + 1) * len(self.first) > _PRODUCT_BYTES:
            return None
        i, j, _ = _triangle(r)
        delta = self.differences(slice(None))
        return delta[:, i] * delta[:, j]

    def differences(self, block: slice) -> np.ndarray:
        """Differences δ of a block of pairs, of shape (rows, r)."""
        if self._kept is not None:
            return self._kept[block]
        delta = self.Z[self.first[block]]
        delta -= self.Z[self.second[block]]
        return delta

    def _of_pairs(self, work: Callable[[slice], np.ndarray], reduction: Any = map_rows) -> Any:
        return reduction(work, len(self.first), 6 * 8 * self.Z.shape[1], most=_BLOCK_ROWS)

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """The matrix ``M(α) = Σ s α δδᵀ``, eq. (11)."""
        return self._weighted_sum(self.signs * alpha)

    def _weighted_sum(self, weights: np.ndarray) -> np.ndarray:
        """The sum of ``δδᵀ`` with weights."""
        if self._products is not None:
            halves = weights.astype(self.Z.dtype) @ self._products
            return halves.astype(np.float64)[_triangle(self.Z.shape[1])[2]]
        roots = np.sqrt(np.abs(weights)).astype(self.Z.dtype)

        def products(block: slice) -> np.ndarray:
            delta, signed, root = self.differences(block), weights[block], roots[block, None]
            rows = np.flatnonzero(signed > 0), np.flatnonzero(signed < 0)
            plus, minus = (delta[some] * root[some] for some in rows)
            # DᵀD takes half the work of D'ᵀD, and many are zero.
            return (plus.T @ plus).astype(np.float64) - minus.T @ minus

        M = self._of_pairs(products, sum_rows)
        return 0.5 * (M + M.T)

    def forms(self, M: np.ndarray) -> np.ndarray:
        """Squared distances ``δᵀ M δ`` of all pairs."""
        if self._products is not None:
            i, j, _ = _triangle(len(M))
            halves = np.where(i == j, 0.5, 1.0) * (M[i, j] + M[j, i])
            return (self._products @ halves.astype(self.Z.dtype)).astype(np.float64)
        M = M.astype(self.Z.dtype)

        def form(block: slice) -> np.ndarray:
            delta = self.differences(block)
            return np.einsum("pi,pi->p", delta, delta @ M)

        return self._of_pairs(form).astype(np.float64)

    def metric(self, M: np.ndarray) -> np.ndarray:
        """The metric that M stands for: M itself, or its positive part."""
        return positive_part(M) if self.psd else M

    def dual(self, alpha: np.ndarray, metric: np.ndarray) -> float:
        """Value (14) of the dual at a feasible α with this metric: never above the optimum."""
        half = 0.5 * float(np.sum(metric * metric))
        return float(np.sum(self.signs * self.d2 * alpha)) - half

    def primal(self, half: float, q: np.ndarray) -> tuple[float, float]:
        """Value of the primal where ½‖M‖² is ``half``, never below the optimum, and its best γ."""
        margins = self.signs * (q - self.d2)  # what the constraints (7) want positive, or >= γ
        gamma = self._best_gamma(margins[self.apart])
        violated = np.maximum(np.where(self.apart, gamma, 0.0) - margins, 0.0)
        return half - self.least * gamma + float(np.sum(self.upper * violated)), gamma

    def compare(
        self, dual: float, metric: np.ndarray, q: np.ndarray
    ) -> tuple[Certificate, np.ndarray]:
        """Certificate of a value of the dual, and of the metric or a better one near the prior."""
        # Slacks and margin are proportional to the difference from the prior metric: the best
        # metric on the way there is known. With a large C, a difference is rounding alone.
        half = 0.5 * float(np.sum(metric * metric))
        slacks, gamma = self.primal(0.0, q)
        move = metric - self.prior
        along, square = float(np.sum(self.prior * move)), float(np.sum(move * move))
        share = min(max(-(along + slacks) / square, 0.0), 1.0) if square > 0 else 1.0
        gained = (1.0 - share) * (along + slacks) + 0.5 * (1.0 - share**2) * square
        if gained > 1e-12 * (half + abs(slacks)):
            metric, gamma, slacks = self.prior + share * move, share * gamma, share * slacks
            half = 0.5 * float(np.sum(metric * metric))
        scale = max(half, self.least_scale)
        return Certificate.of(dual, half + slacks, scale, gamma), metric

    def solution(
        self, alpha: np.ndarray, n_iter: int, tol: float, solver: str, known: Any = None
    ) -> PairSolution:
        """The answer at α, certified anew; with another metric that is known, if that is better."""
        M = self.matrix(alpha)
        metric = self.metric(M)
        dual = self.dual(alpha, metric)
        certificate, metric = self.compare(dual, metric, self.forms(metric))
        if known is not None and certificate.gap > 1e-2 * tol:
            other, known = self.compare(dual, known, self.forms(known))
            if other.gap < 0.5 * certificate.gap:
                certificate, metric = other, known
        converged = certificate.gap <= tol
        return PairSolution(alpha, M, metric, certificate, n_iter, converged, solver)

    def project(self, alpha: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The nearest feasible point."""
        return project_box_half_space(alpha, self.upper, self.apart, self.least, weights)

    def _best_gamma(self, margins: np.ndarray) -> float:
        """Minimise ``-least γ + Σ_D u [γ - margin]₊`` over γ >= 0: a quantile."""
        if not len(margins):
            return 0.0
        order = np.argsort(margins)
        sums = np.cumsum(self.upper[self.apart][order])
        k = int(np.searchsorted(sums, self.least * (1.0 - 1e-12)))
        return max(0.0, float(margins[order[min(k, len(order) - 1)]]))


class ComparisonDual(PairDual):
    """The same for comparisons: ``εεᵀ - δδᵀ`` of a far and a near pair stands for δδᵀ.

    All of them are as dissimilar pairs; ``options`` are those of :class:`PairDual`.
    """

    def __init__(
        self, Z: np.ndarray, near: np.ndarray, far: np.ndarray, upper, least, **options: Any
    ):
        pairs = np.concatenate([far, near])
        super().__init__(Z, pairs, np.ones(len(near)), upper, least, **options)
        self.reach = np.sum(np.split(super().forms(self.prior), 2), axis=0)

    def sizes(self) -> np.ndarray:
        """Norms of the matrices ``εεᵀ - δδᵀ``."""
        (_, far), (_, near) = self.parts(np.arange(len(self)))
        squares = np.sum(far * far, axis=1) ** 2 + np.sum(near * near, axis=1) ** 2
        return np.sqrt(np.maximum(squares - 2.0 * np.sum(far * near, axis=1) ** 2, 0.0))

    def parts(self, rows: np.ndarray) -> list[tuple[float, np.ndarray]]:
        """Differences of the far pairs of some comparisons, and of the near ones."""
        far = super().parts(rows)[0][1]
        return [(1.0, far), (-1.0, super().parts(rows + len(self))[0][1])]

    def matrix(self, alpha: np.ndarray) -> np.ndarray:
        """The matrix ``M(α) = Σ α (εεᵀ - δδᵀ)``."""
        return self._weighted_sum(np.concatenate([alpha, -alpha]))

    def forms(self, M: np.ndarray) -> np.ndarray:
        """Differences of squared distances, ``εᵀ M ε - δᵀ M δ``, of all comparisons."""
        far, near = np.split(super().forms(M), 2)
        return far - near


@lru_cache(maxsize=8)
def _triangle(r: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of an upper triangle, and where in it each entry of the matrix is."""
    i, j = np.triu_indices(r)
    places = np.empty((r, r), dtype=np.intp)
    places[i, j] = places[j, i] = np.arange(len(i))
    return i, j, places


def project_box_half_space(
    v: np.ndarray, upper: np.ndarray, members: np.ndarray, least: float, weights: np.ndarray
) -> np.ndarray:
    """Minimise ``Σ w (α - v)²`` over ``0 <= α <= upper`` with ``Σ_members α >= least``.

    The solution is ``clip(v + λ/w, 0, upper)`` on the members with the smallest λ >= 0 that gives
    the sum, which is piecewise linear in λ: Newton's method inside a bracket ends exactly there.
    """
    alpha = np.clip(v, 0.0, upper)
    if not members.any() or float(np.sum(alpha[members])) >= least:
        return alpha
    v, upper, rate = v[members], upper[members], 1.0 / weights[members]
    low, high = 0.0, float(np.max((upper - v) / rate))  # at high all are at their bound
    multiplier = low
    for _ in range(200):
        moved = v + multiplier * rate
        inside = (moved > 0.0) & (moved < upper)
        missing = least - float(np.sum(np.clip(moved, 0.0, upper)))
        low, high = (multiplier, high) if missing > 0 else (low, multiplier)
        slope = float(np.sum(rate[inside]))
        following = multiplier + missing / slope if slope > 0 else np.inf
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(missing) <= 1e-14 * least or following in (low, high):
            break  # reached to the last digit
        multiplier = following
    alpha[members] = np.clip(v + multiplier * rate, 0.0, upper)
    return alpha
