"""Objects in use: the smallest ones, shares of parts, intervals, and the command line."""

import importlib.util

import numpy as np
import pytest

from kernelmetric import LDA, MLKR, Kernelized, MetricClassifier, MetricRegressor
from kernelmetric.inspection import part_shares
from kernelmetric.kernels import (
    Columns,
    Convolutions,
    FromDistance,
    GlobalAlignment,
    MeanEmbedding,
    NGrams,
    WeisfeilerLehman,
)
from object_examples import CLASSES, EXAMPLES, SharedLetters, graphs, series, sets, words


@pytest.mark.parametrize(
    ("kernel", "smallest"),
    [
        (NGrams(2), ["", "a"]),
        (NGrams(2, similarity="minmax"), ["", "a"]),
        (NGrams(1, unit="words"), ["", " ", "word"]),
        (GlobalAlignment(), [np.array([[1.0], [0.0]]), np.array([[2.0, 2.0], [1.0, 1.0]])]),
        (Convolutions(84), [np.array([[1.0], [0.0]]), np.array([[2.0, 2.0], [1.0, 1.0]])]),
        (MeanEmbedding(), [np.array([[0.5, 1.0]])]),
        (WeisfeilerLehman(), [([], ["C"]), ([], [])]),
        (SharedLetters(), [""]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_smallest_objects_have_values(kernel, smallest):
    usual = next(make for known, (make, _) in EXAMPLES.items() if type(known) is type(kernel))()
    bound = kernel.bind(usual)
    together = [*usual[:4], *smallest]
    K = bound(together)
    assert np.all(np.isfinite(K))
    assert pytest.approx(K.T) == K
    assert np.linalg.eigvalsh(K).min() > -1e-9
    assert bound.diag(together) == pytest.approx(np.diag(K))
    assert bound(smallest, usual[:4]) == pytest.approx(K[4:, :4])


def test_series_whose_lengths_differ_by_more_than_the_window_share_nothing():
    rng = np.random.RandomState(0)
    lengths = np.array([2, 3, 5, 6, 7, 9, 11, 12, 20])
    items = [rng.standard_normal(n) for n in lengths]
    for window in (1, 2, 3, 4):
        K = GlobalAlignment(width=1.0, window=window)(items)
        far = np.abs(lengths[:, None] - lengths) >= window
        assert np.array_equal(far & ~np.eye(len(items), dtype=bool), K == 0)
        assert GlobalAlignment(width=1.0, window=window)(items, items[:3]) == pytest.approx(
            K[:, :3]
        )


# --- which parts matter ---------------------------------------------------------------------------


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("kernel", "make", "n_parts"),
    [
        (NGrams(2), words, len),
        (GlobalAlignment(), series, lambda item: 10),
        (MeanEmbedding(), sets, lambda item: len(item) if len(item) > 1 else 0),
        (WeisfeilerLehman(2), graphs, lambda item: len(item[1])),
        (FromDistance("dtw"), series, lambda item: 10),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_share_is_what_hiding_the_part_changes(kernel, make, n_parts):
    objects = make()
    metric = Kernelized(LDA(1), kernel=kernel).fit(objects, CLASSES)
    i = next(i for i, item in enumerate(objects) if n_parts(item) > 1)
    found = part_shares(metric, objects[i], objects[i - 1])
    assert len(found.parts) == len(found.shares) == n_parts(objects[i])
    whole = metric.pairwise_distances([objects[i]], [objects[i - 1]])[0, 0] ** 2
    assert found.value == pytest.approx(whole)
    parts = list(metric.kernel_.parts(metric.kernel_.points([objects[i]])[0]))
    _, hidden = parts[0]
    less = metric.pairwise_distances([hidden], [objects[i - 1]])[0, 0] ** 2
    assert found.shares[0] == pytest.approx(whole - less)
    assert [name for name, _ in found.ranked()] == [
        found.parts[j] for j in np.argsort(-np.abs(found.shares), kind="stable")
    ]


@pytest.mark.slow
def test_the_part_that_makes_a_prediction_is_found():
    rng = np.random.RandomState(0)
    texts = ["".join(rng.choice(list("abcdef"), 8)) for _ in range(60)]
    texts = [text[:4] + ("X" if i % 2 else "Y") + text[4:] for i, text in enumerate(texts)]
    y = np.arange(60) % 2
    model = MetricClassifier(Kernelized(LDA(), kernel=NGrams(1))).fit(texts, y)
    found = part_shares(model, "abcdXefab")
    assert found.ranked()[0][0] == "X at 4"
    assert found.value == pytest.approx(model.predict_proba(["abcdXefab"])[0, 1])
    model = MetricRegressor(Kernelized(MLKR(), kernel=NGrams(1))).fit(texts, y.astype(float))
    found = part_shares(model, "abcdXefab")
    assert found.ranked()[0][0] == "X at 4"
    assert found.value == pytest.approx(model.predict(["abcdXefab"])[0])


def test_shares_that_nobody_can_tell_are_refused():
    metric = Kernelized(LDA(1), kernel=SharedLetters()).fit(words(), CLASSES)
    with pytest.raises(ValueError, match="an object that it can hide parts of"):
        part_shares(metric, "word", "other")
    metric = Kernelized(LDA(1), kernel=NGrams(2)).fit(words(), CLASSES)
    with pytest.raises(ValueError, match="Got no other object"):
        part_shares(metric, "word")
    model = MetricClassifier(metric).fit(words(), CLASSES)
    with pytest.raises(ValueError, match="Got other beside a predictor"):
        part_shares(model, "word", "other")


# --- predictions ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_intervals_hold_as_many_new_objects_as_they_promise():
    rng = np.random.RandomState(0)
    texts = ["".join(rng.choice(list("acgt"), 30)) for _ in range(900)]
    y = np.array([t.count("ac") + 0.5 * t.count("gt") for t in texts])
    y += 0.5 * rng.standard_normal(len(y))
    model = MetricRegressor(Kernelized(MLKR(), kernel="ngrams")).fit(texts[:400], y[:400])
    ends = model.predict_interval(texts[400:], 0.9)
    inside = np.mean((ends[:, 0] <= y[400:]) & (y[400:] <= ends[:, 1]))
    assert 0.86 < inside < 0.95
    assert np.corrcoef(model.predict(texts[400:]), y[400:])[0, 1] > 0.7


# --- the command line -----------------------------------------------------------------------------


def _table(path, column, values):
    rng = np.random.RandomState(0)
    rows = [f"{column},weight,kind"]
    for i, value in enumerate(values):
        rows.append(f"{value},{rng.uniform():.3f},{'ab'[i % 2]}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def _names(n):
    rng = np.random.RandomState(1)
    return ["".join(rng.choice(list("xyzuvw"), 7)) + ("anna", "paul")[i % 2] for i in range(n)]


def test_a_table_with_names_is_learned_saved_and_asked(tmp_path, run):
    _table(tmp_path / "a.csv", "name", _names(60))
    model = tmp_path / "a.km"
    run("fit", tmp_path / "a.csv", "--text", "name", "--label", "kind", "--out", model)
    run("predict", model, tmp_path / "a.csv", "--out", tmp_path / "p.csv")
    lines = (tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()
    place = lines[0].split(",").index("prediction") if "prediction" in lines[0] else 0
    right = [line.split(",")[place] == "ab"[i % 2] for i, line in enumerate(lines[1:])]
    assert np.mean(right) > 0.9
    found = run("neighbors", model, tmp_path / "a.csv", "--row", 1)
    assert "paul" in found.output  # the neighbours show the object itself


@pytest.mark.skipif(importlib.util.find_spec("rdkit") is None, reason="needs rdkit")
def test_a_table_with_molecules_is_learned(tmp_path, run):
    smiles = ["C" * (1 + i // 2) + ("O" if i % 2 else "N") for i in range(40)]
    _table(tmp_path / "a.csv", "smiles", smiles)
    run("fit", tmp_path / "a.csv", "--smiles", "smiles", "--label", "kind")


@pytest.mark.skipif(importlib.util.find_spec("rdkit") is not None, reason="rdkit is there")
def test_molecules_without_rdkit_say_what_to_install(tmp_path, run):
    with pytest.raises(ImportError, match=r"kernelmetric\[molecules\]"):
        Kernelized(LDA(1), kernel="molecules").fit(["CCO", "CCN"] * 10, CLASSES[:1].tolist() * 20)
    _table(tmp_path / "a.csv", "smiles", ["CCO", "CCN"] * 20)
    found = run("fit", tmp_path / "a.csv", "--smiles", "smiles", "--label", "kind")
    assert found.exit_code != 0
    assert "rdkit" in found.output


@pytest.mark.slow
def test_a_column_of_objects_stands_beside_numbers():
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra `pandas`")
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"name": _names(60), "kg": rng.uniform(size=60)})
    y = (np.arange(60) % 2) + 2 * (frame["kg"].to_numpy() > 0.5)
    kernel = Columns(["name"], NGrams(2)) + Columns(["kg"])
    model = MetricClassifier(Kernelized(LDA(), kernel=kernel)).fit(frame, y)
    alone = MetricClassifier(Kernelized(LDA(), kernel=NGrams(2))).fit(frame["name"], y)
    assert model.score(frame, y) > alone.score(frame["name"], y) + 0.1
