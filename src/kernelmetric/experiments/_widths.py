"""Accuracies with a cross-validated kernel width: the protocol of section 5.1 of 000."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from kernelmetric.kernelized import KernelizedCV


def width_accuracies(
    learner: Any,
    X: np.ndarray,
    y: np.ndarray,
    *,
    n_train: int,
    n_splits: int,
    cv: int = 3,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Test accuracies of 1-NN in a kernelized metric whose width was chosen by cross-validation.

    Parameters
    ----------
    learner : estimator
        The linear learner to kernelize.
    X, y : ndarray
        The whole data set; each split is standardized by its training part.
    n_train : int
        Training points in each split; the others are the test set.
    n_splits : int
        Random splits; split s is drawn with seed s.
    cv : int, default=3
        Folds inside the training set.
    n_jobs : int, default=None
        Splits to run at once.

    Returns
    -------
    ndarray of shape (n_splits,)
        Accuracies.
    """
    tasks = (delayed(_one_split)(learner, X, y, n_train, seed, cv) for seed in range(n_splits))
    return np.array(Parallel(n_jobs=n_jobs)(tasks))


def _one_split(learner: Any, X: Any, y: Any, n_train: int, seed: int, cv: int) -> float:
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    scale = StandardScaler().fit(X[train])
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    search = KernelizedCV(clone(learner), cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the widest kernels, never chosen
        search.fit(scale.transform(X[train]), y[train])
    return float(search.score(scale.transform(X[test]), y[test]))
