"""What is open, by labels that are hidden in turn: the graph, the dimension and λ.

Without a cost the embedding knows no label: one eigenproblem for each graph scores all labels in
all dimensions. Only wide full graphs, which outliers rule unless labels contradict them, are scored
with the labels in the cost.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric._warnings import warn
from kernelmetric.compute import to_device
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.compute.watch import until_limit, warn_of_choice
from kernelmetric.graphs import gaussian_graph, union_graph
from kernelmetric.solvers import Eigenpairs
from kernelmetric.transductive._given import as_graph
from kernelmetric.transductive._penalties import Geometry, coordinates_of

#: Exponents of two, in units of one over the penalty's scale; the first is the default.
GRID = (np.inf, 14, 11, 8, 5)
HEARD = 11  # the same where the cost must be heard: of pairs, which cannot vote; in wide graphs
FEWEST = 10  # labelled points: below, no difference between two choices can be seen
N_COMPONENTS = 10  # unless the user asks for others
NEIGHBORS = (5, 10, 20)
DIMENSIONS = (2, 3, 5, 7, 10, 15, 20, 30)
FULL = 1000  # points up to which all may be joined: so far LAPACK solves the eigenproblem
_SEVENTH = 7  # the neighbour whose distance says how wide a narrow graph is
_HIDDEN = 200  # labels of a fold that are looked for: more would say the same


class Graph(NamedTuple):
    """A graph of a kind, and its symmetric weights."""

    kind: str  # 'neighbors', 'gaussian', 'given', 'none' without one, or 'points' as they are
    size: float | None
    weights: Any
    heard: bool = False  # whether labels are in the cost when it is judged
    gaps: bool = False  # whether some of its parts have no label

    @property
    def name(self) -> str:
        """Kind and size."""
        return self.kind if self.size is None else f"{self.kind} {self.size:.4g}"


POINTS = Graph("points", None, None)


class Choice(NamedTuple):
    """The chosen graph, penalty, dimension and λ, with the scores of what was tried."""

    graph: Graph
    geometry: Geometry
    n_components: int
    lam: float | None  # None where labels were not in the cost
    alone: Eigenpairs | None  # the embedding without labels
    graph_scores: dict[str, float]
    dimension_scores: dict[int, float]
    hits: float = 0.0  # share of hidden labels that are nearest to their own class


def candidate_graphs(
    graph: Any, n_neighbors: Any, points: np.ndarray, codes: np.ndarray | None
) -> Iterator[Graph]:
    """The graphs to choose from, the one to prefer first, each made when it is asked for."""
    n, name = len(points), graph if isinstance(graph, str) else "given"
    of_neighbors, by_hand = name in ("auto", "neighbors"), not isinstance(n_neighbors, str)
    if not of_neighbors or by_hand:
        size = min(n_neighbors, n - 1) if of_neighbors else None
        W = as_graph("neighbors" if of_neighbors else graph, points, size or 1)
        if not W.sum():
            raise ValueError(
                "Got a graph without any weight between points: try graph='neighbors'."
            )
        yield Graph("neighbors" if of_neighbors else name, size, W)
        return
    # Preferred are the fewest neighbours with which most parts of the graph hold a label.
    nearest = nearest_neighbors(to_device(points), min(max(NEIGHBORS), n - 1))[0]
    sizes = sorted({min(k, n - 1) for k in NEIGHBORS})
    lost = [_parts_without_label(union_graph(nearest[:, :k]), codes) for k in sizes]
    first = int(np.argmin(lost))
    enough = codes is not None and np.sum(codes >= 0) >= FEWEST
    for i in [first] + [i for i in range(len(sizes)) if i != first and enough]:
        W = union_graph(nearest[:, : sizes[i]])
        yield Graph("neighbors", sizes[i], W, gaps=lost[i] > 0)
    if enough and name == "auto" and n <= FULL:
        for width, heard in _widths(points):
            yield Graph("gaussian", width, gaussian_graph(points, width), heard)


def choose_geometry(
    graphs: Iterator[Graph],
    make: Callable[[Any], Geometry],
    embed: Callable[..., Eigenpairs],
    codes: np.ndarray | None,
    n_components: int | None,
    lam: Any,
    n_samples: int,
    *,
    n_folds: int,
    points: np.ndarray | None = None,
) -> Choice:
    """The graph and the dimension in which hidden labels are near their own class."""
    first, second = next(graphs), next(graphs, None)
    geometry = make(first.weights)
    usual = check_n_components(n_components, geometry, n_samples)
    n_labelled = 0 if codes is None else int(np.sum(codes >= 0))
    if n_components is None and codes is not None:
        usual = min(usual, n_labelled)
    best = Choice(first, geometry, usual, None, None, {}, {})
    if codes is None or n_labelled < FEWEST or (second is None and n_components is not None):
        return best
    folds = list(hidden_folds(codes, n_folds, np.random.RandomState(0)))
    highest, graph_scores = np.full(1, -np.inf), {}
    candidates = chain([first] if second is None else [first, second], graphs)
    for graph in until_limit(candidates, "the graph"):
        geometry = geometry if graph is first else make(graph.weights)
        judge = lam if graph.heard else np.inf
        judge = 2.0**HEARD / geometry.scale if isinstance(judge, str) else float(judge)
        tried = _dimensions(geometry, n_components, usual, n_samples)
        alone = embed(geometry, tried[-1], np.inf, codes) if np.isinf(judge) else None
        parts = []
        for kept in folds:
            found = alone or embed(geometry, tried[-1], judge, kept)
            E = coordinates_of(geometry, found.vectors)
            parts.append(hidden_scores(E, kept, codes, tried))
        scores = np.concatenate(parts, axis=1)
        hits = (scores > 0.5).mean(axis=1)
        around = np.vstack([scores[:1], scores, scores[-1:]])  # neighbouring dimensions have a say
        scores = (around[:-2] + 2 * scores + around[2:]) / 4
        scores = (scores + 3 * scores.mean(axis=0)) / 4  # so that no graph wins by one lucky one
        by_dimension = dict(zip(tried, scores.mean(axis=1).tolist(), strict=True))
        d = max([usual, *tried], key=by_dimension.__getitem__)
        graph_scores[graph.name] = by_dimension[d]
        if by_dimension[d] > highest.mean():
            highest, used = scores[tried.index(d)], judge if graph.heard else None
            hit = float(hits[tried.index(d)])
            best = Choice(graph, geometry, d, used, alone, graph_scores, by_dimension, hit)
    if points is None or best.geometry.basis is not None:  # with a kernel, functions are wanted
        return best
    width = [points.shape[1]]
    own = np.concatenate([hidden_scores(points, kept, codes, width)[0] for kept in folds])
    graph_scores[POINTS.name] = float(own.mean())
    lead = highest - own  # of the best of many, which has luck on its side
    if lead.mean() > lead.std() / np.sqrt(len(lead)):
        return best
    hit = float(np.mean(own > 0.5))
    return best._replace(graph=POINTS, n_components=points.shape[1], dimension_scores={}, hits=hit)


def hidden_scores(
    E: np.ndarray, kept: np.ndarray, codes: np.ndarray, dimensions: list[int]
) -> np.ndarray:
    """How near each point of hidden label is to its own class, in the first d coordinates."""
    hidden, labels = hidden_rows(kept, codes), kept >= 0
    same = codes[hidden][:, None] == codes[labels]
    D2, done, scores = np.zeros(same.shape), 0, []
    for d in dimensions:  # from differences: tails of eigenvectors are tiny, and tell
        D2 += cdist(E[hidden, done:d], E[labels, done:d], "sqeuclidean")
        done = d
        scores.append(_nearness(D2, same))
    return np.array(scores)


def hidden_rows(kept: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Points whose label is hidden: some from all over, since rows may be sorted by class."""
    hidden = np.flatnonzero((kept < 0) & (codes >= 0))
    if len(hidden) > _HIDDEN:
        hidden = hidden[np.linspace(0, len(hidden) - 1, _HIDDEN).astype(np.intp)]
    return hidden


def _nearness(D2: np.ndarray, same: np.ndarray) -> np.ndarray:
    """``o⁴ / (s⁴ + o⁴)``, s and o the distances to the nearest of the same and another class."""
    own = np.where(same, D2, np.inf).min(axis=1)
    other = np.where(same, np.inf, D2).min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = own / other
    return 1.0 / (1.0 + np.where(np.isnan(ratio), 1.0, ratio) ** 2)


def _dimensions(
    geometry: Geometry, n_components: int | None, usual: int, n_samples: int
) -> list[int]:
    """Dimensions to try, ascending; the usual one is among them."""
    if n_components is not None:
        return [usual]
    most = n_samples - 2 if geometry.basis is None else geometry.basis.shape[1]
    return sorted({d for d in DIMENSIONS if d <= most} | {usual})


def _parts_without_label(W: Any, codes: np.ndarray | None) -> int:
    """Parts of a graph that nothing joins to a label; all but one where there are no labels."""
    parts, part = connected_components(W, directed=False)
    return parts - (1 if codes is None else len(np.unique(part[codes >= 0])))


def _widths(points: np.ndarray) -> list[tuple[float, bool]]:
    """A narrow width, and two wider ones with labels in the cost, by the seventh neighbours."""
    near = nearest_neighbors(points, min(_SEVENTH, len(points) - 1))[1][:, -1]
    if not np.any(near > 0):
        return []
    width = float(np.median(near[near > 0]))
    return [(width / 4.0, False), (width / 2.0, True), (width, True)]


def check_n_components(n_components: Any, geometry: Geometry, n_samples: int) -> int:
    """How many eigenvectors are wanted; refused where there are fewer."""
    most = n_samples - 1 if geometry.basis is None else geometry.basis.shape[1]
    if n_components is None:
        return max(1, min(N_COMPONENTS, n_samples - 2, most))
    if n_components > most:
        reason = "have no more directions" if geometry.basis is None else "in range(K)"
        raise ValueError(
            f"Got n_components={n_components!r}, but expected an integer from 1 to {most}: "
            f"{n_samples} points {reason}."
        )
    return int(n_components)


def choose_lam(
    embed: Callable[[np.ndarray, float], np.ndarray],
    codes: np.ndarray | None,
    scale: float,
    *,
    n_folds: int,
    n_votes: int,
    rng: np.random.RandomState,
) -> tuple[float, dict[float, float]]:
    """The λ under which labels that were hidden are found again, and the shares found by λ."""
    if codes is None:
        return 2.0**HEARD / scale, {}
    candidates = [2.0**exponent / scale for exponent in GRID]
    folds = list(hidden_folds(codes, n_folds, rng)) if np.sum(codes >= 0) >= FEWEST else []
    if not folds:
        return candidates[0], {}

    def found(lam: float, kept: np.ndarray) -> np.ndarray:
        E, hidden = embed(kept, lam), np.flatnonzero((kept < 0) & (codes >= 0))
        return vote(E, kept, E[hidden], n_votes) == codes[hidden]

    rows: list[np.ndarray] = []
    for lam in until_limit(candidates, "lam"):
        parts = [found(lam, kept) for kept in (until_limit(folds, None) if rows else folds)]
        if len(parts) < len(folds):
            warn_of_choice("lam", len(rows))
            break
        rows.append(np.concatenate(parts))
    hits = np.array(rows, dtype=np.float64)
    # Infinity, the first, gives way only to what is better by more than a standard error.
    gain = hits - hits[0]
    error = gain.std(axis=1) / np.sqrt(hits.shape[1])
    clear = np.where(gain.mean(axis=1) > error, gain.mean(axis=1), 0.0)
    scores = dict(zip(candidates, hits.mean(axis=1).tolist(), strict=False))
    return candidates[int(np.argmax(clear))], scores


def hidden_folds(
    codes: np.ndarray, n_folds: int, rng: np.random.RandomState
) -> Iterator[np.ndarray]:
    """Codes with one fold after another hidden (negative), which show two classes at least."""
    labelled = rng.permutation(np.flatnonzero(codes >= 0))
    labelled = labelled[np.argsort(codes[labelled], kind="stable")]
    n_folds = min(n_folds, len(labelled))  # more would hide nothing
    for fold in range(n_folds):
        kept = codes.copy()
        kept[labelled[fold::n_folds]] = -1
        if len(np.unique(kept[kept >= 0])) > 1:
            yield kept


def vote(E: np.ndarray, codes: np.ndarray, points: np.ndarray, n_votes: int) -> np.ndarray:
    """Class codes of points by their ``n_votes`` nearest labelled ones, or all where fewer."""
    labelled = codes >= 0
    nearest = KNeighborsClassifier(min(n_votes, int(labelled.sum())))
    return nearest.fit(E[labelled], codes[labelled]).predict(points)


def label_mass(E: np.ndarray, labelled: np.ndarray, *, warned: bool = True) -> np.ndarray:
    """Share of each eigenvector's squared length on labelled points; warns where it is large."""
    on_labels, total = (
        np.einsum("ij,ij->j", part, part, dtype=np.float64) for part in (E[labelled], E)
    )
    mass = np.full(len(total), labelled.mean())  # of a column of zeros
    np.divide(on_labels, total, out=mass, where=total > 0)
    captured = int(np.sum(mass > (1.0 + labelled.mean()) / 2))
    if warned and 2 * captured > len(mass) and not labelled.all():  # there are others
        warn(
            f"{captured} of {len(mass)} eigenvectors live on the {int(labelled.sum())} labelled "
            "points and say little of the others: try a larger lam, or cost='robust'."
        )
    return mass
