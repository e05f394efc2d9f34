r"""A softmax over batches: one map of queries and documents, a few steps of Adam from a start.

.. math:: f(B) = -\sum_a \frac{w_a}{|P_a|} \sum_{p \in P_a}
          \log \frac{e^{\tau s(B z_a, B z_p)}}{\sum_j e^{\tau s(B z_a, B z_j)}}

A batch holds pairs [1]_. Its queries and its documents, all of them, are asked in turn as a, with
weights of sum one. P_a are the matches of a there. j runs over both tables, so that B parts two
documents too; only those are left out that share a match with a. s is the cosine, or minus half
the squared distance, and B acts on coordinates of the start. No price holds B near the identity:
steps are few, and each moves all entries about alike [2]_. That finds more on queries left out
than a descent to the end with any price. O(b² r + b r²) time a step for b pairs.

.. [1] Khosla et al., "Supervised contrastive learning", NeurIPS 2020, eq. (2).
.. [2] Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute import backend_of, like, namespace, rough, take_rows, to_numpy
from kernelmetric.evaluation._retrieval import directions, similarities
from kernelmetric.graphs import Matches

STEPS = (30, 80)  # after which the map is judged
_RATE = 0.02  # length of a step, for each entry of a row of length one
_SHARPNESS = 20.0  # τ
_BATCH = 128
_LOWEST_EXPONENT = -40.0  # smaller ones make denormals, which slow products down
_DECAY, _LEAST = (0.9, 0.999), 1e-8  # of means of gradients and their squares; a root's least


class Task(NamedTuple):
    """The query and the document of each pair, in coordinates of the start; what matches."""

    Q: Any
    D: Any
    pairs: np.ndarray
    weights: np.ndarray
    matches: Matches
    cosine: bool


def operations(r: int) -> float:
    """Multiplications and additions of all steps in r dimensions."""
    return STEPS[-1] * 8.0 * _BATCH * r * (r + 3 * _BATCH)


def refined(task: Task, seed: int) -> Iterator[tuple[int, np.ndarray]]:
    """After each number of steps the map B."""
    Q, D = (_scaled(rough(Z), task.cosine) for Z in (task.Q, task.D))
    r, batches = Q.shape[1], _batches(len(task.pairs), np.random.RandomState(seed))
    xp, B = namespace(Q), like(np.eye(r), Q)
    mean, square = 0 * B, 0 * B
    for step in range(1, STEPS[-1] + 1):
        some = next(batches)
        Z = xp.concat([take_rows(X, some) for X in (Q, D)])
        weights = np.tile(task.weights[some], 2)
        told = like(weights / np.sum(weights), Z), *(like(A, Z) for A in _relations(task, some))
        gradient = batch_loss(B, Z, *told, cosine=task.cosine)[1]
        mean = _DECAY[0] * mean + (1 - _DECAY[0]) * gradient
        square = _DECAY[1] * square + (1 - _DECAY[1]) * gradient * gradient
        length = _RATE * (1 - _DECAY[1] ** step) ** 0.5 / (1 - _DECAY[0] ** step) / r**0.5
        B = B - length * mean / (xp.sqrt(square) + _LEAST)
        if step in STEPS:
            yield step, to_numpy(B).astype(np.float64)


def batch_loss(
    B: Any, Z: Any, weights: Any, shares: Any, out: Any, *, cosine: bool
) -> tuple[float, Any]:
    """The loss of a batch Z and its gradient.

    Rows of ``shares`` are one over the number of matches, ``out`` is -inf for what is left out.
    """
    xp, y = namespace(Z), Z @ B.T
    u = directions(y) if cosine else y
    S = _SHARPNESS * similarities(u, u, cosine=cosine)
    S = S - xp.max(S + out, axis=1, keepdims=True)
    E = backend_of(S).exponential(S + out, _LOWEST_EXPONENT)
    sums = xp.sum(E, axis=1, keepdims=True)
    value = xp.sum(weights * (xp.log(sums)[:, 0] - xp.sum(shares * S, axis=1)))
    G = _SHARPNESS * weights[:, None] * (E / sums - shares)
    du = (G + G.T) @ u
    du = _through(du, u, y) if cosine else du - xp.sum(G, axis=0)[:, None] * u
    return float(value), du.T @ Z


def _scaled(Z: Any, cosine: bool) -> Any:
    """Directions, or points whose squared distances are as large as those of directions."""
    if cosine:
        return directions(Z)
    xp = namespace(Z)
    spread = xp.mean(xp.sum((Z - xp.mean(Z, axis=0)) ** 2, axis=1))
    return Z / xp.sqrt(spread) if spread > 0 else Z


def _batches(n: int, rng: np.random.RandomState) -> Iterator[np.ndarray]:
    """Parts of a permutation, and of another when it is used up."""
    while True:
        yield from np.array_split(rng.permutation(n), -(-n // _BATCH))


def _relations(task: Task, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a batch, shares of the matches of each row, and -inf for what is left out of its sum."""
    asked, found = task.pairs[some].T
    rows, n = np.concatenate([asked, found]), len(some)
    if task.matches.one_table:
        right = _matching(task.matches, rows, rows)
        right |= right.T
        same = rows[:, None] == rows
    else:
        same = (rows[:, None] == rows) & np.kron(np.eye(2, dtype=bool), np.ones((n, n), bool))
        right = np.zeros_like(same)
        right[:n, n:] = across = _matching(task.matches, asked, found)
        right[n:, :n] = across.T
    right &= ~same
    near = right.astype(float)
    out = np.where(same | (~right & (near @ near > 0)), -np.inf, 0.0)
    return right / right.sum(axis=1, keepdims=True), out


def _matching(matches: Matches, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Which of some documents, in any order, match which of some queries."""
    there, place = np.unique(documents, return_inverse=True)
    return matches.relevant(queries, there, np.zeros((len(queries), len(there))))[:, place]


def _through(du: Any, u: Any, z: Any) -> Any:
    """Derivatives by z of what has derivatives du by the direction u of z."""
    xp = namespace(z)
    lengths = xp.sqrt(xp.sum(z * z, axis=1, keepdims=True))
    lengths = xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return (du - u * xp.sum(du * u, axis=1, keepdims=True)) / lengths
