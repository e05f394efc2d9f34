"""A kernel of sets of vectors."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from kernelmetric.inputs import Objects
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._objects import ObjectKernel, as_numbers
from kernelmetric.kernels._radial import RBF


class MeanEmbedding(ObjectKernel):
    r"""Sets of vectors by the means of their vectors in a kernel's feature space, normalized.

    .. math:: k(S, T) = \frac{m(S, T)}{\sqrt{m(S, S)\, m(T, T)}}, \qquad
              m(S, T) = \frac{1}{|S| |T|} \sum_{s \in S} \sum_{t \in T} k_0(s, t)

    For bags of instances, cells of a patient, patches of an image, points of a cloud. A narrow
    :math:`k_0` compares the best matches; so does ``FromDistance("matches")``. O(|S| |T| d) time
    for each pair of sets.

    Parameters
    ----------
    kernel : Kernel, default=None
        The kernel :math:`k_0` of vectors; None is the RBF of median width.

    Examples
    --------
    >>> from kernelmetric.kernels import RBF, MeanEmbedding
    >>> sets = [[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0]], [[5.0, 5.0], [6.0, 5.0], [5.0, 6.0]]]
    >>> MeanEmbedding(RBF(gamma=1.0))(sets).round(2)
    array([[1.  , 0.83, 0.  ],
           [0.83, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    expects: ClassVar[str] = "sets of vectors, arrays (n_vectors, d)"
    normalize = True

    def __init__(self, kernel: Any = None):
        self.kernel = kernel

    @property
    def is_bound(self) -> bool:
        """Whether the kernel inside can be evaluated."""
        return getattr(self.kernel, "is_bound", False)

    def read(self, item: Any) -> np.ndarray:
        """A set as an array (n_vectors, d) of finite numbers."""
        found = as_numbers(item)
        if found.ndim != 2 or not found.size or not np.all(np.isfinite(found)):
            raise ValueError(f"it has shape {found.shape}, or NaN or infinity inside")
        return found

    def parts(self, item: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Vectors, each of them left out, where there are others."""
        for i in range(len(item) if len(item) > 1 else 0):
            yield f"vector {i}", np.delete(item, i, axis=0)

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        kernel = RBF() if self.kernel is None else self.kernel
        if not isinstance(kernel, Kernel) or kernel.pairwise or kernel.takes_objects:
            raise ValueError(
                f"Got kernel={self.kernel!r} in MeanEmbedding, but expected None or a kernel of "
                "rows of numbers: try RBF()."
            )
        check_lengths(X.listed())
        return {"kernel": kernel.bind(np.concatenate(X.listed()))}

    def _own(self, items: list[np.ndarray]) -> np.ndarray:
        return np.array([float(np.mean(self.kernel(item))) for item in items])

    def _values(self, A: Objects, B: Objects | None) -> Any:
        sets = [A.listed(), (A if B is None else B).listed()]
        check_lengths([*sets[0], *sets[1]])
        there = np.concatenate(sets[1])
        sizes = np.array([len(item) for item in sets[1]])
        starts = np.cumsum(sizes) - sizes
        rows = [np.mean(self.kernel(item, there), axis=0) for item in sets[0]]
        return np.add.reduceat(np.array(rows), starts, axis=1) / sizes


def check_lengths(sets: list[np.ndarray]) -> None:
    """Refuse sets whose vectors differ in length."""
    found = sorted({item.shape[1] for item in sets})
    if len(found) > 1:
        raise ValueError(f"Got sets of vectors of lengths {found}, but expected one length.")
