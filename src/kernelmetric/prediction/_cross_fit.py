"""Metrics that have not seen the points they are judged by."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.model_selection._split import _CVIterableWrapper
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from kernelmetric.compute import take_rows, to_numpy
from kernelmetric.compute.rates import most_in_time
from kernelmetric.compute.watch import told_once, until_limit
from kernelmetric.inputs import check_weights, rows_of
from kernelmetric.kernelized import Kernelized, KernelizedCV, Recipe
from kernelmetric.kernelized._candidates import checked_folds
from kernelmetric.kernelized._copies import copies_among, numbers_of
from kernelmetric.kernelized._costs import neighbors_seconds
from kernelmetric.metric import Metric
from kernelmetric.prediction._neighbors import MOST, Neighbors, nearest, nearest_others
from kernelmetric.prediction._scores import LinearScores, own_scores
from kernelmetric.solvers import evenly
from kernelmetric.transductive import TransductiveDistance

ENOUGH = 1000  # points held out: a handful of numbers is chosen on them
MOST_JUDGES = 3000  # points of one fit that do so, each left out by itself
_FEWEST_JUDGES = 300  # that a time limit leaves
_SPREADS = 1e-150, 1e150  # of coordinates whose squared distances are numbers


@dataclass(frozen=True)
class Fold:
    """Learned coordinates of the points a metric saw, and of some that it did not see."""

    E: np.ndarray
    train: np.ndarray
    E_new: np.ndarray
    test: np.ndarray
    left_out: bool = False  # those not seen are some of the others, each placed without itself
    own: LinearScores | None = None  # what the space itself predicts of classes

    @cached_property
    def found(self) -> Neighbors:
        """Neighbours of the points that the metric did not see, among those that it saw."""
        if self.left_out:
            return nearest_others(self.E, self.test, MOST)
        return nearest(self.E, self.E_new, MOST)


def left_out_fold(E: np.ndarray, random_state: Any, own: LinearScores | None) -> Fold:
    """One fit whose places know nothing of their own labels: each point is judged by the others."""
    n = len(E)
    rows = np.arange(n)
    most = _judges_in_time(min(n, MOST_JUDGES), n)
    if n > most:
        rows = np.sort(check_random_state(random_state).permutation(n)[:most])
    return Fold(E, np.arange(n), E[rows], rows, left_out=True, own=own)


def _judges_in_time(most: int, n: int) -> int:
    """So many points as find their neighbours among n in the time that is left."""
    what = "the judgement of votes"
    return most_in_time(lambda m: 1.5 * neighbors_seconds(m, n), most, _FEWEST_JUDGES, what)


def cross_fitted(
    metric: Any, X: Any, y: np.ndarray, splits: list, sample_weight: Any, *, classes: bool
) -> Iterator[Fold]:
    """Fit clones of a metric without some points, and embed them, for every split."""
    n_classes = int(np.max(y)) + 1 if classes else 0
    for train, test in until_limit(splits, "folds"):
        X_train, X_test = (_part(metric, X, rows, train) for rows in (train, test))
        fresh = clone(metric)
        with warnings.catch_warnings(), told_once(unheard=True):
            warnings.simplefilter("ignore")  # the fit on all points has said it
            weights = None if sample_weight is None else sample_weight[train]
            E = learned_coordinates(fresh, X_train, y[train], weights)
            E_new = embedded(fresh, X_test)
        some = evenly(len(test), _judges_in_time(len(test), len(train)))
        E_new, test = (E_new, test) if len(some) == len(test) else (E_new[some], test[some])
        own = own_scores(fresh, E, y[train], n_classes, weights)
        yield Fold(E, train, E_new, test, own=own)


def _part(metric: Any, X: Any, rows: np.ndarray, seen: np.ndarray) -> Any:
    """Rows of X; of a Gram matrix, with the columns of the points that a metric sees."""
    if not is_array_api_obj(X):
        return _safe_split(metric, X, None, rows, seen)[0]
    part = take_rows(X, rows)
    return take_rows(part.T, seen).T if get_tags(metric).input_tags.pairwise else part


def learned_coordinates(
    metric: Any, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Fit a metric; the learned coordinates of its points in float64."""
    weights = {} if sample_weight is None else {_name_of_weights(metric): sample_weight}
    with config_context(transform_output="default"):
        if hasattr(metric, "fit_transform"):
            E = _plain(metric.fit_transform(X, y, **weights))
        else:  # as of one that is frozen
            E = _plain(metric.fit(X, y, **weights).transform(X))
    spread = float(np.max(np.ptp(E, axis=0)))
    if spread and not _SPREADS[0] < spread < _SPREADS[1]:
        raise ValueError(
            f"Got learned coordinates that spread over {spread:.3g}, but expected squares within "
            "the range of float64: rescale the features first, e.g. with StandardScaler."
        )
    return E


def leaves_out(metric: Any) -> bool:
    """Whether the points of a fitted metric are where they would be had they been left out."""
    if not isinstance(metric, Kernelized) or not isinstance(metric.learner_, Metric):
        return False
    return bool(getattr(metric.space_, "knows_labels", False))


def without_copies(predictor: Any, X: Any, y: np.ndarray, sample_weight: Any) -> Any:
    """Weights with which the first of all copies counts for them, and the others not at all."""
    Z = None if get_tags(predictor).input_tags.pairwise else numbers_of(X)
    if Z is None:
        return sample_weight
    given, metric = sample_weight is not None, predictor._given_metric()
    w = check_weights(sample_weight if given else 1.0, len(y))
    kept = np.flatnonzero(w)
    how = {"takes": _takes_weights(metric), "given": given}
    copies = copies_among(rows_of(Z, kept), y[kept], metric, **how)
    if copies is None:
        return sample_weight
    counted = np.zeros(len(y))
    counted[kept[copies.rows]] = copies.sums(w[kept])
    return counted


def _takes_weights(metric: Any) -> bool:
    """Whether the fit of a metric takes weights of its points."""
    try:
        return bool(_name_of_weights(metric))
    except ValueError:
        return False


def _name_of_weights(metric: Any) -> str:
    """What the fit of a metric calls the weights of its points, refused where it takes none."""
    if isinstance(metric, Pipeline):
        last, inner = metric.steps[-1]
        name = _name_of_weights(inner)
        return name if get_config()["enable_metadata_routing"] else f"{last}__{name}"
    inner = metric.learner if isinstance(metric, Kernelized | KernelizedCV) else metric
    if not has_fit_parameter(inner, "sample_weight"):
        raise ValueError(
            f"Got sample_weight, but {type(inner).__name__}.fit takes none: expected a metric that "
            "does, such as Kernelized(LMNN())."
        )
    return "sample_weight"


def embedded(metric: Any, X: Any) -> np.ndarray:
    """Learned coordinates in float64."""
    with config_context(transform_output="default"):
        return _plain(metric.transform(X))


def _plain(E: Any) -> np.ndarray:
    E = E.toarray() if hasattr(E, "toarray") else to_numpy(E)
    try:
        E = np.ascontiguousarray(E, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # an int may be too large for a float
        raise ValueError(
            "Got learned coordinates that are no numbers, but expected a row of numbers for every "
            "point: try Kernelized(LMNN()), which takes names and dates."
        ) from None
    if E.ndim != 2 or not E.shape[1] or not np.all(np.isfinite(E)):
        raise ValueError(
            f"Got learned coordinates of shape {E.shape}, with NaN or infinity or without columns, "
            "but expected a row of finite numbers for every point: try another metric."
        )
    return E


def settled(metric: Any) -> Any:
    """An unfitted clone of a fitted metric with what it chose fixed; behind a pipeline, anew."""
    if hasattr(metric, "best_estimator_"):
        return settled(metric.best_estimator_)
    fresh = clone(metric)
    if isinstance(metric, Kernelized):
        return fresh.set_params(recipe=metric.recipe_)
    if isinstance(metric, TransductiveDistance) and metric.graph_ != "points":
        # with it, points would not stay where they are
        method = vars(metric).get("method_", "eigenvectors")
        return fresh.set_params(method=method, lam=metric.lam_)
    return fresh.set_params(**getattr(metric, "_resolved", dict)())


def unsettled(metric: Any) -> Any:
    """An unfitted clone of a fitted metric that chooses anew, but reads columns as that one did."""
    schema = vars(metric).get("schema_")
    if schema is None or metric.recipe is not None:
        return clone(metric)
    return clone(metric).set_params(recipe=Recipe(None, None, None, schema=schema))


def splits_of(
    cv: Any, X: Any, y: np.ndarray, random_state: Any, *, classes: bool, kept: Any = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and held-out rows, of folds as many as hold 1,000 points out.

    ``kept``: the rows that X and y hold, and of how many. A point that is alone in its class is
    never held out.
    """
    if isinstance(cv, np.ndarray) and cv.ndim == 0:
        raise ValueError(f"Got cv={cv!r}, an array, but expected an integer: try cv={cv.item()!r}.")
    if isinstance(cv, str | bytes):  # they have a method split
        return checked_folds(cv, [], len(y))
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        given = check_cv(cv, y, classifier=classes)
        by_rows = isinstance(given, PredefinedSplit | _CVIterableWrapper)
        listed = given.cv if isinstance(given, _CVIterableWrapper) else list(given.split(X, y))
        if kept is not None and by_rows:
            return _splits_among(checked_folds(cv, listed, kept[1]), kept[0])
        return checked_folds(cv, listed, len(y))
    if cv < 2:
        raise ValueError(
            f"Got cv={cv!r}, but expected at least 2 folds, or a splitter of scikit-learn's: try 5."
        )
    shuffled = check_random_state(random_state).permutation(len(y))
    if classes:
        shuffled = shuffled[np.argsort(y[shuffled], kind="stable")]
        shuffled = shuffled[np.bincount(y)[y[shuffled]] > 1]
    n_folds = min(int(cv), len(shuffled))
    splits, n_held_out = [], 0
    for k in range(n_folds if n_folds > 1 else 0):
        test = np.sort(shuffled[k::n_folds])
        splits.append((np.setdiff1d(np.arange(len(y)), test), test))
        n_held_out += len(test)
        if n_held_out >= ENOUGH:
            break
    return splits


def parts_of(folds: list[Fold]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places of held-out points that choose for a fold, or a fifth of one alone, and its own."""
    sizes = [len(fold.test) for fold in folds]
    own = np.repeat(np.arange(len(sizes)), sizes)
    if len(sizes) == 1:
        own = np.arange(sizes[0]) % 5
    return [(np.flatnonzero(own != part), np.flatnonzero(own == part)) for part in np.unique(own)]


def _splits_among(splits: Any, kept: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits of all rows as splits of the kept rows, counted anew, none with an empty side."""

    def among(rows: np.ndarray) -> np.ndarray:
        place = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
        return place[kept[place] == rows]

    found = [(among(train), among(test)) for train, test in splits]
    return [(train, test) for train, test in found if len(train) and len(test)]
