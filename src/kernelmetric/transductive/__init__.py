"""Few labels, many points: labels spread over a graph, or one eigenproblem blends both.

By eigenvectors, :class:`TransductiveDistance` minimises ``Tr Xᵀ(C' + λP)X``. The cost C is a graph
made from labels or pairs, literally as in the paper (:class:`PaperCost`) or bounded
(:class:`RobustCost`); the penalty P is a Laplacian, the inverse of a kernel, or both (Theorem 4)::

    X ──prior──▶ graph W ──penalty──▶ P ─┐
    y, pairs ──cost──▶ C ──gram_form──▶ C' ─┴─solve──▶ embedding_ ──▶ transform(X_new)

    _costs.py         C, and Proposition 3
    _penalties.py     P of a graph or a kernel, Theorem 4, Lemma 5
    _choice.py        the graph, the dimension and λ by hidden labels
    _given.py         labels, pairs, weights, prior metric and graph, checked
    _learn.py         one fit: choose, then solve problem (3), or (7) in the range of a kernel
    _spread.py        by diffusion instead: the graph, λ and probabilities by hidden labels
    _diffusion.py     the equations of a graph that labels pull at, and how its parts are joined
    _sizes.py         classes of known sizes
    _numbers.py       numbers instead of classes, with intervals
    _classifying.py   classes of new points, labels that come later, and which to ask for
    _shares.py        probabilities by distance
    _tangent.py       tangent distance, a prior geometry for images
"""

from kernelmetric.transductive._costs import PaperCost, RobustCost, bounded, gram_form
from kernelmetric.transductive._numbers import TransductiveRegressor
from kernelmetric.transductive._penalties import (
    Geometry,
    GraphLaplacian,
    KernelPenalty,
    NormalizedLaplacian,
    WarpedPenalty,
)
from kernelmetric.transductive._tangent import (
    TANGENTS,
    tangent_distance,
    tangent_neighbors,
    tangent_vectors,
)
from kernelmetric.transductive._transductive import TransductiveDistance

__all__ = [
    "TANGENTS",
    "Geometry",
    "GraphLaplacian",
    "KernelPenalty",
    "NormalizedLaplacian",
    "PaperCost",
    "RobustCost",
    "TransductiveDistance",
    "TransductiveRegressor",
    "WarpedPenalty",
    "bounded",
    "gram_form",
    "tangent_distance",
    "tangent_neighbors",
    "tangent_vectors",
]
