"""The distance of two rows, split over the features."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelmetric._warnings import warn
from kernelmetric.compute import to_numpy
from kernelmetric.inspection._columns import Reading, Shares, as_row, read
from kernelmetric.inspection._maps import Box, KernelMap, embed, map_of
from kernelmetric.kernels import pulled_back, rescaled

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
_FIRST_PANELS = 4
_MOST_PANELS = 4_096
_TOLERANCE = 1e-11  # of the squared distance, for a panel
_TOLD = 1e-6  # of the squared distance: a residual that is worth a warning


@dataclass(frozen=True)
class PairExplanation(Shares):
    """The squared distance of two rows as a sum over features.

    Parameters
    ----------
    names : tuple of str
        The features, or the columns of the table.
    shares : ndarray of shape (n_names,)
        What each adds to the squared distance; negative where it brings the two nearer.
    squared_distance : float
        The squared distance in the learned metric, which is the sum of the shares.
    residual : float
        What the integral left unexplained, spread over the shares in proportion to their size.
    ridge : float
        The part that comes from the kernel's ridge, which gives training rows a place of their
        own; it is among the shares, split by the squared differences of the features.
    how : str
        How derivatives were taken.

    See Also
    --------
    kernelmetric.inspection.explain_pair : Computes it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import LDA
    >>> from kernelmetric.inspection import explain_pair
    >>> X, y = load_iris(return_X_y=True)
    >>> why = explain_pair(LDA().fit(X, y), X[0], X[100])
    >>> bool(abs(why.distance**2 - why.shares.sum()) < 1e-8)
    True
    """

    squared_distance: float
    residual: float
    ridge: float
    how: str

    @property
    def distance(self) -> float:
        """The distance; of an indefinite metric, the root with the sign of the square."""
        return float(np.sign(self.squared_distance) * np.sqrt(abs(self.squared_distance)))


def explain_pair(metric: Any, a: Any, b: Any) -> PairExplanation:
    r"""Say which features make two rows near or far.

    With the learned coordinates f and :math:`w = f(b) - f(a)`, the share of feature k is

    .. math:: (b_k - a_k) \int_0^1 \frac{\partial}{\partial x_k} \langle w, f(x) \rangle\, dt
        \quad\text{at}\quad x = a + t (b - a),

    the integrated gradient [1]_ along the straight line between the rows. The shares add up to
    the squared distance. For a linear metric the share is :math:`\delta_k (M \delta)_k` with
    :math:`\delta = b - a`. The two rows may be exchanged.

    Parameters
    ----------
    metric : fitted metric, pipeline or search
        A linear learner, :class:`Kernelized`, or anything that ends in one. After encoders, the
        shares are those of the columns before them, a category counting as one.
    a, b : array-like of shape (n_features,), or one row of a data frame
        The two rows.

    Returns
    -------
    PairExplanation
        Shares by name.

    See Also
    --------
    kernelmetric.inspection.feature_importance : For the metric as a whole.

    References
    ----------
    .. [1] M. Sundararajan, A. Taly, Q. Yan. "Axiomatic attribution for deep networks". ICML, 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA
    >>> from kernelmetric.inspection import explain_pair
    >>> iris = load_iris(as_frame=True)
    >>> metric = NCA(random_state=0).fit(iris.data, iris.target)
    >>> why = explain_pair(metric, iris.data.iloc[[0]], iris.data.iloc[[140]])
    >>> why.ranked()[0][0]
    'petal length (cm)'
    >>> bool(abs(why.shares.sum() - why.squared_distance) < 1e-8)
    True
    """
    reading = read(metric)
    return explain_features(reading, [reading.features(as_row(x))[0] for x in (a, b)])


def explain_features(reading: Reading, pair: Any, E: Any = None) -> PairExplanation:
    """The shares of two rows, given as their features; and their coordinates, where known."""
    rows = np.asarray(pair, dtype=np.float64)
    E = embed(reading.metric, rows) if E is None else E
    difference = E[1] - E[0]
    signs = getattr(reading.metric, "signature_", None)  # of an indefinite metric
    w = difference if signs is None else to_numpy(signs) * difference
    square = float(w @ difference)
    found = map_of(reading.metric)
    smooth: Any = found
    shares = np.zeros(rows.shape[1])
    if isinstance(found, KernelMap):
        shares, smooth = found.without_kinks(rows, w)
    reached = float(shares.sum())
    if smooth is not None:
        others, change = _integrated(smooth, rows, w, abs(square))
        shares, reached = shares + others, reached + change
    delta = rows[1] - rows[0]
    ridge = 0.0
    if found.ridge_scales is not None:
        # The integral over a narrow Gaussian around a row, whose gradient points along the path.
        ridge = square - reached
        along = delta * pulled_back(rescaled(delta, found.ridge_scales), found.ridge_scales)
        shares = shares + ridge * _normalised(along)
    residual = square - float(shares.sum())
    if abs(residual) > _TOLD * abs(square):
        warn(
            f"The shares miss {residual:.3g} of the squared distance {square:.3g}, which was "
            "spread over them: the learned coordinates are not smooth between the two rows.",
        )
    spread = np.abs(shares) if np.any(shares) else delta**2
    shares = shares + residual * _normalised(spread)
    by_column = reading.by_column(shares)
    return PairExplanation(reading.names, by_column, square, residual, ridge, found.how)


def _integrated(
    found: Any, rows: np.ndarray, w: np.ndarray, square: float
) -> tuple[np.ndarray, float]:
    """Integrals of the gradient along the line, times its steps; and the change from end to end."""
    start, delta = rows[0], rows[1] - rows[0]
    box = Box(rows.min(axis=0), rows.max(axis=0))

    def at(times: np.ndarray) -> np.ndarray:
        return start + times.reshape(-1, 1) * delta

    edges = np.linspace(0.0, 1.0, _FIRST_PANELS + 1)
    heights = found.values(at(edges)) @ w
    low, high = edges[:-1], edges[1:]
    rise = np.diff(heights)
    shares, n_panels = np.zeros(len(delta)), 0
    tolerance = _TOLERANCE * max(square, float(np.ptp(heights)))
    while len(low):
        n_panels += len(low)
        middle, half = (low + high) / 2, (high - low) / 2
        slopes = found.slopes(at(middle[:, None] + half[:, None] * _NODES), w, box)
        slopes = slopes.reshape(len(low), len(_NODES), -1)
        parts = delta * np.einsum("pnd,n,p->pd", slopes, _NODE_WEIGHTS, half)
        good = np.abs(parts.sum(axis=1) - rise) <= tolerance
        if n_panels + 2 * np.sum(~good) > _MOST_PANELS:
            good[:] = True  # the residual says by how much
        shares += parts[good].sum(axis=0)
        low, middle, high, rise = low[~good], middle[~good], high[~good], rise[~good]
        if len(low):
            ends = (found.values(at(np.stack([low, middle]))) @ w).reshape(2, -1)
            first = ends[1] - ends[0]
            rise = np.concatenate([first, rise - first])
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return shares, float(heights[-1] - heights[0])


def _normalised(values: np.ndarray) -> np.ndarray:
    total = values.sum()
    return values / total if total > 0 else values
