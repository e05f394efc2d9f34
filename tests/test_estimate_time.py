"""How long a fit takes, said before it begins."""

import sys
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
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
from kernelmetric.cli import _study
from kernelmetric.cli._options import Wanted
from kernelmetric.cli._study import Study
from kernelmetric.compute import _device, rates
from kernelmetric.compute.rates import Rates
from kernelmetric.compute.watch import within
from kernelmetric.kernelized import _costs
from kernelmetric.learners import _checks
from kernelmetric.prediction import _features
from kernelmetric.selection import RidgeKPCA, _many_rows
from kernelmetric.tables import ColumnPlan, plan_columns

RATES = Rates(product=4e-11, value=1e-8, feature=2e-10, cell=2e-9)


@pytest.fixture
def known_rates(monkeypatch):
    for module in (_costs, _checks, _many_rows, _features):
        monkeypatch.setattr(module, "rates", lambda device=None: RATES)
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


EASY = RidgeKPCA(rows="boundary")


def test_classes_that_are_easily_told_apart_take_less(known_rates):
    hard, easy = (
        m.estimate_time(46_400, 9) for m in (Kernelized(LMNN()), Kernelized(LMNN(), space=EASY))
    )
    assert 4 < easy < hard / 2  # 7.3 s of a core for shuttle, whose boundary rows do
    predictor = MetricClassifier(Kernelized(NCA(), space=EASY), use_features=True)
    assert predictor.estimate_time(46_400, 9) < 2 * easy  # one fit is enough, and trees are small
    assert predictor.estimate_time(46_400, 9) < 0.6 * MetricClassifier().estimate_time(46_400, 9)


def test_lists_of_impostors_grow_with_the_rows_and_not_with_their_pairs(known_rates):
    few, many = (Kernelized(LMNN(), "rbf", KPCA(50)).estimate_time(n, 30) for n in (2_500, 5_000))
    assert 0.8 < few < 3.2  # 1.6 s of a core with such rates
    assert 1.6 < many < 6.4  # 3.3 s


@pytest.fixture
def device(monkeypatch):
    """A device that is so many times as fast as the host, and the host's own pace."""
    pace = {"times": 20.0}

    def rates_of(place):
        return RATES if place is None else Rates(*(rate / pace["times"] for rate in RATES))

    monkeypatch.setattr(rates, "_measured", rates_of)
    monkeypatch.setattr(_costs, "choice_rate", lambda: 6e-4)
    monkeypatch.setattr(_study, "found_device", lambda: "cuda")
    monkeypatch.setattr(_study, "use_device", lambda name: within(_device._DEVICE, name))
    return pace


def test_on_a_device_that_is_in_use_its_own_pace_counts(device):
    on_host = Kernelized(NCA()).estimate_time(100_000, 30)
    with within(_device._DEVICE, "cuda"):
        assert Kernelized(NCA()).estimate_time(100_000, 30) < on_host / 2
        trees = _features.feature_seconds(100_000, 30)  # they grow on the host
        assert MetricClassifier().estimate_time(100_000, 30) > trees
    assert Kernelized(NCA()).estimate_time(100_000, 30) == on_host
    for learner, faster in ((LMNN(), True), (ITML(), False), (LDA(), False)):
        pair = [_costs.learner_seconds(learner, 5_000, 30, device=d) for d in ("cuda", None)]
        assert (pair[0] < pair[1]) == faster  # the others learn on the host


def test_rates_are_measured_on_the_device_that_is_named(monkeypatch):
    used = []

    @contextmanager
    def use(name):
        used.append(name)
        yield

    monkeypatch.setattr(rates, "use_device", use)
    monkeypatch.setattr(rates, "_SIZES", (8, 16))
    monkeypatch.setattr(rates, "_BLOCKS", ((2, 3), (4, 5)))
    measured = rates._measured.__wrapped__  # what is measured here is for no other test
    assert all(rate > 0 for rate in measured("a device")[:2])
    assert used == ["a device"]
    assert measured(None).product > 0
    assert used == ["a device"]


@pytest.mark.torch
def test_torch_is_measured_by_the_same_run():
    torch = pytest.importorskip("torch")
    measured = rates.rates(torch.device("cpu"))
    assert all(np.isfinite(measured))
    assert measured.product > 0
    assert measured is not rates.rates()


def test_no_device_is_looked_for_without_torch_or_beside_one(monkeypatch):
    with within(_device._DEVICE, "cuda"):
        assert _device.found_device() is None
    monkeypatch.setitem(sys.modules, "torch", None)
    assert _device.found_device() is None

    def broken(name):
        raise ImportError("libcudnn.so.9: cannot open shared object file")

    monkeypatch.setattr(_device, "find_spec", lambda name: "a spec")
    monkeypatch.setattr(_device, "import_module", broken)
    assert _device.found_device() is None


def study_of(n_rows, metric, pairs=None):
    plan = ColumnPlan(tuple(f"x{j}" for j in range(10)), (), (), ())
    frame = pd.DataFrame(np.zeros((n_rows, 10))).add_prefix("x")  # some rows tell nothing
    rows = np.arange(n_rows)
    return Study(None, frame, rows, plan, metric, rows % 2, pairs, (), Wanted())


def test_the_command_line_names_a_device_that_is_faster(device, monkeypatch):
    metric = Kernelized(LMNN())
    said = study_of(100_000, metric).forecast(300_000)
    assert said[1].startswith("With --device cuda it would take about")
    assert len(study_of(5_000, metric).forecast(5_000)) == 1  # it takes seconds as it is
    device["times"] = 1.2
    assert len(study_of(100_000, metric).forecast(300_000)) == 1
    device["times"] = 20.0

    def full(name):
        raise ValueError("Got device 'cuda', but torch cannot compute there")

    monkeypatch.setattr(_study, "use_device", full)
    assert study_of(100_000, metric).forecast(300_000) == said[:1]


@pytest.mark.slow
def test_the_command_line_looks_whether_classes_are_easily_told_apart(known_rates):
    rng = np.random.RandomState(0)
    y = np.sort(rng.randint(3, size=5_000))  # files are often sorted by their classes
    frame = pd.DataFrame(rng.standard_normal((5_000, 4))).add_prefix("x")

    def said(frame, kernel="auto"):
        plan = plan_columns(frame.assign(y=y).iloc[::10].astype(str), label="y")
        given = Study(
            None, frame.astype(str), np.arange(len(y)), plan, Kernelized(LMNN(), kernel), y,
            None, (), Wanted(kernel=kernel),
        )  # fmt: skip
        return given.forecast(40_000, 50_000)[0]

    assert " to " not in said(frame).removeprefix("To ")
    apart = frame.assign(x0=frame["x0"] + 9 * y)
    assert " to " in said(apart).removeprefix("To ")
    assert " to " not in said(apart, kernel="rbf").removeprefix("To ")


@pytest.mark.slow
def test_the_command_line_says_how_long_it_takes(known_rates):
    def said(n_rows, metric, pairs=None):
        return study_of(n_rows, metric, pairs).forecast(n_rows)

    assert said(50_000, Kernelized(LMNN()))[0].startswith("To learn from 50,000 rows takes")
    assert "minutes" in said(1_000_000, Kernelized(LMNN()))[0]
    assert said(100, Kernelized(LMNN())) == said(2_001, Kernelized(LMNN())) == []
    assert said(50_000, Kernelized(LMNN()), pairs=[(0, 1)]) == []
    assert "minutes" in said(50_000, LMNN())[0]
