"""All learners, linear and kernelized, each with its defaults, on a few real sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric.demo import Split
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import DLA, DNE, ITML, LDA, LFDA, LMNN, LPP, MCML, MLKR, NCA, RCA
from reproduction.classifiers import nearest
from reproduction.multimodal import PROBLEMS, later_split
from reproduction.problems import Problem
from reproduction.table import Method, Smoke, Table, accuracy

_LEARNERS = (LDA(), LFDA(), LPP(), DLA(), RCA(), ITML(), MCML(), DNE(), LMNN(), NCA())
_REGS = [0.0, 1.0, 10.0]


class Diabetes(Problem):
    """442 patients; the target is a number."""

    def split(self, seed: int) -> Split:
        """Training and test points, both standardized by the training points."""
        X, y = load_diabetes(return_X_y=True)
        order = np.random.RandomState(seed).permutation(len(y))[: self.n_train + self.n_test]
        train, test = order[: self.n_train], order[self.n_train :]
        X = StandardScaler().fit(X[train]).transform(X)
        return Split(X[train], y[train], X[test], y[test])


def _classifiers() -> tuple[Method, ...]:
    found = [Method("Euclidean", "1-NN on the features.", lambda problem: KNeighborsClassifier(1))]
    for prefix, text in (("", "As it is."), ("kernel ", "With kernel='auto'.")):
        for learner in _LEARNERS:

            def build(problem: Problem, learner: Any = learner, prefix: str = prefix) -> Any:
                metric = clone(learner)
                return nearest(Kernelized(metric, kernel="auto") if prefix else metric)

            found.append(Method(f"{prefix}{type(learner).__name__}", text, build))
    return tuple(found)


def _regressor(kernelized: bool, searched: bool) -> Callable[[Problem], Any]:
    def build(problem: Problem) -> Any:
        metric = Kernelized(MLKR(), kernel="auto") if kernelized else MLKR()
        model = make_pipeline(metric, KNeighborsRegressor(10))
        if not searched:
            return model
        name = "kernelized__learner__reg" if kernelized else "mlkr__reg"
        return GridSearchCV(model, {name: _REGS}, cv=3)

    return build


def evaluate(problem: Problem, method: Method, seed: int) -> float:
    """Accuracy, or R², on a later split."""
    return accuracy(method.build(problem), later_split(problem, seed))


_SPLITS = "Features standardized by the training points; random splits, seed = 100 + its number."
_KERNEL = "With kernel='auto'"
_REG = "the regularizer by 3-fold cross-validation"

LEARNERS = Table(
    name="learners",
    title="all learners, linear and kernelized, accuracy of 1-NN",
    problems=tuple(p for p in PROBLEMS["uci"] if p.name in ("wine", "ionosphere", "sonar")),
    methods=_classifiers(),
    n_splits=10,
    protocol=(_SPLITS,),
    smoke=Smoke(("wine",)),
    evaluate=evaluate,
    printed="percent",
    reference="Euclidean",
)

REGRESSION = Table(
    name="learners-regression",
    title="MLKR, linear and kernelized, R² of ten neighbours",
    problems=(
        Diabetes("diabetes", 300, lambda n, rng: load_diabetes(return_X_y=True), n_test=142),
    ),
    methods=(
        Method("Euclidean", "Neighbours by the features.", lambda p: KNeighborsRegressor(10)),
        Method("MLKR", "As it is.", _regressor(False, False)),
        Method("kernel MLKR", f"{_KERNEL}.", _regressor(True, False)),
        Method("MLKR, reg by CV", f"As it is, {_REG}.", _regressor(False, True)),
        Method("kernel MLKR, reg by CV", f"{_KERNEL}, {_REG}.", _regressor(True, True)),
    ),
    n_splits=10,
    protocol=(_SPLITS,),
    smoke=Smoke(("diabetes",)),
    evaluate=evaluate,
    printed="percent",
    reference="Euclidean",
)
