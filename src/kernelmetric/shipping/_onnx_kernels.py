"""The formulas of kernels in ONNX: one for each class."""

from __future__ import annotations

from functools import partial, reduce, singledispatch
from typing import Any

import numpy as np

from kernelmetric import kernels
from kernelmetric.shipping._allowed import names_of_classes
from kernelmetric.shipping._onnx_graph import Columns, OnnxGraph


def kernel_node(
    kernel: kernels.Kernel, graph: OnnxGraph, x: Columns, anchors: np.ndarray
) -> Columns:
    """Kernel values between points and anchors; only of this library's own classes."""
    if type(kernel) not in names_of_classes():
        raise _unknown(kernel)
    return Columns(_formula(kernel, graph, x, anchors), len(anchors))


def _unknown(kernel: Any) -> ValueError:
    return ValueError(
        f"Got {kernel!r}, but expected a kernel whose formula ONNX can hold: RBF, Delta, "
        "Laplacian, Polynomial, Linear, Cosine, Precomputed, or sums and products of them."
    )


@singledispatch
def _formula(kernel: Any, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    raise _unknown(kernel)


@_formula.register
def _(kernel: kernels.RadialKernel, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    # |a|² + |b|² - 2ab about the mean of the anchors, where large offsets do not cancel
    center = anchors.mean(axis=0, keepdims=True)
    b = anchors - center
    sizes = np.sum(b * b, axis=1)
    spread = max(float(np.sqrt(np.mean(sizes))), np.finfo(np.float64).tiny)
    a = graph.shift(x, center, spread).name
    squares = graph.row_sums(graph.add("Mul", a, a))
    squares = graph.add("Add", squares, graph.constant(sizes[None, :]))
    squares = graph.add("Add", squares, graph.add("MatMul", a, graph.constant(-2.0 * b.T)))
    squares = graph.add("Max", squares, graph.constant(0.0))
    return graph.add("Exp", graph.add("Mul", squares, graph.constant(-kernel._gamma())))


@_formula.register
def _(kernel: kernels.Laplacian, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    rows = graph.add("Unsqueeze", x.name, graph.constant([1], "int64"))
    sizes = graph.add("Abs", graph.add("Sub", rows, graph.constant(anchors[None])))
    sums = graph.add("ReduceSum", sizes, graph.constant([-1], "int64"), keepdims=0)
    return graph.add("Exp", graph.add("Mul", sums, graph.constant(-kernel._gamma())))


@_formula.register
def _(kernel: kernels.Linear, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    return graph.add("MatMul", x.name, graph.constant(anchors.T))


@_formula.register
def _(kernel: kernels.Polynomial, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    degree, gamma, coef0 = kernel._checked(kernel.gamma)
    inner = graph.add("MatMul", x.name, graph.constant(gamma * anchors.T))
    inner = graph.add("Add", inner, graph.constant(coef0)) if coef0 else inner
    return graph.add("Pow", inner, graph.constant(float(degree))) if degree > 1 else inner


@_formula.register
def _(kernel: kernels.Cosine, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    norms = np.linalg.norm(anchors, axis=1, keepdims=True)
    unit = anchors / np.where(norms > 0, norms, 1.0)
    length = graph.add("Sqrt", graph.row_sums(graph.add("Mul", x.name, x.name)))
    least = float(np.finfo(graph.working).tiny)  # a point at the origin stays there
    length = graph.add("Max", length, graph.constant(least))
    return graph.add("Div", graph.add("MatMul", x.name, graph.constant(unit.T)), length)


@_formula.register
def _(kernel: kernels.Precomputed, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    return graph.take(x, anchors).name


@_formula.register
def _(kernel: kernels.Sum, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    terms = [
        graph.times(kernel_node(term, graph, x, anchors), weight).name
        for weight, term in kernel._flat()
    ]
    return reduce(partial(graph.add, "Add"), terms)


@_formula.register
def _(kernel: kernels.Product, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    factors = [kernel_node(factor, graph, x, anchors).name for factor in kernel.kernels]
    return reduce(partial(graph.add, "Mul"), factors)


@_formula.register
def _(kernel: kernels.Rescaled, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    scales = np.asarray(kernel.scales, dtype=np.float64)
    if scales.ndim == 2:
        points = Columns(graph.add("MatMul", x.name, graph.constant(scales.T)), len(scales))
    else:
        points = graph.times(x, scales[None, :])
    return kernel_node(kernel.kernel, graph, points, kernels.rescaled(anchors, scales)).name
