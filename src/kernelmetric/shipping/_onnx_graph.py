"""An ONNX model in the making, and the formulas of kernels in it: one for each class."""

import hashlib
from collections.abc import Iterable
from functools import partial, reduce, singledispatch
from typing import Any, NamedTuple

import numpy as np

from kernelmetric import kernels
from kernelmetric._warnings import warn
from kernelmetric.inputs._extras import require
from kernelmetric.inputs._points import MOST_LOST
from kernelmetric.shipping._allowed import names_of_classes
from kernelmetric.shipping._maps import Affine
from kernelmetric.shipping._save import versions

OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 8  # what came with this opset: newer ones are refused by older runtimes
_MOST_BYTES = 2**31 - 2**20  # a protocol buffer holds less than 2 GiB


class Columns(NamedTuple):
    """An array of a model, one row a point: the name of its node, and its width."""

    name: str
    width: int


class OnnxGraph:
    """Nodes, constants and outputs of a model, as they are added."""

    def __init__(self, dtype: str, precision: str, n_features: int, name: str = "X"):
        self.onnx = require("onnx", "onnx", "ONNX models need the package onnx")
        self.dtype, self.precision, self.n_features = dtype, precision, n_features
        # Before the metric, large numbers are subtracted from large ones. "float64" > "float32".
        self.working = max(dtype, precision)
        self._warned = False
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []
        self._known: dict[tuple[str, ...], str] = {}
        self.input = self._value(name, self._type(dtype), ["n", n_features])
        self.x = Columns(self.cast(name, self.working, given=dtype), n_features)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, or find an equal one; the name of its output."""
        key = (operator, *inputs, repr(attributes))
        if key not in self._known:
            name = f"{operator}_{len(self.nodes)}"
            make = self.onnx.helper.make_node
            self.nodes.append(make(operator, list(inputs), [name], name=name, **attributes))
            self._known[key] = name
        return self._known[key]

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add an array, or find an equal one; its name."""
        array = np.asarray(values, dtype=dtype or self.working, order="C")
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        key = ("constant", str(array.dtype), str(array.shape), digest)
        if key not in self._known:
            name = f"constant_{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array, name))
            self._known[key] = name
        return self._known[key]

    def row_sums(self, name: str) -> str:
        """Sums over the last axis, which stays with length one."""
        return self.add("ReduceSum", name, self.constant([-1], "int64"), keepdims=1)

    def affine(self, x: Columns, step: Affine) -> Columns:
        """The node of (x - c) A + b."""
        name = x.name if step.c is None else self.shift(x, step.c).name
        name = self.add("MatMul", name, self.constant(step.A))
        if step.b is not None and step.b.any():
            name = self.add("Add", name, self.constant(step.b))
        return Columns(name, step.A.shape[1])

    def shift(self, x: Columns, offset: Any, spread: Any = None) -> Columns:
        """The node of x - offset; a warning where X in float32 has no digits left for it."""
        offset = np.asarray(offset, dtype=np.float64).reshape(1, -1)
        if spread is not None:
            self.warn_if_far(np.max(np.abs(offset) / np.asarray(spread), initial=0.0))
        return Columns(self.add("Sub", x.name, self.constant(offset)), x.width)

    def warn_if_far(self, times: float) -> None:
        """Warn once of numbers so many times as far from zero as they spread, if in float32."""
        chosen = {"dtype": self.dtype, "precision": self.working}
        single = [f"{name}='float64'" for name, dtype in chosen.items() if dtype == "float32"]
        if not single or times * np.finfo(np.float32).eps <= MOST_LOST or self._warned:
            return
        self._warned = True
        warn(
            f"Got features up to {times:.0e} times as far from zero as they spread, of which "
            f"float32 keeps few digits: try to_onnx(metric, {', '.join(single)}).",
        )

    def times(self, x: Columns, factors: Any) -> Columns:
        """The node of x times a factor for each column."""
        row = np.broadcast_to(np.asarray(factors, dtype=np.float64), (1, x.width))
        # onnxruntime merges a lone factor with a MatMul beside it, and rounds it to float32.
        operator = "MatMul" if x.width == 1 else "Mul"
        return Columns(self.add(operator, x.name, self.constant(row)), x.width)

    def concatenated(self, parts: list[Columns]) -> Columns:
        """The columns of several arrays in one."""
        name = self.add("Concat", *(part.name for part in parts), axis=1)
        return Columns(name, sum(part.width for part in parts))

    def take(self, x: Columns, columns: Any) -> Columns:
        """Some columns, in the order given."""
        if np.array_equal(columns, np.arange(x.width)):
            return x
        name = self.add("Gather", x.name, self.constant(columns, "int64"), axis=1)
        return Columns(name, len(columns))

    def clipped(self, name: str, low: float, high: float) -> str:
        """The same numbers between two ends."""
        name = self.add("Max", name, self.constant(float(low)))
        return self.add("Min", name, self.constant(float(high)))

    def weighted(self, scores: Iterable[tuple[float, str]], bias: Any) -> str:
        """The sum of scores times weights, and a bias; later ones without weight are left out."""
        total = self.constant(np.reshape(bias, (1, -1)))
        for i, (weight, name) in enumerate(scores):
            if weight or i == 0:  # which gives the rows
                total = self.add("Add", self.add("Mul", name, self.constant(weight)), total)
        return total

    def smallest(self, name: str, k: int) -> tuple[str, str]:
        """The k smallest numbers of each row, ascending, and their columns."""
        found = [f"smallest_{len(self.nodes)}", f"columns_{len(self.nodes)}"]
        most = self.constant([k], "int64")
        node = self.onnx.helper.make_node("TopK", [name, most], found, axis=1, largest=0, sorted=1)
        self.nodes.append(node)
        return found[0], found[1]

    def narrowed(self, x: Columns) -> Columns:
        """The same in the precision of the metric, in which all that follows is."""
        given, self.working = self.working, self.precision
        return Columns(self.cast(x.name, self.precision, given=given), x.width)

    def output(self, name: str, node: str, *sides: int, kind: int | None = None) -> None:
        """Give out an array with a row for each point; numbers in the dtype of the input."""
        if kind is None:
            node, kind = self.cast(node, self.dtype), self._type(self.dtype)
        self.nodes.append(self.onnx.helper.make_node("Identity", [node], [name], name=name))
        self.outputs.append(self._value(name, kind, ["n", *sides]))

    def model(self, text: str) -> Any:
        """The finished model."""
        helper = self.onnx.helper
        size = sum(len(constant.raw_data) for constant in self.constants)
        if size > _MOST_BYTES:
            raise ValueError(
                f"Got a metric with {size / 2**30:.1f} GiB of numbers, but expected less than 2, "
                "all that an ONNX model holds: try compress(metric, 1000) first."
            )
        graph = helper.make_graph(self.nodes, "metric", [self.input], self.outputs, self.constants)
        domains = {node.domain for node in self.nodes}
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(name, OPSETS[name]) for name in sorted(domains)],
            ir_version=IR_VERSION,
            producer_name="kernelmetric",
            producer_version=versions()["kernelmetric"],
            doc_string=text,
        )
        self.onnx.checker.check_model(model)
        return model

    def cast(self, name: str, wanted: str, *, given: str | None = None) -> str:
        """The same numbers as another dtype."""
        if (given or self.working) == wanted:
            return name
        return self.add("Cast", name, to=self._type(wanted))

    def _value(self, name: str, kind: int, shape: list[Any]) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def _type(self, dtype: str) -> int:
        types = self.onnx.TensorProto
        return types.DOUBLE if dtype == "float64" else types.FLOAT


def directions(graph: OnnxGraph, x: Columns) -> Columns:
    """Rows of length one; those of length zero as they are."""
    return divided(graph, x, graph.add("Sqrt", graph.row_sums(graph.add("Mul", x.name, x.name))))


def divided(graph: OnnxGraph, x: Columns, length: str) -> Columns:
    """Rows in units of their length, those of length zero as they are."""
    zero = graph.add("Equal", length, graph.constant(0.0))
    length = graph.add("Where", zero, graph.constant(1.0), length)
    return Columns(graph.add("Div", x.name, length), x.width)


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


def squared_distances(graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    """|a|² + |b|² - 2ab about the mean of the anchors, where large offsets do not cancel."""
    center = anchors.mean(axis=0, keepdims=True)
    b = anchors - center
    sizes = np.sum(b * b, axis=1)
    spread = max(float(np.sqrt(np.mean(sizes))), np.finfo(np.float64).tiny)
    a = graph.shift(x, center, spread).name
    squares = graph.row_sums(graph.add("Mul", a, a))
    squares = graph.add("Add", squares, graph.constant(sizes[None, :]))
    squares = graph.add("Add", squares, graph.add("MatMul", a, graph.constant(-2.0 * b.T)))
    return graph.add("Max", squares, graph.constant(0.0))


@_formula.register
def _(kernel: kernels.RadialKernel, graph: OnnxGraph, x: Columns, anchors: np.ndarray) -> str:
    squares = squared_distances(graph, x, anchors)
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
    return graph.add("MatMul", directions(graph, x).name, graph.constant(unit.T))


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
