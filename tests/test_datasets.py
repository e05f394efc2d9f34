"""The generators have the geometry they state."""

import numpy as np
import pytest

from kernelmetric.datasets import (
    make_checkerboard,
    make_close_moons,
    make_fig2_circles,
    make_fig2_hyperbolas,
    make_records,
    make_toy004,
)

GENERATORS = [
    make_fig2_circles,
    make_fig2_hyperbolas,
    make_toy004,
    make_checkerboard,
    make_close_moons,
]


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_are_balanced_and_depend_on_random_state_alone(make):
    X, y = make(30, random_state=3)
    again, y_again = make(30, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    assert (make(30, random_state=4)[0] != X).any()
    assert X.dtype == np.float64
    np.testing.assert_array_equal(np.bincount(y), [15, 15])
    with pytest.raises(ValueError, match="Got n_samples=1"):
        make(1)


def test_circles_have_radii_1_and_1_25_all_round():
    X, y = make_fig2_circles(400, random_state=0)
    np.testing.assert_allclose(np.hypot(*X.T), np.where(y == 0, 1.0, 1.25), rtol=1e-14)
    for c in (0, 1):
        angle = np.sort(np.arctan2(X[y == c, 1], X[y == c, 0]))
        assert np.diff(angle).max() < 0.3


def test_hyperbolas_have_two_full_branches_per_class():
    X, y = make_fig2_hyperbolas(400, random_state=0)
    r = np.where(y == 0, 1.0, 1.3)
    np.testing.assert_allclose(X[:, 0] ** 2 - X[:, 1] ** 2, r**2, rtol=1e-13)
    t = np.arcsinh(X[:, 1] / r)
    assert 0.9 < np.abs(t).max() <= 1
    for c in (0, 1):
        assert (X[y == c, 0] > 0).sum() == (X[y == c, 0] < 0).sum() == 100
        for side in (-1, 1):
            assert np.ptp(t[(y == c) & (np.sign(X[:, 0]) == side)]) > 1.9


def test_radii_must_be_positive():
    with pytest.raises(ValueError, match=r"Got radii=\(1.0, -1.0\)"):
        make_fig2_circles(radii=(1.0, -1.0))


def test_toy004_has_one_relevant_feature_and_ten_of_variance_25():
    X, y = make_toy004(20000, random_state=0)
    assert X.shape == (20000, 11)
    for c, mean in ((0, 3.0), (1, -3.0)):
        assert X[y == c, 0].mean() == pytest.approx(mean, abs=0.05)
        assert X[y == c, 0].var() == pytest.approx(1.0, abs=0.05)
        np.testing.assert_allclose(X[y == c, 1:].mean(axis=0), 0.0, atol=0.25)
        np.testing.assert_allclose(X[y == c, 1:].var(axis=0), 25.0, rtol=0.1)


@pytest.mark.parametrize("n_cells", [2, 3, 4])
def test_checkerboard_classes_are_the_colours_of_the_board(n_cells):
    X, y = make_checkerboard(2000, 5, n_cells=n_cells, random_state=0)
    assert X.shape == (2000, 7)
    assert X.min() >= 0
    assert X.max() < 1
    cell = np.floor(n_cells * X[:, :2]).astype(int)
    np.testing.assert_array_equal(cell.sum(axis=1) % 2, y)
    assert len(np.unique(cell, axis=0)) == n_cells**2
    correlation = np.corrcoef(np.column_stack([y, X]).T)[0, 3:]
    assert np.abs(correlation).max() < 0.1


def test_a_checkerboard_of_one_cell_is_refused():
    with pytest.raises(ValueError, match="Got n_cells=1"):
        make_checkerboard(10, n_cells=1)


def test_records_of_one_person_are_more_alike_than_those_of_others():
    records, person = make_records(40, random_state=0)
    again, _ = make_records(40, random_state=0)
    assert records == again
    assert len(records) == len(person) == 120
    assert set(np.bincount(person)) == {3}
    fields = np.array([list(record.values()) for record in records])
    alike = np.mean(fields[:, None] == fields[None], axis=2)
    same = person[:, None] == person
    assert alike[same & ~np.eye(120, dtype=bool)].mean() > 0.5
    assert alike[~same].mean() < 0.2
    assert not all(len(set(map(tuple, fields[person == p]))) == 1 for p in range(40))
    with pytest.raises(ValueError, match=r"Got n_copies=1, but expected at least 2"):
        make_records(40, n_copies=1)


def test_records_differ_by_what_people_do_to_records():
    records, person = make_records(300, n_copies=4, n_typos=0.0, random_state=1)
    groups = [[r for r, p in zip(records, person, strict=True) if p == who] for who in range(300)]
    assert all(len(group) == 4 for group in groups)
    for field in ("first", "last", "street", "city", "born"):
        assert all(isinstance(record[field], str) for record in records)
    # without typing errors a surname never changes, and a name becomes its initial at most
    assert all(len({record["last"] for record in group}) == 1 for group in groups)
    names = [{record["first"] for record in group} for group in groups]
    assert all(len(found) <= 2 for found in names)
    initials = [r["first"] for r in records if r["first"].endswith(".")]
    assert all(len(first) == 2 and first[0].isupper() for first in initials)
    assert 0.06 < len(initials) / len(records) < 0.14
    assert {r["first"][0] for r in records} <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    empty = [field for r in records for field, text in r.items() if not text]
    assert set(empty) == {"street", "city", "born"}
    assert 0.06 < len(empty) / len(records) < 0.14
    # those who moved have one address more; day and month are exchanged, the year never is
    streets = [{r["street"] for r in group} - {""} for group in groups]
    moved = sum(len(found) - 1 for found in streets) / len(records)
    assert 0.08 < moved < 0.2
    born = [sorted({r["born"] for r in group} - {""}) for group in groups]
    assert all(len(found) <= 2 for found in born)
    turned = [found for found in born if len(found) == 2]
    assert 0.15 < len(turned) / len(groups) < 0.5
    for one, two in turned:
        year, month, day = one.split("-")
        assert two == f"{year}-{day}-{month}"
    for text in (found[0] for found in born if len(found) == 1):
        year, month, day = map(int, text.split("-"))
        assert 1930 <= year <= 2005
        assert 1 <= month <= 28
        assert 1 <= day <= 28
    # households of one to three share surname and address
    homes = {}
    for who, group in enumerate(groups):
        lived = max(sorted(streets[who]), key=[r["street"] for r in group].count)
        homes.setdefault((group[0]["last"], lived), set()).add(who)
        number, *_, last = lived.split(" ")
        assert 1 <= int(number) <= 99
        assert last == "Street"
    assert {2, 3} <= {len(found) for found in homes.values()}


def test_typing_errors_are_small_and_as_many_as_asked_for():
    def distance(a, b):
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            row, before = [i], row
            for j, z in enumerate(b, 1):
                row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (x != z)))
        return row[-1]

    few, _ = make_records(200, n_copies=2, n_typos=1.0, random_state=2)
    many, _ = make_records(200, n_copies=2, n_typos=4.0, random_state=2)
    plain, _ = make_records(200, n_copies=2, n_typos=0.0, random_state=2)
    known = {record["last"] for record in plain}

    def wrong(records):
        return [record["last"] for record in records if record["last"] not in known]

    assert wrong(plain) == []
    assert 0.1 < len(wrong(few)) / 400 < 0.25  # one error for five fields, some of them void
    assert len(wrong(many)) > 2 * len(wrong(few))
    nearest = [min(distance(name, other) for other in known) for name in wrong(few)]
    assert np.mean(np.array(nearest) <= 2) > 0.95
    lengths = {len(name) - len(min(known, key=lambda k: distance(k, name))) for name in wrong(few)}
    assert lengths >= {-1, 0, 1}  # letters are lost, replaced or exchanged, and doubled
    digits = {c for r in many for c in r["born"]}
    assert digits <= set("0123456789-" + "abcdefghijklmnopqrstuvwxyz")
    with pytest.raises(ValueError, match=r"Got n_people=1, but expected at least 2"):
        make_records(1)
