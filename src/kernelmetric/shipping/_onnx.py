"""A fitted metric as an ONNX model."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from kernelmetric.metric import refuse_signed
from kernelmetric.shipping._onnx_graph import OnnxGraph
from kernelmetric.shipping._onnx_steps import steps_of, through

_DTYPES = ("float32", "float64")


def to_onnx(metric: Any, *, dtype: str = "float32", precision: str = "float64") -> Any:
    """A fitted metric as an ONNX model, from points to learned coordinates.

    The model takes ``X`` of shape (n, n_features), for any n, and gives ``Z`` of shape
    (n, n_components), in which Euclidean distance is the learned one. Standard operators, opset 17.

    Parameters
    ----------
    metric : fitted metric
        A linear learner; a metric with a kernel (RBF, Delta, Laplacian, Polynomial, Linear,
        Cosine, Precomputed, their sums, products and rescalings, so aligned and automatic kernels
        too) in any space; or a pipeline that ends in one, after steps whose formula is known: the
        scalers, Normalizer, PCA, TruncatedSVD, selectors, SimpleImputer, OneHotEncoder of numbers,
        ColumnTransformer and FeatureUnion of them. The columns of X are those that the pipeline
        was fitted on, in their order. Any other step is refused.
    dtype : {'float32', 'float64'}, default='float32'
        Of X and Z. Features that lie far from zero, such as timestamps, need 'float64'.
    precision : {'float64', 'float32'}, default='float64'
        Of the arithmetic between them. 'float32' makes a model of half the size, and costs digits.
        What a pipeline does before the metric takes the wider of dtype and precision.

    Returns
    -------
    onnx.ModelProto
        Checked by ``onnx.checker``. ``model.SerializeToString()`` are the bytes of a file.

    Notes
    -----
    Needs the extra ``onnx``. The runtime takes memory for n × n_anchors numbers, with the Laplacian
    kernel times n_features: feed points in batches.

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
    check_is_fitted(metric)
    refuse_signed(metric)
    *steps, last = steps_of(metric)
    graph = OnnxGraph(dtype, precision, int((steps or [last])[0].n_features_in_))
    x = graph.x
    for step in steps:
        x = through(step, graph, x)
    return graph.model(through(last, graph, graph.narrowed(x)))
