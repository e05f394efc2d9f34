"""Classifiers that several tables compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from kernelmetric.selection import LeaveOneOutRidge
from reproduction.problems import folds


def nearest(metric: Any) -> Pipeline:
    """1-NN in a metric.

    Parameters
    ----------
    metric : estimator
        A metric.

    Returns
    -------
    Pipeline
        A classifier.
    """
    return make_pipeline(metric, KNeighborsClassifier(1))


class TunedSVM(ClassifierMixin, BaseEstimator):
    """RBF-SVM with C and γ from a grid of 40, scaled to the number of features."""

    def fit(self, X: Any, y: Any) -> TunedSVM:
        """Search the grid."""
        grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": 2.0 ** np.arange(-5, 3) / X.shape[1]}
        self.classes_ = np.unique(y)
        self.model_ = GridSearchCV(SVC(), grid, cv=folds()).fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of X."""
        return self.model_.predict(X)


class SelectingRidge(ClassifierMixin, BaseEstimator):
    """The ridge classifier whose leave-one-out error chooses the automatic kernel.

    Attributes
    ----------
    kernel_ : Kernel
        The chosen kernel; its ridge is ``kernel_.ridge_``.
    classes_ : ndarray
        Classes.
    """

    def fit(self, X: Any, y: Any) -> SelectingRidge:
        """Choose the kernel, then solve for the coefficients."""
        self.kernel_ = LeaveOneOutRidge().bind(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self.points_ = X
        K = self.kernel_(X) + 1.0 + self.kernel_.ridge_ * np.eye(len(X))
        self.coefficients_ = linalg.solve(K, Y, assume_a="pos")
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of X."""
        scores = (self.kernel_(X, self.points_) + 1.0) @ self.coefficients_
        return self.classes_[scores.argmax(axis=1)]
