"""From what a user writes to a kernel."""

from collections.abc import Callable
from typing import Any

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._function import FunctionKernel, PairwiseKernel
from kernelmetric.kernels._registry import KERNELS, OBJECT_KERNELS, RBF, Polynomial, Tanimoto
from kernelmetric.kernels._terms import refuse_class

_NAMES = {kernel.__name__.lower(): kernel for kernel in (*KERNELS, *OBJECT_KERNELS)}
_NAMES |= {"poly": Polynomial, "jaccard": Tanimoto}


def with_tags_of(kernels: Callable[[], list[Kernel]], tags: Any, *, sparse: bool = True) -> Any:
    """The tags of an estimator that takes the points of kernels, sparse ones if it may."""
    try:
        known = kernels()
    except ValueError:  # fit will say what is wrong; asking for tags must not
        return tags
    tags.input_tags.pairwise = all(kernel.pairwise for kernel in known)
    tags.input_tags.sparse = sparse and all(kernel.accepts_sparse for kernel in known)
    objects = all(kernel.takes_objects for kernel in known)
    tags.input_tags.string = tags.input_tags.three_d_array = objects
    tags.input_tags.two_d_array = not objects
    return tags


def as_kernel(spec: Any = None) -> Kernel:
    """Turn a name, a function or nothing into a kernel.

    Parameters
    ----------
    spec : Kernel, str, callable or None
        A kernel passes through. A name stands for the class with its defaults: the name of a
        class of this room in small letters, such as "rbf" or "linear", "poly", or any kernel name
        of scikit-learn. A callable becomes a ``FunctionKernel``; Gaussian-process kernels of
        scikit-learn are such callables. None means the RBF of median width.

    Returns
    -------
    Kernel
        The kernel, still to be bound.

    Examples
    --------
    >>> from kernelmetric.kernels import as_kernel
    >>> as_kernel("poly")
    Polynomial()
    >>> as_kernel("chi2")
    PairwiseKernel(metric='chi2')
    """
    if spec is None:
        return RBF()
    if isinstance(spec, Kernel):
        return spec
    refuse_class(spec)
    if isinstance(spec, str):
        if spec in _NAMES:
            return _NAMES[spec]()
        if spec in PAIRWISE_KERNEL_FUNCTIONS:
            return PairwiseKernel(spec)
    elif callable(spec):
        return FunctionKernel(spec)
    names = ", ".join(sorted({*_NAMES, *PAIRWISE_KERNEL_FUNCTIONS}))
    hint = ""
    if isinstance(spec, str) and spec in ("auto", "aligned"):
        hint = f" {spec!r} needs labels and is understood by Kernelized only."
    raise ValueError(
        f"Got kernel={spec!r}, but expected a Kernel, a function of two blocks of points, or one "
        f"of the names {names}: try 'rbf'.{hint}"
    )
