"""Why, on the report page: what the columns count, and what parts points from each other."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from kernelmetric.inspection import FeatureImportance
from kernelmetric.inspection._columns import Reading, read
from kernelmetric.inspection._features import importance_by
from kernelmetric.inspection._maps import embed, map_of
from kernelmetric.inspection._pairs import explain_features
from kernelmetric.report._page_data import LISTED, Points, hardness

_FEWEST_PAIRS = 50  # of rows, for shares that are worth showing
EXPLAINED = 40  # points whose distances to their neighbours are split over the columns
_OPERATIONS = 10**9  # for reasons, some seconds: of large kernels less is explained
_NODES = 40  # gradients that a pair takes
_SECONDS = 10.0  # of the clock, where pairs take more than that: busy machines explain fewer
_NAMED = 3  # columns that are named as the reason
COMPARED = 40  # points of which any two can be compared; a pair takes about 60 bytes of the page
_LISTED_COLUMNS = 6  # columns that part two of them


def columns_of(metric: Any, X: Any, feature_names: Sequence[str] | None = None) -> Reading | None:
    """The metric with the columns of its features; None where it is no function of features."""
    names = [f"feature {j}" for j in range(np.shape(X)[1])]
    names = names if feature_names is None else list(map(str, feature_names))
    columns = tuple(dict.fromkeys(names))
    places = {name: i for i, name in enumerate(columns)}
    try:
        return replace(read(metric), names=columns, groups=np.array([places[n] for n in names]))
    except ValueError:
        return None


def relevance(reading: Reading | None, X: Any) -> FeatureImportance | None:
    """How much each column counts, as a share of the whole; None where it would take long."""
    if reading is None:
        return None
    pairs = int(_OPERATIONS // (len(reading.names) * map_of(reading.metric).cost))
    if pairs < _FEWEST_PAIRS and hasattr(reading.metric, "kernel_"):
        return None
    try:
        return importance_by(reading, X, min(500, max(pairs, 1)))
    except ValueError:  # all rows are the same to it
        return None


def reasons(reading: Reading | None, points: Points, neighbors: np.ndarray) -> dict[int, Any]:
    """Which columns part some points, the hardest held-out ones first, from their neighbours."""
    most = min(EXPLAINED, _affordable(reading) // LISTED)
    E, end = _embedded(reading, points), time.monotonic() + _SECONDS
    found: dict[int, Any] = {}
    for i in _hardest(points)[:most].tolist():
        if found and time.monotonic() > end:
            break
        found[i] = [_largest(reading, points, E, i, j) for j in neighbors[i].tolist() if j >= 0]
    return found


def compared(reading: Reading | None, points: Points) -> dict[str, Any]:
    """Shares and distances of any two of some held-out points, as in the upper triangle."""
    n, total = points.n_train, len(points.codes)
    start = n if total - n >= 2 else 0
    most = min(COMPARED, int(np.sqrt(2 * _affordable(reading))), total - start)
    hard = _hardest(points)[: most // 2] if start else np.arange(0)  # half of them
    rest = np.setdiff1d(np.arange(start, total), hard)
    spread = rest[np.linspace(0, len(rest) - 1, most - len(hard)).round().astype(int)]
    chosen = np.unique(np.concatenate([hard, spread])).tolist()
    places = list(combinations(chosen, 2))
    E, after = _embedded(reading, points), points.after
    end, shares = time.monotonic() + _SECONDS, []
    for i, j in places:
        late = time.monotonic() > end
        shares.append([] if late else _largest(reading, points, E, i, j, _LISTED_COLUMNS))
    return {
        "points": chosen,
        "shares": shares,
        "distances": [float(f"{np.linalg.norm(after[i] - after[j]):.4g}") for i, j in places],
    }


def _embedded(reading: Reading | None, points: Points) -> Any:
    """All points as the map places them, at once."""
    return None if reading is None else embed(reading.metric, points.before)


def _affordable(reading: Reading | None) -> int:
    """How many pairs can be explained in some seconds."""
    return 0 if reading is None else int(_OPERATIONS // (_NODES * map_of(reading.metric).cost))


def _hardest(points: Points) -> np.ndarray:
    """Held-out points, the hardest first; in their order where there are no classes, or none."""
    n, total = points.n_train, len(points.codes)
    if n == total:
        return np.arange(n)
    order = np.argsort(-hardness(points), kind="stable") if points.classes else np.arange(total - n)
    return n + order


def _largest(
    reading: Any, points: Points, E: Any, i: int, j: int, most: int = _NAMED
) -> list[tuple[int, int]]:
    """Columns with the largest shares of a squared distance, in percent of the sum of sizes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The shares miss", UserWarning)
        why = explain_features(reading, points.before[[i, j]], E[[i, j]])
    size = np.abs(why.shares).sum()  # of near points, shares may cancel but for a millionth
    if not size > 0:
        return []
    percent = np.round(100 * why.shares / size).astype(int)
    order = np.argsort(-np.abs(percent), kind="stable")[:most]
    return [(int(c), int(percent[c])) for c in order if percent[c]]
