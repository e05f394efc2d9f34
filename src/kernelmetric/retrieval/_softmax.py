r"""A softmax over documents: maps that descend from a start, and are held near it.

.. math:: f(B) = -\frac1n \sum_p w_p
          \log \frac{e^{\tau s(B q, B d_p)}}{\sum_j e^{\tau s(B q, B d_j)}}
          + \rho \, |B - I|^2 / r

where j runs over all documents but the other matches of q, s is the cosine or minus half the
squared distance, τ is the temperature that suits the start, and B acts on coordinates of the start.
O(n m r) time a step for n pairs and m documents; a block of pairs in memory.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kernelmetric import compute
from kernelmetric.evaluation._retrieval import directions, similarities
from kernelmetric.graphs import Matches
from kernelmetric.solvers import minimize_lbfgs

PRICES = (40.0, 10.0)  # ρ, nats for a change as large as the map
_SHARPNESS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # τ in units of one over the spread of similarities
_STEPS, _TOL = 15, 1e-4
OPERATIONS = 6.0 * 1.2 * _STEPS * len(PRICES)  # times pairs, documents and dimensions
_LOWEST_EXPONENT = -40.0  # smaller ones make denormals, which slow products down
_BLOCK, _LOOKED_AT = 1_024, 512  # pairs at once; pairs that choose the temperature


class Task(NamedTuple):
    """Pairs and documents in coordinates of the start; which of them match."""

    Q: Any  # the query of each pair
    D: Any
    pairs: np.ndarray
    weights: np.ndarray
    matches: Matches
    documents: np.ndarray  # rows of D in the table, all those of pairs among them
    cosine: bool
    moves: bool  # whether documents are mapped too


def refined(task: Task) -> Iterator[tuple[float, np.ndarray]]:
    """For each price the map B that the descent ends at."""
    r = task.Q.shape[1]
    problem = _Problem(task)
    x = np.eye(r)
    for price in PRICES:

        def objective(B: np.ndarray, price: float = price) -> tuple[float, np.ndarray]:
            value, gradient = problem(B)
            step = B - np.eye(r)
            return value + price / r * float(np.sum(step**2)), gradient + 2 * price / r * step

        x = minimize_lbfgs(objective, x, max_iter=_STEPS, tol=_TOL).x
        yield price, x


class _Problem:
    """The loss without its price, and its gradient."""

    def __init__(self, task: Task):
        self.task = task._replace(Q=compute.rough(task.Q), D=compute.rough(task.D))
        self.place = np.searchsorted(task.documents, task.pairs[:, 1])
        self.weights = task.weights / np.sum(task.weights)
        n = len(task.pairs)
        some = np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.intp)
        q, v = compute.take_rows(self.task.Q, some), self.task.D
        if task.cosine:
            q, v = directions(q), directions(v)
        unit = float(compute.namespace(q).std(similarities(q, v, cosine=task.cosine)))
        losses = {}
        for sharpness in _SHARPNESS:
            self.temperature = sharpness / max(unit, 1e-12)
            losses[self.temperature] = float(self._softmax(q, v, some)[0])
        self.temperature = min(losses, key=losses.__getitem__)

    def __call__(self, B: np.ndarray) -> tuple[float, np.ndarray]:
        Q, D, pairs, *_, cosine, moves = self.task
        L = compute.like(B, D)
        y = D @ L.T if moves else D
        v = directions(y) if cosine else y

        def work(rows: slice) -> tuple[Any, ...]:
            q = Q[rows, :]
            z = q @ L.T
            u = directions(z) if cosine else z
            value, G = self._softmax(u, v, rows)
            du = G @ v
            found = value, (_through(du, u, z) if cosine else du).T @ q
            return (*found, G.T @ u, compute.namespace(G).sum(G, axis=0)) if moves else found

        n, m = len(pairs), D.shape[0]
        flops = 4.0 * n * m * D.shape[1] if compute.backend_of(D).host else 0.0
        value, gradient, *rest = compute.sum_rows(work, n, 4.0 * 6 * m, most=_BLOCK, flops=flops)
        if moves:
            dv, sums = rest
            gradient = gradient + (_through(dv, v, y) if cosine else dv - sums[:, None] * v).T @ D
        return float(value), compute.to_numpy(gradient).astype(np.float64)

    def _softmax(self, u: Any, v: Any, rows: Any) -> tuple[Any, Any]:
        """The loss of some pairs, and its derivatives by their similarities to all documents."""
        queries, right, w = self.task.pairs[rows, 0], self.place[rows], self.weights[rows]
        S = self.temperature * similarities(u, v, cosine=self.task.cosine)
        xp, backend, w = compute.namespace(S), compute.backend_of(S), compute.like(w, S)
        of_right = self.temperature * _row_similarities(
            u, compute.take_rows(v, right), self.task.cosine
        )
        matches, documents = self.task.matches, self.task.documents
        out, own = (of(queries, documents, S) for of in (matches.relevant, matches.themselves))
        S = xp.where(out if own is None else out | own, -xp.inf + 0 * S[:1, :1], S)
        S = backend.set_entries(S, right, of_right)
        top = xp.max(S, axis=1, keepdims=True)
        P = backend.exponential(S - top, _LOWEST_EXPONENT)
        sums = xp.sum(P, axis=1, keepdims=True)
        logs = (xp.log(sums) + top)[:, 0] - of_right
        G = P * (self.temperature * w[:, None] / sums)
        G = backend.set_entries(G, right, self.temperature * w * xp.expm1(-logs))
        return xp.sum(w * logs), G


def _row_similarities(u: Any, v: Any, cosine: bool) -> Any:
    xp = compute.namespace(u)
    inner = xp.sum(u * v, axis=1)
    return inner if cosine else inner - 0.5 * xp.sum(v * v, axis=1)


def _through(du: Any, u: Any, z: Any) -> Any:
    """Derivatives by z of what has derivatives du by the direction u of z."""
    xp = compute.namespace(z)
    lengths = xp.sqrt(xp.sum(z * z, axis=1, keepdims=True))
    lengths = xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return (du - u * xp.sum(du * u, axis=1, keepdims=True)) / lengths
