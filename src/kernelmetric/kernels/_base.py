"""What every kernel can do: be called on two blocks, be bound to data, compose."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator, clone

from kernelmetric.compute import is_numpy, is_sparse, namespace, row_blocks, take_rows

if TYPE_CHECKING:
    from kernelmetric.kernels._compose import Product, Sum

_DIAGONAL_ROWS = 64  # rows per block when only the diagonal of K is wanted


class Kernel(BaseEstimator):
    """Base class of kernels: k(x, y) evaluated on two blocks of points.

    A subclass stores its parameters and writes one formula, ``_evaluate(A, B)``. Where a
    parameter may be left to the data it also defines ``is_bound`` and ``bind``.

    Attributes
    ----------
    pairwise : bool
        Whether X holds kernel values instead of features (scikit-learn's pairwise tag).
    """

    # NumPy scalars then leave ``0.5 * kernel`` to ``__rmul__`` below.
    __array_ufunc__ = None

    pairwise: bool = False

    @property
    def accepts_sparse(self) -> bool:
        """Whether sparse CSR points are accepted; the result is dense all the same."""
        return False

    @property
    def is_bound(self) -> bool:
        """Whether every parameter is a number, so that the kernel can be evaluated."""
        return True

    def __call__(self, A: Any, B: Any = None) -> Any:
        """Evaluate the kernel between the rows of A and of B.

        Parameters
        ----------
        A : array of shape (n, d)
            Points.
        B : array of shape (m, d), default=None
            Other points, or what ``anchors`` returned; None means A.

        Returns
        -------
        array of shape (n, m)
            Kernel values, in the array library and dtype of A.
        """
        self._require_bound()
        A, B = self._check_blocks(A, None if B is A else B)
        with np.errstate(all="ignore"):  # what overflows is reported below, in a sentence
            K = self._evaluate(A, B)
        if not all_finite(K):
            raise ValueError(self._overflow_message(A, B))
        return K

    def diag(self, A: Any) -> Any:
        """Kernel values k(x, x) of the rows of A, without the values between them.

        Parameters
        ----------
        A : array of shape (n, d)
            Points.

        Returns
        -------
        array of shape (n,)
            The diagonal of ``kernel(A)``.
        """
        self._require_bound()
        A, _ = self._check_blocks(A, None)
        with np.errstate(all="ignore"):
            d = self._diagonal(A)
        if not all_finite(d):
            raise ValueError(self._overflow_message(A, None))
        return d

    def bind(self, X: Any, y: Any = None) -> Kernel:
        """Return a concrete kernel, with what was left to the data now a number.

        Parameters
        ----------
        X : array of shape (n, d)
            Training points.
        y : array of shape (n,), default=None
            Labels, for kernels that look at them.

        Returns
        -------
        Kernel
            A new kernel; this one is unchanged. Binding a concrete kernel gives an equal one.
        """
        return clone(self)

    def anchors(self, X: Any, indices: Any = None) -> Any:
        """Return what to hand over as B so that the columns of K are points of X.

        Parameters
        ----------
        X : array of shape (n, d)
            Training points.
        indices : array of int of shape (m,), default=None
            Which of them; None means all.

        Returns
        -------
        array of shape (m, d)
            The chosen points themselves.
        """
        return X if indices is None else take_rows(X, indices)

    def __add__(self, other: Any) -> Sum:
        from kernelmetric.kernels._compose import add

        return add(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Sum | Product:
        from kernelmetric.kernels._compose import multiply, scale

        if isinstance(other, Kernel):
            return multiply(self, other)
        return scale(self, other) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: Any) -> Sum | Product:
        return self.__mul__(other)

    def _evaluate(self, A: Any, B: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _evaluate(A, B).")

    def _diagonal(self, A: Any) -> Any:
        xp = namespace(A)
        slices = row_blocks(A.shape[0], 1, most=_DIAGONAL_ROWS)
        blocks = [self._evaluate(A[rows, :], None) for rows in slices]
        return xp.concat([xp.linalg.diagonal(block) for block in blocks])

    def _require_bound(self) -> None:
        if not self.is_bound:
            raise ValueError(
                f"Got {self!r}, whose parameters still wait for data, but expected numbers: "
                "try kernel.bind(X) first and call what it returns."
            )

    def _check_blocks(self, A: Any, B: Any) -> tuple[Any, Any]:
        A = as_points(A, self)
        if B is None:
            return A, None
        B = as_points(B, self)
        if A.shape[1] != B.shape[1]:
            raise ValueError(
                f"Got blocks with {A.shape[1]} and {B.shape[1]} features, but expected the same "
                "number: try passing points of one data set."
            )
        return same_dtype(A, B)

    def _overflow_message(self, A: Any, B: Any) -> str:
        largest = max(largest_entry(block) for block in (A, B) if block is not None)
        return (
            f"Got non-finite values from {self!r} on points with entries up to {largest:.3g}, but "
            "expected finite numbers: try rescaling the features, for instance with StandardScaler."
        )


def as_points(A: Any, kernel: Kernel) -> Any:
    """Two-dimensional floating-point block; lists, frames and integers become float64."""
    if is_sparse(A):
        if not kernel.accepts_sparse:
            raise TypeError(
                f"Got sparse points, but {type(kernel).__name__} expected a dense array: try "
                "X.toarray(), or a kernel that takes sparse data (Linear, Polynomial, RBF, Cosine)."
            )
        A = A.tocsr()
        return A if A.dtype in (np.float32, np.float64) else A.astype(np.float64)
    if not is_array_api_obj(A):
        A = np.asarray(A)
    xp = namespace(A)
    if A.ndim != 2:
        raise ValueError(
            f"Got an array of shape {tuple(A.shape)}, but expected a 2D array with points in rows: "
            "try X.reshape(1, -1) for a single point."
        )
    if is_numpy(A):
        return A if A.dtype in (np.float32, np.float64) else A.astype(np.float64)
    return A if xp.isdtype(A.dtype, "real floating") else xp.astype(A, xp.float64)


def same_dtype(A: Any, B: Any) -> tuple[Any, Any]:
    """Cast A and B to the wider of their two dtypes: torch and SciPy multiply only equal ones."""
    if A.dtype == B.dtype:
        return A, B
    if is_sparse(A) or is_sparse(B):
        dtype = np.result_type(A.dtype, B.dtype)
        return A.astype(dtype, copy=False), B.astype(dtype, copy=False)
    xp = namespace(A, B)
    dtype = xp.result_type(A, B)
    return xp.astype(A, dtype, copy=False), xp.astype(B, dtype, copy=False)


def all_finite(K: Any) -> bool:
    """Whether K holds neither NaN nor infinity; one sum decides nearly always."""
    xp = namespace(K)
    with np.errstate(all="ignore"):
        return bool(xp.isfinite(xp.sum(K))) or bool(xp.all(xp.isfinite(K)))


def largest_entry(A: Any) -> float:
    """Largest absolute entry of a block, dense or sparse, for messages."""
    if is_sparse(A):
        return float(abs(A).max())
    xp = namespace(A)
    return float(xp.max(xp.abs(A)))


def check_number(name: str, value: Any, *, positive: bool = False) -> float:
    """``value`` as a float that is finite and non-negative (or positive), else a ValueError."""
    number = float(value) if isinstance(value, Real) else np.nan
    good = np.isfinite(number) and (number > 0 if positive else number >= 0)
    if not good:
        kind = "positive" if positive else "non-negative"
        raise ValueError(
            f"Got {name}={value!r}, but expected a finite {kind} number: "
            "other values do not give a positive semi-definite kernel."
        )
    return number
