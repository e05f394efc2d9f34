"""What learners from pairs, triplets and quadruplets share: where tuples come from, and weights."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from kernelmetric import graphs
from kernelmetric.compute import like, sum_rows, to_numpy
from kernelmetric.graphs._given import as_tuples
from kernelmetric.inputs import Weights, check_labels
from kernelmetric.inputs._parameters import COUNT
from kernelmetric.learners._checks import as_matrix
from kernelmetric.learners._descent import IterativeLearner
from kernelmetric.learners._progress import Iterations, with_callbacks
from kernelmetric.spaces import orthonormal

SAMPLED_BYTES = 2**21  # pairs sampled for their distances, and a block of their differences
_DRAWN_OF_ROW: int | None = 100  # pairs and comparisons, about so many or fewer


class PairCounts(NamedTuple):
    """Weights of pairs: the products of the weights of both points, all one without weights."""

    weights: Weights | None
    rows: np.ndarray  # what each point counts
    from_labels: bool = False  # whether the pairs are

    def of(self, pairs: graphs.Pairs) -> np.ndarray:
        """What each of some pairs counts."""
        i, j = pairs.rows.T
        return self.rows[i] * self.rows[j]

    def totals(self, pairs: graphs.Pairs) -> tuple[float, float]:
        """What similar pairs count together, and dissimilar ones."""
        counts, split = self.of(pairs), len(pairs.similar)
        return float(np.sum(counts[:split])), float(np.sum(counts[split:]))


class Spanned(NamedTuple):
    """Points, their labels, and coordinates ``Z = (X - mean) basisᵀ`` to learn a matrix in."""

    X: Any
    y: Any
    Z: np.ndarray
    basis: np.ndarray | None = None  # orthonormal rows; without, Z has a column for each feature

    @property
    def n_features(self) -> int:
        """Columns of a map on the points."""
        return self.Z.shape[1] if self.basis is None else self.basis.shape[1]

    def enter(self, L: np.ndarray) -> np.ndarray:
        """A map on the points as one on Z."""
        return L if self.basis is None else L @ self.basis.T

    def leave(self, L: np.ndarray) -> np.ndarray:
        """A map on Z as one on the points."""
        return L if self.basis is None else L @ self.basis

    def by_features(self) -> Spanned:
        """The same with a column of Z for each feature."""
        return self._replace(Z=self.leave(self.Z), basis=None)


class TakesTuples:
    """What learners share whose ``fit`` takes pairs or comparisons, as row numbers or points."""

    _takes_pairs = False
    _takes_comparisons = False

    def from_rows(self, rows: np.ndarray, y: Any, n_samples: int) -> dict[str, Any]:
        """Tuples of row numbers, as an argument of ``fit``.

        Parameters
        ----------
        rows : array-like of shape (n_tuples, 2, 3 or 4)
            Row numbers.
        y : array-like of shape (n_tuples,) or None
            Signs of pairs, 1 or -1; None for the others.
        n_samples : int
            Number of points.

        Returns
        -------
        dict
            The argument ``pairs``, ``triplets`` or ``quadruplets``.
        """
        of_pairs = np.ndim(rows) != 2 or np.shape(rows)[1] == 2
        if self._takes_pairs and (of_pairs or not self._takes_comparisons):
            return {"pairs": graphs.signed_pairs(rows, y, n_samples)}
        if y is not None:
            raise ValueError(
                "Got y beside triplets or quadruplets of points, but expected none: the first two "
                "points of a tuple are the near ones."
            )
        found = graphs.ordered_tuples(rows, n_samples)
        return {f"{found.kind}s": found}

    def _as_rows(self, X: Any, y: Any, given: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        """Points, labels and tuples of row numbers, where X may be an array of tuples of points."""
        if not graphs.are_tuples(X):
            return X, y, given
        named = [name for name, part in given.items() if part is not None]
        if named:
            raise ValueError(
                f"Got an array of tuples of points beside {', '.join(named)}, but expected one of "
                "the two."
            )
        X, rows = graphs.points_of_tuples(X)
        return X, None, given | self.from_rows(rows, y, len(X))

    def _given_tuples(
        self, n_samples: int, given: dict[str, Any], others: dict[str, Any]
    ) -> graphs.IndexTuples | None:
        """The comparisons that were given, None where there are none; beside nothing else."""
        named = {name: tuples for name, tuples in given.items() if tuples is not None}
        if not named:
            return None
        beside = [name for name, part in others.items() if part is not None]
        if len(named) > 1 or beside:
            raise ValueError(f"Got {' and '.join([*named, *beside])}, but expected one of them.")
        ((name, tuples),) = named.items()
        return self._some(as_tuples(name, tuples, n_samples))

    def _some(self, found: graphs.IndexTuples) -> graphs.IndexTuples:
        if not len(found):
            raise ValueError(
                f"Got no comparisons of distances, but {type(self).__name__} expected at least "
                "one: a class with two points and a point of another, where they come from labels."
            )
        return found


class TupleLearner(TakesTuples, IterativeLearner):
    """A learner from tuples whose matrix M is learned in the coordinates that the points span."""

    _advice = ""  # what to do besides raising max_iter
    _passes, _others = 20.0, _DRAWN_OF_ROW

    def _warn_of_gap(self) -> None:
        where = f"at a duality gap of {self.duality_gap_:.2g}, above"
        self._warn_unless_converged(self._advice, where)

    def _learned_on(self, X: Any, y: Any, given: Any) -> Spanned:
        """Validated points, and the coordinates to learn on."""
        X = self._check_points(X)
        return Spanned(X, y, *span(X))

    def _following(
        self, start: np.ndarray, leave: Callable[[np.ndarray], np.ndarray], points: Spanned
    ) -> AbstractContextManager[Iterations]:
        """The record of iterations whose states ``leave`` turns into maps on the points."""
        X, y, *_ = points
        return self._watched(start, lambda state: {"components_": like(leave(state), X)}, X, y)

    def _last_matrix(self, points: Spanned) -> np.ndarray | None:
        """The matrix of the last fit in the coordinates Z, for a warm start; None without one."""
        if not self.warm_start or not hasattr(self, "components_"):
            return None
        L = to_numpy(self.components_).astype(np.float64)
        if L.shape[1] != points.n_features:
            raise ValueError(
                f"Got warm_start=True with a last map of shape {L.shape}, but expected "
                f"{points.n_features} columns: set warm_start=False to start anew, or keep the "
                "features as they were."
            )
        L = points.enter(L)
        signs = vars(self).get("signature_")
        return L.T @ (L if signs is None else to_numpy(signs)[:, None] * L)

    def _check_prior(self, points: Spanned) -> np.ndarray | None:
        """The matrix of the prior metric in the coordinates Z; None is the identity."""
        if self.prior is None:
            return None
        P, d = as_matrix(self.prior, "prior"), points.n_features
        good = P.shape == (d, d) and np.all(np.isfinite(P)) and np.allclose(P, P.T)
        if not good or linalg.eigvalsh(P)[0] < -1e-8 * np.abs(P).max():
            raise ValueError(
                f"Got a prior of shape {P.shape}, but expected a symmetric positive semi-definite "
                f"matrix of shape {(d, d)}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            largest = np.sum(np.abs(P)) * len(points.Z) * np.max(np.abs(points.Z)) ** 2 * 4
        if not largest < np.finfo(np.float64).max ** 0.5:  # squares of squared distances are summed
            raise ValueError(
                f"Got a prior with entries up to {np.abs(P).max():.3g}, but expected squared "
                "distances well inside the range of float64: try a multiple of it."
            )
        return points.enter(points.enter(P).T)


class PairLearner(TupleLearner):
    """A learner from labels or pairs; a class that derives has ``_learn(points, counts)``."""

    learns_from = "pairs"
    _allowed: ClassVar = {"max_pairs": COUNT}
    _takes_pairs = True
    _needs_dissimilar = True

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        similar: Any = None,
        dissimilar: Any = None,
        pairs: Any = None,
        sample_weight: Any = None,
    ) -> PairLearner:
        """Learn the metric from labels or from pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; or pairs of them, (n_pairs, 2, n_features).
        y : array-like of shape (n_samples,), default=None
            Class labels, from which pairs are made. Of pairs of points, 1 for similar and -1 for
            dissimilar ones.
        similar, dissimilar : array-like of shape (n_pairs, 2), default=None
            Row numbers of pairs, instead of labels.
        pairs : Pairs, default=None
            Both kinds of pairs, instead of labels.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts, zero to leave it out. A pair counts the product of its two.

        Returns
        -------
        object
            The fitted metric.
        """
        given = {"pairs": pairs, "similar": similar, "dissimilar": dissimilar}
        X, y, given = self._as_rows(X, y, given)
        return self._fit_pairs(X, y, tuple(given.values()), sample_weight)

    def _fit_pairs(
        self, X: Any, y: Any, given: tuple[Any, Any, Any], weights: Weights | None
    ) -> PairLearner:
        """Learn from labels, or from pairs that are given."""
        points = self._learned_on(X, y, given)
        n = len(points.Z)
        codes = None if y is None else check_labels(graphs.warn_unlabelled(y), points.Z)
        from_labels = codes is not None and all(part is None for part in given)
        if codes is not None and from_labels:
            self.pairs_ = self._pairs_from_labels(points.Z, codes)
        else:
            self.pairs_ = graphs.as_pairs(*given, y, n)
        if self._needs_dissimilar and not len(self.pairs_.dissimilar):
            raise ValueError(
                f"Got no dissimilar pairs, but {type(self).__name__} expected at least one: "
                "without them the best metric is zero. Where they come from labels, try a larger "
                "n_neighbors or radius=None."
            )
        rows = np.ones(n) if weights is None else weights.counts
        self._learn(points, PairCounts(weights, rows, from_labels))
        if codes is not None and hasattr(self, "_align"):
            self._align(points.X, codes, weights)
        return self

    def _pairs_from_labels(self, Z: np.ndarray, codes: np.ndarray) -> graphs.Pairs:
        return all_or_random_pairs(Z, codes, self.max_pairs, self.random_state)


class ComparisonLearner(TupleLearner):
    """A learner from labels or comparisons; it has ``_learn`` and ``_triplets``."""

    learns_from = "comparisons"
    _allowed: ClassVar = {"max_tuples": COUNT}
    _takes_comparisons = True

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        triplets: Any = None,
        quadruplets: Any = None,
        sample_weight: Any = None,
    ) -> ComparisonLearner:
        """Learn the metric from labels, triplets or quadruplets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; or triplets or quadruplets of them, (n_tuples, 3 or 4, n_features).
        y : array-like of shape (n_samples,), default=None
            Class labels: points of one class are nearer than points of two.
        triplets : Triplets or array-like of shape (n_triplets, 3), default=None
            Row numbers (a, b, c), instead of labels: a is nearer to b than to c.
        quadruplets : Quadruplets or array-like of shape (n_quadruplets, 4), default=None
            Row numbers (a, b, c, d), instead of labels: a is nearer to b than c is to d.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts, zero to leave it out; a comparison counts the product.

        Returns
        -------
        object
            The fitted metric.
        """
        given = {"triplets": triplets, "quadruplets": quadruplets}
        X, y, given = self._as_rows(X, y, given)
        points = self._learned_on(X, y, given)
        tuples = self._given_tuples(len(points.Z), given, {"y": y})
        if tuples is None and y is None:
            raise ValueError(
                "Got neither y nor tuples, but expected class labels, triplets or quadruplets: the "
                "target y is None."
            )
        if tuples is None:
            codes = check_labels(graphs.warn_unlabelled(y), points.Z)
            # So that the order of rows does not decide which are drawn.
            rows = graphs.rows_by_place(points.Z)
            rng = check_random_state(self.random_state)
            found = self._triplets(points.Z[rows], codes[rows], rng)
            if len(found) > self.max_tuples:
                found = found.take(np.sort(rng.choice(len(found), self.max_tuples, replace=False)))
            tuples = self._some(graphs.Triplets(rows[found.rows], len(codes)))
        self.tuples_ = tuples
        self._learn(points, tuple_counts(tuples, sample_weight))
        return self


def tuple_counts(tuples: graphs.IndexTuples, weights: Weights | None) -> np.ndarray:
    """Weights of comparisons: the products of those of their points, with a mean of one."""
    if weights is None:
        return np.ones(len(tuples))
    rows = np.sort(tuples.rows, axis=1)
    counts = (weights.counts / np.max(weights.counts))[rows]
    counts[:, 1:][rows[:, 1:] == rows[:, :-1]] = 1.0  # a point in both pairs counts once
    each = np.prod(counts, axis=1)
    if not np.sum(each) > 0:
        raise ValueError(
            "Got sample_weight whose products over the points of each comparison are too small for "
            "numbers, but expected weights that differ less."
        )
    return each / np.mean(each)


def refuse_coinciding(square: float, Z: np.ndarray, what: str) -> None:
    """Refuse tuples whose mean squared distance is rounding beside the points."""
    if not square > 1e-14 * max(float(np.mean(Z * Z)), 1e-300):
        raise ValueError(
            f"Got {what} of points that coincide, but expected at least one pair of different "
            "points: no distance can be learned from them."
        )


def scatter(Z: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``Σ w δδᵀ`` of the differences of pairs."""

    def product(block: slice) -> np.ndarray:
        delta = differences(Z, rows[block])
        return delta.T @ (weights[block, None] * delta)

    return sum_rows(product, len(rows), 3 * 8 * Z.shape[1], most=16384)


def all_or_random_pairs(
    Z: np.ndarray, codes: np.ndarray, most: int, random_state: Any
) -> graphs.Pairs:
    """All pairs of labelled points while they are at most so many, else some of them."""
    n = len(codes)
    if n * (n - 1) // 2 <= most:
        return graphs.Pairs.from_labels(codes)
    rows, each = graphs.rows_by_place(Z), max(1, most // (2 * n))  # in no order of rows
    drawn = graphs.Pairs.from_labels(codes[rows], per_point=each, random_state=random_state)
    return graphs.Pairs(rows[drawn.similar], rows[drawn.dissimilar], n)


def span(X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Centred float64 coordinates of the points in as few dimensions as they span, and a basis."""
    wide = X.shape[1] >= X.shape[0]
    found = orthonormal(np.asarray(to_numpy(X), dtype=np.float64), span=wide, unit=False)
    return found.Z, found.rotation


def differences(Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Differences of the two points of every pair."""
    return Z.take(rows[:, 0], axis=0) - Z.take(rows[:, 1], axis=0)  # faster than by brackets
