"""Bad input: a sentence that says what was got, what was expected, what to try; never a NaN."""

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from kernelmetric import (
    DNE,
    KPCA,
    LMCA,
    LMNN,
    MLKR,
    NCA,
    RBF,
    Cosine,
    Kernelized,
    KernelTrick,
    Laplacian,
    Linear,
    MetricRegressor,
    Nystroem,
    Pairs,
    Polynomial,
    RandomFeatures,
    Triplets,
)
from tested_learners import robust

pytestmark = pytest.mark.usefixtures("deadline")
ESTIMATORS = [
    *robust(),
    Kernelized(NCA()),
    Kernelized(LMNN()),
    Kernelized(DNE()),
    Kernelized(DNE(), "auto"),
    Kernelized(NCA(), Linear()),
    Kernelized(DNE(2), space=KernelTrick()),
    Kernelized(DNE(2), space=Nystroem(10, random_state=0)),
]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
each_of_labels = pytest.mark.parametrize(
    "estimator",
    [e for e in ESTIMATORS if getattr(e, "learns_from", "labels") == "labels"],
    ids=repr,
)
each_of_classes = pytest.mark.parametrize(
    "estimator",
    [
        e
        for e in ESTIMATORS
        if getattr(e, "learns_from", "labels") == "labels"
        and not get_tags(e).target_tags.multi_output  # those that take numbers too
    ],
    ids=repr,
)


@pytest.fixture(autouse=True)
def copies(request):
    """Every test works on its own copy of the estimator."""
    if "estimator" in request.fixturenames:
        request.node.funcargs["estimator"] = clone(request.getfixturevalue("estimator"))


# --- the points ---------------------------------------------------------------------------------


@pytest.mark.every(3)
@each
@pytest.mark.parametrize(("value", "match"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_and_infinity_are_refused(estimator, value, match, labelled):
    X, y = labelled
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=f"contains {match}"):
        estimator.fit(bad, y)
    estimator.fit(X, y)
    with pytest.raises(ValueError, match=f"contains {match}"):
        estimator.transform(bad)


@pytest.mark.every(3)
@each
def test_one_sample_is_refused(estimator, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"1 sample\(s\).*minimum of 2 is required"):
        estimator.fit(X[:1], y[:1])


@pytest.mark.every(3, 1)
@each
def test_identical_points_are_refused(estimator, labelled):
    _, y = labelled
    with pytest.raises(ValueError, match=r"Got 30 (identical )?points.*expected at least two diff"):
        estimator.fit(np.full((30, 4), 0.1), y)


@pytest.mark.every(3, 2)
@each
def test_constant_and_duplicate_columns_are_harmless(estimator, labelled):
    X, y = labelled
    X = np.column_stack([X, np.full(30, 3.0), X[:, 0], np.zeros(30)])
    estimator.fit(X, y)
    assert np.isfinite(estimator.components_).all()
    assert np.ptp(estimator.pairwise_distances(X)) > 0


@pytest.mark.every(3)
@each
@pytest.mark.filterwarnings("ignore::kernelmetric.kernelized._copies.CopiesWarning")
def test_duplicate_rows_are_harmless(estimator, labelled):
    X, y = (np.concatenate([a, a[:15]]) for a in labelled)
    estimator.fit(X, y)
    assert np.isfinite(estimator.components_).all()
    D = estimator.pairwise_distances(X)
    np.testing.assert_allclose(D[:15, 30:].diagonal(), 0, atol=1e-6 * D.max())


@pytest.mark.every(3, 1)
@each
@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_features_out_of_range_are_refused_with_advice(estimator, scale, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"Got .*rescal"):
        estimator.fit(scale * X, y)


@pytest.mark.every(4)
@each
@pytest.mark.parametrize("scale", [1e100, 1e-100])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_features_far_from_one_give_a_metric(estimator, scale, labelled):
    X, y = labelled
    estimator.fit(scale * X, y)
    assert np.isfinite(estimator.components_).all()
    D = estimator.pairwise_distances(scale * X)
    assert np.isfinite(D).all()
    assert D.max() > 0


@pytest.mark.parametrize("kernel", [RBF(), Laplacian(), Polynomial(), Linear(), Cosine()], ids=repr)
@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_no_kernel_hides_an_overflow(kernel, scale, labelled):
    X, y = labelled
    metric = Kernelized(DNE(2), kernel)
    try:
        metric.fit(scale * X, y)
    except ValueError as error:
        assert "Got" in str(error)
        assert "rescaling" in str(error)
    else:
        assert isinstance(kernel, Cosine | Laplacian)
        assert np.isfinite(metric.transform(scale * X)).all()


@pytest.mark.every(3, 2)
@each
@pytest.mark.filterwarnings("ignore:DNE found no negative eigenvalue:UserWarning")
def test_one_column_in_another_unit_leaves_no_nan(estimator, labelled):
    X, y = labelled
    X = X * np.array([1.0, 1e8, 1e-8, 1.0])
    estimator.fit(X, y)
    assert np.isfinite(estimator.components_).all()
    assert np.isfinite(estimator.transform(X)).all()


@pytest.mark.every(4)
@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.parametrize("estimator", [NCA(), LMNN(), LMCA(2), DNE()], ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_points_far_from_the_origin_end(estimator, offset, labelled):
    X, y = labelled
    estimator.fit(X + offset, y)
    assert np.isfinite(estimator.components_).all()


@pytest.mark.every(3)
@each
def test_points_must_be_a_table(estimator, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array"):
        estimator.fit(X[:, 0], y)
    with pytest.raises(ValueError, match=r"could not convert string to float"):
        estimator.fit([["a", "b"]] * 30, y)
    with pytest.raises(ValueError, match=r"Complex data not supported"):
        estimator.fit(X + 1j, y)


# --- the labels ---------------------------------------------------------------------------------


@pytest.mark.every(3, 1)
@each_of_labels
def test_one_class_is_refused(estimator, labelled):
    X, _ = labelled
    with pytest.raises(ValueError, match=r"Got 1 class.*all 30 samples.*expected at least two cl"):
        estimator.fit(X, np.zeros(30, dtype=int))


@pytest.mark.every(3, 2)
@each_of_classes
def test_continuous_labels_are_refused(estimator, labelled):
    X, _ = labelled
    with pytest.raises(ValueError, match=r"Unknown label type: continuous"):
        estimator.fit(X, X[:, 0])


@pytest.mark.every(3)
@each_of_labels
def test_missing_labels_are_refused(estimator, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None"):
        estimator.fit(X, None)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[30, 20\]"):
        estimator.fit(X, y[:20])


@pytest.mark.every(3, 1)
@each
def test_labels_with_nan_are_refused(estimator, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"y contains NaN"):
        estimator.fit(X, np.where(y == 0, np.nan, y))


@pytest.mark.parametrize("estimator", [NCA(), Kernelized(NCA())], ids=repr)
def test_classes_of_one_are_harmless_to_nca(estimator, labelled):
    X, y = labelled
    y = np.where(np.arange(30) < 4, 10 + np.arange(30), y)
    estimator.fit(X, y)
    assert np.isfinite(estimator.components_).all()


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "estimator", [LMNN(), LMCA(2), DNE(), Kernelized(LMNN()), Kernelized(DNE())], ids=repr
)
def test_k_larger_than_any_class_warns_and_works(estimator, labelled):
    X, y = labelled
    name = "n_neighbors" if "n_neighbors" in estimator.get_params() else "learner__n_neighbors"
    estimator.set_params(**{name: 50})
    with pytest.warns(UserWarning, match=r"3 class\(es\) with at most n_neighbors=50 members"):
        estimator.fit(X, y)
    assert np.isfinite(estimator.components_).all()


@pytest.mark.parametrize("estimator", [LMNN(), LMCA(2), Kernelized(LMNN())], ids=repr)
@pytest.mark.filterwarnings("ignore:Got 30 class:UserWarning")
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_only_classes_of_one_are_refused_by_lmnn(estimator, labelled):
    X, _ = labelled
    with pytest.raises(ValueError, match=r"no class with two members, but expected at least one"):
        estimator.fit(X, np.arange(30))


@pytest.mark.parametrize("estimator", [NCA(), DNE(2), Kernelized(NCA())], ids=repr)
@pytest.mark.filterwarnings("ignore:Got 30 class:UserWarning")
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_only_classes_of_one_leave_no_nan(estimator, labelled):
    X, _ = labelled
    try:
        estimator.fit(X, np.arange(30))
    except ValueError as error:
        assert "Got" in str(error)
    else:
        assert np.isfinite(estimator.components_).all()


# --- the kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["auto", KPCA(5), KernelTrick(), Nystroem(50)], ids=repr)
def test_an_indefinite_kernel_is_refused(space, labelled):
    _, y = labelled
    rng = np.random.RandomState(0)
    A = rng.standard_normal((30, 30))
    with pytest.raises(ValueError, match=r"expected a positive semi-definite kernel"):
        Kernelized(DNE(2), "precomputed", space).fit(A + A.T, y)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda K: K + np.triu(K, 1), r"\|K - Kᵀ\| up to .*expected a symmetric Gram matrix"),
        (lambda K: K[:, :20], r"shape \(30, 20\).*expected a square Gram matrix"),
        (lambda K: np.where(K > 0.9, np.nan, K), "contains NaN"),
    ],
    ids=["asymmetric", "oblong", "nan"],
)
def test_a_precomputed_kernel_must_be_a_gram_matrix(change, match, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=match):
        Kernelized(DNE(2), "precomputed").fit(change(RBF(gamma=0.3)(X)), y)


@pytest.mark.parametrize("space", ["auto", KernelTrick(), Nystroem(10)], ids=repr)
def test_a_kernel_that_returns_nan_is_refused(space, labelled):
    def kernel(A, B):
        return np.full((len(A), len(B)), np.nan)

    with pytest.raises(
        ValueError, match=r"(?s)Got non-finite values from Function.*expected finite"
    ):
        Kernelized(DNE(2), kernel, space).fit(*labelled)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"kernel": "gauss"}, r"Got kernel='gauss', but expected .*'rbf'"),
        ({"kernel": RBF}, r"Got the class RBF.*try RBF\(\)"),
        ({"kernel": 3}, r"Got kernel=3, but expected"),
        ({"space": "big"}, r"Got space='big', but expected 'auto' or a space"),
        ({"space": KPCA}, r"Got space=.*KPCA.*but expected 'auto' or a space"),
        ({"space": 5}, r"Got space=5, but expected 'auto' or a space"),
        ({"space": NCA()}, r"Got space=NCA\(\), but expected 'auto' or a space"),
        ({"space": KPCA(kernel="rbf")}, r"Got a kernel in KPCA.*leave it out of the space"),
        ({"neighbors": "far"}, r"Got neighbors='far', but expected 'feature' or 'input'"),
        ({"learner": NCA(), "neighbors": "input"}, r"NCA looks for no neighbours: leave it out"),
        ({"kernel": Polynomial(), "space": RandomFeatures(50)}, r"RandomFeatures expected RBF"),
    ],
)
def test_wrong_parts_are_refused(params, match, labelled):
    X, y = labelled
    metric = Kernelized(DNE(2)).set_params(**params)
    with pytest.raises(ValueError, match=match):
        metric.fit(X, y)


def test_the_input_space_of_a_precomputed_kernel_is_unknown(labelled):
    X, y = labelled
    metric = Kernelized(DNE(2), "precomputed", neighbors="input")
    with pytest.raises(ValueError, match=r"no input space to look in"):
        metric.fit(RBF(gamma=0.3)(X), y)


def test_pairs_are_refused_by_learners_of_labels(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"Got similar pairs, but DNE learns from labels: pass y"):
        Kernelized(DNE(2)).fit(X, y, similar=[[0, 1]])
    with pytest.raises(ValueError, match=r"Got dissimilar pairs, but NCA learns"):
        Kernelized(NCA()).fit(X, y, dissimilar=[[0, 1]])


@pytest.mark.parametrize("kernel", [Laplacian(), RBF() + Laplacian(), "chi2"], ids=repr)
def test_sparse_points_are_refused_where_the_kernel_cannot(kernel, labelled):
    X, y = labelled
    with pytest.raises(TypeError, match=r"[Ss]parse.*dense"):
        Kernelized(DNE(2), kernel).fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("learner", [NCA(), LMNN(), LMCA(2), DNE()], ids=repr)
def test_sparse_points_are_refused_by_linear_learners(learner, labelled):
    X, y = labelled
    with pytest.raises(TypeError, match=r"Sparse data was passed.*dense data is required.*toarray"):
        learner.fit(sparse.csr_array(X), y)


# --- the parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "match"),
    [
        (NCA(0), r"Got n_components=0, but NCA expected an integer >= 1"),
        (NCA(2.5), r"Got n_components=2.5, but NCA expected an integer"),
        (NCA(5), r"Got n_components=5, but expected at most 4, the number of features"),
        (DNE(5), r"Got n_components=5, but expected at most 4"),
        (LMNN(True), r"Got n_components=True"),
        (NCA(init="best"), r"Got init='best', but expected 'auto', 'identity'"),
        (NCA(init=np.eye(3)), r"Got init of shape \(3, 3\), but expected .*n_features"),
        (NCA(2, init=np.eye(4)), r"Got init of shape \(4, 4\), but expected .* \(2, 4\)"),
        (LMCA(2, init=np.full((2, 4), np.nan)), r"Got init with NaN or infinity"),
        (NCA(max_iter=0), r"Got max_iter=0, but NCA expected an integer >= 1"),
        (NCA(max_iter=1.5), r"Got max_iter=1.5"),
        (NCA(tol=-1.0), r"Got tol=-1.0, but NCA expected 'auto' or a number >= 0"),
        (NCA(tol="small"), r"Got tol='small', but NCA expected 'auto' or a number"),
        (NCA(reg=np.nan), r"Got reg=nan"),
        (NCA(reg=np.inf), r"Got reg=inf"),
        (LMNN(c=np.inf), r"Got c=inf"),
        (LMNN(reg=-1), r"Got reg=-1"),
        (DNE(reg=-1), r"Got reg=-1, but DNE expected a number >= 0"),
        (LMNN(c=-1), r"Got c=-1, but LMNN expected a number >= 0"),
        (LMNN(n_neighbors=0), r"Got n_neighbors=0, but LMNN expected an integer >= 1"),
        (DNE(n_neighbors=1.0), r"Got n_neighbors=1.0, but DNE expected an integer"),
        (NCA(solver="newton"), r"Got solver='newton', but expected 'auto', 'lbfgs' or 'minibatch'"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused_in_a_sentence(learner, match, labelled):
    with pytest.raises(ValueError, match=match):
        learner.fit(*labelled)


@pytest.mark.parametrize(
    ("neighbors", "match"),
    [
        (np.zeros((20, 1)), r"Got neighbors of shape \(20, 1\), but expected one row for each"),
        (np.full((30, 1), 30), r"target neighbours from 30 to 30, but expected row numbers from 0"),
        (np.full((30, 1), -2), r"target neighbours from -2"),
        (np.zeros((30, 1), dtype=int), r"a target neighbour of another class for row 1"),
        (np.full((30, 1), -1), r"no class with two members"),
    ],
)
def test_wrong_target_neighbours_are_refused(neighbors, match, labelled):
    with pytest.raises(ValueError, match=match):
        LMNN().fit(*labelled, neighbors=neighbors)


@pytest.mark.parametrize("learner", [LMNN(), DNE()], ids=repr)
def test_neighbours_in_points_with_nan_are_refused(learner, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"NaN"):
        learner.fit(X, y, neighbors=np.full_like(X, np.nan))


# --- the order of calls -------------------------------------------------------------------------


@pytest.mark.every(3, 2)
@each
def test_nothing_works_before_fit(estimator, labelled):
    X, _ = labelled
    for call in (
        lambda: estimator.transform(X),
        lambda: estimator.pairwise_distances(X),
        lambda: estimator.pairwise_kernels(X),
        lambda: estimator.pair_distance(X[None, :2]),
        lambda: estimator.get_metric(),
        lambda: estimator.get_mahalanobis_matrix(),
    ):
        with pytest.raises(NotFittedError, match=r"not fitted yet. Call 'fit'"):
            call()


@pytest.mark.every(3)
@each
def test_another_number_of_features_is_refused(estimator, labelled):
    X, y = labelled
    estimator.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but \w+ is expecting 4 features"):
        estimator.transform(X[:, :3])
    with pytest.raises(ValueError, match=r"X has 3 features"):
        estimator.pairwise_distances(X, X[:, :3])


def test_lmnn_warns_of_more_features_than_points_and_kernels_do_not():
    X = np.random.RandomState(0).randn(20, 30)
    y = np.arange(20) % 2
    with pytest.warns(UserWarning, match="Got 30 features of 20 points.*PCA"):
        LMNN().fit(X, y)
    LMNN().fit(X[:, :20], y)  # warnings are errors here
    LMCA(2).fit(X, y)
    Kernelized(LMNN()).fit(X, y)


@pytest.mark.every(3, 1)
@each
def test_what_a_mask_hides_is_not_learned_from(estimator, labelled):
    X, y = labelled
    hidden = np.ma.masked_where(X > 1, X)
    with pytest.raises(ValueError, match=r"masked array with \d+ masked entries of \d+"):
        estimator.fit(hidden, y)
    with pytest.raises(ValueError, match="masked array"):
        estimator.fit(X, np.ma.masked_where(np.arange(len(X)) < 3, y))
    estimator.fit(np.ma.masked_where(X > np.inf, X), y)  # it hides nothing
    with pytest.raises(ValueError, match="masked array"):
        estimator.transform(hidden)


@pytest.mark.parametrize("make", [Pairs, lambda *given, **n: Triplets(given[0], **n)])
def test_what_a_mask_hides_is_no_row_number(make):
    rows = np.ma.masked_where(np.eye(2, 3) > 0, np.arange(6).reshape(2, 3))
    with pytest.raises(ValueError, match="masked array with 2 masked entries of 6"):
        make(rows, [], n_samples=6)


@pytest.mark.parametrize("unit", ["datetime64[D]", "timedelta64[s]"])
@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("estimator", [NCA(), KPCA()], ids=repr)
def test_times_without_a_unit_are_refused(estimator, frame, unit, labelled):
    y = labelled[1]
    times = np.arange(2 * len(y)).reshape(-1, 2).astype(unit)
    with pytest.raises(ValueError, match=rf"Got X of type {unit[:8]}.*say what counts as one"):
        estimator.fit(pd.DataFrame(times.astype(unit[:-3] + "[s]")) if frame else times, y)


@pytest.mark.parametrize("regressor", [MLKR(), MetricRegressor()], ids=repr)
def test_targets_that_are_times_are_refused(regressor, labelled):
    X = labelled[0]
    with pytest.raises(ValueError, match=r"Got y of type datetime64\[D\]"):
        regressor.fit(X, np.arange(len(X)).astype("datetime64[D]"))


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (lambda n: np.ma.masked_where(np.arange(n) < 2, np.ones(n)), "masked array"),
        (lambda n: np.ones(n).astype("timedelta64[s]"), "Got sample_weight of type timedelta"),
    ],
    ids=["masked", "times"],
)
def test_weights_that_are_no_numbers_are_refused(weights, match, labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=match):
        NCA().fit(X, y, sample_weight=weights(len(X)))


def test_complex_points_of_other_libraries_are_refused(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"Complex data not supported: got X of .*complex"):
        NCA().fit(array_api_strict.asarray(X + 1j), y)
