"""What every fitted object here is: a metric, a map to coordinates of Euclidean distance.

Where the matrix of a metric has negative eigenvalues, some coordinates count against the others:
``signature_`` has a sign, +1 or -1, for every row of ``components_``, and squared distances and
inner products are sums with these signs. A metric without ``signature_`` has none that is -1.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import like, namespace, require_memory, take_rows, to_numpy
from kernelmetric.compute.reductions import pair_squares, squared_distances
from kernelmetric.graphs import check_rows
from kernelmetric.inputs import DeviceMixin


class Metric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeviceMixin):
    """What a learned metric can do, given its ``transform``.

    Classes that mix it in define ``transform(X)``, and end their fit with ``components_`` and, if
    some of its rows count negatively, ``signature_``.
    """

    components_: Any
    _one_map: Any = True  # or a property

    def places(self, X: Any) -> Any:
        """Where the rows of a table lie among each other.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, n_components)
            What ``transform`` gives; :class:`~kernelmetric.Kernelized` differs for its own rows.
        """
        return self.transform(X)

    def pairwise_distances(self, A: Any, B: Any | None = None) -> Any:
        """Learned distances between all rows of A and all rows of B.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
            Points.
        B : array-like of shape (m, n_features), default=None
            Other points; None means A.

        Returns
        -------
        array of shape (n, m)
            ``|L a - L b|``, never negative, zero on the diagonal when B is None. With a
            ``signature_``, the root of the absolute value of the square, with its sign.
        """
        _require_pairs(A, B)
        return self._root(squared_distances, *self._embed_both(A, B))

    def pairwise_kernels(self, A: Any, B: Any | None = None) -> Any:
        """The learned kernel: inner products of the learned coordinates.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
            Points.
        B : array-like of shape (m, n_features), default=None
            Other points; None means A.

        Returns
        -------
        array of shape (n, m)
            ``⟨L a, L b⟩``: positive semi-definite, usable as ``SVC(kernel=...)``; indefinite with
            a ``signature_``.
        """
        _require_pairs(A, B)

        def products(E: Any, F: Any = None) -> Any:
            return E @ (E if F is None else F).T

        return self._signed(products, *self._embed_both(A, B))

    def pair_distance(self, pairs: Any, X: Any | None = None) -> Any:
        """Learned distance of every pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features) or (n_pairs, 2)
            The two points of every pair; or, when X is given, their row numbers in X.
        X : array-like of shape (n_samples, n_features), default=None
            The points that ``pairs`` counts; each is embedded once.

        Returns
        -------
        array of shape (n_pairs,)
            The distances.
        """
        if X is None:
            first, second = _ends(pairs, objects=_takes_objects(self))
            E, F = self._embed(first), self._embed_second(second)
            i = j = np.arange(E.shape[0])
        else:
            E = self._embed(X)
            F = E if self._one_map else self._embed_second(X)
            i, j = check_rows(pairs, "given", E.shape[0]).T
        return self._root(lambda E, F: like(pair_squares(E, F, i, j), E), E, F)

    def pair_score(self, pairs: Any, X: Any | None = None) -> Any:
        """Similarity of every pair, minus its distance: higher is more alike.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features) or (n_pairs, 2)
            As in :meth:`pair_distance`.
        X : array-like of shape (n_samples, n_features), default=None
            As in :meth:`pair_distance`.

        Returns
        -------
        array of shape (n_pairs,)
            The scores, ready for ``roc_auc_score``.
        """
        return -self.pair_distance(pairs, X)

    def get_metric(self) -> Callable[..., float]:
        """The metric as a function of two points.

        Returns
        -------
        callable
            ``metric(u, v, squared=False) -> float`` for scikit-learn's ``metric=`` and SciPy's
            ``cdist``. It embeds both points at every call: for many points, transform first. A
            later fit does not change it.
        """
        check_is_fitted(self)
        fitted = deepcopy(self)

        def metric(u: Any, v: Any, squared: bool = False) -> float:
            objects = _takes_objects(fitted)
            ends: Any = [(u, v)] if objects else np.stack([_one_row(u), _one_row(v)])[None]
            distance = float(fitted.pair_distance(ends)[0])
            return distance * abs(distance) if squared else distance

        return metric

    def get_mahalanobis_matrix(self) -> Any:
        """The matrix ``M = LᵀL`` of the learned metric.

        Returns
        -------
        array of shape (d, d)
            In the coordinates the learner saw: features, or those of the kernel's space. With a
            ``signature_`` s it is ``Lᵀ diag(s) L``, which has negative eigenvalues.
        """
        check_is_fitted(self)
        L, signature = self.components_, getattr(self, "signature_", None)
        return L.T @ (L if signature is None else like(signature, L)[:, None] * L)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def _embed(self, A: Any) -> Any:
        check_is_fitted(self)
        embedded = self.transform(A)
        # set_output may have made it a data frame
        return embedded.to_numpy() if hasattr(embedded, "to_numpy") else embedded

    def _embed_both(self, A: Any, B: Any) -> list[Any]:
        if B is None and self._one_map:
            return [self._embed(A)]
        return [self._embed(A), self._embed_second(A if B is None else B)]

    def _embed_second(self, A: Any) -> Any:
        """The points that distances go to, which have a map of their own where not ``_one_map``."""
        return self._embed(A)

    def _signed(self, term: Callable[..., Any], *embedded: Any) -> Any:
        """A quadratic term of coordinates, less that of those whose sign is negative."""
        if not _is_signed(self):
            return term(*embedded)
        positive = to_numpy(self.signature_) > 0
        first, second = (
            term(*(take_rows(E.T, np.flatnonzero(kept)).T for E in embedded))
            for kept in (positive, ~positive)
        )
        return first - second

    def _root(self, squares: Callable[..., Any], *embedded: Any) -> Any:
        """Square root of a term; where it may be negative, of its absolute value with its sign."""
        value = self._signed(squares, *embedded)
        xp = namespace(value)
        return xp.sign(value) * xp.sqrt(xp.abs(value)) if _is_signed(self) else xp.sqrt(value)


def places_of(metric: Any, X: Any) -> Any:
    """Where rows lie: what a metric keeps of the table it was fitted to, else its ``transform``."""
    if isinstance(metric, Pipeline) and len(metric.steps) > 1:
        return places_of(metric[-1], metric[:-1].transform(X))
    return getattr(metric, "places", metric.transform)(X)


def innermost(metric: Any) -> Any:
    """The last step of a pipeline, or what a search found best, down to the metric itself."""
    while isinstance(metric, Pipeline) or hasattr(metric, "best_estimator_"):
        metric = metric[-1] if isinstance(metric, Pipeline) else metric.best_estimator_
    return metric


def refuse_signed(metric: Any) -> None:
    """Refuse a metric whose squared distances may be negative: coordinates cannot hold them."""
    metric = innermost(metric)
    if _is_signed(metric) or _is_signed(getattr(metric, "learner_", None)):
        raise ValueError(
            f"Got {metric!r}, whose squared distances may be negative, but expected a metric that "
            "is the Euclidean distance of its coordinates: try psd='solve' or psd='clip'."
        )


def _is_signed(metric: Any) -> bool:
    signature = getattr(metric, "signature_", None)
    return signature is not None and bool((to_numpy(signature) < 0).any())


def _require_pairs(A: Any, B: Any) -> None:
    """Refuse values between all rows that cannot fit, before anything is embedded."""
    sizes = [len(X) if isinstance(X, list) else (np.shape(X) or (1,))[0] for X in (A, B)]
    rows, columns = sizes[0], sizes[0] if B is None else sizes[1]
    require_memory(
        2.0 * 8 * rows * columns,  # the squares and their roots
        f"The values between {rows} and {columns} points",
        "try pair_distance for chosen pairs, blocks of rows, or NearestNeighbors on transform(X).",
    )


def _one_row(point: Any) -> np.ndarray:
    """A point as a vector, where it may be the only row of a matrix."""
    row = to_numpy(point) if hasattr(point, "shape") else np.asarray(point)
    return row[0] if row.ndim == 2 and len(row) == 1 else row


def _takes_objects(metric: Any) -> bool:
    return getattr(getattr(metric, "kernel_", None), "takes_objects", False)


def _ends(pairs: Any, *, objects: bool = False) -> tuple[Any, Any]:
    """First and second points of pairs."""
    if objects:
        first, second = zip(*pairs, strict=True)
        return list(first), list(second)
    pairs = pairs if hasattr(pairs, "ndim") else np.asarray(pairs)
    if pairs.ndim != 3 or pairs.shape[1] != 2:
        raise ValueError(
            f"Got pairs of shape {tuple(pairs.shape)}, but expected (n_pairs, 2, n_features): two "
            "points each. For row numbers, pass X as well."
        )
    return pairs[:, 0, :], pairs[:, 1, :]
