"""Saving: what is loaded is what was saved, array by array, and no file ever runs code."""

import copy
import itertools
import subprocess
import sys
import zipfile
from collections import UserList
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from kernelmetric import (
    DNE,
    KPCA,
    MLKR,
    MMC,
    NCA,
    RBF,
    AlignedScales,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    MetricClassifier,
    Nystroem,
    Pairs,
    PairVerifier,
    load,
    save,
)
from kernelmetric.kernels import FunctionKernel, PairwiseKernel
from kernelmetric.spaces import Gram


def saved_and_loaded(metric, folder):
    return load(save(metric, folder / "a.metric"))


def assert_equal_state(again, metric, where="metric"):
    """Every attribute is there, every number has the same bits, and no memory is shared."""
    metric = metric.data if isinstance(metric, UserList) else metric  # as scikit-learn 1.6 has it
    assert type(again) is type(metric), where
    if isinstance(metric, np.ndarray):
        assert again.dtype == metric.dtype, where
        if isinstance(metric, np.ma.MaskedArray) and metric.dtype == object:
            np.testing.assert_array_equal(np.ma.getmaskarray(again), np.ma.getmaskarray(metric))
            assert_equal_state(again.tolist(), metric.tolist(), where)
            return
        np.testing.assert_array_equal(again, metric, err_msg=where)
        if metric.ndim > 1:  # a factor of a product, which the order in memory may round otherwise
            assert again.flags.c_contiguous == metric.flags.c_contiguous, where
    elif sparse.issparse(metric):
        np.testing.assert_array_equal(again.toarray(), metric.toarray(), err_msg=where)
    elif isinstance(metric, np.random.RandomState):
        np.testing.assert_array_equal(again.get_state()[1], metric.get_state()[1])
        assert again.get_state()[2:] == metric.get_state()[2:]
    elif isinstance(metric, list | tuple):
        assert len(again) == len(metric), where
        for i, (a, b) in enumerate(zip(again, metric, strict=True)):
            assert_equal_state(a, b, f"{where}[{i}]")
    elif isinstance(metric, dict):
        assert list(again) == list(metric), where
        for key in metric:
            assert_equal_state(again[key], metric[key], f"{where}[{key!r}]")
    elif isinstance(metric, BaseEstimator | Pairs | Gram):
        kept = {k: v for k, v in vars(metric).items() if k not in LEFT_OUT}
        assert vars(again).keys() - {"_tree"} == kept.keys(), where
        for name, value in kept.items():
            assert_equal_state(vars(again)[name], value, f"{where}.{name}")
    else:
        assert repr(again) == repr(metric), where


# What is computed again when asked for, and what concerns a later fit.
LEFT_OUT = {"_spectrum", "cut_off", "_inverse_sqrt", "_folded"}
LEFT_OUT |= {"scorer_", "_tree"}
LEFT_OUT |= {"_skl_callbacks", "_parent_callback_ctx"}


def assert_close(answer, expected):
    """Equal but for the order of sums, which is the processor's; small eigenvalues amplify it."""
    answer, expected = np.asarray(answer), np.asarray(expected)
    assert answer.dtype == expected.dtype
    rounding = 2e7 * np.finfo(expected.dtype).eps if expected.dtype.itemsize == 8 else 1e-3
    np.testing.assert_allclose(answer, expected, atol=rounding * np.abs(expected).max(), rtol=0)


def assert_same_output(metric, folder, *blocks):
    again = saved_and_loaded(metric, folder)
    assert_equal_state(again, metric)
    for block in blocks:
        expected = metric.transform(block.copy())
        assert expected.std() > 0
        assert_close(again.transform(block.copy()), expected)
    return again


# --- what is loaded is what was saved -----------------------------------------------------------


def test_every_learner_is_the_same(learner, labelled, fresh, tmp_path):
    assert_same_output(learner.fit(*labelled), tmp_path, labelled[0], fresh)


def test_every_kernelized_learner_is_the_same(learner, labelled, fresh, tmp_path):
    metric = Kernelized(learner, RBF(gamma=0.3), KPCA(6)).fit(*labelled)
    assert_same_output(metric, tmp_path, labelled[0], fresh)


@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_space_is_the_same(space, dtype, labelled, fresh, tmp_path):
    X, y = labelled[0].astype(dtype), labelled[1]
    metric = Kernelized(DNE(2), RBF(gamma=0.3), space).fit(X, y)
    again = assert_same_output(metric, tmp_path, X, fresh.astype(dtype))
    np.testing.assert_array_equal(again.space_.eigenvalues_, metric.space_.eigenvalues_)


@pytest.mark.every(2)
def test_every_kernel_is_the_same(kernel, labelled, fresh, tmp_path):
    assert_same_output(Kernelized(DNE(2), kernel).fit(*labelled), tmp_path, labelled[0], fresh)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "metric",
    [
        Kernelized(DNE(2), "auto"),
        Kernelized(DNE(2), "aligned"),
        Kernelized(DNE(2), AlignedScales()),
        Kernelized(DNE(2), PairwiseKernel("chi2", {"gamma": 0.5}), KPCA(5)),
        Kernelized(PCA(2), "rbf", KPCA(random_state=np.random.RandomState(3))),
        IdealizedKernel("rbf", C=10.0),
        IdealizedKernel(C=10.0, psd="none"),
        MMC(),
    ],
)
def test_other_metrics_are_the_same(metric, labelled, fresh, tmp_path):
    X, y = labelled
    X, new = X - X.min() + 10, fresh - X.min() + 10  # chi2 wants features that are not negative
    again = assert_same_output(metric.fit(X, y), tmp_path, X, new)
    assert_close(again.pairwise_distances(new), metric.pairwise_distances(new))
    assert str(again.get_params().keys()) == str(metric.get_params().keys())


def test_a_loaded_metric_has_every_attribute(labelled, tmp_path):
    metric = IdealizedKernel("rbf", C=10.0).fit(*labelled)
    again = saved_and_loaded(metric, tmp_path)
    assert vars(again).keys() == vars(metric).keys()
    assert again.loss_curve_ == metric.loss_curve_
    assert isinstance(again.pairs_, Pairs)
    np.testing.assert_array_equal(again.pairs_.similar, metric.pairs_.similar)
    assert not again.pairs_.similar.flags.writeable


def test_a_loaded_metric_can_be_fitted_again(labelled, fresh, tmp_path):
    X, y = labelled
    metric = Kernelized(DNE(2), RBF(), Nystroem(10, random_state=0)).fit(X, y)
    again = clone(saved_and_loaded(metric, tmp_path)).fit(X, y)
    assert_close(again.transform(fresh), metric.transform(fresh))


def test_precomputed_and_sparse_points_are_kept(labelled, fresh, tmp_path):
    X, y = labelled
    kernel = RBF(gamma=0.3)
    given = Kernelized(DNE(2), "precomputed").fit(kernel(X), y)
    assert_same_output(given, tmp_path, kernel(fresh, X))
    rows = sparse.csr_matrix(np.where(X > 0.5, X, 0.0))
    for points in (rows, sparse.csr_array(rows)):
        metric = Kernelized(DNE(2), kernel).fit(points, y)
        again = assert_same_output(metric, tmp_path, points)
        assert type(again.space_.anchors_) is type(metric.space_.anchors_)


def test_a_pipeline_of_a_data_frame_is_the_same(labelled, tmp_path):
    X, y = labelled
    frame = pd.DataFrame(X, columns=list("abcd")).astype({"d": "float32"})
    frame["kind"] = np.array(["elm", "fir", "oak"], dtype=object)[np.arange(30) % 3]
    frame.loc[[3, 8], "a"] = np.nan
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = ColumnTransformer(
        [("numbers", numbers, list("abc")), ("kinds", OneHotEncoder(dtype=np.float32), ["kind"])],
        remainder="passthrough",
    )
    metric = make_pipeline(columns, Kernelized(DNE(2), "rbf")).fit(frame, y)
    again = saved_and_loaded(metric, tmp_path)
    assert_equal_state(again, metric)
    assert_close(again.transform(frame), metric.transform(frame))
    assert list(again[:-1].get_feature_names_out()) == list(metric[:-1].get_feature_names_out())


def test_the_cache_of_a_pipeline_is_left_out(labelled, tmp_path):
    metric = make_pipeline(StandardScaler(), DNE(2), memory=str(tmp_path / "cache"))
    again = saved_and_loaded(metric.fit(*labelled), tmp_path)
    assert_close(again.transform(labelled[0]), metric.transform(labelled[0]))
    assert again.memory is None


def test_a_pair_verifier_gives_the_same_probabilities(labelled, tmp_path):
    X, y = labelled
    pairs = Pairs.from_labels(y, per_point=3, random_state=0)
    verifier = PairVerifier(NCA(2).fit(X, y)).calibrate(pairs, X)
    again = saved_and_loaded(verifier, tmp_path)
    assert_close(again.predict_proba_pairs(pairs, X), verifier.predict_proba_pairs(pairs, X))


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_a_fresh_process_is_the_same(registry, labelled, fresh, tmp_path, step):
    """One process for all learners, and for the grid of spaces and kernels, or a part of it.

    The step and the number of spaces have no divisor in common: all spaces and kernels are there.
    """
    X, y = labelled
    np.save(tmp_path / "X.npy", fresh)
    expected = []
    grid = itertools.product([DNE(2)], registry.kernels, registry.spaces)
    every = [*registry.learners, *(Kernelized(*parts) for parts in grid)]
    for metric in every[::step]:
        try:
            metric = clone(metric).fit(X, y)
        except ValueError as error:
            assert "RandomFeatures expected" in str(error)  # they exist for some kernels only
            continue
        save(metric, tmp_path / f"{len(expected)}.metric")
        expected.append(metric.transform(fresh))
    assert len(expected) > 65 / step
    code = (
        "import sys, numpy as np, kernelmetric as km\n"
        "X = np.load(sys.argv[1] + '/X.npy')\n"
        f"for i in range({len(expected)}):\n"
        "    Z = km.load(f'{sys.argv[1]}/{i}.metric').transform(X)\n"
        "    np.save(f'{sys.argv[1]}/{i}.npy', Z)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    for i, Z in enumerate(expected):
        assert_close(np.load(tmp_path / f"{i}.npy"), Z)


def test_equal_metrics_make_equal_files(labelled, tmp_path):
    metric = Kernelized(DNE(2)).fit(*labelled)
    first = save(metric, tmp_path / "a").read_bytes()
    assert save(metric, tmp_path / "b").read_bytes() == first
    assert save(load(tmp_path / "b"), tmp_path / "c").read_bytes() == first


def test_arrays_that_are_equal_are_stored_once(labelled, tmp_path):
    metric = Kernelized(DNE(2), "rbf", KernelTrick()).fit(*labelled)
    save(metric, tmp_path / "a")
    shapes = [
        a.shape
        for a in dict(np.load(tmp_path / "a", allow_pickle=False)).values()
        if isinstance(a, np.ndarray)
    ]
    assert shapes.count((30, 30)) == 1  # the Gram matrix, which two objects hold


def arrays_in(value):
    """All arrays that an object holds, in whatever holds them."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield value
    elif sparse.issparse(value):
        yield from (value.data, value.indices, value.indptr)
    elif isinstance(value, list | tuple | np.ndarray):
        for item in value:
            yield from arrays_in(item)
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))
    elif hasattr(value, "__dict__"):
        yield from arrays_in(vars(value))


@pytest.mark.parametrize(
    "metric",
    [
        Kernelized(DNE(2), "rbf", KernelTrick()),
        Kernelized(DNE(2), AlignedScales()),
    ],
    ids=["trick", "scales"],
)
def test_no_two_attributes_of_a_loaded_metric_share_memory(metric, labelled, tmp_path):
    """Equal arrays are stored once, but what changes one must not change another."""
    again = saved_and_loaded(metric.fit(*labelled), tmp_path)
    arrays = [array for array in arrays_in(again) if array.size]
    stored = [name for name in zipfile.ZipFile(tmp_path / "a.metric").namelist() if "npy" in name]
    assert len(arrays) > len(stored) > 0  # some are equal
    for a, b in itertools.combinations(arrays, 2):
        assert not np.shares_memory(a, b)


def test_writing_into_a_loaded_array_changes_no_other(labelled, tmp_path):
    again = saved_and_loaded(Kernelized(DNE(2), "rbf", KernelTrick()).fit(*labelled), tmp_path)
    before = again.space_.gram_.matrix.copy()
    again.space_.basis_gram_[:] = 7.0
    np.testing.assert_array_equal(again.space_.gram_.matrix, before)


def test_an_array_in_very_many_places_is_stored_more_than_once(labelled, tmp_path):
    metric = NCA(2).fit(*labelled)
    metric.notes_ = [np.arange(5.0) for _ in range(20)]
    again = saved_and_loaded(metric, tmp_path)
    names = zipfile.ZipFile(tmp_path / "a.metric").namelist()
    assert sum("npy" in name for name in names) == 1 + 3  # the map, and one for each eight
    assert [note.tolist() for note in again.notes_] == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 20


# --- what cannot be restored safely is not saved ------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            Kernelized(DNE(2), lambda a, b: a @ b.T),
            r"Got metric\.kernel of type .*function is code",
        ),
        (Kernelized(DNE(2), RBF() + FunctionKernel(np.inner)), r"kernels\[1\].*Funct"),
        (Kernelized(SVC()), r"Got metric\.learner of type sklearn\.svm.*SVC.*pickle, or skops"),
        (
            KernelizedCV(DNE(2), [RBF()], cv=2, scoring=lambda e, X, y: e.score(X, y)),
            r"Got metric\.scoring of type .*function is code; try a name",
        ),
    ],
    ids=["function", "function in a sum", "third-party learner", "search"],
)
def test_what_would_need_code_is_refused_when_saving(metric, message, labelled, tmp_path):
    metric.fit(*labelled)
    with pytest.raises(TypeError, match=message):
        save(metric, tmp_path / "a.metric")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.every(3, 2)
@pytest.mark.parametrize(
    ("search", "target"),
    [
        (KernelizedCV(DNE(2), "rbf", cv=2), "labels"),
        (
            KernelizedCV(
                DNE(1),
                ["linear", RBF(gamma=0.3)],
                cv=StratifiedKFold(2, shuffle=True, random_state=0),
                n_components=[1, 2],
                estimator=KNeighborsClassifier(3, weights="distance"),
                scoring="balanced_accuracy",
            ),
            "words",
        ),
        (KernelizedCV(DNE(2), [RBF()], cv=2, estimator=LogisticRegression()), "labels"),
        (KernelizedCV(MLKR(2, max_iter=2, tol=1.0), [RBF()], cv=2), "numbers"),
    ],
    ids=["defaults", "everything else", "another judge", "numbers"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_comes_back_whole(search, target, labelled, fresh, tmp_path):
    X, y = labelled
    y = {"labels": y, "words": np.array(["a", "b", "c"])[y], "numbers": X[:, 0]}[target]
    search.fit(X, y)
    again = assert_same_output(search, tmp_path, X, fresh)
    np.testing.assert_array_equal(again.predict(fresh), search.predict(fresh))
    assert again.score(X, y) == search.score(X, y)
    assert repr(again.best_params_) == repr(search.best_params_)
    first = (tmp_path / "a.metric").read_bytes()
    assert save(again, tmp_path / "b.metric").read_bytes() == first


@pytest.mark.slow
def test_a_search_inside_of_others_comes_back(labelled, fresh, tmp_path):
    X, y = labelled
    search = KernelizedCV(DNE(2), [RBF()], cv=2)
    for model in (make_pipeline(StandardScaler(), search), MetricClassifier(search, cv=2)):
        model.fit(X, y)
        again = saved_and_loaded(model, tmp_path)
        np.testing.assert_array_equal(again.predict(fresh), model.predict(fresh))


def test_a_search_whose_parts_do_not_fit_is_not_saved(labelled, tmp_path):
    search = KernelizedCV(DNE(2), [RBF()], cv=2).fit(*labelled)
    search.best_index_ = 1
    with pytest.raises(ValueError, match=r"KernelizedCV\.best_index_=1"):
        save(search, tmp_path / "a.metric")
    search.best_index_, search.estimator_ = 0, KNeighborsClassifier().fit(*labelled)
    with pytest.raises(ValueError, match=r"KernelizedCV, but expected one that can .*2 features"):
        save(search, tmp_path / "a.metric")


def test_a_subclass_is_not_saved_as_what_it_is_not(labelled, tmp_path):
    class Mine(NCA):
        pass

    with pytest.raises(TypeError, match=r"Got metric of type .*Mine, but expected"):
        save(Mine(2).fit(*labelled), tmp_path / "a.metric")


def test_only_fitted_estimators_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save(NCA(), tmp_path / "a.metric")
    with pytest.raises(TypeError, match=r"Got metric of type builtins\.dict"):
        save({"a": 1}, tmp_path / "a.metric")


def test_an_object_that_contains_itself_is_refused(labelled, tmp_path):
    metric = NCA(2).fit(*labelled)
    metric.note_ = [metric]
    with pytest.raises(ValueError, match=r"Got metric\.note_\[0\], which contains itself"):
        save(metric, tmp_path / "a.metric")


def test_what_a_file_could_not_give_back_is_refused_when_saving(labelled, tmp_path):
    metric = NCA(2).fit(*labelled)
    for name, value, message in [
        ("components_", np.full((2, 4), np.nan), r"NCA\.components_ with other values.*finite"),
        (
            "components_",
            np.ones((2, 5)),
            r"Got a NCA, but expected one that can answer .*size 5 is different from 4",
        ),
        ("note_", 10**30, r"metric\.note_=100000000\.\.\., but expected integers of at most 20"),
        ("note_", -(10**20), r"metric\.note_=-10000000\.\.\., but expected integers"),
        ("note_", {(1, 2): 3}, r"the key \(1, 2\), but expected text or a number"),
    ]:
        changed = copy.copy(metric)
        setattr(changed, name, value)
        with pytest.raises(ValueError, match=message):
            save(changed, tmp_path / "a.metric")
    assert list(tmp_path.iterdir()) == []


def test_the_largest_integers_come_back(labelled, tmp_path):
    metric = NCA(2).fit(*labelled)
    metric.note_ = [10**20 - 1, 1 - 10**20]
    assert saved_and_loaded(metric, tmp_path).note_ == metric.note_


def test_a_failure_leaves_the_old_file(labelled, tmp_path, monkeypatch):
    path = save(NCA(2).fit(*labelled), tmp_path / "a.metric")
    before = path.read_bytes()

    def full(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        save(NCA(3).fit(*labelled), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.metric"]
