"""Parts of learners against plain NumPy: starts of descents, limits, estimates, thresholds."""

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from kernelmetric import LDA, LMCA, LMNN, MMC, NCA, RCA, RFM, SCML
from kernelmetric.compute.rates import Rates
from kernelmetric.inputs import Weights
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.learners import _checks, _lfda, _lmnn, _nca, _nca_solvers
from kernelmetric.learners._descent import Training, _complete
from kernelmetric.learners._factors import truncated
from kernelmetric.learners._spectral import LeftOut, about_centres, shrinkage_of
from kernelmetric.spaces import Gram


def cloud(n=20, d=4, n_classes=3, seed=0):
    rng = np.random.RandomState(seed)
    codes = np.arange(n) % n_classes
    X = rng.standard_normal((n, d)) * np.arange(1.0, d + 1.0)
    X[:, 0] += 2.0 * codes
    return X, codes


def start(init, X, codes, n_components, *, gram=None, weights=None, seed=0):
    """The first map of a descent, as nothing has scaled it."""
    learner = NCA(n_components, init=init, random_state=seed)
    return learner._start(Training(X, codes, gram, weights), n_components, lambda L: L)


def projector(rows):
    """Of the span of some rows: what does not depend on signs and order."""
    Q = linalg.orth(np.asarray(rows).T)
    return Q @ Q.T


def by_fisher(X, codes, n_components, weights=None):
    """Fisher's directions by their definition, shrunk by a thousandth."""
    w = np.ones(len(X)) if weights is None else weights
    Z = X - np.average(X, axis=0, weights=w)
    within, between = np.zeros((2, X.shape[1], X.shape[1]))
    for code in np.unique(codes):
        own, part = w[codes == code], Z[codes == code]
        mean = np.average(part, axis=0, weights=own)
        within += (part - mean).T @ (own[:, None] * (part - mean))
        between += np.sum(own) * np.outer(mean, mean)
    within += 1e-3 * np.trace(within + between) / X.shape[1] * np.eye(X.shape[1])
    return linalg.eigh(between, within)[1][:, ::-1][:, :n_components].T


# --- where descents start -------------------------------------------------------------------------


def test_the_identity_has_as_many_rows_as_asked_for():
    X, codes = cloud()
    np.testing.assert_array_equal(start("identity", X, codes, 2), np.eye(2, 4))


def test_a_random_start_is_that_of_its_seed_and_keeps_lengths():
    X, codes = cloud()
    expected = np.random.RandomState(3).standard_normal((2, 4)) / 2.0
    assert_allclose(start("random", X, codes, 2, seed=3), expected)


@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_principal_directions_are_those_of_the_covariance(n_components):
    X, codes = cloud()
    L = start("pca", X, codes, n_components)
    V = np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :n_components]
    assert_allclose(L @ L.T, np.eye(n_components), atol=1e-12)
    assert_allclose(projector(L), V @ V.T, atol=1e-10)


def test_principal_directions_of_fewer_rows_than_features_are_completed():
    X, codes = cloud(3, 5)
    L = start("pca", X, codes, 4)
    assert L.shape == (4, 5)
    assert_allclose(L @ L.T, np.eye(4), atol=1e-12)
    assert_allclose((X - X.mean(axis=0)) @ projector(L), X - X.mean(axis=0), atol=1e-10)


@pytest.mark.parametrize("n_components", [1, 2])
def test_discriminant_directions_are_fishers(n_components):
    X, codes = cloud()
    L = start("lda", X, codes, n_components)
    assert_allclose(L @ L.T, np.eye(n_components), atol=1e-12)
    assert_allclose(projector(L), projector(by_fisher(X, codes, n_components)), atol=1e-8)


def test_more_directions_than_classes_part_are_the_longest_of_the_others():
    X, codes = cloud()
    L = start("lda", X, codes, 3)
    own = projector(by_fisher(X, codes, 2))
    rest = (X - X.mean(axis=0)) @ (np.eye(4) - own)
    longest = np.linalg.svd(rest)[2][0]
    assert_allclose(projector(L), own + np.outer(longest, longest), atol=1e-8)
    assert_allclose(L @ L.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("init", ["pca", "lda"])
def test_whole_weights_are_repeated_rows_to_a_start(init):
    X, codes = cloud()
    w = 1.0 + np.arange(len(X)) % 3
    weighted = start(init, X, codes, 2, weights=Weights(w, w))
    rows = np.repeat(np.arange(len(X)), w.astype(int))
    assert_allclose(projector(weighted), projector(start(init, X[rows], codes[rows], 2)), atol=1e-8)


@pytest.mark.parametrize(
    ("n_components", "n_classes", "wanted"),
    [(1, 3, "lda"), (2, 3, "lda"), (3, 3, "pca"), (2, 2, "pca"), (4, 3, "identity")],
)
def test_an_automatic_start_follows_from_classes_and_features(n_components, n_classes, wanted):
    X, codes = cloud(n_classes=n_classes)
    found = start("auto", X, codes, n_components)
    np.testing.assert_array_equal(found, start(wanted, X, codes, n_components))


@pytest.mark.parametrize("init", ["auto", "identity", "pca", "lda", "random"])
def test_a_start_has_no_more_rows_than_the_gram_matrix_has_directions(init):
    X, codes = cloud(20, 5)
    B = np.random.RandomState(1).standard_normal((5, 2))
    gram = Gram(B @ B.T)  # five vectors in a plane
    L = start(init, X, codes, 4, gram=gram)
    assert L.shape == (2, 5)
    W = gram.inv_sqrt()
    assert np.linalg.matrix_rank(L) == 2
    assert_allclose(L @ W @ linalg.pinv(W), L, atol=1e-10)  # in the span of the basis


def test_rows_that_complete_a_map_are_orthonormal_to_it():
    rows = np.linalg.qr(np.random.RandomState(0).standard_normal((5, 2)))[0].T
    both = _complete(rows, 4, 5)
    np.testing.assert_array_equal(both[:2], rows)
    assert_allclose(both @ both.T, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(_complete(rows, 1, 5), rows[:1])
    np.testing.assert_array_equal(_complete(rows, 2, 5), rows)


@pytest.mark.parametrize(
    ("n_components", "shape", "wanted"),
    [(None, (2, 3), r"\(4, 4\)"), (2, (3, 4), r"\(2, 4\)"), (2, (4,), r"\(2, 4\)")],
)
def test_a_given_start_of_another_shape_is_refused(n_components, shape, wanted):
    X, codes = cloud()
    learner = NCA(n_components, init=np.ones(shape))
    with pytest.raises(ValueError, match=rf"init of shape .*n_features\) = {wanted}"):
        learner.fit(X, codes)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_without_n_components_a_given_start_may_have_any_number_of_rows(rows):
    X, codes = cloud()
    learner = NCA(init=np.eye(rows, 4), max_iter=1).fit(X, codes)
    assert learner.components_.shape == (rows, 4)


def test_a_last_map_of_other_rows_or_features_is_refused():
    X, codes = cloud()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = LMCA(2, max_iter=1, warm_start=True).fit(X, codes)
    for other, n_components in ((X[:, :3], 2), (X, 3)):
        wanted = rf"shape \(2, 4\), but expected.*= \({n_components}, {other.shape[1]}\)"
        with pytest.raises(ValueError, match=wanted):
            learner.set_params(n_components=n_components).fit(other, codes)


# --- what ends a fit ------------------------------------------------------------------------------


class StopsAtOnce:
    """A callback of scikit-learn that asks to stop after the first iteration."""

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        pass

    def on_fit_task_end(self, estimator, context, **_):
        return context.task_name == "iteration"


@pytest.mark.skipif("sklearn.callback" not in sys.modules, reason="no callbacks")
@pytest.mark.parametrize("learner", [SCML(tol=1e-9, n_basis=20), NCA(tol=1e-12), LMNN(tol=1e-9)])
def test_a_fit_that_was_asked_to_stop_ended_as_it_should(learner):
    X, codes = cloud()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        learner.set_callbacks(StopsAtOnce()).fit(X, codes)
    assert learner.n_iter_ == 1 and learner.converged_


# --- the time before a fit is worth anything ------------------------------------------------------


@pytest.mark.parametrize("learner", [NCA(), LMNN(), LDA(), RFM(), SCML()], ids=repr)
def test_the_least_time_is_a_sum_over_kinds_of_work(learner, monkeypatch):
    def seconds(**rate):
        none = {"product": 0.0, "value": 0.0, "feature": 0.0, "cell": 0.0}
        monkeypatch.setattr(_checks, "rates", lambda: Rates(**none | rate))
        return _checks.least_seconds(learner, 300, 7)

    kind = "value" if learner._passes else "cell"
    one, products = seconds(**{kind: 1.0}), seconds(product=1.0)
    assert seconds(**{kind: 2.0}, product=3.0) == pytest.approx(2.0 * one + 3.0 * products)
    assert one > 0 and products > 0
    if learner._passes:
        assert one == pytest.approx(learner._passes * 300 * min(300, learner._others or 300))
        assert products == pytest.approx(14.0 * one + learner._products(300, 7))


# --- thresholds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", ["auto", 0.0])
@pytest.mark.parametrize(("size", "too_near"), [(3e-15, True), (1e-9, False)])
def test_classes_that_coincide_beside_their_distance_are_refused_by_lda(size, too_near, shrinkage):
    X = np.array([[0.0, 0.0], [1.0, 0.5], [0.3, 1.0], [0.7, -1.0]]) * size
    X, y = np.vstack([X, [[1.0, 2.0], [1.0, 2.0]]]), np.array([0, 0, 0, 0, 1, 1])
    for unit in (1.0, 1e-6, 1e6):
        if too_near:
            with pytest.raises(ValueError, match="expected some variation inside classes"):
                LDA(shrinkage=shrinkage).fit(unit * X, y)
        else:
            assert np.isfinite(LDA(shrinkage=shrinkage).fit(unit * X, y).components_).all()


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("reg", [0.0, 1e-6])
@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_the_unit_of_the_points_does_not_matter_to_mmc(unit, reg, diagonal):
    X, y = cloud()
    plain = MMC(reg=reg, diagonal=diagonal).fit(X, y)
    other = MMC(reg=reg, diagonal=diagonal).fit(unit * X, y)
    assert_allclose(
        unit**2 * other.components_.T @ other.components_,
        plain.components_.T @ plain.components_,
        atol=1e-3 * np.max(plain.components_**2),
    )


def test_a_direction_in_which_no_similar_pair_varies_is_left_out_by_mmc():
    X, y = cloud()
    X[:, 2] = 0.0
    metric = MMC(reg=0.0).fit(X, y)
    assert len(metric.components_) == 3
    assert_allclose(metric.components_[:, 2], 0.0, atol=1e-12)
    assert MMC(reg=0.0).fit(X, y).loss_ == pytest.approx(
        MMC(reg=0.0).fit(X[:, [0, 1, 3]], y).loss_, rel=1e-3
    )


def test_directions_that_do_not_vary_say_nothing_of_points_left_out():
    rng = np.random.RandomState(0)
    codes = np.arange(14) % 2
    Z = np.c_[rng.standard_normal((14, 2)) * [1.0, 3.0], np.zeros(14)]
    about = about_centres(Z, codes)
    left_out = LeftOut(about.T @ about, np.array([7.0, 7.0]), 0.4)
    found = left_out.losses(about, np.full(14, 7.0), np.ones(14))
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = LeftOut(Q.T @ (about.T @ about) @ Q, np.array([7.0, 7.0]), 0.4)
    assert_allclose(turned.losses(about @ Q, np.full(14, 7.0), np.ones(14)), found, rtol=1e-6)
    # The share of the mean variance counts all three directions, the likelihood two of them.
    mean = np.trace(about.T @ about) / (12 * 3)
    variances = 0.6 / 11 * np.linalg.eigvalsh((about.T @ about)[:2, :2]) + 0.4 * mean
    axes = np.linalg.eigh((about.T @ about)[:2, :2])[1]
    q = (about[:, :2] @ axes) ** 2 @ (1.0 / variances)
    without = 1.0 - 0.6 / 11 * 7 / 6 * q
    each = 0.5 * np.log(without) + 2 * np.log1p(7 / 6 * q / (2 * without))
    assert found[0] == pytest.approx(np.sum(each) / 2 + 7 * np.mean(np.log(variances)))


def test_of_two_dimensions_a_share_is_chosen_and_of_one_none():
    rng = np.random.RandomState(0)
    codes = np.arange(40) % 2
    about = about_centres(rng.standard_normal((40, 2)), codes)
    assert shrinkage_of(about, codes, "auto", np.ones(40)) > 0.1
    assert shrinkage_of(about[:, :1], codes, "auto", np.ones(40)) == 0.0
    assert shrinkage_of(0 * about, codes, "auto", np.ones(40)) == 0.0
    assert shrinkage_of(about, codes, 0.25, np.ones(40)) == 0.25


# --- the length of a start of NCA -----------------------------------------------------------------


def test_perplexity_is_the_number_of_equal_neighbours():
    for n in (1, 2, 5):
        D2 = np.where(np.arange(6) < n, 3.0, np.inf) * np.ones((4, 1))
        assert _nca._perplexity(D2, np.ones(6)) == pytest.approx(n)
    # rows at any distance, each seen from its own nearest neighbour
    D2 = np.array([[1.0, 1.0, np.inf], [7.0, 7.0, 7.0]])
    assert _nca._perplexity(D2, np.ones(3)) == pytest.approx(np.sqrt(2 * 3))
    D2 = np.array([[0.0, 1.0, 2.5]])
    P = np.exp(-D2[0]) / np.sum(np.exp(-D2[0]))
    assert _nca._perplexity(D2, np.ones(3)) == pytest.approx(np.exp(-np.sum(P * np.log(P))))


def test_masses_count_as_many_neighbours():
    D2, masses = np.array([[0.5, 1.5]]), np.array([2.0, 1.0])
    twice = np.array([[0.5, 0.5, 1.5]])
    P = np.exp(-twice[0]) / np.sum(np.exp(-twice[0]))
    assert _nca._perplexity(D2, masses) == pytest.approx(np.exp(-np.sum(P * np.log(P))))


# --- chunks ---------------------------------------------------------------------------------------


def test_rca_whitens_what_varies_inside_chunks():
    X, codes = cloud(60, 3)
    L = RCA(shrinkage=0.0).fit(X, chunks=codes).components_
    about = about_centres(X, codes)
    assert_allclose(L @ (about.T @ about / 60) @ L.T, np.eye(3), atol=1e-8)


# --- local scatter --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighs", [False, True])
def test_local_scatter_is_the_sum_over_pairs(weighs):
    X, codes = cloud(12, 3)
    X, n = X - X.mean(axis=0), 12
    w = 1.0 + np.arange(n) % 2 if weighs else np.ones(n)
    D2 = np.sum((X[:, None] - X) ** 2, axis=2)
    same = codes[:, None] == codes
    kth = [np.sort(np.delete(D2[i], i)[np.delete(same[i], i)])[1] for i in range(n)]
    scales = np.sqrt(kth)
    A = np.where(same, np.exp(-D2 / np.outer(scales, scales)), 0.0)
    sizes = np.array([np.sum(w[codes == code]) for code in codes])
    total = np.sum(w)
    inside = A / sizes[:, None]
    between = np.where(same, A * (1 / total - 1 / sizes[:, None]), 1 / total)

    def scatter(W):
        W, delta = W * np.outer(w, w), X[:, None] - X
        return 0.5 * np.einsum("ij,ijk,ijl->kl", W, delta, delta) / total

    if weighs:
        X = X - np.average(X, axis=0, weights=w)
    found = _lfda.local_scatters(X, codes, X, 2, Weights(w, w) if weighs else None)
    assert_allclose(found[0], scatter(inside), rtol=1e-9, atol=1e-12)
    assert_allclose(found[1], scatter(between), rtol=1e-9, atol=1e-12)


# --- large margins --------------------------------------------------------------------------------


def test_a_map_of_low_rank_is_filled_with_short_directions():
    L = np.random.RandomState(0).standard_normal((2, 5))
    square = _lmnn.filled(L, 5)
    np.testing.assert_array_equal(square[:2], L)
    assert square.shape == (5, 5)
    assert_allclose(square[2:] @ L.T, 0.0, atol=1e-12)
    short = 0.01 * np.linalg.norm(L, 2)
    assert_allclose(square[2:] @ square[2:].T, short**2 * np.eye(3), atol=1e-15)
    assert _lmnn.filled(L, 3).shape == (3, 5)
    for whole in (np.eye(3), np.ones((4, 3))):
        assert _lmnn.filled(whole, 3) is whole


@pytest.mark.slow
def test_of_wide_tables_lmnn_seeks_a_map_of_twice_the_rank(monkeypatch):
    X, y = make_blobs(80, n_features=12, centers=3, cluster_std=3.0, random_state=0)
    whole = LMNN(2).fit(X, y)
    ranks = []
    monkeypatch.setattr(_lmnn, "_MANY_PRODUCTS", 80 * 12**2 - 1)
    monkeypatch.setattr(
        _lmnn, "truncated", lambda L, rank: ranks.append(L.shape) or truncated(L, rank)
    )
    found = LMNN(2).fit(X, y)
    assert set(ranks) == {(4, 12), (2, 12)} and found.components_.shape == (2, 12)
    assert found.loss_ < 1.1 * whole.loss_
    assert LMNN(2, warm_start=True).fit(X, y).fit(X, y).loss_ < 1.1 * whole.loss_
    assert LMNN(9).fit(X, y).components_.shape == (9, 12)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ([[1], [0], [4], [-2]], "from -2 to 4, but expected row numbers from 0 to 3, or -1"),
        ([[1], [0], [4], [2]], "from 0 to 4, but expected row numbers from 0 to 3"),
        ([[1], [0], [0], [2]], "of another class for row 2"),
    ],
)
def test_targets_of_other_rows_or_classes_are_refused(targets, said):
    with pytest.raises(ValueError, match=said):
        _lmnn._check_targets(np.array(targets), np.array([0, 0, 1, 1]))
    good = _lmnn._check_targets(np.array([[1], [-1], [3], [2]]), np.array([0, 0, 1, 1]))
    assert good.tolist() == [[1], [-1], [3], [2]]


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["yes", None, 0.5, [], np.zeros(2)])
def test_a_switch_is_on_or_off(value):
    X, codes = cloud()
    for name in ("warm_start", "verbose"):
        with pytest.raises(ValueError, match=f"Got {name}=.*expected True or False"):
            NCA(**{name: value}).fit(X, codes)


def test_the_least_number_is_allowed_unless_it_must_be_above():
    held = SimpleNamespace(number=0.0)
    Numbers(float, low=0.0).check(held, "number")
    with pytest.raises(ValueError, match="Got number="):
        Numbers(float, low=0.0, above=True).check(held, "number")
    held.number = 2.0
    Numbers(float, low=0.0, high=2.0).check(held, "number")
    for bad in (np.inf, np.nan, -1.0, "x", True):
        held.number = bad
        with pytest.raises(ValueError, match="Got number="):
            Numbers(float, low=0.0).check(held, "number")


# --- points held out by NCA -----------------------------------------------------------------------


def test_points_held_out_remember_the_last_of_the_best_maps():
    points = np.array([[0.0, 0.0], [0.1, 9.0], [1.0, 0.0], [1.1, 9.0]])
    problem = SimpleNamespace(points=points, codes=np.array([0, 0, 1, 1]), weights=None)
    moved = np.array([[0.0, 0.5], [0.0, 0.5], [0.0, -0.4], [0.0, -0.4]])
    others = SimpleNamespace(points=points + moved, codes=problem.codes)
    held = _nca_solvers.HeldOut(problem, np.arange(4), others)
    good, bad = np.array([[1.0, 0.0]]), np.array([[0.0, 1e-3]])
    assert not held(bad) and held.scores[0] < 1.0
    assert not held(good) and held.scores[1] == 1.0
    longer = [2.0 * good, bad, bad]
    for L in longer:
        held(L)
    np.testing.assert_array_equal(held.best, 2.0 * good)  # as good, and later
    ended = [held(bad) for _ in range(_nca_solvers._PATIENCE)]
    assert ended[-1] and len(held.scores) - 2 >= _nca_solvers._PATIENCE
    assert ended.index(True) == _nca_solvers._PATIENCE - 4


def test_a_start_of_softmax_has_the_perplexity_that_was_meant():
    X = np.random.RandomState(0).standard_normal((400, 2))
    wanted = _nca.softmax_start(np.eye(2), X)
    E = X @ wanted.T
    D2 = np.sum((E[:, None] - E) ** 2, axis=2)
    np.fill_diagonal(D2, np.inf)
    found = _nca._perplexity(D2, np.ones(400))
    assert 0.85 * _nca._START_PERPLEXITY < found < 1.02 * _nca._START_PERPLEXITY
    for scale in (1e-4, 1e4):
        assert_allclose(_nca.softmax_start(scale * np.eye(2), X), wanted, rtol=1e-6)
    still = np.zeros((2, 2))
    np.testing.assert_array_equal(_nca.softmax_start(still, X), still)
