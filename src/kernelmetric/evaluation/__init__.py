"""How good a metric is: for verification, for retrieval, for clustering; and whether it is valid.

::

    _verification.py   PairVerifier: the same or not? A threshold on any metric, probabilities, AUC
    _thresholds.py     threshold_for: a wanted precision, recall or cost, with intervals
    _to_label.py       pairs_to_label: pairs in doubt, unlike each other, to ask somebody about
    _pair_cv.py        cross_validate_pairs: folds of points or of pairs, without wrong row numbers;
                       compare_with_plain: does a learner find more than plain points?
    _baselines.py      alternatives to a learned metric, and trials on the same splits, measured
    _class_scores.py   balanced accuracy, ranking, log-loss and confusion, where classes are uneven
    _retrieval.py      retrieval_scores: queries and documents, with intervals; before and after
    _scores.py         recall_at_k, map_at_r; pair_counting_accuracy, cluster_scores
    _kernelizable.py   check_kernelizable: does an estimator meet the conditions of the KPCA trick?
    _outcomes.py       what an estimator says of points, and by how much two answers differ
    _compare_tricks.py compare_tricks: the KPCA trick beside the kernel trick

Whoever has labels and a classifier needs none of it: scikit-learn's scores do.
"""

from kernelmetric.evaluation._baselines import (
    Measured,
    Trial,
    baselines,
    holdout,
    measured,
    run_trials,
)
from kernelmetric.evaluation._class_scores import ClassScores, class_scores, is_uneven
from kernelmetric.evaluation._compare_tricks import TrickComparison, compare_tricks
from kernelmetric.evaluation._kernelizable import (
    Condition,
    KernelizableReport,
    assert_kernelizable,
    check_kernelizable,
)
from kernelmetric.evaluation._pair_cv import compare_with_plain, cross_validate_pairs
from kernelmetric.evaluation._retrieval import Comparison, RetrievalScores, retrieval_scores
from kernelmetric.evaluation._scores import (
    ClusterScores,
    cluster_scores,
    map_at_r,
    pair_counting_accuracy,
    recall_at_k,
)
from kernelmetric.evaluation._thresholds import Estimate, Threshold, threshold_for
from kernelmetric.evaluation._to_label import pairs_to_label
from kernelmetric.evaluation._verification import PairVerifier

__all__ = [
    "ClassScores",
    "ClusterScores",
    "Comparison",
    "Condition",
    "Estimate",
    "KernelizableReport",
    "Measured",
    "PairVerifier",
    "RetrievalScores",
    "Threshold",
    "Trial",
    "TrickComparison",
    "assert_kernelizable",
    "baselines",
    "check_kernelizable",
    "class_scores",
    "cluster_scores",
    "compare_tricks",
    "compare_with_plain",
    "cross_validate_pairs",
    "holdout",
    "is_uneven",
    "map_at_r",
    "measured",
    "pair_counting_accuracy",
    "pairs_to_label",
    "recall_at_k",
    "retrieval_scores",
    "run_trials",
    "threshold_for",
]
