"""A learner from pairs that may have a kernel of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import Weights, check_points, like, to_numpy
from kernelmetric.graphs import Pairs, as_pairs
from kernelmetric.kernels import as_kernel, form_alignment, gram_alignment
from kernelmetric.learners._checks import as_matrix
from kernelmetric.learners._pair_learner import PairLearner
from kernelmetric.spaces import PairKPCA, automatic_space


class SpaceLearner(PairLearner):
    """A linear learner on the points, or on the coordinates of a kernel's automatic space.

    Its ``fit`` begins with ``_learned_on``, which leaves ``space_``: None for the linear kernel.
    """

    kernel: Any
    random_state: Any
    space_: Any

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = as_kernel(self.kernel)
        except ValueError:  # fit will say what is wrong; asking for tags must not
            return tags
        tags.input_tags.pairwise = kernel.pairwise
        tags.input_tags.sparse = kernel.accepts_sparse and not self._is_linear()
        return tags

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def pairs_for_space(
        self, pairs: Any, similar: Any, dissimilar: Any, y: Any, n_samples: int
    ) -> Pairs | None:
        """The pairs that an automatic space may go by.

        Parameters
        ----------
        pairs, similar, dissimilar, y : object
            As ``fit`` got them.
        n_samples : int
            Number of points.

        Returns
        -------
        Pairs or None
            None where there are labels, which choose kernel and pairs, where no pair is
            dissimilar, or where a prior is given: that is written in all coordinates.
        """
        if (
            y is not None
            or self.prior is not None
            or all(part is None for part in (pairs, similar, dissimilar))
        ):
            return None
        found = as_pairs(pairs, similar, dissimilar, None, n_samples)
        return found if len(found.dissimilar) else None

    def _space(self, n_samples: int, kernel: Any, *, paired: bool = False) -> Any:
        space = automatic_space(n_samples, self.random_state, paired=paired)
        return space.set_params(kernel=kernel)

    def _learned_on(
        self, X: Any, y: Any, given: tuple[Any, Any, Any]
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        if self._is_linear():
            self.space_ = None
            return super()._learned_on(X, y, given)
        kernel = as_kernel(self.kernel)
        X = check_points(
            self, X, reset=True, accept_sparse=kernel.accepts_sparse, ensure_min_samples=2
        )
        self._require_memory(X)
        pairs = self.pairs_for_space(*given, y, X.shape[0])
        self.space_ = self._space(X.shape[0], kernel, paired=pairs is not None)
        with config_context(transform_output="default"):
            Z = self.space_.fit_transform(X, pairs if isinstance(self.space_, PairKPCA) else y)
        self.space_._settle()
        return X, to_numpy(Z).astype(np.float64), None

    def _coordinates(self, X: Any) -> Any:
        if self.space_ is None:
            return super()._coordinates(X)
        X = check_points(self, X, reset=False, accept_sparse=self.space_.kernel_.accepts_sparse)
        with config_context(transform_output="default"):
            return self.space_.transform(X)

    def _about_origin(self, X: Any) -> Any:
        """Coordinates, not centred, on which M acts."""
        Z = self._coordinates(X)
        return Z if self.space_ is None else Z + like(to_numpy(self.space_.offset_), Z)

    def _learned_labels(self, X: Any, codes: np.ndarray, weights: Weights | None) -> None:
        counts = None if weights is None else weights.counts
        E = to_numpy(self._about_origin(X)).astype(np.float64)
        E = E / (np.max(np.abs(E)) or 1.0)  # no alignment depends on it, but sums of squares do
        M = to_numpy(self.get_mahalanobis_matrix()).astype(np.float64)
        self.alignment_after_ = form_alignment(E, M / (np.max(np.abs(M)) or 1.0), codes, counts)
        if self.space_ is not None:
            self.alignment_before_ = gram_alignment(self.space_.kernel_, X, codes, counts)
            return
        P = np.eye(len(M)) if self.prior is None else as_matrix(self.prior, "prior")
        self.alignment_before_ = form_alignment(E, P / (np.max(np.abs(P)) or 1.0), codes, counts)
