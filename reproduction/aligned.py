"""Aligned against cross-validated kernels: accuracy, and the time to choose; section 5.1 of 000."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelmetric.evaluation import measured
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import DNE, LMNN, NCA
from kernelmetric.report import Cell
from kernelmetric.selection import KernelAlignment
from reproduction.cells import resumed_cells
from reproduction.kernelization import nearest
from reproduction.problems import GROUPS, Problem, folds, split_of

#: The nine UCI sets of 000, with its numbers of training points.
UCI = tuple(problem for problem in GROUPS["ten"] if problem.scaling == "features")

#: The learners of 000; LMNN to one percent of its objective, for both kinds of kernels.
LEARNERS = {"NCA": NCA(), "LMNN": LMNN(tol=1e-2), "DNE": DNE()}

#: How the kernel is chosen: by 3-fold cross-validation over the papers' 21 widths, or by
#: alignment of their sum, as in the papers or centred.
CHOICES = ("CV", "aligned", "centred")


def chosen_kernel(choice: str, learner: Any, X: np.ndarray, y: np.ndarray) -> Kernel:
    """The kernel for a learner and its training points.

    Parameters
    ----------
    choice : str
        One of ``CHOICES``.
    learner : estimator
        The learner, which alignment does not look at.
    X, y : ndarray
        Training points and labels.

    Returns
    -------
    Kernel
        Bound, except for a width, which its number of features binds.
    """
    if choice == "CV":
        return KernelizedCV(learner, cv=folds(), refit=False).fit(X, y).best_params_["kernel"]
    return KernelAlignment(centered=choice == "centred").bind(X, y)


def aligned_cells(
    problems: Iterable[Problem], learners: Iterable[str], n_splits: int, out: Path
) -> Iterator[Cell]:
    """Run what is not in the file yet, append each finished cell to it, and yield it.

    Parameters
    ----------
    problems : iterable of Problem
        Data sets.
    learners : iterable of str
        Names in ``LEARNERS``.
    n_splits : int
        Splits of each data set.
    out : Path
        A file of JSON lines; made if missing.

    Returns
    -------
    iterator of Cell
        Those run now: method "LMNN, CV" and so on, accuracy of 1-NN on the test points, and the
        seconds that the choice of the kernel took.
    """
    methods = [f"{name}, {choice}" for name in learners for choice in CHOICES]
    return resumed_cells(problems, methods, n_splits, out, _run)


def _run(problem: Problem, method: str, seed: int) -> Cell:
    name, choice = method.split(", ")
    X, y, X_test, y_test = split_of(problem, seed)
    chosen = measured(chosen_kernel, choice, clone(LEARNERS[name]), X, y)
    model = nearest(Kernelized(clone(LEARNERS[name]), chosen.value))
    found = measured(lambda: model.fit(X, y).score(X_test, y_test))
    return Cell(problem.name, method, seed, float(found.value), chosen.seconds)
