"""torch tensors in, torch tensors out, and the numbers of NumPy."""

import numpy as np
import pytest
from sklearn.base import clone

from kernelmetric import DNE, KPCA, LMNN, NCA, RBF, Kernelized, KernelTrick, Nystroem, load, save
from kernelmetric.compute._arrays import in_library_of, like
from kernelmetric.compute.reductions import (
    class_neighbors,
    lmnn_hinge,
    mine_impostors,
    nca_loss,
    nearest_neighbors,
    squared_distances,
)
from kernelmetric.compute.reductions._listed import lmnn_hinge_on

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param


def on(device, array, dtype=torch.float64):
    return torch.as_tensor(array, dtype=dtype, device=device)


@pytest.mark.parametrize("bring", [like, in_library_of])
def test_arrays_that_must_not_be_written_or_run_backwards_are_copied(device, bring):
    """torch warns of the first, once a process, and refuses the second."""
    X = on(device, np.ones(3))
    fixed = np.arange(3.0)
    fixed.setflags(write=False)
    for values in (fixed, np.arange(3.0)[::-1]):
        tensor = bring(values, X)
        np.testing.assert_array_equal(tensor.cpu().numpy(), values)
        tensor += 1.0
        assert values[1] == 1.0


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_reductions_agree_with_numpy(device, dtype, rtol, labelled):
    X, y = labelled
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    L = np.random.RandomState(0).standard_normal((2, 4))
    targets = class_neighbors(X, y, 3, same=True)[0]
    E = X @ L.T
    tX, tL, tE = (on(device, a, dtype) for a in (X, L, E))
    pairs = mine_impostors(E, targets, y, 0.7)[1]
    for result, expected in [
        (nca_loss(tL, tX, y), nca_loss(L, X, y)),
        (lmnn_hinge(tE, tX, targets, y, 0.7), lmnn_hinge(E, X, targets, y, 0.7)),
        (lmnn_hinge(tE, tX, targets, y, 0.7, 0.1), lmnn_hinge(E, X, targets, y, 0.7, 0.1)),
        (
            lmnn_hinge_on(pairs, tE, tX, targets, 0.7, 0.1),
            lmnn_hinge_on(pairs, E, X, targets, 0.7, 0.1),
        ),
    ]:
        assert result[0] == pytest.approx(expected[0], rel=rtol)
        assert isinstance(result[1], torch.Tensor)
        assert result[1].dtype == dtype
        assert result[1].device.type == device
        scale = np.abs(expected[1]).max()
        np.testing.assert_allclose(result[1].cpu().numpy(), expected[1], atol=rtol * scale)
    np.testing.assert_array_equal(nearest_neighbors(tX, 3)[0], nearest_neighbors(X, 3)[0])
    for same in (True, False):
        np.testing.assert_array_equal(
            class_neighbors(tX, y, 3, same=same)[0], class_neighbors(X, y, 3, same=same)[0]
        )
    D2 = squared_distances(X)
    np.testing.assert_allclose(
        squared_distances(tX).cpu().numpy(), D2, atol=rtol * D2.max(), rtol=rtol
    )


def test_torchs_own_gradient_is_ours(labelled):
    X, y = labelled
    order = np.argsort(y, kind="stable")
    X, y = on("cpu", X[order]), torch.as_tensor(y[order])
    L = on("cpu", np.random.RandomState(0).standard_normal((2, 4))).requires_grad_()
    E = X @ L.T
    distances = ((E[:, None] - E[None]) ** 2).sum(dim=2)
    distances = distances + torch.diag(torch.full((len(X),), torch.inf))
    p = torch.softmax(-distances, dim=1)
    loss = -(p * (y[:, None] == y[None])).sum()
    loss.backward()
    value, gradient = nca_loss(L.detach(), X, y.numpy())
    assert value == pytest.approx(loss.item())
    np.testing.assert_allclose(gradient.numpy(), L.grad.numpy(), atol=1e-9)


def test_learners_agree_with_numpy(device, learner, labelled, fresh):
    X, y = labelled
    expected = clone(learner).fit(X, y)
    fitted = learner.fit(on(device, X), y)
    assert isinstance(fitted.components_, torch.Tensor)
    assert fitted.components_.device.type == device
    assert fitted.loss_ == pytest.approx(expected.loss_, rel=1e-6)
    Z = fitted.transform(on(device, fresh))
    assert isinstance(Z, torch.Tensor)
    D = fitted.pairwise_distances(on(device, fresh)).cpu().numpy()
    scale = expected.pairwise_distances(fresh).max()
    np.testing.assert_allclose(D, expected.pairwise_distances(fresh), atol=1e-3 * scale)
    again = fitted.fit(on(device, X), torch.as_tensor(y, device=device))
    assert again.loss_ == pytest.approx(expected.loss_, rel=1e-6)


@pytest.mark.parametrize("space", [KPCA(), Nystroem(1000), KernelTrick()], ids=repr)
@pytest.mark.parametrize("learner", [NCA(2), LMNN(reg=0.5), DNE(2)], ids=repr)
def test_kernelized_learners_agree_with_numpy(device, learner, space, labelled, fresh):
    X, y = labelled
    metric = Kernelized(learner, RBF(gamma=0.3), space)
    expected = clone(metric).fit(X, y)
    fitted = clone(metric).fit(on(device, X), y)
    D = fitted.pairwise_distances(on(device, fresh), on(device, X))
    assert isinstance(D, torch.Tensor)
    assert D.device.type == device
    reference = expected.pairwise_distances(fresh, X)
    assert fitted.learner_.loss_ == pytest.approx(expected.learner_.loss_, rel=1e-4)
    if isinstance(learner, DNE):
        np.testing.assert_allclose(D.cpu().numpy(), reference, atol=1e-6)
    single = clone(metric).fit(on(device, X, torch.float32), y)
    assert single.transform(on(device, fresh, torch.float32)).dtype == torch.float32


def test_neighbours_from_the_input_space_agree_with_numpy(device, labelled):
    X, y = labelled
    metric = Kernelized(DNE(2), RBF(gamma=0.3), neighbors="input")
    expected = clone(metric).fit(X, y).learner_.loss_
    assert clone(metric).fit(on(device, X), y).learner_.loss_ == pytest.approx(expected)


def test_fitted_there_applied_here(device, labelled, fresh):
    X, y = labelled
    metric = NCA(2).fit(on(device, X), y)
    Z = metric.transform(fresh)
    assert isinstance(Z, np.ndarray)
    np.testing.assert_allclose(Z, metric.transform(on(device, fresh)).cpu().numpy(), atol=1e-10)


def test_pairs_of_tensors(device, labelled):
    X, y = labelled
    metric = NCA(2).fit(on(device, X), y)
    rows = np.array([[0, 1], [4, 2]])
    d = metric.pair_distance(rows, on(device, X))
    assert isinstance(d, torch.Tensor)
    by_points = metric.pair_distance(on(device, X[rows]))
    np.testing.assert_allclose(d.cpu().numpy(), by_points.cpu().numpy(), atol=1e-10)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_tensors_are_refused(value, labelled):
    X, y = labelled
    bad = on("cpu", X).clone()
    bad[0, 0] = value
    for estimator in (NCA(), Kernelized(NCA())):
        with pytest.raises(ValueError, match=r"contains NaN or infinity"):
            estimator.fit(bad, y)
        with pytest.raises(ValueError, match=r"expected a 2D array"):
            estimator.fit(on("cpu", X[:, 0]), y)
        estimator.fit(on("cpu", X), y)
        with pytest.raises(ValueError, match=r"X has 3 features.*expecting 4"):
            estimator.transform(on("cpu", X[:, :3]))


@pytest.mark.parametrize("metric", [NCA(2), Kernelized(DNE(2), RBF())], ids=repr)
def test_a_metric_of_tensors_is_saved_as_numbers(device, metric, labelled, tmp_path):
    X, y = labelled
    metric = clone(metric).fit(on(device, X), y)
    again = load(save(metric, tmp_path / "a.metric"))
    assert isinstance(again.components_, np.ndarray)
    expected = metric.transform(on(device, X)).cpu().numpy()
    np.testing.assert_allclose(again.transform(X), expected, atol=1e-9)
    np.testing.assert_allclose(again.transform(on(device, X)).cpu().numpy(), expected, atol=1e-9)
