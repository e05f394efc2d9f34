"""Tanimoto's coefficient of fingerprints, of bits and of counts, and the nearest among many."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelmetric.compute import is_sparse, namespace, precise, to_numpy
from kernelmetric.compute.reductions import l1_distances, most_similar_bits, unpacked
from kernelmetric.inputs import Objects, shown
from kernelmetric.inputs._parameters import Numbers, is_on
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._counts import alike
from kernelmetric.kernels._dot import inner_products, squared_norms


class Tanimoto(Kernel):
    r"""Tanimoto's coefficient: what two fingerprints share, as a part of what either has.

    .. math:: k(x, y) = \frac{x^\top y}{\|x\|^2 + \|y\|^2 - x^\top y}

    For bits that is |X ∩ Y| / |X ∪ Y|, Jaccard's index of two sets: of substructures of a molecule,
    of words, of whatever ``CountVectorizer(binary=True)`` finds. Two empty sets have the value 1.
    It is positive semi-definite for all points [1]_. For counts, :class:`MinMax` is usually better;
    for molecules as SMILES, :class:`Molecules` makes the fingerprints.

    Parameters
    ----------
    packed : bool, default=False
        Whether X are bytes, of eight bits each, as ``numpy.packbits`` makes them: dtype uint8.

    References
    ----------
    .. [1] Ralaivola, Swamidass, Saigo and Baldi, "Graph kernels for chemical informatics", Neural
       Networks 2005.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from kernelmetric.kernels import Tanimoto
    >>> pieces = CountVectorizer(analyzer="char_wb", ngram_range=(2, 2), binary=True)
    >>> Tanimoto()(pieces.fit_transform(["Anna Berg", "Anna Burg", "Paul Stone"])).round(2)
    array([[1.  , 0.67, 0.  ],
           [0.67, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def __init__(self, packed: bool = False):
        self.packed = packed

    @property
    def accepts_sparse(self) -> bool:
        """Sparse points are accepted, unless bits are packed."""
        return not self.takes_objects

    @property
    def takes_objects(self) -> bool:
        """Whether points are packed bits, which are no numbers."""
        return is_on("packed", self.packed)

    def _points(self, X: Any) -> Any:
        """Packed bits as points; rows of numbers as they are."""
        if not self.takes_objects:
            return super()._points(X)
        if isinstance(X, Objects):
            X = X.values if X.rows is None else X.values[X.rows]
        if not isinstance(X, np.ndarray) or X.dtype != np.uint8 or X.ndim != 2 or not X.shape[1]:
            raise ValueError(
                f"Got {shown(X)}, but Tanimoto(packed=True) expected an array of bytes, one row "
                "for each fingerprint: try numpy.packbits(bits, axis=1)."
            )
        return Objects(X)

    def neighbors(self, X: Any, n_neighbors: int, queries: Any = None) -> tuple[Any, Any]:
        """The most similar fingerprints among many, exactly.

        Parameters
        ----------
        X : ndarray of shape (n, n_bytes), uint8
            Packed bits.
        n_neighbors : int
            How many to find.
        queries : ndarray of shape (m, n_bytes), uint8, default=None
            Packed bits to look for; None means X, each then finds itself.

        Returns
        -------
        similarities : ndarray of shape (m, n_neighbors)
            Coefficients, largest first.
        rows : ndarray of int of shape (m, n_neighbors)
            Rows of X; of those that are equally similar, the first.
        """
        packed = Tanimoto(packed=True)
        points = packed.points(X).values
        asked = points if queries is None else packed.points(queries).values
        if asked.shape[1] != points.shape[1]:
            raise _unequal(asked, points)
        Numbers(Integral, 1, len(points)).require("n_neighbors", n_neighbors)
        rows, similarities = most_similar_bits(points, int(n_neighbors), asked)
        return similarities, rows

    def _evaluate(self, A: Any, B: Any) -> Any:
        if self.takes_objects:
            packed = [rows.listed() for rows in (A, A if B is None else B)]
            if packed[0].shape[1] != packed[1].shape[1]:
                raise _unequal(*packed)
            given = list(map(unpacked, packed))
            own, other = map(squared_norms, given)
            return to_numpy(precise(alike(given[0] @ given[1].T, own, other, "tanimoto")))
        own = squared_norms(A)
        other = own if B is None else squared_norms(B)
        return alike(inner_products(A, B), own, other, "tanimoto")


class MinMax(Kernel):
    r"""What two vectors of counts share, as a part of what either has.

    .. math:: k(x, y) = \frac{\sum_j \min(x_j, y_j)}{\sum_j \max(x_j, y_j)}

    Of bits it is :class:`Tanimoto`; of counts it sees that three rings are not one. Two points
    without any count have the value 1. It is positive semi-definite for points without negative
    numbers, and O(n m d) time for n and m dense points; sparse points need whole numbers.

    Examples
    --------
    >>> from kernelmetric.kernels import MinMax
    >>> MinMax()([[3.0, 0.0, 1.0], [1.0, 2.0, 1.0]]).round(2)
    array([[1.  , 0.33],
           [0.33, 1.  ]])
    """

    accepts_sparse = True

    def _evaluate(self, A: Any, B: Any) -> Any:
        B = A if B is None else B
        own, other = (_totals(points) for points in (A, B))
        if is_sparse(A) or is_sparse(B):
            S = _shared_counts(csr_array(A), csr_array(B))
        else:
            S = (own[:, None] + other[None, :] - l1_distances(A, B)) / 2
        return alike(S, own, other, "minmax")


def _unequal(first: np.ndarray, second: np.ndarray) -> ValueError:
    """What to raise for fingerprints of different numbers of bits."""
    return ValueError(
        f"Got fingerprints of {first.shape[1]} and of {second.shape[1]} bytes, but expected as "
        "many in all."
    )


def _totals(A: Any) -> Any:
    """Sums of rows, which have no negative numbers."""
    least = A.min if is_sparse(A) else lambda: namespace(A).min(A)
    lowest = least() if A.shape[0] else 0
    if lowest < 0:
        raise ValueError(
            f"Got points with {float(lowest):.3g}, but MinMax expected counts, none of them "
            "negative: try Tanimoto()."
        )
    return np.asarray(A.sum(axis=1)).ravel() if is_sparse(A) else namespace(A).sum(A, axis=1)


def _shared_counts(A: Any, B: Any) -> np.ndarray:
    """Sums of the lesser of two whole numbers, by which of the values that occur both reach."""
    if not all(np.array_equal(C.data, np.round(C.data)) for C in (A, B)):
        raise ValueError(
            "Got sparse points with fractions, but MinMax expected whole numbers there: try "
            "X.toarray()."
        )
    S, before = np.zeros((A.shape[0], B.shape[0]), dtype=A.dtype), 0.0
    lowest = min(C.data.max(initial=0) for C in (A, B))
    values = np.unique(np.concatenate([C.data for C in (A, B)]))
    for value in values[(values > 0) & (values <= lowest)].tolist():
        both = [(C >= value).astype(A.dtype) for C in (A, B)]
        S += (value - before) * (both[0] @ both[1].T).toarray()
        before = value
    return S
