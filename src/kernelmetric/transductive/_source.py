"""Where the cost comes from: labels of which some are missing, pairs, or weights."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from kernelmetric.graphs import as_pairs, check_graph, label_graphs, pair_graphs


class Source(NamedTuple):
    """What is known of the points.

    Parameters
    ----------
    classes : ndarray or None
        The classes, where there are labels.
    codes : ndarray of shape (n,) or None
        Their numbers, negative where unknown.
    given : tuple of two sparse arrays of shape (n, n) or None
        Without labels: weights of points that should be near, and of those that should be far.
    """

    classes: np.ndarray | None
    codes: np.ndarray | None
    given: tuple[Any, Any] | None = None

    def graphs(self, points: np.ndarray, n_neighbors: int) -> tuple[Any, Any]:
        """The cost graph in its two parts.

        Parameters
        ----------
        points : ndarray of shape (n, d)
            Where neighbours of labelled points are sought.
        n_neighbors : int
            How many.

        Returns
        -------
        similar, dissimilar : sparse arrays of shape (n, n)
            Symmetric, non-negative.
        """
        if self.given is not None or self.codes is None:
            return self.given  # type: ignore[return-value]
        return label_graphs(points, self.codes, n_neighbors)


def read_source(
    y: Any, n_samples: int, similar: Any, dissimilar: Any, pairs: Any, cost_graph: Any
) -> Source:
    """The one source of the cost that a ``fit`` got.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or None
        Labels, -1 where unknown.
    n_samples : int
        Number of points.
    similar, dissimilar : array-like of shape (n_pairs, 2) or None
        Row numbers.
    pairs : Pairs or None
        The same as an object.
    cost_graph : array of shape (n_samples, n_samples) or None
        Symmetric weights of either sign.

    Returns
    -------
    Source
        Labels, or two graphs.
    """
    paired = similar is not None or dissimilar is not None or pairs is not None
    if [y is not None, paired, cost_graph is not None].count(True) > 1:
        raise ValueError(
            "Got more than one of y, pairs and cost_graph, but expected one source of the cost."
        )
    if cost_graph is not None:
        C = sparse.csr_array(check_graph(cost_graph, n_samples, "cost_graph", negative=True))
        return Source(None, None, (C.maximum(0.0), (-C).maximum(0.0)))
    if paired:
        return Source(
            None, None, pair_graphs(as_pairs(pairs, similar, dissimilar, None, n_samples))
        )
    return Source(*check_partial_labels(y, n_samples))


def check_partial_labels(y: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and codes of labels of which some are -1, which means unknown.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    n_samples : int
        Number of points.

    Returns
    -------
    classes : ndarray
        The labels that occur, -1 aside.
    codes : ndarray of shape (n_samples,)
        Their numbers; -1 where unknown.
    """
    if y is None:
        raise ValueError(
            "TransductiveDistance requires y to be passed, but the target y is None: expected "
            "class labels with -1 where unknown, or similar and dissimilar pairs."
        )
    y = column_or_1d(y, warn=True)
    check_consistent_length(np.empty((n_samples, 1)), y)
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity, but expected -1 where unknown.")
    known = np.ones(n_samples, dtype=bool) if y.dtype.kind in "US" else np.asarray(y != -1)
    if not known.any():
        raise ValueError(
            "Got no label at all (y is -1 everywhere), but expected some points of two classes. "
            "For the embedding of the geometry alone, pass a cost_graph of zeros."
        )
    check_classification_targets(y[known])
    classes, found = np.unique(y[known], return_inverse=True)
    if len(classes) < 2:
        hint = " (if -1 is the other one: it means unknown, recode it)" if not known.all() else ""
        raise ValueError(
            f"Got 1 class ({classes[0]} for all labelled points), but expected at least two"
            f"{hint}: a metric is learned from what tells classes apart."
        )
    codes = np.full(n_samples, -1, dtype=np.intp)
    codes[known] = found
    single = classes[np.bincount(found) == 1]
    if len(single):
        warnings.warn(
            f"Got a single label of {len(single)} class(es), such as {single[0]}: such a point "
            "is only pushed away from others, with nothing to be drawn to.",
            UserWarning,
            stacklevel=4,
        )
    return classes, codes
