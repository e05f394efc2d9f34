"""Scores of the features themselves, beside those of a metric: a line, and a forest of trees.

Neighbours by the features vote, too; they are sought as those of the metric are. In a forest two
rows are near where many trees lead them to one leaf, so the rows of a leaf vote as neighbours do. A
tree knows nothing of the rows that it did not draw: trees that did not draw a row tell what the
forest says of it when it is left out. Ridge regression tells that in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_array, check_random_state, get_tags

from kernelmetric.compute import is_sparse, map_rows, to_numpy
from kernelmetric.compute._threads import until_limit_in_threads
from kernelmetric.compute.rates import rates
from kernelmetric.compute.watch import stage
from kernelmetric.inputs import MixedRows, Objects
from kernelmetric.inputs._keys import column_order
from kernelmetric.inputs._points import in_order
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernelized._costs import neighbors_seconds
from kernelmetric.kernelized._parts import is_auto
from kernelmetric.prediction._cross_fit import MOST_JUDGES, Fold
from kernelmetric.prediction._scores import left_out_scores, linear_scores
from kernelmetric.tables._frames import holds_objects, is_table

_N_TREES = 60
_FEW = 2_000  # rows: of more, a tree draws half
_MOST_DRAWN = 50_000
_MOST_TRIED = 300_000  # values on a level of a tree: of wide tables fewer rows are drawn
_LEAVES = 5_000  # of a tree, at most about: with more, models are large
_LEAST_LEAF = 3  # rows
_RIDGE = 0.1  # of a feature's variance
_WIDEST = 1_000  # features: with more, a line takes long, and a kernel says the same
FARTHEST_FEATURE = 1e6  # of a feature, in its deviations: beyond, all is far
_TREE_VALUES = 14.0  # kernel values take as long as a row, a level and a feature that is tried


class Rows(NamedTuple):
    """Features of rows, codes of their classes or numbers, targets of a line, and their weights."""

    Z: np.ndarray
    y: np.ndarray
    Y: np.ndarray
    mass: np.ndarray | None
    classes: bool
    random_state: Any

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows."""
        mass = None if self.mass is None else self.mass[rows]
        return self._replace(Z=self.Z[rows], y=self.y[rows], Y=self.Y[rows], mass=mass)


@dataclass(frozen=True, eq=False, repr=False)
class FeatureScores:
    """Ridge regression and trees on features, fitted.

    Nodes of all trees lie one after the other, each after its parent; ``nodes`` holds what lies to
    the left and right of them, zero under a leaf, and the feature that decides.
    """

    coef: np.ndarray  # (d, p), of features as they are
    intercept: np.ndarray
    location: np.ndarray  # (2, d) what trees subtract, and divide by
    roots: np.ndarray  # (t,) where each tree begins
    nodes: np.ndarray  # (m, 3)
    cuts: np.ndarray  # (m,) the largest value that goes to the left
    votes: np.ndarray  # (m, p) shares of the classes, or a mean

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """Linear scores of rows, and mean votes of the leaves that they reach, (n, p, 2)."""

        def work(rows: slice) -> np.ndarray:
            A = self.located(Z[rows])
            votes = self.votes[leaves_of(A, self.roots, self.nodes, self.cuts)].mean(axis=1)
            return np.stack([Z[rows] @ self.coef + self.intercept, votes], axis=2)

        return map_rows(work, len(Z), 8 * len(self.roots) * (8 + self.votes.shape[1]))

    def located(self, Z: np.ndarray) -> np.ndarray:
        """Features about their means and in their deviations, as trees and neighbours take them."""
        return map_rows(lambda rows: _located(Z[rows], self.location), len(Z), 32 * Z.shape[1])


def leaves_of(
    Z: np.ndarray, roots: np.ndarray, nodes: np.ndarray, cuts: np.ndarray, step: Any = None
) -> np.ndarray:
    """The leaf of every row in every tree, (n, t); ``step`` hears of rows, columns and nodes."""
    at = np.tile(roots, (len(Z), 1))
    flat, (left, right, column) = at.reshape(-1), np.ascontiguousarray(nodes.T)
    moving = np.flatnonzero(left[flat] > 0)
    rows, here = moving // len(roots), flat[moving]
    while len(moving):
        feature = column[here]
        there = np.where(Z[rows, feature] <= cuts[here], left[here], right[here])
        flat[moving] = there
        if step is not None:
            step(rows, feature, here, there)
        on = left[there] > 0
        moving, rows, here = moving[on], rows[on], there[on]
    return at


def asks_features(predictor: Any, X: Any) -> bool:
    """Whether features have scores of their own: where asked for, or nothing speaks against."""
    plain = not (is_sparse(X) or isinstance(X, Objects) or get_tags(predictor).input_tags.pairwise)
    if is_auto(predictor.use_features):
        return predictor.metric is None and plain
    if not predictor.use_features:
        return False
    if not plain:
        raise ValueError(
            "Got use_features=True with sparse points, objects or kernel values, but expected a "
            "table of features: try use_features=False."
        )
    try:  # before the metric is fitted, which may take what has no numbers
        if not isinstance(predictor.metric, Kernelized | None):
            check_array(X, dtype=np.float64)
        elif holds_objects(X) and not is_table(X):
            raise ValueError("They are objects and no table.")
    except ValueError as error:
        raise ValueError(
            "Got use_features=True with points that are no rows of finite numbers, but expected "
            f"some, or a table for Kernelized, which reads it: try use_features=False. {error}"
        ) from error
    return True


def feature_rows(metric: Any, X: Any) -> np.ndarray:
    """The features of points, as numbers."""
    own = isinstance(metric, Kernelized)
    Z = metric._checked(X) if own else check_array(in_order(metric, X), dtype=np.float64)
    Z = Z.numbers if isinstance(Z, MixedRows) else Z
    if not Z.shape[1]:
        raise ValueError(
            "Got use_features=True with columns of objects alone, but expected numbers beside "
            "them: try use_features=False."
        )
    return to_numpy(Z).astype(np.float64, copy=False)


def score_features(
    given: Rows, folds: list[Fold], *, one_by_one: bool
) -> tuple[FeatureScores, np.ndarray]:
    """Fit to all rows; and what is said of those held out, with their folds or one by one."""
    if one_by_one:
        tests = (fold.test for fold in folds)
        return fit_feature_scores(given, np.concatenate([np.arange(0), *tests]))
    said = [np.empty((0, given.Y.shape[1], 2))]
    said += [fit_feature_scores(given.take(f.train))[0](given.Z[f.test]) for f in folds]
    return fit_feature_scores(given)[0], np.concatenate(said)


def placed_folds(A: np.ndarray, folds: list[Fold], *, one_by_one: bool) -> list[Fold]:
    """The points held out among the others by their features, in their folds or one by one."""
    if not one_by_one:
        return [Fold(A[f.train], f.train, A[f.test], f.test, f.left_out) for f in folds]
    test = np.concatenate([np.arange(0), *(fold.test for fold in folds)])
    return [Fold(A, np.arange(len(A)), A[test], test, left_out=True)] if folds else []


def fit_feature_scores(given: Rows, judged: Any = ()) -> tuple[FeatureScores, np.ndarray]:
    """Fit to codes of classes, or numbers; and what is said of some of the rows, each left out."""
    Z, _, Y, mass, *_ = given
    largest = np.maximum(np.max(Z, axis=0), -np.min(Z, axis=0))
    size = np.maximum(largest, np.finfo(float).tiny)  # squares stay in range
    columns = (column / unit for column, unit in zip(Z.T, size, strict=True))
    centre, spread = np.transpose([(np.mean(column), np.std(column)) for column in columns])
    location = np.stack([centre * size, np.where(spread > 0, spread, 1.0) * size])
    A = map_rows(lambda rows: _located(Z[rows], location), len(Z), 32 * Z.shape[1])
    judged = np.asarray(judged, dtype=np.intp)
    coef, said = np.zeros((Z.shape[1], Y.shape[1])), np.zeros((len(judged), Y.shape[1]))
    intercept = np.zeros(Y.shape[1])
    if Z.shape[1] <= _WIDEST:
        line = linear_scores(A, Y, _RIDGE, mass)
        coef = line.coef / location[1][:, None]
        intercept = line.intercept - location[0] @ coef
        if len(judged):
            said = left_out_scores(A, Y, _RIDGE, mass, judged)
    trees, voted = _grown(A, given, judged)
    return FeatureScores(coef, intercept, location, *trees), np.stack([said, voted], axis=2)


def feature_seconds(n: int, d: int, share: float = 1.0) -> float:
    """About how long trees take to grow, or a share of them, and neighbours to be found."""
    drawn, judges = _drawn(n, d), min(n, MOST_JUDGES)
    found = neighbors_seconds(judges, n) + 2.0 * d * rates().product * judges * n
    tried = _N_TREES * drawn * math.log2(drawn + 2) * math.sqrt(d)
    return found + share * _TREE_VALUES * rates().value * tried


def _drawn(n: int, d: int) -> int:
    """How many rows each tree draws."""
    most = min(_MOST_DRAWN, max(_FEW, int(_MOST_TRIED / math.sqrt(d))))
    return min(max(min(n, _FEW), n // 2), most)


def _located(Z: np.ndarray, location: np.ndarray) -> np.ndarray:
    """Features about their means and in their deviations, with the digits that trees take."""
    with np.errstate(over="ignore"):  # what is infinitely far is far
        A = (Z - location[0]) / location[1]
    return np.clip(A, -FARTHEST_FEATURE, FARTHEST_FEATURE).astype(np.float32)


def _grown(
    A: np.ndarray, given: Rows, judged: np.ndarray
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Trees, each on rows drawn with return; and votes for some rows by trees that drew others."""
    _, y, Y, mass, classes, random_state = given
    p = Y.shape[1]
    rng, n = check_random_state(random_state), len(A)
    order = column_order(A)  # trees draw columns
    A = A[:, order]
    drawn = _drawn(n, A.shape[1])
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    options = {
        "max_features": "sqrt" if classes else 1 / 3,
        "min_samples_leaf": max(_LEAST_LEAF, drawn // _LEAVES),
    }
    draws = [(rng.randint(n, size=drawn), rng.randint(2**31)) for _ in range(_N_TREES)]
    parts, begins = [], [0]
    total, count = np.zeros((len(judged), p)), np.zeros(len(judged))

    def grow(draw: tuple[np.ndarray, int]) -> tuple[np.ndarray, Any]:
        rows, seed = draw
        own = None if mass is None else mass[rows]
        with config_context(assume_finite=True, skip_parameter_validation=True):
            tree = kind(**options, random_state=seed)
            return rows, tree.fit(A[rows], y[rows], sample_weight=own, check_input=False)

    def take(found: tuple[np.ndarray, Any]) -> None:
        rows, tree = found
        votes, nodes = _votes_of(tree, p, classes), tree.tree_
        sides = np.array([nodes.children_left, nodes.children_right])
        sides = np.where(sides > 0, sides + begins[-1], 0)
        links = np.column_stack([*sides, order[np.maximum(nodes.feature, 0)]])
        parts.append((links.astype(np.int32), nodes.threshold, votes.astype(np.float32)))
        begins.append(begins[-1] + nodes.node_count)
        unseen = np.bincount(rows, minlength=n)[judged] == 0
        total[unseen] += votes[nodes.apply(A[judged[unseen]])] if unseen.any() else 0.0
        count[unseen] += 1.0
        growing.step()

    with stage("forest", _N_TREES) as growing:
        until_limit_in_threads(grow, draws, take)
    nodes, cuts, votes = (np.concatenate(part) for part in zip(*parts, strict=True))
    never = count == 0
    total[never], count[never] = np.mean(votes[np.array(begins[:-1])], axis=0), 1.0
    return (np.array(begins[:-1], dtype=np.int32), nodes, cuts, votes), total / count[:, None]


def _votes_of(tree: Any, p: int, classes: bool) -> np.ndarray:
    """What the rows of each node say, (m, p): shares of all classes, or a mean."""
    values = tree.tree_.value[:, 0, :]
    if not classes:
        return values
    votes = np.zeros((len(values), p))
    votes[:, tree.classes_] = values / values.sum(axis=1, keepdims=True)
    return votes
