"""New rows and new labels later: what is added ends where one fit to everything ends."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from kernelmetric import (
    LDA,
    RBF,
    SCML,
    SDML,
    IdealizedKernel,
    Kernelized,
    Linear,
    Nystroem,
    Pairs,
    Triplets,
)
from kernelmetric.shipping import load, save
from kernelmetric.solvers import PairDual, solve_pairs
from kernelmetric.spaces import RandomFeatures


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 4))
    X[200:] += [3.0, 0.0, -1.0, 0.0]  # the later ones are others
    return X


def spaces(X):
    return [
        Nystroem(kernel=RBF(0.2), landmarks=X[::10]),
        Nystroem(kernel=RBF(0.2), landmarks=X[::10], n_components=7),
        Nystroem(kernel=RBF(0.2), landmarks=X[::10], n_components=0.9),
        Nystroem(kernel=Linear(), landmarks=X[::10]),
        RandomFeatures(60, kernel=RBF(0.2), random_state=0),
    ]


@pytest.mark.parametrize("first", [20, 120])  # fewer than landmarks, or more
@pytest.mark.parametrize("which", range(5))
def test_rows_added_in_parts_are_as_rows_fitted_at_once(which, first, rows):
    space = spaces(rows)[which]
    at_once = clone(space).fit(rows)
    for start, stop in ((0, first), (first, first + 1), (first + 1, 300)):
        space.partial_fit(rows[start:stop])
    assert space.rank_ == at_once.rank_
    largest = at_once.eigenvalues_[0]
    np.testing.assert_allclose(space.eigenvalues_, at_once.eigenvalues_, atol=1e-8 * largest)
    assert space.explained_variance_ratio_ == pytest.approx(at_once.explained_variance_ratio_)
    Z, W = space.transform(rows), at_once.transform(rows)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-7 * np.abs(W @ W.T).max())
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-8)


def test_the_first_rows_choose_kernel_and_landmarks_and_later_ones_keep_them(rows):
    space = Nystroem(20, random_state=0).partial_fit(rows[:200])
    fitted = Nystroem(20, random_state=0).fit(rows[:200])
    np.testing.assert_allclose(space.transform(rows), fitted.transform(rows), atol=1e-8)
    anchors, kernel, before = space.anchors_, repr(space.kernel_), space.explained_variance_ratio_
    space.partial_fit(rows[200:])
    assert space.anchors_ is anchors
    assert repr(space.kernel_) == kernel
    assert space.explained_variance_ratio_ < before  # the landmarks do not know the others


def test_rows_of_float32_and_sparse_rows_are_added(rows):
    at_once = Nystroem(kernel=RBF(0.2), landmarks=rows[::10]).fit(rows)
    few = Nystroem(kernel=RBF(0.2), landmarks=rows[::10])
    single = clone(few)
    for part in (rows[:150], rows[150:]):
        few.partial_fit(sparse.csr_matrix(part))
        single.partial_fit(part.astype(np.float32))
    assert single.transform(rows.astype(np.float32)).dtype == np.float32
    K = at_once.transform(rows) @ at_once.transform(rows).T
    for space in (few, single):
        Z = space.transform(rows)
        np.testing.assert_allclose(Z @ Z.T, K, atol=1e-3)


def test_a_saved_space_goes_on(rows, tmp_path):
    space = Nystroem(30, random_state=0).partial_fit(rows[:200])
    path = tmp_path / "space.km"
    save(space, path)
    found, pickled = load(path), pickle.loads(pickle.dumps(space))
    for other in (space, found, pickled):
        other.partial_fit(rows[200:])
        np.testing.assert_array_equal(other.projection_, space.projection_)


def test_what_cannot_be_added_is_refused_and_changes_nothing(rows):
    metric = Kernelized(LDA(1), space=Nystroem(20)).fit(rows, np.arange(300) < 200)
    added = Nystroem(20, random_state=0).partial_fit(rows)
    for space in (metric.space_, Nystroem(20).fit(rows), added.fit(rows)):
        with pytest.raises(ValueError, match="begin with a new one"):
            space.partial_fit(rows)
    with pytest.raises(ValueError, match="precomputed kernel"):
        Nystroem(20, kernel="precomputed").partial_fit(rows @ rows.T)
    space = Nystroem(20, random_state=0).partial_fit(rows)
    before = space.projection_.copy()
    with pytest.raises(ValueError, match="features"):
        space.partial_fit(rows[:, :3])
    np.testing.assert_array_equal(space.projection_, before)


# --- pairs and comparisons ----------------------------------------------------------------------

LATER = [
    IdealizedKernel(C=1e3),
    IdealizedKernel(C=1e5),
    IdealizedKernel(C=1e5, psd="none"),
    IdealizedKernel(C=1e4, nu=1.0),
    IdealizedKernel(C=1e4, psd="clip"),
    SDML(tol=1e-8),
    SCML(tol=1e-3, n_basis=20),
]


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def known_of(learner, y):
    if isinstance(learner, SCML):
        return "triplets", Triplets.from_labels(y, per_point=5, random_state=0)
    return "pairs", Pairs.from_labels(y, per_point=2, random_state=0)


@pytest.mark.parametrize("learner", LATER, ids=repr)
@pytest.mark.every(6)
def test_more_pairs_end_at_the_optimum_of_all_and_the_gap_says_so(learner, wine):
    X, y = wine
    name, known = known_of(learner, y)
    some = known.take(np.arange(len(known.rows)) % 10 > 0)
    at_once = clone(learner).fit(X, **{name: known})
    later = clone(learner).set_params(warm_start=True).fit(X, **{name: some})
    assert later.loss_ != pytest.approx(at_once.loss_, rel=1e-5)
    later.fit(X, **{name: known})
    assert later.converged_
    assert later.duality_gap_ <= later.tol
    share = 1e-3 if isinstance(learner, SCML) else 1e-6  # the gap of SCML is absolute
    assert later.loss_ == pytest.approx(at_once.loss_, abs=share * max(1.0, abs(at_once.loss_)))
    if not isinstance(learner, SCML):
        assert later.n_iter_ < at_once.n_iter_
        D = at_once.pairwise_distances(X)
        np.testing.assert_allclose(later.pairwise_distances(X), D, atol=1e-3 * np.abs(D).max())


@pytest.mark.parametrize("learner", LATER, ids=repr)
@pytest.mark.every(6)
def test_nothing_new_takes_fewer_steps(learner, wine):
    X, y = wine
    name, known = known_of(learner, y)
    learner = clone(learner).set_params(warm_start=True).fit(X, **{name: known})
    before, loss = learner.n_iter_, learner.loss_
    learner.fit(X, **{name: known})
    assert learner.n_iter_ < before
    assert learner.loss_ == pytest.approx(loss, abs=1e-3 * max(1.0, abs(loss)))


@pytest.mark.slow
def test_pairs_of_further_points_begin_at_the_metric_of_the_first(wine):
    X, y = wine
    rows = np.random.RandomState(0).permutation(len(X))
    X, y = X[rows], y[rows]
    pairs = Pairs.from_neighbors(X, y, 2)
    first = IdealizedKernel(C=1e4, warm_start=True).fit(X[:150], pairs=pairs.subset(np.arange(150)))
    at_once = IdealizedKernel(C=1e4).fit(X, pairs=pairs)
    later = first.fit(X, pairs=pairs)
    assert later.n_iter_ < at_once.n_iter_
    assert later.loss_ == pytest.approx(at_once.loss_, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-4, pytest.param(1.0, marks=pytest.mark.slow), 1e4])
@pytest.mark.parametrize("solver", ["interior", "first-order"])
@pytest.mark.every(6)
def test_a_start_far_off_ends_at_the_same_optimum(solver, factor, wine):
    X, y = wine
    pairs = Pairs.from_labels(y, per_point=2, random_state=0)
    signs = np.where(pairs.is_similar, -1.0, 1.0)
    upper = np.full(len(pairs), 10.0 / len(pairs))
    problem = PairDual(X, pairs.rows, signs, upper, 1.0)
    cold = solve_pairs(problem, solver=solver)
    A = np.random.RandomState(0).standard_normal((13, 13))
    found = solve_pairs(problem, metric=factor * (A @ A.T), solver=solver)
    assert found.converged
    assert found.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-3)


def test_a_warm_start_among_coordinates_of_another_fit_is_refused(wine):
    with pytest.raises(ValueError, match="another basis"):
        IdealizedKernel("rbf", warm_start=True).fit(*wine)
    learner = IdealizedKernel(C=1e3, warm_start=True).fit(*wine)
    with pytest.raises(ValueError, match="expected 12 columns"):
        learner.fit(wine[0][:, :12], wine[1])
