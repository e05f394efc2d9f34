"""Scales of features by alignment: noise is turned down before a kernel is chosen."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernelmetric.compute import map_rows, over_rows, sum_rows, take_rows, to_numpy
from kernelmetric.compute.reductions import exp_of_negative, squared_distances
from kernelmetric.compute.watch import until_limit
from kernelmetric.inputs import WeightedLabels, Weights, labels_and_weights
from kernelmetric.kernels import RBF, Delta, Kernel, Rescaled, as_kernel
from kernelmetric.selection._alignment import Block, ideal_kernel, sample_rows
from kernelmetric.selection._relevance import checked_groups, descend, without_gaps

Rows = Callable[[slice], np.ndarray]

# From 0.01 to 0.03 little changes: less makes scales follow chance, more leaves noise in.
_PRIOR = 0.015
_WIDTHS = 2.0 ** np.arange(-4, 5)  # common ones to begin with, in median squared distances
_FEWEST = 4  # rows for which the products are defined
_LEAST_SPREAD = 1e-10  # of the square of a kernel; what centring leaves below is rounding
_BLOCK_BYTES = 48  # per pair: distances, kernel, target and their products


@dataclass(eq=False, repr=False)
class AlignedScales(Kernel):
    r"""A kernel on features whose scales are still to be learned, by alignment with the labels.

    .. math::

       \max_s \; \log \left( \operatorname{align}(K, Y) + \tfrac{1}{\sqrt n} \right)
       - 0.015 \sum_f \left( \log s_f^2 - \overline{\log s^2} \right)^2,
       \qquad K_{ij} = e^{-\|s \circ (x_i - x_j)\|^2}

    where the alignment is centred and leaves out pairs of a point with itself. The second term
    keeps the scales together unless the labels contradict. ``bind(X, y)`` returns
    ``Rescaled(kernel, scales)``, with the kernel bound to the rescaled points. In their units the
    aligned Gaussian is ``RBF(gamma=1.0)``.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Any kernel. None: ``RBF() + 0.1 * Delta()``, the median width and a small ridge.
    target : {"classes", "same", "regression"}, default="classes"
        The ideal kernel Y that the scales are aligned with, as in :class:`KernelAlignment`.
    max_samples : int, default=1000
        Learn the scales from so many random rows; None: from all.
    random_state : int, RandomState or None, default=0
        For the choice of the rows.
    groups : array-like of int of shape (d,), default=None
        The group of each feature, from 0 on: those of one group have one scale. None: each has its
        own.

    See Also
    --------
    KernelAlignment : A weight for every kernel.

    Notes
    -----
    O(n² d) time for each of some 30 steps on n rows. This is an answer to the open problem of
    [1]_, section 5.1: alignment for classes of several clusters.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).

    Examples
    --------
    >>> from kernelmetric.datasets import make_checkerboard
    >>> from kernelmetric.selection import AlignedScales
    >>> X, y = make_checkerboard(300, n_noise=4, n_cells=3, random_state=0)
    >>> kernel = AlignedScales().bind(X, y)
    >>> bool(kernel.scales[:2].min() > 4 * kernel.scales[2:].max())  # the noise is found out
    True
    """

    kernel: Any = None
    target: str = "classes"
    _: KW_ONLY
    max_samples: int | None = 1000
    random_state: Any = 0
    groups: Any = None

    is_bound = False

    def _bound(self, X: Any, y: Any) -> Kernel:
        labels, weights = labels_and_weights(y)
        rows = sample_rows(X.shape[0], self.max_samples, self.random_state)
        counts = None if weights is None else weights.shares
        ideal = ideal_kernel(labels, X, self.target, rows, counts)
        some = weights if weights is None or rows is None else weights.take(rows)
        points = to_numpy(X if rows is None else take_rows(X, rows)).astype(np.float64)
        scales = aligned_scales(points, ideal, checked_groups(self.groups, X.shape[1]), some)
        kernel = RBF() + 0.1 * Delta() if self.kernel is None else as_kernel(self.kernel)
        return Rescaled(kernel, scales).bind(X, y)


def aligned_scales(
    X: np.ndarray, ideal: Block, groups: np.ndarray | None = None, weights: Weights | None = None
) -> np.ndarray:
    """Scales s > 0 of features for which exp(-‖s∘(x - y)‖²) aligns best with an ideal kernel."""
    n, d = X.shape
    given = None if weights is None else WeightedLabels(None, weights)
    gamma = RBF(gamma="median").bind(X, given)._gamma()
    if n < _FEWEST or d < 2:
        return np.full(d, gamma**0.5)
    X = without_gaps(X, gamma**-0.5)
    X = X - X.mean(axis=0)
    mass = np.ones(n) if weights is None else weights.shares / weights.unit
    target = u_centred(ideal, n, mass)
    chance = n**-0.5  # a Delta aligns so well

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = u_alignment(logs, X, target, mass)
        above = max(value, 0.0) + chance
        return -np.log(above), -((value > 0) * gradient / above)

    common = [np.full(d, log) for log in np.log(gamma / _WIDTHS)]
    start = min(until_limit(common, None), key=lambda logs: loss(logs)[0])
    groups = np.arange(d) if groups is None else groups
    what = "the steps of AlignedScales: the last scales are kept"
    return np.exp(0.5 * descend(loss, start, groups, prior=_PRIOR, what=what)[1])


def u_centred(ideal: Block, n: int, mass: np.ndarray | None = None) -> Rows:
    """A target without diagonal and without what its row sums say, scaled to norm one.

    ``U_ij = Y_ij - a_i - a_j``, ``U_ii = 0``, with the best a by weights of the pairs, times the
    roots of these. Its products with kernels are unbiased [1]_: a kernel that knows nothing of the
    labels has product zero on average, however narrow it is.

    .. [1] L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. "Feature selection via dependence
       maximization". JMLR 13, 2012.
    """
    w = np.ones(n) if mass is None else mass

    def off_diagonal(rows: slice) -> np.ndarray:
        return _without_diagonal(ideal(rows, slice(0, n)), rows)

    def centred(rows: slice) -> np.ndarray:
        U = _without_diagonal(off_diagonal(rows) - sums[rows, None] - sums, rows)
        return np.sqrt(np.outer(w[rows], w)) * U

    each = _inverses(w)
    sums = map_rows(lambda rows: off_diagonal(rows) @ w, n, _BLOCK_BYTES * n)
    sums = each / w * (sums - (each @ sums) / (1.0 + np.sum(each)))
    square = sum_rows(lambda rows: float(np.sum(centred(rows) ** 2)), n, _BLOCK_BYTES * n)
    return lambda rows: centred(rows) / (np.sqrt(square) or 1.0)


def u_alignment(
    logs: np.ndarray, X: np.ndarray, target: Rows, mass: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Cosine between a U-centred Gaussian and a target of :func:`u_centred`, and its gradient."""
    n, d = X.shape
    w = np.ones(n) if mass is None else mass
    S = X * np.exp(0.5 * logs)
    powers = np.hstack([np.ones((n, 1)), X, X**2])

    def sums_of(rows: slice) -> tuple[Any, ...]:
        K = exp_of_negative(squared_distances(S[rows], S), 1.0, overwrite=True)
        K = _without_diagonal(K, rows)
        both = np.outer(w[rows], w)
        weighted, squared, K = np.sqrt(both) * target(rows) * K, both * K * K, w * K
        all_three = (_moments(M, X[rows], powers) for M in (K, weighted, squared))
        by_row, by_product, by_square = all_three
        totals = weighted.sum(), by_product.sum(axis=0), squared.sum(), by_square.sum(axis=0)
        return K.sum(axis=1), by_row, *totals

    row_sums, row_moments, *totals = zip(*over_rows(sums_of, n, _BLOCK_BYTES * n), strict=True)
    sums, by_row = np.concatenate(row_sums), np.concatenate(row_moments)
    product, by_product, square, by_square = map(sum, totals)
    each = _inverses(w)
    total, mean = 2.0 / (1.0 + np.sum(each)), each @ sums
    norm = square - 2.0 * (each * sums) @ sums + total * mean**2
    by_norm = by_square - 2.0 * (each * sums) @ by_row + total * mean * (each @ by_row)
    if norm <= _LEAST_SPREAD * square:
        return 0.0, np.zeros(d)
    value = product / np.sqrt(norm)
    # dK_ij = -w (x_i - x_j)² K_ij
    return value, -np.exp(logs) * (by_product / np.sqrt(norm) - value * by_norm / norm)


def _inverses(mass: np.ndarray) -> np.ndarray:
    """What centring without the diagonal divides by, one over n - 2 for equal points."""
    total = np.sum(mass)
    return mass / np.maximum(total - 2.0 * mass, total / len(mass))


def _without_diagonal(block: np.ndarray, rows: slice) -> np.ndarray:
    i = np.arange(rows.stop - rows.start)
    block[i, i + rows.start] = 0.0
    return block


def _moments(M: np.ndarray, A: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Sums over j of M_ij (a_if - x_jf)², for every row i and feature f."""
    d = A.shape[1]
    sums = M @ powers
    return A**2 * sums[:, :1] - 2.0 * A * sums[:, 1 : d + 1] + sums[:, d + 1 :]
