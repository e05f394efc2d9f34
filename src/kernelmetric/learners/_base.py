"""What learners share: checks, the linear map, and a start for those that descend."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelmetric.compute import (
    check_labels,
    check_points,
    is_numpy,
    like,
    map_points,
    namespace,
    require_memory,
    to_numpy,
)
from kernelmetric.learners._checks import (
    LARGEST,
    as_matrix,
    check_flags,
    check_number,
    check_reach,
    check_spread,
    warn,
)
from kernelmetric.metric import Metric
from kernelmetric.solvers import CallbackSupportMixin, Gram, Iterations, Minimum

BLOCK_BYTES = 8 * 2**20  # a block of rows × n, as the passes over all pairs have it
_SINGLE_ABOVE = 1e6  # products of coordinates that all pairs of points take


class Learner(Metric, BaseEstimator):
    """A linear metric learner: ``fit`` ends in ``components_``, a map L of shape (r, d).

    A fit that is refused or fails leaves the learner as it was before, and one that succeeds
    leaves nothing of an earlier one.
    """

    learns_from = "labels"  # or targets, pairs, chunks; points, where labels only help
    _bytes_of_pair = 8  # in a block of rows × n, all temporaries together

    def __init_subclass__(cls, **options: Any) -> None:
        if "fit" in vars(cls):
            cls.fit = _all_or_nothing(cls.fit)
        super().__init_subclass__(**options)

    def transform(self, X: Any) -> Any:
        """Map points to the coordinates in which Euclidean distance is the learned one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, n_components)
            ``X Lᵀ``.
        """
        check_is_fitted(self)
        X = check_points(self, X, reset=False)
        L = self.components_
        if is_numpy(X) != is_numpy(L):  # fitted in one array library, applied in another
            L = like(to_numpy(L), X)
        return map_points(X, L)

    def estimate_memory(self, n_samples: int, n_features: int) -> int:
        """Bytes that a fit takes at its peak, besides the data.

        Parameters
        ----------
        n_samples : int
            Number of training points.
        n_features : int
            Number of features.

        Returns
        -------
        int
            An estimate, within a factor of two.
        """
        r = getattr(self, "n_components", None) or n_features
        # copies of X and its images, L with twenty vectors of L-BFGS, blocks of rows × n
        arrays = 4 * n_samples * (n_features + r) + 25 * n_features * r
        return 8 * arrays + min(BLOCK_BYTES, self._bytes_of_pair * n_samples**2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_training(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Validated points, and class codes."""
        X = self._check_points(X)
        return X, check_labels(y, X)

    def _check_points(self, X: Any) -> Any:
        X = check_points(self, X, reset=True, ensure_min_samples=2)
        check_spread(X)
        if hasattr(self, "n_components"):
            self._check_n_components(X.shape[1])
        self._require_memory(X)
        return X

    def _require_memory(self, X: Any) -> None:
        require_memory(
            self.estimate_memory(*X.shape),
            f"{type(self).__name__} on {X.shape[0]} points with {X.shape[1]} features",
            "reduce the features first (PCA, or a space of lower rank), or set n_components.",
        )

    def _check_n_components(self, n_features: int) -> int:
        r = self.n_components
        if r is None:
            return n_features
        check_number(self, "n_components", Integral, low=1)
        if r > n_features:
            raise ValueError(
                f"Got n_components={r}, but expected at most {n_features}, the number of features."
            )
        return int(r)

    def _store(self, L: np.ndarray, X: Any) -> None:
        """Keep the map, in the dtype and library of the data; never with a NaN in it."""
        if not np.all(np.isfinite(L)):
            raise ValueError(
                f"{type(self).__name__} ended in a map with NaN or infinity, so nothing was kept: "
                "the features probably differ too much in scale. Standardize them first."
            )
        # A view's strides would send it to another routine than its copy; torch takes none < 0.
        self.components_ = like(np.ascontiguousarray(L), X)


class GradientLearner(CallbackSupportMixin, Learner):
    """A learner that descends on L: start, iterations, and a warning if they did not suffice."""

    def _start(
        self,
        X: Any,
        codes: np.ndarray,
        gram: Gram | None,
        n_components: int,
        scale: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """The map before the first iteration, in the coordinates of X.

        A given map, and the last one of a warm start, are taken as they are; ``scale`` gives the
        others a good length, and what is good depends on the objective.

        Where the basis is not orthonormal the start is built in whitened coordinates and mapped
        back, so that it means the same as in an orthonormal basis.
        """
        init = self.init
        given = None if isinstance(init, str) else self._given_start(init, X, n_components)
        W = None if gram is None else gram.inv_sqrt()
        if self.warm_start and hasattr(self, "components_"):
            most = n_components if W is None else min(n_components, W.shape[1])
            return self._last_map(X, most if given is None else len(given))
        if given is not None:
            return given
        Z = to_numpy(X).astype(np.float64)
        Z = Z if W is None else Z @ W
        n_components = min(n_components, Z.shape[1])
        if init == "auto":
            init = _automatic_start(n_components, Z.shape, int(codes.max()) + 1)
        if init == "identity":
            L = np.eye(n_components, Z.shape[1])
        elif init == "pca":
            L = _principal_directions(Z, n_components)
        elif init == "lda":
            L = _discriminant_directions(Z, codes, n_components)
        elif init == "random":
            rng = check_random_state(self.random_state)
            L = rng.standard_normal((n_components, Z.shape[1])) / np.sqrt(Z.shape[1])
        else:
            raise ValueError(
                f"Got init={init!r}, but expected 'auto', 'identity', 'pca', 'lda', 'random' or "
                "an array of shape (n_components, n_features)."
            )
        return scale(L if W is None else L @ W.T)

    def _given_start(self, init: Any, X: Any, n_components: int) -> np.ndarray:
        L = as_matrix(init, "init")
        wanted = (n_components, X.shape[1])
        if L.ndim != 2 or L.shape[1] != wanted[1] or (self.n_components and L.shape != wanted):
            raise ValueError(
                f"Got init of shape {L.shape}, but expected (n_components, n_features) = {wanted}."
            )
        if not np.all(np.isfinite(L)):
            raise ValueError("Got init with NaN or infinity, but expected finite numbers.")
        check_reach(L, X, "init")
        return L

    def _last_map(self, X: Any, n_components: int) -> np.ndarray:
        """The map of the last fit, for a warm start; refused where it is of another shape."""
        L = to_numpy(self.components_).astype(np.float64)
        if L.shape[1] != X.shape[1] or not self._suits(len(L), n_components):
            raise ValueError(
                f"Got warm_start=True with a last map of shape {L.shape}, but expected "
                f"(n_components, n_features) = {(n_components, X.shape[1])}: set warm_start=False "
                "to start anew, or keep n_components, init and the features as they were."
            )
        check_reach(L, X, "a last map (warm_start=True)")
        return L

    def _suits(self, rows: int, n_components: int) -> bool:
        """Whether a descent can go on from a map of so many rows."""
        return rows == n_components

    def _check_iteration_parameters(self) -> None:
        check_number(self, "max_iter", Integral, low=1)
        check_number(self, "tol", Real, low=0)
        check_number(self, "reg", Real, low=0, high=LARGEST)

    def _store_descent(self, found: Minimum, report: Iterations) -> None:
        """Say how the descent went."""
        self.loss_ = found.value
        self.loss_curve_ = report.loss_curve
        self.n_iter_ = len(report.loss_curve)
        self.converged_ = found.converged or report.stopped
        report.finish()
        self._warn_unless_converged()

    def _warn_unless_converged(self) -> None:
        if not self.converged_:
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations "
                f"before reaching tol={self.tol}: raise max_iter, or tol if the "
                "metric is good enough.",
                ConvergenceWarning,
            )


def _all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A fit whose results are all of one call: of this one, or, where it fails, of the last.

    Ctrl-C leaves a map of this call where there is one already (``Iterations.kept``).
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **options: Any) -> Any:
        check_flags(self)
        before = dict(vars(self))
        needed = {"components_"} if getattr(self, "warm_start", False) else set()
        for name in before:
            if name.endswith("_") and not name.startswith("_") and name not in needed:
                delattr(self, name)
        try:
            return fit(self, *args, **options)
        except BaseException as error:
            found = vars(self).get("components_")
            interrupted = isinstance(error, KeyboardInterrupt)
            if not interrupted or found is None or found is before.get("components_"):
                vars(self).clear()
                vars(self).update(before)
            raise

    return whole


def _automatic_start(n_components: int, shape: tuple[int, ...], n_classes: int) -> str:
    if n_components >= shape[1]:
        return "identity"
    return "lda" if n_components < n_classes else "pca"


def _principal_directions(Z: np.ndarray, n_components: int) -> np.ndarray:
    _, _, Vt = linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    return _complete(Vt[:n_components], n_components, Z.shape[1])


def _discriminant_directions(Z: np.ndarray, codes: np.ndarray, n_components: int) -> np.ndarray:
    """Fisher's directions with a little shrinkage, completed by principal ones."""
    centered = Z - Z.mean(axis=0)
    means = np.stack([centered[codes == code].mean(axis=0) for code in np.unique(codes)])
    counts = np.bincount(codes)
    counts = counts[counts > 0]
    between = (means * counts[:, None]).T @ means
    within = centered.T @ centered - between
    within[np.diag_indices_from(within)] += 1e-3 * np.trace(centered.T @ centered) / Z.shape[1]
    _, V = linalg.eigh(between, within)
    V = V[:, ::-1][:, : min(n_components, len(means) - 1)]
    return _complete(linalg.orth(V).T, n_components, Z.shape[1], Z)


def _complete(
    rows: np.ndarray, n_components: int, n_features: int, Z: np.ndarray | None = None
) -> np.ndarray:
    """Add orthonormal rows until there are ``n_components``."""
    missing = n_components - len(rows)
    if missing <= 0:
        return rows[:n_components]
    if Z is not None:
        span = rows.T @ rows
        rest = (Z - Z.mean(axis=0)) @ (np.eye(n_features) - span)
        scatter = rest.T @ rest
        # The rows that are there come last, also after directions in which nothing varies.
        _, V = linalg.eigh(scatter - (1.0 + np.trace(scatter)) * span)
        return np.vstack([rows, V[:, ::-1][:, :missing].T])
    return np.vstack([rows, linalg.null_space(rows).T[:missing]])


def in_single(points: Any, tol: float, least: float = 1e-5) -> bool:
    """Whether a descent on these points may run in float32: twice the speed, half the memory.

    Only large problems need the speed, and only a tolerance well above the round-off of the
    objective (``least``) allows it.
    """
    xp = namespace(points)
    n, d = points.shape
    return points.dtype == xp.float64 and n * n * d >= _SINGLE_ABOVE and tol >= least


def centered(X: Any) -> Any:
    """Points moved to their mean: distances stay, cancellation in their products goes."""
    return X - namespace(X).mean(X, axis=0, keepdims=True)


def truncated(L: np.ndarray, rank: int) -> np.ndarray:
    """The map of this rank whose matrix LᵀL is nearest; L itself where its rank is no larger."""
    if rank >= len(L):
        return L
    _, s, Vt = linalg.svd(L, full_matrices=False)
    return s[:rank, None] * Vt[:rank]


def as_gram(gram: Any) -> Gram | None:
    """A Gram object from what a caller passed: None, an array, or a Gram."""
    return gram if gram is None or isinstance(gram, Gram) else Gram(np.asarray(gram))


def frobenius(L: np.ndarray, gram: Gram | None) -> tuple[float, np.ndarray]:
    """Squared Hilbert-Schmidt norm of the map, ``tr(L G Lᵀ)``, and its gradient."""
    return (float(np.sum(L * L)), 2.0 * L) if gram is None else gram.penalty(L)
