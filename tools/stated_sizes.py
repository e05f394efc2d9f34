"""What the documentation says about sizes, seconds and memory; ``check_sizes.py`` checks it.

``RUNS`` are recommendations with what they take, ``FACTS`` numbers of rows at which something
changes, ``ELSEWHERE`` what needs another machine, other data or minutes, with its command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
TWICE = 2.0
LEAST_SECONDS = 0.5  # less is not worth an alarm
LEAST_MEGABYTES = 100.0
Work = Callable[[int], Callable[[], Any]]


@dataclass(frozen=True)
class Run:
    """Work that a page recommends: ``work(n)`` prepares it and returns what is timed."""

    page: str
    words: str
    work: Work
    stated: int  # rows
    seconds: float | None = None
    megabytes: float | None = None
    rows: int | None = None  # that are run, where the stated ones take long
    growth: float = 1.0  # of the seconds: a power of the rows
    growth_of_memory: float = 1.0
    threads: int = 2

    def size(self, full: bool) -> int:
        """Rows that are run."""
        return self.stated if full or self.rows is None else self.rows

    def limit(self, full: bool) -> tuple[float, float]:
        """Seconds and megabytes that a run may take."""
        part = self.size(full) / self.stated
        seconds = np.inf if self.seconds is None else self.seconds * part**self.growth
        memory = np.inf if self.megabytes is None else self.megabytes * part**self.growth_of_memory
        return max(TWICE * seconds, LEAST_SECONDS), max(TWICE * memory, LEAST_MEGABYTES)


def _benchmark(name: str) -> Any:
    """A module of the folder of benchmarks."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    return import_module(name)


def table(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of five overlapping classes in 30 columns, in float32."""
    return _benchmark("size").drawn(n, 1)


def default_metric(n: int) -> Callable[[], Any]:
    """A fit of ``Kernelized(LMNN())``."""
    from kernelmetric import LMNN, Kernelized

    X, y = table(n)
    return lambda: Kernelized(LMNN()).fit(X, y)


def classifier(n: int) -> Callable[[], Any]:
    """A fit of ``MetricClassifier()``."""
    from kernelmetric import MetricClassifier

    X, y = table(n)
    return lambda: MetricClassifier().fit(X, y)


def time_estimate(n: int) -> Callable[[], Any]:
    """The first estimate of a time, which measures the machine."""
    from kernelmetric import LMNN, Kernelized

    return lambda: Kernelized(LMNN()).estimate_time(n, 30)


def alignment(n: int) -> Callable[[], Any]:
    """The alignment of the 21 usual kernels."""
    from kernelmetric import KernelAlignment

    X = np.random.default_rng(0).normal(size=(n, 50)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return lambda: KernelAlignment(centered=True).bind(X, y)


def aligned_scales(n: int) -> Callable[[], Any]:
    """Scales of 36 features."""
    from kernelmetric import AlignedScales

    X = np.random.default_rng(0).normal(size=(n, 36))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return lambda: AlignedScales().bind(X, y)


def lmnn_on_digits(n: int) -> Callable[[], Any]:
    """LMNN to the objective that metric-learn's reaches."""
    from sklearn.datasets import load_digits

    from kernelmetric import LMNN

    X, y = load_digits(return_X_y=True)
    return lambda: LMNN(tol=0.2).fit(X[:n] / 16, y[:n])


def nearest_texts(n: int) -> Callable[[], Any]:
    """Candidates of two tables with ten fields."""
    from kernelmetric.linkage import NearestText, candidate_pairs

    left, right = _benchmark("linkage").people(n)
    return lambda: candidate_pairs(left, right, [NearestText(n_neighbors=5)])


def minibatches(n: int) -> Callable[[], Any]:
    """Ten passes of NCA over batches."""
    from kernelmetric import NCA

    X, y = table(n)
    return lambda: NCA(5, solver="minibatch", max_iter=10, random_state=0).fit(X, y)


def space(name: str) -> Work:
    """LDA on the coordinates of a space."""

    def work(n: int) -> Callable[[], Any]:
        import kernelmetric as km

        spaces = {
            "Nystroem": km.Nystroem(500, random_state=0),
            "RandomFeatures": km.RandomFeatures(500, random_state=0),
            "KPCA": km.KPCA(50, random_state=0),
        }
        X, y = table(n)
        metric = km.Kernelized(km.LDA(), kernel="rbf", space=spaces[name])
        return lambda: metric.fit(X, y)

    return work


def warped_penalty(n: int) -> Callable[[], Any]:
    """Few labels, with a function for new points."""
    from kernelmetric import Nystroem, TransductiveDistance
    from kernelmetric.transductive import WarpedPenalty

    X, y = table(n)
    few = np.where(np.arange(n) % 10 == 0, y, -1)
    penalty = WarpedPenalty(space=Nystroem(1000, n_components=256, random_state=0))
    semi = TransductiveDistance(10, 100.0, n_neighbors=10, penalty=penalty, random_state=0)
    return lambda: semi.fit(X, few)


COST, CHOOSE, LEARNERS = (f"docs/guide/{name}.md" for name in ("cost", "choose", "learners"))
AUTOMATIC, SPACES = "docs/guide/automatic.md", "docs/guide/spaces.md"
TRANSDUCTIVE, LINKAGE = "docs/guide/transductive.md", "docs/measurements/linkage.md"

RUNS = [
    Run("README.md", "about a second for 1,000 points", default_metric, 1_000, 1.0),
    Run("README.md", "a few seconds for 4,000", default_metric, 4_000, 5.0),
    Run(CHOOSE, "| up to 4,000 | `Kernelized(LMNN())` | seconds |", default_metric, 4_000, 5.0),
    Run(
        COST,
        "| up to 100,000 | the same: half a minute on two cores, less than 1 GB",
        default_metric,
        stated=100_000,
        seconds=30,
        megabytes=1_000,
        rows=20_000,
        growth=0.7,
        growth_of_memory=0.3,
    ),
    Run(
        COST,
        "a fit of 12,000 rows takes 0.9 GB",
        default_metric,
        stated=12_000,
        seconds=30,
        megabytes=900,
        rows=5_000,
        growth=2.0,
        growth_of_memory=2.0,
    ),
    Run(
        COST,
        "| up to a million | the same: about four minutes, some 2 GB",
        default_metric,
        stated=1_000_000,
        seconds=240,
        megabytes=2_000,
        rows=15_000,
        growth=0.7,  # a sample of 200,000 rows is learned from, on more landmarks
        growth_of_memory=0.3,
    ),
    Run(
        "docs/guide/predict.md",
        "Above 500 points a fit takes little more than one fit of the metric",
        classifier,
        stated=1_000,
        seconds=1.0,
    ),
    Run(COST, "for about half a second", time_estimate, 100_000, 0.5),
    Run(
        "docs/guide/alignment.md",
        "21 kernels on 20,000 points in float32 take 37 seconds on two cores",
        alignment,
        stated=20_000,
        seconds=37,
        megabytes=240,
        rows=4_000,
        growth=2.0,
    ),
    Run(
        "docs/guide/multimodal.md",
        "0.2 s on one core for 200 points with 36\nfeatures",
        aligned_scales,
        stated=200,
        seconds=0.2,
        threads=1,
    ),
    Run(
        "docs/guide/multimodal.md",
        "and 2 s for 1,000 points",
        aligned_scales,
        stated=1_000,
        seconds=2.0,
        threads=1,
    ),
    Run(
        "docs/guide/from_metric_learn.md",
        "On 1,347 digits LMNN reaches metric-learn's objective in 0.8 s",
        lmnn_on_digits,
        stated=1_347,
        seconds=0.8,
    ),
    Run(
        LINKAGE,
        "`NearestText` takes about 0.2 milliseconds of one core for each record",
        nearest_texts,
        stated=20_000,
        seconds=4.0,
        rows=5_000,
        threads=1,
    ),
    Run(
        "docs/guide/from_scikit_learn.md",
        "for 20,000 points and more",
        minibatches,
        stated=20_000,
    ),
    Run(SPACES, "| `Nystroem(m)` | n is large", space("Nystroem"), stated=20_000),
    Run(SPACES, "| `RandomFeatures(m)` | n is large", space("RandomFeatures"), stated=20_000),
    Run(SPACES, "| `KPCA(k)`, `KPCA(0.95)` | speed matters", space("KPCA"), stated=4_000),
    Run(
        TRANSDUCTIVE,
        "use `WarpedPenalty(space=Nystroem(1000, n_components=256))`",
        warped_penalty,
        stated=10_001,
        rows=2_000,
    ),
]


@dataclass(frozen=True)
class Fact:
    """A number of rows at which something changes: ``found()`` must be ``said``."""

    page: str
    words: str
    said: Any
    found: Callable[[], Any]


def constant(path: str) -> Callable[[], Any]:
    """A name in a module of the library, by ``room.module:NAME``."""

    def found() -> Any:
        module, _, name = path.partition(":")
        value: Any = import_module(f"kernelmetric.{module}")
        for part in name.split("."):
            value = getattr(value, part)
        return value

    return found


def chosen_space(n: int, paired: bool = False) -> Callable[[], str]:
    """The automatic space of so many points, as it prints itself."""

    def found() -> str:
        from kernelmetric.spaces import automatic_space

        return repr(automatic_space(n, paired=paired))

    return found


_RIDGE = "selection._ridge_kpca"
FACTS = [
    Fact(SPACES, "Up to 2,000 it is full-rank `KPCA`", "KPCA()", chosen_space(2_000)),
    Fact(SPACES, "Up to 10,000 it is", "KPCA(n_components=256)", chosen_space(10_000)),
    Fact(
        SPACES,
        "Beyond that it is 1,000 landmarks, reduced to rank 256",
        "Nystroem(n_components=256, n_landmarks=1000)",
        chosen_space(10_001),
    ),
    Fact(SPACES, "101 to 2,000 points, it is `PairKPCA`", "PairKPCA()", chosen_space(101, True)),
    Fact(SPACES, "to 2,000 points | $n^2", 2_000, constant(f"{_RIDGE}:DOUBLE_ROWS")),
    Fact(SPACES, "to 12,000 points | the same", 12_000, constant(f"{_RIDGE}:HELD_ROWS")),
    Fact(AUTOMATIC, "solved in float64, up to 12,000", 12_000, constant(f"{_RIDGE}:HELD_ROWS")),
    Fact(AUTOMATIC, "stand for more than 4,000", 4_000, constant(f"{_RIDGE}:ALL_ROWS")),
    Fact(
        AUTOMATIC,
        "twice as many for eight times the rows",
        (2_000, 4_000),
        lambda: tuple(map(constant(f"{_RIDGE}:RidgeKPCA")()().most_landmarks, (100_000, 800_001))),
    ),
    Fact(AUTOMATIC, "a sample of 200,000 rows", 200_000, constant(f"{_RIDGE}:ENOUGH_ROWS")),
    Fact(
        AUTOMATIC,
        "`NCA` learns from at most 3,000 rows",
        3_000,
        constant("learners:NCA._enough_rows"),
    ),
    Fact(AUTOMATIC, "`LMNN` from at most 5,000", 5_000, constant("learners:LMNN._enough_rows")),
    Fact(
        COST,
        "Up to 12,000 rows the automatic space is exact",
        12_000,
        constant(f"{_RIDGE}:HELD_ROWS"),
    ),
    Fact(
        LEARNERS,
        "From 20,000 points on, a fit of 4,000 of them is the start",
        (20_000, 4_000),
        lambda: constant("learners._nca:_COARSE")()[:2],
    ),
    Fact(
        LEARNERS,
        "It is on by default from 5,000 points on",
        5_000,
        constant("learners._nca:_EARLY_FROM"),
    ),
    Fact(
        "docs/guide/features.md",
        "`max_samples` rows, 1,000 by default",
        1_000,
        lambda: constant("learners:RFM")()().max_samples,
    ),
    Fact(
        "docs/guide/multimodal.md",
        "It looks at no more than 1,000 rows",
        1_000,
        lambda: constant("selection:AlignedScales")()().max_samples,
    ),
    Fact(
        "docs/guide/command_line.md",
        "With more than 5,000 rows the tuned alternatives are left out",
        5_000,
        constant("cli._study:MOST_ROWS_FOR_SVM"),
    ),
    Fact(
        "docs/guide/command_line.md",
        "With more than 100 classes the SVM is left out",
        100,
        constant("cli._study:MOST_CLASSES_FOR_SVM"),
    ),
    Fact(
        TRANSDUCTIVE,
        "up to 1,000 points, full graphs",
        1_000,
        constant("transductive._choice:FULL"),
    ),
    Fact(
        TRANSDUCTIVE,
        "Up to a thousand points LAPACK solves the problem",
        1_000,
        constant("transductive._learn:_DENSE"),
    ),
    Fact(
        "docs/guide/predict.md",
        "hold 1,000 points out",
        1_000,
        constant("prediction._cross_fit:ENOUGH"),
    ),
]

ELSEWHERE = {
    ("docs/guide/shipping.md", "`transform` takes an eighth of the time"): "benchmarks/shipping.py",
    ("docs/guide/serving.md", "One row takes 16 ms"): "examples/service/clients.py",
    ("README.md", "gains 1.3 to 1.9 times from a second worker"): "benchmarks/many_machines.py",
    (COST, "In a container of 512 MB"): "benchmarks/memory.py --limit 512MB --only KPCA",
    (COST, "| measured exponent of n |"): "make bench",
    ("docs/guide/gpu.md", "a step on 60,000 points takes 0.014 s"): "benchmarks/gpu.py",
    ("docs/guide/many_machines.md", "on workers of 2 GB each"): "benchmarks/many_machines_large.py",
    (LINKAGE, "A million beside a million"): "benchmarks/linkage.py million",
    (LINKAGE, "1,000,000 records"): "benchmarks/linkage_size.py --rows 1000000",
    ("docs/default.md", "# The default beside a grid-searched SVM"): "benchmarks/default.py",
    ("docs/measurements/size.md", "# Any size"): "benchmarks/size.py",
    ("docs/benchmarks.md", "# Benchmarks"): "make bench",
}
