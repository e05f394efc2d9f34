"""The alternatives are fair: the same splits, tuned inside the training part."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from kernelmetric import NCA
from kernelmetric.evaluation import baselines, holdout, run_trials


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_a_holdout_keeps_the_shares_of_the_classes_and_every_row_once(iris):
    train, test = holdout(iris[1], 0.2)
    assert np.bincount(iris[1][test]).tolist() == [10, 10, 10]
    assert sorted([*train, *test]) == list(range(150))


def test_a_class_of_one_row_is_trained_on():
    y = np.array([0] * 20 + [1] * 20 + [2])
    train, test = holdout(y)
    assert 40 in train
    assert set(y[test]) == {0, 1}


def test_two_rows_of_each_class_are_parted():
    train, test = holdout(["a", "a", "b", "b"])
    assert len(train) == len(test) == 2


def test_trials_come_split_by_split_with_every_method(iris):
    methods = {"euclidean": baselines(iris[1])["Euclidean"], "dummy": DummyClassifier()}
    trials = list(run_trials(methods, *iris, [holdout(iris[1], random_state=i) for i in (0, 1)]))
    assert [(t.method, t.split) for t in trials] == [
        ("euclidean", 0), ("dummy", 0), ("euclidean", 1), ("dummy", 1),
    ]  # fmt: skip
    assert trials[0].accuracy > 0.9 > trials[1].accuracy
    assert trials[0].estimator is not methods["euclidean"]


def test_warnings_become_the_note_of_a_trial(iris):
    method = make_pipeline(NCA(max_iter=1), KNeighborsClassifier(3))
    (trial,) = run_trials({"nca": method}, *iris, [holdout(iris[1])])
    assert "max_iter" in trial.note


def test_the_euclidean_metric_as_a_step_changes_nothing(iris):
    methods = {
        "plain": baselines(iris[1])["Euclidean"],
        "step": make_pipeline("passthrough", baselines(iris[1])["Euclidean"]),
    }
    plain, step = run_trials(methods, *iris, [holdout(iris[1])])
    assert plain.accuracy == step.accuracy


@pytest.mark.slow
def test_tiny_classes_do_not_break_the_tuning():
    rng = np.random.RandomState(0)
    y = np.array([0] * 12 + [1] * 12 + [2] * 2)
    X = rng.randn(26, 2) + y[:, None]
    trials = list(run_trials(baselines(y), X, y, [holdout(y)]))
    assert len(trials) == 3
    assert all(trial.note == "" for trial in trials)
