"""What a whole fit takes, kernel, space and learner together: said before any of it is done."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from kernelmetric.compute import worth_keeping
from kernelmetric.kernels import Kernel, Linear, Polynomial

_FRACTION_RANK = 256  # what KPCA itself expects of a fraction of the variance
_LIMITS = ("n_components", "n_landmarks", "n_features")  # parameters that bound a space's rank


def coordinates_rank(space: Any, kernel: Kernel, n_samples: int, n_features: int) -> int:
    """The most coordinates that a space, not fitted, may give for points of this shape.

    A bound; for a fraction of the variance a guess, because nobody knows it yet.
    """
    bounds = [n_samples, _feature_space_dimension(kernel, n_features)]
    params = space.get_params(deep=False)
    for value in (params.get(name) for name in _LIMITS):
        if isinstance(value, Integral) and int(value) > 0:
            bounds.append(int(value))
        elif isinstance(value, float):
            bounds.append(_FRACTION_RANK)
    if hasattr(space, "most_rank"):  # leading components, and as many more as the labels need
        return min(n_samples, space.most_rank(n_samples))
    if hasattr(space, "gram_") and "singular" in params:  # the basis is that of the points
        return n_samples
    return max(1, int(min(bounds)))


def fit_bytes(kernel: Kernel, space: Any, learner: Any, n_samples: int, n_features: int) -> int:
    """Bytes that a fit of :class:`Kernelized` takes at its peak, besides the data.

    One step comes after the other: the largest counts, with what is held meanwhile. A learner
    counts where it has an estimate itself.
    """
    choosing = bytes_of(kernel, n_samples, n_features)
    spanning = bytes_of(space, n_samples, n_features)
    rank = coordinates_rank(space, kernel, n_samples, n_features)
    held = 8 * n_samples * (2 * rank + n_features)  # coordinates, projection, anchors
    return max(choosing, spanning, held + bytes_of(learner, n_samples, rank))


def bytes_of(part: Any, n_samples: int, n_features: int) -> int:
    """What a part says it takes for points of this shape; nothing where it says nothing."""
    estimate = getattr(part, "estimate_memory", None)
    return 0 if estimate is None else int(estimate(n_samples, n_features))


def search_bytes(
    kernels: list[Kernel], space: Any, learner: Any, n_samples: int, n_features: int, n_test: int
) -> int:
    """Bytes that one fold of a search takes at its peak, besides the points, n_test of them scored.

    The space is of the highest rank. The distances are held throughout where they fit the memory
    budget; the candidate that takes most counts.
    """
    n = n_samples
    block = 8 * n * (n + n_test)
    distances = block if worth_keeping(2 * block + 16 * n * n) else 0
    peaks = []
    for kernel in kernels:
        rank = coordinates_rank(space, kernel, n, n_features)
        coordinates = 8 * (n + n_test) * rank
        spanning = (block if distances else 0) + bytes_of(space, n, n_features) + coordinates
        learning = 2 * coordinates + bytes_of(learner, n, rank)
        peaks.append(max(bytes_of(kernel, n, n_features), spanning, learning))
    return distances + max(peaks)


def _feature_space_dimension(kernel: Kernel, n_features: int) -> float:
    if isinstance(kernel, Linear):
        return n_features
    if isinstance(kernel, Polynomial) and isinstance(kernel.degree, Integral):
        if not 1 <= kernel.degree <= 10:
            return math.inf
        return math.comb(n_features + int(kernel.degree), int(kernel.degree))
    return math.inf
