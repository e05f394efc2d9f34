"""Kernels of points that are mapped first: rescaled, or reduced to some columns of a table."""

from operator import mul
from typing import Any

import numpy as np

from kernelmetric.compute import in_library_of, is_sparse, like, map_rows, namespace
from kernelmetric.compute.reductions import map_points
from kernelmetric.inputs import MixedRows
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._names import as_kernel
from kernelmetric.tables import TableSchema
from kernelmetric.tables._columns import places_of
from kernelmetric.tables._frames import object_places


class MappedKernel(Kernel):
    """Base class of kernels of points that are mapped first, by ``_mapped(A)``."""

    kernel: Any

    @property
    def accepts_sparse(self) -> bool:
        """Whether the kernel inside accepts sparse points."""
        return self._inside().accepts_sparse

    @property
    def is_bound(self) -> bool:
        """Whether the kernel inside can be evaluated."""
        return isinstance(self.kernel, Kernel) and self._inside().is_bound

    def _inside(self) -> Kernel:
        kernel = as_kernel(self.kernel)
        if kernel.pairwise:
            raise ValueError(
                f"Got {kernel!r} in {type(self).__name__}, but expected a kernel of points: try "
                "RBF()."
            )
        return kernel

    def _mapped(self, A: Any) -> Any:
        raise NotImplementedError

    def _evaluate(self, A: Any, B: Any) -> Any:
        return self.kernel._evaluate(self._mapped(A), None if B is None else self._mapped(B))

    def _diagonal(self, A: Any) -> Any:
        return self.kernel._diagonal(self._mapped(A))


class Rescaled(MappedKernel):
    r"""A kernel of points whose features were multiplied by scales first.

    .. math:: k(x, y) = k_0(s \circ x, s \circ y)

    Parameters
    ----------
    kernel : Kernel
        The kernel :math:`k_0`.
    scales : array-like of shape (d,) or (r, d)
        The scale s of each feature; zero leaves a feature out. A matrix maps the points: each of
        its rows makes one feature of the kernel inside.

    Examples
    --------
    >>> from kernelmetric.kernels import RBF, Rescaled
    >>> kernel = Rescaled(RBF(gamma=1.0), scales=[1.0, 0.0])
    >>> kernel([[0.0, 7.0]], [[1.0, 3.0]]).round(3)
    array([[0.368]])
    """

    def __init__(self, kernel: Kernel, scales: Any):
        self.kernel = kernel
        self.scales = scales

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        # A copy of the scales: these may be an array of the caller's.
        return {"kernel": self._inside().bind(self._mapped(X), y), "scales": self._scales(X).copy()}

    def _scales(self, A: Any) -> np.ndarray:
        try:
            scales = np.asarray(self.scales, dtype=np.float64)
        except (OverflowError, TypeError, ValueError):
            scales = np.asarray(np.nan)
        good = scales.ndim in (1, 2) and scales.shape[-1] == A.shape[1] and scales.size
        if not good or not np.isfinite(scales).all():
            raise ValueError(
                f"Got scales={self.scales!r} for points with {A.shape[1]} features, but expected "
                "one finite number per feature, or rows of them: try np.ones(X.shape[1])."
            )
        return scales

    def _mapped(self, A: Any) -> Any:
        scales = self._scales(A)
        if is_sparse(A):
            is_map = scales.ndim == 2
            return A @ scales.T if is_map else A.multiply(like(scales, A)[None, :]).tocsr()
        scales = like(scales, A)
        times = map_points if scales.ndim == 2 else mul
        return map_rows(lambda rows: times(A[rows, :], scales), A.shape[0], 1)


class Columns(MappedKernel):
    r"""A kernel of some columns of a table, which may hold numbers, names, dates and gaps.

    .. math:: k(x, y) = k_0(\phi(x), \phi(y))

    where :math:`\phi` is what :class:`~kernelmetric.kernels.TableSchema` makes of the columns;
    those of an array of numbers are taken as they are. Sums and products of such kernels are
    kernels of the whole table.

    Parameters
    ----------
    columns : list of str or int, or mask, default=None
        Names of columns, or their places, or a boolean for every column; None means all.
    kernel : Kernel, str or callable, default=None
        The kernel :math:`k_0` of the features; None: the RBF of median width.
    schema : TableSchema, default=None
        What the columns are. ``bind`` on a table learns it.

    See Also
    --------
    KernelAlignment : Weights for the kernels of several groups.

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

    @property
    def takes_object_column(self) -> bool:
        """Whether the kernel inside takes the objects of one column."""
        return self._inside().takes_objects

    def _versions(self) -> list[Kernel]:
        """The same with each version of the kernel inside."""
        versions = self._inside()._versions()
        params = {"columns": self.columns, "schema": self.schema}
        return [Columns(kernel=v, **params) for v in versions] if len(versions) > 1 else [self]

    def _points(self, X: Any) -> Any:
        """Rows of a table, also with columns of objects; a schema reads them."""
        return X if isinstance(X, MixedRows) else super()._points(X)

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        kernel = self._inside()
        # scales are learned of the features of these columns alone
        numbers = not kernel.takes_objects
        if numbers and self.schema is not None and "groups" in kernel.get_params(deep=False):
            groups = self.schema.groups_[self._features(X)]
            kernel = kernel.set_params(groups=np.unique(groups, return_inverse=True)[1])
        return {"kernel": kernel.bind(self._mapped(X), y)}

    def _mapped(self, A: Any) -> Any:
        if self._inside().takes_objects:
            return self._inside().points(self._column(A))
        A = A.numbers if isinstance(A, MixedRows) else A
        features = self._features(A)
        if len(features) == A.shape[1]:
            return A
        if is_sparse(A):
            return A[:, features]
        return namespace(A).take(A, in_library_of(features, A), axis=1)

    def _column(self, A: Any) -> Any:
        """The column of objects."""
        places = np.atleast_1d(self.columns).tolist() if isinstance(A, MixedRows) else []
        if places and self.schema is not None:
            names = self.schema.feature_names_in_.tolist()
            places = object_places(self.schema, names, self.columns)
        if len(places) != 1 or places[0] not in A.columns:
            raise ValueError(
                f"Got {self!r}, but expected one column of a table for a kernel of objects: try "
                "Columns(['name'], 'ngrams') and a data frame."
            )
        return A.columns[places[0]]

    def _features(self, A: Any) -> np.ndarray:
        """Places of the features; those of an array of numbers are its columns."""
        n, schema = A.shape[1], self.schema
        if schema is None:
            return np.arange(n) if self.columns is None else np.unique(places_of(self.columns, n))
        if not isinstance(schema, TableSchema):
            raise ValueError(f"Got schema={schema!r}, but expected a TableSchema: leave it out.")
        if n != len(schema.groups_):
            raise ValueError(
                f"Got points with {n} features, but expected {len(schema.groups_)}, those that the "
                "schema makes of a table: pass the table itself."
            )
        return schema.features_of(self.columns)


def rescaled(points: np.ndarray, scales: Any) -> np.ndarray:
    """Points (..., d) times scales (d,), or under a map (r, d), as :class:`Rescaled` does it."""
    scales = np.asarray(scales, dtype=np.float64)
    return points @ scales.T if scales.ndim == 2 else points * scales


def pulled_back(gradients: np.ndarray, scales: Any) -> np.ndarray:
    """From gradients by rescaled points to those by the points themselves."""
    scales = np.asarray(scales, dtype=np.float64)
    return gradients @ scales if scales.ndim == 2 else gradients * scales
