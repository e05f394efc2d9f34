"""What newcomers do wrong first: every refusal names a way out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from kernelmetric import (
    ITML,
    LMNN,
    NCA,
    Kernelized,
    MetricClassifier,
    TransductiveDistance,
    compress,
    cross_validate_pairs,
    save,
    to_faiss,
    to_onnx,
)
from kernelmetric.evaluation import PairVerifier

X, y = load_iris(return_X_y=True)
FRAME = pd.DataFrame({"length": X[:, 0], "city": np.where(y > 0, "Rome", "Bonn")})

MISTAKES = {
    "a frame with text": (
        lambda: LMNN().fit(FRAME, y),
        ValueError,
        "LMNN expected numbers .*'Bonn'.*Try a data frame with Kernelized.*TableSchema",
    ),
    "words without a kernel": (
        lambda: Kernelized(LMNN()).fit(["a", "b"] * 20, [0, 1] * 20),
        ValueError,
        "Kernelized expected numbers .*'a'",
    ),
    "rows as dicts": (
        lambda: TransductiveDistance().fit([{"a": 1}] * 20, [0, 1] * 10),
        TypeError,
        "TransductiveDistance expected numbers .*not 'dict'",
    ),
    "the name of a column as y": (
        lambda: MetricClassifier().fit(FRAME, "city"),
        ValueError,
        r"Got y='city', but expected a label for every row: .*X\.pop\('city'\)",
    ),
    "numbers as classes": (
        lambda: MetricClassifier().fit(X, X[:, 0] / 3),
        ValueError,
        r"Unknown label type: continuous\..*Try MetricRegressor or MLKR",
    ),
    "a kernel for a linear learner": (
        lambda: LMNN(kernel="rbf"),
        TypeError,
        r"'kernel': it is linear by itself; try Kernelized\(LMNN\(\), kernel=\.\.\.\)",
    ),
    "pairs for a learner from labels": (
        lambda: LMNN().fit(X, pairs=[[0, 1]]),
        TypeError,
        r"^LMNN\.fit got an unexpected keyword argument 'pairs': .*From pairs learn ITML",
    ),
    "chunks for a learner from pairs": (
        lambda: ITML().fit(X, chunks=y),
        TypeError,
        r"^ITML\.fit got .*'chunks': it takes X, y, similar.*from chunks RCA",
    ),
    "labels in place of pairs": (
        lambda: cross_validate_pairs(PairVerifier(LMNN()), X, y),
        ValueError,
        r"of labels y Pairs\.from_labels\(y, per_point=5\)",
    ),
    "an array for a metric of a frame": (
        lambda: Kernelized(NCA(1)).fit(FRAME, y).transform(X[:, :2]),
        ValueError,
        r"try pandas\.DataFrame\(X, columns=metric\.feature_names_in_\)",
    ),
    "the path first": (
        lambda: save("a.metric", LMNN()),
        TypeError,
        r"Got 'a\.metric' first, but expected save\(metric, path\)",
    ),
    "the points first": (
        lambda: to_faiss(X, LMNN()),
        TypeError,
        r"^Got ndarray, but expected a fitted metric or predictor: to_faiss\(metric, X\)\.$",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_first_mistake_is_answered_with_a_way_out(name):
    mistake, kind, said = MISTAKES[name]
    with pytest.raises(kind, match=said):
        mistake()


@pytest.mark.parametrize("ship", [to_onnx, lambda metric: compress(metric, 5)])
def test_what_is_no_estimator_cannot_be_shipped(ship):
    with pytest.raises(TypeError, match="Got list, but expected a fitted metric or predictor"):
        ship([1, 2])
