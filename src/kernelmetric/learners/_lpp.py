"""Locality preserving projections."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import to_numpy
from kernelmetric.graphs import heat_graph, laplacian
from kernelmetric.inputs import check_labels
from kernelmetric.learners._base import as_gram
from kernelmetric.learners._checks import check_elsewhere
from kernelmetric.learners._spectral import SpectralLearner, shrinkage_of, shrunk
from kernelmetric.spaces import orthonormal


class LPP(SpectralLearner):
    r"""Locality preserving projections: Laplacian eigenmaps that are linear.

    Directions along which neighbours are alike, as far as the points vary at all [1]_:

    .. math:: \min_L\; \operatorname{tr} L Z^\top (D - W) Z L^\top
              \quad\text{s.t.}\quad L Z^\top D Z L^\top = I

    with :math:`w_{ij} = e^{-\|x_i - x_j\|^2 / t}` between neighbours, D the sums of the rows of W,
    and points Z about their mean in the weights D. Labels are not needed; with them, neighbours are
    of the same class.

    O(n² d) time for the neighbours and O(d³) for the eigenproblem; a block of rows × n in memory.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None takes every direction along which neighbours are more
        alike than they would be in noise, those with eigenvalues below one.
    n_neighbors : int, default=3
        Neighbours of each point.
    shrinkage : 'auto' or float, default='auto'
        Share of the identity in ``Zᵀ D Z``, between 0 and 1; 'auto' is that of Ledoit and Wolf, or
        less where that hides features of smaller scale.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    eigenvalues_ : ndarray
        All eigenvalues of the problem, ascending.
    shrinkage_ : float
        The share that was used.
    loss_ : float
        The objective: the sum of the eigenvalues kept.
    n_features_in_ : int
        Number of features seen in fit.

    References
    ----------
    .. [1] He and Niyogi, "Locality preserving projections", NIPS 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernelmetric import LPP
    >>> X, _ = load_digits(return_X_y=True)
    >>> LPP(n_components=2).fit(X[:300]).transform(X).shape
    (1797, 2)
    """

    learns_from = "points"

    def __init__(self, n_components=None, *, n_neighbors=3, shrinkage="auto"):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        gram: Any = None,
        neighbors: Any = None,
        sample_weight: Any = None,
    ) -> LPP:
        """Learn the map from points, with labels or without.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,), default=None
            Class labels: neighbours are then of the same class.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.
        neighbors : array of shape (n_samples, p), default=None
            Other coordinates of the same points in which neighbours are sought: floats, as
            integers are row numbers wherever neighbours are passed (:class:`LMNN`).
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the objective, zero to leave it out.

        Returns
        -------
        LPP
            The fitted learner.
        """
        X = self._check_points(X)
        codes = None if y is None else check_labels(y, X)
        weights = sample_weight
        rank = self._check_n_components(X.shape[1])
        coordinates = orthonormal(X, as_gram(gram))
        where = coordinates.Z if neighbors is None else to_numpy(check_elsewhere(neighbors, X))
        W = heat_graph(where, self.n_neighbors, codes, weights)
        degrees = np.asarray(W.sum(axis=1)).ravel()
        if not degrees.any():
            raise ValueError(
                "Got no class with two members, but expected at least one: LPP joins points to "
                "neighbours of their own class."
            )
        Z = coordinates.Z - np.average(coordinates.Z, axis=0, weights=degrees)
        points = np.sqrt(degrees / np.mean(degrees))[:, None] * Z
        one = np.zeros(len(points), dtype=np.intp)
        counts = np.ones(len(points)) if weights is None else weights.counts
        once = points / np.sqrt(counts)[:, None]
        self.shrinkage_ = shrinkage_of(once, one, self.shrinkage, counts)
        S = Z.T @ (laplacian(W) @ Z) / np.sum(degrees)
        values, V = linalg.eigh(
            0.5 * (S + S.T), shrunk(points.T @ points / len(Z), self.shrinkage_)
        )
        self.eigenvalues_ = values
        alike = max(int(np.sum(values < 1.0)), 1)
        kept = min(alike if self.n_components is None else rank, len(values))
        self._keep(V[:, :kept], coordinates, X)
        self.loss_ = float(np.sum(values[:kept]))
        return self
