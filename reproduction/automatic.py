"""How good the default is: ``kernel="auto"`` beside classifiers that were tuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import RBF, Delta
from kernelmetric.learners import LMNN
from reproduction.classifiers import SelectingRidge, TunedSVM, nearest
from reproduction.problems import GROUPS, folds
from reproduction.table import Method, Smoke, Table


def _method(name: str, text: str, make: Callable[[], Any]) -> Method:
    return Method(name, text, lambda problem: make())


_METHODS = (
    _method("auto", "LMNN with kernel='auto'.", lambda: nearest(Kernelized(LMNN(), kernel="auto"))),
    _method(
        "selecting ridge",
        "The ridge classifier whose leave-one-out error chooses that kernel.",
        SelectingRidge,
    ),
    _method("Euclidean", "1-NN on the features.", lambda: KNeighborsClassifier(1)),
    _method("SVC", "scikit-learn's defaults.", SVC),
    _method("SVM, grid of 40", "RBF, C and γ by 3-fold cross-validation.", TunedSVM),
    _method(
        "median + 0.1",
        "LMNN with an RBF of median width, and 0.1 on the diagonal of its Gram matrix.",
        lambda: nearest(Kernelized(LMNN(), kernel=RBF() + 0.1 * Delta())),
    ),
)
_CV_WIDTH = _method(
    "CV width",
    "LMNN with an RBF whose width 3-fold cross-validation chose: a minute per split.",
    lambda: KernelizedCV(LMNN(), cv=folds()),
)

#: One table for each group of data sets.
AUTOMATIC = tuple(
    Table(
        name=f"automatic-{group}",
        title="the automatic kernel beside tuned classifiers, accuracy",
        problems=problems,
        methods=(*_METHODS, _CV_WIDTH) if group == "noisy" else _METHODS,
        n_splits=8,
        protocol=(
            "Features standardized by the training points, pixels by one scale; at most 2000 test "
            "points; random splits, seed = number of the split.",
        ),
        smoke=Smoke((problems[-1].name,), n_train=20),
        printed="percent",
        reference="SVM, grid of 40",
    )
    for group, problems in GROUPS.items()
)
