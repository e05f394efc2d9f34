"""What the report page shows of a metric, computed: planes, neighbours, Gram matrices, errors."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric.compute import nearest_neighbors, to_numpy
from kernelmetric.inspection import FeatureImportance
from kernelmetric.inspection._columns import Reading, read
from kernelmetric.inspection._features import importance_by
from kernelmetric.inspection._maps import map_of
from kernelmetric.inspection._pairs import explain_features
from kernelmetric.metric import refuse_signed

MOST_POINTS = 2_000  # drawn: more hide each other, and the page grows by 200 bytes for each
GRAM_ROWS = 150  # a matrix of them has about a pixel for each pair
LISTED = 6  # neighbours of a point
_FEWEST_PAIRS = 50  # of rows, for shares that are worth showing
EXPLAINED = 40  # points whose distances to their neighbours are split over the columns
_OPERATIONS = 10**9  # for reasons, some seconds: of large kernels less is explained
_NODES = 40  # gradients that a pair takes
_NAMED = 3  # columns that are named as the reason
VOTERS = 3  # of them that decide, as in the trials


class Points(NamedTuple):
    """The points on the page, before and after, training points first.

    Parameters
    ----------
    before, after : ndarray of shape (n, d)
        Coordinates in which Euclidean distance is the old and the learned one.
    codes : ndarray of shape (n,)
        Class of each, a number; zeros where there are no labels.
    classes : list of str
        Names of the classes; empty where there are no labels.
    n_train : int
        How many are training points; the others were held out.
    rows : ndarray of shape (n,)
        Which rows of all points they are, training rows first.
    """

    before: np.ndarray
    after: np.ndarray
    codes: np.ndarray
    classes: list[str]
    n_train: int
    rows: np.ndarray


def choose_points(metric: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> Points:
    """Points to show: all, or of many an even sample of both parts.

    Parameters
    ----------
    metric : fitted metric
        What was learned.
    X, X_test : array of shape (n, d)
        Training points and held-out points; the latter may be None.
    y, y_test : array of shape (n,)
        Their labels, or None.

    Returns
    -------
    Points
        At most ``MOST_POINTS``.
    """
    refuse_signed(metric)
    parts = [np.asarray(X)] + ([] if X_test is None else [np.asarray(X_test)])
    total = sum(map(len, parts))
    keep = [np.arange(len(part)) for part in parts]
    if total > MOST_POINTS:
        sizes = [max(2, MOST_POINTS * len(part) // total) for part in parts]
        keep = [
            np.linspace(0, len(part) - 1, size).astype(int)
            for part, size in zip(parts, sizes, strict=True)
        ]
    before = np.concatenate([part[rows] for part, rows in zip(parts, keep, strict=True)])
    rows = np.concatenate([keep[0], *(len(parts[0]) + rows for rows in keep[1:])])
    codes, classes = np.zeros(len(rows), dtype=int), []
    if y is not None:
        labels = np.concatenate([np.asarray(y), *([] if y_test is None else [np.asarray(y_test)])])
        names, all_codes = np.unique(labels, return_inverse=True)
        codes, classes = all_codes[rows], [str(name) for name in names]
    sides = [before.astype(float), to_numpy(metric.transform(before)).astype(float)]
    for name, Z in zip(("before", "after"), sides, strict=True):
        if not np.isfinite(Z).all():
            raise ValueError(
                f"Got {np.sum(~np.isfinite(Z).all(axis=1))} points whose coordinates {name} the "
                "metric are not finite, but expected numbers to draw: fill or leave out such rows."
            )
    return Points(sides[0], sides[1], codes, classes, len(keep[0]), rows)


def in_planes(points: Points) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Both clouds in a plane each, the second turned to resemble the first.

    With labels it is the plane in which the classes' means lie farthest apart, without them that
    of the first two principal axes; in both cases of the training points.

    Parameters
    ----------
    points : Points
        The points.

    Returns
    -------
    before, after : ndarray of shape (n, 2)
        The planes.
    shares : tuple of float
        Part of the variance that each plane shows.
    """
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
    return before, after @ turn, (shares[0], shares[1])


def plane_axes(Z: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Orthonormal axes along which the classes' means differ most, then the points.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Centred points.
    codes : ndarray of shape (n,)
        Their classes.

    Returns
    -------
    ndarray of shape (2, d)
        The axes; one where d is one.
    """
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
    """Nearest training points of every point, itself left out.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Points, training points first.
    n_train : int
        How many those are.

    Returns
    -------
    indices : ndarray of shape (n, LISTED)
        Nearest first; -1 where there are too few.
    distances : ndarray of shape (n, LISTED)
        Their distances.
    """
    train = Z[:n_train]
    found = [nearest_neighbors(train, LISTED)]
    if len(Z) > n_train:
        found.append(nearest_neighbors(train, LISTED, queries=Z[n_train:]))
    indices, squares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return indices, np.sqrt(squares)


def predictions(Z: np.ndarray, codes: np.ndarray, n_train: int) -> np.ndarray:
    """Class that the nearest training points give every held-out point.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Points, training points first.
    codes : ndarray of shape (n,)
        Their classes.
    n_train : int
        How many training points there are.

    Returns
    -------
    ndarray of shape (n - n_train,)
        Codes.
    """
    if len(Z) == n_train:
        return np.empty(0, dtype=int)
    with warnings.catch_warnings():  # many classes in few rows are no reason to doubt codes
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        knn = KNeighborsClassifier(min(VOTERS, n_train)).fit(Z[:n_train], codes[:n_train])
        return knn.predict(Z[n_train:])


def hardness(points: Points) -> np.ndarray:
    """How much nearer a held-out point is to another class than to its own, in [-1, 1].

    Parameters
    ----------
    points : Points
        The points.

    Returns
    -------
    ndarray of shape (n - n_train,)
        ``(own - other) / (own + other)`` of the distances to the nearest training points; the
        point is misplaced where it is positive.
    """
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
    """Centred Gram matrices of both clouds, ordered by class, as bytes.

    Parameters
    ----------
    points : Points
        The points; held-out ones are shown where there are any.

    Returns
    -------
    dict
        ``n``, the classes' ``ends``, the shown points' ``rows``, and ``before`` and ``after``:
        base64 of n² bytes, 128 for zero, 255 for the largest value.
    """
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
    codes = points.codes[shown]
    return {
        "n": len(shown),
        "codes": codes.tolist(),
        "points": shown.tolist(),
        **pictures,
    }


def columns_of(metric: Any, X: Any, feature_names: Sequence[str] | None = None) -> Reading | None:
    """The metric with the columns that its features are of; None where it has none.

    Parameters
    ----------
    metric : fitted metric
        What was learned.
    X : array of shape (n, d)
        Training points.
    feature_names : sequence of str, default=None
        Names of the features; those of one name are of one column.

    Returns
    -------
    Reading or None
        None for a metric of given kernel values, or one that is no function of features.
    """
    names = [f"feature {j}" for j in range(np.shape(X)[1])]
    names = names if feature_names is None else list(map(str, feature_names))
    columns = tuple(dict.fromkeys(names))
    places = {name: i for i, name in enumerate(columns)}
    try:
        return replace(read(metric), names=columns, groups=np.array([places[n] for n in names]))
    except ValueError:
        return None


def relevance(reading: Reading | None, X: Any) -> FeatureImportance | None:
    """How much each column counts, as a share of the whole; None where that has no answer.

    Parameters
    ----------
    reading : Reading or None
        What :func:`columns_of` returned.
    X : array of shape (n, d)
        Training points.

    Returns
    -------
    FeatureImportance or None
        Shares by name. None for a large kernel of many columns, where it would take long.
    """
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
    """Which columns part some points from their neighbours.

    Parameters
    ----------
    reading : Reading or None
        What :func:`columns_of` returned.
    points : Points
        The points; held-out ones are explained where there are any, the hardest first.
    neighbors : ndarray of shape (n, LISTED)
        Neighbours of all points in the learned metric, -1 where there is none.

    Returns
    -------
    dict of int to list
        By point, for every neighbour the columns with the largest shares of the squared distance,
        each with its part of the sum of their sizes in percent; negative where it brings nearer.
    """
    if reading is None:
        return {}
    most = min(EXPLAINED, int(_OPERATIONS // (LISTED * _NODES * map_of(reading.metric).cost)))
    n, n_test = points.n_train, len(points.codes) - points.n_train
    chosen = np.arange(n)
    if n_test:
        hard = hardness(points) if points.classes else np.zeros(n_test)
        chosen = n + np.argsort(-hard, kind="stable")
    found = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The shares miss", UserWarning)
        for i in chosen[:most].tolist():
            found[i] = [_largest(reading, points, i, j) for j in neighbors[i].tolist() if j >= 0]
    return found


def _largest(reading: Reading, points: Points, i: int, j: int) -> list[tuple[int, int]]:
    why = explain_features(reading, points.before[[i, j]])
    size = np.abs(why.shares).sum()  # of near points, shares may cancel but for a millionth
    if not size > 0:
        return []
    percent = np.round(100 * why.shares / size).astype(int)
    order = np.argsort(-np.abs(percent), kind="stable")[:_NAMED]
    return [(int(c), int(percent[c])) for c in order if percent[c]]
