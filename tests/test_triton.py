"""The fused kernels compute what NumPy computes: on a GPU where there is one, else interpreted."""

import os
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if "triton" not in sys.modules and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton")

from kernelmetric.compute.backends import cuda  # noqa: E402
from kernelmetric.compute.backends.cuda import _bounds, _dense, _halves  # noqa: E402
from kernelmetric.compute.backends.cuda._halves import halves, plan  # noqa: E402
from kernelmetric.compute.backends.cuda._hinge import hinge_sums  # noqa: E402
from kernelmetric.compute.backends.cuda._nearest import pair_squares, ranked, smallest  # noqa: E402
from kernelmetric.compute.backends.cuda._softmax import softmax_sums  # noqa: E402
from kernelmetric.compute.reductions import (  # noqa: E402
    _softmax,
    class_neighbors,
    lmnn_hinge,
    nca_loss,
    nearest_neighbors,
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = [
    pytest.mark.skipif(
        DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1",
        reason="needs a GPU, or Triton's interpreter from the beginning",
    ),
    # The interpreter is NumPy's arithmetic, which tells of underflow where a GPU does not.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def single(values):
    return torch.tensor(np.asarray(values), dtype=torch.float32, device=DEVICE)


def points(n, r, classes, seed=0):
    rng = np.random.RandomState(seed)
    E = rng.standard_normal((n, r)) / np.sqrt(r)
    return E, np.sort(np.arange(n) % classes)


def by_numpy(E, codes):
    """What the kernel sums up, by blocks of rows."""
    own_class = partial(_softmax._own_class, codes, None)
    value, sums = _softmax._over_rows(E, E, own_class, None)
    return -value, sums


def close(found, expected, rtol):
    found = found.cpu().numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=rtol * max(np.abs(expected).max(), 1e-2))


SHAPES = [(2, 1, 2), (31, 3, 3), (33, 20, 33), (130, 64, 1), (129, 70, 2), (257, 200, 5)]


@pytest.mark.parametrize(("n", "r", "classes"), SHAPES)
def test_the_softmax_is_numpys(n, r, classes):
    E, codes = points(n, r, classes)
    total, sums = by_numpy(E, codes)
    found, product = softmax_sums(single(E), torch.as_tensor(codes, device=DEVICE))
    assert float(found) == pytest.approx(total, rel=1e-5, abs=1e-6)
    close(product, sums, 2e-5)


def test_one_product_instead_of_three_is_good_to_three_digits(monkeypatch):
    monkeypatch.setattr(_halves, "precise", lambda: False)
    E, codes = points(300, 20, 3)
    total, sums = by_numpy(E, codes)
    found, product = softmax_sums(single(E), torch.as_tensor(codes, device=DEVICE))
    assert float(found) == pytest.approx(total, rel=1e-3)
    close(product, sums, 5e-3)


def test_a_row_far_from_all_others_has_its_own_softmax():
    E, codes = points(60, 5, 3)
    E[0] += 1000.0
    total, _ = by_numpy(E, codes)
    found, product = softmax_sums(single(E), torch.as_tensor(codes, device=DEVICE))
    assert np.all(np.isfinite(product.cpu().numpy()))
    assert abs(float(found) - total) < 1.0  # the far row has at most one, and is tied in float32


def test_repeated_points_share_the_softmax():
    E = np.repeat(points(20, 3, 1)[0], 3, axis=0)
    codes = np.sort(np.arange(60) % 2)
    total, sums = by_numpy(E, codes)
    found, product = softmax_sums(single(E), torch.as_tensor(codes, device=DEVICE))
    assert float(found) == pytest.approx(total, rel=1e-5)
    close(product, sums, 1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "r", "classes"), [(31, 3, 3), (129, 20, 4), (200, 130, 2)])
def test_the_hinge_is_numpys(n, r, classes, smoothing):
    E, codes = points(n, r, classes)
    targets = class_neighbors(E, codes, 3, same=True)[0]
    value, product = lmnn_hinge(E, E, targets, codes, 1.0, smoothing)
    squares = np.sum((E[:, None] - E[targets]) ** 2, axis=2)
    loss, per_target, there = hinge_sums(
        single(E), single(1.0 + squares), torch.as_tensor(codes, device=DEVICE), smoothing,
        gradient=True,
    )  # fmt: skip
    assert float(loss) + squares.sum() == pytest.approx(value, rel=1e-5)
    W = np.zeros((n, n))
    np.add.at(
        W, (np.repeat(np.arange(n), 3), targets.ravel()), 1 + per_target.cpu().numpy().ravel()
    )
    W += W.T
    close(there, W.sum(axis=1)[:, None] * E - W @ E - product, 2e-5)
    alone = hinge_sums(
        single(E), single(1.0 + squares), torch.as_tensor(codes, device=DEVICE), smoothing,
        gradient=False,
    )  # fmt: skip
    assert float(alone[0]) == pytest.approx(float(loss), rel=1e-6)


def test_a_missing_target_costs_nothing():
    E, codes = points(40, 4, 2)
    thresholds = np.full((40, 2), -np.inf)
    thresholds[:, 0] = 2.0
    found = hinge_sums(
        single(E), single(thresholds), torch.as_tensor(codes, device=DEVICE), 0.1, gradient=True
    )
    alone = hinge_sums(
        single(E), single(thresholds[:, :1]), torch.as_tensor(codes, device=DEVICE), 0.1,
        gradient=True,
    )  # fmt: skip
    assert float(found[0]) == pytest.approx(float(alone[0]), rel=1e-6)
    assert not np.any(found[1].cpu().numpy()[:, 1])


def test_two_halves_are_the_whole():
    E = np.random.RandomState(0).standard_normal((33, 7)) * np.logspace(-9, 9, 33)[:, None]
    codes = torch.arange(33, device=DEVICE)
    parts = halves(single(E), codes)
    whole = (parts.high.double() + parts.low.double() / 2048) * parts.scale.double()[:, None]
    whole = whole.cpu().numpy()[:33, :7]
    size = np.abs(E).max(axis=1, keepdims=True)
    assert np.all(np.abs(whole - E) <= 2.0**-22 * size)
    assert np.all(np.isinf(parts.squares.cpu().numpy()[33:]))
    np.testing.assert_array_equal(parts.codes.cpu().numpy()[:34], [*range(33), -1])


@pytest.mark.parametrize("n", [1, 2, 128, 129, 10_000, 60_000, 1_000_000])
def test_programs_cover_all_columns(n):
    grid, share, options = plan(n, 64)
    assert grid[0] * options["ROWS"] >= n
    assert grid[1] * share >= -(-n // 128) * 128
    assert share % options["COLUMNS"] == 0


def test_candidates_are_ranked_by_differences_and_then_by_row():
    X = np.random.RandomState(0).randint(0, 3, size=(40, 70)).astype(np.float64)
    X[5] = X[4]
    Q = single(X[:9])
    found = torch.as_tensor(np.random.RandomState(1).randint(40, size=(9, 3)), device=DEVICE)
    expected = np.sum((X[:9, None] - X[found.cpu().numpy()]) ** 2, axis=2)
    np.testing.assert_array_equal(pair_squares(Q, single(X), found).cpu().numpy(), expected)
    D2 = np.sum((X[:9, None] - X[None]) ** 2, axis=2)
    rows, squares, left = ranked(single(D2), np.zeros(9), Q, single(X), 5)
    order = np.lexsort((np.broadcast_to(np.arange(40), D2.shape), D2), axis=1)[:, :5]
    settled = np.setdiff1d(np.arange(9), left)
    np.testing.assert_array_equal(rows[settled], order[settled])
    np.testing.assert_array_equal(squares, np.take_along_axis(D2, order, axis=1))


@pytest.mark.parametrize("n", [40, 4000, 4037])
def test_the_smallest_of_a_long_row_are_found_by_groups(n):
    low = np.random.RandomState(0).standard_normal((7, n)).astype(np.float32)
    low[0, ::3] = np.inf
    low[1, 5:] = np.inf  # fewer than are asked for
    low[2] = np.sort(low[2])
    low[3] = np.sort(low[3])[::-1]
    low[4, -9:] -= 100.0
    values, found = smallest(single(low), 9)
    np.testing.assert_array_equal(values.cpu().numpy(), np.sort(low, axis=1)[:, :9])
    at = np.take_along_axis(low, found.cpu().numpy(), axis=1)
    np.testing.assert_array_equal(at, values.cpu().numpy())
    assert all(len(set(row)) == 9 for row in found.tolist())


def test_a_query_is_settled_where_no_other_point_can_be_nearer():
    X = np.random.RandomState(0).standard_normal((60, 3))
    D2 = np.sum((X[:9, None] - X[None]) ** 2, axis=2)
    base, nearest = np.linspace(0.0, 1.0, 9), np.sort(D2, axis=1)
    gains = nearest[:, 12] - nearest[:, 4]  # of the last candidate beside the last one that counts
    slack = 1.001 * np.median(gains)
    low = D2 - base[:, None] - slack
    _, squares, left = ranked(single(low), base, single(X[:9]), single(X), 5)
    np.testing.assert_array_equal(left, np.flatnonzero(gains <= slack))
    assert len(left) == 5
    np.testing.assert_allclose(squares, nearest[:, :5], rtol=1e-4)
    _, _, left = ranked(single(low[:, :13]), base, single(X[:9]), single(X[:13]), 5)
    assert not len(left)  # all are candidates


@pytest.mark.parametrize(("n", "m"), [(5, 2), (8, 1), (17, 2), (100, 7), (101, 12), (96, 13)])
def test_products_of_columns_are_numpys(n, m):
    F = np.random.RandomState(0).standard_normal((n, m))
    found = _dense.column_products(torch.tensor(F, device=DEVICE)).cpu().numpy()
    np.testing.assert_allclose(found, F.T @ F, atol=1e-12)


def test_positive_definite_equations_are_solved_on_the_device():
    rng = np.random.RandomState(0)
    F = rng.standard_normal((6, 6))
    A, B = F @ F.T + np.eye(6), rng.standard_normal((6, 2))
    solver = _dense.PositiveSolver(torch.tensor(A, device=DEVICE))
    np.testing.assert_allclose(solver(B), np.linalg.solve(A, B), atol=1e-9)
    np.testing.assert_allclose(solver.inverse_diagonal(), np.diag(np.linalg.inv(A)), atol=1e-9)
    A[3, 3] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="6 rows whose leading minor of order 4 is not"):
        _dense.PositiveSolver(torch.tensor(A, device=DEVICE))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_are_made_orthonormal_and_keep_their_span(dtype):
    rng = np.random.RandomState(0)
    B = rng.standard_normal((30, 4)) * [1e-6, 1.0, 1e6, 1.0]
    B[:, 1] = B[:, 0] * 1e6 + 1e-3 * B[:, 1]  # nearly along another
    Q = _dense.orthonormal_columns(torch.tensor(B, dtype=dtype, device=DEVICE))
    assert Q.dtype == dtype
    Q = Q.double().cpu().numpy()
    eps = float(torch.finfo(dtype).eps)
    np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=20 * eps)
    size = np.linalg.norm(B, axis=0)
    np.testing.assert_allclose((Q @ (Q.T @ B)) / size, B / size, atol=1e4 * eps)


def test_columns_that_depend_on_each_other_are_not_made_orthonormal():
    B = np.random.RandomState(0).standard_normal((30, 3))
    for bad in (B[:, [0, 1, 0]], 0.0 * B, B[:2], B * [1.0, np.nan, 1.0]):
        assert _dense.orthonormal_columns(torch.tensor(bad, device=DEVICE)) is None
    found = []
    for seed in range(10):  # as good as dependent: after one round they are far from orthonormal
        B = np.random.RandomState(seed).standard_normal((30, 3))
        B[:, 2] = B[:, 1] + 3e-8 * B[:, 2]
        found.append(_dense.orthonormal_columns(torch.tensor(B, device=DEVICE)))
    assert sum(Q is None for Q in found) > 3
    assert _dense.orthonormal_columns(torch.tensor(B[:2, :2], device=DEVICE)) is not None


def test_products_of_halves_bound_distances(monkeypatch):
    if DEVICE == "cpu":  # which has no such product

        def mm(A, B, out_dtype):
            return A.to(out_dtype) @ B.to(out_dtype)

        monkeypatch.setattr(_bounds, "torch", SimpleNamespace(**{**vars(torch), "mm": mm}))
    rng = np.random.RandomState(0)
    points, q = rng.uniform(2.0, 3.0, (40, 8)), rng.standard_normal((9, 8))
    points[:, ::3] *= -1.0
    q[4] *= 1e-4
    q[5] = 0.0
    b = np.sum(points**2, axis=1)
    monkeypatch.setattr(_bounds, "_mixed_products", lambda: True)
    bounds = _bounds.bounds_from(single(points))
    bounds.add(single(b))
    expected = b - 2.0 * q @ points.T
    found = bounds(single(q)).double().cpu().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    scale = float(bounds.scale)
    assert np.abs(points).max() <= scale < 2 * np.abs(points).max()
    assert np.log2(scale) == int(np.log2(scale))


def test_points_of_very_different_size_have_no_bounds_by_halves(monkeypatch):
    monkeypatch.setattr(_bounds, "_mixed_products", lambda: True)
    X = np.ones((5, 3))
    assert _bounds.bounds_from(single(X)) is not None
    X[2] = 0.0
    assert _bounds.bounds_from(single(X)) is not None  # zero has all its digits
    X[2] = 0.2
    assert _bounds.bounds_from(single(X)) is None
    assert _bounds.bounds_from(single(X[:0])) is None
    monkeypatch.setattr(_bounds, "_mixed_products", lambda: False)
    assert _bounds.bounds_from(single(np.ones((5, 3)))) is None


def test_two_halves_of_float16_have_the_digits_of_float32():
    x = single(np.random.RandomState(0).uniform(-1.0, 1.0, 100))
    high, low = _bounds._halves(x)
    assert high.dtype == low.dtype == torch.float16
    whole = high.double() + low.double()
    assert float(torch.amax(torch.abs(whole - x.double()))) < 2.0**-21
    sizes = _bounds._power_of_two(single([0.0, 0.3, 1.0, 3.0, 4.0])).cpu().numpy()
    np.testing.assert_array_equal(sizes, [1.0, 0.5, 2.0, 4.0, 8.0])


@pytest.mark.parametrize(
    ("version", "good"), [("2.7.1+cu126", False), ("2.8.0", True), ("2.10.1", True), ("3.0", True)]
)
def test_torch_multiplies_halves_into_singles_since_2_8(version, good, monkeypatch):
    monkeypatch.setattr(_bounds, "torch", SimpleNamespace(__version__=version))
    assert _bounds._mixed_products() is good


def test_forbidden_points_are_infinitely_far():
    X = np.arange(12.0)[:, None]
    D2 = (X - X.T) ** 2
    np.fill_diagonal(D2, np.inf)
    D2[:, 3:] = np.inf
    _, squares, left = ranked(single(D2), np.zeros(12), single(X), single(X), 4)
    assert np.isinf(squares[:, 3]).all()
    assert not len(left)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
@pytest.mark.parametrize(
    ("n", "r", "classes", "offset"),
    [(2, 1, 2, 0), (31, 3, 3, 0), (33, 64, 33, 1e4), (1000, 200, 1000, 0), (1000, 784, 10, 0)],
)
def test_reductions_on_the_device_are_numpys(n, r, classes, offset):
    X, codes = points(n, r, classes)
    X = X + offset
    rng = np.random.RandomState(1)
    L = rng.standard_normal((min(r, 50), r))
    targets = class_neighbors(X, codes, 3, same=True)[0]
    for dtype, rtol in ((torch.float64, 1e-8), (torch.float32, 2e-4 if offset else 3e-5)):
        tX, tL = (torch.as_tensor(a, dtype=dtype, device="cuda") for a in (X, L))
        for found, expected in (
            (nca_loss(tL, tX, codes), nca_loss(L, X, codes)),
            (
                lmnn_hinge(tX, tX, targets, codes, 1.0, 0.1),
                lmnn_hinge(X, X, targets, codes, 1.0, 0.1),
            ),
        ):
            assert found[0] == pytest.approx(expected[0], rel=rtol, abs=rtol)
            np.testing.assert_allclose(
                found[1].cpu().numpy(), expected[1], atol=rtol * max(np.abs(expected[1]).max(), 1)
            )
        k = min(3, n - 1)
        exact = nearest_neighbors(tX.cpu().numpy(), k)[0]
        np.testing.assert_array_equal(nearest_neighbors(tX, k)[0], exact)
        np.testing.assert_array_equal(
            class_neighbors(tX, codes, 3, same=False)[0],
            class_neighbors(tX.cpu().numpy(), codes, 3, same=False)[0],
        )


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_many_points_are_as_good_in_float32_as_in_float64():
    n = 65_537
    generator = torch.Generator("cuda").manual_seed(0)
    codes = np.sort(np.arange(n) % 10)
    noise = torch.randn(n + 10, 50, dtype=torch.float64, device="cuda", generator=generator)
    X = noise[:n] + 0.5 * noise[n:][torch.as_tensor(codes, device="cuda")]
    L = torch.eye(50, dtype=torch.float64, device="cuda")
    value, gradient = nca_loss(L, X, codes)
    assert cuda.suits(X.float())
    found, there = nca_loss(L.float(), X.float(), codes)
    assert found == pytest.approx(value, rel=1e-5)
    assert float((there - gradient).norm() / gradient.norm()) < 1e-5
    again = nca_loss(L.float(), X.float(), codes)
    assert again[0] == found
    assert torch.equal(again[1], there)
