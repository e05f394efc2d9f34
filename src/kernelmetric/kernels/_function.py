"""Kernels that a user gives: functions, names of scikit-learn, matrices of kernel values."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from kernelmetric import compute
from kernelmetric.inputs import Objects, is_objects, listed_objects
from kernelmetric.inputs._parameters import is_on, require_word
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._points import as_block
from kernelmetric.tables._frames import holds_objects


@dataclass(eq=False, repr=False)
class FunctionKernel(Kernel):
    """Any function as a kernel.

    The function is given two blocks of points, n × d and m × d, and returns n × m kernel values. A
    function of two single points that returns a number is understood too; it is called n m times.
    Points are rows of numbers; of objects, such as texts, it gets two lists, or two objects.

    Parameters
    ----------
    function : callable
        ``function(A, B, **params)``.
    params : dict, default=None
        Further keyword arguments of the function.
    form : {"auto", "blocks", "points"}, default="auto"
        Whether the function takes two blocks or two points. "auto" tries it on a few rows;
        ``bind`` fixes the answer.
    objects : bool, default=False
        Whether X are objects of any kind: a list of them, or a column of a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import FunctionKernel
    >>> kernel = FunctionKernel(lambda a, b: np.minimum(a, b).sum())
    >>> X = np.array([[1.0, 2.0], [3.0, 0.5]])
    >>> kernel.bind(X).form
    'points'
    >>> kernel(X)
    array([[3. , 1.5],
           [1.5, 3.5]])
    """

    function: Callable
    params: dict | None = None
    form: str = "auto"
    _: KW_ONLY
    objects: bool = False

    @property
    def takes_objects(self) -> bool:
        """Whether points are objects."""
        return is_on("objects", self.objects)

    def _points(self, X: Any) -> Any:
        """Objects as points, where they are some."""
        if not self.takes_objects:
            return super()._points(X)
        return X if isinstance(X, Objects) else Objects(listed_objects(X))

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        _check_params(self.params)
        params = None if self.params is None else dict(self.params)
        return {"function": self.function, "params": params, "form": self._form(X)}

    def _check_blocks(self, A: Any, B: Any) -> tuple[Any, Any]:
        refuse_objects(self, A, B)
        return super()._check_blocks(A, B)

    def _bind_table(self, X: Any, y: Any) -> Kernel:
        refuse_objects(self, X)
        return super()._bind_table(X, y)

    def _form(self, A: Any) -> str:
        require_word("form", self.form, ("auto", "blocks", "points"))
        if self.form != "auto":
            return self.form
        # Unequal sizes tell rows from columns; a size unlike d makes `a @ b` fail on blocks.
        m = 3 if A.shape[1] != 3 else 4
        first = compute.take_rows(A, np.arange(2) % A.shape[0])
        second = compute.take_rows(A, np.arange(m) % A.shape[0])
        with np.errstate(all="ignore"):
            blocks = [X.listed() if is_objects(X) else X for X in (first, second)]
            on_blocks = _attempt(self._call, *blocks)
            if _shape(on_blocks) == (2, m):
                return "blocks"
            on_points = _attempt(self._call, _rows(first)[0], _rows(second)[0])
        if _shape(on_points) in ((), (1,), (1, 1)):
            return "points"
        cause = next((r for r in (on_blocks, on_points) if isinstance(r, Exception)), None)
        raise ValueError(
            f"Got {_describe(on_blocks)} from the kernel function on blocks of 2 and {m} points "
            f"and {_describe(on_points)} on two points, but expected an array of shape (2, {m}) "
            "or a number: try a function of two blocks, like lambda A, B: A @ B.T."
        ) from cause

    def _call(self, a: Any, b: Any) -> Any:
        return self.function(a, b, **(self.params or {}))

    def _evaluate(self, A: Any, B: Any) -> Any:
        B = A if B is None else B
        shape = (A.shape[0], B.shape[0])
        if self._form(A) == "points":
            rows = [[float(self._call(a, b)) for b in _rows(B)] for a in _rows(A)]
            K = np.asarray(rows, dtype=np.float64).reshape(shape)
        else:
            K = self._call(*(X.listed() if is_objects(X) else X for X in (A, B)))
        if _shape(K) != shape:
            raise ValueError(
                f"Got {_describe(K)} from the kernel function on blocks of {shape[0]} and "
                f"{shape[1]} points, but expected an array of shape {shape}."
            )
        # A copy: the function may keep its own array.
        return compute.namespace(A).astype(compute.in_library_of(K, A), A.dtype, copy=True)

    def _diagonal(self, A: Any) -> Any:
        if self._form(A) == "blocks":
            return super()._diagonal(A)
        return compute.like([float(self._call(a, a)) for a in _rows(A)], A)


class PairwiseKernel(Kernel):
    """A kernel of scikit-learn, by its name in ``sklearn.metrics.pairwise``.

    For the names that have no class of their own here, such as "chi2". NumPy only. Not all of them
    are positive semi-definite; a space refuses what is not.

    Parameters
    ----------
    metric : str
        Name of the kernel.
    params : dict, default=None
        Its keyword arguments, such as ``{"gamma": 0.5}``.

    Examples
    --------
    >>> from kernelmetric.kernels import PairwiseKernel
    >>> PairwiseKernel("chi2", {"gamma": 0.5})([[0.2, 0.8]], [[0.2, 0.8], [0.8, 0.2]]).round(3)
    array([[1.   , 0.698]])
    """

    def __init__(self, metric: str, params: dict | None = None):
        self.metric = metric
        self.params = params

    def _evaluate(self, A: Any, B: Any) -> Any:
        require_word("metric", self.metric, sorted(PAIRWISE_KERNEL_FUNCTIONS))
        _check_params(self.params)
        if not isinstance(A, np.ndarray):
            raise TypeError(
                f"Got {type(A).__name__}, but scikit-learn's kernel {self.metric!r} expected NumPy "
                "arrays: try a kernel of this library, such as RBF."
            )
        # Some of them refuse arrays that must not be written, such as maps of files.
        A = np.require(A, requirements="W")
        B = B if B is None else np.require(B, requirements="W")
        K = pairwise_kernels(A, B, metric=self.metric, **(self.params or {}))
        return K.astype(A.dtype, copy=False)


def _check_params(params: Any) -> None:
    if not (params is None or (isinstance(params, dict) and set(map(type, params)) <= {str})):
        raise ValueError(
            f"Got params={params!r}, but expected a dict of keyword arguments of the kernel: try "
            "{'gamma': 0.5}."
        )


def refuse_objects(kernel: Kernel, *blocks: Any) -> None:
    """Refuse texts, objects and tables for a function, which would get numbers made of them."""
    if _has_function(kernel) and any(map(holds_objects, blocks)):
        raise ValueError(
            "Got texts, other objects or a table, but a function as kernel expected rows of "
            "numbers: try FunctionKernel(f, objects=True), a kernel of objects such as 'ngrams', "
            "or for the numbers that columns become, Columns(kernel=f)."
        )


def _has_function(kernel: Any) -> bool:
    """Whether a kernel, or a part of it that is not of columns, is a function."""
    if getattr(kernel, "takes_objects", False):
        return False
    if not isinstance(kernel, Kernel) or isinstance(kernel, FunctionKernel):
        return isinstance(kernel, FunctionKernel) or callable(kernel)
    params = kernel.get_params(deep=False)
    if "schema" in params:
        return False
    parts = [v for p in params.values() for v in (p if isinstance(p, list | tuple) else [p])]
    return any(map(_has_function, parts))


def _attempt(call: Callable, a: Any, b: Any) -> Any:
    try:
        return call(a, b)
    except Exception as error:  # any failure only means: not this form
        return error


def _shape(result: Any) -> tuple[int, ...] | None:
    if isinstance(result, Exception) or result is None or compute.is_sparse(result):
        return None
    try:
        return tuple(np.shape(result))
    except ValueError:
        return None


def _describe(result: Any) -> str:
    if isinstance(result, Exception):
        return f"{type(result).__name__} ({result})"
    shape = _shape(result)
    return type(result).__name__ if shape is None else f"an array of shape {shape}"


def _rows(A: Any) -> list[Any]:
    return A.listed() if is_objects(A) else [A[i, :] for i in range(A.shape[0])]


_ASYMMETRY, _TIMES_ROUNDING = 1e-8, 800.0  # tolerated, relative to the largest entry


class Precomputed(Kernel):
    r"""X itself holds the kernel values.

    In ``fit`` X is the Gram matrix of the training points, :math:`X_{ij} = k(x_i, x_j)`; later a
    row of X holds the kernel values of one new point with all training points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import Precomputed
    >>> gram = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> kernel = Precomputed().bind(gram)
    >>> kernel(gram, kernel.anchors(gram, [1]))
    array([[1.],
           [3.]])
    """

    pairwise = True

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        n = X.shape[0]
        if n != X.shape[1]:
            raise ValueError(
                f"Got a precomputed kernel of shape {tuple(X.shape)}, but expected a square Gram "
                "matrix (n_samples, n_samples) in fit: try passing kernel(X_train, X_train)."
            )
        if not compute.all_finite(X):
            raise ValueError(
                "Got NaN or infinity in the precomputed kernel, but expected finite numbers: "
                "try rescaling the features it was computed from."
            )
        xp = compute.namespace(X)
        largest = float(xp.max(xp.abs(X))) if n else 0.0

        def differences(rows: slice) -> float:
            return float(xp.max(xp.abs(X[rows, :] - X[:, rows].T)))

        asymmetry = max(compute.over_rows(differences, n, 4 * 8 * n), default=0.0)
        if asymmetry > max(_ASYMMETRY, _TIMES_ROUNDING * compute.rounding_of(X)) * largest:
            raise ValueError(
                f"Got a precomputed kernel with |K - Kᵀ| up to {asymmetry:.3g}, but expected a "
                "symmetric Gram matrix: try (K + K.T) / 2 if that is round-off."
            )
        return {}

    def _check_blocks(self, A: Any, B: Any) -> tuple[Any, Any]:
        A = as_block(A, self)
        if B is None:
            return A, None
        B = B if is_array_api_obj(B) else np.asarray(B)
        xp = compute.namespace(B)
        if B.ndim != 1 or not xp.isdtype(B.dtype, "integral"):
            raise ValueError(
                f"Got B of shape {tuple(B.shape)} and dtype {B.dtype}, but Precomputed expected "
                "indices of training points: try kernel.anchors(X, indices)."
            )
        return A, B

    def _evaluate(self, A: Any, B: Any) -> Any:
        return A if B is None else compute.namespace(A).take(A, compute.in_library_of(B, A), axis=1)

    def _diagonal(self, A: Any) -> Any:
        if A.shape[0] != A.shape[1]:
            raise ValueError(
                f"Got rows of kernel values of shape {tuple(A.shape)}, but expected the square "
                "Gram matrix: k(x, x) of new points is not among their values with training points."
            )
        return compute.namespace(A).linalg.diagonal(A)
