"""Clusters that agree with the compared pairs as well as they can, those that differ included."""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

_ROUNDS = 20  # of moving single records


def correlation_clusters(n: int, pairs: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Cluster records so that the gains of the pairs inside clusters are large together.

    Correlation clustering is NP-hard [1]_: clusters are joined greedily, the largest gain first,
    then single records move to where they gain most. ``gains`` are positive where two records
    should be together, and 0 for pairs that are not listed. About O(E log E) time for E pairs, in
    Python.

    .. [1] Bansal, Blum and Chawla, "Correlation clustering", Machine Learning 2004. Keuper et al.,
       "Efficient decomposition of image and mesh graphs by lifted multicuts", ICCV 2015.
    """
    beside: dict[int, dict[int, float]] = defaultdict(dict)
    for (i, j), gain in zip(pairs.tolist(), gains.tolist(), strict=True):
        beside[i][j] = beside[j][i] = beside[i].get(j, 0.0) + gain
    codes = _joined(n, beside)
    _moved(codes, beside)
    first = {code: k for k, code in enumerate(dict.fromkeys(codes))}
    return np.array([first[code] for code in codes], dtype=np.intp)


def _joined(n: int, beside: dict[int, dict[int, float]]) -> list[int]:
    """Greedy joins, the largest gain first."""
    between = {i: dict(others) for i, others in beside.items()}
    members = {i: [i] for i in between}
    # Equal gains are joined in the order of the records, so that the result is repeatable.
    queue = [(-g, i, j) for i, others in between.items() for j, g in others.items() if i < j < n]
    queue = [entry for entry in queue if entry[0] < 0]
    heapq.heapify(queue)
    while queue:
        gain, i, j = heapq.heappop(queue)
        if i not in between or between[i].get(j) != -gain:  # joined before, or another gain now
            continue
        if len(between[i]) < len(between[j]):
            i, j = j, i
        members[i] += members.pop(j)
        del between[i][j]
        for k, more in between.pop(j).items():
            if k == i:
                continue
            del between[k][j]
            between[i][k] = between[k][i] = between[i].get(k, 0.0) + more
            if between[i][k] > 0:
                heapq.heappush(queue, (-between[i][k], min(i, k), max(i, k)))
    codes = list(range(n))
    for code, records in members.items():
        for record in records:
            codes[record] = code
    return codes


def _moved(codes: list[int], beside: dict[int, dict[int, float]]) -> None:
    """Move single records to the cluster where they gain most, or to one of their own."""
    free = len(codes)
    for _ in range(_ROUNDS):
        moved = False
        for i in sorted(beside):
            sums: dict[int, float] = defaultdict(float)
            for j, gain in beside[i].items():
                sums[codes[j]] += gain
            own = sums.get(codes[i], 0.0)
            best = max(sums, key=lambda code: sums[code])
            if max(sums[best], 0.0) > own + 1e-9 * (1 + abs(own)):
                codes[i] = best if sums[best] > 0 else free
                free += sums[best] <= 0
                moved = True
        if not moved:
            return
