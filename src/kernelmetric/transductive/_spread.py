"""Classes of all points from few labels, by diffusion over a graph: λ, probabilities, class sizes.

The embedding of a point are the probabilities of its classes. A labelled point lies in the corner
of its class, so the nearest label of a point is one of its most probable class.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kernelmetric._warnings import warn
from kernelmetric.compute.watch import until_limit
from kernelmetric.graphs import local_graph
from kernelmetric.transductive._choice import hidden_folds, hidden_rows
from kernelmetric.transductive._diffusion import Diffusion, joined, places_of
from kernelmetric.transductive._given import as_graph, nearest_points
from kernelmetric.transductive._shares import nearest_evidence
from kernelmetric.transductive._sizes import margin_of, sharpened, soft_shares

NEIGHBORS, MUTUAL = 10, 20  # of a point in the graph, and in that of mutual ones
LAMS: tuple[float, ...] = (10.0, 1.0)  # the first unless the other finds more hidden labels
_SHARPNESS = tuple(2.0 ** np.arange(-3, 4))  # of scores, in one over the usual margin
_RATIOS = tuple(2.0 ** np.arange(-2, 6))  # of what distances to labels count to what scores do
_USUAL = 0.25  # ratio where scores find all hidden labels
_AS_SHARP = 2.0  # ratio at which distances are as sharp as scores
_BLIND = (0.75, 0.1)  # of either, where no label can be hidden
_SIZED = 1.7  # times as sharp where the sizes of classes are known
_LOST = 0.05  # share of points in parts without a label that is worth a warning
_ROUNDED = 0.02  # that stated shares may miss one by
_UNEVEN = 3  # times as many labels as another class has, up to which distances are compared
_COSTS = np.array([0.25, 0.5])  # of a squared octave of their ratio, and of sharpness
_TRUST, _OF_EACH = 0.1, 3  # least share found beyond chance, and labels of a class that show it
_LEAST_REACH = 1e-6  # of the largest, in squares
_CHANCE = 0.01  # of classes that nothing speaks for, in a logarithm


class Spread(NamedTuple):
    """Probabilities of classes for all points, and how they came about."""

    shares: np.ndarray  # (n, C)
    nearest: float  # what distances to labels count
    lam: float | None  # None where the points as they are find more of the hidden labels
    hits: np.ndarray  # of hidden labels; empty where none could be hidden
    graph_scores: dict[str, float]  # shares of hidden labels found, by graph
    lam_scores: dict[float, float]  # on the graph that was chosen
    graph: str
    n_neighbors: int | None
    part: np.ndarray  # of the graph, by point
    reach: np.ndarray | None  # squared distance of each point to its last neighbour
    n_products: int
    scores: np.ndarray | None = None  # of the graph alone, as the probabilities need them


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


class Graphs:
    """The graphs over points, each made when it is first asked for; copies are one point."""

    def __init__(self, graph: Any, n_neighbors: Any, points: Any):
        ours = isinstance(graph, str) and graph in ("auto", "neighbors")
        distinct, self.place = places_of(points) if ours else (points, None)
        self.named, self._distinct = isinstance(graph, str), distinct
        self._left = _graphs_of(graph, n_neighbors, distinct)
        self._made: list[tuple[str, Any, Any, np.ndarray, Any]] = []

    def __iter__(self) -> Iterator[tuple[str, Any, Any, np.ndarray, Any]]:
        """Kind, number of neighbours, weights with all parts joined; part and reach of each row."""
        yield from self._made
        for name, size, W, reach in self._left:
            whole, part = joined(W, self._distinct)
            if self.place is not None:
                part, reach = part[self.place], reach[self.place]
            self._made.append((name, size, whole, part, reach))
            yield self._made[-1]


def spread_labels(
    points: Any, few: Few, graphs: Graphs, lam: Any, *, n_folds: int, may_stay: bool
) -> Spread:
    """Spread labels as it finds those that are hidden; ``may_stay`` lets the points win."""
    tried = LAMS if isinstance(lam, str) else (float(lam),)
    folds = _folds(few.codes, n_folds)
    asked = [hidden_rows(kept, few.codes) for kept in folds]
    heard = graphs.named and isinstance(lam, str)  # what a user sets is used alone
    near = [nearest_evidence(points, kept, points[rows]) for kept, rows in zip(folds, asked, strict=True)]

    def found_by(diffusion: Diffusion) -> Iterator[tuple[float, Hidden]]:
        """What becomes of hidden labels, by λ; without folds, of the first λ alone."""
        if not folds:
            counts = np.bincount(few.codes[few.codes >= 0])
            even = counts.max() <= _UNEVEN * counts.min()  # else distances favour larger classes
            yield tried[0], Hidden(np.empty(0), _BLIND[0], _BLIND[1] if heard and even else 0.0)
            return
        classes, G = few.codes[np.concatenate(asked)], np.concatenate(near)
        for lam in until_limit(tried, "lam"):
            spread = [few.scores(diffusion, lam, kept) for kept in folds]
            parts = [F[rows] / margin_of(F) for F, rows in zip(spread, asked, strict=True)]
            Z = np.concatenate(parts)
            sharpness, nearest = _pool(Z, G, classes, heard)
            hits = (sharpness * Z + nearest * G).argmax(axis=1) == classes
            yield lam, Hidden(hits, sharpness, nearest)

    best, highest, usual = None, -np.inf, np.empty(0)
    scores: dict[str, dict[float, float]] = {}
    for name, size, W, part, reach in until_limit(graphs, "the graph"):
        diffusion = Diffusion(W, graphs.place, few.codes >= 0)
        by_lam = scores.setdefault(f"{name} {size}" if size else name, {}) if folds else {}
        for value, hidden in found_by(diffusion):
            by_lam[value] = share = float(hidden.hits.mean()) if len(hidden.hits) else 0.0
            if best is None or (share > highest and _clearly(hidden.hits, usual, errors=2.0)):
                usual = hidden.hits if best is None else usual
                best, highest = (diffusion, part, reach, name, size, value, hidden, by_lam), share
        if not folds:
            break  # nothing can be compared
    assert best is not None  # the first is always tried
    diffusion, part, reach, name, size, value, hidden, by_lam = best
    by_graph = {name: max(found.values()) for name, found in scores.items() if found}
    told = by_graph, by_lam if folds else {}, name, size, part, reach
    if folds and may_stay and not sparse.issparse(points):
        own = np.concatenate(near).argmax(axis=1) == few.codes[np.concatenate(asked)]
        if own.mean() > highest and _clearly(own, hidden.hits, errors=1.0):
            return Spread(np.empty((0, 0)), 0.0, None, own, *told, diffusion.n_products)
    F, labelled = few.scores(diffusion, value, few.codes), few.codes >= 0
    known, others = corners(few.codes[labelled], few.n_classes), np.flatnonzero(~labelled)
    F *= hidden.sharpness / margin_of(F)
    whole = F.copy()
    if hidden.nearest and len(others):
        whole[others] += hidden.nearest * nearest_evidence(points, few.codes, points[others])
    if few.sizes is not None:  # of which the distances are a part
        whole = sharpened(diffusion, whole, few.codes, few.sizes)
        whole *= _SIZED * hidden.sharpness / margin_of(whole)
        F = whole
    shares = soft_shares(whole, 1.0)
    shares[labelled] = known
    told = *told, diffusion.n_products, F
    return Spread(shares, hidden.nearest, value, hidden.hits, *told)


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
    except (TypeError, ValueError):
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


def _graphs_of(graph: Any, n_neighbors: Any, points: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Kind, number of neighbours, weights and reach of the graphs that labels may spread over."""
    if not (isinstance(graph, str) and graph in ("auto", "neighbors")):
        kind = graph if isinstance(graph, str) else "given"
        yield kind, None, as_graph(graph, points, 1, quiet=True), None
        return
    open_, n = isinstance(n_neighbors, str), points.shape[0]
    k = min(NEIGHBORS if open_ else n_neighbors, n - 1)
    nearest, squares = nearest_points(points, min(MUTUAL, n - 1) if open_ else k)
    reach = squares[:, k - 1]
    reach = np.maximum(reach, _LEAST_REACH * reach.max() or 1.0)
    yield "neighbors", k, local_graph(nearest[:, :k], squares[:, :k]), reach
    if open_ and graph == "auto":
        yield "mutual", nearest.shape[1], local_graph(nearest, squares, mutual=True), reach


def _folds(codes: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Codes with labels hidden in turn; none where a class has a single label to be found by."""
    if np.bincount(codes[codes >= 0]).min() < 2:
        return []
    return list(hidden_folds(codes, n_folds, np.random.RandomState(0)))


class Hidden(NamedTuple):
    """Which hidden labels are found, how sharp scores should be, and what distances count."""

    hits: np.ndarray
    sharpness: float
    nearest: float


def _clearly(hits: np.ndarray, usual: np.ndarray, *, errors: float) -> bool:
    """Whether more is found than usual, by so many standard errors: the best has luck."""
    gain = hits.astype(np.float64) - usual
    return bool(gain.sum() > errors * np.sqrt((gain**2).sum()))


def _pool(Z: np.ndarray, G: np.ndarray, classes: np.ndarray, heard: bool) -> tuple[float, float]:
    """Factors of scores and of distances under which hidden labels are most probable.

    As few labels say little, a ratio of the factors that is not the usual one has to pay. Usually
    distances count more where scores alone find few hidden labels: by one over the squared share
    that is found beyond chance. Until shown, a graph helps: some more labels count as found.
    """
    rows, n_classes = np.arange(len(Z)), Z.shape[1]
    chance = 1.0 / n_classes
    more = n_classes * (1 if len(Z) >= _OF_EACH * n_classes else 2)
    found = (np.sum(Z.argmax(axis=1) == classes) + more) / (len(Z) + more)
    usual = _USUAL / max((found - chance) / (1.0 - chance), _TRUST) ** 2

    def loss(choice: tuple[float, float]) -> float:
        sharpness, nearest = factors(*choice)
        P = soft_shares(sharpness * Z + nearest * G, 1.0)[rows, classes]
        octaves = np.log2([choice[1] / usual if heard else 1.0, choice[0]])
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
