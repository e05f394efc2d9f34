"""Sums and products, which kernels are made into by + and *."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from kernelmetric.compute import backend_of
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._points import check_number
from kernelmetric.kernels._terms import Terms, check_terms, values_of


def _of_all_terms(name: str, meaning: str) -> Any:
    """A property that holds where it does for every term."""

    def holds(self: Any) -> bool:
        self._checked()
        return all(getattr(kernel, name) for kernel in self.kernels)

    return property(holds, doc=meaning)


class _Composition(Terms, Kernel):
    """Kernel made of kernels: what they give, combined."""

    accepts_sparse = _of_all_terms("accepts_sparse", "Whether every term accepts sparse points.")
    is_bound = _of_all_terms("is_bound", "Whether every term can be evaluated.")
    is_radial = _of_all_terms("is_radial", "Whether every term is a function of the distance.")

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        self._checked()
        return {"kernels": [kernel.bind(X, y) for kernel in self.kernels]}

    def _terms(self) -> list[Kernel]:
        return list(self.kernels)

    def _combined(self, values: Iterable[Any]) -> Any:
        """One array from those of the terms, which may be overwritten."""
        raise NotImplementedError

    def _evaluate(self, A: Any, B: Any) -> Any:
        return self._combined(values_of(self._terms(), A, B))

    def _at_distances(self, D2: Any) -> Any:
        return self._combined(kernel._at_distances(D2) for kernel in self._terms())

    def _diagonal(self, A: Any) -> Any:
        return self._combined(kernel._diagonal(A) for kernel in self._terms())

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
        return [check_number("weight", weight) for weight in self.weights]

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


def sum_of(a: Kernel, b: Kernel) -> Sum:
    """The sum of two kernels."""
    return _weighted_sum([*a._flat(), *b._flat()])


def product_of(a: Kernel, b: Kernel) -> Product:
    """The product of two kernels."""
    factors = [k.kernels if isinstance(k, Product) else [k] for k in (a, b)]
    return Product([*factors[0], *factors[1]])._checked()


def multiple_of(kernel: Kernel, factor: Any) -> Sum:
    """A kernel times a number."""
    factor = check_number("weight", factor)
    return _weighted_sum([(factor * weight, term) for weight, term in kernel._flat()])


def _weighted_sum(terms: list[tuple[float, Kernel]]) -> Sum:
    return Sum([kernel for _, kernel in terms], [weight for weight, _ in terms])._checked()
