"""What a CUDA device does in what time: ``python benchmarks/gpu.py [NAME ...]``.

Every row is run three times after a first run that compiles; what is shorter than 50 ms is run
many times in a row each time. ``--page docs/measurements/gpu.md``
writes the rows into the table of that page, and leaves its other rows as they are::

    python benchmarks/gpu.py "KPCA fit" "Nystroem fit" --page docs/measurements/gpu.md

With the data folder (``KERNELMETRIC_DATA``) the points are MNIST's, else random ones of as many
classes. Two further names are run only where they are given: ``million`` takes minutes, and
``shapes`` compares tiles for the step of NCA.
"""

import argparse
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

from kernelmetric import (
    KPCA,
    LFDA,
    LMNN,
    NCA,
    RBF,
    Kernelized,
    Nystroem,
    TransductiveDistance,
)
from kernelmetric.compute.backends import cuda
from kernelmetric.compute.backends.cuda import _halves
from kernelmetric.compute.reductions import lmnn_hinge, nca_loss, nearest_neighbors
from kernelmetric.graphs import target_neighbors
from kernelmetric.transductive import tangent_neighbors
from reproduction.datasets import load

# fp32 without tensor cores, in flop a second, and bytes a second: as the makers state them.
PEAKS = {"H200": (67e12, 4.8e12), "H100": (67e12, 3.35e12), "A100": (19.5e12, 2.0e12)}
ROWS = {}


def row(goal=None, flops=None, n_bytes=None, after=None):
    """A row of the table: the goal in seconds, operations in float32, bytes read and written."""

    def register(make):
        ROWS[make.__name__.replace("_", " ")] = (make, goal, flops, n_bytes, after)
        return make

    return register


class Data:
    """The points: made once, before time and memory are counted."""

    def __init__(self):
        try:
            everything = load("mnist")
            self.images, self.labels = np.asarray(everything.data), np.asarray(everything.target)
            self.real = True
        except Exception as error:  # no data folder: the table says so
            print(f"no MNIST ({type(error).__name__}): random points instead")
            rng = np.random.RandomState(0)
            self.labels = np.arange(70_000) % 10
            self.images = rng.rand(70_000, 784) + rng.rand(10, 784)[self.labels]
            self.real = False
        self.images = torch.tensor(self.images, dtype=torch.float32, device="cuda")
        self.images /= self.images.max()
        self.labels = np.unique(self.labels, return_inverse=True)[1]
        some = self.images[:60_000:3].double()
        V = torch.linalg.eigh(torch.cov(some.T))[1][:, -50:]
        Z = ((self.images.double() - some.mean(0)) @ V).float()
        order = np.argsort(self.labels[:60_000], kind="stable")
        self.y, self.y_test = self.labels[:60_000][order], self.labels[60_000:]
        self.X, self.X_test = Z[torch.as_tensor(order, device="cuda")].contiguous(), Z[60_000:]
        self.codes = torch.as_tensor(self.y, device="cuda")

    def error(self, metric):
        """Percent of test points whose nearest neighbour is of another class."""
        E, Q = metric.transform(self.X), metric.transform(self.X_test)
        nearest = nearest_neighbors(E, 1, queries=Q)[0][:, 0]
        return f"test error {100 * np.mean(self.y[nearest] != self.y_test):.2f} %"


def normal(n, d):
    generator = torch.Generator("cuda").manual_seed(0)
    return torch.randn(n, d, device="cuda", generator=generator)


@row(goal=0.020, flops=6.0 * 60_000**2 * 50, n_bytes=8.0 * 60_000 * 50)
def NCA_step(data):
    L = torch.eye(50, device="cuda")
    return lambda: nca_loss(L, data.X, data.codes)


@row(goal=0.010, flops=6.0 * 60_000**2 * 50, n_bytes=8.0 * 60_000 * 50)
def NCA_step_in_TF32(data):
    step = NCA_step(data)

    def run():
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        try:
            return step()
        finally:
            torch.backends.cuda.matmul.fp32_precision = "ieee"

    return run


@row(flops=6.0 * 60_000**2 * 50)
def NCA_step_without_Triton(data):
    return without_triton(NCA_step(data))


@row(flops=6.0 * 60_000**2 * 50)
def NCA_step_by_autograd(data):
    """A peer: the loss as one would write it in torch, all pairs in memory."""
    return autograd_step(data, lambda function: function)


@row(flops=6.0 * 60_000**2 * 50)
def NCA_step_by_torch_compile(data):
    """A peer: the same, compiled."""
    return autograd_step(data, torch.compile)


@row(flops=6.0 * 60_000**2 * 50)
def NCA_step_by_KeOps(data):
    """A peer: three passes over all pairs, compiled for the formula; needs pykeops."""
    from pykeops.torch import LazyTensor

    def run():
        E, codes = data.X, data.codes.float()[:, None]
        x_i, x_j = LazyTensor(E[:, None, :]), LazyTensor(E[None, :, :])
        y_i, y_j = LazyTensor(codes[:, None, :]), LazyTensor(codes[None, :, :])
        same = (0.5 - (y_i - y_j).abs()).step()
        D2 = ((x_i - x_j) ** 2).sum(-1)
        logs = (-D2).logsumexp(dim=1)
        l_i, l_j = LazyTensor(logs[:, None, :]), LazyTensor(logs[None, :, :])
        p = ((-D2 - l_i).exp() * same).sum(dim=1)
        p_i, p_j = LazyTensor(p[:, None, :]), LazyTensor(p[None, :, :])
        W = (-D2 - l_i).exp() * (same - p_i) + (-D2 - l_j).exp() * (same - p_j)
        return (W * x_j).sum(dim=1), W.sum(dim=1)

    return run


@row(flops=6.0 * 60_000**2 * 50)
def NCA_step_in_CuPy(data):
    """A peer: value and gradient as one would write them in CuPy, all pairs in memory."""
    cupy = cupy_in_the_memory_of_torch()
    X, codes = cupy.asarray(data.X), cupy.asarray(data.codes)
    same, L = codes[:, None] == codes[None, :], cupy.eye(50, dtype=X.dtype)

    def run():
        E = X @ L.T
        P = E @ E.T
        P *= 2.0
        P -= (E * E).sum(axis=1)  # the square of the row falls out of the softmax
        cupy.fill_diagonal(P, -cupy.inf)
        P -= P.max(axis=1)[:, None]
        cupy.exp(P, out=P)
        P /= P.sum(axis=1)[:, None]
        p = (P * same).sum(axis=1)
        P *= same - p[:, None]
        rows = P.sum(axis=1) + P.sum(axis=0)
        G = E.T @ (rows[:, None] * X) - (P @ E).T @ X - (P.T @ E).T @ X
        return -p.sum(), 2.0 * G

    return run


@row(goal=0.0007)
def NCA_step_on_digits(data):
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")
    X = torch.tensor(X[order] / 16.0, dtype=torch.float32, device="cuda")
    codes, L = torch.as_tensor(y[order], device="cuda"), torch.eye(64, device="cuda")
    return lambda: nca_loss(L, X, codes)


@row(flops=4.0 * 60_000**2 * 50)
def LMNN_step(data):
    targets = torch.as_tensor(target_neighbors(data.X, data.y, 3), device="cuda")
    E = 0.5 * data.X
    return lambda: lmnn_hinge(E, E, targets, data.codes, 1.0, 0.1)


@row(flops=4.0 * 60_000**2 * 50)
def LMNN_step_without_Triton(data):
    return without_triton(LMNN_step(data))


@row(goal=1.5, flops=53 * 6.0 * 60_000**2 * 30)
def NCA_fit_of_50_iterations(data):
    return lambda: NCA(30, max_iter=50, tol=0, early_stopping=False).fit(data.X, data.y)


@row(goal=6.0, after=Data.error)
def LMNN_fit(data):
    return lambda: LMNN().fit(data.X, data.y)


@row(goal=20.0, after=Data.error)
def kernelized_LMNN_by_landmarks(data):
    space = Nystroem(2000, n_components=200, random_state=0)
    return lambda: Kernelized(LMNN(), RBF(gamma=0.01), space).fit(data.X, data.y)


@row(goal=4.0, after=Data.error)
def kernelized_NCA_by_landmarks(data):
    space = Nystroem(2000, n_components=200, random_state=0)
    return lambda: Kernelized(NCA(30, max_iter=20), RBF(gamma=0.01), space).fit(data.X, data.y)


@row(goal=1.0)
def LFDA_fit(data):
    return lambda: LFDA(30).fit(data.X, data.y)


@row(goal=4.0)
def transductive_distance(data):
    """All of it: 70,000 points, 100 labels, graph, dimension and weight chosen."""
    y = np.where(np.arange(70_000) % 700 == 0, data.labels, -1)
    return lambda: TransductiveDistance().fit(data.images, y)


@row()
def transductive_distance_with_all_set(data):
    """The graph, the dimension and the weight of the labels by hand."""
    y = np.where(np.arange(70_000) % 700 == 0, data.labels, -1)
    metric = TransductiveDistance(graph="neighbors", n_neighbors=20, n_components=20, lam=100.0)
    return lambda: metric.fit(data.images, y)


@row(goal=0.15, flops=2.0 * 70_000**2 * 784, n_bytes=4.0 * 70_000 * (784 + 40))
def twenty_nearest(data):
    return lambda: nearest_neighbors(data.images, 20)


@row(flops=2.0 * 70_000**2 * 784)
def twenty_nearest_in_plain_torch(data):
    """A peer: products in float32 and the smallest of each row; what rounding did is not known."""
    X = data.images
    squares = (X * X).sum(1)

    def run():
        blocks = X.split(4096)
        return [(squares - 2.0 * (block @ X.T)).topk(21, largest=False) for block in blocks]

    return run


@row(flops=2.0 * 70_000**2 * 784)
def twenty_nearest_in_CuPy(data):
    """A peer: the same in CuPy, whose smallest of each row are found by sorting it."""
    cupy = cupy_in_the_memory_of_torch()
    X = cupy.asarray(data.images)
    squares = (X * X).sum(axis=1)

    def run():
        starts = range(0, len(X), 4096)
        D2 = (squares - 2.0 * (X[start : start + 4096] @ X.T) for start in starts)
        return [cupy.argpartition(block, 21, axis=1)[:, :21] for block in D2]

    return run


@row(goal=0.3, flops=1e6 * 2000 * (2 * 50 + 4 * 2000.0), n_bytes=4e6 * 50)
def Nystroem_fit(data):
    X = normal(1_000_000, 50)
    space = Nystroem(
        2000, n_components=200, kernel=RBF(gamma=0.01), landmarks="uniform", random_state=0
    )
    return lambda: space.fit(X)


@row(goal=0.08, flops=1e6 * 2000 * (2 * 50 + 2 * 200.0), n_bytes=4e6 * 250)
def Nystroem_transform(data):
    space, X = Nystroem_fit(data)(), normal(1_000_000, 50)
    return lambda: space.transform(X)


@row(flops=1e6 * 2000 * (2 * 50 + 2 * 200.0), n_bytes=4e6 * 250)
def Nystroem_transform_in_CuPy(data):
    """A peer: the kernel of blocks of rows with the landmarks, times a matrix."""
    cupy = cupy_in_the_memory_of_torch()
    X = cupy.asarray(normal(1_000_000, 50))
    landmarks, A = X[:2000], cupy.asarray(normal(2000, 200))
    squares = (landmarks * landmarks).sum(axis=1)

    def run():
        coordinates = cupy.empty((len(X), 200), dtype=X.dtype)
        for start in range(0, len(X), 100_000):
            block = X[start : start + 100_000]
            D2 = (block * block).sum(axis=1)[:, None] + squares - 2.0 * (block @ landmarks.T)
            coordinates[start : start + 100_000] = cupy.exp(-0.01 * D2) @ A
        return coordinates

    return run


@row(goal=0.15, flops=7 * 2.0 * 40_000**2 * 110, n_bytes=7 * 4.0 * 40_000**2)
def KPCA_fit(data):
    X = normal(40_000, 100)
    return lambda: KPCA(100, kernel=RBF(gamma=0.005), random_state=0).fit(X)


@row()
def tangent_neighbours_of_10000(data):
    images = data.images[:10_000]
    return lambda: tangent_neighbors(images, 10, shape=(28, 28), n_candidates=100)


@row(goal=3.0)
def automatic_kernel_on_10000(data):
    rows = np.arange(0, 60_000, 6)
    X, y = data.X[torch.as_tensor(rows, device="cuda")], data.y[rows]
    return lambda: Kernelized(LMNN()).fit(X, y)


def without_triton(run):
    """The same work by the twins in plain torch."""

    def plain():
        suits, cuda.suits = cuda.suits, lambda E: False
        try:
            return run()
        finally:
            cuda.suits = suits

    return plain


def cupy_in_the_memory_of_torch():
    """CuPy, whose arrays are counted among those of torch."""
    import cupy

    allocate, free = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    memory = cupy.cuda.PythonFunctionAllocator(allocate, lambda address, device: free(address))
    cupy.cuda.set_allocator(memory.malloc)
    return cupy


def autograd_step(data, compiled):
    same = data.codes[:, None] == data.codes[None, :]

    def loss(L):
        E = data.X @ L.T
        squares = (E * E).sum(1)
        D2 = squares[:, None] + squares[None, :] - 2.0 * (E @ E.T)
        D2 = D2.fill_diagonal_(torch.inf)
        return -torch.where(same, torch.softmax(-D2, dim=1), 0.0).sum()

    loss = compiled(loss)

    def run():
        L = torch.eye(50, device="cuda", requires_grad=True)
        loss(L).backward()
        return L.grad

    return run


def million(data):
    """An exact step of NCA on 10⁶ points, and a fit of more than half a million real ones."""
    X, codes = normal(1_000_000, 50), torch.arange(1_000_000, device="cuda") // 100_000
    L = torch.eye(30, 50, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    seconds = min(timed(lambda: nca_loss(L, X, codes), 1)[0])
    peak = (torch.cuda.max_memory_allocated() - held) / 1e9
    print(f"NCA step, 10^6 x 50 -> 30: {seconds:.2f} s, {peak:.2f} GB beside the points")
    try:
        cover = load("covtype")
    except Exception as error:
        print(f"no covtype ({type(error).__name__}), so no fit")
        return
    points, labels = np.asarray(cover.data, dtype=np.float32), np.asarray(cover.target)
    rows = np.random.RandomState(0).permutation(len(points))
    train, test = rows[:-20_000], rows[-20_000:]
    scale = points[train].std(axis=0)
    points = (points - points[train].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    X, Q = (torch.tensor(points[part], device="cuda") for part in (train, test))

    def error(E, queries):
        nearest = nearest_neighbors(E, 1, queries=queries)[0][:, 0]
        return 100 * np.mean(labels[train][nearest] != labels[test])

    start = time.perf_counter()
    nca = NCA(20, max_iter=25, early_stopping=False).fit(X, labels[train])
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    print(
        f"NCA fit, covtype, {len(train):,} x {X.shape[1]} -> 20, {nca.n_iter_} iterations: "
        f"{seconds:.1f} s; test error {error(X, Q):.2f} % in standardized features, "
        f"{error(nca.transform(X), nca.transform(Q)):.2f} % in 20 learned coordinates",
        flush=True,
    )


def shapes(data):
    """The step of NCA with tiles of other shapes: rows, columns, warps, stages."""
    usual, _halves._FAST_STAGES = _halves._SHAPES[64], {}
    others = [(64, 128, 4, 3), (128, 64, 4, 2), (128, 128, 8, 2), (64, 64, 4, 3), (64, 256, 8, 2)]
    for shape in (usual, *others):
        _halves._SHAPES[64] = shape
        for step in (NCA_step, NCA_step_in_TF32):
            try:
                told = f"{statistics.median(timed(step(data), 5)[0]):.5f} s"
            except Exception as error:  # a shape may ask for more than a device has
                told = f"{type(error).__name__}: {str(error)[:60]}"
            print(f"{step.__name__.replace('_', ' ')}, {shape}: {told}", flush=True)
    _halves._SHAPES[64] = usual


def timed(run, repeats):
    """Seconds of some runs after a first one; a short run is many in a row, as in a fit."""
    result = run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    number, seconds = max(1, int(0.05 / (time.perf_counter() - start))), []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            result = run()
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - start) / number)
    return seconds, result


HEAD = [
    "| work | seconds, median of 3 | least – most | goal | of fp32 peak | of bandwidth "
    "| memory, GB | |",
    "|---|---|---|---|---|---|---|---|",
]


def measured(work, data, peak):
    """The line of one row, as a list of its cells."""
    make, goal, flops, n_bytes, after = ROWS[work]
    try:
        torch.cuda.empty_cache()
        run = make(data)
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        seconds, result = timed(run, 3)
    except Exception as error:
        return [work, f"{type(error).__name__}: {str(error)[:80]}", *[""] * 6]
    memory = (torch.cuda.max_memory_allocated() - held) / 1e9
    median = statistics.median(seconds)
    share = f"{100 * flops / median / peak[0]:.0f} %" if flops and peak else ""
    width = f"{100 * n_bytes / median / peak[1]:.1f} %" if n_bytes and peak else ""
    note = after(data, result) if after else ""
    extent = f"{min(seconds):.4g} – {max(seconds):.4g}"
    return [work, f"{median:.4g}", extent, f"{goal or ''}", share, width, f"{memory:.2f}", note]


def into_page(page, title, rows):
    """Put rows into the table of a page; those that are not measured, and notes, stay."""
    path = Path(page)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, start, rest = text.partition("<!-- table -->\n")
    table, end, after = rest.partition("<!-- end -->")
    if not (start and end):
        before, start, end, after = text, "<!-- table -->\n", "<!-- end -->", "\n"
    kept = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and line not in HEAD:
            kept[cells[0]] = cells
    for row in rows:
        note = row[-1] or kept.get(row[0], [""])[-1]
        kept[row[0]] = [*row[:-1], note]
    order = [*(work for work in ROWS if work in kept), *(work for work in kept if work not in ROWS)]
    lines = [title, "", *HEAD, *(f"| {' | '.join(kept[work])} |" for work in order)]
    path.write_text(before + start + "\n".join(lines) + "\n" + end + after, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="*", help="names of rows, all where none is given")
    parser.add_argument("--page", help="write the rows into the table of this page")
    options = parser.parse_args()
    further = {"million": million, "shapes": shapes}
    unknown = sorted(set(options.rows) - set(ROWS) - set(further))
    if unknown:
        parser.error(f"Got {unknown}, but expected some of {[*ROWS, *further]}.")
    warnings.simplefilter("ignore")  # fifty iterations are not meant to converge
    name = torch.cuda.get_device_name()
    peak = next((peaks for card, peaks in PEAKS.items() if card in name), None)
    data, rows = Data(), []
    title = f"{name}, torch {torch.__version__}."
    print("\n".join([title, "", *HEAD]))
    for work in [work for work in ROWS if not options.rows or work in options.rows]:
        rows.append(measured(work, data, peak))
        print(f"| {' | '.join(rows[-1])} |", flush=True)
        if options.page:  # after every row: what was measured stays if the time runs out
            random = "" if data.real else " Points: random ones."
            into_page(options.page, title + random, rows)
    for work in further:
        if work in options.rows:
            further[work](data)


if __name__ == "__main__":
    main()
