"""Evidence from text: what products and papers say in common, and what that is worth."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer

from kernelmetric import load, save
from kernelmetric.linkage import (
    LabellingSession,
    RecordComparison,
    RecordLinker,
    _bags,
    _decision,
    _parts,
)
from kernelmetric.linkage._text import WHOLE, Texts, learned_of
from kernelmetric.linkage._words import abbreviates, folded, names_of, parts_of, words_of

distance = pytest.importorskip(
    "rapidfuzz.distance", reason="rapidfuzz comes with the extra `linkage`"
)

BRANDS = ("canon", "sony", "nikon", "bosch", "philips", "netgear")
NOUNS = ("digital camera", "wireless router", "flat panel television", "cordless drill", "toaster")
WORDS = (
    "black",
    "silver",
    "compact",
    "portable",
    "zoom",
    "lens",
    "kit",
    "bundle",
    "edition",
    "pro",
)


def products(n, seed=0):
    """Titles in two shops: model numbers are written in two ways, and words exchanged."""
    rng = np.random.RandomState(seed)
    left, right = [], []
    for _ in range(n):
        brand, noun = rng.choice(BRANDS), rng.choice(NOUNS)
        letters, number = "".join(rng.choice(list("abcdefgh"), 2)), rng.randint(100, 999)
        some = rng.permutation(WORDS)[:4]
        left.append(f"{brand} {letters}-{number} {noun} {some[0]} {some[1]} {some[2]}")
        right.append(f"{brand} {noun} {some[1]} {some[3]} {letters}{number}")
    return pd.DataFrame({"title": left}), pd.DataFrame({"title": right})


def known_pairs(n, others=2):
    matches = np.column_stack([np.arange(n)] * 2)
    wrong = [np.column_stack([np.arange(n), (np.arange(n) + k + 1) % n]) for k in range(others)]
    return np.concatenate([matches, *wrong]), np.arange(n * (1 + others)) < n


def f1_of(links, n):
    hits = np.sum(links.pairs[:, 0] == links.pairs[:, 1])
    return 2 * hits / (len(links) + n)


@pytest.fixture(scope="module")
def shops():
    return products(70)


@pytest.fixture(scope="module")
def taught(shops):
    """A linker whose decision has a line, trees and the fields' model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_decision._TREES, "max_iter", 15)
        return RecordLinker().fit(*shops, *known_pairs(70))


# --- what a text is made of -----------------------------------------------------------------------


def test_what_looks_alike_is_spelled_alike():
    assert folded("Z\u00fcrich <b>Stra\u00dfe</b> &amp; DVD\u2010R") == "zurich  strasse  & dvd-r"
    assert words_of(folded("\u65e5\u672c Canon 7.0, EOS_40d")) == [
        "\u65e5\u672c",
        "canon",
        "7.0",
        "eos",
        "40d",
    ]


def test_model_numbers_quantities_and_years_are_found():
    parts = parts_of("hp lc-t80/b 512 mb usb 1,999 drive 24 inch 2007")
    assert {"lct80b"} <= parts.codes
    assert parts.quantities == {"mb": {"512"}, "in": {"24"}}
    assert parts.years == {"2007"}
    assert "1999" in parts.numbers
    assert parts.joined == "hplct80b512mbusb1999drive24inch2007"


def test_names_are_last_names_and_initials():
    assert names_of("ann b. lee, c. roe and poe") == [("lee", "a"), ("roe", "c"), ("poe", "")]


# --- evidence -------------------------------------------------------------------------------------


def test_words_and_letters_alike_are_the_cosines_of_scikit_learn(shops):
    left, right = shops
    evidence = learned_of(left, right, {"title": "long_text"}, chosen=False)
    pairs = known_pairs(70)[0]
    E = Texts(evidence, left, right, pairs[:0]).columns(pairs)
    both = [*left["title"], *right["title"]]
    for k, analyzer in enumerate((words_of, "char_wb")):
        sizes = {"ngram_range": (3, 3)} if k else {}
        weigh = TfidfVectorizer(analyzer=analyzer, binary=True, **sizes)
        W = weigh.fit_transform([" ".join(words_of(text)) for text in both] if k else both)
        expected = W[pairs[:, 0]].multiply(W[70 + pairs[:, 1]]).sum(axis=1).A1
        assert E[:, k] == pytest.approx(expected, abs=1e-5)


def test_frequencies_are_the_same_in_small_blocks(monkeypatch):
    texts = [["a rare word", "", "a word"], ["word word", "a"]]
    whole = _bags.counted(texts)
    monkeypatch.setattr(_bags, "_BLOCK", 1)
    for one, other in zip(whole, _bags.counted(texts), strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert np.array_equal(one.counts, other.counts)
        assert one.n_texts == other.n_texts == 4
    rarity = whole[0].rarity(np.array(["word", "rare", "never"], dtype=object))
    assert rarity == pytest.approx(1 + np.log(5 / np.array([4, 2, 1])))


def test_beside_rivals_is_what_a_pair_has_more_than_the_best_other_of_its_record(shops):
    compare = RecordComparison().fit(*shops)
    rng = np.random.RandomState(0)
    candidates = np.unique(rng.randint(70, size=(400, 2)), axis=0)
    between = compare.between(*shops, candidates)
    S, names = between(candidates), between.names
    for side in ("left", "right"):
        own = S[:, names.index(f"{WHOLE}: letters alike")]
        margin = S[:, names.index(f"{WHOLE}: letters alike beside other partners of the {side}")]
        at = candidates[:, int(side == "right")]
        for k in range(0, len(candidates), 7):
            others = own[(at == at[k]) & (np.arange(len(at)) != k)]
            assert margin[k] == pytest.approx(own[k] - max(others, default=0), abs=1e-6)


def spoken(rng):
    """A text with model numbers, quantities, years, slips of the pen and cut or glued words."""
    words = [*BRANDS, *WORDS, "television", "telephone", "conf", "conference", "3d", "a"]
    words += ["ds-40b", "ds40b", "ds40c", "x100", "12345", "12346", "2007", "1999"]
    words += ["512 mb", "512.0 mb", "256 mb", "2 gb", "24 inch", "17 inch", '24"', "1,999", "19.50"]
    chosen = [str(rng.choice(words)) for _ in range(rng.randint(0, 14))]
    for k in np.flatnonzero(rng.uniform(size=len(chosen)) < 0.25):
        at = rng.randint(len(chosen[k]))
        chosen[k] = chosen[k][:at] + str(rng.choice(list("abc1"))) + chosen[k][at + 1 :]
    return folded("".join(f"{word}{'' if rng.uniform() < 0.1 else ' '}" for word in chosen))


def beginning(a, b):
    return distance.Prefix.similarity(a, b) / max(len(a), len(b), 1)


def plain_parts(a, b, rarity):
    """What two texts' parts have in common, in the order of PARTS: by sets, a pair at a time."""
    alone = [{c for c in x.codes if c not in y.joined} for x, y in ((a, b), (b, a))]
    shared = (a.codes - alone[0]) | (b.codes - alone[1])
    units = a.quantities.keys() & b.quantities.keys()
    agree = sum(bool(a.quantities[u] & b.quantities[u]) for u in units)
    lost = [
        {w for w in x.words - y.words if len(w) < 3 or w not in y.joined}
        for x, y in ((a, b), (b, a))
    ]
    tried = [sorted(side, key=lambda w: (-rarity[w], w))[:8] for side in lost]
    for p in tried[0]:
        for q in tried[1]:
            plain = min(len(p), len(q)) > 3 and not any(map(str.isdigit, p + q))
            if abbreviates(p, q) or (plain and distance.JaroWinkler.similarity(p, q) >= 0.9):
                lost = [lost[0] - {p}, lost[1] - {q}]
    sums = [(sum(rarity[w] for w in each), sum(rarity[w] for w in x.words))
            for each, x in zip(lost, (a, b), strict=True)]  # fmt: skip
    return [
        max(map(len, shared), default=0),
        *map(len, alone),
        bool(a.codes and b.codes and not shared),
        max((beginning(c, d) for c in alone[0] for d in alone[1]), default=0.0),
        len(a.numbers & b.numbers),
        len(a.numbers - b.numbers),
        len(b.numbers - a.numbers),
        agree,
        len(units) - agree,
        len(a.years & b.years),
        bool(a.years and b.years and not a.years & b.years),
        *(max((rarity[w] for w in each), default=0.0) for each in lost),
        *(1 - part / total if total else 0.0 for part, total in sums),
        beginning(a.first, b.first),
    ]


def test_parts_are_compared_as_by_sets_and_a_pair_at_a_time(monkeypatch):
    monkeypatch.setattr(_parts, "_AT_ONCE", 700)
    rng = np.random.RandomState(0)
    sides = [[spoken(rng) for _ in range(n)] for n in (60, 50)]
    words, W = _bags.Bag(sides[0] + sides[1]).of_words()
    rarity = _bags.counted(sides)[0].rarity(words)
    pairs = np.indices((60, 50)).reshape(2, -1).T
    found = _parts.PartedTexts(sides, words, W, rarity).columns(pairs)
    parts = [[parts_of(text) for text in side] for side in sides]
    by_word = dict(zip(words, rarity, strict=True))
    wanted = np.array([plain_parts(parts[0][i], parts[1][j], by_word) for i, j in pairs])
    assert np.all(wanted.any(axis=0))  # nothing goes untested
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_texts_without_any_part_have_nothing_in_common():
    words, W = _bags.Bag(["", "..."]).of_words()
    found = _parts.PartedTexts([[""], ["..."]], words, W, np.empty(0)).columns(
        np.zeros((3, 2), int)
    )
    assert found.shape == (3, len(_parts.PARTS))
    assert not found.any()


def test_a_value_in_another_column_is_found_in_the_whole_record():
    left = pd.DataFrame({"title": ["a wireless router of the usual kind"], "model": ["wgr614v9"]})
    right = pd.DataFrame(
        {"title": ["a wireless router of the usual kind wgr614v9"], "seller": ["best shop"]}
    )
    between = RecordComparison().fit(left, right).between(left, right)
    row = dict(zip(between.names, between([[0, 0]])[0], strict=True))
    assert row[f"{WHOLE}: model number in both"] == len("wgr614v9")
    assert row[f"{WHOLE}: rarest left word without a partner"] == 0
    assert row[f"{WHOLE}: rarest right word without a partner"] > 0  # only one table has sellers


def test_vectors_are_compared_by_their_cosine():
    left = pd.DataFrame({"name": ["Ann"], "v": [[3.0, 4.0]]})
    right = pd.DataFrame({"name": ["Ann"] * 4, "v": [np.array([6, 8]), [4, -3], None, [0, 0]]})
    compare = RecordComparison().fit(left, right)
    assert compare.kinds_["v"] == "vector"
    alike = compare.similarities(left, right, [[0, k] for k in range(4)])[:, 1]
    assert alike[:2] == pytest.approx([1, 0], abs=1e-12)
    assert np.isnan(alike[2:]).all()
    with pytest.raises(ValueError, match="different lengths"):
        compare.similarities(left, right.assign(v=[[1], [1, 2], [3], [4]]), [[0, 0]])


# --- the decision ---------------------------------------------------------------------------------


def test_titles_are_linked_without_labels_and_with_them(shops, taught):
    without = RecordLinker().fit(*shops)
    assert f1_of(without.links(), 70) > 0.8
    assert f1_of(taught.links(), 70) > 0.95
    assert taught.model_.trees is not None
    assert np.mean((taught.labelled_probability_ > 0.5) == taught.labelled_same_) > 0.95


@pytest.mark.slow
def test_few_labels_of_one_kind_do_no_harm(shops):
    without = f1_of(RecordLinker().fit(*shops).links(), 70)
    pairs, same = known_pairs(70)
    for rows in (slice(0, 3), slice(70, 73)):
        few = RecordLinker().fit(*shops, pairs[rows], same[rows], by_kind=False)
        assert f1_of(few.links(), 70) > without - 0.1


def test_the_reasons_of_a_pair_add_up_to_its_log_odds(shops, taught):
    pairs = known_pairs(70)[0][::9]
    found = taught.reasons(*shops, pairs)
    p = taught.predict_proba(*shops, pairs)[:, 1]
    assert found.groupby("pair")["adds"].sum().to_numpy() == pytest.approx(logit(p), abs=1e-6)
    assert {"before comparing", f"{WHOLE}: letters alike"} <= set(found["evidence"])
    code = shops[0]["title"][0].split()[1].replace("-", "")
    said = found[(found["pair"] == 0) & (found["evidence"] == f"{WHOLE}: model number in both")]
    assert said["says"].tolist() in ([code], [])


def test_the_shares_of_fields_add_up_with_the_kernel():
    records = [{"first": f"{a}nn", "last": f"{b}erg", "born": 1950 + k} for k, (a, b) in
               enumerate((a, b) for a in "abcdefgh" for b in "klmnopqr")]  # fmt: skip
    pairs, same = known_pairs(64, others=1)
    other = [dict(record, first=record["first"][:2]) for record in records]
    linker = RecordLinker().fit(records, other, pairs, same)
    assert linker.model_.space is not None
    found = linker.reasons(records, other, pairs[::5])
    p = linker.predict_proba(records, other, pairs[::5])[:, 1]
    assert found.groupby("pair")["adds"].sum().to_numpy() == pytest.approx(logit(p), abs=1e-6)
    assert set(found["evidence"]) == {"before comparing", "first", "last", "born"}


def test_trees_say_what_those_of_scikit_learn_say():
    rng = np.random.RandomState(0)
    X, noise = rng.standard_normal((300, 5)), rng.standard_normal(300)
    y = (X[:, 0] * X[:, 1] + 0.3 * noise > 0).astype(float)
    boosted = HistGradientBoostingClassifier(**_decision._TREES).fit(X, y)
    said = _decision.grown(X, y).shares(X).sum(axis=1)
    assert said == pytest.approx(boosted.decision_function(X), abs=1e-6)


@pytest.mark.slow
def test_no_label_moves_what_is_held_out_for_its_own_pair(shops, taught, monkeypatch):
    monkeypatch.setitem(_decision._TREES, "max_iter", 15)
    pairs, same = known_pairs(70)
    k = 40
    turned = same.copy()
    turned[k] = not turned[k]
    after = RecordLinker().fit(*shops, pairs, turned)
    place = np.flatnonzero((taught.labelled_pairs_ == pairs[k]).all(axis=1))[0]
    assert after.labelled_probability_[place] == taught.labelled_probability_[place]
    assert np.any(after.labelled_probability_ != taught.labelled_probability_)


@pytest.mark.slow
def test_contradicting_labels_count_by_their_share(shops):
    pairs, same = known_pairs(70)
    with pytest.warns(UserWarning, match="5 pairs both to match and not to"):
        linker = RecordLinker().fit(
            *shops, np.concatenate([pairs, pairs[:5]]), np.concatenate([same, ~same[:5]])
        )
    assert f1_of(linker.links(), 70) > 0.9


def test_a_linker_of_texts_is_saved_and_links_new_tables_alike(shops, taught, tmp_path):
    again = load(save(taught, tmp_path / "shops.linker"))
    new = products(30, seed=1)
    pairs = known_pairs(30)[0]
    expected = taught.predict_proba(*new, pairs)
    assert np.array_equal(again.predict_proba(*new, pairs), expected)
    assert np.array_equal(again.links(*new).pairs, taught.links(*new).pairs)
    assert again.weights().equals(taught.weights())


@pytest.mark.slow
def test_a_session_asks_about_texts(shops):
    session = LabellingSession(*shops)
    for _ in range(12):
        i, j = session.question()
        session.answer(i, j, i == j)
    assert f1_of(session.linker().links(), 70) > 0.8


# --- what real tables hold ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Of .* candidates none")
def with_columns(table, n):
    return table.assign(**{f"c{k}": table["title"].str[:5] for k in range(n)})


@pytest.mark.parametrize(
    "change",
    [
        lambda t: with_columns(t, 40),
        pytest.param(lambda t: with_columns(t, 300), marks=pytest.mark.slow),
        lambda t: t.assign(title=[t["title"][0] * 20_000, *t["title"][1:]]),
        lambda t: t.assign(title=[None, "", *t["title"][2:]]),
        lambda t: t.assign(
            title="<td>" + t["title"] + "</td>&nbsp;\u65e5\u672c \u0440\u0443\u0441"
        ),
        lambda t: t.assign(empty=None, odd=pd.Series(["\ud800"] * len(t), dtype=object)),
        lambda t: t.head(1),
    ],
    ids=["40 columns", "300", "a megabyte", "missing", "markup and scripts", "empty", "one record"],
)
def test_odd_tables_have_links_all_the_same(shops, change):
    left, right = (change(side.head(20)) for side in shops)
    linker = RecordLinker().fit(left, right)
    assert np.isfinite(linker.probability_).all()
    assert linker.candidates_[:, 0].max() < len(left)
    found = linker.reasons(left, right, linker.candidates_[:3])
    p = linker.probability_[:3]
    assert found.groupby("pair")["adds"].sum().to_numpy() == pytest.approx(logit(p), abs=1e-5)


@pytest.mark.parametrize(
    "tables",
    [
        (pd.DataFrame({"title": []}), pd.DataFrame({"title": []})),
        (pd.DataFrame({"title": [None] * 3}), pd.DataFrame({"title": [None] * 3})),
        (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"b": ["x"]})),
    ],
    ids=["no records", "all missing", "no common column"],
)
def test_tables_without_anything_to_compare_are_refused_in_a_sentence(tables):
    with pytest.raises(ValueError, match="Got"):
        RecordLinker().fit(*tables)


@pytest.mark.slow
def test_the_page_of_links_shows_what_texts_add(shops, taught):
    from kernelmetric.report import link_page

    page = link_page(taught, taught.links(), *shops)
    assert WHOLE in page
    assert "before comparing" in page


def test_of_equal_candidates_the_middle_of_their_ranks_counts():
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.normal(size=300), rng.randint(3, size=300), np.zeros(300)])
    knots = np.quantile(X, _decision._KNOTS, axis=0)
    line = _decision.Line(knots, np.zeros(3), np.ones(3), np.ones(3), 0.0)
    Y = np.vstack([X[:50], [[9.0, 0.5, 1.0], [-9.0, -1.0, -1.0]]])
    for found, y, own in zip(line.points(Y).T, Y.T, knots.T, strict=True):
        scores = _decision._SCORES
        up, down = np.interp(y, own, scores), np.interp(-y, -own[::-1], -scores[::-1])
        assert found == pytest.approx((up - down) / 2, abs=1e-12)


def test_what_trees_add_is_of_the_column_that_decides():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 4))
    X[:, [0, 1, 3]] = np.round(X[:, [0, 1, 3]] * 0)  # one column alone can decide
    trees = _decision.grown(X, (X[:, 2] > 0.3).astype(float))
    shares = trees.shares(X)
    assert not shares[:, [1, 2, 4]].any()
    assert np.ptp(shares[:, 3]) > 1
    assert shares.sum(axis=1) == pytest.approx(trees.odds(X))
