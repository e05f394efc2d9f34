"""Probabilistic linear discriminant analysis: log-likelihood ratios of one class or two."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kernelmetric import inputs
from kernelmetric._warnings import warn
from kernelmetric.compute import like, precise, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.watch import until_limit
from kernelmetric.graphs import check_rows
from kernelmetric.inputs._parameters import COUNT_OR_NONE, Numbers, check_parameters
from kernelmetric.retrieval._forms import VectorMap, require_digits

_LEAST = 1e-8  # variance between classes, beside that within: a direction in which none is seen


@dataclass(eq=False, repr=False)
class PLDA(VectorMap):
    r"""Probabilistic linear discriminant analysis with two covariances.

    A vector is the place of its class and what varies within it, both normal [1]_:

    .. math:: x_{ij} = \mu + y_i + \varepsilon_{ij}, \qquad y_i \sim N(0, B), \quad
              \varepsilon_{ij} \sim N(0, W).

    The score of vectors is the logarithm of how much likelier they are of one class than of two.
    Unlike a cosine it knows which directions vary within classes, how common a place is, and how
    many vectors of a class are known. B, W and μ are of the largest likelihood (EM), from classes
    of any sizes. O(n d² + d³) time, and O(c d² + d³) for each iteration with c classes.

    Parameters
    ----------
    n_components : int, default=None
        Rank of B: the directions in which classes differ most; None takes all.
    shrinkage : 'auto' or float, default='auto'
        Share of the identity in W, 0 to 1; 'auto' is that of Ledoit and Wolf.
    tol : float, default=1e-6
        Gain of the mean log-likelihood below which the iterations end.
    max_iter : int, default=200
        Maximum number of iterations.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map L with L W Lᵀ = I and L B Lᵀ diagonal.
    spread_ : ndarray of shape (n_components,)
        That diagonal: the variance of classes, in units of the variance within them.
    mean_ : array of shape (n_features,)
        The mean μ.
    shrinkage_ : float
        The share that was used.
    log_likelihood_ : float
        Of the training vectors, for each of them.
    n_iter_ : int
        Iterations done.
    n_features_in_ : int
        Number of features seen in fit.

    References
    ----------
    .. [1] Brümmer and de Villiers, "The speaker partitioning problem", Odyssey 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from kernelmetric.retrieval import PLDA
    >>> X, y = load_wine(return_X_y=True)
    >>> plda = PLDA().fit(scale(X), y)
    >>> enrolled = plda.log_likelihood_ratio(scale(X), scale(X)[::10], y[::10])
    >>> bool((enrolled.argmax(axis=1) == y).mean() > 0.95)
    True
    """

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: Any = "auto"
    tol: float = 1e-6
    max_iter: int = 200

    _allowed: ClassVar[dict[str, Any]] = {
        "n_components": COUNT_OR_NONE,
        "shrinkage": Numbers(Real, low=0, high=1, words=("auto",)),
        "tol": Numbers(Real, low=0),
        "max_iter": Numbers(Integral, low=1),
    }

    def fit(self, X: Any, y: Any) -> PLDA:
        """Learn both covariances from vectors and their classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        y : array-like of shape (n_samples,)
            Classes, some of which have two vectors or more.

        Returns
        -------
        PLDA
            The fitted model.
        """
        check_parameters(self)
        with inputs.unchanged_on_failure(self):
            Z = inputs.check_points(self, X, reset=True)
            if y is None:
                raise ValueError("PLDA requires y to be passed, but the target y is None.")
            check_consistent_length(Z, y)
            codes = inputs.check_labels(inputs.label_column(y), Z)
            points = to_numpy(precise(Z))
            require_digits(points - points.mean(axis=0), "vectors")
            sizes = np.bincount(codes)
            if sizes.max() < 2:
                raise ValueError(
                    f"Got {len(sizes)} classes of one vector each, but expected some with several "
                    "vectors: these say what varies within a class."
                )
            if self.n_components is not None and self.n_components > Z.shape[1]:
                raise ValueError(
                    f"Got n_components={self.n_components}, but expected at most {Z.shape[1]}, the "
                    "number of features."
                )
            model = self._learned(points, codes, sizes.astype(float))
            self.components_, self.mean_ = (like(part, Z) for part in (model.L, model.mean))
            self.spread_ = model.spread
        return self

    def _learned(self, X: np.ndarray, codes: np.ndarray, sizes: np.ndarray) -> _Model:
        """EM from the moments, until the likelihood no longer grows."""
        sums = np.zeros((len(sizes), X.shape[1]))
        np.add.at(sums, codes, X)
        means = sums / sizes[:, None]
        within = X - means[codes]
        share = self.shrinkage
        self.shrinkage_ = float(ledoit_wolf_shrinkage(within) if isinstance(share, str) else share)
        scatter, last = within.T @ within, -np.inf
        moved = means - means.mean(axis=0)
        W = self._shrunk(scatter / max(len(X) - len(sizes), 1))
        model = _Model.of(moved.T @ moved / len(sizes), W, X.mean(axis=0), self.n_components)
        for number in until_limit(range(1, self.max_iter + 1), "the iterations of PLDA"):
            B, W, mean, value = model.improved(means, sizes, scatter)
            self.n_iter_, self.log_likelihood_ = number, value / len(X)
            if self.log_likelihood_ - last <= self.tol:
                return model
            last = self.log_likelihood_
            model = _Model.of(B, self._shrunk(W), mean, self.n_components)
        warn(
            f"PLDA ended after {self.n_iter_} iterations, in the last of which the log-likelihood "
            "still grew: increase max_iter, or tol if this is good enough.",
            ConvergenceWarning,
        )
        return model

    def _shrunk(self, W: np.ndarray) -> np.ndarray:
        size = float(np.trace(W)) / len(W)
        if not size > 0:
            raise ValueError(
                "Got classes of equal vectors, but expected some that vary: nothing is known of "
                "what varies within a class."
            )
        return (1 - self.shrinkage_) * W + max(self.shrinkage_, 1e-9) * size * np.eye(len(W))

    def transform(self, X: Any) -> Any:
        """Map vectors to coordinates of unit variance within classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        array of shape (n_samples, n_components)
            The coordinates L (x - μ); classes vary by ``spread_`` there.
        """
        check_is_fitted(self)
        Z = inputs.check_points(self, X, reset=False)
        return (Z - like(to_numpy(self.mean_), Z)) @ like(to_numpy(self.components_), Z).T

    def log_likelihood_ratio(self, X: Any, enrolled: Any, names: Any = None) -> np.ndarray:
        r"""How much likelier vectors are of the same class as those enrolled than of another.

        .. math:: \log \frac{p(x, e_1, \dots, e_k \mid \text{one class})}
                  {p(x)\, p(e_1, \dots, e_k \mid \text{one class})}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        enrolled : array-like of shape (n_enrolled, n_features)
            Vectors that are known.
        names : array-like of shape (n_enrolled,), default=None
            Whose vectors these are; None: every row is somebody else's.

        Returns
        -------
        ndarray of shape (n_samples, n_names)
            Logarithms of ratios, above zero for the same class; names in ascending order.
        """
        u, known = (to_numpy(precise(self.transform(part))) for part in (X, enrolled))
        codes = np.arange(len(known))
        if names is not None:
            check_consistent_length(enrolled, names)
            codes = np.unique(inputs.label_column(names), return_inverse=True)[1]
        sizes = np.bincount(codes)[:, None]
        sums = np.zeros((len(sizes), known.shape[1]))
        np.add.at(sums, codes, known)
        place, precision, constant = self._predicted(sums, sizes)
        base = 1.0 / (1.0 + self.spread_)
        flat = constant - 0.5 * np.sum(place**2 * precision, axis=1)
        return flat + u @ (place * precision).T - 0.5 * (u * u) @ (precision - base).T

    def pair_distance(self, pairs: Any, X: Any) -> np.ndarray:
        """Minus the log-likelihood ratio of pairs: smaller is more alike, and it may be negative.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2)
            Row numbers of X.
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        ndarray of shape (n_pairs,)
            What :class:`~kernelmetric.PairVerifier` finds a threshold of.
        """
        u = to_numpy(precise(self.transform(X)))
        rows = check_rows(pairs, "given", len(u))
        place, precision, constant = self._predicted(u[rows[:, 0]], np.ones((len(rows), 1)))
        v, base = u[rows[:, 1]], 1.0 / (1.0 + self.spread_)
        terms = (v - place) ** 2 * precision - v * v * base
        return 0.5 * np.sum(terms, axis=1) - constant

    def _predicted(self, sums: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, ...]:
        """Mean and precision of one more vector of a class, and half the log of their ratio."""
        psi = self.spread_
        shrunk = psi / (1.0 + sizes * psi)
        precision = 1.0 / (1.0 + shrunk)
        return sums * shrunk, precision, 0.5 * np.sum(np.log((1.0 + psi) * precision), axis=1)


@dataclass
class _Model:
    """Both covariances in coordinates in which they are diagonal."""

    L: np.ndarray
    spread: np.ndarray
    mean: np.ndarray
    log_det: float  # of W
    W: np.ndarray

    @classmethod
    def of(cls, B: np.ndarray, W: np.ndarray, mean: np.ndarray, rank: int | None) -> _Model:
        """L W Lᵀ = I and L B Lᵀ diagonal, the largest first."""
        values, V = eigh(W)
        root = V / np.sqrt(values)
        spread, U = eigh(root.T @ B @ root)
        spread, U = np.maximum(spread[::-1], _LEAST)[:rank], U[:, ::-1][:, :rank]
        return cls((root @ U).T, spread, mean, float(np.sum(np.log(values))), W)

    def improved(self, means: np.ndarray, sizes: np.ndarray, scatter: np.ndarray) -> Any:
        """B, W and mean of the next iteration, and the log-likelihood of this one."""
        n, psi, k = np.sum(sizes), self.spread, sizes[:, None]
        moved = means - self.mean
        u = moved @ self.L.T
        left = psi / (1.0 + k * psi)  # variances of places that are known by k vectors
        place = k * left * u
        solved = np.linalg.solve(self.W, scatter)
        outside = np.linalg.solve(self.W, (moved * k).T)
        squares = np.sum(outside.T * moved, axis=1) - np.sum(k * place * u, axis=1)
        value = -0.5 * (
            n * (len(self.mean) * np.log(2 * np.pi) + self.log_det)
            + np.trace(solved)
            + np.sum(np.log1p(k * psi))
            + np.sum(squares)
        )
        # The map of places and their covariance: both at once make EM fast.
        seen = (place * k).T @ place + np.diag(sizes @ left)
        V = np.linalg.solve(seen, (place * k).T @ moved).T
        C = (np.diag(left.sum(axis=0)) + place.T @ place) / len(sizes)
        rest = moved - place @ V.T
        shift = sizes @ rest / n
        rest -= shift
        W = (scatter + (rest * k).T @ rest + (V * (sizes @ left)) @ V.T) / n
        return V @ C @ V.T, W, self.mean + shift, value
