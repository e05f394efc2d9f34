"""Transductive distances: known methods as special cases, Theorem 4, the cliff, bad input."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.manifold import SpectralEmbedding

from kernelmetric import KPCA, NCA, RBF, Nystroem, Pairs, TransductiveDistance, datasets
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.graphs import gaussian_graph, label_graphs, union_graph
from kernelmetric.transductive import (
    KernelPenalty,
    PaperCost,
    RobustCost,
    WarpedPenalty,
    bounded,
    gram_form,
)

FULL = partial(gaussian_graph, width=1.0)


@pytest.fixture
def cloud():
    """60 points of three classes that overlap a little, a third of them labelled."""
    rng = np.random.RandomState(0)
    truth = np.arange(60) % 3
    X = rng.standard_normal((60, 3))
    X[:, 0] += 2.5 * truth
    y = truth.copy()
    y[20:] = -1
    return X, y, truth


def no_cost(n):
    return sparse.csr_array((n, n))


def up_to_sign(A, B):
    return np.max(np.abs(A * np.sign(np.sum(A * B, axis=0)) - B))


def trivial_projected(A, null):
    """Smallest eigenpairs beside a vector, by a dense basis of what is orthogonal to it."""
    Q = linalg.null_space(np.atleast_2d(null))
    values, V = linalg.eigh(Q.T @ A @ Q)
    return values, Q @ V


# --- each penalty alone is a known method ---------------------------------------------------


def test_no_cost_with_the_normalized_laplacian_is_spectral_embedding(cloud):
    X = cloud[0]
    W = FULL(X)
    ours = TransductiveDistance(3, penalty="normalized", graph=W).fit(X, cost_graph=no_cost(60))
    theirs = SpectralEmbedding(3, affinity="precomputed", random_state=0).fit_transform(W)
    E = ours.embedding_ / np.sqrt(W.sum(axis=1))[:, None]
    assert up_to_sign(E, theirs) < 1e-8


def test_no_cost_with_an_inverse_kernel_is_kernel_pca(cloud):
    X = cloud[0]
    ours = TransductiveDistance(3, penalty=KernelPenalty(RBF(gamma=0.5)))
    ours.fit(X, cost_graph=no_cost(60))
    theirs = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X)
    assert up_to_sign(ours.embedding_ * np.sqrt(theirs.eigenvalues_), theirs.transform(X)) < 1e-8


def test_an_infinite_lambda_forgets_the_labels(cloud):
    X, y, _ = cloud
    with_labels = TransductiveDistance(3, lam=np.inf, graph=FULL).fit(X, y)
    without = TransductiveDistance(3, graph=FULL).fit(X, cost_graph=no_cost(60))
    assert_allclose(with_labels.embedding_, without.embedding_, atol=1e-10)


# --- the framework --------------------------------------------------------------------------


def test_proposition_3_turns_distances_into_inner_products():
    rng = np.random.RandomState(0)
    A = rng.standard_normal((7, 7))
    A = A + A.T
    np.fill_diagonal(A, 0)
    Z = rng.standard_normal((7, 2))
    D = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    assert_allclose(np.sum(A * D), np.sum(gram_form(A).toarray() * (Z @ Z.T)))


def test_the_cost_averages_over_the_neighbours_that_exist():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [99.0]])
    similar, dissimilar = label_graphs(X, np.array([0, 0, 0, 1, -1]), k=2)
    # 0 and 1 list each other with 1/2; 3 has nobody in its class
    assert_allclose(similar.toarray()[0], [0, 0.5, 0.5, 0, 0])
    assert similar.toarray()[3].sum() == 0
    # 3 shares its weight between its two nearest, and is the only one outside for all three
    assert_allclose(dissimilar.toarray()[3], [0.5, 0.75, 0.75, 0, 0])
    assert dissimilar.toarray()[4].sum() == 0


def test_the_embedding_solves_problem_3_with_negative_eigenvalues(cloud):
    X, y, _ = cloud
    W = FULL(X)
    model = TransductiveDistance(4, lam=0.5, graph=W, cost=PaperCost(5))
    with pytest.warns(UserWarning, match="live on the 20 labelled points"):
        model.fit(X, y)
    C = PaperCost().weights(*label_graphs(X, y, 5))
    A = gram_form(C).toarray() + 0.5 * (np.diag(W.sum(axis=1)) - W)
    values, V = trivial_projected(A, np.ones(60))
    assert values[0] < 0  # the trivial vector, of eigenvalue zero, is not the first
    assert_allclose(model.eigenvalues_, values[:4], atol=1e-9)
    assert up_to_sign(V[:, :4], model.embedding_) < 1e-7
    assert_allclose(model.embedding_.sum(axis=0), 0, atol=1e-9)


def test_sparse_and_dense_graphs_give_the_same_embedding(cloud):
    X, y, _ = cloud
    W = FULL(X)
    dense = TransductiveDistance(3, lam=3000.0, graph=W).fit(X, y)
    thin = TransductiveDistance(3, lam=3000.0, graph=sparse.csr_array(W)).fit(X, y)
    assert_allclose(dense.embedding_, thin.embedding_, atol=1e-8)


def test_pairs_are_a_source_of_the_cost(cloud):
    X, _, truth = cloud
    pairs = Pairs.from_labels(truth[:20])
    listed = TransductiveDistance(3, lam=3000.0, graph=FULL)
    listed.fit(X, similar=pairs.similar, dissimilar=pairs.dissimilar)
    given = TransductiveDistance(3, lam=3000.0, graph=FULL)
    given.fit(X, pairs=Pairs(pairs.similar, pairs.dissimilar, 60))
    assert_array_equal(listed.embedding_, given.embedding_)
    # all pairs are what labels say with as many neighbours as there are
    labels = np.where(np.arange(60) < 20, truth, -1)
    same = TransductiveDistance(3, lam=3000.0, graph=FULL, cost=RobustCost(20)).fit(X, labels)
    assert_allclose(listed.embedding_, same.embedding_, atol=1e-8)
    with pytest.raises(ValueError, match="no names to give"):
        listed.predict(X)


def test_neighbours_may_be_precomputed(cloud):
    X, y, _ = cloud
    neighbors = nearest_neighbors(X, 20)[0]
    ours = TransductiveDistance(3, 3000.0, 20).fit(X, y)
    for graph in (neighbors, union_graph(neighbors), lambda Z: nearest_neighbors(Z, 20)[0]):
        theirs = TransductiveDistance(3, lam=3000.0, graph=graph).fit(X, y)
        assert_allclose(theirs.embedding_, ours.embedding_, atol=1e-10)


def test_a_learned_metric_may_be_the_prior_and_the_result_the_next_one(cloud):
    X, y, truth = cloud
    metric = NCA(2, max_iter=20, tol=1e-2).fit(X[:20], truth[:20])
    first = TransductiveDistance(3, lam=3000.0, prior=metric).fit(X, y)
    by_hand = TransductiveDistance(3, lam=3000.0).fit(metric.transform(X), y)
    assert_allclose(first.embedding_, by_hand.embedding_, atol=1e-8)
    again = TransductiveDistance(3, lam=3000.0, prior=first.transform).fit(X, y)
    assert np.mean(again.transduction_ == truth) > 0.7


# --- Theorem 4, and new points --------------------------------------------------------------


def theorem_4(X, y, d=4, lam=50.0):
    """Embedding by eq. (7), and the matrix of eq. (3)."""
    W = FULL(X)
    penalty = WarpedPenalty(RBF(gamma=3.0), space=KPCA())
    model = TransductiveDistance(d, lam=lam, penalty=penalty, graph=W, cost=PaperCost(5))
    model.fit(X, y)
    H = np.eye(len(X)) - 1.0 / len(X)
    K = H @ RBF(gamma=3.0)(X) @ H
    inverse = linalg.pinvh(K, rtol=1e-10)
    M = np.diag(W.sum(axis=1)) - W
    C = gram_form(PaperCost().weights(*label_graphs(X, y, 5))).toarray()
    return model, C + lam * (inverse + H @ M @ H)


def test_theorem_4_the_two_problems_have_one_solution(cloud):
    X, y, _ = cloud
    model, A = theorem_4(X, y)
    assert model.space_.rank_ == len(X) - 1
    values, V = trivial_projected(A, np.ones(len(X)))
    assert_allclose(model.eigenvalues_, values[:4], rtol=1e-8)
    assert up_to_sign(V[:, :4], model.embedding_) < 1e-8


def test_theorem_4_holds_in_the_range_of_k_with_duplicates(cloud):
    X, y, _ = cloud
    X = np.concatenate([X, X[:7], X[:3]])
    y = np.concatenate([y, np.full(10, -1)])
    model, A = theorem_4(X, y)
    # range(K): sums of zero, and equal at points that coincide
    copies = [(i, 60 + i) for i in range(7)] + [(i, 67 + i) for i in range(3)]
    constraints = np.vstack([np.ones(70), *(np.eye(70)[i] - np.eye(70)[j] for i, j in copies)])
    assert model.space_.rank_ == 70 - len(constraints)
    values, V = trivial_projected(A, constraints)
    assert_allclose(model.eigenvalues_, values[:4], rtol=1e-8)
    assert up_to_sign(V[:, :4], model.embedding_) < 1e-8


@pytest.mark.every(2)
@pytest.mark.parametrize("penalty", ["laplacian", "normalized", "kernel", "warped"])
def test_training_points_keep_their_embedding(cloud, penalty):
    X, y, _ = cloud
    model = TransductiveDistance(3, lam=100.0, penalty=penalty, cost="paper").fit(X, y)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    one_by_one = np.vstack([model.transform(row[None]) for row in X[:5]])
    assert_allclose(one_by_one, model.embedding_[:5], atol=1e-9)


def test_landmarks_embed_training_points_as_the_fit_did(cloud):
    X, y, _ = cloud
    penalty = WarpedPenalty("rbf", space=Nystroem(25, random_state=0))
    model = TransductiveDistance(3, lam=3000.0, penalty=penalty).fit(X, y)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-7)
    assert model.components_.shape == (3, model.space_.rank_)


@pytest.mark.slow
def test_with_all_points_as_landmarks_nystroem_is_exact(cloud):
    X, y, _ = cloud

    def fitted(space):
        penalty = WarpedPenalty(RBF(gamma=3.0), space=space)
        return TransductiveDistance(3, lam=3000.0, penalty=penalty).fit(X, y).embedding_

    assert up_to_sign(fitted(KPCA()), fitted(Nystroem(60))) < 1e-6


@pytest.mark.slow
def test_new_points_are_classified_nearly_as_well_as_the_training_points():
    X, truth = datasets.make_fig2_circles(400, random_state=0)
    X_new, y_new = datasets.make_fig2_circles(400, random_state=1)
    y = np.where(np.arange(400) < 40, truth, -1)
    for penalty in ("laplacian", WarpedPenalty(RBF(gamma=20.0))):
        model = TransductiveDistance(8, n_neighbors=8, penalty=penalty, random_state=0).fit(X, y)
        transductive = np.mean(model.transduction_[40:] == truth[40:])
        assert transductive > 0.9
        assert model.score(X_new, y_new) > transductive - 0.05


# --- the cliff, its cure, and λ -------------------------------------------------------------


@pytest.mark.slow
def test_labels_part_moons_that_the_geometry_joins():
    def accuracy(seed, **options):
        X, truth = datasets.make_close_moons(random_state=seed)
        rng = np.random.RandomState(seed)
        y = np.full(200, -1)
        for code in (0, 1):
            chosen = rng.permutation(np.flatnonzero(truth == code))[:10]
            y[chosen] = code
        graph = partial(gaussian_graph, width=0.25)
        model = TransductiveDistance(1, penalty="normalized", graph=graph, **options).fit(X, y)
        return np.mean(model.transduction_[y < 0] == truth[y < 0])

    alone = np.mean([accuracy(seed, lam=np.inf) for seed in range(20)])
    learned = np.mean([accuracy(seed, lam=16.0, cost=PaperCost(5)) for seed in range(20)])
    assert alone < 0.93
    assert learned >= 0.98


def test_a_bounded_cost_moves_no_eigenvalue_far():
    rng = np.random.RandomState(0)
    C = sparse.csr_array(np.triu(rng.exponential(3.0, (30, 30)), 1))
    C = C + C.T
    B = bounded(C)
    assert float(B.sum(axis=1).max()) <= 1 + 1e-12
    assert float(abs(B - B.T).max()) < 1e-15
    form = gram_form(RobustCost().weights(C, C[::-1, ::-1])).toarray()
    assert np.abs(linalg.eigvalsh(form)).max() <= 4.0 + 1e-12


def test_the_robust_cost_keeps_eigenvalues_within_weyls_bound(cloud):
    X, y, _ = cloud
    alone = TransductiveDistance(5, lam=np.inf, graph=FULL).fit(X, y)
    for lam in (2048 / FULL(X).sum(axis=1).mean(), 1e4):
        model = TransductiveDistance(5, lam=lam, graph=FULL).fit(X, y)
        assert np.all(np.abs(model.eigenvalues_ - lam * alone.eigenvalues_) <= 4.0)


def test_a_lambda_given_by_hand_is_used_as_it_is(cloud):
    X, y, _ = cloud
    least = 2048 / FULL(X).sum(axis=1).mean()
    for lam, cost in ((1.01 * least, "robust"), (1.0, "paper"), (1.0, RobustCost(floor=0))):
        assert TransductiveDistance(5, lam, graph=FULL, cost=cost).fit(X, y).lam_ == lam
    expected = rf"Got lam=100, but only from {least:.4g} on labels cannot take"
    with pytest.warns(UserWarning, match=expected):
        model = TransductiveDistance(5, 100, graph=FULL).fit(X, y)
    assert model.lam_ == 100
    values, _ = trivial_projected(
        gram_form(RobustCost().weights(*label_graphs(X, y, 20))).toarray()
        + 100 * (np.diag(FULL(X).sum(axis=1)) - FULL(X)),
        np.ones(60),
    )
    assert_allclose(model.eigenvalues_, values[:5], rtol=1e-8)


@pytest.mark.slow
def test_other_labels_start_from_the_last_embedding():
    X, truth = load_digits(return_X_y=True)
    X, first = X / 16.0, np.where(np.arange(1797) % 20 == 0, truth, -1)
    second = np.where(np.arange(1797) % 20 == 7, truth, -1)
    options = {"penalty": "normalized", "n_neighbors": 10, "tol": 1e-7, "random_state": 0}
    warm = TransductiveDistance(10, 2500.0, warm_start=True, **options).fit(X, first)
    cold = TransductiveDistance(10, 2500.0, **options).fit(X, first)
    assert warm.n_matvecs_ == cold.n_matvecs_  # nothing to start from yet
    warm.fit(X, second)
    cold.fit(X, second)
    assert warm.n_matvecs_ < 0.7 * cold.n_matvecs_
    assert up_to_sign(warm.embedding_, cold.embedding_) < 1e-5
    assert_array_equal(warm.transduction_, cold.transduction_)
    fewer = warm.fit(X[:1500], second[:1500])  # nothing that fits
    assert fewer.embedding_.shape == (1500, 10)
    assert fewer.set_params(n_components=12).fit(X[:1500], second[:1500]).embedding_.shape[1] == 12


@pytest.mark.slow
def test_labelled_hubs_capture_the_papers_cost_and_not_the_robust_one():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:600] / 16.0, truth[:600]
    y = np.where(np.random.RandomState(0).permutation(600) < 120, truth, -1)
    options = {"n_components": 20, "penalty": "normalized", "n_neighbors": 10}

    def accuracy(model):
        return np.mean(model.transduction_[y < 0] == truth[y < 0])

    alone = TransductiveDistance(lam=np.inf, **options).fit(X, y)
    with pytest.warns(UserWarning, match="live on the 120 labelled points"):
        paper = TransductiveDistance(lam=1.0, cost="paper", **options).fit(X, y)
    robust = TransductiveDistance(lam=2048.0, **options).fit(X, y)
    assert np.median(paper.label_mass_) > 0.8
    assert np.median(robust.label_mass_) < 0.3
    assert accuracy(paper) < accuracy(alone) - 0.2
    assert accuracy(robust) > accuracy(alone) - 0.01


def test_the_automatic_lambda_is_the_default_unless_another_is_clearly_better(cloud):
    X, y, _ = cloud
    model = TransductiveDistance(3, graph=FULL, random_state=0).fit(X, y)
    assert len(model.lam_scores_) == 5
    default = next(iter(model.lam_scores_))
    best = max(model.lam_scores_.values())
    assert model.lam_scores_[model.lam_] >= model.lam_scores_[default]
    assert model.lam_ == default or model.lam_scores_[model.lam_] == best
    few = np.where(np.arange(60) < 6, y, -1)
    hasty = TransductiveDistance(3, graph=FULL, random_state=0).fit(X, few)
    assert hasty.lam_scores_ == {}
    assert hasty.lam_ == default


# --- bad input ------------------------------------------------------------------------------


def refused(match, X, y, error=ValueError, **options):
    with pytest.raises(error, match=match):
        TransductiveDistance(**{"n_components": 2, "lam": 3000.0, "graph": FULL, **options}).fit(
            X, y
        )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"lam": 0.0}, "Got lam=0.0, but TransductiveDistance expected 'auto' or a number > 0"),
        ({"lam": -1}, "Got lam=-1"),
        ({"lam": "best"}, "Got lam='best'"),
        ({"lam": np.nan}, "Got lam=nan"),
        ({"n_components": 60}, "Got n_components=60, but expected an integer from 1 to 59"),
        ({"n_components": 0}, "Got n_components=0"),
        (
            {"n_components": 4, "penalty": KernelPenalty("linear")},
            "from 1 to 3: 60 points in range",
        ),
        (
            {"n_neighbors": 0},
            "Got n_neighbors=0, but TransductiveDistance expected .*an integer >= 1",
        ),
        ({"n_votes": 1.5}, "Got n_votes=1.5"),
        ({"cv": 1}, "Got cv=1, but TransductiveDistance expected an integer >= 2"),
        ({"penalty": "ridge"}, "Got penalty='ridge', but expected an object with geometry"),
        ({"cost": "cheap"}, "Got cost='cheap'"),
        ({"graph": "full"}, "Got graph='full'"),
        ({"graph": np.triu(np.ones((60, 60)))}, "Got graph that is not symmetric"),
        ({"graph": -np.ones((60, 60))}, "Got graph with a negative weight"),
        ({"graph": np.ones((59, 59))}, r"Got graph of shape \(59, 59\)"),
        ({"graph": np.full((60, 60), np.nan)}, "Got graph with NaN"),
        ({"graph": np.full((60, 3), 60)}, "Got a neighbour numbered 60"),
        ({"prior": 3}, "Got prior=3, but expected a fitted metric"),
        ({"prior": lambda X: X[:5]}, "from the prior, but expected"),
        ({"penalty": WarpedPenalty(penalty=KernelPenalty())}, "inside WarpedPenalty"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(cloud, options, match):
    refused(match, cloud[0], cloud[1], **options)


def test_labels_that_cannot_teach_are_refused(cloud):
    X, y, truth = cloud
    refused("Got no label at all", X, np.full(60, -1))
    refused("requires y to be passed, but the target y is None", X, None)
    refused("Got 1 class .*if -1 is the other one", X, np.where(truth == 0, 1, -1))
    refused("contains NaN", X, np.where(y < 0, np.nan, y.astype(float)))
    refused("Unknown label type", X, y + 0.5)
    refused("inconsistent numbers of samples", X, y[:-1])


def test_one_source_of_the_cost_is_enough(cloud):
    X, y, _ = cloud
    model = TransductiveDistance(2, lam=3000.0, graph=FULL)
    with pytest.raises(ValueError, match="more than one of y, pairs and cost_graph"):
        model.fit(X, y, similar=[[0, 1]])
    with pytest.raises(ValueError, match="more than one of y, pairs and cost_graph"):
        model.fit(X, similar=[[0, 1]], cost_graph=no_cost(60))
    with pytest.raises(ValueError, match="Got cost_graph that is not symmetric"):
        model.fit(X, cost_graph=np.triu(np.ones((60, 60))))


def test_a_single_label_of_a_class_is_warned_of(cloud):
    X, y, _ = cloud
    y = np.where(np.arange(60) == 50, 7, y)
    with pytest.warns(UserWarning, match="Got a single label of 1 class.*such as 7"):
        model = TransductiveDistance(2, lam=3000.0, graph=FULL).fit(X, y)
    assert np.all(np.isfinite(model.embedding_))


def test_all_points_may_be_labelled(cloud):
    X, _, truth = cloud
    model = TransductiveDistance(4, graph=FULL, random_state=0).fit(X, truth)
    assert_array_equal(model.transduction_, truth)
    assert_allclose(model.label_mass_, 1.0)


def test_labels_may_be_words(cloud):
    X, _, truth = cloud
    words = np.array(["ant", "bee", "cat"])[truth]
    model = TransductiveDistance(3, lam=3000.0, graph=FULL).fit(X, words)
    assert_array_equal(model.transduction_, words)
    assert set(model.predict(X + 0.01)) <= {"ant", "bee", "cat"}


@pytest.mark.parametrize("penalty", ["laplacian", "normalized"])
def test_a_graph_in_parts_is_warned_of_and_isolated_points_rest_at_the_origin(cloud, penalty):
    X, y, _ = cloud
    far = X.copy()
    far[30:] += 1000.0
    with pytest.warns(UserWarning, match="graph of 2 connected components"):
        model = TransductiveDistance(2, 3000.0, 8, penalty=penalty).fit(far, y)
    side = model.embedding_[:, 0]
    assert max(np.ptp(side[:30]), np.ptp(side[30:])) < abs(side[:30].mean() - side[30:].mean())
    W = FULL(X)
    W[5] = W[:, 5] = 0.0
    y = np.where(np.arange(60) == 5, -1, y)
    with pytest.warns(UserWarning, match=r"1 point\(s\) have no neighbour"):
        model = TransductiveDistance(3, 1e4, graph=W, penalty=penalty).fit(X, y)
    assert_allclose(model.embedding_[5], 0.0, atol=1e-9)


def test_new_points_of_other_dimension_are_refused(cloud):
    X, y, _ = cloud
    for penalty in ("laplacian", "warped"):
        model = TransductiveDistance(2, lam=3000.0, penalty=penalty).fit(X, y)
        with pytest.raises(ValueError, match="X has 2 features, but TransductiveDistance"):
            model.transform(X[:, :2])


def test_the_memory_of_a_full_graph_is_refused_before_it_is_made():
    model = TransductiveDistance(2, graph="gaussian")
    assert model.estimate_memory(100_000, 10) > 3e11
    assert TransductiveDistance(2).estimate_memory(100_000, 10) < 1e9
    with pytest.raises(MemoryError, match="would take about"):
        model.fit(np.zeros((200_000, 1)), np.arange(200_000) % 2)
