"""Probabilities of classes in a learned metric."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from kernelmetric.compute import (
    check_labels,
    map_rows,
    rows_of,
    to_numpy,
    unchanged_on_failure,
    with_classes,
)
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import NCA
from kernelmetric.prediction._base import (
    MetricPredictor,
    found_in,
    held_out_scores,
    require_points,
)
from kernelmetric.prediction._combined import Combination, log_odds
from kernelmetric.prediction._cross_fit import Fold, embedded, parts_of
from kernelmetric.prediction._linear import OWN, RIDGES, LinearScores, linear_scores, own_scores
from kernelmetric.prediction._neighbors import (
    MOST,
    NUMBERS,
    TEMPERATURES,
    Neighbors,
    class_shares,
    spread,
)

_USUAL = np.array([0.3, 1.2])  # weights of log-votes and of linear scores, before any point spoke
_LEAST_SHARE = 1e-12  # of a class without weight, or of a file that was altered
_FARTHEST = 2.0  # of linear scores, whose targets are ±1: far points are no surer than near ones


class MetricClassifier(ClassifierMixin, MetricPredictor):
    r"""Classes and their probabilities by neighbours in a learned metric.

    Two scores are made of the learned coordinates. The votes of the k nearest training points,
    weighted by :math:`\exp(-d^2 / 2\tau^2)`, say which class is near; ridge regression on the
    coordinates says where a point lies between the classes, which neighbours cannot say when all
    of them agree. The probability of class c is

    .. math:: p_c \propto \exp(w_1 \log v_c + w_2 g(r_c) + b_c),

    where g takes a score to the scale of a log-probability about the share of its class.

    k, the width τ, the ridge and the weights are those that predict points best which were left
    out. The automatic space of :class:`Kernelized` places every training point as if it had been
    left out, so one fit tells them. For other metrics, the metric is also fitted without each of
    some folds.

    Parameters
    ----------
    metric : estimator, default=None
        Any metric of this library, or anything else that has ``fit(X, y)`` and ``transform``, such
        as a pipeline that ends in one. None is ``Kernelized(NCA())``. A metric that is not fitted
        again (``FrozenEstimator``) must not have seen X, or probabilities are too sure.
    cv : 'auto', int, splitter or list of splits, default='auto'
        How points are held out. 'auto' takes the places that the metric's one fit gives points
        left out. Of up to 500 points, and where the metric has no such places, it is fitted again
        in five folds. Of a number of folds only as many are fitted as hold 1,000 points out. Where
        rows belong together, such as several of one patient, give splits that keep them together.
    index : str, default=None
        None searches neighbours exactly. Otherwise what ``faiss.index_factory`` makes of the
        learned coordinates, such as 'HNSW32', for many training points.
    random_state : int, RandomState or None, default=0
        For the folds.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count, in votes, scores and log-loss; 'balanced' predicts as
        if all classes were of one size. It is also that of the default metric; one that is given
        has its own. Only ratios matter.

    Attributes
    ----------
    metric_ : estimator
        The metric, fitted on all points.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    embedding_ : ndarray of shape (n_samples, n_components)
        The training points in learned coordinates.
    n_neighbors_ : int
        How many neighbours vote.
    temperature_ : float
        The width τ, as a multiple of the spread of ``embedding_``.
    weights_ : ndarray of shape (2,)
        What the logarithms of votes and the linear scores count.
    biases_ : ndarray of shape (n_classes,)
        What is added for each class.
    coef_, intercept_ : ndarray of shape (n_components, n_classes) and (n_classes,)
        Ridge regression on the learned coordinates, or that which the automatic space is made of;
        classes are coded ±1.
    log_loss_ : float
        Mean log-loss on the points left out, by numbers that the other folds chose: what to expect
        of new points. NaN where none could be held out.
    usual_distance_ : float
        What :meth:`score_samples` divides by.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of str
        Names of the features seen in fit, where X had any.

    See Also
    --------
    MetricRegressor : The same for numbers.
    PairVerifier : Whether two points are the same.

    Notes
    -----
    With the automatic space a fit takes little more than one fit of the metric; with folds, about
    1 + 4/5 times ``cv`` fits, less what choosing the kernel takes above 500 points, which is done
    once, with all of them. Another order of rows makes other folds. Predictions are NumPy arrays.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import MetricClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MetricClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> distances, rows = model.kneighbors(X[1:2], 3)  # the reason why
    >>> y[::2][rows]
    array([[0, 0, 0]])
    """

    def __init__(self, metric=None, *, cv="auto", index=None, random_state=0, class_weight=None):
        super().__init__(metric, cv=cv, index=index, random_state=random_state)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MetricClassifier:
        """Learn the metric, and what probabilities follow from it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, of any kind that the metric takes.
        y : array-like of shape (n_samples,)
            Classes, numbers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts; zero leaves it out. It counts in the metric, in the votes, and
            among the points held out.

        Returns
        -------
        MetricClassifier
            The fitted classifier.
        """
        self._check_parameters()
        if y is None:
            raise ValueError(
                "MetricClassifier requires y to be passed, but the target y is None: expected a "
                "class for every row."
            )
        with unchanged_on_failure(self):
            labels = column_or_1d(to_numpy(y) if is_array_api_obj(y) else y, warn=True)
            require_points(X)
            codes = check_labels(labels, X)
            self.classes_ = np.unique(labels)
            rows, weights, w = self._weighed(X, sample_weight)
            weights = with_classes(weights, self.class_weight, labels, rows)
            X, self._codes = rows_of(X, rows), codes if rows is None else codes[rows]
            codes = self._codes
            self._mass = None if weights is None else weights.shares / weights.unit
            folds = self._learn(X, codes, classes=True, sample_weight=w)
            held_out = self._held_out(folds)
            choice = held_out.choose()
            self.n_neighbors_, self.temperature_ = choice.vote
            own = (self.metric_, self.embedding_, codes, len(self.classes_))
            linear = own_scores(*own) if choice.ridge == OWN else None
            if linear is None:
                signs, ridge = self._signs(codes), choice.ridge or RIDGES[0]
                linear = linear_scores(self.embedding_, signs, ridge, self._mass)
            self.coef_, self.intercept_ = linear
            self.weights_, self.biases_ = choice.combined.weights, choice.combined.biases
            self._by_shares = True
            self.log_loss_ = held_out.loss(choice, parts_of(folds))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; each row has sum one.
        """
        check_is_fitted(self)
        E = embedded(self.metric_, X)
        linear = LinearScores(self.coef_, self.intercept_)
        priors = self._priors(self._codes)
        shares = priors if vars(self).get("_by_shares") else None

        def work(rows: slice) -> np.ndarray:
            found = self._neighbors(E[rows], self.n_neighbors_)
            votes = self._votes(found, self.n_neighbors_, self._width, self._codes, priors)
            scores = _stacked(votes, linear(E[rows]), shares)
            return softmax(scores @ self.weights_ + self.biases_, axis=1)

        return map_rows(work, len(E), 8 * (6 * MOST + 8 * len(self.classes_)))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            One of ``classes_`` for each point.
        """
        P = self.predict_proba(X)
        return self.classes_[P.argmax(axis=1)]

    def _default_metric(self) -> Any:
        return Kernelized(NCA(class_weight=self.class_weight))

    def _priors(self, codes: np.ndarray) -> np.ndarray:
        sizes = np.bincount(codes, vars(self).get("_mass"), minlength=len(self.classes_))
        return sizes / np.sum(sizes)

    def _signs(self, codes: np.ndarray) -> np.ndarray:
        return np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)

    def _votes(
        self,
        found: Neighbors,
        k: int,
        width: float,
        codes: np.ndarray,
        priors: np.ndarray,
        rows: Any = None,
    ) -> np.ndarray:
        return np.log(class_shares(found, self._votes_of(found, k, width, rows), codes, priors))

    def _held_out(self, folds: list[Fold]) -> _HeldOut:
        """What every choice says of the points held out."""
        codes, found = self._codes, found_in(folds)
        priors = self._priors(codes)
        most = min([len(codes), *(fold.E.shape[0] for fold in folds)])
        truth = np.concatenate([codes[:0], *(codes[fold.test] for fold in folds)])
        at = np.arange(len(truth)), truth

        def votes(vote: tuple[int, float]) -> np.ndarray:
            parts = [np.empty((0, len(priors)))]
            for fold, near in zip(folds, found, strict=True):
                k, width = vote[0], vote[1] * spread(fold.E)
                parts.append(self._votes(near, k, width, codes[fold.train], priors, fold.train))
            return np.concatenate(parts)

        # Our folds all have the classes as frequent as the points held out: what each point then
        # tells of its own class is taken away.
        alone, ours = np.zeros(len(truth)), self._chooses_folds or isinstance(self.cv, Integral)
        if ours and self.class_weight != "balanced":
            alone = np.log1p(-1.0 / np.bincount(codes)[truth])
        numbers = sorted({min(k, most) for k in NUMBERS})
        hits = {vote: votes(vote)[at] for vote in itertools.product(numbers, TEMPERATURES)}
        lines, signs = {}, self._signs(codes)
        known = all(fold.own is not None for fold in folds) and bool(folds)
        for ridge in (OWN,) if known else RIDGES:
            scores = [held_out_scores(fold, signs, ridge, self._mass) for fold in folds]
            lines[ridge] = np.concatenate([np.empty((0, len(priors))), *scores])
        mass = self._held_out_mass(folds)
        return _HeldOut(truth, cache(votes), hits, lines, mass, alone, priors)


class _Choice(NamedTuple):
    """What was chosen on some points held out."""

    vote: tuple[int, float]
    ridge: float
    combined: Combination


class _HeldOut(NamedTuple):
    """Points held out: classes, log-votes and those of their own class, linear scores, masses.

    ``alone`` is added to the score of its own class where a point is judged.
    """

    truth: np.ndarray
    votes: Callable[[tuple[int, float]], np.ndarray]
    hits: dict[tuple[int, float], np.ndarray]
    lines: dict[float, np.ndarray]
    mass: np.ndarray | None
    alone: np.ndarray
    shares: np.ndarray

    def choose(self, rows: Any = slice(None), near: Combination | None = None) -> _Choice:
        """What predicts some of the points best; the search for weights begins near some."""
        truth, mass = self.truth[rows], None if self.mass is None else self.mass[rows]
        if not len(truth):
            usual = Combination(_USUAL, np.zeros(len(self.shares)), np.nan)
            return _Choice((min(self.hits)[0], 0.25), min(self.lines), usual)
        vote = max(self.hits, key=lambda each: np.average(self.hits[each][rows], weights=mass))
        votes = self.votes(vote)[rows]
        odds = {
            ridge: log_odds(_stacked(votes, line[rows], self.shares), truth, _USUAL, mass, near)
            for ridge, line in self.lines.items()
        }
        ridge = min(odds, key=lambda each: odds[each].loss)
        return _Choice(vote, ridge, odds[ridge])

    def loss(self, choice: _Choice, parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
        """Log-loss on the points, each as the other parts chose; near what all of them chose."""
        if not parts:
            return np.nan
        logs = np.empty(len(self.truth))
        for others, own in parts:
            vote, ridge, combined = self.choose(others, choice.combined)
            stacked = _stacked(self.votes(vote)[own], self.lines[ridge][own], self.shares)
            scores = stacked @ combined.weights
            at = np.arange(len(own)), self.truth[own]
            scores[at] += self.alone[own]
            logs[own] = log_softmax(scores + combined.biases, axis=1)[at]
        return float(-np.average(logs, weights=self.mass))


def _stacked(votes: np.ndarray, linear: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
    """Log-votes beside what linear scores say of the logarithm of a probability.

    A score r of ±1 means the probability (1 + r) / 2. Near the share s of its class the logarithm
    of that grows like t = ((1 + r) / 2 - s) / s, so scores of rare classes count for more. Far off
    it is ± log(1 + |t|), by which every r has its own place. Models of version 0.1 have no shares.
    """
    linear = np.clip(linear, -_FARTHEST, _FARTHEST)
    if shares is not None:
        shares = np.maximum(shares, _LEAST_SHARE)
        t = (0.5 * (1.0 + linear) - shares) / shares
        linear = np.sign(t) * np.log1p(np.abs(t))
    return np.stack([votes, linear], axis=2)
