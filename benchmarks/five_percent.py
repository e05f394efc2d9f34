"""MNIST with 5 % labels (Table 2 of 001): a graph of neighbours, its eigenvectors, accuracies.

Laplacian Eigenmaps is ``TransductiveDistance`` with an infinite λ; with the paper's λ it starts
from their embedding, and other choices of the labels start from that of the first. ARPACK solves
the same eigenproblems, each from scratch. ``python benchmarks/five_percent.py`` prints one line for
each prior and solver; ``cases.py`` runs them for the page.
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
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from kernelmetric import TransductiveDistance
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.graphs import label_graphs, neighbor_graph
from kernelmetric.solvers import smallest_eigenvectors
from kernelmetric.transductive import NormalizedLaplacian, PaperCost, gram_form, tangent_neighbors
from reproduction.datasets import load

K_GRAPH, K_COST, K_VOTE, N_VECTORS, LAM = 20, 20, 10, 60, 128.0  # section 4.3 of 001
N_SPLITS = 3
PRIORS = ("Euclidean", "tangent")


def mnist(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = load("mnist", return_X_y=True)
    n = 5000 if quick else len(y)
    return X[:n].astype(np.float32) / 255, y[:n].astype(int)


def find_neighbors(X: np.ndarray, prior: str) -> tuple[np.ndarray, np.ndarray]:
    """Distances and indices of the nearest images."""
    if prior == "tangent":
        return tangent_neighbors(X, K_GRAPH, shape=(28, 28))
    indices, squared = nearest_neighbors(X, K_GRAPH)
    return np.sqrt(squared), indices


def partial_labels(y: np.ndarray, seed: int) -> np.ndarray:
    """Labels of a random 5 %, -1 elsewhere."""
    return np.where(np.random.default_rng(seed).permutation(len(y)) < len(y) // 20, y, -1)


def accuracy(E: np.ndarray, y: np.ndarray, known: np.ndarray) -> float:
    """Per cent of the unlabelled points that a vote of ten labelled neighbours gets right."""
    labelled, others = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
    found, _ = nearest_neighbors(E[labelled], K_VOTE, queries=E[others])
    votes = y[labelled][found]
    counts = np.stack([np.sum(votes == c, axis=1) for c in range(10)], axis=1)
    return 100 * float(np.mean(np.argmax(counts, axis=1) == y[others]))


class Ours:
    """One estimator, warm from its last fit."""

    def __init__(self, W: sparse.csr_array):
        self.model = TransductiveDistance(
            N_VECTORS,
            penalty="normalized",
            graph=W,
            cost=PaperCost(K_COST),
            n_votes=K_VOTE,
            warm_start=True,
            random_state=0,
        )

    def embed(self, X: np.ndarray, known: np.ndarray, lam: float, tol: float) -> np.ndarray:
        """A whole fit: the graph checked, the cost, the eigenvectors, a vote on all points."""
        return self.model.set_params(lam=lam, tol=tol).fit(X, known).embedding_

    @property
    def n_products(self) -> int:
        """What the last eigenproblem took."""
        return self.model.n_matvecs_

    def eigenproblem(self, X: np.ndarray, known: np.ndarray) -> Callable[[], Any]:
        """That of other labels alone, warm from the last fit."""
        geometry = NormalizedLaplacian().geometry(None, self.model.graph)
        weights = PaperCost(K_COST).weights(*label_graphs(X, known, K_COST))
        A = (gram_form(weights) + LAM * geometry.matrix).tocsr()
        start = self.model.embedding_.astype(np.float64)
        return lambda: smallest_eigenvectors(
            A, N_VECTORS, null=geometry.null, start=start, tol=1e-4, random_state=0
        )


class Arpack:
    """The same eigenvectors by ARPACK: what is projected out is moved to the upper end."""

    def __init__(self, W: sparse.csr_array):
        self.geometry = NormalizedLaplacian().geometry(None, W)

    def embed(self, X: np.ndarray, known: np.ndarray, lam: float, tol: float) -> np.ndarray:
        """The cost and the eigenvectors."""
        A, null = self.geometry.matrix, self.geometry.null
        if np.isfinite(lam):
            weights = PaperCost().weights(*label_graphs(X, known, K_COST))
            A = (gram_form(weights) + lam * A).tocsr()
        q = null / np.linalg.norm(null)
        above = 2 * float(abs(A).sum(axis=1).max())

        def multiply(v: np.ndarray) -> np.ndarray:
            self.n_products += 1
            along = q * (q @ v)
            image = A @ (v - along)
            return image - q * (q @ image) + above * along

        self.n_products = 0
        operator = LinearOperator(A.shape, matvec=multiply, dtype=np.float64)
        return eigsh(operator, N_VECTORS, which="SA", tol=tol)[1]


SOLVERS = {"kernelmetric": Ours, "ARPACK": Arpack}


def few_labels(
    prior: str, solver: str, quick: bool = False, *, reuse: bool = False
) -> dict[str, Any]:
    """One contender: the graph, then its eigenproblems, each with its time and accuracy."""
    notes: list[str] = []

    def timed(step: str, work: Callable[[], Any]) -> Any:
        start, used = time.perf_counter(), time.process_time()
        result = work()
        seconds, used = time.perf_counter() - start, time.process_time() - used
        notes.append(f"{step} {seconds:.3g} s ({used:.3g} of CPU)")
        return result

    X, y = mnist(quick)
    stored = Path(tempfile.gettempdir()) / f"kernelmetric-bench-{prior}-{len(y)}.npz"
    # The others use the neighbours that ours left.
    if not stored.exists() or not (reuse or solver != "kernelmetric"):
        neighbors = timed("neighbours", lambda: find_neighbors(X, prior))
        np.savez(stored, distances=neighbors[0], indices=neighbors[1])
    with np.load(stored) as file:
        neighbors = file["distances"], file["indices"]
    W = timed("graph", lambda: neighbor_graph(None, K_GRAPH, neighbors=neighbors))
    splits = [partial_labels(y, seed) for seed in range(N_SPLITS)]
    contender = SOLVERS[solver](W)

    def step(name: str, split: int, lam: float = LAM, tol: float = 1e-4) -> np.ndarray:
        E = timed(name, lambda: contender.embed(X, splits[split], lam, tol))
        notes.append(f"{contender.n_products} products")
        return E

    begin = time.perf_counter()
    E = step("LE", 0, np.inf)
    seconds = time.perf_counter() - begin
    alone = [accuracy(E, y, known) for known in splits]
    ours = [accuracy(step(f"labels {i}", i), y, known) for i, known in enumerate(splits)]
    if isinstance(contender, Ours):
        timed("eigenvectors of labels 0 alone", contender.eigenproblem(X, splits[0]))
    fine = accuracy(step("labels 0 to 1e-6", 0, tol=1e-6), y, splits[0])
    notes.append(f"LE {spread(alone)} %, TDL {spread(ours)} %, to 1e-6 {fine:.2f} % (first)")
    notes.append(f"{connected_components(W, directed=False)[0]} component(s)")
    return {"seconds": seconds, "value": float(np.mean(alone)), "note": "; ".join(notes)}


def spread(values: list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prior", choices=PRIORS, nargs="*", default=PRIORS)
    parser.add_argument("--solver", choices=SOLVERS, nargs="*", default=list(SOLVERS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--reuse", action="store_true", help="neighbours of an earlier run")
    arguments = parser.parse_args()
    warnings.simplefilter("always")
    for prior in arguments.prior:
        for solver in arguments.solver:
            row = few_labels(prior, solver, arguments.quick, reuse=arguments.reuse)
            row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(json.dumps({"prior": prior, "solver": solver} | row), flush=True)


if __name__ == "__main__":
    main()
