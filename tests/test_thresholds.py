"""Thresholds with intervals, and clusters beside the truth."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from kernelmetric.evaluation import _thresholds, cluster_scores, threshold_for

SAME, NOISE, OWN, SHARE = 2.4, 0.8, 0.6, 0.2


def drawn(rng, n_records=250, per_record=5):
    """Scores of candidates: every record has an ease of its own, which all its pairs share.

    One of the candidates of each left record is its match.
    """
    left = np.repeat(np.arange(n_records), per_record)
    right = (left + np.tile(np.arange(per_record), n_records)) % n_records
    same = np.tile(np.arange(per_record) == 0, n_records)
    ease = OWN * rng.standard_normal((2, n_records))
    scores = SAME * same + ease[0][left] + ease[1][right] + NOISE * rng.standard_normal(len(same))
    return scores, same, np.column_stack([left, right])


SPREAD = np.sqrt(2 * OWN**2 + NOISE**2)


def true_rates(threshold):
    return norm.sf(threshold, SAME, SPREAD), norm.sf(threshold, 0, SPREAD)


def true_precision(threshold):
    t, f = true_rates(threshold)
    return SHARE * t / (SHARE * t + (1 - SHARE) * f)


def true_threshold(wanted):
    grid = np.linspace(-2, 5, 20_001)
    return grid[np.argmax(true_precision(grid) >= wanted)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* too few for it")  # one draw of them
def test_intervals_cover_the_truth_although_pairs_share_records():
    wanted, hits = 0.9, []
    truth = true_threshold(wanted)
    for seed in range(25):
        found = threshold_for(
            *drawn(np.random.RandomState(seed), 150), precision=wanted, two_tables=True
        )
        threshold = found.threshold.value
        hits.append(
            [
                found.threshold.low <= truth <= found.threshold.high,
                found.precision.low <= true_precision(threshold) <= found.precision.high,
                found.recall.low <= true_rates(threshold)[0] <= found.recall.high,
            ]
        )
    assert np.all(np.mean(hits, axis=0) >= 0.88)  # `benchmarks/linkage.py` asks for 0.93 of 200


def test_a_threshold_for_recall_has_an_interval_of_recall():
    truth = norm.isf(0.9, SAME, SPREAD)  # where precision is far from 0.9
    assert not 0.7 < true_precision(truth) < 1
    for seed in range(3):
        found = threshold_for(*drawn(np.random.RandomState(seed)), recall=0.9, two_tables=True)
        assert found.threshold.low <= truth <= found.threshold.high
        assert true_rates(found.threshold.high)[0] > 0.7


def test_intervals_widen_where_pairs_share_records():
    scores, same, pairs = drawn(np.random.RandomState(0))
    shared = threshold_for(scores, same, pairs, recall=0.9, two_tables=True)
    apart = np.arange(2 * len(same)).reshape(-1, 2)
    alone = threshold_for(scores, same, apart, precision=0.9)
    found = threshold_for(scores, same, pairs, precision=0.9, two_tables=True)
    assert shared.recall.value >= 0.9
    assert found.precision.value == alone.precision.value
    width = [each.precision.high - each.precision.low for each in (found, alone)]
    assert width[0] >= width[1]
    twice = threshold_for(
        np.tile(scores, 2), np.tile(same, 2), np.tile(pairs, (2, 1)), precision=0.9, two_tables=True
    )
    # The same pairs once more are no news.
    assert twice.precision.high - twice.precision.low == pytest.approx(width[0], rel=0.25)


@pytest.mark.parametrize("wanted", ["precision", "recall"])
def test_intervals_reach_nearly_as_far_up_as_down(wanted):
    # Wilson's leans towards one half: its upper ends were too low where links were judged.
    scores, same, pairs = balanced(np.random.RandomState(0), 150)
    value, low, high = getattr(threshold_for(scores, same, pairs, **{wanted: 0.9}), wanted)
    assert value + 0.7 * (value - low) < high < 1


def test_precision_is_that_of_the_true_share_of_matches():
    rng = np.random.RandomState(0)
    scores, same, pairs = drawn(rng, 1000)
    rare = threshold_for(scores, same, pairs, recall=0.8, match_share=1e-3, two_tables=True)
    t, f = true_rates(rare.threshold.value)
    expected = 1e-3 * t / (1e-3 * t + (1 - 1e-3) * f)
    assert rare.precision.low < expected < rare.precision.high
    assert rare.precision.value < 0.2
    assert rare.match_share == 1e-3
    # Labelled pairs of which half match tell the same as those drawn evenly.
    kept = same | (rng.uniform(size=len(same)) < 0.25)
    half = threshold_for(
        scores[kept], same[kept], pairs[kept], precision=0.9, match_share=SHARE, two_tables=True
    )
    assert half.threshold.low < true_threshold(0.9) < half.threshold.high


def test_no_error_seen_is_no_proof_that_there_is_none():
    n = 100
    scores = np.repeat([1.0, 0.0], n)
    pairs = np.arange(4 * n).reshape(-1, 2)
    found = threshold_for(scores, scores > 0.5, pairs, precision=0.9)
    assert found.precision.value == 1
    assert found.threshold.value == 0.5  # half-way between the two kinds
    assert 0.95 < found.precision.low < 0.97  # Wilson: n / (n + z²)
    few = threshold_for(scores[90:110], scores[90:110] > 0.5, pairs[90:110], precision=0.9)
    assert few.threshold.high == np.inf
    one = np.column_stack([np.zeros(2 * n, int), np.arange(1, 2 * n + 1)])
    assert threshold_for(scores, scores > 0.5, one, precision=0.9).precision.low < 0.5


def balanced(rng, n, apart=2.4):
    """Independent pairs, half of which match."""
    same = rng.permutation(np.arange(n) % 2 == 0)
    return apart * same + rng.standard_normal(n), same, np.arange(2 * n).reshape(-1, 2)


DRAWS = [40, pytest.param(500, marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("n", "share"), [(30, None), (100, None), (300, None), (300, 0.2)])
@pytest.mark.filterwarnings("ignore:.* too few for it")
def test_new_pairs_have_the_precision_that_was_asked_for(n, share, draws):
    wanted, odds = {"precision": 0.9, "match_share": share}, 4.0 if share else 1.0
    found = []
    for seed in range(draws):
        threshold = threshold_for(*balanced(np.random.RandomState(seed), n), **wanted)
        t, f = (norm.sf(threshold.threshold.value, apart) for apart in (2.4, 0.0))
        found.append(t / (t + odds * f))
    assert np.mean(found) > 0.89


@pytest.mark.slow
@pytest.mark.every(2)
@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("n_records", [40, 60])
@pytest.mark.filterwarnings("ignore:.* too few for it")
def test_pairs_that_share_records_have_that_precision_too(n_records, draws):
    wanted = {"precision": 0.9, "two_tables": True}
    found = [
        threshold_for(*drawn(np.random.RandomState(seed), n_records), **wanted).threshold.value
        for seed in range(draws)
    ]
    assert true_precision(np.array(found)).mean() > 0.89


@pytest.mark.every(6)
@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("n", [30, 100, 300])
def test_new_matches_have_the_recall_that_was_asked_for(n, draws):
    found = [
        threshold_for(*balanced(np.random.RandomState(seed), n), recall=0.9).threshold.value
        for seed in range(draws)
    ]
    assert 0.89 < norm.sf(np.array(found), 2.4).mean() < 0.9 + 2 / n


def test_pairs_too_few_for_a_promise_say_what_to_expect():
    scores, same, pairs = drawn(np.random.RandomState(0), 6)
    with pytest.warns(UserWarning, match="6 matches and 24 others are too few for it: expect 0"):
        found = threshold_for(scores, same, pairs, precision=0.9, two_tables=True)
    assert found.threshold.value > scores[~same].max()
    with pytest.warns(UserWarning, match=r"Got recall=0\.9, but .* expect 0\.857"):
        found = threshold_for(scores, same, pairs, recall=0.9, two_tables=True)
    assert found.recall.value == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Got nothing wanted"),
        ({"precision": 0.9, "recall": 0.9}, "Got precision, recall wanted"),
        ({"precision": 1.5}, "a number > 0 and < 1"),
        ({"recall": 0.5, "match_share": 2.0}, "Got match_share"),
        ({"recall": 0.5, "confidence": 1.0}, "Got confidence"),
    ],
    ids=["nothing", "two", "above one", "share", "confidence"],
)
def test_what_cannot_be_wanted_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        threshold_for(*drawn(np.random.RandomState(0)), two_tables=True, **options)


def test_a_precision_that_no_threshold_reaches_is_refused():
    scores, same, pairs = drawn(np.random.RandomState(0))
    with pytest.raises(ValueError, match="no threshold reaches it"):
        threshold_for(-scores, same, pairs, precision=0.9, match_share=1e-3)


def test_pairs_of_one_kind_have_no_threshold():
    with pytest.raises(ValueError, match="some of both kinds"):
        threshold_for([0.1, 0.2], [True, True], [[0, 1], [1, 2]], recall=0.5)
    with pytest.raises(ValueError, match="finite"):
        threshold_for([0.1, np.nan], [True, False], [[0, 1], [1, 2]], recall=0.5)


def test_cluster_scores_are_those_counted_pair_by_pair():
    rng = np.random.RandomState(0)
    predicted, true = rng.randint(6, size=(2, 40))
    both = list(itertools.combinations(range(40), 2))
    p = np.array([predicted[i] == predicted[j] for i, j in both])
    t = np.array([true[i] == true[j] for i, j in both])
    found = cluster_scores(predicted, true)
    assert found.precision == pytest.approx(np.sum(p & t) / p.sum())
    assert found.recall == pytest.approx(np.sum(p & t) / t.sum())
    of_record = [
        (
            np.mean(true[predicted == predicted[i]] == true[i]),
            np.mean(predicted[true == true[i]] == predicted[i]),
        )
        for i in range(40)
    ]
    assert (found.b3_precision, found.b3_recall) == pytest.approx(np.mean(of_record, axis=0))
    assert cluster_scores(true, true) == (1, 1, 1, 1, 1, 1)
    assert cluster_scores(np.arange(4), np.arange(4)).f1 == 1


def test_pairs_at_the_threshold_are_taken_for_matches():
    scores, same = np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, True, False, True])
    sample = _thresholds._Sample(scores, same, np.arange(8).reshape(4, 2), 0.5, False)
    assert _thresholds._recall_at(sample, 2.0, 1.96).value == pytest.approx(2 / 3)
    assert _thresholds._recall_at(sample, 2.1, 1.96).value == pytest.approx(1 / 3)
    assert _thresholds._recall_at(sample, 0.0, 1.96).value == 1.0
    found = _thresholds._recall_at(sample._replace(same=np.zeros(4, dtype=bool)), 2.0, 1.96)
    assert tuple(found) == (0.0, 0.0, 1.0)


def test_one_wish_is_expected_and_others_are_named():
    scores, same, pairs = [3.0, 2.0, 1.0], [1, 0, 1], [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="Got nothing wanted, but expected one of"):
        threshold_for(scores, same, pairs)
    with pytest.raises(ValueError, match="Got precision, recall wanted"):
        threshold_for(scores, same, pairs, precision=0.9, recall=0.9)
