"""Shipping: ONNX models, faiss indexes and smaller metrics do what the metric does."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, StandardScaler
from sklearn.svm import SVC

from kernelmetric import (
    DNE,
    KPCA,
    NCA,
    RBF,
    AlignedScales,
    Delta,
    IdealizedKernel,
    KernelAlignment,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Linear,
    Nystroem,
    Polynomial,
    RandomFeatures,
    compress,
    load,
    memory_budget,
    save,
    to_faiss,
    to_onnx,
)
from kernelmetric.kernels import FunctionKernel, Tanimoto, polynomial_degrees
from kernelmetric.metric import places_of
from kernelmetric.shipping import MissingExtraError
from kernelmetric.shipping._maps import metric_map

# Few directions or a kernel of no particular width: some metrics are worse than their kernel.
pytestmark = pytest.mark.filterwarnings("ignore::kernelmetric.kernelized._places.NotBetterWarning")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300], X[300:500]


# --- ONNX ---------------------------------------------------------------------------------------


def difference(metric, X, **options):
    """Largest difference between onnxruntime's output and ours, beside the largest output."""
    pytest.importorskip("onnx", reason="comes with the extra `onnx`")
    runtime = pytest.importorskip("onnxruntime", reason="comes with the extra `onnx`")
    model = to_onnx(metric, **options)
    assert [opset.version for opset in model.opset_import] == [17]
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    dtype = options.get("dtype", "float32")
    given = X.astype(dtype)
    (Z,) = session.run(["Z"], {"X": given})
    assert Z.dtype == dtype
    expected = metric.transform(given.astype(np.float64))
    assert Z.shape == expected.shape
    (first,) = session.run(["Z"], {"X": given[:1]})  # any number of points will do
    np.testing.assert_allclose(first, Z[:1], atol=1e-5 * np.abs(Z).max())
    return np.abs(Z - expected).max() / np.abs(expected).max()


def test_every_learner_is_the_same_in_onnx(learner, labelled, fresh):
    assert difference(learner.fit(*labelled), fresh) < 1e-6


@pytest.mark.every(2)
def test_every_space_is_the_same_in_onnx(space, labelled, fresh):
    metric = Kernelized(DNE(2), RBF(gamma=0.3), space).fit(*labelled)
    assert difference(metric, fresh) < 1e-6
    assert difference(metric, labelled[0], dtype="float64") < 1e-9


@pytest.mark.every(2)
def test_every_kernel_is_the_same_in_onnx(kernel, labelled, fresh):
    if isinstance(kernel, Tanimoto):
        pytest.skip("refused: its formula is not written for ONNX")
    metric = Kernelized(DNE(2), kernel, KPCA(10)).fit(*labelled)
    fresh[0] = 0.0  # a point without direction, for the cosine
    assert difference(metric, fresh) < 1e-6
    assert difference(metric, labelled[0], dtype="float64") < 1e-9


@pytest.mark.slow
@pytest.mark.every(3)
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        Polynomial(degree=3, gamma="auto"),
        KernelAlignment(),
        KernelAlignment(polynomial_degrees(), centered=True),
        AlignedScales(),
        "auto",
    ],
    ids=repr,
)
def test_kernels_of_digits_are_the_same_in_onnx_to_1e_5(kernel, digits):
    X, y, new = digits
    # Predictions cancel terms of either sign: of powers, that costs float32 a digit.
    powers = isinstance(kernel, Polynomial) or getattr(kernel, "kernels", None) is not None
    metric = Kernelized(DNE(9), kernel, KPCA() if powers else "auto").fit(X, y)
    assert difference(metric, new) < 1e-6
    assert difference(metric, X) < 1e-6  # training points are mapped as all others
    assert difference(metric, new, precision="float32") < 1e-5


def test_an_offset_of_the_features_costs_no_digits(digits):
    X, y, new = digits
    metric = Kernelized(DNE(9), RBF()).fit(X + 1000.0, y)
    assert difference(metric, new + 1000.0, precision="float32") < 1e-5


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "metric",
    [
        IdealizedKernel("rbf", C=10.0),
        Kernelized(PCA(3), "rbf"),
        KernelizedCV(DNE(3), "poly", cv=2),
        make_pipeline(StandardScaler(), PCA(3), NCA(2)),
        make_pipeline(MinMaxScaler(), StandardScaler(), Kernelized(DNE(2))),
    ],
    ids=lambda metric: type(metric).__name__,
)
def test_other_metrics_are_the_same_in_onnx(metric, labelled, fresh):
    assert difference(metric.fit(*labelled), fresh) < 1e-6


def test_precomputed_kernels_take_kernel_values_in_onnx(labelled, fresh):
    X, y = labelled
    kernel = RBF(gamma=0.3)
    metric = Kernelized(DNE(2), "precomputed", Nystroem(8, random_state=0)).fit(kernel(X), y)
    assert difference(metric, kernel(fresh, X)) < 1e-6


def test_widths_share_their_distances_in_onnx(labelled):
    pytest.importorskip("onnx", reason="comes with the extra `onnx`")
    kernel = RBF(gamma=0.1) + RBF(gamma=0.2) + RBF(gamma=0.3)
    nodes = to_onnx(Kernelized(DNE(2), kernel).fit(*labelled)).graph.node
    assert sum(node.op_type == "MatMul" for node in nodes) == 2  # distances, and the map


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Kernelized(DNE(2), FunctionKernel(lambda a, b: a @ b.T)), "whose formula ONNX can hold"),
        (Kernelized(DNE(2), "chi2", KPCA(3)), "whose formula ONNX can hold"),
        (make_pipeline(PowerTransformer(), NCA(2)), "step whose formula is known"),
        (Kernelized(SVC()), "step whose formula is known"),
    ],
    ids=["function", "chi2", "power", "SVC"],
)
def test_what_onnx_cannot_hold_is_refused(metric, message, labelled):
    pytest.importorskip("onnx", reason="comes with the extra `onnx`")
    X, y = labelled
    metric.fit(X - X.min(), y)
    with pytest.raises(ValueError, match=message):
        to_onnx(metric)


def test_an_unknown_dtype_is_refused_in_onnx(labelled):
    with pytest.raises(ValueError, match="Got precision='float16'"):
        to_onnx(NCA(2).fit(*labelled), precision="float16")


def test_the_map_of_a_metric_is_its_transform(space, labelled, fresh):
    """What ONNX holds, computed by NumPy: needs no extra."""
    metric = Kernelized(DNE(2), RBF(gamma=0.3), space).fit(*labelled)
    parts = metric_map(metric)
    F = metric.space_._features(fresh)
    Z = metric.transform(fresh)
    np.testing.assert_allclose(F @ parts.after.A + parts.after.b, Z, atol=1e-9 * np.abs(Z).max())


# --- faiss --------------------------------------------------------------------------------------


def assert_nearest(rows, D, k):
    """The rows are k nearest ones by the distances D, in any order where these are equal."""
    found = np.take_along_axis(D, rows, axis=1)
    expected = np.sort(D, axis=1)[:, :k]
    np.testing.assert_allclose(found, expected, atol=1e-5 * D.max())
    assert all(len(set(row)) == k for row in rows.tolist())


@pytest.mark.parametrize(
    "metric",
    [
        NCA(5, max_iter=20, tol=1e-2),
        Kernelized(DNE(9), RBF() + Delta()),
        Kernelized(DNE(9), "rbf", Nystroem(50, random_state=0)),
        make_pipeline(StandardScaler(), Kernelized(DNE(5), "rbf")),
    ],
    ids=["NCA", "RBF", "Nystroem", "pipeline"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::kernelmetric.kernelized._copies.CopiesWarning")
def test_faiss_finds_the_neighbours_of_the_learned_distance(metric, digits):
    pytest.importorskip("faiss", reason="comes with the extra `faiss`")
    X, y, new = digits
    X = np.concatenate([X, X[:40]])  # points that coincide are ties
    metric.fit(X, np.concatenate([y, y[:40]]))
    index = to_faiss(metric, X)
    squared, rows = index.search(metric.transform(new).astype(np.float32), 7)
    D = cdist(metric.transform(new), places_of(metric, X))  # of rows left out, as it keeps them
    assert_nearest(rows, D, 7)
    found = np.take_along_axis(D, rows, axis=1)
    np.testing.assert_allclose(np.sqrt(squared), found, atol=1e-3 * D.max())


def test_faiss_indexes_of_any_kind_are_trained_and_filled(digits):
    pytest.importorskip("faiss", reason="comes with the extra `faiss`")
    X, y, new = digits
    metric = DNE(9).fit(X, y)
    exact = to_faiss(metric, X).search(metric.transform(new).astype(np.float32), 5)[1]
    for factory in ("HNSW16", "IVF4,Flat"):
        index = to_faiss(metric, X, factory=factory)
        assert index.ntotal == len(X)
        rows = index.search(metric.transform(new).astype(np.float32), 5)[1]
        assert np.mean(rows[:, 0] == exact[:, 0]) > 0.7


def test_coordinates_that_float32_cannot_tell_apart_are_refused_by_faiss(digits):
    pytest.importorskip("faiss", reason="comes with the extra `faiss`")
    X, y, new = digits
    X, new = X / 16 + 1e6, new / 16 + 1e6
    metric = DNE(2).fit(X, y)
    with pytest.raises(ValueError, match=r"keeps too few digits.*with_std=False"):
        to_faiss(metric, X)
    centred = make_pipeline(StandardScaler(with_std=False).fit(X), metric)
    queries = centred.transform(new).astype(np.float32)
    assert_nearest(to_faiss(centred, X).search(queries, 5)[1], metric.pairwise_distances(new, X), 5)
    for factor in (1e-22, 1e22):
        metric = PCA(2).fit(digits[0] * factor)
        with pytest.raises(ValueError, match="squares float32 has no numbers for"):
            to_faiss(metric, digits[0] * factor)
    with pytest.raises(ValueError, match="factory='nothing'"):
        to_faiss(DNE(2).fit(*digits[:2]), digits[0], factory="nothing")


def test_a_small_memory_budget_fills_the_same_index(digits):
    pytest.importorskip("faiss", reason="comes with the extra `faiss`")
    X, y, _ = digits
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    metric = DNE(9).fit(frame, y)
    queries = metric.transform(frame[:20]).astype(np.float32)
    expected = to_faiss(metric, frame).search(queries, 3)[0]
    with memory_budget("100KB"):
        blocked = to_faiss(metric, frame).search(queries, 3)[0]
    np.testing.assert_allclose(blocked, expected, rtol=1e-4, atol=1e-4 * expected.max())


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("onnx", to_onnx, "onnx"),
        ("faiss", lambda metric: to_faiss(metric, np.zeros((2, 4))), "faiss"),
    ],
    ids=["onnx", "faiss"],
)
def test_a_missing_extra_is_told(module, call, extra, labelled, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf'pip install "kernelmetric\[{extra}\]"'):
        call(NCA(2).fit(*labelled))


# --- compression --------------------------------------------------------------------------------


def distance_error(metric, small, X):
    d, e = metric.pairwise_distances(X), small.pairwise_distances(X)
    return np.sqrt(np.mean((d - e) ** 2) / np.mean(d**2))


@pytest.mark.every(3)
@pytest.mark.parametrize("kernel", ["rbf", "auto", "aligned"])
def test_the_stated_loss_bounds_that_on_new_points(kernel, digits):
    X, y, new = digits
    metric = Kernelized(DNE(9), kernel).fit(X, y)
    before = metric.transform(new)
    small = compress(metric, 60)
    stated = small.compression_
    assert stated["n_landmarks"] == len(small.space_.anchors_) == 60
    assert stated["n_before"] == 300
    assert 0 < distance_error(metric, small, new) < 1.2 * stated["distance_error"]
    scale = np.abs(before).max()  # the original is as it was
    np.testing.assert_allclose(metric.transform(new), before, atol=1e-9 * scale)


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize(("space", "most"), [(KPCA(), 0.02), ("auto", 0.1)], ids=repr)
def test_more_landmarks_lose_less(space, most, digits):
    X, y, new = digits
    metric = Kernelized(DNE(9), "rbf", space).fit(X, y)
    errors = [distance_error(metric, compress(metric, m), new) for m in (20, 60, 180)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < most


def test_a_map_that_landmarks_can_hold_loses_nothing(digits):
    """A linear kernel has a feature space of 64 dimensions: 70 landmarks span it."""
    X, y, new = digits
    metric = Kernelized(DNE(5), Linear()).fit(X, y)
    small = compress(metric, 70)
    assert small.compression_["distance_error"] < 1e-6
    scale = np.abs(metric.transform(new)).max()
    np.testing.assert_allclose(small.transform(new), metric.transform(new), atol=1e-6 * scale)


def test_the_ridge_is_left_out_since_new_points_do_not_see_it(digits):
    X, y, new = digits
    metric = Kernelized(DNE(9), RBF() + 10.0 * Delta()).fit(X, y)
    small = compress(metric, 60)
    assert "Delta" not in repr(small.space_.kernel_)
    assert distance_error(metric, small, new) < 0.2


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "space",
    [KPCA(40), KernelTrick(), Nystroem(150, random_state=0), RandomFeatures(500, random_state=0)],
    ids=repr,
)
def test_every_space_can_be_compressed(space, digits):
    X, y, new = digits
    metric = Kernelized(DNE(5), RBF(), space).fit(X, y)
    small = compress(metric, 60, X)
    assert distance_error(metric, small, new) < 0.1


@pytest.mark.every(2)
@pytest.mark.parametrize("psd", ["clip", "solve"])
def test_idealized_kernels_can_be_compressed(psd, digits):
    X, y, new = digits
    metric = IdealizedKernel("rbf", C=10.0, psd=psd).fit(X[:80], y[:80])
    small = compress(metric, 50)
    assert type(small) is IdealizedKernel
    assert len(small.space_.anchors_) == 50
    assert distance_error(metric, small, new) < 0.3


def test_a_compressed_metric_is_saved_exported_and_fitted_again(digits, tmp_path):
    X, y, new = digits
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    metric = make_pipeline(StandardScaler(), Kernelized(DNE(5), RBF() + Delta()))
    metric.fit(frame, y)
    small = compress(metric, 40, frame)
    again = load(save(small, tmp_path / "small.metric"))
    unseen = pd.DataFrame(new, columns=frame.columns)
    scale = np.abs(small.transform(unseen)).max()
    np.testing.assert_allclose(again.transform(unseen), small.transform(unseen), atol=1e-9 * scale)
    assert again[-1].compression_ == small[-1].compression_
    large = save(metric, tmp_path / "large.metric")
    assert 3 * (tmp_path / "small.metric").stat().st_size < large.stat().st_size
    refitted = clone(small).fit(frame, y)
    assert len(refitted[-1].space_.anchors_) == 40


def test_a_compressed_metric_is_the_same_in_onnx(digits):
    X, y, new = digits
    small = compress(Kernelized(DNE(5), RBF() + Delta()).fit(X, y), 40)
    assert difference(small, new) < 1e-6
    assert difference(small, new, precision="float32") < 1e-5


@pytest.mark.parametrize(
    ("metric", "arguments", "message"),
    [
        (NCA(2), (10,), "expected a metric with a kernel"),
        (Kernelized(PCA(2), "rbf"), (10,), "expected one of this library"),
        (Kernelized(DNE(2), "rbf"), (30,), "expected an integer >= 1 and <= 29"),
        (Kernelized(DNE(2), "rbf"), (1.5,), "expected an integer >= 1 and <= 29"),
        (Kernelized(DNE(2), "rbf"), (28,), "30 points for 28 landmarks"),
        (Kernelized(DNE(2), "rbf", RandomFeatures(50)), (10,), "holds no points"),
    ],
    ids=["linear", "third-party", "as many", "fraction", "too many", "random features"],
)
def test_what_cannot_be_compressed_is_refused(metric, arguments, message, labelled):
    metric.fit(*labelled)
    with pytest.raises(ValueError, match=message):
        compress(metric, *arguments)


def test_precomputed_kernels_cannot_be_compressed(labelled):
    X, y = labelled
    metric = Kernelized(DNE(2), "precomputed").fit(RBF(gamma=0.3)(X), y)
    with pytest.raises(ValueError, match="Got a precomputed kernel"):
        compress(metric, 5)
