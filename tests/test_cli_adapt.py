"""kernelmetric adapt: vectors and matches in, an adapter and a page out."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")
pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `parquet`")

import pandas as pd
from click.testing import CliRunner

from kernelmetric import Adapter, load
from kernelmetric.cli import build_application
from kernelmetric.compute.watch import _STAGE

NOISE = np.array([1.5, 1.5, 0.1, 0.1, 0.1, 0.1])


@pytest.fixture
def files(tmp_path):
    """Documents with lists, queries with a column for each coordinate, pairs of row numbers."""
    rng = np.random.RandomState(0)
    things = rng.standard_normal((80, 6))
    Q, D = (things + NOISE * rng.standard_normal((80, 6)) for _ in range(2))
    names = [f"<b>thing {i}" for i in range(80)]
    pd.DataFrame({"name": names, "vector": list(D)}).to_parquet(tmp_path / "docs.parquet")
    pd.DataFrame(Q).rename(columns=str).assign(name=names).to_csv(tmp_path / "q.csv", index=False)
    pd.DataFrame({"q": range(60), "d": range(60)}).to_csv(tmp_path / "pairs.csv", index=False)
    return tmp_path, Q, D


def adapt(folder, *options, docs="docs.parquet", queries="q.csv", pairs="pairs.csv"):
    given = [folder / docs, "--queries", folder / queries, "--pairs", folder / pairs, *options]
    return CliRunner().invoke(build_application(), ["adapt", *map(str, given)])


def test_an_adapter_and_a_page_are_written(files):
    folder, Q, D = files
    result = adapt(folder, "--out", folder / "a.km", "--report", folder / "p.html")
    assert result.exit_code == 0, result.output
    assert "queries mended" in result.output
    same = np.column_stack([np.arange(60)] * 2)
    expected = Adapter().fit(Q, documents=D, pairs=same)
    np.testing.assert_allclose(load(folder / "a.km").transform(Q), expected.transform(Q), atol=1e-9)
    page = (folder / "p.html").read_text()
    assert "Mended" in page
    assert f"{expected.evaluation_.mended:,} queries were mended" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.slow
def test_files_of_numpy_and_pieces_of_parquet_give_the_same(files, monkeypatch):
    folder, Q, D = files
    np.save(folder / "d.npy", D)
    np.save(folder / "q.npy", Q)
    monkeypatch.setattr("kernelmetric.tables._pieces._PIECE_BYTES", 1_000)
    answers = [
        adapt(folder, "--json", *more, **given)
        for given, more in (
            ({"docs": "d.npy", "queries": "q.npy"}, ("--report", folder / "n.html")),
            ({}, ()),
        )
    ]
    assert answers[0].exit_code == 0, answers[0].output
    numbers = [json.loads(answer.output) for answer in answers]
    assert numbers[0]["after"] == pytest.approx(numbers[1]["after"])
    refused = adapt(folder, "--id", "name", docs="d.npy")
    assert refused.exit_code != 0
    assert "rows have no names" in " ".join(refused.output.split())
    pd.DataFrame({"v": [[1.0, 2.0], [3.0]]}).to_parquet(folder / "ragged.parquet")
    before = _STAGE.get()
    ragged = adapt(folder, docs="ragged.parquet")  # and its error, kept, holds no reading open
    assert "one length" in " ".join(ragged.output.split())
    assert _STAGE.get() is before


@pytest.mark.slow
def test_names_stand_for_rows_and_harm_no_page(files):
    folder, *_ = files
    names = [f"<b>thing {i}" for i in range(60)]
    pd.DataFrame({"q": names, "d": names, "w": 2.0}).to_csv(folder / "named.csv", index=False)
    wishes = ["--id", "name", "--json", "--report", folder / "p.html", "--side", "both"]
    result = adapt(folder, *wishes, pairs="named.csv")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["adapted"]
    assert said["after"]["recall@1"] > said["before"]["recall@1"]
    page = (folder / "p.html").read_text()
    assert "&lt;b&gt;thing" in page
    assert "<b>thing" not in page


def test_bad_files_are_refused_in_a_sentence(files):
    folder, *_ = files
    pd.DataFrame({"q": ["a"], "d": ["b"]}).to_csv(folder / "words.csv", index=False)
    pd.DataFrame({"q": [0]}).to_csv(folder / "one.csv", index=False)
    pd.DataFrame({"t": ["a"]}).to_csv(folder / "text.csv", index=False)
    pd.DataFrame({"v": [[1.0, 2.0], [1.0]]}).to_parquet(folder / "uneven.parquet")
    for wish, says in (
        ({"pairs": "words.csv"}, "say --id COL"),
        ({"pairs": "one.csv"}, "Got one column"),
        ({"docs": "text.csv"}, "Got no numbers"),
        ({"docs": "uneven.parquet"}, "vectors of one length"),
        ({"docs": "missing.parquet"}, "missing.parquet"),
    ):
        result = adapt(folder, **wish)
        assert result.exit_code != 0
        assert says in " ".join(result.output.split()), result.output
    for options, says in (
        (["--id", "nobody"], "no column 'nobody'"),
        (["--vector", "name"], "expected vectors of one length"),
        (["--out", folder / "q.csv"], "would be lost"),
        (["--id", "name"], "no query named '0'"),
    ):
        result = adapt(folder, *options)
        assert result.exit_code != 0
        assert says in " ".join(result.output.split()), result.output
