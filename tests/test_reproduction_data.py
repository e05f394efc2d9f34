"""The papers' data sets: every source is checked."""

import gzip
import hashlib
import json
import logging
import os
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlparse

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from reproduction import sources
from reproduction.datasets import DataUnavailableError, _find, load
from reproduction.sources import ChecksumError, content_digest, registry

REGISTRY = registry()
DATA = os.environ.get("KERNELMETRIC_DATA")
needs_files = pytest.mark.skipif(
    not DATA, reason="needs the data files: set KERNELMETRIC_DATA to their folder"
)
WITH_FILE = [name for name, entry in REGISTRY.items() if entry.file]
WITH_OPENML = [name for name, entry in REGISTRY.items() if entry.openml]
UCI_WINE_CONTENT = "d61dfa3872f977cbd58617669c496aaf3d266d122fb82ca9595f73ebe6443993"


def replace(entry, **changed):
    return Bunch(**(entry | changed))


@pytest.fixture
def no_folder(no_network, monkeypatch):
    """No data folder, an empty scikit-learn data home, and no network."""
    monkeypatch.delenv("KERNELMETRIC_DATA", raising=False)


# -- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGISTRY)
def test_the_table_agrees_with_itself(name):
    entry = REGISTRY[name]
    assert not entry.features or len(entry.features.split()) == entry.n_features
    assert len(entry.classes) == len(entry.counts) > 1
    assert entry.file is not None or entry.bundled is not None
    assert (len(entry.sha256) == 64) == (entry.file is not None)
    if entry.openml is not None:
        assert len(set(entry.openml.classes)) == len(entry.counts)
        assert len(entry.openml.content) == 64


def test_names_are_forgiving_and_unknown_ones_get_a_hint(no_folder):
    assert not {alias for entry in REGISTRY.values() for alias in entry.aliases} & set(REGISTRY)
    assert load("Wine").name == "wine"
    assert _find("M-USPS").name == "m_usps"
    assert _find("ionos").name == "ionosphere"
    with pytest.raises(ValueError, match=r"Got name='ionospher', .* Did you mean 'ionosphere'"):
        load("ionospher")


# -- the content checksum -------------------------------------------------------------------------


def test_content_digest_ignores_row_order_and_round_off_and_sees_everything_else():
    rng = np.random.default_rng(0)
    X, y = rng.integers(-900, 900, size=(9000, 3)) / 100, rng.integers(3, size=9000)
    X[4, 1] = np.nan
    digest = content_digest(X, y)
    order = rng.permutation(len(X))
    assert content_digest(X[order], y[order]) == digest
    assert content_digest(X.astype(np.float32), y.astype(np.uint8)) == digest
    assert content_digest(np.where(X == 0, -0.0, X), y) == digest
    changed = X.copy()
    changed[7, 2] += 1e-5
    assert content_digest(changed, y) != digest
    assert content_digest(np.nan_to_num(X), y) != digest
    assert content_digest(X[:, ::-1], y) != digest
    assert content_digest(X, np.roll(y, 1)) != digest
    assert content_digest(X[:-1], y[:-1]) != digest


# -- without files --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_bundled_sets_load_without_files_or_network(no_folder, name):
    entry, bunch = REGISTRY[name], load(name)
    assert bunch.data.shape == (sum(entry.counts), entry.n_features)
    assert np.bincount(bunch.target).tolist() == entry.counts
    assert f"sklearn.datasets.load_{name}" in bunch.source
    assert bunch.source in bunch.DESCR
    X, y = load(name, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_bundled_iris_says_that_two_rows_differ_from_uci(no_folder):
    assert "rows 34 and 37" in load("iris").source


def test_bundled_wine_is_the_uci_data(no_folder):
    assert content_digest(*load("wine", return_X_y=True)) == UCI_WINE_CONTENT


def test_the_error_names_all_threesources_and_what_to_do(no_folder):
    with pytest.raises(DataUnavailableError) as caught:
        load("ionosphere")
    message = str(caught.value)
    assert "KERNELMETRIC_DATA is not set; expected a folder with the file ionosphere.csv" in message
    assert "scikit-learn bundles no copy" in message
    assert "data id 59: OSError: the network is off in this test" in message
    assert "set KERNELMETRIC_DATA (or data_home=) to that folder" in message
    assert REGISTRY["ionosphere"].sha256 in message


@pytest.mark.parametrize("name", ["colon", "lymphoma", "m_usps", "soybean_small"])
def test_sets_without_an_openml_copy_say_so(no_folder, tmp_path, name):
    with pytest.raises(DataUnavailableError, match="OpenML has no copy") as caught:
        load(name, data_home=tmp_path)
    assert f"{tmp_path} holds no file {REGISTRY[name].file}" in str(caught.value)


def test_no_download_unless_allowed(no_folder):
    with pytest.raises(DataUnavailableError, match="download_if_missing=False"):
        load("sonar", download_if_missing=False)


# -- the folder -----------------------------------------------------------------------------------


def _write_csv(folder, monkeypatch, name, text):
    """Write a file under the name of a set, and put its checksum into the table."""
    entry = REGISTRY[name]
    path = Path(folder) / entry.file
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(REGISTRY, name, replace(entry, sha256=digest))
    return path


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_file_with_the_right_checksum_is_read(no_folder, monkeypatch, tmp_path, how):
    path = _write_csv(tmp_path, monkeypatch, "breast699", "a,b,label\n1,2.5,0\n3,,1\n")
    if how == "variable":
        monkeypatch.setenv("KERNELMETRIC_DATA", str(tmp_path))
    bunch = load("breast699", data_home=tmp_path if how == "argument" else None)
    np.testing.assert_array_equal(bunch.data, [[1, 2.5], [3, np.nan]])
    np.testing.assert_array_equal(bunch.target, [0, 1])
    assert bunch.target.dtype == np.int64
    assert str(path) in bunch.source
    assert "Missing values: 16, left as NaN" in bunch.DESCR


def test_the_folder_goes_before_scikit_learn(no_folder, monkeypatch, tmp_path):
    _write_csv(tmp_path, monkeypatch, "iris", "a,b,label\n1,2,0\n3,4,1\n")
    assert load("iris", data_home=tmp_path).data.shape == (2, 2)


def test_extras_come_with_the_set_and_labels_are_recoded(no_folder, monkeypatch, tmp_path):
    path = tmp_path / "usps_ssl.npz"
    split = np.array([[1, 0]], dtype=np.int16)
    target = np.array([1, -1, -1], dtype=np.int8)
    np.savez(path, data=np.eye(3), target=target, labeled10=split, labeled100=split)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(REGISTRY, "m_usps", replace(REGISTRY["m_usps"], sha256=digest))
    bunch = load("usps_ssl", data_home=tmp_path)
    np.testing.assert_array_equal(bunch.target, [1, 0, 0])
    np.testing.assert_array_equal(bunch.labeled10, split)
    np.testing.assert_array_equal(bunch.labeled100, split)


def test_a_corrupted_file_is_refused_even_where_another_source_could_serve(
    no_folder, monkeypatch, tmp_path
):
    path = _write_csv(tmp_path, monkeypatch, "wine", "a,b,label\n1,2,0\n")
    expected = REGISTRY["wine"].sha256
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    got = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(ChecksumError) as caught:
        load("wine", data_home=tmp_path)
    for part in (str(path), f"expected sha256 {expected}", f"got {got}"):
        assert part in str(caught.value)


# -- OpenML, on a server of our own ---------------------------------------------------------------

ARFF = """@RELATION toy
@ATTRIBUTE id NUMERIC
@ATTRIBUTE f1 NUMERIC
@ATTRIBUTE f2 {0, 1}
@ATTRIBUTE class {yes, 'not so'}
@DATA
1, 0.50, 1, yes
2, ?, 0, 'not so'
3, 2.25, 0, 'not so'
"""
X_TOY = np.array([[0.5, 1.0], [np.nan, 0.0], [2.25, 0.0]])
Y_TOY = np.array([1, 0, 0])


class _OpenMLServer(ThreadingHTTPServer):
    """Speaks as much of the OpenML API as scikit-learn asks for, for one data set."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _OpenMLHandler)
        self.payload = ARFF.encode()
        self.md5 = hashlib.md5(self.payload).hexdigest()
        self.paths = []

    def answer(self, path):
        if "/download/" in path:
            return self.payload
        if "/features/" in path:
            kinds = {"id": "numeric", "f1": "numeric", "f2": "nominal", "class": "nominal"}
            features = [
                {
                    "index": str(j),
                    "name": name,
                    "data_type": kind,
                    "is_target": str(name == "class").lower(),
                    "is_ignore": "false",
                    "is_row_identifier": "false",
                    "number_of_missing_values": "1" if name == "f1" else "0",
                }
                for j, (name, kind) in enumerate(kinds.items())
            ]
            return json.dumps({"data_features": {"feature": features}}).encode()
        if "/qualities/" in path:
            quality = [{"name": "NumberOfInstances", "value": "3.0"}]
            return json.dumps({"data_qualities": {"quality": quality}}).encode()
        description = {
            "id": "99999",
            "name": "toy",
            "version": "1",
            "status": "active",
            "format": "ARFF",
            "file_id": "1",
            "description": "A toy.",
            "md5_checksum": self.md5,
            "url": "https://www.openml.org/data/v1/download/1/toy.arff",
        }
        return json.dumps({"data_set_description": description}).encode()


class _OpenMLHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.paths.append(self.path)
        body = self.server.answer(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def openml(no_folder, monkeypatch):
    """Serve a data set "toy" on the loopback, under the name "sonar"."""
    server = _OpenMLServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def to_loopback(request, *args, **kwargs):
        url = urlparse(request.full_url if hasattr(request, "full_url") else request)
        return opener.open(f"http://127.0.0.1:{server.server_port}{url.path}", timeout=10)

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", to_loopback)
    no_wait = SimpleNamespace(sleep=lambda delay: None)
    monkeypatch.setattr("sklearn.datasets._openml.time", no_wait)
    content = content_digest(X_TOY, Y_TOY)
    toy = {"data_id": 99999, "classes": ["not so", "yes"], "content": content, "columns": r"f\d+"}
    copy = replace(REGISTRY["sonar"].openml, **toy)
    entry = replace(REGISTRY["sonar"], n_features=2, counts=(2, 1), openml=copy)
    monkeypatch.setitem(REGISTRY, "sonar", entry)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def _kept():
    return Path(sklearn.datasets.get_data_home()) / "kernelmetric" / "sonar.npz"


@pytest.mark.parametrize("parser", ["pandas", "liac-arff"])
def test_a_verified_download_is_served_and_kept(openml, monkeypatch, parser):
    if parser == "pandas":
        pytest.importorskip("pandas")
    monkeypatch.setattr(sources, "find_spec", lambda name: parser == "pandas")
    bunch = load("sonar")
    np.testing.assert_array_equal(bunch.data, X_TOY)
    np.testing.assert_array_equal(bunch.target, Y_TOY)
    assert "OpenML data id 99999, content verified" in bunch.source
    n_requests = len(openml.paths)
    again = load("sonar", download_if_missing=False)
    np.testing.assert_array_equal(again.data, X_TOY)
    np.testing.assert_array_equal(again.target, Y_TOY)
    assert len(openml.paths) == n_requests > 0


def test_rows_with_missing_values_are_dropped_where_the_table_says_so(openml, monkeypatch):
    entry = REGISTRY["sonar"]
    content = content_digest(X_TOY[[0, 2]], Y_TOY[[0, 2]])
    copy = replace(entry.openml, drop_missing=True, content=content)
    monkeypatch.setitem(REGISTRY, "sonar", replace(entry, openml=copy))
    np.testing.assert_array_equal(load("sonar").data, X_TOY[[0, 2]])


@pytest.mark.parametrize("bad", [b"junk", "other values"])
def test_a_kept_copy_that_went_bad_is_downloaded_again(openml, caplog, bad):
    load("sonar")
    n_requests = len(openml.paths)
    if isinstance(bad, bytes):
        _kept().write_bytes(bad)
    else:
        np.savez(_kept(), data=X_TOY + 1, target=Y_TOY)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(load("sonar").data, X_TOY)
    assert len(openml.paths) == 2 * n_requests
    assert "downloading again" in caplog.text


def test_a_download_with_other_values_is_refused_and_not_kept(openml):
    openml.payload = ARFF.replace("2.25", "2.26").encode()
    openml.md5 = hashlib.md5(openml.payload).hexdigest()
    changed = content_digest(np.where(X_TOY == 2.25, 2.26, X_TOY), Y_TOY)
    with pytest.raises(ChecksumError) as caught:
        load("sonar")
    message = str(caught.value)
    assert f"expected content {REGISTRY['sonar'].openml.content} (3 x 2)" in message
    assert f"got {changed} (3 x 2)" in message
    assert "Nothing was kept. Put sonar.csv.gz" in message
    assert not _kept().exists()


def test_a_download_with_unknown_classes_is_refused(openml):
    openml.payload = ARFF.replace("yes", "maybe").encode()
    openml.md5 = hashlib.md5(openml.payload).hexdigest()
    with pytest.raises(ChecksumError, match=r"the classes \['not so', 'yes'\], got .*'maybe'"):
        load("sonar")
    assert not _kept().exists()


@pytest.mark.parametrize("label", [7, 7.0, "7", "7.0", np.int64(7), np.float64(7), " '7' "])
def test_a_class_written_as_a_number_has_one_spelling(label):
    assert sources._spelling(label) == "7"


def test_a_payload_that_fails_openmls_own_md5_is_reported(openml):
    openml.payload = ARFF.replace("2.25", "2.26").encode()
    with pytest.raises(DataUnavailableError, match="md5 checksum"):
        load("sonar")
    assert not _kept().exists()


def test_a_server_that_is_down_is_reported_with_its_cause(openml):
    openml.shutdown()
    openml.server_close()
    with pytest.raises(DataUnavailableError, match=r"data id 99999: URLError: .*refused"):
        load("sonar")
    assert not _kept().exists()


def test_the_download_is_used_even_if_it_cannot_be_kept(openml, caplog):
    _kept().parent.parent.mkdir(exist_ok=True)
    _kept().parent.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(load("sonar").data, X_TOY)
    assert "could not keep the download" in caplog.text


# -- the real files -------------------------------------------------------------------------------


@needs_files
@pytest.mark.parametrize("name", WITH_FILE)
def test_every_file_is_what_the_table_says(name):
    entry, bunch = REGISTRY[name], load(name)
    assert bunch.data.shape == (sum(entry.counts), entry.n_features)
    assert bunch.data.dtype == entry.dtype
    assert bunch.target.dtype == np.int64
    assert np.bincount(bunch.target).tolist() == entry.counts
    assert np.isnan(bunch.data).sum() == entry.n_missing == bunch.n_missing
    assert "sha256 verified" in bunch.source
    assert {"labeled10", "labeled100", "target2"} & set(bunch) == set(entry.extras)
    if entry.file.endswith(".csv.gz"):
        with gzip.open(Path(DATA) / entry.file, "rt") as stream:
            assert stream.readline().strip().split(",")[:-1] == bunch.feature_names


@pytest.mark.every(5)
@needs_files
@pytest.mark.parametrize("name", WITH_OPENML)
def test_every_content_checksum_is_that_of_the_file(name):
    entry, (X, y) = REGISTRY[name], load(name, return_X_y=True)
    copy = entry.openml
    assert content_digest(X, y, decimals=copy.decimals) == copy.content


@needs_files
def test_extras_of_the_real_files():
    bunch = load("m_usps")
    assert bunch.labeled10.shape == (12, 10)
    assert bunch.labeled100.shape == (12, 100)
    for split in [*bunch.labeled10, *bunch.labeled100]:
        assert len(np.unique(split)) == len(split)
        assert set(bunch.target[split]) == {0, 1}
    np.testing.assert_array_equal(np.bincount(load("lymphoma").target2), [34, 62])


@needs_files
def test_bundled_copies_differ_from_uci_where_they_say():
    differs = (sklearn.datasets.load_iris().data != load("iris").data).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(differs), [34, 37])
    np.testing.assert_array_equal(sklearn.datasets.load_wine().data, load("wine").data)


@needs_files
def test_breast_is_breast699_without_its_incomplete_rows():
    X, y = load("breast699", return_X_y=True)
    complete = ~np.isnan(X).any(axis=1)
    expected = load("breast")
    np.testing.assert_array_equal(X[complete], expected.data)
    np.testing.assert_array_equal(y[complete], expected.target)
