"""Learners by one eigenproblem, beside their definitions written out pair by pair."""

import numpy as np
import pytest
from scipy import linalg
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import DLA, DNE, KPCA, LDA, LFDA, LPP, RBF, RCA, Kernelized, Pairs
from kernelmetric.graphs import heat_graph

pytestmark = pytest.mark.usefixtures("deadline")
RATIOS = [LDA(), LFDA(), LPP(), RCA()]


def scatter(X, weights):
    """``½ Σ_ij w_ij (x_i - x_j)(x_i - x_j)ᵀ``, pair by pair."""
    S = np.zeros((X.shape[1], X.shape[1]))
    for i in range(len(X)):
        for j in range(len(X)):
            S += 0.5 * weights[i, j] * np.outer(X[i] - X[j], X[i] - X[j])
    return S


def shrunk(S, share):
    return (1 - share) * S + share * np.trace(S) / len(S) * np.eye(len(S))


def same_span(L, V):
    """Whether the rows of L and the columns of V span the same directions, one by one."""
    cosines = np.sum(L.T * V, axis=0) / np.linalg.norm(L, axis=1) / np.linalg.norm(V, axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1.0, atol=1e-8)


# --- definitions --------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("k", [2, 7])
def test_lfda_is_its_definition(k, share, labelled):
    X, y = labelled
    n, D = len(X), cdist(X, X)
    sigma = [np.sort(D[i, y == y[i]])[min(k, 9)] for i in range(n)]
    A = np.exp(-(D**2) / np.outer(sigma, sigma))
    same = y[:, None] == y[None, :]
    within = np.where(same, A / 10, 0.0)
    between = np.where(same, A * (1 / n - 1 / 10), 1 / n)
    within = shrunk(scatter(X, within), share)
    values, V = linalg.eigh(scatter(X, between), within)
    lfda = LFDA(3, n_neighbors=k, shrinkage=share).fit(X, y)
    np.testing.assert_allclose(lfda.eigenvalues_, values[::-1], rtol=1e-6, atol=1e-8)
    same_span(lfda.components_, V[:, ::-1][:, :3])
    L = lfda.components_
    np.testing.assert_allclose(
        L @ within @ L.T / n, np.diag(values[::-1][:3]), atol=1e-6 * values[-1]
    )
    assert lfda.loss_ == pytest.approx(-values[-3:].sum(), rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("supervised", [False, True])
def test_lpp_is_its_definition(supervised, share, labelled):
    X, y = labelled
    D2 = cdist(X, X, "sqeuclidean")
    allowed = (y[:, None] == y[None, :]) if supervised else np.ones((30, 30), dtype=bool)
    near = np.zeros((30, 30), dtype=bool)
    for i in range(30):
        candidates = [j for j in range(30) if j != i and allowed[i, j]]
        near[i, sorted(candidates, key=lambda j, i=i: D2[i, j])[:4]] = True
    W = np.where(near | near.T, np.exp(-D2 / np.mean(D2[near])), 0.0)
    d = W.sum(axis=1)
    Z = X - d @ X / d.sum()
    values, V = linalg.eigh(scatter(Z, W), shrunk(Z.T @ (d[:, None] * Z), share))
    lpp = LPP(n_neighbors=4, shrinkage=share).fit(X, y if supervised else None)
    np.testing.assert_allclose(lpp.eigenvalues_, values, rtol=1e-7)
    kept = int(np.sum(values < 1))
    assert 1 <= kept == len(lpp.components_)
    same_span(lpp.components_, V[:, :kept])


@pytest.mark.parametrize("beta", [0.3, 2.0])
def test_dla_is_its_definition(beta, labelled):
    X, y = labelled
    D = cdist(X, X)
    W = np.zeros((30, 30))
    for i in range(30):
        for same, k, weight in ((True, 2, 1.0), (False, 4, -beta)):
            candidates = [j for j in range(30) if j != i and (y[j] == y[i]) == same]
            for j in sorted(candidates, key=lambda j, i=i: D[i, j])[:k]:
                W[i, j] += weight
    values, V = linalg.eigh(scatter(X, W + W.T))
    dla = DLA(2, n_neighbors=2, n_others=4, beta=beta).fit(X, y)
    np.testing.assert_allclose(dla.eigenvalues_, values, rtol=1e-9)
    same_span(dla.components_, V[:, :2])
    assert dla.loss_ == pytest.approx(values[:2].sum())


def test_dla_of_separate_patches_is_dne():
    # Where every point has one neighbour inside and one outside its class, and these are mutual,
    # every pair is in two patches.
    X = np.array([[0, 0], [0, 1], [5, 0.2], [5.1, 1.2]])
    y = [0, 1, 0, 1]
    dla, dne = DLA(1, n_neighbors=1, n_others=1).fit(X, y), DNE(1, n_neighbors=1).fit(X, y)
    np.testing.assert_allclose(dla.eigenvalues_, 2 * dne.eigenvalues_)


def test_lda_is_that_of_scikit_learn(labelled):
    X, y = labelled
    peer = LinearDiscriminantAnalysis().fit(X, y)
    ours = LDA(shrinkage=0.0).fit(X, y)
    np.testing.assert_allclose(
        ours.pairwise_distances(X), cdist(peer.transform(X), peer.transform(X)), rtol=1e-9
    )
    within = X - np.stack([X[y == c].mean(axis=0) for c in range(3)])[y]
    share = LDA().fit(X, y).shrinkage_
    assert share == pytest.approx(ledoit_wolf_shrinkage(within, assume_centered=True))
    assert LDA(4).fit(X, y).components_.shape == (2, 4)  # three classes differ in a plane


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_shrunken_lda_is_its_definition(share, labelled):
    X, y = labelled
    within = X - np.stack([X[y == c].mean(axis=0) for c in range(3)])[y]
    S_w = within.T @ within / 30
    S_b = np.cov(X.T, bias=True) - S_w
    values, V = linalg.eigh(S_b, shrunk(S_w, share))
    lda = LDA(shrinkage=share).fit(X, y)
    same_span(lda.components_, V[:, ::-1][:, :2])
    M = V[:, 2:] @ V[:, 2:].T
    np.testing.assert_allclose(lda.get_mahalanobis_matrix(), M, rtol=1e-8, atol=1e-10)
    assert lda.loss_ == pytest.approx(-values[2:].sum())


def test_lda_measures_the_variance_between_classes(labelled):
    X, y = labelled
    E = LDA(shrinkage=0.0).fit_transform(X, y)
    within = E - np.stack([E[y == c].mean(axis=0) for c in range(3)])[y]
    between = np.trace(np.cov(E.T, bias=True)) - np.trace(np.cov(within.T, bias=True))
    assert LDA(shrinkage=0.0).fit(X, y).loss_ == pytest.approx(-between)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_rca_is_the_inverse_of_the_covariance_inside_chunks(share, labelled):
    X, _ = labelled
    chunks = np.where(np.arange(30) < 18, np.arange(30) // 3, -1)
    chunks[0] = 40  # a chunk of one point says nothing
    members = [np.flatnonzero(chunks == c) for c in range(6)]
    within = np.concatenate([X[m] - X[m].mean(axis=0) for m in members])
    C = shrunk(within.T @ within / len(within), share)
    rca = RCA(shrinkage=share).fit(X, chunks=chunks)
    np.testing.assert_allclose(rca.get_mahalanobis_matrix(), linalg.inv(C), rtol=1e-6, atol=1e-8)
    values, V = linalg.eigh(np.cov(X.T, bias=True), C)
    np.testing.assert_allclose(rca.eigenvalues_, values[::-1], rtol=1e-6)
    two = RCA(2, shrinkage=share).fit(X, chunks=chunks)
    same_span(two.components_, V[:, ::-1][:, :2])
    assert two.loss_ == pytest.approx(-0.5 * np.log(values[-2:]).sum())


# --- chunks -------------------------------------------------------------------------------------


def test_chunks_pairs_and_labels_are_three_ways_to_say_the_same(labelled):
    X, y = labelled
    expected = RCA().fit(X, y).pairwise_distances(X)
    linked = [[i, i + 3] for i in range(27)]  # links all points of a class
    for chunked in (
        RCA().fit(X, chunks=y),
        RCA().fit(X, similar=linked),
        RCA().fit(X, pairs=Pairs(linked, [[0, 1]], n_samples=30)),
        RCA().fit(X, np.zeros(30), chunks=y + 5),
    ):
        np.testing.assert_allclose(chunked.pairwise_distances(X), expected)


def test_chunks_are_kernelized_too(labelled):
    X, y = labelled
    metric = Kernelized(RCA(), RBF(gamma=0.3)).fit(X, chunks=y)
    expected = Kernelized(RCA(), RBF(gamma=0.3)).fit(X, y)
    np.testing.assert_allclose(metric.transform(X), expected.transform(X))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"chunks": np.arange(30)}, "Got no chunk with two points"),
        ({"chunks": np.full(30, -1)}, "Got no chunk with two points"),
        ({"chunks": np.full(30, 0.5)}, "Got chunks of dtype float64, but expected integers"),
        ({"chunks": np.arange(20)}, r"inconsistent numbers of samples: \[30, 20\]"),
        ({"chunks": np.zeros(30, int), "similar": [[0, 1]]}, "Got chunks beside similar pairs"),
        ({}, "the target y is None"),
    ],
)
def test_chunks_without_meaning_are_refused(arguments, match, labelled):
    with pytest.raises(ValueError, match=match):
        RCA().fit(labelled[0], **arguments)


# --- sound numerics -----------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", ["auto", 0.0])
@pytest.mark.parametrize("learner", RATIOS, ids=repr)
def test_more_features_than_points_are_no_obstacle(learner, shrinkage):
    learner = clone(learner).set_params(shrinkage=shrinkage)
    rng = np.random.RandomState(0)
    y = np.arange(20) % 2
    X = rng.standard_normal((20, 50))
    X[:, :5] += 3 * y[:, None]
    metric = clone(learner).fit(X, y)
    assert metric.components_.shape[1] == 50
    E = metric.transform(X)
    assert np.isfinite(E).all()
    Q = linalg.qr(rng.standard_normal((50, 50)))[0]
    rotated = clone(learner).fit(X @ Q, y)
    D = metric.pairwise_distances(X)
    # Without shrinkage classes nearly collapse: the ratio of scatters multiplies the rounding.
    np.testing.assert_allclose(rotated.pairwise_distances(X @ Q), D, atol=1e-4 * D.max())


def in_other_units(seed=0, n=240):
    """Three classes along a feature of unit variance, beside one a thousand times larger."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, 3, n)
    X = rng.standard_normal((n, 6)) * [1, 1, 1, 1, 100, 1000]
    X[:, 0] += 4 * y
    return X, y


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("learner", RATIOS, ids=repr)
def test_features_of_other_units_do_not_ruin_a_default(learner, seed):
    X, y = in_other_units(seed)

    def score(learner):
        E = learner.fit(X[:120], y[:120]).transform(X)
        return KNeighborsClassifier(3).fit(E[:120], y[:120]).score(E[120:], y[120:])

    assert score(clone(learner)) > score(clone(learner).set_params(shrinkage=0.0)) - 0.05
    # Points that are scaled already are shrunk as Ledoit and Wolf say.
    same = X / [1, 1, 1, 1, 100, 1000]
    about = same - np.array([same[y == c].mean(axis=0) for c in range(3)])[y]
    if not isinstance(learner, LPP):
        share = ledoit_wolf_shrinkage(about, assume_centered=True)
        assert clone(learner).fit(same, y).shrinkage_ == pytest.approx(share)


@pytest.mark.filterwarnings("ignore::kernelmetric.inputs.FarCellWarning")
@pytest.mark.parametrize("learner", [LDA(), RCA()], ids=repr)
def test_one_cell_of_another_order_leaves_a_default_as_good_as_no_shrinkage(learner):
    X, y = in_other_units()
    X = X / [1, 1, 1, 1, 100, 1000]
    X[0, 5] = 9999.0
    E = clone(learner).fit(X[:120], y[:120]).transform(X)
    assert KNeighborsClassifier(3).fit(E[:120], y[:120]).score(E[120:], y[120:]) > 0.85


@pytest.mark.parametrize("learner", RATIOS, ids=repr)
def test_axes_and_copies_do_not_change_the_share_of_features_in_other_units(learner):
    X, y = in_other_units(2, 90)
    metric = clone(learner).fit(X, y)
    assert metric.shrinkage_ < 1e-3
    Q = linalg.qr(np.random.RandomState(0).standard_normal((6, 6)))[0]
    assert clone(learner).fit(X @ Q, y).shrinkage_ == pytest.approx(metric.shrinkage_, rel=1e-6)
    kernelized = Kernelized(learner, "linear", KPCA()).fit(X, y)
    assert kernelized.learner_.shrinkage_ == pytest.approx(metric.shrinkage_, rel=1e-6)
    if isinstance(learner, LPP):
        return  # copies of a row are its neighbours there
    times = np.random.RandomState(1).randint(1, 4, len(X))
    weighed = clone(learner).fit(X, y, sample_weight=times)
    copied = clone(learner).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighed.shrinkage_ == pytest.approx(copied.shrinkage_, rel=1e-6)


def test_points_that_ask_for_no_shrinkage_get_none():
    corners = np.array([[0.0, 1], [1, 0], [5, 1], [6, 0]])
    assert LDA().fit(corners, [0, 0, 1, 1]).shrinkage_ == pytest.approx(0.0, abs=1e-12)


def test_all_of_the_identity_is_the_euclidean_metric(labelled):
    X, y = labelled
    M = RCA(shrinkage=1.0).fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(4), atol=1e-9 * M[0, 0])


@pytest.mark.parametrize("learner", [DLA(2), *RATIOS], ids=repr)
@pytest.mark.filterwarnings("ignore:Got .* class:UserWarning")
def test_classes_of_one_point_are_harmless(learner, labelled):
    X, y = labelled
    y = np.where(np.arange(30) < 4, 10 + np.arange(30), y)
    D = learner.fit(X, y).pairwise_distances(X)
    assert np.isfinite(D).all()
    assert D.max() > 0


@pytest.mark.parametrize("learner", [LFDA(), LPP(), DLA(2)], ids=repr)
def test_neighbours_may_come_from_other_coordinates(learner, labelled):
    X, y = labelled
    other = np.random.RandomState(5).standard_normal((30, 2))
    here, there = (clone(learner).fit(X, y, neighbors=where) for where in (None, other))
    assert np.abs(here.eigenvalues_ - there.eigenvalues_).max() > 1e-3
    kernelized = Kernelized(learner, RBF(gamma=0.3), KPCA(), neighbors="input").fit(X, y).learner_
    same = clone(learner).fit(KPCA(kernel=RBF(gamma=0.3)).fit_transform(X), y, neighbors=X)
    np.testing.assert_allclose(kernelized.eigenvalues_, same.eigenvalues_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", RATIOS, ids=repr)
@pytest.mark.parametrize("shrinkage", [-0.1, 1.5, "much", None, True])
def test_a_share_beyond_one_is_refused(learner, shrinkage, labelled):
    with pytest.raises(ValueError, match=r"Got shrinkage=.*'auto' or a number >= 0 and <= 1"):
        clone(learner).set_params(shrinkage=shrinkage).fit(*labelled)


# --- published behaviour ------------------------------------------------------------------------


def test_lfda_keeps_the_clusters_of_a_class_that_lda_merges():
    # One class of two clusters, on either side of the other class: their means tell nothing.
    rng = np.random.RandomState(0)
    y = np.arange(150) % 3
    X = rng.standard_normal((150, 2)) * [0.5, 3.0] + np.column_stack([4.0 * (y - 1), np.zeros(150)])
    y = (y == 1).astype(int)
    X[:, 1] += y

    def accuracy(learner):
        E = learner.fit_transform(X, y)
        return KNeighborsClassifier(1).fit(E[::2], y[::2]).score(E[1::2], y[1::2])

    assert accuracy(LFDA(1)) > 0.9
    assert accuracy(LDA(1)) < 0.7


def test_lpp_on_all_coordinates_of_a_kernel_is_laplacian_eigenmaps(labelled):
    X, _ = labelled
    Z = KPCA(kernel=RBF(gamma=2.0)).fit_transform(X)
    E = LPP(2, n_neighbors=4, shrinkage=0.0).fit_transform(Z)
    W = heat_graph(Z, 4).toarray()
    maps = SpectralEmbedding(2, affinity="precomputed", random_state=0).fit_transform(W)
    for column in range(2):
        correlation = np.corrcoef(E[:, column], maps[:, column])[0, 1]
        assert abs(correlation) > 1 - 1e-6


@pytest.mark.filterwarnings("ignore:Got 30 class:UserWarning")
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_lpp_needs_no_labels_but_uses_them(labelled):
    X, y = labelled
    assert np.abs(LPP(2).fit(X).eigenvalues_ - LPP(2).fit(X, y).eigenvalues_).max() > 1e-3
    with pytest.raises(ValueError, match=r"no class with two members, but expected at least one"):
        LPP().fit(X, np.arange(30))


@pytest.mark.parametrize("learner", [DNE(1), DLA(1)])
@pytest.mark.parametrize("size", [1.0, 1e-9])
def test_a_direction_without_differences_is_the_last_choice(learner, size):
    rng = np.random.default_rng(0)
    X, y = size * rng.normal(size=(40, 4)), np.arange(40) % 3
    flat = np.column_stack([X, np.full(40, 3.0 * size), X[:, 0]])
    learner = clone(learner).fit(flat, y)
    assert np.ptp(learner.transform(flat)) > size
    values = learner.eigenvalues_
    assert np.all(np.diff(values[:4]) >= 0)
    np.testing.assert_array_equal(values[4:], 0.0)


@pytest.mark.parametrize("learner", [DNE(2), DLA(2)])
def test_columns_without_differences_change_no_distance(learner):
    rng = np.random.default_rng(1)
    X, y = 1e-9 * rng.normal(size=(40, 4)), np.arange(40) % 3
    D = clone(learner).fit(X, y).pairwise_distances(X)
    flat = np.column_stack([np.full(40, 3e-9), X, np.zeros(40)])
    found = clone(learner).fit(flat, y).pairwise_distances(flat)
    np.testing.assert_allclose(found, D, rtol=1e-7, atol=1e-9 * D.max())
