"""From probabilities to classes: what wrong answers cost decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def costs_of(decision: Any, classes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What it costs to take a class (row) for another (column).

    >>> import numpy as np
    >>> from kernelmetric.prediction._decision import costs_of
    >>> costs_of({"ill": 5}, np.array(["ill", "well"]), np.array([0.1, 0.9]))
    array([[0., 5.],
           [1., 0.]])
    """
    wrong = 1.0 - np.eye(len(classes))
    if isinstance(decision, str) and decision == "accuracy":
        return wrong
    if isinstance(decision, str) and decision == "balanced":
        return wrong / np.where(shares > 0, len(classes) * shares, np.inf)[:, None]
    matrix = _matrix(decision, classes.tolist()) if isinstance(decision, Mapping) else decision
    try:
        costs = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):  # texts, or rows of several lengths
        costs = np.empty(0)
    fits = costs.shape == wrong.shape and np.all(np.isfinite(costs))
    if not fits or np.any(costs < np.diag(costs)[:, None]):
        raise ValueError(
            f"Got decision={decision!r}, but expected 'accuracy', 'balanced', costs by "
            "names such as {'ill': 5}, or a matrix of finite costs: a row for each of the "
            f"{len(classes)} true classes, a column for each predicted one, and no wrong answer "
            "cheaper than the right one."
        )
    return costs


def _matrix(decision: Mapping, names: list[Any]) -> list[list[Any]]:
    """Costs by the names of classes as rows of a matrix; others cost 1, and right answers 0."""
    rows: Any = (1.0 - np.eye(len(names))).tolist()
    for true, given in decision.items():
        others = [name for name in names if name != true]
        costs = given if isinstance(given, Mapping) else dict.fromkeys(others, given)
        unknown = [name for name in (true, *costs) if name not in names]
        if unknown:
            raise ValueError(f"Got a cost of {unknown[0]!r}, but the classes are {names}.")
        for predicted, cost in costs.items():
            rows[names.index(true)][names.index(predicted)] = cost
    return rows
