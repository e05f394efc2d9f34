"""Kernel alignment: the weighted sum of base kernels that lies nearest to the labels."""

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d

from kernelmetric.compute import in_memory, like, rounding_of, take_rows, to_numpy
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.reductions import GramProducts, gram_products, row_products
from kernelmetric.compute.watch import stage, time_left
from kernelmetric.inputs import check_labels, label_column, labels_and_weights
from kernelmetric.inputs._labels import require_target
from kernelmetric.inputs._parameters import Numbers, check_flags, require_word
from kernelmetric.kernels import Kernel, Sum, as_kernel, rbf_widths, values_of
from kernelmetric.kernels._points import overflow_error
from kernelmetric.kernels._terms import Terms
from kernelmetric.solvers import nonnegative_qp

Block = Callable[[slice, slice], np.ndarray]

_SAME = 1e-10  # two kernels at a cosine of one less this are one kernel
_UNALIGNED = 1e-12  # an alignment below this is rounding
_DRAWN = 5_000  # rows to align on, of those on many machines
_LEAST_ROWS = 200  # that a time limit leaves
_FEWEST = 3  # rows of a sample: pairs and triples are scaled up separately
# A kernel whose spread about its mean is a smaller part of it than this: its weight would be so
# large that the rounding of its values outweighed the other kernels.
_LEAST_SPREAD, _TIMES_ROUNDING = 1e-5, 2500.0


class AlignedSum(Sum):
    """What :class:`KernelAlignment` learned: a weighted sum that remembers how.

    The terms are the base kernels that got a weight, the weights are γ_i / ‖K_i‖ up to one common
    factor. ``clone`` forgets the attributes; ``bind`` keeps them.

    Parameters
    ----------
    kernels : list of Kernel
        The terms.
    weights : list of float
        Their weights.

    Attributes
    ----------
    base_kernels_ : list of Kernel
        All m base kernels, bound to the data.
    weights_ : ndarray of shape (m,)
        γ of eq. (12) of [1]_: weights of the base kernels scaled to norm one, with γᵀb = 1.
    alignment_ : float
        Alignment of the sum with the ideal kernel, on the points that chose the weights.
    alignment_error_ : float
        Standard error of ``alignment_``, estimated from a sample of the rows; 0.0 for all rows.
    base_alignments_ : ndarray of shape (m,)
        Alignment of each base kernel by itself.
    S_ : ndarray of shape (m, m)
        Frobenius products of the base kernels scaled to norm one.
    b_ : ndarray of shape (m,)
        Their products with the ideal kernel.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).

    Examples
    --------
    >>> from kernelmetric import RBF
    >>> from kernelmetric.selection import AlignedSum
    >>> AlignedSum([RBF(gamma=1.0), RBF(gamma=2.0)], [0.5, 1.0])
    0.5 * RBF(gamma=1.0) + RBF(gamma=2.0)
    """

    def _bound(self, X: Any, y: Any) -> Self:
        return deepcopy(self)  # it was bound to the data it was aligned on


@dataclass(eq=False, repr=False)
class KernelAlignment(Terms, Kernel):
    r"""A kernel still to be learned: the sum of base kernels best aligned with the labels.

    .. math::

       \max_{\gamma \ge 0} \; \frac{\langle K, Y \rangle_F}{\|K\|_F \|Y\|_F},
       \qquad K = \sum_i \gamma_i \frac{K_i}{\|K_i\|_F}

    ``bind(X, y)`` solves this quadratic program, eq. (12) of [1]_, and returns an
    :class:`AlignedSum`, scaled to unit total variance of the training points in its feature space.
    A kernel gets weight 0 if centring leaves it without digits, or if it equals a better one.

    Parameters
    ----------
    kernels : list of Kernel or str, default=None
        Base kernels. None: the 21 widths of :func:`rbf_widths`.
    target : {"classes", "same", "regression"}, default="classes"
        The ideal kernel Y. "classes": 1 within a class and -1/(p - 1) between the p classes, as
        in [1]_; "same": 1 and 0, as in [2]_; "regression": the products of the centred y.
    centered : bool, default=False
        Whether to align HKH with HYH, H = I - 11ᵀ/n, usually the better choice for metrics; False
        is the formula of [1]_.
    local : Kernel or str, default=None
        A kernel L that says which points are near: Y ∘ L is the target then, in which distant
        points of one class need not be alike. None: all pairs count the same.
    max_samples : int, default=None
        Align on so many random rows, and estimate from them what all rows would give; the
        standard error is in ``alignment_error_``. None: all rows.
    random_state : int, RandomState or None, default=None
        For the choice of the rows.
    verbose : bool, default=False
        Say on standard error when the choice begins, and how well the sum is aligned.

    See Also
    --------
    AlignedScales : A weight for every feature.
    LeaveOneOutRidge : Chooses by points left out.

    Notes
    -----
    O(m n² (d + m)) time for m kernels, n points and d features; one tile of all Gram matrices is in
    memory, and m × n row sums.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 4.
    .. [2] J. T. Kwok, I. W. Tsang. "Learning with idealized kernels". ICML, 2003, section 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import Delta, KernelAlignment
    >>> from kernelmetric.kernels import rbf_widths
    >>> X, y = load_iris(return_X_y=True)
    >>> kernel = KernelAlignment([*rbf_widths(), Delta()], centered=True).bind(X, y)
    >>> round(kernel.alignment_, 3), round(float(kernel.base_alignments_.max()), 3)
    (0.797, 0.792)
    """

    kernels: Any = None
    target: str = "classes"
    centered: bool = False
    _: KW_ONLY
    local: Any = None
    max_samples: int | None = None
    random_state: Any = None
    verbose: bool = False

    is_bound = False

    @property
    def accepts_sparse(self) -> bool:
        """Whether every base kernel accepts sparse points."""
        try:
            return all(kernel.accepts_sparse for kernel in self._base_kernels())
        except ValueError:  # bind will say what is wrong; asking must not
            return False

    def _bound(self, X: Any, y: Any) -> AlignedSum:
        check_flags(self)
        what = f"{type(self).__name__}: aligning kernels with labels"
        with stage(what, shown=self.verbose) as working:
            aligned = self._aligned(X, y)
            known = vars(aligned)
            taken = f"{len(aligned.kernels)} of {len(known['base_kernels_'])} kernels"
            working.note = f"{taken}, alignment {known['alignment_']:.3g}"
        return aligned

    def _aligned(self, X: Any, y: Any) -> AlignedSum:
        labels, weights = labels_and_weights(y)
        N = X.shape[0]
        kernels = Sum(self._base_kernels()).bind(X, y).kernels
        here = in_memory(X)
        most = _DRAWN if self.max_samples is None and not here else self.max_samples
        if most is None:
            each = len(kernels) * rates().value if math.isfinite(time_left()) else 0.0
            n_drawn = most_in_time(lambda m: each * m * m, N, _LEAST_ROWS, type(self).__name__)
            most = None if n_drawn == N else n_drawn
        rows = sample_rows(N, most, self.random_state)
        all_here = rows is None and here
        points = X if all_here else take_rows(X, np.arange(N) if rows is None else rows)
        shares = None if weights is None else weights.shares
        ideal = ideal_kernel(labels, X, self.target, rows, shares)
        if self.local is not None:
            ideal = weighted_by(as_kernel(self.local).bind(X, y), points, ideal)
        with np.errstate(all="ignore"):  # what overflows is reported below, in a sentence
            shares = shares if shares is None or rows is None else shares[rows]
            tiles, n = _tiles(kernels, points, ideal), points.shape[0]
            sums = gram_products(tiles, n, population=N, weights=shares)
        for kernel, product in zip(kernels, np.diagonal(sums.plain)[:-1], strict=True):
            if not np.isfinite(product):
                raise overflow_error(kernel, X)
        norms = _norms(sums, rounding=rounding_of(X), centered=self.centered)
        products = sums.centred if self.centered else sums.plain
        cosines = products * np.outer(_inverse(norms), _inverse(norms))
        S, b = cosines[:-1, :-1].copy(), cosines[:-1, -1].copy()
        v = aligned_weights(S, b)

        factors = v * _inverse(norms[:-1])
        mass = N if shares is None else N * float(np.mean(shares))
        factors /= _total_variance(factors, sums, mass)
        chosen = np.flatnonzero(factors)
        aligned = AlignedSum([kernels[i] for i in chosen], factors[chosen].tolist())
        error = 0.0
        if rows is not None:
            means = np.vstack([factors @ sums.row_means[:-1], sums.row_means[-1]])
            tiles = _tiles([aligned], points, ideal)
            some = means if self.centered else None
            error = alignment_error(row_products(tiles, n, means=some, weights=shares), N)
        aligned.__dict__.update(
            base_kernels_=kernels,
            S_=S,
            b_=b * norms[-1],
            weights_=v / (v @ b * norms[-1]),
            base_alignments_=b,
            alignment_=float(v @ b / np.sqrt(v @ S @ v)),
            alignment_error_=error,
        )
        return aligned

    def _base_kernels(self) -> list[Kernel]:
        if self.kernels is None:
            return [*rbf_widths()]
        if isinstance(self.kernels, str | Kernel) or not hasattr(self.kernels, "__iter__"):
            raise ValueError(
                f"Got kernels={self.kernels!r}, but expected a list of kernels: try "
                "[*rbf_widths(), Delta()]."
            )
        return [as_kernel(kernel) for kernel in self.kernels]


def aligned_weights(S: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Non-negative weights of the most aligned sum of kernels of norm one."""
    kept: list[int] = []
    for i in np.argsort(-b, kind="stable"):  # of equal kernels the best stays
        if S[i, i] > 0 and not np.any(S[i, kept] >= 1.0 - _SAME):
            kept.append(int(i))
    if not kept or b[kept[0]] <= _UNALIGNED:
        raise ValueError(
            f"Got base kernels whose alignment with y is at most {b.max():.2g}, but expected one "
            "that sees the labels: try other kernels, or scaled features."
        )
    # Eq. (12) of the paper up to a factor: fixing γᵀb there only sets the scale.
    v = np.zeros(len(b))
    v[kept] = nonnegative_qp(S[np.ix_(kept, kept)], b[kept])[0]
    return v


def sample_rows(n: int, max_samples: int | None, random_state: Any) -> np.ndarray | None:
    """Random rows to align on, ascending; None where all are wanted."""
    if max_samples is None:
        return None
    Numbers(Integral, _FEWEST).require("max_samples", max_samples, hint="try 2000, or None for all")
    if max_samples >= n:
        return None
    rng = check_random_state(random_state)
    return np.sort(rng.choice(n, int(max_samples), replace=False))


def alignment_error(by_row: np.ndarray, population: int) -> float:
    """Standard error of an alignment estimated from a sample drawn without replacement.

    To first order the alignment is a mean over points, of ``ψ_i = A (g_i^KY / θ^KY - g_i^KK / 2θ^KK
    - g_i^YY / 2θ^YY)``, where g are a point's shares in the products θ (``row_products``). The
    weights of the sum, being optimal, contribute nothing to first order; nor does the centre.
    """
    whole, own = by_row
    n, N = whole.shape[0], population
    others = N * (N - 1) / (n - 1) * (whole - own)
    share = N * own + 2.0 * others  # a pair moves with either of its two points
    theta = np.mean(N * own + others, axis=0)
    relative = share / theta
    A = theta[0, 1] / np.sqrt(theta[0, 0] * theta[1, 1])
    influence = A * (relative[:, 0, 1] - 0.5 * (relative[:, 0, 0] + relative[:, 1, 1]))
    return float(np.std(influence, ddof=1) * np.sqrt((1.0 - n / N) / n))


def _tiles(kernels: list[Kernel], X: Any, ideal: Block) -> Any:
    """Values of all kernels, then of the ideal one, at the pairs of two slices of X."""

    def evaluate(rows: slice, columns: slice) -> Iterator[Any]:
        A = X[rows, :]
        B = None if rows == columns else X[columns, :]
        yield from values_of(kernels, A, B)
        yield like(ideal(rows, columns), A)

    return evaluate


def _norms(sums: GramProducts, *, rounding: float, centered: bool) -> np.ndarray:
    """Frobenius norms of the Gram matrices; 0 where centring leaves too few digits."""
    norms = np.sqrt(np.maximum(np.diagonal(sums.plain), 0.0))
    if not centered:
        return norms
    least = max(_LEAST_SPREAD, _TIMES_ROUNDING * rounding)
    centred = np.sqrt(np.maximum(np.diagonal(sums.centred), 0.0))
    return np.where(centred > least * norms, centred, 0.0)


def _inverse(norms: np.ndarray) -> np.ndarray:
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


def _total_variance(weights: np.ndarray, sums: GramProducts, n: float) -> float:
    """tr(HKH) / n of the weighted sum; tr(K) / n where that is only rounding."""
    trace = weights @ sums.traces[:-1] / n
    variance = trace - weights @ sums.totals[:-1] / n**2
    return float(variance if variance > _SAME * trace else trace)


def ideal_kernel(
    y: Any, X: Any, target: str, rows: np.ndarray | None = None, weights: np.ndarray | None = None
) -> Block:
    """The kernel that the labels would like, as a function of two slices of ``rows``."""
    require_word("target", target, ("classes", "same", "regression"))
    require_target(y, "An aligned kernel", "labels; without them try kernel='rbf'")
    chosen: Any = slice(None) if rows is None else rows
    if target == "regression":
        t = _centred_numbers(y, X, weights)[chosen]
        return lambda i, j: np.outer(t[i], t[j])
    labels = label_column(y)
    unknown = labels.dtype.kind == "f" and not np.all(np.isfinite(labels))  # check_labels says so
    if not unknown and type_of_target(labels) == "continuous":
        raise ValueError(
            f"Got continuous y, but target={target!r} expected class labels: try "
            "target='regression'."
        )
    codes = check_labels(y, X)
    between = 0.0 if target == "same" else -1.0 / codes.max()  # p - 1 is the last code
    codes = codes[chosen]
    return lambda i, j: np.where(codes[i, None] == codes[None, j], 1.0, between)


def weighted_by(kernel: Any, X: Any, ideal: Block) -> Block:
    """An ideal kernel that asks only near points to be alike: the product with a bound kernel."""
    return lambda i, j: ideal(i, j) * to_numpy(kernel(X[i, :], None if i == j else X[j, :]))


def _centred_numbers(y: Any, X: Any, weights: np.ndarray | None) -> np.ndarray:
    t = np.asarray(column_or_1d(to_numpy(y) if is_array_api_obj(y) else np.asarray(y)))
    check_consistent_length(X, t)
    if t.dtype.kind not in "fiub" or not np.all(np.isfinite(t)) or np.all(t == t[:1]):
        raise ValueError(
            "Got y that is constant, not finite or not numeric, but target='regression' expected "
            "numbers that differ: try target='classes' for labels."
        )
    t = t.astype(np.float64)
    return t - np.average(t, weights=weights)
