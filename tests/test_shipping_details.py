"""Shipping, to the letter: limits that hold on both of their sides, flags, and what is said."""

import io
import os
import struct
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import DNE, NCA, RBF, Kernelized, PairVerifier, compress, load, save
from kernelmetric.shipping import SavedFileError, replace_file
from kernelmetric.shipping._container import npy_bytes, unpack
from kernelmetric.shipping._tree import TreeReader, TreeWriter

# --- what is saved ------------------------------------------------------------------------------


def test_a_verifier_without_a_threshold_is_not_fitted(labelled, tmp_path):
    with pytest.raises(NotFittedError):
        save(PairVerifier(NCA(2).fit(*labelled)), tmp_path / "a.metric")
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_has_nothing_to_fit_and_is_saved(tmp_path):
    assert load(save(RBF(0.25), tmp_path / "a.kernel")).gamma == 0.25


@pytest.mark.parametrize(("times", "stored"), [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_one_array_stands_for_eight_equal_ones_and_no_more(times, stored):
    writer = TreeWriter()
    nodes = writer.node([np.arange(3.0) for _ in range(times)], "notes")
    assert len(writer.arrays) == stored
    assert {node["array"] for node in nodes} == set(range(stored))


def test_an_array_of_objects_is_never_pickled():
    with pytest.raises(ValueError, match="allow_pickle"):
        npy_bytes(np.array([object()], dtype=object))


# --- what is read -------------------------------------------------------------------------------


def nested(depth):
    tree = []
    for _ in range(depth - 1):
        tree = [tree]
    return tree


def test_a_tree_is_a_hundred_nodes_deep_at_most():
    assert TreeReader([]).value(nested(100)) == nested(100)
    with pytest.raises(SavedFileError, match="too deep"):
        TreeReader([]).value(nested(101))


def test_the_depth_is_that_of_one_branch_not_of_all_together():
    reader = TreeReader([])
    assert reader.value([nested(60), nested(60)]) == [nested(60), nested(60)]
    assert reader.value(nested(100)) == nested(100)


def random_node(position):
    keys = np.random.RandomState(3).get_state()[1]
    return [keys], {"random": [{"array": 0}, position, 0, 0.0]}


@pytest.mark.parametrize("position", [0, 1, 623, 624])
def test_a_random_state_goes_on_from_every_position(position):
    arrays, node = random_node(position)
    expected = np.random.RandomState()
    expected.set_state(("MT19937", arrays[0].copy(), position, 0, 0.0))
    found = TreeReader(arrays).value(node)
    assert found.randint(2**31, size=5).tolist() == expected.randint(2**31, size=5).tolist()


@pytest.mark.parametrize("position", [-1, 625])
def test_a_random_state_beyond_its_keys_is_refused(position):
    arrays, node = random_node(position)
    with pytest.raises(SavedFileError, match=f"a random state at position {position}"):
        TreeReader(arrays).value(node)


def test_of_a_long_name_of_a_class_eighty_letters_are_shown():
    with pytest.raises(SavedFileError) as caught:
        TreeReader([]).value({"object": ["q" * 500, {}]})
    assert f"'{'q' * 80}'" in str(caught.value)


# --- nothing hides in a file --------------------------------------------------------------------


@pytest.fixture
def honest(labelled, tmp_path):
    return save(NCA(2).fit(*labelled), tmp_path / "honest.metric").read_bytes()


def refused(data, folder):
    path = folder / "a.metric"
    path.write_bytes(data)
    with pytest.raises(SavedFileError, match="are no part of any member"):
        unpack(path)


def test_a_comment_as_long_as_the_end_of_a_huge_archive_is_refused(honest, tmp_path):
    """An archive beyond 4 GiB ends in 76 bytes more: their number alone tells nothing."""
    stream = io.BytesIO(honest)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.comment = b"c" * 76
    refused(stream.getvalue(), tmp_path)


def test_as_many_bytes_before_the_directory_are_refused(honest, tmp_path):
    body, end = honest[:-22], bytearray(honest[-22:])
    (start,) = struct.unpack_from("<I", end, 16)
    struct.pack_into("<I", end, 16, start + 76)
    refused(body[:start] + b"h" * 76 + body[start:] + end, tmp_path)


# --- files as a whole ---------------------------------------------------------------------------


def test_a_file_is_new_and_binary_on_every_system(tmp_path, monkeypatch):
    """On Windows, without the flag, each byte 10 would become two."""
    binary, flags, really = 1 << 40, [], os.open

    def recorded(path, given, *rest, **options):
        if str(path).endswith(".part"):
            flags.append(given)
        return really(path, given & ~binary, *rest, **options)

    monkeypatch.setattr(os, "O_BINARY", binary, raising=False)
    monkeypatch.setattr(os, "open", recorded)
    replace_file(tmp_path / "a", lambda stream: stream.write(b"\n"))
    assert flags == [os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary]


@pytest.mark.skipif(os.name == "nt", reason="no open file can be removed there")
def test_what_went_wrong_is_told_even_if_the_half_file_is_gone(tmp_path):
    def write(stream):
        (part,) = tmp_path.iterdir()
        part.unlink()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(tmp_path / "a", write)


# --- compress -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.RandomState(0)
    return 5 + 3 * rng.standard_normal((60, 3)), np.arange(60) % 2


@pytest.fixture(scope="module")
def piped(cloud):
    return make_pipeline(StandardScaler(), Kernelized(DNE(2), RBF(0.3))).fit(*cloud)


def test_a_pipeline_hands_the_points_on_and_without_any_takes_its_own(cloud, piped):
    X, _ = cloud
    Z = piped[:-1].transform(X)
    expected = compress(piped[-1], 10, Z).transform(Z)
    for small in (compress(piped, 10, X), compress(piped, 10)):
        np.testing.assert_allclose(small.transform(X), expected, rtol=1e-6, atol=1e-8)


def test_a_pipeline_of_one_step_takes_points_as_they_are(cloud, piped):
    Z = piped[:-1].transform(cloud[0])
    small = compress(Pipeline([("metric", piped[-1])]), 10, Z)
    expected = compress(piped[-1], 10, Z).transform(Z)
    np.testing.assert_allclose(small.transform(Z), expected, rtol=1e-6, atol=1e-8)


def test_points_of_a_data_frame_or_a_list_are_the_same_points(cloud, piped):
    pd = pytest.importorskip("pandas")
    metric, Z = piped[-1], piped[:-1].transform(cloud[0])
    expected = compress(metric, 10, Z).transform(Z)
    for given in (pd.DataFrame(Z), Z.tolist()):
        found = compress(metric, 10, given).transform(Z)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_other_seeds_draw_other_landmarks(piped):
    seeds = {compress(piped[-1], 10, random_state=s).space.random_state for s in range(3)}
    assert len(seeds) == 3


def test_points_of_another_array_library_are_cut_into_blocks(cloud):
    xs = pytest.importorskip("array_api_strict")
    X, y = xs.asarray(cloud[0]), cloud[1]
    small = compress(Kernelized(DNE(2), RBF(0.1)).fit(X, y), 20)
    assert isinstance(small.space_.anchors_, type(X))
    assert small.compression_["distance_error"] < 1


# --- ONNX ---------------------------------------------------------------------------------------


@pytest.fixture
def graph():
    pytest.importorskip("onnx")
    from kernelmetric.shipping._onnx_graph import OnnxGraph

    return OnnxGraph("float64", "float64", 2)


def test_a_model_asks_for_no_newer_runtime_than_its_operators_do(graph):
    from onnx import helper

    from kernelmetric.shipping._onnx_graph import OPSETS

    graph.output("Z", graph.x.name, 2)
    model = graph.model("")
    assert [(used.domain, used.version) for used in model.opset_import] == [("", OPSETS[""])]
    operators = [helper.make_opsetid(*pair) for pair in OPSETS.items()]
    assert model.ir_version == helper.find_min_ir_version_for(operators)


class Huge:
    """So many bytes, which nobody has to hold."""

    def __init__(self, size):
        self.raw_data = self
        self.size = size

    def __len__(self):
        return self.size


@pytest.mark.parametrize(("size", "said"), [(2**31 - 2**20 + 1, "2.0 GiB"), (5 * 2**30, "5.0 GiB")])
def test_a_model_leaves_a_mebibyte_of_two_gibibytes_for_its_nodes(graph, size, said):
    graph.constants.append(Huge(size))
    with pytest.raises(ValueError, match=f"Got a metric with {said} of numbers"):
        graph.model("")


def test_sums_of_rows_are_a_column(graph):
    runtime = pytest.importorskip("onnxruntime")
    graph.output("Z", graph.row_sums(graph.x.name), 1)
    model = graph.model("")
    (sums,) = [node for node in model.graph.node if node.op_type == "ReduceSum"]
    assert [(a.name, a.i) for a in sums.attribute] == [("keepdims", 1)]
    session = runtime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"X": np.array([[1.0, 2.0], [3.0, 4.0]])})
    np.testing.assert_allclose(found, [[3.0], [7.0]])


def test_no_word_but_passthrough_passes_points_through(graph):
    from kernelmetric.shipping._onnx import through

    assert through("passthrough", graph, graph.x) is graph.x
    assert through(None, graph, graph.x) is graph.x
    with pytest.raises((TypeError, ValueError)):
        through("drop", graph, graph.x)
