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
"""

from kernelmetric import datasets
from kernelmetric.compute import memory_budget
from kernelmetric.evaluation import (
    PairVerifier,
    assert_kernelizable,
    check_kernelizable,
    compare_tricks,
    cross_validate_pairs,
    map_at_r,
    pair_counting_accuracy,
    recall_at_k,
)
from kernelmetric.graphs import Pairs, neighbor_graph
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import (
    RBF,
    Cosine,
    Delta,
    FunctionKernel,
    Laplacian,
    Linear,
    PairwiseKernel,
    Polynomial,
    Precomputed,
    Product,
    Rescaled,
    Sum,
    as_kernel,
    polynomial_degrees,
    rbf_widths,
)
from kernelmetric.learners import (
    DLA,
    DNE,
    ITML,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    MCML,
    MLKR,
    MMC,
    NCA,
    RCA,
    IdealizedKernel,
)
from kernelmetric.selection import AlignedScales, AlignedSum, KernelAlignment, LeaveOneOutRidge
from kernelmetric.shipping import compress, load, save, to_faiss, to_onnx
from kernelmetric.spaces import KPCA, KernelTrick, Nystroem, RandomFeatures
from kernelmetric.transductive import (
    GraphLaplacian,
    IsomapPenalty,
    KernelPenalty,
    LLEPenalty,
    NormalizedLaplacian,
    PaperCost,
    RobustCost,
    TransductiveDistance,
    WarpedPenalty,
    tangent_distance,
    tangent_neighbors,
    tangent_vectors,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "DLA",
    "DNE",
    "ITML",
    "KPCA",
    "LDA",
    "LFDA",
    "LMCA",
    "LMNN",
    "LPP",
    "MCML",
    "MLKR",
    "MMC",
    "NCA",
    "RBF",
    "RCA",
    "AlignedScales",
    "AlignedSum",
    "Cosine",
    "Delta",
    "FunctionKernel",
    "GraphLaplacian",
    "IdealizedKernel",
    "IsomapPenalty",
    "KernelAlignment",
    "KernelPenalty",
    "KernelTrick",
    "Kernelized",
    "KernelizedCV",
    "LLEPenalty",
    "Laplacian",
    "LeaveOneOutRidge",
    "Linear",
    "NormalizedLaplacian",
    "Nystroem",
    "PairVerifier",
    "Pairs",
    "PairwiseKernel",
    "PaperCost",
    "Polynomial",
    "Precomputed",
    "Product",
    "RandomFeatures",
    "Rescaled",
    "RobustCost",
    "Sum",
    "TransductiveDistance",
    "WarpedPenalty",
    "__version__",
    "as_kernel",
    "assert_kernelizable",
    "check_kernelizable",
    "compare_tricks",
    "compress",
    "cross_validate_pairs",
    "datasets",
    "load",
    "map_at_r",
    "memory_budget",
    "neighbor_graph",
    "pair_counting_accuracy",
    "polynomial_degrees",
    "rbf_widths",
    "recall_at_k",
    "save",
    "tangent_distance",
    "tangent_neighbors",
    "tangent_vectors",
    "to_faiss",
    "to_onnx",
]
