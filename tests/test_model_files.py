"""Model files of every schema so far: they are read for ever, and answer what they answered."""

import json
import math
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from kernelmetric import RBF, Pairs, load, save
from kernelmetric.shipping import SavedFileError
from kernelmetric.shipping._container import SCHEMA, pack, unpack
from kernelmetric.shipping._tree import TreeReader, TreeWriter

FOLDER = Path(__file__).parent / "models"
FILES = sorted(path.name for path in FOLDER.glob("*.metric"))


def loaded(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of other versions, then and now
        return load(FOLDER / file)


def queries():
    """The points of ``models/make.py``, which need no generator of random numbers here."""
    return np.array([[0.15, 0.38], [0.11, -0.98], [1.65, 2.16], [1.23, 1.2], [0.61, 0.7]])


def distances(metric, X):
    if hasattr(metric, "steps"):
        return metric[-1].pairwise_distances(metric[:-1].transform(X))
    columns = getattr(metric, "feature_names_in_", None)
    return metric.pairwise_distances(X if columns is None else pd.DataFrame(X, columns=columns))


def test_there_are_files_of_every_schema():
    schemas = {int(file.split("_")[1]) for file in FILES}
    assert schemas == set(range(1, SCHEMA + 1))


@pytest.mark.parametrize("file", FILES)
def test_an_old_file_answers_what_it_answered(file):
    answers = json.loads((FOLDER / f"schema_{file.split('_')[1]}.json").read_text())
    expected = np.array(answers[file])
    assert expected.shape == (5, 5)
    assert expected.max() > 0
    found = distances(loaded(file), queries())
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_an_old_file_gives_back_every_kind_of_thing():
    notes = loaded("schema_1_notes.metric").notes_
    assert notes["floats"][0] == 0.1
    assert math.isnan(notes["floats"][1])
    assert notes["floats"][2:] == [math.inf, -math.inf]
    assert notes["slice"] == slice(1, None, 2)
    assert notes["dtype"] == np.dtype("float32")
    assert notes["type"] is np.float32
    assert type(notes["scalar"]) is np.int64
    assert notes["scalar"] == 5
    assert notes["tuple"] == (1, "two", None, True)
    assert list(notes)[6] == 3
    assert notes[3].shape == (3, 1)
    assert notes[3].ravel().tolist() == ["elm", None, 2.5]
    assert not notes["frozen"].flags.writeable
    assert notes["frozen"].tolist() == [0, 1, 2]
    assert notes["text"].tolist() == ["elm", "oak"]
    assert notes["text"].flags.writeable
    assert notes["order"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert notes["order"].flags.f_contiguous
    assert sparse.isspmatrix(notes["sparse"])
    assert notes["sparse"].toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    # The numbers that every generator of this seed gives, by the promise of NumPy.
    assert notes["random"].randint(0, 1000, 3).tolist() == [684, 559, 629]


def test_the_written_format_is_what_the_guide_says(tmp_path):
    """A renamed key, of reader and writer at once, would leave all old files behind."""
    writer = TreeWriter()
    pairs = Pairs([[0, 1]], [[1, 2]], n_samples=3)
    tree = writer.node(
        [RBF(gamma=0.5), pairs, (1,), {"a": 2}, math.nan, slice(3), np.float32(0.5), np.float64],
        "metric",
    )
    assert tree == [
        {"object": ["kernelmetric.RBF", {"gamma": 0.5, "sigma": None}]},
        {
            "object": [
                "kernelmetric.Pairs",
                {
                    "similar": {"frozen": 0},
                    "dissimilar": {"frozen": 1},
                    "n_samples": 3,
                    "labelled": False,
                },
            ]
        },
        {"tuple": [1]},
        {"dict": [["a", 2]]},
        {"float": "nan"},
        {"slice": [None, 3, None]},
        {"scalar": ["<f4", 0.5]},
        {"type": "float64"},
    ]
    path = tmp_path / "a.metric"
    path.write_bytes(pack(tree, writer.arrays, {"python": "3"}))
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert json.loads(archive.read("manifest.json")).keys() == {
            "format",
            "schema",
            "versions",
            "sha256",
        }
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == ["manifest.json", "tree.json", "arrays/0.npy", "arrays/1.npy"]
    content = unpack(path)
    assert content.versions == {"python": "3"}
    again = TreeReader(content.arrays).value(content.tree)
    assert again[1].similar.tolist() == [[0, 1]]


def test_a_file_beyond_the_limits_of_an_old_archive_is_read(monkeypatch, tmp_path):
    """Archives over 4 GiB end in another way; here the limit is 1000 bytes."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    writer = TreeWriter()
    tree = writer.node([np.arange(500.0)], "metric")
    path = tmp_path / "a.metric"
    path.write_bytes(pack(tree, writer.arrays, {}))
    assert b"PK\x06\x06" in path.read_bytes()
    np.testing.assert_array_equal(unpack(path).arrays[0], np.arange(500.0))
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(SavedFileError):
        unpack(path)


def test_arrays_of_another_byte_order_become_ours(tmp_path):
    writer = TreeWriter()
    given = np.arange(4, dtype=">f8" if np.dtype("f8").newbyteorder("=").str == "<f8" else "<f8")
    path = tmp_path / "a.metric"
    path.write_bytes(pack(writer.node([given], "metric"), writer.arrays, {}))
    (array,) = unpack(path).arrays
    assert array.dtype.isnative
    assert array.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_the_files_can_be_saved_again(tmp_path):
    for file in FILES:
        again = loaded(file)
        assert save(again, tmp_path / file).stat().st_size > 1000
