"""From tables to linked records: candidates, comparisons, probabilities, links."""

import numpy as np
import pytest

from half_of_product import half_of
from kernelmetric import load, save
from kernelmetric.compute import memory_budget
from kernelmetric.datasets import make_records
from kernelmetric.evaluation import cluster_scores
from kernelmetric.graphs import Pairs
from kernelmetric.linkage import (
    EqualKeys,
    Links,
    NearestPoints,
    NearestText,
    RecordComparison,
    RecordLinker,
    _linker,
    candidate_pairs,
    score_candidates,
)
from kernelmetric.linkage._evidence import Found, frequencies, levels_of
from kernelmetric.linkage._linker import found_candidates
from kernelmetric.linkage._links import correlation_clusters, link, one_to_one_choice

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `linkage`")


@pytest.fixture
def fuzzy():
    return pytest.importorskip("rapidfuzz", reason="rapidfuzz comes with the extra `linkage`")


@pytest.fixture(scope="module")
def register():
    """Records of one table, and the pairs that mean one person."""
    records, person = make_records(120, random_state=0)
    i, j = np.triu_indices(len(person), 1)
    same = person[i] == person[j]
    return pd.DataFrame(records), np.column_stack([i[same], j[same]]), person


def listed(pairs):
    return {tuple(pair) for pair in np.asarray(pairs).tolist()}


def f1_of(links, truth):
    hits = len(listed(links.pairs) & listed(truth))
    return 2 * hits / (len(links) + len(truth))


# --- candidates ----------------------------------------------------------------------------------


def test_equal_keys_are_the_pairs_of_a_join():
    rng = np.random.RandomState(0)
    tables = [
        pd.DataFrame({"a": rng.randint(5, size=n), "b": rng.choice(["x", "y", None], n)})
        for n in (40, 30)
    ]
    expected = {
        (i, j)
        for i, p in enumerate(tables[0].itertuples())
        for j, q in enumerate(tables[1].itertuples())
        if p.a == q.a and p.b == q.b and p.b is not None
    }
    assert listed(candidate_pairs(*tables, [EqualKeys("a", "b")])) == expected
    one = {(i, j) for i in range(40) for j in range(i + 1, 40)}
    one = {(i, j) for i, j in one if tables[0].a[i] == tables[0].a[j]}
    assert listed(candidate_pairs(tables[0], rules=[EqualKeys("a")])) == one


def test_a_key_may_be_a_function_of_the_table():
    people = [{"name": "Miller"}, {"name": "Millar"}, {"name": "Adams"}]
    rule = EqualKeys(lambda table: table["name"].str[:3])
    assert candidate_pairs(people, rules=[rule]).tolist() == [[0, 1]]


def test_a_key_that_too_many_share_is_left_out_and_said():
    people = pd.DataFrame({"city": ["Rome"] * 20 + ["Bern"] * 2})
    with pytest.warns(UserWarning, match="190 pairs in all"):
        pairs = candidate_pairs(people, rules=[EqualKeys("city", most=100)])
    assert pairs.tolist() == [[20, 21]]


def test_records_that_share_two_values_are_one_pair():
    titles = pd.DataFrame({"title": ["red lamp", "red lamp small", "lamp lamp"]})
    rule = EqualKeys(lambda table: table["title"].str.split())
    assert rule.pairs(titles, titles).tolist() == [[i, j] for i in range(3) for j in range(3)]
    assert rule.pairs(titles).tolist() == [[0, 1], [0, 2], [1, 2]]


def test_a_value_that_a_record_has_twice_counts_once():
    titles = pd.DataFrame({"title": ["lamp Lamp lamp", "lamp", "", "red"]})
    rule = EqualKeys(lambda table: table["title"].str.split(), most=1)
    assert rule.pairs(titles).tolist() == [[0, 1]]  # one pair, and not three lines with one


@pytest.mark.slow
def test_candidates_of_dask_are_those_made_in_memory():
    dd = pytest.importorskip("dask.dataframe", reason="Dask comes with the extra `dask`")
    records, _ = make_records(60, n_copies=2, random_state=0)
    sides = pd.DataFrame(records[:70]), pd.DataFrame(records[70:])
    many = [dd.from_pandas(side, npartitions=3) for side in sides]
    words = EqualKeys(lambda table: table["street"].str.lower().str.split(), most=100)
    for rules in ([EqualKeys("last", "born"), EqualKeys("city", most=8)], [words]):
        for n in (1, 2):
            with pytest.warns(UserWarning, match="Left out") as here:
                expected = candidate_pairs(*sides[:n], rules=rules)
            with pytest.warns(UserWarning, match="Left out") as there:
                found = candidate_pairs(*many[:n], rules=rules)
            assert np.array_equal(found, expected)
            assert len(found)
            assert [str(w.message) for w in there] == [str(w.message) for w in here]
    with pytest.raises(ValueError, match="data frames of Dask alone"):
        candidate_pairs(many[0], sides[1], rules)
    with pytest.raises(ValueError, match="EqualKeys alone"):
        candidate_pairs(*many)


def test_numbers_as_keys_are_whole_on_both_sides_or_refused():
    left, right = pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": [2.0, 2.5]})
    with pytest.raises(ValueError, match="some with fractions, as the key 'x'"):
        candidate_pairs(left, right, [EqualKeys("x")])


def test_nearest_text_finds_what_the_full_products_find(register):
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = register[0].head(100)
    pairs = candidate_pairs(table[:50], table[50:], [NearestText(n_neighbors=3)])
    lines = [" ".join(" ".join(map(str, row)).casefold().split()) for row in table.to_numpy()]
    weigh = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
    W = weigh.fit_transform(lines)
    P = (W[:50] @ W[50:].T).toarray()
    assert min(np.bincount(pairs[:, 0]).min(), np.bincount(pairs[:, 1]).min()) == 3
    third = np.minimum(np.sort(P, axis=1)[:, -3, None], np.sort(P, axis=0)[-3])
    assert np.all((P >= third - 1e-5)[pairs[:, 0], pairs[:, 1]])
    assert np.sum(P > third + 1e-5) <= len(pairs) <= np.sum(P >= third - 1e-5)


def test_small_blocks_find_the_same_nearest_texts(register):
    whole = candidate_pairs(register[0])
    with memory_budget("100kB"):
        assert np.array_equal(candidate_pairs(register[0]), whole)


def test_common_letters_are_passed_over_not_the_records():
    # Every piece of three digits is in more than 20 records; longer ones are not.
    numbers = [f"{k * 7919 % 10**6:06d}" for k in range(1000)]
    left, right = (pd.DataFrame({"number": [sign + n for n in numbers]}) for sign in "ab")
    pairs = candidate_pairs(left, right, [NearestText(n_neighbors=3, most=20)])
    truth = np.column_stack([np.arange(1000)] * 2)
    assert score_candidates(pairs, truth, 1000, 1000).recall > 0.99


def test_nearest_points_are_those_of_the_metric():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.RandomState(0)
    tables = [pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc")) for n in (20, 15)]
    metric = make_pipeline(StandardScaler()).fit(tables[0])
    D = np.linalg.norm(
        metric.transform(tables[0])[:, None] - metric.transform(tables[1])[None], axis=2
    )
    pairs = candidate_pairs(*tables, [NearestPoints(metric, 2)])
    expected = {(i, j) for i in range(20) for j in np.argsort(D[i])[:2]}
    expected |= {(i, j) for j in range(15) for i in np.argsort(D[:, j])[:2]}
    assert listed(pairs) == expected
    own = candidate_pairs(tables[0], rules=[NearestPoints(metric, 2)])
    assert np.all(own[:, 0] < own[:, 1])


def test_a_union_of_rules_lists_every_pair_once(register):
    rules = [EqualKeys("last"), EqualKeys("born"), NearestText(n_neighbors=4)]
    union = candidate_pairs(register[0], rules=rules)
    parts = [listed(candidate_pairs(register[0], rules=[rule])) for rule in rules]
    assert listed(union) == set.union(*parts)
    assert len(union) == len(listed(union))


def test_recall_and_reduction_are_those_counted_by_hand(register):
    table, truth, _ = register
    found = score_candidates(candidate_pairs(table), truth, len(table))
    assert found.recall > 0.9
    assert found.reduction > 0.95
    assert score_candidates(truth[:, ::-1], truth, len(table)).recall == 1
    with pytest.raises(ValueError, match="without a pair"):
        score_candidates([[0, 1]], [], 3)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([EqualKeys("nobody")], "Got the column 'nobody'"),
        (["last"], "Got the rule 'last'"),
        ([EqualKeys(lambda table: [1])], "Got a key of 1 values"),
    ],
    ids=["column", "rule", "function"],
)
def test_bad_rules_are_refused_in_a_sentence(register, rules, message):
    with pytest.raises(ValueError, match=message):
        candidate_pairs(register[0], rules=rules)


# --- comparisons ---------------------------------------------------------------------------------


def test_what_is_missing_on_either_side_is_a_state_of_its_own(fuzzy):
    left = pd.DataFrame({"name": ["Ann", None, " "], "kind": ["x", "x", None]})
    right = pd.DataFrame({"name": ["ann ", "Ann", "Ann"], "kind": ["y", None, None]})
    compare = RecordComparison({"name": "text", "kind": "category"}).fit(left, right)
    F = compare.features(left, right, [[0, 0], [1, 1], [2, 2], [0, 1]])
    assert compare.feature_names() == ["name", "name missing", "kind", "kind missing"]
    assert F.tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1], [1, 0, 0, 1]]


def test_kinds_are_seen_from_the_values():
    rng = np.random.RandomState(0)
    n = 200
    table = pd.DataFrame(
        {
            "name": [f"{a}son" for a in "abcdefghij"] * 20,
            "born": [f"19{k % 90 + 10}-0{k % 9 + 1}-1{k % 9}" for k in range(n)],
            "when": pd.date_range("2020-01-01", periods=n),
            "zip": rng.randint(1000, 9999, n),
            "height": rng.uniform(1.5, 2, n),
            "sex": ["f", "m"] * 100,
            "note": [f"a much longer remark about customer number {k}" for k in range(n)],
            "empty": [None] * n,
        }
    )
    assert RecordComparison().fit(table).kinds_ == {
        "name": "category", "born": "date", "when": "date", "zip": "code", "height": "number",
        "sex": "category", "note": "long_text",
    }  # fmt: skip


def test_a_day_and_a_month_in_each_others_place_are_nearly_equal(fuzzy):
    left, right = [{"born": "1950-03-11"}], [{"born": "1950-11-03"}, {"born": "1987-06-25"}]
    compare = RecordComparison({"born": "date"}).fit(left, right)
    turned, other = compare.similarities(left, right, [[0, 0], [0, 1]])[:, 0]
    assert turned == pytest.approx(0.9)
    assert other < 0.5


def test_numbers_are_alike_on_the_scale_of_their_column():
    left = pd.DataFrame({"x": np.arange(101.0)})
    compare = RecordComparison({"x": "number"}).fit(left)
    near = compare.similarities(left, None, [[0, 0], [0, 5], [0, 100]])[:, 0]
    assert near == pytest.approx([1, 0.5, 1 / 21])


def test_of_long_texts_the_beginning_is_compared_and_all_letters_make_them_equal(fuzzy):
    rng = np.random.RandomState(0)
    long = "".join(rng.choice(list("abcdefgh"), 30_000))
    left = [{"x": long}]
    right = [{"x": long}, {"x": long[:-1]}, {"x": "z" + long}, {"x": long[::-1]}, {"x": "zz"}]
    for kind in ("text", "long_text", "code"):
        compare = RecordComparison({"x": kind}).fit(left, right)
        equal, ends, begins, other, short = compare.similarities(
            left, right, [[0, k] for k in range(5)]
        )[:, 0]
        assert equal == 1
        assert 0.99 < ends < 1 - 1e-6
        assert max(other, short) < begins < 1 - 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Of 3 candidates none")
def test_long_cells_of_few_records_take_little_work(fuzzy, monkeypatch):
    compared = []
    scored = fuzzy.process.cpdist
    monkeypatch.setattr(
        "rapidfuzz.process.cpdist",
        lambda p, q, scorer, **options: (
            compared.extend(
                len(a) * len(b)
                for a, b in zip(p, q, strict=True)
                if scorer is not fuzzy.distance.JaroWinkler.similarity  # words of these texts
            )
            or scored(p, q, scorer=scorer, **options)
        ),
    )
    rng = np.random.RandomState(0)
    people = [{"x": "".join(rng.choice(list("abcd "), 8000)), "y": f"Ann {k}"} for k in range(3)]
    RecordLinker().fit(people)
    assert len(compared) <= 12  # of three pairs, twice, two fields
    assert max(compared) <= 1000**2


def test_columns_of_one_name_are_refused_in_a_sentence(fuzzy):
    twice = pd.DataFrame([["Ann", "x", "u"], ["Anne", "y", "v"]], columns=["a", "a", "b"])
    for fit in (RecordLinker().fit, RecordComparison().fit, candidate_pairs):
        with pytest.raises(ValueError, match="Got 2 columns of the name 'a'"):
            fit(twice)
    compare = RecordComparison({"b": "text"}).fit(twice)
    assert compare.similarities(twice, None, [[0, 0]]) == 1


def test_numbers_of_arrow_are_numbers(fuzzy):
    pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `parquet`")
    plain = pd.DataFrame({"x": [1.5, 2.25, None, 4.0], "n": [7.0, None, 8.0, 9.0]})
    arrow = plain.astype("float64[pyarrow]")
    kinds = {"x": "number", "n": "code"}
    found = []
    for one in (plain, arrow):
        compare = RecordComparison().fit(one)
        assert compare.kinds_ == kinds
        found.append(compare.similarities(one, None, [[0, 1], [1, 2], [0, 3], [2, 3], [0, 0]]))
    np.testing.assert_array_equal(*found)


def test_half_of_a_surrogate_pair_is_a_letter_like_others(fuzzy):
    names, numbers = ("ann\ud800", "ann\ud800", "bob"), (1.0, None, 2.0)
    people = [{"name": name, "n": n} for name, n in zip(names, numbers, strict=True)]
    rules = [EqualKeys("name"), NearestText()]
    pairs = candidate_pairs(people, rules=rules)
    assert [0, 1] in pairs.tolist()
    assert RecordComparison().fit(people).kinds_ == {"name": "text", "n": "code"}
    compare = RecordComparison({"name": "text", "n": "code"}).fit(people)
    assert compare.similarities(people, None, [[0, 1]])[0, 0] == 1
    by = EqualKeys(lambda table: ["\ud800", "\ud800", "x"])
    assert candidate_pairs(people, rules=[by]).tolist() == [[0, 1]]


def test_comparing_texts_without_rapidfuzz_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rapidfuzz", None)
    monkeypatch.setitem(__import__("sys").modules, "rapidfuzz.distance", None)
    compare = RecordComparison({"name": "text"}).fit([{"name": "Ann"}])
    with pytest.raises(ImportError, match=r"kernelmetric\[linkage\]"):
        compare.similarities([{"name": "Ann"}], None, [[0, 0]])


def test_pairs_outside_the_tables_are_refused():
    compare = RecordComparison({"x": "number"}).fit([{"x": 1.0}, {"x": 2.0}])
    with pytest.raises(ValueError, match="expected row numbers from 0 to 1"):
        compare.similarities([{"x": 1.0}, {"x": 2.0}], None, [[0, 2]])
    with pytest.raises(ValueError, match="expected 0 to 0 on the left and 0 to 1 on the right"):
        compare.similarities([{"x": 1.0}], [{"x": 1.0}, {"x": 2.0}], [[1, 1]])
    with pytest.raises(ValueError, match="Got kinds"):
        RecordComparison({"x": "name"}).fit([{"x": 1.0}])


# --- what agreement is worth ---------------------------------------------------------------------


def drawn_levels(rng, n, share, m, u):
    """Similarities of fields that agree independently, given whether a pair matches."""
    same = rng.uniform(size=n) < share
    tops = np.array([0.0, 0.8, 0.9, 1.0])
    S = np.empty((n, len(m)), dtype=np.float32)
    for k in range(len(m)):
        for kind, chances in ((same, m[k]), (~same, u[k])):
            S[kind, k] = tops[rng.choice(4, kind.sum(), p=chances)]
    return S, same


def test_frequencies_are_found_without_labels():
    rng = np.random.RandomState(0)
    m = np.array([[0.05, 0.05, 0.1, 0.8], [0.1, 0.1, 0.2, 0.6], [0.05, 0.15, 0.2, 0.6]])
    u = np.array([[0.8, 0.1, 0.05, 0.05], [0.7, 0.1, 0.1, 0.1], [0.9, 0.05, 0.04, 0.01]])
    S, same = drawn_levels(rng, 20_000, 0.1, m, u)
    S[rng.uniform(size=S.shape) < 0.1] = np.nan
    none = np.empty((0, 3), dtype=np.int8)
    patterns, counts = np.unique(levels_of(S), axis=0, return_counts=True)
    found_m, found_u, share = frequencies(patterns, counts, none, np.empty(0, dtype=bool), 0.3)
    assert share == pytest.approx(same.mean(), abs=0.02)
    assert found_m == pytest.approx(m, abs=0.06)
    assert found_u == pytest.approx(u, abs=0.03)


def test_without_labels_the_odds_are_those_of_fellegi_and_sunter():
    rng = np.random.RandomState(1)
    S = rng.choice([0.0, 0.8, 1.0, np.nan], size=(500, 3))
    model = Found(S, 0.1).learn(S[:0], np.empty(0, dtype=bool), 0.2)
    levels = levels_of(S)
    patterns, counts = np.unique(levels, axis=0, return_counts=True)
    m, u, _ = frequencies(patterns, counts, levels[:0], np.empty(0, dtype=bool), 0.1, 0.2)
    for row in range(20):
        known = [(f, k) for f, k in enumerate(levels[row]) if k >= 0]
        odds = sum(np.log(m[f, k] / u[f, k]) for f, k in known) + np.log(0.25)
        one = model.odds(S[row : row + 1])[0] - model.constant
        assert one == pytest.approx(odds - np.log(0.25))
    assert model.probability(S).mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.slow
def test_the_opinion_of_random_pairs_finds_matches_among_candidates_that_are_alike():
    rng = np.random.RandomState(0)
    m, u = np.array([[0.1, 0.1, 0.1, 0.7]] * 6), np.array([[0.9, 0.05, 0.03, 0.02]] * 6)
    S, same = drawn_levels(rng, 400_000, 2e-3, m, u)
    near = same | (np.sum(S > 0.85, axis=1) >= 2)  # as rules of candidates choose them
    none, beside = np.empty(0, dtype=bool), S[rng.permutation(len(S))[:20_000]]
    alone = Found(S[near], 0.1).learn(S[:0], none)
    both = Found(S[near], 0.1, beside, near.mean()).learn(S[:0], none)
    wrong = [np.sum((x.probability(S[near]) > 0.5) != same[near]) for x in (alone, both)]
    assert wrong[1] < wrong[0]
    assert both.match_share == pytest.approx(same[near].mean(), rel=0.2)


@pytest.mark.slow
def test_a_balanced_set_of_labels_does_not_move_the_share_of_matches():
    rng = np.random.RandomState(0)
    m = np.array([[0.1, 0.1, 0.1, 0.7]] * 4)
    u = np.array([[0.7, 0.1, 0.1, 0.1]] * 4)
    S, same = drawn_levels(rng, 20_000, 0.05, m, u)
    chosen = np.concatenate([np.flatnonzero(same)[:100], np.flatnonzero(~same)[:100]])
    p = Found(S, 0.1).learn(S[chosen], same[chosen]).probability(S)
    assert p.mean() == pytest.approx(same.mean(), abs=0.015)
    middle = (p > 0.2) & (p < 0.8)
    assert p[middle].mean() == pytest.approx(same[middle].mean(), abs=0.15)


def test_many_labels_teach_which_fields_must_agree_together():
    rng = np.random.RandomState(0)
    S = rng.choice([0.0, 1.0], size=(2000, 2))
    same = S[:, 0] == S[:, 1]  # no sum of the two tells
    model = Found(S, 0.5).learn(S[:200], same[:200], 0.5)
    assert np.mean((model.probability(S) > 0.5) == same) > 0.95


@pytest.mark.slow
def test_few_labels_do_no_harm(fuzzy, register):
    table, _, person = register
    found = found_candidates(table, None, None, None)
    same = person[found.candidates[:, 0]] == person[found.candidates[:, 1]]

    def f1(rows):
        model = found.learn(found.S[rows], same[rows], None, by_kind=True)
        linked = model.probability(found.S) >= 0.5
        return 2 * np.sum(linked & same) / (linked.sum() + same.sum())

    draws = []
    for seed in range(10):
        rng = np.random.RandomState(seed)
        kinds = [rng.permutation(np.flatnonzero(kind))[:5] for kind in (same, ~same)]
        draws.append(f1(np.concatenate(kinds)))
    assert np.mean(draws) >= f1(np.empty(0, dtype=int))


@pytest.mark.slow
def test_labels_chosen_by_looks_tell_the_share_of_matches():
    rng = np.random.RandomState(0)
    m = np.array([[0.1, 0.1, 0.1, 0.7]] * 4)
    u = np.array([[0.7, 0.1, 0.1, 0.1]] * 4)
    S, same = drawn_levels(rng, 20_000, 0.05, m, u)
    p = Found(S, 0.1).learn(S[:0], same[:0]).probability(S)
    near = np.argsort(np.abs(p - 0.5))[:200]  # about half of these match
    asked = Found(S, 0.1).learn(S[near], same[near], by_kind=False)
    assert asked.match_share == pytest.approx(same.mean(), rel=0.15)
    assert asked.probability(S).mean() == pytest.approx(asked.match_share)


# --- the linker ----------------------------------------------------------------------------------


def test_links_without_labels_are_mostly_right_and_labels_improve_them(fuzzy, register):
    table, truth, _ = register
    without = RecordLinker().fit(table)
    assert f1_of(without.links(), truth) > 0.7
    matches = listed(truth)
    rng = np.random.RandomState(0)
    known = without.candidates_[rng.permutation(len(without.candidates_))[:300]]
    same = [tuple(pair) in matches for pair in known.tolist()]
    taught = RecordLinker().fit(table, pairs=known, same=same)
    assert f1_of(taught.links(), truth) > f1_of(without.links(), truth)
    assert len(taught.labelled_probability_) == 300
    y = taught.labelled_same_
    assert np.mean((taught.labelled_probability_ > 0.5) == y) > 0.9


def test_two_tables_are_linked_one_to_one(fuzzy):
    records, person = make_records(100, n_copies=2, random_state=1)
    table = pd.DataFrame(records)
    first = np.unique(person, return_index=True)[1]
    second = np.setdiff1d(np.arange(len(person)), first)
    second = second[np.argsort(person[second])]
    left, right = table.iloc[first], table.iloc[second]
    linker = RecordLinker().fit(left, right)
    links = linker.links(one_to_one=True)
    assert len(np.unique(links.pairs[:, 0])) == len(np.unique(links.pairs[:, 1])) == len(links)
    assert f1_of(links, np.column_stack([np.arange(100)] * 2)) > 0.8
    p = linker.predict_proba(left, right, linker.candidates_)
    assert p[:, 1] == pytest.approx(linker.probability_)
    again = linker.links(left, right, one_to_one=True)
    assert np.array_equal(again.pairs, links.pairs)
    assert linker.weights().loc["last", "equal"] > linker.weights().loc["last", "different"]


def split_register(n, seed):
    """Two tables of the same people, in an order of their own."""
    records, person = make_records(n, n_copies=2, random_state=seed)
    table = pd.DataFrame(records)
    first = np.unique(person, return_index=True)[1]
    second = np.setdiff1d(np.arange(len(person)), first)
    left, right = (table.iloc[rows].reset_index(drop=True) for rows in (first, second))
    return left, right, person[first], person[second]


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", [60, 50], ids=["as many", "fewer"])
def test_tables_in_each_others_place_have_the_same_candidates_and_probabilities(fuzzy, rows):
    left, right, one, other = split_register(60, 4)
    right, other = right.head(rows), other[:rows]
    rules = [NearestText(n_neighbors=4), EqualKeys("city"), EqualKeys("last")]
    known = np.argwhere(one[:20, None] == other[None])
    known = np.concatenate([known, known + np.array([1, 0])])
    same = one[known[:, 0]] == other[known[:, 1]]
    for labels in ({}, {"pairs": known, "same": same}):
        there = RecordLinker(rules=rules).fit(left, right, **labels)
        if labels:
            labels["pairs"] = known[:, ::-1]
        back = RecordLinker(rules=rules).fit(right, left, **labels)
        order = np.lexsort(back.candidates_[:, ::-1].T[::-1])
        assert np.array_equal(there.candidates_, back.candidates_[order][:, ::-1])
        assert there.probability_ == pytest.approx(back.probability_[order], abs=1e-5)
        assert there.match_share_ == pytest.approx(back.match_share_, rel=1e-5)


def test_pairs_that_stand_for_all_are_the_same_of_tables_exchanged(monkeypatch):
    monkeypatch.setattr(_linker, "_DRAWN", 40)
    for n, m in ((20, 20), (10, 30), (5, 6)):
        left, right = range(n), range(m)
        pairs, n_all = _linker._drawn(left, right)
        back, _ = _linker._drawn(right, left)
        assert listed(pairs) == listed(back[:, ::-1])
        assert n_all == n * m
        assert len(pairs) == min(40, n_all)


def test_no_more_pairs_are_drawn_than_there_are():
    pairs, n_all = _linker._drawn(range(4), None)
    assert pairs.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert n_all == 6
    pairs, n_all = _linker._drawn(range(2), range(3))
    assert len(listed(pairs)) == len(pairs) == n_all == 6


@pytest.mark.every(4)
@pytest.mark.parametrize(
    ("by_kind", "n_labelled"),
    half_of([True, False], [20, 60]),  # without and with the kernel expansion
)
def test_no_label_moves_the_probability_held_out_for_its_own_pair(
    fuzzy, register, n_labelled, by_kind
):
    table, person = register[0].head(120), register[2][:120]
    truth = np.argwhere(np.triu(person[:, None] == person, 1))
    near = np.column_stack([truth[:, 0], (truth[:, 1] + 5) % len(table)])
    near = np.sort(near[person[near[:, 0]] != person[near[:, 1]]], axis=1)
    known = np.concatenate([truth[: n_labelled // 2], near[: n_labelled // 2]])
    known = np.unique(known, axis=0)
    same = person[known[:, 0]] == person[known[:, 1]]
    before = RecordLinker().fit(table, pairs=known, same=same, by_kind=by_kind)
    for k in (0, len(known) // 2):
        turned = same.copy()
        turned[k] = not turned[k]
        after = RecordLinker().fit(table, pairs=known, same=turned, by_kind=by_kind)
        assert after.labelled_probability_[k] == before.labelled_probability_[k]


def addresses(n, seed=0):
    rng = np.random.RandomState(seed)
    hosts = ("gmail.com", "web.de", "yahoo.com")
    return [
        f"{''.join(rng.choice(list('abcdefghijklmnopqrstuvwxyz'), 7))}@{hosts[k % 3]}"
        for k in range(n)
    ]


@pytest.mark.every(4)
@pytest.mark.parametrize("n", [1, 3, 10, 200])
def test_copies_of_one_column_are_linked(fuzzy, n):
    e = addresses(n)
    links = RecordLinker().fit({"e": e}, {"e": e[::-1]}).links()
    assert listed(links.pairs) == {(i, n - 1 - i) for i in range(n)}
    inside = RecordLinker().fit({"e": e + e}).links()
    assert listed(inside.pairs) == {(i, n + i) for i in range(n)}


def test_of_one_column_the_part_that_both_tables_have_is_linked(fuzzy):
    left = addresses(200)
    for n in (5, 100):
        right = left[:n] + addresses(200 - n, seed=1)
        linker = RecordLinker().fit({"e": left}, {"e": right})
        assert listed(linker.links().pairs) == {(i, i) for i in range(n)}
        assert linker.match_share_ == pytest.approx(n / len(linker.candidates_), rel=0.2)


def test_values_that_many_records_share_are_no_copies_and_that_is_said(fuzzy):
    rng = np.random.RandomState(0)
    cities = addresses(15)
    left, right = ({"city": rng.choice(cities, 150).tolist()} for _ in range(2))
    for tables in ((left, right), (left,)):
        with pytest.warns(UserWarning, match="the column 'city' alone cannot tell"):
            linker = RecordLinker().fit(*tables)
        assert len(linker.links()) == 0


def test_labels_of_one_column_are_linked(fuzzy):
    rng = np.random.RandomState(0)
    left = addresses(150)
    slips = zip(left, rng.randint(7, size=150), rng.choice(list("abcxyz"), 150), strict=True)
    right = [e[:k] + letter + e[k + 1 :] for e, k, letter in slips]
    known = [[i, i] for i in range(8)] + [[i, (i + 1) % 150] for i in range(8)]
    links = RecordLinker().fit({"e": left}, {"e": right}, known, [1] * 8 + [0] * 8).links()
    assert {(i, i) for i in range(8)} <= listed(links.pairs)
    assert f1_of(links, [(i, i) for i in range(150)]) > 0.85


def test_tables_without_a_common_record_are_said_to_have_none(fuzzy):
    left, right, one, other = split_register(40, 5)
    right = right[~np.isin(other, one[:20])]
    with pytest.warns(UserWarning, match="may have no record in common"):
        RecordLinker().fit(left.head(20)[["first", "born"]], right[["first", "born"]])


def test_labels_may_come_as_pairs_and_contradictions_count_by_their_share(fuzzy, register):
    table, truth, _ = register
    others = truth[:20] + np.array([0, 1])
    known = Pairs(truth[:20], others[others[:, 1] < len(table)], len(table), faults="raise")
    assert len(RecordLinker().fit(table, pairs=known).labelled_pairs_) == len(known)
    twice = np.concatenate([truth[:20], truth[:4, ::-1], truth[:4]])
    same = [1] * 24 + [0] * 4
    with pytest.warns(UserWarning, match="4 pairs both to match and not to"):
        linker = RecordLinker().fit(table, pairs=twice, same=same)
    assert len(linker.labelled_pairs_) == 20
    assert linker.labelled_same_.all()  # two of three answers
    with pytest.raises(ValueError, match="Got same="):
        RecordLinker().fit(table, pairs=[[0, 1]])
    with pytest.raises(ValueError, match="not fitted yet"):
        RecordLinker().links()


def test_one_to_one_takes_the_best_links_together():
    pairs = np.array([[0, 0], [0, 1], [1, 0]])
    p = np.array([0.9, 0.8, 0.85])
    # one of 0.9 alone is less than 0.8 and 0.85 together
    assert one_to_one_choice(pairs, p, 0.5).tolist() == [False, True, True]
    assert one_to_one_choice(pairs, p, 0.79).tolist() == [True, False, False]
    with pytest.raises(ValueError, match="expected two"):
        link(pairs, p, 2, None, threshold=0.5, one_to_one=True)


def test_one_to_many_gives_each_record_of_the_right_its_likeliest_partner():
    pairs = np.array([[0, 0], [0, 1], [0, 2], [1, 1], [2, 2], [2, 3]])
    p = np.array([0.9, 0.8, 0.6, 0.85, 0.6, 0.3])
    links = link(pairs, p, 3, 4, threshold=0.5, one_to_one=False, one_to_many=True)
    assert listed(links.pairs) == {(0, 0), (0, 2), (1, 1)}  # of equal ones the first
    assert len(links) + len(links.others) == len(pairs)
    rng = np.random.RandomState(0)
    pairs = np.argwhere(rng.uniform(size=(30, 40)) < 0.2)
    p = rng.uniform(size=len(pairs))
    links = link(pairs, p, 30, 40, threshold=0.4, one_to_one=False, one_to_many=True)
    best = np.full(40, 0.4)
    np.maximum.at(best, pairs[:, 1], p)
    assert listed(links.pairs) == listed(pairs[(p == best[pairs[:, 1]]) & (p >= 0.4)])
    with pytest.raises(ValueError, match="one_to_many=True for one table"):
        link(pairs, p, 40, None, threshold=0.5, one_to_one=False, one_to_many=True)


def test_clusters_show_what_contradicts_them():
    pairs, others = np.array([[0, 1], [1, 2], [4, 5]]), np.array([[0, 2], [3, 4]])
    links = Links(pairs, np.array([0.9, 0.8, 0.7]), others, np.array([0.1, 0.2]), 7)
    clusters = links.clusters()
    assert clusters.codes[0] == clusters.codes[1] == clusters.codes[2] != clusters.codes[3]
    assert clusters.violations.tolist() == [[0, 2]]
    assert clusters.violation_probability.tolist() == [0.1]
    assert clusters.n_unseen == 0
    assert Links(pairs, links.probability, others[:0], np.empty(0), 7).clusters().n_unseen == 1


def test_clusters_of_two_tables_count_records_of_the_right_after_those_of_the_left():
    links = Links(np.array([[0, 0], [1, 0]]), np.ones(2), np.empty((0, 2), int), np.empty(0), 2, 2)
    codes = links.clusters().codes
    assert codes[0] == codes[1] == codes[2] != codes[3]
    frame = links.to_frame(["a", "b"], ["x", "y"])
    assert frame[["left", "right"]].to_numpy().tolist() == [["a", "x"], ["b", "x"]]


def planted(rng, n_clusters=30, size=5, wrong=0.05):
    """All pairs inside clusters and some between, of which a few have the wrong probability."""
    true = np.repeat(np.arange(n_clusters), size)
    i, j = np.triu_indices(len(true), 1)
    same = true[i] == true[j]
    compared = same | (rng.uniform(size=len(i)) < 0.5)
    i, j, same = i[compared], j[compared], same[compared]
    slips = rng.uniform(size=len(i)) < wrong
    p = np.where(same ^ slips, np.where(slips, 0.7, 0.95), np.where(slips, 0.3, 0.05))
    return np.column_stack([i, j]), p, true


def test_correlation_clusters_undo_links_that_other_pairs_contradict():
    for seed in range(5):
        pairs, p, true = planted(np.random.RandomState(seed))
        links = link(pairs, p, len(true), None, threshold=0.5, one_to_one=False)
        components, found = links.clusters(), links.clusters("correlation")
        assert len(components.cut) == 0
        assert cluster_scores(found.codes, true).f1 > 0.95
        assert cluster_scores(components.codes, true).f1 < 0.5
        assert len(found.cut)
        assert np.all(found.codes[found.cut[:, 0]] != found.codes[found.cut[:, 1]])
        frame = links.to_frame(clusters=found)
        assert len(frame) == len(links) - len(found.cut)
        assert np.array_equal(frame["cluster"], found.codes[frame["right"]])


def test_correlation_clusters_are_the_best_of_few_records():
    rng = np.random.RandomState(0)
    partitions = [[0]]
    for _ in range(5):
        partitions = [[*p, k] for p in partitions for k in range(max(p) + 2)]
    codes = np.array(partitions)
    pairs = np.column_stack(np.triu_indices(6, 1))
    inside = codes[:, pairs[:, 0]] == codes[:, pairs[:, 1]]
    reached = []
    for _ in range(50):
        gains = rng.standard_normal(15)
        found = correlation_clusters(6, pairs, gains)
        value = gains[found[pairs[:, 0]] == found[pairs[:, 1]]].sum()
        assert value >= -1e-12
        reached.append(value > (inside @ gains).max() - 1e-9)
    assert np.mean(reached) > 0.8  # greedy


def test_without_contradictions_both_kinds_of_clusters_agree():
    pairs, p, true = planted(np.random.RandomState(0), wrong=0.0)
    links = link(pairs, p, len(true), None, threshold=0.5, one_to_one=False)
    assert np.array_equal(links.clusters("correlation").codes, true)
    assert np.array_equal(links.clusters().codes, true)
    with pytest.raises(ValueError, match="Got method='best'"):
        links.clusters("best")


def test_a_linker_is_saved_and_links_new_tables_alike(fuzzy, register, tmp_path):
    table, truth, _ = register
    others = np.column_stack([truth[:40, 0], (truth[:40, 1] + 7) % len(table)])
    known = np.concatenate([truth[:40], others[others[:, 0] != others[:, 1]]])
    same = np.arange(len(known)) < 40
    rules = [NearestText(n_neighbors=5), EqualKeys("born"), EqualKeys("last", "city")]
    linker = RecordLinker(RecordComparison({"last": "text", "born": "date"}), rules)
    linker.fit(table, pairs=known, same=same)
    assert linker.model_.space is not None  # enough labels for the kernel
    again = load(save(linker, tmp_path / "people.linker"))
    assert np.array_equal(again.links().pairs, linker.links().pairs)
    new = table.head(60)
    assert np.array_equal(again.links(new).pairs, linker.links(new).pairs)
    assert again.weights().equals(linker.weights())


def test_a_rule_that_is_a_function_is_not_saved(fuzzy, register, tmp_path):
    linker = RecordLinker(rules=[EqualKeys(lambda table: table["last"])]).fit(register[0])
    with pytest.raises(ValueError, match="a function is code"):
        save(linker, tmp_path / "people.linker")


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda linker: linker.candidates_.__setitem__((0, 0), 10**6), "row numbers"),
        (lambda linker: linker.model_.weights.__setitem__(0, np.nan), "finite"),
        (lambda linker: linker.comparison_.kinds_.update(last="name"), "kinds of columns"),
        (lambda linker: setattr(linker, "rules", ["last"]), "rules of candidates"),
        (lambda linker: setattr(linker, "match_share_", 2.0), "match_share_"),
    ],
    ids=["rows", "weights", "kinds", "rules", "share"],
)
def test_a_linker_that_no_fit_leaves_is_not_saved(fuzzy, register, tmp_path, change, message):
    linker = RecordLinker().fit(register[0].head(60))
    change(linker)
    with pytest.raises(ValueError, match=message):
        save(linker, tmp_path / "people.linker")


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    records, person = make_records(80, n_copies=2, random_state=2)
    table = pd.DataFrame(records)
    table.insert(0, "id", [f"r{k}" for k in range(len(table))])
    first = np.unique(person, return_index=True)[1]
    second = np.setdiff1d(np.arange(len(person)), first)
    table.iloc[first].to_csv(tmp_path / "a.csv", index=False)
    table.iloc[second].to_csv(tmp_path / "b.csv", index=False)
    partner = second[np.argsort(person[second])]
    known = [(i, j, 1) for i, j in zip(first[:30], partner[:30], strict=True)]
    known += [(i, j, 0) for i, j in zip(first[:30], partner[1:31], strict=True)]
    lines = [f"r{i},r{j},{sign}" for i, j, sign in known]
    (tmp_path / "known.csv").write_text("left,right,same\n" + "\n".join(lines), encoding="utf-8")
    return tmp_path, {f"r{i}": f"r{j}" for i, j in zip(first, partner, strict=True)}


def test_one_command_links_two_tables(fuzzy, files, run):
    folder, partner = files
    said = run(
        "link", folder / "a.csv", folder / "b.csv", "--id", "id", "--pairs", folder / "known.csv",
        "--one-to-one", "--clusters", "correlation", "--out", folder / "links.csv",
    )  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert "links.csv" in said.stdout
    links = pd.read_csv(folder / "links.csv")
    assert list(links)[:6] == ["left", "right", "probability", "cluster", "left_id", "right_id"]
    assert links["left"].equals(links["left_id"])
    assert links["right"].equals(links["right_id"])
    right = [partner[row.left] == row.right for row in links.itertuples()]
    assert np.mean(right) > 0.9
    assert np.sum(right) > 60


def test_row_numbers_with_a_line_of_names_are_read(fuzzy, files, run):
    folder, _ = files
    (folder / "rows.csv").write_text("left,right,sign\n0,3,0\n1,5,0\n", encoding="utf-8")
    said = run(
        "link", folder / "a.csv", folder / "b.csv", "--pairs", folder / "rows.csv",
        "--column", "first", "--column", "last", "--column", "born", "--json",
        "--out", folder / "links.csv",
    )  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert '"first": "text"' in said.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "0.9"], "Got --precision"),
        (["--precision", "0.9", "--threshold", "0.4"], "Got --threshold beside"),
        (["--id", "nobody"], "nobody"),
        (["--id", "city"], "there twice"),
    ],
    ids=["no pairs", "two thresholds", "no column", "no id"],
)
def test_the_command_refuses_in_a_sentence(fuzzy, files, run, options, message):
    folder, _ = files
    said = run("link", folder / "a.csv", folder / "b.csv", "--out", folder / "l.csv", *options)
    assert said.exit_code == 1
    assert message in said.stderr
    assert not (folder / "l.csv").exists()


def test_fields_that_are_exactly_as_alike_as_a_cut_reach_it():
    left, right = [{"code": "0123456789"}], [{"code": "0123456xyz"}]
    S = RecordComparison({"code": "code"}).fit(left, right).similarities(left, right, [[0, 0]])
    assert levels_of(S).tolist() == [[1]]  # 0.7, which single precision has a little below
