"""Counts and places are whole numbers: neither a boolean nor a fraction is one."""

import numpy as np
import pytest

from kernelmetric import (
    DLA,
    DNE,
    KPCA,
    LDA,
    LFDA,
    LMNN,
    LPP,
    MLKR,
    NCA,
    RBF,
    Kernelized,
    MetricClassifier,
    Nystroem,
    Polynomial,
    compress,
)
from kernelmetric.evaluation import pairs_to_label
from kernelmetric.graphs import Pairs
from kernelmetric.inspection import feature_importance
from kernelmetric.spaces._base import n_kept

X = np.random.RandomState(0).randn(30, 3)
y = np.arange(30) % 2


def metric():
    return Kernelized(LDA(), kernel=RBF(gamma=0.5)).fit(X, y)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("n_components=True", lambda: KPCA(True).fit(X)),
        ("n_components=True", lambda: LMNN(n_components=True).fit(X, y)),
        ("n_landmarks=True", lambda: Nystroem(True).fit(X)),
        ("n_landmarks=True", lambda: compress(metric(), n_landmarks=True)),
        ("degree=True", lambda: Polynomial(True).bind(X)),
        ("gamma=True", lambda: RBF(gamma=True)(X)),
        ("n_neighbors=True", lambda: MetricClassifier(LDA()).fit(X, y).kneighbors(X, True)),
        ("max_samples=True", lambda: feature_importance(metric(), X, max_samples=True)),
    ],
)
def test_true_is_not_taken_for_one(name, use):
    with pytest.raises(ValueError, match=f"Got {name}.* expected"):
        use()


@pytest.mark.parametrize("rows", [[[0.9, 1]], [[False, True]], [[-1, 1]], [[0, 30]], [["0", "1"]]])
def test_pairs_are_row_numbers(rows):
    with pytest.raises(ValueError, match="expected"):
        Pairs(rows, [[0, 2]], 30)


@pytest.mark.parametrize("known", [[0.9], [True, False], [-1], [5], [[0]], ["0"]])
def test_known_candidates_are_places_or_a_mask(known):
    with pytest.raises(ValueError, match=r"Got known=.* but expected"):
        pairs_to_label(np.full(5, 0.5), known=known)


def test_a_mask_of_known_candidates_is_one():
    mask = np.array([True, False, True, False, True])
    for known in (mask, mask.tolist(), np.flatnonzero(mask)):
        chosen = pairs_to_label(np.full(5, 0.5), n_pairs=5, known=known, random_state=0)
        assert sorted(chosen) == [1, 3]


def test_a_share_of_the_variance_is_reached_where_only_rounding_is_missing():
    for k in range(1, 10):
        assert n_kept(np.full(10, 0.1), 0.0, k / 10, 1.0) == k


@pytest.mark.parametrize("kind", [np.uint8, np.int16])
@pytest.mark.parametrize("learner", [DNE, DLA, LFDA, LPP, LMNN, NCA, MLKR])
def test_counts_of_few_bits_count_like_others(learner, kind):
    names = {"n_components", "n_neighbors"} & set(learner().get_params())
    plain, short = (
        learner(**dict.fromkeys(names, number)).estimate_memory(300, 3) for number in (2, kind(2))
    )
    assert plain == short
