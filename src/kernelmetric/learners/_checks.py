"""What learners refuse, in a sentence, before they begin; and warnings at the caller's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples

from kernelmetric.compute import namespace, to_numpy
from kernelmetric.graphs import Quadruplets, Triplets, as_pairs, check_length, coded_targets
from kernelmetric.inputs import (
    Weights,
    check_labels,
    farthest_column,
    refuse_streams,
    refuse_tiny_columns,
    rows_and_weights,
    rows_of,
    with_class_weights,
)

LARGEST = 1e100  # weights beyond leave the range of floating point once squares are summed
_FLAGS = ("diagonal", "verbose", "warm_start")


class Numbers(NamedTuple):
    """What a parameter may be: a finite number of a kind within bounds, or one of some words."""

    kind: type
    low: float
    high: float = np.inf
    above: bool = False  # the lower bound itself is refused
    words: tuple[str | None, ...] = ()

    def check(self, estimator: Any, name: str) -> None:
        """Refuse a parameter that is none of these."""
        value: Any = getattr(estimator, name)
        if value is None or isinstance(value, str):
            good = value in self.words
        else:
            good = isinstance(value, self.kind) and not isinstance(value, bool | np.bool_)
            good = good and self._bounds(_as_float(value))
        if not good:
            bound = f"{'>' if self.above else '>='} {self.low:g}"
            bound += f" and <= {self.high:g}" if self.high < np.inf else ""
            kind = "an integer" if self.kind is Integral else "a number"
            raise ValueError(
                f"Got {name}={value!r}, but {type(estimator).__name__} expected "
                + _either([*(repr(word) for word in self.words if word), f"{kind} {bound}."])
            )

    def _bounds(self, number: float) -> bool:
        above = self.low < number if self.above else self.low <= number
        return above and number <= self.high and number < np.inf


COUNT = Numbers(Integral, low=1)
COUNT_OR_NONE = Numbers(Integral, low=1, words=(None,))
PRICE = Numbers(Real, low=0, high=LARGEST)


def check_number(
    estimator: Any, name: str, kind: type, *, low: float, high: float = np.inf, above: bool = False
) -> None:
    """Refuse a parameter that is not a finite number of the kind from ``low`` to ``high``."""
    Numbers(kind, low, high, above).check(estimator, name)


def check_parameters(estimator: Any) -> None:
    """Refuse what the classes of a learner do not allow (``_allowed``): numbers, or words."""
    check_flags(estimator)
    allowed: dict[str, Any] = {}
    for cls in reversed(type(estimator).__mro__):
        allowed |= vars(cls).get("_allowed", {})
    for name, values in allowed.items():
        if isinstance(values, Numbers) and hasattr(estimator, name):
            values.check(estimator, name)
        elif hasattr(estimator, name):
            check_choice(estimator, name, values)


def _as_float(value: Any) -> float:
    """A number as a float; infinity for an integer that no float can hold."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def check_choice(estimator: Any, name: str, choices: Sequence[str]) -> None:
    """Refuse a parameter that is none of some words."""
    value: Any = getattr(estimator, name)
    if not isinstance(value, str) or value not in choices:
        words = _either([repr(word) for word in choices])
        raise ValueError(f"Got {name}={value!r}, but expected {words}.")


def check_flags(estimator: Any) -> None:
    """Refuse a switch that is neither on nor off."""
    for name in _FLAGS:
        value = getattr(estimator, name, False)
        if not isinstance(value, bool | np.bool_ | Integral):
            raise ValueError(f"Got {name}={value!r}, but expected True or False.")


def weighed(
    learner: Any, fit: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a fit with :class:`Weights` and without rows of weight zero."""
    sample_weight, class_weight = options.get("sample_weight"), vars(learner).get("class_weight")
    if isinstance(sample_weight, Weights) or (sample_weight is None and class_weight is None):
        return args, options
    given = inspect.signature(fit).bind(learner, *args, **options).arguments
    given.pop("self")
    X, y = given["X"], given.get("y")
    refuse_streams(X)
    if sample_weight is not None and getattr(X, "ndim", 2) == 3:
        raise ValueError(
            "Got sample_weight beside an array of tuples of points, but expected weights of rows: "
            "try row numbers of tuples (pairs=) beside X, and a weight for every row of X."
        )
    rows, weights = rows_and_weights(sample_weight, X)
    weights = weights_of_classes(learner, X, y, rows, weights)
    if rows is not None:
        given.update(kept_rows(given, X, y, rows))
    return (), {**given, "sample_weight": weights}


def weights_of_classes(
    learner: Any, X: Any, y: Any, rows: np.ndarray | None, weights: Weights | None
) -> Weights | None:
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
    check_labels(y, X)
    return with_class_weights(weights, class_weight, y, rows)


def kept_rows(given: dict[str, Any], X: Any, y: Any, rows: np.ndarray) -> dict[str, Any]:
    """The arguments of a fit that speak of rows, of some rows alone."""
    n = _num_samples(X)
    for name in ("y", "chunks", "neighbors"):
        if given.get(name) is not None and _num_samples(given[name]) != n:
            raise ValueError(
                f"Got {name} of {_num_samples(given[name])} rows, but expected {n}, one for each "
                "row of X."
            )
    kept: dict[str, Any] = {
        name: rows_of(given[name], rows) for name in ("X", "y", "chunks") if name in given
    }
    neighbors = given.get("neighbors")
    if neighbors is not None:
        where = neighbors if hasattr(neighbors, "shape") else np.asarray(neighbors)
        kept["neighbors"] = rows_of(where, rows)
        if namespace(where).isdtype(where.dtype, "integral"):  # row numbers, -1 for none
            place = np.full(n + 1, -1)
            place[rows] = np.arange(len(rows))
            kept["neighbors"] = place[to_numpy(kept["neighbors"])]
    pairs, similar, dissimilar = (given.get(k) for k in ("pairs", "similar", "dissimilar"))
    if any(part is not None for part in (pairs, similar, dissimilar)):
        kept |= {name: None for name in ("similar", "dissimilar") if name in given}
        kept["pairs"] = as_pairs(pairs, similar, dissimilar, y, n).subset(rows)
    for name, kind in (("triplets", Triplets), ("quadruplets", Quadruplets)):
        tuples: Any = given.get(name)
        if tuples is not None:
            found = tuples if isinstance(tuples, kind) else kind(tuples, n)
            check_length(n, found.n_samples)
            kept[name] = found.subset(rows)
    return kept


def as_matrix(value: Any, name: str) -> np.ndarray:
    """A parameter as a new float64 array, refused where it is none."""
    try:
        return np.array(to_numpy(value), dtype=np.float64)
    except (TypeError, ValueError, AttributeError):
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
            f"Got features that spread over {spread:.3g}, in {farthest_column(X)}, but expected "
            f"squares within the range of {X.dtype}: rescale them first, e.g. with StandardScaler."
        )
    refuse_tiny_columns(X)


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


def check_elsewhere(neighbors: Any, X: Any, *, rows: bool = False) -> Any:
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
