"""Drift: vectors of one model among those of another."""

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from kernelmetric import load, save
from kernelmetric.retrieval import Drift


def two_models(n=500, d=12, e=16, noise=0.05, seed=0):
    rng = np.random.RandomState(seed)
    things = rng.standard_normal((n, 6))
    return tuple(
        normalize(
            things @ rng.standard_normal((6, width)) + noise * rng.standard_normal((n, width))
        )
        for width in (d, e)
    )


def found(mapped, new, k=10):
    """Share of the nearest new vectors that mapped ones find."""
    lists = []
    for Q in (mapped, new):
        S = normalize(Q) @ new.T
        np.fill_diagonal(S, -np.inf)
        lists.append(np.argsort(-S, axis=1)[:, :k])
    return np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(*lists, strict=True)])


@pytest.mark.parametrize("e", [16, 12, 8])
def test_old_vectors_find_most_of_what_new_ones_find(e):
    old, new = two_models(e=e)
    drift = Drift().fit(old[:300], new[:300])
    share = found(drift.transform(old[300:]), new[300:])
    assert share > 0.75
    assert drift.recall_.value == pytest.approx(share, abs=0.1)
    assert (drift.plain_recall_ is not None) == (e == 12)
    if e == 12:
        assert drift.plain_recall_.high < 0.3 < drift.recall_.low


def test_a_rotation_is_found_exactly():
    old, _ = two_models()
    turn = np.linalg.qr(np.random.RandomState(1).standard_normal((12, 12)))[0]
    drift = Drift("euclidean").fit(old, 3 * old @ turn + 2.0)
    np.testing.assert_allclose(drift.transform(old), 3 * old @ turn + 2.0, atol=0.01)
    assert drift.recall_.value > 0.99
    few = Drift().fit(old[:24], old[:24] @ turn)
    assert "rotation" in few.recipe_["map"]


def test_a_row_is_not_its_own_neighbour():
    second = np.array([0.0, 1.0, 3.0, 6.0, 10.0])[:, None]  # the nearest other is the one before
    held, among = np.array([2, 4]), np.arange(5)
    drift = Drift("euclidean", k=1)
    np.testing.assert_array_equal(drift._found(second[[1, 3]], second, held, among), 1.0)
    np.testing.assert_array_equal(drift._found(second[[0, 0]], second, held, among), 0.0)


def test_what_is_saved_comes_back(tmp_path):
    old, new = two_models(e=12)
    drift = Drift().fit(old.astype(np.float32), new)
    assert drift.transform(old.astype(np.float32)).dtype == np.float32
    again = load(save(drift, tmp_path / "d.km"))
    np.testing.assert_array_equal(again.transform(old), drift.transform(old))
    assert again.recall_ == drift.recall_
    assert again.plain_recall_ == drift.plain_recall_


def test_bad_input_is_refused_in_a_sentence():
    old, new = two_models(60)
    for given, says in (
        ((old, new[:50]), "inconsistent numbers of samples"),
        ((old[:10], new[:10]), "20 or more"),
        ((old, None), "requires y"),
        ((old, np.where(new > 0.9, np.nan, new) + np.nan), "y contains NaN"),
        ((old, 0 * new), "all the same"),
    ):
        with pytest.raises(ValueError, match=says):
            Drift().fit(*given)
    for wish in (Drift("dot"), Drift(k=60)):
        with pytest.raises(ValueError, match=r"^Got .*expected"):
            wish.fit(old, new)
    with pytest.raises(ValueError, match=r"rows of y that lie .* float32"):
        Drift("euclidean").fit(old, new + 1e6)
