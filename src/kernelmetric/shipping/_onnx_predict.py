"""Votes of neighbours, linear scores and trees as nodes of an ONNX model."""

from typing import Any

import numpy as np

from kernelmetric.prediction import MetricClassifier
from kernelmetric.prediction._classifier import DOUBT, FARTHEST, LEAST_SHARE
from kernelmetric.prediction._features import FARTHEST_FEATURE
from kernelmetric.prediction._neighbors import spread
from kernelmetric.shipping._maps import Affine
from kernelmetric.shipping._onnx_graph import Columns, OnnxGraph, squared_distances


def feature_nodes(predictor: Any, graph: OnnxGraph, x: Columns) -> list[Any]:
    """What a line, trees and neighbours say by the features; None for those that do not count."""
    scores = vars(predictor).get("_features")
    if scores is None:
        return []
    line = graph.affine(x, Affine(scores.coef, scores.intercept[None, :])).name
    mean, size = scores.location
    located = graph.add("Div", graph.shift(x, mean, size).name, graph.constant(size[None, :]))
    located = graph.clipped(located, -FARTHEST_FEATURE, FARTHEST_FEATURE)
    single, weights = graph.cast(located, "float32"), predictor.weights_
    trees = _trees(scores, graph, single) if weights[3] else None
    at = Columns(graph.cast(single, graph.working, given="float32"), x.width)
    vote = predictor._feature_neighbors, predictor._feature_width
    found = _neighbors(predictor, graph, at, predictor._points, *vote) if weights[4] else None
    return [line, trees, found and _votes(predictor, graph, *found)]


def _trees(scores: Any, graph: OnnxGraph, x: str) -> str:
    """Mean votes of the leaves that rows reach, in single precision, as trees compare."""
    nodes, p = scores.nodes, scores.votes.shape[1]
    begins = np.append(scores.roots, len(nodes))
    tree = np.repeat(np.arange(len(scores.roots)), np.diff(begins))
    place = np.arange(len(nodes)) - scores.roots[tree]
    inner, leaves = nodes[:, 0] > 0, np.flatnonzero(nodes[:, 0] == 0)
    left, right = np.where(inner[:, None], nodes[:, :2] - scores.roots[tree][:, None], 0).T
    cuts = scores.cuts.astype(np.float32)
    # A number of single precision is below a cut if it is below the last such number before it.
    cuts = np.where(cuts > scores.cuts, np.nextafter(cuts, np.float32(-np.inf)), cuts)
    votes = graph.add(
        "TreeEnsembleRegressor",
        x,
        domain="ai.onnx.ml",
        aggregate_function="AVERAGE",
        n_targets=p,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=place.tolist(),
        nodes_featureids=nodes[:, 2].tolist(),
        nodes_modes=np.where(inner, "BRANCH_LEQ", "LEAF").tolist(),
        nodes_values=np.where(inner, cuts, 0.0).tolist(),
        nodes_truenodeids=left.tolist(),
        nodes_falsenodeids=right.tolist(),
        target_treeids=np.repeat(tree[leaves], p).tolist(),
        target_nodeids=np.repeat(place[leaves], p).tolist(),
        target_ids=np.tile(np.arange(p), len(leaves)).tolist(),
        target_weights=scores.votes[leaves].ravel().tolist(),
    )
    return graph.cast(votes, graph.working, given="float32")


def prediction_nodes(
    predictor: Any, graph: OnnxGraph, E: Columns, features: list[Any], coverage: Any
) -> None:
    """Give out what a predictor says of points, from their learned coordinates and features."""
    wider = max(graph.dtype, graph.precision)
    said = [name and graph.cast(name, graph.working, given=wider) for name in features]
    vote = predictor.n_neighbors_, predictor.temperature_
    near, weights = _neighbors(predictor, graph, E, predictor.embedding_, *vote)
    votes = _votes(predictor, graph, near, weights)
    line = graph.affine(E, Affine(predictor.coef_, predictor.intercept_[None, :])).name
    if isinstance(predictor, MetricClassifier):
        _classes(predictor, graph, votes, [line, *said])
        return
    scores = zip(predictor.weights_, [votes, line, *said], strict=True)
    found = graph.weighted(scores, predictor.bias_)
    graph.output("prediction", graph.add("Squeeze", found, graph.constant([1], "int64")))
    if coverage is not None:
        away = graph.add("Sub", _targets(predictor, graph, near), votes)
        squares = _mean(graph, weights, graph.add("Mul", away, away))
        local = graph.add("Add", squares, graph.constant(predictor.floor_**2))
        half = graph.add("Sqrt", local)
        half = graph.add("Mul", half, graph.constant(predictor._quantile(coverage)))
        ends = [Columns(graph.add(how, found, half), 1) for how in ("Sub", "Add")]
        graph.output("interval", graph.concatenated(ends).name, 2)


def _neighbors(
    predictor: Any, graph: OnnxGraph, at: Columns, points: np.ndarray, k: int, width: float
) -> tuple[str, str]:
    """Numbers of the nearest training points, and what each of them counts, (n, k)."""
    squares = squared_distances(graph, at, points.astype(np.float64))
    found, near = graph.smallest(squares, min(k, len(points)))
    width *= spread(points)
    first = graph.add("Gather", found, graph.constant([0], "int64"), axis=1)
    apart = graph.add("Sub", first, found)
    weights = graph.add("Exp", graph.add("Mul", apart, graph.constant(0.5 / width**2)))
    mass = vars(predictor).get("_mass")
    if mass is not None:
        weights = graph.add("Mul", weights, graph.add("Gather", graph.constant(mass), near))
    return near, weights


def _votes(predictor: Any, graph: OnnxGraph, near: str, weights: str) -> str:
    """What neighbours say: logarithms of shares of the classes, or a mean."""
    if isinstance(predictor, MetricClassifier):
        return _log_shares(predictor, graph, near, weights)
    return _mean(graph, weights, _targets(predictor, graph, near))


def _targets(predictor: Any, graph: OnnxGraph, near: str) -> str:
    return graph.add("Gather", graph.constant(predictor.targets_), near)


def _mean(graph: OnnxGraph, weights: str, values: str) -> str:
    total = graph.row_sums(weights)
    return graph.add("Div", graph.row_sums(graph.add("Mul", weights, values)), total)


def _log_shares(predictor: Any, graph: OnnxGraph, near: str, weights: str) -> str:
    """Logarithms of the classes' shares in the votes, with one more vote that is divided."""
    one, n_classes = graph.constant([1], "int64"), len(predictor.classes_)
    hits = graph.constant(predictor._codes[:, None] == np.arange(n_classes))
    hits = graph.add("Gather", hits, near)  # (n, k, c)
    votes = graph.add("MatMul", graph.add("Unsqueeze", weights, one), hits)
    votes = graph.add("Squeeze", votes, one)
    votes = graph.add("Add", votes, graph.constant(predictor._priors()))
    total = graph.add("Add", graph.row_sums(weights), graph.constant(1.0))
    return graph.add("Log", graph.add("Div", votes, total))


def _classes(predictor: Any, graph: OnnxGraph, votes: str, said: list[Any]) -> None:
    """Give out probabilities, and the classes of least cost."""
    lines = [graph.clipped(name, -FARTHEST, FARTHEST) for name in said[:2]]
    scores = [votes, *lines]
    if vars(predictor).get("_by_shares"):
        shares = np.maximum(predictor._priors(), LEAST_SHARE)
        scores = [votes, *(_log_scale(graph, line, shares) for line in lines)]
        if said[2:] and said[2]:
            voted = graph.add("Mul", said[2], graph.constant((1.0 - DOUBT) / shares))
            voted = graph.add("Add", voted, graph.constant(DOUBT))
            said[2] = graph.add("Log", voted)
        scores += said[2:]
    found = graph.weighted(zip(predictor.weights_, scores, strict=True), predictor.biases_)
    chances = graph.add("Softmax", found, axis=1)
    costs = predictor._costs()
    costs = graph.add("MatMul", chances, graph.constant(costs - costs.max(axis=1, keepdims=True)))
    best = graph.add("ArgMin", costs, axis=1, keepdims=0)
    classes = predictor.classes_
    kind = np.dtype(object) if classes.dtype.kind == "U" else classes.dtype
    label = graph.add("Gather", graph.constant(classes, kind), best)
    graph.output("label", label, kind=graph.onnx.helper.np_dtype_to_tensor_dtype(kind))
    graph.output("probabilities", chances, len(classes))


def _log_scale(graph: OnnxGraph, line: str, shares: np.ndarray) -> str:
    """Linear scores on the scale of the logarithm of a probability about the share of its class."""
    t = graph.add("Mul", graph.add("Add", line, graph.constant(1.0)), graph.constant(0.5 / shares))
    t = graph.add("Sub", t, graph.constant(1.0))
    size = graph.add("Log", graph.add("Add", graph.add("Abs", t), graph.constant(1.0)))
    return graph.add("Mul", graph.add("Sign", t), size)
