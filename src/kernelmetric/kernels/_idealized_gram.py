"""Kernels that know the labels of their points: the ideal Gram matrix, and steps towards it."""

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from kernelmetric.compute import sum_rows, to_numpy
from kernelmetric.inputs._parameters import Numbers


def ideal_gram(y: Any, class_weight: Any = None) -> np.ndarray:
    """The ideal Gram matrix K*: 1 inside a class, 0 across classes, eq. (1) of [1]_.

    Parameters
    ----------
    y : array-like of shape (n,)
        Class labels.
    class_weight : dict, 'balanced' or None, default=None
        The value inside each class instead of 1; 'balanced' is n / (n_classes n_c).

    Returns
    -------
    ndarray of shape (n, n)
        Positive semi-definite.

    References
    ----------
    .. [1] Kwok and Tsang, "Learning with idealized kernels", ICML 2003.

    Examples
    --------
    >>> from kernelmetric.kernels import ideal_gram
    >>> ideal_gram(["a", "a", "b"])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    classes, codes = np.unique(np.asarray(to_numpy(y)), return_inverse=True)
    if codes.ndim != 1:
        raise ValueError(f"Got labels of shape {codes.shape}, but expected one label per point.")
    weights = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not np.all(weights >= 0):
        raise ValueError(f"Got class_weight={class_weight!r}, but expected weights >= 0.")
    return np.where(codes[:, None] == codes, weights[codes], 0.0)


def idealized_gram(K: Any, y: Any, gamma: float, class_weight: Any = None) -> np.ndarray:
    """The idealized Gram matrix ``K + γ/2 K*``, eq. (2) of [1]_.

    Squared distances across classes grow by γ, those inside a class stay, eq. (3); the alignment
    with the ideal kernel grows (Proposition 1). For new points see
    :class:`kernelmetric.IdealizedKernel`.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix.
    y : array-like of shape (n,)
        Class labels.
    gamma : float
        γ >= 0.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes in K*.

    Returns
    -------
    ndarray of shape (n, n)
        Positive semi-definite where K is.

    References
    ----------
    .. [1] Kwok and Tsang, "Learning with idealized kernels", ICML 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import idealized_gram
    >>> idealized_gram(np.eye(3), ["a", "a", "b"], gamma=2.0)
    array([[2., 1., 0.],
           [1., 2., 0.],
           [0., 0., 2.]])
    """
    Numbers(low=0).require("gamma", gamma)
    K = np.asarray(to_numpy(K))
    target = ideal_gram(y, class_weight)
    if K.shape != target.shape:
        raise ValueError(
            f"Got a Gram matrix of shape {K.shape} for {len(target)} labels, but expected "
            f"{target.shape}."
        )
    return K + 0.5 * gamma * target


def ideal_alignment(K: Any, y: Any, class_weight: Any = None) -> float:
    """Alignment of a Gram matrix with the ideal one, ``⟨K, K*⟩ / (‖K‖ ‖K*‖)``.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix.
    y : array-like of shape (n,)
        Class labels.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes in K*.

    Returns
    -------
    float
        At most 1; nan for K = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import ideal_alignment
    >>> round(ideal_alignment(np.eye(4), [0, 0, 1, 1]), 4)
    0.7071
    """
    K = np.asarray(to_numpy(K), dtype=np.float64)
    target = ideal_gram(y, class_weight)
    return _cosine(float(np.sum(K * target)), float(np.sum(K * K)), float(np.sum(target**2)))


def form_alignment(
    E: np.ndarray, M: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Alignment of ``E M Eᵀ`` with the ideal kernel, without n × n where n is large."""
    weights = np.ones(len(E)) if weights is None else weights
    counts, weighted = np.bincount(codes, weights=weights), weights[:, None] * E
    sums = np.zeros((len(counts), E.shape[1]))
    np.add.at(sums, codes, weighted)
    MG = M @ (E.T @ weighted)
    product = float(np.sum((sums @ M) * sums))
    return _cosine(product, float(np.sum(MG * MG.T)), float(np.sum(counts**2)))


def gram_alignment(
    kernel: Any, X: Any, codes: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Alignment of a bound kernel with the ideal one on points, a block of rows at a time."""
    w = np.ones(len(codes)) if weights is None else weights
    counts = np.bincount(codes, weights=w)

    def products(rows: slice) -> tuple[float, float]:
        K = to_numpy(kernel(X[rows, :], X)).astype(np.float64)
        weighted = w[rows, None] * K * w
        same = np.sum(weighted, where=codes[rows, None] == codes)
        return float(same), float(np.sum(K * weighted))

    product, square = sum_rows(products, X.shape[0], 3 * 8 * X.shape[0])
    return _cosine(product, square, float(np.sum(counts**2)))


def _cosine(product: float, square: float, target: float) -> float:
    return float(product / np.sqrt(square * target)) if square > 0 else float("nan")
