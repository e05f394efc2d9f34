"""An index of nearest neighbours in the learned metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.validation import _num_samples

from kernelmetric.compute import map_rows, take_rows, to_numpy
from kernelmetric.metric import refuse_signed
from kernelmetric.shipping._extras import require


def to_faiss(metric: Any, X: Any, *, factory: str = "Flat") -> Any:
    """Put points into a faiss index of their learned coordinates.

    Euclidean distance there is the learned distance, so any index of L2 will do. Queries go the
    same way: ``index.search(metric.transform(Q).astype("float32"), k)`` gives squared learned
    distances and row numbers of X.

    Parameters
    ----------
    metric : fitted metric
        Anything with ``transform``, a pipeline too.
    X : array-like of shape (n_samples, n_features)
        The points to search among.
    factory : str, default='Flat'
        What ``faiss.index_factory`` makes: 'Flat' is exact; 'HNSW32' or 'IVF256,Flat' are faster
        for many points and miss some neighbours. Trained on X where it needs that.

    Returns
    -------
    faiss.Index
        Holds n_samples × n_components float32 numbers, and not the metric: :func:`save` that
        beside ``faiss.write_index``.

    Notes
    -----
    Needs the extra ``faiss``. Where features lie far from the origin compared with their spread,
    put a StandardScaler before a linear metric: single precision has seven digits.

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
    refuse_signed(metric)
    faiss = require("faiss", "faiss", "A faiss index needs the package faiss-cpu")
    Z = _single_precision(metric, X)
    index = faiss.index_factory(Z.shape[1], factory, faiss.METRIC_L2)
    if not index.is_trained:
        index.train(Z)
    index.add(Z)
    return index


def _single_precision(metric: Any, X: Any) -> np.ndarray:
    """Learned coordinates as faiss wants them: float32, in C order."""
    X = X if hasattr(X, "shape") else np.asarray(X)

    def work(rows: slice) -> np.ndarray:
        # of a data frame, rows with their column names, which the metric may want to see
        block = X.iloc[rows] if hasattr(X, "iloc") else take_rows(X, np.r_[rows])
        return to_numpy(metric.transform(block)).astype(np.float32)

    with config_context(transform_output="default"):
        return np.ascontiguousarray(map_rows(work, _num_samples(X), 8 * 4 * X.shape[1]))
