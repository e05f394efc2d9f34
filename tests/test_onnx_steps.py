"""Pipelines in ONNX: every step does there what it does here, on columns that are hard to serve."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kernelmetric import (
    DNE,
    KPCA,
    NCA,
    RBF,
    Cosine,
    IdealizedKernel,
    Kernelized,
    KernelTrick,
    Linear,
    Polynomial,
    RandomFeatures,
    TransductiveDistance,
    compress,
    to_faiss,
    to_onnx,
)

pytest.importorskip("onnx", reason="comes with the extra `onnx`")
onnxruntime = pytest.importorskip("onnxruntime", reason="comes with the extra `onnx`")


def run(metric, X, **options):
    model = to_onnx(metric, **{"dtype": "float64"} | options)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["Z"], {"X": X.astype(options.get("dtype", "float64"))})[0]


def assert_the_same(metric, X, rtol=1e-9, **options):
    given = X.astype(options.get("dtype", "float64")).astype(np.float64)
    expected = metric.transform(given)
    assert np.abs(expected).max() > 0
    Z = run(metric, X, **options)
    np.testing.assert_allclose(Z, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.fixture
def hostile():
    """Milliseconds since 1970, an amount, a rare sentinel, a constant, a tiny number, a code."""
    rng = np.random.RandomState(0)
    y = np.arange(40) % 2
    X = np.column_stack(
        [
            1.7e12 + 6e5 * (rng.standard_normal(40) + y),
            1e6 * rng.gamma(2.0, size=40),
            np.where(np.arange(40) % 7 == 0, -999.0, rng.standard_normal(40)),
            np.full(40, 3.0),
            1e-9 * (rng.standard_normal(40) - y),
            rng.randint(0, 3, 40),
        ]
    )
    return X, y


@pytest.fixture
def queries(hostile):
    """Points between, and far beyond, those of the training."""
    X, _ = hostile
    inside = (X[::4] + X[1::4]) / 2
    return np.vstack([X[:5], inside, X[:5] + 50 * X.std(axis=0), X[5:10] * -3.0])


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-2, 5)),
    MinMaxScaler(clip=True),
    MinMaxScaler((-2, 5), clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
]


@pytest.mark.every(2)
@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_scalers_are_the_same_beyond_the_training_points(scaler, hostile, queries):
    X, y = hostile
    assert_the_same(make_pipeline(scaler, Kernelized(DNE(2), "rbf", KPCA(6))).fit(X, y), queries)
    assert_the_same(make_pipeline(scaler, PCA(2)).fit(X), queries, rtol=1e-7)


@pytest.mark.skipif("clip" not in MaxAbsScaler().get_params(), reason="scikit-learn before 1.9")
def test_a_clipping_scaler_of_the_largest_clips(hostile, queries):
    X, y = hostile
    assert_the_same(make_pipeline(MaxAbsScaler(clip=True), NCA(2)).fit(X, y), queries)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_normalizers_are_the_same_at_the_origin_too(norm, hostile, queries):
    X, y = hostile
    queries[0] = 0.0
    metric = make_pipeline(Normalizer(norm), DNE(2)).fit(X[:, 1:], y)
    assert_the_same(metric, queries[:, 1:])


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "step",
    [
        PCA(3),
        PCA(3, whiten=True),
        TruncatedSVD(3, random_state=0),
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
        NeighborhoodComponentsAnalysis(3, random_state=0),
        make_pipeline(VarianceThreshold(), SelectKBest(k=3)),
        VarianceThreshold(),
        KPCA(4, kernel=RBF()),
        KernelTrick(kernel=RBF()),
        "passthrough",
        DNE(3),
    ],
    ids=repr,
)
def test_steps_between_are_the_same(step, hostile, queries):
    X, y = hostile
    metric = make_pipeline(StandardScaler(), step, DNE(1)).fit(X, y)
    assert_the_same(metric, queries, rtol=1e-7)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "step",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(n_components=1),
        LinearDiscriminantAnalysis(solver="eigen"),
        PCA(2),
        TruncatedSVD(2, random_state=0),
        DNE(2),
    ],
    ids=repr,
)
def test_what_centres_by_itself_centres_there(step, labelled, fresh):
    """Far from the origin the row that is taken off is most of the answer."""
    X, y = labelled
    assert_the_same(make_pipeline(step).fit(X + 100, y), fresh + 100)
    assert_the_same(make_pipeline(step, RobustScaler(), DNE(1)).fit(X + 100, y), fresh + 100)
    assert_the_same(Kernelized(step, "rbf", KPCA(5)).fit(X + 100, y), fresh + 100, rtol=1e-7)


@pytest.mark.every(2)
@pytest.mark.parametrize("kernel", [0.1 * Linear(), 0.1 * RBF(gamma=0.3)], ids=repr)
@pytest.mark.parametrize("width", [1, 3])
def test_a_lone_factor_keeps_its_digits(kernel, width, labelled, fresh):
    """Runtimes that merge a factor with the product beside it may round it to float32."""
    X, y = labelled[0][:, :width], labelled[1]
    metric = Kernelized(DNE(1), kernel, KPCA(1)).fit(X, y)
    assert_the_same(metric, fresh[:, :width], rtol=1e-11)
    metric = make_pipeline(RobustScaler(), MinMaxScaler((0, 0.7)), DNE(1)).fit(X, y)
    assert_the_same(metric, fresh[:, :width], rtol=1e-13)


def test_pipelines_in_pipelines_and_searches_are_followed(hostile, queries):
    X, y = hostile
    inner = make_pipeline(make_pipeline(StandardScaler(), PCA(3)), NCA(2))
    assert_the_same(inner.fit(X, y), queries)
    search = GridSearchCV(inner, {"nca__n_components": [1, 2]}, cv=2, scoring=lambda m, X, y: 0.0)
    assert_the_same(search.fit(X, y), queries)


def test_the_steps_before_a_metric_are_done_in_double_precision(hostile):
    """With float64 points, single precision begins where the large numbers are gone."""
    X, y = hostile
    metric = make_pipeline(StandardScaler(), Kernelized(DNE(2), "rbf", KPCA(4))).fit(X, y)
    assert_the_same(metric, X, precision="float32", rtol=1e-4)


def test_single_precision_of_points_far_from_zero_is_told(hostile):
    X, y = hostile
    metric = make_pipeline(StandardScaler(), NCA(2)).fit(X, y)
    with pytest.warns(UserWarning, match=r"try to_onnx\(metric, dtype='float64'\)"):
        to_onnx(metric)
    with pytest.warns(UserWarning, match="keeps few digits"):
        to_onnx(Kernelized(DNE(2), "rbf").fit(X[:, :1], y))
    to_onnx(make_pipeline(StandardScaler(), NCA(2)).fit(X[:, 1:], y))  # not for these


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "metric",
    [
        NCA(2),
        DNE(2),
        IdealizedKernel(C=10.0),
        PCA(2),
        LinearDiscriminantAnalysis(),
        Kernelized(DNE(2), Polynomial(degree=2)),
        Kernelized(DNE(2), "laplacian"),
        Kernelized(DNE(2), "cosine", KPCA()),  # cosines there differ by 1e-12
        Kernelized(DNE(2), "rbf", RandomFeatures(50, random_state=0)),
        make_pipeline(MaxAbsScaler(), DNE(2)),
    ],
    ids=repr,
)
def test_every_metric_tells_what_float32_costs_it(metric):
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 3)) + y[:, None]
    to_onnx(metric.fit(X, y))
    metric.fit(X + 1e6, y)
    for options, advice in (
        ({}, "dtype='float64'"),
        ({"precision": "float32"}, "dtype='float64', precision='float64'"),
        ({"dtype": "float64", "precision": "float32"}, "precision='float64'"),
    ):
        with pytest.warns(
            UserWarning, match=rf"few digits: try to_onnx\(metric, {advice}\)"
        ) as told:
            to_onnx(metric, **options)
        assert len(told) == 1
    assert_the_same(metric, X + 1e6, rtol=1e-3)
    to_onnx(metric.fit(X, y))  # nothing of the last fit is left


def test_kernel_values_that_single_precision_cannot_hold_are_told():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((60, 3)) + 1000.0, np.arange(60) % 3
    metric = Kernelized(DNE(2), "linear").fit(X, y)
    to_onnx(metric)
    with pytest.warns(UserWarning, match="precision='float64'"):
        to_onnx(metric, precision="float32")


def test_a_model_without_doubles_has_none(hostile):
    X, y = hostile
    metric = make_pipeline(
        StandardScaler(), MinMaxScaler(clip=True), Kernelized(DNE(2), "rbf")
    ).fit(X[:, 1:], y)
    model = to_onnx(metric, precision="float32")
    kinds = {constant.data_type for constant in model.graph.initializer}
    assert 11 not in kinds  # TensorProto.DOUBLE
    assert all(node.op_type != "Cast" for node in model.graph.node)
    assert_the_same(metric, X[:, 1:], dtype="float32", precision="float32", rtol=1e-4)


class Scaler(StandardScaler):
    """What derives from a known class may do anything."""

    def transform(self, X, copy=None):
        return super().transform(X) ** 3


class Bend(TransformerMixin, BaseEstimator):
    """Affine near zero, and only there."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.clip(X, -100, 100)


class Squared(Cosine):
    def __call__(self, X, Y=None):
        return super().__call__(X, Y) ** 2


REFUSED = {
    "power": (PowerTransformer(), r"Got PowerTransformer\(\).*step whose formula is known"),
    "quantiles": (QuantileTransformer(n_quantiles=5), r"Got QuantileTransformer"),
    "ordinal": (OrdinalEncoder(), r"Got OrdinalEncoder"),
    "imputer": (SimpleImputer(), r"Got SimpleImputer\(\).*this one by skl2onnx"),
    "union": (FeatureUnion([("a", StandardScaler())]), r"Got FeatureUnion.*skl2onnx"),
    "columns": (ColumnTransformer([("a", StandardScaler(), [0, 1])]), r"Got ColumnTransformer"),
    "function": (FunctionTransformer(np.sin), r"Got FunctionTransformer.*skl2onnx"),
    "derived": (Scaler(), r"Got Scaler\(\).*step whose formula is known"),
    "third-party": (Bend(), r"Got Bend\(\).*step whose formula is known"),
    "codes": (OneHotEncoder(sparse_output=False), r"Got OneHotEncoder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_steps_without_a_formula_are_refused_by_name(case, hostile):
    X, y = hostile
    step, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        to_onnx(make_pipeline(step, NCA(2)).fit(X[:, 4:], y))


def test_a_derived_kernel_is_refused(labelled):
    with pytest.raises(ValueError, match=r"Got Squared\(.*whose formula ONNX can hold"):
        to_onnx(Kernelized(DNE(2), Squared(), KPCA(3)).fit(*labelled))


@pytest.mark.every(2)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_indefinite_metrics_have_no_coordinates_to_export(kernel, labelled):
    _, y = labelled
    X = np.random.RandomState(0).standard_normal((len(y), 40))  # more features than points
    indefinite = IdealizedKernel(kernel, C=1e3, nu=0.8, psd="none")
    metrics = [indefinite, make_pipeline(StandardScaler(), clone(indefinite))]
    if kernel == "linear":
        metrics.append(Kernelized(clone(indefinite), "rbf"))
    for call in (to_onnx, lambda m: compress(m, 5), lambda m: to_faiss(m, X)):
        for metric in metrics:
            with pytest.raises(ValueError, match=r"squared distances may be negative.*psd='solve'"):
                call(metric.fit(X, y))


def test_a_metric_that_might_have_been_indefinite_and_is_not_is_exported(labelled, fresh):
    metric = IdealizedKernel(C=10.0, psd="none").fit(*labelled)
    assert (metric.signature_ == 1).all()
    assert_the_same(metric, fresh)


@pytest.mark.slow
def test_a_transductive_metric_with_a_kernel_is_exported_without_a_prior_only(labelled, fresh):
    X, y = labelled
    metric = TransductiveDistance(2, penalty="kernel", lam=5000.0).fit(X, y)
    assert_the_same(metric, fresh)
    prior = TransductiveDistance(2, penalty="kernel", lam=5000.0, prior=NCA().fit(X, y)).fit(X, y)
    with pytest.raises(ValueError, match="export the prior by itself"):
        to_onnx(prior)
    with pytest.raises(ValueError, match="step whose formula is known"):
        to_onnx(TransductiveDistance(2, lam=5000.0).fit(X, y))
