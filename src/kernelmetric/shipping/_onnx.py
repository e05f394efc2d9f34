"""What is fitted as an ONNX model: one formula for each step's class, and none for any other."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import preprocessing
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline

from kernelmetric.compute import to_numpy
from kernelmetric.inputs._parameters import require_word
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.retrieval import Adapter, Drift
from kernelmetric.shipping import _maps
from kernelmetric.shipping._onnx_graph import Columns, OnnxGraph, directions, divided, kernel_node
from kernelmetric.shipping._onnx_predict import feature_nodes, prediction_nodes

_DTYPES = ("float32", "float64")
_LOOKED_AT = 100  # anchors whose images tell what float32 costs


def to_onnx(
    metric: Any,
    *,
    dtype: str | None = None,
    precision: str = "float64",
    coverage: float | None = 0.9,
) -> Any:
    """A fitted metric, or a predictor in one, as an ONNX model.

    The model takes ``X`` of shape (n, n_features), for any n. Of a metric it gives ``Z`` of shape
    (n, n_components), in which Euclidean distance is the learned one. Of a
    :class:`MetricClassifier` it gives ``label`` and ``probabilities``; of a
    :class:`MetricRegressor`, ``prediction`` and ``interval``. Operators of opset 17; the trees of
    a predictor are one of ``ai.onnx.ml``, version 3. Needs the extra ``onnx``.

    Of what was fitted to a data frame, the model takes ``features`` in place of ``X``: what
    ``recipe_.schema.transform(frame)`` gives. Names and dates are read outside.

    Parameters
    ----------
    metric : fitted metric or predictor
        A linear learner, a metric with a kernel in any space, a :class:`MetricClassifier`, a
        :class:`MetricRegressor`, the queries' side of an :class:`Adapter`, a
        :class:`~kernelmetric.retrieval.Drift`, or a pipeline that ends in one. The
        kernel may be RBF, Delta, Laplacian, Polynomial, Linear, Cosine, Precomputed, or a sum,
        product or rescaling of them. Aligned and automatic kernels are such sums. Earlier steps
        may be scalers, Normalizer, PCA, TruncatedSVD and selectors. Any other step is refused:
        skl2onnx exports it. X has the columns that the pipeline was fitted on, in their order.
    dtype : {'float32', 'float64'}, default=None
        Of X and of what the model gives. None is 'float64' for a predictor with trees, since a row
        at a threshold of theirs falls to the other side if X is rounded; else it is 'float32'.
        Features that lie far from zero, such as timestamps, need 'float64'.
    precision : {'float64', 'float32'}, default='float64'
        Of the arithmetic between them. 'float32' makes a model of half the size, and costs digits;
        rows at thresholds of trees may then fall to the other side.
        What a pipeline does before the metric takes the wider of dtype and precision.
    coverage : float or None, default=0.9
        Of the intervals of a regressor; None leaves them out.

    Returns
    -------
    onnx.ModelProto
        Checked by ``onnx.checker``. ``model.SerializeToString()`` are the bytes of a file. A
        predictor's model compares every point with all training points: n × n_train numbers at
        once.

    See Also
    --------
    compress : Fewer kernel values for a point, to call before.
    save : A file for this library, of anything fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import DNE, Kernelized, MetricClassifier, to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = to_onnx(Kernelized(DNE(2)).fit(X, y))
    >>> [given.name for given in model.graph.input], [made.name for made in model.graph.output]
    (['X'], ['Z'])
    >>> model = to_onnx(MetricClassifier(cv=2).fit(X[::3], y[::3]))
    >>> [made.name for made in model.graph.output]
    ['label', 'probabilities']
    """
    _maps.check_metric(metric, "to_onnx(metric)")
    *steps, last = steps_of(metric)
    if dtype is None:
        dtype = "float32" if getattr(last, "_features", None) is None else "float64"
    for name, value in (("dtype", dtype), ("precision", precision)):
        require_word(name, value, _DTYPES)
    inner: list[Any] = []
    predictor = last if type(last) in (MetricClassifier, MetricRegressor) else None
    if predictor is not None:
        *inner, last = steps_of(predictor.metric_)
    first, *others = (*steps, *inner, last)
    if any(getattr(step, "schema_", None) is not None for step in others):
        raise ValueError(
            "Got a pipeline in which a later step reads a data frame, but expected that of the "
            "first one alone: fit the pipeline to arrays, or export the last step by itself."
        )
    table = getattr(first, "schema_", None) is not None
    graph = OnnxGraph(dtype, precision, _maps.n_features_of(first), "features" if table else "X")
    x = graph.x
    for step in steps:
        x = through(step, graph, x)
    said = [] if predictor is None else feature_nodes(predictor, graph, x)
    for step in inner:
        x = through(step, graph, x)
    Z = through(last, graph, graph.narrowed(x))
    if predictor is not None:
        prediction_nodes(predictor, graph, Z, said, coverage)
        return graph.model("Predictions from neighbours in a learned metric.")
    graph.output("Z", Z.name, Z.width)
    return graph.model("Euclidean distance between rows of Z is the learned distance of X.")


def steps_of(metric: Any) -> list[Any]:
    """The estimators that a point goes through; what passes points unchanged is left out."""
    if hasattr(metric, "best_estimator_"):
        return steps_of(metric.best_estimator_)
    if not isinstance(metric, Pipeline):
        return [metric]
    *steps, last = [step for _, step in metric.steps]
    steps = [step for step in steps if step is not None and not isinstance(step, str)]
    return [inner for step in [*steps, last] for inner in steps_of(step)]


def through(step: Any, graph: OnnxGraph, x: Columns) -> Columns:
    """The nodes of one step of a known class; what derives from one may compute something else."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return x
    if isinstance(step, SelectorMixin) and type(step).transform is SelectorMixin.transform:
        return graph.take(x, step.get_support(indices=True))
    if type(step) in _FORMULAS:
        return _FORMULAS[type(step)](step, graph, x)
    return _embedding(step, graph, x)


def _embedding(metric: Any, graph: OnnxGraph, x: Columns) -> Columns:
    parts = _maps.metric_map(metric)
    if "float32" in (graph.dtype, graph.working):
        graph.warn_if_far(_lost(metric, parts, graph.working) / float(np.finfo(np.float32).eps))
    if isinstance(parts.features, _maps.KernelValues):
        x = kernel_node(parts.features.kernel, graph, x, parts.features.anchors)
    elif isinstance(parts.features, _maps.Waves):
        angles = graph.add("MatMul", x.name, graph.constant(parts.features.frequencies))
        amplitudes = graph.constant(parts.features.amplitudes)
        # The cosine as a shifted sine: onnxruntime 1.20 has no cosine of doubles.
        shifted = graph.add("Add", angles, graph.constant(np.pi / 2))
        n = parts.features.frequencies.shape[1]
        waves = [graph.add("Mul", graph.add("Sin", a), amplitudes) for a in (shifted, angles)]
        x = graph.concatenated([Columns(wave, n) for wave in waves])
    return graph.affine(x, parts.after)


def _lost(metric: Any, parts: Any, working: str) -> float:
    """What float32 costs of learned coordinates, beside their spread; 0 where nothing tells."""
    A, eps, features = parts.after.A, float(np.finfo(np.float32).eps), parts.features
    if isinstance(features, _maps.KernelValues):
        anchors = features.anchors[:: 1 + len(features.anchors) // _LOOKED_AT]
        if anchors.dtype.kind in "iu":  # columns of X, of which nothing is known
            return 0.0
        with np.errstate(all="ignore"):  # what overflows is lost
            Z = features.kernel(anchors, features.anchors) @ A
            rounded = anchors.astype(np.float32).astype(working)
            moved = features.kernel(rounded, features.anchors.astype(working)) @ A.astype(working)
            moved = moved.astype(np.float32) - Z
            spread = np.linalg.norm(Z - Z.mean(axis=0))
            return float(np.nan_to_num(np.linalg.norm(moved - moved.mean(axis=0)) / spread, nan=1))
    if parts.after.c is not None:  # the mean of points that PCA or LDA has seen
        plain = type(metric) is PCA and not metric.whiten
        spread = np.sqrt(np.sum(metric.explained_variance_) if plain else A.shape[1])
        return eps * float(np.linalg.norm(parts.after.c.T * A) / spread)
    space = vars(metric).get("space_")
    location = vars(metric if space is None else space).get("_location")
    if location is None:
        return 0.0
    mean, deviation = location
    if isinstance(features, _maps.Waves):  # angles, beside one
        return eps * float(np.median(np.linalg.norm(mean[:, None] * features.frequencies, axis=0)))
    lost, spread = (np.linalg.norm(size[:, None] * A) for size in (mean, deviation))
    return eps * float(lost / spread) if spread > 0 else 1.0


def _standardized(step: Any, graph: OnnxGraph, x: Columns) -> Columns:
    if type(step) is preprocessing.RobustScaler:
        offset = step.center_
    else:
        offset = step.mean_ if step.with_mean else None
    if offset is not None:
        x = graph.shift(x, offset, step.scale_)
    return x if step.scale_ is None else graph.times(x, 1.0 / step.scale_)


def _to_range(step: Any, graph: OnnxGraph, x: Columns) -> Columns:
    low, high = step.feature_range
    scaled = graph.times(graph.shift(x, step.data_min_, 1.0 / step.scale_), step.scale_)
    if low:
        scaled = Columns(graph.add("Add", scaled.name, graph.constant(float(low))), x.width)
    return Columns(graph.clipped(scaled.name, low, high), x.width) if step.clip else scaled


def _to_largest(step: Any, graph: OnnxGraph, x: Columns) -> Columns:
    x = graph.times(x, 1.0 / step.scale_)
    # The parameter came with scikit-learn 1.9.
    clip = getattr(step, "clip", False)
    return Columns(graph.clipped(x.name, -1.0, 1.0), x.width) if clip else x


def _normalized(step: Any, graph: OnnxGraph, x: Columns) -> Columns:
    if step.norm == "l2":
        return directions(graph, x)
    if step.norm == "l1":
        length = graph.row_sums(graph.add("Abs", x.name))
    else:
        length = graph.add("ReduceMax", graph.add("Abs", x.name), axes=[-1], keepdims=1)
    return divided(graph, x, length)


def _adapted(adapter: Adapter, graph: OnnxGraph, x: Columns) -> Columns:
    """The map of queries."""
    x = graph.affine(x, _maps.Affine(to_numpy(adapter.components_).T))
    return directions(graph, x) if adapter.geometry == "cosine" else x


def _drifted(drift: Drift, graph: OnnxGraph, x: Columns) -> Columns:
    cosine = drift.geometry == "cosine"
    x = directions(graph, x) if cosine else x
    A, b = to_numpy(drift.components_).T, to_numpy(drift.intercept_)[None, :]
    x = graph.affine(x, _maps.Affine(A, b))
    return directions(graph, x) if cosine else x


_FORMULAS: dict[type, Callable[[Any, OnnxGraph, Columns], Columns]] = {
    Adapter: _adapted,
    Drift: _drifted,
    preprocessing.MaxAbsScaler: _to_largest,
    preprocessing.MinMaxScaler: _to_range,
    preprocessing.Normalizer: _normalized,
    preprocessing.RobustScaler: _standardized,
    preprocessing.StandardScaler: _standardized,
}
