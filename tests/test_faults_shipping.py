"""Files and exports, to the letter: every check by itself, on both sides of its limit."""

import hashlib
import io
import json
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from kernelmetric import (
    DNE,
    KPCA,
    RBF,
    IdealizedKernel,
    Kernelized,
    KernelTrick,
    RandomFeatures,
    compress,
    load,
    save,
)
from kernelmetric.inputs._points import MOST_LOST, refuse_lost
from kernelmetric.shipping import SavedFileError, _compress, _container, _faiss, _onnx, _save, _tree
from kernelmetric.shipping._attributes import Attributes, is_count
from kernelmetric.shipping._checks import check_fitted
from kernelmetric.shipping._container import npy_bytes, read_npy
from kernelmetric.shipping._maps import Waves, anchors_of, metric_map, refuse_signed
from kernelmetric.shipping._save import _warn_of_versions
from kernelmetric.shipping._tree import TreeReader, TreeWriter

# --- trees --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"tuple": "ab"}, "Got ab, but expected a list of any"),
        ({"tuple": {"tuple": []}}, "but expected a list of any"),
        ({"slice": [1, 2]}, r"Got \[1, 2\], but expected a list of 3"),
        ({"slice": [1, 2, 3, 4]}, "but expected a list of 3"),
        ({"slice": "abc"}, "Got abc, but expected a list of 3"),
        ({"scalar": ["<f8", 0.5, 1]}, "but expected a list of 2"),
        ({"scalar": "<f"}, "Got <f, but expected a list of 2"),
        ({"dict": [["key"]]}, "but expected a list of 2"),
        ({"dict": ["ab"]}, "Got ab, but expected a list of 2"),
        ({"sparse": ["csr_matrix", [1, 1]]}, "but expected a list of 5"),
        ({"random": [[], 0, 0]}, "but expected a list of 4"),
        ({"objects": [[1]]}, "but expected a list of 2"),
        ({"array": True}, "Got array True, but the file holds 1"),
        ({"array": 1}, "Got array 1, but the file holds 1"),
        ({"array": 0.0}, r"Got array 0\.0, but"),
        ({"object": ["kernelmetric.RBF"]}, "without a class and attributes"),
        ({"object": ["kernelmetric.RBF", []]}, "without a class and attributes"),
        ({"object": [1, {}]}, "Got an object of class '1'"),
        ({"dtype": 8}, "Got the dtype '8', but expected one of numbers"),
        ({"scalar": ["O", 1]}, "Got the dtype 'O', but expected one of numbers"),
        ({"float": "infinity"}, "Got the float 'infinity', but expected nan, inf or -inf"),
        ({}, r"keys \[\]: of no known kind"),
        ({"tuples": []}, r"keys \['tuples'\]: of no known kind"),
        ({"tuple": [], "slice": [1, 2, 3]}, r"keys \['tuple', 'slice'\]: of no known kind"),
    ],
    ids=str,
)
def test_a_node_that_is_not_as_it_should_be_is_refused(node, said):
    with pytest.raises(SavedFileError, match=said):
        TreeReader([np.zeros(2)]).value(node)


@pytest.mark.parametrize(
    "value",
    [
        (1, "a", None),
        slice(1, None, 2),
        {"a": 1, 2: (3,), None: True, 0.5: "x"},
        np.float32(0.5),
        np.dtype("<f8"),
        np.dtype(object),
        float,
        np.float32,
        float("-inf"),
        10**19,
        [],
    ],
    ids=str,
)
def test_what_is_written_is_read_again(value):
    writer = TreeWriter()
    node = json.loads(json.dumps(writer.node(value, "notes")))
    found = TreeReader([]).value(node)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("body", [["a" * 60], "b" * 60])
def test_of_a_long_list_forty_letters_are_shown(body):
    with pytest.raises(SavedFileError) as caught:
        TreeReader([]).value({"slice": body})
    assert f"Got {str(body)[:40]}, but" in str(caught.value)


def test_of_a_long_key_forty_letters_are_shown():
    key = ("k" * 60,)
    with pytest.raises(ValueError, match="expected text or a number") as caught:
        TreeWriter().node({key: 1}, "notes")
    assert f"Got the key {str(key)[:40]}, but" in str(caught.value)


@pytest.mark.parametrize("name", ["float", "dtype"])
def test_of_a_long_word_forty_letters_are_shown(name):
    word = "m8" + "x" * 60 if name == "float" else 10**60
    with pytest.raises(SavedFileError) as caught:
        TreeReader([]).value({name: word})
    assert f"{str(word)[:40]!r}, but" in str(caught.value)


def test_copies_of_an_array_are_given_until_its_share_is_used_up(monkeypatch):
    # Eight times itself is what one array may stand for, and two times more because it is little.
    array = np.arange(4.0)
    monkeypatch.setattr(_tree, "_LITTLE", 2 * array.nbytes)
    reader = TreeReader([array])
    given = [reader.value({"array": 0}) for _ in range(8 + 2)]
    assert given[0] is array
    assert len({id(found) for found in given}) == 10  # one changes nothing in another
    with pytest.raises(SavedFileError, match="array 0 in so many places"):
        reader.value({"array": 0})


def test_a_frozen_array_is_read_only_and_its_copies_too():
    reader = TreeReader([np.zeros(2)])
    assert [reader.value({"frozen": 0}).flags.writeable for _ in range(2)] == [False, False]
    assert TreeReader([np.zeros(2)]).value({"array": 0}).flags.writeable


@pytest.mark.parametrize("value", [10**20, -(10**20)])
def test_integers_of_more_than_twenty_digits_are_not_written(value):
    with pytest.raises(ValueError, match=r"integers of at most 20 digits"):
        TreeWriter().node(value, "notes")
    inside = value // abs(value) * (10**20 - 1)
    assert TreeWriter().node(inside, "notes") == inside
    assert _container._integer(str(inside)) == inside
    with pytest.raises(ValueError, match="an integer of"):
        _container._integer(str(value))


# --- the file -----------------------------------------------------------------------------------


@pytest.fixture
def honest(tmp_path):
    return save(RBF(0.25), tmp_path / "a.kernel")


def rewritten(path, **entries):
    """The file with other entries of its manifest."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"]) | entries
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_files_of_an_earlier_schema_are_read(honest, monkeypatch):
    monkeypatch.setattr(_container, "SCHEMA", 3)
    for schema in (1, 2, 3):
        assert load(rewritten(honest, schema=schema)).gamma == 0.25
    with pytest.raises(SavedFileError, match="Got a file of schema 4, but this version reads"):
        load(rewritten(honest, schema=4))


@pytest.mark.parametrize("schema", [0, -1, 1.0, True, None])
def test_a_schema_is_a_positive_integer(honest, schema):
    with pytest.raises(SavedFileError, match=f"Got schema={schema}, but expected a positive int"):
        load(rewritten(honest, schema=schema))


@pytest.mark.parametrize("versions", [None, ["1"], {"numpy": 2}])
def test_versions_are_a_table_of_texts(honest, versions):
    with pytest.raises(SavedFileError, match="without a table of versions"):
        load(rewritten(honest, versions=versions))


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("arrays/0.npy", True),
        ("arrays/10.npy", True),
        ("arrays/123456789.npy", True),
        ("arrays/1234567890.npy", False),
        ("arrays/00.npy", False),
        ("arrays/01.npy", False),
        ("arrays/-1.npy", False),
        ("arrays/0.npy.py", False),
        ("arrays/0xnpy", False),
        ("/arrays/0.npy", False),
        ("arrays/.npy", False),
    ],
)
def test_members_are_named_by_numbers_without_leading_zeros(name, good):
    assert bool(_container._ARRAY.fullmatch(name)) == good


def test_an_encrypted_member_is_told_apart_from_a_damaged_one(honest):
    data = bytearray(honest.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 8] |= 1  # the flag, in the directory
    honest.write_bytes(bytes(data))
    with pytest.raises(SavedFileError, match=r"^Got manifest\.json compressed or encrypted"):
        load(honest)


def test_a_manifest_lists_every_member_with_its_digest(honest):
    with zipfile.ZipFile(honest) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["sha256"] == {
            "tree.json": hashlib.sha256(archive.read("tree.json")).hexdigest()
        }
    assert manifest["format"] == "kernelmetric" and manifest["schema"] == 1
    assert set(manifest["versions"]) == {"kernelmetric", "numpy", "scipy", "scikit-learn", "python"}


def header(descr, shape, body=b"", order=False):
    text = f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}"
    line = (text + " " * (-(len(text) + 11) % 64)).encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + body


@pytest.mark.parametrize(
    ("descr", "shape", "body"),
    [
        ("<f8", "(2,)", bytes(16)),
        ("<f8", "()", bytes(8)),
        ("<f8", "(1048576, 0)", b""),
        ("<U262144", "(0,)", b""),  # four bytes a letter
        ("|b1", "(2,)", b"\x00\x01"),
        ("<U1", "(1,)", (0x10FFFF).to_bytes(4, "little")),
        ("<U3", "(1,)", bytes(12)),  # text is as wide as it likes
    ],
)
def test_an_array_at_the_limits_is_read(descr, shape, body):
    array = read_npy(header(descr, shape, body), "arrays/0.npy")
    assert array.dtype == np.dtype(descr) and str(array.shape) == shape


@pytest.mark.parametrize(
    ("descr", "shape", "body", "said"),
    [
        ("<f8", "(2,)", bytes(15), "holds 15 bytes"),
        ("<f8", "(2,)", bytes(17), "holds 17 bytes"),
        ("<f8", "(1048577, 0)", b"", "announces shape"),
        ("<U262145", "(0,)", b"", "announces shape"),
        ("|b1", "(1,)", b"\x02", "bytes that are no bool"),
        ("<U1", "(1,)", (0x110000).to_bytes(4, "little"), "bytes that are no <U1"),
        ("<U0", "(3,)", b"", "expected numbers, booleans or text"),
        ("<c8", "(1,)", bytes(8), "expected numbers, booleans or text"),
        ("|S3", "(1,)", bytes(3), "expected numbers, booleans or text"),
    ],
)
def test_an_array_beyond_the_limits_is_refused(descr, shape, body, said):
    with pytest.raises(SavedFileError, match=said):
        read_npy(header(descr, shape, body), "arrays/0.npy")


def test_of_a_long_shape_eighty_letters_are_shown():
    shape = str((7,) * 40)
    with pytest.raises(SavedFileError) as caught:
        read_npy(header("<f8", shape), "arrays/0.npy")
    assert f"announces shape {shape[:80]} of float64, but holds 0 bytes" in str(caught.value)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_in_memory_is_kept(order):
    array = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    found = read_npy(npy_bytes(array), "arrays/0.npy")
    np.testing.assert_array_equal(found, array)
    assert found.flags["C_CONTIGUOUS"] == (order == "C")
    assert found.flags.writeable and found.flags.owndata


def test_only_versions_that_matter_are_warned_of(recwarn):
    here = dict.fromkeys(("numpy", "scipy", "python"), "0.1")
    same = {"kernelmetric": _tree_version(), "scikit-learn": "0.1", **here}
    _warn_of_versions(same, {"kernelmetric.DNE"})
    assert not recwarn.list  # no step of scikit-learn's is inside
    with pytest.warns(UserWarning, match=r"saved with scikit-learn 0\.1, and is loaded with"):
        _warn_of_versions(same, {"kernelmetric.DNE", "sklearn.Pipeline"})
    with pytest.warns(UserWarning, match=r"saved with kernelmetric None, and is loaded with"):
        _warn_of_versions(here, {"kernelmetric.DNE"})


def _tree_version():
    return _save.versions()["kernelmetric"]


# --- attributes ---------------------------------------------------------------------------------


def attributes(**state):
    metric = DNE()
    vars(metric).update(state)
    return Attributes(metric)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("finite", [0.0, -1e300], [np.nan, np.inf, -np.inf]),
        ("number", [0.0, np.nan], [np.inf, -np.inf]),
        ("scale", [1e-300, np.nan], [0.0, -1.0, np.inf]),
        ("variance", [1.0, 0.0], [-1e-9, np.nan, np.inf]),
        ("ascending", [0.0, 0.0], [-1.0, np.nan, np.inf]),
        ("quantile", [0.0, np.nan], [-1.0, np.inf]),
        ("count", [0, 5], [-1]),
        ("count<c", [0, 2], [-1, 3]),
        ("code", [-1, 0], [-2]),
        ("code<c", [-1, 2], [-2, 3]),
        ("sign", [1, -1], [0, 2, -2]),
    ],
)
def test_every_kind_of_numbers_has_its_limits(kind, good, bad):
    for number in [*good, *bad]:
        found = attributes(a_=np.array([good[0], number]))
        found.sides["c"] = 3
        if number in good:
            found.array("a_", f"{kind} n")
            continue
        with pytest.raises(ValueError, match=r"^Got DNE\.a_ with other values, but expected"):
            found.array("a_", f"{kind} n")


def test_numbers_below_a_side_that_is_not_known_are_none():
    attributes(a_=np.array([], dtype=int)).array("a_", "count<c n")
    with pytest.raises(ValueError, match="integers from 0 on below 0"):
        attributes(a_=np.array([0])).array("a_", "count<c n")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("finite", "float32 float64", "float16 int64 bool complex64"),
        ("count", "int64 uint8", "float64 bool"),
        ("code", "int64 int8", "float64 bool"),
        ("sign", "float64 int64", "float16 bool complex64"),
        ("any", "bool int64 float32 <U3 object", "float16 complex64"),
    ],
)
def test_every_kind_of_numbers_has_its_dtypes(kind, good, bad):
    for dtype in good.split():
        attributes(a_=np.ones(2).astype(dtype)).array("a_", f"{kind} n")
    for dtype in bad.split():
        with pytest.raises(ValueError, match=rf"^Got DNE\.a_ of {dtype}, but expected"):
            attributes(a_=np.ones(2).astype(dtype)).array("a_", f"{kind} n")
    with pytest.raises(ValueError, match=r"^Got DNE\.a_ of list, but expected an array"):
        attributes(a_=[1.0]).array("a_", f"{kind} n")


def test_sides_are_learned_and_then_hold():
    found = attributes(a_=np.zeros((2, 3)), b_=np.zeros((1, 2)), c_=np.zeros(9))
    found.sides["d"] = 3
    found.array("a_", "finite r d")
    assert found.sides == {"d": 3, "r": 2}
    found.array("b_", "finite 1 r")
    found.array("c_", "finite *")
    for shape, wanted in (
        ((3, 3), "finite r d"),
        ((2, 2), "finite r d"),
        ((2, 2), "finite 1 r"),
        ((2,), "finite r d"),
        ((2, 3, 1), "finite r d"),
        ((2, 3), "finite n n"),
    ):
        found.state["a_"] = np.zeros(shape)
        with pytest.raises(ValueError, match="the sides of its other attributes"):
            found.array("a_", wanted)


@pytest.mark.parametrize(
    ("value", "good"),
    [
        (0, True),
        (7, True),
        (np.int8(3), True),
        (-1, False),
        (True, False),
        (1.0, False),
        ("1", False),
    ],
)
def test_a_count_is_a_whole_number_from_zero_on(value, good):
    assert is_count(value) == good


def test_of_a_long_attribute_eighty_letters_are_shown():
    with pytest.raises(ValueError, match="expected less") as caught:
        attributes(a_="x\n  " * 100).require(False, "a_", "less")
    assert str(caught.value) == f"Got DNE.a_={('x ' * 40)}, but expected less."


def encoder():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [2.0]])
    found = OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist").fit(X)
    check_fitted(found)
    return found


@pytest.mark.parametrize("name", ["_infrequent_indices", "_default_to_infrequent_mappings"])
@pytest.mark.parametrize("wrong", [None, (), [], [None, None], np.array([None])], ids=str)
def test_rare_categories_have_an_entry_for_each_feature(name, wrong):
    found = encoder()
    vars(found)[name] = wrong
    with pytest.raises(ValueError, match=rf"Got OneHotEncoder\.{name}=.*an entry for each feature"):
        check_fitted(found)


@pytest.mark.parametrize("indices", [[1, 2, 3], [-1, 2], [], [1, 1], [[1, 2]], [1.0, 2.0]], ids=str)
def test_rare_categories_are_different_ones_of_those_there_are(indices):
    found = encoder()
    assert found._infrequent_indices[0].tolist() == [1, 2]
    vars(found)["_infrequent_indices"] = [np.array(indices, dtype=None if indices else int)]
    with pytest.raises(ValueError, match=r"_infrequent_indices=.*different ones below 3"):
        check_fitted(found)


@pytest.mark.parametrize(("column", "good"), [(0, True), (3, True), (4, False), (-1, False)])
def test_columns_of_a_precomputed_kernel_are_those_there_are(column, good):
    space = KPCA(2, kernel="precomputed").fit(np.diag([1.0, 2.0, 3.0, 4.0]))
    space.anchors_ = np.array([column, 1, 2, 3])
    if good:
        check_fitted(space)
    else:
        with pytest.raises(ValueError, match=r"numbers of columns below 4|integers from 0 on"):
            check_fitted(space)


# --- maps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [("float32", "float64"), ("float64", "float64"), ("int32", "int32"), ("uint8", "uint8")],
)
def test_anchors_are_widened_and_column_numbers_stay_whole(dtype, wide):
    anchors = np.arange(5).astype(dtype)
    found = anchors_of(SimpleNamespace(anchors_=anchors))
    assert str(found.dtype) == wide
    np.testing.assert_array_equal(found, anchors)
    rows = sparse.csr_array(np.eye(3, dtype=np.float32))
    assert anchors_of(SimpleNamespace(anchors_=rows)).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize(
    "metric",
    [
        DNE(2),
        Kernelized(DNE(2), RBF(0.3), KPCA(4)),
        Kernelized(DNE(2), RBF(0.3), KernelTrick()),
        Kernelized(DNE(2), RBF(0.3), RandomFeatures(20, random_state=0)),
        IdealizedKernel(RBF(0.3), C=1.0),
    ],
    ids=repr,
)
def test_a_map_is_all_that_transform_computes(metric, labelled, fresh):
    metric = clone(metric).fit(*labelled)
    parts = metric_map(metric)
    f = fresh
    if hasattr(parts.features, "kernel"):
        f = parts.features.kernel(fresh, parts.features.anchors)
    elif parts.features is not None:
        angles = fresh @ parts.features.frequencies
        f = np.hstack([np.cos(angles), np.sin(angles)]) * np.tile(parts.features.amplitudes, 2)
    after = parts.after
    found = (f if after.c is None else f - after.c) @ after.A
    found = found if after.b is None else found + after.b
    np.testing.assert_allclose(found, metric.transform(fresh), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("signature", "good"), [([1, 1], True), ([1, -1], False), (None, True)])
def test_only_negative_signs_make_a_distance_that_is_none(signature, good):
    part = SimpleNamespace()
    if signature is not None:
        part.signature_ = np.array(signature)
    for metric in (part, SimpleNamespace(learner_=part), SimpleNamespace(best_estimator_=part)):
        if good:
            refuse_signed(metric)
        else:
            with pytest.raises(ValueError, match="whose squared distances may be negative"):
                refuse_signed(metric)


# --- compress -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.RandomState(0)
    return 5 + 3 * rng.standard_normal((60, 3)), np.arange(60) % 2


def test_a_pipeline_hands_points_through_all_of_its_steps(cloud):
    X, y = cloud
    steps = [StandardScaler(), MinMaxScaler((0, 10)), Kernelized(DNE(2), RBF(0.1))]
    piped = make_pipeline(*steps).fit(X, y)
    small = compress(piped, 10, X)
    Z = piped[:-1].transform(X)
    expected = compress(piped[-1], 10, Z)
    np.testing.assert_allclose(small.transform(X), expected.transform(Z), rtol=1e-6, atol=1e-8)
    assert isinstance(small, Pipeline)
    assert [name for name, _ in small.steps] == [name for name, _ in piped.steps]
    assert small[0] is piped[0] and small[1] is piped[1] and small[2] is not piped[2]


@pytest.mark.parametrize(
    ("space", "before"), [(KernelTrick(), 60), (KPCA(5), 60), (RandomFeatures(40), 40)], ids=repr
)
def test_what_a_metric_took_before_is_counted_in_kernel_values(space, before, cloud):
    X, y = cloud
    metric = Kernelized(DNE(2), RBF(0.1), clone(space), random_state=0).fit(X, y)
    made = compress(metric, 9, X).compression_
    assert (made["n_landmarks"], made["n_before"]) == (9, before)
    with pytest.raises(ValueError, match=f"<= {before - 1}: the metric has {before} now"):
        compress(metric, before, X)


def test_a_fifth_of_the_points_measures_the_loss_and_the_rest_is_learned_from(cloud, monkeypatch):
    X, y = cloud
    learned, judged = [], []
    squares, losses = _compress._least_squares, _compress._losses

    def watched_squares(teacher, space, points):
        learned.append(points)
        return squares(teacher, space, points)

    def watched_losses(teacher, small, points, rng):
        judged.append(points)
        return losses(teacher, small, points, rng)

    monkeypatch.setattr(_compress, "_least_squares", watched_squares)
    monkeypatch.setattr(_compress, "_losses", watched_losses)
    compress(Kernelized(DNE(2), RBF(0.1)).fit(X, y), 10, X)
    assert (len(learned[0]), len(judged[0])) == (48, 12)
    together = np.vstack([learned[0], judged[0]])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))


def test_losses_are_zero_for_the_same_metric_and_one_for_none_at_all(cloud):
    X, y = cloud
    metric = Kernelized(DNE(2), RBF(0.1)).fit(X, y)
    rng = np.random.RandomState(0)
    same = _compress._losses(metric, metric, X, rng)
    assert same == {"distance_error": 0.0, "variance_lost": 0.0}
    nothing = SimpleNamespace(space_=metric.space_, components_=0 * metric.components_)
    lost = _compress._losses(metric, nothing, X, rng)
    assert lost["distance_error"] == pytest.approx(1.0)
    assert lost["variance_lost"] == pytest.approx(1.0)
    double = SimpleNamespace(space_=metric.space_, components_=2 * metric.components_)
    lost = _compress._losses(metric, double, X, rng)
    assert lost["distance_error"] == pytest.approx(1.0)
    assert lost["variance_lost"] == pytest.approx(1.0)


# --- text as bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a": 1e309}', "1e309 is larger than any number"),
        (b'{"a": -Infinity}', "-Infinity is no number of JSON"),
        (b'{"a": 1, "a": 1}', "a key stands twice"),
        (b"[1" + b"0" * 20 + b"]", "an integer of 21 digits"),
        (b"\xff", "not valid JSON"),
    ],
    ids=str,
)
def test_json_is_that_of_the_standard(text, said):
    with pytest.raises(SavedFileError, match=said):
        _container._parsed(text, "tree.json")
    assert _container._parsed(b"[1e308, -5, 1" + b"0" * 19 + b"]", "a") == [1e308, -5, 10**19]


def test_equal_metrics_make_equal_files(labelled, tmp_path):
    paths = [save(DNE(2).fit(*labelled), tmp_path / name) for name in "ab"]
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


# --- digits of float32 ----------------------------------------------------------------------------


def spread(size=1.0, offset=0.0):
    """Coordinates whose median distance from their median is ``size``."""
    angles = np.linspace(0.0, 2 * np.pi, 9)[:-1]
    return offset + size * np.c_[np.cos(angles), np.sin(angles)]


EPS_32, LEAST_32, MOST_32 = (
    float(getattr(np.finfo(np.float32), name)) for name in ("eps", "tiny", "max")
)


@pytest.mark.parametrize(
    ("Z", "said"),
    [
        (spread(), None),
        (np.zeros((5, 2)), None),
        (np.full((5, 2), 1e10), None),  # all in one place: nothing to tell apart
        (spread(offset=0.8 * MOST_LOST / EPS_32), None),
        (spread(offset=1.2 * MOST_LOST / EPS_32), "times as far from zero as they spread"),
        (spread(offset=-1.2 * MOST_LOST / EPS_32), "times as far from zero as they spread"),
        (spread(0.9 * np.sqrt(MOST_32) / 2), None),
        (spread(1.1 * np.sqrt(MOST_32) / 2), "has no numbers for"),
        (spread(1.1 * np.sqrt(LEAST_32) / MOST_LOST), None),
        (spread(0.9 * np.sqrt(LEAST_32) / MOST_LOST), "has no numbers for"),
    ],
)
def test_coordinates_that_float32_cannot_hold_are_refused_by_an_index(Z, said):
    if said is None:
        refuse_lost(Z, "coordinates", "", "")
    else:
        with pytest.raises(ValueError, match=said):
            refuse_lost(Z, "coordinates", "", "")


def test_an_index_without_faiss_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    X = np.random.RandomState(0).standard_normal((20, 3))
    metric = DNE(2).fit(X, np.arange(20) % 2)
    with pytest.raises(ImportError, match="faiss-cpu"):
        _faiss.to_faiss(metric, X)


def test_what_float32_costs_of_a_linear_map_is_the_mean_beside_the_deviation():
    A = np.array([[1.0, 2.0], [0.0, 3.0]])
    parts = SimpleNamespace(features=None, after=SimpleNamespace(A=A, c=None))
    mean, deviation = np.array([10.0, -20.0]), np.array([0.5, 2.0])
    metric = SimpleNamespace(_location=(mean, deviation))
    sizes = [np.linalg.norm(size[:, None] * A) for size in (mean, deviation)]
    expected = EPS_32 * sizes[0] / sizes[1]
    assert _onnx._lost(metric, parts, "float32") == pytest.approx(expected)
    inside = SimpleNamespace(space_=metric, _location=None)
    assert _onnx._lost(inside, parts, "float32") == pytest.approx(expected)
    metric._location = mean, np.zeros(2)
    assert _onnx._lost(metric, parts, "float32") == 1.0  # nothing is left
    assert _onnx._lost(SimpleNamespace(), parts, "float32") == 0.0  # nothing is known


def test_what_float32_costs_of_random_features_is_that_of_their_angles():
    frequencies = np.array([[1.0, 2.0, 9.0], [0.0, 1.0, 5.0]])
    waves = Waves(frequencies, np.ones(3))
    parts = SimpleNamespace(features=waves, after=SimpleNamespace(A=np.eye(6), c=None))
    metric = SimpleNamespace(_location=(np.array([3.0, 4.0]), np.ones(2)))
    assert _onnx._lost(metric, parts, "float32") == pytest.approx(EPS_32 * np.hypot(6.0, 4.0))


@pytest.mark.parametrize("whiten", [False, True])
def test_what_float32_costs_of_pca_is_its_mean_beside_what_it_explains(whiten):
    X = np.random.RandomState(0).standard_normal((30, 3)) * [3.0, 2.0, 1.0] + 50.0
    pca = PCA(2, whiten=whiten).fit(X)
    A = pca.components_.T / (np.sqrt(pca.explained_variance_) if whiten else 1.0)
    after = SimpleNamespace(A=A, c=pca.mean_[None, :])
    spread = np.sqrt(2.0 if whiten else np.sum(pca.explained_variance_))
    expected = EPS_32 * np.linalg.norm(pca.mean_[:, None] * A) / spread
    found = _onnx._lost(pca, SimpleNamespace(features=None, after=after), "float32")
    assert found == pytest.approx(expected)
