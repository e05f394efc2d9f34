"""Metrics from many pairs: time to a certified gap, beside a solver that forms the Hessian.

``python benchmarks/pairs.py 1e4 1e5 1e6`` prints a line for each number of pairs, in 100
dimensions; ``--formed 1000 2000 4000`` does the same with the Hessian of all pairs × all pairs.
Every line is a process of its own, so that the peak memory is its own.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from kernelmetric.graphs import Pairs
from kernelmetric.solvers import PairDual, solve_pairs

GAP = 1e-3


def labelled_points(n, rank, n_classes=10, seed=0):
    """Overlapping Gaussian classes, one for each of some random means."""
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=n)
    return rng.standard_normal((n, rank)) + 0.5 * rng.standard_normal((n_classes, rank))[y], y


def make_problem(n_pairs, rank, C, nu=0.2, *, psd=True):
    """Random pairs, half of them similar, in units of their mean squared distance."""
    X, y = labelled_points(max(200, n_pairs // 8), rank)
    pairs = Pairs.from_labels(y, per_point=6, random_state=0)
    chosen = np.random.RandomState(0).permutation(len(pairs))[:n_pairs]
    pairs = pairs.take(np.sort(chosen))
    rows = pairs.rows
    scale = np.mean([np.sum((X[i] - X[j]) ** 2) for i, j in rows[:2000]])
    upper = np.where(pairs.is_similar, C / len(pairs.similar), C / len(pairs.dissimilar))
    signs = np.where(pairs.is_similar, -1.0, 1.0)
    return PairDual(X / np.sqrt(scale), rows, signs, upper, nu * C, psd=psd)


def run_one(n_pairs, rank, C, solver):
    problem = make_problem(n_pairs, rank, C)
    start = time.perf_counter()
    found = solve_pairs(problem, tol=GAP, solver=solver, sharp=False)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{len(problem):>9} pairs  rank {rank}  {found.solver:<11}  gap "
        f"{found.certificate.gap:.1e}  {found.n_iter:>4} steps  {seconds:7.1f} s  {peak:.2f} GB",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=float, default=[1e4])
    parser.add_argument("--formed", nargs="*", type=float, default=[])
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--C", type=float, default=1e3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(int(arguments.sizes[0]), arguments.rank, arguments.C, arguments.one)
        return
    work = [(size, "first-order") for size in arguments.sizes]
    work += [(size, "interior") for size in arguments.formed]
    for size, solver in work:
        options = ["--rank", str(arguments.rank), "--C", str(arguments.C), "--one", solver]
        subprocess.run([sys.executable, __file__, str(size), *options], check=True)


if __name__ == "__main__":
    main()
