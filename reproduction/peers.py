"""Classifiers of other packages, as they come; each needs an environment of its own."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from reproduction.table import MissingMethodError

_HELD_OUT = 5  # one in so many training points, by which xRFM chooses its round


class PeerXRFM(ClassifierMixin, BaseEstimator):
    """xRFM, the recursive feature machine of its authors, with its default parameters."""

    def fit(self, X: Any, y: Any) -> PeerXRFM:
        """Learn from four fifths of the points; the others choose the round."""
        from xrfm import xRFM

        self.classes_, codes = np.unique(y, return_inverse=True)
        order = np.argsort(codes, kind="stable")  # so that every class is in both parts
        first = np.flatnonzero(np.diff(codes[order], prepend=-1))
        held = np.setdiff1d(np.arange(_HELD_OUT - 1, len(y), _HELD_OUT), first)
        rest = np.setdiff1d(np.arange(len(y)), held)
        X = np.asarray(X, dtype=np.float32)
        parts = [a[order[rows]] for rows in (rest, held) for a in (X, codes)]
        self.model_ = xRFM(device="cpu", random_state=0, verbose=False, n_threads=1)
        self.model_.fit(*parts)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of X."""
        said = np.asarray(self.model_.predict(np.asarray(X, dtype=np.float32)))
        return self.classes_[said.reshape(len(X)).astype(int)]


class PeerCatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost with its default parameters, on one thread."""

    def fit(self, X: Any, y: Any) -> PeerCatBoost:
        """Learn a thousand trees."""
        from catboost import CatBoostClassifier

        self.classes_ = np.unique(y)
        quiet = {"verbose": 0, "allow_writing_files": False}
        self.model_ = CatBoostClassifier(random_seed=0, thread_count=1, **quiet).fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of X."""
        return np.asarray(self.model_.predict(X)).reshape(len(X))


def peer(kind: type, package: str) -> Any:
    """A classifier of another package.

    Parameters
    ----------
    kind : type
        Its class.
    package : str
        What must be there.

    Returns
    -------
    estimator
        Not fitted.
    """
    if find_spec(package) is None:
        raise MissingMethodError(f"{package} is not installed: it has an environment of its own.")
    return kind()
