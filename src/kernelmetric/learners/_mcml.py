"""Maximally collapsing metric learning."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric.compute import like, namespace, to_numpy
from kernelmetric.compute.reductions import product, softmax_reduction
from kernelmetric.inputs import Weights
from kernelmetric.learners._checks import refuse_lone_points
from kernelmetric.learners._descent import Descent, Found, GradientLearner, Training, descend_in
from kernelmetric.learners._factors import truncated
from kernelmetric.learners._nca import softmax_start
from kernelmetric.learners._progress import Iterations
from kernelmetric.learners._spectral import about_centres
from kernelmetric.spaces import orthonormal


@dataclass(eq=False, repr=False)
class MCML(GradientLearner):
    r"""Maximally collapsing metric learning: NCA's aim as a convex problem.

    The divergence of the softmax neighbours :math:`p_{ij} \propto e^{-\delta^\top M \delta}` from
    :math:`p^0_{ij}`, uniform over the class, is convex in M [1]_:

    .. math:: \min_{M \succeq 0}\; \sum_i \mathrm{KL}(p^0_i \,\|\, p_i) + \rho \operatorname{tr} M

    It is minimised by L-BFGS on a square factor of M. O(n² d) time an evaluation; one block of
    rows × n in memory.

    Parameters
    ----------
    n_components : int, default=None
        Rank to which the optimal M is truncated afterwards, as in [1]_; None keeps it whole.
    reg : float, default=0.0
        Weight ρ of the trace of M; in many dimensions only ρ > 0 makes the optimum finite.
    max_iter : int, default=500
        Maximum number of L-BFGS iterations.
    tol : float, default=1e-5
        Relative decrease of the objective in one iteration at which the fit has converged.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L with LᵀL = M.
    loss_ : float
        The objective at the optimal M, before it is truncated.
    gap_ : float
        Bound on what any metric of no larger trace could still gain; NaN where a time limit left no
        time for it.
    loss_curve_ : list of float
        The objective after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether ``tol`` was reached.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    NCA : The same probabilities, for classes of several clusters.

    References
    ----------
    .. [1] Globerson and Roweis, "Metric learning by collapsing classes", NIPS 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import MCML
    >>> X, y = load_iris(return_X_y=True)
    >>> MCML(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    reg: float = 0.0
    max_iter: int = 500
    tol: float = 1e-5
    class_weight: Any = None
    verbose: bool = False

    _enough_rows = 2_000  # of few coordinates that hold predictions

    def _descent(self, training: Training) -> Descent:
        X, codes, gram, weights = training
        rank = self._check_n_components(X.shape[1])
        coordinates = orthonormal(X, gram)
        Z, reg = like(coordinates.Z, X), self.reg / coordinates.size**2
        problem = CollapsedClasses(Z, codes, reg, weights)
        refuse_lone_points(problem.counted.any(), "MCML collapses classes")
        start = softmax_start(np.eye(coordinates.Z.shape[1]), coordinates.Z, weights)
        unit = 1.0 if weights is None else weights.unit  # tolerances are of an average row

        def minimise(report: Iterations) -> Found:
            self.gap_ = np.nan
            found = descend_in(unit, problem.objective, start, report, self.max_iter, self.tol)
            self.gap_ = problem.gap(found[0])
            return found

        return Descent(start, minimise, lambda L: coordinates.leave(truncated(L, rank)))


class CollapsedClasses:
    """The divergence of MCML in L or M = LᵀL: a pull ``tr(M C)``, and softmaxes' logarithms."""

    def __init__(self, Z: Any, codes: np.ndarray, reg: float, weights: Weights | None = None):
        self.Z, self.reg, self.weights = Z, reg, weights
        points = to_numpy(Z).astype(np.float64)
        one = np.ones(len(codes))
        each = Weights(one, one) if weights is None else weights
        others = each.others(codes)
        self.counted = others > 0  # points that have ideal neighbours
        others, self.shares = np.where(self.counted, others, 1.0), each.shares * self.counted
        self.constant = -float(np.sum(self.shares * np.log(others)))
        pull = _pull(points, codes, self.shares / others, each.counts)
        self.C = pull + reg * np.eye(Z.shape[1])

    def objective(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient with respect to L."""
        E = product(self.Z, like(L, self.Z).T)
        value, sums = softmax_reduction(E, E, self._weigh, self.weights)
        LC = product(L, self.C)
        value += float(np.sum(LC * L)) + self.constant
        return value, 2.0 * (LC + to_numpy(product(sums.T, self.Z)))

    def gradient(self, L: np.ndarray) -> np.ndarray:
        """Gradient with respect to M, at M = LᵀL."""
        E = product(self.Z, like(L, self.Z).T)
        sums = softmax_reduction(E, self.Z, self._weigh, self.weights)[1]
        G = self.C + to_numpy(product(self.Z.T, sums))
        return 0.5 * (G + G.T)

    def gap(self, L: np.ndarray) -> float:
        """Bound on what a metric of no larger trace could gain: ``f(M) - f(M') ≤ ⟨G, M - M'⟩``."""
        G = self.gradient(L)
        least = min(float(linalg.eigvalsh(G)[0]), 0.0)
        return max(float(np.sum((L @ G) * L) - least * np.sum(L * L)), 0.0)

    def _weigh(self, P: Any, rows: slice, logs: Any) -> tuple[float, Any]:
        shares = like(self.shares[rows], P)
        P *= -shares[:, None]
        return namespace(P).sum(logs * shares), P


def _pull(Z: np.ndarray, codes: np.ndarray, parts: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``Σ_ij a_i w_j (z_i - z_j)(z_i - z_j)ᵀ`` inside classes, with parts a and counts w."""
    Z = about_centres(Z, codes, w)
    C = np.zeros((Z.shape[1], Z.shape[1]))
    for code in np.unique(codes):
        one = codes == code
        z, a, count = Z[one], parts[one], w[one]
        # About the mean by counts the mixed terms are zero.
        C += (z * (a.sum() * count + count.sum() * a)[:, None]).T @ z
    return C
