"""New rows and new labels later: what is added ends where one fit to everything ends."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelmetric import LDA, RBF, Kernelized, Linear, Nystroem
from kernelmetric.shipping import load, save
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


@pytest.mark.parametrize("begin", ["fit", "fit_transform", "partial_fit"])
@pytest.mark.parametrize("first", [20, 120])  # fewer than landmarks, or more
@pytest.mark.parametrize("which", range(5))
def test_rows_added_in_parts_are_as_rows_fitted_at_once(which, first, begin, rows):
    space = spaces(rows)[which]
    at_once = clone(space).fit(rows)
    getattr(space, begin)(rows[:first])
    for start, stop in ((first, first + 1), (first + 1, 300)):
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
    with pytest.raises(ValueError, match="as a metric keeps it"):
        metric.space_.partial_fit(rows)
    with pytest.raises(ValueError, match="precomputed kernel"):
        Nystroem(20, kernel="precomputed").partial_fit(rows @ rows.T)
    space = Nystroem(20, random_state=0).partial_fit(rows)
    before = space.projection_.copy()
    with pytest.raises(ValueError, match="features"):
        space.partial_fit(rows[:, :3])
    np.testing.assert_array_equal(space.projection_, before)
