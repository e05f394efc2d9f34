"""Dates and times of day in text: how a column writes them, and the cycles they run through."""

from typing import Any

import numpy as np

from kernelmetric.tables._cells import MOSTLY

_SAMPLE = 200  # cells that show how dates are written
_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%SZ", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%Y %H:%M",
    "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d %b %Y", "%d %B %Y",
    "%b %d, %Y", "%H:%M", "%H:%M:%S",
)  # fmt: skip
_DAY = 86_400e6  # microseconds
CYCLES = {"day": _DAY, "week": 7 * _DAY, "year": 365.2425 * _DAY}
_SHORTEST = {"day": 0.0, "week": 14 * _DAY, "year": 400 * _DAY}  # spans that show a cycle


def formats_of(texts: list[str]) -> list[str]:
    """The ways in which nearly all of some texts are dates or times; two where it is not clear."""
    different = sorted(set(texts))  # whatever the order of the rows
    some = different[:: 1 + len(different) // _SAMPLE]
    if not all(any(character.isdigit() for character in text) for text in some[:1]):
        return []
    found = [way for way in _FORMATS if _share(some, way) >= MOSTLY]
    shares = {way: _share(texts, way) for way in found}
    best = max(shares.values(), default=0.0)
    return [way for way in found if shares[way] == best >= MOSTLY]


def dates_of(texts: list[str | None], way: str) -> Any:
    """Texts as dates of NumPy, NaT where they are none."""
    import pandas as pd

    return pd.to_datetime(pd.Series(texts, dtype=object), format=way, errors="coerce").to_numpy()


def cycles_of(moments: np.ndarray) -> list[str]:
    """The cycles that microseconds of a column are spread over."""
    known = moments[~np.isnan(moments)]
    span = np.ptp(known)
    found = [name for name in CYCLES if span > _SHORTEST[name]]
    return [name for name in found if len(np.unique(known % CYCLES[name])) > 1]


def on_cycle(moments: np.ndarray, name: str) -> np.ndarray:
    """Sine and cosine of the place in a cycle, as far apart as two names at most."""
    angle = 2 * np.pi * (moments % CYCLES[name]) / CYCLES[name]
    return np.nan_to_num(0.5 * np.stack([np.sin(angle), np.cos(angle)], axis=1))


def _share(texts: list[str], way: str) -> float:
    found = dates_of(list(texts), way)
    return float(np.mean(~np.isnat(found))) if len(texts) else 0.0
