"""Spaces: cut-offs, defaults, choices and estimates in which a small slip is easily overlooked."""

import ast
import inspect
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.utils import get_tags

import kernelmetric.spaces as room
from kernelmetric import (
    KPCA,
    RBF,
    KernelTrick,
    Laplacian,
    Linear,
    Nystroem,
    Pairs,
    RandomFeatures,
    memory_budget,
)
from kernelmetric.compute import block_budget, in_library_of, over_rows
from kernelmetric.compute.backends import backend_of
from kernelmetric.inputs import Weights
from kernelmetric.kernels import as_kernel
from kernelmetric.solvers import column_signs
from kernelmetric.spaces import Gram, Space, _base, _kpca, _nystroem, _pair_kpca, automatic_space
from kernelmetric.spaces._centred_gram import CentredGram

EPS = 2.0**-52
EPS_32 = 2.0**-23


@pytest.fixture
def X():
    return np.random.RandomState(0).randn(60, 4)


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def points_with_eigenvalues(values, n=40, dtype=np.float64):
    """Points whose linear kernel has these eigenvalues when centred."""
    M = np.random.RandomState(0).randn(n, len(values))
    U = np.linalg.qr(M - M.mean(axis=0))[0]
    return (U * np.sqrt(values)).astype(dtype)


def gram_with_eigenvalues(values, seed=0):
    """A symmetric matrix with these eigenvalues; that of the constant vector is the first."""
    n = len(values)
    M = np.random.RandomState(seed).randn(n, n)
    M[:, 0] = 1.0
    Q = np.linalg.qr(M)[0]
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


# --- defaults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", room.__all__)
def test_what_a_docstring_says_of_defaults_is_what_the_signature_says(name):
    thing = getattr(room, name)
    documented = dict(
        re.findall(r"^ *(\w+) : .*default=(.+?)\.?$", inspect.getdoc(thing) or "", re.MULTILINE)
    )
    parameters = inspect.signature(thing).parameters.values()
    given = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    assert set(documented) == set(given)
    for parameter, default in given.items():
        assert ast.literal_eval(documented[parameter]) == default


def test_the_defaults_of_spaces():
    assert KPCA().get_params() == {
        "n_components": None,
        "kernel": None,
        "tol": None,
        "solver": "auto",
        "random_state": None,
    }
    assert Nystroem().get_params() == {
        "n_landmarks": 500,
        "n_components": None,
        "kernel": None,
        "landmarks": "auto",
        "tol": None,
        "random_state": None,
    }
    assert RandomFeatures().get_params() == {
        "n_features": 1000,
        "n_components": None,
        "kernel": None,
        "random_state": None,
    }
    assert KernelTrick().get_params() == {"kernel": None, "singular": "range", "ridge": 1e-6}


def test_the_automatic_space_has_this_rank_and_these_landmarks():
    few, some, many = (automatic_space(n, random_state=7) for n in (2_000, 2_001, 10_001))
    assert (few.n_components, few.random_state) == (None, None)
    assert (some.n_components, some.random_state) == (256, 7)
    assert (many.n_components, many.n_landmarks, many.random_state) == (256, 1_000, 7)


# --- tags and names -----------------------------------------------------------------------------


@pytest.mark.parametrize("space", [KPCA, KernelTrick, Nystroem, RandomFeatures])
def test_tags_can_be_asked_of_a_space_whose_kernel_is_nonsense(space):
    tags = get_tags(space(kernel="nonsense"))
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]


@pytest.mark.parametrize("space", [KPCA, KernelTrick, Nystroem, RandomFeatures])
def test_tags_follow_the_kernel(space):
    tags = get_tags(space(kernel="precomputed")).input_tags
    assert tags.pairwise
    assert not tags.sparse
    tags = get_tags(space(kernel="linear")).input_tags
    assert not tags.pairwise
    assert tags.sparse


@pytest.mark.parametrize("space", [KPCA(3), Nystroem(5, n_components=3), KernelTrick()])
def test_there_is_a_name_for_every_coordinate(space, X):
    space.set_params(kernel="rbf").fit(X)
    n_names = len(space.get_feature_names_out())
    assert n_names == space.transform(X).shape[1] == (60 if isinstance(space, KernelTrick) else 3)


@pytest.mark.parametrize("method", ["_peak_bytes", "_learn"])
def test_a_space_that_lacks_a_method_is_told_which(method, X):
    class Bare(Space):
        kernel = None

    arguments = {"_peak_bytes": (1, 1), "_learn": (X, None)}.get(method, (X,))
    with pytest.raises(NotImplementedError, match=rf"Bare must define {method}"):
        getattr(Bare(), method)(*arguments)


# --- what is left of the spectrum ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "values", "tol", "rank"),
    [
        (np.float64, [1.0, 0.5, 3e-10, 3e-11], None, 3),
        (np.float64, [1.0, 0.5, 3e-10, 3e-11], 1e-3, 2),
        (np.float64, [1.0, 0.5, 3e-10, 3e-11], 0, 4),
        (np.float32, [1.0, 0.5, 3e-6, 3e-7], None, 3),
        (np.float32, [1.0, 0.5, 3e-6, 3e-7], 1e-3, 2),
    ],
)
@pytest.mark.parametrize("n", [5, 40])
def test_directions_of_landmarks_are_cut_off_by_the_largest(n, dtype, values, tol, rank):
    # Landmarks that are orthonormal cut nothing off themselves: f is x. Five points with four
    # landmarks are as many as five points with five, one of them twice.
    X = points_with_eigenvalues(values, n=n, dtype=dtype)
    landmarks = np.eye(4) if n > 5 else np.vstack([np.eye(4), np.zeros((1, 4))])
    space = Nystroem(kernel="linear", landmarks=landmarks, tol=tol).fit(X)
    assert space.rank_ == rank
    assert_allclose(space.eigenvalues_, values[:rank], rtol=0.1 if dtype is np.float32 else 1e-3)
    assert np.all(np.diff(space.eigenvalues_) < 0)


def test_directions_of_random_features_are_cut_off_by_the_largest():
    # Of a wide kernel the features are nearly linear and the spectrum falls fast.
    X = np.random.RandomState(0).randn(40, 2)
    for n_features in (30, 80):  # fewer than points, and more
        space = RandomFeatures(n_features, kernel=RBF(gamma=1e-2), random_state=0).fit(X)
        F = space._features(X)
        spectrum = np.linalg.svd(F - F.mean(axis=0), compute_uv=False) ** 2
        assert space.rank_ == np.sum(spectrum > 1e-6 * spectrum[0])
        assert space.rank_ < len(spectrum)
        assert_allclose(space.eigenvalues_, spectrum[: space.rank_], rtol=1e-6)


def test_landmarks_that_depend_on_each_other_are_cut_off_by_the_largest():
    narrow = np.diag(np.sqrt([1.0, 3e-10, 3e-11]))  # the roots of the eigenvalues
    points = np.random.RandomState(0).randn(30, 3)
    space = Nystroem(kernel="linear", landmarks=narrow).fit(points)
    assert space.rank_ == 2
    assert_allclose(space.eigenvalues_, np.linalg.eigvalsh(np.cov(points[:, :2].T) * 29)[::-1])


@pytest.mark.parametrize("n_components", [None, 2, 0.3])
def test_the_variance_kept_by_landmarks_is_counted_against_all_of_it(n_components, X):
    landmarks = X[:10]
    space = Nystroem(kernel=RBF(gamma=0.2), landmarks=landmarks, n_components=n_components).fit(X)
    K_mm, K = space.kernel_(landmarks), space.kernel_(X, landmarks)
    f = K @ linalg.inv(linalg.sqrtm(K_mm).real)
    total = 60.0 - 60 * np.sum(f.mean(axis=0) ** 2)  # k(x, x) = 1
    spectrum = np.linalg.svd(f - f.mean(axis=0), compute_uv=False) ** 2
    expected = spectrum[: space.rank_].sum() / total
    assert space.explained_variance_ratio_ == pytest.approx(expected, rel=1e-6)
    if n_components == 0.3:
        assert spectrum[: space.rank_ - 1].sum() < 0.3 * total <= spectrum[: space.rank_].sum()


@pytest.mark.parametrize("n_features", [20, 200])
def test_the_variance_kept_by_random_features_is_counted_against_theirs(n_features, X):
    space = RandomFeatures(n_features, kernel=3.0 * RBF(gamma=0.2), n_components=2, random_state=0)
    F = space.fit(X)._features(X)
    spectrum = np.linalg.svd(F - F.mean(axis=0), compute_uv=False) ** 2
    expected = spectrum[:2].sum() / spectrum.sum()
    assert space.explained_variance_ratio_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("solver", ["dense", "randomized"])
def test_the_variance_kept_by_components_is_counted_against_all_of_it(solver, X):
    space = KPCA(2, kernel=RBF(gamma=0.2), solver=solver, random_state=0).fit(X)
    spectrum = np.linalg.eigvalsh(centred(space.kernel_(X)))[::-1]
    assert_allclose(space.eigenvalues_, spectrum[:2], rtol=1e-6)
    expected = spectrum[:2].sum() / spectrum.sum()
    assert space.explained_variance_ratio_ == pytest.approx(expected, rel=1e-6)


def test_the_kernel_trick_leaves_nothing_out(X):
    space = KernelTrick("linear").fit(X)
    assert space.explained_variance_ratio_ == 1.0
    assert space.rank_ == 4
    expected = np.linalg.eigvalsh(centred(X @ X.T))[::-1][:4]
    assert_allclose(space.eigenvalues_, expected, rtol=1e-9)


def test_a_refit_of_the_kernel_trick_has_eigenvalues_of_its_own(X):
    space = KernelTrick("linear").fit(X)
    first = space.eigenvalues_
    assert_allclose(space.fit(2 * X).eigenvalues_, 4 * first, rtol=1e-9)


def test_the_kernel_trick_keeps_a_symmetric_matrix_of_its_own(X):
    K = X @ X.T
    K[0, 1] += 1e-12
    space = KernelTrick("precomputed")
    Z = space.fit_transform(K)
    assert_array_equal(space.basis_gram_, (K + K.T) / 2)
    assert not np.shares_memory(Z, space.basis_gram_)
    assert not np.shares_memory(K, space.basis_gram_)


def test_signs_make_the_largest_entry_positive(X):
    V = np.array([[1.0, -3.0, 2.0], [-2.0, 2.0, -2.0]])
    assert_array_equal(V * column_signs(V), [[-1.0, 3.0, 2.0], [2.0, -2.0, -2.0]])
    for space in (
        KPCA(kernel="rbf"),
        KPCA(3, kernel="rbf", solver="randomized", random_state=0),
        RandomFeatures(20, kernel="rbf", random_state=0),
    ):
        P = space.fit(X).projection_[:, :3]
        assert np.all(P[np.argmax(np.abs(P), axis=0), np.arange(3)] > 0)


# --- what is no kernel --------------------------------------------------------------------------


@pytest.mark.parametrize("space", [KPCA, KernelTrick, Nystroem])
def test_double_precision_forgives_no_more_than_its_own_rounding(space):
    # Forty eigenvalues of one: their trace is 40 times the largest, and float32 would forgive it.
    K = gram_with_eigenvalues(np.r_[np.ones(39), -1e-5])
    with pytest.raises(ValueError, match=r"smallest eigenvalue is -1e-05 \(the largest is 1\)"):
        space(kernel="precomputed").fit(K)
    assert space(kernel="precomputed").fit(K.astype(np.float32)).rank_ >= 38


@pytest.mark.parametrize("space", [KPCA, KernelTrick, Nystroem])
def test_a_share_of_the_largest_eigenvalue_is_forgiven(space):
    values = np.r_[np.zeros(18), 1.0, -5e-7]
    assert space(kernel="precomputed").fit(gram_with_eigenvalues(values)).rank_ == 1
    values = np.r_[np.zeros(18), 1.0, -5e-6]
    with pytest.raises(ValueError, match="positive semi-definite"):
        space(kernel="precomputed").fit(gram_with_eigenvalues(values))


def test_iterations_forgive_a_share_of_the_largest_eigenvalue():
    space = KPCA(2, kernel="precomputed", solver="randomized", random_state=0)
    values = np.r_[np.zeros(17), 2.0, 1.0, -5e-7]
    assert_allclose(space.fit(gram_with_eigenvalues(values)).eigenvalues_, [2.0, 1.0], rtol=1e-6)
    values = np.r_[np.zeros(17), 2.0, 1.0, -5e-5]
    with pytest.raises(ValueError, match="positive semi-definite"):
        space.fit(gram_with_eigenvalues(values))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", [False, True], ids=["points", "precomputed"])
@pytest.mark.parametrize("space", [KernelTrick(), Nystroem(5, random_state=0)])
def test_only_a_matrix_given_in_single_precision_is_rounded_to_it(
    space, given, dtype, X, monkeypatch
):
    asked = []

    def spy(trace, n_features, *, eps):
        asked.append((n_features, eps == EPS_32))
        return _base.round_off(trace, n_features, eps=eps)

    monkeypatch.setattr(sys.modules[type(space).__module__], "round_off", spy)
    space.set_params(kernel="precomputed" if given else "linear")
    space.fit((X @ X.T if given else X).astype(dtype))
    assert asked == [(60 if given else 4, given and dtype is np.float32)]


def test_the_rounding_of_a_given_matrix_does_not_grow_with_its_size():
    def gram(kernel, X, eps=EPS):
        bound = as_kernel(kernel).bind(X, None)
        return CentredGram(bound, X, hold=True, kind=X, trace=3.0, rounding=eps)

    given = np.eye(100)
    assert gram("precomputed", given).round_off == pytest.approx(8 * EPS * 3.0)
    assert gram("linear", given).round_off == pytest.approx(10 * EPS * 3.0)
    assert gram("linear", given, EPS_32).round_off == pytest.approx(10 * EPS_32 * 3.0)


# --- the Gram matrix ----------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0, 1])
def test_the_gram_matrix_is_held_where_the_budget_holds_it(missing, X, monkeypatch):
    asked = []

    def spy(*arguments, hold, **options):
        asked.append(hold)
        return CentredGram(*arguments, hold=hold, **options)

    monkeypatch.setattr(_kpca, "CentredGram", spy)
    with memory_budget(12 * 60 * 60 - missing):
        KPCA(2, kernel="rbf", solver="randomized", random_state=0).fit(X)
        KPCA(2, kernel="rbf", solver="dense").fit(X)
    assert asked == [not missing, True]


def test_a_fraction_of_the_variance_is_sought_by_doubling_until_it_is_there(X, monkeypatch):
    ranks = []
    original = _kpca.krylov_eigenpairs

    def spy(matrix, k, *arguments, **options):
        ranks.append(k)
        return original(matrix, k, *arguments, **options)

    monkeypatch.setattr(_kpca, "_FIRST_RANK", 2)
    monkeypatch.setattr(_kpca, "krylov_eigenpairs", spy)
    space = KPCA(0.6, kernel=RBF(gamma=0.1), solver="randomized", random_state=0).fit(X)
    share = np.cumsum(np.linalg.eigvalsh(centred(space.kernel_(X)))[::-1]) / np.trace(
        centred(space.kernel_(X))
    )
    needed = int(np.argmax(share >= 0.6)) + 1
    assert space.rank_ == needed
    expected = [2]
    while expected[-1] < needed:
        expected.append(2 * expected[-1])
    assert 1 < len(expected) < 5
    assert ranks == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["clear", "a zero column"])
def test_orthonormal_columns_are(kind, dtype):
    B = np.random.RandomState(0).randn(20, 4).astype(dtype)
    if kind == "a zero column":
        B[:, 2] = 0
    Q = backend_of(B).orthonormal_columns(B.copy())
    assert Q.dtype == dtype
    assert_allclose(Q.T @ Q, np.eye(4), atol=1e-5 if dtype == np.float32 else 1e-13)
    assert_allclose(Q @ (Q.T @ B), B, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_matrix_of_any_size_is_its_eigenpairs(n):
    A = np.random.RandomState(0).randn(n, n)
    A = A + A.T
    values, V = backend_of(A).symmetric_eigenpairs(A.copy())
    assert_allclose((V * values) @ V.T, A, atol=1e-13)
    assert np.all(np.diff(values) >= 0)


# --- landmarks ----------------------------------------------------------------------------------


def test_clusters_are_sought_once_in_ten_rounds_of_a_sample(monkeypatch):
    asked, sampled = [], []

    class Centres:
        def __init__(self, m, **options):
            asked.append((m, options["n_init"], options["max_iter"]))

        def fit(self, sample):
            sampled.append(len(sample))
            self.cluster_centers_ = sample[: asked[-1][0]]
            return self

    monkeypatch.setattr(_nystroem, "KMeans", Centres)
    X = np.random.RandomState(0).randn(50_000, 1)
    for m in (50, 150, 1_500, 12_000):
        assert len(_nystroem._kmeans_centres(X, m, np.random.RandomState(0))) == m
    _nystroem._kmeans_centres(X[:900], 50, np.random.RandomState(0))
    assert asked == [(m, 1, 10) for m in (50, 150, 1_500, 12_000, 50)]
    # twenty a landmark, at least 2,000, at most 20,000 or two a landmark, never more than there are
    assert sampled == [2_000, 3_000, 20_000, 24_000, 900]


def test_clusters_repeat_with_the_seed(X):
    first, again, other = (
        _nystroem._kmeans_centres(X, 5, np.random.RandomState(seed)) for seed in (0, 0, 1)
    )
    assert_allclose(first, again, rtol=1e-9)
    assert not np.allclose(first, other)


@pytest.mark.parametrize(
    ("n", "m", "pool"),
    [(10, 3, 10), (30_000, 100, 20_000), (30_000, 12_000, 24_000), (30_000, 20_000, 30_000)],
)
def test_rows_that_a_pivot_is_drawn_from(n, m, pool):
    assert _nystroem._pool(n, m) == pool
    assert _nystroem._pool(n, m) == pool


def test_rows_are_drawn_once_and_in_order():
    rows = _nystroem._uniform_rows(50, 20, np.random.RandomState(0))
    assert len(rows) == len(set(rows)) == 20
    assert np.all(np.diff(rows) > 0)
    assert_array_equal(_nystroem._uniform_rows(5, 20, np.random.RandomState(0)), np.arange(5))


@pytest.mark.parametrize(
    ("dtype", "top", "scale"),
    [
        (np.float64, 1e99, 1.0),
        (np.float64, -(2.0**400), 2.0**400),
        (np.float64, 2.0**-400, 2.0**-400),
        (np.float32, 1e11, 1.0),
        (np.float32, 2.0**50, 2.0**50),
        (np.float32, 2.0**-50, 2.0**-50),
    ],
)
def test_only_points_whose_squares_leave_the_range_are_scaled(dtype, top, scale):
    found = _nystroem._scale(np.array([[top, 0.0]], dtype=dtype))
    assert found == scale
    assert found.dtype == dtype


def by_function(x, y):
    return np.exp(-np.sum((x - y) ** 2))


@pytest.mark.parametrize(
    ("kind", "n_landmarks", "landmarks", "chosen"),
    [
        ("dense", 59, "auto", "kmeans"),
        ("dense", 60, "auto", "all"),
        ("dense", 61, "uniform", "all"),
        ("dense", 20, "uniform", "uniform"),
        ("dense", 20, "rpcholesky", "rpcholesky"),
        ("sparse", 20, "auto", "rpcholesky"),
        ("precomputed", 20, "auto", "rpcholesky"),
        ("function", 20, "auto", "rpcholesky"),
        ("function", 20, "kmeans", "kmeans"),
    ],
)
def test_how_landmarks_are_chosen(kind, n_landmarks, landmarks, chosen, X):
    points = {"sparse": sparse.csr_array(X), "precomputed": X @ X.T}.get(kind, X)
    kernel = {"precomputed": "precomputed", "function": by_function}.get(kind, "linear")
    space = Nystroem(n_landmarks, kernel=kernel, landmarks=landmarks, random_state=0).fit(points)
    assert space.landmarks_ == chosen
    if chosen == "all":
        assert space.anchors_.shape == (60, 4)
    elif chosen != "rpcholesky":
        assert space.anchors_.shape[0] == n_landmarks
    assert space.rank_ == (4 if kind != "function" else space.rank_)


def test_given_landmarks_are_taken_as_they_are(X):
    space = Nystroem(2, kernel="linear", landmarks=X[:7].tolist()).fit(X)
    assert space.landmarks_ == "given"
    assert_array_equal(space.anchors_, X[:7])
    given = sparse.csr_array(X[:7])
    space = Nystroem(kernel="linear", landmarks=given).fit(sparse.csr_array(X.astype(np.float32)))
    assert space.anchors_.dtype == np.float32
    assert_allclose(space.anchors_.toarray(), X[:7].astype(np.float32))


@pytest.mark.parametrize("landmarks", [5, np.zeros((0, 4)), np.zeros((3, 5)), np.zeros(4)])
def test_landmarks_that_are_no_points_are_refused(landmarks, X):
    with pytest.raises(ValueError, match=r"Got landmarks of shape .* but expected \(m, 4\)"):
        Nystroem(kernel="linear", landmarks=landmarks).fit(X)


@pytest.mark.parametrize("landmarks", [[-1], [60], [], [0, 60]])
def test_landmarks_beyond_the_points_of_a_matrix_are_refused(landmarks, X):
    landmarks = np.array(landmarks, dtype=int)
    with pytest.raises(ValueError, match=r"expected indices .* at least one index from 0 to 59"):
        Nystroem(kernel="precomputed", landmarks=landmarks).fit(X @ X.T)
    assert Nystroem(kernel="precomputed", landmarks=np.array([0, 59])).fit(X @ X.T).rank_ == 2


# --- random features ----------------------------------------------------------------------------


def test_terms_of_a_sum_get_frequencies_by_their_weights(X):
    kernel = 3.0 * RBF(gamma=0.1) + 1.0 * Laplacian(gamma=0.1)
    space = RandomFeatures(80, kernel=kernel, random_state=0).fit(X)
    assert space.frequencies_.shape == (4, 40)
    assert_allclose(space.amplitudes_[0], np.sqrt(np.repeat([3 / 30, 1 / 10], [30, 10])))
    assert_allclose(np.sum(space._features(X) ** 2, axis=1), 4.0)


def test_a_term_of_little_weight_gets_one_frequency_and_one_of_none_gets_none(X):
    kernel = 1.0 * RBF(gamma=0.1) + 1e-6 * RBF(gamma=9.0) + 0.0 * Laplacian(gamma=0.1)
    space = RandomFeatures(20, kernel=kernel, random_state=0).fit(X)
    assert space.frequencies_.shape == (4, 11)
    assert_allclose(space.amplitudes_[0], np.sqrt(np.r_[np.full(10, 0.1), 1e-6]))


def test_a_sum_of_nothing_has_no_features(X):
    with pytest.raises(ValueError, match="Got a sum with weights 0 only"):
        RandomFeatures(20, kernel=0.0 * RBF(gamma=0.1) + 0.0 * RBF(gamma=0.2)).fit(X)


def test_frequencies_have_the_spread_of_their_kernels():
    X = np.random.RandomState(0).randn(5, 3)
    gaussian = RandomFeatures(20_000, kernel=RBF(gamma=2.0), random_state=0).fit(X).frequencies_
    assert np.std(gaussian) == pytest.approx(2.0, rel=0.03)  # √(2γ)
    cauchy = RandomFeatures(20_000, kernel=Laplacian(gamma=0.5), random_state=0).fit(X)
    quartiles = np.quantile(cauchy.frequencies_, [0.25, 0.75])
    assert_allclose(quartiles, [-0.5, 0.5], rtol=0.05)


def test_a_kernel_without_frequencies_is_refused(X):
    with pytest.raises(ValueError, match=r"Got Linear\(\), but RandomFeatures expected RBF"):
        RandomFeatures(kernel=Linear()).fit(X)


def test_sparse_points_have_the_features_of_dense_ones(X):
    space = RandomFeatures(20, kernel=RBF(gamma=0.1), random_state=0).fit(X)
    assert_allclose(space._features(sparse.csr_array(X)), space._features(X), atol=1e-12)


# --- estimates of memory ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "n", "d", "peak", "in_full"),
    [
        (KPCA(), 7, 5, 8 * (3 * 49 + 2 * 35), 8 * (3 * 49 + 2 * 35)),
        (KPCA(3), 7, 5, 8 * (3 * 49 + 2 * 35), 8 * (3 * 49 + 2 * 35)),
        (KPCA(3, solver="randomized"), 7, 5, 12 * 49 + 56 * (156 + 10), 56 * (156 + 10)),
        (KPCA(9, solver="randomized"), 7, 5, 12 * 49 + 56 * (204 + 10), 56 * (204 + 10)),
        (KPCA(0.5, solver="randomized"), 7, 5, 12 * 49 + 56 * (204 + 10), 56 * (204 + 10)),
        (KPCA(3, solver="randomized"), 300, 5, 10**6 + 2400 * 166, 2400 * 166),
        (
            KPCA(0.5, solver="randomized"), 300, 5,
            10**6 + 2400 * (12 * 266 + 10), 2400 * (12 * 266 + 10),
        ),
        (KernelTrick(), 7, 5, 8 * (4 * 49 + 2 * 35), 8 * (4 * 49 + 2 * 35)),
        # m = 4 landmarks of 7 points: 5 + 3 m × m, the landmarks; a block of all 7 rows
        (Nystroem(4, landmarks="uniform"), 7, 5, 8 * (128 + 20 + 7 * 17), 8 * (128 + 20)),
        (Nystroem(9, landmarks="uniform"), 7, 5, 8 * (8 * 49 + 35), 8 * (8 * 49 + 35)),
        (Nystroem(landmarks=np.ones((4, 5))), 7, 5, 8 * (128 + 20 + 7 * 17), 8 * (128 + 20)),
        # a factor of every row: 4 × 600 instead
        (Nystroem(4), 600, 5, 8 * (4 * 600 + 600 * 17), 8 * 4 * 600),
        (Nystroem(4, landmarks="kmeans"), 600, 5, 8 * (128 + 20 + 600 * 17), 8 * (128 + 20)),
        (Nystroem(600), 600, 5, 8 * 600 * (8 * 600 + 5), 8 * 600 * (8 * 600 + 5)),
        (RandomFeatures(4), 7, 5, 8 * (80 + 20 + 7 * 17), 8 * (80 + 20)),
        (RandomFeatures(9), 7, 5, 8 * 9 * (35 + 5), 8 * 9 * (35 + 5)),
        (RandomFeatures(10**15), 7, 5, 8e12 * (35 + 5), 8e12 * (35 + 5)),
    ],
    ids=str,
)  # fmt: skip
def test_an_estimate_counts_every_array(space, n, d, peak, in_full):
    with memory_budget(10**6):
        assert space._peak_bytes(n, d) == pytest.approx(peak, rel=1e-12)
        assert space._bytes_in_full(n, d) == pytest.approx(in_full, rel=1e-12)
        assert space.estimate_memory(n, d) == int(max(peak, _base._bind_bytes(n, d)))


@pytest.mark.parametrize(
    ("n", "d", "expected"),
    [
        (10, 7, 20 * 45 * 7 + 24 * 45),
        (100, 20, 20 * 4_950 * 20 + 24 * 4_950),
        (400, 100, 2e6 + 24 * 79_800),
        (401, 4, 20 * 20_000 * 4 + 24 * 20_000),
        (401, 201, 2e6 + 24 * 20_000),
    ],
)
def test_the_width_of_a_kernel_takes_differences_of_pairs(n, d, expected):
    assert _base._bind_bytes(n, d) == pytest.approx(expected, rel=1e-12)


def test_blocks_of_features_fit_the_cache_and_the_budget():
    X = np.zeros((20_000, 5))

    def largest(n_inner):
        size = _base.block_size(X, n_inner)
        return max(over_rows(lambda rows: rows.stop - rows.start, len(X), **size))

    with memory_budget("10GB"):
        assert 4_000 <= largest(1_000) <= 2**25 // 8_000
        assert 16 <= largest(100_000) <= 256
        assert largest(0) == 20_000
    with memory_budget(8 * (3 * 100 + 5) * 40):
        assert largest(100) == 40
    with memory_budget(8 * (3 * 100 + 5) * 40 - 1):
        assert largest(100) < 40


def test_the_estimate_of_a_refusal_is_that_of_the_space(X):
    with memory_budget(1000):
        KPCA(kernel="rbf").fit(X)  # so little is never refused
        K = np.zeros((700, 1))
        match = r"KPCA of 700 points would take about 12 MB .* budget is 0 MB: try n_components=100"
        with pytest.raises(MemoryError, match=match):
            KPCA(kernel="rbf").fit(K)
        match = r"RandomFeatures of 700 points .*: try a smaller n_features, or Nystroem\(500\)"
        with pytest.raises(MemoryError, match=match):
            RandomFeatures(2_000, kernel="rbf").fit(K)
        match = r"Nystroem of 700 points .*: try a smaller n_landmarks"
        with pytest.raises(MemoryError, match=match):
            Nystroem(600, kernel="rbf").fit(K)
        match = r"KernelTrick of 700 points would take about 16 MB .*: try Nystroem\(500\)"
        with pytest.raises(MemoryError, match=match):
            KernelTrick("rbf").fit(K)


# --- arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "right"), [("f4", "f8"), ("f8", "f4"), ("f4", "f4")])
def test_products_are_in_the_wider_type(left, right):
    product = _base.times(np.ones((2, 3), left), np.ones((3, 4), right))
    assert product.dtype == np.result_type(left, right)
    assert_array_equal(product, np.full((2, 4), 3.0))


def test_fitted_arrays_go_where_the_points_are():
    xp = pytest.importorskip("array_api_strict")
    ours, theirs = np.arange(3.0), xp.asarray(np.arange(3.0))
    assert isinstance(in_library_of(theirs, ours), np.ndarray)
    assert isinstance(in_library_of(ours, theirs), type(theirs))
    assert in_library_of(theirs, theirs) is theirs
    assert in_library_of(ours, sparse.eye_array(3).tocsr()) is ours


def test_coordinates_out_of_range_name_their_type():
    with pytest.raises(ValueError, match="not finite numbers of float32"):
        _base.as_finite(np.array([[1e39, 1.0]]), np.dtype(np.float32))
    with pytest.raises(ValueError, match="not finite numbers of float64"):
        _base.as_finite(np.array([[np.nan, 1.0]]), np.dtype(np.float64))
    kept = _base.as_finite(np.array([[1e38, 1.0]]), np.dtype(np.float32))
    assert kept.dtype == np.float32


@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_what_is_kept_is_a_copy(stored, X):
    points = X if stored == "dense" else sparse.csr_array(X)
    kept = _base.own(points)
    assert kept is not points
    values = (kept, points) if stored == "dense" else (kept.data, points.data)
    assert not np.shares_memory(*values)


# --- choices of KPCA and its kin ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_components", "n", "solver"),
    [
        (None, 20_000, "dense"),
        (1, 500, "dense"),
        (1, 501, "randomized"),
        (100, 1000, "dense"),
        (99, 1000, "randomized"),
        (0.9, 5000, "dense"),
        (0.9, 5001, "randomized"),
    ],
)
def test_the_solver_follows_from_the_size(n_components, n, solver):
    assert KPCA(n_components)._chosen_solver(n) == solver
    assert KPCA(n_components, solver="dense")._chosen_solver(n) == "dense"


@pytest.mark.parametrize(("tol", "relative"), [(None, 1e-10), (1e-3, 1e-3), (0.0, 10 * EPS)])
def test_a_randomized_solver_cuts_off_a_share_of_the_largest_eigenvalue(tol, relative):
    space = KPCA(5, tol=tol, solver="randomized")
    space.solver_ = "randomized"
    gram = SimpleNamespace(kind=np.zeros(1), n=1000, trace=1e9)
    assert space._cut_off(gram, np.array([50.0, 1.0])) == pytest.approx(
        50.0 * relative, rel=1e-9, abs=0.0
    )
    assert space._cut_off(gram, np.array([-1.0, -2.0])) == 0.0


def test_no_more_than_all_of_the_variance_is_explained():
    shares = []
    for seed in range(30):
        Z = np.random.RandomState(seed).standard_normal((9, 3))
        shares.append(KPCA().fit(Z).explained_variance_ratio_)
    assert max(shares) == 1.0
    assert min(shares) > 1 - 1e-9


def test_eigenvectors_of_no_length_are_left_as_they_are():
    # With an indefinite Gram matrix both axes are eigenvectors, and have no length.
    G = np.array([[0.0, 1.0], [1.0, 0.0]])
    values, vectors = Gram._raw_eigh(SimpleNamespace(matrix=G), 2.0 * G)
    assert_allclose(values, [2.0, 2.0])
    assert_allclose(np.sort(np.abs(vectors), axis=0), [[0.0, 0.0], [1.0, 1.0]], atol=1e-12)
    values, vectors = Gram._raw_eigh(SimpleNamespace(matrix=4.0 * np.eye(2)), np.diag([8.0, 4.0]))
    assert_allclose(values, [1.0, 2.0])
    assert_allclose(np.abs(vectors), [[0.0, 0.5], [0.5, 0.0]])


def test_dissimilar_pairs_of_points_that_coincide_leave_one_direction():
    Z = np.random.RandomState(0).standard_normal((6, 4))
    Z[1] = Z[0]
    pairs = Pairs([[2, 3]], [[0, 1]], 6)
    for most in (1, 3):
        B = _pair_kpca._directions(Z, pairs, most)
        assert B.shape == (4, 1)
        assert_allclose(B.T @ B, [[1.0]])
    assert_array_equal(_pair_kpca._directions(Z, pairs, 4), np.eye(4))


def test_directions_part_dissimilar_pairs_beside_similar_ones():
    rng = np.random.RandomState(0)
    Z = rng.standard_normal((40, 4)) * [3.0, 1.0, 1.0, 1.0]
    Z[20:, 2] += 4.0
    pairs = Pairs([[i, i + 1] for i in range(0, 20, 2)], [[i, 20 + i] for i in range(20)], 40)
    delta = {kind: Z[rows[:, 0]] - Z[rows[:, 1]]
             for kind, rows in (("far", pairs.dissimilar), ("near", pairs.similar))}  # fmt: skip
    apart, alike = (delta[kind].T @ delta[kind] for kind in ("far", "near"))
    assert_allclose(_pair_kpca._scatter(Z, pairs.dissimilar), apart)
    alike += _pair_kpca._RIDGE * np.trace(alike) / 4 * np.eye(4)
    expected = linalg.eigh(apart, alike)[1][:, 2:]
    B = _pair_kpca._directions(Z, pairs, 2)
    assert_allclose(B.T @ B, np.eye(2), atol=1e-12)
    assert_allclose(B @ (B.T @ expected), expected, atol=1e-9)


@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("kernel", [RBF(gamma=0.3), Laplacian(gamma=0.3)], ids=repr)
def test_a_gram_matrix_that_is_held_has_every_pair_of_rows(kernel, weighs):
    rng = np.random.RandomState(0)
    X, roots = rng.standard_normal((60, 3)), rng.uniform(0.5, 2.0, size=60)
    weights = Weights(roots**2, roots**2) if weighs else None
    expected = kernel(X) * (np.outer(roots, roots) if weighs else 1.0)
    with block_budget(2**13):
        how = {"kind": X, "trace": float(np.trace(expected)), "rounding": 1e-16}
        gram = CentredGram(kernel, X, hold=True, weights=weights, **how)
    np.testing.assert_allclose(gram.K, expected, rtol=1e-12)
