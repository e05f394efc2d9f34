"""Sums and products of kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelmetric.compute import is_numpy, squared_distances
from kernelmetric.kernels._base import Kernel, check_number
from kernelmetric.kernels._radial import RadialKernel

_TERM = re.compile(r"k(\d+)")


class _Composition(Kernel):
    """Kernel made of kernels, reachable as parameters ``k0``, ``k0__gamma``, ``k1``, ..."""

    kernels: Any

    @property
    def accepts_sparse(self) -> bool:
        """Whether every term accepts sparse points."""
        self._check_terms()
        return all(kernel.accepts_sparse for kernel in self.kernels)

    @property
    def is_bound(self) -> bool:
        """Whether every term can be evaluated."""
        self._check_terms()
        return all(kernel.is_bound for kernel in self.kernels)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, with those of the terms when ``deep``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the terms ``k0``, ``k1``, ... and their parameters.

        Returns
        -------
        dict
            Parameter names and values.
        """
        params = super().get_params(deep=False)
        if not deep or not isinstance(self.kernels, list | tuple):
            return params
        for i, kernel in enumerate(self.kernels):
            if not isinstance(kernel, Kernel):
                continue
            params[f"k{i}"] = kernel
            for name, value in kernel.get_params(deep=True).items():
                params[f"k{i}__{name}"] = value
        return params

    def set_params(self, **params: Any) -> _Composition:
        """Set parameters, those of the terms as ``k0__gamma``.

        Parameters
        ----------
        **params : dict
            Parameter names and values.

        Returns
        -------
        self
            The same kernel.
        """
        own = params.keys() & self.get_params(deep=False).keys()
        for name in own:
            setattr(self, name, params[name])
        nested: dict[int, dict[str, Any]] = {}
        for name in [name for name in params if name not in own]:
            term, _, rest = name.partition("__")
            match = _TERM.fullmatch(term)
            if match is None or int(match[1]) >= len(self.kernels):
                names = sorted(self.get_params(deep=False)) + [
                    f"k{i}" for i in range(len(self.kernels))
                ]
                raise ValueError(
                    f"Invalid parameter {name!r} for {self!r}. Valid parameters are: {names!r}."
                )
            i = int(match[1])
            if rest:
                nested.setdefault(i, {})[rest] = params[name]
            else:  # a new list: the old one may belong to another kernel
                self.kernels = [*self.kernels[:i], params[name], *self.kernels[i + 1 :]]
        for i, values in nested.items():
            self.kernels[i].set_params(**values)
        return self

    def _require_bound(self) -> None:
        self._check_terms()
        super()._require_bound()

    def _check_terms(self) -> None:
        name = type(self).__name__
        if not isinstance(self.kernels, list | tuple):
            raise ValueError(
                f"Got kernels={self.kernels!r}, but {name} expected a list of kernels: try "
                "[RBF(), Linear()]."
            )
        if len(self.kernels) == 0:
            raise ValueError(f"Got no kernels, but {name} expected at least one.")
        for kernel in self.kernels:
            if not isinstance(kernel, Kernel):
                raise ValueError(
                    f"Got {kernel!r} as a term of {name}, but expected a Kernel: "
                    "try as_kernel on it first."
                )
            if kernel.pairwise:
                raise ValueError(
                    f"Got Precomputed as a term of {name}, but expected kernels of points: its "
                    "input is a matrix of kernel values; try combining the matrices yourself."
                )


class Sum(_Composition):
    r"""Weighted sum of kernels.

    .. math:: k(x, y) = \sum_i w_i k_i(x, y), \qquad w_i \ge 0

    Its feature space is the terms' feature spaces side by side. All radial terms (RBF, Delta),
    also those of nested sums, share one block of squared distances.

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

    def bind(self, X: Any, y: Any = None) -> Sum:
        """Return the sum of the bound terms.

        Parameters
        ----------
        X : array of shape (n, d)
            Training points.
        y : array of shape (n,), default=None
            Labels, passed on to the terms.

        Returns
        -------
        Sum
            A new kernel with as many terms and the same weights.
        """
        self._check_terms()
        return Sum([kernel.bind(X, y) for kernel in self.kernels], weights=self._weights())

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        try:
            weights = self._weights()
        except (TypeError, ValueError):  # a mistake should be seen as it was written
            return super().__repr__(N_CHAR_MAX)
        terms = []
        for weight, kernel in zip(weights, self.kernels, strict=False):
            inside = f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)
            terms.append(inside if weight == 1 else f"{weight:.6g} * {inside}")
        text = " + ".join(terms) if terms else "Sum([])"
        return text if len(text) <= N_CHAR_MAX else text[: N_CHAR_MAX - 3] + "..."

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
        for weight, kernel in zip(self._weights(), self.kernels, strict=True):
            if isinstance(kernel, Sum):
                yield from ((weight * inner, term) for inner, term in kernel._flat())
            else:
                yield weight, kernel

    def _evaluate(self, A: Any, B: Any) -> Any:
        terms = list(self._flat())
        distances = None
        if any(isinstance(kernel, RadialKernel) for _, kernel in terms):
            distances = squared_distances(A, B)
        total = None
        for weight, kernel in terms:
            if isinstance(kernel, RadialKernel):
                K = kernel.of_squared_distances(distances)
            else:
                K = kernel._evaluate(A, B)
            if weight != 1.0:
                K = _times(K, weight)
            total = K if total is None else _plus(total, K)
        return total

    def _diagonal(self, A: Any) -> Any:
        return sum(weight * kernel._diagonal(A) for weight, kernel in self._flat())


class Product(_Composition):
    r"""Product of kernels.

    .. math:: k(x, y) = \prod_i k_i(x, y)

    Its feature space is the tensor product of the factors' feature spaces.

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

    def bind(self, X: Any, y: Any = None) -> Product:
        """Return the product of the bound factors.

        Parameters
        ----------
        X : array of shape (n, d)
            Training points.
        y : array of shape (n,), default=None
            Labels, passed on to the factors.

        Returns
        -------
        Product
            A new kernel with as many factors.
        """
        self._check_terms()
        return Product([kernel.bind(X, y) for kernel in self.kernels])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parts = [f"({k!r})" if isinstance(k, Sum) else repr(k) for k in self.kernels]
        text = " * ".join(parts) if parts else "Product([])"
        return text if len(text) <= N_CHAR_MAX else text[: N_CHAR_MAX - 3] + "..."

    def _evaluate(self, A: Any, B: Any) -> Any:
        K = self.kernels[0]._evaluate(A, B)
        for kernel in self.kernels[1:]:
            K = _times(K, kernel._evaluate(A, B))
        return K

    def _diagonal(self, A: Any) -> Any:
        d = self.kernels[0]._diagonal(A)
        for kernel in self.kernels[1:]:
            d = d * kernel._diagonal(A)
        return d


def _plus(K: Any, other: Any) -> Any:
    # In place only where no gradient can flow: torch's autograd needs the factors as they were.
    return np.add(K, other, out=K) if is_numpy(K) else K + other


def _times(K: Any, other: Any) -> Any:
    return np.multiply(K, other, out=K) if is_numpy(K) else K * other


def add(first: Kernel, second: Kernel) -> Sum:
    """Return first + second, with the terms of sums side by side."""
    kernels: list[Kernel] = []
    weights: list[float] = []
    for kernel in (first, second):
        kernels += list(kernel.kernels) if isinstance(kernel, Sum) else [kernel]
        weights += kernel._weights() if isinstance(kernel, Sum) else [1.0]
    total = Sum(kernels, weights)
    total._check_terms()
    return total


def scale(kernel: Kernel, weight: Any) -> Sum:
    """Weighted sum with one term, or a sum with all its weights scaled."""
    weight = check_number("weight", weight)
    if isinstance(kernel, Sum):
        return Sum(list(kernel.kernels), [weight * w for w in kernel._weights()])
    total = Sum([kernel], [weight])
    total._check_terms()
    return total


def multiply(first: Kernel, second: Kernel) -> Product:
    """Return first * second, with the factors of products side by side."""
    factors: list[Kernel] = []
    for kernel in (first, second):
        factors += list(kernel.kernels) if isinstance(kernel, Product) else [kernel]
    product = Product(factors)
    product._check_terms()
    return product
