"""What "auto" stands for: one meaning everywhere, a value that can be read, kept and given."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from kernelmetric import (
    ITML,
    KPCA,
    LDA,
    LMNN,
    LSML,
    MLKR,
    NCA,
    RBF,
    SCML,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    MetricClassifier,
    MetricRegressor,
    Nystroem,
    load,
    save,
)
from kernelmetric.kernelized import Recipe
from kernelmetric.kernels import Delta, Laplacian
from kernelmetric.learners import _idealized_choice
from kernelmetric.prediction._cross_fit import settled
from kernelmetric.selection import RidgeKPCA, _ridge_kpca


@pytest.fixture(scope="module")
def curved():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((160, 4))
    return X, (np.abs(X[:, 0]) + 0.3 * rng.standard_normal(160) > 0.7).astype(int)


@pytest.fixture
def rare_names():
    """A table in which folds see other names than the whole does."""
    rng = np.random.RandomState(1)
    n = 120
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(n),
            "b": rng.choice(list("abcdefghijklmnopqrstuvw"), n),
            "c": rng.choice([f"x{i}" for i in range(60)], n),
        }
    )
    frame.loc[3, "a"] = np.nan  # a gap that most folds see, and one does not
    return frame, ((frame.a > 0) ^ (frame.b < "k")).astype(int).to_numpy()


# --- what the user wrote ------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("reg", [0.0, 0.5, "shrink"])
def test_a_penalty_that_was_written_is_not_overruled(curved, reg):
    metric = Kernelized(NCA(reg=reg, max_iter=5, tol=1.0)).fit(*curved)
    assert metric.learner_.reg == reg
    assert metric.recipe_.learner.reg == reg


def test_a_tolerance_that_was_written_is_not_overruled(curved):
    """Of 'shrink', too, which by itself ends where next to no neighbour changes any more."""
    X, y = curved
    exact, usual, rough = (NCA(2, reg="shrink", tol=tol).fit(X, y) for tol in (1e-9, "auto", 1e-4))
    assert exact.n_iter_ > usual.n_iter_
    np.testing.assert_array_equal(usual.components_, rough.components_)
    recipe = Kernelized(NCA(2, tol=1e-9), RBF(gamma=0.2), KPCA()).fit(X, y).recipe_
    assert recipe.learner.tol == 1e-9 and recipe.reasons["learner"] == "as given"


@pytest.mark.slow
def test_the_tolerance_of_a_learner_goes_by_its_penalty(curved):
    spread, free = (Kernelized(NCA(2, reg=reg)).fit(*curved).recipe_ for reg in ("auto", 0.0))
    assert (spread.learner.tol, free.learner.tol) == (1e-4, 5e-6)
    assert spread.reasons["learner"].endswith("on these coordinates, and tol=0.0001")
    np.testing.assert_array_equal(
        NCA(2).fit(*curved).components_, NCA(2, tol=5e-6).fit(*curved).components_
    )


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("kernel", "begins", "ends"),
    [
        ("auto", "LeaveOneOutRidge: comparing kernels on 160 rows", r"left-out error 0\.\d+"),
        ("aligned", "KernelAlignment: aligning kernels with labels", r"alignment 0\.\d+"),
    ],
)
def test_a_verbose_learner_tells_of_the_choice_of_its_kernel(curved, capfd, kernel, begins, ends):
    verbose = Kernelized(NCA(2, verbose=True), kernel).fit(*curved)
    lines = capfd.readouterr().err.splitlines()
    second = next(line for line in lines if re.search(ends + r"  \d+\.\d s$", line))
    assert f"Kernelized(NCA): {begins}" in second
    assert lines[-2].startswith("Kernelized(NCA): NCA [")
    assert re.fullmatch(r"Kernelized\(NCA\)  \d+\.\d s", lines[-1])
    silent = Kernelized(NCA(2), kernel).fit(*curved)
    assert capfd.readouterr().err == ""
    np.testing.assert_array_equal(verbose.components_, silent.components_)
    if kernel == "auto":
        assert float(re.search(r"error ([\d.]+)", second)[1]) == pytest.approx(
            np.nanmin(verbose.kernel_.loo_errors_), rel=1e-2
        )


def test_only_auto_is_resolved(curved):
    metric = Kernelized(NCA(max_iter=5, tol=1.0)).fit(*curved)
    assert metric.learner_.reg == "shrink" and metric.learner_.early_stopping is False
    assert metric.learner.reg == "auto"  # the parameter stays
    plain = Kernelized(NCA(max_iter=5, tol=1.0), "rbf", KPCA()).fit(*curved)
    assert plain.learner_.reg == "auto"  # these coordinates know no labels
    kept = Kernelized(NCA(early_stopping=True, max_iter=5, tol=1.0)).fit(*curved)
    assert kept.learner_.early_stopping is True


@pytest.mark.slow
def test_of_learners_of_others_only_early_stopping_is_meant(curved):
    metric = Kernelized(HistGradientBoostingClassifier(max_iter=2)).fit(*curved)
    assert metric.learner_.early_stopping is False
    given = Kernelized(HistGradientBoostingClassifier(max_iter=2, early_stopping=True))
    assert given.fit(*curved).learner_.early_stopping is True


# --- one meaning ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner", [pytest.param(NCA(tol=1e-2), marks=pytest.mark.slow), LDA()], ids=["NCA", "LDA"]
)
def test_auto_means_the_same_in_a_search(curved, learner):
    kernels = ["auto", RBF(gamma=0.5) + 0.1 * Delta(), RBF(gamma=0.5)]
    folds = StratifiedKFold(3)
    nearest = KNeighborsClassifier(1)
    search = KernelizedCV(learner, kernels, folds, estimator=nearest).fit(*curved)
    pipeline = Pipeline([("metric", Kernelized(learner)), ("knn", nearest)])
    grid = GridSearchCV(pipeline, {"metric__kernel": kernels}, cv=folds).fit(*curved)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=1e-12
    )
    alone = KernelizedCV(learner, ["auto"]).fit(*curved).best_estimator_
    plain = Kernelized(learner).fit(*curved)
    assert repr(alone.space_) == repr(clone(plain.space_))
    assert repr(alone.learner_) == repr(plain.learner_)
    np.testing.assert_allclose(alone.transform(curved[0]), plain.transform(curved[0]), atol=1e-12)


@pytest.mark.slow
def test_ranks_of_a_search_are_those_of_the_automatic_space(curved):
    search = KernelizedCV(LDA(), ["auto"], n_components=[4, 9, None]).fit(*curved)
    expected = [
        Kernelized(LDA(), "auto", RidgeKPCA(rank)).fit(*curved).space_.rank_
        for rank in (4, 9, "auto")
    ]
    assert expected == [5, 10, 4]  # one for every 50 points, and what tells two classes
    rank = search.best_params_["n_components"]
    assert search.best_estimator_.space_.rank_ == (3 if rank is None else rank) + 1
    assert len(search.cv_results_["params"]) == 3


# --- a value that can be read, kept and given ---------------------------------------------------


@pytest.mark.every(6)
@pytest.mark.parametrize(
    "metric",
    [
        Kernelized(LMNN()),
        Kernelized(NCA(tol=1e-2)),
        Kernelized(LDA()),
        Kernelized(MLKR(2, tol=1e-2)),
        Kernelized(LDA(), kernel="aligned"),
        Kernelized(LDA(), kernel=RBF(gamma="median"), space=KPCA(9)),
        Kernelized(LMNN(), space=Nystroem(20, random_state=0)),
    ],
    ids=repr,
)
def test_a_recipe_given_again_is_the_same_metric(curved, metric):
    X, y = curved
    first = clone(metric).fit(X, y)
    again = clone(metric).set_params(recipe=first.recipe_).fit(X, y)
    np.testing.assert_array_equal(again.transform(X), first.transform(X))
    assert repr(again.recipe_.kernel) == repr(first.recipe_.kernel)
    assert repr(again.recipe_.space) == repr(first.recipe_.space)
    assert "from the recipe" in again.recipe_.reasons["kernel"]


@pytest.mark.slow
def test_boundary_rows_are_part_of_a_recipe(monkeypatch):
    monkeypatch.setattr(_ridge_kpca, "ALL_ROWS", 100)
    monkeypatch.setattr(_ridge_kpca, "EASY_ROWS", (30, 30))
    rng = np.random.RandomState(0)
    X = rng.standard_normal((400, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 2 * np.sign(X[:, 0])
    first = Kernelized(LMNN(), kernel=RBF(gamma=0.1) + 1e-3 * Delta())
    first.set_params(space=RidgeKPCA(rows="boundary")).fit(X, y)
    assert first.space_.rows_ == first.recipe_.space.rows == "boundary"
    assert len(first.space_.anchors_) == 60
    assert first.recipe_.reasons["rows"] == "60 boundary rows of 400"
    again = Kernelized(LMNN(), recipe=first.recipe_).fit(X, y)
    np.testing.assert_array_equal(again.transform(X), first.transform(X))
    # weights of one are none, and others do not switch these rows off
    ones = clone(first).fit(X, y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(ones.transform(X), first.transform(X))
    w = np.ones(len(X))
    w[:7] = 1 + 1e-6
    nearly = clone(first).fit(X, y, sample_weight=w)
    assert nearly.space_.rows_ == "boundary"
    d, e = (m.pairwise_distances(X[:50]) for m in (nearly, first))
    assert np.abs(d - e).max() < 1e-2 * e.max()


def test_a_recipe_changes_only_what_is_auto(curved):
    first = Kernelized(NCA(max_iter=5, tol=1.0)).fit(*curved)
    other = Kernelized(
        NCA(reg=0.3, max_iter=5, tol=1.0),
        kernel=RBF(gamma=2.0),
        space=KPCA(7),
        recipe=first.recipe_,
    ).fit(*curved)
    assert other.kernel_.gamma == 2.0 and other.space_.n_components == 7
    assert other.learner_.reg == 0.3 and other.learner_.early_stopping is False


@pytest.mark.slow
def test_a_recipe_with_another_formula_leaves_the_kernel_that_was_written(curved):
    first = Kernelized(LDA(), kernel="laplacian").fit(*curved)
    other = Kernelized(LDA(), kernel="rbf", recipe=first.recipe_).fit(*curved)
    assert repr(other.kernel_) == repr(Kernelized(LDA(), kernel="rbf").fit(*curved).kernel_)


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "kernel",
    [
        Laplacian() + 0.1 * Delta(),
        RBF() + 0.5 * Delta(),
        RBF() + Delta(),
        RBF(gamma=0.3) + 0.1 * Delta(),
        RBF() + 0.1 * Delta() + Laplacian(),
    ],
    ids=repr,
)
def test_numbers_and_terms_that_were_written_stay(curved, kernel):
    """A recipe fills in what a kernel leaves to the data, where it is a recipe of this kernel."""
    recipe = Kernelized(LDA(), RBF() + 0.1 * Delta()).fit(curved[0][:80], curved[1][:80]).recipe_
    other = Kernelized(LDA(), kernel, recipe=recipe).fit(*curved)
    assert repr(other.kernel_) == repr(Kernelized(LDA(), kernel).fit(*curved).kernel_)
    same = Kernelized(LDA(), RBF() + 0.1 * Delta(), recipe=recipe).fit(*curved)
    assert repr(same.recipe_.kernel) == repr(recipe.kernel)
    assert same.space_.ridge_ == 0.1


@pytest.mark.slow
def test_a_ridge_goes_with_its_kernel(curved):
    """A recipe's ridge is that of its kernel: what is written beside another one stays."""
    recipe = Kernelized(LDA()).fit(*curved).recipe_
    assert recipe.space.ridge != 0.5
    written = Kernelized(LDA(), RBF(gamma=0.2) + 0.5 * Delta(), recipe=recipe).fit(*curved)
    assert written.space_.ridge_ == 0.5
    other = Kernelized(LDA(), RBF(gamma=0.2), recipe=recipe).fit(*curved)
    assert other.space_.ridge_ == Kernelized(LDA(), RBF(gamma=0.2)).fit(*curved).space_.ridge_
    given = Kernelized(LDA(), space=RidgeKPCA(4), recipe=recipe).fit(*curved)
    assert given.space_.ridge_ == recipe.space.ridge and given.space_.n_components == 4
    named = Kernelized(LDA(), space=RidgeKPCA(4, ridge=0.3), recipe=recipe).fit(*curved)
    assert named.space_.ridge_ == 0.3


@pytest.mark.slow
def test_what_a_learner_chose_is_in_the_recipe(curved):
    X, y = curved
    metric = Kernelized(IdealizedKernel(), kernel="rbf", space=KPCA(5)).fit(X[:60], y[:60])
    assert metric.recipe_.learner.C == metric.learner_.C_


def test_a_recipe_is_a_record(curved, tmp_path):
    metric = Kernelized(LDA()).fit(*curved)
    recipe = metric.recipe_
    with pytest.raises(AttributeError, match="a recipe is a record"):
        recipe.kernel = RBF()
    with pytest.raises(AttributeError, match="a recipe is a record"):
        recipe.set_params(space=KPCA())
    assert clone(recipe) is recipe
    text = str(recipe)
    assert "RidgeKPCA" in text and "LDA()" in text and "all 160 rows" in text
    assert "points left out" in recipe.reasons["kernel"]
    model = Kernelized(LDA(), recipe=recipe).fit(*curved)
    restored = load(save(model, tmp_path / "m.km"))
    assert str(restored.recipe_) == str(model.recipe_) and str(restored.recipe) == text
    with pytest.raises(ValueError, match=r"Got recipe='auto', but expected None or the recipe_"):
        Kernelized(LDA(), recipe="auto").fit(*curved)
    with pytest.raises(ValueError, match=r"Got recipe=3"):
        Kernelized(LDA(), recipe=3).estimate_memory(10, 2)


@pytest.mark.slow
def test_a_search_and_a_classifier_have_the_recipe_of_their_metric(curved):
    search = KernelizedCV(LDA(), ["auto"]).fit(*curved)
    assert search.recipe_ is search.best_estimator_.recipe_
    model = MetricClassifier(Kernelized(LDA())).fit(*curved)
    assert isinstance(model.recipe_, Recipe) and model.recipe_ is model.metric_.recipe_


# --- tables -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_folds_of_a_table_have_the_columns_of_the_whole(rare_names):
    frame, y = rare_names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MetricClassifier(Kernelized(LDA())).fit(frame, y)
    assert np.isfinite(model.predict_proba(frame)).all()
    fold = settled(model.metric_)
    part = frame.drop(index=3)  # without its only gap
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fold.fit(part, y[part.index])
    assert fold.schema_ is model.metric_.schema_
    assert fold.space_.n_features_in_ == model.metric_.space_.n_features_in_


@pytest.mark.slow
def test_behind_steps_that_are_fitted_anew_everything_is_chosen_anew(rare_names):
    frame, y = rare_names
    steps = make_pipeline(
        OneHotEncoder(handle_unknown="ignore", sparse_output=False), Kernelized(LDA())
    )
    fitted = clone(steps).fit(frame[["b", "c"]], y)
    assert settled(fitted)[-1].recipe is None
    model = MetricClassifier(steps).fit(frame[["b", "c"]], y)
    assert np.isfinite(model.predict_proba(frame[["b", "c"]])).all()


# --- what must not decide -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        ITML(max_pairs=300),
        LSML(max_tuples=300),
        SCML(n_basis=30),
        SCML(max_tuples=300),
    ],
    ids=repr,
)
def test_the_order_of_rows_does_not_decide_which_pairs_are_drawn(curved, learner):
    X, y = curved
    order = np.random.RandomState(1).permutation(len(X))
    first, other = clone(learner).fit(X, y), clone(learner).fit(X[order], y[order])
    M, N = first.get_mahalanobis_matrix(), other.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, N, atol=1e-6 * np.abs(M).max())


@pytest.mark.slow
def test_the_order_of_rows_does_not_decide_how_hard_pairs_pull(curved, monkeypatch):
    X, y = curved
    monkeypatch.setattr(_idealized_choice, "MOST_PAIRS", 100)  # of which a fold has more
    order = np.random.RandomState(1).permutation(len(X))
    metric = IdealizedKernel(n_neighbors=10)
    first, other = clone(metric).fit(X, y), clone(metric).fit(X[order], y[order])
    np.testing.assert_allclose(first.C_scores_, other.C_scores_, atol=1e-6)


@pytest.mark.slow
def test_the_order_of_columns_does_not_decide_the_kernel(curved):
    X, y = curved
    order = np.array([2, 0, 3, 1])
    first, other = Kernelized(LDA()).fit(X, y), Kernelized(LDA()).fit(X[:, order], y)
    new = np.random.RandomState(2).standard_normal((20, 4))
    d, e = first.pairwise_distances(new), other.pairwise_distances(new[:, order])
    np.testing.assert_allclose(d, e, atol=1e-3 * d.max())


def test_a_predictor_owns_what_it_keeps(curved):
    X, y = np.array(curved[0]), np.array(curved[1])
    model = MetricClassifier(FunctionTransformer()).fit(X, y)
    numbers = y + 0.5
    other = MetricRegressor(FunctionTransformer()).fit(X, numbers)
    new = np.random.RandomState(2).standard_normal((20, 4))
    before = model.predict_proba(new), other.predict(new)
    X[:], numbers[:] = 0.0, 7.0
    np.testing.assert_array_equal(model.predict_proba(new), before[0])
    np.testing.assert_array_equal(other.predict(new), before[1])


def test_a_notebook_shows_what_a_fitted_metric_is_made_of(curved):
    X, y = curved
    metric = Kernelized(LDA(), lambda A, B: A @ B.T, KPCA(2)).fit(X, y)
    model = MetricClassifier(Kernelized(LDA()), cv=2).fit(X, y)
    for fitted, kernel in ((metric, "&lt;function"), (model, "RBF|Laplacian")):
        for shown in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
            table = shown[shown.index("(recipe_)") :]
            assert re.search(kernel, table)
            assert "<function" not in table  # which a browser would take for a tag
            assert f"{len(X)} rows" in table
        assert "(recipe_)" not in clone(fitted)._repr_html_()
    with config_context(display="text"):
        assert set(metric._repr_mimebundle_()) == {"text/plain"}
