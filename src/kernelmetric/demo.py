"""The comparison of ``kernelmetric demo``: linear learners and their kernel versions, by 1-NN."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from kernelmetric.datasets import make_fig2_circles, make_fig2_hyperbolas
from kernelmetric.evaluation import measured
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernels import Polynomial
from kernelmetric.learners import DNE, LMNN, NCA
from kernelmetric.report import Cell, Panel

N_TEST = 1000  # generated test points: enough to read an accuracy to a percent
N_DRAWN = 400  # of them in a picture: more only hide each other
SEED_STEP = 1000  # neighbouring seeds share no split


class Split(NamedTuple):
    """Training and test points of one split, scaled as the training points say."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Dataset(NamedTuple):
    """A data set, its number of training points, and the kernel of all kernelized methods."""

    name: str
    load: Callable[..., Any]
    n_train: int
    kernel: Any = "auto"

    def split(self, seed: int) -> Split:
        """Points drawn, whose geometry is the point; or real ones, in parts alike and scaled."""
        if self.kernel != "auto":
            rng = np.random.RandomState(seed)
            train, test = (self.load(n, random_state=rng) for n in (self.n_train, N_TEST))
            return Split(*train, *test)
        X, y = self.load(return_X_y=True)
        how: Any = {"train_size": self.n_train, "stratify": y, "random_state": seed}
        X, X_test, y, y_test = train_test_split(X, y, **how)
        scaler = StandardScaler().fit(X)
        return Split(scaler.transform(X), y, scaler.transform(X_test), y_test)


QUADRATIC = Polynomial(degree=2, coef0=0)

DATASETS = (
    Dataset("circles", make_fig2_circles, 40, QUADRATIC),
    Dataset("hyperbolas", make_fig2_hyperbolas, 40, QUADRATIC),
    Dataset("iris", load_iris, 100),
    Dataset("wine", load_wine, 100),
    Dataset("breast cancer", load_breast_cancer, 200),
    Dataset("digits", load_digits, 200),
)

# A name to a function of the data set's kernel; None leaves the points as they are.
METHODS: dict[str, Callable[[Any], Any]] = {
    "Euclidean": lambda kernel: None,
    "NCA": lambda kernel: NCA(),
    "KNCA": lambda kernel: Kernelized(NCA(), kernel=kernel),
    "LMNN": lambda kernel: LMNN(),
    "KLMNN": lambda kernel: Kernelized(LMNN(), kernel=kernel),
    "DNE": lambda kernel: DNE(),
    "KDNE": lambda kernel: Kernelized(DNE(), kernel=kernel),
}


@dataclass(frozen=True)
class Demo:
    """How much of the comparison to run: data sets, methods, splits and the seed."""

    datasets: Sequence[Dataset] = DATASETS
    methods: Mapping[str, Callable[[Any], Any]] = field(default_factory=lambda: METHODS)
    n_splits: int = 15
    seed: int = 0

    @classmethod
    def quick(cls, seed: int = 0) -> Demo:
        """Three small data sets, two splits: seconds."""
        return cls(datasets=DATASETS[:3], n_splits=2, seed=seed)

    @property
    def n_cells(self) -> int:
        """Number of fits."""
        return len(self.datasets) * len(self.methods) * self.n_splits


def run_cells(demo: Demo) -> Iterator[Cell]:
    """Run a comparison, one finished cell at a time, in the order split, data set, method.

    >>> from kernelmetric.demo import DATASETS, Demo, run_cells
    >>> cells = list(run_cells(Demo(datasets=DATASETS[:1], n_splits=1)))
    >>> {cell.method: cell.accuracy > 0.95 for cell in cells if "NCA" in cell.method}
    {'NCA': False, 'KNCA': True}
    """
    for number in range(demo.n_splits):
        for dataset in demo.datasets:
            split = dataset.split(SEED_STEP * demo.seed + number)
            for name, make in demo.methods.items():
                metric = make(dataset.kernel)
                panel, seconds, note = measured(_panel, dataset.name, name, metric, split)
                yield Cell(dataset.name, name, number, panel.accuracy, seconds, note)


def fig2_panels(seed: int = 0) -> list[Panel]:
    """The examples of Fig. 2, three panels each: the data, NCA's map, and its kernel version's."""
    columns = {"Euclidean": "the data", "NCA": "NCA, linear", "KNCA": "NCA, kernelized"}
    panels = []
    for dataset in DATASETS[:2]:
        split = dataset.split(SEED_STEP * seed)
        split = split._replace(X_test=split.X_test[:N_DRAWN], y_test=split.y_test[:N_DRAWN])
        for name, title in columns.items():
            metric = METHODS[name](dataset.kernel)
            panels.append(measured(_panel, dataset.name, title, metric, split).value)
    return panels


def _panel(dataset: str, name: str, metric: Any, split: Split) -> Panel:
    """Embed a split, and classify by the nearest neighbour, or as many as the metric chose."""
    X, y, X_test, y_test = split
    if metric is not None:
        metric = clone(metric)
        X, X_test = metric.fit_transform(X, y), metric.transform(X_test)
    voters = getattr(metric, "n_neighbors_", None) or 1
    y_pred = KNeighborsClassifier(voters).fit(X, y).predict(X_test)
    return Panel(dataset, name, X, y, X_test, y_test, y_pred)
