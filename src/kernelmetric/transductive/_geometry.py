"""The graph and the dimension, by labels that are hidden in turn.

Without a cost the embedding knows no label: one eigenproblem for each graph scores all labels in
all dimensions. Only wide full graphs, which outliers rule unless labels contradict them, are scored
with the labels in the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from kernelmetric.compute import nearest_neighbors, squared_distances, there
from kernelmetric.graphs import gaussian_graph, union_graph
from kernelmetric.solvers import Eigenpairs
from kernelmetric.transductive._choice import FEWEST, HEARD, hidden_folds
from kernelmetric.transductive._penalties import Geometry
from kernelmetric.transductive._prior import as_graph
from kernelmetric.transductive._solve import check_n_components

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
                "Got a graph without any weight between points, but expected some: try "
                "graph='neighbors'."
            )
        yield Graph("neighbors" if of_neighbors else name, size, W)
        return
    # Preferred are the fewest neighbours with which most parts of the graph hold a label.
    nearest = nearest_neighbors(there(points), min(max(NEIGHBORS), n - 1))[0]
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
    for graph in chain([first] if second is None else [first, second], graphs):
        geometry = geometry if graph is first else make(graph.weights)
        judge = lam if graph.heard else np.inf
        judge = 2.0**HEARD / geometry.scale if isinstance(judge, str) else float(judge)
        tried = _dimensions(geometry, n_components, usual, n_samples)
        alone = embed(geometry, tried[-1], np.inf, codes) if np.isinf(judge) else None
        parts = []
        for kept in folds:
            found = alone or embed(geometry, tried[-1], judge, kept)
            parts.append(hidden_scores(geometry, found, kept, codes, tried))
        scores = np.concatenate(parts, axis=1)
        around = np.vstack([scores[:1], scores, scores[-1:]])  # neighbouring dimensions have a say
        scores = (around[:-2] + 2 * scores + around[2:]) / 4
        scores = (scores + 3 * scores.mean(axis=0)) / 4  # so that no graph wins by one lucky one
        by_dimension = dict(zip(tried, scores.mean(axis=1).tolist(), strict=True))
        d = max([usual, *tried], key=by_dimension.__getitem__)
        graph_scores[graph.name] = by_dimension[d]
        if by_dimension[d] > highest.mean():
            highest, used = scores[tried.index(d)], judge if graph.heard else None
            best = Choice(graph, geometry, d, used, alone, graph_scores, by_dimension)
    if points is None or best.geometry.basis is not None:  # with a kernel, functions are wanted
        return best
    own = np.concatenate([point_scores(points, kept, codes) for kept in folds])
    graph_scores[POINTS.name] = float(own.mean())
    lead = highest - own  # of the best of many, which has luck on its side
    if lead.mean() > lead.std() / np.sqrt(len(lead)):
        return best
    return best._replace(graph=POINTS, n_components=points.shape[1], dimension_scores={})


def hidden_scores(
    geometry: Geometry,
    found: Eigenpairs,
    kept: np.ndarray,
    codes: np.ndarray,
    dimensions: list[int],
) -> np.ndarray:
    """How near each point of hidden label is to its own class, in the first d coordinates."""
    hidden, labels = _hidden_and_kept(kept, codes)
    V = found.vectors
    A, B = (V[rows] if geometry.basis is None else geometry.basis[rows] @ V
            for rows in (hidden, labels))  # fmt: skip
    same = codes[hidden][:, None] == codes[labels]
    D2, done, scores = np.zeros(same.shape), 0, []
    for d in dimensions:
        for column in range(done, d):  # from differences: tails of eigenvectors are tiny, and tell
            D2 += (A[:, column, None] - B[:, column]) ** 2
        done = d
        scores.append(_nearness(D2, same))
    return np.array(scores)


def point_scores(points: np.ndarray, kept: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The same as :func:`hidden_scores` for the points as they are."""
    hidden, labels = _hidden_and_kept(kept, codes)
    D2 = np.asarray(squared_distances(points[hidden], points[labels]), dtype=np.float64)
    return _nearness(D2, codes[hidden][:, None] == codes[labels])


def _hidden_and_kept(kept: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = np.flatnonzero((kept < 0) & (codes >= 0))
    if len(hidden) > _HIDDEN:  # from all over: rows may be sorted by class
        hidden = hidden[np.linspace(0, len(hidden) - 1, _HIDDEN).astype(np.intp)]
    return hidden, np.flatnonzero(kept >= 0)


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
