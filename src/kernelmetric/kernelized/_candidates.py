"""What a search tries: lists of kernels and ranks from what a user writes."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from kernelmetric.kernels import Kernel, polynomial_degrees, rbf_widths
from kernelmetric.selection import automatic_kernel

# The smoothest first, because the first of equals wins.
FAMILIES = {"rbf": lambda: rbf_widths()[::-1], "poly": polynomial_degrees}


def listed_kernels(kernels: Any) -> list[Any]:
    """The kernels to try, as the user wrote them, each seen to be one.

    Parameters
    ----------
    kernels : list, str, Kernel, callable or None
        As in :class:`KernelizedCV`.

    Returns
    -------
    list
        At least one; all of them take points, or all of them are precomputed.
    """
    if kernels is None:
        kernels = "rbf"
    if isinstance(kernels, str) and kernels in FAMILIES:
        return list(FAMILIES[kernels]())
    alone = isinstance(kernels, (str, Kernel)) or callable(kernels)
    try:
        listed = [kernels] if alone else list(kernels)
    except TypeError:
        listed = []
    if not listed:
        raise ValueError(
            f"Got kernels={kernels!r}, but expected at least one kernel: try kernels='rbf', the 21 "
            "widths of the papers, or a list such as [RBF(sigma=1), 'linear']."
        )
    if len({automatic_kernel(kernel).pairwise for kernel in listed}) > 1:
        raise ValueError(
            f"Got kernels={kernels!r}, but expected either kernels of points or a precomputed one: "
            "X cannot be both."
        )
    return listed


def listed_ranks(n_components: Any) -> list[int | None]:
    """The ranks to try.

    Parameters
    ----------
    n_components : int, None or list of them
        As in :class:`KernelizedCV`.

    Returns
    -------
    list of int or None
        At least one, each positive.
    """
    alone = n_components is None or isinstance(n_components, Integral)
    try:
        listed = [n_components] if alone else list(n_components)
    except TypeError:
        listed = []
    good = [rank is None or (isinstance(rank, Integral) and int(rank) >= 1) for rank in listed]
    if not listed or not all(good) or any(isinstance(rank, bool) for rank in listed):
        raise ValueError(
            f"Got n_components={n_components!r}, but expected None (full rank), a positive integer "
            "or a list of them: try n_components=[10, 50, None]."
        )
    return listed
