"""What a fit is told about its rows, of whatever kind: one value, made at the door."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelmetric.compute import Weighed, Weights
from kernelmetric.graphs import Pairs, are_tuples, as_pairs, points_of_tuples
from kernelmetric.kernelized._arguments import weighed_fit
from kernelmetric.kernelized._tuples import takes_pair_tuples, tuples_of_pairs

_TUPLES = ("triplets", "quadruplets")
_PAIRS = ("pairs", "similar", "dissimilar")
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
    ) -> tuple[Any, Supervision]:
        """The rows of X that have weight, and what is said about them."""
        given = {k: v for k, v in given.items() if v is not None or k not in _OPTIONAL}
        tuples = given.pop("tuples", None)
        compared = is_compared(X, tuples, given)
        weights = None
        if are_tuples(X):
            X, tuples = points_of_tuples(X)
        if tuples is None:
            X, y, weights, given = weighed_fit(learner, kernel, X, y, given)
        return X, cls(y, weights, tuples, None, given, compared)

    def for_learner(self, learner: Any, n_samples: int) -> Supervision:
        """The same in the words that a learner understands."""
        y, tuples, given = self.y, self.tuples, dict(self.given)
        if tuples is not None and hasattr(learner, "from_rows"):
            given |= learner.from_rows(tuples, y, n_samples)
            tuples = y = None
        pairs, similar, dissimilar = (given.get(name) for name in _PAIRS)
        if tuples is None and takes_pair_tuples(learner):
            tuples, y = tuples_of_pairs(as_pairs(pairs, similar, dissimilar, y, n_samples))
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
        weighs = getattr(space, "takes_weights", False)
        return labels if self.weights is None or not weighs else Weighed(labels, self.weights)


def is_compared(X: Any, tuples: Any, given: dict[str, Any]) -> bool:
    """Whether a fit is given comparisons of rows instead of labels."""
    return (
        tuples is not None or are_tuples(X) or any(given.get(name) is not None for name in _TUPLES)
    )
