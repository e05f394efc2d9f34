"""A kernel on columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute import in_library_of, is_sparse, namespace
from kernelmetric.kernels._rescaled import MappedKernel
from kernelmetric.tables import TableSchema
from kernelmetric.tables._columns import places_of


class Columns(MappedKernel):
    r"""A kernel of some columns of a table, which may hold numbers, names, dates and gaps.

    .. math:: k(x, y) = k_0(\phi(x), \phi(y))

    where :math:`\phi` is what :class:`~kernelmetric.kernels.TableSchema` makes of the columns. Sums
    and products of such kernels are kernels of the whole table.

    Parameters
    ----------
    columns : list of str or int, or mask, default=None
        Names of columns, or their places, or a boolean for every column; None means all.
    kernel : Kernel, str or callable, default=None
        The kernel :math:`k_0` of the features; None: the RBF of median width.
    schema : TableSchema, default=None
        What the columns are. ``bind`` on a table learns it.

    Notes
    -----
    Frames need narwhals; arrays of objects are tables as well. Of an array of numbers, the columns
    are taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import RBF, Columns
    >>> table = np.array([[1.0, "a"], [3.0, "b"], [None, "a"], [2.0, "b"]], dtype=object)
    >>> kernel = Columns([0]) * Columns([1], RBF(gamma=1.0))
    >>> kernel.bind(table)(table)[0].round(3)
    array([1.   , 0.018, 0.287, 0.174])
    """

    def __init__(self, columns: Any = None, kernel: Any = None, *, schema: Any = None):
        self.columns = columns
        self.kernel = kernel
        self.schema = schema

    @property
    def accepts_sparse(self) -> bool:
        """Whether the kernel inside accepts sparse points, where there is no table."""
        return self.schema is None and super().accepts_sparse

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        kernel = self._inside()
        # scales are learned of the features of these columns alone
        if self.schema is not None and "groups" in kernel.get_params(deep=False):
            groups = self.schema.groups_[self._features(X)]
            kernel = kernel.set_params(groups=np.unique(groups, return_inverse=True)[1])
        return {"kernel": kernel.bind(self._mapped(X), y)}

    def _mapped(self, A: Any) -> Any:
        features = self._features(A)
        if len(features) == A.shape[1]:
            return A
        if is_sparse(A):
            return A[:, features]
        return namespace(A).take(A, in_library_of(features, A), axis=1)

    def _features(self, A: Any) -> np.ndarray:
        """Places of the features; those of an array of numbers are its columns."""
        if self.schema is not None:
            _check_schema(self.schema, A)
            return self.schema.features_of(self.columns)
        n = A.shape[1]
        return np.arange(n) if self.columns is None else np.unique(places_of(self.columns, n))


def _check_schema(schema: Any, A: Any) -> None:
    if not isinstance(schema, TableSchema):
        raise ValueError(f"Got schema={schema!r}, but expected a TableSchema: leave it out.")
    if A.shape[1] != len(schema.groups_):
        raise ValueError(
            f"Got points with {A.shape[1]} features, but expected {len(schema.groups_)}, those "
            "that the schema makes of a table: pass the table itself."
        )
