"""What to label next: pairs in doubt, and unlike those that are known."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from kernelmetric.compute import to_numpy
from kernelmetric.inputs._parameters import COUNT, SHARE

_LOOKED_AT = 5_000  # candidates that are compared with the known pairs
_NEAR = 0.25  # of the total variance: as near as that, a pair tells little that is new
_SURE = 1e-9  # what a pair weighs of which nothing is in doubt


def pairs_to_label(
    probability: Any,
    points: Any = None,
    n_pairs: int = 10,
    *,
    known: Any = (),
    threshold: float = 0.5,
    random_state: Any = None,
) -> np.ndarray:
    r"""Choose the pairs whose labels teach most: uncertain ones, unlike each other.

    Pairs are drawn one after the other, with probabilities in proportion to

    .. math:: \bigl(q (1 - q)\bigr)^2 \, \bigl(1 - e^{-d^2 / s}\bigr).

    Here q is the probability of a match, shifted so that the threshold is at one half. The distance
    from the nearest pair that is known or was just chosen is d. A quarter of the variance of all
    pairs is s. Such pairs are not a random sample of the candidates. So fit ``RecordLinker`` with
    ``by_kind=False``, and do not choose a threshold on them alone.

    Parameters
    ----------
    probability : array-like of shape (n_candidates,)
        Of a match, by what was learned so far; one half each where that is nothing.
    points : array-like of shape (n_candidates, n_features), default=None
        What pairs look like, for instance ``abs(X[i] - X[j])``; None leaves d out.
    n_pairs : int, default=10
        How many to choose; where fewer are left, all of these.
    known : array-like of int or bool, default=()
        Places of the candidates that are labelled, or a mask over all candidates.
    threshold : float, default=0.5
        The probability from which a pair is taken for a match.
    random_state : int, RandomState instance or None, default=None
        Source of the chances.

    Returns
    -------
    ndarray of int
        Places of the chosen candidates, none of them known.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.evaluation import pairs_to_label
    >>> probability = np.array([0.01, 0.5, 0.99, 0.6, 0.001])
    >>> np.sort(pairs_to_label(probability, n_pairs=2, random_state=0)).tolist()
    [1, 3]
    """
    p = np.asarray(probability, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError(
            f"Got probability of shape {p.shape}, but expected one number from 0 to 1 each."
        )
    SHARE.require("threshold", threshold)
    COUNT.require("n_pairs", n_pairs)
    known = _places(known, len(p))
    P = None if points is None else np.asarray(to_numpy(points), dtype=np.float64)
    if P is not None and (P.ndim != 2 or len(P) != len(p) or not np.all(np.isfinite(P))):
        raise ValueError(
            f"Got points of shape {P.shape}, but expected {len(p)} rows of finite numbers."
        )
    rng = check_random_state(random_state)
    q = expit(logit(np.clip(p, 1e-12, 1 - 1e-12)) - logit(threshold))
    doubt = np.maximum((4 * q * (1 - q)) ** 2, _SURE)
    doubt[known] = 0
    free = np.flatnonzero(doubt)
    if len(free) > max(_LOOKED_AT, n_pairs):
        chances = doubt[free] / doubt[free].sum()
        free = rng.choice(free, max(_LOOKED_AT, n_pairs), replace=False, p=chances)
    if P is None:
        size = min(n_pairs, len(free))
        return rng.choice(free, size, replace=False, p=doubt[free] / doubt[free].sum())
    s = _NEAR * float(np.sum(np.var(P, axis=0))) or 1.0
    return free[_spread(doubt[free], P[free], P[known], n_pairs, s, rng)]


def _places(known: Any, n: int) -> np.ndarray:
    """Places of candidates, from these or from a mask; refused where they are neither."""
    found = np.asarray(known)
    if found.size == 0:
        return np.empty(0, dtype=np.intp)
    if found.dtype.kind == "b" and found.shape == (n,):
        return np.flatnonzero(found)
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= n:
        raise ValueError(f"Got known={known!r}, but expected places from 0 to {n - 1}, or a mask.")
    return found.astype(np.intp)


def _spread(
    doubt: np.ndarray, P: np.ndarray, known: np.ndarray, n: int, s: float, rng: Any
) -> np.ndarray:
    """Places of pairs drawn one after the other, away from those that are known."""
    nearest = cdist(P, known, "sqeuclidean").min(axis=1, initial=np.inf)
    chosen: list[int] = []
    doubt = doubt.copy()
    for _ in range(min(n, len(P))):
        chances = doubt * -np.expm1(-nearest / s)
        if not chances.sum() > 0:  # all are like one that is known
            chances = doubt
        chosen.append(int(rng.choice(len(P), p=chances / chances.sum())))
        doubt[chosen[-1]] = 0
        nearest = np.minimum(nearest, cdist(P, P[chosen[-1:]], "sqeuclidean")[:, 0])
    return np.array(chosen, dtype=np.intp)
