"""Where pairs come from: classes, chunks, chance, a file. Pure functions."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import column_or_1d

from kernelmetric.compute import require_memory
from kernelmetric.compute.reductions import class_neighbors
from kernelmetric.graphs._labels import warn_unlabelled
from kernelmetric.graphs._row_tuples import components_of, unique_pairs
from kernelmetric.inputs._labels import classes_of
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.inputs._refusals import refuse_masked
from kernelmetric.tables._text import lines_of

_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")  # fits 64 bits


def class_codes(y: Any) -> np.ndarray:
    """Class codes 0, 1, ... of labels, of which there may be a single one."""
    refuse_masked(y)
    return classes_of(warn_unlabelled(y))[1].astype(np.intp, copy=False)


def chunk_codes(codes: Any) -> np.ndarray:
    """Codes 0, 1, ... of chunks, whatever their numbers; -1 where a point belongs to none."""
    codes = column_or_1d(np.asarray(codes))
    if codes.dtype.kind not in "iu":
        raise ValueError(
            f"Got chunks of dtype {codes.dtype}, but expected integers, negative where a "
            "point belongs to none."
        )
    known = codes >= 0
    compact = np.full(len(codes), -1, dtype=np.intp)
    compact[known] = np.unique(codes[known], return_inverse=True)[1]
    return compact


def near_pairs(
    X: Any, codes: np.ndarray, n_neighbors: int, reach: float, *, same: bool
) -> np.ndarray:
    """Pairs of each point with its nearest of the same class, or of others, within a reach."""
    neighbors, squares = class_neighbors(X, codes, n_neighbors, same=same)
    rows, slots = np.nonzero((neighbors >= 0) & (np.sqrt(squares) <= reach))
    return unique_pairs(np.column_stack([rows, neighbors[rows, slots]]), len(codes))


def members_of(codes: np.ndarray) -> list[np.ndarray]:
    """Row numbers of the points of each code 0, 1, ...; negative codes belong nowhere."""
    order = np.argsort(codes, kind="stable").astype(np.intp)
    counts = np.bincount(codes[codes >= 0]) if len(codes) else np.empty(0, dtype=np.intp)
    return np.split(order[np.sum(codes < 0) :], np.cumsum(counts)[:-1]) if len(counts) else []


def pairs_within(groups: Iterable[np.ndarray]) -> np.ndarray:
    """All pairs inside each group of row numbers."""
    groups = [group for group in groups if len(group) > 1]
    _require_pairs(sum(len(group) * (len(group) - 1) // 2 for group in groups))
    listed = [group[np.column_stack(np.triu_indices(len(group), 1))] for group in groups]
    return np.concatenate(listed) if listed else np.empty((0, 2), dtype=np.intp)


def pairs_between(groups: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """All pairs of a point of the first and a point of the second group, for each two groups."""
    groups = list(groups)
    _require_pairs(sum(len(a) * len(b) for a, b in groups))
    listed = [np.column_stack([np.repeat(a, len(b)), np.tile(b, len(a))]) for a, b in groups]
    return np.concatenate(listed) if listed else np.empty((0, 2), dtype=np.intp)


def pairs_across(groups: list[np.ndarray]) -> np.ndarray:
    """All pairs of points of different groups."""
    order = np.concatenate([np.empty(0, dtype=np.intp), *groups])
    ends = np.cumsum([len(group) for group in groups], dtype=np.intp)
    return pairs_between((group, order[end:]) for group, end in zip(groups, ends, strict=True))


def draw_until_connected(
    groups: list[np.ndarray], n_samples: int, fraction: float, rng: np.random.RandomState
) -> np.ndarray:
    """Random pairs inside the groups, as few as leave ``fraction * n_samples`` components."""
    Numbers(low=0, high=1, above=True).require("components", fraction)
    target = round(float(fraction) * n_samples)
    if target < len(groups):
        raise ValueError(
            f"Got components={fraction}, but expected at least {len(groups) / n_samples:.3g}: "
            f"{len(groups)} classes are never fewer than {len(groups)} components."
        )
    total = sum(len(group) * (len(group) - 1) // 2 for group in groups)
    size = min(total, 4 * n_samples)
    while True:
        chosen = rng.permutation(sample_without_replacement(total, size, random_state=rng))
        order = _decode(chosen, groups)
        if size == total or components_of(order, n_samples).max() < target:
            break
        size = min(total, 4 * size)

    def suffice(n_pairs: int) -> bool:
        return components_of(order[:n_pairs], n_samples).max() < target

    # The number of components only falls along the order.
    return order[: bisect_left(range(len(order)), True, key=suffice)]


def draw_partners(
    codes: np.ndarray, per_point: int, rng: np.random.RandomState, *, inside: bool
) -> np.ndarray:
    """For every point ``per_point`` random partners of its own class, or of the others."""
    # They are counted from the point's own place (or from the end of its class) along the points
    # sorted by class, at equal steps from a random start: different ones, spread over all.
    order, n = np.argsort(codes, kind="stable"), len(codes)
    counts = np.bincount(codes)
    size = counts[codes[order]]
    end = np.cumsum(counts)[codes[order]]
    pool = size - 1 if inside else n - size
    step = np.maximum(1, pool // per_point)
    number = np.arange(min(per_point, pool.max(initial=0)))
    _require_pairs(n * len(number))
    start = (rng.random_sample(n) * pool).astype(np.intp)
    ahead = (start[:, None] + number * step[:, None]) % np.maximum(pool, 1)[:, None]
    if inside:
        begin = (end - size)[:, None]
        partner = begin + (np.arange(n)[:, None] - begin + 1 + ahead) % size[:, None]
    else:
        partner = (end[:, None] + ahead) % max(n, 1)
    point, slot = np.nonzero(number < pool[:, None])
    return unique_pairs(np.column_stack([order[point], order[partner[point, slot]]]), n)


def read_pairs(path: Any) -> tuple[np.ndarray, np.ndarray]:
    """Similar and dissimilar row numbers from a text file, see ``Pairs.from_file``."""
    expected = "two row numbers, counted from 0, and where not all pairs are similar a sign"
    lines, table = _read_table(path, (2, 3), expected)
    signs = table[:, 2] if table.shape[1] == 3 else np.ones(len(table), dtype=np.intp)
    for line in np.flatnonzero(np.abs(signs) > 1)[:1]:
        raise ValueError(
            f"Got the sign {signs[line]} in line {lines[line]} of {path}, but expected 1 for "
            "similar, -1 or 0 for dissimilar."
        )
    return table[signs > 0, :2], table[signs <= 0, :2]


def read_row_numbers(path: Any, width: int) -> np.ndarray:
    """Row numbers of shape (n_tuples, width) from a text file."""
    return _read_table(path, (width,), f"{width} row numbers, counted from 0")[1]


def _read_table(path: Any, widths: tuple[int, ...], expected: str) -> tuple[list[int], np.ndarray]:
    """The numbers of the lines that hold row numbers, and these, in so many columns."""
    with Path(path).open("rb") as stream:
        lines = [
            (number, _fields(bare))
            for number, line in enumerate(lines_of(stream, path, []), start=1)
            if (bare := line.partition("#")[0]).strip()
        ]
    names = lines.pop(0)[1] if lines and _are_names(lines[0][1], path) else None
    if not lines:
        raise ValueError(f"Got {path} without a line of row numbers, but expected some.")
    width = len(names or lines[0][1])
    for number, fields in lines:
        whole = all(map(_WHOLE.fullmatch, fields))
        if len(fields) != width or width not in widths or not whole:
            raise ValueError(
                f"Got {', '.join(fields)!r} in line {number} of {path}, but expected {expected}, "
                "in as many columns as in the first line."
            )
    numbers = [[int(field) for field in fields] for _, fields in lines]
    return [number for number, _ in lines], np.array(numbers, dtype=np.intp)


def _fields(line: str) -> list[str]:
    """What a line holds, parted by a comma, semicolon or tab, else by blanks; without quotes."""
    parts = re.split(r"[,;\t]", line) if re.search(r"[,;\t]", line) else line.split()
    return [part.strip().strip('"') for part in parts]


def _are_names(fields: list[str], path: Any) -> bool:
    """Whether the first line holds the names of columns: none of them is a number."""
    if any(re.match(r"[-+.]?[0-9]", field) for field in fields):
        return False
    if "" in fields:
        raise ValueError(
            f"Got {path} with a column without a name beside {', '.join(filter(None, fields))}, "
            "but expected two row numbers and perhaps a sign: leave the index of the table out."
        )
    return True


def _decode(chosen: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """Pairs from their numbers in a list of all pairs inside the groups that is never written."""
    sizes = np.array([len(group) for group in groups])
    ends = np.cumsum(sizes * (sizes - 1) // 2)
    which = np.searchsorted(ends, chosen, side="right")
    inside = chosen - np.where(which > 0, ends[which - 1], 0)
    # pair (i, j), i < j, has number j(j-1)/2 + i
    j = ((1 + np.sqrt(1 + 8.0 * inside)) / 2).astype(np.intp)
    j -= j * (j - 1) // 2 > inside  # the root may be rounded either way
    j += j * (j + 1) // 2 <= inside
    i = inside - j * (j - 1) // 2
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])[which]
    rows = np.concatenate(groups)
    return np.column_stack([rows[first + i], rows[first + j]])


def _require_pairs(n_pairs: int) -> None:
    require_memory(
        3 * 16.0 * n_pairs,
        f"A list of {n_pairs} pairs",
        "draw fewer with per_point, or take near ones with Pairs.from_neighbors.",
    )
