"""How many points each class has: as points and labels tell, and scores that make it so."""

import numpy as np

from kernelmetric.solvers import evenly
from kernelmetric.transductive._diffusion import Diffusion

_ROWS = 5000  # from all over, on which offsets are found
_STEPS = 40
_ROUNDS = 20  # of sharpening
_WALK = 8  # steps of a random walk in a round
_SETTLED = 1e-4  # share of points that change class in the last round
_NARROW = 0.05  # width of a class's edge where counts are held, in usual margins
_SHARED = 4.0  # times the variance of hidden labels: points around a label share its luck
_LEAST = 0.01  # part of the usual shares that stays, so that no class has none


def margin_of(F: np.ndarray) -> float:
    """By how much the best score of a usual point is above the next."""
    best = np.partition(F, -2, axis=1)[:, -2:]
    return float(np.median(best[:, 1] - best[:, 0])) or float(np.ptp(F)) or 1.0


def soft_shares(F: np.ndarray, width: float) -> np.ndarray:
    """Softmax of scores in units of a width."""
    Z = F / width
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def offsets(F: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What to add to the scores of each class so that it gets its share of the points.

    Points count for the classes that they are between, in a zone of one margin, then in narrow ones
    in which counts are nearly those of the best class.
    """
    some = F[evenly(len(F), _ROWS)].astype(np.float64)
    added, width = np.zeros(F.shape[1]), margin_of(some)
    for zone in (1.0, 0.3, _NARROW):
        for _ in range(_STEPS):
            found = soft_shares(some + added, zone * width).mean(axis=0)
            added += 0.8 * zone * width * np.log(shares / np.maximum(found, 1e-9))
    return added - added.mean()


def shares_found(
    P: np.ndarray, hidden: np.ndarray, classes: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Shares of the classes, from probabilities of points under equal ones, and counts of labels.

    By expectation maximisation [Saerens, Latinne and Decaestecker, 2002]. If shares were equal,
    mean probabilities of points would be those of hidden labels, and labels as many of each class.
    Either counts as far as it is not explained by luck.
    """
    stated = counts / counts.sum()
    gap = 1.0 / len(counts) - stated  # to equal shares
    usual = stated + _explained((1.0 - 1.0 / len(counts)) / counts.sum(), gap) * gap
    classes = np.unique(classes, return_inverse=True)[1]
    n = np.bincount(classes)[:, None]
    means = np.eye(len(n))[classes].T @ hidden / n
    within = np.sum((hidden - means[classes]) ** 2) / max(len(hidden) - len(n), 1)
    luck = _SHARED * within * np.mean(1.0 / n) / len(n)
    kept = _explained(luck, P.mean(axis=0) - means.mean(axis=0))
    P, shares = P[evenly(len(P), _ROWS)], usual
    for _ in range(_STEPS):
        Q = P * shares
        shares = kept * usual + (1.0 - kept) * (Q / Q.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _explained(luck: float, gap: np.ndarray) -> float:
    """The part of a squared difference that luck explains; a little, at least."""
    return float(np.clip(luck / max(gap @ gap, 1e-12), _LEAST, 1.0))


def sharpened(
    diffusion: Diffusion, F: np.ndarray, codes: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Scores under which classes have the given shares, and borders are short.

    In turns, every point takes its class, and classes walk a few steps from all points: the scheme
    of Merriman, Bence and Osher.
    """
    labelled, earlier = codes >= 0, None
    F = F + offsets(F, shares)
    for _ in range(_ROUNDS):
        found = np.where(labelled, codes, F.argmax(axis=1))
        if earlier is not None and np.mean(found != earlier) < _SETTLED:
            break
        earlier = found
        F = diffusion.walk(np.eye(F.shape[1])[found], labelled.astype(np.float64), _WALK)
        F += offsets(F, shares)
    return F
