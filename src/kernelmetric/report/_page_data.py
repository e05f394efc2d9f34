"""What the report page shows of a metric, computed: planes, neighbours, Gram matrices, errors."""

import base64
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from kernelmetric.compute import to_numpy
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.metric import places_of, refuse_signed

MOST_POINTS = 2_000  # drawn: more hide each other, and the page grows by 200 bytes for each
GRAM_ROWS = 150  # a matrix of them has about a pixel for each pair
LISTED = 6  # neighbours of a point
_RANGES = 5  # of numbers, by which points are coloured
_LINE = 1e-3  # of the variance, beside a line
_HEIGHT = 0.15  # of the length of a line, to either side of it
VOTERS = 3  # of them that decide where the metric has not chosen how many, as in the trials


class Points(NamedTuple):
    """The points on the page, before and after, training points first."""

    before: np.ndarray
    after: np.ndarray
    codes: np.ndarray  # numbers of classes, zeros where there are none
    classes: list[str]
    n_train: int
    rows: np.ndarray  # numbers among all points
    values: Any = None  # targets that are numbers; the classes are ranges of them then
    voters: int | None = None  # neighbours whose votes decide in the metric, where it chose them
    predicted: Any = None  # codes or numbers of the held-out points, where a model gave them


def choose_points(
    metric: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, predicted: Any, regression: bool
) -> Points:
    """Points to show: all, or of many an even sample of both parts, at most ``MOST_POINTS``."""
    refuse_signed(metric)
    parts = [np.asarray(part) for part in (X, X_test) if part is not None]
    total = sum(map(len, parts))
    shown, start = [], 0
    for part in parts:
        size = len(part) if total <= MOST_POINTS else max(2, MOST_POINTS * len(part) // total)
        shown.append(start + np.linspace(0, len(part) - 1, size).astype(int))
        start += len(part)
    rows = np.concatenate(shown)
    said = None if predicted is None else np.asarray(predicted)[shown[-1] - len(parts[0])]
    codes, values = np.zeros(len(rows), dtype=int), None
    classes: list[str] = []
    if y is not None:
        labels = np.concatenate([np.asarray(part) for part in (y, y_test) if part is not None])
        if regression:
            values = labels.astype(float)[rows]
            codes, classes = ranges_of(values)
        else:
            names, all_codes = np.unique(labels, return_inverse=True)
            codes, classes = all_codes[rows], [str(name) for name in names]
            said = None if said is None else np.searchsorted(names, said)
    placed = [to_numpy(places_of(metric, part)) for part in parts]
    before, after = (np.concatenate(all_of)[rows].astype(float) for all_of in (parts, placed))
    for name, Z in (("before", before), ("after", after)):
        if not np.isfinite(Z).all():
            raise ValueError(
                f"Got {np.sum(~np.isfinite(Z).all(axis=1))} points whose coordinates {name} the "
                "metric are not finite, but expected numbers to draw: fill or leave out such rows."
            )
    voters = getattr(metric, "n_neighbors_", None)
    return Points(before, after, codes, classes, len(shown[0]), rows, values, voters, said)


def ranges_of(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Which of some ranges of equal count each number is in, lowest first, and their names."""
    cuts = np.unique(np.quantile(values, np.arange(1, _RANGES) / _RANGES))
    codes = np.searchsorted(cuts, values, side="left")
    present, codes = np.unique(codes, return_inverse=True)
    names, ends = [], ["", *(f"{cut:.4g}" for cut in cuts), ""]
    for code in present:
        low, high = ends[code], ends[code + 1]
        names.append(
            f"{low} to {high}" if low and high else f"up to {high}" if high else f"above {low}"
        )
    return codes, names


def in_planes(points: Points) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Both clouds in a plane each, the second turned to resemble the first, and variances shown."""
    planes, shares = [], []
    for Z in (points.before, points.after):
        train = Z[: points.n_train]
        mean = train.mean(axis=0)
        axes = plane_axes(train - mean, points.codes[: points.n_train])
        plane = (Z - mean) @ axes.T
        planes.append(np.pad(plane, ((0, 0), (0, 2 - plane.shape[1]))))
        whole = max(float(np.sum((train - mean) ** 2)), np.finfo(float).tiny)
        shares.append(float(np.sum(plane[: points.n_train] ** 2)) / whole)
    before, after = planes
    turn, _ = orthogonal_procrustes(after, before)
    turned = after @ turn
    if on_a_line(points.after[: points.n_train]):
        turned = apart(after[:, 0] * np.sign(turn[0, 0] or 1.0))
    return before, turned, (shares[0], shares[1])


def on_a_line(Z: np.ndarray) -> bool:
    """Whether all but a thousandth of the variance of points lies along one direction."""
    values = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False) ** 2
    return bool(values[0] > 0 and values[1:].sum() < _LINE * values[0])


def apart(x: np.ndarray) -> np.ndarray:
    """Points of a line in a plane, above and below it, so that few marks hide each other."""
    heights = np.random.RandomState(0).uniform(-_HEIGHT, _HEIGHT, len(x))
    return np.stack([x, heights * (float(np.ptp(x)) or 1.0)], axis=1)


def plane_axes(Z: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Orthonormal axes along which the classes' means differ most, then the centred points."""
    present, counts = np.unique(codes, return_counts=True)
    means = np.stack([Z[codes == code].mean(axis=0) for code in present])
    # p means span at most p - 1 directions; scatter inside the classes finds those that lack
    found = np.linalg.svd(means * np.sqrt(counts)[:, None], full_matrices=False)[2]
    axes = found[: min(2, len(present) - 1)]
    if len(axes) < 2:
        rest = np.linalg.svd(Z - (Z @ axes.T) @ axes, full_matrices=False)[2]
        axes = np.concatenate([axes, rest[: 2 - len(axes)]])
    return axes[: Z.shape[1]]


def neighbors_of(Z: np.ndarray, n_train: int) -> tuple[np.ndarray, np.ndarray]:
    """Nearest training points of every point, itself left out, and distances; -1 where too few."""
    train = Z[:n_train]
    found = [nearest_neighbors(train, LISTED)]
    if len(Z) > n_train:
        found.append(nearest_neighbors(train, LISTED, queries=Z[n_train:]))
    indices, squares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return indices, np.sqrt(squares)


def predictions(Z: np.ndarray, targets: np.ndarray, n_train: int, voters: int) -> np.ndarray:
    """Class or number that the nearest training points give every held-out point."""
    if len(Z) == n_train:
        return np.empty(0, dtype=targets.dtype)
    kind = KNeighborsRegressor if targets.dtype.kind == "f" else KNeighborsClassifier
    with warnings.catch_warnings():  # many classes in few rows are no reason to doubt codes
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        return kind(min(voters, n_train)).fit(Z[:n_train], targets[:n_train]).predict(Z[n_train:])


def said_after(points: Points) -> np.ndarray:
    """Class or range of every held-out point: as the model predicts it, or as neighbours do."""
    if points.predicted is None:
        return predictions(points.after, points.codes, points.n_train, points.voters or VOTERS)
    if points.values is None:
        return points.predicted
    nearest = np.abs(points.values - points.predicted[:, None]).argmin(axis=1)
    return points.codes[nearest]


def hardness(points: Points) -> np.ndarray:
    """``(own - other) / (own + other)`` of a held-out point's distances to training classes."""
    n, Z = points.n_train, points.after
    own, other = np.full(len(Z) - n, np.inf), np.full(len(Z) - n, np.inf)
    for code in np.unique(points.codes[:n]):
        members = Z[:n][points.codes[:n] == code]
        nearest = np.sqrt(nearest_neighbors(members, 1, queries=Z[n:])[1][:, 0])
        mine = points.codes[n:] == code
        own[mine] = nearest[mine]
        other[~mine] = np.minimum(other[~mine], nearest[~mine])
    total = own + other
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(total) & (total > 0), (own - other) / total, 1.0)


def gram_picture(points: Points) -> dict[str, Any]:
    """Centred Gram matrices of both clouds, ordered by class, as base64 of bytes; 128 is zero."""
    start = points.n_train if len(points.codes) - points.n_train >= 2 else 0
    order = start + np.argsort(points.codes[start:], kind="stable")
    shown = order[np.linspace(0, len(order) - 1, min(GRAM_ROWS, len(order))).astype(int)]
    pictures = {}
    for name, Z in (("before", points.before), ("after", points.after)):
        centered = Z[shown] - Z[shown].mean(axis=0)
        K = centered @ centered.T
        limit = max(float(np.quantile(np.abs(K), 0.99)), np.finfo(float).tiny)
        levels = np.round(128 + 127 * np.clip(K / limit, -1, 1)).astype(np.uint8)
        pictures[name] = base64.b64encode(levels.tobytes()).decode("ascii")
    codes = points.codes[shown].tolist()
    return {"n": len(shown), "codes": codes, "points": shown.tolist(), **pictures}
