"""What every kernel can do; and sums and products, which kernels are made into by + and *."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from kernelmetric.compute import all_finite, backend_of, map_rows, namespace, take_rows
from kernelmetric.inputs import is_objects
from kernelmetric.kernels import _points
from kernelmetric.kernels._terms import Composition, check_terms
from kernelmetric.tables import TableSchema, is_frame, is_table

_DIAGONAL_ROWS = 64  # rows per block when only the diagonal of K is wanted


class Kernel(BaseEstimator):
    """Base class of kernels: k(x, y) evaluated on two blocks of points.

    A subclass stores its parameters and writes one formula, ``_evaluate(A, B)``. Where a
    parameter may be left to the data it also defines ``is_bound``, and ``_from_data(X, y)``, which
    returns the parameters that ``bind`` sets. A kernel that becomes another by learning defines
    ``_bound(X, y)`` instead.

    Attributes
    ----------
    pairwise : bool
        Whether X holds kernel values instead of features (scikit-learn's pairwise tag).
    """

    # NumPy scalars then leave ``0.5 * kernel`` to ``__rmul__`` below.
    __array_ufunc__ = None

    pairwise: bool = False

    @property
    def takes_objects(self) -> bool:
        """Whether points are objects, such as texts, instead of rows of numbers."""
        return False

    @property
    def accepts_sparse(self) -> bool:
        """Whether sparse CSR points are accepted; the result is dense all the same."""
        return False

    @property
    def is_bound(self) -> bool:
        """Whether every parameter is a number, so that the kernel can be evaluated."""
        return True

    @property
    def is_radial(self) -> bool:
        """Whether it is a function of the squared distance, ``of_squared_distances(D2)``."""
        return False

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
        return self._finite(self._evaluate, A, None if B is A else B)

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
        return self._finite(lambda points, _: self._diagonal(points), A, None)

    def bind(self, X: Any, y: Any = None) -> Kernel:
        """Return a concrete kernel, with what was left to the data now a number.

        Parameters
        ----------
        X : array of shape (n, d)
            Training points.
        y : array of shape (n,), default=None
            Labels or numbers, for kernels that look at them.

        Returns
        -------
        Kernel
            A new kernel; this one is unchanged. Binding a concrete kernel gives an equal one.
        """
        if not self.takes_objects and (
            is_table(X) or (is_frame(X) and _points.reads_columns(self))
        ):
            return self._bind_table(X, y)
        return self._bound(self._check_blocks(X, None)[0], y)

    def _bound(self, X: Any, y: Any) -> Kernel:
        """``bind`` on checked points; a kernel that learns what it is returns another."""
        known, params = self._from_data(X, y), self.get_params(deep=False)
        others = {name: params[name] for name in params if name not in known}
        return type(self)(**known, **clone(others, safe=False))

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
            The chosen points themselves; of a precomputed kernel, the numbers of their columns.
        """
        if self.pairwise:
            return np.arange(X.shape[1]) if indices is None else np.asarray(indices)
        if is_frame(X) or is_table(X):
            X = _points.as_block(X, self)
        return X if indices is None else take_rows(X, indices)

    def of_squared_distances(self, D2: Any) -> Any:
        """Kernel values from squared distances, where the kernel is radial.

        Parameters
        ----------
        D2 : array of shape (n, m)
            Squared Euclidean distances; left unchanged.

        Returns
        -------
        array of shape (n, m)
            Kernel values.
        """
        self._require_bound()
        return self._at_distances(D2)

    def points(self, X: Any) -> Any:
        """Points as this kernel takes them: objects are read, rows of numbers stay as they are.

        Parameters
        ----------
        X : array-like, or list of objects
            What a user has.

        Returns
        -------
        array-like or Objects
            Points, of which rows can be taken.
        """
        return self._points(X)

    def __add__(self, other: Any) -> Sum:
        """The sum, with the terms of sums side by side."""
        if not isinstance(other, Kernel):
            return NotImplemented
        return _weighted_sum([*self._flat(), *other._flat()])

    def __mul__(self, other: Any) -> Sum | Product:
        """The product, with factors side by side; with a number, the weighted kernel."""
        if isinstance(other, Kernel):
            factors = [k.kernels if isinstance(k, Product) else [k] for k in (self, other)]
            return Product([*factors[0], *factors[1]])._checked()
        if not isinstance(other, Real):
            return NotImplemented
        factor = _points.check_number("weight", other)
        return _weighted_sum([(factor * weight, kernel) for weight, kernel in self._flat()])

    __rmul__ = __mul__

    def _points(self, X: Any) -> Any:
        if is_objects(X):
            raise TypeError(
                f"Got objects, but {self!r} expected rows of numbers: a sum, product or "
                "choice takes kernels of the same points."
            )
        return X

    def _versions(self) -> list[Kernel]:
        """What this kernel may become where labels choose; the first without labels."""
        return [self]

    def _flat(self) -> Iterator[tuple[float, Kernel]]:
        """Weights and terms, also those of sums within sums."""
        yield 1.0, self

    def _evaluate(self, A: Any, B: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _evaluate(A, B).")

    def _at_distances(self, D2: Any) -> Any:
        raise TypeError(f"Got {self!r}, but expected a kernel of the distance: try RBF().")

    def _diagonal(self, A: Any) -> Any:
        xp = namespace(A)

        def diagonal(rows: slice) -> Any:  # a copy: a view would keep its whole block
            K = self._evaluate(A[rows, :], None)
            return xp.astype(xp.linalg.diagonal(K), K.dtype, copy=True)

        return map_rows(diagonal, A.shape[0], 1, most=_DIAGONAL_ROWS)

    def _bind_table(self, X: Any, y: Any) -> Kernel:
        """``bind`` on the features of a table, for a kernel of columns."""
        if not _points.reads_columns(self):
            raise ValueError(
                f"Got a table with names, dates or gaps, but {self!r} expected numbers: try "
                "Columns(kernel=...)."
            )
        schema = _points.schema_of(self) or TableSchema(_points.object_columns(self)).fit(X)
        return _points.with_schema(self, schema).bind(schema.transform(X), y)

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        """Parameters that ``bind`` sets; the others are copied."""
        return {}

    def _finite(self, formula: Callable[..., Any], A: Any, B: Any) -> Any:
        """What a formula makes of blocks of points, once these are checked."""
        self._require_bound()
        A, B = self._check_blocks(A, B)
        with np.errstate(all="ignore"):  # what overflows is reported below, in a sentence
            values = formula(A, B)
        if not all_finite(values):
            raise _points.overflow_error(self, A, B)
        return values

    def _require_bound(self) -> None:
        if not self.is_bound:
            raise ValueError(
                f"Got {self!r}, whose parameters still wait for data, but expected numbers: "
                "try kernel.bind(X) first and call what it returns."
            )

    def _check_blocks(self, A: Any, B: Any) -> tuple[Any, Any]:
        A = _points.as_block(A, self)
        if B is None:
            return A, None
        B = _points.as_block(B, self)
        if A.shape[1] != B.shape[1]:
            raise ValueError(
                f"Got blocks with {A.shape[1]} and {B.shape[1]} features, but expected the same "
                "number: try passing points of one data set."
            )
        return _points.same_dtype(A, B)


class _Composition(Composition, Kernel):
    """Kernel made of kernels."""

    def _checked(self) -> Any:
        check_terms(self.kernels, type(self).__name__, Kernel)
        return self


class Sum(_Composition):
    r"""Weighted sum of kernels.

    .. math:: k(x, y) = \sum_i w_i k_i(x, y), \qquad w_i \ge 0

    All radial terms (RBF, Delta) share one block of squared distances.

    Parameters
    ----------
    kernels : list of Kernel
        The terms.
    weights : list of float, default=None
        Non-negative weights; None means ones.

    Examples
    --------
    >>> from kernelmetric.kernels import RBF, Linear
    >>> kernel = 0.5 * RBF(gamma=1.0) + Linear()
    >>> kernel
    0.5 * RBF(gamma=1.0) + Linear()
    >>> kernel([[0.0], [1.0]]).round(3)
    array([[0.5  , 0.184],
           [0.184, 1.5  ]])
    >>> kernel.get_params()["k0__gamma"]
    1.0
    """

    def __init__(self, kernels: Any, weights: Any = None):
        self.kernels = kernels
        self.weights = weights

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        try:
            weights = self._weights()
        except (TypeError, ValueError):  # a mistake should be seen as it was written
            return super().__repr__(N_CHAR_MAX)
        terms = []
        for weight, kernel in zip(weights, self.kernels, strict=False):
            inside = f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)
            terms.append(inside if weight == 1 else f"{weight:.6g} * {inside}")
        return _shortened(" + ".join(terms) or "Sum([])", N_CHAR_MAX)

    def _weights(self) -> list[float]:
        if self.weights is None:
            return [1.0] * len(self.kernels)
        if np.ndim(self.weights) != 1 or len(self.weights) != len(self.kernels):
            raise ValueError(
                f"Got weights={self.weights!r} for {len(self.kernels)} kernels, but expected "
                "one weight per kernel."
            )
        return [_points.check_number("weight", weight) for weight in self.weights]

    def _flat(self) -> Iterator[tuple[float, Kernel]]:
        self._checked()
        for weight, kernel in zip(self._weights(), self.kernels, strict=True):
            yield from ((weight * inner, term) for inner, term in kernel._flat())

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        return super()._from_data(X, y) | {"weights": self._weights()}

    def _terms(self) -> list[Kernel]:
        return [kernel for _, kernel in self._flat()]

    def _combined(self, values: Iterable[Any]) -> Any:
        terms = zip(self._flat(), values, strict=True)
        scaled = (K if w == 1.0 else backend_of(K).multiplied(K, w) for (w, _), K in terms)
        return reduce(lambda total, K: backend_of(total).added(total, K), scaled)


class Product(_Composition):
    r"""Product of kernels.

    .. math:: k(x, y) = \prod_i k_i(x, y)

    Parameters
    ----------
    kernels : list of Kernel
        The factors.

    Examples
    --------
    >>> from kernelmetric.kernels import Linear, RBF
    >>> kernel = RBF(gamma=1.0) * Linear()
    >>> kernel
    RBF(gamma=1.0) * Linear()
    >>> kernel([[1.0], [2.0]]).round(3)
    array([[1.   , 0.736],
           [0.736, 4.   ]])
    """

    def __init__(self, kernels: Any):
        self.kernels = kernels

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parts = [f"({k!r})" if isinstance(k, Sum) else repr(k) for k in self.kernels]
        return _shortened(" * ".join(parts) or "Product([])", N_CHAR_MAX)

    def _combined(self, values: Iterable[Any]) -> Any:
        return reduce(lambda total, K: backend_of(total).multiplied(total, K), values)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _weighted_sum(terms: list[tuple[float, Kernel]]) -> Sum:
    return Sum([kernel for _, kernel in terms], [weight for weight, _ in terms])._checked()
