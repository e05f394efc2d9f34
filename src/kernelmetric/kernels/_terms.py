"""Several kernels in a list: their parameters, what is refused, and their values."""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, Self

from sklearn.utils.metaestimators import _BaseComposition

from kernelmetric.compute.reductions import squared_distances


class Terms(_BaseComposition):
    """Kernels in a list, reachable as parameters ``k0``, ``k0__gamma``, ``k1``, ..."""

    kernels: Any

    @property
    def _named(self) -> list[tuple[str, Any]]:
        listed = self.kernels if isinstance(self.kernels, list | tuple) else []
        for kernel in listed:
            refuse_class(kernel)  # it has all methods, and no parameters
        return [(f"k{i}", kernel) for i, kernel in enumerate(listed)]

    @_named.setter
    def _named(self, named: list[tuple[str, Any]]) -> None:
        self.kernels = [kernel for _, kernel in named]

    @property
    def takes_objects(self) -> bool:
        """Whether every term takes objects."""
        terms = [kernel for _, kernel in self._named]
        return bool(terms) and all(getattr(term, "takes_objects", False) for term in terms)

    def _points(self, X: Any) -> Any:
        """Points as all terms take them."""
        terms = [kernel for _, kernel in self._named if hasattr(kernel, "points")]
        return reduce(lambda read, kernel: kernel.points(read), terms, X)

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
        return self._get_params("_named", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the terms as ``k0__gamma``."""
        if "kernels" in params:  # parameters of terms are those of the new ones
            self.kernels = params.pop("kernels")
        self._set_params("_named", **params)
        return self


def refuse_class(kernel: Any) -> None:
    """Refuse a class where one of its kernels is meant."""
    if isinstance(kernel, type):
        raise ValueError(
            f"Got the class {kernel.__name__}, but expected a kernel: try {kernel.__name__}()."
        )


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
                f"Got {kernel!r} as a term of {name}, but expected a Kernel: try as_kernel on it."
            )
        if kernel.pairwise:
            raise ValueError(
                f"Got Precomputed as a term of {name}, but expected kernels of points: try "
                "combining the matrices of kernel values yourself."
            )
    if len({kernel.takes_objects for kernel in kernels}) > 1:
        raise ValueError(
            f"Got kernels of objects beside kernels of rows of numbers in {name}, but expected "
            "kernels of the same points: try Columns(['name'], kernel) for the columns of a table."
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


def _of_all_terms(name: str, meaning: str) -> Any:
    """A property that holds where it does for every term."""

    def holds(self: Any) -> bool:
        self._checked()
        return all(getattr(kernel, name) for kernel in self.kernels)

    return property(holds, doc=meaning)


class Composition(Terms):
    """What kernels give, combined; a class has ``_checked`` and ``_combined``."""

    _checked: Any
    _combined: Any

    accepts_sparse = _of_all_terms("accepts_sparse", "Whether every term accepts sparse points.")
    is_bound = _of_all_terms("is_bound", "Whether every term can be evaluated.")
    is_radial = _of_all_terms("is_radial", "Whether every term is a function of the distance.")

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        self._checked()
        return {"kernels": [kernel.bind(X, y) for kernel in self.kernels]}

    def _terms(self) -> list[Any]:
        return list(self.kernels)

    def _evaluate(self, A: Any, B: Any) -> Any:
        return self._combined(values_of(self._terms(), A, B))

    def _at_distances(self, D2: Any) -> Any:
        return self._combined(kernel._at_distances(D2) for kernel in self._terms())

    def _diagonal(self, A: Any) -> Any:
        return self._combined(kernel._diagonal(A) for kernel in self._terms())
