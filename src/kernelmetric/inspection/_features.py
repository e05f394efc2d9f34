"""How much each feature shapes a metric."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.inputs._parameters import COUNT
from kernelmetric.inspection._columns import Reading, Shares, read
from kernelmetric.inspection._maps import LinearMap, map_of
from kernelmetric.metric import refuse_signed


@dataclass(frozen=True)
class FeatureImportance(Shares):
    """How much each feature shapes a metric, as shares of the whole.

    Parameters
    ----------
    names : tuple of str
        The features, or the columns of the table.
    shares : ndarray of shape (n_names,)
        Not negative; they add up to one.
    how : str
        What the shares are a mean of.

    See Also
    --------
    kernelmetric.inspection.feature_importance : Computes it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.inspection import FeatureImportance
    >>> FeatureImportance(("age", "income"), np.array([0.25, 0.75]), "by hand").ranked()[0][0]
    'income'
    """

    how: str


def feature_importance(
    metric: Any, X: Any, *, max_samples: int = 500, random_state: Any = 0
) -> FeatureImportance:
    r"""Say which features shape a metric.

    .. math:: I_g \propto \tfrac 12\, \mathbb E\, \|f(x') - f(x)\|^2

    where f are the learned coordinates and :math:`x'` is a row x with column g of another row: the
    total Sobol index [1]_ of the column. For a linear metric and a column of one feature it is
    :math:`M_{gg} \operatorname{var}(x_g)`.

    Parameters
    ----------
    metric : fitted metric, pipeline or search
        A linear learner, :class:`Kernelized`, or anything that ends in one. After encoders, the
        shares are those of the columns before them, a category counting as one.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows that the metric is used on, such as the training rows.
    max_samples : int, default=500
        The mean is over so many random pairs of rows; for a linear metric over all.
    random_state : int, RandomState or None, default=0
        For the draw.

    Returns
    -------
    FeatureImportance
        Shares by name.

    See Also
    --------
    kernelmetric.inspection.explain_pair : For two rows.
    kernelmetric.inspection.FeatureImportance : What it returns.

    References
    ----------
    .. [1] M. Jansen. "Analysis of variance designs for model output". Computer Physics
       Communications, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import NCA
    >>> from kernelmetric.inspection import feature_importance
    >>> X = np.random.RandomState(0).randn(60, 3)
    >>> metric = NCA(random_state=0).fit(X, X[:, 1] > 0)
    >>> feature_importance(metric, X).ranked()[0][0]
    'x1'
    """
    COUNT.require("max_samples", max_samples)
    return importance_by(read(metric), X, int(max_samples), random_state)


def importance_by(
    reading: Reading, X: Any, max_samples: int = 500, random_state: Any = 0
) -> FeatureImportance:
    """Shares of the columns that a reading names."""
    refuse_signed(reading.metric)
    X = reading.features(X)
    found = map_of(reading.metric)
    members = [np.flatnonzero(reading.groups == g) for g in range(len(reading.names))]
    if isinstance(found, LinearMap):
        centred = (X - X.mean(axis=0)) / np.sqrt(len(X))
        moves = [float(np.sum((centred[:, g] @ found.L[:, g].T) ** 2)) for g in members]
        how = found.how
    else:
        i, j = check_random_state(random_state).randint(len(X), size=(2, max_samples))
        i, j = i[i != j], j[i != j]
        start = found.values(X[i])
        moves = [_moved(found, X[i], X[j], some, start) for some in members]
        how = f"{len(i)} pairs of rows"
    values = np.array(moves)
    total = values.sum()
    if not total > 0 or not np.isfinite(total):
        raise ValueError(
            f"Got {len(X)} rows between which the metric sees no difference, but expected rows "
            "that differ: try the training rows."
        )
    return FeatureImportance(reading.names, values / total, how)


def _moved(found: Any, X: np.ndarray, others: np.ndarray, some: np.ndarray, start: Any) -> float:
    """Mean squared step of rows that take some features of other rows."""
    changed = X.copy()
    changed[:, some] = others[:, some]
    rows = np.flatnonzero((changed != X).any(axis=1))
    if not len(rows):
        return 0.0
    return float(np.sum((found.values(changed[rows]) - start[rows]) ** 2)) / (2 * len(X))
