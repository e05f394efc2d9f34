"""What the tables and plots of this room read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Cell(NamedTuple):
    """One fit: one method on one split of one data set.

    ``accuracy`` is that of the nearest neighbours; ``note`` are warnings; ``megabytes`` is the most
    memory of the process meanwhile, 0 where it was not measured.
    """

    dataset: str
    method: str
    split: int
    accuracy: float
    seconds: float
    note: str = ""
    megabytes: float = 0.0


class Panel(NamedTuple):
    """One picture of an embedding: training points, test points and what neighbours say of them."""

    dataset: str
    method: str
    Z_train: np.ndarray
    y_train: np.ndarray
    Z_test: np.ndarray
    y_test: np.ndarray
    y_pred: np.ndarray

    @property
    def accuracy(self) -> float:
        """Fraction of the test points that are predicted right."""
        return float(np.mean(self.y_pred == self.y_test))


class Summary(NamedTuple):
    """Mean and standard deviation of a method's accuracies over the splits of a data set."""

    mean: float
    std: float
    n_splits: int
