"""What a fit is told about its rows, of whatever kind: one value, made at the door.

metric-learn and its kin fit on tuples of points, arrays (n_tuples, t, n_features). A kernel wants
every point once, so tuples are row numbers here, and after the space tuples of coordinates.
"""

import inspect
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from kernelmetric.compute import like, take_rows, to_numpy
from kernelmetric.graphs import Pairs, are_tuples, as_pairs, check_rows, points_of_tuples
from kernelmetric.inputs import WeightedLabels, Weights, rows_of
from kernelmetric.kernelized._arguments import weighted_rows
from kernelmetric.kernelized._copies import Copies, copies_among
from kernelmetric.kernelized._folded import coordinates, fit_coordinates
from kernelmetric.selection import LeaveOneOutRidge, RidgeKPCA

_TUPLES = ("triplets", "quadruplets")
_PAIRS = ("pairs", "similar", "dissimilar")
_WEIGHT = "sample_weight"
_OPTIONAL = ("similar", "dissimilar", "tuples")  # which fit itself names


class Supervision(NamedTuple):
    """Labels, numbers, pairs or tuples of rows, or nothing; with weights of the rows.

    ``y`` is of the tuples where there are any; ``pairs`` are those that a space may go by;
    ``given`` is what else the learner's fit gets. ``compared``: rows have comparisons instead of
    labels.
    """

    y: Any = None
    weights: Weights | None = None
    tuples: Any = None
    pairs: Pairs | None = None
    given: dict[str, Any] = {}  # noqa: RUF012 (never written into)
    compared: bool = False

    @classmethod
    def of(
        cls, learner: Any, kernel: Any, X: Any, y: Any, given: dict[str, Any]
    ) -> tuple[Any, Self]:
        """The rows of X that have weight, and what is said about them."""
        given = {k: v for k, v in given.items() if v is not None or k not in _OPTIONAL}
        tuples = given.pop("tuples", None)
        compared = is_compared(X, tuples, given)
        weights = None
        if are_tuples(X):
            X, tuples = points_of_tuples(X)
        if tuples is None:
            X, y, weights, given = weighted_rows(learner, kernel, X, y, given)
        return X, cls(y, weights, tuples, None, given, compared)

    def copies(self, metric: Any, X: Any, kernel: Any) -> Copies | None:
        """Copies among rows of X, where rows that are left out judge what a metric chooses."""
        learner = metric.learner
        judged = isinstance(kernel, LeaveOneOutRidge) or isinstance(metric.space, RidgeKPCA | str)
        told = self.y is not None and self.tuples is None and not set(self.given) - {_WEIGHT}
        needs = get_tags(learner).target_tags.required
        needs = needs or getattr(learner, "learns_from", "points") != "points"  # or tuples of rows
        if not (judged and told and needs) or kernel.pairwise:
            return None
        takes, given = has_fit_parameter(learner, _WEIGHT), _WEIGHT in self.given
        return copies_among(X, self.y, learner, takes=takes, given=given)

    def without_copies(self, X: Any, copies: Copies | None) -> tuple[Any, Self]:
        """The first of all copies, which has the weight of them all."""
        if copies is None:
            return X, self
        w = self.weights or Weights(*(np.ones(len(copies.groups)),) * 2)
        weights = Weights(*(copies.sums(part) for part in w))
        given = {**self.given, _WEIGHT: weights.counts}
        y = rows_of(self.y, copies.rows)
        return take_rows(X, copies.rows), self._replace(y=y, weights=weights, given=given)

    def for_learner(self, learner: Any, n_samples: int) -> Self:
        """The same in the words that a learner understands."""
        y, tuples, given = self.y, self.tuples, dict(self.given)
        if tuples is not None and hasattr(learner, "from_rows"):
            given |= learner.from_rows(tuples, y, n_samples)
            tuples = y = None
        pairs, similar, dissimilar = (given.get(name) for name in _PAIRS)
        # metric-learn's learners from pairs of points say so, ``fit(pairs, y)``
        first = next(iter(inspect.signature(learner.fit).parameters), None)
        if tuples is None and first == "pairs":
            known = as_pairs(pairs, similar, dissimilar, y, n_samples)
            tuples, y = known.rows, np.where(known.is_similar, 1, -1)
            given = {name: value for name, value in given.items() if name not in _PAIRS}
        told = None
        if tuples is None and hasattr(learner, "pairs_for_space"):
            told = learner.pairs_for_space(pairs, similar, dissimilar, y, n_samples)
        return self._replace(y=y, tuples=tuples, pairs=told, given=given)

    def for_space(self, space: Any) -> Any:
        """What a space and its kernel are told: pairs, or labels with the weights of their rows."""
        if getattr(space, "learns_from", "labels") == "pairs":
            return self.pairs
        labels = self.y if self.tuples is None else None  # of tuples, they are no point's labels
        if self.weights is None or not getattr(space, "takes_weights", False):
            return labels
        return WeightedLabels(labels, self.weights)


def fit_coordinates_of(space: Any, X: Any, supervision: Supervision, rows: Any) -> Any:
    """Coordinates of all rows in a space that some of them, None for all, are fitted for."""
    if rows is None:
        return fit_coordinates(space, X, supervision.for_space(space))
    weights = None if supervision.weights is None else supervision.weights.take(rows)
    told = supervision._replace(y=rows_of(supervision.y, rows), weights=weights)
    of_rows = fit_coordinates(space, take_rows(X, rows), told.for_space(space))
    Z = np.array(to_numpy(coordinates(space, X)))  # the others are placed as new points are
    Z[rows] = to_numpy(of_rows)
    if getattr(space, "boundary_rows", None) is not None:
        space.boundary_rows = rows[space.boundary_rows]
    return like(Z, of_rows)


def is_compared(X: Any, tuples: Any, given: dict[str, Any]) -> bool:
    """Whether a fit is given comparisons of rows instead of labels."""
    named = any(given.get(name) is not None for name in _TUPLES)
    return named or tuples is not None or are_tuples(X)


def coordinates_of_tuples(Z: Any, tuples: Any) -> Any:
    """Tuples (n_tuples, t, r) of coordinates, from coordinates and row numbers."""
    rows = check_rows(tuples, "tuple", Z.shape[0], (np.shape(tuples) or (0,))[-1])
    return take_rows(Z, rows.ravel()).reshape(*rows.shape, Z.shape[1])
