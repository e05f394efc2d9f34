"""A learner from pairs that may have a kernel of its own."""

from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric.compute import like, to_numpy
from kernelmetric.graphs import Pairs, as_pairs
from kernelmetric.inputs import Weights, check_points
from kernelmetric.kernels import as_kernel, form_alignment, gram_alignment
from kernelmetric.kernels._names import with_tags_of
from kernelmetric.learners._checks import as_matrix
from kernelmetric.learners._progress import with_callbacks
from kernelmetric.learners._tuple_learner import PairCounts, PairLearner, Spanned
from kernelmetric.spaces import automatic_space


class SpaceLearner(PairLearner):
    """A learner on the points, or on the coordinates of a kernel's automatic space."""

    _takes_comparisons = True

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        similar: Any = None,
        dissimilar: Any = None,
        pairs: Any = None,
        triplets: Any = None,
        quadruplets: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn the metric from labels, from pairs, or from comparisons.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; or pairs, triplets or quadruplets of them, (n_tuples, 2, 3 or 4, n_features).
        y : array-like of shape (n_samples,), default=None
            Class labels, from which pairs are made. Of pairs of points, 1 for similar and -1 for
            dissimilar ones.
        similar, dissimilar : array-like of shape (n_pairs, 2), default=None
            Row numbers of pairs, instead of labels.
        pairs : Pairs, default=None
            Both kinds of pairs, instead of labels.
        triplets : Triplets or array-like of shape (n_triplets, 3), default=None
            Row numbers (a, b, c), instead of labels: a is nearer to b than to c.
        quadruplets : Quadruplets or array-like of shape (n_quadruplets, 4), default=None
            Row numbers (a, b, c, d), instead of labels: a is nearer to b than c is to d.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts, zero to leave it out. A pair counts the product of its two.

        Returns
        -------
        object
            The fitted metric.
        """
        given = {"pairs": pairs, "similar": similar, "dissimilar": dissimilar}
        compared = {"triplets": triplets, "quadruplets": quadruplets}
        X, y, given = self._as_rows(X, y, given | compared)
        compared = {name: given.pop(name) for name in compared}
        others = {"y": y, **given, "sample_weight": sample_weight}
        tuples = self._given_tuples(_num_samples(X), compared, others)
        if tuples is None:
            return self._fit_pairs(X, y, tuple(given.values()), sample_weight)
        points = self._learned_on(X, None, (None, None, None))
        self.tuples_ = tuples
        self._learn(points, PairCounts(None, np.ones(len(points.Z))))
        return self

    def idealized_kernels(self, A: Any, B: Any | None = None) -> Any:
        """The learned kernel of section 3.3 of Kwok and Tsang, about the origin of the space.

        Where the kernel is not linear, :meth:`pairwise_kernels` has another origin.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
            Points.
        B : array-like of shape (m, n_features), default=None
            Other points; None means A.

        Returns
        -------
        array of shape (n, m)
            ``Σ_D α (K_ai - K_aj)(K_bi - K_bj)``, less the same over similar pairs.
        """
        check_is_fitted(self)
        E = self._about_origin(A)
        F = E if B is None else self._about_origin(B)
        return E @ like(self.get_mahalanobis_matrix(), E) @ F.T

    def __sklearn_tags__(self) -> Any:
        tags, sparse = super().__sklearn_tags__(), not self._is_linear()
        return with_tags_of(lambda: [as_kernel(self.kernel)], tags, sparse=sparse)

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
            None where there are labels or a prior, or where no pair is dissimilar.
        """
        given = (part is not None for part in (pairs, similar, dissimilar))
        if y is not None or self.prior is not None or not any(given):
            return None
        found = as_pairs(pairs, similar, dissimilar, None, n_samples)
        return found if len(found.dissimilar) else None

    def _space(self, n_samples: int, kernel: Any, *, paired: bool = False) -> Any:
        space = automatic_space(n_samples, self.random_state, paired=paired)
        return space.set_params(kernel=kernel)

    def _learned_on(self, X: Any, y: Any, given: tuple[Any, Any, Any]) -> Spanned:
        if self._is_linear():
            self.space_ = None
            return super()._learned_on(X, y, given)
        kernel = as_kernel(self.kernel)
        sparse = kernel.accepts_sparse
        X = check_points(self, X, reset=True, accept_sparse=sparse, ensure_min_samples=2)
        self._require_memory(X)
        pairs = self.pairs_for_space(*given, y, X.shape[0])
        self.space_ = self._space(X.shape[0], kernel, paired=pairs is not None)
        with config_context(transform_output="default"):
            told = pairs if self.space_.learns_from == "pairs" else y
            Z = self.space_.fit_transform(X, told)
        return Spanned(X, y, to_numpy(Z).astype(np.float64))

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

    def _align(self, X: Any, codes: np.ndarray, weights: Weights | None) -> None:
        counts = None if weights is None else weights.counts
        E = to_numpy(self._about_origin(X)).astype(np.float64)
        E, M = _unit(E), to_numpy(self.get_mahalanobis_matrix()).astype(np.float64)
        self.alignment_after_ = form_alignment(E, _unit(M), codes, counts)
        if self.space_ is not None:
            self.alignment_before_ = gram_alignment(self.space_.kernel_, X, codes, counts)
            return
        P = np.eye(len(M)) if self.prior is None else as_matrix(self.prior, "prior")
        self.alignment_before_ = form_alignment(E, _unit(P), codes, counts)


def _unit(A: np.ndarray) -> np.ndarray:
    """A multiple with entries of at most one: alignments stay, and sums of squares are finite."""
    return A / (np.max(np.abs(A)) or 1.0)
