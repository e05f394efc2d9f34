"""Aligned against cross-validated kernels: accuracy, and the time to choose; section 5.1 of 000."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from kernelmetric.evaluation import measured
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import DNE, LMNN, NCA
from kernelmetric.selection import KernelAlignment
from reproduction.classifiers import nearest
from reproduction.problems import GROUPS, Problem, folds, split_of
from reproduction.table import Method, Score, Smoke, Table, accuracy

#: The learners of 000; LMNN to one percent of its objective, for both kinds of kernels.
LEARNERS = {"NCA": NCA(), "LMNN": LMNN(tol=1e-2), "DNE": DNE()}

#: How the kernel is chosen.
CHOICES = {
    "CV": "by 3-fold cross-validation over 21 RBF widths",
    "aligned": "by alignment of the sum of these RBFs, as printed",
    "centred": "by centred alignment of that sum",
}


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


def choose_and_classify(problem: Problem, method: Method, seed: int) -> Score:
    """Accuracy of 1-NN on the test points, and the seconds that the choice of the kernel took.

    Parameters
    ----------
    problem : Problem
        The data set.
    method : Method
        Builds a learner and one of ``CHOICES``.
    seed : int
        Number of the split.

    Returns
    -------
    Score
        Accuracy and seconds.
    """
    learner, choice = method.build(problem)
    split = split_of(problem, seed)
    chosen = measured(chosen_kernel, choice, learner, split.X_train, split.y_train)
    return Score(accuracy(nearest(Kernelized(learner, chosen.value)), split), chosen.seconds)


def _method(name: str, choice: str) -> Method:
    text = f"{name}, its kernel chosen {CHOICES[choice]}."
    return Method(f"{name}, {choice}", text, lambda problem: (clone(LEARNERS[name]), choice), name)


ALIGNED = Table(
    name="aligned",
    title="aligned beside cross-validated kernels, accuracy of 1-NN and seconds to choose",
    problems=tuple(problem for problem in GROUPS["ten"] if problem.scaling == "features"),
    methods=tuple(_method(name, choice) for name in LEARNERS for choice in CHOICES),
    n_splits=10,
    protocol=(
        "The nine UCI sets of 000 with its numbers of training points, features standardized by "
        "them; at most 2000 test points; random splits, seed = number of the split.",
        "LMNN to one percent of its objective. Seconds are those of the choice alone.",
    ),
    smoke=Smoke(("iris",), n_train=20),
    evaluate=choose_and_classify,
    printed="percent",
    against={f"{n}, {c}": f"{n}, CV" for n in LEARNERS for c in CHOICES if c != "CV"},
    reference="LMNN, CV",
)
