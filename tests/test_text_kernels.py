"""Kernels on texts and sets, as sparse features of scikit-learn's vectorizers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from kernelmetric import NCA, Kernelized
from kernelmetric.datasets import make_records
from kernelmetric.kernels import Jaccard


@pytest.fixture(scope="module")
def lines():
    records, person = make_records(20, n_copies=4, random_state=0)
    return [" ".join(record.values()) for record in records], person


def test_the_jaccard_kernel_is_intersection_over_union():
    sets = [{0, 1, 2}, {1, 2, 3}, set(), {4}]
    X = np.array([[float(k in each) for k in range(5)] for each in sets])
    K = Jaccard()(X)
    for i, a in enumerate(sets):
        for j, b in enumerate(sets):
            assert K[i, j] == pytest.approx(len(a & b) / len(a | b) if a | b else 1.0)
    for rows in (sparse.csr_array(X), sparse.csr_matrix(X)):
        assert Jaccard()(rows) == pytest.approx(K)
        assert Jaccard()(rows, rows[:2]) == pytest.approx(K[:, :2])
        assert Jaccard().diag(rows) == pytest.approx(np.diag(K))


def test_it_is_positive_semi_definite_also_on_numbers_of_either_sign():
    rng = np.random.RandomState(0)
    for _ in range(20):
        X = rng.standard_normal((25, 2)) * 10.0 ** rng.uniform(-2, 2, size=(25, 1))
        X[0] = 0
        assert np.linalg.eigvalsh(Jaccard()(X))[0] > -1e-12


@pytest.mark.parametrize(
    ("pieces", "kernel"),
    [
        (TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)), "cosine"),
        (CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), binary=True), "jaccard"),
    ],
    ids=["n-grams", "jaccard"],
)
def test_a_metric_is_learned_on_texts_directly(lines, pieces, kernel):
    texts, person = lines
    known = np.arange(len(texts)) % 4 > 0
    metric = make_pipeline(pieces, Kernelized(NCA(max_iter=20), kernel))
    train = [text for text, k in zip(texts, known, strict=True) if k]
    metric.fit(train, person[known])
    Z, new = metric.transform(train), metric.transform(texts)[~known]
    nearest = np.argmin(((new[:, None] - Z[None]) ** 2).sum(axis=2), axis=1)
    seen = np.isin(person[~known], person[known])
    assert np.mean(person[known][nearest][seen] == person[~known][seen]) > 0.8
