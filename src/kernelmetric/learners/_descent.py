"""What learners that descend share: one fit, a start for it, and how it is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelmetric.compute import (
    Weights,
    backend_of,
    calm_if_small,
    is_single,
    like,
    namespace,
    to_numpy,
    warn,
    widened,
)
from kernelmetric.learners._base import Learner, as_gram
from kernelmetric.learners._checks import LARGEST, as_matrix, check_number, check_reach
from kernelmetric.learners._progress import CallbackSupportMixin, Iterations, with_callbacks
from kernelmetric.solvers import minimize_lbfgs, right_singular
from kernelmetric.spaces import Gram

_FLOPS_OF_START = 10.0  # of a singular value decomposition, times n d²
_SINGLE_ABOVE = 1e6  # products of coordinates that all pairs of points take

Found = tuple[np.ndarray, float, bool]  # where a descent ended, the objective, whether it converged


class Descent(NamedTuple):
    """Where a descent starts, what minimises, and how its parameters become the map."""

    start: np.ndarray
    minimise: Callable[[Iterations], Found]
    leave: Callable[[np.ndarray], np.ndarray]


class IterativeLearner(CallbackSupportMixin, Learner):
    """A learner whose iterations can be watched, and ended by Ctrl-C."""

    max_iter: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "max_iter", Integral, low=1)
        self._check_tol()

    def _check_tol(self) -> None:
        check_number(self, "tol", Real, low=0)

    @contextmanager
    def _watched(
        self, start: np.ndarray, attributes: Callable[[Any], dict[str, Any]], X: Any, y: Any
    ) -> Iterator[Iterations]:
        """The record of iterations, open while they run; ``attributes`` are those of a state."""
        report = Iterations(self, self.max_iter, attributes, X, y)
        report.start(start)
        with report.kept():
            yield report
        self.loss_curve_ = report.loss_curve
        report.finish()


class GradientLearner(IterativeLearner):
    """A learner that descends on L: start, iterations, and a warning if they did not suffice.

    A class that derives from it defines ``_descent(X, targets, gram)``.
    """

    @with_callbacks
    def fit(
        self, X: Any, y: Any, *, gram: Any = None, sample_weight: Any = None
    ) -> GradientLearner:
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
        object
            The fitted learner.
        """
        return self._fit(X, y, gram, sample_weight)

    def _fit(self, X: Any, y: Any, gram: Any, weights: Weights | None, **options: Any) -> Any:
        if weights is not None:
            options["weights"] = weights
        X, targets = self._check_training(X, y)
        start, minimise, leave = self._descent(X, targets, as_gram(gram), **options)

        def attributes(L: np.ndarray) -> dict[str, Any]:
            return {"components_": like(leave(L), X)}

        with self._watched(start, attributes, X, y) as report:
            L, self.loss_, converged = minimise(report)
            self._store(leave(L), X)
        self.n_iter_ = len(report.loss_curve)
        self.converged_ = converged or report.stopped
        if not self.converged_:
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations "
                f"before reaching tol={self._resolved().get('tol', self.tol)}: raise max_iter, "
                "or tol if the metric is good enough.",
                ConvergenceWarning,
            )
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_reg()

    def _resolved(self) -> dict[str, Any]:
        """What a fit makes of "auto"."""
        return {}

    def _check_reg(self) -> None:
        reg: Any = self.reg
        if "reg" not in getattr(self, "_where_labels_are_known", ()) or not isinstance(reg, str):
            check_number(self, "reg", Real, low=0, high=LARGEST)
        elif reg not in ("auto", "shrink"):
            raise ValueError(f"Got reg={reg!r}, but expected a number >= 0, 'shrink' or 'auto'.")

    def _descent(self, *data: Any, **options: Any) -> Descent:
        """The problem, and how it is solved."""
        raise NotImplementedError(f"{type(self).__name__} must define _descent(X, targets, gram).")

    def _lbfgs(
        self, objective: Callable[..., Any], start: np.ndarray, report: Callable[..., bool]
    ) -> Found:
        """One run of L-BFGS, as long and as exact as the parameters say."""
        found = minimize_lbfgs(
            objective, start, max_iter=self.max_iter, tol=self.tol, report=report
        )
        return found.x, found.value, found.converged

    def _start(
        self,
        X: Any,
        codes: np.ndarray,
        gram: Gram | None,
        n_components: int,
        scale: Callable[[np.ndarray], np.ndarray],
        weights: Weights | None = None,
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
        Z = widened(X)
        Z = Z if W is None else to_numpy(Z) @ W
        n_components = min(n_components, Z.shape[1])
        if init == "auto":
            init = _automatic_start(n_components, Z.shape, int(codes.max()) + 1)
        if init == "identity":
            L = np.eye(n_components, Z.shape[1])
        elif init == "pca":
            with calm_if_small(_FLOPS_OF_START * Z.shape[0] * Z.shape[1] ** 2):
                L = _principal_directions(Z, n_components, weights)
        elif init == "lda":
            with calm_if_small(_FLOPS_OF_START * Z.shape[0] * Z.shape[1] ** 2):
                L = _discriminant_directions(to_numpy(Z), codes, n_components, weights)
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


def _automatic_start(n_components: int, shape: tuple[int, ...], n_classes: int) -> str:
    if n_components >= shape[1]:
        return "identity"
    return "lda" if n_components < n_classes else "pca"


def _principal_directions(Z: Any, n_components: int, weights: Weights | None = None) -> np.ndarray:
    centred = about_mean(Z, weights)
    _, Vt = right_singular(to_numpy(backend_of(centred).fewer_rows(centred)))
    return _complete(Vt[:n_components], n_components, Z.shape[1])


def about_mean(Z: Any, weights: Weights | None) -> Any:
    """Points about their mean; with weights, as long as their scatter asks for."""
    if weights is None:
        return Z - namespace(Z).mean(Z, axis=0, keepdims=True)
    Z = to_numpy(Z)
    return np.sqrt(weights.shares)[:, None] * (Z - weights.mean(Z))


def _discriminant_directions(
    Z: np.ndarray, codes: np.ndarray, n_components: int, weights: Weights | None = None
) -> np.ndarray:
    """Fisher's directions with a little shrinkage, completed by principal ones."""
    centered = about_mean(Z, weights)
    groups = [codes == code for code in np.unique(codes)]
    if weights is None:
        counts = np.array([np.count_nonzero(group) for group in groups])
        means = np.stack([centered[group].mean(axis=0) for group in groups])
    else:
        roots = np.sqrt(weights.shares)
        counts = np.array([np.sum(weights.shares[group]) for group in groups])
        means = np.stack([roots[group] @ centered[group] for group in groups]) / counts[:, None]
    between = (means * counts[:, None]).T @ means
    within = centered.T @ centered - between
    within[np.diag_indices_from(within)] += 1e-3 * np.trace(centered.T @ centered) / Z.shape[1]
    _, V = linalg.eigh(between, within)
    V = V[:, ::-1][:, : min(n_components, len(means) - 1)]
    return _complete(linalg.orth(V).T, n_components, Z.shape[1], centered)


def _complete(
    rows: np.ndarray, n_components: int, n_features: int, centered: np.ndarray | None = None
) -> np.ndarray:
    """Add orthonormal rows until there are ``n_components``."""
    missing = n_components - len(rows)
    if missing <= 0:
        return rows[:n_components]
    if centered is not None:
        span = rows.T @ rows
        rest = centered @ (np.eye(n_features) - span)
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
    n, d = points.shape
    return not is_single(points) and n * n * d >= _SINGLE_ABOVE and tol >= least


def in_float32(points: Any) -> Any:
    """The points as a rough descent takes them."""
    xp = namespace(points)
    return xp.astype(points, xp.float32, copy=False)
