"""What is done by pieces where there are many rows gives what is done at once."""

import warnings

import numpy as np
from numpy.testing import assert_allclose

from kernelmetric import NCA
from kernelmetric.graphs import _targets, coded_targets
from kernelmetric.learners import _nca_solvers
from kernelmetric.selection._ridge_solution import LEAST_OF_CLASS
from kernelmetric.solvers import _symmetric


def test_singular_vectors_by_blocks_are_those_of_the_whole(monkeypatch):
    rng = np.random.RandomState(0)
    A = rng.standard_normal((1003, 20)) @ rng.standard_normal((20, 20))
    values, V = _symmetric.right_singular(A)
    monkeypatch.setattr(_symmetric, "_LARGE", 0)
    by_blocks, W = _symmetric.right_singular(A)
    assert W.shape == V.shape
    assert_allclose(by_blocks, values, rtol=1e-10)
    assert_allclose(np.abs(np.einsum("ij,ij->i", V, W)), 1.0, rtol=1e-10)


def test_a_sample_of_very_many_rows_keeps_the_shares_of_the_classes(monkeypatch):
    monkeypatch.setattr(_targets, "_SORTED", 2_000)
    key = np.repeat([0, 1, 2], [12_000, 6_000, 2_000])
    rows = _targets.Targets(key, None).sample(500, 0)
    assert len(np.unique(rows)) == 500
    shares = np.bincount(key[rows]) / 500
    assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.05)


def test_batches_never_look_at_all_pairs(monkeypatch):
    sizes, objective = [], _nca_solvers.NCAProblem.objective

    def watched(self, L):
        sizes.append(len(self.codes))
        return objective(self, L)

    monkeypatch.setattr(_nca_solvers.NCAProblem, "objective", watched)
    rng = np.random.RandomState(0)
    y = rng.randint(3, size=600)
    X = rng.standard_normal((600, 4)) + y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metric = NCA(2, solver="minibatch", batch_size=100, max_iter=2, early_stopping=True)
        metric.fit(X, y)
    assert len(metric.validation_scores_) > 1 and metric.loss_ == metric.loss_curve_[-1]
    assert max(sizes) < 200


def test_a_learner_of_some_rows_knows_rare_classes():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((400, 3))
    y = np.where(X[:, 0] > 0, 1, 0)
    y[:6] = 2
    rows = coded_targets(y, X).sample_of_all(100, LEAST_OF_CLASS)
    counts = np.bincount(y[rows])
    assert counts[2] == 6 and len(rows) <= 106  # all of them, and all rows once
    assert np.all(np.diff(rows) > 0)
    usual = coded_targets(np.arange(400) % 2, X).sample_of_all(100, LEAST_OF_CLASS)
    assert len(usual) == 100
    numbers = coded_targets(X[:, 0], X).sample_of_all(100, LEAST_OF_CLASS)
    assert len(numbers) == 100
    many = coded_targets(np.arange(400) % 100, X).sample_of_all(100, LEAST_OF_CLASS)
    assert len(many) == 100  # so many classes share the rows
