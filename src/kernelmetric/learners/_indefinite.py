"""A metric whose matrix may have negative eigenvalues, and which may bring its own space."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import (
    check_points,
    is_numpy,
    like,
    map_points,
    to_numpy,
)
from kernelmetric.metric import Metric


class SignedMetric(Metric):
    """A metric ``M = LᵀL - NᵀN`` where ``psd='none'``, on X or on the coordinates of a space.

    Classes that mix it in have a parameter ``psd`` and end their fit with ``components_`` L,
    ``negative_components_`` N and ``space_``, a fitted KPCA or None.
    """

    psd: Any
    negative_components_: Any
    space_: Any

    def transform(self, X: Any) -> Any:
        """Map points to the coordinates in which Euclidean distance is the learned one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, rank)
            For psd='none', of the positive part of the metric.
        """
        return self._through(X)

    def idealized_kernels(self, A: Any, B: Any | None = None) -> Any:
        """The learned kernel of section 3.3 of Kwok and Tsang, about the origin of the space.

        It differs from :meth:`pairwise_kernels` where the kernel is not linear, by a shift of the
        origin that no distance, support vector machine or k-means notices; alignment does.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
            Points.
        B : array-like of shape (m, n_features), default=None
            Other points; None means A.

        Returns
        -------
        array of shape (n, m)
            ``Σ_D α (K_ai - K_aj)(K_bi - K_bj) - Σ_S ...``, of the positive part unless
            psd='none'.
        """
        check_is_fitted(self)
        E = self._about_origin(A)
        F = E if B is None else self._about_origin(B)
        return E @ like(self.get_mahalanobis_matrix(), E) @ F.T

    def get_mahalanobis_matrix(self) -> Any:
        """The matrix M of the learned metric.

        Returns
        -------
        array of shape (d, d)
            In the features, or in the coordinates of ``space_``; indefinite for psd='none'.
        """
        M = super().get_mahalanobis_matrix()
        if self.psd != "none":
            return M
        return M - self.negative_components_.T @ self.negative_components_

    @property
    def _embed_negative(self) -> Any:
        if self.psd != "none":
            return None
        return lambda X: self._through(X, self.negative_components_)

    def _through(self, X: Any, L: Any = None) -> Any:
        check_is_fitted(self)
        L = self.components_ if L is None else L
        accept_sparse = self.space_ is not None and self.space_.kernel_.accepts_sparse
        Z = check_points(self, X, reset=False, accept_sparse=accept_sparse)
        if self.space_ is not None:
            with config_context(transform_output="default"):
                Z = self.space_.transform(Z)
        return map_points(Z, L if is_numpy(Z) == is_numpy(L) else like(to_numpy(L), Z))

    def _about_origin(self, X: Any) -> Any:
        """Coordinates, not centred, on which M acts."""
        d = self.components_.shape[1]
        Z = self._through(X, like(np.eye(d), self.components_))
        return Z if self.space_ is None else Z + like(to_numpy(self.space_.offset_), Z)
