"""MNIST with 5 % labels (Table 2 of 001): a graph of neighbours, its eigenvectors, accuracies.

Laplacian Eigenmaps is the eigenproblem of the normalized Laplacian L; transductive distance
learning adds the cost of labelled pairs, C' + λ L, and starts from its eigenvectors; another choice
of labels starts from those of the first. ``python benchmarks/few_labels.py`` prints one line for
each step; ``cases.py`` times the steps for the page.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from kernelmetric import datasets, neighbor_graph, tangent_neighbors
from kernelmetric.compute import class_neighbors, nearest_neighbors
from kernelmetric.graphs import component_codes, laplacian
from kernelmetric.solvers import smallest_eigenvectors

K_GRAPH, K_COST, K_VOTE, N_VECTORS, LAM = 20, 20, 10, 60, 128.0  # section 4.3 of 001
PRIORS = ("Euclidean", "tangent")
SOLVERS = ("kernelmetric", "ARPACK")


def mnist(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load("mnist", return_X_y=True)
    n = 5000 if quick else len(y)
    return X[:n].astype(np.float32) / 255, y[:n].astype(int)


def find_neighbors(X: np.ndarray, prior: str) -> tuple[np.ndarray, np.ndarray]:
    """Distances and indices of the nearest images."""
    if prior == "tangent":
        return tangent_neighbors(X, K_GRAPH, shape=(28, 28))
    indices, squared = nearest_neighbors(X, K_GRAPH)
    return np.sqrt(squared), indices


def normalized_laplacian(W: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """I - D^-½ W D^-½, and the vector that it sends to zero."""
    root = np.sqrt(W.sum(axis=1))
    scale = sparse.diags_array(1 / root)
    return (sparse.eye_array(len(root)) - scale @ W @ scale).tocsr(), root


def label_cost(X: np.ndarray, y: np.ndarray, labelled: np.ndarray) -> sparse.csr_array:
    """2 (diag(Ce) - C) for the cost matrix (6) of 001, neighbours among the labelled alone."""
    n = len(y)
    A = sparse.csr_array((n, n))
    for same in (True, False):
        near, _ = class_neighbors(X[labelled], y[labelled], K_COST, same=same)
        rows, slots = np.nonzero(near >= 0)
        share = (1 if same else -1) / np.sum(near >= 0, axis=1)[rows]
        pairs = (labelled[rows], labelled[near[rows, slots]])
        A = A + sparse.csr_array((share, pairs), shape=(n, n))
    return 2 * laplacian((A + A.T) / 2)


def accuracy(E: np.ndarray, y: np.ndarray, labelled: np.ndarray) -> float:
    """Per cent of the unlabelled points that a vote of ten labelled neighbours gets right."""
    others = np.setdiff1d(np.arange(len(y)), labelled)
    found, _ = nearest_neighbors(E[labelled], K_VOTE, queries=E[others])
    votes = y[labelled][found]
    counts = np.stack([np.sum(votes == c, axis=1) for c in range(10)], axis=1)
    return 100 * float(np.mean(np.argmax(counts, axis=1) == y[others]))


def arpack(A: Any, null: np.ndarray, tol: float) -> np.ndarray:
    """The same eigenvectors by ARPACK: what is projected out is moved to the upper end."""
    q = null / np.linalg.norm(null)
    above = 2 * float(abs(A).sum(axis=1).max())

    def multiply(v: np.ndarray) -> np.ndarray:
        along = q * (q @ v)
        image = A @ (v - along)
        return image - q * (q @ image) + above * along

    operator = LinearOperator(A.shape, matvec=multiply, dtype=np.float64)
    return eigsh(operator, N_VECTORS, which="SA", tol=tol)[1]


def few_labels(prior: str, solver: str, quick: bool = False) -> dict[str, Any]:
    """One contender: the graph, then three eigenproblems, each with its time and accuracy."""
    clock: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        clock[step] = time.perf_counter() - start
        return result

    X, y = mnist(quick)
    stored = Path(tempfile.gettempdir()) / f"kernelmetric-bench-{prior}-{len(y)}.npz"
    if solver == "kernelmetric" or not stored.exists():  # the others use the graph that ours left
        neighbors = timed("neighbours", lambda: find_neighbors(X, prior))
        np.savez(stored, distances=neighbors[0], indices=neighbors[1])
    with np.load(stored) as file:
        neighbors = file["distances"], file["indices"]
    W = timed("graph", lambda: neighbor_graph(None, K_GRAPH, neighbors=neighbors))
    L, null = normalized_laplacian(W)
    splits = [np.random.default_rng(s).permutation(len(y))[: len(y) // 20] for s in range(2)]
    first, second = (label_cost(X, y, labelled) + LAM * L for labelled in splits)

    products = []

    def solve(A: Any, start: np.ndarray | None = None, tol: float = 1e-6) -> np.ndarray:
        if solver == "ARPACK":
            return arpack(A, null, tol)
        found = smallest_eigenvectors(A, N_VECTORS, null=null, start=start, tol=tol, random_state=0)
        products.append(found.n_matvecs)
        return found.vectors

    le = timed("LE", lambda: solve(L))
    tdl = timed("TDL", lambda: solve(first, le))
    other = timed("new labels", lambda: solve(second, tdl))
    rough = timed("new labels to 1e-4", lambda: solve(second, tdl, 1e-4))
    accuracies = {
        "LE": accuracy(le, y, splits[0]),
        "TDL": accuracy(tdl, y, splits[0]),
        "new labels": accuracy(other, y, splits[1]),
        "new labels to 1e-4": accuracy(rough, y, splits[1]),
    }
    note = ", ".join(f"{step} {seconds:.3g} s" for step, seconds in clock.items())
    note += "; " + ", ".join(f"{name} {value:.2f} %" for name, value in accuracies.items())
    note += f"; {np.bincount(component_codes(W)).size} component(s)"
    note += f"; products {products}" if products else ""
    return {"seconds": clock["LE"], "value": accuracies["LE"], "note": note}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prior", choices=PRIORS, nargs="*", default=PRIORS)
    parser.add_argument("--solver", choices=SOLVERS, nargs="*", default=SOLVERS)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("always")
    for prior in arguments.prior:
        for solver in arguments.solver:
            row = few_labels(prior, solver, arguments.quick)
            row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(json.dumps({"prior": prior, "solver": solver} | row), flush=True)


if __name__ == "__main__":
    main()
