"""The last step of a search: candidates ranked by their differences, on the device."""

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

_SPARE = 8  # further candidates: with so many, hardly a row is left in doubt
_PAIRS, _FEATURES = 16, 64  # of a step of a program
_GROUP = 32  # columns that share one minimum
_WORTH_GROUPS = 4  # times as many groups as are looked into


def ranked(
    low: Any, base: np.ndarray, Q: Any, points: Any, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k nearest points of every query, their squares, and the queries not yet certain.

    ``low`` (m, n) are lower bounds of the squared distances less ``base`` (m,).
    """
    n_candidates = min(k + _SPARE, points.shape[0])
    least, found = smallest(low, n_candidates)
    last = least[:, -1].double() + torch.as_tensor(base, device=Q.device)
    forbidden = torch.isinf(least)
    found, order = torch.sort(found, dim=1)  # of equal distances the earlier row comes first
    exact = pair_squares(Q, points, found)
    exact = exact.masked_fill(torch.gather(forbidden, 1, order), torch.inf)
    exact, order = torch.sort(exact, dim=1, stable=True)
    found, exact = torch.gather(found, 1, order)[:, :k], exact[:, :k]
    settled = (last > exact[:, -1]) | torch.isinf(last)
    if n_candidates == points.shape[0]:
        settled[:] = True
    left = torch.nonzero(~settled)[:, 0]
    return found.cpu().numpy(), exact.cpu().numpy(), left.cpu().numpy()


def smallest(low: Any, k: int) -> tuple[Any, Any]:
    """The k smallest entries of each row, which lie in the k groups with the smallest minima."""
    n = low.shape[1]
    n_groups = n // _GROUP
    if n_groups < _WORTH_GROUPS * k:
        return low.topk(k, dim=1, largest=False)
    # Group g are the columns g, g + n_groups, ...: neighbouring threads read neighbouring numbers.
    minima = torch.amin(low[:, : _GROUP * n_groups].unflatten(1, (_GROUP, n_groups)), dim=1)
    groups = minima.topk(k, dim=1, largest=False, sorted=False)[1]
    steps = n_groups * torch.arange(_GROUP, device=low.device)
    columns = (groups[:, :, None] + steps).flatten(1)
    rest = torch.arange(_GROUP * n_groups, n, device=low.device)
    columns = torch.cat([columns, rest.expand(len(low), -1)], dim=1)
    values, places = torch.gather(low, 1, columns).topk(k, dim=1, largest=False)
    return values, torch.gather(columns, 1, places)


def pair_squares(Q: Any, points: Any, found: Any) -> Any:
    """Squared distances of each query to its candidates, summed in float64."""
    Q, points, found = Q.contiguous(), points.contiguous(), found.contiguous()
    out = torch.empty(found.shape, dtype=torch.float64, device=Q.device)
    n_pairs = found.numel()
    grid = (triton.cdiv(n_pairs, _PAIRS),)
    _squares[grid](
        Q, points, found, out, n_pairs, found.shape[1], Q.shape[1],
        PAIRS=_PAIRS, FEATURES=_FEATURES, num_warps=4,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["n_pairs", "n_candidates", "n_features"])
def _squares(
    Q, points, found, out, n_pairs, n_candidates, n_features,
    PAIRS: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Some of the pairs."""
    pair = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    there = pair < n_pairs
    query = (pair // n_candidates)[:, None] * n_features
    point = tl.load(found + pair, mask=there, other=0)[:, None] * n_features
    total = tl.zeros((PAIRS,), tl.float64)
    for first in range(0, n_features, FEATURES):
        k = first + tl.arange(0, FEATURES)[None, :]
        mask = there[:, None] & (k < n_features)
        a = tl.load(Q + query + k, mask=mask, other=0.0).to(tl.float64)
        b = tl.load(points + point + k, mask=mask, other=0.0).to(tl.float64)
        total += tl.sum((a - b) * (a - b), axis=1)
    tl.store(out + pair, total, mask=there)
