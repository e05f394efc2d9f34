"""One fit: graph, dimension and λ chosen where the user left them open, then the eigenproblem."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from kernelmetric.solvers import Eigenpairs
from kernelmetric.transductive._choice import choose_lam, warn_of_small_lam
from kernelmetric.transductive._geometry import (
    POINTS,
    Choice,
    Graph,
    candidate_graphs,
    choose_geometry,
)
from kernelmetric.transductive._parameters import neighbors_among
from kernelmetric.transductive._penalties import Geometry, warn_of_gaps
from kernelmetric.transductive._solve import solve
from kernelmetric.transductive._source import Source


class Learned(NamedTuple):
    """The embedding of a fit, its penalty, the points with a label or pair, and what was chosen."""

    found: Eigenpairs
    geometry: Geometry
    spoken_of: np.ndarray
    chosen: dict[str, Any]


def learn(
    metric: Any,
    points: np.ndarray,
    source: Source,
    penalty: Any,
    cost: Any,
    start: Any,
    weights: np.ndarray | None = None,
) -> Learned:
    """Choose graph, dimension and λ, and solve."""
    lam = metric.lam if isinstance(metric.lam, str) else float(metric.lam)
    codes, rng = source.codes, check_random_state(metric.random_state)
    options = {"tol": metric.tol, "random_state": rng.randint(2**31 - 1)}
    parts = source.graphs(points, cost.n_neighbors)

    def weighted(similar: Any, dissimilar: Any) -> Any:
        C = cost.weights(similar, dissimilar)
        if weights is None:
            return C
        halves = 0.5 * sparse.diags_array(weights)  # of an edge, one is part of either point
        return (halves @ C + C @ halves).tocsr()

    C = weighted(*parts)

    def embed(geometry: Geometry, d: int, lam: float, known: Any) -> Eigenpairs:
        some = C
        if np.isfinite(lam) and known is not codes:  # some labels are hidden
            some = weighted(*Source(None, known).graphs(points, cost.n_neighbors))
        return solve(geometry, some, lam, d, start=start, **options)

    graphs = iter([Graph("none", None, None)])
    if penalty.uses_graph:
        graphs = candidate_graphs(metric.graph, metric.n_neighbors, points, codes)
    choice = choose_geometry(
        graphs, partial(penalty.geometry, points), embed, codes, metric.n_components, lam,
        len(points), n_folds=metric.cv, points=points if _all_is_open(metric, penalty) else None,
    )  # fmt: skip
    if choice.graph.gaps:
        warn_of_gaps(choice.graph.weights)
    told = _told(choice, metric, len(points))
    spoken_of = np.asarray((parts[0] + parts[1]).sum(axis=1)).ravel() > 0
    spoken_of = spoken_of if codes is None else codes >= 0
    geometry, d = choice.geometry, choice.n_components
    if choice.graph is POINTS:
        found = Eigenpairs(np.zeros(d), points, np.zeros(d), True, 0)
        return Learned(found, geometry, spoken_of, told | {"lam_": np.inf, "lam_scores_": {}})
    scores: dict[float, float] = {}
    if not isinstance(lam, str):
        if C.nnz:
            warn_of_small_lam(metric.lam, cost.least_lam(geometry.scale))
    elif choice.lam is not None:
        lam = choice.lam
    else:  # every λ starts from the embedding without labels
        start = (choice.alone or embed(geometry, d, np.inf, codes)).vectors[:, :d]

        def coordinates(known: np.ndarray, lam: float) -> np.ndarray:
            V = embed(geometry, d, lam, known).vectors if np.isfinite(lam) else start
            return V if geometry.basis is None else geometry.basis @ V

        lam, scores = choose_lam(
            coordinates, codes, geometry.scale, n_folds=metric.cv, n_votes=metric.n_votes, rng=rng
        )
    told |= {"lam_": float(lam), "lam_scores_": scores}
    return Learned(embed(geometry, d, lam, codes), geometry, spoken_of, told)


def _all_is_open(metric: Any, penalty: Any) -> bool:
    """Whether nothing that an embedding depends on was set by hand."""
    open_ = (metric.graph, metric.n_neighbors, metric.lam)
    words = all(isinstance(each, str) and each == "auto" for each in open_)
    return words and metric.n_components is None and penalty.uses_graph


def _told(choice: Choice, metric: Any, n_samples: int) -> dict[str, Any]:
    """What was chosen beside λ, and why."""
    kind, size, *_ = choice.graph
    neighbors = size if kind == "neighbors" else metric.n_neighbors
    return {
        "graph_": kind,
        "width_": size if kind == "gaussian" else None,
        "n_neighbors_": neighbors_among(neighbors, n_samples),
        "graph_scores_": choice.graph_scores,
        "dimension_scores_": choice.dimension_scores,
    }
