"""Classes of all points from few labels, by diffusion over a graph: λ, probabilities, class sizes.

The embedding of a point are the probabilities of its classes. A labelled point lies in the corner
of its class, so the nearest label of a point is one of its most probable class.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from kernelmetric._warnings import warn
from kernelmetric.graphs import local_graph
from kernelmetric.transductive._choice import hidden_folds, hidden_rows
from kernelmetric.transductive._diffusion import Diffusion, joined, places_of
from kernelmetric.transductive._given import as_graph, nearest_points
from kernelmetric.transductive._shares import nearest_evidence
from kernelmetric.transductive._sizes import margin_of, shares_found, sharpened, soft_shares

NEIGHBORS, LAM = 10, 10.0  # of a point in the graph; labels are nearly sources
_SHARPNESS = tuple(2.0 ** np.arange(-3, 4))  # of scores, in one over the usual margin
_RATIOS = tuple(2.0 ** np.arange(-2, 6))  # of what distances to labels count to what scores do
_USUAL = (2.0, 0.25)  # sharpness, and ratio where scores find all hidden labels
_AS_SHARP = 2.0  # ratio at which distances are as sharp as scores
_BLIND = (0.75, 0.1)  # of either, where no label can be hidden
_SIZED = 1.7  # times as sharp where the sizes of classes are known
_LOST = 0.05  # share of points in parts without a label that is worth a warning
_ROUNDED = 0.02  # that stated shares may miss one by
_UNEVEN = 3  # times as many labels as another class has, up to which distances are compared
_COSTS = np.array([0.25, 0.5])  # of a squared octave of their ratio, and of sharpness
_TRUST, _OF_EACH = 0.1, 3  # least share found beyond chance, and labels of a class that show it
_CHANCE = 0.01  # of classes that nothing speaks for, in a logarithm


class Spread(NamedTuple):
    """Probabilities of classes for all points, and how they came about."""

    shares: np.ndarray  # (n, C)
    scores: np.ndarray  # of the graph alone, as the probabilities need them
    nearest: float  # what distances to labels count
    lam: float
    found: float | None  # share of hidden labels; None where none could be hidden
    n_products: int


class Few(NamedTuple):
    """The labels that spread: codes, -1 where unknown, what each counts, and known class sizes."""

    codes: np.ndarray
    mass: np.ndarray | None
    sizes: np.ndarray | None

    @property
    def n_classes(self) -> int:
        """How many there are."""
        return int(self.codes.max()) + 1

    def scores(self, diffusion: Diffusion, lam: float, codes: np.ndarray) -> np.ndarray:
        """How much speaks for each class at every point, from some of the labels."""
        labelled = codes >= 0
        mass = np.where(labelled, 1.0 if self.mass is None else self.mass, 0.0)[:, None]
        targets = corners(codes, self.n_classes)
        targets -= (mass * targets).sum(axis=0) / mass.sum()
        return diffusion.spread(targets, mass, lam)


def corners(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """One in the column of a point's class; zeros where it is unknown."""
    Y, labelled = np.zeros((len(codes), n_classes)), np.flatnonzero(codes >= 0)
    Y[labelled, codes[labelled]] = 1.0
    return Y


class LabelGraph:
    """The graph that labels spread over, its parts joined; copies are one point."""

    def __init__(self, graph: Any, n_neighbors: Any, points: Any):
        self.named = isinstance(graph, str)
        self.place: Any = None
        self.reach = self.n_neighbors = None
        if self.named and graph in ("auto", "neighbors"):
            points, self.place = places_of(points)
            wanted = NEIGHBORS if isinstance(n_neighbors, str) else n_neighbors
            self.kind, self.n_neighbors = "neighbors", min(wanted, points.shape[0] - 1)
            nearest, squares = nearest_points(points, self.n_neighbors)
            W, last = local_graph(nearest, squares), squares[:, -1]
            #: Squared distance of each point to its last neighbour; none where none is known.
            self.reach = np.maximum(last, 1e-6 * last.max() or 1.0)  # of copies
        else:
            self.kind = graph if self.named else "given"
            W = as_graph(graph, points, 1, quiet=True)
        self.weights, self.part = joined(W, points)
        if self.place is not None and self.reach is not None:
            self.part, self.reach = self.part[self.place], self.reach[self.place]


def spread_labels(points: Any, few: Few, graph: LabelGraph, lam: Any, *, n_folds: int) -> Spread:
    """Spread labels as it finds those that are hidden."""
    heard = graph.named and isinstance(lam, str)  # what a user sets is used alone
    lam = LAM if isinstance(lam, str) else float(lam)
    labelled = few.codes >= 0
    diffusion = Diffusion(graph.weights, graph.place, labelled)
    share, found, counts = None, [], np.bincount(few.codes[labelled])
    for kept in _folds(few.codes, n_folds):
        rows = hidden_rows(kept, few.codes)
        F, G = few.scores(diffusion, lam, kept), nearest_evidence(points, kept, points[rows])
        found.append((F[rows] / margin_of(F), G, few.codes[rows]))
    if found:
        Z, G, classes = (np.concatenate(part) for part in zip(*found, strict=True))
        sharpness, nearest = _pool(Z, G, classes, heard)
        share = float(np.mean((sharpness * Z + nearest * G).argmax(axis=1) == classes))
    else:
        even = counts.max() <= _UNEVEN * counts.min()  # else distances favour larger classes
        sharpness, nearest = _BLIND[0], _BLIND[1] if heard and even else 0.0
    F, others = few.scores(diffusion, lam, few.codes), np.flatnonzero(~labelled)
    F *= sharpness / margin_of(F)
    whole = F.copy()
    if nearest and len(others):
        whole[others] += nearest * nearest_evidence(points, few.codes, points[others])
    if few.sizes is not None:  # of which the distances are a part
        F = whole = sharpened(diffusion, whole, few.codes, few.sizes)
        F *= _SIZED * sharpness / margin_of(F)
    elif heard and found and len(Z) >= _OF_EACH * few.n_classes and len(others):
        P, told = soft_shares(whole[others], 1.0), soft_shares(sharpness * Z + nearest * G, 1.0)
        more = np.log(few.n_classes * shares_found(P, told, classes, counts))
        F, whole = F + more, whole + more
    shares = soft_shares(whole, 1.0)
    shares[labelled] = corners(few.codes[labelled], few.n_classes)
    return Spread(shares, F, nearest, lam, share, diffusion.n_products)


def read_sizes(sizes: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
    """Shares of the classes that a user states: by class, in their order, or equal."""
    if sizes is None:
        return None
    if isinstance(sizes, str) and sizes == "equal":
        return np.full(len(classes), 1.0 / len(classes))
    expected = (
        f"expected 'equal', or a positive number for each of {len(classes)} classes: a dict by "
        "class, or an array in their sorted order."
    )
    if isinstance(sizes, Mapping):
        if set(sizes) != set(classes.tolist()):
            raise ValueError(f"Got class_sizes of {sorted(map(str, sizes))}, but {expected}")
        sizes = [sizes[name] for name in classes.tolist()]
    try:
        shares = np.asarray(sizes, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        shares = np.empty(0)
    good = shares.shape == (len(classes),) and np.all(np.isfinite(shares)) and shares.min() > 0
    if not good:
        raise ValueError(f"Got class_sizes={sizes!r}, but {expected}")
    total = shares.sum()
    if shares.max() < 1.0 and abs(total - 1.0) > _ROUNDED:
        raise ValueError(
            f"Got class_sizes that add up to {total:.4g}, but expected shares that add up to 1, or "
            "numbers of points."
        )
    fewest = np.ceil(len(codes) * shares / total)
    short = np.flatnonzero(np.bincount(codes[codes >= 0]) > fewest)
    if len(short):
        raise ValueError(
            f"Got class_sizes by which class {classes[short[0]]} has {fewest[short[0]]:.0f} of "
            f"{len(codes)} points, but expected no fewer than have its label."
        )
    return shares / total


def _folds(codes: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Codes with labels hidden in turn; none where a class has a single label to be found by."""
    single = np.bincount(codes[codes >= 0]).min() < 2
    return [] if single else list(hidden_folds(codes, n_folds, np.random.RandomState(0)))


def _pool(Z: np.ndarray, G: np.ndarray, classes: np.ndarray, heard: bool) -> tuple[float, float]:
    """Factors of scores and of distances under which hidden labels are most probable.

    As few labels say little, a ratio of the factors that is not the usual one has to pay. Usually
    distances count more where scores alone find few hidden labels: by one over the squared share
    that is found beyond chance. Until shown, a graph helps: one more label of each class counts as
    found. With two labels of a class, the one that is left finds too few.
    """
    rows, chance = np.arange(len(Z)), 1.0 / Z.shape[1]
    hits, more = np.sum(Z.argmax(axis=1) == classes), Z.shape[1]
    found = (hits + more) / (len(Z) + more) if len(Z) >= _OF_EACH * more else 1.0
    usual = _USUAL[1] / max((found - chance) / (1.0 - chance), _TRUST) ** 2

    def loss(choice: tuple[float, float]) -> float:
        sharpness, nearest = factors(*choice)
        P = soft_shares(sharpness * Z + nearest * G, 1.0)[rows, classes]
        octaves = np.log2([choice[1] / usual if heard else 1.0, choice[0] / _USUAL[0]])
        return float(_COSTS @ octaves**2 - np.log((1.0 - _CHANCE) * P + _CHANCE * chance).sum())

    def factors(sharpness: float, ratio: float) -> tuple[float, float]:
        """Of such a ratio, and such that sharpness is nearly that of their sum."""
        scores = sharpness / (1.0 + ratio / _AS_SHARP)
        return scores, ratio * scores

    return factors(*min(product(_SHARPNESS, _RATIOS if heard else (0.0,)), key=loss))


def warn_of_lost(part: np.ndarray, codes: np.ndarray) -> None:
    """Warn where many points are in parts of the graph without a label."""
    lost = ~np.isin(part, part[codes >= 0])
    if lost.mean() > _LOST:
        warn(
            f"Got a graph in which nothing joins {int(lost.sum())} of {len(part)} points to a "
            f"label, in {len(np.unique(part[lost]))} part(s): these follow the nearest part. Try "
            "more neighbours, or a label in each part."
        )
