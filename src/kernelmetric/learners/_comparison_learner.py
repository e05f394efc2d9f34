"""What learners from comparisons of distances share: triplets and quadruplets."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute import Weights, check_labels
from kernelmetric.graphs import (
    IndexTuples,
    Quadruplets,
    Triplets,
    check_length,
    ordered_tuples,
    warn_unlabelled,
)
from kernelmetric.learners._pair_learner import TupleLearner, as_rows
from kernelmetric.learners._progress import with_callbacks

_KINDS = {"triplets": Triplets, "quadruplets": Quadruplets}


class TakesComparisons:
    """What learners from triplets and quadruplets share, also those that learn from more."""

    def from_rows(self, rows: np.ndarray, y: Any, n_samples: int) -> dict[str, Any]:
        """Tuples of row numbers, as an argument of ``fit``.

        Parameters
        ----------
        rows : array-like of shape (n_tuples, 3) or (n_tuples, 4)
            Row numbers.
        y : None
            The order of a tuple says all.
        n_samples : int
            Number of points.

        Returns
        -------
        dict
            The argument ``triplets`` or ``quadruplets``.
        """
        if y is not None:
            raise ValueError(
                "Got y beside triplets or quadruplets of points, but expected none: the first two "
                "points of a tuple are the near ones."
            )
        found = ordered_tuples(rows, n_samples)
        return {f"{found.kind}s": found}

    def _given_tuples(
        self, n_samples: int, given: dict[str, Any], others: dict[str, Any]
    ) -> IndexTuples | None:
        """The comparisons that were given, None where there are none; beside nothing else."""
        named = {name: tuples for name, tuples in given.items() if tuples is not None}
        if not named:
            return None
        beside = [name for name, part in others.items() if part is not None]
        if len(named) > 1 or beside:
            raise ValueError(f"Got {' and '.join([*named, *beside])}, but expected one of them.")
        ((name, tuples),) = named.items()
        kind = _KINDS[name]
        found: IndexTuples = tuples if isinstance(tuples, kind) else kind(tuples, n_samples)
        check_length(n_samples, found.n_samples)
        return self._some(found)

    def _some(self, found: IndexTuples) -> IndexTuples:
        if not len(found):
            raise ValueError(
                f"Got no comparisons of distances, but {type(self).__name__} expected at least "
                "one: a class with two points and a point of another, where they come from labels."
            )
        return found


class ComparisonLearner(TakesComparisons, TupleLearner):
    """A learner that takes labels, or pairs of which one shall be nearer than the other."""

    learns_from = "comparisons"
    max_tuples: int

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
            Points; or triplets or quadruplets of points, of shape (n_tuples, 3, n_features) or
            (n_tuples, 4, n_features), as metric-learn has them.
        y : array-like of shape (n_samples,), default=None
            Class labels, from which comparisons are made: points of one class are nearer than
            points of two.
        triplets : Triplets or array-like of shape (n_triplets, 3), default=None
            Row numbers (a, b, c), instead of labels: a is nearer to b than to c.
        quadruplets : Quadruplets or array-like of shape (n_quadruplets, 4), default=None
            Row numbers (a, b, c, d), instead of labels: a is nearer to b than c is to d.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts: its part of the objective is in proportion to it. Zero leaves the
            row out. A comparison counts the product of its points.

        Returns
        -------
        object
            The fitted metric.
        """
        X, y, given = as_rows(self, X, y, {"triplets": triplets, "quadruplets": quadruplets})
        X, Z, basis = self._learned_on(X, y, given)
        self.tuples_ = self._check_tuples(Z, y, given)
        self._learn(X, y, Z, basis, tuple_counts(self.tuples_, sample_weight))
        return self

    def _learn(
        self, X: Any, y: Any, Z: np.ndarray, basis: np.ndarray | None, counts: np.ndarray
    ) -> None:
        raise NotImplementedError

    def _check_tuples(self, Z: np.ndarray, y: Any, given: dict[str, Any]) -> IndexTuples:
        found = self._given_tuples(len(Z), given, {"y": y})
        if found is not None:
            return found
        if y is None:
            raise ValueError(
                "Got neither y nor tuples, but expected class labels, triplets or quadruplets: the "
                "target y is None."
            )
        codes = check_labels(warn_unlabelled(y), Z)
        return self._some(self._tuples_from_labels(Z, codes))

    def _tuples_from_labels(self, Z: np.ndarray, codes: np.ndarray) -> IndexTuples:
        raise NotImplementedError


def tuple_counts(tuples: IndexTuples, weights: Weights | None) -> np.ndarray:
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
