"""What the tables and plots of this room read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Cell(NamedTuple):
    """One fit: one method on one split of one data set.

    Parameters
    ----------
    dataset, method : str
        Names, as the table shows them.
    split : int
        Number of the split, from 0.
    accuracy : float
        Fraction of the test points whose nearest training point has their label.
    seconds : float
        Time of fit and transform.
    note : str
        What the method warned about, or nothing.
    megabytes : float
        The most memory of the process meanwhile; 0 where it was not measured.
    """

    dataset: str
    method: str
    split: int
    accuracy: float
    seconds: float
    note: str = ""
    megabytes: float = 0.0


class Panel(NamedTuple):
    """One picture of an embedding: training points, test points and what 1-NN says of them.

    Parameters
    ----------
    dataset, method : str
        Titles of the panel's row and column.
    Z_train, Z_test : ndarray of shape (n, d)
        Embedded points.
    y_train, y_test : ndarray of shape (n,)
        Labels.
    y_pred : ndarray of shape (n,)
        Labels predicted for the test points.
    """

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
    """Mean and spread of a method's accuracies on a data set.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation over the splits.
    n_splits : int
        Number of splits.
    """

    mean: float
    std: float
    n_splits: int
