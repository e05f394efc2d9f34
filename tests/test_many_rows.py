"""What is done by pieces where there are many rows gives what is done at once."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelmetric import NCA
from kernelmetric.graphs import _targets
from kernelmetric.inputs import _labels, coded_labels
from kernelmetric.learners import _nca_solvers
from kernelmetric.solvers import _symmetric

LABELS = {
    "numbers": np.random.RandomState(0).randint(7, size=1001),
    "texts": np.random.RandomState(1).randint(7, size=1001).astype(str),
    "objects": np.random.RandomState(2).randint(7, size=1001).astype(str).astype(object),
    "one of each": np.arange(1001.0)[::-1],
    "sorted": np.repeat(np.arange(7), 143),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_coded_by_pieces_are_those_of_numpy(monkeypatch, kind):
    wanted = np.unique(LABELS[kind], return_index=True, return_inverse=True)
    monkeypatch.setattr(_labels, "_LABELS_AT_ONCE", 64)
    for found, value in zip(coded_labels(LABELS[kind]), wanted, strict=True):
        assert_array_equal(found, value)
        assert found.dtype == value.dtype


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
