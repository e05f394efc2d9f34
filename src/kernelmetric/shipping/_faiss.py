"""An index of nearest neighbours in the learned metric."""

from typing import Any

import numpy as np
from sklearn import config_context

from kernelmetric.compute import to_numpy
from kernelmetric.inputs._extras import require
from kernelmetric.inputs._points import refuse_lost
from kernelmetric.metric import places_of
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.shipping._maps import check_metric


def to_faiss(metric: Any, X: Any = None, *, factory: str = "Flat") -> Any:
    """Put points into a faiss index of their learned coordinates.

    Queries go the same way: ``index.search(metric.transform(Q).astype("float32"), k)`` gives
    squared learned distances and row numbers of X. Of a predictor, ``metric_`` transforms them.
    Needs the extra ``faiss``.

    Parameters
    ----------
    metric : fitted metric or predictor
        Anything with ``transform``, a pipeline too; or a :class:`MetricClassifier` or
        :class:`MetricRegressor`.
    X : array-like of shape (n_samples, n_features), default=None
        The points to search among. Those that the metric was fitted to lie where
        :meth:`Kernelized.places` puts them. None: the training points of a predictor, with the
        row numbers that its ``kneighbors`` gives.
    factory : str, default='Flat'
        What ``faiss.index_factory`` makes: 'Flat' is exact; 'HNSW32' or 'IVF256,Flat' are faster
        for many points and miss some neighbours.

    Returns
    -------
    faiss.Index
        Holds n_samples × n_components float32 numbers, and not the metric: :func:`save` that
        beside ``faiss.write_index``.

    See Also
    --------
    recall_at_k : How good the search is.
    to_onnx : The map of queries, for other languages.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import DNE, Kernelized, to_faiss
    >>> X, y = load_iris(return_X_y=True)
    >>> metric = Kernelized(DNE(2)).fit(X, y)
    >>> index = to_faiss(metric, X)
    >>> squared, rows = index.search(metric.transform(X[:2]).astype("float32"), 5)
    >>> rows.shape
    (2, 5)
    """
    check_metric(metric, "to_faiss(metric, X)")
    own = isinstance(metric, MetricClassifier | MetricRegressor)
    map_ = metric.metric_ if own else metric
    if not hasattr(map_, "transform") or (X is None and not own):
        raise ValueError(
            f"Got {type(metric).__name__} and X={'None' if X is None else 'points'}, but expected "
            "a metric with transform and the points to search among, or a MetricClassifier or "
            "MetricRegressor, which holds its own."
        )
    faiss = require("faiss", "faiss", "A faiss index needs the package faiss-cpu")
    if X is None:
        Z, rows = metric.embedding_, vars(metric).get("_kept")
    else:
        with config_context(transform_output="default"):
            Z, rows = to_numpy(places_of(map_, X if hasattr(X, "shape") else np.asarray(X))), None
    refuse_lost(
        Z,
        "learned coordinates",
        "For a linear metric, try make_pipeline(StandardScaler(with_std=False).fit(X), metric), "
        "else fit again after a StandardScaler.",
        "try a StandardScaler before the metric, and fit again.",
    )
    points = np.ascontiguousarray(Z, dtype=np.float32)
    try:
        index = faiss.index_factory(points.shape[1], factory, faiss.METRIC_L2)
        if not index.is_trained:
            index.train(points)
        if rows is None:
            index.add(points)
        else:  # rows without weight were left out
            index = faiss.IndexIDMap2(index)
            index.add_with_ids(points, rows.astype(np.int64))
    except RuntimeError as error:
        raise ValueError(
            f"Got factory={factory!r}, but expected what faiss.index_factory makes of "
            f"{len(points)} points: try 'Flat', or 'HNSW32'."
        ) from error
    return index
