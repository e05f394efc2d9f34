"""Which parts of an object keep it apart from another, or make its prediction."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelmetric.inputs import shown
from kernelmetric.kernels._objects import kernel_of_objects
from kernelmetric.metric import innermost


class PartShares(NamedTuple):
    """What parts of an object do: each of them hidden, one at a time.

    Parameters
    ----------
    parts : list of str
        Names of the parts, in order.
    shares : ndarray of shape (n_parts,)
        What the value loses when the part is hidden; below zero where it gains.
    value : float
        The squared distance, the number, or the probability of the predicted class, of the whole.
    """

    parts: list[str]
    shares: np.ndarray
    value: float

    def ranked(self) -> list[tuple[str, float]]:
        """The parts with their shares, the largest changes first.

        Returns
        -------
        list of tuple
            Name and share.
        """
        order = np.argsort(-np.abs(self.shares), kind="stable")
        return [(self.parts[i], float(self.shares[i])) for i in order]


def part_shares(metric: Any, item: Any, other: Any = None) -> PartShares:
    """Which parts of an object keep it apart from another one, or make its prediction.

    Each part is hidden, one at a time: a letter of a string becomes one that is nowhere else, an
    atom of a molecule one of no element, a node of a graph one of no label; a tenth of a series
    becomes a straight line; a vector of a set is left out. The share of the part is by how much the
    squared distance, or the prediction, is smaller then. Parts act together, so shares do not add
    up to the whole: they say what one change does.

    Parameters
    ----------
    metric : estimator
        A fitted metric or, without ``other``, :class:`MetricClassifier` or
        :class:`MetricRegressor`, whose kernel takes objects.
    item : object
        The object whose parts are hidden.
    other : object, default=None
        The object to which distances are measured. None: predictions are compared.

    Returns
    -------
    PartShares
        Names of the parts, their shares, and the value of the whole.

    Examples
    --------
    >>> from kernelmetric import LDA, Kernelized
    >>> from kernelmetric.inspection import part_shares
    >>> texts = ["red fox", "red dog", "red cat", "big fox", "big dog", "big cat"] * 4
    >>> texts = [f"{text} {i}" for i, text in enumerate(texts)]
    >>> colours = [text[0] for text in texts]
    >>> metric = Kernelized(LDA(1), kernel="ngrams").fit(texts, colours)
    >>> found = part_shares(metric, "red fox", "big fox")
    >>> "".join(sorted(name[0] for name, _ in found.ranked()[:3]))
    'der'
    """
    check_is_fitted(metric)
    predictor = metric if hasattr(metric, "metric_") else None
    kernel = innermost(metric if predictor is None else predictor.metric_).kernel_
    known, names, hidden = kernel_of_objects(kernel), [], []
    for name, variant in () if known is None else known.parts(kernel.points([item])[0]):
        names.append(name)
        hidden.append(variant)
    if not names:
        raise ValueError(
            f"Got {shown(item)} for {kernel!r}, but expected an object that it can hide parts of."
        )
    objects = [item, *hidden]
    if other is not None:
        if predictor is not None:
            raise ValueError("Got other beside a predictor, but expected its metric, metric_.")
        values = np.asarray(metric.pairwise_distances(objects, [other]))[:, 0] ** 2
    elif predictor is None:
        raise ValueError("Got no other object, but a metric measures distances: expected two.")
    elif hasattr(predictor, "classes_"):
        P = predictor.predict_proba(objects)
        values = P[:, np.argmax(P[0])]
    else:
        values = predictor.predict(objects)
    return PartShares(names, values[0] - values[1:], float(values[0]))
