"""What learners from pairs share: where pairs come from, and coordinates to learn in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from kernelmetric.compute import Weights, check_labels, to_numpy, widened
from kernelmetric.graphs import (
    Pairs,
    are_tuples,
    as_pairs,
    points_of_tuples,
    rows_by_place,
    signed_pairs,
    warn_unlabelled,
)
from kernelmetric.learners._checks import as_matrix
from kernelmetric.learners._descent import IterativeLearner
from kernelmetric.learners._progress import with_callbacks
from kernelmetric.spaces import orthonormal

SAMPLED_BYTES = 2**21  # pairs sampled for their distances, and a block of their differences


class PairCounts(NamedTuple):
    """Weights of pairs: the products of the weights of both points."""

    weights: Weights

    def of(self, pairs: Pairs) -> np.ndarray:
        """What each of some pairs counts."""
        i, j = pairs.rows.T
        return self.weights.counts[i] * self.weights.counts[j]

    def totals(self, pairs: Pairs) -> tuple[float, float]:
        """What similar pairs count together, and dissimilar ones."""
        counts, split = self.of(pairs), len(pairs.similar)
        return float(np.sum(counts[:split])), float(np.sum(counts[split:]))


class TupleLearner(IterativeLearner):
    """A learner that takes labels, or what is known of pairs, triplets or quadruplets of points.

    A class that derives from it defines ``fit``, ``_tuples_of_points`` and ``_learn``.
    """

    prior: Any

    def from_rows(self, rows: np.ndarray, y: Any, n_samples: int) -> dict[str, Any]:
        """Tuples of row numbers, as arguments of ``fit``.

        Parameters
        ----------
        rows : array-like of shape (n_tuples, t)
            Row numbers.
        y : array-like of shape (n_tuples,) or None
            Signs of pairs.
        n_samples : int
            Number of points.

        Returns
        -------
        dict
            By the name of an argument, the tuples.
        """
        raise NotImplementedError

    def _learned_on(self, X: Any, y: Any, given: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Validated points, the coordinates to learn on, and their basis in the features.

        ``given`` are the tuples as ``fit`` got them.
        """
        X = self._check_points(X)
        return X, *span(X)

    def _last_matrix(self, Z: np.ndarray, basis: np.ndarray | None) -> np.ndarray | None:
        """The matrix of the last fit in the coordinates Z, for a warm start; None without one."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "components_"):
            return None
        L = to_numpy(self.components_).astype(np.float64)
        d = Z.shape[1] if basis is None else basis.shape[1]
        if L.shape[1] != d:
            raise ValueError(
                f"Got warm_start=True with a last map of shape {L.shape}, but expected {d} "
                "columns: set warm_start=False to start anew, or keep the features as they were."
            )
        L = L if basis is None else L @ basis.T
        signs = vars(self).get("signature_")
        return L.T @ (L if signs is None else to_numpy(signs)[:, None] * L)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # tuples will do
        return tags

    def _check_prior(self, Z: np.ndarray, basis: np.ndarray | None) -> np.ndarray | None:
        """The matrix of the prior metric in the coordinates Z; None is the identity."""
        if self.prior is None:
            return None
        P = as_matrix(self.prior, "prior")
        d = Z.shape[1] if basis is None else basis.shape[1]
        good = P.shape == (d, d) and np.all(np.isfinite(P)) and np.allclose(P, P.T)
        if not good or linalg.eigvalsh(P)[0] < -1e-8 * np.abs(P).max():
            raise ValueError(
                f"Got a prior of shape {P.shape}, but expected a symmetric positive semi-definite "
                f"matrix of shape {(d, d)}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            largest = np.sum(np.abs(P)) * len(Z) * np.max(np.abs(Z)) ** 2 * 4
        if not largest < np.finfo(np.float64).max ** 0.5:  # squares of squared distances are summed
            raise ValueError(
                f"Got a prior with entries up to {np.abs(P).max():.3g}, but expected squared "
                "distances well inside the range of float64: try a multiple of it."
            )
        return P if basis is None else basis @ P @ basis.T


def as_rows(learner: Any, X: Any, y: Any, given: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Points, labels and tuples of row numbers, where X may be an array of tuples of points.

    ``given`` are the tuples as the learner's ``fit`` got them, by the names of its arguments.
    """
    if not are_tuples(X):
        return X, y, given
    if any(part is not None for part in given.values()):
        names = ", ".join(name for name, part in given.items() if part is not None)
        raise ValueError(
            f"Got an array of tuples of points beside {names}, but expected one of the two."
        )
    X, rows = points_of_tuples(X)
    return X, None, given | learner.from_rows(rows, y, len(X))


class PairLearner(TupleLearner):
    """A learner that takes labels, or pairs that are known to be alike or to differ."""

    learns_from = "pairs"
    max_pairs: int
    random_state: Any
    _needs_dissimilar = True

    def from_rows(self, rows: np.ndarray, y: Any, n_samples: int) -> dict[str, Any]:
        """Pairs of row numbers, as an argument of ``fit``.

        Parameters
        ----------
        rows : array-like of shape (n_pairs, 2)
            Row numbers.
        y : array-like of shape (n_pairs,)
            1 for similar, -1 for dissimilar pairs.
        n_samples : int
            Number of points.

        Returns
        -------
        dict
            The argument ``pairs``.
        """
        return {"pairs": signed_pairs(rows, y, n_samples)}

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
            Points; or pairs of points, of shape (n_pairs, 2, n_features), as metric-learn has them.
        y : array-like of shape (n_samples,), default=None
            Class labels, from which pairs are made: inside a class similar, others dissimilar. Of
            pairs of points, 1 for every similar and -1 for every dissimilar one.
        similar, dissimilar : array-like of shape (n_pairs, 2), default=None
            Row numbers of pairs, instead of labels.
        pairs : Pairs, default=None
            Both kinds of pairs, instead of labels.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts: its part of the objective is in proportion to it. Zero leaves the
            row out. A pair counts the product of its two.

        Returns
        -------
        object
            The fitted metric.
        """
        given = {"pairs": pairs, "similar": similar, "dissimilar": dissimilar}
        X, y, given = as_rows(self, X, y, given)
        return self._fit_pairs(X, y, tuple(given.values()), sample_weight)

    def _fit_pairs(
        self, X: Any, y: Any, given: tuple[Any, Any, Any], weights: Weights | None
    ) -> PairLearner:
        """Learn from labels, or from pairs that are given."""
        X, Z, basis = self._learned_on(X, y, given)
        self.pairs_, codes, counts = self._check_pairs(Z, y, given, weights)
        self._learn(X, y, Z, basis, counts)
        if codes is not None:
            self._learned_labels(X, codes, weights)
        return self

    def _learn(
        self, X: Any, y: Any, Z: np.ndarray, basis: np.ndarray | None, counts: PairCounts | None
    ) -> None:
        raise NotImplementedError

    def _learned_labels(self, X: Any, codes: np.ndarray, weights: Weights | None) -> None:
        """What else there is to say where there are labels."""

    def _check_pairs(
        self, Z: np.ndarray, y: Any, given: tuple[Any, Any, Any], weights: Weights | None
    ) -> tuple[Pairs, np.ndarray | None, PairCounts | None]:
        """The pairs to learn from, class codes where there are labels, and what pairs count."""
        codes = None if y is None else check_labels(warn_unlabelled(y), Z)
        counts = None if weights is None else PairCounts(weights)
        if codes is None or any(part is not None for part in given):
            found = as_pairs(*given, y, Z.shape[0])
        else:
            found = self._pairs_from_labels(Z, codes)
        if self._needs_dissimilar and not len(found.dissimilar):
            raise ValueError(
                f"Got no dissimilar pairs, but {type(self).__name__} expected at least one: "
                "without them the best metric is zero. Where they come from labels, try a larger "
                "n_neighbors or radius=None."
            )
        return found, codes, counts

    def _pairs_from_labels(self, Z: np.ndarray, codes: np.ndarray) -> Pairs:
        return all_or_random_pairs(Z, codes, self.max_pairs, self.random_state)


def all_or_random_pairs(Z: np.ndarray, codes: np.ndarray, most: int, random_state: Any) -> Pairs:
    """All pairs of labelled points while they are at most so many, else some of them.

    Which are drawn goes by the points, so that the order of rows does not matter.
    """
    n = len(codes)
    if n * (n - 1) // 2 <= most:
        return Pairs.from_labels(codes)
    rows, each = rows_by_place(Z), max(1, most // (2 * n))
    drawn = Pairs.from_labels(codes[rows], per_point=each, random_state=random_state)
    return Pairs(rows[drawn.similar], rows[drawn.dissimilar], n)


def span(X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Centred float64 coordinates Z of the points in as few dimensions as they span.

    ``basis`` has orthonormal rows with ``Z = (X - mean) basisᵀ``; None where Z is X, centred.
    """
    wide = X.shape[1] >= X.shape[0]
    found = orthonormal(widened(to_numpy(X)), span=wide, unit=False)
    return found.Z, found.rotation


def differences(Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Differences of the two points of every pair."""
    return Z.take(rows[:, 0], axis=0) - Z.take(rows[:, 1], axis=0)  # faster than by brackets
