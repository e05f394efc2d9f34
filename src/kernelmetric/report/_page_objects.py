"""Objects on the report page: drawn by their kernel, and as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelmetric.compute import to_numpy
from kernelmetric.inputs import shown
from kernelmetric.kernels import ObjectKernel, as_kernel
from kernelmetric.kernels._objects import kernel_of_objects


@dataclass(frozen=True)
class Drawn:
    """An object, and the kernel that can draw it."""

    kernel: ObjectKernel
    item: Any

    def text(self) -> str:
        """What it is in words: of an array, where its numbers lie."""
        item = self.item
        if isinstance(item, np.ndarray) and item.dtype.kind in "biuf" and item.size:
            size = " × ".join(map(str, item.shape))
            return f"{size} numbers from {item.min():.3g} to {item.max():.3g}"
        return item if isinstance(item, str) else shown(item)

    def picture(self) -> str | None:
        """Its drawing in SVG; None where there is none."""
        return self.kernel.picture(self.kernel.read(self.item))


def drawn(kernel: Any, items: Iterable[Any]) -> list[Any]:
    """Objects for a column of the page; as they are where no kernel of objects is named."""
    known = None if kernel is None else kernel_of_objects(as_kernel(kernel))
    return list(items) if known is None else [Drawn(known, item) for item in items]


def in_numbers(metric: Any, X: Any, X_test: Any) -> tuple[Any, Any, Any, Mapping[str, Any]]:
    """What is linear on the coordinates of objects, these coordinates, and the objects to show."""
    kernel: Any = getattr(metric, "kernel_", None)
    if not getattr(kernel, "takes_objects", False):
        return metric, X, X_test, {}
    given = [None if part is None else kernel.points(part) for part in (X, X_test)]
    objects = [item for part in given if part is not None for item in part.listed()]
    Z = [None if part is None else to_numpy(metric.space_.transform(part)) for part in given]
    known = kernel_of_objects(kernel)  # packed bits are objects of a kernel of numbers
    return metric.learner_, *Z, {} if known is None else {"object": drawn(known, objects)}
