"""The theorems, run on every member of the registries."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from half_of_product import half_of
from kernelmetric import (
    DLA,
    DNE,
    ITML,
    KPCA,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    LSML,
    MCML,
    MLKR,
    NCA,
    RBF,
    RCA,
    IdealizedKernel,
    Kernelized,
    KernelTrick,
    Linear,
    Nystroem,
    memory_budget,
)
from kernelmetric.compute.reductions import lmnn_hinge, nca_loss
from kernelmetric.graphs import target_neighbors

pytestmark = pytest.mark.usefixtures("deadline")


def relative(a, b):
    return abs(a - b) / abs(b)


@pytest.fixture
def separated():
    """24 points that a narrow RBF tells well apart."""
    rng = np.random.RandomState(0)
    return rng.standard_normal((24, 3)), np.arange(24) % 2, RBF(gamma=1.5)


# --- the linear kernel changes nothing ----------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "learner",
    [
        DNE(),
        DNE(2),
        DNE(reg=0.5),
        LMNN(),
        pytest.param(LMNN(2, reg=2.0), marks=pytest.mark.slow),
        DLA(2),
        LDA(),
        LDA(shrinkage=0.0),
        LFDA(),
        LPP(),
        RCA(),
        RCA(2, shrinkage=0.0),
        ITML(tol=1e-13),
        LSML(tol=1e-13),
        IdealizedKernel(C=3.0, nu=0.8),
        IdealizedKernel(C=3.0, nu=0.8, psd="clip"),
    ],
    ids=repr,
)
def test_the_linear_kernel_changes_no_distance(learner, labelled, fresh):
    X, y = labelled
    alone = clone(learner).fit(X, y)
    kernelized = Kernelized(learner, Linear(), KPCA()).fit(X, y)
    np.testing.assert_allclose(
        kernelized.pairwise_distances(fresh, X), alone.pairwise_distances(fresh, X), atol=1e-8
    )


def test_the_linear_kernel_changes_no_objective(descending_learner, labelled):
    X, y = labelled
    alone = clone(descending_learner).fit(X, y)
    kernelized = Kernelized(descending_learner, Linear(), KPCA()).fit(X, y)
    assert relative(kernelized.learner_.loss_, alone.loss_) < 1e-6


# --- the KPCA trick is the kernel trick ---------------------------------------------------------


@pytest.mark.parametrize("singular", ["range", "raw"])
def test_both_tricks_give_the_same_spectral_metric(spectral_learner, singular, separated):
    X, y, kernel = separated
    new = np.random.RandomState(1).standard_normal((7, 3))
    a = Kernelized(spectral_learner, kernel, KPCA()).fit(X, y)
    b = Kernelized(spectral_learner, kernel, KernelTrick(singular=singular)).fit(X, y)
    assert a.learner_.components_.shape[0] == b.learner_.components_.shape[0]
    assert relative(a.learner_.loss_, b.learner_.loss_) < 1e-6
    D = a.pairwise_distances(new, X)
    np.testing.assert_allclose(b.pairwise_distances(new, X), D, atol=1e-8)


def test_the_ridge_moves_the_spectral_metric_as_little_as_it_is_small(separated):
    X, y, kernel = separated
    exact = Kernelized(DNE(), kernel, KPCA()).fit(X, y).learner_.loss_
    gaps = [
        relative(Kernelized(DNE(), kernel, trick).fit(X, y).learner_.loss_, exact)
        for trick in (
            KernelTrick(singular="ridge", ridge=1e-3),
            KernelTrick(singular="ridge", ridge=1e-6),
        )
    ]
    assert gaps[1] < 1e-5
    assert 100 * gaps[1] < gaps[0] < 1e-1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "options", "precision"),
    [
        (MCML(reg=1.0, tol=1e-12), {}, 1e-6),
        # All points are nearly as far from each other in the feature space: the target neighbours
        # come from the input space, so as to be the same. Both end within the tolerance.
        (LMNN(n_neighbors=1, reg=1.0, tol=1e-5, max_iter=1500), {"neighbors": "input"}, 1e-3),
    ],
    ids=["MCML", "LMNN"],
)
def test_both_tricks_reach_the_same_convex_objective(learner, options, precision, separated):
    X, y, _ = separated
    kernel = RBF(gamma=10.0)
    assert np.linalg.cond(kernel(X)) < 10
    # Without the regularizer both would end at zero: n points span n - 1 dimensions, where
    # every class can be squeezed to a point.
    a = Kernelized(learner, kernel, KPCA(), **options).fit(X, y)
    b = Kernelized(learner, kernel, KernelTrick(), **options).fit(X, y)
    assert a.learner_.loss_ > 1
    assert relative(b.learner_.loss_, a.learner_.loss_) < precision


def test_both_tricks_reach_the_same_convex_objective_in_a_singular_gram_matrix(labelled):
    X, y = labelled
    learner = LMNN()
    a = Kernelized(learner, Linear(), KPCA()).fit(X, y)
    b = Kernelized(learner, Linear(), KernelTrick()).fit(X, y)  # of rank 4
    assert relative(b.learner_.loss_, a.learner_.loss_) < 1e-6


@pytest.mark.every(2)
@pytest.mark.parametrize("learner", [NCA(tol=1e-9), NCA(reg=0.1, tol=1e-9)], ids=repr)
def test_both_tricks_bring_nca_to_the_same_objective(learner, separated):
    X, y, kernel = separated
    a = Kernelized(learner, kernel, KPCA()).fit(X, y)
    b = Kernelized(learner, kernel, KernelTrick()).fit(X, y)
    assert relative(b.learner_.loss_, a.learner_.loss_) < 1e-6


@pytest.mark.parametrize("gamma", [pytest.param(1.5, marks=pytest.mark.slow), 10.0])
@pytest.mark.slow
def test_both_tricks_bring_lmnn_to_the_same_objective(gamma, separated):
    X, y, _ = separated
    learner = LMNN(reg=0.5, tol=1e-5, max_iter=2000)
    a = Kernelized(learner, RBF(gamma=gamma), KPCA(), neighbors="input").fit(X, y)
    b = Kernelized(learner, RBF(gamma=gamma), KernelTrick(), neighbors="input").fit(X, y)
    # Of 72 target pairs, each with a margin of 1: tolerances are relative to those.
    assert abs(b.learner_.loss_ - a.learner_.loss_) < 5e-3 * 72


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.05, 0.3])
def test_nca_reaches_the_same_objective_from_equivalent_starts(reg, labelled):
    X, y = labelled
    kernel = RBF(gamma=0.5)
    space = KPCA(kernel=kernel).fit(X)
    A = 2.0 * np.eye(space.rank_)
    U = A @ space.projection_.T  # z(x) = Pᵀk(x) - offset, so A z(x) = U k(x) up to a constant
    a = Kernelized(NCA(init=A, reg=reg, tol=1e-12, max_iter=2000), kernel, KPCA()).fit(X, y)
    b = Kernelized(NCA(init=U, reg=reg, tol=1e-12, max_iter=2000), kernel, KernelTrick()).fit(X, y)
    assert a.learner_.loss_ < a.learner_.loss_curve_[0] - 1
    assert relative(b.learner_.loss_, a.learner_.loss_) < 1e-6


@pytest.mark.parametrize("objective", ["nca", "lmnn"])
def test_the_gradient_of_the_kernel_trick_is_that_of_the_kpca_trick_times_the_gram_matrix(
    objective, labelled
):
    # Proposition 1 of Chatpatanasiri et al. (2010): ∂f/∂U = V K. With U = A Pᵀ the chain rule
    # gives ∂f/∂A = (∂f/∂U) P.
    X, y = labelled
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    targets = target_neighbors(X, y, 2)

    def gradient(L, points):
        if objective == "nca":
            return nca_loss(L, points, y)[1]
        E = points @ L.T
        return 2 * lmnn_hinge(E, E, targets, y, 1.0)[1].T @ points

    for kernel in (RBF(gamma=0.5), Linear()):
        space = KPCA(kernel=kernel).fit(X)
        K = kernel(X)
        A = np.random.RandomState(0).standard_normal((2, space.rank_))
        U = A @ space.projection_.T
        dA, dU = gradient(A, space.transform(X)), gradient(U, K)
        assert np.abs(dA).max() > 1e-3
        np.testing.assert_allclose(dU @ space.projection_, dA, atol=1e-8 * np.abs(dA).max())
    # In the last, singular case the gradient has no part outside the range of K.
    outside = np.eye(len(K)) - K @ linalg.pinvh(K)
    assert np.abs(dU @ outside).max() < 1e-8 * np.abs(dU).max()


# --- Theorem 3: what the regularizer does -------------------------------------------------------


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "learner",
    [
        NCA(init="random", random_state=0),
        LMNN(init="random", random_state=0, tol=1e-5, max_iter=1000),
        LMCA(2, init="random", random_state=0, tol=1e-5, max_iter=1000),
    ],
    ids=repr,
)
def test_the_regularized_optimum_lies_in_the_span_of_the_points(learner, labelled):
    X, y = labelled
    Q = linalg.qr(np.random.RandomState(0).standard_normal((7, 7)))[0]
    padded = X @ Q[:4]  # points of a 4-dimensional subspace of 7 dimensions

    def part_outside(reg):
        L = clone(learner).set_params(reg=reg).fit(padded, y).components_
        return np.linalg.norm(L @ Q[4:].T) / np.linalg.norm(L)

    reg = 1.0 if isinstance(learner, NCA) else 30.0
    # Without the regularizer nothing forbids what the start brought.
    assert 20 * part_outside(reg) < part_outside(0.0)


def test_in_dne_the_regularizer_only_shifts_eigenvalues(labelled):
    X, y = labelled
    plain = Kernelized(DNE(), RBF(gamma=0.5), KPCA()).fit(X, y).learner_
    assert len(plain.components_) == np.sum(plain.eigenvalues_ < 0) > 3
    shift = -0.5 * (plain.eigenvalues_[2] + plain.eigenvalues_[3])  # leaves three negative
    shifted = Kernelized(DNE(reg=shift), RBF(gamma=0.5), KPCA()).fit(X, y).learner_
    np.testing.assert_allclose(shifted.eigenvalues_, plain.eigenvalues_ + shift)
    assert len(shifted.components_) == 3
    np.testing.assert_allclose(shifted.components_, plain.components_[:3])


# --- singular Gram matrices ---------------------------------------------------------------------


@pytest.mark.every(4)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:(DNE|DLA) found no negative eigenvalue:UserWarning")
@pytest.mark.parametrize(
    ("singular", "kernel"), half_of(["range", "ridge", "raw"], [RBF(), Linear()]), ids=repr
)
def test_repeated_points_never_crash_the_kernel_trick(
    learner_with_gram, singular, kernel, labelled
):
    learner = learner_with_gram
    X, y = (np.concatenate([a, a[:9]]) for a in labelled)
    if "max_iter" in learner.get_params():
        learner.set_params(max_iter=20)
    metric = Kernelized(learner, kernel, KernelTrick(singular=singular)).fit(X, y)
    assert np.isfinite(metric.components_).all()
    D = metric.pairwise_distances(X)
    assert np.isfinite(D).all()
    assert D.max() > 0


def test_a_learner_that_ignores_the_gram_matrix_is_refused(labelled):
    learner = NeighborhoodComponentsAnalysis(max_iter=5)
    metric = Kernelized(learner, space=KernelTrick())
    with pytest.raises(ValueError, match=r"Got KernelTrick with NeighborhoodC.*use KPCA\(\)"):
        metric.fit(*labelled)


# --- one map, however it is asked ---------------------------------------------------------------


def check_one_map(metric, X, y, new):
    Z = clone(metric).fit_transform(X, y)
    metric.fit(X, y)
    scale = np.abs(Z).max()
    assert scale > 0
    np.testing.assert_allclose(metric.transform(X), Z, atol=1e-6 * scale)
    check_one_map_of_new_points(metric, new, scale)


def check_one_map_of_new_points(metric, new, scale):
    batch = metric.transform(new)
    rows = np.vstack([metric.transform(x[None, :]) for x in new])
    np.testing.assert_allclose(rows, batch, atol=1e-6 * scale)
    with memory_budget("4KB"):
        np.testing.assert_allclose(metric.transform(new), batch, atol=1e-6 * scale)


def test_a_learner_is_one_map(learner, labelled, fresh):
    check_one_map(learner, *labelled, fresh)


def test_a_kernelized_learner_is_one_map(learner, labelled, fresh):
    check_one_map(Kernelized(learner, RBF(gamma=0.3), KPCA(6)), *labelled, fresh)


@pytest.mark.every(2)
def test_a_kernelized_learner_is_one_map_in_every_space(space, labelled, fresh):
    check_one_map(Kernelized(DNE(2), RBF(gamma=0.3), space), *labelled, fresh)


@pytest.mark.every(4)
def test_a_kernelized_learner_is_one_map_for_every_kernel(kernel, labelled, fresh):
    check_one_map(Kernelized(NCA(2, max_iter=500), kernel, KPCA()), *labelled, fresh)


@pytest.mark.every(4, 2)
def test_the_automatic_space_is_one_map_for_every_kernel(kernel, labelled, fresh):
    metric = Kernelized(NCA(2, max_iter=500), kernel).fit(*labelled)
    check_one_map_of_new_points(metric, fresh, np.abs(metric.transform(labelled[0])).max())


def check_permutation(metric, X, y, rtol):
    order = np.random.RandomState(0).permutation(len(X))
    D = clone(metric).fit(X, y).pairwise_distances(X)
    permuted = clone(metric).fit(X[order], y[order]).pairwise_distances(X[order])
    np.testing.assert_allclose(permuted, D[np.ix_(order, order)], atol=rtol * D.max())


def test_permuting_rows_permutes_the_metric(learner, labelled):
    check_permutation(learner, *labelled, rtol=1e-5)


@pytest.mark.every(2)
def test_permuting_rows_permutes_the_metric_in_every_space(space, labelled):
    X, y = labelled
    if isinstance(space, Nystroem):
        space.set_params(landmarks=X[:20])  # those chosen at random depend on the order
    check_permutation(Kernelized(DNE(2), RBF(gamma=0.3), space), X, y, rtol=1e-6)


@pytest.mark.every(4, 1)
def test_permuting_rows_permutes_the_metric_for_every_kernel(kernel, labelled):
    check_permutation(Kernelized(DNE(2), kernel), *labelled, rtol=1e-6)


def test_moving_all_points_moves_no_distance(learner, labelled):
    X, y = labelled
    D = clone(learner).fit(X, y).pairwise_distances(X)
    moved = clone(learner).fit(X + 100.0, y).pairwise_distances(X + 100.0)
    np.testing.assert_allclose(moved, D, atol=1e-4 * D.max())


@pytest.mark.every(6)
def test_the_names_of_the_classes_do_not_matter(learner, labelled):
    if isinstance(learner, MLKR):
        pytest.skip("its targets are numbers, not names")
    X, y = labelled
    D = clone(learner).fit(X, y).pairwise_distances(X)
    names = np.array(["ash", "birch", "cedar"])[y]
    for labels in (names, names.astype(object), y.astype(float), y * 10 - 7, y.tolist()):
        np.testing.assert_array_equal(clone(learner).fit(X, labels).pairwise_distances(X), D)


# --- precision and memory -----------------------------------------------------------------------


def test_float32_stays_float32_and_is_close(learner, labelled):
    X, y = labelled
    wide = clone(learner).fit(X, y)
    narrow = clone(learner).fit(X.astype(np.float32), y)
    assert narrow.components_.dtype == narrow.transform(X.astype(np.float32)).dtype == np.float32
    assert wide.components_.dtype == np.float64
    # An objective with several optima may end beside another one: rounding decides.
    assert relative(narrow.loss_, wide.loss_) < 1e-2


@pytest.mark.every(4)
def test_kernelized_keeps_float32(space, labelled):
    X, y = labelled
    if isinstance(space, Nystroem):
        space.set_params(landmarks=X[:20])
    metric = Kernelized(DNE(2), RBF(gamma=0.3), space)
    D = clone(metric).fit(X, y).pairwise_distances(X)
    X = X.astype(np.float32)
    metric.fit(X, y)
    assert metric.transform(X).dtype == metric.pairwise_distances(X).dtype == np.float32
    np.testing.assert_allclose(metric.pairwise_distances(X), D, atol=2e-2 * D.max())


@pytest.mark.every(4)
def test_a_small_memory_budget_changes_nothing(learner, labelled):
    X, y = labelled
    expected = clone(learner).fit(X, y)
    with memory_budget("2KB"):
        blocked = learner.fit(X, y)
    assert relative(blocked.loss_, expected.loss_) < 1e-6
    D = expected.pairwise_distances(X)
    np.testing.assert_allclose(blocked.pairwise_distances(X), D, atol=1e-4 * D.max())


@pytest.mark.every(2)
@pytest.mark.parametrize("learner", [NCA(2), LMNN(), DNE()], ids=repr)
def test_a_small_memory_budget_changes_nothing_for_kernels(learner, labelled):
    X, y = labelled
    D = Kernelized(learner, RBF(gamma=0.3), KPCA(6)).fit(X, y).pairwise_distances(X)
    with memory_budget("2KB"):
        blocked = Kernelized(learner, RBF(gamma=0.3), KPCA(6)).fit(X, y).pairwise_distances(X)
    np.testing.assert_allclose(blocked, D, atol=1e-4 * D.max())


def test_the_descent_says_whether_it_converged(descending_learner, labelled):
    X, y = labelled
    converged = clone(descending_learner).fit(X, y)
    assert converged.converged_
    assert 2 <= converged.n_iter_ == len(converged.loss_curve_) <= converged.max_iter
    hasty = clone(descending_learner).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations.*raise max_iter"):
        hasty.fit(X, y)
    assert not hasty.converged_
    assert np.isfinite(hasty.components_).all()
