"""The benchmark on real tables: what it registers, measures, compares and tries."""

import sys
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `pandas`")

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def modules(monkeypatch):
    """The modules of the benchmark, imported for one test."""
    names = ("real_tables", "table_methods", "table_page", "table_robust", "tables")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = {name: __import__(name) for name in names}
    yield found
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "size": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0],
            "seen": [True, False, True, False, True, False],
            "colour": ["red", "blue", None, "red", "blue", "green"],
        }
    )


def test_the_name_alone_says_where_a_table_belongs(modules):
    real = modules["real_tables"]
    names = [*real.CLASSES, *real.NUMBERS]
    assert len(names) == len(set(names))
    parts = [real.part_of(name) for name in real.CLASSES]
    assert parts.count("judge") >= len(parts) / 2
    assert {real.part_of("AER/HMDA"), real.part_of("AER/HMDA")} == {"judge"}
    for target, hidden in (real.CLASSES | real.NUMBERS).values():
        assert target not in hidden


def test_peers_get_frames_that_they_can_read(modules, frame):
    methods = modules["table_methods"]
    new = frame.assign(colour=["violet", None, "red", "blue", "green", "red"])
    A = methods.one_hot().fit(frame).transform(new)
    assert np.isfinite(A).all()
    assert A.shape == (6, 2 + 4)  # two numbers; three colours, and gaps
    assert A[0, 2:].sum() == 0.0  # violet is none of them
    with_types = methods.Categories().fit(frame).transform(new)
    assert with_types["colour"].isna().tolist() == [True, True, False, False, False, False]
    filled = methods.Filled().fit(frame).transform(frame)
    assert filled["size"][2] == 4.0
    assert not filled.isna().any().any()


def test_measures_know_the_rare_class(modules):
    class Model:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X):
            return np.stack([1 - X, X], axis=1)

        def predict(self, X):
            return self.classes_[(X > 0.5).astype(int)]

    y = np.array(["no", "no", "no", "yes"])
    found = modules["tables"].scores(Model(), np.array([0.1, 0.2, 0.6, 0.5]), y, np.repeat(y, 25))
    assert found["accuracy"] == 0.5
    assert found["balanced"] == pytest.approx(1 / 3, abs=1e-5)
    assert found["auc"] == pytest.approx(2 / 3, abs=1e-5)
    assert found["precision"] == 0.5
    assert found["decided"] == pytest.approx(5 / 6, abs=1e-5)  # from a quarter on it is "yes"


def test_wins_and_losses_count_only_tables_of_both(modules):
    page = modules["table_page"]
    cells = []
    values = {"AER/HMDA": (0.9, 0.8), "Ecdat/HI": (0.7, 0.75), "Ecdat/Tuna": (0.6, None)}
    for table, pair in values.items():
        for method, auc in zip(("metric", "forest"), pair, strict=True):
            if auc is not None:
                what = dict.fromkeys(page.MEASURES, auc) | {"seconds": 1.0}
                cells.append({"table": table, "size": 1500, "seed": 0, "method": method} | what)
    cells.append({"table": "Ecdat/Car", "size": 1500, "seed": 0, "method": "metric", "error": "x"})
    found = page.means(cells, "classes", 1500, "judge")
    assert page.against(found, "metric", "forest", "auc")[:3] == (1, 0, 1)
    assert page.against(found, "metric", "forest", "log_loss")[:3] == (1, 0, 1)
    methods, others, tables = page.comparable(found, ["metric", "forest"])
    assert (methods, others) == (["metric", "forest"], [])
    assert tables == ["AER/HMDA", "Ecdat/HI"]


def test_trials_tell_a_refusal_from_a_crash(modules, monkeypatch):
    robust = modules["table_robust"]

    class Constant:
        def fit(self, X, y):
            self.columns = list(X.columns)
            return self

        def predict(self, X):
            if list(X.columns) != self.columns:
                raise ValueError("another order")
            if X.isna().any().any():
                raise KeyError("a gap")
            return X.iloc[:, 0].to_numpy() * len(X)

    rows = pd.DataFrame(np.arange(40.0).reshape(10, 4), columns=list("abcd"))
    monkeypatch.setattr(robust, "split", lambda *_: (rows, rows["a"].to_numpy(), rows, None))
    monkeypatch.setitem(robust.METHODS, "constant", lambda _: Constant())
    found = robust.tried("Ecdat/Computers", "constant")
    outcomes = {title: outcome for title, (outcome, _) in found.items()}
    assert outcomes["predicted in another order"] == "refused"
    assert outcomes["first column emptied"] == "crashed"
    assert outcomes["trained and predicted in another order"] == "differs"
    assert outcomes["names never seen"] == "well"
