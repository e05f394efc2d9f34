"""Pairs whose answer is known: read, counted, and held out to judge what was learned from them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from kernelmetric._warnings import warn
from kernelmetric.compute.watch import until_limit, warn_of_limit
from kernelmetric.graphs import Pairs
from kernelmetric.graphs._row_tuples import components_of
from kernelmetric.linkage._compared import checked_pairs

_FEWEST_OF_A_KIND = 5  # labelled pairs that are worth a cross-validation
_FOLDS = 5
_LARGEST = 0.5  # of the pairs, those connected by records: more is no fold


def labelled(pairs: Any, same: Any, left: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of labelled pairs, each once, and the share of its answers that say match."""
    if isinstance(pairs, Pairs):
        if right is not None or pairs.n_samples != len(left) or same is not None:
            raise ValueError(
                f"Got {pairs!r} for {len(left)} records, but expected Pairs of the rows of one "
                "table alone; for two tables pass row numbers and same=."
            )
        return pairs.rows, pairs.is_similar.astype(float)
    if pairs is None:
        return np.empty((0, 2), dtype=np.intp), np.empty(0)
    rows = checked_pairs(pairs, len(left), len(left if right is None else right))
    answers = np.asarray([] if same is None else same)
    if answers.shape != (len(rows),) or not np.all(np.isin(answers, (-1, 0, 1))):
        raise ValueError(
            f"Got same={same!r} for {len(rows)} pairs, but expected 1, 0 or -1 for each of them."
        )
    ordered = rows if right is not None else np.sort(rows, axis=1)
    distinct, place = np.unique(ordered, axis=0, return_inverse=True)
    share = np.bincount(place.ravel(), answers > 0) / np.bincount(place.ravel())
    doubted = distinct[(share > 0) & (share < 1)]
    if len(doubted):
        warn(
            f"Got {len(doubted)} pairs both to match and not to, such as {doubted[0].tolist()}: "
            "each counts by the share of its answers. Have a look at them."
        )
    return distinct, share


def groups_of(pairs: np.ndarray, two: bool) -> np.ndarray:
    """Which labelled pairs to hold out together: those that records connect.

    Where nearly all are connected, those of one record of the left table.
    """
    if not len(pairs):
        return np.empty(0, dtype=np.intp)
    rows = pairs + np.array([0, pairs[:, 0].max() + 1 if two else 0])
    groups = components_of(rows, int(rows.max()) + 1)[rows[:, 0]]
    return pairs[:, 0] if np.bincount(groups).max() > _LARGEST * len(pairs) else groups


def cross_fitted(
    learned: Callable, S: np.ndarray, same: np.ndarray, groups: np.ndarray
) -> np.ndarray | None:
    """For each labelled pair a probability that neither it nor its group has taught."""
    if min(same.sum(), (1 - same).sum()) < _FEWEST_OF_A_KIND or len(np.unique(groups)) < _FOLDS:
        return None
    p = np.full(len(same), np.nan)
    for train, test in until_limit(GroupKFold(_FOLDS).split(S, groups=groups), None):
        # All over again: the frequencies and the share of matches have learned from labels too.
        model = learned(S[train], same[train], groups=groups[train])
        p[test] = model.probability(S[test])
    if np.isnan(p).any():
        warn_of_limit("RecordLinker: it has no probabilities of labelled pairs left out")
        return None
    return p
