"""A NumPy user on a device: one line, the same numbers, NumPy again."""

import pickle
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from kernelmetric import (
    KPCA,
    LFDA,
    LMNN,
    NCA,
    RBF,
    IdealizedKernel,
    Kernelized,
    KernelTrick,
    Nystroem,
    TransductiveDistance,
    use_device,
)
from kernelmetric.compute import memory_budget, to_device
from kernelmetric.compute._budget import current_budget
from kernelmetric.compute.backends import cuda
from kernelmetric.compute.reductions import _centres
from kernelmetric.graphs import laplacian, neighbor_graph
from kernelmetric.inputs import to_host
from kernelmetric.solvers import smallest_eigenvectors


def test_without_torch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="torch is not installed"), use_device("cuda"):
        pass


def test_outside_nothing_moves():
    X = np.eye(2)
    assert to_device(X) is X
    assert to_host(X) is X


@pytest.mark.torch
@pytest.mark.parametrize("name", ["no such device", "cuda:99", "mps", 3.5])
def test_a_device_that_is_not_there_is_refused(name):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="expected a device of this machine"), use_device(name):
        pass


METRICS = [
    NCA(2),
    LMNN(),
    LFDA(2),
    Kernelized(LMNN(), RBF(gamma=0.3), KPCA(20)),
    Kernelized(NCA(2), RBF(gamma=0.3), Nystroem(200)),
    Kernelized(LMNN()),
    Kernelized(PCA(2), RBF(gamma=0.3)),
    TransductiveDistance(),
]


@pytest.mark.torch
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_the_numbers_are_those_of_numpy_and_nothing_of_torch_is_kept(metric, labelled, fresh):
    pytest.importorskip("torch")
    X, y = labelled
    expected = clone(metric).fit(X, y)
    with use_device("cpu"):
        found = clone(metric).fit(X, y)
        Z = found.transform(fresh)
        D = found.pairwise_distances(fresh)
    assert type(Z) is type(D) is np.ndarray
    assert b"torch" not in pickle.dumps(found)
    scale = expected.pairwise_distances(fresh).max()
    np.testing.assert_allclose(D, expected.pairwise_distances(fresh), atol=2e-3 * scale)
    np.testing.assert_allclose(found.pairwise_distances(fresh), D, atol=1e-8 * scale)


@pytest.mark.torch
def test_every_learner_learns_there(learner, labelled, fresh):
    pytest.importorskip("torch")
    X, y = labelled
    expected = clone(learner).fit(X, y).pairwise_distances(fresh)
    with use_device("cpu"):
        found = learner.fit(X, y).pairwise_distances(fresh)
    assert b"torch" not in pickle.dumps(learner)
    np.testing.assert_allclose(found, expected, atol=1e-3 * expected.max())


@pytest.mark.torch
def test_parameters_stay_the_objects_that_were_given(labelled):
    pytest.importorskip("torch")
    X, y = labelled
    init = [[1.0] + [0.0] * (X.shape[1] - 1)]
    metric = NCA(1, init=init)
    with use_device("cpu"):
        metric.fit(X, y)
    assert metric.init is init


@pytest.mark.torch
def test_a_learner_of_others_gets_numpy(labelled, fresh):
    pytest.importorskip("torch")
    X, y = labelled
    expected = Kernelized(SVC(), RBF(gamma=0.3)).fit(X, y).predict(fresh)
    with use_device("cpu"):
        found = Kernelized(SVC(), RBF(gamma=0.3)).fit(X, y).predict(fresh)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.torch
def test_pairs_learn_there(labelled):
    pytest.importorskip("torch")
    X, _ = labelled
    similar, dissimilar = [[0, 1], [2, 3]], [[0, 20], [5, 25]]
    expected = IdealizedKernel().fit(X, similar=similar, dissimilar=dissimilar)
    with use_device("cpu"):
        found = IdealizedKernel().fit(X, similar=similar, dissimilar=dissimilar)
    np.testing.assert_allclose(
        found.pairwise_distances(X), expected.pairwise_distances(X), atol=1e-6
    )


@pytest.mark.torch
def test_a_failed_fit_leaves_nothing_of_torch(labelled):
    pytest.importorskip("torch")
    X, y = labelled
    metric = NCA(2).fit(X, y)
    before = metric.components_
    with use_device("cpu"), pytest.raises(ValueError, match="n_components"):
        metric.set_params(n_components=1000).fit(X, y)
    assert metric.components_ is before


@pytest.mark.torch
def test_tensors_of_the_user_stay_tensors(labelled):
    torch = pytest.importorskip("torch")
    X, y = labelled
    with use_device("cpu"):
        metric = NCA(2).fit(torch.as_tensor(X), y)
        assert isinstance(metric.components_, torch.Tensor)
        assert isinstance(metric.transform(torch.as_tensor(X)), torch.Tensor)


@pytest.mark.torch
def test_eigenvectors_are_found_there():
    pytest.importorskip("torch")
    X = np.random.RandomState(0).standard_normal((1200, 3))
    A = laplacian(neighbor_graph(X, 8))
    expected = smallest_eigenvectors(A, 5, null=np.ones(1200), random_state=0)
    with use_device("cpu"):
        found = smallest_eigenvectors(A, 5, null=np.ones(1200), random_state=0)
    assert type(found.vectors) is np.ndarray
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-8)
    assert found.converged


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_centres_on_a_device_are_means_of_clusters(library):
    xp = pytest.importorskip(library)
    rng = np.random.RandomState(0)
    middles = 20.0 * rng.standard_normal((7, 3))
    X = np.repeat(middles, 30, axis=0) + 0.01 * rng.standard_normal((210, 3))
    C = _centres._centres(xp.asarray(X), 7, np.random.RandomState(0), 5)
    means = X.reshape(7, 30, 3).mean(axis=1)
    nearest = np.argmin(np.sum((C[:, None] - means) ** 2, axis=2), axis=1)
    if len(np.unique(nearest)) == 7:  # seeds may miss a cluster, as those of k-means++ may
        np.testing.assert_allclose(C, means[nearest], atol=1e-6)
    assert len(np.unique(nearest)) >= 5
    same = _centres._centres(xp.asarray(np.ones((20, 2))), 7, rng, 3)
    np.testing.assert_array_equal(same, np.ones((1, 2)))


@pytest.mark.torch
def test_the_command_line_computes_on_a_device(run, tmp_path):
    pytest.importorskip("torch")
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=list("abc"))
    frame["label"] = np.where(frame["a"] > 0, "yes", "no")
    table, model = tmp_path / "table.csv", tmp_path / "model.km"
    frame.to_csv(table, index=False)
    fit = ["fit", table, "--label", "label", "--out", model]
    done = run(*fit, "--device", "cpu")
    assert done.exit_code == 0, done.output
    done = run("transform", model, table, "--device", "cpu")
    assert done.exit_code == 0, done.output
    refused = run(*fit, "--device", "no such device")
    assert refused.exit_code == 1
    assert "expected a device of this machine" in refused.output


@pytest.mark.torch
@pytest.mark.parametrize(("n", "m"), [(3, 5), (90, 7), (101, 6), (40, 1)])
def test_half_of_the_products_of_columns_are_the_others(n, m):
    torch = pytest.importorskip("torch")
    from kernelmetric.compute.backends.cuda._dense import column_products

    F = np.random.RandomState(0).standard_normal((n, m))
    found = column_products(torch.as_tensor(F)).numpy()
    np.testing.assert_allclose(found, F.T @ F, atol=1e-12 * n)
    np.testing.assert_array_equal(found[: m // 2, m // 2 :], found[m // 2 :, : m // 2].T)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_become_orthonormal_by_products_alone(dtype):
    torch = pytest.importorskip("torch")
    from kernelmetric.compute.backends.cuda._dense import orthonormal_columns

    rng = np.random.RandomState(0)
    U, V = (np.linalg.qr(rng.standard_normal((rows, 9)))[0] for rows in (300, 9))
    for condition in (1.0, 1e3, 1e6):
        B = (U * np.geomspace(1.0, 1.0 / condition, 9)) @ V.T * np.geomspace(1e-9, 1e9, 9)
        B = torch.as_tensor(B.astype(dtype))
        Q = orthonormal_columns(B).numpy()
        assert Q.dtype == dtype
        eps, wide = np.finfo(dtype).eps, B.double().numpy()
        np.testing.assert_allclose(Q.T @ Q, np.eye(9), atol=20 * eps)
        part = np.linalg.qr(wide / np.linalg.norm(wide, axis=0))[0]
        np.testing.assert_allclose(Q @ (Q.T @ part), part, atol=20 * eps * condition)
    for column in (0.0, np.nan, B[:, 1]):  # none, no number, one twice
        B[:, 0] = torch.as_tensor(column, dtype=B.dtype)
        assert orthonormal_columns(B) is None
    assert orthonormal_columns(B[:4]) is None


GB = 10**9


@pytest.fixture
def small_device(monkeypatch):
    """A device of one gigabyte, of which a fifth is free."""
    pytest.importorskip("torch")
    monkeypatch.setattr(cuda, "room", lambda device: cuda.Room(GB, GB // 5))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("metric", "n"),
    [
        (KPCA(kernel=RBF(gamma=0.3)), 3000),
        (KernelTrick(kernel=RBF(gamma=0.3)), 3000),
        (Nystroem(3000, kernel=RBF(gamma=0.3)), 4000),
        (Kernelized(LMNN(), RBF(gamma=0.3), KPCA()), 3000),
    ],
    ids=repr,
)
def test_what_does_not_fit_the_device_is_refused_before_it_starts(metric, n, small_device):
    X = np.random.RandomState(0).standard_normal((n, 2))
    with use_device("cpu"), pytest.raises(MemoryError, match=r"GB are free on the device: try"):
        metric.fit(X, np.arange(n) % 2)
    assert not hasattr(metric, "n_features_in_")


@pytest.mark.torch
def test_values_of_all_pairs_are_refused_where_the_device_does_not_hold_them(small_device):
    torch = pytest.importorskip("torch")
    X = np.random.RandomState(0).standard_normal((60, 2))
    metric = NCA(2, max_iter=2, tol=1.0).fit(torch.as_tensor(X), np.arange(60) % 2)
    many = torch.zeros((4000, 2), dtype=torch.float64)
    for values in (metric.pairwise_distances, metric.pairwise_kernels):
        with pytest.raises(MemoryError, match="free on the device"):
            values(many)


@pytest.mark.torch
def test_blocks_are_a_share_of_the_device_and_never_more_than_is_free(monkeypatch):
    torch = pytest.importorskip("torch")
    seen = []

    class Looking(RBF):
        def __call__(self, X, Y=None):
            seen.append(current_budget())
            return super().__call__(X, Y)

    X = torch.as_tensor(np.random.RandomState(0).standard_normal((30, 2)))
    for free, expected in ((4 * GB, GB), (GB, 3 * GB // 4)):
        monkeypatch.setattr(cuda, "room", lambda device, free=free: cuda.Room(4 * GB, free))
        KPCA(kernel=Looking(gamma=0.3)).fit(X)
        assert set(seen) == {expected}
        seen.clear()
    with memory_budget("100MB"):
        KPCA(kernel=Looking(gamma=0.3)).fit(X)
    assert set(seen) == {10**8}
    assert current_budget() != 10**8


@pytest.mark.torch
@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory\nCUDA kernel errors might be reported elsewhere",
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1 GiB",
    ],
    ids=["driver", "library", "torch"],
)
def test_a_device_that_runs_out_of_memory_says_so_in_a_sentence(words, monkeypatch, labelled):
    torch = pytest.importorskip("torch")
    kind = torch.OutOfMemoryError if words.startswith("CUDA out") else RuntimeError

    class Full(RBF):
        def __call__(self, X, Y=None):
            raise kind(words)

    X, _ = labelled
    with pytest.raises(MemoryError, match="The device has not so much memory") as caught:
        KPCA(kernel=Full(gamma=0.3)).fit(torch.as_tensor(X))
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__
    kind, words = RuntimeError, "another fault"
    with pytest.raises(RuntimeError, match="another fault"):
        KPCA(kernel=Full(gamma=0.3)).fit(torch.as_tensor(X))
