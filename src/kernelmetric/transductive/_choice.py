"""λ by cross-validation on the labelled points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric.compute import warn

#: Exponents of two, in units of one over the penalty's scale; the first is the default.
GRID = (np.inf, 14, 11, 8, 5)
HEARD = 11  # the same where the cost must be heard: of pairs, which cannot vote; in wide graphs
FEWEST = 10  # labelled points: below, no difference between two choices can be seen


def warn_of_small_lam(lam: Any, least: float) -> None:
    """Warn of a λ with which labels may take the embedding over."""
    if lam < least:
        warn(
            f"Got lam={lam!r}, but only from {least:.4g} on labels cannot take the embedding over: "
            "try a larger lam, or 'auto'.",
            UserWarning,
        )


def choose_lam(
    embed: Callable[[np.ndarray, float], np.ndarray],
    codes: np.ndarray | None,
    scale: float,
    *,
    n_folds: int,
    n_votes: int,
    rng: np.random.RandomState,
) -> tuple[float, dict[float, float]]:
    """The λ under which labels that were hidden are found again, and the shares found by λ."""
    if codes is None:
        return 2.0**HEARD / scale, {}
    candidates = [2.0**exponent / scale for exponent in GRID]
    folds = list(hidden_folds(codes, n_folds, rng)) if np.sum(codes >= 0) >= FEWEST else []
    if not folds:
        return candidates[0], {}

    def found(lam: float, kept: np.ndarray) -> np.ndarray:
        E, hidden = embed(kept, lam), np.flatnonzero((kept < 0) & (codes >= 0))
        return vote(E, kept, E[hidden], n_votes) == codes[hidden]

    hits = np.array([np.concatenate([found(lam, kept) for kept in folds]) for lam in candidates])
    hits = hits.astype(np.float64)
    # Infinity, the first, gives way only to what is better by more than a standard error.
    gain = hits - hits[0]
    error = gain.std(axis=1) / np.sqrt(hits.shape[1])
    clear = np.where(gain.mean(axis=1) > error, gain.mean(axis=1), 0.0)
    scores = dict(zip(candidates, hits.mean(axis=1).tolist(), strict=True))
    return candidates[int(np.argmax(clear))], scores


def hidden_folds(
    codes: np.ndarray, n_folds: int, rng: np.random.RandomState
) -> Iterator[np.ndarray]:
    """Codes with one fold after another hidden (negative), which show two classes at least."""
    labelled = rng.permutation(np.flatnonzero(codes >= 0))
    labelled = labelled[np.argsort(codes[labelled], kind="stable")]
    n_folds = min(n_folds, len(labelled))  # more would hide nothing
    for fold in range(n_folds):
        kept = codes.copy()
        kept[labelled[fold::n_folds]] = -1
        if len(np.unique(kept[kept >= 0])) > 1 and not np.array_equal(kept, codes):
            yield kept


def vote(E: np.ndarray, codes: np.ndarray, points: np.ndarray, n_votes: int) -> np.ndarray:
    """Class codes of points by their ``n_votes`` nearest labelled ones, or all where fewer."""
    labelled = codes >= 0
    nearest = KNeighborsClassifier(min(n_votes, int(labelled.sum())))
    return nearest.fit(E[labelled], codes[labelled]).predict(points)


def label_mass(E: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Share of each eigenvector's squared length on labelled points; warns where it is large."""
    on_labels, total = (
        np.einsum("ij,ij->j", part, part, dtype=np.float64) for part in (E[labelled], E)
    )
    mass = np.full(len(total), labelled.mean())  # of a column of zeros
    np.divide(on_labels, total, out=mass, where=total > 0)
    captured = int(np.sum(mass > (1.0 + labelled.mean()) / 2))
    if 2 * captured > len(mass) and not labelled.all():  # there are others
        warn(
            f"{captured} of {len(mass)} eigenvectors live on the {int(labelled.sum())} labelled "
            "points and say little of the others: try a larger lam, or cost='robust'.",
            UserWarning,
        )
    return mass
