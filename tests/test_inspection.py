"""Why a metric says what it says: shares that add up, planted features found, columns as a user has
them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis as TheirNCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelmetric import (
    KPCA,
    LDA,
    NCA,
    RBF,
    IdealizedKernel,
    Kernelized,
    Linear,
    MetricClassifier,
    TransductiveDistance,
    save,
)
from kernelmetric.inspection import explain_pair, feature_importance
from kernelmetric.inspection._maps import (
    Box,
    KernelMap,
    differences,
    gradients,
    has_gradient,
    map_of,
)
from kernelmetric.kernels import (
    Cosine,
    Delta,
    FunctionKernel,
    Laplacian,
    PairwiseKernel,
    Polynomial,
    Rescaled,
)
from kernelmetric.report import plot_shares
from kernelmetric.selection import RidgeKPCA, _ridge_kpca
from kernelmetric.tables import TableEncoder

pytestmark = pytest.mark.usefixtures("deadline")

OTHERS = [
    "auto",
    "aligned",
    Rescaled(RBF(gamma=0.5) + 0.1 * Delta(), [1.0, 2.0, 0.0, 1.0]),
    Rescaled(RBF(gamma=0.5) + 0.1 * Delta(), [[1.0, 0.5, 0.0, -1.0], [0.0, 1.0, 0.3, 0.0]]),
    PairwiseKernel("rbf"),
    FunctionKernel(lambda A, B: (1 + A @ B.T) ** 2),
]


def pairs_of(X, fresh):
    """Two training rows, a training row and a new one, two new ones."""
    return [(X[0], X[1]), (X[0], fresh[0]), (fresh[0], fresh[1])]


def assert_adds_up(metric, X, fresh):
    for a, b in pairs_of(X, fresh):
        why = explain_pair(metric, a, b)
        distance = float(metric.pair_distance(np.stack([a, b])[None])[0])
        square = np.sign(distance) * distance**2
        scale = max(1.0, abs(square))
        assert abs(why.shares.sum() - square) < 1e-8 * scale
        assert abs(why.residual) < 1e-8 * scale  # nothing much had to be spread
        assert abs(why.distance - distance) < 1e-8 * scale


# --- two rows ------------------------------------------------------------------------------------


def test_shares_of_every_learner_add_up_to_the_squared_distance(learner, labelled, fresh):
    X, y = labelled
    assert_adds_up(learner.fit(X, y), X, fresh)


@pytest.mark.every(2)
def test_shares_in_every_kernel_add_up_to_the_squared_distance(kernel, labelled, fresh):
    X, y = labelled
    assert_adds_up(Kernelized(LDA(), kernel).fit(X, y), X, fresh)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "kernel", OTHERS, ids=lambda k: k if isinstance(k, str) else type(k).__name__
)
def test_shares_in_kernels_that_learn_or_are_foreign_add_up(kernel, labelled, fresh):
    X, y = labelled
    assert_adds_up(Kernelized(LDA(), kernel).fit(X, y), X, fresh)


@pytest.mark.every(2)
def test_shares_in_every_space_add_up_to_the_squared_distance(space, labelled, fresh):
    X, y = labelled
    assert_adds_up(Kernelized(LDA(), RBF(), space).fit(X, y), X, fresh)


def test_shares_of_someone_elses_learner_add_up(labelled, fresh):
    X, y = labelled
    metric = Kernelized(TheirNCA(2, max_iter=5, random_state=0), RBF()).fit(X, y)
    why = explain_pair(metric, *fresh[:2])
    E = metric.transform(fresh[:2])
    assert why.how == "central differences of transform"
    assert abs(why.shares.sum() - np.sum((E[0] - E[1]) ** 2)) < 1e-8
    assert abs(why.residual) < 1e-7 * why.squared_distance


def test_shares_of_a_linear_metric_are_those_of_its_matrix(labelled, fresh):
    X, y = labelled
    metric = LDA().fit(X, y)
    delta = fresh[1] - fresh[0]
    expected = delta * (metric.get_mahalanobis_matrix() @ delta)
    np.testing.assert_allclose(explain_pair(metric, *fresh[:2]).shares, expected, atol=1e-10)


def test_the_linear_kernel_explains_as_no_kernel_does(labelled, fresh):
    X, y = labelled
    shares = [
        explain_pair(metric.fit(X, y), *fresh[:2]).shares
        for metric in (LDA(), Kernelized(LDA(), Linear(), KPCA()))
    ]
    np.testing.assert_allclose(*shares, atol=1e-8)


def test_two_rows_may_be_exchanged(labelled, fresh):
    X, y = labelled
    metric = Kernelized(LDA(), RBF()).fit(X, y)
    one, other = (explain_pair(metric, *pair) for pair in (fresh[:2], fresh[1::-1]))
    np.testing.assert_allclose(one.shares, other.shares, atol=1e-9)


def test_a_feature_in_which_the_rows_agree_has_no_share(labelled, fresh):
    X, y = labelled
    b = fresh[1].copy()
    b[2] = fresh[0, 2]
    for kernel in (RBF(), Laplacian(), FunctionKernel(lambda A, B: A @ B.T)):
        assert explain_pair(Kernelized(LDA(), kernel).fit(X, y), fresh[0], b).shares[2] == 0


def test_a_row_is_at_no_distance_from_itself(labelled):
    X, y = labelled
    why = explain_pair(Kernelized(LDA()).fit(X, y), X[0], X[0])
    assert why.squared_distance == 0
    assert not why.shares.any()


def test_the_integral_over_a_ridge_is_that_of_its_narrow_gaussian(labelled, fresh):
    X, y = labelled
    metric = Kernelized(LDA(), RBF(gamma=0.1) + 0.5 * Delta(width=0.02), KPCA()).fit(X, y)
    exact = explain_pair(metric, X[0], fresh[0])
    assert exact.ridge > 0.1 * exact.squared_distance
    # the same kernel, whose narrow term is not recognised, integrated step by step
    narrow = RBF(gamma=0.1) + 0.5 * RBF(gamma=1 / (2 * 0.02**2))
    spelled = Kernelized(LDA(), narrow, KPCA()).fit(X, y)
    slow = explain_pair(spelled, X[0], fresh[0])
    assert slow.ridge == 0
    assert slow.squared_distance == pytest.approx(exact.squared_distance, rel=1e-6)
    np.testing.assert_allclose(slow.shares, exact.shares, atol=2e-3 * exact.squared_distance)


@pytest.mark.every(4)
@pytest.mark.parametrize("limit", [None, 10], ids=["all rows", "landmarks"])
@pytest.mark.parametrize("kernel", ["auto", RBF() + 0.1 * Delta()], ids=["auto", "with a ridge"])
def test_training_rows_are_explained_by_the_map_of_all_rows(
    labelled, fresh, limit, kernel, monkeypatch
):
    X, y = labelled
    if limit:
        for name in ("ALL_ROWS", "HELD_ROWS"):
            monkeypatch.setattr(_ridge_kpca, name, limit)
    metric = Kernelized(LDA(), kernel, RidgeKPCA(5, n_landmarks=12)).fit(X, y)
    assert metric.space_.n_landmarks_ == (12 if limit else 0)
    assert isinstance(map_of(metric), KernelMap)
    assert_adds_up(metric, X, fresh)
    assert explain_pair(metric, *X[:2]).ridge == 0  # training rows have no places of their own


@pytest.mark.parametrize(
    "scales",
    [[1.0, 2.0, 0.0, -0.5], [[1.0, 0.5, 0.0, -0.5], [0.0, 2.0, 0.3, 0.0], [0.2, 0.0, 3.0, 1.0]]],
    ids=["scales", "map"],
)
def test_new_rows_have_no_part_of_the_ridge(scales, labelled, fresh):
    X, y = labelled
    kernel = Rescaled(0.5 * Laplacian(gamma=0.3) + RBF(gamma=0.2) + 0.1 * Delta(), scales)
    metric = Kernelized(LDA(), kernel, KPCA()).fit(X, y)
    assert_adds_up(metric, X, fresh)
    why = explain_pair(metric, *fresh[:2])
    assert abs(why.ridge) < 1e-10 * why.squared_distance
    assert abs(explain_pair(metric, *X[:2]).ridge) > 1e-3


def test_kinks_of_many_anchors_cost_no_digits():
    X = np.random.RandomState(0).standard_normal((150, 6))
    metric = Kernelized(LDA(), Laplacian(), "auto").fit(X, X[:, 0] > 0)
    why = explain_pair(metric, *np.random.RandomState(1).standard_normal((2, 6)))
    assert abs(why.residual) < 1e-10 * why.squared_distance


def test_an_indefinite_metric_is_explained_with_its_signs(labelled, fresh):
    X, y = labelled
    metric = IdealizedKernel(C=3.0, nu=0.8, psd="none").fit(X, y)
    metric.signature_ = np.array([1, 1, 1, -1])
    assert_adds_up(metric, X, fresh)
    with pytest.raises(ValueError, match="may be negative"):
        feature_importance(metric, X)


def test_a_jump_between_two_rows_is_told(labelled):
    X, y = labelled

    def steps(A, B):
        return np.round(3 * A) @ np.round(3 * B).T

    metric = Kernelized(LDA(), FunctionKernel(steps)).fit(X, y)
    with pytest.warns(UserWarning, match="not smooth"):
        why = explain_pair(metric, X[0], X[1])
    assert abs(why.shares.sum() - why.squared_distance) < 1e-8


# --- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(gamma=0.3),
        Delta(width=0.8),
        Laplacian(gamma=0.4),
        Linear(),
        Polynomial(3, gamma=0.5),
        Cosine(),
        RBF(gamma=0.3) + 0.5 * Linear(),
        RBF(gamma=0.3) * Polynomial() * Cosine(),
        Rescaled(Cosine() + RBF(gamma=0.2), [1.0, -2.0, 0.0]),
        Rescaled(Cosine() + RBF(gamma=0.2), [[1.0, -2.0, 0.0], [0.5, 0.0, 1.0]]),
    ],
    ids=repr,
)
def test_gradients_of_kernels_are_those_of_finite_differences(kernel):
    rng = np.random.RandomState(0)
    P, B = rng.standard_normal((5, 3)), rng.standard_normal((7, 3))
    W = rng.standard_normal((5, 7))
    box = Box(np.full(3, -4.0), np.full(3, 4.0))
    expected = differences(lambda A: np.sum(W * kernel(A, B), axis=1), P, box)
    assert has_gradient(kernel)
    np.testing.assert_allclose(gradients(kernel, P, B, W, box), expected, atol=1e-7)


def test_differences_stay_within_the_range_of_the_features():
    seen = []

    def function(A):
        seen.append(A)
        return np.sum(A**2, axis=1)

    P = np.array([[0.0, 1.0, 2.0]])
    slopes = differences(function, P, Box(P[0], np.array([1.0, 1.0, 3.0])))
    assert np.min(seen, axis=0).min() >= 0
    np.testing.assert_allclose(slopes[0], [0.0, 0.0, 4.0], atol=1e-4)


# --- which features shape it ---------------------------------------------------------------------


@pytest.fixture
def planted():
    """100 rows whose class is the exclusive or of two of eight features."""
    X = np.random.RandomState(0).standard_normal((100, 8))
    return X, (X[:, 2] * X[:, 5] > 0).astype(int)


@pytest.mark.slow
def test_planted_features_are_found_through_a_kernel(planted):
    X, y = planted
    metric = Kernelized(NCA(random_state=0)).fit(X, y)
    found = feature_importance(metric, X)
    assert {name for name, _ in found.ranked()[:2]} == {"x2", "x5"}
    assert found.shares.sum() == pytest.approx(1)
    assert found.shares[[2, 5]].sum() > 0.6


def test_a_planted_feature_is_found_by_a_linear_learner():
    X = np.random.RandomState(0).standard_normal((90, 5))
    found = feature_importance(NCA(random_state=0).fit(X, X[:, 3] > 0), X)
    assert found.ranked()[0][0] == "x3"


def test_the_share_of_a_feature_does_not_depend_on_its_unit(labelled):
    X, y = labelled
    units = np.array([1.0, 1000.0, 0.01, 1.0])
    metric = LDA(shrinkage=0.0)
    shares = [feature_importance(clone(metric).fit(X * s, y), X * s).shares for s in (1.0, units)]
    np.testing.assert_allclose(*shares, atol=1e-8)


def test_the_pair_that_differs_in_a_planted_feature_is_told_apart_by_it(planted):
    X, y = planted
    metric = Kernelized(NCA(random_state=0)).fit(X, y)
    a, b = np.zeros(8), np.zeros(8)
    a[2] = b[2] = a[5] = 1.0
    b[5], b[0] = -1.0, 0.3
    assert explain_pair(metric, a, b).ranked()[0][0] == "x5"


def test_many_rows_are_sampled_and_the_draw_is_repeatable(planted):
    X, y = planted
    metric = Kernelized(LDA(), RBF()).fit(X, y)
    once, again, other = (
        feature_importance(metric, X, max_samples=400, random_state=seed).shares
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(once, again)
    assert 0 < np.abs(once - other).max() < 0.1


# --- columns as the user has them ----------------------------------------------------------------


@pytest.fixture
def orchard():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "kg": rng.standard_normal(60),
            "site": rng.choice(["river", "hill", "wood"], 60),
            "noise": rng.standard_normal(60),
        }
    )
    return frame, (frame["site"] == "river").to_numpy().astype(int)


@pytest.mark.parametrize("learner", [LDA(), Kernelized(LDA(), RBF())], ids=repr)
def test_a_category_counts_as_one_column(orchard, learner):
    frame, y = orchard
    encoder = TableEncoder(["kg", "noise"], ["site"])
    model = make_pipeline(encoder, learner).fit(frame, y)
    found = feature_importance(model, frame)
    assert found.names == ("kg", "noise", "site")
    assert found.ranked()[0][0] == "site"
    river = np.flatnonzero(y)[0]
    other = np.flatnonzero(y == 0)[0]
    why = explain_pair(model, frame.iloc[river], frame.iloc[[other]])
    assert why.ranked()[0][0] == "site"
    E = model.transform(frame.iloc[[river, other]])
    assert abs(why.shares.sum() - np.sum((E[0] - E[1]) ** 2)) < 1e-8


def test_a_category_without_differences_counts_no_more_for_having_many_values(orchard):
    # what all one-hot features of a column have in common parts no rows, and must not count
    frame, _ = orchard
    y = (frame["kg"] > 0).to_numpy()
    model = make_pipeline(TableEncoder(["kg", "noise"], ["site"]), LDA()).fit(frame, y)
    model[-1].components_ = np.array([[1.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0]])
    assert feature_importance(model, frame).ranked()[0][0] == "kg"


def test_a_category_that_counts_only_together_with_a_number_is_found(orchard):
    # at the rows themselves the learned coordinates are flat: gradients would not see it
    frame, river = orchard
    y = (frame["kg"] > 0).to_numpy() ^ (river == 1)
    encoder = TableEncoder(["kg", "noise"], ["site"])
    model = make_pipeline(encoder, Kernelized(NCA(random_state=0))).fit(frame, y)
    found = dict(feature_importance(model, frame).ranked())
    assert found["site"] > 0.2
    assert found["noise"] < 0.1


@pytest.mark.filterwarnings("ignore:Column 'unit' is not used")
def test_a_kernel_of_tables_is_explained_by_their_columns(orchard):
    frame, river = orchard
    frame = frame.assign(unit="mm")[["unit", "kg", "site", "noise"]]
    y = (frame["kg"] > 0).to_numpy() ^ (river == 1)
    metric = Kernelized(NCA(random_state=0)).fit(frame, y)
    found = dict(feature_importance(metric, frame).ranked())
    assert set(found) == {"unit", "kg", "site", "noise"}
    assert found["site"] > 0.1 > found["noise"] >= found["unit"] == 0
    why = explain_pair(metric, frame.iloc[[3]], frame.iloc[[17]])
    distance = metric.pairwise_distances(frame.iloc[[3]], frame.iloc[[17]])[0, 0]
    assert abs(why.shares.sum() - distance**2) < 1e-8 * max(1.0, distance**2)


@pytest.mark.filterwarnings(r"ignore:\s*The format of the columns:FutureWarning")  # until 1.7
def test_columns_of_other_peoples_encoders_are_known(orchard):
    frame, y = orchard
    encoder = make_column_transformer(
        (OneHotEncoder(drop="first", sparse_output=False), ["site"]),
        (make_pipeline(StandardScaler(), StandardScaler()), ["noise"]),
        remainder="passthrough",
    )
    model = make_pipeline(encoder, StandardScaler(), NCA(random_state=0)).fit(frame, y)
    found = feature_importance(model, frame)
    assert found.names == ("kg", "site", "noise")
    assert found.ranked()[0][0] == "site"


def test_a_classifier_after_the_metric_is_left_out(labelled):
    X, y = labelled
    model = make_pipeline(StandardScaler(), LDA(), KNeighborsClassifier(3)).fit(X, y)
    shares = [feature_importance(part, X).shares for part in (model, model[:-1])]
    np.testing.assert_array_equal(*shares)


def test_a_classifier_in_a_metric_is_explained_by_its_metric(labelled):
    X, y = labelled
    classifier = MetricClassifier(LDA()).fit(X, y)
    shares = [feature_importance(part, X).shares for part in (classifier, classifier.metric_)]
    np.testing.assert_array_equal(*shares)
    model = make_pipeline(StandardScaler(), MetricClassifier(LDA())).fit(X, y)
    assert explain_pair(model, X[0], X[1]).squared_distance > 0


def test_names_are_those_of_the_frame(labelled):
    X, y = labelled
    frame = pd.DataFrame(X, columns=list("abcd"))
    metric = Kernelized(LDA(), RBF()).fit(frame, y)
    assert feature_importance(metric, frame).names == tuple("abcd")
    assert explain_pair(metric, frame.iloc[[0]], frame.iloc[3]).names == tuple("abcd")


# --- pictures and the command line ---------------------------------------------------------------


@pytest.mark.slow
def test_shares_are_drawn_with_the_largest_on_top(labelled, fresh):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="plots come with the extra `plot`")
    X, y = labelled
    why = explain_pair(LDA().fit(X, y), *fresh[:2])
    ax = plot_shares(why, most=2, title="why")
    widths = [bar.get_width() for bar in ax.patches]
    assert widths[:2] == [share for _, share in why.ranked()[:2]]
    assert sum(widths) == pytest.approx(why.squared_distance)
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "2 others"
    with pytest.raises(ValueError, match="explain_pair"):
        plot_shares([1.0])
    pyplot.close("all")


@pytest.fixture
def model_file(orchard, tmp_path):
    frame, y = orchard
    frame.assign(label=y).to_csv(tmp_path / "orchard.csv", index=False)
    encoder = TableEncoder(["kg", "noise"], ["site"])
    model = Pipeline([("table", encoder), ("metric", Kernelized(LDA(), RBF()))]).fit(frame, y)
    save(model, tmp_path / "model.km")
    return tmp_path / "model.km", tmp_path / "orchard.csv"


def test_the_command_line_names_the_columns_that_shape_a_metric(run, model_file):
    told = run("explain", *model_file)
    assert told.exit_code == 0
    assert "site" in told.stdout.splitlines()[3]
    answer = json.loads(run("explain", *model_file, "--json").stdout)
    assert answer["columns"][0]["column"] == "site"
    assert sum(entry["share"] for entry in answer["columns"]) == pytest.approx(1)


def test_the_command_line_splits_the_distance_of_two_rows(run, model_file):
    told = run("explain", *model_file, "--rows", 3, 17)
    assert told.exit_code == 0
    assert "Rows 3 and 17: distance" in told.stdout
    answer = json.loads(run("explain", *model_file, "--rows", 3, 17, "--json").stdout)
    shares = [entry["share"] for entry in answer["columns"]]
    assert abs(sum(shares) - answer["squared_distance"]) < 1e-8
    assert {entry["column"] for entry in answer["columns"]} == {"kg", "noise", "site"}


def test_the_command_line_refuses_a_row_that_is_not_there(run, model_file):
    told = run("explain", *model_file, "--rows", 3, 1700)
    assert told.exit_code == 1
    assert "Got --rows 3 1700, but expected at most 59" in told.stderr


# --- what is refused -----------------------------------------------------------------------------


def test_what_has_no_features_is_refused(labelled):
    X, y = labelled
    gram = Kernelized(LDA(), "precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="precomputed"):
        explain_pair(gram, X @ X[0], X @ X[1])
    with pytest.raises(ValueError, match="TransductiveDistance"):
        feature_importance(TransductiveDistance(), X)
    with pytest.raises(ValueError, match="with transform"):
        feature_importance(KNeighborsClassifier().fit(X, y), X)
    with pytest.raises(ValueError, match="PCA before the metric"):
        feature_importance(make_pipeline(PCA(2), LDA()).fit(X, y), X)


def test_wrong_rows_are_refused(labelled):
    X, y = labelled
    metric = LDA().fit(X, y)
    with pytest.raises(ValueError, match="Got 2 rows, but expected one"):
        explain_pair(metric, X[:2], X[0])
    with pytest.raises(ValueError, match="expected 4 features"):
        explain_pair(metric, X[0, :3], X[0])
    with pytest.raises(ValueError, match="NaN or infinity"):
        explain_pair(metric, np.full(4, np.nan), X[0])
    with pytest.raises(ValueError, match="sees no difference"):
        feature_importance(metric, X[[0, 0, 0]])
    with pytest.raises(ValueError, match="max_samples=0"):
        feature_importance(metric, X, max_samples=0)
