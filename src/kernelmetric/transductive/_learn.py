"""One fit: graph, dimension and λ chosen where they are open, the eigenproblem, and its memory."""

import time
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.utils import check_random_state

from kernelmetric._warnings import warn
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.watch import time_kept
from kernelmetric.graphs import coded_targets
from kernelmetric.inputs._parameters import is_auto, require_word
from kernelmetric.solvers import Eigenpairs, evenly, smallest_eigenvectors
from kernelmetric.transductive import _choice, _penalties
from kernelmetric.transductive._costs import as_cost, gram_form
from kernelmetric.transductive._diffusion import DIRECT
from kernelmetric.transductive._given import Source, neighbors_among, warn_of_single
from kernelmetric.transductive._spread import (
    Few,
    LabelGraph,
    read_sizes,
    spread_labels,
    warn_of_lost,
)

#: The embedding, its penalty, which points have a label or pair, and what was chosen.
Learned = tuple[Eigenpairs, _penalties.Geometry, np.ndarray, dict[str, Any]]
METHODS = ("auto", "diffusion", "eigenvectors")
_PUSHED = "such a point is only pushed away from others, with nothing to be drawn to."
_ASSUMED = "no label can be hidden to judge by, so λ is {lam:g}, and labels are thought to spread."
_OF_CLASS = 4  # labels on average, from which on eigenvectors are asked too
_DENSE = 1000  # points up to which LAPACK solves the eigenproblem of a graph
_CELLS = 100_000  # numbers that solutions of an eigenproblem pass over, for each point
_CELLS_OF_MEANS = 200  # that the mean of neighbours takes, for each feature of a point
_LEAST_ROWS, _LEAST_OF_CLASS = 100, 3  # that a time limit leaves
_BLOCKS = 2**23  # bytes of tiles of distances, and of what is too small to count


def seconds_of_pairs(n_pairs: int, n_features: int) -> float:
    """Seconds in which the nearest among so many pairs are found."""
    return n_pairs * (1.2 * rates().value + 2.0 * n_features * rates().product)


def placing_seconds(n: int, m: int, n_features: int) -> float:
    """Seconds in which n points are placed among m that are embedded."""
    means = _CELLS_OF_MEANS * n * n_features * rates().cell
    return seconds_of_pairs(n * m, n_features) + means


def rows_in_time(metric: Any, points: np.ndarray, source: Source) -> Any:
    """Rows that a time limit leaves time to embed, half of them with labels; a slice for all."""
    ours = isinstance(metric.graph, str) and metric.graph in ("auto", "neighbors")
    if source.codes is None or not (ours and _penalties.as_penalty(metric.penalty).uses_graph):
        return slice(None)
    n, d = points.shape

    def seconds(m: int) -> float:
        placed = 0.0 if m == n else placing_seconds(n, m, d)
        return seconds_of_pairs(m * m, d) + _CELLS * m * rates().cell + placed

    most = most_in_time(seconds, n, _LEAST_ROWS, type(metric).__name__)
    if most == n:
        return slice(None)
    labelled, others = (np.flatnonzero(part) for part in (source.codes >= 0, source.codes < 0))
    classes = coded_targets(source.codes[labelled], points[labelled])
    drawn = classes.sample_of_all(max(most // 2, most - len(others)), _LEAST_OF_CLASS)
    return np.union1d(labelled[drawn], others[evenly(len(others), max(most - len(drawn), 0))])


def learn(
    metric: Any,
    points: Any,
    source: Source,
    start: Any,
    weights: np.ndarray | None,
    *,
    graph: LabelGraph | None = None,
) -> Learned:
    """The embedding by the method that is asked for, or under which hidden labels are found."""
    if not spreads(metric, source):
        if sparse.issparse(points):
            raise ValueError(
                "Got sparse X with settings of the eigenproblem, but expected dense points: try "
                "method='diffusion' with class labels, or X.toarray()."
            )
        warn_of_single(source, _PUSHED)
        found = _learn_eigenvectors(metric, points, source, start, weights)
        assert found is not None  # there is nothing to be better than
        return found
    assert source.codes is not None  # labels spread
    few = Few(source.codes, weights, read_sizes(metric.class_sizes, source.classes, source.codes))
    graph = graph or LabelGraph(metric.graph, metric.n_neighbors, points)
    spread = spread_labels(points, few, graph, metric.lam, n_folds=metric.cv)
    told: dict[str, Any] = {
        "method_": "diffusion",
        "graph_": graph.kind,
        "width_": None,
        "n_neighbors_": graph.n_neighbors or neighbors_among(metric.n_neighbors, len(few.codes)),
        "graph_scores_": {},
        "dimension_scores_": {},
        "lam_": spread.lam,
        "lam_scores_": {} if spread.found is None else {spread.lam: spread.found},
        "nearest_weight_": spread.nearest,
        "_graph": graph,
        "_scores": spread.scores,
        "_reach": graph.reach,
        "_counted": spread.nearest if few.sizes is None else 0.0,
    }
    labelled = source.codes >= 0
    least = max(_choice.FEWEST, _OF_CLASS * few.n_classes)
    enough = spread.found is not None and labelled.sum() >= least
    small = points.shape[0] <= _choice.FULL and not sparse.issparse(points)
    if metric.method == "auto" and few.sizes is None and enough and small:
        found = _learn_eigenvectors(metric, points, source, start, weights, above=spread.found)
        if found is not None:
            found[3]["_graph"] = graph
            return found
    warn_of_lost(graph.part, source.codes)
    warn_of_single(source, _ASSUMED.format(lam=told["lam_"]))
    zeros, geometry = np.zeros(few.n_classes), _penalties.Geometry(None, None, 1.0)
    pairs = Eigenpairs(zeros, spread.shares, zeros, True, spread.n_products)
    return pairs, geometry, labelled, told


def spreads(metric: Any, source: Source) -> bool:
    """Whether labels may spread: where they must, by what is left open otherwise."""
    require_word("method", metric.method, METHODS)
    set_by_hand = _of_eigenvectors(metric, source.codes is not None)
    if metric.method == "diffusion" and set_by_hand:
        raise ValueError(
            f"Got method='diffusion' with {' and '.join(set_by_hand)}, but expected class labels "
            "and defaults: these belong to method='eigenvectors'."
        )
    spread = _may_spread(metric, set_by_hand)
    if metric.class_sizes is not None and not spread:
        raise ValueError(
            "Got class_sizes with settings of the eigenproblem, but expected method='diffusion' "
            "and class labels: eigenvectors know no sizes."
        )
    return spread


def _of_eigenvectors(metric: Any, labelled: bool = True) -> list[str]:
    """Names of what is set by hand and means nothing to labels that spread."""
    usual = isinstance(metric.cost, str) and metric.cost == "robust"
    plain = isinstance(metric.penalty, str) and metric.penalty == "laplacian"
    given = {
        "pairs or a cost_graph": not labelled,
        "n_components": metric.n_components is not None,
        "penalty": not plain,
        "cost": not usual,
        "n_votes": metric.n_votes != 1,
    }
    return [name for name, is_given in given.items() if is_given]


def _may_spread(metric: Any, set_by_hand: list[str]) -> bool:
    """Whether ``method`` asks for labels that spread, or leaves it open, and nothing decides."""
    open_ = metric.method == "auto" and is_auto(metric.lam) and not set_by_hand
    return metric.method == "diffusion" or open_


def _learn_eigenvectors(
    metric: Any,
    points: np.ndarray,
    source: Source,
    start: Any,
    weights: np.ndarray | None,
    *,
    above: float | None = None,
) -> Learned | None:
    """By the paper's method; None where fewer than a share of hidden labels are found."""
    cost, penalty = as_cost(metric.cost), _penalties.as_penalty(metric.penalty)
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

    def embed(geometry: _penalties.Geometry, d: int, lam: float, known: Any) -> Eigenpairs:
        some = C
        if np.isfinite(lam) and known is not codes:  # some labels are hidden
            some = weighted(*Source(None, known).graphs(points, cost.n_neighbors))
        return solve(geometry, some, lam, d, start=start, **options)

    graphs = iter([_choice.Graph("none", None, None)])
    if penalty.uses_graph:
        graphs = _choice.candidate_graphs(metric.graph, metric.n_neighbors, points, codes)
    open_ = all(map(is_auto, (metric.graph, metric.n_neighbors, lam))) and penalty.uses_graph
    choice = _choice.choose_geometry(
        graphs, partial(penalty.geometry, points), embed, codes, metric.n_components, lam,
        len(points), n_folds=metric.cv,
        points=points if open_ and metric.n_components is None else None,
    )  # fmt: skip
    if above is not None and choice.hits < above:
        return None
    if choice.graph.gaps:
        _penalties.warn_of_gaps(choice.graph.weights)
    kind, size = choice.graph.kind, choice.graph.size
    neighbors = size if kind == "neighbors" else metric.n_neighbors
    told: dict[str, Any] = {
        "graph_": kind,
        "width_": size if kind == "gaussian" else None,
        "n_neighbors_": neighbors_among(neighbors, len(points)),
        "graph_scores_": choice.graph_scores,
        "dimension_scores_": choice.dimension_scores,
        "nearest_weight_": 0.0,
    }
    spoken_of = np.asarray((parts[0] + parts[1]).sum(axis=1)).ravel() > 0
    spoken_of = spoken_of if codes is None else codes >= 0
    geometry, d = choice.geometry, choice.n_components
    if choice.graph is _choice.POINTS:
        found = Eigenpairs(np.zeros(d), points, np.zeros(d), True, 0)
        told |= {"method_": "points", "lam_": np.inf, "lam_scores_": {}}
        return found, geometry, spoken_of, told
    scores: dict[float, float] = {}
    if not isinstance(lam, str):
        least = cost.least_lam(geometry.scale)
        if C.nnz and lam < least:
            warn(
                f"Got lam={metric.lam!r}, but only from {least:.4g} on labels cannot take the "
                "embedding over: try a larger lam, or 'auto'."
            )
    elif choice.lam is not None:
        lam = choice.lam
    else:  # every λ starts from the embedding without labels
        begun = time.monotonic()
        start = (choice.alone or embed(geometry, d, np.inf, codes)).vectors[:, :d]

        def coordinates(known: np.ndarray, lam: float) -> np.ndarray:
            V = embed(geometry, d, lam, known).vectors if np.isfinite(lam) else start
            return _penalties.coordinates_of(geometry, V)

        how: Any = {"n_folds": metric.cv, "n_votes": metric.n_votes, "rng": rng}
        with time_kept(time.monotonic() - begun):  # for one more
            lam, scores = _choice.choose_lam(coordinates, codes, geometry.scale, **how)
    told |= {"method_": "eigenvectors", "lam_": float(lam), "lam_scores_": scores}
    return embed(geometry, d, lam, codes), geometry, spoken_of, told


def solve(
    geometry: _penalties.Geometry, C: sparse.csr_array, lam: float, n_components: int, **options
) -> Eigenpairs:
    """Smallest eigenpairs of ``C' + λP``, problem (3); coefficients where there is a basis."""
    if np.isinf(lam):  # the penalty alone
        C, lam = 0.0 * C, 1.0
    cost = gram_form(C)
    if geometry.basis is not None:
        return _solve_in_range(geometry, cost, lam, n_components)
    A = lam * geometry.matrix
    if sparse.issparse(A):
        A = (A + cost).tocsr()
    else:
        entries = cost.tocoo()
        np.add.at(A, (entries.row, entries.col), entries.data)
    return smallest_eigenvectors(A, n_components, null=geometry.null, **options)


def _solve_in_range(
    geometry: _penalties.Geometry, cost: sparse.csr_array, lam: float, n_components: int
) -> Eigenpairs:
    """Eq. (7), with x = Uβ in range(K): ``Uᵀ(C' + λM)U + λS⁻¹``."""
    # S⁻¹ spans ten orders of magnitude and would drown the small eigenvalues that are wanted. Its
    # inverse does not: with σ such that the matrix plus σ is positive, the largest eigenvalues of
    # S^½ (λI + S^½ (Uᵀ(C' + λM)U + σI) S^½)⁻¹ S^½ are those of the smallest.
    U, S = geometry.basis, geometry.values
    assert U is not None and S is not None  # for the type checker: the caller has looked
    B = U.T @ (cost @ U)
    if geometry.matrix is not None:
        B = B + lam * geometry.matrix
    shift = float(abs(cost).sum(axis=1).max()) if cost.nnz else 0.0
    B[np.diag_indices_from(B)] += shift
    root = np.sqrt(S)
    inner = root[:, None] * B * root
    inner[np.diag_indices_from(inner)] += lam
    T = linalg.solve_triangular(linalg.cholesky(inner, lower=True), np.diag(root), lower=True)
    r = len(S)
    inverse, V = eigh(T.T @ T, subset=(r - n_components, r - 1))
    inverse, V = inverse[::-1], V[:, ::-1]
    residuals = np.linalg.norm(T.T @ (T @ V) - V * inverse, axis=0)
    return Eigenpairs(1.0 / inverse - shift, V, residuals, True, 0)


def peak_bytes(metric: Any, n: int, n_features: int) -> int:
    """Bytes that a fit takes besides the data, within a factor of two from 700 points on."""
    require_word("method", metric.method, METHODS)
    penalty = _penalties.as_penalty(metric.penalty)
    automatic = isinstance(metric.n_neighbors, str)
    name = metric.graph if isinstance(metric.graph, str) else ""
    d = min(metric.n_components or max(_choice.DIMENSIONS), n)
    k = neighbors_among(max(_choice.NEIGHBORS) if automatic else metric.n_neighbors, n)
    total = _BLOCKS + 8 * n * (3 * n_features + 10 * d)  # points and eigenvectors
    if penalty.uses_graph:
        full = name == "gaussian" or (name == "auto" and automatic and n <= _choice.FULL)
        total += 8 * 4 * n * n if full else 60 * n * k  # with its transpose and penalty
    if isinstance(penalty, _penalties.KernelPenalty):
        space = penalty._fresh_space(n)
        rank = min(getattr(space, "n_components", None) or n, n)
        in_range = 8 * rank * (2 * n + 5 * rank)  # the basis of the range, and eq. (7) in it
        total += max(in_range, space.estimate_memory(n, n_features))
    else:
        # A factor of the graph's matrix, and its other triangle.
        factored = n <= DIRECT and _may_spread(metric, _of_eigenvectors(metric))
        total += 8 * n * (4 * n if n <= _DENSE else 2 * n if factored else 2 * (d + 74))
    return int(total)
