r"""Closed forms: maps of queries and documents that sums over matches give, without a search.

With the differences :math:`\delta = q - d` of matches, W = E δδᵀ is what should not matter, T the
covariance of all rows, N = E δδᵀ of the nearest documents that do not match::

    whitening           M = W_α⁻¹                 relevant components [1]_
    sharpened           M = W_α⁻¹ N_α W_α⁻¹       counts more what tells the nearest wrong ones
    ridge regression    A = I + E (d - q) qᵀ (E qqᵀ + λ I)⁻¹
    Procrustes          A = the rotation nearest to E d qᵀ + λ I
    canonical           A, B of probabilistic canonical correlations [2]_

W_α is (1 - α) W + α T, or (1 - α) W + α I, in units of equal trace: few matches want a large α.

.. [1] Bar-Hillel, Hertz, Shental and Weinshall, "Learning a Mahalanobis metric from equivalence
   constraints", Journal of Machine Learning Research 6 (2005).
.. [2] Bach and Jordan, "A probabilistic interpretation of canonical correlation analysis", 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from kernelmetric.compute import backend_of, like, namespace, precise, sum_rows, take_rows, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.evaluation._retrieval import directions
from kernelmetric.inputs import DeviceMixin
from kernelmetric.inputs._points import refuse_lost

_FLOOR = 1e-3  # of the mean variance: what the covariance of all rows has at least everywhere
_HALF = 0.5  # share of the target in the metric that finds the nearest wrong documents
# α of whitening, sharpened, sharpened twice, and half of the way from the identity
_OF_ALL = (0.1, 0.3, 0.6, 0.9), (0.2, 0.4, 0.6, 0.9), (0.4, 0.6), (0.3, 0.9)
_OF_IDENTITY = (0.1, 0.4, 0.8), (0.6, 0.9), (), (0.4,)
_RIDGES = (0.3, 1.0, 3.0, 10.0, 30.0)  # beside the mean variance
_BLUNTED, _BLUNT, _SHARE = (0.3, 1.0), 0.2, 0.9  # ridges, power and α of a whitened query map
_PULL = 0.3  # of Procrustes to the identity, beside the mean covariance
_CANONICAL = (0.1, 0.3, 0.9)
_BLOCK = 4_096  # rows whose products are taken at once

Matrix = np.ndarray
Axes = tuple[np.ndarray, np.ndarray]


class VectorMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeviceMixin, BaseEstimator):
    """A linear map of vectors, ``components_``, that is learned from X and y."""

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class Table(NamedTuple):
    """Rows of an array, taken some at a time: as directions where the geometry is the cosine."""

    X: Any
    cosine: bool
    origin: Any = None  # that rows are counted from

    def take(self, rows: np.ndarray) -> Any:
        """Some rows, in memory."""
        Z = take_rows(self.X, rows)
        Z = Z if self.origin is None else precise(Z) - like(self.origin, precise(Z[:1, :]))
        return directions(Z) if self.cosine else Z


class Form(NamedTuple):
    """Maps of queries and of documents, None for the identity, and what they are in words.

    ``axes`` has coordinates and their scales, where both maps are these: forms share coordinates.
    """

    name: str
    queries: Matrix | None
    documents: Matrix | None
    axes: Axes | None = None


Maker = Callable[[], Form]
IDENTITY = Form("the vectors as they are", None, None)


class Moments(NamedTuple):
    """Of matches: E δδᵀ, E qqᵀ and E dqᵀ, in float64."""

    within: Matrix
    queries: Matrix
    across: Matrix

    @classmethod
    def of(cls, Q: Table, D: Table, pairs: np.ndarray, weights: np.ndarray) -> Moments:
        """Means over pairs of rows of Q and D."""

        def products(rows: slice) -> tuple[Any, ...]:
            q, d = (precise(X.take(pairs[rows, i])) for i, X in enumerate((Q, D)))
            delta, w = q - d, like(weights[rows], q)[:, None]
            return tuple((w * a).T @ b for a, b in ((delta, delta), (q, q), (d, q)))

        sums = _summed(products, len(pairs), Q.X)
        return cls(*(to_numpy(part) / np.sum(weights) for part in sums))

    @property
    def documents(self) -> Matrix:
        """E ddᵀ, which follows from the others."""
        return self.within - self.queries + self.across + self.across.T


def differences(Q: Table, D: Table, pairs: np.ndarray) -> Matrix:
    """E δδᵀ of any pairs."""

    def delta(rows: slice) -> Any:
        return precise(Q.take(pairs[rows, 0])) - precise(D.take(pairs[rows, 1]))

    return _mean_square(delta, len(pairs), Q.X)


def covariance(*tables: Any) -> Matrix:
    """Covariance about the mean of all rows, each table counting the same."""
    mean = sum(precise(namespace(X).mean(X, axis=0)) for X in tables) / len(tables)
    moved = [lambda rows, X=X: precise(X[rows, :]) - mean for X in tables]
    squares = [_mean_square(of, X.shape[0], X) for of, X in zip(moved, tables, strict=True)]
    return np.mean(squares, axis=0)


def _mean_square(of: Callable[[slice], Any], n_rows: int, X: Any) -> Matrix:
    """E zzᵀ of rows that a function of a slice gives."""

    def products(rows: slice) -> tuple[Any, ...]:
        Z = of(rows)
        return (Z.T @ Z,)

    return to_numpy(_summed(products, n_rows, X)[0]) / n_rows


def require_digits(X: Any, what: str) -> None:
    """Refuse vectors for whose squared distances float32 has no digits, or no numbers."""
    centre = "Subtract the mean of all documents from both, then fit again."
    refuse_lost(X, f"{what} that lie", centre, "divide both by one number, then fit again.", 2)


def _summed(products: Callable[[slice], Any], n_rows: int, X: Any) -> Any:
    """Sums over blocks of rows, which threads share on the host."""
    flops = 6.0 * n_rows * X.shape[1] ** 2 if backend_of(X).host else 0.0
    return sum_rows(products, n_rows, 8.0 * 6 * X.shape[1], most=_BLOCK, flops=flops)


def whitener(T: Matrix) -> Matrix:
    """The map P under which the covariance T is the identity, but for its smallest parts."""
    values, V = eigh(T)
    least = _FLOOR * max(float(np.mean(values)), np.finfo(np.float64).tiny)
    return (V / np.sqrt(np.maximum(values, 0.0) + least)).T


def forms(
    side: str, moments: Moments, T: Matrix, P: Matrix | None, mine: Callable[[Form], Matrix]
) -> Iterator[Maker]:
    """All closed forms of a side, but for the identity, each made where it is asked for.

    P is the whitener of T. ``mine`` gives N, the E δδᵀ of the nearest wrong documents of a form.
    """
    if side == "query":
        for form in _of_queries(moments, T):
            yield form._replace  # a copy, where nothing is told
        return
    for target, whiten, (plain, once, twice, halved) in (
        ("the covariance of all rows", P, _OF_ALL),
        ("the identity", None, _OF_IDENTITY),
    ):
        of = _Whitening(target, whiten, moments.within, mine)
        for share in plain:
            yield partial(of.plain, share)
            if share in halved:
                yield partial(of.halved, share)
        for share in once:
            yield partial(of.sharpened, share, 1)
            if share in twice:
                yield partial(of.sharpened, share, 2)
    if side == "both":
        yield from (partial(_canonical, moments, T, share) for share in _CANONICAL)


class _Whitening:
    """Whitening, plain and sharpened, in coordinates P x in which the target is the identity."""

    def __init__(
        self, target: str, P: Matrix | None, within: Matrix, mine: Callable[[Form], Matrix]
    ):
        self.target, self.P, self.within, self.mine = target, P, within, mine

    @cached_property
    def axes(self) -> Axes:
        """Variances of matches in the coordinates that part them, with mean one, and these."""
        P, W = self.P, self.within
        values, V = eigh(W if P is None else P @ W @ P.T)
        values = np.maximum(values, 0.0) / max(float(np.mean(values)), 1e-300)
        return values, V.T if P is None else V.T @ P

    @cached_property
    def wrong(self) -> Matrix:
        B = self.axes[1]
        N = B @ self.mine(self.plain(_HALF)) @ B.T
        return N * (len(N) / max(float(np.trace(N)), 1e-300))

    def spread(self, share: float) -> np.ndarray:
        return (1 - share) * self.axes[0] + share

    def plain(self, share: float) -> Form:
        return self._scaled(f"whitening of matches, {share:.0%} {self.target}", share, -0.5)

    def halved(self, share: float) -> Form:
        name = f"half of the way to the whitening of matches, {share:.0%} {self.target}"
        if self.P is None:  # orthogonal coordinates
            return self._scaled(name, share, -0.25)
        L = _root(self.plain(share).queries)
        return Form(name, L, L)

    def sharpened(self, share: float, times: int) -> Form:
        w, eye = self.spread(share)[:, None], np.eye(len(self.wrong))
        M = ((1 - share) * self.wrong + share * eye) / w / w.T
        L = np.linalg.cholesky(M if times == 1 else (M * w.T) @ M).T @ self.axes[1]
        name = f"whitening of matches, {share:.0%} {self.target}, {'' if times == 1 else 'twice '}"
        return Form(f"{name}sharpened by the nearest wrong documents", L, L)

    def _scaled(self, name: str, share: float, power: float) -> Form:
        B, scales = self.axes[1], self.spread(share) ** power
        return Form(name, scales[:, None] * B, scales[:, None] * B, (B, scales))


def _root(L: Any) -> Matrix:
    """The map of the matrix (LᵀL)^½, which lies half-way between the identity and LᵀL."""
    values, V = eigh(L.T @ L)
    return (V * np.maximum(values, 0.0) ** 0.25).T


def _of_queries(moments: Moments, T: Matrix) -> Iterator[Form]:
    """Maps of queries alone, towards their documents."""
    _, C, across = moments[:3]
    unit, eye = float(np.trace(T)) / len(T), np.eye(len(T))
    for ridge in _RIDGES:
        A = eye + np.linalg.solve(C + ridge * unit * eye, (across - C).T).T
        yield Form(f"ridge regression to the documents, ridge {ridge:g}", A, None)
        if ridge in _BLUNTED:
            left = A @ C @ A.T - A @ across.T - across @ A.T + moments.documents
            left = (1 - _SHARE) * left / np.trace(left) + _SHARE * T / np.trace(T)
            values, V = eigh(left * len(T))
            blunt = (V * np.maximum(values, _FLOOR) ** -_BLUNT) @ V.T
            yield Form(f"ridge regression, ridge {ridge:g}, and a blunt whitening", blunt @ A, None)
    U, _, Vt = np.linalg.svd(across + _PULL * abs(float(np.trace(across))) / len(T) * eye)
    yield Form("rotation to the documents (Procrustes)", U @ Vt, None)


def _canonical(moments: Moments, T: Matrix, share: float) -> Form:
    """Posterior means of what queries and documents share, in units of what they do not."""

    def root(C: Matrix) -> Matrix:
        values, V = eigh((1 - share) * C + share * T)
        return (V / np.sqrt(np.maximum(values, _FLOOR * np.mean(values)))) @ V.T

    A, B = root(moments.queries), root(moments.documents)
    U, s, Vt = np.linalg.svd(A @ ((1 - share) * moments.across.T + share * T) @ B)
    s = np.clip(s, 0.0, 0.999)
    weights = np.sqrt(s / (1 - s**2))[:, None]
    name = f"canonical correlations, {share:.0%} the covariance of all rows"
    return Form(name, weights * (U.T @ A), weights * (Vt @ B))
