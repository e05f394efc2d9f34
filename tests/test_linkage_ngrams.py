"""Nearest texts: the n-grams of blocks of texts beside those of scikit-learn's vectorizer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from kernelmetric import memory_budget
from kernelmetric.compute.backends import _grams, _native
from kernelmetric.compute.reductions import _sparse, most_alike
from kernelmetric.linkage import NearestText, _ngrams


@pytest.fixture(params=["compiled", "NumPy"], autouse=True)
def way(request, monkeypatch):
    """Both ways to the same vectors and neighbours."""
    _native.native.cache_clear()
    if request.param == "NumPy":
        monkeypatch.setenv("KERNELMETRIC_PURE", "1")
    elif _native.native() is None:
        pytest.skip("nothing is compiled here")
    yield request.param
    _native.native.cache_clear()


LETTERS = [*"aabbcde-'01    ", "é", "ß", "日", "\u3000", "\t", "\x1c", "😀", "\ud800"]


def drawn(seed, n, letters=LETTERS, lengths=(0, 1, 2, 5, 12, 30)):
    rng = np.random.RandomState(seed)
    return ["".join(rng.choice(letters, rng.choice(lengths))) for _ in range(n)]


def table(texts):
    return pd.DataFrame({"text": pd.Series(texts, dtype=object)})  # which may hold surrogates


def products(left, right, ngram, most):
    """Of all pairs, by scikit-learn; a record with itself has none."""
    lines = [" ".join(text.casefold().split()) for text in left + (right or [])]
    weigh = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(ngram, ngram + 2), lowercase=False,
        max_df=min(len(lines), most),
    )  # fmt: skip
    W = weigh.fit_transform(lines)
    if right is not None:
        return (W[: len(left)] @ W[len(left) :].T).toarray()
    P = (W @ W.T).toarray()
    np.fill_diagonal(P, 0)
    return P


def assert_nearest(P, pairs, n, *, one=False):
    """The largest products of every row and of every column, whichever of equal ones."""
    least = np.sort(P, axis=1)[:, -min(n, P.shape[1])], np.sort(P, axis=0)[-min(n, P.shape[0])]
    rows, near = pairs.T
    value = P[rows, near]
    assert np.all(value > 0)
    assert np.all(value >= np.minimum(least[0][rows], least[1][near]) - 1e-6)
    wanted = np.argwhere((np.minimum(least[0][:, None], least[1]) + 1e-6 < P) & (P > 1e-6))
    found = set(map(tuple, pairs.tolist()))
    assert len(found) == len(pairs)
    assert all(
        (min(pair), max(pair)) in found if one else tuple(pair) in found for pair in wanted.tolist()
    )
    ends = [np.concatenate([rows, near])] * 2 if one else [rows, near]
    for side, there in enumerate(ends):  # none has fewer than it asks for
        asked = np.minimum(n, np.sum(P > 1e-6, axis=1 - side))
        assert np.all(np.bincount(there, minlength=len(asked)) >= asked)


@pytest.mark.every(4)
@pytest.mark.parametrize(("ngram", "most"), [(1, 1000), (2, 20), (3, 1000), (3, 5), (6, 1000)])
@pytest.mark.parametrize(("n_left", "n_right"), [(40, 60), (3, 200), (200, 3), (80, None)])
def test_nearest_texts_are_those_of_scikit_learns_n_grams(ngram, most, n_left, n_right):
    left = drawn(ngram, n_left)
    right = None if n_right is None else drawn(most, n_right)
    tables = [table(texts) for texts in (left, right) if texts is not None]
    pairs = NearestText(n_neighbors=3, ngram=ngram, most=most).pairs(*tables)
    P = products(left, right, ngram, most)
    assert len(pairs) > 3
    assert_nearest(P, pairs, 3, one=right is None)


@pytest.mark.every(4)
@pytest.mark.parametrize("n_letters", [3000, 7000, 9000], ids=lambda n: f"{n} letters")
def test_n_grams_of_many_letters_are_told_apart(n_letters):
    rng = np.random.RandomState(0)
    letters = [chr(0x4E00 + k) for k in range(n_letters)]
    begins = ["".join(rng.choice(letters, 4)) for _ in range(10)]
    words = [begin + last for begin in begins for last in letters[-3:]] + ["".join(letters)]
    left, right = ([" ".join(rng.choice(words, 3)) for _ in range(40)] + [words[-1]] for _ in "lr")
    with memory_budget("200kB"):  # in several blocks
        pairs = NearestText(n_neighbors=4).pairs(table(left), table(right))
    assert_nearest(products(left, right, 3, 1000), pairs, 4)


@pytest.mark.every(2)
@pytest.mark.parametrize("two", [False, True], ids=["one table", "two tables"])
def test_no_block_changes_which_texts_are_nearest(two, monkeypatch):
    texts = [*drawn(0, 300), "a" * 5000, *drawn(1, 100)]
    tables = [table(texts), table(drawn(2, 250))][: 1 + two]
    whole = NearestText(n_neighbors=4).pairs(*tables)
    monkeypatch.setattr(_ngrams, "_BLOCK", 800)
    monkeypatch.setattr(_ngrams, "_COMPILED_BLOCK", 800)
    monkeypatch.setattr(_sparse, "_ROWS", 7)
    monkeypatch.setattr(_sparse, "_PART", 7)
    monkeypatch.setattr(_sparse, "tiles_at_once", lambda operations: 6)
    with memory_budget("200kB"):
        pairs = NearestText(n_neighbors=4).pairs(*tables)
    assert np.array_equal(pairs, whole)


def test_small_budgets_make_small_blocks(way, monkeypatch):
    taken = []
    lines = ["anna berg", "", "paul stone"] * 50
    cuts, name = (_ngrams.TextWeights, "_counted")
    if way == "compiled":
        cuts, name = (_grams.Grams, "_pieces")
    pieces = getattr(cuts, name)
    monkeypatch.setattr(
        cuts, name,
        lambda self, texts: taken.append(len("".join(texts))) or pieces(self, texts),
    )  # fmt: skip
    with memory_budget("40kB"):
        _ngrams.TextWeights(lines, range(3, 6), 1000).rows(lines)
    assert max(taken) <= 100
    assert sum(taken) == 2 * len("".join(lines))


def test_of_equal_records_the_first_are_the_nearest():
    right = pd.DataFrame({"name": ["Eve Hill", *["Anna Berg"] * 50, "Anna Burg"]})
    left = pd.DataFrame({"name": ["anna  berg", "Paul", None]})
    three = NearestText(n_neighbors=3)
    assert most_alike(*three._points(left, right), 3, one=False).tolist() == [
        [0, 1],
        [0, 2],
        [0, 3],
    ]
    own = NearestText(n_neighbors=1).pairs(right)
    assert own.tolist() == [[1, k] for k in range(2, 52)]


def test_a_record_of_either_table_asks_for_its_nearest():
    left = table(["Anna Berg"])
    right = table(["Anna Berg", "Anna Bergh", "Paul"])  # both are nearest to the only one
    asked = NearestText(n_neighbors=1)
    assert asked.pairs(left, right).tolist() == [[0, 0], [0, 1]]
    assert asked.pairs(right, left).tolist() == [[0, 0], [1, 0]]


def test_no_space_of_any_kind_and_no_missing_field_matters():
    left = pd.DataFrame({"first": ["Anna", None], "last": ["Berg", "Stone\u2003Hill"]})
    right = pd.DataFrame({"first": [" stone\t", None], "last": ["hill", "Anna \u3000 Berg"]})
    assert NearestText(n_neighbors=1).pairs(left, right).tolist() == [[0, 1], [1, 0]]


def test_a_table_without_records_or_texts_has_no_pairs():
    names = table(["Anna Berg", "Anna Burg"])
    for other in (names.head(0), table([None, " "])):
        assert NearestText().pairs(names, other).shape == (0, 2)
        assert NearestText().pairs(other, names).shape == (0, 2)


def test_records_that_have_nothing_rare_are_refused():
    same = pd.DataFrame({"name": ["Anna Berg"] * 30})
    with pytest.raises(ValueError, match="at most most=20 of 30 records"):
        NearestText(most=20).pairs(same)
    with pytest.raises(ValueError, match="without a text"):
        NearestText(ngram=1).pairs(pd.DataFrame({"name": [None, ""]}))


def test_compiled_vectors_are_those_of_numpy(way, monkeypatch):
    lines = [*drawn(3, 60), "", "ab", "a", "x" * 9000, *drawn(4, 400)]
    lines = [" ".join(line.casefold().split()) for line in lines]
    found = _ngrams.TextWeights(lines, range(3, 6), 100).rows(lines)
    monkeypatch.setattr(_ngrams, "compiled_grams", lambda sizes: None)
    weights = _ngrams.TextWeights(lines, range(3, 6), 100)
    wanted = weights.rows(lines)
    assert found.nnz == wanted.nnz
    # Columns have another order: the products of all texts are the same.
    np.testing.assert_allclose(
        (found @ found.T).toarray(), (wanted @ wanted.T).toarray(), atol=1e-6
    )


def test_a_table_of_n_grams_grows_and_loses_none(way):
    if way == "NumPy":
        return
    grams = _grams.Grams(range(2, 3))
    letters = [chr(0x4E00 + k) for k in range(3000)]
    for first in range(0, 3000, 300):
        grams.count([f"{letter}" for letter in letters[first : first + 300]])
    there = grams._table["texts"]
    assert grams._n == np.sum(there > 0) == 6000  # a space before, and one behind
    assert np.all(there[there > 0] == 1)
    assert len(grams._table) >= 12_000
