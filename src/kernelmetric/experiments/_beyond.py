"""A table that no paper has: the methods of the library beside classifiers that were tuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from kernelmetric.experiments._defaults import CLASSIFIERS
from kernelmetric.experiments._kernelization import nearest
from kernelmetric.experiments._problems import GROUPS, Problem
from kernelmetric.experiments._table import Method, Smoke, Table
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernels import KernelAlignment
from kernelmetric.learners import DNE, LMCA, LMNN, MMC, NCA, IdealizedKernel
from kernelmetric.transductive import TransductiveDistance


class Transduced(ClassifierMixin, BaseEstimator):
    """A transductive learner as a classifier: the points to predict are its unlabelled ones."""

    def fit(self, X: Any, y: Any) -> Transduced:
        """Keep the labelled points."""
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of X, learned from the labelled points and X itself."""
        known = np.concatenate([self.y_, np.full(len(X), -1)])
        model = TransductiveDistance(min(10, len(self.y_) - 1), random_state=0)
        return model.fit(np.vstack([self.X_, X]), known).transduction_[len(self.y_) :]


def _folds() -> StratifiedKFold:
    return StratifiedKFold(3, shuffle=True, random_state=0)


def _tuned_neighbors(problem: Problem) -> GridSearchCV:
    largest = max(1, problem.n_train // 3)
    grid = {
        "n_neighbors": [k for k in (1, 3, 5, 9, 15, 25) if k <= largest],
        "weights": ["uniform", "distance"],
    }
    return GridSearchCV(KNeighborsClassifier(), grid, cv=_folds())


def _tuned_forest(problem: Problem) -> GridSearchCV:
    forest = RandomForestClassifier(200, random_state=0)
    return GridSearchCV(forest, {"max_features": ["sqrt", 0.5]}, cv=_folds())


class TunedSVM(ClassifierMixin, BaseEstimator):
    """RBF-SVM with C and γ from a grid of 40, scaled to the number of features."""

    def fit(self, X: Any, y: Any) -> TunedSVM:
        """Search the grid."""
        self.classes_ = np.unique(y)
        self.model_ = CLASSIFIERS["SVM, grid of 40"](X.shape[1]).fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of X."""
        return self.model_.predict(X)


def _metric(make: Callable[[], Any]) -> Callable[[Problem], Any]:
    def build(problem: Problem) -> Pipeline:
        model = nearest(make())
        model.steps.insert(0, ("pca", PCA()))
        return model

    return build


class LowRank(ClassifierMixin, BaseEstimator):
    """LMCA of rank 10, or of as many features as there are, and 1-NN."""

    def fit(self, X: Any, y: Any) -> LowRank:
        """Learn the map."""
        self.classes_ = np.unique(y)
        self.model_ = make_pipeline(PCA(), nearest(LMCA(min(10, *X.shape)))).fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of X."""
        return self.model_.predict(X)


_AUTO = "kernel='auto', the kernel and ridge of the best leave-one-out ridge regression; 1-NN."
_METHODS = (
    Method("Euclidean", "1-NN on the features.", lambda problem: KNeighborsClassifier(1)),
    Method("kNN", "k and weights by 3-fold cross-validation.", _tuned_neighbors),
    Method(
        "SVM", "RBF, C and γ from a grid of 40 by 3-fold cross-validation.", lambda p: TunedSVM()
    ),
    Method("forest", "200 trees, features per cut by 3-fold cross-validation.", _tuned_forest),
    Method("NCA", "NCA; 1-NN.", _metric(NCA)),
    Method("LMNN", "LMNN; 1-NN.", _metric(LMNN)),
    Method("LMCA", "LMCA of rank 10; 1-NN.", lambda problem: LowRank()),
    Method("DNE", "DNE; 1-NN.", _metric(DNE)),
    Method("MMC", "Xing's metric from labels; 1-NN.", _metric(MMC)),
    Method("KNCA", _AUTO, _metric(lambda: Kernelized(NCA()))),
    Method("KLMNN", _AUTO, _metric(lambda: Kernelized(LMNN()))),
    Method("KDNE", _AUTO, _metric(lambda: Kernelized(DNE()))),
    Method(
        "AKLMNN",
        "LMNN with 21 widths aligned, centred; 1-NN.",
        _metric(lambda: Kernelized(LMNN(), KernelAlignment(centered=True))),
    ),
    Method(
        "idealized",
        "Idealized kernel from labels, C by cross-validation; 1-NN.",
        _metric(IdealizedKernel),
    ),
    Method(
        "TDL", "Transductive distance, all points seen, λ automatic; 1-NN.", lambda p: Transduced()
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
        "points; random splits, seed = number of the split. Learners of metrics see the principal "
        "components of the training points, all of them: fewer numbers where features are many.",
    ),
    smoke=Smoke(("iris", "moons")),
)
