"""Linkage of Parquet files: candidates that DuckDB joins, and links that resume."""

import sys

import numpy as np
import pandas as pd
import pytest

from kernelmetric import memory_budget
from kernelmetric.datasets import make_records
from kernelmetric.linkage import (
    EqualKeys,
    NearestText,
    RecordLinker,
    _decision,
    _duckdb,
    _joined,
    candidate_pairs,
    link_files,
)

RULES = [EqualKeys("last", "born"), EqualKeys("first", "street"), EqualKeys("city", "born")]


@pytest.fixture(autouse=True)
def duckdb():
    pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `duckdb`")
    return pytest.importorskip("duckdb", reason="duckdb comes with the extra `duckdb`")


@pytest.fixture
def people(tmp_path):
    """Two files, and the tables in them; row i of the first is row i of the second."""
    records, person = make_records(150, n_copies=2, random_state=0)
    table = pd.DataFrame(records).iloc[np.argsort(person, kind="stable")]
    tables = [table.iloc[k::2].reset_index(drop=True) for k in range(2)]
    paths = [tmp_path / "a.parquet", tmp_path / "it's b.parquet"]
    for path, each in zip(paths, tables, strict=True):
        each.to_parquet(path)
    return paths, tables


@pytest.mark.slow
def test_candidates_of_files_are_those_made_in_memory(people):
    (a, b), (left, right) = people
    initial = EqualKeys(lambda table: table["first"].str[0], "city")
    for rules in (RULES, [initial], [EqualKeys("last")]):
        two = candidate_pairs(a, b, rules)
        assert len(two)
        np.testing.assert_array_equal(two, candidate_pairs(left, right, rules))
        one = candidate_pairs(left, None, rules)
        np.testing.assert_array_equal(candidate_pairs(a, None, rules), one)


def test_keys_of_files_are_texts_dates_and_numbers_as_in_memory(tmp_path):
    left = pd.DataFrame(
        {
            "name": ["Ann ", "STRASSE", "x\u2003y", None, " ", "b"],
            "day": pd.to_datetime(["2001-02-03", None, "2001-02-04", "2001-02-03", None, None]),
            "number": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0],
        }
    )
    right = pd.DataFrame(
        {
            "name": ["ann", "straße", "X Y", "", None, "c"],
            "day": ["20010203", "x", "20010204", None, "y", "z"],
            "number": ["1", "2", None, "4", "4.5", "7"],
        }
    )
    left.to_parquet(tmp_path / "l.parquet")
    right.to_parquet(tmp_path / "r.parquet")
    for column in left:
        rules = [EqualKeys(column)]
        wanted = candidate_pairs(left, right, rules)
        assert len(wanted) >= 3
        found = candidate_pairs(tmp_path / "l.parquet", str(tmp_path / "r.parquet"), rules)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow
def test_keys_that_too_many_share_are_left_out_and_told(people):
    (a, b), (left, right) = people
    rules = [EqualKeys("city", most=300), EqualKeys("born")]
    told = []
    for tables in ((a, b), (left, right)):
        with pytest.warns(UserWarning, match="Left out .* keys of city") as caught:
            told.append((candidate_pairs(*tables, rules), str(caught[0].message)))
    np.testing.assert_array_equal(told[0][0], told[1][0])
    assert told[0][1] == told[1][1]


def test_links_of_files_are_those_of_the_tables_in_memory(people, tmp_path, monkeypatch):
    (a, b), (left, right) = people
    monkeypatch.setattr(_joined, "group_size", lambda: 2048)
    monkeypatch.setattr(_duckdb, "_AT_ONCE", 100)
    both = pd.concat([left, right], ignore_index=True)
    both.to_parquet(tmp_path / "both.parquet")
    one = (tmp_path / "both.parquet", None), (both, None)
    for paths, tables in (((a, b), (left, right)), one):
        linker = RecordLinker(rules=RULES)
        known = linker.fit(*tables)
        found = link_files(
            *paths,
            RecordLinker(rules=RULES),
            folder=tmp_path / f"work {paths[1] is None}",
        )
        pairs = np.concatenate([found.pairs, found.others])
        p = np.concatenate([found.probability, found.other_probability])
        order = np.lexsort(pairs.T[::-1])
        np.testing.assert_array_equal(pairs[order], known.candidates_)
        np.testing.assert_allclose(p[order], known.probability_, atol=1e-6)
        assert (found.n_left, found.n_right) == (known.n_left_, known.n_right_)


def test_labelled_pairs_teach_links_of_files(people, tmp_path):
    (a, b), (left, right) = people
    pairs = candidate_pairs(left, right, RULES)[::2]
    same = pairs[:, 0] == pairs[:, 1]
    known = RecordLinker(rules=RULES).fit(left, right, pairs, same)
    found = link_files(
        a, b, RecordLinker(rules=RULES), folder=tmp_path / "w", pairs=pairs, same=same
    )
    assert len(found) == len(known.links())


def test_an_interrupted_run_goes_on_where_it_was(people, tmp_path, monkeypatch):
    (a, b), _ = people
    monkeypatch.setattr(_joined, "group_size", lambda: 2048)
    initial = EqualKeys(lambda table: table["first"].str[0])
    rules = [EqualKeys("city"), initial, *RULES]  # more than a group
    linker, folder = RecordLinker(rules=rules), tmp_path / "work"
    whole = link_files(a, b, linker, folder=tmp_path / "other")
    original, done = _duckdb._Store.probabilities, []

    def interrupted(self, fitted, group):
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(group)
        return original(self, fitted, group)

    monkeypatch.setattr(_duckdb._Store, "probabilities", interrupted)
    with pytest.raises(KeyboardInterrupt):
        link_files(a, b, linker, folder=folder)
    assert done == [0]
    written = (folder / "candidates.parquet").stat().st_mtime_ns
    monkeypatch.setattr(
        _duckdb._Store, "probabilities",
        lambda self, fitted, group: done.append(group) or original(self, fitted, group),
    )  # fmt: skip
    again = link_files(a, b, linker, folder=folder)
    assert done == list(range(len(done)))  # each group once
    assert len(done) > 1
    assert (folder / "candidates.parquet").stat().st_mtime_ns == written
    np.testing.assert_array_equal(again.pairs, whole.pairs)
    np.testing.assert_allclose(again.probability, whole.probability)
    before = len(done)
    link_files(a, b, linker, folder=folder, threshold=0.9)
    assert len(done) == before  # another threshold asks for nothing again
    with pytest.raises(ValueError, match="holds candidates of other files or rules"):
        link_files(a, b, RecordLinker(rules=RULES), folder=folder)


@pytest.mark.slow
def test_nothing_half_written_is_taken_for_done(people, tmp_path, monkeypatch):
    (a, b), (left, right) = people
    folder = tmp_path / "work"

    def broken(*_):
        (folder / "candidates.part").write_bytes(b"PAR1")
        raise KeyboardInterrupt

    monkeypatch.setattr(_joined, "_join", broken)
    with pytest.raises(KeyboardInterrupt):
        link_files(a, b, RecordLinker(rules=RULES), folder=folder)
    monkeypatch.undo()
    links = link_files(a, b, RecordLinker(rules=RULES), folder=folder)
    assert len(links) + len(links.others) == len(candidate_pairs(left, right, RULES))


@pytest.mark.slow
def test_duckdb_gets_the_memory_budget(people, tmp_path, monkeypatch, duckdb):
    (a, b), (left, right) = people
    asked, connected = [], _joined.connected

    def noted(*given):
        connection = connected(*given)
        asked.append(connection.sql("SELECT current_setting('memory_limit')").fetchall()[0][0])
        return connection

    monkeypatch.setattr(_joined, "connected", noted)
    with memory_budget("200MB"):
        found = candidate_pairs(a, b, RULES)
        assert _joined.group_size() * _joined._PAIR_BYTES <= 200e6
    assert set(asked) == {"190.7 MiB"}
    np.testing.assert_array_equal(found, candidate_pairs(left, right, RULES))


@pytest.mark.slow
def test_too_many_links_are_refused_before_they_are_joined(people, monkeypatch):
    (a, b), _ = people
    monkeypatch.setattr(
        _joined,
        "require_memory",
        lambda n, who, advice: (_ for _ in ()).throw(MemoryError(f"{who}: {advice}")),
    )
    with pytest.raises(MemoryError, match=r"Links of up to \d+ candidates: take a stricter rule"):
        candidate_pairs(a, b, RULES)


def test_what_cannot_be_linked_is_refused_in_a_sentence(people, tmp_path):
    (a, b), (left, _) = people
    with pytest.raises(ValueError, match="Got the column 'phone', but expected one of first, last"):
        candidate_pairs(a, b, [EqualKeys("phone")])
    for rules in (None, [NearestText()]):
        with pytest.raises(ValueError, match="expected EqualKeys alone"):
            candidate_pairs(a, b, rules)
    with pytest.raises(ValueError, match="expected EqualKeys alone"):
        link_files(a, b, folder=tmp_path / "w")
    with pytest.raises(ValueError, match=r"nowhere.parquet, but expected a Parquet file"):
        candidate_pairs(a, tmp_path / "nowhere.parquet", RULES)
    left.head(0).to_parquet(tmp_path / "empty.parquet")
    assert candidate_pairs(a, tmp_path / "empty.parquet", RULES).shape == (0, 2)
    with pytest.raises(ValueError, match="rules that find no candidates"):
        link_files(a, tmp_path / "empty.parquet", RecordLinker(rules=RULES), folder=tmp_path / "e")
    pd.DataFrame({"x": [0.5, 1.0], "y": ["a", "b"]}).to_parquet(tmp_path / "x.parquet")
    assert len(candidate_pairs(tmp_path / "x.parquet", None, [EqualKeys("x")])) == 0


def test_labelled_rows_that_are_not_there_are_refused(people, tmp_path):
    (a, b), (left, _) = people
    linker = RecordLinker(rules=RULES)
    with pytest.raises(ValueError, match="expected row numbers from 0 to 149"):
        link_files(a, b, linker, folder=tmp_path / "w", pairs=[[0, 0], [0, len(left)]], same=[1, 0])


def test_a_plan_tells_functions_apart_by_what_they_do():
    told = [
        _duckdb._told(EqualKeys(key, most=5))
        for key in (
            lambda table: table["a"].str.lower(), lambda table: table["a"].str.upper(),
            lambda table: table["b"].str.lower(), lambda rows: rows["a"].str.lower(), "a",
        )
    ]  # fmt: skip
    assert told[0] == told[3]
    assert len({str(each) for each in told}) == 4


def test_without_duckdb_a_sentence_names_the_extra(people, monkeypatch):
    (a, b), _ = people
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r'pip install "kernelmetric\[duckdb\]"'):
        candidate_pairs(a, b, RULES)


WORDS = [EqualKeys(lambda table: table["title"].str.split(), most=2_000)]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Of labelled texts: what is the same in files and in memory is so of any number of trees."""
    monkeypatch.setitem(_decision._TREES, "max_iter", 15)


@pytest.fixture
def shops(tmp_path):
    """Two files of products with long titles, and the tables in them."""
    rng = np.random.RandomState(0)
    words = np.array([f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrstvx"])
    titles = [[*rng.choice(words, 6), f"{words[k % 200]}{k}00"] for k in range(120)]
    tables = [
        pd.DataFrame(
            {
                "title": [" ".join(rng.permutation(title)[:6]) for title in titles],
                "seller": rng.choice(["best shop", "other shop", None], 120),
            }
        )
        for _ in range(2)
    ]
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for path, each in zip(paths, tables, strict=True):
        each.to_parquet(path)
    return paths, tables


@pytest.mark.slow
def test_records_that_share_one_of_their_words_are_candidates_in_files_and_in_memory(shops):
    (a, b), (left, right) = shops
    pairs = candidate_pairs(left, right, WORDS)
    common = [
        (i, j)
        for i, p in enumerate(left["title"].str.split())
        for j, q in enumerate(right["title"].str.split())
        if set(p) & set(q)
    ]
    assert sorted(common) == list(map(tuple, pairs.tolist()))
    np.testing.assert_array_equal(candidate_pairs(a, b, WORDS), pairs)
    inside = candidate_pairs(left, None, WORDS)
    assert np.all(inside[:, 0] < inside[:, 1])
    np.testing.assert_array_equal(candidate_pairs(a, None, WORDS), inside)
    wrong = [EqualKeys(WORDS[0].keys[0], "seller")]
    for tables in ((left, right), (a, b)):
        with pytest.raises(ValueError, match="lists of values in a rule of 2 keys"):
            candidate_pairs(*tables, wrong)


@pytest.mark.parametrize("two", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_texts_of_files_are_compared_with_all_candidates_of_a_record(
    two, shops, tmp_path, monkeypatch
):
    (a, b), (left, right) = shops
    monkeypatch.setattr(_joined, "group_size", lambda: 2048)
    monkeypatch.setattr(_duckdb, "_AT_ONCE", 100)  # rivals lie in other pieces and groups
    paths, tables, labels = (a, b), (left, right), {}
    if two:
        labels = {"pairs": np.column_stack([np.arange(120)] * 2), "same": np.ones(120)}
    else:
        both = pd.concat([left, right], ignore_index=True)
        both.to_parquet(tmp_path / "both.parquet")
        paths, tables = (tmp_path / "both.parquet", None), (both, None)
    known = RecordLinker(rules=WORDS).fit(*tables, **labels)
    assert known.comparison_.text_ is not None
    found = link_files(*paths, RecordLinker(rules=WORDS), folder=tmp_path / "work", **labels)
    rows = np.concatenate([found.pairs, found.others])
    p = np.concatenate([found.probability, found.other_probability])
    order = np.lexsort(rows.T[::-1])
    np.testing.assert_array_equal(rows[order], known.candidates_)
    np.testing.assert_allclose(p[order], known.probability_, atol=1e-6)


@pytest.mark.slow
def test_what_texts_found_in_all_candidates_is_not_looked_for_again(shops, tmp_path, monkeypatch):
    (a, b), _ = shops
    monkeypatch.setattr(_joined, "group_size", lambda: 2048)
    original = _duckdb._Store.probabilities

    def interrupted(self, fitted, group):
        raise KeyboardInterrupt

    monkeypatch.setattr(_duckdb._Store, "probabilities", interrupted)
    linker, folder = RecordLinker(rules=WORDS), tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        link_files(a, b, linker, folder=folder)
    monkeypatch.setattr(_duckdb._Store, "probabilities", original)
    (kept,) = folder.glob("texts-*.npy")
    np.save(kept, np.load(kept) * 0)  # a change that shows
    changed = link_files(a, b, linker, folder=folder)
    fresh = link_files(a, b, linker, folder=tmp_path / "fresh")
    p, q = (np.concatenate([x.probability, x.other_probability]) for x in (changed, fresh))
    assert len(p) == len(q)
    assert not np.allclose(np.sort(p), np.sort(q))


@pytest.mark.slow
def test_best_candidates_that_memory_cannot_hold_are_refused(shops, tmp_path, monkeypatch):
    (a, b), _ = shops

    def refused(n_bytes, who, advice):
        if who.startswith("Best"):
            raise MemoryError(f"{who}: {advice}")

    monkeypatch.setattr(_duckdb, "require_memory", refused)
    with pytest.raises(MemoryError, match="Best candidates of 240 records: name fewer columns"):
        link_files(a, b, RecordLinker(rules=WORDS), folder=tmp_path / "work")


def test_a_key_may_give_plain_lists_of_values():
    left, right = (
        pd.DataFrame({"title": titles}) for titles in (["a b", "b c", "d"], ["a b c", "d"])
    )
    rule = EqualKeys(lambda table: [title.split() for title in table["title"]])
    assert candidate_pairs(left, right, [rule]).tolist() == [[0, 0], [1, 0], [2, 1]]
