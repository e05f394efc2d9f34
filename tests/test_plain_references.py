"""Small parts of computing, solving, judging and saving against plain NumPy, on tiny data."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse
from scipy.spatial.distance import cdist

from kernelmetric import LDA, TimeLimitWarning, time_limit
from kernelmetric.compute import watch
from kernelmetric.compute.backends._array_api import ArrayAPI
from kernelmetric.compute.reductions import lmnn_step_on, subspace_distances
from kernelmetric.compute.reductions._centres import _means, _seeds
from kernelmetric.compute.reductions._distances import (
    pair_squares,
    require_squares,
    squared_lengths,
    weighted_quantiles,
)
from kernelmetric.compute.reductions._products import _short_indices
from kernelmetric.compute.reductions._table import Table
from kernelmetric.evaluation import pairs_to_label
from kernelmetric.evaluation._class_scores import ClassScores
from kernelmetric.evaluation._thresholds import _sample
from kernelmetric.inputs import _methods
from kernelmetric.learners._log_det import _downhill
from kernelmetric.learners._margin import _lifted, _union
from kernelmetric.shipping import _agreement
from kernelmetric.shipping._attributes import Attributes
from kernelmetric.solvers import _ridge_grid
from kernelmetric.spaces import Gram, RandomFeatures
from kernelmetric.spaces._gram import _spanning_rows

# --- compute --------------------------------------------------------------------------------------


def test_no_pairs_of_subspaces_have_no_distances():
    S, none = np.ones((3, 2, 4), dtype=np.float32), np.empty(0, dtype=int)
    found = subspace_distances(S, S, none, none)
    assert found.shape == (0,) and found.dtype == np.float32


@pytest.mark.parametrize("r", [1, 2])
def test_distances_of_affine_subspaces_are_least_squares(r):
    rng = np.random.RandomState(0)
    S = rng.standard_normal((4, r + 1, 5))
    T = rng.standard_normal((3, r + 1, 5))
    for A in (S, T):
        for one in A:
            one[1:] = np.linalg.qr(one[1:].T)[0].T
    first, second = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    expected = [
        np.linalg.lstsq(np.vstack([S[i, 1:], T[j, 1:]]).T, S[i, 0] - T[j, 0], rcond=None)[1][0]
        for i, j in zip(first, second, strict=True)
    ]
    assert_allclose(subspace_distances(S, T, first, second), expected, rtol=1e-9)
    order = np.random.RandomState(1).permutation(12)  # runs of equal rows are only quicker
    assert_allclose(subspace_distances(S, T, first[order], second[order]), np.take(expected, order))


def test_an_empty_list_of_impostors_leaves_the_pull_of_targets():
    rng = np.random.RandomState(0)
    X, L = rng.standard_normal((6, 3)), rng.standard_normal((2, 3))
    targets = np.roll(np.arange(6), 1)[:, None]
    none = np.empty((0, 2), dtype=np.int32)
    value, gradient = lmnn_step_on(none, L, X, targets, 0.5)
    E = (X - X[targets[:, 0]]) @ L.T
    assert value == pytest.approx(np.sum(E**2))
    assert_allclose(gradient, 2.0 * E.T @ (X - X[targets[:, 0]]), rtol=1e-9)


@pytest.mark.parametrize("how", ["dense", "sparse", "mixed"])
def test_squares_of_listed_pairs_are_those_of_all_in_chunks_of_any_length(how, monkeypatch):
    from kernelmetric.compute.reductions import _distances

    rng = np.random.RandomState(0)
    A, B = rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
    i, j = rng.randint(7, size=23), rng.randint(5, size=23)
    expected = cdist(A, B, "sqeuclidean")[i, j]
    A = A if how == "dense" else sparse.csr_array(A)
    B = sparse.csr_array(B) if how == "sparse" else B
    for size in (1, 60, 10**6):
        monkeypatch.setattr(_distances, "_CHUNK_BYTES", size)
        monkeypatch.setattr(_distances, "_SPARSE_CHUNK_BYTES", size)
        assert_allclose(pair_squares(A, B, i, j), expected, rtol=1e-12)


def test_indices_are_short_where_rows_and_entries_allow_it():
    A = sparse.csr_array(np.eye(3, 4))
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    short = _short_indices(A)
    assert short.indices.dtype == short.indptr.dtype == np.int32
    np.testing.assert_array_equal(short.toarray(), np.eye(3, 4))
    wide = sparse.csr_array((1, 2**31))
    assert _short_indices(wide) is wide
    assert _short_indices(sparse.csr_array((1, 2**31 - 1))).shape == (1, 2**31 - 1)


def test_means_are_those_of_the_nearest_points_and_empty_centres_stay():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [10.0, 0.0], [12.0, 0.0]])
    C = np.array([[1.0, 1.0], [11.0, 1.0], [-50.0, 50.0]])
    assert_allclose(_means(X, C), [[2 / 3, 2 / 3], [11.0, 0.0], [-50.0, 50.0]])


@pytest.mark.parametrize("m", [1, 2, 5, 40])
def test_seeds_are_different_points_as_many_as_there_are(m):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((20, 3))
    seeds = _seeds(X, squared_lengths(X), m, np.random.RandomState(1))
    assert len(np.unique(seeds, axis=0)) == len(seeds) == min(m, 20)
    assert cdist(seeds, X).min(axis=1).max() == 0.0


def test_of_points_at_one_place_the_lesser_name_is_nearer():
    X = np.zeros((6, 2))
    X[4:] = 1.0
    for names in (np.arange(6), np.array([5, 3, 4, 1, 0, 2])):
        table = Table(X, names)
        assert table.ordered == bool(np.all(np.diff(names) > 0))
        found, squares = table.nearest(np.zeros((1, 2)), 3, None)
        np.testing.assert_array_equal(found[0], np.sort(names[:4])[:3])
        assert_allclose(squares, 0.0, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_fewer_rows_have_the_same_products(shape):
    A = np.random.RandomState(0).standard_normal(shape)
    R = ArrayAPI().fewer_rows(A)
    assert len(R) == min(shape)
    assert_allclose(R.T @ R, A.T @ A, atol=1e-12)


@pytest.mark.parametrize(("n", "word"), [(1, "after 1 candidate:"), (3, "after 3 candidates:")])
def test_how_many_candidates_were_tried_is_said(n, word):
    with pytest.warns(TimeLimitWarning, match=word):
        watch.warn_of_choice("things", n)


@pytest.mark.slow
def test_a_candidate_that_takes_longer_than_is_left_is_not_begun():
    begun = []
    with time_limit(0.3), pytest.warns(TimeLimitWarning, match="of things after 1 candidate:"):
        for candidate in watch.until_limit(range(5), "things"):
            begun.append(candidate)
            time.sleep(0.2)
    assert begun == [0]
    with time_limit(0.05):  # what has no name is ended silently
        assert len([time.sleep(0.1) for _ in watch.until_limit(range(5), None)]) == 1


@pytest.mark.parametrize("leavable", [False, True])
def test_a_pass_is_left_between_blocks_only_where_it_may_be(leavable):
    def walked():
        if not leavable:
            return list(watch.watched(range(4)))
        with watch.leavable():
            return list(watch.watched(range(4)))

    assert walked() == [0, 1, 2, 3]  # no limit
    with time_limit(1e6):
        assert walked() == [0, 1, 2, 3]
    with time_limit(1e-9):
        time.sleep(1e-3)
        if leavable:
            with pytest.raises(watch.OutOfTime):
                walked()
        else:
            assert walked() == [0, 1, 2, 3]


# --- solvers and spaces ---------------------------------------------------------------------------


@pytest.mark.parametrize("judged", [None, 4])
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("classes", [1, 3])
def test_the_error_of_points_left_out_is_that_of_fits_without_them(classes, weighs, judged):
    rng = np.random.RandomState(0)
    X, n = rng.standard_normal((12, 2)), 12
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    Y = rng.standard_normal((n, 1))
    if classes > 1:
        Y = np.where(np.arange(n)[:, None] % classes == np.arange(classes), 1.0, -1.0)
    w = rng.uniform(0.5, 2.0, n) if weighs else np.ones(n)
    missed = []
    for i in range(n):
        rest = np.arange(n) != i
        A = K[np.ix_(rest, rest)] + 1.0 + 0.3 * np.diag(1.0 / w[rest])
        missed.append(w[i] * np.sum(((K[i, rest] + 1.0) @ linalg.solve(A, Y[rest]) - Y[i]) ** 2))
    found, dimension = _ridge_grid.left_out(K, Y, 0.3, judged, np.sqrt(w) if weighs else None)
    few = judged is not None and not np.isfinite(dimension)  # of classes alike, all are left out
    last = slice(n - 4, n) if few else slice(None)
    assert found == pytest.approx(np.sum(missed[last]) / (np.sum(w[last]) * Y.shape[1]))
    if not few:
        G = np.sqrt(w)[:, None] * (K + 1.0) * np.sqrt(w)
        values = np.linalg.eigvalsh(G)
        assert dimension == pytest.approx(np.sum(values / (values + 0.3)))


@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4)])
def test_rows_that_span_points_are_as_many_as_their_rank(shape):
    rng = np.random.RandomState(0)
    full = rng.standard_normal(shape)
    Q = _spanning_rows(full)
    if shape[0] >= shape[1]:
        np.testing.assert_array_equal(Q, np.eye(shape[1]))
    low = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    Q = _spanning_rows(low)
    assert Q.shape == (2, shape[1])
    assert_allclose(Q @ Q.T, np.eye(2), atol=1e-12)
    assert_allclose(low @ Q.T @ Q, low, atol=1e-12)


def test_a_step_downhill_is_the_best_of_halved_ones():
    class Bowl:
        """Squares, of which one is a hundred times as steep."""

        def objective(self, L):
            return float(np.sum([[100.0, 1.0]] * L**2)), 2.0 * np.array([[100.0, 1.0]]) * L

    L = np.array([[0.5, 1.0]])
    found, before = _downhill(Bowl(), L), Bowl().objective(L)[0]
    _, G = Bowl().objective(L)
    tried = [L - 0.5**k / np.max(np.abs(G)) * G for k in range(40)]
    values = [Bowl().objective(T)[0] for T in tried]
    assert Bowl().objective(found)[0] == pytest.approx(min(values)) and min(values) < before
    lowest = np.zeros((1, 2))
    np.testing.assert_array_equal(_downhill(Bowl(), lowest), lowest)


def test_a_lifted_map_has_no_direction_below_a_tenth_of_its_longest():
    U, V = (np.linalg.qr(np.random.RandomState(k).standard_normal((3, 3)))[0] for k in (0, 1))
    lifted = _lifted((U * [5.0, 0.8, 1e-6]) @ V)
    assert_allclose(np.linalg.svd(lifted)[1], [5.0, 0.8, 0.5])
    assert_allclose(lifted @ V.T, U * [5.0, 0.8, 0.5], atol=1e-10)


def test_two_lists_of_pairs_become_one_without_repeats():
    first = np.array([[0, 3], [2, 1]], dtype=np.int32)
    second = np.array([[0, 1], [0, 3], [4, 0]], dtype=np.int32)
    both = _union(first, second, 5)
    assert both.tolist() == [[0, 1], [0, 3], [2, 1], [4, 0]] and both.dtype == np.int32


# --- evaluation -----------------------------------------------------------------------------------


def test_the_error_of_an_area_is_that_of_hanley_and_mcneil():
    confusion = ((30, 10), (4, 6))
    scores = ClassScores(0.72, 0.675, 0.8, 0.5, 0.8, "a", ("a", "b"), confusion)
    a, few, many = 0.8, 10, 40
    q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
    variance = (a * (1 - a) + (few - 1) * (q1 - a * a) + (many - 1) * (q2 - a * a)) / (few * many)
    assert scores.error("roc_auc") == pytest.approx(np.sqrt(variance))
    assert scores.error("accuracy") == pytest.approx(np.sqrt(0.72 * 0.28 / 50))
    each = 0.75 * 0.25 / 40 + 0.6 * 0.4 / 10
    assert scores.error("balanced_accuracy") == pytest.approx(np.sqrt(each) / 2)


def test_answers_are_one_or_zero_or_minus_one():
    scores, pairs = np.arange(4.0), np.array([[0, 1], [0, 2], [1, 2], [1, 3]])
    first = _sample(scores, [1, 0, 1, 0], pairs, False, None)
    other = _sample(scores, [1, -1, 1, -1], pairs, False, None)
    for a, b in zip(first, other, strict=True):
        np.testing.assert_array_equal(a, b)
    for bad in ([1, 2, 0, 1], [1, -2, 0, 1], [0.5, 1, 0, 1]):
        with pytest.raises(ValueError, match="Got other answers"):
            _sample(scores, bad, pairs, False, None)
    for one in ([1, 1, 1, 1], [0, -1, 0, 0]):
        with pytest.raises(ValueError, match=f"Got {sum(np.array(one) > 0)} matches of 4 pairs"):
            _sample(scores, one, pairs, False, None)
    for share in (0, 1, -0.1, 1.5):
        with pytest.raises(ValueError, match="match_share"):
            _sample(scores, [1, 0, 1, 0], pairs, False, share)


class Listening(np.random.RandomState):
    """Takes the likeliest, and remembers the chances."""

    def choice(self, a, size=None, replace=True, p=None):
        self.seen = [*getattr(self, "seen", []), p]
        return int(np.argmax(p)) if size is None else np.argsort(-p)[:size]


def test_pairs_to_label_are_drawn_by_doubt_and_distance():
    p = np.array([0.5, 0.8, 0.3, 0.9, 0.5])
    P = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 1.0], [0.5, 2.0], [4.0, 4.0]])
    rng = Listening(0)
    chosen = pairs_to_label(p, P, 2, known=[4], random_state=rng)
    doubt = (4 * p[:4] * (1 - p[:4])) ** 2
    s = 0.25 * np.sum(np.var(P, axis=0))
    nearest = np.sum((P[:4] - P[4]) ** 2, axis=1)
    for step, place in enumerate(chosen):
        chances = doubt * (1 - np.exp(-nearest / s))
        assert_allclose(rng.seen[step], chances / chances.sum(), rtol=1e-9)
        assert place == np.argmax(chances)
        doubt[place] = 0.0
        nearest = np.minimum(nearest, np.sum((P[:4] - P[place]) ** 2, axis=1))


def test_a_threshold_moves_the_doubt():
    rng = Listening(0)
    pairs_to_label([0.5, 0.8, 0.2], n_pairs=1, threshold=0.8, random_state=rng)
    odds = np.array([1.0, 4.0, 0.25]) / 4.0
    q = odds / (1.0 + odds)
    doubt = (4 * q * (1 - q)) ** 2
    assert_allclose(rng.seen[0], doubt / doubt.sum(), rtol=1e-9)


# --- what comes back from a device ----------------------------------------------------------------


class Tensor:
    """What a device holds."""

    def __init__(self, values):
        self.values = np.asarray(values)


def test_arrays_inside_of_what_is_ours_come_back_and_others_stay(monkeypatch):
    monkeypatch.setattr(_methods, "is_torch_array", lambda value: isinstance(value, Tensor))
    monkeypatch.setattr(_methods, "to_numpy", lambda value: value.values)
    Ours = type("Ours", (), {"__module__": "kernelmetric.learners"})
    Theirs = type("Theirs", (), {"__module__": "another.place"})
    ours, theirs, inner = Ours(), Theirs(), Ours()
    inner.map_, inner.above, theirs.map_ = Tensor([1.0]), ours, Tensor([2.0])
    plain = [1, 2]
    ours.all_ = {"inner": [inner, theirs], "plain": plain, "pair": (Tensor([3.0]), 4)}
    assert _methods._on_host(ours, set()) is ours
    np.testing.assert_array_equal(inner.map_, [1.0])
    assert isinstance(theirs.map_, Tensor) and ours.all_["plain"] is plain
    np.testing.assert_array_equal(ours.all_["pair"][0], [3.0])
    assert ours.all_["pair"][1] == 4 and inner.above is ours
    assert _methods._on_host(plain, set()) is plain


# --- edges ----------------------------------------------------------------------------------------


def test_a_ridge_lifts_eigenvalues_that_rounding_made_negative():
    V = np.linalg.qr(np.random.RandomState(0).standard_normal((3, 3)))[0]
    gram = Gram((V * [-0.5, 1.0, 4.0]) @ V.T, "ridge", 0.1)
    epsilon = 0.1 * 4.5 / 3
    W = gram.inv_sqrt()
    assert_allclose(W, (V / np.sqrt([epsilon, 1.0 + epsilon, 4.0 + epsilon])) @ V.T, atol=1e-10)


def test_squares_of_no_points_overflow_nothing_and_those_after_them_count():
    none, few = np.empty(0), np.array([1.0, 2.0])
    require_squares(none, few)
    with pytest.raises(ValueError, match="squared distances overflow float64"):
        require_squares(none, few, np.array([1e308]))
    require_squares(np.array([np.finfo(np.float64).max / 8.1]))
    with pytest.raises(ValueError, match="overflow"):
        require_squares(np.array([np.finfo(np.float64).max / 7.9]))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.77, 1.0])
def test_quantiles_of_whole_counts_are_those_of_repeated_values(share):
    rng = np.random.RandomState(0)
    values, counts = rng.standard_normal(9), rng.randint(1, 4, 9)
    found = weighted_quantiles(values, counts.astype(float), [share])
    assert found[0] == pytest.approx(np.quantile(np.repeat(values, counts), share))
    # one that counts for nearly all is every quantile
    nearly_all = np.where(np.arange(9) == 4, 1e30, 1.0)
    assert weighted_quantiles(values, nearly_all, [share])[0] == pytest.approx(values[4])


@pytest.mark.parametrize("weighs", [False, True])
def test_features_of_few_and_of_many_points_have_the_axes_of_their_covariance(weighs):
    rng = np.random.RandomState(0)
    for n in (9, 30):  # fewer and more than features
        X = rng.standard_normal((n, 2))
        w = 1.0 + np.arange(n) % 3 if weighs else np.ones(n)
        space = RandomFeatures(20, kernel="rbf", n_components=4, random_state=0)
        Z = space.fit_transform(X, sample_weight=w if weighs else None)
        assert_allclose(np.average(Z, axis=0, weights=w), 0.0, atol=1e-10)
        scatter = Z.T @ (w[:, None] * Z)
        assert_allclose(scatter, np.diag(space.eigenvalues_), atol=1e-8)
        assert np.all(np.diff(space.eigenvalues_) <= 0)


@pytest.mark.parametrize("name", ["steps", "transformer_list", "transformers", "transformers_"])
def test_steps_of_a_restored_pipeline_are_names_with_estimators(name):
    rest = ("columns",) if name.startswith("transformers") else ()
    held = type("Composed", (), {})()

    def check(*steps):
        setattr(held, name, list(steps))
        _agreement._check_steps(Attributes(held))

    check(("a", LDA(), *rest), ["b", "passthrough", *rest], ("c", None, *rest))
    for bad in (("a", LDA(), *rest, 1), ("a", LDA(), *rest)[:-1], (1, LDA(), *rest), "ab"):
        with pytest.raises(ValueError, match=f"Composed.{name}=.*expected names with estimators"):
            check(("a", LDA(), *rest), bad)
    with pytest.raises(ValueError, match="expected names with estimators"):
        check(("a", 3, *rest))
