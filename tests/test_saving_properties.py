"""Saving, for any metric of the registries and any tree of things: what comes back is the same."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from sklearn.base import clone

from kernelmetric import DNE, ITML, LDA, LFDA, LPP, NCA, RCA, Kernelized, load, save
from kernelmetric.shipping import SavedFileError
from kernelmetric.shipping._container import npy_bytes, pack, read_npy, unpack
from kernelmetric.shipping._tree import TreeReader, TreeWriter

QUICK = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LEARNERS = [DNE(2), LDA(), LFDA(2, shrinkage=0.1), LPP(2, shrinkage=0.1), RCA(2, shrinkage=0.1)]
LEARNERS += [NCA(2, max_iter=3, tol=1.0), ITML(max_iter=200)]


def points(seed, dtype):
    rng = np.random.RandomState(seed)
    y = np.arange(21) % 3
    X = rng.standard_normal((27, 3)) * rng.uniform(0.1, 10) + rng.standard_normal(3)
    return X[:21].astype(dtype), y, X[21:].astype(dtype)


def assert_round_trip(metric, new, folder):
    path = save(metric, folder / "a.metric")
    again = load(path)
    first = path.read_bytes()
    assert save(again, folder / "b.metric").read_bytes() == first
    expected = metric.transform(new)
    scale = np.abs(expected).max()
    rounding = {8: 1e-8, 4: 1e-2}[expected.dtype.itemsize]
    answer = again.transform(new)
    assert answer.dtype == expected.dtype
    np.testing.assert_allclose(answer, expected, atol=rounding * scale, rtol=0)


@QUICK
@given(
    learner=st.sampled_from(LEARNERS),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(["float64", "float32"]),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_learner_comes_back(learner, seed, dtype, tmp_path):
    X, y, new = points(seed, dtype)
    assert_round_trip(clone(learner).fit(X, y), new, tmp_path)


@pytest.mark.slow
@QUICK
@given(
    learner=st.sampled_from([DNE(2), LDA(1)]),
    places=st.tuples(st.integers(0, 1000), st.integers(0, 1000)),
    seed=st.integers(0, 1000),
)
def test_any_kernel_in_any_space_comes_back(learner, places, seed, registry, tmp_path):
    X, y, new = points(seed, "float64")
    kernel = registry.kernels[places[0] % len(registry.kernels)]
    space = registry.spaces[places[1] % len(registry.spaces)]
    metric = Kernelized(clone(learner), kernel, space)
    try:
        metric.fit(X, y)
    except ValueError as error:  # not every learner, kernel and space go together
        assert "expected" in str(error)
        return
    assert_round_trip(metric, new, tmp_path)


NUMBERS = arrays_of.arrays(
    st.sampled_from(["f8", "f4", "i8", "i4", "u1", "b1", "U3"]),
    arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**19), 10**19)
    | st.floats()
    | st.text(max_size=8)
    | NUMBERS
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4) | st.integers(-5, 5), inner, max_size=4)
    ),
    max_leaves=12,
)


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and npy_bytes(a) == npy_bytes(b)
    if isinstance(a, float):
        return repr(a) == repr(b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b


@settings(QUICK, max_examples=30)
@given(tree=TREES)
def test_any_tree_of_things_comes_back(tree, tmp_path):
    writer = TreeWriter()
    node = writer.node(tree, "tree")
    path = tmp_path / "a"
    path.write_bytes(pack(node, writer.arrays, {}))
    content = unpack(path)
    reader = TreeReader(content.arrays)
    assert same(reader.value(content.tree), tree)


@settings(QUICK, max_examples=100)
@given(array=NUMBERS, turned=st.booleans())
def test_any_array_comes_back_in_its_order(array, turned):
    array = np.asfortranarray(array) if turned else array
    again = read_npy(npy_bytes(array), "a")
    assert same(again, array)
    assert again.flags.writeable
    assert again.flags.f_contiguous == array.flags.f_contiguous


@settings(QUICK, max_examples=100)
@given(data=st.binary(max_size=300), place=st.floats(0, 1))
def test_any_bytes_in_an_array_are_refused_or_read(data, place):
    honest = npy_bytes(np.arange(6.0))
    cut = int(place * len(honest))
    try:
        array = read_npy(honest[:cut] + data, "a")
    except ValueError as error:
        assert type(error).__name__ == "SavedFileError"
    else:
        assert array.nbytes <= len(honest) + len(data)


def test_a_header_with_a_null_byte_is_refused():
    honest = npy_bytes(np.arange(6.0))
    with pytest.raises(SavedFileError, match="a header that is no array's"):
        read_npy(honest.replace(b"'descr'", b"'des\0r'"), "a")
