"""A kernel of series by how often small patterns occur in them."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import fits_budget
from kernelmetric.inputs import Objects
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.kernels._series import SeriesKernel, check_channels, prepared

_TAPS = 9
_PATTERNS = np.array(list(combinations(range(_TAPS), 3)))  # where a pattern is high: 84 of them
_MOST_DILATIONS = 32
_CACHED = 2**16  # numbers of a block of series
_GOLDEN = (np.sqrt(5) + 1) / 2


@dataclass(eq=False, repr=False)
class Convolutions(SeriesKernel):
    r"""Series by how often small patterns occur in them, as MiniRocket [1]_ counts it.

    .. math:: k(x, y) = \frac{1}{p} \sum_j \frac{(f_j(x) - \mu_j)(f_j(y) - \mu_j)}{\sigma_j^2},
              \qquad f_j(x) = \text{mean}_t\, [(w_j * x)_t > b_j]

    The patterns :math:`w_j` have nine weights, three of them 2 and six -1, in all 84 orders and at
    many dilations, from neighbours to the whole length. The thresholds :math:`b_j` are quantiles of
    what the patterns give on the series that ``bind`` sees; so are means and deviations. Series of
    several channels are read by random groups of these, and may differ in length.

    O(p length) time for a series, once; some seconds for a thousand series of length 400.

    Parameters
    ----------
    n_features : int, default=9996
        Number p of patterns with their thresholds, rounded to a multiple of 84.
    derivative : bool, default=False
        Whether differences of elements take their place.
    random_state : int, default=0
        For the groups of channels, and the series that thresholds are taken from.
    learned : dict, default=None
        Dilations, channels, thresholds, means and deviations; ``bind`` sets it.

    References
    ----------
    .. [1] Dempster, Schmidt and Webb, "MiniRocket: a very fast (almost) deterministic transform for
       time series classification", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import Convolutions
    >>> t = np.linspace(0, 6, 50)
    >>> series = [np.sin(t), np.sin(t + 0.2), np.sin(5 * t)]
    >>> K = Convolutions(840).bind(series)(series)
    >>> bool(K[0, 1] > K[0, 2])
    True
    """

    n_features: int = 9996
    _: KW_ONLY
    derivative: bool = False
    random_state: int = 0
    learned: dict[str, np.ndarray] | None = None

    @property
    def is_bound(self) -> bool:
        """Whether thresholds are known."""
        return self.learned is not None

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        if self.learned is not None:
            return {"learned": dict(self.learned)}
        Numbers(Integral, low=len(_PATTERNS)).check(self, "n_features")
        known = self._drawn(self._prepared(X.listed()))
        counts = self._counted(X, known)
        known["means"] = counts.mean(axis=0)
        spread = counts.std(axis=0)
        known["spreads"] = np.where(spread > 0, spread, np.inf)
        return {"learned": known}

    def _made(self, A: Objects) -> Any:
        known: Any = self.learned
        Z = (self._counted(A, known) - known["means"]) / known["spreads"]
        return Z / np.sqrt(Z.shape[1])

    def _counted(self, A: Objects, known: dict[str, np.ndarray]) -> np.ndarray:
        """How often every pattern occurs, looked up where memory has room for all of a table."""

        def make(items: list[np.ndarray]) -> np.ndarray:
            return _counts(self._prepared(items), known)

        thresholds = known["thresholds"]
        if not fits_budget(8.0 * len(A.values) * len(thresholds)):
            return make(A.listed())
        return A.made((type(self), bool(self.derivative), joblib.hash(thresholds)), make)

    def features(self, items: list[np.ndarray]) -> Any:
        """How often every pattern occurs, with mean zero and deviation one."""
        return self._made(Objects(items))

    def _prepared(self, items: list[np.ndarray]) -> list[np.ndarray]:
        n_channels = check_channels(items)
        if self.learned is not None and n_channels != self.learned["channels"].shape[2]:
            raise ValueError(
                f"Got series of {n_channels} channels, but expected "
                f"{self.learned['channels'].shape[2]}, as in the series that bind saw."
            )
        return prepared(items, False, self.derivative)

    def _drawn(self, items: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Dilations, groups of channels, and thresholds."""
        rng = check_random_state(self.random_state)
        length = int(np.median([item.shape[1] for item in items]))
        per_pattern = int(self.n_features) // len(_PATTERNS)
        n_dilations = min(per_pattern, _MOST_DILATIONS)
        most = np.log2(max(1.0, (length - 1) / (_TAPS - 1)))
        steps = np.logspace(0, most, n_dilations, base=2).astype(np.intp)
        dilations, times = np.unique(steps, return_counts=True)
        times = times * (per_pattern // n_dilations)
        times[: per_pattern - times.sum()] += 1
        d, shape = len(items[0]), (len(dilations), len(_PATTERNS))
        sizes = (2.0 ** rng.uniform(0, np.log2(min(d, _TAPS) + 1), shape)).astype(np.intp)
        ranks = rng.random_sample((*shape, d)).argsort(axis=2).argsort(axis=2)
        channels = ranks < sizes[:, :, None]
        quantiles = np.arange(1, per_pattern * len(_PATTERNS) + 1) * _GOLDEN % 1.0
        thresholds, at = [], 0
        for dilation, n, chosen in zip(dilations, times, channels, strict=True):
            some = rng.randint(len(items), size=len(_PATTERNS))
            for j, row in enumerate(some):
                C = next(_convolved(items[row][None], int(dilation), [j], chosen))
                thresholds.append(np.quantile(C, quantiles[at : at + n]))
                at += n
        return {
            "dilations": dilations,
            "times": times,
            "channels": channels,
            "thresholds": np.concatenate(thresholds),
        }


def _counts(items: list[np.ndarray], known: dict[str, np.ndarray]) -> np.ndarray:
    """Shares of places where each pattern is above each of its thresholds."""
    lengths = np.array([item.shape[1] for item in items], dtype=np.intp)
    found = np.empty((len(items), len(known["thresholds"])))
    for length in np.unique(lengths):
        same = np.flatnonzero(lengths == length)
        for rows in np.array_split(same, 1 + len(same) * length * len(items[0]) // _CACHED):
            X, at = np.stack([items[i] for i in rows]), 0
            for k, (dilation, n) in enumerate(zip(known["dilations"], known["times"], strict=True)):
                chosen = known["channels"][k]
                for j, C in enumerate(_convolved(X, int(dilation), range(len(chosen)), chosen)):
                    edge = dilation * (_TAPS // 2)
                    if (j + k) % 2 and length > 2 * edge:  # half of them without what is padded
                        C = C[:, edge:-edge]
                    for threshold in known["thresholds"][at : at + n]:
                        found[rows, at] = np.count_nonzero(C > threshold, axis=1) / C.shape[1]
                        at += 1
    return found


def _convolved(X: np.ndarray, dilation: int, patterns: Any, channels: np.ndarray) -> Iterator[Any]:
    """Series (n, d, T) under some patterns, zeros beyond their ends, one pattern at a time."""
    n, d, length = X.shape
    edge = dilation * (_TAPS // 2)
    wide = np.zeros((n, d, length + 2 * edge))
    wide[:, :, edge : edge + length] = X
    taps = [wide[:, :, t * dilation : t * dilation + length] for t in range(_TAPS)]
    low = -np.sum(taps, axis=0)
    for j in patterns:
        a, b, c = _PATTERNS[j]
        if d == 1:
            yield low[:, 0] + 3.0 * (taps[a][:, 0] + taps[b][:, 0] + taps[c][:, 0])
            continue
        own = channels[j]
        high = taps[a][:, own] + taps[b][:, own] + taps[c][:, own]
        yield np.sum(low[:, own] + 3.0 * high, axis=1)
