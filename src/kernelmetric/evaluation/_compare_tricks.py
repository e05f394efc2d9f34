"""The KPCA trick beside the kernel trick: the same optimum, by two ways."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from kernelmetric import compute
from kernelmetric.compute.reductions import squared_distances
from kernelmetric.graphs import discriminant_graph, laplacian
from kernelmetric.inputs import check_labels
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import DNE
from kernelmetric.selection import automatic_kernel
from kernelmetric.spaces import KPCA, KernelTrick

_SAME = 1e-3  # gaps below it would not be seen in a picture


@dataclass(frozen=True, repr=False)
class TrickComparison:
    """What :func:`compare_tricks` found; of two numbers the first is the KPCA trick's.

    Parameters
    ----------
    kpca, trick : Kernelized
        The two fitted metrics.
    objectives : tuple of float or None
        The learner's objective at both ends (``loss_``); None where it keeps none.
    distance_gap : float
        Largest difference between the two learned distances, relative to the largest distance.
    condition_gram, condition_kept : float
        Condition number of the Gram matrix K, and of the part that the KPCA trick keeps.
    condition_problem : float or None
        Condition number of K(D-W)K, the matrix of the kernel trick's eigenproblem; for DNE.
    """

    kpca: Kernelized
    trick: Kernelized
    objectives: tuple[float, float] | None
    distance_gap: float
    condition_gram: float
    condition_kept: float
    condition_problem: float | None

    @property
    def objective_gap(self) -> float | None:
        """Difference of the objectives, relative to the first."""
        if self.objectives is None:
            return None
        first, second = self.objectives
        return abs(first - second) / (abs(first) or 1.0)

    @property
    def verdict(self) -> str:
        """The comparison in a sentence."""
        if self.distance_gap <= _SAME:
            return "Both tricks give the same metric."
        if self.objective_gap is not None and self.objective_gap <= _SAME:
            return (
                "Both tricks reach the same objective by different metrics: it has many optima, "
                "or is ill-conditioned."
            )
        return "The tricks end in different optima: look at the condition numbers, or other starts."

    def __repr__(self) -> str:
        rows = [
            ("objective, KPCA trick and kernel trick", "{:.6g}, {:.6g}", self.objectives),
            ("largest difference of distances, relative", "{:.1e}", self.distance_gap),
            ("condition number of K", "{:.1e}", self.condition_gram),
            ("condition number of what KPCA keeps", "{:.1e}", self.condition_kept),
            ("condition number of K(D-W)K", "{:.1e}", self.condition_problem),
        ]
        lines = [
            f"  {what:<44}{text.format(*np.atleast_1d(found))}"
            for what, text, found in rows
            if found is not None
        ]
        return "\n".join([self.verdict, "", *lines])


def compare_tricks(
    learner: Any,
    kernel: Any,
    X: Any,
    y: Any,
    *,
    singular: str = "range",
    neighbors: str = "feature",
) -> TrickComparison:
    """Fit a learner by the KPCA trick and by the kernel trick, and compare what comes out.

    Both reach the same objective (Theorems 1 and 2 of [1]_), but for matrices that are
    ill-conditioned, or several optima. O(n³) time and some n × n arrays.

    Parameters
    ----------
    learner : learner
        One that takes the Gram matrix of its basis, as NCA, LMNN, LMCA and DNE do.
    kernel : str, Kernel or callable
        Bound once to X and y, so that both see the same.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,)
        Training points and their labels.
    singular : {'range', 'ridge', 'raw'}, default='range'
        What the kernel trick does about a singular K, see :class:`KernelTrick`.
    neighbors : {'feature', 'input'}, default='feature'
        As in :class:`Kernelized`.

    Returns
    -------
    TrickComparison
        Both metrics, objectives, distances, condition numbers.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 5.2.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from kernelmetric import DNE
    >>> from kernelmetric.evaluation import compare_tricks
    >>> X, y = load_wine(return_X_y=True)
    >>> comparison = compare_tricks(DNE(2), "rbf", scale(X)[::3], y[::3])
    >>> comparison.objective_gap < 1e-6
    True
    """
    bound = automatic_kernel(kernel).bind(X, y)
    kpca, trick = (
        Kernelized(learner, bound, space, neighbors=neighbors).fit(X, y)
        for space in (KPCA(), KernelTrick(singular=singular))
    )
    has_loss = hasattr(kpca.learner_, "loss_")
    return TrickComparison(
        kpca,
        trick,
        (float(kpca.learner_.loss_), float(trick.learner_.loss_)) if has_loss else None,
        _distance_gap(kpca.transform(X), trick.transform(X)),
        _condition(trick.space_.gram_.eigenvalues),
        _condition(kpca.space_.eigenvalues_),
        _problem_condition(kpca, trick, X, y),
    )


def _distance_gap(A: Any, B: Any) -> float:
    first, second = (np.sqrt(squared_distances(compute.to_numpy(E))) for E in (A, B))
    return float(np.abs(first - second).max() / (first.max() or 1.0))


def _condition(eigenvalues: np.ndarray) -> float:
    sizes = np.abs(eigenvalues)
    return float(sizes.max() / sizes.min()) if sizes.min() > 0 else float("inf")


def _problem_condition(kpca: Kernelized, trick: Kernelized, X: Any, y: Any) -> float | None:
    """Condition number of the eigenproblem of DNE in the basis of the training points."""
    if not isinstance(kpca.learner_, DNE):
        return None
    K = trick.space_.gram_.matrix
    where = kpca.space_.transform(X) if kpca.neighbors == "feature" else np.asarray(X)
    weights = discriminant_graph(where, check_labels(y, K), kpca.learner_.n_neighbors)
    return _condition(linalg.eigvalsh(K @ (laplacian(weights) @ K)))
