"""What a ``fit`` got: Pairs, lists of row numbers, labels, or tuples as arrays of points."""

from typing import Any

import numpy as np

from kernelmetric.compute import to_numpy
from kernelmetric.graphs._pairs import Pairs
from kernelmetric.graphs._row_tuples import check_length
from kernelmetric.graphs._tuples import IndexTuples, Quadruplets, Triplets


def are_tuples(X: Any) -> bool:
    """Whether X is an array of tuples of points, or lists of them: three-dimensional."""
    if not isinstance(X, list | tuple):
        return getattr(X, "ndim", 2) == 3
    for _ in range(2):
        if not isinstance(X, list | tuple) or not X:
            return False
        X = X[0]
    return getattr(X, "ndim", 1 if isinstance(X, list | tuple) else 0) == 1


def points_of_tuples(T: Any) -> tuple[np.ndarray, np.ndarray]:
    """The different points X in an array of tuples T, and rows with ``X[rows]`` equal to T."""
    T = to_numpy(T) if hasattr(T, "dtype") else np.asarray(T)
    X, rows = np.unique(T.reshape(-1, T.shape[2]), axis=0, return_inverse=True)
    return X, rows.reshape(T.shape[:2])


def signed_pairs(rows: np.ndarray, y: Any, n_samples: int) -> Pairs:
    """Pairs from row numbers and signs (1 similar, -1 not); warns of contradictions, left out."""
    rows = np.asarray(rows)
    signs = np.asarray([] if y is None else y)
    good = rows.ndim == 2 and rows.shape[1] == 2 and signs.shape == (len(rows),)
    if not good or not np.all(np.isin(signs, (-1, 1))):
        values = np.unique(signs)[:5].tolist() if signs.dtype.kind in "iufb" else signs.dtype
        raise ValueError(
            f"Got tuples of shape {rows.shape} with y of shape {signs.shape} and values {values}, "
            "but expected pairs of points, and y with 1 for each similar and -1 for each "
            "dissimilar one."
        )
    return Pairs(rows[signs == 1], rows[signs == -1], n_samples, faults="drop")


def ordered_tuples(rows: np.ndarray, n_samples: int) -> IndexTuples:
    """Triplets or quadruplets from row numbers; contradictions are left out with a warning."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise ValueError(
            f"Got tuples of shape {rows.shape}, but expected triplets or quadruplets: three or "
            "four points each."
        )
    return (Triplets if rows.shape[1] == 3 else Quadruplets)(rows, n_samples, faults="drop")


def as_tuples(name: str, given: Any, n_samples: int) -> IndexTuples:
    """Triplets or quadruplets of so many points, from row numbers or as they are."""
    kind: Any = {"triplets": Triplets, "quadruplets": Quadruplets}[name]
    found = given if isinstance(given, kind) else kind(given, n_samples)
    check_length(n_samples, found.n_samples)
    return found


def as_pairs(pairs: Any, similar: Any, dissimilar: Any, y: Any, n_samples: int) -> Pairs:
    """The pairs that a ``fit`` got, in whichever way they were passed.

    ``Pairs`` know what they number: y may stand beside them. Beside row numbers y is refused: a
    cross-validation, which passes y, would fit on a part of X, and they number the whole.
    """
    listed = similar is not None or dissimilar is not None
    if pairs is not None:
        if listed:
            raise ValueError("Got pairs beside similar or dissimilar, but expected one of the two.")
        if not isinstance(pairs, Pairs):
            raise ValueError(
                f"Got pairs of type {type(pairs).__name__}, but expected Pairs(similar, "
                "dissimilar, n_samples=len(X))."
            )
        check_length(n_samples, pairs.n_samples)
        return pairs
    if listed:
        if y is not None:
            raise ValueError(
                "Got y beside similar or dissimilar row numbers, but expected one of the two: "
                "where a search slices X and y, row numbers would count other points. Pass "
                "pairs=Pairs(similar, dissimilar, n_samples=len(X)), and see cross_validate_pairs."
            )
        return Pairs(similar, dissimilar, n_samples)
    if y is None:
        raise ValueError(
            "Got neither y nor pairs, but expected class labels, similar and dissimilar row "
            "numbers, or Pairs: the target y is None."
        )
    labelled = Pairs.from_labels(y)
    check_length(n_samples, labelled.n_samples)
    return labelled
