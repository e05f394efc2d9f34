"""Kernelized against kernel methods that others wrote, on real data."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.base import BaseEstimator
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor, NearestCentroid
from sklearn.preprocessing import scale
from sklearn.svm import SVC, OneClassSVM

from kernelmetric import KPCA, RBF, Kernelized, Linear, Pairs

GAMMA = 0.05


def split(load):
    X, y = load(return_X_y=True)
    X = scale(X)
    return X[::2], y[::2], X[1::2], y[1::2]


def centring(n):
    return np.eye(n) - 1 / n


# --- regression and classification --------------------------------------------------------------


def test_ridge_is_kernel_ridge_regression_with_a_centred_kernel():
    X, y, X_new, _ = split(load_diabetes)
    ours = Kernelized(Ridge(alpha=0.5), RBF(gamma=GAMMA), KPCA()).fit(X, y).predict(X_new)
    K, K_new, H = rbf_kernel(X, gamma=GAMMA), rbf_kernel(X_new, X, gamma=GAMMA), centring(len(X))
    theirs = KernelRidge(alpha=0.5, kernel="precomputed").fit(H @ K @ H, y - y.mean())
    expected = theirs.predict((K_new - K.mean(axis=0)) @ H) + y.mean()
    np.testing.assert_allclose(ours, expected, rtol=1e-6)
    assert np.std(ours) > 10  # it has learned something


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_iris])
def test_the_linear_support_vector_machine_is_the_one_with_the_kernel(load):
    X, y, X_new, y_new = split(load)
    ours = Kernelized(SVC(kernel="linear", C=5), RBF(gamma=GAMMA), KPCA()).fit(X, y)
    theirs = SVC(kernel="rbf", gamma=GAMMA, C=5).fit(X, y)
    assert np.mean(ours.predict(X_new) == theirs.predict(X_new)) >= 0.995
    assert ours.score(X_new, y_new) > 0.9


def test_the_linear_discriminant_is_the_kernel_fisher_discriminant():
    # Mika et al. (1999) in the dual: w = Σ α_i φ_i with (N + μ K) α = m_1 - m_0, where m_c are
    # means of kernel columns and N the within-class scatter of them; μ |w|² is the shrinkage.
    X, y, X_new, y_new = split(load_breast_cancer)
    shrinkage = 0.2
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)
    ours = Kernelized(lda, RBF(gamma=GAMMA), KPCA()).fit(X, y)
    K, K_new = rbf_kernel(X, gamma=GAMMA), rbf_kernel(X_new, X, gamma=GAMMA)
    classes = [np.flatnonzero(y == c) for c in (0, 1)]
    N, within = np.zeros_like(K), 0.0
    for rows in classes:
        scatter = K[:, rows] @ centring(len(rows)) @ K[rows]
        N += scatter / len(X)
        within += np.trace(centring(len(rows)) @ K[np.ix_(rows, rows)]) / len(X)
    mu = shrinkage / (1 - shrinkage) * within / ours.space_.rank_
    means = [K[:, rows].mean(axis=1) for rows in classes]
    alpha = linalg.solve(N + mu * (K + 1e-10 * np.eye(len(K))), means[1] - means[0])
    fisher, linear = K_new @ alpha, ours.decision_function(X_new)
    assert np.corrcoef(fisher, linear)[0, 1] > 1 - 1e-8
    threshold = alpha @ (means[0] + means[1]) / 2  # half-way, and the classes' frequencies
    slope = np.polyfit(fisher, linear, 1)[0]
    threshold -= np.log(len(classes[1]) / len(classes[0])) / slope
    assert np.mean((fisher > threshold) == ours.predict(X_new)) >= 0.995
    assert ours.score(X_new, y_new) > 0.9


def test_the_nearest_centroid_is_the_nearest_kernel_mean():
    X, y, X_new, _ = split(load_wine)
    ours = Kernelized(NearestCentroid(), RBF(gamma=GAMMA), KPCA()).fit(X, y).predict(X_new)
    K, K_new = rbf_kernel(X, gamma=GAMMA), rbf_kernel(X_new, X, gamma=GAMMA)
    distances = [
        K[np.ix_(y == c, y == c)].mean() - 2 * K_new[:, y == c].mean(axis=1) for c in np.unique(y)
    ]
    np.testing.assert_array_equal(ours, np.argmin(distances, axis=0))


# --- clusters, components, outliers -------------------------------------------------------------


def kernel_kmeans_objective(K, labels):
    """Sum over clusters of tr K_cc - (sum of K_cc) / n_c, without any coordinates."""
    parts = [K[np.ix_(labels == c, labels == c)] for c in np.unique(labels)]
    return sum(np.trace(part) - part.sum() / len(part) for part in parts)


def kernel_kmeans(K, labels):
    """Lloyd's iterations by kernel values alone."""
    while True:
        D = np.stack(
            [
                K[np.ix_(labels == c, labels == c)].mean() - 2 * K[:, labels == c].mean(axis=1)
                for c in np.unique(labels)
            ]
        )
        again = D.argmin(axis=0)
        if np.array_equal(again, labels):
            return labels
        labels = again


@pytest.mark.every(2)
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_k_means_has_the_objective_of_kernel_k_means(load):
    X = scale(load(return_X_y=True)[0])
    K = rbf_kernel(X, gamma=GAMMA)
    ours = Kernelized(KMeans(3, n_init=10, random_state=0), RBF(gamma=GAMMA)).fit(X)
    value = kernel_kmeans_objective(K, ours.labels_)
    assert ours.learner_.inertia_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_array_equal(kernel_kmeans(K, ours.labels_), ours.labels_)  # a fixed point
    rng = np.random.RandomState(0)
    others = [kernel_kmeans(K, rng.permutation(np.arange(len(K)) % 3)) for _ in range(10)]
    assert value <= min(kernel_kmeans_objective(K, labels) for labels in others) * (1 + 1e-8)


def test_principal_components_are_those_of_kernel_pca():
    X, _, X_new, _ = split(load_breast_cancer)
    ours = Kernelized(PCA(5), RBF(gamma=GAMMA)).fit(X)
    theirs = KernelPCA(5, kernel="rbf", gamma=GAMMA).fit(X)
    expected = np.abs(theirs.transform(X_new))
    np.testing.assert_allclose(np.abs(ours.transform(X_new)), expected, atol=1e-8)


def test_clusters_by_distances_are_clusters_by_kernel_distances():
    X = scale(load_iris(return_X_y=True)[0])
    K = rbf_kernel(X, gamma=GAMMA)
    D = np.sqrt(np.maximum(2 - 2 * K, 0))
    linked = AgglomerativeClustering(3, linkage="average")
    expected = AgglomerativeClustering(3, linkage="average", metric="precomputed").fit(D).labels_
    found = Kernelized(linked, RBF(gamma=GAMMA)).fit_predict(X)
    assert adjusted_rand_score(found, expected) == 1
    metric = Kernelized(DBSCAN(eps=0.2), RBF(gamma=GAMMA)).fit(X)
    expected = DBSCAN(eps=0.2, metric="precomputed").fit(D).labels_
    np.testing.assert_array_equal(metric.labels_, expected)
    assert len(set(expected)) > 2
    assert not hasattr(metric, "predict")


# --- every kind of estimator --------------------------------------------------------------------


def test_an_outlier_detector_detects(labelled):
    X, _ = labelled
    X = np.vstack([X, [[9.0, 9.0, 9.0, 9.0]]])
    novelty = Kernelized(LocalOutlierFactor(5, novelty=True), Linear()).fit(X[:-1])
    assert novelty.predict(X)[-1] == -1
    assert novelty.score_samples(X).argmin() == 30
    assert novelty.decision_function(X).argmin() == 30
    assert not hasattr(novelty, "fit_predict")
    among = Kernelized(LocalOutlierFactor(5), Linear())
    np.testing.assert_array_equal(among.fit_predict(X), LocalOutlierFactor(5).fit_predict(X))
    assert not hasattr(among, "predict")
    one_class = Kernelized(OneClassSVM(nu=0.2), RBF(gamma=0.3)).fit(X)
    np.testing.assert_array_equal(one_class.predict(X), np.sign(one_class.decision_function(X)))


def test_a_mixture_predicts_and_scores(labelled):
    X, y = labelled
    X = X + 4 * y[:, None]
    mixture = GaussianMixture(3, random_state=0)
    metric = Kernelized(mixture, Linear())
    assert adjusted_rand_score(metric.fit_predict(X), mixture.fit_predict(X)) == 1
    assert metric.predict_proba(X).shape == (30, 3)
    np.testing.assert_allclose(metric.score_samples(X), mixture.score_samples(X), rtol=1e-6)


def test_logarithms_of_probabilities_come_along(labelled):
    X, y = labelled
    metric = Kernelized(LinearDiscriminantAnalysis(), Linear()).fit(X, y)
    np.testing.assert_allclose(np.exp(metric.predict_log_proba(X)), metric.predict_proba(X))
    assert not hasattr(Kernelized(SVC()), "predict_log_proba")
    with pytest.raises(AttributeError):
        Kernelized(Ridge()).fit_predict(X)


def test_an_embedding_of_training_points_alone_needs_no_transform(labelled):
    X, _ = labelled
    embedding = SpectralEmbedding(2, affinity="rbf", gamma=0.3, random_state=0)
    metric = Kernelized(embedding, Linear())
    assert not hasattr(metric, "transform")
    found = metric.fit_transform(X)
    np.testing.assert_allclose(np.abs(found), np.abs(embedding.fit_transform(X)), atol=1e-6)


# --- learners from tuples of points, as metric-learn writes them (the real ones: test_peers.py) ---


class Whitened(BaseEstimator):
    """Whitens the differences of similar pairs."""

    def fit(self, pairs, y):
        assert pairs.ndim == 3
        assert pairs.shape[1] == 2
        differences = (pairs[:, 0] - pairs[:, 1])[np.asarray(y) == 1]
        S = differences.T @ differences + 0.1 * np.eye(pairs.shape[2])
        self.components_ = linalg.inv(linalg.sqrtm(S).real)
        return self

    def transform(self, X):
        return X @ self.components_.T

    def decision_function(self, pairs):
        return -np.linalg.norm(self.transform(pairs[:, 0] - pairs[:, 1]), axis=1)

    def score(self, pairs, y):
        return float(np.mean((self.decision_function(pairs) > -1) == (y == 1)))


@pytest.fixture
def pairs(labelled):
    X, y = labelled
    rows = np.random.RandomState(0).randint(30, size=(60, 2))
    rows = np.unique(np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1), axis=0)
    alike = np.where(y[rows[:, 0]] == y[rows[:, 1]], 1, -1)
    order = np.argsort(-alike, kind="stable")
    return X, rows[order], alike[order]


def test_tuples_by_row_number_are_tuples_of_points(pairs):
    X, rows, alike = pairs
    metric = Kernelized(Whitened(), RBF(gamma=0.3))
    D = metric.fit(X, alike, tuples=rows).pairwise_distances(X)
    assert metric.space_.anchors_.shape[0] == 30  # each point once, however many pairs it is in
    similar, dissimilar = rows[alike == 1], rows[alike == -1]
    for again in (
        metric.fit(X, similar=similar, dissimilar=dissimilar),
        metric.fit(X, pairs=Pairs(similar, dissimilar, len(X))),
    ):
        np.testing.assert_allclose(again.pairwise_distances(X), D, atol=1e-8)
    used = np.unique(rows)
    D = metric.fit(X[used], alike, tuples=np.searchsorted(used, rows)).pairwise_distances(X)
    np.testing.assert_allclose(metric.fit(X[rows], alike).pairwise_distances(X), D, atol=1e-8)


def test_methods_on_tuples_take_tuples_of_points(pairs):
    X, rows, alike = pairs
    metric = Kernelized(Whitened(), RBF(gamma=0.3)).fit(X[rows], alike)
    np.testing.assert_allclose(metric.decision_function(X[rows]), metric.pair_score(X[rows]))
    assert metric.score(X[rows], alike) == np.mean(
        (metric.pair_score(rows, X) > -1) == (alike == 1)
    )


@pytest.mark.parametrize(
    ("tuples", "message"),
    [
        ([[0, 30]], r"row 0 is \(0, 30\)\), but expected row numbers from 0 to 29"),
        ([[-1, 2]], r"outside the data \(row 0 is \(-1, 2\)\)"),
        ([[0.5, 1.0]], "expected integers"),
        ([0, 1], "expected integers of shape"),
    ],
)
def test_tuples_that_number_no_points_are_refused(tuples, message, pairs):
    X, _, _ = pairs
    with pytest.raises(ValueError, match=message):
        Kernelized(Whitened(), RBF(gamma=0.3)).fit(X, [1], tuples=tuples)
