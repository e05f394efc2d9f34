"""Predictors shipped: ONNX models and indices that say what the predictor says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelmetric import (
    LMNN,
    MLKR,
    NCA,
    Kernelized,
    MetricClassifier,
    MetricRegressor,
    RandomFeatures,
    compress,
    load,
    memory_budget,
    save,
    to_faiss,
    to_onnx,
)
from kernelmetric.prediction import _features
from kernelmetric.prediction._features import FeatureScores
from kernelmetric.selection import RidgeKPCA

runtime = pytest.importorskip("onnxruntime", reason="comes with the extra `onnx`")
pytest.importorskip("onnx", reason="comes with the extra `onnx`")
NAMES = np.array(["a", "bb", "ccc"])


def answers(model, X, **options):
    """What onnxruntime says of points, by the names of the outputs."""
    made = to_onnx(model, **options)
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    kind = np.float64 if "double" in given.type else np.float32
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {given.name: X.astype(kind)}), strict=True))


def assert_same_classes(model, X, *, encoded=None, atol=1e-6, **options):
    said = answers(model, X if encoded is None else encoded, **options)
    assert list(said) == ["label", "probabilities"]
    np.testing.assert_allclose(said["probabilities"], model.predict_proba(X), atol=atol)
    assert said["label"].tolist() == model.predict(X).tolist()


def assert_same_numbers(model, X, *, encoded=None, coverage=0.9):
    said = answers(model, X if encoded is None else encoded, coverage=coverage)
    size = np.ptp(model.targets_)
    np.testing.assert_allclose(said["prediction"], model.predict(X), atol=1e-5 * size)
    expected = model.predict_interval(X, coverage)
    np.testing.assert_allclose(said["interval"], expected, atol=1e-5 * size)


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """Of any number of trees, the model says what the classifier says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_features, "_N_TREES", 12)
        yield


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))
    return X[order[:90]], y[order[:90]], X[order[90:]]


@pytest.fixture(scope="module")
def classifier(wine):
    X, y, _ = wine
    return MetricClassifier().fit(X, NAMES[y])


def altered(model, **attributes):
    """A copy of a fitted model with some attributes of another fit."""
    copied = type(model)()
    vars(copied).update(vars(model) | attributes)
    return copied


def test_a_classifier_and_its_model_say_the_same(classifier, wine):
    assert_same_classes(classifier, wine[2])
    assert_same_classes(classifier, wine[2][:1])


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "weights",
    [*np.eye(5), (0.5, 0.7, 0.3, 0.6, 0.4), (0.5, 0, 0, 0, 0.4), np.zeros(5)],
)
def test_every_score_counts_as_much_there(weights, classifier, wine):
    assert_same_classes(altered(classifier, weights_=np.array(weights, float)), wine[2])


@pytest.mark.every(3)
@pytest.mark.parametrize("k", [1, 3, 90])
def test_so_many_neighbours_vote_there(k, classifier, wine):
    metric, features = np.eye(5)[[0, 4]]
    for width in (0.1, 100.0):
        model = altered(classifier, n_neighbors_=k, temperature_=width, weights_=metric)
        assert_same_classes(model, wine[2])
        own = {"_feature_neighbors": k, "_feature_width": width, "weights_": features}
        assert_same_classes(altered(classifier, **own), wine[2])


def test_costs_decide_there_too(classifier, wine):
    costs = np.array([[0, 9, 1], [1, 0, 40], [5, 1, 0]])
    model = altered(classifier, decision=costs, weights_=np.array([0.2, 0.1, 0.1, 0.1, 0.1]))
    plain = altered(model, decision="accuracy")
    assert model.predict(wine[2]).tolist() != plain.predict(wine[2]).tolist()
    assert_same_classes(model, wine[2])


@pytest.mark.slow
def test_a_model_without_trees_is_of_single_precision_unless_asked(wine):
    X, y, new = wine
    model = MetricClassifier(NCA(3), class_weight="balanced").fit(X, y == 1)
    assert_same_classes(model, new.astype(np.float32).astype(float))
    made = to_onnx(model)
    assert made.graph.input[0].type.tensor_type.elem_type == 1
    assert [used.domain for used in made.opset_import] == [""]
    assert_same_classes(model, new, dtype="float64", atol=1e-12)


@pytest.mark.slow
def test_weights_of_rows_count_there(wine):
    X, y, new = wine
    weights = np.random.RandomState(1).uniform(0, 3, len(y)) * (np.arange(len(y)) % 4 > 0)
    model = MetricClassifier(cv=2).fit(X, y + 5, sample_weight=weights)
    assert_same_classes(altered(model, weights_=np.array([0.6, 0.2, 0.2, 0.2, 0.3])), new)


@pytest.mark.slow
def test_features_are_those_before_the_steps_of_the_metric(wine):
    X, y, new = wine
    metric = make_pipeline(StandardScaler(), Kernelized(LMNN(max_iter=5, tol=0.1)))
    model = MetricClassifier(metric, use_features=True, cv=2).fit(X, y)
    model = altered(model, weights_=np.array([0.6, 0.2, 0.5, 0.5, 0.3]))
    assert_same_classes(model, new)
    scaler = MinMaxScaler().fit(X)
    inner = MetricClassifier(NCA(2), use_features=True, cv=2).fit(scaler.transform(X), y)
    inner = altered(inner, weights_=np.array([0.6, 0.2, 0.5, 0.5, 0.3]))
    piped = make_pipeline(scaler, inner)
    said = answers(piped, new)
    np.testing.assert_allclose(said["probabilities"], piped.predict_proba(new), atol=1e-6)


def test_a_frame_is_encoded_outside(wine):
    X, y, new = wine
    frame, later = (pd.DataFrame({"a": Z[:, 0], "b": Z[:, 6]}) for Z in (X, new))
    frame["c"], later["c"] = (np.where(Z[:, 9] > 4, "red", "white") for Z in (X, new))
    frame.loc[3, "a"] = later.loc[2, "a"] = np.nan
    model = MetricClassifier(cv=2).fit(frame, NAMES[y])
    encoded = model.recipe_.schema.transform(later)
    assert to_onnx(model).graph.input[0].name == "features"
    assert_same_classes(model, later, encoded=encoded)
    metric = model.metric_
    said = answers(metric, encoded, dtype="float64")
    np.testing.assert_allclose(said["Z"], metric.transform(later), atol=1e-6)
    with pytest.raises(ValueError, match="a later step reads a data frame"):
        to_onnx(make_pipeline(StandardScaler().fit(X), model))


def test_a_model_of_version_0_1_is_as_it_was(wine):
    X, y, new = wine
    model = MetricClassifier(NCA(2), use_features=False).fit(X, y)
    assert_same_classes(altered(model, _by_shares=None), new, dtype="float64")


def test_a_space_of_landmarks_is_a_formula(wine):
    X, y, new = wine
    space = RidgeKPCA(n_landmarks=40)
    with pytest.MonkeyPatch.context() as patch, memory_budget("10MB"):
        patch.setattr("kernelmetric.selection._ridge_kpca.ALL_ROWS", 50)
        patch.setattr("kernelmetric.selection._ridge_kpca.HELD_ROWS", 50)
        metric = Kernelized(NCA(max_iter=5, tol=0.1), "rbf", space).fit(X / X.std(axis=0), y)
    assert metric.space_.n_landmarks_ == 40
    said = answers(metric, new / X.std(axis=0), dtype="float64")
    expected = metric.transform(new / X.std(axis=0))
    np.testing.assert_allclose(said["Z"], expected, atol=1e-8 * np.abs(expected).max())


# --- numbers ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def regressor():
    X, y = load_diabetes(return_X_y=True)
    return MetricRegressor(cv=2).fit(X[:120], y[:120]), X[120:200]


def test_numbers_and_their_intervals_are_the_same(regressor):
    model, new = regressor
    assert_same_numbers(model, new)
    assert_same_numbers(
        altered(model, weights_=np.array([0.3, 0.2, 0.3, 0.4, 0.2])), new, coverage=0.5
    )
    assert answers(model, new[:1])["prediction"].shape == (1,)
    assert list(answers(model, new, coverage=None)) == ["prediction"]


def test_an_interval_that_nothing_can_promise_is_refused(regressor):
    with pytest.raises(ValueError, match=r"Got coverage=0\.9999.*can promise at most"):
        to_onnx(regressor[0], coverage=0.9999)


def test_weights_count_among_numbers():
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.RandomState(1).uniform(0, 3, 100)
    model = MetricRegressor(MLKR(2, tol=1e-3), cv=2)
    model.fit(X[:100], y[:100], sample_weight=weights)
    assert_same_numbers(altered(model, weights_=np.array([0.7, 0.3])), X[100:])


# --- trees --------------------------------------------------------------------------------------


def test_rows_at_a_threshold_fall_to_the_side_they_fall_here(classifier, wine):
    X, _, _ = wine
    scores, model = classifier._features, altered(classifier, weights_=np.eye(5)[3])
    at = np.flatnonzero(scores.nodes[:, 0] > 0)[:200]
    feature = scores.nodes[at, 2]
    rows = np.repeat(X.mean(axis=0)[None], 3 * len(at), axis=0)
    places = scores.cuts[at] * scores.location[1, feature] + scores.location[0, feature]
    for i, end in enumerate((-np.inf, np.inf, None)):
        moved = places if end is None else np.nextafter(places, end)
        rows[np.arange(len(at)) + i * len(at), feature] = moved
    assert_same_classes(model, rows)


def test_cuts_that_single_precision_lacks_part_the_same_numbers():
    cut = np.float64(np.float32(0.1)) - 1e-12  # single precision would round it up
    below, above = np.nextafter(np.float32(0.1), np.float32(0)), np.float32(0.1)
    scores = FeatureScores(
        np.zeros((1, 2)),
        np.zeros(2),
        np.array([[0.0], [1.0]]),
        np.array([0, 3], dtype=np.int32),
        np.array([[1, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]], dtype=np.int32),
        np.array([cut, 0, 0, 0]),
        np.array([[0.5, 0.5], [1, 0], [0, 1], [1, 0]], dtype=np.float32),
    )
    X = np.array([[0.0], [1.0], [0.2], [0.9]])
    model = MetricClassifier(NCA(1), use_features=False, cv=2).fit(X, [0, 1, 0, 1])
    near = {"_points": scores.located(X), "_feature_neighbors": 1, "_feature_width": 1.0}
    model = altered(model, weights_=np.array([0, 0, 0, 1.0, 0]), _features=scores, **near)
    rows = np.array([[below], [above], [cut]], dtype=np.float64)
    expected = scores(rows)[:, :, 1]
    assert expected[:, 0].tolist() == [1.0, 0.5, 0.5]  # the last is rounded up there too
    assert_same_classes(model, rows)


def test_trees_that_count_for_nothing_are_left_out(classifier):
    made = to_onnx(altered(classifier, weights_=np.array([1.0, 1, 1, 0, 1])))
    assert "TreeEnsembleRegressor" not in {node.op_type for node in made.graph.node}


# --- indices and smaller predictors -------------------------------------------------------------


def test_the_index_of_a_predictor_finds_its_neighbours(classifier, wine):
    pytest.importorskip("faiss", reason="comes with the extra `faiss`")
    X, y, new = wine
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    for model in (classifier, MetricClassifier(NCA(3)).fit(X, y, sample_weight=weights)):
        index = to_faiss(model)
        queries = model.metric_.transform(new).astype(np.float32)
        squared, rows = index.search(queries, 4)
        distances, expected = model.kneighbors(new, 4)
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_allclose(np.sqrt(squared), distances, rtol=1e-3, atol=1e-4)
    assert to_faiss(model, new).ntotal == len(new)
    with pytest.raises(ValueError, match="Got NCA and X=None, but expected a metric with"):
        to_faiss(model.metric_)


@pytest.mark.slow
def test_a_smaller_predictor_predicts_the_same(classifier, wine, tmp_path):
    X, _, new = wine
    small = compress(classifier, 30)
    assert len(small.metric_.space_.anchors_) == 30
    assert len(classifier.metric_.space_.anchors_) == len(X)
    assert np.mean(small.predict(new) == classifier.predict(new)) > 0.95
    assert np.abs(np.median(small.score_samples(new)) + 1) < 0.2
    assert_same_classes(small, new)
    places, few = classifier.metric_.places(X), small.metric_.places(X)
    np.testing.assert_array_equal(few, small.metric_.transform(X))  # which know no row by heart
    assert np.abs(few - places).max() > 1e-3
    np.testing.assert_array_equal(small.embedding_, classifier.embedding_)
    again = load(save(small, tmp_path / "small.km"))
    np.testing.assert_allclose(again.predict_proba(new), small.predict_proba(new), atol=1e-12)
    linear = MetricClassifier(NCA(2), use_features=False).fit(X, np.arange(len(X)) % 2)
    with pytest.raises(ValueError, match="expected a metric with a kernel"):
        compress(linear, 5)


def test_a_metric_of_a_table_is_made_smaller(wine):
    X, y, new = wine
    frame, later = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(new).add_prefix("x")
    metric = Kernelized(NCA(2, max_iter=20, tol=0.1), "rbf").fit(frame, y)
    small = compress(metric, 40)
    np.testing.assert_allclose(
        compress(metric, 40, frame).transform(later), small.transform(later), atol=1e-6
    )
    Z = metric.transform(later)
    assert np.linalg.norm(small.transform(later) - Z) < 0.3 * np.linalg.norm(Z - Z.mean(axis=0))


def test_landmarks_that_explain_the_map_beat_others(wine):
    """Of so many points drawn by chance, no draw of twenty is as good."""
    X, y, new = wine
    X, new = X / X.std(axis=0), new / X.std(axis=0)
    metric = Kernelized(NCA(2, max_iter=20, tol=0.1), "rbf").fit(X, y)
    T, T_new = metric.transform(X), metric.transform(new)

    def lost(landmarks):
        K, K_new = (metric.kernel_(Z, landmarks) for Z in (X, new))
        level, line = K.mean(axis=0), np.linalg.lstsq(K - K.mean(axis=0), T - T.mean(axis=0))[0]
        return np.linalg.norm((K_new - level) @ line + T.mean(axis=0) - T_new)

    rng = np.random.RandomState(0)
    drawn = [lost(X[rng.choice(len(X), 8, replace=False)]) for _ in range(20)]
    assert lost(compress(metric, 8).space_.anchors_) < min(drawn)


def test_random_features_give_way_to_landmarks(wine):
    X, y, new = wine
    X, new = X / X.std(axis=0), new / X.std(axis=0)
    space = RandomFeatures(200, random_state=0)
    metric = Kernelized(NCA(2, max_iter=5, tol=0.1), "rbf", space).fit(X, y)
    assert compress(metric, 40, X).compression_["variance_lost"] < 0.3
