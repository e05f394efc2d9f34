"""compare_with_plain: a learner from pairs beside the points as they are."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from kernelmetric import ITML, LSML, RCA, Pairs, Triplets
from kernelmetric.evaluation import compare_with_plain
from kernelmetric.kernelized._places import NotBetterWarning

ROWS = np.arange(60)
DOCUMENTS = 60 + ROWS


def two_tables(noise, seed=0):
    rng = np.random.RandomState(seed)
    things = rng.standard_normal((60, 4))
    X = np.vstack([things + rng.standard_normal((60, 4)) * noise for _ in "ab"])
    far = 60 + (ROWS + 1) % 60
    return X, Pairs(np.c_[ROWS, ROWS + 60], np.c_[ROWS, far], n_samples=120)


NOISY = np.array([3.0, 0.1, 0.1, 0.1])


@pytest.mark.slow
@pytest.mark.every(3)
@pytest.mark.parametrize(
    "learner", [ITML(), RCA(), make_pipeline(StandardScaler(), ITML())], ids=repr
)
def test_a_learner_that_helps_is_seen_to(learner):
    X, pairs = two_tables(NOISY)
    found = compare_with_plain(learner, X, pairs)
    assert found.before.n_queries == 120
    assert found.gain[1].low > 0.2
    assert found.mended > found.broken


def test_a_learner_that_makes_it_worse_is_warned_of():
    X, pairs = two_tables(0.15)
    with pytest.warns(NotBetterWarning, match="PCA finds fewer of the pairs left out"):
        found = compare_with_plain(PCA(1), X, pairs, documents=DOCUMENTS)
    assert found.gain[1].high < 0
    assert found.before.n_queries == 60


@pytest.mark.filterwarnings("ignore::kernelmetric.kernelized._places.NotBetterWarning")
def test_what_is_judged_was_not_learned_from():
    """In as many coordinates as points a learner knows its pairs by heart, and no others."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((120, 100))
    pairs = Pairs(np.c_[ROWS, ROWS + 60], n_samples=120)
    found = compare_with_plain(RCA(shrinkage=1e-3), X, pairs, documents=DOCUMENTS)
    assert found.after.recall[1].value < 0.15
    Z = RCA(shrinkage=1e-3).fit(X, pairs=pairs).transform(X)
    assert np.mean(cdist(Z[:60], Z[60:]).argmin(axis=1) == ROWS) > 0.9


@pytest.mark.slow
def test_triplets_frames_and_another_plain_distance():
    X, pairs = two_tables(NOISY)
    triplets = Triplets(np.c_[ROWS, ROWS + 60, 60 + (ROWS + 1) % 60], n_samples=120)
    found = compare_with_plain(LSML(), X, triplets, documents=DOCUMENTS)
    assert found.gain[1].low > 0
    frame = pd.DataFrame(X, columns=list("abcd"))
    again = compare_with_plain(ITML(), frame, pairs, plain=Normalizer())
    assert again == compare_with_plain(ITML(), X, pairs, plain=Normalizer())
    assert again.before != compare_with_plain(ITML(), X, pairs).before


def test_bad_input_is_refused_in_a_sentence():
    X, pairs = two_tables(1.0)
    for given, says in (
        ({"pairs": pairs.rows}, "expected Pairs, Triplets"),
        ({"pairs": pairs, "documents": [500]}, "row numbers of 120"),
        ({"pairs": pairs, "cv": 1}, "integer >= 2 and <= 120"),
        ({"pairs": pairs, "documents": ROWS[:0]}, "row numbers"),
        ({"pairs": pairs, "documents": ROWS.astype(float)}, "documents of float64.*as integers"),
        ({"pairs": pairs, "cv": 2.5}, "cv=2.5"),
    ):
        with pytest.raises(ValueError, match=says):
            compare_with_plain(ITML(), X, **given)
