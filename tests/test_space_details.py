"""Spaces: bounds of parameters at their edges, cut-offs, choices of solvers, estimates by hand."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import KPCA, KernelTrick, Nystroem, RandomFeatures, memory_budget
from kernelmetric.compute import _budget
from kernelmetric.kernels import as_kernel
from kernelmetric.solvers import OnSubspace, _leading_eigenvectors, krylov_eigenpairs
from kernelmetric.solvers._leading_eigenvectors import ritz_interval
from kernelmetric.spaces import Gram, _kpca, orthonormal
from kernelmetric.spaces._base import n_kept, refuse_indefinite, round_off
from kernelmetric.spaces._centred_gram import CentredGram
from kernelmetric.spaces._nystroem import rpcholesky_rows


@pytest.fixture
def X():
    return np.random.RandomState(0).randn(60, 4)


def gram_of(kernel, X, *, hold):
    bound = as_kernel(kernel).bind(X, None)
    return CentredGram(bound, X, hold=hold, kind=X, trace=1.0, rounding=2.0**-52)


def centred(K):
    """A matrix on centred vectors, as the solvers take it."""
    return OnSubspace(lambda V: centre(K @ centre(V)), centre, dimensions=len(K) - 1)


def centre(V):
    return V - V.mean(axis=0)


# --- the Gram matrix, held or not ---------------------------------------------------------------


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("stored", ["dense", "sparse", "precomputed"])
def test_a_product_with_the_gram_matrix_is_the_same_however_it_is_cut(hold, stored, X):
    K = X @ X.T
    points = {"dense": X, "sparse": sparse.csr_array(X), "precomputed": K}[stored]
    M = np.random.RandomState(1).randn(60, 3)
    with memory_budget(10_000):
        gram = gram_of("precomputed" if stored == "precomputed" else "linear", points, hold=hold)
        blocks = []
        gram._rows(lambda K: blocks.append(K) or K)
        assert len(blocks) > 1
        product, means = gram.times(M), gram.column_means
        by_itself = gram_of(gram.kernel, points, hold=hold).column_means
    np.testing.assert_allclose(product, K @ M, atol=1e-10)
    np.testing.assert_allclose(means, K.mean(axis=0, keepdims=True), atol=1e-10)
    np.testing.assert_allclose(by_itself, means, atol=1e-10)


def test_leading_components_of_sparse_points_do_not_depend_on_the_budget():
    rng = np.random.RandomState(0)
    X = sparse.csr_array(rng.randn(150, 30) * (rng.uniform(size=(150, 30)) < 0.2))
    found = []
    for budget in ("100KB", "1GB"):
        with memory_budget(budget):
            space = KPCA(3, kernel="linear", solver="randomized", random_state=0).fit(X)
        found.append(space)
    small, large = found
    np.testing.assert_allclose(small.eigenvalues_, large.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(small.transform(X), large.transform(X), atol=1e-5)


def test_a_held_gram_matrix_is_not_computed_again(X):
    gram = gram_of("linear", X, hold=True)
    gram.kernel = None  # whoever asks it fails
    np.testing.assert_allclose(gram.times(np.eye(60)), X @ X.T, atol=1e-12)


@pytest.mark.parametrize("width", [2, 5, 6, 30])
def test_a_sketch_has_the_columns_asked_for(width, X):
    start = gram_of("rbf", X, hold=False).sketch(width, np.random.RandomState(0))
    assert start.shape == (60, width)
    assert np.linalg.matrix_rank(start) == width


def test_a_sketch_spans_what_the_leading_eigenvectors_do():
    rng = np.random.RandomState(0)
    X = rng.randn(400, 6) * [30.0, 20.0, 10.0, 0.1, 0.1, 0.1]
    start = gram_of("linear", X, hold=False).sketch(3, rng)
    start = np.linalg.qr(start - start.mean(axis=0))[0]
    leading = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, :3]
    cosines = np.linalg.svd(start.T @ leading)[1]
    assert cosines.min() > 0.99


@pytest.mark.parametrize("hold", [True, False])
def test_a_gram_matrix_of_another_library_is_multiplied_too(hold, X):
    xp = pytest.importorskip("array_api_strict")
    M = np.random.RandomState(1).randn(60, 3)
    gram = gram_of("linear", xp.asarray(X), hold=hold)
    np.testing.assert_allclose(np.asarray(gram.times(xp.asarray(M))), X @ X.T @ M, atol=1e-10)


@pytest.mark.parametrize("space", [Nystroem(20), RandomFeatures(30)], ids=["Nystroem", "Random"])
def test_features_streamed_in_small_blocks_give_the_same_axes(space, X):
    X = np.tile(X, (10, 1)) + 1e-3 * np.random.RandomState(1).randn(600, 4)
    found = []
    for budget in ("50KB", "1GB"):
        with memory_budget(budget):
            found.append(space.set_params(kernel="rbf", random_state=0).fit(X).transform(X))
    np.testing.assert_allclose(*found, atol=1e-9)
    np.testing.assert_allclose(found[0].mean(axis=0), 0.0, atol=1e-12)  # all rows, not the first


# --- orthonormal coordinates ----------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"span": False}, {"unit": False}], ids=str)
@pytest.mark.parametrize("basis", ["orthonormal", "of training points"])
def test_a_map_means_the_same_in_orthonormal_coordinates(basis, options, X):
    gram = None if basis == "orthonormal" else Gram(X @ X.T + np.eye(60))
    points = X if gram is None else gram.matrix
    found = orthonormal(points, gram, **options)
    L = np.random.RandomState(1).randn(2, points.shape[1])
    centred_points = points - points.mean(axis=0)
    np.testing.assert_allclose(
        found.Z @ found.enter(L).T, centred_points @ L.T, atol=1e-8 * np.abs(L @ points.T).max()
    )
    np.testing.assert_allclose(found.Z, centred_points @ found.basis.T, atol=1e-8)
    A = np.random.RandomState(2).randn(2, found.Z.shape[1])
    np.testing.assert_allclose(found.leave(A), A @ found.basis, atol=1e-10)
    length = np.mean(np.sum(np.asarray(found.Z) ** 2, axis=1))
    assert (length == pytest.approx(1.0)) == options.get("unit", True)


def test_coordinates_of_all_directions_stay_in_their_library():
    xp = pytest.importorskip("array_api_strict")
    X = np.random.RandomState(0).randn(20, 3).astype(np.float32)
    theirs = orthonormal(xp.asarray(X), span=False).Z
    assert theirs.dtype == xp.float32
    np.testing.assert_allclose(np.asarray(theirs), orthonormal(X, span=False).Z, rtol=1e-5)
    assert orthonormal(np.ones((5, 2)), span=False).Z.any() == np.False_  # no spread, no scale


# --- parameters at their edges ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("singular", "ridge"), [("ridge", 1), ("ridge", 1.0), ("ridge", 1e-300), ("range", 0)]
)
def test_a_ridge_from_0_to_1_is_accepted(singular, ridge, X):
    space = KernelTrick("rbf", singular=singular, ridge=ridge).fit(X)
    assert np.isfinite(space.transform(X)).all()


def test_a_ridge_of_0_is_refused_where_it_is_used(X):
    with pytest.raises(ValueError, match="Got ridge=0, but expected a number > 0"):
        KernelTrick("rbf", singular="ridge", ridge=0).fit(X)


@pytest.mark.parametrize("ridge", [-1e-300, 1.0000001, 2, np.nan, np.inf, "1", None])
def test_a_ridge_outside_0_to_1_is_refused(ridge, X):
    with pytest.raises(ValueError, match=r"Got ridge=.*a number > 0 and <= 1"):
        KernelTrick("rbf", singular="ridge", ridge=ridge).fit(X)


SPACES = [
    KPCA(kernel="rbf"),
    Nystroem(30, kernel="rbf", random_state=0),
    RandomFeatures(80, kernel="rbf", random_state=0),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_as_many_components_as_asked_for_and_never_more_than_there_are(space, X):
    most = type(space)(**{**space.get_params(), "n_components": None}).fit(X).rank_
    for asked in (1, 2, most, most + 1, 60, 10**6):
        fitted = type(space)(**{**space.get_params(), "n_components": asked}).fit(X)
        assert fitted.rank_ == min(asked, most)
        assert fitted.transform(X).shape == (60, min(asked, most))


@pytest.mark.parametrize("asked", [0, -1, 0.0, 1.0, 1.5, -0.1, np.nan, "3"])
@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_no_components_or_all_of_the_variance_as_a_fraction_are_refused(space, asked, X):
    space = type(space)(**{**space.get_params(), "n_components": asked})
    with pytest.raises(ValueError, match=r"Got n_components=.*try n_components=None"):
        space.fit(X)


@pytest.mark.parametrize("tol", [0, 0.0, 0.999])
@pytest.mark.parametrize("space", [KPCA, Nystroem])
def test_a_tolerance_from_0_to_below_1_is_accepted(space, tol, X):
    assert space(kernel="rbf", tol=tol).fit(X).rank_ >= 1


@pytest.mark.parametrize("tol", [-1e-300, 1, 1.0, np.nan, "0"])
@pytest.mark.parametrize("space", [KPCA, Nystroem])
def test_a_tolerance_of_1_or_more_is_refused(space, tol, X):
    with pytest.raises(ValueError, match="Got tol="):
        space(kernel="rbf", tol=tol).fit(X)


@pytest.mark.parametrize(
    ("space", "fine", "refused"),
    [(Nystroem, 1, 0), (RandomFeatures, 2, 1), (Nystroem, 1, 1.0), (RandomFeatures, 2, 2.0)],
)
def test_the_least_number_of_landmarks_and_of_random_features(space, fine, refused, X):
    assert space(fine, kernel="rbf", random_state=0).fit(X).rank_ >= 1
    with pytest.raises(ValueError, match="expected a"):
        space(refused, kernel="rbf").fit(X)


def test_an_odd_number_of_random_features_is_rounded_up(X):
    assert RandomFeatures(7, kernel="rbf", random_state=0).fit(X).frequencies_.shape == (4, 4)


# --- which solver -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_components", "n", "solver"),
    [
        (None, 10**6, "dense"),
        (1, 500, "dense"),
        (1, 501, "randomized"),
        (100, 1000, "dense"),
        (100, 1001, "randomized"),
        (0.9, 5000, "dense"),
        (0.9, 5001, "randomized"),
    ],
)
def test_the_solver_changes_at_these_sizes(n_components, n, solver):
    assert KPCA(n_components)._chosen_solver(n) == solver


# --- range --------------------------------------------------------------------------------------


def test_only_iterations_need_squares_of_kernel_values_in_range(X):
    far = X[:40] * 1e90  # kernel values of 1e180: their squares overflow, 40 times them does not
    assert KPCA(kernel="linear").fit(far).rank_ == 4
    with pytest.raises(ValueError, match="sums or squares are not finite"):
        KPCA(2, kernel="linear", solver="randomized", random_state=0).fit(far)


# --- cut-offs -----------------------------------------------------------------------------------


def points_with_eigenvalues(values, n=40, dtype=np.float64):
    """Points whose linear kernel has these eigenvalues when centred."""
    M = np.random.RandomState(0).randn(n, len(values))
    U = np.linalg.qr(M - M.mean(axis=0))[0]
    return (U * np.sqrt(values)).astype(dtype)


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("solver", ["dense", "randomized"])
def test_eigenvalues_below_the_relative_cut_off_are_left_out(solver, scale):
    values = scale * np.array([1.0, 0.5, 3e-10, 3e-11])
    space = KPCA(4, kernel="linear", solver=solver, random_state=0)
    assert space.fit(points_with_eigenvalues(values)).rank_ == 3
    space = KPCA(4, kernel="linear", solver=solver, random_state=0, tol=1e-3)
    assert space.fit(points_with_eigenvalues(values)).rank_ == 2
    np.testing.assert_allclose(space.eigenvalues_, values[:2], rtol=1e-8)


def test_iterations_in_single_precision_leave_out_what_it_cannot_tell():
    values = np.array([1.0, 0.5, 1e-5, 3e-7])
    X = points_with_eigenvalues(values, dtype=np.float32)
    space = KPCA(4, kernel="linear", solver="randomized", random_state=0).fit(X)
    assert space.rank_ == 3
    assert KPCA(kernel="linear").fit(X).rank_ == 4  # all of float64


@pytest.mark.parametrize(
    ("n_components", "kept"), [(None, 3), (1, 1), (3, 3), (4, 3), (0.5, 1), (0.6, 2), (0.999, 3)]
)
def test_the_number_of_eigenvalues_kept(n_components, kept):
    values = np.array([5.0, 3.0, 2.0, 1e-9, -1.0])
    assert n_kept(values, 1e-9, n_components, 10.0) == kept


def test_more_variance_than_there_is_above_round_off_takes_all_that_is():
    assert n_kept(np.array([5.0, 3.0, 1e-9]), 1e-9, 0.9, 10.0) == 2


@pytest.mark.parametrize(
    ("smallest", "eps", "refused"),
    [
        (-0.9e-6, 2.0**-52, False),
        (-1.1e-6, 2.0**-52, True),
        (-0.9e-3, 2.0**-23, False),
        (-1.1e-3, 2.0**-23, True),
    ],
)
def test_a_negative_eigenvalue_is_refused_beyond_round_off(smallest, eps, refused):
    refuse_indefinite(smallest, 1.0, rounding=2e-3, eps=eps)  # before centring: more
    if not refused:
        refuse_indefinite(smallest, 1.0, rounding=0.0, eps=eps)
        return
    with pytest.raises(ValueError, match="expected a positive semi-definite kernel"):
        refuse_indefinite(smallest, 1.0, rounding=0.0, eps=eps)


def test_round_off_grows_with_the_trace_and_the_root_of_the_features():
    eps = 2.0**-52
    assert round_off(3.0, 1, eps=eps) == pytest.approx(24 * eps)
    assert round_off(-3.0, 10_000, eps=eps) == pytest.approx(300 * eps)
    assert round_off(1.0, 1, eps=2.0**-23) == pytest.approx(8 * 2.0**-23)


# --- iterations that do not converge ------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "least", "most"), [(np.float32, 3e-6, 3e-5), (float, 3e-8, 3e-7)]
)
def test_iterations_stop_at_a_residual_that_the_precision_allows(
    dtype, least, most, X, monkeypatch
):
    asked = []

    def spy(*arguments, tol, floor):
        asked.append(tol)
        return krylov_eigenpairs(*arguments, tol=tol, floor=floor)

    monkeypatch.setattr(_kpca, "krylov_eigenpairs", spy)
    KPCA(3, kernel="rbf", solver="randomized", random_state=0).fit(X.astype(dtype))
    assert len(asked) == 1
    assert least < asked[0] < most


def test_a_warning_of_the_solver_points_at_the_line_that_fits(monkeypatch):
    X = np.random.RandomState(0).randn(300, 200)
    space = KPCA(5, kernel="linear", solver="randomized", random_state=0)
    monkeypatch.setattr(_leading_eigenvectors, "_MAX_CYCLES", 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        space.fit(X)
    (warning,) = caught
    assert issubclass(warning.category, ConvergenceWarning)
    assert warning.filename == __file__
    assert "after 1 cycles" in str(warning.message)


@pytest.mark.parametrize("n", [30, 200])
def test_leading_eigenvectors_of_a_matrix_on_a_subspace_are_those_of_lapack(n):
    rng = np.random.RandomState(0)
    Q = np.linalg.qr(rng.randn(n, n))[0]
    A = (Q * 0.9 ** np.arange(n)) @ Q.T
    found = krylov_eigenpairs(centred(A), 5, lambda width: rng.randn(n, width), tol=1e-9)
    H = np.eye(n) - 1 / n
    expected = np.linalg.eigvalsh(H @ A @ H)[-5:]
    np.testing.assert_allclose(found.values, expected, rtol=1e-9)
    rest = H @ A @ H @ found.vectors - found.vectors * found.values
    assert np.linalg.norm(rest, axis=0).max() <= 1e-8
    assert found.smallest > -1e-12


def test_an_indefinite_matrix_is_seen_by_a_few_steps():
    rng = np.random.RandomState(0)
    Q = np.linalg.qr(rng.randn(40, 40))[0]
    K = (Q * np.linspace(-0.5, 1.0, 40)) @ Q.T
    smallest, _ = ritz_interval(centred(K), rng.standard_normal((40, 1)))
    H = np.eye(40) - 1 / 40
    least = np.linalg.eigvalsh(H @ K @ H)[0]
    assert least - 1e-10 <= smallest < 0.9 * least


@pytest.mark.parametrize("n", [2, 3, 10])
def test_few_points_leave_room_for_few_steps(n):
    X = np.random.RandomState(0).randn(n, n)
    start = np.random.RandomState(0).standard_normal((n, 1))
    smallest, _ = ritz_interval(centred(X @ X.T), start)
    H = np.eye(n) - 1 / n
    # n - 1 steps span all that is centred: the smallest eigenvalue there is not zero
    assert smallest == pytest.approx(np.linalg.eigvalsh(H @ X @ X.T @ H)[1], rel=1e-6)


# --- landmarks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_landmarks_end_where_they_span_everything(scale):
    X = scale * np.random.RandomState(0).randn(80, 3)
    kernel = as_kernel("linear").bind(X, None)
    assert len(rpcholesky_rows(kernel, X, 20, np.random.RandomState(0))) == 3


def test_no_landmark_is_drawn_twice_from_equal_points():
    distinct = 10.0 * np.arange(5)[:, None]
    X = np.tile(distinct, (20, 1))
    kernel = as_kernel("rbf").set_params(gamma=1.0).bind(X, None)
    rows = rpcholesky_rows(kernel, X, 10, np.random.RandomState(0))
    assert sorted(X[rows, 0]) == distinct[:, 0].tolist()


def test_a_precomputed_kernel_gives_the_landmarks_of_its_points(X):
    kernel = as_kernel("linear").bind(X, None)
    K = X @ X.T
    given = as_kernel("precomputed").bind(K, None)
    drawn = [
        rpcholesky_rows(kernel, X, 3, np.random.RandomState(0)),
        rpcholesky_rows(given, K, 3, np.random.RandomState(0)),
    ]
    np.testing.assert_array_equal(*drawn)


# --- estimates of memory ------------------------------------------------------------------------

MB = 10**6


@pytest.mark.parametrize(
    ("space", "n", "d", "expected"),
    [
        # 3 n × n, twice the points
        (KPCA(), 2_000, 10, 24 * 2_000**2 + 16 * 2_000 * 10),
        (KPCA(), 1_000, 10_000, 24 * 1_000**2 + 16 * 1_000 * 10_000),
        # K with its tiles; 12 blocks of rank + 10; twice the points
        (KPCA(50), 5_000, 10, 12 * 5_000**2 + 8 * 5_000 * (12 * 60 + 20)),
        (KPCA(50), 50_000, 10, 1000 * MB + 8 * 50_000 * (12 * 60 + 20)),  # no more than the budget
        (KPCA(0.9), 50_000, 10, 1000 * MB + 8 * 50_000 * (12 * 266 + 20)),
        (KPCA(2, solver="randomized"), 300, 100_000, 12 * 300**2 + 8 * 300 * (144 + 200_000)),
        # 4 n × n, twice the points
        (KernelTrick(), 2_000, 10, 32 * 2_000**2 + 16 * 2_000 * 10),
        (KernelTrick(), 1_000, 10_000, 32 * 1_000**2 + 16 * 1_000 * 10_000),
        # 5 + 3 m × m, the landmarks, a block of 2**25 bytes of features three times
        (Nystroem(1_000, landmarks="uniform"), 10**5, 10, 64 * MB + 8e4 + 3 * 2**25 + 4194 * 80),
        # all are landmarks, and no blocks
        (Nystroem(1_000), 800, 10, 64 * 800**2 + 8 * 800 * 10),
        # a factor of 20,000 rows for every landmark
        (Nystroem(1_000, landmarks="rpcholesky"), 10**5, 10, 8 * 1_000 * 20_000 + 3 * 2**25),
        (RandomFeatures(2_000), 10**5, 10, 40 * 2_000**2 + 16e4 + 3 * 2**25 + 2097 * 80),
        (RandomFeatures(5_000), 500, 10, 8 * 5_000 * (5 * 500 + 10)),
        # the width of the kernel: a chunk of differences, distances of all pairs, or of 20,000
        (RandomFeatures(2), 100, 300, 2e6 + 24 * 4950),
        (RandomFeatures(2), 10_000, 4, 20 * 20_000 * 4 + 24 * 20_000),
    ],
    ids=str,
)
def test_an_estimate_is_what_the_arrays_add_up_to(space, n, d, expected):
    with memory_budget("1GB"):
        assert space.estimate_memory(n, d) == pytest.approx(expected, rel=0.05)


def test_blocks_within_a_small_budget_are_counted_by_it():
    with memory_budget("10MB"):
        small = Nystroem(1_000, landmarks="uniform").estimate_memory(10**5, 10)
    assert small == pytest.approx(64e6 + 10e6, rel=0.05)


def test_a_fit_is_refused_at_what_it_is_estimated_to_take(monkeypatch):
    X = np.random.RandomState(0).randn(2_000, 3)
    needed = KPCA().estimate_memory(*X.shape)
    monkeypatch.setattr(_budget, "_free_memory", lambda: needed - 1)
    with pytest.raises(MemoryError, match=r"KPCA of 2000 points would take about 0\.1 GB"):
        KPCA().fit(X)
