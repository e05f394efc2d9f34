"""kernelmetric: distances learned from data, linear or through kernels.

One idea runs the library: a kernel turns points into coordinates, a learner turns coordinates
into a metric. ::

    X ──kernel──▶ K ──space──▶ Z (coordinates) ──learner──▶ L ──▶ Z Lᵀ

Euclidean distance in the last coordinates *is* the learned metric.

>>> from sklearn.datasets import load_iris
>>> from kernelmetric import Kernelized, LMNN
>>> X, y = load_iris(return_X_y=True)
>>> metric = Kernelized(LMNN()).fit(X, y)
>>> metric.pairwise_distances(X[:2], X[:3]).shape
(2, 3)

What most tasks take is imported from here. What only specialists need lives in its room:
``kernelmetric.kernels``, ``kernelmetric.transductive``, ``kernelmetric.evaluation`` and so on.
"""

from kernelmetric import _pulse, datasets  # noqa: F401 (first: the rest takes seconds to load)
from kernelmetric._warnings import moved as _moved
from kernelmetric.compute import memory_budget, use_device
from kernelmetric.compute.watch import TimeLimitWarning, progress, time_limit
from kernelmetric.evaluation import (
    PairVerifier,
    check_kernelizable,
    cross_validate_pairs,
    map_at_r,
    recall_at_k,
)
from kernelmetric.graphs import Pairs, Quadruplets, Triplets
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import RBF, Columns, Cosine, Delta, Laplacian, Linear, Polynomial
from kernelmetric.learners import LEARNERS as _LEARNERS
from kernelmetric.learners._registry import *  # noqa: F403
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.retrieval import Adapter
from kernelmetric.selection import AlignedScales, KernelAlignment, LeaveOneOutRidge
from kernelmetric.shipping import compress, load, save, to_faiss, to_onnx
from kernelmetric.spaces import KPCA, KernelTrick, Nystroem, RandomFeatures
from kernelmetric.transductive import TransductiveDistance, TransductiveRegressor

__version__ = "0.1.0"

__all__ = [
    "KPCA",
    "RBF",
    "Adapter",
    "AlignedScales",
    "Columns",
    "Cosine",
    "Delta",
    "KernelAlignment",
    "KernelTrick",
    "Kernelized",
    "KernelizedCV",
    "Laplacian",
    "LeaveOneOutRidge",
    "Linear",
    "MetricClassifier",
    "MetricRegressor",
    "Nystroem",
    "PairVerifier",
    "Pairs",
    "Polynomial",
    "Quadruplets",
    "RandomFeatures",
    "TimeLimitWarning",
    "TransductiveDistance",
    "TransductiveRegressor",
    "Triplets",
    "__version__",
    "check_kernelizable",
    "compress",
    "cross_validate_pairs",
    "datasets",
    "load",
    "map_at_r",
    "memory_budget",
    "progress",
    "recall_at_k",
    "save",
    "time_limit",
    "to_faiss",
    "to_onnx",
    "use_device",
    *(learner.__name__ for learner in _LEARNERS),
]

# What only specialists need, by the room it is imported from. These names were here once, and work
# for one more version.
_MOVED = {
    name: room
    for room, names in {
        "evaluation": "assert_kernelizable compare_tricks pair_counting_accuracy",
        "graphs": "neighbor_graph",
        "kernels": "FunctionKernel PairwiseKernel Precomputed Product Rescaled Sum "
        "as_kernel polynomial_degrees rbf_widths",
        "selection": "AlignedSum",
        "transductive": "GraphLaplacian KernelPenalty NormalizedLaplacian "
        "PaperCost RobustCost WarpedPenalty tangent_distance tangent_neighbors tangent_vectors",
    }.items()
    for name in names.split()
}


__getattr__ = _moved(__name__, _MOVED)


def __dir__() -> list[str]:
    return sorted({"__version__", *(name for name in globals() if name[0] != "_")})
