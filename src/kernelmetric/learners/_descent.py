"""What learners that descend share: one fit, a start for it, and how it is watched."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelmetric._warnings import warn
from kernelmetric.compute import backend_of, like, namespace, precise, small_steps, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.watch import OutOfTime, leavable, time_left, warn_of_limit
from kernelmetric.inputs import Weights
from kernelmetric.inputs._parameters import COUNT, PRICE, Numbers
from kernelmetric.learners._base import FromLabels, Learner, as_gram
from kernelmetric.learners._checks import as_matrix, check_reach
from kernelmetric.learners._progress import CallbackSupportMixin, Iterations, with_callbacks
from kernelmetric.solvers import minimize_lbfgs, right_singular
from kernelmetric.spaces import Gram

_FLOPS_OF_START = 10.0  # of a singular value decomposition, times n d²
OF_POINTS = 0.012  # of the tolerance of a descent: so right need be its points

Found = tuple[np.ndarray, float, bool]  # where a descent ended, the objective, whether it converged


class Training(NamedTuple):
    """What a descent learns from; targets are class codes, numbers or comparisons."""

    X: Any
    targets: Any
    gram: Gram | None  # of the basis of X, where it is not orthonormal
    weights: Weights | None

    def without_classes(self) -> Self:
        """The same as if all points were of one class."""
        return self._replace(targets=np.zeros(self.X.shape[0], dtype=np.intp))


class Descent(NamedTuple):
    """Where a descent starts, what minimises, and how its parameters become the map."""

    start: np.ndarray
    minimise: Callable[[Iterations], Found]
    leave: Callable[[np.ndarray], np.ndarray] = lambda L: L


class IterativeLearner(CallbackSupportMixin, Learner):
    """A learner whose iterations can be watched, and ended by Ctrl-C."""

    _allowed: ClassVar = {"max_iter": COUNT, "tol": Numbers(Real, low=0)}

    @contextmanager
    def _watched(
        self, start: np.ndarray, attributes: Callable[[Any], dict[str, Any]], X: Any, y: Any
    ) -> Iterator[Iterations]:
        """The record of iterations while they run; ``attributes`` makes fitted ones of a state."""
        report = Iterations(self, self.max_iter, attributes, X, y)
        report.start(start)
        with report.running():
            yield report
        self.loss_curve_ = report.loss_curve
        report.finish()

    def _warn_unless_converged(self, advice: str, where: str = "before reaching") -> None:
        if self.converged_:
            return
        if time_left() <= 0:
            name = type(self).__name__
            warn_of_limit(f"{name} after {self.n_iter_} iterations: the last map is kept")
        else:
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations {where} "
                f"tol={self._resolved().get('tol', self.tol)}: raise max_iter, or {advice}.",
                ConvergenceWarning,
            )

    def _resolved(self) -> dict[str, Any]:
        """What a fit makes of "auto"."""
        return {}


class GradientLearner(IterativeLearner):
    """A learner that descends on L: start, iterations, and a warning if they did not suffice.

    A class that derives from it defines ``_descent(training)``.
    """

    _allowed: ClassVar = {"reg": PRICE}
    _passes = 50.0
    _optimises_matrix = False  # M as a whole, whatever its truncation

    fit = with_callbacks(FromLabels.fit)

    def _fit(self, X: Any, y: Any, gram: Any, weights: Weights | None, **options: Any) -> Any:
        X, targets = self._check_training(X, y)
        training = Training(X, targets, as_gram(gram), weights)
        start, minimise, leave = self._descent(training, **options)

        def attributes(L: np.ndarray) -> dict[str, Any]:
            return {"components_": like(leave(L), X)}

        with self._watched(start, attributes, X, y) as report:
            try:
                with leavable():
                    L, self.loss_, converged = minimise(report)
            except OutOfTime:
                L, self.loss_, converged = report.best(start)
            self._store(leave(L), X)
        self.n_iter_ = len(report.loss_curve)
        self.converged_ = converged or (report.stopped and time_left() > 0)
        self._warn_unless_converged("tol if the metric is good enough")
        return self

    def _descent(self, *training: Any, **options: Any) -> Descent:
        """The problem, and how it is solved."""
        raise NotImplementedError(f"{type(self).__name__} must define _descent(training).")

    def _start(
        self, training: Training, n_components: int, scale: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """The first map: a given one, that of the last fit, or one that ``scale`` scales."""
        X, codes, gram, weights = training
        init = self.init
        given = None if isinstance(init, str) else self._given_start(init, X, n_components)
        W = None if gram is None else gram.inv_sqrt()
        if self.warm_start and hasattr(self, "components_"):
            most = n_components if W is None else min(n_components, W.shape[1])
            return self._last_map(X, most if given is None else len(given))
        if given is not None:
            return given
        Z = precise(X)
        Z = Z if W is None else to_numpy(Z) @ W
        n_components = min(n_components, Z.shape[1])
        if init == "auto":
            few = "lda" if n_components <= int(codes.max()) else "pca"
            init = "identity" if n_components >= Z.shape[1] else few
        if init == "identity":
            L = np.eye(n_components, Z.shape[1])
        elif init in ("pca", "lda"):
            with small_steps(_FLOPS_OF_START * Z.shape[0] * Z.shape[1] ** 2):
                if init == "pca":
                    L = _principal_directions(Z, n_components, weights)
                else:
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
        wanted = (self.n_components or n_components, X.shape[1])
        good = L.ndim == 2 and L.shape[1] == wanted[1]
        if not good or (self.n_components and len(L) not in (n_components, self.n_components)):
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
        suits = len(L) == n_components or (self._optimises_matrix and len(L) < n_components)
        if L.shape[1] != X.shape[1] or not suits:
            raise ValueError(
                f"Got warm_start=True with a last map of shape {L.shape}, but expected "
                f"(n_components, n_features) = {(n_components, X.shape[1])}: set warm_start=False "
                "to start anew, or keep n_components, init and the features as they were."
            )
        check_reach(L, X, "a last map (warm_start=True)")
        return L


def descend_in(
    unit: float,
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    report: Callable[[np.ndarray, float], Any],
    max_iter: int,
    tol: float,
) -> Found:
    """L-BFGS on an objective in units of what is small: to it all values below one are alike."""

    def in_units(L: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(L)
        return value / unit, gradient / unit

    how: Any = {"max_iter": max_iter, "tol": tol}
    found = minimize_lbfgs(in_units, start, **how, report=lambda L, value: report(L, unit * value))
    return found.x, unit * found.value, found.converged


def descend_in_stages(
    unit: float,
    stages: Iterable[tuple[Callable[[np.ndarray], tuple[float, np.ndarray]], float]],
    L: np.ndarray,
    report: Iterations,
    max_iter: int,
) -> Found:
    """:func:`descend_in` on one objective after the other, each to a tolerance of its own."""
    found = L, np.inf, False
    for objective, tol in stages:
        left = max_iter - len(report.loss_curve)
        if left == 0 or report.stopped:
            break
        found = descend_in(unit, objective, L, report, left, tol)
        L = found[0]
    return found


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
    shares = np.ones(len(Z)) if weights is None else weights.shares
    roots, counts = np.sqrt(shares), np.array([np.sum(shares[group]) for group in groups])
    means = np.stack([roots[group] @ centered[group] for group in groups]) / counts[:, None]
    between = (means * counts[:, None]).T @ means
    within = centered.T @ centered - between
    within[np.diag_indices_from(within)] += 1e-3 * np.trace(centered.T @ centered) / Z.shape[1]
    _, V = eigh(between, within)
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
        _, V = eigh(scatter - (1.0 + np.trace(scatter)) * span)
        return np.vstack([rows, V[:, ::-1][:, :missing].T])
    return np.vstack([rows, linalg.null_space(rows).T[:missing]])
