"""The space for a training set of a given size."""

from typing import Any

from kernelmetric.spaces._base import Space
from kernelmetric.spaces._kpca import KPCA
from kernelmetric.spaces._nystroem import Nystroem
from kernelmetric.spaces._pair_kpca import PairKPCA

FULL_RANK_ROWS = 2_000
PAIR_ROWS = 100  # up to here, a metric of pairs has all coordinates and is learned in a second
LOW_RANK_ROWS = 10_000
LOW_RANK = 256
LANDMARKS = 1_000


def automatic_space(n_samples: int, random_state: Any = None, *, paired: bool = False) -> Space:
    """The space for a training set of this size, which alone decides.

    Parameters
    ----------
    n_samples : int
        Number of training points.
    random_state : int, RandomState or None, default=None
        For spaces that draw random numbers.
    paired : bool, default=False
        Whether the space will be fitted on pairs that are given, for a metric learned from them.

    Returns
    -------
    Space
        Full-rank KPCA up to 2,000 points; KPCA of rank 256 up to 10,000; beyond, 1,000 landmarks
        reduced to rank 256. From 101 to 2,000 points with pairs, PairKPCA.
    """
    if paired and PAIR_ROWS < n_samples <= FULL_RANK_ROWS:
        return PairKPCA()
    if n_samples <= FULL_RANK_ROWS:
        return KPCA()
    if n_samples <= LOW_RANK_ROWS:
        return KPCA(LOW_RANK, random_state=random_state)
    return Nystroem(LANDMARKS, n_components=LOW_RANK, random_state=random_state)
