"""A threshold for a wanted precision or recall, with intervals for shared records."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_curve

from kernelmetric.evaluation._verification import halfway
from kernelmetric.inputs._parameters import SHARE, Numbers

_MOST_CUTS = 200  # thresholds that are tried for the ends of an interval


class Estimate(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Threshold:
    """A threshold, how sure it is, and what it does.

    Parameters
    ----------
    threshold : Estimate
        Pairs with at least this score are accepted. The interval holds the threshold that all
        pairs of the population would give; its ends may be infinite.
    precision, recall : Estimate
        At the threshold, counted on the given pairs, which chose it.
    match_share : float
        The share of matches for which precision holds.
    """

    threshold: Estimate
    precision: Estimate
    recall: Estimate
    match_share: float

    def __str__(self) -> str:
        return (
            f"threshold {self.threshold}, precision {self.precision}, recall {self.recall}, "
            f"where {self.match_share:.2g} of the pairs match"
        )


def threshold_for(
    scores: Any,
    same: Any,
    pairs: Any,
    *,
    precision: float | None = None,
    recall: float | None = None,
    match_share: float | None = None,
    two_tables: bool = False,
    confidence: float = 0.95,
) -> Threshold:
    r"""The threshold on scores for a wanted precision or recall, and its interval.

    Two pairs that share a record are not independent. So n pairs say no more than a smaller number
    of independent ones [1]_, and Wilson's interval is that of the smaller number,

    .. math:: \frac{n}{\max(1, v)}, \qquad
              v = \frac{\sum_r \bigl(\sum_{p \ni r} x_p\bigr)^2 - \sum_p x_p^2}{\sum_p x_p^2},

    with x_p what pair p adds to the estimate, and sums over records r and pairs p. A threshold
    looks too good on the pairs that chose it. So precision counts one false match more than was
    seen, and recall one missed match more [2]_.

    Scores of cross-validation come from models that learned from fewer labels than the one in use,
    which is often better. Wilson's interval leans towards one half, and missed that. So it is made
    to reach half its width to either side of the estimate at least.

    Parameters
    ----------
    scores : array-like of shape (n_pairs,)
        Scores of labelled pairs, large for matches: probabilities, or ``-distance``. The model
        that gave the scores must not have learned from these pairs.
    same : array-like of shape (n_pairs,), dtype bool
        Which pairs match.
    pairs : array-like of shape (n_pairs, 2)
        The two records of each pair, by number: pairs that share one are not independent.
    precision : float, default=None
        Wanted share of matches among the accepted pairs. If there are too few pairs for it, a
        warning says so, and no pair known to differ is accepted.
    recall : float, default=None
        Wanted share of the matches that are accepted. If there are too few pairs for it, all are.
        Of precision and recall exactly one is given.
    match_share : float, default=None
        The part of all candidates that match; None takes that of the labelled pairs.
    two_tables : bool, default=False
        Whether the two columns of ``pairs`` number records of different tables.
    confidence : float, default=0.95
        How often intervals hold the truth.

    Returns
    -------
    Threshold
        With intervals for the threshold, for precision and for recall.

    References
    ----------
    .. [1] Aronow, Samii and Assenova, "Cluster-robust variance estimation for dyadic data",
       Political Analysis 2015.
    .. [2] Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal risk control", ICLR 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.evaluation import threshold_for
    >>> rng = np.random.RandomState(0)
    >>> same = rng.uniform(size=2000) < 0.2
    >>> scores = same + 0.4 * rng.standard_normal(2000)
    >>> found = threshold_for(scores, same, rng.randint(1500, size=(2000, 2)), precision=0.95)
    >>> found.threshold.low < found.threshold.value < found.threshold.high
    True
    >>> found.recall.value > 0.5
    True
    """
    sample = _sample(scores, same, pairs, two_tables, match_share)
    Numbers(low=0.5, high=1, below=True).require("confidence", confidence)
    z = float(norm.ppf(0.5 + confidence / 2))
    wanted = {"precision": precision, "recall": recall}
    given = {name: value for name, value in wanted.items() if value is not None}
    if len(given) != 1:
        raise ValueError(
            f"Got {', '.join(given) or 'nothing'} wanted, but expected one of {list(wanted)}."
        )
    ((name, value),) = given.items()
    SHARE.require(name, value)
    # Scores from high to low, and the parts of same and of different pairs from there on.
    curve = roc_curve(sample.same, sample.scores, drop_intermediate=False)
    fpr, tpr, cuts = (each[1:] for each in curve)  # without the cut that accepts none
    if name == "precision":
        at, last = _precision_at, _cut_for_precision(sample, value, tpr, fpr)
    else:
        at, last = _recall_at, _cut_for_recall(sample, value, tpr)
    best = -halfway(-cuts, last + 1)

    def holds(threshold: float) -> bool:
        _, least, most = at(sample, threshold, z)
        return least <= value <= most

    low, high = _range_of(sample.scores, best, holds)
    right, found = (_both_ways(part(sample, best, z)) for part in (_precision_at, _recall_at))
    return Threshold(Estimate(best, low, high), right, found, sample.share)


class _Sample(NamedTuple):
    """Labelled pairs: scores, which match, their two records as codes, the share of matches."""

    scores: np.ndarray
    same: np.ndarray
    records: np.ndarray
    share: float
    share_given: bool


def _sample(scores: Any, same: Any, pairs: Any, two_tables: bool, share: Any) -> _Sample:
    scores = np.asarray(scores, dtype=np.float64)
    same, pairs = np.asarray(same), np.asarray(pairs)
    if scores.ndim != 1 or same.shape != scores.shape or pairs.shape != (len(scores), 2):
        raise ValueError(
            f"Got scores, same and pairs of shapes {scores.shape}, {same.shape} and {pairs.shape}, "
            "but expected (n_pairs,), (n_pairs,) and (n_pairs, 2)."
        )
    if not np.all(np.isfinite(scores)):
        raise ValueError("Got scores with NaN or infinity, but expected finite ones.")
    if not np.all(np.isin(same, (-1, 0, 1))):
        raise ValueError("Got other answers than 1 for the same and 0 or -1 for different.")
    same = same > 0
    if same.all() or not same.any():
        raise ValueError(
            f"Got {same.sum()} matches of {len(same)} pairs, but expected some of both kinds."
        )
    if share is not None:
        SHARE.require("match_share", share)
    if two_tables:
        left, right = (np.unique(column, return_inverse=True)[1] for column in pairs.T)
        records = np.column_stack([left, right + left.max() + 1])
    else:
        records = np.unique(pairs, return_inverse=True)[1].reshape(-1, 2)
    actual = float(same.mean()) if share is None else float(share)
    return _Sample(scores, same, records, actual, share is not None)


def _cut_for_precision(sample: _Sample, wanted: float, tpr: np.ndarray, fpr: np.ndarray) -> Any:
    true, false = sample.share * tpr, (1 - sample.share) * fpr
    seen = true / (true + false)
    if np.max(seen) < (1 - 1e-12) * wanted:
        raise ValueError(
            f"Got precision={wanted}, but no threshold reaches it: the best is {np.max(seen):.3g}."
        )
    expected = true / (true + false + (1 - sample.share) / np.sum(~sample.same))
    reached = np.flatnonzero(expected >= (1 - 1e-12) * wanted)  # 9 of 10 is 0.9
    if len(reached):
        return reached[-1]
    clean = np.flatnonzero(fpr == 0)
    last = clean[-1] if len(clean) else np.argmax(expected)
    _warn_of_few("precision", wanted, sample, expected[last])
    return last


def _cut_for_recall(sample: _Sample, wanted: float, tpr: np.ndarray) -> Any:
    n = np.sum(sample.same)
    expected = tpr * n / (n + 1)
    reached = np.flatnonzero(expected >= (1 - 1e-12) * min(wanted, expected[-1]))
    if expected[-1] < (1 - 1e-12) * wanted:
        _warn_of_few("recall", wanted, sample, expected[-1])
    return reached[0]


def _warn_of_few(name: str, wanted: float, sample: _Sample, expected: float) -> None:
    matches = int(np.sum(sample.same))
    warnings.warn(
        f"Got {name}={wanted}, but {matches} matches and {len(sample.same) - matches} others are "
        f"too few for it: expect {expected:.3g} of new ones, or try more labelled pairs.",
        stacklevel=4,
    )


def _recall_at(sample: _Sample, threshold: float, z: float) -> Estimate:
    return _proportion(sample.scores >= threshold, sample.same, sample.records, z)


def _precision_at(sample: _Sample, threshold: float, z: float) -> Estimate:
    accepted = sample.scores >= threshold
    if not sample.share_given:
        return _proportion(sample.same, accepted, sample.records, z)
    # The odds of a match among the accepted are share / (1 - share) · T / F. The interval of
    # log T - log F is made of the two intervals (the MOVER of Zou and Donner, 2008).
    T = _proportion(accepted, sample.same, sample.records, z)
    F = _proportion(accepted, ~sample.same, sample.records, z)
    odds = sample.share / (1 - sample.share)
    if T.value == 0 or F.value == 0:
        ends = [(T.value, F.value), (T.low, F.high), (T.high, F.low)]
        return Estimate(*(odds * t / (odds * t + f) if t + f else 0.0 for t, f in ends))
    ratio = np.log(T.value) - np.log(F.value)
    with np.errstate(divide="ignore"):
        down = np.hypot(np.log(T.value / T.low), np.log(F.high / F.value))
        up = np.hypot(np.log(T.high / T.value), np.log(F.value / F.low))
    values = np.log(odds) + ratio + np.array([0.0, -down, up])
    return Estimate(*(1 / (1 + np.exp(-values))).tolist())


def _both_ways(found: Estimate) -> Estimate:
    """The interval, as far to either side of the estimate as half its width at least.

    Wilson's leans towards one half. Cross-fitted scores come from models that saw fewer labels than
    the model in use, which is better than they are more often than not.
    """
    half = (found.high - found.low) / 2
    low, high = max(0.0, found.value - half), min(1.0, found.value + half)
    return Estimate(found.value, min(found.low, low), max(found.high, high))


def _proportion(holds: np.ndarray, among: np.ndarray, records: np.ndarray, z: float) -> Estimate:
    """The part of some pairs of which something holds, with Wilson's interval."""
    n = int(among.sum())
    if n == 0:
        return Estimate(0.0, 0.0, 1.0)
    hits = int(np.sum(holds & among))
    # A little off the estimate: where all pairs agree, those of one record are still one witness.
    x = holds[among] - (hits + 1) / (n + 2)
    # So many independent pairs vary as much: Σ_r (Σ_{p of r} x_p)² - Σ_p x_p², beside Σ_p x_p².
    sums = np.bincount(records[among].ravel(), weights=np.repeat(x, 2))
    n /= max(1.0, float(sums @ sums - x @ x) / (x @ x))
    return wilson(hits / int(among.sum()), n, z)


def wilson(value: float, n: float, z: float) -> Estimate:
    """A share among so many, with Wilson's interval."""
    middle = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(value * (1 - value) / n + z**2 / (4 * n**2))
    return Estimate(value, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def _range_of(
    scores: np.ndarray, best: float, holds: Callable[[float], bool]
) -> tuple[float, float]:
    """The lowest and the highest threshold that may be the true one, each a step further out."""
    cuts = np.unique(scores)
    if len(cuts) > _MOST_CUTS:
        cuts = np.unique(np.quantile(scores, np.linspace(0, 1, _MOST_CUTS), method="nearest"))
    possible = np.flatnonzero([holds(float(cut)) for cut in cuts])
    if not len(possible):  # between two cuts
        possible = np.array([min(int(np.searchsorted(cuts, best)), len(cuts) - 1)])
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return min(best, float(ends[possible[0]])), max(best, float(ends[possible[-1] + 2]))
