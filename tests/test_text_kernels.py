"""Kernels on texts and sets, as sparse features of scikit-learn's vectorizers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from kernelmetric import DNE, KPCA, LFDA, NCA, RBF, Columns, Kernelized, MetricClassifier
from kernelmetric.datasets import make_records
from kernelmetric.kernels import FunctionKernel, Tanimoto


@pytest.fixture(scope="module")
def lines():
    records, person = make_records(20, n_copies=4, random_state=0)
    return [" ".join(record.values()) for record in records], person


def test_the_jaccard_kernel_is_intersection_over_union():
    sets = [{0, 1, 2}, {1, 2, 3}, set(), {4}]
    X = np.array([[float(k in each) for k in range(5)] for each in sets])
    K = Tanimoto()(X)
    for i, a in enumerate(sets):
        for j, b in enumerate(sets):
            assert K[i, j] == pytest.approx(len(a & b) / len(a | b) if a | b else 1.0)
    for rows in (sparse.csr_array(X), sparse.csr_matrix(X)):
        assert Tanimoto()(rows) == pytest.approx(K)
        assert Tanimoto()(rows, rows[:2]) == pytest.approx(K[:, :2])
        assert Tanimoto().diag(rows) == pytest.approx(np.diag(K))


def test_it_is_positive_semi_definite_also_on_numbers_of_either_sign():
    rng = np.random.RandomState(0)
    for _ in range(20):
        X = rng.standard_normal((25, 2)) * 10.0 ** rng.uniform(-2, 2, size=(25, 1))
        X[0] = 0
        assert np.linalg.eigvalsh(Tanimoto()(X))[0] > -1e-12


@pytest.mark.every(2)
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


WORDS = ["night", "light", "right", "sight", "water", "later", "cater", "waiter"] * 3
KINDS = np.repeat([0, 1], 4).tolist() * 3


def shared(some, others):
    """Pairs of letters in common, one row for each of the first words."""
    pairs = [[{w[i : i + 2] for i in range(len(w) - 1)} for w in words] for words in (some, others)]
    return np.array([[float(len(a & b)) for b in pairs[1]] for a in pairs[0]])


def of_two(a, b):
    """Letters that two words, or two rows of cells, have in common."""
    return float(len(set(a) & set(b)))


GIVEN = {
    "list": WORDS,
    "tuple": tuple(WORDS),
    "array": np.array(WORDS),
    "objects": np.array(WORDS, dtype=object),
    "column": np.array(WORDS)[:, None],
    "column of objects": np.array(WORDS, dtype=object)[:, None],
    "rows of one": [[word] for word in WORDS],
    "sets": [set(word) for word in WORDS],
    "lists of letters": [list(word) for word in WORDS],
}


@pytest.mark.parametrize("X", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("function", [shared, of_two])
def test_a_function_is_never_given_numbers_made_of_texts(X, function):
    uses = [
        lambda: Kernelized(LFDA(1), kernel=function).fit(X, KINDS),
        lambda: Kernelized(LFDA(1), kernel=0.5 * (FunctionKernel(function) + RBF())).fit(X, KINDS),
        lambda: MetricClassifier(Kernelized(LFDA(1), kernel=function)).fit(X, KINDS),
        lambda: KPCA(2, kernel=function).fit(X),
        lambda: FunctionKernel(function).bind(X),
        lambda: FunctionKernel(function, form="points")(X),
    ]
    for use in uses:
        with pytest.raises(ValueError, match=r"a function as kernel expected.*objects=True.*Col"):
            use()


def test_a_function_is_never_given_numbers_made_of_a_table():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    for more in ({}, {"kg": np.arange(24.0)}):
        frame = pd.DataFrame({"word": WORDS, **more})
        with pytest.raises(ValueError, match="a function as kernel expected rows of numbers"):
            Kernelized(LFDA(1), kernel=of_two).fit(frame, KINDS)
    with pytest.raises(ValueError, match="a function as kernel expected rows of numbers"):
        Kernelized(LFDA(1), kernel=shared).fit(frame["word"], KINDS)


def test_what_is_said_of_texts_works():
    metric = Kernelized(LFDA(1, shrinkage=0.3), kernel="precomputed")
    old = metric.fit(shared(WORDS, WORDS), KINDS).transform(shared(WORDS, WORDS))
    new = metric.transform(shared(["fight", "meter"], WORDS))
    nearest = np.argmin(np.abs(new - old.T), axis=1)
    assert [KINDS[i] for i in nearest] == [0, 1]


def test_what_is_said_of_tables_works():
    seen = []

    def inner(A, B):
        seen.append(A)
        return A @ B.T

    table = np.array([[word, i % 5] for i, word in enumerate(WORDS)], dtype=object)
    metric = Kernelized(DNE(1), kernel=Columns(kernel=inner)).fit(table, KINDS)
    assert metric.transform(table).shape == (24, 1)
    assert all(block.dtype == np.float64 for block in seen)


def test_a_function_takes_numbers_in_every_form_as_before():
    X = np.abs(np.random.RandomState(0).randn(24, 3))
    expected = Kernelized(LFDA(1), kernel=lambda A, B: A @ B.T).fit(X, KINDS).transform(X)
    for given in (X.tolist(), X.astype(object)):
        metric = Kernelized(LFDA(1), kernel=lambda A, B: A @ B.T).fit(given, KINDS)
        assert np.allclose(metric.transform(given), expected)
