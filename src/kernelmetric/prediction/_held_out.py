"""What every choice of neighbours, width and ridge says of the points held out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kernelmetric.prediction._cross_fit import Fold
from kernelmetric.prediction._scores import OWN, Combination, left_out_scores, linear_scores

Vote = tuple[int, float]  # how many neighbours, and their width as a multiple of the spread


class Choice(NamedTuple):
    """What was chosen on some points held out."""

    votes: list[Vote]  # of neighbours in the metric, and of those by the features where they count
    ridge: float
    combined: Combination


class Votes(NamedTuple):
    """What neighbours in one space say of points held out; and how good it is, point by point."""

    said: Callable[[Vote], np.ndarray]
    gains: dict[Vote, np.ndarray]

    def best(self, rows: Any, mass: np.ndarray | None) -> Vote:
        """How many neighbours of which width predict some of the points best."""
        return max(self.gains, key=lambda each: np.average(self.gains[each][rows], weights=mass))


@dataclass
class HeldOut:
    """Targets of points held out, what votes and lines say of them, and what each point counts.

    Classes define ``stacked(votes, lines, features)``, the scores that ``combine`` finds weights
    for.
    """

    combine: ClassVar[Callable[..., Combination]]
    stacked: ClassVar[Callable[..., np.ndarray]]
    gives_classes: ClassVar[bool]
    known: ClassVar[tuple[float, ...]]  # weights of votes and lines before any point spoke
    ridges: ClassVar[tuple[float, ...]]  # beside the predictions of the space, where it has some
    truth: np.ndarray
    votes: list[Votes]
    lines: dict[float, np.ndarray]
    mass: np.ndarray | None
    features: np.ndarray | None  # scores of the features, where they count

    def choose(self, rows: Any = slice(None)) -> Choice:
        """What predicts some of the points best."""
        truth, mass = self.truth[rows], self.mass_of(rows)
        if not len(truth):
            ridge = min(self.lines)
            combined = Combination(self.usual(), np.zeros(self.lines[ridge].shape[1]), np.nan)
            return Choice([(min(each.gains)[0], 0.25) for each in self.votes], ridge, combined)
        best = [each.best(rows, mass) for each in self.votes]
        found = {}
        for ridge in self.lines:
            scores = self.scores(best, ridge, rows)
            found[ridge] = self.combine(scores, truth, self.usual(), mass)
        ridge = min(found, key=lambda each: found[each].loss)
        return Choice(best, ridge, found[ridge])

    def scores(self, best: list[Vote], ridge: float, rows: Any) -> np.ndarray:
        """Votes beside linear scores of some of the points, and scores of their features."""
        features = None if self.features is None else self.features[rows]
        votes = [each.said(vote)[rows] for each, vote in zip(self.votes, best, strict=True)]
        return self.stacked(votes, self.lines[ridge][rows], features)

    def usual(self) -> np.ndarray:
        """Weights before any point spoke: features have none."""
        return np.append(self.known, np.zeros(0 if self.features is None else 3))

    def mass_of(self, rows: Any) -> np.ndarray | None:
        """What some of the points count; None where all count alike."""
        return None if self.mass is None else self.mass[rows]


def held_out_scores(fold: Fold, Y: np.ndarray, ridge: float, mass: np.ndarray | None) -> np.ndarray:
    """Linear scores of the points held out, by the others."""
    if ridge == OWN and fold.own is not None:
        return fold.own(fold.E_new)
    own = None if mass is None else mass[fold.train]
    if fold.left_out:
        return left_out_scores(fold.E, Y, ridge, own, fold.test)
    return linear_scores(fold.E, Y[fold.train], ridge, own)(fold.E_new)
