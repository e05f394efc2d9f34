"""What may stand inside Kernelized, and what is refused there in a sentence."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags

from kernelmetric import (
    DNE,
    KPCA,
    LMNN,
    MLKR,
    NCA,
    RBF,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Linear,
    Nystroem,
    RandomFeatures,
    load,
    map_at_r,
    memory_budget,
    recall_at_k,
    save,
)

INDEFINITE = IdealizedKernel(C=1e3, nu=0.8, psd="none")


def roots(squares):
    return np.sign(squares) * np.sqrt(np.abs(squares))


# --- an indefinite metric -----------------------------------------------------------------------


@pytest.fixture
def indefinite(labelled):
    return Kernelized(INDEFINITE, RBF(gamma=0.3)).fit(*labelled)


def test_distances_of_an_indefinite_metric_are_those_of_its_matrix(indefinite, labelled, fresh):
    X, _ = labelled
    M = indefinite.get_mahalanobis_matrix()
    values = np.linalg.eigvalsh(M)
    assert values[0] < -0.01 * values[-1]  # else nothing was indefinite
    A, B = indefinite.space_.transform(fresh), indefinite.space_.transform(X)
    delta = A[:, None, :] - B[None, :, :]
    expected = roots(np.einsum("ijk,kl,ijl->ij", delta, M, delta))
    top = np.abs(expected).max()
    np.testing.assert_allclose(indefinite.pairwise_distances(fresh, X), expected, atol=1e-6 * top)
    rows = np.array([[0, 1], [2, 7], [10, 29], [4, 4]])
    D = indefinite.pairwise_distances(X)
    pairs = indefinite.pair_distance(rows, X)
    np.testing.assert_allclose(pairs, D[rows[:, 0], rows[:, 1]], atol=1e-6 * top)
    np.testing.assert_allclose(indefinite.pair_distance(X[rows]), pairs, atol=1e-6 * top)
    np.testing.assert_allclose(indefinite.pair_score(X[rows]), -pairs, atol=1e-6 * top)
    assert indefinite.get_metric()(X[2], X[7]) == pytest.approx(D[2, 7], abs=1e-6 * top)
    K = A @ M @ B.T
    np.testing.assert_allclose(
        indefinite.pairwise_kernels(fresh, X), K, atol=1e-8 * np.abs(K).max()
    )


def test_signs_of_a_learner_go_with_its_map(indefinite, labelled):
    X, _ = labelled
    L, signs = indefinite.components_, indefinite.signature_
    assert signs.shape == L.shape[:1]
    assert sorted(set(signs.tolist())) == [-1, 1]
    assert Kernelized(DNE(2), "rbf").fit(*labelled).signature_ is None
    delta = np.subtract(*indefinite.transform(X[:2]))
    assert indefinite.pairwise_distances(X[:2])[0, 1] == pytest.approx(
        roots(delta @ (signs * delta)), rel=1e-6
    )
    plain = indefinite.pairwise_distances(X)
    indefinite.learner_.signature_ = -signs  # the same rows, all of the other sign
    np.testing.assert_allclose(indefinite.pairwise_distances(X), -plain, atol=1e-7 * plain.max())


def test_what_takes_coordinates_for_the_metric_refuses_an_indefinite_one(indefinite, labelled):
    inside = clone(INDEFINITE).set_params(kernel=RBF(gamma=0.3)).fit(*labelled)
    for metric in (indefinite, inside, make_pipeline(StandardScaler(), indefinite)):
        for call in (recall_at_k, map_at_r):
            with pytest.raises(ValueError, match="squared distances may be negative"):
                call(metric, *labelled)


def test_an_indefinite_metric_is_the_same_with_the_kernel_inside_and_outside(indefinite, labelled):
    X, y = labelled
    inside = clone(INDEFINITE).set_params(kernel=RBF(gamma=0.3)).fit(X, y)
    D = inside.pairwise_distances(X)
    assert np.abs(indefinite.pairwise_distances(X) - D).max() < 1e-5 * np.abs(D).max()
    # without the negative half it would be another metric
    E = indefinite.transform(X)
    positive = np.linalg.norm(E[:, None] - E[None], axis=2)
    assert np.abs(positive - D).max() > 0.05 * np.abs(D).max()


def test_an_indefinite_metric_is_computed_in_blocks_and_saved_whole(indefinite, labelled, tmp_path):
    X, _ = labelled
    expected = indefinite.pairwise_distances(X)
    with memory_budget("20KB"):
        blocked = indefinite.pairwise_distances(X)
    np.testing.assert_allclose(blocked, expected, atol=1e-6 * np.abs(expected).max())
    save(indefinite, tmp_path / "metric.km")
    again = load(tmp_path / "metric.km")
    np.testing.assert_allclose(
        again.pairwise_distances(X), expected, atol=1e-6 * np.abs(expected).max()
    )
    np.testing.assert_array_equal(
        again.get_mahalanobis_matrix(), indefinite.get_mahalanobis_matrix()
    )


@pytest.mark.parametrize("psd", ["solve", "clip"])
def test_a_definite_metric_has_the_matrix_of_its_map(psd, labelled):
    metric = Kernelized(IdealizedKernel(C=1e3, nu=0.8, psd=psd), "rbf").fit(*labelled)
    L = metric.components_
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), L.T @ L)
    assert metric.pairwise_distances(labelled[0]).min() >= 0


def test_a_search_refuses_a_metric_that_coordinates_cannot_hold(labelled):
    with pytest.raises(ValueError, match=r"indefinite.*try psd='solve'"):
        KernelizedCV(INDEFINITE, "rbf").fit(*labelled)
    with pytest.raises(ValueError, match=r"may be indefinite: coordinates cannot hold"):
        Kernelized(make_pipeline(StandardScaler(), INDEFINITE), "rbf").fit(*labelled)


# --- a kernel of its own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        IdealizedKernel(kernel="rbf"),
        IdealizedKernel(kernel=RBF(gamma=1.0)),
        Kernelized(DNE(2)),
        KernelizedCV(DNE(2)),
        KPCA(2),
        make_pipeline(StandardScaler(), IdealizedKernel(kernel="poly")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("outer", [Kernelized, KernelizedCV])
def test_points_are_not_kernelized_twice(outer, learner, labelled):
    with pytest.raises(ValueError, match=r"has a kernel of its own, and points would be kernel"):
        outer(learner, "rbf").fit(*labelled)


@pytest.mark.every(2)
@pytest.mark.parametrize("linear", ["linear", Linear()], ids=repr)
def test_a_linear_kernel_inside_is_none(linear, labelled, fresh):
    X, y = labelled
    metric = Kernelized(IdealizedKernel(linear, C=10.0), RBF(gamma=0.3)).fit(X, y)
    plain = Kernelized(IdealizedKernel(C=10.0), RBF(gamma=0.3)).fit(X, y)
    expected = plain.pairwise_distances(fresh)
    np.testing.assert_allclose(
        metric.pairwise_distances(fresh), expected, atol=1e-4 * expected.max()
    )


def test_estimators_of_others_may_have_kernels(labelled):
    assert Kernelized(SVC(kernel="rbf"), "rbf", KPCA()).fit(*labelled).score(*labelled) > 0.5


# --- a warm start -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        NCA(warm_start=True),
        LMNN(warm_start=True),
        NeighborhoodComponentsAnalysis(warm_start=True),
        make_pipeline(PCA(2), LogisticRegression(warm_start=True)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("outer", [Kernelized, KernelizedCV])
def test_a_warm_start_is_refused_because_the_basis_is_another(outer, learner, labelled):
    with pytest.raises(ValueError, match=r"begins every fit afresh.*Expected warm_start=False"):
        outer(learner, "rbf").fit(*labelled)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_the_refusal_advises_goes_on(labelled):
    X, y = labelled
    metric = Kernelized(NCA(2, max_iter=3), RBF(gamma=0.3)).fit(X, y)
    loss = metric.learner_.loss_
    metric.learner_.set_params(warm_start=True).fit(metric.space_.transform(X), y)
    assert metric.learner_.loss_ < loss
    E = metric.space_.transform(X) @ metric.components_.T
    np.testing.assert_allclose(metric.transform(X), E, atol=1e-10 * np.abs(E).max())


# --- no estimator at all ------------------------------------------------------------------------


class Bare:
    """No scikit-learn estimator, though it has a fit."""

    def fit(self, X, y=None):
        return self


JUNK = [
    *(None, 3, 0.5, np.nan, True, 1j, "LMNN", "", b"LMNN", [], [LMNN()], (), {}, {"a": 1}, set()),
    *(object(), len, type, LMNN, Bare, Bare(), lambda X: X, range(3), Ellipsis, NotImplemented),
    *(np.zeros(3), np.float64(1), slice(1), iter([])),
]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
@pytest.mark.parametrize("outer", [Kernelized, KernelizedCV])
def test_what_is_no_estimator_is_refused_in_a_sentence(outer, junk, labelled):
    metric = outer(junk)
    get_tags(metric)  # scikit-learn asks at any time
    repr(metric)
    with pytest.raises(
        ValueError, match=rf"Got .*{outer.__name__} expected an? .*estimator.*: try"
    ):
        metric.fit(*labelled)


def test_a_class_is_not_its_instance(labelled):
    with pytest.raises(ValueError, match=r"Got the class LMNN as learner.*try LMNN\(\)"):
        Kernelized(LMNN).fit(*labelled)


# --- one kernel ---------------------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize("kernel", ["auto", "aligned", "rbf", RBF(gamma=0.3)], ids=repr)
@pytest.mark.parametrize(
    "space", ["auto", KPCA(3), KernelTrick(), Nystroem(10, random_state=0)], ids=repr
)
def test_the_kernel_is_bound_once(kernel, space, labelled):
    metric = Kernelized(DNE(1), kernel, space).fit(*labelled)
    assert metric.kernel_ is metric.space_.kernel_
    assert metric.kernel_.is_bound
    if kernel == "auto":
        assert metric.space_.kernel_.candidates_
    if kernel == "aligned":
        assert metric.space_.kernel_.alignment_ > 0


def test_points_with_nan_are_refused_though_the_space_does_not_look_again(labelled):
    X, y = labelled
    metric = Kernelized(DNE(2), "rbf").fit(X, y)
    bad = X.copy()
    bad[3, 1] = np.nan
    for call in (metric.transform, metric.pairwise_distances):
        with pytest.raises(ValueError, match="contains NaN"):
            call(bad)


# --- precision ----------------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "learner", [NeighborhoodComponentsAnalysis(2, max_iter=3), PCA(2), NCA(2), DNE(2)], ids=repr
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_precision_of_the_points_is_kept(learner, dtype, labelled):
    X, y = labelled
    X = X.astype(dtype)
    for space in (KPCA(), "auto"):
        metric = Kernelized(learner, RBF(gamma=0.3), space)
        assert metric.fit_transform(X, y).dtype == dtype
        assert metric.transform(X).dtype == dtype
        if space != "auto":  # where training points are placed as if they were left out
            np.testing.assert_allclose(metric.fit_transform(X, y), metric.transform(X), atol=1e-3)


# --- further arguments, and numbers -------------------------------------------------------------


def test_a_refusal_names_the_further_arguments_of_the_learner(labelled):
    X, y = labelled
    weights = (y == 0).astype(float)
    with pytest.raises(ValueError, match=r"SVC.fit with .*sample_weight.*: .*class"):
        Kernelized(SVC(), "rbf").fit(X, y, sample_weight=weights)


@pytest.mark.slow
def test_a_search_for_a_learner_of_numbers_predicts_numbers(labelled):
    X, _ = labelled
    target = np.sin(X[:, 0]) + X[:, 1]
    kernels = [Linear(), RBF(gamma=0.1)]
    search = KernelizedCV(MLKR(2), kernels, 3, space=KPCA()).fit(X, target)
    assert get_tags(search).estimator_type == "regressor"
    assert isinstance(search.estimator_, KNeighborsRegressor)
    np.testing.assert_array_equal(search.predict(X), target)  # of the nearest: the point itself
    assert search.best_score_ > 0  # better than the mean


@pytest.mark.parametrize("space", ["auto", Nystroem(10), RandomFeatures(20)], ids=repr)
def test_sparse_single_precision_goes_through(space, labelled):
    X, y = labelled
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    space = space if isinstance(space, str) else clone(space).set_params(random_state=0)
    metric = Kernelized(DNE(2), RBF(gamma=0.3), space).fit(sparse.csr_array(X), y)
    E = metric.transform(sparse.csr_array(X))
    assert E.dtype == np.float32
    np.testing.assert_allclose(E, metric.transform(X), atol=1e-3 * np.abs(E).max())


class Namer(ClassifierMixin, BaseEstimator):
    """A classifier whose answers are no wider than the longest name among them."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == name].mean(axis=0) for name in self.classes_])
        return self

    def predict(self, X):
        nearest = np.argmin(((X[:, None] - self.means_) ** 2).sum(axis=2), axis=1)
        return np.array([str(self.classes_[i]) for i in nearest])


def test_a_small_budget_cuts_no_name_of_a_prediction():
    y = np.repeat(["ash", "silver birch"], 10)
    X = np.random.RandomState(0).randn(20, 2) + 20.0 * (y == "ash")[:, None]
    metric = Kernelized(Namer(), "linear").fit(X, y)
    with memory_budget(1):
        assert metric.predict(X).tolist() == y.tolist()
