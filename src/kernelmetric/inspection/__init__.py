"""Why a metric says what it says: the features that shape it, and those that part two rows.

::

    row ──encoders──▶ features ──map of the metric──▶ learned coordinates
                  _columns.py           _maps.py

    _features.py    feature_importance: how much each feature shapes the metric
    _pairs.py       explain_pair: the squared distance of two rows, split over the features
    _parts.py       part_shares: letters, atoms or windows that keep an object apart from another
    _columns.py     from features back to the columns of the user's table, a category as one
    _maps.py        the map of a fitted metric, and derivatives: by formula, or by differences
"""

from kernelmetric.inspection._columns import feature_columns
from kernelmetric.inspection._features import FeatureImportance, feature_importance
from kernelmetric.inspection._pairs import PairExplanation, explain_pair
from kernelmetric.inspection._parts import PartShares, part_shares

__all__ = [
    "FeatureImportance",
    "PairExplanation",
    "PartShares",
    "explain_pair",
    "feature_columns",
    "feature_importance",
    "part_shares",
]
