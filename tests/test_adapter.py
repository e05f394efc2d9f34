"""Adapter: maps of given vectors, learned from matches, kept only where queries left out gain."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

import dimensions
from kernelmetric import Adapter, TimeLimitWarning, Triplets, load, save, time_limit, use_device
from kernelmetric.evaluation import retrieval_scores
from kernelmetric.graphs import Matches
from kernelmetric.kernelized._places import NotBetterWarning
from kernelmetric.retrieval import _search
from kernelmetric.retrieval._choice import choose
from kernelmetric.retrieval._forms import Moments, Table, covariance, forms, whitener
from kernelmetric.retrieval._search import Search
from kernelmetric.retrieval._softmax import Task, _relations, batch_loss

SIDES = ("symmetric", "query", "both")
NOISE = np.array([1.5, 1.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])


def two_views(n=240, seed=0, dtype=float):
    """Queries, turned a little, and documents of the same things; two coordinates are noisy."""
    rng = np.random.RandomState(seed)
    things = rng.standard_normal((n, 8))
    Q, D = (things + NOISE * rng.standard_normal((n, 8)) for _ in range(2))
    turn = np.eye(8)
    turn[[2, 3, 4, 5], [3, 2, 5, 4]] = 0.4, -0.4, 0.4, -0.4
    return (Q @ turn).astype(dtype), D.astype(dtype)


def same(n):
    return np.column_stack([np.arange(n), np.arange(n)])


def recall(adapter, Q, D, rows):
    S = adapter.transform(Q[rows]) @ adapter.transform_documents(D).T
    return np.mean(S.argmax(axis=1) == rows)


@pytest.fixture(scope="module")
def views():
    return two_views()


@pytest.fixture(scope="module")
def fitted(views):
    return {s: Adapter(s).fit(views[0], documents=views[1], pairs=same(160)) for s in SIDES}


@pytest.mark.parametrize("side", SIDES)
def test_new_queries_find_more_of_their_documents(side, fitted, views):
    new = np.arange(160, 240)
    plain = np.mean((normalize(views[0][new]) @ normalize(views[1]).T).argmax(axis=1) == new)
    adapter = fitted[side]
    assert adapter.adapted_
    assert recall(adapter, *views, new) > plain + (0.05 if side == "query" else 0.2)
    evaluation = adapter.evaluation_
    assert evaluation.gain[1].low > 0
    assert evaluation.mended > evaluation.broken
    assert ("softmax" in "".join(adapter.candidates_)) == (side != "query")


def test_documents_stay_as_they_are_where_queries_alone_are_mapped(fitted, views):
    adapter, D = fitted["query"], views[1]
    np.testing.assert_allclose(adapter.transform_documents(D), normalize(D))
    np.testing.assert_array_equal(adapter.document_components_, np.eye(8))
    Z = fitted["symmetric"]
    np.testing.assert_array_equal(Z.transform(D), Z.transform_documents(D))


def test_distances_go_from_queries_to_documents(fitted, views):
    Q, D = (X[:5] for X in views)
    for adapter in fitted.values():
        expected = np.linalg.norm(
            adapter.transform(Q)[:, None] - adapter.transform_documents(D), axis=2
        )
        np.testing.assert_allclose(adapter.pairwise_distances(Q, D), expected, atol=1e-7)
        one = adapter.pair_distance([[0, 1]], Q)[0]
        np.testing.assert_allclose(one, adapter.pair_distance(Q[None, :2])[0])
    with pytest.raises(ValueError, match="expected side='symmetric'"):
        fitted["both"].get_mahalanobis_matrix()


@pytest.mark.slow
def test_where_nothing_helps_the_vectors_stay_as_they_are():
    rng = np.random.RandomState(0)
    things = rng.standard_normal((150, 5))
    Q, D = (things + 0.8 * rng.standard_normal((150, 5)) for _ in range(2))
    adapter = Adapter().fit(Q, documents=D, pairs=same(150))
    assert not adapter.adapted_
    assert adapter.recipe_["map"] == "the vectors as they are"
    assert "none is surely better" in adapter.recipe_["why"]
    np.testing.assert_array_equal(adapter.components_, np.eye(5))
    np.testing.assert_allclose(adapter.transform(Q), normalize(Q))
    assert adapter.evaluation_.gain[1].value == 0


@pytest.mark.every(2)
@pytest.mark.parametrize("one_table", [False, True])
def test_what_is_judged_was_not_learned_from(one_table):
    """In as many dimensions as pairs a map knows its pairs by heart, and no others."""
    rng = np.random.RandomState(0)
    Q, D = rng.standard_normal((2, 60, 50))
    if one_table:
        Q, D, pairs = np.vstack([Q, D]), None, same(60) + np.array([0, 60])
        pairs = np.vstack([pairs, pairs[:, ::-1]])
    else:
        pairs = same(60)
    adapter = Adapter(softmax=False).fit(Q, documents=D, pairs=pairs)
    assert not adapter.adapted_
    assert max(adapter.candidates_.values()) < 0.4


def test_few_queries_change_nothing():
    Q, D = two_views(40)
    adapter = Adapter("query", softmax=False).fit(Q, documents=D, pairs=same(6))
    assert not adapter.adapted_
    assert "6 queries with a match are too few" in adapter.recipe_["why"]


@pytest.mark.slow
def test_labels_of_one_table_are_matches_of_all_pairs_of_a_class():
    X, y = load_digits(return_X_y=True)
    rng = np.random.RandomState(0)
    X = np.hstack([X, 40 * rng.standard_normal((len(X), 3))])[:700]
    known, new = np.arange(300), np.arange(300, 700)
    adapter = Adapter(geometry="euclidean", softmax=False).fit(X[known], y[known])
    assert adapter.adapted_

    def nearest(Z):
        D2 = ((Z[new][:, None] - Z[known]) ** 2).sum(axis=2)
        return np.mean(y[known][D2.argmin(axis=1)] == y[new])

    assert nearest(adapter.transform(X)) > nearest(X) + 0.1


@pytest.mark.slow
def test_labels_of_two_tables_do_the_same_as_their_pairs():
    Q, D = two_views(120)
    labels = (np.arange(120) // 2).astype(str)
    by_labels = Adapter(softmax=False, random_state=3).fit(
        Q, labels, documents=D, document_labels=labels
    )
    pairs = np.argwhere(labels[:, None] == labels)
    by_pairs = Adapter(softmax=False, random_state=3).fit(Q, documents=D, pairs=pairs)
    np.testing.assert_allclose(by_labels.components_, by_pairs.components_)


@pytest.mark.slow
def test_triplets_are_pairs_and_what_is_farther():
    Q, D = two_views(150)
    far = (np.arange(150) + 1) % 150
    triplets = np.column_stack([same(150), far])
    adapter = Adapter(softmax=False).fit(Q, documents=D, triplets=triplets)
    again = Adapter(softmax=False).fit(
        Q, documents=D, pairs=same(150), dissimilar=triplets[:, [0, 2]]
    )
    np.testing.assert_allclose(adapter.components_, again.components_)
    both = np.vstack([Q, D])
    rows = Triplets(triplets + np.array([0, 150, 150]), n_samples=300)
    assert Adapter(softmax=False).fit(both, triplets=rows).adapted_


@pytest.mark.slow
def test_weights_of_pairs_count_as_repetitions_and_zero_as_none():
    Q, D = two_views(100)
    pairs, w = same(100), np.where(np.arange(100) < 30, 2.0, 1.0)
    weighted = Adapter(softmax=False).fit(Q, documents=D, pairs=pairs, pair_weight=w)
    with pytest.warns(UserWarning, match=r"30 pairs that are listed again, such as \[0, 0\]"):
        repeated = Adapter(softmax=False).fit(Q, documents=D, pairs=np.vstack([pairs, pairs[:30]]))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-9)
    some = Adapter(softmax=False).fit(Q, documents=D, pairs=pairs, pair_weight=1.0 * (w == 1))
    np.testing.assert_allclose(
        some.components_, Adapter(softmax=False).fit(Q, documents=D, pairs=pairs[30:]).components_
    )


@pytest.mark.every(2)
@pytest.mark.parametrize("geometry", ["cosine", "euclidean"])
def test_fewer_dimensions_are_the_first_of_all(geometry):
    Q, D = two_views(200)
    full = Adapter(geometry=geometry, softmax=False).fit(Q, documents=D, pairs=same(150))
    few = Adapter(geometry=geometry, softmax=False, n_components=4).fit(
        Q, documents=D, pairs=same(150)
    )
    assert few.transform(Q).shape == (200, 4)
    variances = np.var(D @ full.document_components_.T, axis=0)
    assert np.all(np.diff(variances) < 0.2 * variances[0])
    assert few.evaluation_.before == full.evaluation_.before  # all dimensions, no map
    if few.recipe_["map"] == full.recipe_["map"]:
        ratio = few.components_ / full.components_[:4]
        np.testing.assert_allclose(ratio, np.full_like(ratio, ratio[0, 0]), rtol=1e-6)


@pytest.mark.slow
def test_fewer_dimensions_without_a_better_map_are_principal_components():
    rng = np.random.RandomState(0)
    things = rng.standard_normal((150, 5)) * [5, 4, 3, 2, 0.1]
    Q, D = (things + rng.standard_normal((150, 5)) for _ in range(2))
    with pytest.warns(NotBetterWarning, match="n_components=3"):
        adapter = Adapter(n_components=3, geometry="euclidean").fit(Q, documents=D, pairs=same(150))
    assert not adapter.adapted_
    assert adapter.recipe_["map"] == "principal components"
    assert adapter.components_.shape == (3, 5)


def test_fewer_dimensions_are_cut_from_what_the_softmax_made_of_all(views):
    matches = Matches.of_pairs(same(160), 240, 240)
    full, few = (Search(*views, matches, Adapter(n_components=r)) for r in (None, 4))
    whole = next(full._descended(matches, 1))
    cut = next(few._descended(matches, 2))  # principal components come before
    assert cut.name == whole.name
    np.testing.assert_allclose(cut.queries, full._ordered(whole).queries[:4])


def test_the_softmax_makes_one_change_to_the_maps_of_queries_and_documents(views):
    matches = Matches.of_pairs(same(160), 240, 240)
    search = Search(*views, matches, Adapter("both"))
    start = list(search._closed(matches))[-1]()
    changed = next(search._descended(matches, len(list(search._closed(matches))) - 1))
    B, C = (
        np.linalg.solve(old.T, new.T).T for old, new in zip(start[1:3], changed[1:3], strict=True)
    )
    np.testing.assert_allclose(B, C, atol=1e-6)
    assert 0.02 < np.abs(B - np.eye(8)).max() < 1


@pytest.mark.every(2)
@pytest.mark.parametrize("n_pairs", [9, 40])
def test_fewer_dimensions_that_lose_are_warned_of(n_pairs):
    """Of directions that all matter alike, principal components keep some."""
    rng = np.random.RandomState(0)
    things = rng.standard_normal((300, 12))
    Q, D = (things + 0.2 * rng.standard_normal((300, 12)) for _ in range(2))
    with pytest.warns(NotBetterWarning, match=r"n_components=2, .* principal components"):
        adapter = Adapter(n_components=2, softmax=False).fit(Q, documents=D, pairs=same(n_pairs))
    assert not adapter.adapted_
    assert adapter.recipe_["map"] == "principal components"
    assert adapter.evaluation_.gain[1].high < 0
    assert adapter.evaluation_.before.recall[1].value == 1.0


@pytest.mark.slow
def test_large_tables_are_drawn_from(monkeypatch):
    Q, D = two_views(240)
    for name, most in (("_JUDGED", 60), ("_DOCUMENTS", 120), ("_ROWS", 100), ("_MINED", 30)):
        monkeypatch.setattr(_search, name, most)
    monkeypatch.setattr(_search, "_PAIRS", 50)
    adapter = Adapter().fit(Q, documents=D, pairs=same(160))
    assert adapter.evaluation_.before.n_queries == 60
    assert recall(adapter, Q, D, np.arange(160, 240)) > 0.5


@pytest.mark.slow
def test_a_memory_map_of_documents_gives_the_same(tmp_path, views, fitted):
    mapped = np.lib.format.open_memmap(
        tmp_path / "d.npy", mode="w+", dtype=float, shape=views[1].shape
    )
    mapped[:] = views[1]
    read = np.load(tmp_path / "d.npy", mmap_mode="r")
    adapter = Adapter().fit(views[0], documents=read, pairs=same(160))
    np.testing.assert_array_equal(adapter.components_, fitted["symmetric"].components_)


@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_half_and_single_precision_are_near_double(dtype, fitted, views):
    Q, D = (X.astype(dtype) for X in views)
    adapter = Adapter(softmax=False).fit(Q, documents=D, pairs=same(160))
    assert adapter.transform(Q).dtype == np.float32
    wide = Adapter(softmax=False).fit(*views[:1], documents=views[1], pairs=same(160))
    np.testing.assert_allclose(adapter.transform(Q), wide.transform(views[0]), atol=0.05)


def test_what_is_saved_comes_back(tmp_path, fitted, views):
    for adapter in fitted.values():
        again = load(save(adapter, tmp_path / "a.km"))
        np.testing.assert_array_equal(again.transform(views[0]), adapter.transform(views[0]))
        assert again.evaluation_ == adapter.evaluation_
        assert again.recipe_ == adapter.recipe_


@pytest.mark.slow
def test_a_clone_fits_the_same_and_a_failed_fit_changes_nothing(fitted, views):
    adapter = clone(fitted["symmetric"])
    assert not hasattr(adapter, "components_")
    adapter.fit(views[0], documents=views[1], pairs=same(160))
    before = adapter.components_.copy()
    with pytest.raises(ValueError, match="outside the data"):
        adapter.fit(views[0], documents=views[1], pairs=[[0, 240]])
    np.testing.assert_array_equal(adapter.components_, before)
    np.testing.assert_array_equal(before, fitted["symmetric"].components_)


def test_a_time_limit_leaves_what_was_best(views):
    with warnings.catch_warnings(record=True) as caught, time_limit(1e-3):
        warnings.simplefilter("always")
        adapter = Adapter().fit(views[0], documents=views[1], pairs=same(160))
    assert any(w.category is TimeLimitWarning for w in caught)
    assert adapter.evaluation_.before.n_queries == 32


def meet(values):
    """Fit what a case of the registry says, and what it learned from."""
    Q, D = two_views(60)
    X = np.vstack([Q, D]) if values["tables"] == "one" else None
    shift = 60 * (X is not None)
    pairs = same(60) + np.array([0, shift])
    Q, D = (Q, D) if X is None else (X, None)

    def as_given(Z):
        if Z is None:
            return None
        if values["rows"] == "copies":
            Z[5] = Z[4]
        elif values["rows"] == "offset":
            Z = Z + 3.0
        elif values["rows"] == "constant":
            Z[:, 3] = 1.0
        how = {
            "float32": lambda Z: Z.astype(np.float32),
            "frame": pd.DataFrame,
            "columns first": np.asfortranarray,
            "list": np.ndarray.tolist,
        }
        return how.get(values["input"], np.asarray)(Z)

    Q, D = as_given(Q), as_given(D)
    weights = {"fractions": np.linspace(0.3, 2, 60), "some zero": 1.0 * (np.arange(60) % 5 > 0)}
    told, w = values["told"], weights.get(values["weights"])
    given = {"documents": D}
    if told == "pairs":
        given |= {"pairs": pairs, "pair_weight": w}
    elif told == "triplets":
        given["triplets"] = np.column_stack([pairs, np.roll(pairs[:, 1], 1)])
    else:
        classes = np.arange(60) // 2
        given["y"] = classes if X is None else np.tile(classes, 2)
        given["document_labels"] = classes if X is None else None
    if values["n_components"] == "some" and values["side"] != "query":
        wish = {"n_components": 4}
    else:
        wish = {}
    wish["softmax"] = values["softmax"] == "yes" and values["side"] != "query"
    adapter = Adapter(values["side"], values["geometry"], cv=2, **wish)
    with time_limit(3_600.0 if values["limit"] == "ample" else None):
        return adapter.fit(Q, **given), Q, D


@pytest.mark.every(2)
@pytest.mark.filterwarnings("ignore::kernelmetric.kernelized._places.NotBetterWarning")
@pytest.mark.parametrize("case", dimensions.cases(dimensions.ADAPTED), ids=str)
def test_all_options_meet(case, tmp_path):
    adapter, Q, D = meet(case)
    Z = np.asarray(adapter.transform(Q))
    W = np.asarray(adapter.transform_documents(Q if D is None else D))
    assert np.isfinite(Z).all()
    assert np.isfinite(W).all()
    assert Z.shape[1] == W.shape[1] == len(adapter.components_)
    if case["geometry"] == "cosine":
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-5)
    assert adapter.evaluation_.after.mrr.value >= adapter.evaluation_.before.mrr.value - 0.1
    again = load(save(adapter, tmp_path / "a.km"))
    np.testing.assert_array_equal(np.asarray(again.transform(Q)), Z)


BAD = [
    ({"pairs": [[0, 35]]}, "document 35 .pair 0., but expected row numbers of 30"),
    ({"pairs": [[41, 0]]}, "outside the data"),
    ({"pairs": [[0.5, 1]]}, "expected integers"),
    ({"pairs": []}, "Got no pair"),
    ({}, "requires y to be passed"),
    ({"pairs": [[0, 1]], "y": np.arange(40)}, "Got 2 of pairs, triplets and y"),
    ({"pairs": [[0, 1]], "dissimilar": [[0, 1]]}, "both as matching and as dissimilar"),
    ({"pairs": [[0, 1]], "pair_weight": [-1]}, "finite weights"),
    ({"y": np.arange(40) % 3}, "only one of documents and document_labels"),
    ({"y": np.arange(40) % 3, "document_labels": ["a", "b"] * 15}, "expected the same kind"),
    ({"triplets": [[0, 1]]}, "expected integers of shape .n_triplets, 3."),
    ({"y": np.arange(40) % 3, "pair_weight": np.ones(40)}, "pair_weight without pairs"),
    ({"triplets": [[0, 1, 2]], "pair_weight": [1.0]}, "pair_weight without pairs"),
    ({"pairs": [[0, 1]], "document_labels": [0] * 30}, "document_labels without y"),
    ({"y": np.arange(40) % 3, "dissimilar": [[0, 1]]}, "dissimilar without pairs or triplets"),
    ({"pairs": [[0, 1]], "pair_weight": [np.nan]}, "Got pair_weight nan"),
]


@pytest.mark.parametrize(("given", "says"), BAD, ids=range(len(BAD)))
def test_bad_matches_are_refused_in_a_sentence(given, says):
    Q, D = two_views(40)[0], two_views(30)[1]
    with pytest.raises(ValueError, match=says):
        Adapter().fit(Q, documents=D, **given)


@pytest.mark.slow
def test_bad_vectors_are_refused_in_a_sentence():
    Q, D = two_views(30)
    with pytest.raises(ValueError, match=r"8 features and documents of 4.*one model"):
        Adapter().fit(Q, documents=D[:, :4], pairs=same(30))
    holes, zero = D.copy(), D.copy()
    holes[3, 2], zero[4] = np.nan, 0
    with pytest.raises(ValueError, match="NaN"):
        Adapter().fit(Q, documents=holes, pairs=same(30))
    with pytest.raises(ValueError, match="zero vector as document 4"):
        Adapter().fit(Q, documents=zero, pairs=same(30))
    Adapter(geometry="euclidean").fit(Q, documents=zero, pairs=same(30))
    with pytest.raises(ValueError, match="row 3 as its own document"):
        Adapter().fit(Q, pairs=[[0, 1], [3, 3]])
    labels = np.arange(30) // 3
    with pytest.warns(UserWarning, match=r"queries whose label no document has, such as row 29"):
        Adapter().fit(Q, np.r_[labels[:29], -1], documents=D, document_labels=labels)


def test_rows_that_triplets_do_not_number_are_refused():
    with pytest.raises(ValueError, match="n_samples=90"):
        Adapter().fit(two_views(30)[0], triplets=Triplets([[0, 1, 2]], n_samples=90))


@pytest.mark.every(2)
@pytest.mark.parametrize("size", [1e-200, 1e-25, 1e25, 1e200])
def test_the_cosine_knows_no_size(size, views, fitted):
    Q, D = (size * X for X in views)
    adapter = Adapter(softmax=False).fit(Q, documents=D, pairs=same(160))
    near = Adapter(softmax=False).fit(views[0], documents=views[1], pairs=same(160))
    np.testing.assert_allclose(adapter.components_, near.components_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(adapter.transform(Q[:40]), adapter.transform(views[0][:40]))
    np.testing.assert_allclose(adapter.transform(Q[:2]), adapter.transform(views[0][:2]))


@pytest.mark.slow
def test_rows_far_from_the_origin_are_counted_from_their_mean_or_refused(views):
    Q, D = views
    wish = {"geometry": "euclidean", "softmax": False}
    near, far = (
        Adapter(**wish).fit(Q + offset, documents=D + offset, pairs=same(160))
        for offset in (0.0, 1e5)
    )
    np.testing.assert_allclose(far.components_, near.components_, rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match=r"float32 keeps too few digits\. Subtract the mean"):
        Adapter("query", **wish).fit(Q + 1e5, documents=D + 1e5, pairs=same(160))
    with pytest.raises(ValueError, match="divide both by one number"):
        Adapter(**wish).fit(1e30 * Q, documents=1e30 * D, pairs=same(160))


@pytest.mark.slow
def test_columns_of_lists_are_vectors(views, fitted):
    Q, D = (pd.DataFrame({"vector": list(X)})["vector"] for X in views)
    adapter = Adapter().fit(Q, documents=D, pairs=same(160))
    np.testing.assert_array_equal(adapter.components_, fitted["symmetric"].components_)
    with pytest.raises(ValueError, match="queries of several lengths"):
        Adapter().fit(pd.Series([[1.0, 2.0], [3.0]]), documents=D, pairs=[[0, 1]])


@pytest.mark.every(4)
@pytest.mark.parametrize("side", ["symmetric", "query"])
@pytest.mark.parametrize("geometry", ["cosine", "euclidean"])
def test_a_few_rows_are_mapped_as_many(side, geometry, views):
    """The quick way of one query is the way of a table, and refuses what that refuses."""
    Q, D = views
    adapter = Adapter(side, geometry, softmax=False).fit(Q, documents=D, pairs=same(160))
    for X in (Q, Q.astype(np.float32)):
        for map_ in (adapter.transform, adapter.transform_documents):
            one = np.vstack([map_(row[None]) for row in X[:20]])
            assert one.dtype == X.dtype
            np.testing.assert_allclose(one, map_(X)[:20], rtol=1e-5, atol=1e-6)
    kept = Q[:1].copy()
    adapter.transform_documents(kept)[:] = 0
    np.testing.assert_array_equal(kept, Q[:1])
    for bad, says in (
        (Q[:1, :5], "5 features"),
        (Q[0], "2D array"),
        (np.full((1, 8), np.nan), "NaN"),
        (np.full((1, 8), np.inf), "infinity"),
        (Q[:0], "0 sample"),
    ):
        with pytest.raises(ValueError, match=says):
            adapter.transform(bad)
    frame = pd.DataFrame(Q, columns=list("abcdefgh"))
    framed = Adapter(side, geometry, softmax=False).fit(frame, pairs=same(9) + np.array([0, 9]))
    with pytest.warns(UserWarning, match="feature names"):
        framed.transform(Q[:1])


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_scores_are_of_the_queries_that_are_in_pairs(similarity, views):
    """Any rows may be asked for, not the first ones alone."""
    Q, D = views
    rows = np.array([200, 7, 31])
    scores = retrieval_scores(Q, D, same(240)[rows], similarity=similarity)
    q, d = (normalize(Q), normalize(D)) if similarity == "cosine" else (Q, D)
    far = ((q[rows][:, None] - d) ** 2).sum(axis=2)
    ranks = 1 + (far < far[np.arange(3), rows][:, None]).sum(axis=1)
    assert scores.mrr.value == pytest.approx(np.mean(1 / ranks))
    assert scores.recall[5].value == pytest.approx(np.mean(ranks <= 5))


def test_scores_refuse_what_they_cannot_rank(views):
    Q, D = views
    for given, options, says in (
        ((Q * np.nan, D), {}, "NaN"),
        ((Q[:, :3], D), {}, "queries of 3 features and documents of 8"),
        ((Q, D), {"similarity": "dot"}, "similarity='dot'"),
        ((Q, D), {"k": [0]}, "k=0, but expected an integer >= 1"),
        ((Q, D), {"confidence": 5}, "confidence=5, but expected a number > 0 and < 1"),
    ):
        with pytest.raises(ValueError, match=says):
            retrieval_scores(*given, same(160), **options)
    wide, narrow = (
        retrieval_scores(
            *(X.astype(dtype) for X in (20 * Q.clip(-6, 6), 20 * D.clip(-6, 6))), same(160)
        )
        for dtype in (np.int64, np.int8)
    )
    assert wide == narrow


@pytest.mark.parametrize(
    "wish",
    [
        {"side": "left"},
        {"geometry": "dot"},
        {"softmax": 3},
        {"n_components": 9},
        {"side": "query", "n_components": 2},
        {"side": "query", "softmax": True},
        {"cv": 1},
        {"confidence": 2.0},
    ],
    ids=str,
)
def test_bad_wishes_are_refused_in_a_sentence(wish):
    Q, D = two_views(30)
    with pytest.raises(ValueError, match=r"^Got .*expected"):
        Adapter(**wish).fit(Q, documents=D, pairs=same(30))


# --- formulas -------------------------------------------------------------------------------------


def in_one_batch(one_table):
    """Pairs in which queries and documents come twice, shares, and what is left out."""
    pairs = np.array([[0, 11], [0, 12], [3, 12], [5, 16], [7, 18], [8, 13]])
    pairs = np.vstack([pairs, pairs[:4, ::-1]]) if one_table else pairs - [0, 11]
    matches = Matches.of_pairs(pairs, 20, None if one_table else 9)
    task = Task(None, None, matches.pairs, matches.weights, matches, cosine=True)
    return matches.pairs, *_relations(task, np.arange(len(matches.pairs)))


@pytest.mark.parametrize("one_table", [True, False])
@pytest.mark.parametrize("cosine", [True, False])
def test_the_gradient_of_the_softmax_is_that_of_its_differences(cosine, one_table):
    rng = np.random.RandomState(0)
    _, shares, out = in_one_batch(one_table)
    Z, w = rng.standard_normal((len(out), 3)), rng.uniform(size=len(out))
    B, step = np.eye(3) + 0.3 * rng.standard_normal((3, 3)), 1e-6
    gradient = batch_loss(B, Z, w, shares, out, cosine=cosine)[1]
    for i, j in np.ndindex(3, 3):
        E = np.zeros((3, 3))
        E[i, j] = step
        above, below = (batch_loss(C, Z, w, shares, out, cosine=cosine)[0] for C in (B + E, B - E))
        np.testing.assert_allclose(gradient[i, j], (above - below) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("one_table", [True, False])
def test_a_batch_asks_for_matches_and_parts_what_shares_none(one_table):
    pairs, shares, out = in_one_batch(one_table)
    rows = [(a, 0) for a in pairs[:, 0]] + [(a, 0 if one_table else 1) for a in pairs[:, 1]]
    near = {a: set() for a in rows}
    for a, b in zip(rows[: len(pairs)], rows[len(pairs) :], strict=True):
        near[a].add(b)
        near[b].add(a)
    for (i, a), (j, b) in itertools.product(enumerate(rows), repeat=2):
        assert (shares[i, j] > 0) == (b in near[a])
        assert (out[i, j] < 0) == (a == b or bool(b not in near[a] and near[a] & near[b]))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_a_point_far_from_all_others_leaves_the_loss_a_number():
    _, shares, out = in_one_batch(False)
    Z = np.random.RandomState(0).standard_normal((len(out), 3)).astype(np.float32)
    Z[0] *= 100
    w = np.full(len(out), 1 / len(out), np.float32)
    value, gradient = batch_loss(np.eye(3, dtype=np.float32), Z, w, shares, out, cosine=False)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_whitening_makes_differences_of_matches_alike_everywhere():
    Q, D = two_views(200)
    moments = Moments.of(Table(Q, False), Table(D, False), same(200), np.ones(200))
    delta = Q - D
    np.testing.assert_allclose(moments.within, delta.T @ delta / 200)
    np.testing.assert_allclose(moments.documents, D.T @ D / 200)
    T = covariance(Q, D)
    makers = forms("symmetric", moments, T, whitener(T), lambda form: moments.within)
    L = next(makers)().queries  # 10 % of T
    W = 0.9 * moments.within / np.trace(moments.within @ np.linalg.inv(T)) + 0.1 * T / 8
    spread = np.linalg.eigvalsh(L @ W @ L.T)
    np.testing.assert_allclose(spread / spread[0], 1.0, rtol=1e-2)


def test_forms_in_shared_coordinates_are_their_maps_and_half_of_the_way_is_a_root():
    Q, D = two_views(200)
    moments = Moments.of(Table(Q, False), Table(D, False), same(200), np.ones(200))
    T = covariance(Q, D)
    made = forms("symmetric", moments, T, whitener(T), lambda form: moments.within)
    found = {form.name: form for form in (make() for make in made)}
    shared = [form for form in found.values() if form.axes is not None]
    assert len(shared) == 8 and len({id(form.axes[0]) for form in shared}) == 2
    for form in shared:
        B, scales = form.axes
        np.testing.assert_allclose((D @ B.T) * scales, D @ form.documents.T, rtol=1e-10)
    for target in ("30% the covariance of all rows", "40% the identity"):
        name = f"whitening of matches, {target}"
        half, whole = (found[of + name].queries for of in ("half of the way to the ", ""))
        M = half.T @ half
        np.testing.assert_allclose(M @ M, whole.T @ whole, rtol=1e-8, atol=1e-10)


def test_a_map_that_helps_one_query_in_many_is_not_taken():
    rng = np.random.RandomState(0)
    ranks = np.where(rng.uniform(size=(100, 1)) < 0.7, 1.0, 4.0) * np.ones((1, 6))
    ranks[3, 2] = 1.0
    assert choose(ranks, np.ones(100), 0.95, 0).best == 0
    ranks[ranks[:, 0] > 1, 2] = 1.0
    chosen = choose(ranks, np.ones(100), 0.95, 0)
    assert chosen.best == 2
    assert set(chosen.honest) == {2}


@pytest.mark.slow
def test_noise_is_taken_for_a_gain_at_most_as_often_as_confidence_says():
    rng = np.random.RandomState(0)
    taken = 0
    for seed in range(100):
        ranks = 1.0 + rng.geometric(0.6, size=(60, 1)) - 1 + (rng.uniform(size=(60, 12)) < 0.2)
        taken += choose(ranks, np.ones(60), 0.95, seed).best > 0
    assert taken <= 10


# --- scores ---------------------------------------------------------------------------------------


def test_scores_count_ranks_and_ties():
    D = np.eye(5)
    Q = np.array([[1.0, 0.5, 0, 0, 0], [0.2, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]])
    pairs = [[0, 0], [0, 3], [1, 0], [2, 3]]  # ranks 1, 2, and a tie of two
    scores = retrieval_scores(Q, D, pairs, k=[1, 2])
    assert scores.n_queries == 3
    assert scores.recall[1].value == pytest.approx(1 / 3)
    assert scores.recall[2].value == pytest.approx(1.0)
    assert scores.mrr.value == pytest.approx((1 + 1 / 2 + 1 / 1.5) / 3)
    assert scores.recall[1].low < 1 / 3 < scores.recall[1].high
    euclidean = retrieval_scores(3 * Q, D, pairs, similarity="euclidean")
    assert euclidean.recall[10].value == 1.0


def test_ndcg_is_that_of_scikit_learn():
    from sklearn.metrics import ndcg_score

    rng = np.random.RandomState(0)
    Q, D = rng.standard_normal((20, 4)), rng.standard_normal((40, 4))
    true = rng.uniform(size=(20, 40)) < 0.1
    true[:, 0] = True
    scores = retrieval_scores(Q, D, np.argwhere(true), similarity="euclidean")
    similar = -((Q[:, None] - D) ** 2).sum(axis=2)
    assert scores.ndcg.value == pytest.approx(ndcg_score(true, similar, k=10))


@pytest.mark.slow
def test_what_went_to_a_device_comes_back(views):
    pytest.importorskip("torch", reason="torch comes with no extra of ours")
    Q, D = views
    with use_device("cpu"):
        adapter = Adapter("both", softmax=False).fit(Q, documents=D, pairs=same(160))
        found = [adapter.transform(Q), adapter.transform(Q[:1]), adapter.transform_documents(D)]
    near = Adapter("both", softmax=False).fit(Q, documents=D, pairs=same(160))
    expected = [near.transform(Q), near.transform(Q[:1]), near.transform_documents(D)]
    for Z, W in zip(found, expected, strict=True):
        assert type(Z) is np.ndarray
        np.testing.assert_allclose(Z, W, atol=1e-3)


@pytest.mark.parametrize("softmax", ["no", 3, np.array(["a", "b"])], ids=str)
def test_what_is_no_switch_is_refused(softmax):
    Q, D = two_views(40)
    with pytest.raises(ValueError, match=r"Got softmax=.*but expected 'auto', True or False"):
        Adapter(softmax=softmax).fit(Q, documents=D, pairs=same(30))
