"""What a fit was given: refused in a sentence, cut to the rows that count, and to those in time."""

import math
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples

from kernelmetric import inputs
from kernelmetric.compute import in_memory, namespace, to_numpy
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.watch import time_left, warn_of_limit
from kernelmetric.graphs import as_pairs, coded_targets
from kernelmetric.graphs._given import as_tuples


def take_weights(learner: Any, given: dict[str, Any]) -> None:
    """Give a fit :class:`Weights`, and no rows of weight zero."""
    sample_weight, class_weight = given.get("sample_weight"), vars(learner).get("class_weight")
    plain = sample_weight is None and class_weight is None
    if plain or isinstance(sample_weight, inputs.Weights):
        return
    X, y = given["X"], given.get("y")
    inputs.refuse_streams(X)
    if sample_weight is not None and getattr(X, "ndim", 2) == 3:
        raise ValueError(
            "Got sample_weight beside an array of tuples of points, but expected weights of rows: "
            "try row numbers of tuples (pairs=) beside X, and a weight for every row of X."
        )
    rows, weights = inputs.rows_and_weights(sample_weight, X)
    weights = weights_of_classes(learner, X, y, rows, weights)
    if rows is not None:
        given.update(some_rows(given, X, y, rows))
    given["sample_weight"] = weights


def weights_of_classes(
    learner: Any, X: Any, y: Any, rows: np.ndarray | None, weights: inputs.Weights | None
) -> inputs.Weights | None:
    """Weights of rows with those of the learner's classes, where y has classes."""
    if y is None or learner.learns_from == "targets":
        return weights
    class_weight = vars(learner).get("class_weight")
    if get_tags(learner).target_tags.multi_output and coded_targets(y, X).values is not None:
        if class_weight is not None:
            raise ValueError(
                f"Got class_weight={class_weight!r} with a target of numbers, but expected "
                "classes: try sample_weight."
            )
        return weights
    inputs.check_labels(y, X)
    return inputs.with_class_weights(weights, class_weight, y, rows)


def some_rows(given: dict[str, Any], X: Any, y: Any, rows: np.ndarray) -> dict[str, Any]:
    """The arguments of a fit that speak of rows, of some rows alone."""
    n = _num_samples(X)
    for name in ("y", "chunks", "neighbors"):
        if given.get(name) is not None and _num_samples(given[name]) != n:
            raise ValueError(
                f"Got {name} of {_num_samples(given[name])} rows, but expected {n}, one for each "
                "row of X."
            )
    kept: dict[str, Any] = {
        name: inputs.rows_of(given[name], rows) for name in ("X", "y", "chunks") if name in given
    }
    neighbors = given.get("neighbors")
    if neighbors is not None:
        where = neighbors if hasattr(neighbors, "shape") else np.asarray(neighbors)
        kept["neighbors"] = inputs.rows_of(where, rows)
        if namespace(where).isdtype(where.dtype, "integral"):  # row numbers, -1 for none
            place = np.full(n + 1, -1)
            place[rows] = np.arange(len(rows))
            kept["neighbors"] = place[to_numpy(kept["neighbors"])]
    pairs, similar, dissimilar = (given.get(k) for k in ("pairs", "similar", "dissimilar"))
    if any(part is not None for part in (pairs, similar, dissimilar)):
        kept |= {name: None for name in ("similar", "dissimilar") if name in given}
        kept["pairs"] = as_pairs(pairs, similar, dissimilar, y, n).subset(rows)
    for name in ("triplets", "quadruplets"):
        if given.get(name) is not None:
            kept[name] = as_tuples(name, given[name], n).subset(rows)
    return kept


def as_matrix(value: Any, name: str) -> np.ndarray:
    """A parameter as a new float64 array, refused where it is none."""
    try:
        return np.array(to_numpy(value), dtype=np.float64)
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise ValueError(
            f"Got {name} of type {type(value).__name__}, but expected an array of numbers."
        ) from None


def check_spread(X: Any) -> None:
    """Refuse points that coincide, or whose squared distances leave the range of the dtype."""
    xp = namespace(X)
    n, d = X.shape
    top = float(xp.max(xp.abs(X)))
    info = xp.finfo(X.dtype)
    center = xp.mean(X, axis=0) if top < info.max / n else X[0, :]
    with np.errstate(over="ignore"):  # an infinite spread is refused below
        spread = float(xp.max(xp.abs(X - center)))
    if spread <= 4 * float(info.eps) * top and not bool(xp.any(X != X[:1, :])):
        raise ValueError(
            f"Got {n} identical points, but expected at least two different ones: no distance "
            "can be learned from them."
        )
    if not (np.sqrt(info.smallest_normal) * 1e3 < spread < np.sqrt(info.max / (8.0 * n * d))):
        raise ValueError(
            f"Got features that spread over {spread:.3g}, in {inputs.farthest_column(X)}, but "
            f"expected squares within the range of {X.dtype}: rescale them first, e.g. with "
            "StandardScaler."
        )
    inputs.refuse_tiny_columns(X)


def check_reach(L: np.ndarray, X: Any, name: str) -> None:
    """Refuse a map whose entries, or whose images of the points, have squares beyond the dtype."""
    most = float(namespace(X).finfo(X.dtype).max) / (8.0 * X.shape[0] * L.size)
    points = to_numpy(X).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        images = np.abs(L) @ np.max(np.abs(points - points.mean(axis=0)), axis=0)
        reach = max(float(np.max(images)), float(np.max(np.abs(L))))
        fits = reach * reach < most
    if not fits:
        raise ValueError(
            f"Got {name} with entries up to {np.max(np.abs(L)):.3g}, but expected a map under "
            f"which squared distances stay within the range of {X.dtype}: try smaller entries."
        )


def refuse_lone_points(some: Any, why: str) -> None:
    """Refuse classes of which none has two members."""
    if not some:
        raise ValueError(f"Got no class with two members, but expected at least one: {why}.")


def refuse_one_target(differ: Any) -> None:
    """Refuse targets that are the same for all points."""
    if not differ:
        raise ValueError(
            "Got the same target for all points, but expected at least two different ones: "
            "a metric is learned from what predicts them."
        )


def check_neighbors(neighbors: Any, X: Any, *, rows: bool = False) -> Any:
    """Where neighbours come from: floats are coordinates of the points, integers row numbers."""
    where = neighbors if hasattr(neighbors, "shape") else np.asarray(neighbors)
    if where.ndim != 2 or where.shape[0] != X.shape[0]:
        raise ValueError(
            f"Got neighbors of shape {tuple(where.shape)}, but expected one row for each of the "
            f"{X.shape[0]} points."
        )
    xp = namespace(where)
    if rows and xp.isdtype(where.dtype, "integral"):
        return where
    if not xp.isdtype(where.dtype, "real floating"):
        or_rows = ", or integers: the row numbers of neighbours" if rows else ""
        raise ValueError(
            f"Got neighbors of dtype {where.dtype}, but expected floats: other coordinates of the "
            f"points{or_rows}. Integers are row numbers wherever neighbours are passed; try "
            "neighbors.astype(float) for coordinates."
        )
    if not bool(xp.all(xp.isfinite(where))):
        raise ValueError("Got neighbors with NaN or infinity, but expected finite coordinates.")
    return where


_LEAST_OF_CLASS = 10
_OF_ROWS = {"self", "X", "y", "gram", "sample_weight", "neighbors"}  # as some rows have them
_CELLS_A_ROW, _CELLS_A_NUMBER = 1_600, 60  # passes over numbers that scatter matrices take,
_PRODUCTS_A_ROW, _PRODUCTS_A_SOLUTION = 10, 15  # and products, times d²


def keep_time(learner: Any, given: dict[str, Any]) -> None:
    """Give a fit so many rows as the time limit leaves time for."""
    if math.isinf(time_left()):
        return
    X: Any = given.get("X")
    y: Any = given.get("y")
    told = {name for name, value in given.items() if value is not None}
    if y is None or told - _OF_ROWS or not in_memory(X) or len(getattr(X, "shape", ())) != 2:
        return
    n, d = X.shape
    most = most_in_time(lambda rows: least_seconds(learner, rows, d), n, learner._least_rows)
    if n <= most:
        return
    rows = coded_targets(y, X).sample_of_all(most, _LEAST_OF_CLASS)
    given.update(some_rows(given, X, y, rows))
    if isinstance(given.get("sample_weight"), inputs.Weights):
        given["sample_weight"] = given["sample_weight"].take(rows)
    name = type(learner).__name__
    warn_of_limit(f"the draw of rows for {name} at {len(rows):,} of {n:,}")


def least_seconds(learner: Any, n: int, d: int) -> float:
    """Seconds before a fit is worth anything: a few passes over pairs of rows, or over rows."""
    rate = rates()
    if not learner._passes:
        each = rate.cell * (_CELLS_A_ROW + _CELLS_A_NUMBER * d)
        return n * each + rate.product * d**2 * (_PRODUCTS_A_ROW * n + _PRODUCTS_A_SOLUTION * d)
    pairs = learner._passes * n * learner._meets(n, d)
    products = 2.0 * d * pairs + learner._products(n, d)
    return rate.value * pairs + rate.product * products
