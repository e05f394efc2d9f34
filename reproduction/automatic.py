"""How good the default is: ``kernel="auto"`` beside classifiers that were tuned."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from kernelmetric.evaluation import measured
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import RBF, Delta
from kernelmetric.learners import LMNN
from kernelmetric.report import Cell
from kernelmetric.selection import LeaveOneOutRidge
from reproduction.cells import resumed_cells
from reproduction.kernelization import nearest
from reproduction.problems import Problem, folds, split_of


class SelectingRidge(ClassifierMixin, BaseEstimator):
    """The ridge classifier whose leave-one-out error chooses the automatic kernel.

    Attributes
    ----------
    kernel_ : Kernel
        The chosen kernel with its ridge.
    classes_ : ndarray
        Classes.
    """

    def fit(self, X: Any, y: Any) -> SelectingRidge:
        """Choose the kernel, then solve for the coefficients.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        SelectingRidge
            The fitted classifier.
        """
        self.kernel_ = LeaveOneOutRidge().bind(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self.points_ = X
        # Repeated points share their ridge, so the matrix may be singular.
        self.coefficients_ = linalg.pinvh(self.kernel_(X) + 1.0) @ Y
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of X.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        scores = (self.kernel_(X, self.points_) + 1.0) @ self.coefficients_
        return self.classes_[scores.argmax(axis=1)]


def _searched_svm(n_features: int) -> GridSearchCV:
    grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": 2.0 ** np.arange(-5, 3) / n_features}
    return GridSearchCV(SVC(), grid, cv=folds())


#: Each a function of the number of features. "CV width" takes a minute per split.
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "auto": lambda d: nearest(Kernelized(LMNN(), kernel="auto")),
    "selecting ridge": lambda d: SelectingRidge(),
    "Euclidean": lambda d: KNeighborsClassifier(1),
    "SVC": lambda d: SVC(),
    "SVM, grid of 40": _searched_svm,
    "median + 0.1": lambda d: nearest(Kernelized(LMNN(), kernel=RBF() + 0.1 * Delta())),
    "CV width": lambda d: KernelizedCV(LMNN(), cv=folds()),
}


def _run(problem: Problem, method: str, seed: int) -> Cell:
    split = split_of(problem, seed)
    model = CLASSIFIERS[method](split.X_train.shape[1])
    found = measured(
        lambda: model.fit(split.X_train, split.y_train).score(split.X_test, split.y_test)
    )
    return Cell(problem.name, method, seed, float(found.value), found.seconds)


#: Accuracies of ``CLASSIFIERS``, as :func:`resumed_cells` runs and keeps them:
#: ``default_cells(problems, methods, n_splits, out)``.
default_cells = partial(resumed_cells, run=_run)
