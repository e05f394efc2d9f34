"""Pipelines in ONNX: every step does there what it does here, on columns that are hard to serve."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
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


@pytest.mark.filterwarnings("ignore:Currently, when `keep_empty_feature:FutureWarning")
@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(),
        SimpleImputer(strategy="median"),
        SimpleImputer(missing_values=-999),
        SimpleImputer(missing_values=-999, add_indicator=True),
        SimpleImputer(strategy="constant", fill_value=7.0, add_indicator=True),
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(keep_empty_features=True),
    ],
    ids=repr,
)
def test_imputers_are_the_same(imputer, hostile, queries):
    X, y = hostile
    if np.isnan(imputer.missing_values):
        X, queries = (np.where(A == -999, np.nan, A) for A in (X, queries))
        X[:, 3] = np.nan  # a column without any value, which some leave out
        queries[3, 0] = np.nan
    queries[7, 2] = -150.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the empty column
        metric = make_pipeline(imputer, StandardScaler(), NCA(2)).fit(X, y)
        assert_the_same(metric, queries)


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
        FunctionTransformer(),
        "passthrough",
        DNE(3),
    ],
    ids=repr,
)
def test_steps_between_are_the_same(step, hostile, queries):
    X, y = hostile
    metric = make_pipeline(StandardScaler(), step, DNE(1)).fit(X, y)
    assert_the_same(metric, queries, rtol=1e-7)


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


@pytest.mark.parametrize("kernel", [0.1 * Linear(), 0.1 * RBF(gamma=0.3)], ids=repr)
@pytest.mark.parametrize("width", [1, 3])
def test_a_lone_factor_keeps_its_digits(kernel, width, labelled, fresh):
    """Runtimes that merge a factor with the product beside it may round it to float32."""
    X, y = labelled[0][:, :width], labelled[1]
    metric = Kernelized(DNE(1), kernel, KPCA(1)).fit(X, y)
    assert_the_same(metric, fresh[:, :width], rtol=1e-11)
    metric = make_pipeline(RobustScaler(), MinMaxScaler((0, 0.7)), DNE(1)).fit(X, y)
    assert_the_same(metric, fresh[:, :width], rtol=1e-13)


@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
def test_codes_become_columns(drop, hostile):
    X, y = hostile
    codes = np.column_stack([X[:, 5], y, np.where(X[:, 5] == 1, np.nan, X[:, 5])])
    encoder = OneHotEncoder(drop=drop, handle_unknown="ignore", sparse_output=False)
    metric = make_pipeline(encoder, NCA(2)).fit(codes, y)
    unknown = np.vstack([codes[:9], [[9.0, 1.0, 0.0], [1.0, -1.0, np.nan]]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that unknown ones are zeros
        assert_the_same(metric, unknown)


def test_columns_of_a_frame_go_their_own_ways(hostile, queries):
    X, y = hostile
    names = ["time", "amount", "level", "flat", "tiny", "code"]
    numbers = make_pipeline(SimpleImputer(missing_values=-999, add_indicator=True), RobustScaler())
    columns = ColumnTransformer(
        [
            ("code", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["code"]),
            ("numbers", numbers, ["level", "time"]),
            ("gone", "drop", ["flat"]),
            ("nothing", StandardScaler(), []),
            ("tiny", MaxAbsScaler(), slice("tiny", "tiny")),
        ],
        remainder="passthrough",
        transformer_weights={"numbers": 3.0},
    )
    frame = pd.DataFrame(X, columns=names)
    metric = make_pipeline(columns, StandardScaler(), Kernelized(DNE(2), "rbf")).fit(frame, y)
    expected = metric.transform(pd.DataFrame(queries, columns=names))
    Z = run(metric, queries)
    np.testing.assert_allclose(Z, expected, atol=1e-8 * np.abs(expected).max())


def test_a_union_puts_its_parts_side_by_side(hostile, queries):
    X, y = hostile
    union = FeatureUnion(
        [("as it is", "passthrough"), ("main", PCA(2)), ("gone", "drop")],
        transformer_weights={"main": 0.5},
    )
    assert_the_same(make_pipeline(StandardScaler(), union, NCA(2)).fit(X, y), queries, rtol=1e-7)


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
        make_pipeline(SimpleImputer(), DNE(2)),
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
        SimpleImputer(), StandardScaler(), MinMaxScaler(clip=True), Kernelized(DNE(2), "rbf")
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
    "indicator": (
        FeatureUnion([("a", MissingIndicator(features="all")), ("b", StandardScaler())]),
        r"Got MissingIndicator",
    ),
    "function": (FunctionTransformer(np.sin), r"Got FunctionTransformer.*no function"),
    "derived": (Scaler(), r"Got Scaler\(\).*step whose formula is known"),
    "third-party": (Bend(), r"Got Bend\(\).*step whose formula is known"),
    "codes that are refused": (OneHotEncoder(sparse_output=False), "cannot refuse a point"),
    "rare codes": (
        OneHotEncoder(sparse_output=False, max_categories=2, handle_unknown="infrequent_if_exist"),
        "groups rare categories",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_steps_without_a_formula_are_refused_by_name(case, hostile):
    X, y = hostile
    step, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        to_onnx(make_pipeline(step, NCA(2)).fit(X[:, 4:], y))


def test_text_and_values_that_float32_has_not_are_refused(hostile):
    X, y = hostile
    frame = pd.DataFrame({"a": X[:, 1], "kind": np.array(["elm", "1"], dtype=object)[y]})
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("k", encoder, ["kind"])], remainder="passthrough")
    with pytest.raises(ValueError, match=r"no numbers.*encode text where the model is used"):
        to_onnx(make_pipeline(columns, NCA(2)).fit(frame, y))
    fill = SimpleImputer(strategy="most_frequent", missing_values="none")
    columns = ColumnTransformer([("k", make_pipeline(fill, encoder), ["kind"])])
    with pytest.raises(ValueError, match="no numbers"):
        to_onnx(make_pipeline(columns, NCA(1)).fit(frame, y))
    metric = make_pipeline(SimpleImputer(missing_values=0.1), NCA(2)).fit(X[:, 1:3], y)
    with pytest.raises(ValueError, match=r"looks for 0\.1.*dtype='float64'"):
        to_onnx(metric)
    to_onnx(metric, dtype="float64")


def test_a_derived_kernel_is_refused(labelled):
    with pytest.raises(ValueError, match=r"Got Squared\(.*whose formula ONNX can hold"):
        to_onnx(Kernelized(DNE(2), Squared(), KPCA(3)).fit(*labelled))


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


def test_a_transductive_metric_with_a_kernel_is_exported_without_a_prior_only(labelled, fresh):
    X, y = labelled
    metric = TransductiveDistance(2, penalty="kernel", lam=5000.0).fit(X, y)
    assert_the_same(metric, fresh)
    prior = TransductiveDistance(2, penalty="kernel", lam=5000.0, prior=NCA().fit(X, y)).fit(X, y)
    with pytest.raises(ValueError, match="export the prior by itself"):
        to_onnx(prior)
    with pytest.raises(ValueError, match="step whose formula is known"):
        to_onnx(TransductiveDistance(2, lam=5000.0).fit(X, y))
