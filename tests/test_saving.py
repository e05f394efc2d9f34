"""Saving: what is loaded is what was saved, to the last bit, and no file ever runs code.

Every number of a model comes back to the last bit, and so does its order in memory. What is
computed from them is compared up to rounding: a BLAS may round the same product otherwise when its
factors lie at other addresses, or in another process.
"""

import functools
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import kernelmetric
from kernelmetric import (
    DNE,
    KPCA,
    MMC,
    NCA,
    RBF,
    AlignedScales,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Nystroem,
    Pairs,
    PairVerifier,
    PairwiseKernel,
    load,
    save,
)


def saved_and_loaded(metric, folder):
    return load(save(metric, folder / "a.metric"))


def assert_same_numbers(values, expected):
    """Equal up to rounding."""
    assert values.dtype == expected.dtype
    atol = np.sqrt(np.finfo(expected.dtype).eps) * np.abs(expected).max()
    np.testing.assert_allclose(values, expected, rtol=0, atol=atol)


def arrays_of(value, where="metric"):
    """Every array of a fitted model by the way to it, but for what is computed when asked for."""
    if isinstance(value, np.ndarray):
        yield where, value
    elif sparse.issparse(value):
        for name in ("data", "indices", "indptr"):
            yield f"{where}.{name}", getattr(value, name)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from arrays_of(item, f"{where}[{i}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from arrays_of(item, f"{where}[{name!r}]")
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        for name, item in vars(value).items():
            if not isinstance(getattr(type(value), name, None), functools.cached_property):
                yield from arrays_of(item, f"{where}.{name}")


def assert_same_bits(again, metric):
    """Every array is there, to the last bit, in the same order in memory: the same products."""
    stored, restored = dict(arrays_of(metric)), dict(arrays_of(again))
    assert stored.keys() == restored.keys()
    for name, array in stored.items():
        other = restored[name]
        assert other.dtype == array.dtype, name
        np.testing.assert_array_equal(other, array, err_msg=name)
        order = (array.flags.c_contiguous, array.flags.f_contiguous)
        if array.ndim > 1:  # a factor of a product
            assert order == (other.flags.c_contiguous, other.flags.f_contiguous), name


def assert_same_output(metric, folder, *blocks):
    again = saved_and_loaded(metric, folder)
    assert type(again) is type(metric)
    assert_same_bits(again, metric)
    for block in blocks:
        expected = metric.transform(block)
        assert expected.std() > 0
        assert_same_numbers(again.transform(block), expected)
    return again


# --- what is loaded is what was saved -----------------------------------------------------------


def test_every_learner_gives_the_same_bits(learner, labelled, fresh, tmp_path):
    assert_same_output(learner.fit(*labelled), tmp_path, labelled[0], fresh)


def test_every_kernelized_learner_gives_the_same_bits(learner, labelled, fresh, tmp_path):
    metric = Kernelized(learner, RBF(gamma=0.3), KPCA(6)).fit(*labelled)
    assert_same_output(metric, tmp_path, labelled[0], fresh)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_space_gives_the_same_bits(space, dtype, labelled, fresh, tmp_path):
    X, y = labelled[0].astype(dtype), labelled[1]
    metric = Kernelized(DNE(2), RBF(gamma=0.3), space).fit(X, y)
    again = assert_same_output(metric, tmp_path, X, fresh.astype(dtype))
    np.testing.assert_array_equal(again.space_.eigenvalues_, metric.space_.eigenvalues_)


def test_every_kernel_gives_the_same_bits(kernel, labelled, fresh, tmp_path):
    assert_same_output(Kernelized(DNE(2), kernel).fit(*labelled), tmp_path, labelled[0], fresh)


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
def test_other_metrics_give_the_same_bits(metric, labelled, fresh, tmp_path):
    X, y = labelled
    X, new = X - X.min() + 10, fresh - X.min() + 10  # chi2 wants features that are not negative
    again = assert_same_output(metric.fit(X, y), tmp_path, X, new)
    assert_same_numbers(again.pairwise_distances(new), metric.pairwise_distances(new))
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
    metric = Kernelized(NCA(2), RBF(), Nystroem(10, random_state=0)).fit(X, y)
    again = clone(saved_and_loaded(metric, tmp_path)).fit(X, y)
    D = metric.pairwise_distances(fresh)
    np.testing.assert_allclose(again.pairwise_distances(fresh), D, atol=1e-4 * D.max())


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


def test_a_pipeline_of_a_data_frame_gives_the_same_bits(labelled, tmp_path):
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
    assert_same_bits(again, metric)
    assert_same_numbers(again.transform(frame), metric.transform(frame))
    assert list(again[:-1].get_feature_names_out()) == list(metric[:-1].get_feature_names_out())


def test_the_cache_of_a_pipeline_is_left_out(labelled, tmp_path):
    metric = make_pipeline(StandardScaler(), DNE(2), memory=str(tmp_path / "cache"))
    again = assert_same_output(metric.fit(*labelled), tmp_path, labelled[0])
    assert again.memory is None


def test_a_pair_verifier_gives_the_same_probabilities(labelled, tmp_path):
    X, y = labelled
    pairs = Pairs.from_labels(y, per_point=3, random_state=0)
    verifier = PairVerifier(NCA(2).fit(X, y)).calibrate(pairs, X)
    again = saved_and_loaded(verifier, tmp_path)
    assert_same_bits(again, verifier)
    assert_same_numbers(again.predict_proba_pairs(pairs, X), verifier.predict_proba_pairs(pairs, X))


def test_a_fresh_process_gives_the_same_output(registry, labelled, fresh, tmp_path):
    """One process for all learners, and for the whole grid of spaces and kernels."""
    X, y = labelled
    np.save(tmp_path / "X.npy", fresh)
    expected = []
    grid = itertools.product([DNE(2)], registry.kernels, registry.spaces)
    for metric in [*registry.learners, *(Kernelized(*parts) for parts in grid)]:
        try:
            metric = clone(metric).fit(X, y)
        except ValueError as error:
            assert "RandomFeatures expected" in str(error)  # they exist for some kernels only
            continue
        save(metric, tmp_path / f"{len(expected)}.metric")
        expected.append(metric.transform(fresh))
    assert len(expected) > 65
    code = (
        "import sys, numpy as np, kernelmetric as km\n"
        "X = np.load(sys.argv[1] + '/X.npy')\n"
        f"for i in range({len(expected)}):\n"
        "    np.save(f'{sys.argv[1]}/{i}.npy', km.load(f'{sys.argv[1]}/{i}.metric').transform(X))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    for i, Z in enumerate(expected):
        assert_same_numbers(np.load(tmp_path / f"{i}.npy"), Z)


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


# --- what cannot be restored safely is not saved ------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            Kernelized(DNE(2), lambda a, b: a @ b.T),
            r"Got metric\.kernel of type .*function is code",
        ),
        (Kernelized(DNE(2), RBF() + kernelmetric.FunctionKernel(np.inner)), r"kernels\[1\].*Funct"),
        (Kernelized(SVC()), r"Got metric\.learner of type sklearn\.svm.*SVC.*pickle, or skops"),
        (KernelizedCV(DNE(2), [RBF()], cv=2), r"try save\(search\.best_estimator_, path\)"),
    ],
    ids=["function", "function in a sum", "third-party learner", "search"],
)
def test_what_would_need_code_is_refused_when_saving(metric, message, labelled, tmp_path):
    metric.fit(*labelled)
    with pytest.raises(TypeError, match=message):
        save(metric, tmp_path / "a.metric")
    assert list(tmp_path.iterdir()) == []


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
