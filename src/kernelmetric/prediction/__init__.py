"""Predictions in a learned metric: probabilities, intervals, novelty, and the reasons why.

A learned metric puts every training point right among its own class. So all that is chosen here is
chosen on points that a metric has not seen::

    folds ──metric without the fold──▶ coordinates of points held out ──▶ scores ──▶ their weights
    all points ──metric──▶ coordinates ──▶ the same scores, the same weights ──▶ prediction

    _classifier.py   MetricClassifier: probabilities, and classes by what wrong answers cost
    _regressor.py    MetricRegressor: numbers with intervals
    _base.py         what the two share: the fit, neighbours, novelty
    _held_out.py     what every choice says of the points held out
    _cross_fit.py    metrics that have not seen the points held out
    _neighbors.py    neighbours among learned coordinates, exact or by faiss; novelty
    _features.py     a line and a forest on the features themselves
    _scores.py       ridge regression on learned coordinates; how much each score counts
"""

from kernelmetric.prediction._classifier import MetricClassifier
from kernelmetric.prediction._regressor import MetricRegressor

__all__ = ["MetricClassifier", "MetricRegressor"]
