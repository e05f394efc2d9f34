"""Damaged and hostile files: each is refused with a sentence, and none runs code."""

import copy
import hashlib
import io
import json
import os
import pickle
import tempfile
import threading
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import kernelmetric
from kernelmetric import (
    DNE,
    KPCA,
    RBF,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    MetricClassifier,
    MetricRegressor,
    RandomFeatures,
    TransductiveDistance,
    load,
    save,
)
from kernelmetric.shipping import SavedFileError

CANARY = Path(tempfile.gettempdir()) / f"kernelmetric-canary-{os.getpid()}"


class Bomb:
    """Unpickled anywhere, it makes a directory."""

    def __reduce__(self):
        return os.mkdir, (str(CANARY),)


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **options)
    return stream.getvalue()


def npy_header(header, body=b""):
    text = (header + " " * (63 - len(header) % 64 + 54 % 64)).encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


@pytest.fixture
def members(labelled, tmp_path):
    """The members of an honest file, to be changed."""
    path = save(Kernelized(DNE(2), "rbf", KPCA(3)).fit(*labelled), tmp_path / "honest.metric")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(members, path, *, sign=True, compression=zipfile.ZIP_STORED, comment=b"", twice=()):
    """A file of these members; its digests are right unless ``sign`` is False."""
    members = dict(members)
    if sign:
        manifest = json.loads(members["manifest.json"])
        manifest["sha256"] = {
            name: hashlib.sha256(data).hexdigest()
            for name, data in members.items()
            if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of duplicates
        archive.comment = comment
        for name, data in [*members.items(), *twice]:
            archive.writestr(name, data)
    return path


def with_json(members, name, change):
    tree = json.loads(members[name])
    return members | {name: json.dumps(change(tree)).encode()}


def state_of(tree):
    return tree["object"][1]


def with_state(members, **nodes):
    def change(tree):
        state_of(tree).update(nodes)
        return tree

    return with_json(members, "tree.json", change)


def with_map_of_objects(tree):
    state_of(state_of(tree)["learner_"])["components_"] = {"objects": [[2, 1], [0.5, 0.5]]}
    return tree


def manifest_with(members, **entries):
    return with_json(members, "manifest.json", lambda manifest: manifest | entries)


def test_an_honest_file_passes_the_tools_of_these_tests(members, fresh, tmp_path):
    metric = load(written(members, tmp_path / "again.metric"))
    expected = load(tmp_path / "honest.metric").transform(fresh)
    np.testing.assert_array_equal(metric.transform(fresh), expected)


def with_bytes(path, before=b"", after=b""):
    path.write_bytes(before + path.read_bytes() + after)
    return path


# name -> (what makes the file, what the sentence says)
ARCHIVES = {
    "comment": (lambda m, p: written(m, p, comment=b"hello"), "5 are no part of any member"),
    "64 kB appended": (
        lambda m, p: with_bytes(written(m, p), after=bytes(60_000)),
        "60000 are no part of any member",
    ),
    "one byte appended": (
        lambda m, p: with_bytes(written(m, p), after=b"x"),
        "1 are no part of any member",
    ),
    "an archive before": (
        lambda m, p: with_bytes(written(m, p), before=(b"PK\x03\x04" + bytes(100))),
        "something hides between them",
    ),
    "compressed": (lambda m, p: written(m, p, compression=zipfile.ZIP_DEFLATED), "compressed"),
    "zip bomb": (
        lambda m, p: written(
            m | {"arrays/0.npy": bytes(10**7)}, p, compression=zipfile.ZIP_DEFLATED
        ),
        "compressed",
    ),
    "member twice": (
        lambda m, p: written(m, p, twice=[("tree.json", m["tree.json"])]),
        "tree.json twice",
    ),
    "path traversal": (
        lambda m, p: written(m | {"../../evil.npy": npy([1.0])}, p),
        "member named '../../evil.npy'",
    ),
    "absolute path": (lambda m, p: written(m | {"/etc/evil": b""}, p), "member named '/etc/evil'"),
    "script beside": (lambda m, p: written(m | {"load.py": b"boom"}, p), "member named 'load.py'"),
    "no manifest": (
        lambda m, p: written({k: v for k, v in m.items() if "manifest" not in k}, p, sign=False),
        "without manifest.json",
    ),
    "changed array": (
        lambda m, p: written(
            m | {"arrays/0.npy": m["arrays/0.npy"][:-8] + bytes(8)}, p, sign=False
        ),
        "another SHA-256",
    ),
    "changed tree": (
        lambda m, p: written(with_state(m, neighbors="input"), p, sign=False),
        "another SHA-256",
    ),
    "array missing": (
        lambda m, p: written({k: v for k, v in m.items() if k != "arrays/0.npy"}, p),
        "not numbered 0, 1, 2",
    ),
    "unlisted member": (
        lambda m, p: written(m | {"arrays/99.npy": npy([1.0])}, p, sign=False),
        "manifest does not list",
    ),
    "future schema": (lambda m, p: written(manifest_with(m, schema=99), p), "newer kernelmetric"),
    "schema of text": (lambda m, p: written(manifest_with(m, schema="1"), p), "schema='1'"),
    "other format": (lambda m, p: written(manifest_with(m, format="skops"), p), "another format"),
    "no digests": (
        lambda m, p: written(manifest_with(m, sha256=[]), p, sign=False),
        "table of sha256",
    ),
}
TREES = {
    "not UTF-8": (lambda m: m | {"tree.json": b'"\xff\xfe"'}, "not valid JSON"),
    "not JSON": (lambda m: m | {"tree.json": b"import os"}, "not valid JSON"),
    "NaN": (lambda m: m | {"tree.json": b"[NaN]"}, "no number of JSON"),
    "key twice": (lambda m: m | {"tree.json": b'{"tuple":[],"tuple":[]}'}, "twice in one object"),
    "deep": (lambda m: m | {"tree.json": b"[" * 100_000 + b"]" * 100_000}, "too deep"),
    "rather deep": (lambda m: m | {"tree.json": b"[" * 900 + b"]" * 900}, "too deep"),
    "just not too deep": (
        lambda m: m | {"tree.json": b"[" * 100 + b"]" * 100},
        "Got a list at the root",
    ),
    "just too deep": (lambda m: m | {"tree.json": b"[" * 101 + b"]" * 101}, "objects.* too deep"),
    "infinite number": (lambda m: m | {"tree.json": b"[1e999]"}, "larger than any number"),
    "integer of 21 digits": (lambda m: m | {"tree.json": b"[" + b"9" * 21 + b"]"}, "21 digits"),
    "key that can be made to collide": (
        lambda m: with_state(m, notes_={"dict": [[{"tuple": [1, 2]}, 1]]}),
        r"the key \(1, 2\), but expected text or a number",
    ),
    "map of objects": (
        lambda m: with_json(m, "tree.json", with_map_of_objects),
        r"Got DNE\.components_ of object, but expected an array of finite numbers\. No fit leaves",
    ),
    "long number": (lambda m: m | {"tree.json": b"1" * 10_000}, "not valid JSON"),
    "no estimator": (lambda m: m | {"tree.json": b"[1, 2]"}, "Got a list at the root"),
    "class of the system": (
        lambda m: m | {"tree.json": b'{"object":["subprocess.Popen",{"args":"ls"}]}'},
        "class 'subprocess.Popen'",
    ),
    "class of ours that holds functions": (
        lambda m: m | {"tree.json": b'{"object":["kernelmetric.FunctionKernel",{}]}'},
        "class 'kernelmetric.FunctionKernel'",
    ),
    "unknown kind": (lambda m: with_state(m, learner_={"pickle": "gASV"}), "of no known kind"),
    "two kinds": (lambda m: with_state(m, learner_={"tuple": [], "dict": []}), "no known kind"),
    "cache of a pipeline": (
        lambda m: m | {"tree.json": b'{"object":["sklearn.Pipeline",{"steps":[],"memory":"x"}]}'},
        "directory of pickles",
    ),
    "method replaced": (
        lambda m: with_state(m, transform={"object": ["kernelmetric.Linear", {}]}),
        "'transform' among the attributes",
    ),
    "dunder": (lambda m: with_state(m, __class__="x"), "'__class__' among the attributes"),
    "parameter missing": (
        lambda m: m | {"tree.json": b'{"object":["kernelmetric.Kernelized",{}]}'},
        "without its parameter 'learner'",
    ),
    "array that is not there": (lambda m: with_state(m, space_={"array": 77}), "Got array 77"),
    "array by a negative number": (lambda m: with_state(m, space_={"array": -1}), "Got array -1"),
    "type of no numbers": (lambda m: with_state(m, space_={"type": "object"}), "type that is none"),
    "dtype of no numbers": (lambda m: with_state(m, space_={"dtype": "V8"}), "dtype 'V8'"),
    "float of text": (lambda m: with_state(m, space_={"float": "1e5"}), "float '1e5'"),
    "key that cannot be one": (
        lambda m: with_state(m, space_={"dict": [[[], 1]]}),
        "Got a dict that is none",
    ),
    "wild sparse indices": (
        lambda m: with_state(m, space_={"sparse": ["csr_matrix", [1, 2], [1.0], [10**6], [0, 1]]}),
        "Got a sparse that is none",
    ),
    "wild random state": (
        lambda m: with_state(m, random_state={"random": [[0] * 624, 10**6, 0, 0.0]}),
        "position 1000000",
    ),
}
ARRAYS = {
    "pickle": (npy(np.array([Bomb()], dtype=object), allow_pickle=True), "objects are pickles"),
    "records": (npy(np.zeros(2, dtype="i4,f8")), "dtype"),
    "dates": (npy(np.zeros(2, dtype="M8[s]")), "dtype datetime64"),
    "complex": (npy(np.zeros(2, dtype=complex)), "dtype complex128"),
    "no header": (b"\x93NUMPY", "header that is no array's"),
    "another file": (b"hello", "header that is no array's"),
    "code in the header": (
        npy_header(f"{{'descr': __import__('os').mkdir({str(CANARY)!r})}}"),
        "header that is no array's",
    ),
    "huge shape": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 536870912), }"),
        r"announces shape \(4294967296, 536870912\)",  # of which the bytes are 2**64, or 0
    ),
    "larger than it is": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        "announces shape",
    ),
    "negative shape": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }", bytes(8)),
        "announces shape",
    ),
    "one side negative": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 0), }"),
        "announces shape",
    ),
    "huge and empty": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808, 0), }"),
        "announces shape",
    ),
    "long and empty": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1048577, 0), }"),
        "announces shape",
    ),
    "wide text and empty": (
        npy_header("{'descr': '<U400000000', 'fortran_order': False, 'shape': (0,), }"),
        "announces shape",
    ),
    "a hundred axes": (
        npy_header(
            f"{{'descr': '<f8', 'fortran_order': False, 'shape': {(1,) * 100}, }}", bytes(8)
        ),
        "with 100 axes",
    ),
    "numbers of sixteen bytes": (
        npy_header("{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", bytes(16)),
        "header that is no array's|dtype float128",  # Windows has none
    ),
    "neither true nor false": (npy(np.array([2], np.uint8)).replace(b"|u1", b"|b1"), "no bool"),
    "letters beyond Unicode": (
        npy(np.array([0x110000], np.uint32)).replace(b"<u4", b"<U1"),
        "no <U1",
    ),
    "NaN": (npy(np.full(3, np.nan)), "eigenvalues_ with other values, but expected finite numb"),
    "another version of the format": (npy(np.zeros(3), version=(2, 0)), r"version \(2, 0\)"),
    "shorter than it says": (npy(np.zeros(5))[:-8], "announces shape"),
    "longer than it says": (npy(np.zeros(5)) + bytes(8), "announces shape"),
}
FOREIGN = {
    "pickle": pickle.dumps(Bomb()),
    "empty": b"",
    "text": b"X = 1\n",
    "script before an archive": b"#!/bin/sh\n",
    "header alone": b"PK\x03\x04",
    "array": npy(np.zeros(3)),
}


@pytest.fixture
def silent_canary():
    """Fail if anything in a file was run while it was read."""
    assert not CANARY.exists()
    yield
    assert not CANARY.exists()


def refused(path, message):
    with pytest.raises(SavedFileError, match=message) as caught:
        load(path)
    assert str(caught.value).endswith((".", ")"))  # a sentence


def test_the_canary_sings():
    np.load(io.BytesIO(ARRAYS["pickle"][0]), allow_pickle=True)
    CANARY.rmdir()


@pytest.mark.parametrize("case", ARCHIVES)
def test_hostile_archives_are_refused(case, members, tmp_path, silent_canary):
    make, message = ARCHIVES[case]
    refused(make(members, tmp_path / "a.metric"), message)


@pytest.mark.parametrize("case", TREES)
def test_hostile_trees_are_refused(case, members, tmp_path, silent_canary):
    change, message = TREES[case]
    refused(written(change(members), tmp_path / "a.metric"), message)


@pytest.mark.parametrize("case", ARRAYS)
def test_hostile_arrays_are_refused(case, members, tmp_path, silent_canary):
    data, message = ARRAYS[case]
    refused(written(members | {"arrays/0.npy": data}, tmp_path / "a.metric"), message)


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_files_are_refused(case, members, tmp_path, silent_canary):
    path = tmp_path / "a.metric"
    data = FOREIGN[case]
    if case == "script before an archive":
        data += (tmp_path / "honest.metric").read_bytes()
    path.write_bytes(data)
    refused(path, "another kind|truncated or damaged")


def test_an_archive_of_arrays_is_no_metric(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    refused(tmp_path / "a.npz", "without manifest.json")


def test_members_that_overlap_are_refused(members, tmp_path):
    """Two entries of the directory point at the same bytes, as in a bomb without compression."""
    path = written(members, tmp_path / "a.metric")
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    data = path.read_bytes()
    directory = data.index(b"PK\x01\x02")
    large = max(infos, key=lambda info: info.file_size)
    small = [i for i in infos if i is not large and i.filename.startswith("arrays/")]
    for info in small:  # all arrays take the place and the size of the largest
        entry = data.index(b"PK\x01\x02", directory)
        while data[entry + 46 : entry + 46 + len(info.filename)] != info.filename.encode():
            entry = data.index(b"PK\x01\x02", entry + 4)
        sizes = large.file_size.to_bytes(4, "little") * 2
        data = data[: entry + 20] + sizes + data[entry + 28 :]
        offset = large.header_offset.to_bytes(4, "little")
        data = data[: entry + 42] + offset + data[entry + 46 :]
    path.write_bytes(data)
    refused(path, "members overlap, or something hides")


def test_members_with_a_gap_between_them_are_refused(members, tmp_path):
    path = tmp_path / "a.metric"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
            archive.fp.write(b"hidden")  # no member has these bytes
            archive.start_dir = archive.fp.tell()
    refused(path, "something hides between them")


def test_one_array_in_thousands_of_places_fills_no_memory(members, tmp_path):
    """A megabyte that is named 2,000 times would be two gigabytes."""
    many = members | {f"arrays/{len(members) - 2}.npy": npy(np.zeros(131_072))}
    many = with_state(many, notes_=[{"array": len(members) - 2}] * 2000)
    path = written(many, tmp_path / "a.metric")
    tracemalloc.start()
    refused(path, "a small file would fill the memory")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_an_array_in_a_few_places_is_none_of_that(members, tmp_path):
    number = len(members) - 2
    for size, times in ((131_072, 20), (10, 2000)):  # 16 MB, and all that is little
        many = members | {f"arrays/{number}.npy": npy(np.zeros(size))}
        many = with_state(many, notes_=[{"array": number}] * times)
        assert len(load(written(many, tmp_path / "a.metric")).notes_) == times


def test_keys_that_collide_are_refused_at_once(members, tmp_path):
    """Multiples of 2**61 - 1 have one hash in Python, and 20,000 of them take minutes."""
    keys = [[(2**61 - 1) * 10**6 * (i + 1), 0] for i in range(20_000)]
    path = written(with_state(members, notes_={"dict": keys}), tmp_path / "a.metric")
    refused(path, "an integer of 2[0-9] digits")
    keys = [[{"tuple": [(2**61 - 1) * (i % 4), i]}, 0] for i in range(20_000)]
    path = written(with_state(members, notes_={"dict": keys}), tmp_path / "a.metric")
    refused(path, "expected text or a number")


def test_a_file_cut_anywhere_is_refused(members, tmp_path):
    data = (tmp_path / "honest.metric").read_bytes()
    path = tmp_path / "a.metric"
    for length in np.random.RandomState(0).randint(0, len(data), 60):
        path.write_bytes(data[:length])
        refused(path, "another kind|truncated or damaged")


def test_a_flipped_bit_is_refused_or_changes_nothing(members, fresh, tmp_path):
    data = (tmp_path / "honest.metric").read_bytes()
    expected = load(tmp_path / "honest.metric").transform(fresh)
    rng = np.random.RandomState(0)
    path, n_refused = tmp_path / "a.metric", 0
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.randint(len(data))] ^= 1 << rng.randint(8)
        path.write_bytes(bytes(damaged))
        try:
            np.testing.assert_array_equal(load(path).transform(fresh), expected)
        except SavedFileError:
            n_refused += 1
    assert n_refused > 150  # the others hit dates and the like, which nobody reads


def test_a_directory_and_a_pipe_are_refused(tmp_path):
    refused(tmp_path, "expected a file")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        waiting = threading.Thread(target=refused, args=(tmp_path / "pipe", "expected a file"))
        waiting.daemon = True
        waiting.start()
        waiting.join(20)
        assert not waiting.is_alive()


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.metric")


def test_another_version_is_told(members, tmp_path):
    versions = json.loads(members["manifest.json"])["versions"]
    assert versions["kernelmetric"] == kernelmetric.__version__
    older = manifest_with(members, versions=versions | {"kernelmetric": "0.0.1"})
    with pytest.warns(UserWarning, match=r"saved with kernelmetric 0\.0\.1, and is loaded with"):
        load(written(older, tmp_path / "a.metric"))


def test_a_parameter_added_since_gets_its_default(members, tmp_path):
    def without(tree):
        del state_of(tree)["neighbors"]
        return tree

    metric = load(written(with_json(members, "tree.json", without), tmp_path / "a.metric"))
    assert metric.neighbors == "feature"


# --- any change -----------------------------------------------------------------------------------

ODD = [None, True, 0, -1, 7, 10**6, 0.5, 1e300, "", "rbf", [], [1, 2], {"tuple": []}, {"dict": []}]
ODD += [{"float": "nan"}, {"float": "inf"}, {"array": 0}, {"array": 1}, {"dtype": "<f4"}]
ODD += [{"objects": [[2], ["a", None]]}, {"object": ["kernelmetric.Linear", {}]}]


def places(node, path=()):
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def altered_tree(data, rng):
    """A tree with one node deleted, doubled, or replaced by another or by something odd."""
    tree = json.loads(data)
    every = list(places(tree))
    *path, key = every[rng.randint(len(every))]
    parent, draw = at(tree, path), rng.rand()
    if draw < 0.3:
        del parent[key]
    elif draw < 0.4 and isinstance(parent, list):
        parent.insert(key, parent[key])
    elif draw < 0.6:
        parent[key] = copy.deepcopy(at(tree, every[rng.randint(len(every))]))
    else:
        parent[key] = ODD[rng.randint(len(ODD))]
    return json.dumps(tree).encode()


def altered_array(data, rng):
    """An array of another shape, of other numbers, or of another kind of them."""
    array = np.load(io.BytesIO(data))
    ways = [
        lambda: array[:-1],
        lambda: array.T,
        lambda: np.concatenate([array, array[:1]]),
        lambda: array.ravel(),
        lambda: array[..., None],
        lambda: np.zeros_like(array),
        lambda: array.astype(["f4", "i8", "u1", "f2", "b1"][rng.randint(5)]),
        lambda: array * -1,
        lambda: array * 1e150,
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return npy(ways[rng.randint(len(ways))](), version=(1, 0))
        except (TypeError, ValueError, IndexError):  # of text, or of one number
            return npy(array.ravel()[:-1], version=(1, 0))


def altered(members, rng):
    names = [name for name in members if name.startswith("arrays/")]
    name = names[rng.randint(len(names))] if rng.rand() < 0.3 else "tree.json"
    change = altered_tree if name == "tree.json" else altered_array
    return members | {name: change(members[name], rng)}


def points():
    rng = np.random.RandomState(0)
    y = np.arange(36) % 3
    return rng.standard_normal((36, 3)) + 2.0 * y[:, None], y


def mixed_columns():
    columns = ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), [0, 1]),
            ("o", OneHotEncoder(handle_unknown="ignore"), [2]),
        ]
    )
    X, y = points()
    X[:, 2], X[5, 1] = y, np.nan
    return make_pipeline(columns, Kernelized(DNE(2), "rbf")).fit(X, y), X


def plainly(model):
    return model.fit(*points()), points()[0]


def of_a_table():
    X, y = points()
    frame = pd.DataFrame({"a": X[:, 0], "b": np.array(["x", "y", "z"])[y]})
    return Kernelized(DNE(2)).fit(frame, y), frame


ALTERED = {
    "linear": lambda: plainly(DNE(2)),
    "kernel": lambda: plainly(Kernelized(DNE(2), "rbf", KPCA(3))),
    "waves": lambda: plainly(Kernelized(DNE(2), "rbf", RandomFeatures(20, random_state=0))),
    "trick": lambda: plainly(Kernelized(DNE(2), "laplacian", KernelTrick())),
    "search": lambda: plainly(KernelizedCV(DNE(2), [RBF()], cv=2)),
    "classifier": lambda: plainly(MetricClassifier(Kernelized(DNE(2)), cv=2)),
    "regressor": lambda: plainly(MetricRegressor(DNE(2), cv=2)),
    "transductive": lambda: plainly(TransductiveDistance(2, n_neighbors=5)),
    "columns": mixed_columns,
    "table": of_a_table,
}
ASKED = ("transform", "predict", "predict_proba", "kneighbors", "score_samples")


def answers_of(model, X):
    """What a model that was loaded says: finite numbers, or a ValueError with a sentence."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for method in ASKED:
            try:
                answer = getattr(model, method)(X) if hasattr(model, method) else 0.0
            except (ImportError, ValueError) as error:  # of faiss, where an index is named
                assert len(str(error).split()) > 4
                continue
            for part in answer if isinstance(answer, tuple) else (answer,):
                assert np.asarray(part).dtype.kind != "f" or np.isfinite(part).all()


def columns_of(state):
    """The state of the columns of a pipeline that ``mixed_columns`` makes."""
    return state_of(state["steps"][0]["tuple"][1])


def imputer_of(state):
    """The state of the imputer among them."""
    return state_of(
        state_of(columns_of(state)["transformers_"][0]["tuple"][1])["steps"][0]["tuple"][1]
    )


def assert_refused_or_right(case, times, tmp_path):
    model, X = ALTERED[case]()
    with zipfile.ZipFile(save(model, tmp_path / "honest.metric")) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    refusals = 0
    for seed in range(times):
        changed = altered(members, np.random.RandomState(seed))
        try:
            again = load(written(changed, tmp_path / "a.metric"))
        except SavedFileError:
            refusals += 1
            continue
        answers_of(again, X[:4])
    assert 0 < refusals < times


@pytest.mark.parametrize("case", ALTERED)
@pytest.mark.every(5)
def test_an_altered_file_is_refused_or_its_model_answers(case, tmp_path, silent_canary):
    assert_refused_or_right(case, 12, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALTERED)
def test_many_altered_files_are_refused_or_their_models_answer(case, tmp_path, silent_canary):
    assert_refused_or_right(case, 500, tmp_path)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("kernel", lambda state: state.pop("kernel_")),
        ("waves", lambda state: state_of(state["space_"]).pop("frequencies_")),
        ("classifier", lambda state: state.pop("_codes")),
        ("classifier", lambda state: state.pop("usual_distance_")),
        ("classifier", lambda state: state.pop("biases_")),
        ("table", lambda state: state_of(state["schema_"]).update(centres_=None)),
        ("table", lambda state: state_of(state["schema_"]).update(rests_=None)),
        ("table", lambda state: state_of(state["schema_"]).pop("limits_")),
        ("table", lambda state: state_of(state["schema_"]).pop("cycles_")),
        ("search", lambda state: state.update(best_estimator_=None)),
        ("columns", lambda state: columns_of(state).pop("transformers_")),
        ("columns", lambda state: columns_of(state).pop("sparse_output_")),
        ("columns", lambda state: imputer_of(state).update(statistics_=None)),
        ("linear", lambda state: state.clear()),
    ],
    ids=[
        *("kernel", "frequencies", "codes", "usual distance", "biases", "centres", "rests"),
        *(
            "limits",
            "cycles",
            "search",
            "transformers",
            "sparse output",
            "statistics",
            "everything",
        ),
    ],
)
def test_what_a_fit_leaves_cannot_be_missing(case, change, tmp_path):
    with zipfile.ZipFile(save(ALTERED[case]()[0], tmp_path / "honest.metric")) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def without(tree):
        change(state_of(tree))
        return tree

    path = written(with_json(members, "tree.json", without), tmp_path / "a.metric")
    refused(path, "Got .*(No fit leaves that|not fitted)")


def attributes_of(tree):
    """Every state of an object in a tree, with each of its names."""
    for part in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(part, dict | list):
            yield from attributes_of(part)
    if isinstance(tree, dict) and "object" in tree:
        yield from ((state_of(tree), name) for name in sorted(state_of(tree)))


@pytest.mark.slow
@pytest.mark.parametrize("none", [True, False], ids=["None", "missing"])
@pytest.mark.parametrize("case", ALTERED)
def test_no_attribute_can_be_none_or_missing_unseen(case, none, tmp_path):
    model, X = ALTERED[case]()
    with zipfile.ZipFile(save(model, tmp_path / "honest.metric")) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    tree, refusals = json.loads(members["tree.json"]), 0
    for state, name in list(attributes_of(tree)):
        there = state.pop(name)
        if none:
            state[name] = None
        changed = members | {"tree.json": json.dumps(tree).encode()}
        state[name] = there
        try:
            again = load(written(changed, tmp_path / "a.metric"))
        except SavedFileError:
            refusals += 1
        else:
            answers_of(again, X[:4])
    assert refusals
