"""What a ``fit`` got: labels, two lists of row numbers, or Pairs."""

from __future__ import annotations

from typing import Any

from kernelmetric.graphs._pair_rows import check_length
from kernelmetric.graphs._pairs import Pairs


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
