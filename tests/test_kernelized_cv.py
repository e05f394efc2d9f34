"""KernelizedCV: what GridSearchCV would find, with the shared work done once."""

import math
import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmetric import (
    DNE,
    ITML,
    KPCA,
    LDA,
    LMNN,
    NCA,
    RBF,
    Delta,
    Kernelized,
    KernelTrick,
    Linear,
    Nystroem,
    Polynomial,
    memory_budget,
    time_limit,
)
from kernelmetric.datasets import make_fig2_circles
from kernelmetric.kernelized import KernelizedCV
from kernelmetric.kernelized import _folds as folds_module
from kernelmetric.kernels import Precomputed
from kernelmetric.selection import _kernel_choice as path_module
from kernelmetric.spaces._centred_gram import CentredGram
from tested_learners import left_out_places

WIDTHS = [RBF(sigma=sigma) for sigma in (2.0, 1.0, 0.3)]
MIXED = [*WIDTHS, "auto", RBF(gamma="median") + 0.1 * Delta(), Linear(), Polynomial()]
RANKS = [2, 5, None]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def overlapping():
    """60 points of three classes, no kernel and rank of which is right about all."""
    rng = np.random.RandomState(3)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 4))
    X[:, 0] += 1.5 * y
    return X, y


def grid_search(learner, kernels, ranks, **options):
    pipeline = Pipeline([("metric", Kernelized(learner)), ("knn", KNeighborsClassifier(1))])
    grid = {"metric__kernel": kernels, "metric__space": [KPCA(rank) for rank in ranks]}
    return GridSearchCV(pipeline, grid, cv=FOLDS, **options)


@pytest.fixture
def counted(monkeypatch):
    """How often distances and eigenvectors are computed."""
    counts = {"distances": 0, "eigenvectors": 0}

    def count(module, name, key):
        function = getattr(module, name)

        def counting(*args):
            counts[key] += 1
            return function(*args)

        monkeypatch.setattr(module, name, counting)

    count(path_module, "squared_distances", "distances")
    count(CentredGram, "eigenpairs", "eigenvectors")
    return counts


# --- the same as GridSearchCV -------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed_grid(overlapping):
    return grid_search(DNE(1), MIXED, RANKS).fit(*overlapping)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_every_score_is_that_of_a_grid_search(n_jobs, overlapping, mixed_grid):
    grid = mixed_grid
    space = KPCA()  # which the grid has, too
    search = KernelizedCV(DNE(1), MIXED, FOLDS, RANKS, space=space, n_jobs=n_jobs)
    search.fit(*overlapping)
    for key in ("mean", "std", "rank"):
        np.testing.assert_allclose(
            search.cv_results_[f"{key}_test_score"],
            grid.cv_results_[f"{key}_test_score"],
            atol=1e-12,
        )
    assert len(set(search.cv_results_["mean_test_score"])) > 5
    assert search.best_index_ == grid.best_index_
    assert search.best_score_ == pytest.approx(grid.best_score_, abs=1e-12)
    X_new = np.random.RandomState(1).standard_normal((20, 4))
    np.testing.assert_allclose(
        search.pairwise_distances(X_new),
        grid.best_estimator_["metric"].pairwise_distances(X_new),
        atol=1e-12,
    )
    np.testing.assert_array_equal(search.predict(X_new), grid.predict(X_new))
    assert search.score(*overlapping) == grid.score(*overlapping)


@pytest.mark.slow
def test_lmnn_scores_as_in_a_grid_search(overlapping):
    learner = LMNN(tol=0.1)
    search = KernelizedCV(learner, WIDTHS, FOLDS, [2, 5], refit=False).fit(*overlapping)
    grid = grid_search(learner, WIDTHS, [2, 5], refit=False).fit(*overlapping)
    difference = search.cv_results_["mean_test_score"] - grid.cv_results_["mean_test_score"]
    assert np.max(np.abs(difference)) <= 2 / 60  # the last bits of K grow along the descent
    assert np.mean(difference == 0) > 0.7


def test_the_table_is_the_one_grid_search_writes(overlapping):
    search = KernelizedCV(DNE(2), WIDTHS, FOLDS, [2, 5]).fit(*overlapping)
    other = GridSearchCV(
        KPCAThenDNE(1), {"kernel": WIDTHS, "n_components": [2, 5]}, cv=FOLDS, scoring=lambda *_: 1.0
    ).fit(*overlapping)
    table, expected = search.cv_results_, other.cv_results_
    assert set(table) == set(expected)
    for key, column in expected.items():
        if key == "params":
            assert [list(row) for row in table[key]] == [list(row) for row in column]
            assert [str(row) for row in table[key]] == [str(row) for row in column]
        else:
            assert type(table[key]) is type(column)
            assert table[key].dtype == column.dtype
            assert table[key].shape == column.shape
    assert search.n_splits_ == other.n_splits_
    assert search.best_params_ == table["params"][search.best_index_]
    assert search.refit_time_ > 0


class KPCAThenDNE(KPCA):
    """A stand-in whose parameters have the names of the table."""

    def __init__(self, n_components=None, kernel=None):
        super().__init__(n_components, kernel=kernel)

    def score(self, X, y):
        return 1.0


@pytest.mark.slow
def test_other_estimators_and_scores_judge_too(overlapping):
    X, y = overlapping
    search = KernelizedCV(
        DNE(2), WIDTHS, FOLDS, RANKS, estimator=SVC(), scoring="balanced_accuracy"
    ).fit(X, y)
    pipeline = Pipeline([("metric", Kernelized(DNE(2))), ("svc", SVC())])
    grid = GridSearchCV(
        pipeline,
        {"metric__kernel": WIDTHS, "metric__space": [KPCA(r) for r in RANKS]},
        cv=FOLDS,
        scoring="balanced_accuracy",
    ).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=1e-12
    )
    assert search.score(X, y) == grid.score(X, y)
    assert search.decision_function(X).shape == (60, 3)
    assert not hasattr(search, "predict_proba")


@pytest.mark.slow
def test_learners_of_others_are_searched_too(overlapping):
    foreign = NeighborhoodComponentsAnalysis(2, init="pca", max_iter=5, random_state=0)
    search = KernelizedCV(foreign, WIDTHS, FOLDS, [2, 5]).fit(*overlapping)
    grid = grid_search(foreign, WIDTHS, [2, 5]).fit(*overlapping)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=2 / 60
    )


# --- the shared work is done once ---------------------------------------------------------------


@pytest.mark.slow
def test_distances_are_computed_once_in_a_fold_and_eigenvectors_once_for_all_ranks(
    counted, overlapping
):
    KernelizedCV(DNE(1), WIDTHS, FOLDS, RANKS, refit=False).fit(*overlapping)
    assert counted == {"distances": 2 * 3, "eigenvectors": 3 * len(WIDTHS)}  # to train, to test


@pytest.mark.slow
def test_without_memory_for_the_distances_the_result_is_the_same(counted, overlapping):
    kernels = [kernel for kernel in MIXED if not isinstance(kernel, str)]  # "auto" minds memory
    search = KernelizedCV(DNE(1), kernels, FOLDS, RANKS, space=KPCA())
    plenty = clone(search).fit(*overlapping)
    assert counted["distances"] == 6
    with memory_budget("20KB"):
        little = clone(search).fit(*overlapping)
    assert counted["distances"] == 6
    np.testing.assert_allclose(
        little.cv_results_["mean_test_score"],
        plenty.cv_results_["mean_test_score"],
        atol=1e-12,
    )
    assert little.best_index_ == plenty.best_index_


def test_a_rank_beyond_the_kernels_costs_nothing(overlapping, monkeypatch):
    fits = []
    monkeypatch.setattr(DNE, "fit", lambda self, *a, _fit=DNE.fit: fits.append(a) or _fit(self, *a))
    search = KernelizedCV(DNE(1), Linear(), FOLDS, [3, 4, 50, None], refit=False).fit(*overlapping)
    assert len(fits) == 3 * 2  # four features: rank 3, and rank 4 three times
    table = search.cv_results_
    assert np.ptp(table["mean_test_score"][1:]) == 0
    assert np.all(table["mean_fit_time"][2:] == 0)


@pytest.mark.slow
def test_each_process_gets_its_share_of_the_memory(overlapping, monkeypatch):
    shares = []

    def here(trial, *work):
        *work, n_bytes, left, _ = work
        assert math.isinf(left)
        shares.append(n_bytes)
        return list(trial.run(*work))

    monkeypatch.setattr(folds_module, "_run_apart", here)
    with memory_budget("40MB"), joblib.parallel_config(backend="threading"):
        KernelizedCV(DNE(1), WIDTHS, FOLDS, n_jobs=2, refit=False).fit(*overlapping)
    assert set(shares) == {20_000_000}
    assert len(shares) == 3 * 3


# --- what is tried ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_default_is_the_papers_widths_from_wide_to_narrow(overlapping):
    X, y = (some[::2] for some in overlapping)
    for kernels in (None, "rbf"):
        search = KernelizedCV(DNE(1), kernels, 2, 3, refit=False).fit(X, y)
        widths = [kernel.sigma for kernel in search.cv_results_["param_kernel"]]
        assert len(widths) == 21
        assert (widths[0], widths[-1]) == (1000.0, 0.01)
        assert widths == sorted(widths, reverse=True)


@pytest.mark.slow
def test_families_have_names():
    X, y = make_fig2_circles(80, random_state=0)
    search = KernelizedCV(DNE(1), "poly").fit(X, y)
    assert [kernel.degree for kernel in search.cv_results_["param_kernel"]] == [1, 2, 3, 4, 5]
    assert search.best_params_["kernel"].degree == 2


@pytest.mark.every(3)
@pytest.mark.parametrize("kernel", ["auto", "linear", RBF(gamma=1.0), lambda A, B: A @ B.T])
def test_a_kernel_alone_is_a_list_of_one(kernel, overlapping):
    search = KernelizedCV(DNE(1), kernel, n_components=3).fit(*overlapping)
    assert search.cv_results_["params"] == [{"kernel": kernel, "n_components": 3}]
    assert search.best_estimator_.kernel is kernel
    space = search.best_estimator_.space_  # of the automatic kernel, with the ridge's directions
    assert space.rank_ == 3 + getattr(space, "n_directions_", 0)
    assert (kernel == "auto") == hasattr(space, "n_directions_")


def test_the_first_of_equals_wins(overlapping):
    same = [RBF(gamma=0.2), RBF(gamma=0.2)]
    search = KernelizedCV(DNE(1), same, n_components=[40, None]).fit(*overlapping)
    assert len(set(search.cv_results_["mean_test_score"])) == 1
    assert search.best_index_ == 0


@pytest.mark.parametrize("kernels", [[], 3, (), "no such kernel", [RBF], ["rbf", Precomputed()]])
def test_bad_kernels_are_refused(kernels, overlapping):
    with pytest.raises(ValueError, match=r"^Got (kernels?=|the class RBF).*, but expected "):
        KernelizedCV(DNE(1), kernels).fit(*overlapping)


@pytest.mark.parametrize("ranks", [0, -1, [], [0], [2, 0.5], "all", True, 2.0])
def test_bad_ranks_are_refused(ranks, overlapping):
    with pytest.raises(ValueError, match="Got n_components="):
        KernelizedCV(DNE(1), n_components=ranks).fit(*overlapping)


def test_other_bad_parameters_are_refused_with_a_sentence(overlapping):
    X, y = overlapping
    for search, said in (
        (KernelizedCV(DNE(1), space=KernelTrick()), "leading coordinates"),
        (KernelizedCV(DNE(1), space=KPCA(0.9), n_components=[2]), "leading coordinates"),
        (KernelizedCV(DNE(1), error_score="ignore"), "error_score"),
        (KernelizedCV(SVC()), "GridSearchCV over Kernelized"),
    ):
        with pytest.raises(ValueError, match=said):
            search.fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        KernelizedCV(DNE(1)).fit(X)
    with pytest.raises(ValueError, match="Got similar pairs"):
        KernelizedCV(DNE(1)).fit(X, y, similar=[[0, 3]])


@pytest.mark.slow
def test_spaces_with_a_rank_of_their_own(overlapping):
    X, y = overlapping
    space = Nystroem(20, n_components=4, random_state=0)
    search = KernelizedCV(DNE(1), WIDTHS, FOLDS, [2, None, 8], space=space).fit(X, y)
    expected = [
        cross_val_score(
            make_pipeline(
                Kernelized(DNE(1), kernel, clone(space).set_params(n_components=rank)),
                KNeighborsClassifier(1),
            ),
            X,
            y,
            cv=FOLDS,
        ).mean()
        for kernel in WIDTHS
        for rank in (2, 4, 8)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-12)


# --- failures -----------------------------------------------------------------------------------


def indefinite(A, B):
    return -A @ B.T


@pytest.mark.slow
def test_a_kernel_that_fails_is_last(overlapping):
    search = KernelizedCV(DNE(1), [indefinite, *WIDTHS], n_components=[2, 5])
    with (
        pytest.warns(FitFailedWarning, match=r"(?s)6 fits failed out of a total of 24.*semi-def"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(*overlapping)
    assert np.isnan(search.cv_results_["mean_test_score"][:2]).all()
    assert set(search.cv_results_["rank_test_score"][:2]) == {7}
    assert search.best_index_ >= 2
    with pytest.warns(FitFailedWarning, match="set to 0"):
        zero = clone(search).set_params(error_score=0).fit(*overlapping)
    assert zero.cv_results_["mean_test_score"][0] == 0
    with pytest.raises(ValueError, match="positive semi-definite kernel"):
        clone(search).set_params(error_score="raise").fit(*overlapping)
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        KernelizedCV(DNE(1), indefinite).fit(*overlapping)


def test_a_rank_that_the_learner_refuses_fails_alone(overlapping):
    search = KernelizedCV(DNE(3), WIDTHS, n_components=[2, 5])
    with pytest.warns(FitFailedWarning, match="9 fits"), pytest.warns(match="non-finite"):
        search.fit(*overlapping)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False] * 3


def test_an_interrupted_fit_leaves_the_object_as_it_was(overlapping, monkeypatch):
    X, y = overlapping
    search = KernelizedCV(DNE(1), WIDTHS)
    fitted = clone(search).fit(X, y)
    before = dict(vars(fitted))

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(DNE, "fit", interrupt)
    for interrupted in (search, fitted):
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(X[:, :3], y)
    assert vars(search) == vars(clone(search)) | {"learner": search.learner, "kernels": WIDTHS}
    assert vars(fitted) == before
    with pytest.raises(NotFittedError):
        search.transform(X)


@pytest.mark.slow
def test_classes_smaller_than_the_folds_warn_as_elsewhere(overlapping):
    X, y = overlapping
    y = np.where(np.arange(60) < 2, 7, y)
    with (
        pytest.warns(UserWarning, match="least populated class"),
        pytest.warns(UserWarning, match="at most n_neighbors"),
    ):
        search = KernelizedCV(DNE(1), WIDTHS).fit(X, y)
    assert search.classes_.tolist() == [0, 1, 2, 7]


# --- a citizen ----------------------------------------------------------------------------------


def test_it_is_a_metric_and_a_classifier(overlapping):
    X, y = overlapping
    search = KernelizedCV(DNE(2), WIDTHS, FOLDS, space=KPCA())
    assert is_classifier(search)
    labels = np.array(["a", "b", "c"])[y]
    search.fit(X, labels)
    E = search.transform(X)
    np.testing.assert_allclose(
        search.pair_distance([[0, 1]], X), np.linalg.norm(E[:1] - E[1:2], axis=1)
    )
    np.testing.assert_allclose(search.pairwise_kernels(X), E @ E.T)
    assert search.get_metric()(X[0], X[1]) == pytest.approx(search.pairwise_distances(X)[0, 1])
    assert search.components_ is search.best_estimator_.components_
    L = search.components_
    np.testing.assert_allclose(search.get_mahalanobis_matrix(), L.T @ L)
    assert search.predict(X).tolist() == labels.tolist()  # the nearest neighbour is the point
    assert search.predict_proba(X).shape == (60, 3)


@pytest.mark.slow
def test_without_refit_there_is_a_table_but_no_metric(overlapping):
    search = KernelizedCV(DNE(2), WIDTHS, refit=True).fit(*overlapping)
    search.set_params(refit=False).fit(*overlapping)
    assert search.best_score_ > 1 / 3
    for name in ("best_estimator_", "estimator_", "refit_time_", "n_features_in_", "components_"):
        assert not hasattr(search, name)
    with pytest.raises(NotFittedError):
        search.transform(overlapping[0])


@pytest.mark.slow
def test_searches_nest_and_stand_in_pipelines(overlapping):
    X, y = overlapping
    search = KernelizedCV(DNE(2), WIDTHS)
    search.set_params(kernels=WIDTHS[:2], cv=2)
    scores = cross_val_score(make_pipeline(StandardScaler(), search), X, y, cv=3)
    assert scores.mean() > 0.5
    first = make_pipeline(StandardScaler(), search, KNeighborsClassifier(3)).fit(X, y)
    assert first.score(X, y) > 0.6
    outer = GridSearchCV(search, {"learner__n_components": [1, 2]}, cv=2, error_score="raise")
    assert outer.fit(X, y).best_estimator_.best_estimator_.learner_.n_components in (1, 2)


@pytest.mark.slow
def test_frames_go_in_and_come_out(overlapping):
    pd = pytest.importorskip("pandas")
    X, y = overlapping
    frame = pd.DataFrame(X, columns=list("abcd"))
    search = KernelizedCV(DNE(2), WIDTHS).set_output(transform="pandas")
    result = search.fit(frame, pd.Series(y)).transform(frame)
    assert search.feature_names_in_.tolist() == list("abcd")
    assert result.columns.tolist() == ["kernelizedcv0", "kernelizedcv1"]
    assert search.score(frame, y) == clone(search).fit(X, y).score(X, y)
    with pytest.raises(ValueError, match="feature names"):
        search.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.slow
def test_sparse_points_are_dense_points(overlapping):
    X, y = overlapping
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = KernelizedCV(DNE(2), WIDTHS).fit(X, y)
    thin = KernelizedCV(DNE(2), WIDTHS).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(
        thin.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"], atol=1e-12
    )
    np.testing.assert_array_equal(thin.predict(sparse.csr_array(X)), dense.predict(X))


def test_a_gram_matrix_is_cut_into_folds(overlapping):
    X, y = overlapping
    kernel = RBF(gamma=0.3)
    by_kernel = KernelizedCV(DNE(1), kernel, FOLDS, RANKS).fit(X, y)
    precomputed = KernelizedCV(DNE(1), "precomputed", FOLDS, RANKS).fit(kernel(X), y)
    np.testing.assert_allclose(
        precomputed.cv_results_["mean_test_score"],
        by_kernel.cv_results_["mean_test_score"],
        atol=1e-12,
    )


@pytest.mark.slow
def test_single_precision_stays(overlapping):
    X, y = overlapping
    search = KernelizedCV(DNE(2), WIDTHS).fit(X.astype(np.float32), y)
    assert search.transform(X.astype(np.float32)).dtype == np.float32
    double = KernelizedCV(DNE(2), WIDTHS).fit(X, y)
    assert search.best_score_ == pytest.approx(double.best_score_, abs=2 / 60)


@pytest.mark.slow
def test_groups_reach_the_splitter(overlapping):
    X, y = overlapping
    groups = np.arange(60) // 10
    nearest = KNeighborsClassifier(1)
    search = KernelizedCV(DNE(1), WIDTHS, GroupKFold(3), estimator=nearest)
    search.fit(X, y, groups=groups)
    grid = GridSearchCV(
        make_pipeline(Kernelized(DNE(1)), nearest),
        {"kernelized__kernel": WIDTHS},
        cv=GroupKFold(3),
    ).fit(X, y, groups=groups)
    expected = grid.cv_results_["mean_test_score"]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-12)
    with config_context(enable_metadata_routing=True):
        routed = clone(search).fit(X, y, groups=groups)
    np.testing.assert_allclose(routed.cv_results_["mean_test_score"], expected, atol=1e-12)


def test_further_arguments_reach_the_learner_fold_by_fold(overlapping):
    X, y = overlapping
    seen = []

    class Weighted(DNE):
        def fit(self, X, y, sample_weight=None):
            seen.append(sample_weight.counts)
            return super().fit(X, y)

    KernelizedCV(Weighted(), RBF(), FOLDS).fit(X, y, sample_weight=np.arange(60))
    # A row without weight is absent, also where folds are cut.
    expected = [1 + train for train, _ in FOLDS.split(X[1:], y[1:])] + [np.arange(1, 60)]
    for weights, rows in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(weights, rows)


@pytest.mark.slow
def test_clones_and_pickles_are_the_same(overlapping):
    X, y = overlapping
    search = KernelizedCV(DNE(2), WIDTHS, n_components=[2, 5]).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.transform(X), search.transform(X))
    copy = clone(search)
    assert not hasattr(copy, "cv_results_")
    np.testing.assert_array_equal(copy.fit(X, y).transform(X), search.transform(X))


@pytest.mark.slow
def test_progress_is_shown_on_request(overlapping, capsys):
    KernelizedCV(DNE(2), WIDTHS).fit(*overlapping)
    assert capsys.readouterr().err == ""
    KernelizedCV(DNE(2), WIDTHS, verbose=True).fit(*overlapping)
    assert "KernelizedCV [####################] 9/9" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        KernelizedCV(DNE(1, n_neighbors=1), RBF(gamma=1.0), 2, [1, None]),
        KernelizedCV(NCA(max_iter=2), "linear", 2),
    ],
    expected_failed_checks=left_out_places,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# --- training rows are placed as if they were left out ------------------------------------------


@pytest.mark.every(2)
@pytest.mark.parametrize("kernels", [WIDTHS, "auto"], ids=["given", "auto"])
def test_a_search_places_its_rows_as_its_best_metric_does(kernels, overlapping):
    X, y = overlapping
    search = KernelizedCV(DNE(2), kernels, FOLDS)
    E = search.fit_transform(X, y)
    best = search.best_estimator_
    alone = Kernelized(DNE(2), search.best_params_["kernel"]).fit_transform(X, y)
    np.testing.assert_allclose(E, alone, atol=1e-9 * np.abs(alone).max())
    np.testing.assert_array_equal(E, best.embedding_)
    assert np.abs(E - search.transform(X)).max() > 1e-3 * np.abs(E).max()
    np.testing.assert_array_equal(clone(search).fit(X, y).transform(X), search.transform(X))
    E[:] = np.nan  # what the caller does to it changes nothing
    assert np.isfinite(best.embedding_).all() and np.isfinite(search.places(X)).all()


@pytest.mark.slow
def test_rows_of_a_search_without_weight_are_placed_as_new_ones(overlapping):
    X, y = overlapping
    w = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)
    for metric in (KernelizedCV(DNE(2), WIDTHS, 3), Kernelized(DNE(2), WIDTHS[0])):
        for output in ("default", "pandas"):
            metric = clone(metric).set_output(transform=output)
            E = np.asarray(metric.fit_transform(X, y, sample_weight=w))
            assert E.shape == (60, 2)
            best = getattr(metric, "best_estimator_", metric)
            np.testing.assert_array_equal(E[w > 0], best.embedding_)
            np.testing.assert_allclose(E[w == 0], np.asarray(metric.transform(X))[w == 0])


def test_a_search_that_is_not_refitted_has_no_places(overlapping):
    with pytest.raises(NotFittedError):
        KernelizedCV(DNE(2), WIDTHS, 3, refit=False).fit_transform(*overlapping)


def test_a_pipeline_asks_a_search_for_left_out_places_with_metadata(overlapping):
    X, y = overlapping
    seen = []

    class Watching(KNeighborsClassifier):
        def fit(self, X, y):
            seen.append(X)
            return super().fit(X, y)

    with config_context(enable_metadata_routing=True):
        search = KernelizedCV(DNE(2), WIDTHS, GroupKFold(3))
        pipeline = make_pipeline(search, Watching(3))
        pipeline.fit(X, y, groups=np.arange(60) // 10)
    np.testing.assert_array_equal(seen[0], pipeline[0].best_estimator_.embedding_)


def test_tuples_of_points_have_no_rows_to_place(overlapping):
    X, y = overlapping
    rows = np.random.RandomState(0).permutation(60).reshape(30, 2)
    alike = np.where(y[rows[:, 0]] == y[rows[:, 1]], 1, -1)
    with pytest.raises(ValueError, match="dim 3"):
        Kernelized(ITML(power=1.0), "rbf", KPCA(5)).fit_transform(X[rows], alike)


@pytest.mark.slow
def test_rows_without_weight_are_absent_from_a_search(overlapping):
    X, y = overlapping
    kept = np.arange(len(y)) % 7 > 0
    a = KernelizedCV(DNE(1), WIDTHS, FOLDS).fit(X, y, sample_weight=kept)
    b = KernelizedCV(DNE(1), WIDTHS, FOLDS).fit(X[kept], y[kept])
    for name in ("split0_test_score", "mean_test_score"):
        np.testing.assert_array_equal(a.cv_results_[name], b.cv_results_[name])
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


@pytest.mark.slow
def test_candidates_are_judged_by_weights(overlapping):
    X, y = overlapping
    w = np.random.RandomState(0).randint(1, 5, len(y))
    search = KernelizedCV(LDA(), WIDTHS, FOLDS, n_components=[5, None])
    found = search.fit(X, y, sample_weight=w).cv_results_["split0_test_score"]
    train, test = next(FOLDS.split(X, y))
    for number, params in enumerate(search.cv_results_["params"]):
        space = KPCA(params["n_components"])
        metric = Kernelized(LDA(), params["kernel"], space)
        metric.fit(X[train], y[train], sample_weight=w[train])
        judge = KNeighborsClassifier(1).fit(metric.transform(X[train]), y[train])
        score = judge.score(metric.transform(X[test]), y[test], sample_weight=w[test])
        assert found[number] == pytest.approx(score)
    plain = clone(search).fit(X, y).cv_results_["split0_test_score"]
    assert not np.allclose(plain, found)


def test_what_judges_without_weights_is_refused_beside_them(overlapping):
    X, y = overlapping
    w = np.arange(1.0, len(y) + 1)

    def plain(estimator, X, y):
        return estimator.score(X, y)

    with pytest.raises(ValueError, match="scores without"):
        KernelizedCV(DNE(1), WIDTHS, FOLDS, scoring=plain).fit(X, y, sample_weight=w)
    listed = [tuple(fold) for fold in FOLDS.split(X, y)]
    with pytest.raises(ValueError, match="folds that are row numbers"):
        KernelizedCV(DNE(1), WIDTHS, listed).fit(X, y, sample_weight=w > 3)
    with pytest.raises(ValueError, match="zero for all rows of class"):
        KernelizedCV(DNE(1), WIDTHS, FOLDS).fit(X, y, sample_weight=y == y[0])


def test_a_judge_that_does_not_predict_is_refused_before_any_fit(labelled):
    X, y = labelled[:2]
    search = KernelizedCV(DNE(), kernels=["rbf"], estimator=DNE(), scoring="accuracy")
    with pytest.raises(ValueError, match="expected an estimator that predicts"):
        search.fit(X, y)


@pytest.mark.slow
def test_each_task_gets_the_time_that_is_left_when_it_begins(overlapping, monkeypatch):
    limits = []

    class OneByOne:
        def __init__(self, **_):
            pass

        def __call__(self, tasks):
            for run, args in tasks:
                limits.append(args[-2])
                yield run(*args)

    monkeypatch.setattr(folds_module, "Parallel", OneByOne)
    monkeypatch.setattr(folds_module, "delayed", lambda run: lambda *args: (run, args))
    search = KernelizedCV(LDA(), ["linear", "rbf"], cv=2, n_jobs=2)
    with time_limit(1000.0):
        search.fit(*overlapping)
    assert len(limits) == len(set(limits)) == 4
    assert all(0.0 < limit < 1000.0 for limit in limits)
