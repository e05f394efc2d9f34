"""Relevant component analysis."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length

from kernelmetric.compute.lapack import eigh
from kernelmetric.graphs import as_pairs, warn_unlabelled
from kernelmetric.graphs._pair_sources import chunk_codes
from kernelmetric.inputs import check_labels
from kernelmetric.learners._spectral import SpectralLearner, scatter_of, shrunk, signed


@dataclass(eq=False, repr=False)
class RCA(SpectralLearner):
    r"""Relevant component analysis: what varies inside chunks does not matter.

    Chunks are small groups of points known to be alike. The metric is the inverse of the covariance
    of the n points in them about the means of their chunks [1]_,

    .. math:: M = C^{-1}, \qquad C = \frac{1}{n} \sum_k \sum_{i \in k} (x_i - m_k)(x_i - m_k)^\top.

    Fewer dimensions are those with the largest ratio of the total variance to that inside chunks.
    O(n d² + d³) time.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None keeps all.
    shrinkage : 'auto' or float, default='auto'
        Share of the identity in C, 0 to 1; 'auto' is at most that of Ledoit and Wolf.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L, with ``L C Lᵀ = I``.
    chunks_ : ndarray of shape (n_samples,)
        Number of the chunk of every point; -1 for points in none.
    eigenvalues_ : ndarray
        Ratios of the variances, descending.
    shrinkage_ : float
        The share that was used.
    loss_ : float
        Minus half the sum of the logarithms of the ratios kept.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    LDA : From classes.
    ITML : From pairs, similar and dissimilar.

    References
    ----------
    .. [1] Bar-Hillel, Hertz, Shental and Weinshall, "Learning a Mahalanobis metric from
       equivalence constraints", Journal of Machine Learning Research 6 (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import RCA
    >>> X = np.random.RandomState(0).randn(40, 3)
    >>> RCA(2).fit(X, chunks=np.repeat(np.arange(20), 2)).transform(X).shape
    (40, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: Any = "auto"

    learns_from = "chunks"
    _passes = 0.0

    def fit(
        self, X, y=None, *, chunks=None, similar=None, pairs=None, gram=None, sample_weight=None
    ) -> Self:
        """Learn the metric from chunks, from similar pairs or from labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,), default=None
            Class labels: every class is a chunk.
        chunks : array-like of int of shape (n_samples,), default=None
            Number of the chunk of every point, negative for points in none; y is then not used.
        similar : array-like of shape (n_pairs, 2), default=None
            Row numbers of pairs that are alike: what they connect is a chunk.
        pairs : Pairs, default=None
            The same; dissimilar pairs are not used.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the objective, zero to leave it out.

        Returns
        -------
        RCA
            The fitted learner.
        """
        X = self._check_points(X)
        self.chunks_ = _chunks_of(X, y, chunks, similar, pairs)
        rank = self._check_n_components(X.shape[1])
        scatter = scatter_of(X, self.chunks_, self.shrinkage, gram, sample_weight)
        self.shrinkage_ = scatter.shrinkage
        values, V = eigh(scatter.total, shrunk(scatter.within, self.shrinkage_))
        values = np.maximum(values, np.finfo(np.float64).eps)  # round-off may leave none
        self.eigenvalues_, V = values[::-1], V[:, ::-1]
        self._store(signed(scatter.leave(V[:, :rank].T)), X)
        self.loss_ = -0.5 * float(np.sum(np.log(self.eigenvalues_[:rank])))
        return self

    def _streams(self) -> str | None:
        return "at need"


def _chunks_of(X: Any, y: Any, chunks: Any, similar: Any, pairs: Any) -> np.ndarray:
    """Chunk codes, -1 for points that are in none or alone in theirs."""
    if chunks is not None:
        if similar is not None or pairs is not None:
            raise ValueError("Got chunks beside similar pairs, but expected one of the two.")
        codes = chunk_codes(chunks)
        check_consistent_length(X, codes)
    elif similar is None and pairs is None and y is not None:
        codes = check_labels(warn_unlabelled(y), X)
    else:
        codes = as_pairs(pairs, similar, None, y, X.shape[0]).components()
    counts = np.bincount(codes[codes >= 0], minlength=1)
    codes = np.where(counts[codes] < 2, -1, codes)
    if not np.any(codes >= 0):
        raise ValueError(
            "Got no chunk with two points, but expected at least one: RCA learns from what varies "
            "inside chunks."
        )
    return codes
