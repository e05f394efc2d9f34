"""The one thing every fitted object here is: a metric.

Whatever was learned, from labels or from pairs, linear or through a kernel, ends in a map to
coordinates in which the Euclidean distance *is* the learned distance. Everything else follows
from ``transform``: distances, scores, the learned kernel, a function for other people's code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import like, namespace, pair_squares, require_memory, squared_distances
from kernelmetric.graphs import check_rows


class Metric(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """What a learned metric can do, given its ``transform``.

    Classes that mix it in define ``transform(X)``, and end their fit with ``components_``.
    """

    components_: Any

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
            ``|L a - L b|``, never negative, zero on the diagonal when B is None.
        """
        _require_pairs(A, B)
        return self._root(
            lambda embed: squared_distances(embed(A), None if B is None else embed(B))
        )

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
            ``⟨L a, L b⟩``: positive semi-definite, usable as ``SVC(kernel=...)``.
        """
        _require_pairs(A, B)

        def products(embed: Any) -> Any:
            E = embed(A)
            return E @ (E if B is None else embed(B)).T

        return self._signed(products)

    def pair_distance(self, pairs: Any, X: Any | None = None) -> Any:
        """Learned distance of every pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features) or (n_pairs, 2)
            The two points of every pair; or, when X is given, their row numbers in X.
        X : array-like of shape (n_samples, n_features), default=None
            The points that ``pairs`` counts; each is embedded once, however often it occurs, and
            one block of differences is in memory.

        Returns
        -------
        array of shape (n_pairs,)
            The distances.
        """
        return self._root(
            lambda embed: (
                _squares_of_points(embed, pairs) if X is None else _squares_of_rows(embed, pairs, X)
            )
        )

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

    def get_metric(self) -> Callable[[Any, Any], float]:
        """The metric as a function of two points.

        Returns
        -------
        callable
            ``metric(u, v) -> float`` for scikit-learn's ``metric=`` and SciPy's ``cdist``. It
            embeds both points at every call: for many points, transform first.
        """
        check_is_fitted(self)

        def metric(u: Any, v: Any) -> float:
            return float(self.pair_distance(np.stack([np.asarray(u), np.asarray(v)])[None])[0])

        return metric

    def get_mahalanobis_matrix(self) -> Any:
        """The matrix ``M = LᵀL`` of the learned metric.

        Returns
        -------
        array of shape (d, d)
            In the coordinates the learner saw: the features for a linear learner, the
            coordinates of the kernel's space for a kernelized one.
        """
        check_is_fitted(self)
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def _embed(self, A: Any) -> Any:
        check_is_fitted(self)
        embedded = self.transform(A)
        # set_output may have made it a data frame
        return embedded.to_numpy() if hasattr(embedded, "to_numpy") else embedded

    @property
    def _embed_negative(self) -> Any:
        """Where the metric is indefinite, the embedding whose squared distances are taken off."""
        return None

    def _signed(self, term: Callable[[Any], Any]) -> Any:
        """A quadratic term of the embedding, less that of the negative part if there is one."""
        value, negative = term(self._embed), self._embed_negative
        return value if negative is None else value - term(negative)

    def _root(self, squares: Callable[[Any], Any]) -> Any:
        """Square root of a term; where it may be negative, of its absolute value with its sign."""
        value = self._signed(squares)
        xp = namespace(value)
        if self._embed_negative is None:
            return xp.sqrt(value)
        return xp.sign(value) * xp.sqrt(xp.abs(value))


def _require_pairs(A: Any, B: Any) -> None:
    """Refuse values between all rows that cannot fit, before anything is embedded."""
    rows, columns = ((np.shape(X) or (1,))[0] for X in (A, A if B is None else B))
    require_memory(
        2.0 * 8 * rows * columns,  # the squares and their roots
        f"The values between {rows} and {columns} points",
        "try pair_distance for chosen pairs, blocks of rows, or NearestNeighbors on transform(X).",
    )


def _squares_of_points(embed: Any, pairs: Any) -> Any:
    pairs = pairs if hasattr(pairs, "ndim") else np.asarray(pairs)
    if pairs.ndim != 3 or pairs.shape[1] != 2:
        raise ValueError(
            f"Got pairs of shape {tuple(pairs.shape)}, but expected (n_pairs, 2, n_features): two "
            "points each. For row numbers, pass X as well."
        )
    A, B = embed(pairs[:, 0, :]), embed(pairs[:, 1, :])
    each = np.arange(A.shape[0])
    return like(pair_squares(A, B, each, each), A)


def _squares_of_rows(embed: Any, pairs: Any, X: Any) -> Any:
    E = embed(X)
    rows = check_rows(pairs, "given", E.shape[0])
    return like(pair_squares(E, E, rows[:, 0], rows[:, 1]), E)
