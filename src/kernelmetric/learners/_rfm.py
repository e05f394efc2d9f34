"""Recursive feature machines: the directions in which ridge regression changes."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import chain, islice
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from kernelmetric.compute import repeatable, take_rows, to_numpy
from kernelmetric.graphs import Targets, coded_targets
from kernelmetric.inputs import Weights, check_labels
from kernelmetric.inputs._labels import require_target
from kernelmetric.inputs._parameters import COUNT, Numbers
from kernelmetric.learners._base import FromLabels, Learner, as_gram
from kernelmetric.learners._checks import refuse_one_target
from kernelmetric.learners._feature_rounds import (
    KERNELS,
    Regression,
    feature_rounds,
    held_out_errors,
    square_root,
)
from kernelmetric.spaces import orthonormal

_LEAST_ROWS = 12  # of fewer, a third says nothing
_PASSES_A_ROW = 0.3  # over all pairs, with one map and without choosing how many rounds
_ROWS_IN_MEMORY = 9  # arrays of m × m


@dataclass(eq=False, repr=False)
class RFM(Learner):
    r"""Recursive feature machine: features by the average gradient outer product.

    Ridge regression of the labels, or of targets that are numbers, says in which directions its
    prediction f changes [1]_:

    .. math:: M = \frac1n \sum_i \sum_c \nabla f_c(x_i) \nabla f_c(x_i)^\top, \qquad
              k_M(x, z) = e^{-\gamma \|M^{1/2} (x - z)\|}

    The next regression measures distances by M, and so on. Widths and ridges predict points left
    out best, and so does the number of rounds, perhaps none. O(m³ + m² d p) time a round for m rows
    and p outputs. A floating-point y with fractions, with fewer than four rows per value or with
    several columns is a target of numbers; all else are classes.

    Parameters
    ----------
    n_components : int, default=None
        Rank of the map; None keeps all dimensions.
    regression : {'laplace', 'rbf'}, default='laplace'
        The kernel of the regressions: a function of the Euclidean distance, or of its square.
    diagonal : bool, default=False
        Whether M is diagonal: one weight for each feature.
    max_iter : int, default=5
        Maximum number of rounds.
    max_samples : int, default=1000
        Maximum number of rows to learn from; of more rows, a sample.
    random_state : int, RandomState or None, default=0
        For the sample.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L: the last regression has the kernel exp(-‖Lx - Lz‖), or of the square.
    ridge_ : float
        Ridge of the last regression.
    loss_ : float
        Its squared error on points left out, as a share of the variance; NaN for under 12 points.
    loss_curve_ : list of float
        The same after each number of rounds, from none on.
    n_iter_ : int
        Rounds that were kept.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    MLKR : For targets that are numbers, by neighbours.
    kernelmetric.inspection.feature_importance : What the features count.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit and Belkin, "Mechanism for feature learning in neural
       networks and backpropagation-free machine learning models", Science 383 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import RFM
    >>> X = np.random.RandomState(0).standard_normal((300, 10))
    >>> rfm = RFM(1).fit(X, X[:, 0] > 0)
    >>> int(np.argmax(np.abs(rfm.components_)))
    0
    """

    n_components: int | None = None
    _: KW_ONLY
    regression: str = "laplace"
    diagonal: bool = False
    max_iter: int = 5
    max_samples: int = 1000
    random_state: Any = 0
    class_weight: Any = None

    _takes_numbers = True
    _least_rows = 200
    _allowed: ClassVar = {
        "regression": tuple(KERNELS),
        "max_iter": COUNT,
        "max_samples": Numbers(Integral, low=_LEAST_ROWS),
    }

    fit = FromLabels.fit

    @property
    def _passes(self) -> float:
        return _PASSES_A_ROW * self.max_samples  # as n³ operations are

    def _fit(self, X: Any, y: Any, gram: Any, weights: Weights | None) -> None:
        X = self._check_points(X)
        targets = _checked_targets(y, X)
        rank = self._check_n_components(X.shape[1])
        rows = targets.sample(int(self.max_samples), self.random_state)
        sample = take_rows(X, rows)
        coordinates = orthonormal(to_numpy(sample), as_gram(gram), span=not self.diagonal)
        Z = np.asarray(coordinates.Z, dtype=np.float64)
        order, columns = targets.spread(Z, rows)
        Y = targets.columns(rows)[np.ix_(order, columns)]
        with np.errstate(under="ignore"), repeatable():
            roots = None if weights is None else np.sqrt(weights.shares[rows][order])
            for L in self._learn(Z[order], Y, rank, roots):
                self._store(coordinates.leave(L), X)

    def _learn(
        self, Z: np.ndarray, Y: np.ndarray, rank: int, roots: np.ndarray | None
    ) -> Iterator[np.ndarray]:
        """Maps of one round after the other, the last of which is the best; Ctrl-C leaves one."""
        how: Any = {"kernel": self.regression, "diagonal": bool(self.diagonal), "roots": roots}
        width = 1.0 if self.regression == "laplace" else 0.5
        curve = np.array([np.nan])

        def kept(n_rounds: int, fit: Regression) -> np.ndarray:
            self.n_iter_, self.ridge_, self.loss_curve_ = n_rounds, fit.ridge, curve.tolist()
            self.loss_ = float(curve[min(n_rounds, len(curve) - 1)])
            L = fit.L if rank >= Z.shape[1] else square_root(fit.L.T @ fit.L, rank)
            return fit.gamma**width * L

        # It ends early where predictions are constant.
        rounds = feature_rounds(Z, Y, **how)
        fits = list(islice(rounds, 2))
        yield kept(len(fits) - 1, fits[-1])  # what there is until the number of rounds is chosen
        most = 1
        if len(Z) >= _LEAST_ROWS:
            curve = held_out_errors(Z, Y, int(self.max_iter), **how)
            most = int(np.argmin(curve))
        for n_rounds, fit in enumerate(islice(chain(fits, rounds), most + 1)):
            yield kept(n_rounds, fit)

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        m, d = min(n_samples, int(self.max_samples)), n_features
        return 8.0 * (_ROWS_IN_MEMORY * m * m + 8 * m * d + 6 * min(m, d) * d)


def _checked_targets(y: Any, X: Any) -> Targets:
    require_target(y, "RFM", "a class label, a number or a row of numbers per row of X")
    targets = coded_targets(y, X)
    if targets.values is None:
        check_labels(y, X)
    else:
        refuse_one_target(targets.values.any())
    return targets
