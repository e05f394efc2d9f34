"""Kernels of objects: what every one of them can do, whatever its objects are."""

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from kernelmetric.compute import is_sparse
from kernelmetric.inputs import Objects, is_objects, listed_objects, refuse_ambiguous, shown
from kernelmetric.kernels._base import Kernel


class ObjectKernel(Kernel):
    r"""Base class of kernels of objects: texts, series, graphs, whatever a program has.

    A subclass defines one of two methods. ``compare(a, b)`` returns the kernel value of two
    objects; it must be positive semi-definite. ``features(items)`` returns rows of numbers, dense
    or sparse, one for each object of a list; the kernel is their inner product, and they are
    computed once for a table. ``read(item)`` may return an object in another form, and raises
    ValueError for what is none; text, numbers, arrays, and lists, tuples and dicts of them can be
    saved.

    X is then a list of objects, an array of them, or a column of a frame, in this class and
    wherever kernels are taken.

    Attributes
    ----------
    expects : str
        What the objects are, for messages.
    normalize : bool
        Whether values are divided by :math:`\sqrt{k(x, x)\, k(y, y)}`. An object with k(x, x) = 0
        then has the value 0 with every object.

    Examples
    --------
    >>> from kernelmetric.kernels import ObjectKernel
    >>> class SharedWords(ObjectKernel):
    ...     def compare(self, a, b):
    ...         return len(set(a.split()) & set(b.split()))
    >>> SharedWords()(["red fox", "red deer", "hare"])
    array([[2., 1., 0.],
           [1., 2., 0.],
           [0., 0., 1.]])
    """

    takes_objects = True
    normalize: Any = False
    expects: ClassVar[str] = "objects"
    # A parameter that labels may choose, among what, and the one by whose value it is settled.
    _open: ClassVar[tuple[str, tuple[Any, ...], str]] = "", (), ""

    def read(self, item: Any) -> Any:
        """An object in the form in which it is kept.

        Parameters
        ----------
        item : object
            One object of a user.

        Returns
        -------
        object
            The same, checked; reading it again changes nothing.
        """
        if item is None or (isinstance(item, float) and np.isnan(item)):
            raise ValueError("it is missing")
        return item

    def compare(self, a: Any, b: Any) -> float:
        """Kernel value of two objects.

        Parameters
        ----------
        a, b : object
            Two objects, as ``read`` returns them.

        Returns
        -------
        float
            The value.
        """
        raise NotImplementedError(f"{type(self).__name__} must define compare or features.")

    def features(self, items: list[Any]) -> Any:
        """Rows of numbers whose inner products are the kernel; None where it has ``compare``.

        Parameters
        ----------
        items : list of object
            Objects, as ``read`` returns them.

        Returns
        -------
        array or sparse matrix of shape (n, d), or None
            One row for each.
        """
        return None

    def parts(self, item: Any) -> Iterator[tuple[str, Any]]:
        """The parts of an object, and the object with each of them hidden.

        Parameters
        ----------
        item : object
            An object, as ``read`` returns it.

        Yields
        ------
        tuple of str and object
            The name of the part, and the object without it; nothing where parts are not known.
        """
        yield from ()

    def picture(self, item: Any) -> str | None:
        """An object, drawn: what the report page shows beside a point.

        Parameters
        ----------
        item : object
            An object, as ``read`` returns it.

        Returns
        -------
        str or None
            A drawing in SVG; None where a text says as much.
        """
        return None

    def _versions(self) -> list[Kernel]:
        name, choices, settled = self._open
        params = self.get_params(deep=False)
        if params.get(name) != "auto" or params.get(settled) is not None:
            return [self]
        return [type(self)(**(params | {name: choice})) for choice in choices]

    def _points(self, X: Any) -> Objects:
        """Objects as points, each of them read; refused by its row where it is none."""
        if is_objects(X) and not isinstance(X, Objects):
            raise TypeError(
                f"Got rows of a table, but {self!r} expected {self.expects}: name their column, as "
                f"in Columns(['name'], {type(self).__name__}())."
            )
        X = X if is_objects(X) else Objects(listed_objects(X, self.expects))
        reader = self._reader()
        if reader in X.readers:
            return X
        items = X.made(reader, self._read_all)
        if all(new is old for new, old in zip(items.values, X.values, strict=True)):
            X.readers.add(reader)
            return X
        return items

    def _reader(self) -> Hashable:
        """What tells objects that were read from others."""
        return type(self), "read"

    def _read_all(self, values: Any) -> Objects:
        items = Objects([self._read(i, item) for i, item in enumerate(values)])
        for item in items.values[:1]:
            self._read(0, item)  # as a model that was loaded does
        items.readers.add(self._reader())
        return items

    def _read(self, row: int, item: Any) -> Any:
        try:
            return self.read(item)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"Got {shown(item)} in row {row}, but {type(self).__name__} expected "
                f"{self.expects}: {error}."
            ) from error

    def _key(self) -> Hashable:
        """What tells features of this kernel from those of others."""
        params = sorted(self.get_params(deep=True).items())
        return type(self), tuple((name, _hashed(value)) for name, value in params)

    def _made(self, A: Objects) -> Any:
        """Features of some rows, from those of their table."""
        return A.made(self._key(), self.features)

    def _evaluate(self, A: Objects, B: Objects | None) -> Any:
        if not len(A) or (B is not None and not len(B)):
            return np.zeros((len(A), len(A if B is None else B)))
        K = self._values(A, B)
        if not self.normalize:
            return K
        own = self._inverse_norms(A)
        return K * own[:, None] * (own if B is None else self._inverse_norms(B))

    def _diagonal(self, A: Objects) -> Any:
        values = A.made((self._key(), "own"), self._own) if len(A) else np.empty(0)
        return (values > 0).astype(np.float64) if self.normalize else values.copy()

    def _inverse_norms(self, A: Objects) -> np.ndarray:
        own = A.made((self._key(), "own"), self._own)
        return np.divide(1.0, np.sqrt(own), out=np.zeros_like(own), where=own > 0)

    def _own(self, items: list[Any]) -> np.ndarray:
        """k(x, x) of a list of objects, before they are normalized."""
        made = self._made(Objects(items)) if type(self).features is not _NONE else None
        if made is None:
            return np.array([float(self.compare(item, item)) for item in items])
        squares = made.multiply(made) if is_sparse(made) else made * made
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()

    def _values(self, A: Objects, B: Objects | None) -> Any:
        """Kernel values before they are normalized."""
        if type(self).features is not _NONE:
            F = self._made(A)
            G = F if B is None else self._made(B)
            if F.shape[1] != G.shape[1]:
                raise ValueError(
                    f"Got {F.shape[1]} and {G.shape[1]} features from {self!r}, but expected as "
                    "many for every list of objects."
                )
            return np.asarray(safe_sparse_dot(F, G.T, dense_output=True), dtype=np.float64)
        a = A.listed()
        if B is not None:
            return np.array([[float(self.compare(x, y)) for y in B.listed()] for x in a])
        K = np.zeros((len(a), len(a)))
        for i, x in enumerate(a):
            for j in range(i + 1):
                K[i, j] = K[j, i] = float(self.compare(x, a[j]))
        return K


def kernel_of_objects(kernel: Kernel) -> ObjectKernel | None:
    """The first kernel of objects in a kernel; None where there is none."""
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return next((part for part in parts if isinstance(part, ObjectKernel)), None)


def as_numbers(item: Any) -> np.ndarray:
    """An object as an array of numbers; what is text, a time or masked is refused."""
    refuse_ambiguous(item, "it")
    found = np.asarray(item)
    texts = found.dtype.kind == "O" and any(isinstance(v, str | bytes) for v in found.ravel())
    if texts or found.dtype.kind in "USMm":
        raise ValueError("it is text or time, and no numbers")
    return found.astype(np.float64)


def _hashed(value: Any) -> Hashable:
    """A parameter as part of a key; of a kernel the parameters follow, a function is itself."""
    if isinstance(value, Kernel):
        return type(value).__name__
    return value if callable(value) else joblib.hash(value)


_NONE = ObjectKernel.features
