"""The reductions on a CUDA device: ``python benchmarks/gpu.py`` prints seconds and peak memory."""

import time
import warnings

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from threadpoolctl import threadpool_limits

from kernelmetric import KPCA, NCA, RBF, Nystroem
from kernelmetric.compute import nca_loss, nearest_neighbors


def best(function, repeats=3):
    function()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def digits_step():
    """One NCA step on the digits: the device, this machine's CPU, and scikit-learn on it."""
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")
    X, y = X[order] / 16.0, y[order]
    points = torch.asarray(X, dtype=torch.float32, device="cuda")
    eye = torch.eye(64, device="cuda")
    device = best(lambda: nca_loss(eye, points, y), 7)
    peer = NeighborhoodComponentsAnalysis()
    same = y[:, None] == y[None, :]
    single = X.astype(np.float32)
    with threadpool_limits(2):
        ours = best(lambda: nca_loss(np.eye(64, dtype=np.float32), single, y), 15)
        peer.n_iter_ = 1
        theirs = best(lambda: peer._loss_grad_lbfgs(np.eye(64).ravel(), X, same, -1.0), 7)
    return (
        f"NCA loss + gradient, digits 1797 x 64: {1e3 * device:.1f} ms; on two cores of the same "
        f"machine's CPU {1e3 * ours:.1f} ms, scikit-learn {1e3 * theirs:.1f} ms"
    )


def main():
    generator = torch.Generator("cuda").manual_seed(0)

    def normal(n, d):
        return torch.randn(n, d, device="cuda", generator=generator)

    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    print(digits_step())
    X, y = normal(60_000, 50), np.sort(np.arange(60_000) % 10)
    L = 0.3 * torch.eye(50, device="cuda")
    print(f"NCA loss + gradient, 60,000 x 50: {best(lambda: nca_loss(L, X, y)):.3f} s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fifty iterations are not meant to converge
        nca = NCA(30, max_iter=50, tol=0)
        print(f"NCA fit, 60,000 x 50 -> 30, 50 iterations: {best(lambda: nca.fit(X, y), 1):.1f} s")
    C = normal(40_000, 100)
    kpca = KPCA(100, kernel=RBF(gamma=0.005), random_state=0)
    print(f"KPCA fit, 40,000 x 100, 100 components: {best(lambda: kpca.fit(C), 1):.2f} s")
    A = normal(70_000, 784)
    print(f"20 nearest, 70,000 x 784: {best(lambda: nearest_neighbors(A, 20)):.3f} s")
    B = normal(1_000_000, 50)
    space = Nystroem(
        2000, n_components=200, kernel=RBF(gamma=0.01), landmarks="uniform", random_state=0
    )
    print(f"Nystroem fit, 1e6 x 50, 2000 -> 200: {best(lambda: space.fit(B), 1):.3f} s")
    print(f"Nystroem transform of the same: {best(lambda: space.transform(B), 1):.3f} s")
    print(f"peak {torch.cuda.max_memory_allocated() / 1e9:.2f} GB on the device")


if __name__ == "__main__":
    main()
