"""What a whole fit takes, kernel, space and learner together: said before any of it is done."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from kernelmetric.compute import fits_budget
from kernelmetric.kernels import Kernel, Linear, Polynomial
from kernelmetric.spaces import KernelTrick

_FRACTION_RANK = 256  # what KPCA itself expects of a fraction of the variance
_LIMITS = ("n_components", "n_landmarks", "n_features")  # parameters that bound a space's rank


def coordinates_rank(space: Any, kernel: Kernel, n_samples: int, n_features: int) -> int:
    """Maximum number of coordinates of a space, before its fit, for points of this shape."""
    if hasattr(space, "most_rank"):  # leading components, and as many more as the labels need
        return min(n_samples, space.most_rank(n_samples))
    if isinstance(space, KernelTrick):  # the basis is that of the points
        return n_samples
    bounds: list[float] = [n_samples]
    if isinstance(kernel, Linear):
        bounds.append(n_features)
    elif isinstance(kernel, Polynomial) and kernel.degree in range(1, 11):
        bounds.append(math.comb(n_features + int(kernel.degree), int(kernel.degree)))
    for value in (getattr(space, name, None) for name in _LIMITS):
        if isinstance(value, Integral) and int(value) > 0:
            bounds.append(int(value))
        elif isinstance(value, float):
            bounds.append(_FRACTION_RANK)
    return max(1, int(min(bounds)))


def fit_bytes(recipe: Any, n_samples: int, n_features: int) -> int:
    """Bytes that a fit of :class:`Kernelized` takes at its peak, besides the data."""
    choosing, spanning = (
        _bytes_of(part, n_samples, n_features) for part in (recipe.kernel, recipe.space)
    )
    rank = coordinates_rank(recipe.space, recipe.kernel, n_samples, n_features)
    held = 8 * n_samples * (2 * rank + n_features)  # coordinates, projection, anchors
    enough = getattr(recipe.learner, "_enough_rows", n_samples)
    learned = min(n_samples, enough) if getattr(recipe.space, "knows_labels", False) else n_samples
    return max(choosing, spanning, held + _bytes_of(recipe.learner, learned, rank))


def _bytes_of(part: Any, n_samples: int, n_features: int) -> int:
    """What a part says it takes for points of this shape; nothing where it says nothing."""
    estimate = getattr(part, "estimate_memory", None)
    return 0 if estimate is None else int(estimate(n_samples, n_features))


def search_bytes(recipe: Any, n_samples: int, n_features: int, n_test: int) -> int:
    """Bytes that a candidate takes in a fold at its peak, besides the points."""
    block = 8 * n_samples * (n_samples + n_test)
    distances = block if fits_budget(2 * block + 16 * n_samples**2) else 0
    scored = 16 * n_test * coordinates_rank(recipe.space, recipe.kernel, n_samples, n_features)
    return distances + scored + fit_bytes(recipe, n_samples, n_features)
