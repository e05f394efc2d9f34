"""Every learner and every space gives on a GPU what it gives here, over a list of shapes.

On the CPU, torch's tensors take the same way through the code, without the fused kernels: the
smaller shapes run there too (`make test-torch`). On a GPU, several processes share the device and
the cores that compute what is compared: `pytest -m gpu -n 8 tests/test_gpu_equality.py`. With
65,537 points a CPU needs seconds for one look at all pairs. So a descent takes one step, and the
objective of its map is compared; the n × n arrays of full rank are refused here and there.
"""

import numpy as np
import pytest
from sklearn.base import clone

from kernelmetric import (
    KPCA,
    NCA,
    RBF,
    Delta,
    KernelTrick,
    Nystroem,
    RandomFeatures,
    TransductiveDistance,
    memory_budget,
    use_device,
)
from kernelmetric.compute.reductions import class_neighbors, lmnn_hinge, mine_impostors, nca_loss
from kernelmetric.learners import (
    ITML,
    LMCA,
    LMNN,
    LSML,
    MCML,
    MLKR,
    MMC,
    RFM,
    SCML,
    SDML,
    IdealizedKernel,
)
from kernelmetric.learners._mcml import CollapsedClasses
from kernelmetric.learners._mlkr import _standardized, mlkr_loss
from kernelmetric.selection import RidgeKPCA
from kernelmetric.transductive import tangent_neighbors
from tested_learners import variants

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

ITERATIONS = 2  # more let rounding grow: the way down is not convex
# n, d, classes, what is special
SHAPES = [
    (1, 3, 1, ""),
    (2, 1, 2, ""),
    (31, 3, 3, ""),
    (33, 64, 33, ""),
    (33, 3, 3, "copies"),
    (40, 5, 1, ""),
    (60, 3, 3, "offset"),
]
LARGE = [
    (1000, 64, 10, ""),
    (1000, 200, 10, "offset"),
    (1000, 784, 1000, ""),
    (1000, 3, 1, ""),
    (1000, 3, 10, "copies"),
]
GPU = pytest.mark.gpu
MANY = pytest.mark.parametrize(
    ("device", "n"), [("cpu", 1300), pytest.param("cuda", 65_537, marks=GPU)]
)
# These compute on the CPU, wherever the points lie: float32 of large shapes shows nothing new.
AT_HOME = (ITML, LSML, MMC, RFM, SCML, SDML, IdealizedKernel)


def cases(shapes_of=None, things=("",)):
    """Small shapes on both; all on a GPU, as far as they are asked of the thing that is tested."""
    names = ("device", "n", "d", "classes", "special")
    there = [
        pytest.param(thing, "cuda", *shape, marks=GPU)
        for thing in things
        for shape in (*SHAPES, *LARGE)
        if shapes_of is None or shapes_of(thing, shape)
    ]
    every = [*((thing, "cpu", *shape) for thing in things for shape in SHAPES), *there]
    return names, every


def with_cases(name, things, shapes_of=None):
    names, every = cases(shapes_of, things)
    ids = ["-".join(map(repr, getattr(case, "values", case))) for case in every]
    return pytest.mark.parametrize((name, *names), every, ids=ids)


def points(n, d, classes, special):
    rng = np.random.RandomState(0)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    X[:, 0] += 0.3 * y / max(1, classes - 1)
    if special == "copies":
        X[n // 2 :] = X[: n - n // 2]
    if special == "offset":
        X += 1e4
    return X, y


def on(device, X, dtype=torch.float64):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.as_tensor(X, dtype=dtype, device=device)


def outcome(estimator, X, y):
    """A fitted copy, or the sentence with which it refuses."""
    try:
        return clone(estimator).fit(X, y)
    except ValueError as refusal:
        return str(refusal)


def brief(learner):
    if "max_iter" in learner.get_params():
        learner = clone(learner).set_params(max_iter=ITERATIONS)
    return learner


def host(values):
    return values.cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def close(found, expected, rtol):
    scale = max(np.abs(expected).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(host(found), expected, atol=rtol * scale, rtol=rtol)


FIRST = list({type(learner): learner for learner in reversed(variants())}.values())


def _suits(learner, shape):
    """With many features one of each kind: a fit takes up to half a minute of a core."""
    return shape[1] < 784 or any(learner is first for first in FIRST)


VARIANTS = [*FIRST, *(one for one in variants() if repr(one) not in set(map(repr, FIRST)))]


# Neighbours, and with them the weights, jump where two distances are equal up to rounding; an
# eigenvalue twice leaves the axes open. Their distances are then another metric of equal value.
@with_cases("learner", VARIANTS, _suits)
def test_a_learner_ends_where_it_ends_here(learner, device, n, d, classes, special):
    X, y = points(n, d, classes, special)
    if type(learner).__name__ == "MLKR":
        y = X[:, 0] - X[:, 0].mean() + np.arange(n) % 3
    learner = brief(learner)
    expected = outcome(learner, X, y)
    found = outcome(learner, on(device, X), y)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert found[:25] == expected[:25]  # scikit-learn's sentence goes on in its own way
        return
    assert not isinstance(found, str), found
    assert found.components_.device.type == device
    # From a thousand points on, first steps are taken in float32, here and there; copies of a
    # point are each other's nearest, and make them steep.
    rtol = 1e-6 if special == "offset" or n >= 1000 else 1e-8
    rtol = 1e-4 if special == "copies" and n >= 1000 else rtol
    assert float(found.loss_) == pytest.approx(
        float(expected.loss_), rel=rtol, abs=rtol, nan_ok=True
    )
    if n >= 1000 and isinstance(learner, AT_HOME):
        return
    single = outcome(learner, on(device, X, torch.float32), y)
    if special == "offset":  # float32 has three digits left of such points
        assert isinstance(single, str) or np.isfinite(float(single.loss_))
        return
    assert not isinstance(single, str), single
    reference = outcome(learner, X.astype(np.float32), y)
    tol = 1e-5 * max(abs(float(reference.loss_)), 1.0)
    gap = abs(float(single.loss_) - float(reference.loss_))
    assert gap <= 20 * tol or np.isnan(float(reference.loss_))


SPACES = [
    KPCA(kernel=RBF(gamma=0.3)),
    KPCA(3, kernel=RBF(gamma=0.3)),
    Nystroem(20, kernel=RBF(gamma=0.3), landmarks="uniform", random_state=0),
    RandomFeatures(50, kernel=RBF(gamma=0.3), random_state=0),
    KernelTrick(kernel=RBF(gamma=0.3)),
    RidgeKPCA(3, kernel=RBF(gamma=0.3)),
    RidgeKPCA(3, kernel=RBF(gamma=0.3) + 0.1 * Delta()),
]


@with_cases("space", SPACES)
def test_a_space_keeps_the_distances_it_keeps_here(space, device, n, d, classes, special):
    X, y = points(n, d, classes, special)
    expected = outcome(space, X, y)
    found = outcome(space, on(device, X), y)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert found[:25] == expected[:25]  # scikit-learn's sentence goes on in its own way
        return
    assert not isinstance(found, str), found
    assert found.rank_ == expected.rank_
    fresh = X[:40] + 0.01
    if isinstance(space, KernelTrick):
        close(found.transform(on(device, fresh)), host(expected.transform(fresh)), 1e-8)
        return
    if space.get_params().get("n_components") == 3 and d >= 200:
        # Noise in many dimensions has no leading directions: only what they carry is compared.
        np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-2)
        return
    rtol = 1e-6 if isinstance(space, RidgeKPCA) or n >= 1000 else 1e-8
    rtol = 1e-4 if special == "offset" else rtol
    close(gram(found, on(device, fresh)), gram(expected, fresh), rtol)
    if special != "offset":
        single = clone(space).fit(on(device, X, torch.float32), y)
        reference = clone(space).fit(X.astype(np.float32), y)
        if single.rank_ == reference.rank_:
            pair = (on(device, fresh, torch.float32), fresh.astype(np.float32))
            close(gram(single, pair[0]), gram(reference, pair[1]), 1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("weighed", [False, True], ids=["plain", "weighed"])
@pytest.mark.parametrize("rows", [1500, 2500])
def test_ridge_regression_of_many_points_is_that_of_here(rows, weighed):
    """Beyond 2,000 points it is solved in single precision here, and in float64 on some cards."""
    X, y = points(rows, 5, 3, "")
    space = RidgeKPCA(3, kernel=RBF(gamma=0.3) + 0.1 * Delta())
    weights = {"sample_weight": 1.0 + np.arange(rows) % 3} if weighed else {}
    expected, found = clone(space), clone(space)
    Z = expected.fit_transform(X, y, **weights)
    there = host(found.fit_transform(on("cuda", X), y, **weights))
    fresh, rtol = X[:40] + 0.01, 1e-6 if rows < 2000 else 1e-3
    close(gram(found, on("cuda", fresh)), gram(expected, fresh), rtol)
    close(there @ there[:40].T, Z @ Z[:40].T, rtol)  # as if each row had been left out


def gram(fitted, points):
    """Inner products of points about the centre."""
    Z = host(fitted.transform(points))
    G = getattr(fitted, "basis_gram_", None)
    return Z @ Z.T if G is None else Z @ host(G if not callable(G) else G()) @ Z.T


@with_cases("_", [""], lambda _, shape: shape[0] > 1)
def test_values_gradients_neighbours_and_impostors_are_those_of_here(
    _, device, n, d, classes, special
):
    if n == 1:
        pytest.skip("no pair at all")
    X, y = points(n, d, classes, special)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    tX = on(device, X)
    L = np.random.RandomState(1).standard_normal((min(d, 20), d))
    targets = class_neighbors(X, y, 2, same=True)[0]
    if special != "copies":
        for same in (True, False) if classes > 1 else (True,):
            there = class_neighbors(tX, y, 2, same=same)[0]
            np.testing.assert_array_equal(there, class_neighbors(X, y, 2, same=same)[0])
    tL = on(device, L)
    E, tE = X @ L.T, tX @ tL.T
    loose = 1e-4 if special == "offset" else 1e-8
    pairs = [(nca_loss(tL, tX, y), nca_loss(L, X, y))]
    if n <= 1000 and classes > 1:
        pairs.append(
            (lmnn_hinge(tE, tX, targets, y, 1.0), lmnn_hinge(E, X, targets, y, 1.0)),
        )
        mined, there = mine_impostors(E, targets, y, 1.0), mine_impostors(tE, targets, y, 1.0)
        assert float(there[0]) == pytest.approx(float(mined[0]), rel=loose, abs=loose)
        if not special:  # equal or rounded distances may be on either side of the margin
            assert set(map(tuple, there[1].tolist())) == set(map(tuple, mined[1].tolist()))
    for found, expected in pairs:
        assert float(found[0]) == pytest.approx(float(expected[0]), rel=loose, abs=loose)
        close(found[1], expected[1], loose)


def value_here(learner, L, X, y):
    """The objective of a learner that descends, at a map: in NumPy and float64."""
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    if isinstance(learner, MLKR):
        return mlkr_loss(L, X - X.mean(axis=0), _standardized(y, X))[0]
    if isinstance(learner, MCML):
        return CollapsedClasses(X, y, 0.0).objective(L)[0]
    if isinstance(learner, NCA):
        return nca_loss(L, X, y)[0]
    E = X @ L.T
    targets = class_neighbors(X, y, learner.n_neighbors, same=True)[0]
    return lmnn_hinge(E, E[:, :0], targets, y, learner.c)[0]


@MANY
@pytest.mark.parametrize(
    "learner",
    [NCA(early_stopping=False), LMNN(), LMCA(2), MCML(), MLKR()],
    ids=repr,
)
def test_many_points_have_the_objective_that_a_fit_there_tells(learner, device, n):
    X, y = points(n, 3, 10, "")
    X += 2.0 * np.stack([y % 2, y // 2 % 2, y // 4], axis=1)  # few impostors, for the CPU's sake
    if isinstance(learner, MLKR):
        y = X[:, 0] - X[:, 0].mean() + np.arange(n) % 3
    learner = clone(learner).set_params(max_iter=1)
    found = clone(learner).fit(on(device, X), y)
    expected = value_here(learner, host(found.components_), X, y)
    rtol = 1e-6 if isinstance(learner, NCA | MLKR) else 1e-8  # which begin in float32
    assert float(found.loss_) == pytest.approx(expected, rel=rtol)
    if isinstance(learner, MCML | MLKR):  # plain torch in both precisions
        return
    single = clone(learner).fit(on(device, X, torch.float32), y)
    expected = value_here(learner, host(single.components_).astype(np.float64), X, y)
    assert float(single.loss_) == pytest.approx(expected, rel=5e-5)


REST = [one for one in FIRST if not isinstance(one, NCA | LMNN | LMCA | MCML | MLKR)]


@pytest.mark.parametrize(
    ("learner", "device", "n"),
    [
        *((one, "cpu", 1300) for one in REST if not isinstance(one, AT_HOME)),
        *(pytest.param(one, "cuda", 65_537, marks=GPU) for one in REST),
    ],
    ids=repr,
)
def test_a_learner_of_many_points_ends_where_it_ends_here(learner, device, n):
    X, y = points(n, 3, 10, "")
    learner = brief(learner)
    expected, found = clone(learner).fit(X, y), clone(learner).fit(on(device, X), y)
    assert float(found.loss_) == pytest.approx(float(expected.loss_), rel=1e-6)
    if not isinstance(learner, AT_HOME):
        single = clone(learner).fit(on(device, X, torch.float32), y)
        reference = clone(learner).fit(X.astype(np.float32), y)
        assert float(single.loss_) == pytest.approx(float(reference.loss_), rel=2e-4)


@MANY
@pytest.mark.parametrize(
    "space",
    [
        KPCA(3, kernel=RBF(gamma=0.3), random_state=0),
        Nystroem(20, kernel=RBF(gamma=0.3), landmarks="uniform", random_state=0),
        RandomFeatures(50, kernel=RBF(gamma=0.3), random_state=0),
        RidgeKPCA(3, kernel=RBF(gamma=0.3), n_landmarks=200),
    ],
    ids=repr,
)
def test_a_space_of_many_points_keeps_the_distances_it_keeps_here(space, device, n):
    X, y = points(n, 3, 10, "")
    fresh = X[:40] + 0.01
    expected = gram(clone(space).fit(X, y), fresh)
    # The landmarks of RidgeKPCA are centres, which a device finds in its own way.
    rtol = 2e-2 if isinstance(space, RidgeKPCA) else 1e-6
    close(gram(clone(space).fit(on(device, X), y), on(device, fresh)), expected, rtol)
    single = clone(space).fit(on(device, X, torch.float32), y)
    close(gram(single, on(device, fresh, torch.float32)), expected, max(rtol, 2e-3))


@MANY
@pytest.mark.parametrize("space", [KPCA(), KernelTrick()], ids=repr)
def test_an_array_of_all_pairs_is_refused_here_and_there(space, device, n):
    X, y = points(n, 3, 10, "")
    with memory_budget("20MB"):
        for where in (X, on(device, X)):
            with pytest.raises(MemoryError, match=r"budget is 20 MB|GB are free"):
                clone(space).fit(where, y)


@MANY
def test_many_points_have_the_values_gradients_and_neighbours_of_here(device, n):
    X, y = points(n, 3, 10, "")
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    tX = on(device, X)
    for same in (False, True):
        targets = class_neighbors(X, y, 2, same=same)[0]
        np.testing.assert_array_equal(class_neighbors(tX, y, 2, same=same)[0], targets)
    single = X.astype(np.float32)
    there = class_neighbors(on(device, single, torch.float32), y, 2, same=False)[0]
    np.testing.assert_array_equal(there, class_neighbors(single, y, 2, same=False)[0])
    X[:, 0] += 0.1 * y
    L = np.diag([3.0, 2.0, 1.0])
    wide = (n / 300) ** (1 / 3)  # the margin of one is then as far as some hundred points reach
    E = wide * (X @ L.T)
    # A device makes no lists of impostors: their hinge, and what they push, is what they are.
    here = nca_loss(L, X, y), lmnn_hinge(E, E, targets, y, 1.0, 0.1)
    for dtype, rtol, of_gradient in ((torch.float64, 1e-8, 1e-8), (torch.float32, 2e-5, 1e-4)):
        tX, tL = on(device, X, dtype), on(device, L, dtype)
        tE = wide * (tX @ tL.T)
        there = nca_loss(tL, tX, y), lmnn_hinge(tE, tE, targets, y, 1.0, 0.1)
        for found, expected in zip(there, here, strict=True):
            assert float(found[0]) == pytest.approx(float(expected[0]), rel=rtol)
            close(found[1], expected[1], of_gradient)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_the_transductive_distance_is_that_of_here(device, labelled):
    on(device, np.zeros(1))
    X, y = labelled
    y = np.where(np.arange(len(y)) % 5, -1, y)
    expected = TransductiveDistance().fit(X, y).pairwise_distances(X)
    with use_device(device):
        found = TransductiveDistance().fit(X, y).pairwise_distances(X)
    close(found, expected, 1e-6)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_tangent_neighbours_are_those_of_here(device):
    on(device, np.zeros(1))
    images = np.random.RandomState(0).uniform(size=(120, 64))
    distances, indices = tangent_neighbors(images, 4, shape=(8, 8), n_candidates=20)
    with use_device(device):
        found = tangent_neighbors(images, 4, shape=(8, 8), n_candidates=20)
    np.testing.assert_array_equal(found[1], indices)
    close(found[0], distances, 1e-10)
    tensors = tangent_neighbors(on(device, images), 4, shape=(8, 8), n_candidates=20)
    np.testing.assert_array_equal(tensors[1], indices)
