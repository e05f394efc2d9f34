"""Scores are of rows that nothing was learned from: labels drawn by lot cannot be predicted.

Whoever scores rows it has learned from finds them all, because the nearest neighbour of a point is
the point itself.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from kernelmetric import (
    DNE,
    ITML,
    KPCA,
    RBF,
    Kernelized,
    KernelizedCV,
    Linear,
    Pairs,
    TransductiveDistance,
    cross_validate_pairs,
)
from kernelmetric.evaluation import holdout, run_trials
from kernelmetric.learners._idealized import IdealizedKernel
from reproduction.beyond import _best_votes
from reproduction.problems import Problem
from reproduction.table import run_table
from reproduction.tables import STUDIES, TABLES

CHANCE = 0.3, 0.7  # of 120 rows with two labels, more than four standard errors around a half
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def lots():
    rng = np.random.RandomState(0)
    return rng.standard_normal((120, 3)), rng.permutation(np.arange(120) % 2)


def nearest(metric):
    return make_pipeline(metric, KNeighborsClassifier(1))


def is_chance(scores):
    low, high = CHANCE
    return low < np.min(scores) and np.max(scores) < high


def test_the_lots_are_known_by_heart_from_the_rows_themselves(lots):
    X, y = lots
    assert nearest(Kernelized(DNE(2), "rbf", KPCA())).fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("kernel", ["rbf", "auto"])
def test_training_rows_of_the_automatic_space_know_no_lots(kernel, lots):
    X, y = lots
    E = Kernelized(DNE(2), kernel).fit_transform(X, y)
    nearest_other = KNeighborsClassifier(1).fit(E, y).kneighbors(return_distance=False)[:, 0]
    assert is_chance([np.mean(y[nearest_other] == y)])


def test_trials_are_scored_on_rows_left_out(lots):
    X, y = lots
    methods = {"plain": KNeighborsClassifier(1), "learned": nearest(DNE(2))}
    found = list(run_trials(methods, X, y, [holdout(y, 0.5), holdout(y, 0.5, random_state=1)]))
    assert len(found) == 4
    assert is_chance([trial.accuracy for trial in found])
    train, test = holdout(y, 0.5)
    expected = KNeighborsClassifier(1).fit(X[train], y[train]).score(X[test], y[test])
    assert found[0].accuracy == expected


def test_a_trial_sees_neither_point_nor_label_of_its_test_rows(lots):
    X, y = lots
    seen = []

    class Watching(KNeighborsClassifier):
        def fit(self, X, y):
            seen.append((X, y))
            return super().fit(X, y)

        def predict(self, X):
            seen.append((X, None))
            return super().predict(X)

        def predict_proba(self, X):
            seen.append((X, None))
            return super().predict_proba(X)

    train, test = holdout(y)
    next(run_trials({"watching": Watching(1)}, X, y, [(train, test)]))
    (points, labels), *asked = seen
    np.testing.assert_array_equal(points, X[train])
    np.testing.assert_array_equal(labels, y[train])
    assert asked
    for points, labels in asked:
        assert labels is None
        np.testing.assert_array_equal(points, X[test])


@pytest.mark.every(3)
@pytest.mark.parametrize("kernels", [[RBF(gamma=0.1), RBF(gamma=1.0)], "auto", Linear()], ids=repr)
def test_a_search_scores_on_rows_left_out(kernels, lots):
    search = KernelizedCV(DNE(1), kernels, FOLDS, [2, None], refit=False).fit(*lots)
    assert is_chance(search.cv_results_["mean_test_score"])


def test_a_search_learns_kernel_basis_and_map_without_the_rows_left_out(lots):
    # far points are left out: whoever had seen them would have another width, mean and basis
    X, y = lots
    X = X.copy()
    train, test = np.arange(90), np.arange(90, 120)
    split = [(train, test)]
    search = KernelizedCV(DNE(1), ["rbf"], split, refit=False)
    near = search.fit(X, y).cv_results_["mean_test_score"]
    metric = Kernelized(DNE(1), "rbf")
    E = metric.fit_transform(X[train], y[train])
    knn = KNeighborsClassifier(metric.n_neighbors_).fit(E, y[train])
    assert near[0] == knn.score(metric.transform(X[test]), y[test])
    X[test] += 50.0
    far = search.fit(X, y).cv_results_["mean_test_score"]
    assert far[0] == knn.score(metric.transform(X[test]), y[test])


@pytest.mark.every(2)
@pytest.mark.parametrize("by", ["point", "pair"])
def test_pairs_are_scored_that_were_left_out(by, lots):
    X, y = lots
    pairs = Pairs.from_labels(y, per_point=4, random_state=0)
    metric = Kernelized(ITML(power=1), RBF(gamma=3.0))
    found = cross_validate_pairs(
        metric, X, pairs, by=by, cv=3, random_state=0, return_train_score=True
    )
    assert is_chance(found["test_score"].mean())
    assert found["train_score"].mean() > 0.9  # what it would be on the pairs learned from


@pytest.mark.slow
def test_the_choice_of_C_is_judged_by_points_left_out(lots):
    X, y = lots
    metric = IdealizedKernel("rbf", nu=0.8, psd="none").fit(X[:60], y[:60])
    assert is_chance(metric.C_scores_)


@pytest.mark.slow
def test_the_choice_of_lambda_is_judged_by_labels_left_out(lots):
    X, y = lots
    metric = TransductiveDistance(5, graph="neighbors", random_state=0).fit(X, y)
    assert is_chance(list(metric.lam_scores_.values()))
    assert is_chance(list(TransductiveDistance().fit(X, y).graph_scores_.values()))


def drawn_by_lot(n, rng):
    return rng.standard_normal((n, 3)), rng.permutation(np.arange(n) % 2)


def test_cells_of_the_tables_are_scored_on_test_points(tmp_path):
    problem = Problem("lots", 60, lambda n, rng: drawn_by_lot(n, np.random.RandomState(7)))
    methods = {
        "automatic-ten": "Euclidean",
        "aligned": "DNE, aligned",
        "multimodal-uci": "median",
        "learners": "Euclidean",
        "beyond": "Euclidean",
    }
    scores = []
    for name, method in methods.items():
        table = (TABLES | STUDIES)[name]
        few = tuple(m for m in table.methods if m.name == method)
        table = replace(table, problems=(problem,), methods=few, n_splits=1)
        scores += [cell.accuracy for cell in run_table(table, tmp_path)]
    assert len(scores) == len(methods)
    assert is_chance(scores)


def test_the_number_of_votes_is_chosen_by_points_left_out(lots):
    X, y = lots
    y = np.where(np.random.RandomState(1).uniform(size=120) < 0.3, y, X[:, 0] > 0).astype(int)
    choices = [{"n_neighbors": 1}, {"n_neighbors": 25}]  # the first knows its own rows by heart
    assert _best_votes(choices, y, lambda train, test: (X[train], X[test])) == choices[1]


def test_shuffled_splits_leave_rows_out_too(lots):
    split = ShuffleSplit(2, test_size=0.5, random_state=0)
    search = KernelizedCV(DNE(1), [RBF(gamma=1.0)], split, refit=False).fit(*lots)
    assert is_chance(search.cv_results_["mean_test_score"])
