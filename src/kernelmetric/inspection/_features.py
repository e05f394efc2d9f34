"""How much each feature shapes a metric."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.inspection._columns import read
from kernelmetric.inspection._gradients import Box
from kernelmetric.inspection._maps import map_of
from kernelmetric.metric import refuse_signed


@dataclass(frozen=True)
class FeatureImportance:
    """How much each feature shapes a metric, as shares of the whole.

    Parameters
    ----------
    names : tuple of str
        The features, or the columns of the table.
    shares : ndarray of shape (n_names,)
        Not negative; they add up to one.
    how : str
        How derivatives were taken.
    """

    names: tuple[str, ...]
    shares: np.ndarray
    how: str

    def ranked(self) -> list[tuple[str, float]]:
        """Names and shares, the largest first.

        Returns
        -------
        list of (str, float)
            Descending.
        """
        order = np.argsort(-self.shares, kind="stable")
        return [(self.names[j], float(self.shares[j])) for j in order]


def feature_importance(
    metric: Any, X: Any, *, max_samples: int = 200, random_state: Any = 0
) -> FeatureImportance:
    r"""Say which features shape a metric.

    .. math:: I_g \propto \frac 1m \sum_{i=1}^m \operatorname{tr}\left(J_g(x_i)\, C_g\,
        J_g(x_i)^\top\right)

    where :math:`J_g` are the derivatives of the learned coordinates by the features of column g
    and :math:`C_g` is their covariance. A column of one feature counts by its mean squared
    gradient times its variance; for a linear metric that is :math:`M_{gg} \operatorname{var}(x_g)`.

    Parameters
    ----------
    metric : fitted metric, pipeline or search
        A linear learner, :class:`Kernelized`, or anything that ends in one. After encoders, the
        shares are those of the columns before them, a category counting as one.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows that the metric is used on, such as the training rows.
    max_samples : int, default=200
        Of more rows, gradients are taken at so many, drawn at random; covariances are of all.
    random_state : int, RandomState or None, default=0
        For the draw.

    Returns
    -------
    FeatureImportance
        Shares by name.

    See Also
    --------
    sklearn.inspection.permutation_importance : What a predictor loses without a feature.

    Notes
    -----
    A share says how far a usual change of this feature alone moves a row. Of two features that
    say the same, each may have half. O(m n d q) time for m rows, n anchors and q coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import NCA, feature_importance
    >>> X = np.random.RandomState(0).randn(60, 3)
    >>> metric = NCA(random_state=0).fit(X, X[:, 1] > 0)
    >>> feature_importance(metric, X).ranked()[0][0]
    'x1'
    """
    refuse_signed(metric)
    if not isinstance(max_samples, Integral) or max_samples < 1:
        raise ValueError(f"Got max_samples={max_samples!r}, but expected a positive integer.")
    reading = read(metric)
    X = reading.features(X)
    rows = np.arange(len(X))
    if len(X) > max_samples:
        rows = check_random_state(random_state).choice(len(X), int(max_samples), replace=False)
    found = map_of(reading.metric)
    J = found.jacobians(X[rows], Box(X.min(axis=0), X.max(axis=0)))
    centred = (X - X.mean(axis=0)) / np.sqrt(len(X))
    squares = np.mean(np.sum(J * J, axis=1), axis=0) * np.sum(centred**2, axis=0)
    values = reading.by_column(squares)
    for g in np.flatnonzero(np.bincount(reading.groups) > 1):
        members = reading.groups == g
        root = np.linalg.qr(centred[:, members], mode="r")  # of the covariance
        values[g] = np.mean(np.sum((J[:, :, members] @ root.T) ** 2, axis=(1, 2)))
    total = values.sum()
    if not total > 0 or not np.isfinite(total):
        raise ValueError(
            f"Got {len(X)} rows between which the metric sees no difference, but expected rows "
            "that differ: try the training rows."
        )
    return FeatureImportance(reading.names, values / total, found.how)
