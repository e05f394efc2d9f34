"""Series: how they are read, and kernels and distances by their alignments."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from kernelmetric.compute import over_rows
from kernelmetric.inputs import Objects
from kernelmetric.inputs._parameters import LARGEST, is_auto, is_on
from kernelmetric.kernels._objects import ObjectKernel, as_numbers
from kernelmetric.kernels._points import check_number

WIDTHS = (1.0, 0.5, 2.0, 0.25, 4.0)  # of the usual width, where labels choose
_FARTHEST = 40.0  # exp(-40) is nothing beside one
_CALM = 8  # diagonals after which values are brought back into range
_PAIR_BYTES = 80.0  # what a pair of series takes for each element of the longer one
_CACHED = 2**14  # numbers of one diagonal of all pairs, which stay in the cache
_PARTS = 10  # of a series, which are hidden one at a time
_PICTURE, _BINS = (240, 60), 80  # pixels, and parts of a line that have two ends each
_COLOURS = ("#0a6ea8", "#e08a00", "#009e73", "#c2589a")  # of channels, in turn
_SAMPLE = 100  # series whose elements tell the usual width


class SeriesKernel(ObjectKernel):
    """Base class of kernels of series, which may differ in length.

    A series is an array (length,), or (n_channels, length) as aeon has them; NaN at its end are
    padding.
    """

    expects: ClassVar[str] = "series, arrays (length,) or (n_channels, length)"

    def read(self, item: Any) -> np.ndarray:
        """A series as an array (n_channels, length) of finite numbers."""
        series = np.atleast_2d(as_numbers(item))
        if series.ndim != 2:
            raise ValueError(f"it has {series.ndim} dimensions")
        there = np.flatnonzero(~np.isnan(series).all(axis=0))
        series = series[:, : there[-1] + 1 if len(there) else 0]
        if not series.size or not np.all(np.isfinite(series)):
            raise ValueError("it is empty, or has NaN or infinity inside")
        return series

    def parts(self, item: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Tenths of the length, each of them made a straight line."""
        n = item.shape[1]
        ends = np.unique(np.linspace(0, n, min(_PARTS, n) + 1).round().astype(int))
        for first, stop in pairwise(ends.tolist()):
            known = np.delete(np.arange(n), np.arange(first, stop))
            hidden = item.copy()
            for channel in hidden if len(known) else ():
                channel[first:stop] = np.interp(np.arange(first, stop), known, channel[known])
            yield f"{first} to {stop - 1}", hidden

    def picture(self, item: np.ndarray) -> str | None:
        """A line for each channel, from its least to its greatest number."""
        width, height = _PICTURE
        drawn = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}'>"
        for i, channel in enumerate(item):
            places = _outline(channel)
            values = channel[places] / (np.abs(channel).max() or 1.0)
            rise = (values - values.min()) / (float(np.ptp(values)) or 1.0)
            x = 2 + (width - 4) * places / max(len(channel) - 1, 1)
            y = height - 2 - (height - 4) * rise
            points = " ".join(f"{a:.0f},{b:.0f}" for a, b in zip(x, y, strict=True))
            colour = _COLOURS[i % len(_COLOURS)]
            drawn += f"<polyline points='{points}' fill='none' stroke='{colour}'/>"
        return drawn + "</svg>"


def _outline(channel: np.ndarray) -> np.ndarray:
    """Places of the least and the greatest number of each of some parts of a series."""
    parts = np.array_split(np.arange(len(channel)), min(_BINS, len(channel)))
    ends = [part[end(channel[part])] for part in parts for end in (np.argmin, np.argmax)]
    return np.unique(ends)


def check_channels(items: list[np.ndarray]) -> int:
    """The number of channels, refused where series differ in it."""
    counts = {len(item) for item in items}
    if len(counts) > 1:
        raise ValueError(
            f"Got series of {sorted(counts)} channels, but expected as many for every series."
        )
    return counts.pop() if counts else 0


def prepared(items: list[np.ndarray], scale: bool, derivative: bool) -> list[np.ndarray]:
    """Series after the steps that a user chose: differences, then mean zero and deviation one."""
    if is_on("derivative", derivative):
        items = [np.diff(item, axis=1) if item.shape[1] > 1 else 0.0 * item for item in items]
    if not is_on("scale", scale):
        return [item.copy() for item in items]  # what is kept is not the caller's
    tops = [np.abs(item).max(axis=1, keepdims=True) for item in items]
    items = [item / np.where(top > 0, top, 1.0) for item, top in zip(items, tops, strict=True)]
    centred = [item - item.mean(axis=1, keepdims=True) for item in items]
    sizes = [item.std(axis=1, keepdims=True) for item in centred]
    return [
        np.divide(item, size, out=np.zeros_like(item), where=size > 1e-12)
        for item, size in zip(centred, sizes, strict=True)
    ]


@dataclass(eq=False, repr=False)
class GlobalAlignment(SeriesKernel):
    r"""All alignments of two series: the global alignment kernel [1]_, normalized.

    .. math:: k(x, y) = \frac{K(x, y)}{\sqrt{K(x, x) K(y, y)}}, \quad
              K(x, y) = \sum_\pi \prod_{(i, j) \in \pi} \kappa_{ij}, \quad
              \kappa_{ij} = \frac{\omega_{ij} e_{ij}}{2 - \omega_{ij} e_{ij}}

    over the alignments π of elements, where :math:`e_{ij} = \exp(-\|x_i - y_j\|^2 / 2\sigma^2)`
    and :math:`\omega_{ij} = \max(0, 1 - |i - j| / w)`. It is positive semi-definite, also for
    series of different lengths. O(w length) time for each pair of series.

    Parameters
    ----------
    relative_width : float or "auto", default="auto"
        The width σ as a multiple of the usual one, the median distance of two elements times the
        root of the median length. "auto": where labels choose, the one that predicts left-out
        points best; 1 without labels.
    window : float or int, default=0.1
        How far elements that are aligned may be apart, w: a fraction of the longest series that
        ``bind`` sees, or a number of elements.
    scale : bool, default=True
        Whether every channel of a series is given mean zero and deviation one.
    derivative : bool, default=False
        Whether differences of elements take their place.
    width : float, default=None
        The width σ itself; ``bind`` sets it.

    References
    ----------
    .. [1] Cuturi, "Fast global alignment kernels", ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import GlobalAlignment
    >>> t = np.linspace(0, 6, 40)
    >>> series = [np.sin(t), np.sin(t - 0.3), np.cos(t)[:38]]
    >>> GlobalAlignment().bind(series)(series).round(2)
    array([[1.  , 0.89, 0.01],
           [0.89, 1.  , 0.01],
           [0.01, 0.01, 1.  ]])
    """

    relative_width: Any = "auto"
    _: KW_ONLY
    window: Any = 0.1
    scale: bool = True
    derivative: bool = False
    width: float | None = None

    _open = "relative_width", WIDTHS, "width"

    @property
    def is_bound(self) -> bool:
        """Whether width and window are numbers."""
        return self.width is not None and isinstance(self.window, Integral)

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        given = 1.0 if is_auto(self.relative_width) else self.relative_width
        relative = check_number("relative_width", given, positive=True)
        items = self._made(X)
        longest = max(item.shape[1] for item in items)
        known: dict[str, Any] = {"window": window_of(self.window, longest)}
        if self.width is None:
            known["width"] = relative * _usual_width(items)
        return known

    def features(self, items: list[np.ndarray]) -> Any:
        """The series, scaled."""
        check_channels(items)
        return Listed(prepared(items, self.scale, self.derivative))

    def _key(self) -> Hashable:
        return type(self), is_on("scale", self.scale), is_on("derivative", self.derivative)

    def _values(self, A: Objects, B: Objects | None) -> np.ndarray:
        first = self._made(A)
        second = first if B is None else self._made(B)
        shape = len(first), len(second)
        rows, columns = np.tril_indices(*shape) if B is None else np.indices(shape).reshape(2, -1)
        logs = np.empty(shape)
        logs[rows, columns] = self._logs(first, second, rows, columns)
        if B is None:
            logs[columns, rows] = logs[rows, columns]
            own = other = np.diagonal(logs)
        else:
            own, other = self._own_logs(A), self._own_logs(B)
        return np.exp(logs - 0.5 * (own[:, None] + other[None, :]))

    def _diagonal(self, A: Objects) -> np.ndarray:
        return np.ones(len(A))

    def _own_logs(self, A: Objects) -> np.ndarray:
        def make(items: list[np.ndarray]) -> np.ndarray:
            some, all_rows = self._made(Objects(items)), np.arange(len(items))
            return self._logs(some, some, all_rows, all_rows)

        return A.made((self._key(), self.width, self.window), make)

    def _logs(self, A: Any, B: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        width = check_number("width", self.width, positive=True)
        window = int(self.window)

        def step(squares, offsets, corner, above, left):
            squares *= -0.5 / width**2
            local = np.exp(np.maximum(squares, -_FARTHEST, out=squares), out=squares)
            local *= np.maximum(0.0, 1.0 - np.abs(offsets) / window)
            total = corner + above
            total += left
            total *= local
            total /= np.subtract(2.0, local, out=local)
            return total

        return over_alignments(A, B, rows, columns, step, lambda n, m: window, logs=True)


class Listed(list):
    """A list of series, of which rows are taken together."""

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return Listed(list.__getitem__(self, i) for i in rows.tolist())
        return list.__getitem__(self, rows)


def window_of(window: Any, longest: int) -> int:
    """A window as a number of elements."""
    whole = isinstance(window, Integral) and not isinstance(window, bool)
    if whole and 1 <= int(window) <= LARGEST:
        return int(window)
    if not isinstance(window, Real) or isinstance(window, Integral) or not 0 < float(window) <= 1:
        raise ValueError(
            f"Got window={window!r}, but expected a number of elements, at least 1, or a fraction "
            "of the length above 0 and up to 1: try 0.1."
        )
    return max(1, int(np.ceil(float(window) * longest)))


def _usual_width(items: list[np.ndarray]) -> float:
    """Median distance of two elements of some series, times the root of the median length."""
    rng = np.random.RandomState(0)
    some = [items[i] for i in rng.permutation(len(items))[:_SAMPLE]]
    parts = [item[:, rng.permutation(item.shape[1])[:_SAMPLE]] for item in some]
    elements = np.concatenate(parts, axis=1).T
    pairs = rng.randint(len(elements), size=(2, 10_000))
    distances = np.linalg.norm(elements[pairs[0]] - elements[pairs[1]], axis=1)
    usual = float(np.median(distances[distances > 0])) if distances.any() else 1.0
    return usual * float(np.sqrt(np.median([item.shape[1] for item in items])))


def over_alignments(
    A: list[np.ndarray],
    B: list[np.ndarray],
    rows: np.ndarray,
    columns: np.ndarray,
    step: Callable[..., np.ndarray],
    reach: Callable[[int, int], int],
    *,
    logs: bool = False,
) -> np.ndarray:
    """A number for each listed pair of series, by a recursion over all alignments of the two.

    ``step(squares, i - j, corner, above, left)`` gives the values of some cells (i, j), from the
    squared distances of their elements and the values before them. ``reach(n, m)`` is how far i
    and j may be apart. With ``logs`` values are sums, and their logarithms are returned; without,
    least costs.
    """
    check_channels([*A, *B])
    lengths = [np.array([item.shape[1] for item in items], dtype=np.intp) for items in (A, B)]
    n, m = lengths[0][rows], lengths[1][columns]
    order, found = np.lexsort((m, n)), np.empty(len(rows))

    def work(part: slice) -> None:
        some = order[part]
        X, Y = [A[i] for i in rows[some]], [B[j] for j in columns[some]]
        found[some] = _by_diagonals(X, Y, n[some], m[some], step, reach, logs)

    longest = int(max(n.max(initial=1), m.max(initial=1)))
    cells = min(reach(longest, longest) + 1, longest)
    over_rows(work, len(rows), _PAIR_BYTES * longest, most=max(16, _CACHED // cells))
    return found


def _by_diagonals(
    A: list[np.ndarray],
    B: list[np.ndarray],
    n: np.ndarray,
    m: np.ndarray,
    step: Callable[..., np.ndarray],
    reach: Callable[[int, int], int],
    logs: bool,
) -> np.ndarray:
    """The recursion for some pairs of series together, one diagonal i + j = s after the other."""
    N, M = int(n.max()), int(m.max())
    X, Y = _padded(A, N), _padded(B, M)[:, :, ::-1]
    far = np.array([reach(int(a), int(b)) for a, b in zip(n, m, strict=True)])
    one_shape = len(set(zip(n.tolist(), m.tolist(), strict=True))) == 1
    nothing = 0.0 if logs else np.inf
    D, D1, D2 = np.full((3, len(A), N + 2), nothing)  # three diagonals take turns
    D2[:, 0] = 1.0 if logs else 0.0
    found, level = np.full(len(A), -np.inf if logs else np.inf), np.zeros(len(A))
    for s in range(2, N + M + 1):
        low = max(1, s - M, -((far.max() - s) // 2))
        high = min(N, s - 1, (s + far.max()) // 2)
        i = np.arange(low, high + 1)
        part = slice(M - s + low, M - s + high + 1)
        if low <= high:
            squares = (X[:, 0, low - 1 : high] - Y[:, 0, part]) ** 2
            for c in range(1, X.shape[1]):
                squares += (X[:, c, low - 1 : high] - Y[:, c, part]) ** 2
            before = D2[:, low - 1 : high], D1[:, low - 1 : high], D1[:, low : high + 1]
            here = step(squares, 2 * i - s, *before)
            if not one_shape:
                there = (i <= n[:, None]) & (s - i <= m[:, None])
                there &= np.abs(2 * i - s) <= far[:, None]
                here[~there] = nothing
            D[:, low : high + 1] = here
            # what later diagonals see beside these cells; older values are farther off
            D[:, [low - 1, high + 1]] = nothing
        else:
            D[:] = nothing
        ended = np.flatnonzero(n + m == s)
        values = D[ended, n[ended]]
        if logs:
            with np.errstate(divide="ignore"):
                values = np.log(values) + level[ended]
        found[ended] = values
        D, D1, D2 = D2, D, D1
        if logs and s % _CALM == 0:
            largest = np.maximum(D1.max(axis=1), D2.max(axis=1))
            largest[largest == 0] = 1.0
            level += np.log(largest)
            D1 /= largest[:, None]
            D2 /= largest[:, None]
    return found


def _padded(items: list[np.ndarray], length: int) -> np.ndarray:
    whole = np.zeros((len(items), len(items[0]), length))
    for row, item in zip(whole, items, strict=True):
        row[:, : item.shape[1]] = item
    return whole
