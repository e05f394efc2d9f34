"""How long a fit takes, said before it begins."""

import time

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    ITML,
    KPCA,
    LDA,
    LMNN,
    MLKR,
    NCA,
    Kernelized,
    MetricClassifier,
    MetricRegressor,
    Nystroem,
)
from kernelmetric.cli._options import Wanted
from kernelmetric.cli._study import Study
from kernelmetric.compute import rates
from kernelmetric.compute.rates import Rates
from kernelmetric.kernelized import _costs
from kernelmetric.learners import _checks
from kernelmetric.selection import _many_rows
from kernelmetric.tables import ColumnPlan

RATES = Rates(product=4e-11, value=1e-8, feature=2e-10, cell=2e-9)


@pytest.fixture
def known_rates(monkeypatch):
    for module in (_costs, _checks, _many_rows):
        monkeypatch.setattr(module, "rates", lambda: RATES)
    monkeypatch.setattr(_costs, "choice_rate", lambda: 6e-4)


@pytest.mark.parametrize(
    "estimator",
    [
        Kernelized(LMNN()),
        Kernelized(NCA()),
        Kernelized(LDA()),
        Kernelized(MLKR()),
        Kernelized(NCA(), "rbf", KPCA(50)),
        Kernelized(NCA(), "rbf", Nystroem(100)),
        Kernelized(LMNN(), "aligned"),
        MetricClassifier(),
        MetricRegressor(),
        MetricClassifier(LMNN()),
        MetricClassifier(make_pipeline(StandardScaler(), Kernelized(LMNN())), cv=3),
    ],
)
def test_more_rows_and_more_features_take_longer(estimator, known_rates):
    sizes = (600, 1_000, 2_000, 4_000, 50_000, 200_000, 1_000_000)
    times = [estimator.estimate_time(n, 30) for n in sizes]
    assert all(isinstance(seconds, float) and seconds > 0 for seconds in times)
    assert np.all(np.diff(times) > 0)
    assert estimator.estimate_time(1_000, 300) >= estimator.estimate_time(1_000, 5)


def test_learners_from_pairs_have_a_rough_estimate(known_rates):
    assert 10 < Kernelized(ITML()).estimate_time(1_500, 10) < 100


def test_coordinates_that_know_no_labels_leave_more_to_learn(known_rates):
    chosen, plain = (_costs.learner_seconds(NCA(), 2_500, 200, plain=p) for p in (False, True))
    assert plain > 3 * chosen
    assert _costs.learner_seconds(NCA(5), 2_500, 200, plain=True) < plain
    landmarks = Kernelized(NCA(), "rbf", Nystroem(200)).estimate_time(2_500, 30)
    assert 4 < landmarks < 16  # 7.6 s of a core with such rates


def test_a_learner_of_some_rows_does_not_see_the_others(known_rates):
    some, more = (_costs.learner_seconds(LMNN(), n, 34) for n in (5_000, 50_000))
    capped, n = Kernelized(LMNN()).estimate_time(50_000, 10), 50_000
    without = Kernelized(LDA()).estimate_time(n, 10)
    assert capped - without < 2 * some < more


def test_folds_take_as_many_fits_as_they_need(known_rates):
    one = Kernelized(NCA()).estimate_time(400, 5)
    assert 3 * one < MetricClassifier().estimate_time(400, 5) < 7 * one
    assert MetricClassifier().estimate_time(600, 5) < 2 * Kernelized(NCA()).estimate_time(600, 5)


def test_the_machine_is_measured_once(monkeypatch):
    first = Kernelized(LMNN()).estimate_time(1_000, 10)
    for module in (_costs, rates):
        monkeypatch.setattr(module, "fastest", lambda *arguments: pytest.fail("measured again"))
    assert Kernelized(LMNN()).estimate_time(1_000, 10) == first
    assert MetricClassifier().estimate_time(1_000, 10) > 0


@pytest.mark.parametrize("estimator", [Kernelized(LMNN()), MetricClassifier(), MetricRegressor()])
@pytest.mark.parametrize("shape", [(0, 3), (-5, 3), (10.5, 3), (10, 0), (10, "3"), (True, 3)])
def test_sizes_without_sense_are_refused(estimator, shape):
    with pytest.raises(ValueError, match=r"Got n_(samples|features)=.* expected an integer"):
        estimator.estimate_time(*shape)


def test_parts_without_sense_are_refused():
    with pytest.raises(ValueError, match="Got recipe=3"):
        Kernelized(LDA(), recipe=3).estimate_time(10, 2)
    with pytest.raises(ValueError, match="has no transform"):
        MetricClassifier(KNeighborsClassifier()).estimate_time(10, 2)


@pytest.mark.slow
def test_an_estimate_is_of_the_size_of_a_fit():
    X, y = make_classification(2_000, 10, n_informative=5, flip_y=0.1, random_state=0)
    metric = Kernelized(LMNN())
    estimate = metric.estimate_time(*X.shape)
    begun = time.process_time()
    metric.fit(X, y)
    assert 0.1 < estimate / (time.process_time() - begun) < 10


def test_the_command_line_says_how_long_it_takes(known_rates):
    def said(n_rows, metric, pairs=None):
        plan = ColumnPlan(tuple(f"x{j}" for j in range(10)), (), (), ())
        study = Study(None, None, np.arange(n_rows), plan, metric, None, pairs, (), Wanted())
        return study.forecast(n_rows)

    assert said(50_000, Kernelized(LMNN()))[0].startswith("To learn from 50,000 rows takes")
    assert "minutes" in said(1_000_000, Kernelized(LMNN()))[0]
    assert said(100, Kernelized(LMNN())) == said(2_001, Kernelized(LMNN())) == []
    assert said(50_000, Kernelized(LMNN()), pairs=[(0, 1)]) == []
    assert "minutes" in said(50_000, LMNN())[0]
