"""A table that no paper has: the methods of the library beside classifiers that were tuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import (
    DLA,
    DNE,
    ITML,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    MCML,
    MMC,
    NCA,
    RCA,
    RFM,
    IdealizedKernel,
)
from kernelmetric.selection import KernelAlignment
from kernelmetric.transductive import TransductiveDistance
from reproduction.classifiers import TunedSVM
from reproduction.peers import PeerCatBoost, PeerXRFM, peer
from reproduction.problems import GROUPS, Problem, folds
from reproduction.table import Method, Smoke, Table

_N_PCA = 50  # as many components as linear learners see
_RANK = 10  # of LMCA and of TDL
_VOTES = (1, 3, 5, 9, 15, 25)


class TunedNeighbors(ClassifierMixin, BaseEstimator):
    """kNN in a metric; the votes are chosen by cross-validation of metric and vote together.

    What the metric chooses by itself, a kernel or C, it chooses once, on all training points.

    Parameters
    ----------
    make : callable
        ``make(n_features) -> metric``.
    n_pca : int or None
        The most principal components that the metric sees; None hands it the features.

    Attributes
    ----------
    metric_ : fitted metric
        The metric of all training points.
    votes_ : dict
        Parameters of the neighbours that did best.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import LFDA
    >>> from reproduction.beyond import TunedNeighbors
    >>> X, y = load_iris(return_X_y=True)
    >>> TunedNeighbors(lambda d: LFDA(min(2, d))).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(self, make, n_pca=None):
        self.make = make
        self.n_pca = n_pca

    def fit(self, X: Any, y: Any) -> TunedNeighbors:
        """Learn the metric, then find out how many neighbours should vote in such metrics."""
        self.classes_ = np.unique(y)
        self.pca_ = None
        if self.n_pca is not None and self.n_pca < X.shape[1]:
            self.pca_ = PCA(min(self.n_pca, len(X) - 1), random_state=0).fit(X)
            X = self.pca_.transform(X)
        self.metric_ = self.make(X.shape[1])
        Z = self.metric_.fit_transform(X, y)  # places of rows left out, where a metric has them
        fixed = settled(self.metric_)

        def embed(train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
            metric = clone(fixed)
            return metric.fit_transform(X[train], y[train]), metric.transform(X[test])

        self.votes_ = _best_votes(_votes(len(X)), y, embed)
        self.neighbors_ = KNeighborsClassifier(**self.votes_).fit(Z, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of X."""
        X = X if self.pca_ is None else self.pca_.transform(X)
        return self.neighbors_.predict(self.metric_.transform(X))


def settled(metric: Any) -> Any:
    """An unfitted metric with the recipe or C that a fitted one chose.

    Parameters
    ----------
    metric : fitted metric
        A metric.

    Returns
    -------
    metric
        Unfitted; it has nothing left to choose.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import Kernelized, LFDA
    >>> from reproduction.beyond import settled
    >>> metric = Kernelized(LFDA(), "auto").fit(*load_iris(return_X_y=True))
    >>> settled(metric).recipe is metric.recipe_
    True
    """
    if isinstance(metric, Kernelized):
        return clone(metric).set_params(recipe=metric.recipe_)
    if isinstance(metric, IdealizedKernel):
        return clone(metric).set_params(C=metric.C_)
    return clone(metric)


class Transduced(ClassifierMixin, BaseEstimator):
    """A transductive learner as a classifier: the points to predict are its unlabelled ones."""

    def fit(self, X: Any, y: Any) -> Transduced:
        """Keep the labelled points."""
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of X, learned from the labelled points and X itself."""
        y, n = np.concatenate([self.y_, np.full(len(X), -1)]), len(self.y_)
        points = np.vstack([self.X_, X])
        model = TransductiveDistance(min(_RANK, n - 1), n_neighbors=20, random_state=0).fit(
            points, y
        )

        def embed(train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
            known = y.copy()
            known[test] = -1
            Z = clone(model).set_params(lam=model.lam_).fit(points, known).embedding_
            return Z[train], Z[test]

        choices = [{"n_neighbors": k} for k in _grid(n)["n_neighbors"]]
        votes = _best_votes(choices, self.y_, embed)
        Z = model.embedding_
        return KNeighborsClassifier(**votes).fit(Z[:n], self.y_).predict(Z[n:])


def _best_votes(
    choices: list[dict[str, Any]], y: np.ndarray, embed: Callable[..., tuple[Any, Any]]
) -> dict[str, Any]:
    """The neighbours that are right most often, in metrics learned without the points judged."""
    correct = np.zeros(len(choices))
    for train, test in folds().split(y, y):
        Z, Z_test = embed(train, test)
        models = [KNeighborsClassifier(**votes).fit(Z, y[train]) for votes in choices]
        correct += [np.sum(model.predict(Z_test) == y[test]) for model in models]
    return choices[int(np.argmax(correct))]


def _grid(n_train: int) -> dict[str, list[Any]]:
    numbers = [k for k in _VOTES if k <= max(1, n_train // 3)]
    return {"n_neighbors": numbers, "weights": ["uniform", "distance"]}


def _votes(n_train: int) -> list[dict[str, Any]]:
    return list(ParameterGrid(_grid(n_train)))


def _tuned_neighbors(problem: Problem) -> GridSearchCV:
    return GridSearchCV(KNeighborsClassifier(), _grid(problem.n_train), cv=folds())


def _tuned_forest(problem: Problem) -> GridSearchCV:
    forest = RandomForestClassifier(200, random_state=0)
    return GridSearchCV(forest, {"max_features": ["sqrt", 0.5]}, cv=folds())


def _classifier(name: str, text: str, build: Callable[[Problem], Any]) -> Method:
    return Method(name, text, build, "no metric learned")


def _linear(name: str, make: Callable[[], Any], text: str = "As it is.") -> Method:
    return Method(name, text, lambda problem: TunedNeighbors(lambda d: make(), _N_PCA), "linear")


def _kernelized(prefix: str, kind: type, kernel: Any, text: str, family: str) -> Method:
    def build(problem: Problem) -> TunedNeighbors:
        return TunedNeighbors(lambda d: Kernelized(kind(), kernel))

    return Method(f"{prefix}{kind.__name__}", text, build, family)


_AUTO = (
    "kernel='auto': the kernel and ridge of the best leave-one-out ridge regression; "
    "space='auto': RidgeKPCA."
)
_ALIGNED = "21 widths aligned, centred."
_METHODS = (
    _classifier("Euclidean", "1-NN on the features.", lambda problem: KNeighborsClassifier(1)),
    _classifier("kNN", "k and weights by 3-fold cross-validation.", _tuned_neighbors),
    _classifier(
        "SVM", "RBF, C and γ from a grid of 40 by 3-fold cross-validation.", lambda p: TunedSVM()
    ),
    _classifier("forest", "200 trees, features per cut by 3-fold cross-validation.", _tuned_forest),
    _classifier(
        "xRFM",
        "xRFM 0.4, the recursive feature machine of its authors, as it comes; a fifth of the "
        "training points chooses its round.",
        lambda problem: peer(PeerXRFM, "xrfm"),
    ),
    _classifier(
        "CatBoost",
        "CatBoost 1.2 as it comes: a thousand trees, at a rate that follows the number of points.",
        lambda problem: peer(PeerCatBoost, "catboost"),
    ),
    *(_linear(kind.__name__, kind) for kind in (LDA, LFDA, DNE, DLA, RCA, NCA, LMNN)),
    Method(
        "LMCA",
        "LMCA of rank 10, or of as many features as there are.",
        lambda problem: TunedNeighbors(lambda d: LMCA(min(_RANK, d)), _N_PCA),
        "linear",
    ),
    *(_linear(kind.__name__, kind) for kind in (MCML, MMC, ITML)),
    _linear("idealized", IdealizedKernel, "Idealized linear kernel, C by cross-validation."),
    _linear("RFM", RFM, "As it is: Laplace kernel, full matrix."),
    *(_kernelized("K", kind, "auto", _AUTO, "kernelized") for kind in (LDA, LFDA, DNE, NCA, LMNN)),
    *(
        _kernelized("AK", kind, KernelAlignment(centered=True), _ALIGNED, "aligned")
        for kind in (DNE, NCA, LMNN)
    ),
    Method(
        "TDL",
        "Transductive distance of rank 10, test points seen without labels, λ automatic, then the "
        "number of votes by 3-fold cross-validation.",
        lambda problem: Transduced(),
        "transductive",
    ),
)

BEYOND = Table(
    name="beyond",
    title="all methods beside tuned classifiers, accuracy",
    problems=(*GROUPS["ten"], *GROUPS["fresh"], *GROUPS["unseen"]),
    methods=_METHODS,
    n_splits=10,
    protocol=(
        "Features standardized by the training points, pixels by one scale; at most 2000 test "
        "points; random splits, seed = number of the split.",
        "Every metric is followed by kNN: k up to 25 and the weights by 3-fold cross-validation of "
        "metric and vote together, as for kNN on the features. What a metric chooses by itself, a "
        "kernel or C, it chooses once, on all training points. All else are the defaults.",
        "Linear learners see at most the 50 leading principal components of the training points; "
        "kernels see all features. MMC, ITML and idealized get their pairs from the labels.",
        "LPP, which takes no labels, and MLKR, which is for numbers, are left out.",
    ),
    smoke=Smoke(("iris",)),
    printed="percent",
    reference="SVM",
)
