"""A fitted metric as an ONNX model."""

from __future__ import annotations

import hashlib
from functools import singledispatch
from typing import Any

import numpy as np

from kernelmetric.kernels import (
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    RadialKernel,
    Rescaled,
    Sum,
)
from kernelmetric.shipping._extras import library_version, require
from kernelmetric.shipping._maps import Affine, KernelValues, MetricMap, Waves, metric_map

OPSET = 17
IR_VERSION = 8  # what came with this opset: newer ones are refused by older runtimes
_DTYPES = ("float32", "float64")
_MOST_BYTES = 2**31 - 2**20  # a protocol buffer holds less than 2 GiB


def to_onnx(metric: Any, *, dtype: str = "float32", precision: str = "float64") -> Any:
    """A fitted metric as an ONNX model, from points to learned coordinates.

    The model takes ``X`` of shape (n, n_features), for any n, and gives ``Z`` of shape
    (n, n_components), in which Euclidean distance is the learned one. Opset 17, of the standard
    operators only.

    Parameters
    ----------
    metric : fitted metric
        A linear learner; a metric with a kernel (RBF, Delta, Laplacian, Polynomial, Linear,
        Cosine, Precomputed, their sums, products and rescalings, so aligned and automatic kernels
        too) in any space; or a pipeline that ends in one, after steps such as StandardScaler or
        PCA.
    dtype : {'float32', 'float64'}, default='float32'
        Of X and Z.
    precision : {'float64', 'float32'}, default='float64'
        Of the arithmetic between them. 'float32' makes a model of half the size for devices
        without doubles; the small eigenvalues of a full-rank space then cost digits.

    Returns
    -------
    onnx.ModelProto
        Checked by ``onnx.checker``. ``model.SerializeToString()`` are the bytes of a file.

    See Also
    --------
    compress : A smaller model first.

    Notes
    -----
    Needs the extra ``onnx``. The Laplacian kernel takes n × n_anchors × n_features numbers of
    memory in the runtime, all others n × n_anchors: feed points in batches.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import DNE, Kernelized, to_onnx
    >>> metric = Kernelized(DNE(2)).fit(*load_iris(return_X_y=True))
    >>> model = to_onnx(metric)
    >>> [given.name for given in model.graph.input], [made.name for made in model.graph.output]
    (['X'], ['Z'])
    """
    for name, value in (("dtype", dtype), ("precision", precision)):
        if value not in _DTYPES:
            raise ValueError(f"Got {name}={value!r}, but expected one of {_DTYPES}.")
    parts = metric_map(metric)
    graph = OnnxGraph(dtype, precision)
    return graph.model(_embedding(graph, parts), parts.n_features, parts.after.A.shape[1])


class OnnxGraph:
    """Nodes and constants of a model, as they are added.

    Parameters
    ----------
    dtype : str
        Of the input and the output.
    precision : str
        Of everything between.

    Attributes
    ----------
    x : str
        Name of the points, in ``precision``.
    """

    def __init__(self, dtype: str, precision: str):
        self.onnx = require("onnx", "onnx", "ONNX models need the package onnx")
        self.dtype, self.precision = dtype, precision
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[str, ...], str] = {}
        self.x = self._cast("X", dtype, precision)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, or find an equal one; the name of its output."""
        key = (operator, *inputs, repr(attributes))
        if key not in self._known:
            name = f"{operator}_{len(self.nodes)}"
            make = self.onnx.helper.make_node
            self.nodes.append(make(operator, list(inputs), [name], name=name, **attributes))
            self._known[key] = name
        return self._known[key]

    def constant(self, values: Any, dtype: str | None = None) -> str:
        """Add an array, or find an equal one; its name."""
        array = np.ascontiguousarray(values, dtype=dtype or self.precision)
        # The shape is made to stay: a row of one number is another constant than the number.
        array = array.reshape(np.shape(values))
        key = (
            "constant",
            str(array.dtype),
            str(array.shape),
            hashlib.sha256(array.tobytes()).hexdigest(),
        )
        if key not in self._known:
            name = f"constant_{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array, name))
            self._known[key] = name
        return self._known[key]

    def row_sums(self, name: str) -> str:
        """Sums over the last axis, which stays with length one."""
        return self.add("ReduceSum", name, self.constant([-1], "int64"), keepdims=1)

    def affine(self, name: str, step: Affine) -> str:
        """The node of x A + b."""
        product = self.add("MatMul", name, self.constant(step.A))
        return self.add("Add", product, self.constant(step.b)) if step.b.any() else product

    def model(self, output: str, n_features: int, n_components: int) -> Any:
        """The finished model."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        kind = {"float32": types.FLOAT, "float64": types.DOUBLE}[self.dtype]
        result = self._cast(output, self.precision, self.dtype)
        self.nodes.append(helper.make_node("Identity", [result], ["Z"], name="Z"))
        size = sum(len(constant.raw_data) for constant in self.constants)
        if size > _MOST_BYTES:
            raise ValueError(
                f"Got a metric with {size / 2**30:.1f} GiB of numbers, but expected less than 2, "
                "all that an ONNX model holds: try compress(metric, 1000) first."
            )
        graph = helper.make_graph(
            self.nodes,
            "metric",
            [helper.make_tensor_value_info("X", kind, ["n", n_features])],
            [helper.make_tensor_value_info("Z", kind, ["n", n_components])],
            self.constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="kernelmetric",
            producer_version=library_version(),
            doc_string="Euclidean distance between rows of Z is the learned distance of X.",
        )
        self.onnx.checker.check_model(model)
        return model

    def _cast(self, name: str, given: str, wanted: str) -> str:
        if given == wanted:
            return name
        types = self.onnx.TensorProto
        return self.add("Cast", name, to=types.DOUBLE if wanted == "float64" else types.FLOAT)


def _embedding(graph: OnnxGraph, parts: MetricMap) -> str:
    x = graph.x if parts.before is None else graph.affine(graph.x, parts.before)
    if isinstance(parts.features, KernelValues):
        x = kernel_node(parts.features.kernel, graph, x, parts.features.anchors)
    elif isinstance(parts.features, Waves):
        angles = graph.add("MatMul", x, graph.constant(parts.features.frequencies))
        amplitudes = graph.constant(parts.features.amplitudes)
        # The cosine as a shifted sine: onnxruntime 1.20 has no cosine of doubles.
        shifted = graph.add("Add", angles, graph.constant(np.pi / 2))
        waves = [graph.add("Mul", graph.add("Sin", a), amplitudes) for a in (shifted, angles)]
        x = graph.add("Concat", *waves, axis=1)
    return graph.affine(x, parts.after)


# --- one formula for each kernel ----------------------------------------------------------------


@singledispatch
def kernel_node(kernel: Kernel, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    """Name of the node with the kernel values between the points x and the anchors."""
    raise ValueError(
        f"Got {kernel!r}, but expected a kernel whose formula ONNX can hold: RBF, Delta, "
        "Laplacian, Polynomial, Linear, Cosine, Precomputed, or sums and products of them."
    )


@kernel_node.register
def _(kernel: RadialKernel, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    squares = _squared_distances(graph, x, anchors)
    return graph.add("Exp", graph.add("Mul", squares, graph.constant(-kernel._gamma())))


@kernel_node.register
def _(kernel: Laplacian, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    rows = graph.add("Unsqueeze", x, graph.constant([1], "int64"))
    sizes = graph.add("Abs", graph.add("Sub", rows, graph.constant(anchors[None])))
    sums = graph.add("ReduceSum", sizes, graph.constant([-1], "int64"), keepdims=0)
    return graph.add("Exp", graph.add("Mul", sums, graph.constant(-kernel._gamma())))


@kernel_node.register
def _(kernel: Linear, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    return graph.add("MatMul", x, graph.constant(anchors.T))


@kernel_node.register
def _(kernel: Polynomial, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    degree, gamma, coef0 = kernel._checked(kernel.gamma)
    inner = graph.add("MatMul", x, graph.constant(gamma * anchors.T))
    inner = graph.add("Add", inner, graph.constant(coef0)) if coef0 else inner
    return graph.add("Pow", inner, graph.constant(float(degree))) if degree > 1 else inner


@kernel_node.register
def _(kernel: Cosine, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    norms = np.linalg.norm(anchors, axis=1, keepdims=True)
    unit = anchors / np.where(norms > 0, norms, 1.0)
    length = graph.add("Sqrt", graph.row_sums(graph.add("Mul", x, x)))
    least = float(np.finfo(graph.precision).tiny)  # a point at the origin stays there
    length = graph.add("Max", length, graph.constant(least))
    return graph.add("Div", graph.add("MatMul", x, graph.constant(unit.T)), length)


@kernel_node.register
def _(kernel: Precomputed, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    return graph.add("Gather", x, graph.constant(anchors, "int64"), axis=1)


@kernel_node.register
def _(kernel: Sum, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    total = ""
    for weight, term in kernel._flat():
        values = graph.add("Mul", kernel_node(term, graph, x, anchors), graph.constant(weight))
        total = graph.add("Add", total, values) if total else values
    return total


@kernel_node.register
def _(kernel: Product, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    product, *others = [kernel_node(factor, graph, x, anchors) for factor in kernel.kernels]
    for factor in others:
        product = graph.add("Mul", product, factor)
    return product


@kernel_node.register
def _(kernel: Rescaled, graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    scales = np.asarray(kernel.scales, dtype=np.float64)[None, :]
    scaled = graph.add("Mul", x, graph.constant(scales))
    return kernel_node(kernel.kernel, graph, scaled, anchors * scales)


def _squared_distances(graph: OnnxGraph, x: str, anchors: np.ndarray) -> str:
    """|a|² + |b|² - 2ab about the mean of the anchors, where large offsets do not cancel."""
    center = anchors.mean(axis=0, keepdims=True)
    a, b = graph.add("Sub", x, graph.constant(center)), anchors - center
    squares = graph.row_sums(graph.add("Mul", a, a))
    squares = graph.add("Add", squares, graph.constant(np.sum(b * b, axis=1)[None, :]))
    squares = graph.add("Add", squares, graph.add("MatMul", a, graph.constant(-2.0 * b.T)))
    return graph.add("Max", squares, graph.constant(0.0))
