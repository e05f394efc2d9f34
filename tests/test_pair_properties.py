"""What holds for all pairs: from labels, chunks and links, in any order, through any file."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelmetric.graphs import Pairs, as_pairs

quick = settings(
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
labels = st.lists(st.integers(0, 4), min_size=1, max_size=14).map(np.array)
chunks = st.lists(st.integers(-2, 4), min_size=1, max_size=14).map(np.array)


@st.composite
def links(draw):
    """Must-links and cannot-links without a fault."""
    n = draw(st.integers(2, 12))
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = draw(st.lists(st.sampled_from(every), unique=True, max_size=14))
    signs = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    turned = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    ends = [(j, i) if turn else (i, j) for (i, j), turn in zip(chosen, turned, strict=True)]
    similar = [pair for pair, sign in zip(ends, signs, strict=True) if sign]
    dissimilar = [pair for pair, sign in zip(ends, signs, strict=True) if not sign]
    return Pairs(similar, dissimilar, n)


def as_set(rows):
    return {frozenset(pair) for pair in rows.tolist()}


def same(first, second):
    return (
        first.n_samples == second.n_samples
        and as_set(first.similar) == as_set(second.similar)
        and as_set(first.dissimilar) == as_set(second.dissimilar)
    )


@quick
@given(y=labels)
def test_labels_decide_every_pair_once(y):
    pairs = Pairs.from_labels(y)
    n = len(y)
    assert len(pairs) == n * (n - 1) // 2 == len(as_set(pairs.rows))
    assert np.all(y[pairs.similar[:, 0]] == y[pairs.similar[:, 1]])
    assert np.all(y[pairs.dissimilar[:, 0]] != y[pairs.dissimilar[:, 1]])
    groups = pairs.components()
    assert np.array_equal(groups[:, None] == groups, y[:, None] == y)
    assert same(pairs.closure(), pairs)


@quick
@given(y=labels, data=st.data())
def test_a_permutation_of_the_points_permutes_the_pairs(y, data):
    order = np.array(data.draw(st.permutations(range(len(y)))))
    moved = Pairs.from_labels(y[order])
    back = Pairs(order[moved.similar], order[moved.dissimilar], len(y))
    assert same(back, Pairs.from_labels(y))
    assert same(Pairs.from_labels(y).subset(order), moved)


@quick
@given(codes=chunks)
def test_chunks_are_the_groups_that_their_pairs_connect(codes):
    pairs, between = Pairs.from_chunks(codes), Pairs.from_chunks(codes, between=True)
    assert len(pairs.dissimilar) == 0
    groups = pairs.components()
    known = codes >= 0
    together = (codes[:, None] == codes) & known[:, None] & known
    assert np.array_equal((groups[:, None] == groups) | np.eye(len(codes), dtype=bool),
                          together | np.eye(len(codes), dtype=bool))  # fmt: skip
    apart = (codes[:, None] != codes) & known[:, None] & known
    assert len(between.dissimilar) == np.sum(apart) // 2
    assert np.all(apart[tuple(between.dissimilar.T)])
    assert same(Pairs(between.similar, None, len(codes)), pairs)
    assert same(between.closure(), between)


@quick
@given(pairs=links())
def test_links_lead_to_groups_or_to_a_contradiction(pairs):
    groups = pairs.components()
    assert np.all(groups[pairs.similar[:, 0]] == groups[pairs.similar[:, 1]])
    contradicted = np.any(groups[pairs.dissimilar[:, 0]] == groups[pairs.dissimilar[:, 1]])
    if contradicted:
        with pytest.raises(ValueError, match="expected no contradiction"):
            pairs.closure()
        return
    closed = pairs.closure()
    assert as_set(pairs.similar) <= as_set(closed.similar)
    assert as_set(pairs.dissimilar) <= as_set(closed.dissimilar)
    assert same(closed.closure(), closed)
    assert np.array_equal(closed.components(), groups)


@quick
@given(pairs=links(), data=st.data())
def test_parts_of_pairs_are_parts(pairs, data):
    assert same(pairs.take(np.arange(len(pairs))), pairs)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))),
                    dtype=bool)  # fmt: skip
    one, two = pairs.take(mask), pairs.take(~mask)
    assert len(one) == mask.sum()
    assert same(
        Pairs(
            np.concatenate([one.similar, two.similar]),
            np.concatenate([one.dissimilar, two.dissimilar]),
            pairs.n_samples,
        ),
        pairs,
    )
    rows = np.array(
        data.draw(st.lists(st.integers(0, pairs.n_samples - 1), unique=True)), dtype=int
    )
    inside = pairs.subset(rows)
    assert inside.n_samples == len(rows)
    kept = [pair for pair in pairs.similar.tolist() if set(pair) <= set(rows.tolist())]
    assert as_set(rows[inside.similar]) == {frozenset(pair) for pair in kept}


@quick
@given(pairs=links(), change=st.sampled_from([-1, 1, 5]))
def test_points_of_another_number_are_refused(pairs, change):
    n = pairs.n_samples
    assert same(as_pairs(pairs, None, None, None, n), pairs)
    with pytest.raises(ValueError, match=str(n)):
        as_pairs(pairs, None, None, None, n + change)
    with pytest.raises(ValueError, match=str(n)):
        pairs.select(np.zeros((n + change, 2)))
    with pytest.raises(ValueError, match="row numbers from 0"):
        Pairs([[0, n]], None, n)
    with pytest.raises(ValueError, match="row numbers from 0"):
        Pairs(None, [[-1, 0]], n)


@quick
@given(
    pairs=links(),
    mark=st.sampled_from([",", ";", "\t", " ", ", "]),
    head=st.sampled_from(
        [None, ("left", "right", "sign"), ("id_1", "id_2", "y"), ("a b", "c", "d")]
    ),
    quote=st.sampled_from(["", '"']),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    negative=st.sampled_from(["-1", "0"]),
)
def test_pairs_survive_every_file(tmp_path, pairs, mark, head, quote, end, encoding, negative):
    lines = [[*pair, "1"] for pair in pairs.similar.tolist()]
    lines += [[*pair, negative] for pair in pairs.dissimilar.tolist()]
    if not lines:
        return
    if head is not None:
        lines.insert(0, ["a" if mark == " " else name for name in head])
    text = end.join(mark.join(f"{quote}{cell}{quote}" for cell in line) for line in lines)
    path = tmp_path / "pairs.csv"
    path.write_bytes(text.encode(encoding))
    again = Pairs.from_file(path, pairs.n_samples)
    assert np.array_equal(again.similar, pairs.similar)
    assert np.array_equal(again.dissimilar, pairs.dissimilar)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("left,right\n0,1\n2\n", "'2' in line 3"),
        ("left,right\n0,1\n\n1,2,\n", "'1, 2, ' in line 4"),
        ("left,right\n0,1\n,\n", "in line 3"),
        ("left,right\n0,1,1\n", "in line 2"),
        ("left,right,sign\n0,1\n", "in line 2"),
        (",left,right\n0,0,1\n", "a column without a name beside left, right"),
        ("left,right\n0,1.0\n", "'0, 1.0' in line 2"),
        ("0,1\nleft,right\n", "'left, right' in line 2"),
        ("left\n0\n", "'0' in line 2"),
        ("a,b,c,d\n0,1,1,1\n", "'0, 1, 1, 1' in line 2"),
        ("left,right\n0,1e3\n", "line 2"),
        ("left,right,sign\n0,1,1\n1,2,-2\n", "the sign -2 in line 3"),
        (f"0,{10**30}\n", "line 1"),
        ("left,right\n", "without a line of row numbers"),
        ("", "without a line of row numbers"),
        ("0.5,1\n", "line 1"),
        ("-1,0\n", "row numbers from 0"),
    ],
)
def test_what_is_no_pair_is_refused_with_its_line(tmp_path, text, sentence):
    path = tmp_path / "pairs.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        Pairs.from_file(path, 4)


def test_a_file_of_another_encoding_is_refused(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes("größe,b\n0,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="save it as UTF-8"):
        Pairs.from_file(path, 4)
