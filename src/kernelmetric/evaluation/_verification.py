"""Are these two the same? A threshold on a learned distance, and probabilities."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric.compute import to_numpy
from kernelmetric.graphs import Pairs, check_length, check_rows, pair_distances
from kernelmetric.inputs import check_weights
from kernelmetric.inputs._parameters import LARGEST, Numbers, require_word

_UNCALIBRATED = "Got no threshold yet: call calibrate with pairs that are known."
CRITERIA = ("accuracy", "f_beta", "max_tpr", "max_tnr")


@dataclass(eq=False, repr=False)
class PairVerifier(BaseEstimator):
    """Says of two points whether they are the same, by a threshold on a learned distance.

    They are if their distance is at most ``threshold_``, which :meth:`calibrate` finds on known
    pairs. Use pairs that the metric has not learned from, or it comes out too small.

    Parameters
    ----------
    metric : fitted metric
        Any metric of the library; or anything with ``transform``, such as a pipeline. Where
        scikit-learn clones the verifier, pass ``FrozenEstimator(metric)``.
    criterion : {'accuracy', 'f_beta', 'max_tpr', 'max_tnr'}, default='accuracy'
        What the threshold is best for. 'f_beta' gives recall beta times the weight of precision.
        'max_tpr' recognizes as many same pairs as it can while at least ``min_rate`` of the
        different ones are told apart; 'max_tnr' is the other way round.
    beta, min_rate : float, default=1.0 and 0.95
        For 'f_beta'; for 'max_tpr' and 'max_tnr'.
    calibration : {'logistic', 'isotonic'}, default='logistic'
        How probabilities depend on the distance: by Platt's curve, or by any falling steps, which
        need a thousand pairs or more.

    Attributes
    ----------
    threshold_ : float
        The largest distance taken for the same.
    criterion_value_ : float
        What the criterion reached on the calibration pairs; a little more than on new pairs.
    tpr_, tnr_ : float
        The part of same pairs recognized, and of different pairs told apart, there.
    calibrator_ : estimator
        The curve of the probabilities.

    See Also
    --------
    cross_validate_pairs : What to expect on new pairs.
    ITML : A learner from pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from kernelmetric import NCA, PairVerifier, Pairs
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> metric = NCA().fit(X[::3], y[::3])
    >>> known = Pairs.from_labels(y[1::3], per_point=5, random_state=0)
    >>> verifier = PairVerifier(metric).calibrate(known, X[1::3])
    >>> verifier.predict_pairs([[0, 1], [0, 58]], X[2::3])
    array([ True, False])
    """

    metric: Any
    criterion: str = "accuracy"
    _: KW_ONLY
    beta: float = 1.0
    min_rate: float = 0.95
    calibration: str = "logistic"

    def calibrate(
        self, pairs: Any, X: Any = None, y: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Find the threshold and the probabilities, from pairs that are known.

        Parameters
        ----------
        pairs : Pairs, or array-like of shape (n_pairs, 2) or (n_pairs, 2, n_features)
            Pairs of rows of X; or the two points of every pair, without X.
        X : array-like of shape (n_samples, n_features), default=None
            The points that the pairs number.
        y : array-like of shape (n_pairs,), default=None
            For arrays: 1 or True where the pair is the same, 0, -1 or False where it is not.
        sample_weight : array-like of shape (n_pairs,), default=None
            What each pair counts; of Pairs the similar ones come first.

        Returns
        -------
        PairVerifier
            Itself, ready to predict.
        """
        require_word("criterion", self.criterion, CRITERIA)
        require_word("calibration", self.calibration, ("logistic", "isotonic"))
        Numbers(low=1 / LARGEST, high=LARGEST).check(self, "beta")
        Numbers(low=0, high=1).check(self, "min_rate")
        distances, same, w = known_distances(self.metric, pairs, X, y, sample_weight)
        how: Any = {"beta": float(self.beta), "min_rate": self.min_rate, "weights": w}
        threshold, value = best_threshold(distances, same, self.criterion, **how)
        calibrator = _fit_probabilities(distances, same, w, self.calibration)
        accepted = np.average(distances[same] <= threshold, weights=w[same])
        refused = np.average(distances[~same] > threshold, weights=w[~same])
        # All is known: what was refused, or interrupted, has changed nothing.
        self.threshold_, self.criterion_value_ = threshold, value
        self.tpr_, self.tnr_ = float(accepted), float(refused)
        self.calibrator_ = calibrator
        return self

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """:meth:`calibrate` as scikit-learn calls it.

        Parameters
        ----------
        X, y, sample_weight : array-like of shape (n_pairs, 2, n_features), and of (n_pairs,)
            The two points of every pair, and as in :meth:`calibrate`.

        Returns
        -------
        PairVerifier
            Itself, ready to predict.
        """
        return self.calibrate(X, y=y, sample_weight=sample_weight)

    def decision_pairs(self, pairs: Any, X: Any = None) -> np.ndarray:
        """How far each pair is on the same side of the threshold.

        Parameters
        ----------
        pairs, X : Pairs or array-like, and array-like
            As in :meth:`calibrate`; of Pairs the similar ones come first.

        Returns
        -------
        ndarray of shape (n_pairs,)
            ``threshold_ - distance``: not negative where the two are taken for the same.
        """
        check_is_fitted(self, msg=_UNCALIBRATED)
        return self.threshold_ - distances_of(self.metric, pairs, X)

    def predict_pairs(self, pairs: Any, X: Any = None) -> np.ndarray:
        """Whether the two points of each pair are taken for the same.

        Parameters
        ----------
        pairs, X : array-like
            As in :meth:`decision_pairs`.

        Returns
        -------
        ndarray of shape (n_pairs,), dtype bool
            True for the same.
        """
        return self.decision_pairs(pairs, X) >= 0

    def predict_proba_pairs(self, pairs: Any, X: Any = None) -> np.ndarray:
        """Probabilities that the two points of each pair differ, and that they are the same.

        Parameters
        ----------
        pairs, X : array-like
            As in :meth:`decision_pairs`.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Right where the same are as frequent as among the calibration pairs.
        """
        check_is_fitted(self, msg=_UNCALIBRATED)
        distances = distances_of(self.metric, pairs, X)
        if isinstance(self.calibrator_, IsotonicRegression):
            same = self.calibrator_.predict(distances)
        else:
            same = self.calibrator_.predict_proba(distances[:, None])[:, 1]
        return np.column_stack([1 - same, same])

    def score_pairs(
        self, pairs: Any, X: Any = None, y: Any = None, *, sample_weight: Any = None
    ) -> float:
        """Area under the ROC curve: how often a same pair is nearer than a different one.

        Parameters
        ----------
        pairs, X, y, sample_weight : array-like
            As in :meth:`calibrate`.

        Returns
        -------
        float
            Does not depend on the threshold, and needs no calibration.
        """
        distances, same, w = known_distances(self.metric, pairs, X, y, sample_weight)
        return float(roc_auc_score(same, -distances, sample_weight=w))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # its samples are pairs
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags


def best_threshold(
    distances: np.ndarray,
    same: np.ndarray,
    criterion: str = "accuracy",
    *,
    beta: float = 1.0,
    min_rate: float = 0.95,
    weights: np.ndarray | None = None,
) -> tuple[float, float]:
    """The distance up to which pairs are best taken for the same, and the criterion there."""
    lengths, place = np.unique(distances, return_inverse=True)
    w = np.ones(len(same)) if weights is None else weights
    tp, fp = (  # at all cuts, from that which accepts none
        np.append(0, np.cumsum(np.bincount(place[kind], w[kind], len(lengths))))
        for kind in (same, ~same)
    )
    tpr, tnr = tp / tp[-1], (fp[-1] - fp) / fp[-1]
    enough = (1 - 1e-12) * min_rate  # 93 of 100 is 0.93, also where weights are added up
    if criterion == "accuracy":
        value = (tp + fp[-1] - fp) / (tp[-1] + fp[-1])
    elif criterion == "f_beta":
        value = (1 + beta**2) * tp / (beta**2 * tp[-1] + tp + fp)
    elif criterion == "max_tpr":
        value = np.where(tnr >= enough, tpr, -1.0)
    else:
        value = np.where(tpr >= enough, tnr, -1.0)
    best = int(np.argmax(value))  # of equally good ones the strictest
    if criterion == "max_tnr":  # of cuts that let no more through, the one that accepts most
        best = int(np.flatnonzero(value == value[best])[-1])
    return halfway(lengths, best), float(value[best])


def halfway(lengths: np.ndarray, cut: int) -> float:
    """A threshold that accepts the first ``cut`` of the ascending lengths, half-way to the next."""
    if cut == 0:
        return float(np.nextafter(lengths[0], -np.inf))
    if cut == len(lengths):
        return float(lengths[-1])
    low, high = lengths[cut - 1], lengths[cut]
    middle = low + (high - low) / 2
    return float(middle if middle < high else low)  # neighbouring floats have no middle


def distances_of(metric: Any, pairs: Any, X: Any = None) -> np.ndarray:
    """Learned distances of pairs, each point embedded once and blocks of pairs in memory."""
    if isinstance(pairs, Pairs):
        check_length(0 if X is None else _num_samples(X), pairs.n_samples)
        pairs = pairs.rows
    if hasattr(metric, "pair_distance"):
        return _finite(to_numpy(metric.pair_distance(pairs, X)))
    if not hasattr(metric, "transform"):
        raise ValueError(f"Got metric={metric!r}, but expected a fitted metric, with transform.")
    if X is None:
        raise ValueError(
            f"Got pairs of points for {type(metric).__name__}, which has no pair_distance: pass X, "
            "and pairs of its row numbers."
        )
    rows = check_rows(pairs, "given", _num_samples(X))
    Z = metric.transform(X)
    return _finite(pair_distances(Z.to_numpy() if hasattr(Z, "to_numpy") else Z, rows))


def _finite(distances: np.ndarray) -> np.ndarray:
    """The distances; refused where one is NaN, which is on no side of a threshold."""
    if not np.all(np.isfinite(distances)):
        row = int(np.flatnonzero(~np.isfinite(distances))[0])
        raise ValueError(
            f"Got a distance of {distances[row]} for pair {row}, but expected finite ones: look "
            "for NaN or huge values in X, or in what the metric makes of it."
        )
    return distances


def known_distances(
    metric: Any, pairs: Any, X: Any = None, y: Any = None, sample_weight: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances, which pairs are the same, and weights; of the pairs that have any weight."""
    if isinstance(pairs, Pairs):
        if y is not None:
            raise ValueError("Got y beside Pairs, but expected one: Pairs say which are similar.")
        same = pairs.is_similar
    else:
        same = np.asarray(y)
        if y is None or same.ndim != 1 or not np.all(np.isin(same, (-1, 0, 1))):
            raise ValueError(
                f"Got y={y!r}, but expected for every pair 1 where it is the same, 0 or -1 where "
                "not; or Pairs, which know it."
            )
        same = same > 0
    distances = distances_of(metric, pairs, X)
    if len(distances) != len(same):
        raise ValueError(f"Got {len(same)} answers for {len(distances)} pairs: expected one each.")
    w = np.ones(len(same))
    if sample_weight is not None:
        w = check_weights(sample_weight, len(same))
        distances, same, w = distances[w > 0], same[w > 0], w[w > 0]
    if same.all() or not same.any():
        raise ValueError(
            f"Got {np.sum(same)} similar and {np.sum(~same)} dissimilar pairs"
            f"{'' if sample_weight is None else ' with weight'}, but expected some of both."
        )
    return distances, same, w


def _fit_probabilities(
    distances: np.ndarray, same: np.ndarray, w: np.ndarray, calibration: str
) -> Any:
    if calibration == "isotonic":
        curve = IsotonicRegression(y_min=0, y_max=1, increasing=False, out_of_bounds="clip")
        return curve.fit(distances, same.astype(np.float64), sample_weight=w)
    # Platt: the targets are a little less than sure, (n + 1) / (n + 2), so that the optimum is
    # finite; each pair enters as both answers, with these weights.
    target = np.where(same, (w[same].sum() + 1) / (w[same].sum() + 2), 1 / (w[~same].sum() + 2))
    curve = make_pipeline(StandardScaler(), LogisticRegression(C=1e10))
    answers = np.repeat([True, False], len(distances))
    weights = {
        "standardscaler__sample_weight": np.tile(w, 2),
        "logisticregression__sample_weight": np.concatenate([w * target, w * (1 - target)]),
    }
    with config_context(enable_metadata_routing=False):
        return curve.fit(np.tile(distances, 2)[:, None], answers, **weights)
