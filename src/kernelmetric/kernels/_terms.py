"""Several kernels in a list: their parameters, what is refused, and their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Self

from sklearn.base import BaseEstimator

from kernelmetric.compute import squared_distances

_TERM = re.compile(r"k(\d+)")


class Terms(BaseEstimator):
    """Kernels in a list, reachable as parameters ``k0``, ``k0__gamma``, ``k1``, ..."""

    kernels: Any

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
            if not isinstance(kernel, BaseEstimator):
                continue
            params[f"k{i}"] = kernel
            for name, value in kernel.get_params(deep=True).items():
                params[f"k{i}__{name}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
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


def check_terms(kernels: Any, name: str, kind: Any) -> None:
    """Refuse what is no list of kernels of points."""
    if not isinstance(kernels, list | tuple):
        raise ValueError(
            f"Got kernels={kernels!r}, but {name} expected a list of kernels: try "
            "[RBF(), Linear()]."
        )
    if len(kernels) == 0:
        raise ValueError(f"Got no kernels, but {name} expected at least one.")
    for kernel in kernels:
        if not isinstance(kernel, kind):
            raise ValueError(
                f"Got {kernel!r} as a term of {name}, but expected a Kernel: "
                "try as_kernel on it first."
            )
        if kernel.pairwise:
            raise ValueError(
                f"Got Precomputed as a term of {name}, but expected kernels of points: its "
                "input is a matrix of kernel values; try combining the matrices yourself."
            )


def values_of(kernels: Iterable[Any], A: Any, B: Any = None) -> Iterator[Any]:
    """Values of several bound kernels on the same points; those of distances share one block."""
    D2 = None
    for kernel in kernels:
        if not kernel.is_radial:
            yield kernel._evaluate(A, B)
            continue
        D2 = squared_distances(A, B) if D2 is None else D2
        yield kernel._at_distances(D2)
