"""Probabilities of classes in a learned metric."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric import inputs
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import NCA
from kernelmetric.prediction._base import MetricPredictor
from kernelmetric.prediction._cross_fit import parts_of, without_copies
from kernelmetric.prediction._held_out import HeldOut
from kernelmetric.prediction._neighbors import Neighbors, class_shares
from kernelmetric.prediction._scores import log_odds


def costs_of(decision: Any, classes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What it costs to take a class (row) for another (column).

    >>> import numpy as np
    >>> from kernelmetric.prediction._classifier import costs_of
    >>> costs_of({"ill": 5}, np.array(["ill", "well"]), np.array([0.1, 0.9]))
    array([[0., 5.],
           [1., 0.]])
    """
    wrong = 1.0 - np.eye(len(classes))
    if isinstance(decision, str) and decision == "accuracy":
        return wrong
    if isinstance(decision, str) and decision == "balanced":
        return wrong / np.where(shares > 0, len(classes) * shares, np.inf)[:, None]
    matrix = _matrix(decision, classes.tolist()) if isinstance(decision, Mapping) else decision
    try:
        costs = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # texts, rows of several lengths, or 10**400
        costs = np.empty(0)
    fits = costs.shape == wrong.shape and np.all(np.isfinite(costs))
    if not fits or np.any(costs < np.diag(costs)[:, None]):
        raise ValueError(
            f"Got decision={decision!r}, but expected 'accuracy', 'balanced', costs by "
            "names such as {'ill': 5}, or a matrix of finite costs: a row for each of the "
            f"{len(classes)} true classes, a column for each predicted one, and no wrong answer "
            "cheaper than the right one."
        )
    return costs


def _matrix(decision: Mapping, names: list[Any]) -> list[list[Any]]:
    """Costs by the names of classes as rows of a matrix; others cost 1, and right answers 0."""
    rows: Any = (1.0 - np.eye(len(names))).tolist()
    for true, given in decision.items():
        others = [name for name in names if name != true]
        costs = given if isinstance(given, Mapping) else dict.fromkeys(others, given)
        unknown = [name for name in (true, *costs) if name not in names]
        if unknown:
            raise ValueError(f"Got a cost of {unknown[0]!r}, but the classes are {names}.")
        for predicted, cost in costs.items():
            rows[names.index(true)][names.index(predicted)] = cost
    return rows


LEAST_SHARE = 1e-12  # of a class without weight, or of a file that was altered
DOUBT = 0.02  # that trees all agree by chance
FARTHEST = 2.0  # of linear scores, whose targets are ±1: far points are no surer than near ones


@dataclass(eq=False, repr=False)
class MetricClassifier(ClassifierMixin, MetricPredictor):
    r"""Classes and their probabilities by neighbours in a learned metric.

    Two scores are computed from the learned coordinates. The k nearest training points vote, with
    weights :math:`\exp(-d^2 / 2\tau^2)`: that says which class is near. Ridge regression says where
    a point lies between the classes, also if all neighbours agree. Three more come from the
    features themselves: ridge regression, the votes of a forest of trees, in which rows are near
    that share leaves, and those of the neighbours by the features, each in its deviations. The
    probability of class c is

    .. math:: p_c \propto \exp(w_1 \log v_c + w_2 g(r_c) + w_3 g(s_c) + w_4 \log f_c
        + w_5 \log u_c + b_c),

    where g takes a score to the scale of a log-probability about the share of its class. Points
    that were left out choose k, the width τ, the ridge and the weights, none of them negative. A
    score that tells them nothing new gets no weight.

    Parameters
    ----------
    metric : estimator, default=None
        Any metric of this library, or anything else that has ``fit(X, y)`` and ``transform``, such
        as a pipeline that ends in one. None is ``Kernelized(NCA())``. A metric that is not fitted
        again (``FrozenEstimator``) must not have seen X, or probabilities are too sure.
    cv : 'auto', int, splitter or list of splits, default='auto'
        How points are held out. With 'auto' and more than 500 points, one fit of the metric is
        enough, if it places its training rows as if they were left out. Else 'auto' is five folds.
        Of these, only as many are fitted as hold out 1,000 points. If rows belong together, such
        as several of one patient, give splits that keep them together.
    random_state : int, RandomState or None, default=0
        For the folds, and for what the trees draw.
    use_features : {'auto', True, False}, default='auto'
        Whether the scores of the features count beside those of the metric. 'auto' lets them where
        the metric is the default one, and X a table of features. ``kneighbors`` gives those of
        the metric in any case.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count, in votes, scores, log-loss and the default metric;
        'balanced' predicts as if all classes were of one size. Only ratios matter.
    decision : {'accuracy', 'balanced'}, dict or array, default='accuracy'
        What ``predict`` makes of the probabilities, which stay as they are: the class whose
        expected cost is least. With 'accuracy' all wrong answers cost the same; with 'balanced'
        those about a class cost the more, the fewer rows it has. ``{'ill': 5}`` says what it costs
        to miss a row of a class, ``{'ill': {'well': 5}}`` what it costs to take it for another;
        other wrong answers cost 1. An array of shape (n_classes, n_classes) has a row for each
        true class, and a column for each predicted one. ``set_params`` changes it after the fit.

    Attributes
    ----------
    metric_ : estimator
        The metric, fitted on all points.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    embedding_ : ndarray of shape (n_samples, n_components)
        The training points in learned coordinates, without those of weight zero and copies.
    n_neighbors_ : int
        How many neighbours vote.
    temperature_ : float
        The width τ, as a multiple of the spread of ``embedding_``.
    weights_ : ndarray of shape (2,) or (5,)
        What the logarithms of votes and the linear scores count; then, where features have scores,
        the linear scores of these, the logarithms of the forest's votes, and those of the votes of
        neighbours by the features.
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
    MetricRegressor : For targets that are numbers.
    Kernelized : The metric that it learns.
    kernelmetric.inspection.explain_pair : Why two rows are near.

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

    _: KW_ONLY
    class_weight: Any = None
    decision: Any = "accuracy"

    _target = "class"

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
        shares = self._priors() if vars(self).get("_by_shares") else None

        def combine(votes: list[np.ndarray], linear: np.ndarray, features: Any) -> np.ndarray:
            scores = _stacked(votes, linear, features, shares) @ self.weights_
            return softmax(scores + self.biases_, axis=1)

        return self._combined(X, combine)

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
        """The classes whose expected cost is least: by default, the most probable ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            One of ``classes_`` for each point.
        """
        return self._decided(self.predict_proba(X))

    def _decided(self, P: np.ndarray) -> np.ndarray:
        """The classes that go with probabilities."""
        costs = self._costs()
        # A number for each true class changes nothing; so -P remains where all costs are alike.
        return self.classes_[np.argmin(P @ (costs - costs.max(axis=1, keepdims=True)), axis=1)]

    def _costs(self) -> np.ndarray:
        return costs_of(self.decision, self.classes_, self._priors())

    def _default_metric(self) -> Any:
        return Kernelized(NCA(class_weight=self.class_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        labels = inputs.label_column(y)
        if _num_samples(X) == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={np.shape(X)}), but expected some points."
            )
        codes = inputs.check_labels(labels, X)
        self.classes_ = np.unique(labels)
        sample_weight = without_copies(self, X, codes, sample_weight)
        self._kept, weights = inputs.rows_and_weights(sample_weight, X)
        weights = inputs.with_class_weights(weights, self.class_weight, labels, self._kept)
        self._codes = codes = inputs.rows_of(codes, self._kept)
        costs_of(self.decision, self.classes_, np.ones(len(self.classes_)))  # refused at once
        folds = self._learn(X, codes, sample_weight, weights, classes=True)
        n_classes = len(self.classes_)
        signs = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        as_given = self._draws_folds and self.class_weight != "balanced"
        more = {"shares": self._priors(), "sizes": np.bincount(codes) if as_given else None}
        held_out = self._held_out(_HeldOut, folds, codes, signs, **more)
        choice = held_out.choose()
        self._store(choice, codes, signs, n_classes)
        self.biases_ = choice.combined.biases
        self._by_shares = True
        self.log_loss_ = held_out.loss(parts_of(folds))

    def _priors(self) -> np.ndarray:
        sizes = np.bincount(self._codes, vars(self).get("_mass"), minlength=len(self.classes_))
        return sizes / np.sum(sizes)

    def _votes(self, found: Neighbors, k: int, width: float, rows: Any = slice(None)) -> np.ndarray:
        weights = self._vote_weights(found, k, width, rows)
        return np.log(class_shares(found, weights, self._codes[rows], self._priors()))

    def _gain(self, said: np.ndarray, sums: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return np.log((said + self._priors()[truth]) / (sums + 1.0))


@dataclass
class _HeldOut(HeldOut):
    """Points held out, with the shares of the classes, and their sizes where folds are ours."""

    combine = staticmethod(log_odds)
    gives_classes = True
    known = 0.3, 1.2  # of log-votes and of linear scores
    ridges = ()
    shares: np.ndarray
    sizes: np.ndarray | None

    def stacked(self, votes: list[np.ndarray], lines: np.ndarray, features: Any) -> np.ndarray:
        return _stacked(votes, lines, features, self.shares)

    def loss(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
        """Log-loss on the points, each as the other parts chose."""
        if not parts:
            return np.nan
        logs = np.empty(len(self.truth))
        for others, own in parts:
            best, ridge, combined = self.choose(others)
            scores = self.scores(best, ridge, own) @ combined.weights
            at = np.arange(len(own)), self.truth[own]
            if self.sizes is not None:
                # Our folds all have the classes as frequent as the points held out: what each
                # point then tells of its own class is taken away.
                scores[at] += np.log1p(-1.0 / self.sizes[at[1]])
            logs[own] = log_softmax(scores + combined.biases, axis=1)[at]
        return float(-np.average(logs, weights=self.mass))


def _stacked(
    votes: list[np.ndarray], linear: np.ndarray, features: Any, shares: np.ndarray | None
) -> np.ndarray:
    """Log-votes beside what other scores say of the logarithm of a probability."""
    if shares is None:  # which models of version 0.1 lack
        return np.stack([*votes, np.clip(linear, -FARTHEST, FARTHEST)], axis=2)
    shares = np.maximum(shares, LEAST_SHARE)
    scores = [votes[0], _log_scale(linear, shares)]
    if features is not None:
        voted = (1.0 - DOUBT) * features[:, :, 1] / shares + DOUBT
        scores += [_log_scale(features[:, :, 0], shares), np.log(voted)]
    return np.stack(scores + votes[1:], axis=2)


def _log_scale(linear: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Linear scores, on the scale of the logarithm of a probability about the share of its class.

    A score r of ±1 means the probability (1 + r) / 2. Near the share s of its class the logarithm
    of that grows like t; far off ± log(1 + |t|) gives every r its own place.
    """
    t = (0.5 * (1.0 + np.clip(linear, -FARTHEST, FARTHEST)) - shares) / shares
    return np.sign(t) * np.log1p(np.abs(t))
