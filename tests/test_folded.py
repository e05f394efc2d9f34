"""Kernelized multiplies the maps of space and learner once, and looks at the points once."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from kernelmetric import (
    DNE,
    KPCA,
    LMNN,
    NCA,
    RBF,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Linear,
    Nystroem,
    Polynomial,
    compress,
    load,
    memory_budget,
    save,
)
from kernelmetric.inputs import _points, check_points
from kernelmetric.kernelized._folded import can_fold
from kernelmetric.shipping import SavedFileError

KERNEL = RBF(gamma=0.3)


def one_after_the_other(metric, X):
    return metric.learner_.transform(metric.space_.transform(X))


def assert_near(found, expected, dtype=np.float64):
    expected = np.asarray(expected)
    # what small eigenvalues make of rounding, in a basis of these sizes
    atol = 1e4 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.fixture
def metric(labelled):
    return Kernelized(DNE(2), KERNEL, KPCA(6)).fit(*labelled)


# --- the same map -------------------------------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize("learner", [DNE(2), LMNN(max_iter=10), NCA(3)], ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_product_is_space_then_learner(space, learner, labelled, fresh):
    metric = Kernelized(learner, KERNEL, space, random_state=0).fit(*labelled)
    assert can_fold(metric.space_, metric.learner_)
    assert_near(metric.transform(fresh), one_after_the_other(metric, fresh))
    D = metric.pairwise_distances(fresh)
    E = one_after_the_other(metric, fresh)
    np.testing.assert_allclose(D, np.linalg.norm(E[:, None] - E[None], axis=2), atol=1e-7 * D.max())


@pytest.mark.every(3)
@pytest.mark.parametrize("fitted", [np.float32, np.float64])
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_the_precision_of_the_points_is_that_of_the_coordinates(
    space, fitted, given, labelled, fresh
):
    X, y = labelled
    metric = Kernelized(DNE(2), KERNEL, space, random_state=0).fit(X.astype(fitted), y)
    E = metric.transform(fresh.astype(given))
    assert E.dtype == given
    widest = max(np.finfo(fitted).eps, np.finfo(given).eps)
    expected = one_after_the_other(metric, fresh.astype(given))
    np.testing.assert_allclose(E, expected, atol=1e4 * widest * np.abs(expected).max())


@pytest.mark.every(3)
def test_sparse_points_are_mapped_by_one_product(space, labelled, fresh):
    X, y = labelled
    metric = Kernelized(DNE(2), KERNEL, space, random_state=0)
    try:
        metric.fit(sparse.csr_array(X), y)
    except ValueError as error:
        assert "kmeans" in str(error)  # landmarks that sparse points do not have
        return
    E = metric.transform(sparse.csr_array(fresh))
    assert_near(E, one_after_the_other(metric, sparse.csr_array(fresh)))
    assert_near(metric.transform(fresh), E)


@pytest.mark.every(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strict_points_come_out_where_they_went_in(space, dtype, labelled, fresh):
    xs = pytest.importorskip("array_api_strict")
    X, y = labelled
    metric = Kernelized(DNE(2), KERNEL, space, random_state=0)
    metric.fit(xs.asarray(X.astype(dtype)), y)
    E = metric.transform(xs.asarray(fresh.astype(dtype)))
    assert isinstance(E, type(xs.asarray(fresh)))
    assert E.dtype == (xs.float32 if dtype == np.float32 else xs.float64)
    # fitted there, applied here, and the other way round
    here = metric.transform(fresh.astype(dtype))
    assert isinstance(here, np.ndarray)
    assert_near(here, E, dtype)
    plain = Kernelized(DNE(2), KERNEL, space, random_state=0).fit(X.astype(dtype), y)
    there = plain.transform(xs.asarray(fresh.astype(dtype)))
    assert_near(np.asarray(there), plain.transform(fresh.astype(dtype)), dtype)


@pytest.mark.every(3)
def test_blocks_change_nothing(space, labelled, fresh):
    metric = Kernelized(DNE(2), KERNEL, space, random_state=0).fit(*labelled)
    many = np.tile(fresh, (60, 1))
    expected = copy.deepcopy(metric).transform(many)
    with memory_budget("20KB"):
        assert_near(metric.transform(many), expected)


def test_an_indefinite_metric_keeps_its_signs(labelled, fresh):
    X, y = labelled
    metric = Kernelized(IdealizedKernel(C=1e3, nu=0.8, psd="none"), KERNEL).fit(X, y)
    Z, M = metric.space_.transform(fresh), metric.get_mahalanobis_matrix()
    delta = Z[:, None] - Z[None]
    squares = np.einsum("ijk,kl,ijl->ij", delta, M, delta)
    assert squares.min() < 0
    D = metric.pairwise_distances(fresh)
    np.testing.assert_allclose(np.sign(D) * D**2, squares, atol=1e-8 * np.abs(squares).max())


# --- as accurate --------------------------------------------------------------------------------


def exactly(F, P, offset, L):
    """(F P - offset) Lᵀ without any rounding but the last."""

    def times(A, B):
        return [
            [sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in B]
            for row in A
        ]

    F, P, offset, L = (
        [[Fraction(v) for v in row] for row in M.tolist()] for M in (F, P, offset, L)
    )
    Z = times(F, list(zip(*P, strict=True)))
    Z = [[z - o for z, o in zip(row, offset[0], strict=True)] for row in Z]
    return np.array([[float(v) for v in row] for row in times(Z, L)])


@pytest.mark.every(3)
@pytest.mark.parametrize("power", [-0.5, 0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("kernel", "space"),
    [
        (RBF(gamma=1e-4), KPCA()),
        (RBF(gamma=1e-2), KPCA()),
        (Polynomial(degree=4), KPCA()),
        (RBF(gamma=1e-3), Nystroem(30, random_state=0)),
    ],
    ids=repr,
)
def test_small_eigenvalues_cost_no_more_digits_than_one_map_after_the_other(kernel, space, power):
    rng = np.random.RandomState(0)
    X, new = rng.standard_normal((40, 3)), rng.standard_normal((4, 3))
    metric = Kernelized(DNE(2), kernel, space).fit(X, X[:, 0] > 0)
    eigenvalues = metric.space_.eigenvalues_
    assert eigenvalues[0] / eigenvalues[-1] > 1e5
    # maps that make much of directions of little variance, or next to nothing
    L = rng.standard_normal((2, len(eigenvalues))) * eigenvalues**power
    metric.learner_.components_ = L
    space = metric.space_
    expected = exactly(space._features(new), space.projection_, space.offset_, L)
    folded = np.abs(metric.transform(new) - expected).max()
    apart = np.abs(one_after_the_other(metric, new) - expected).max()
    P, F = np.abs(space.projection_), np.abs(space._features(new))
    bound = np.finfo(float).eps * (F @ P @ np.abs(L).T).max()
    assert max(folded, apart) < 10 * bound
    assert folded < 10 * apart + 0.1 * bound


# --- never a map of yesterday -------------------------------------------------------------------


def test_the_product_is_made_once(metric, fresh):
    metric.transform(fresh)
    made = metric._folded._made
    metric.transform(fresh[:1])
    metric.pairwise_distances(fresh)
    assert metric._folded._made is made


def replaced(metric, X, y):
    metric.learner_.components_ = 2.5 * metric.components_[::-1]


def written_into(metric, X, y):
    metric.learner_.components_[0] *= -3


def learned_again(metric, X, y):
    metric.learner_.fit(metric.space_.transform(X), 1 - (y == 2))


def another_learner(metric, X, y):
    metric.learner_ = LMNN(2).fit(metric.space_.transform(X), y)


def another_space(metric, X, y):
    metric.space_ = clone(metric.space_).fit(X[::2])


def fitted_space(metric, X, y):
    metric.space_.fit(X[:20])


def another_projection(metric, X, y):
    metric.space_.projection_ = 2 * metric.space_.projection_


def moved(metric, X, y):
    metric.space_.offset_ = metric.space_.offset_ + 1.0


def moved_in_place(metric, X, y):
    metric.space_.offset_ += 1.0


def fitted_again(metric, X, y):
    metric.fit(X[:25], y[:25])


CHANGES = [
    replaced,
    written_into,
    learned_again,
    another_learner,
    another_space,
    fitted_space,
    another_projection,
    moved,
    moved_in_place,
    fitted_again,
]


@pytest.mark.every(3)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_is_changed_after_the_fit_is_seen(change, metric, labelled, fresh):
    before = metric.transform(fresh)
    change(metric, *labelled)
    after = metric.transform(fresh)
    assert np.abs(after - before).max() > 1e-3 * np.abs(before).max()
    assert_near(after, one_after_the_other(metric, fresh))


@pytest.mark.parametrize("space", [KPCA(6), KernelTrick(), Nystroem(20, random_state=0)], ids=repr)
def test_a_compressed_metric_has_a_map_of_its_own(space, labelled, fresh):
    X, y = labelled
    metric = Kernelized(DNE(2), KERNEL, space).fit(X, y)
    before = metric.transform(fresh)
    small = compress(metric, 12, np.vstack([X, fresh]))
    found = small.transform(fresh)
    assert_near(found, one_after_the_other(small, fresh))
    assert np.abs(found - before).max() > 1e-9
    np.testing.assert_array_equal(metric.transform(fresh), before)
    made = metric._folded._made
    small.transform(fresh)
    assert metric._folded._made is made  # or each would undo the other's product


def test_threads_may_ask_at_once(labelled, fresh):
    metric = Kernelized(DNE(2), KERNEL).fit(*labelled)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(metric.transform, [fresh] * 8))
    for E in found:
        assert_near(E, one_after_the_other(metric, fresh))


# --- copies and files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda metric: pickle.loads(pickle.dumps(metric))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_map_alike(copied, metric, fresh):
    unused = len(pickle.dumps(metric))
    expected = metric.transform(fresh)
    assert len(pickle.dumps(metric)) == unused  # the product is not among what is kept
    again = copied(metric)
    np.testing.assert_array_equal(again.transform(fresh), expected)
    again.learner_ = copy.copy(again.learner_)
    again.learner_.components_ = 3 * again.components_
    assert_near(again.transform(fresh), 3 * expected)
    np.testing.assert_array_equal(metric.transform(fresh), expected)


def test_a_file_holds_the_parts_and_not_their_product(metric, fresh, tmp_path):
    unused = save(metric, tmp_path / "unused.metric").read_bytes()
    expected = metric.transform(fresh)
    path = save(metric, tmp_path / "used.metric")
    assert path.read_bytes() == unused
    again = load(path)
    assert_near(again.transform(fresh), expected)


def test_a_file_that_brings_a_product_is_refused(metric, tmp_path, monkeypatch):
    from kernelmetric.shipping import _tree

    state = _tree.TreeWriter._state

    def with_product(self, value, where):
        nodes = state(self, value, where)
        return nodes | ({"_folded": [1, 2]} if isinstance(value, Kernelized) else {})

    monkeypatch.setattr(_tree.TreeWriter, "_state", with_product)
    save(metric, tmp_path / "forged.metric")
    with pytest.raises(SavedFileError, match=r"'_folded' among the attributes of .*Kernelized"):
        load(tmp_path / "forged.metric")


# --- what others wrote is asked, not taken apart ------------------------------------------------


class Doubling(DNE):
    """A learner whose transform is its own."""

    def transform(self, X):
        return 2 * super().transform(X)


class Shifted(KPCA):
    """A space whose transform is its own."""

    def transform(self, X):
        return super().transform(X) + 1.0


class Squared(KPCA):
    """A space whose coordinates are not linear in the features."""

    def _coordinates(self, X):
        return super()._coordinates(X) ** 2


@pytest.mark.parametrize(
    ("learner", "space"),
    [
        (Doubling(2), KPCA(6)),
        (DNE(2), Shifted(6)),
        (DNE(2), Squared(6)),
        (IdealizedKernel(Linear(), C=10.0), KPCA(6)),
        (PCA(2, whiten=True), KPCA(6)),
        (NeighborhoodComponentsAnalysis(2, init="pca", max_iter=5), KPCA(6)),
    ],
    ids=repr,
)
def test_what_defines_its_own_transform_is_asked(learner, space, labelled, fresh):
    metric = Kernelized(learner, KERNEL, space).fit(*labelled)
    assert not can_fold(metric.space_, metric.learner_)
    np.testing.assert_array_equal(metric.transform(fresh), one_after_the_other(metric, fresh))


# --- one look at the points ---------------------------------------------------------------------


class Looks(list):
    """Everything that was checked."""

    def at(self, X):
        return sum(np.array_equal(seen, X) for seen in self)


@pytest.fixture
def looks(monkeypatch):
    looks, check = Looks(), _points.validate_data

    def counted(estimator, X, *args, **options):
        looks.append(X)
        return check(estimator, X, *args, **options)

    monkeypatch.setattr(_points, "validate_data", counted)
    X = np.ones((2, 7))
    check_points(Kernelized(DNE()), X, reset=True)
    assert looks.at(X) == 1  # else nothing is counted
    looks.clear()
    return looks


@pytest.mark.every(4)
@pytest.mark.parametrize("kernel", [KERNEL, "auto", "aligned"], ids=repr)
@pytest.mark.parametrize(
    "space", [KPCA(6), Nystroem(12, n_components=6, random_state=0), KernelTrick()], ids=repr
)
def test_points_are_checked_once(kernel, space, labelled, fresh, looks):
    X, y = labelled
    metric = Kernelized(DNE(2), kernel, space).fit(X, y)
    assert looks.at(X) == 1
    looks.clear()
    for call in (metric.transform, metric.pairwise_distances, metric.pairwise_kernels):
        call(fresh)
        assert looks.at(fresh) == len(looks) == 1
        looks.clear()
    metric.fit_transform(X, y)
    assert looks.at(X) == 1


def test_points_are_checked_once_on_the_way_to_a_learner_of_others(labelled, fresh, looks):
    X, _ = labelled
    metric = Kernelized(PCA(2), KERNEL, KPCA(6)).fit(X)
    metric.transform(fresh)
    assert (looks.at(X), looks.at(fresh), len(looks)) == (1, 1, 2)


def test_a_search_looks_once_at_what_it_transforms(labelled, fresh, looks):
    X, y = labelled
    search = KernelizedCV(DNE(2), [KERNEL, Linear()], 2, space=KPCA(3)).fit(X, y)
    looks.clear()
    search.predict(fresh)
    assert looks.at(fresh) == 1
