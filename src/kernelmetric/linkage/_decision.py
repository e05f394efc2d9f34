"""What the evidence on a pair is worth together: a line, trees, and Fellegi and Sunter's model.

Without labels, candidates that are each other's best stand for the matches, and a line learns from
them. Labels move the line away from there, against a penalty, and teach trees. How much each of
the three counts is what makes the cross-fitted log-loss least, which calibrates them as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtri
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GroupKFold

from kernelmetric.compute import map_rows
from kernelmetric.prediction._features import leaves_of

_KNOTS = np.linspace(0, 1, 101)
_SCORES = ndtri(np.clip(_KNOTS, 0.01, 0.99))
# Of the line's weights: without labels, where candidates are many and their labels guesses; and
# about what was learned without labels, of the constant, of the trust in that, of each column.
_GUESSED = 300.0
_PRECISION = (3.0, 4.0, 30.0)
_MIXED = 3.0  # of what the line, the trees and the fields count, about 1, 0 and 0
_FEWEST = 20  # labelled pairs of a kind that judge a decision, and
_TAUGHT = 15  # that teach more than the line: in a fold are fewer
_FEW = 1_000  # labels: of more, trees learn what fields say together, and sooner
_FOLDS = 5, 2  # in which parts are judged, of few labels and of more: that is done fold by fold
_TREES = {
    "max_iter": 80, "learning_rate": 0.1, "max_leaf_nodes": 15, "min_samples_leaf": 10,
    "l2_regularization": 3.0, "max_features": 0.3, "max_bins": 63,
    "early_stopping": False, "random_state": 0,
}  # fmt: skip
_FARTHEST = 30.0  # log odds
_TOL = 1e-8  # of a slope, for each pair


class LinkModel:
    """Log odds of a match that are a sum over columns: by fields alone, or by texts as well."""


@dataclass(frozen=True)
class Line:
    """Log odds that are a sum over columns, each by its ranks among the candidates."""

    knots: np.ndarray  # (101, d) quantiles of the columns
    centre: np.ndarray  # of their normal scores
    scale: np.ndarray
    coef: np.ndarray
    intercept: float

    def points(self, X: np.ndarray) -> np.ndarray:
        """Normal scores, of mean 0 and deviation 1 among the candidates."""
        Z = np.array(X.T, order="C")  # columns lie together: one at a time is looked at
        for column, knots in zip(Z, self.knots.T, strict=True):
            scores = np.interp(column, knots, _SCORES)
            for value in np.unique(knots[1:][np.diff(knots) == 0]):  # the middle of equal knots
                scores[column == value] = _SCORES[knots == value][[0, -1]].mean()
            column[:] = scores
        Z -= self.centre[:, None]
        Z /= self.scale[:, None]
        return Z.T

    def odds(self, X: np.ndarray) -> np.ndarray:
        """The log odds."""
        return self.points(X) @ self.coef + self.intercept

    def shares(self, X: np.ndarray) -> np.ndarray:
        """The constant, and what each column adds beside the mean of the candidates."""
        return np.hstack([np.full((len(X), 1), self.intercept), self.points(X) * self.coef])


@dataclass(frozen=True)
class Trees:
    """Boosted trees whose nodes lie one after the other, each after its parent."""

    roots: np.ndarray
    nodes: np.ndarray  # (m, 3): left and right, 0 under a leaf, and the column that decides
    cuts: np.ndarray  # the largest value that goes to the left
    values: np.ndarray  # mean of the leaves below, by the rows that taught them
    start: float

    def odds(self, X: np.ndarray) -> np.ndarray:
        """The log odds: values of the leaves that rows reach, added."""

        def work(rows: slice) -> np.ndarray:
            at = leaves_of(X[rows], self.roots, self.nodes, self.cuts)
            return self.start + self.values[at].sum(axis=1)

        return map_rows(work, len(X), 200.0 * len(self.roots), most=1_000)

    def shares(self, X: np.ndarray) -> np.ndarray:
        """The constant, and what each column adds: the steps of the values on the way to leaves."""

        def work(rows: slice) -> np.ndarray:
            found = np.zeros((len(X[rows]), 1 + X.shape[1]))
            found[:, 0] = self.start + self.values[self.roots].sum()

            def step(
                r: np.ndarray, column: np.ndarray, here: np.ndarray, there: np.ndarray
            ) -> None:
                np.add.at(found, (r, 1 + column), self.values[there] - self.values[here])

            leaves_of(X[rows], self.roots, self.nodes, self.cuts, step)
            return found

        return map_rows(work, len(X), 200.0 * len(self.roots) + 16.0 * X.shape[1], most=1_000)


@dataclass(frozen=True)
class TextModel(LinkModel):
    """The log odds of a match: constant + Σ counts of the line, of trees and of the fields' model.

    Each of the three is a sum over columns, and so are the log odds.
    """

    line: Line
    constant: float  # without the log odds of the share
    counts: np.ndarray  # of line, trees, fields
    match_share: float
    n_fields: int
    names: list[str]  # of the columns
    trees: Trees | None = None
    fields: Any = None  # a MatchModel

    def odds(self, S: np.ndarray) -> np.ndarray:
        """The log odds of a match where as many pairs match as do not."""
        X = design(S, self.n_fields)
        odds = self.counts[0] * self.line.odds(X) + self.constant
        if self.trees is not None and self.counts[1]:
            odds += self.counts[1] * self.trees.odds(X)
        if self.fields is not None and self.counts[2]:
            odds += self.counts[2] * self.fields.odds(S[:, : self.n_fields])
        return odds

    def probability(self, S: np.ndarray) -> np.ndarray:
        """Of a match."""
        return expit(np.clip(self.odds(S) + logit(self.match_share), -_FARTHEST, _FARTHEST))

    def shares(self, S: np.ndarray) -> np.ndarray:
        """Log odds before any column is looked at, and what each column adds: (n, 1 + columns)."""
        X = design(S, self.n_fields)
        shares = self.counts[0] * self.line.shares(X)
        shares[:, 0] += self.constant + logit(self.match_share)
        if self.trees is not None and self.counts[1]:
            shares += self.counts[1] * self.trees.shares(X)
        if self.fields is not None and self.counts[2]:
            own = self.fields.shares(S[:, : self.n_fields])
            own[:, 0] -= logit(self.fields.match_share)
            shares[:, : 1 + self.n_fields] += self.counts[2] * own
        return shares


def design(S: np.ndarray, n_fields: int) -> np.ndarray:
    """Columns without gaps: the fields, the evidence, and which fields are missing."""
    missing = np.isnan(S[:, :n_fields])
    return np.hstack([np.nan_to_num(S, nan=0.0, posinf=0.0, neginf=0.0), missing])


def guessed(S: np.ndarray, names: list[str], n_fields: int, best: np.ndarray) -> TextModel:
    """What candidates alone teach, of which some are each other's best."""
    X = design(S, n_fields)
    knots = _quantiles(X)
    d = X.shape[1]
    line = Line(knots, np.zeros(d), np.ones(d), np.zeros(d), 0.0)
    Z = line.points(X)
    centre, spread = Z.mean(axis=0), Z.std(axis=0)
    scale = np.where(spread > 1e-6, spread, 1.0)
    Z = (Z - centre) / scale
    share = float(np.clip(best.mean(), 1e-6, 0.5))
    A = np.column_stack([np.ones(len(Z)), Z])
    start = np.zeros(d + 1)
    start[0] = logit(share)
    theta = logistic(A, best.astype(float), start, np.r_[0.01, np.full(d, _GUESSED)])
    line = Line(knots, centre, scale, theta[1:], float(theta[0]))
    match = float(np.clip(expit(A @ theta).mean(), 1e-6, 1 - 1e-6))
    names = [*names, *(f"{name} missing" for name in names[:n_fields])]
    return TextModel(line, -float(logit(match)), np.array([1.0, 0, 0]), match, n_fields, names)


def _quantiles(X: np.ndarray) -> np.ndarray:
    """Those of NumPy at the knots, from sorted columns: of so many that is faster."""
    ordered, at = np.sort(X, axis=0), _KNOTS * (len(X) - 1)
    low = at.astype(np.intp)
    below, above = ordered[low], ordered[np.minimum(low + 1, len(X) - 1)]
    return below + (above - below) * (at - low)[:, None]


def learned_decision(
    start: TextModel,
    fields: Any,
    S: np.ndarray,
    same: np.ndarray,
    groups: Any,
    ratio: float,
    by_kind: bool,
) -> TextModel:
    """What labels teach beside the candidates; the log odds are those among the labels.

    ``fields(rows)`` learns the fields' model from some of the labels, of which matches and others
    have the log odds ``ratio``.
    """
    X = design(S, start.n_fields)
    Z, line = start.line.points(X), start.line
    total = Z @ line.coef + line.intercept
    A = np.column_stack([np.ones(len(Z)), total, Z])
    begin = np.r_[0.0, 1.0, np.zeros(Z.shape[1])]
    precision = np.r_[_PRECISION[:2], np.full(Z.shape[1], _PRECISION[2])]
    # Labels gathered by kind have a share of matches of their own.
    offset = ratio - float(logit(start.match_share)) if by_kind else 0.0

    def taught(rows: np.ndarray) -> tuple[Line, Trees | None, Any]:
        y = same[rows]
        b, trust, *moved = logistic(A[rows], y, begin, precision, offset)
        coef = trust * line.coef + np.array(moved)
        learned = replace(line, coef=coef, intercept=float(b + trust * line.intercept))
        more = min(y.sum(), (1 - y).sum()) >= _TAUGHT
        trees = grown(X[rows], y) if more else None
        return learned, trees, fields(rows) if more and len(rows) <= _FEW else None

    n_folds = _FOLDS[len(same) > _FEW]
    judged = min(same.sum(), (1 - same).sum()) >= _FEWEST and len(np.unique(groups)) >= n_folds
    splits = GroupKFold(n_folds).split(X, groups=groups) if judged else ()
    held_out = np.zeros((len(same), 3))  # log odds by each part, 0 where it is not there
    for train, test in splits:
        learned, trees, own = taught(train)
        held_out[test, 0] = Z[test] @ learned.coef + learned.intercept + offset
        if trees is not None:
            held_out[test, 1] = trees.odds(X[test])
        if own is not None:
            held_out[test, 2] = own.odds(S[test, : start.n_fields]) + ratio
    learned, trees, own = taught(np.arange(len(same)))
    constant, counts = 0.0, np.array([1.0, 0.0, 0.0])
    if judged:
        there = np.flatnonzero([True, trees is not None, own is not None])
        A = np.column_stack([np.ones(len(same)), held_out[:, there]])
        prior = np.r_[1.0, np.full(len(there), _MIXED)]
        limits = [(None, None)] + [(0.0, None)] * len(there)
        constant, *counts[there] = logistic(A, same, np.r_[0.0, counts[there]], prior, 0.0, limits)
    constant += counts[0] * offset + counts[2] * ratio
    return TextModel(learned, constant, counts, 0.5, start.n_fields, start.names, trees, own)


def grown(X: np.ndarray, same: np.ndarray) -> Trees:
    """Boosted trees of scikit-learn, as arrays; a pair with both answers is there twice."""
    # Weights would be exact, and take scikit-learn five times as long to find where to cut.
    yes, no = np.flatnonzero(same > 0), np.flatnonzero(same < 1)
    rows, y = np.r_[yes, no], np.r_[np.ones(len(yes)), np.zeros(len(no))]
    boosted = HistGradientBoostingClassifier(**_TREES).fit(X[rows], y)
    roots, nodes, cuts, values, n = [], [], [], [], 0
    for (predictor,) in boosted._predictors:
        tree = predictor.nodes
        inner = ~tree["is_leaf"].astype(bool)
        links = np.where(inner[:, None], np.stack([tree["left"], tree["right"]], 1) + n, 0)
        nodes.append(np.column_stack([links, np.where(inner, tree["feature_idx"], 0)]))
        cuts.append(np.where(inner, tree["num_threshold"], 0.0))
        mean, count = tree["value"].astype(float), tree["count"].astype(float)
        for k in np.flatnonzero(inner)[::-1]:  # children lie after their parents
            below = links[k] - n
            mean[k] = mean[below] @ count[below] / count[k]
        values.append(mean)
        roots.append(n)
        n += len(tree)
    start = float(np.ravel(boosted._baseline_prediction)[0])
    links_of, cuts_of, values_of = map(np.concatenate, (nodes, cuts, values))
    return Trees(np.array(roots), links_of, cuts_of, values_of, start)


def logistic(
    A: np.ndarray,
    y: np.ndarray,
    start: np.ndarray,
    precision: np.ndarray,
    offset: float = 0.0,
    bounds: Any = None,
) -> np.ndarray:
    """Weights of a logistic regression with a normal prior about ``start``, perhaps in bounds."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        z, moved = A @ theta + offset, theta - start
        value = np.sum(np.logaddexp(0, z) - y * z) + 0.5 * precision @ moved**2
        return value, A.T @ (expit(z) - y) + precision * moved

    def curvature(theta: np.ndarray) -> np.ndarray:
        p = expit(A @ theta + offset)
        B = A * np.sqrt(p * (1 - p))[:, None]  # of BᵀB half of the entries are computed
        return B.T @ B + np.diag(precision)

    if bounds is not None:
        return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    how: Any = {"jac": True, "hess": curvature, "method": "trust-exact"}
    return minimize(loss, start, options={"gtol": _TOL * (1 + len(y))}, **how).x
