"""Linear discriminant analysis: scikit-learn's, as a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from kernelmetric.compute import check_labels, check_points, streamed
from kernelmetric.learners._base import as_gram
from kernelmetric.learners._spectral import (
    SpectralLearner,
    about_centres,
    check_shrinkage,
    shrinkage_of,
    signed,
)
from kernelmetric.learners._streamed import scatter_of
from kernelmetric.solvers import right_singular
from kernelmetric.spaces import orthonormal

_ROUNDING = 1e-14  # of the largest coordinate: so little is no variation
_RANK_TOL = 1e-8  # of singular values, without shrinkage
_COINCIDE = (
    "Got classes of points that coincide, but expected some variation inside classes: "
    "LDA measures distances in units of it. Try RCA, or more points."
)
_LEAST_SHRINKAGE = 1e-8  # below it scatter may be singular, which another solver can do


class LDA(SpectralLearner):
    r"""Fisher's linear discriminant analysis.

    Directions along which the means of classes vary most, in units of the variation inside
    classes: the eigenvectors of :math:`S_b v = \lambda S_w v` with
    :math:`L S_w L^\top = I`. The distance is that of Mahalanobis with the covariance inside
    classes, in the at most c - 1 dimensions in which c classes differ. The work is done by
    scikit-learn's ``LinearDiscriminantAnalysis``.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None, or more than there are, takes all: one less than
        classes, at most.
    shrinkage : 'auto' or float, default='auto'
        Share of the identity in the covariance inside classes, between 0 and 1; 'auto' is that of
        Ledoit and Wolf, or less where that hides features of smaller scale. With 0, directions in
        which no class varies are left out.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count beside those of others; 'balanced' lets all classes
        count alike. Only ratios matter.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    shrinkage_ : float
        The share that was used.
    loss_ : float
        Minus the variance between classes in units of that inside them.
    n_features_in_ : int
        Number of features seen in fit.

    Notes
    -----
    O(n d² + d³) time. In more dimensions than points, as on the coordinates of a kernel, the
    covariance inside classes is singular, and shrinkage decides the result.

    References
    ----------
    .. [1] Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", Journal of Multivariate Analysis 88 (2004).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelmetric import LDA
    >>> X, y = load_wine(return_X_y=True)
    >>> LDA().fit(X, y).transform(X).shape
    (178, 2)
    """

    def __init__(self, n_components=None, *, shrinkage="auto", class_weight=None):
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, *, gram: Any = None, sample_weight: Any = None) -> LDA:
        """Learn the map from labelled points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,)
            Class labels.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts: its part of the objective is in proportion to it. Zero leaves the
            row out.

        Returns
        -------
        LDA
            The fitted learner.
        """
        check_shrinkage(self.shrinkage)
        if streamed(X):
            return self._fit_streamed(X, y)
        X, codes = self._check_training(X, y)
        rank = self._check_n_components(X.shape[1])
        coordinates = orthonormal(X, as_gram(gram))
        Z, weights = coordinates.Z, sample_weight
        shares = None if weights is None else weights.shares
        Z = Z if weights is None else Z - weights.mean(Z)
        about = about_centres(Z, codes, shares)
        if np.max(np.abs(about)) <= _ROUNDING * np.max(np.abs(Z)):
            raise ValueError(_COINCIDE)
        self.shrinkage_ = shrinkage_of(about, codes, self.shrinkage, shares)
        V = _directions(Z, codes, self.shrinkage_, shares)[:, :rank]
        self._keep(V, coordinates, X)
        E = Z @ V
        inside = about_centres(E, codes, shares) ** 2
        if shares is None:
            self.loss_ = float(np.sum(inside) - np.sum(E**2)) / len(E)
        else:
            self.loss_ = float(shares @ np.sum(inside - E**2, axis=1) / np.sum(shares))
        return self

    def _streams(self) -> str | None:
        share = self.shrinkage
        return "at need" if isinstance(share, str) or share >= _LEAST_SHRINKAGE else None

    def _fit_streamed(self, X: Any, y: Any) -> LDA:
        """Learn from rows on many machines: the same directions, from sums over them."""
        X = check_points(self, X, reset=True)
        codes = check_labels(y, X)
        rank = self._check_n_components(X.shape[1])
        scatter = scatter_of(X, codes)
        S = scatter.within
        if np.trace(S) <= _ROUNDING:
            raise ValueError(_COINCIDE)
        automatic = isinstance(self.shrinkage, str)
        share = scatter.shrinkage if automatic else float(self.shrinkage)
        self.shrinkage_ = share
        rest = max(1.0 - share, _LEAST_SHRINKAGE)
        ridge = max(share, _LEAST_SHRINKAGE) / rest * float(np.trace(S)) / len(S)
        _, V = linalg.eigh(scatter.total - S, S + ridge * np.eye(len(S)))
        V = V[:, ::-1][:, : int(codes.max())][:, :rank] / np.sqrt(rest)
        self._store(signed(V.T / scatter.size), X)
        self.loss_ = float(np.trace(V.T @ (S - scatter.total) @ V))
        return self


class _Ridged(BaseEstimator):
    """Covariance plus a multiple of the identity, the same for every class and for all points.

    scikit-learn's own ``shrinkage`` moves the total covariance as well, and its difference from
    that inside classes, the variance between them, is then no longer one: in many dimensions the
    directions suffer.
    """

    def __init__(self, ridge: float):
        self.ridge = ridge

    def fit(self, X: np.ndarray) -> _Ridged:
        about = X - X.mean(axis=0)
        self.covariance_ = about.T @ about / len(X) + self.ridge * np.eye(X.shape[1])
        return self


def _directions(
    Z: np.ndarray, codes: np.ndarray, share: float, shares: np.ndarray | None
) -> np.ndarray:
    """Discriminant directions in columns, the best one first."""
    if shares is not None:
        return _weighted_directions(Z, codes, share, shares)
    if share < _LEAST_SHRINKAGE:
        model = LinearDiscriminantAnalysis(solver="svd", tol=_RANK_TOL).fit(Z, codes)
        return model.scalings_[:, : int(codes.max())]
    about = about_centres(Z, codes)
    rest = max(1.0 - share, _LEAST_SHRINKAGE)
    ridge = share / rest * float(np.sum(about * about)) / about.size
    model = LinearDiscriminantAnalysis(solver="eigen", covariance_estimator=_Ridged(ridge))
    return model.fit(Z, codes).scalings_[:, : int(codes.max())] / np.sqrt(rest)


def _weighted_directions(
    Z: np.ndarray, codes: np.ndarray, share: float, shares: np.ndarray
) -> np.ndarray:
    """The same of points with weights, for which scikit-learn has no place."""
    about, n = about_centres(Z, codes, shares), float(np.sum(shares))
    roots, most = np.sqrt(shares)[:, None], int(codes.max())
    if share >= _LEAST_SHRINKAGE:
        within = about.T @ (shares[:, None] * about) / n
        rest = max(1.0 - share, _LEAST_SHRINKAGE)
        ridge = share / rest * float(np.trace(within)) / len(within)
        between = Z.T @ (shares[:, None] * Z) / n - within
        V = linalg.eigh(between, within + ridge * np.eye(len(within)))[1]
        return V[:, ::-1][:, :most] / np.sqrt(rest)
    # As its solver 'svd': whiten by what varies inside classes, then turn to what is between them.
    spread = np.sqrt(shares @ about**2 / n)
    spread[spread == 0] = 1.0
    s, Vt = right_singular(roots * about / spread / np.sqrt(n))
    kept = s > _RANK_TOL
    W = (Vt[kept] / spread).T / s[kept]
    means = (Z - about)[np.unique(codes, return_index=True)[1]]
    sizes = np.bincount(codes, weights=shares)
    s, Vt = right_singular(np.sqrt(sizes / n)[:, None] * (means @ W))
    return (W @ Vt[s > _RANK_TOL * s[0]].T)[:, :most]
