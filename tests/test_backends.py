"""Backends are looked up by the arrays that came in; tile functions are pure, whoever runs them."""

import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from kernelmetric.compute import _execute, _threads
from kernelmetric.compute.backends import ArrayAPI, NumPy, backend_of
from kernelmetric.compute.reductions import (
    BlockProduct,
    _gram_products,
    _impostors,
    _listed,
    _neighbors,
    _products,
    _softmax,
    _subspaces,
    _triplets,
    class_neighbors,
    gram_products,
    lmnn_hinge,
    mine_impostors,
    nca_loss,
    nearest_neighbors,
    softmax_reduction,
    subspace_distances,
)
from kernelmetric.compute.reductions._listed import lmnn_hinge_on
from kernelmetric.graphs import target_neighbors

# --- the registry -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [np.eye(2), np.eye(2).view(type("Ours", (np.ndarray,), {})), sparse.eye_array(2).tocsr()],
    ids=["plain", "subclass", "sparse"],
)
def test_arrays_made_of_numpy_are_numpys(array):
    assert isinstance(backend_of(array), NumPy)
    assert backend_of(array).host


def test_a_library_without_a_backend_of_its_own_is_asked_by_the_standard():
    xp = pytest.importorskip("array_api_strict")
    assert type(backend_of(xp.asarray(np.eye(2)))) is ArrayAPI


@pytest.mark.slow
def test_a_backend_is_imported_with_its_first_array_and_its_library_never():
    program = """
import sys
import kernelmetric.compute
from kernelmetric.compute.backends import backend_of
name = "kernelmetric.compute.backends._torch"
assert name not in sys.modules
tensor = type("Parameter", (type("Tensor", (), {"__module__": "torch"}),), {})()
assert type(backend_of(tensor)).__name__ == "Torch" and not backend_of(tensor).host
assert name in sys.modules and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_standard_gives_what_numpy_gives():
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.RandomState(0)
    A, columns, rows = rng.randn(5, 4), np.array([0, 3, 1, 1, 2]), np.array([4, 0])
    ours, theirs = backend_of(A), backend_of(xp.asarray(A))
    start, stop = np.array([1, 2, 0, 3, 2]), np.array([3, 3, 1, 4, 2])

    def filled(backend, A):
        backend.fill(A, slice(1, 3), start, stop, -1.0)
        return A

    def filled_outside(backend, A):
        backend.fill(A, slice(0, 4), start, stop, -1.0, np.array([1, 2, 0, 3, 1]))
        return A

    def added_to(backend, A):
        return backend.add_rows(A, backend.on_device(np.array([1, 0, 1]), A), A[:3, :])

    def products(backend, A):
        return (lambda R: R.T @ R)(backend.fewer_rows(A))

    for work in (
        lambda backend, A: backend.take_rows(A, rows),
        lambda backend, A: backend.set_entries(A, columns, 7.0),
        lambda backend, A: backend.set_pairs(A, rows, rows[::-1] // 2, np.array([1.0, 2.0])),
        filled,
        filled_outside,
        added_to,
        products,
        lambda backend, A: backend.squared_lengths(A),
        lambda backend, A: backend.squares_between(A, A[::-1, :], wide=True),
        lambda backend, A: backend.exponential(A, -0.5),
    ):
        found = np.asarray(work(theirs, xp.asarray(A.copy())))
        np.testing.assert_allclose(found, work(ours, A.copy()), rtol=1e-12)


# --- tiles ------------------------------------------------------------------------------------


def three_kernels(rows, columns):
    """Values of three kernels at the pairs of two slices of 90 points."""
    X = np.random.RandomState(2).randn(90, 3)
    products = X[rows] @ X[columns].T
    return [products, products**2, np.exp(products / 10)]


def half_of_each(P, rows, logs):
    """A loss of softmax neighbours: the squares of their probabilities."""
    return float(np.sum(P * P)), P.copy()


def reductions(n=90, d=6, classes=4):
    """Every reduction on some points, as functions without arguments."""
    rng = np.random.RandomState(0)
    codes = np.sort(np.arange(n) % classes)
    X = rng.standard_normal((n, d)) + codes[:, None]
    L = 0.5 * rng.standard_normal((3, d))
    E = X @ L.T
    targets = target_neighbors(X, codes, 2)
    pairs = mine_impostors(E, targets, codes, 0.7)[1]
    S = np.linalg.qr(rng.standard_normal((n, d, 3)))[0].transpose(0, 2, 1).copy()
    first, second = np.repeat(np.arange(n), 5), rng.randint(0, n, 5 * n)
    W = sparse.random_array((n, n), density=0.2, random_state=0).tocsr()
    for array in (X, L, E, S, targets, pairs, codes):
        array.flags.writeable = False
    return {
        "neighbours": lambda: nearest_neighbors(X, 3),
        "within classes": lambda: class_neighbors(X, codes, 3, same=True),
        "between classes": lambda: class_neighbors(X, codes, 3, same=False),
        "softmax": lambda: nca_loss(L, X, codes),
        "any loss of it": lambda: softmax_reduction(E, X, half_of_each),
        "hinge": lambda: lmnn_hinge(E, X, targets, codes, 0.7, 0.1),
        "impostors": lambda: mine_impostors(E, targets, codes, 0.7),
        "listed hinge": lambda: lmnn_hinge_on(pairs, E, X, targets, 0.7, 0.1),
        "Gram products": lambda: gram_products(three_kernels, n),
        "subspaces": lambda: (subspace_distances(S, S, first, second),),
        "sparse product": lambda: (BlockProduct(W)(X),),
    }


NAMES = list(reductions())
REDUCTIONS = [
    _neighbors, _triplets, _impostors, _listed, _softmax, _gram_products, _products, _subspaces,
]  # fmt: skip


@pytest.fixture
def small_tiles(monkeypatch):
    """Several tiles of a few points, and threads whatever they cost."""
    monkeypatch.setattr(_threads, "_WORTH_THREADS", -1.0)
    monkeypatch.setattr(_impostors, "_WHOLE_ROWS", 0)
    monkeypatch.setattr(_triplets, "_PAIR_CHUNK_BYTES", 2**9)
    monkeypatch.setattr(_subspaces, "_PAIRS", 64)
    for module in (_neighbors, _triplets, _softmax, _gram_products):
        monkeypatch.setattr(module, "tile_rows", lambda *arguments: 16, raising=False)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", NAMES)
def test_no_reduction_depends_on_the_number_of_threads(name, small_tiles):
    work = reductions()[name]
    with threadpool_limits(1, user_api="blas"):
        expected = work()
    for count in (2, 4):
        with threadpool_limits(count, user_api="blas"):
            for found, one in zip(work(), expected, strict=True):
                scale = np.max(np.abs(one), where=np.isfinite(one), initial=1e-300)
                np.testing.assert_allclose(found, one, rtol=0, atol=1e-13 * scale)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "softmax"])
def test_tile_functions_may_be_sent_elsewhere_and_write_into_nothing(
    name, small_tiles, monkeypatch
):
    """Half a softmax is held between two passes; every other tile stands for itself."""
    sent = []

    def elsewhere(original):
        def run(work, tiles, **options):
            assert isinstance(work, partial)
            there = pickle.loads(pickle.dumps((work, tiles)))
            before = pickle.dumps(there)
            sent.append(len(tiles))
            result = original(*there, **options)
            assert pickle.dumps(there) == before
            return result

        return run

    work = reductions()[name]
    expected = work()
    for module in REDUCTIONS:
        for run in ("over_tiles", "sum_tiles"):
            if hasattr(module, run):
                monkeypatch.setattr(module, run, elsewhere(getattr(_execute, run)))
    for found, one in zip(work(), expected, strict=True):
        np.testing.assert_array_equal(found, one)
    assert max(sent) > 1
