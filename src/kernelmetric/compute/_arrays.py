"""Which array library, which dtype, and the validation of points and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array, to_device
from array_api_compat import device as device_of
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from kernelmetric.compute._device import there
from kernelmetric.compute._refusals import refuse_unsaid
from kernelmetric.compute.backends import backend_of

_LABELS_AT_ONCE = 2**20  # that are sorted together
_FAR = 100.0  # deviations from zero, which leave five of the digits of float32
_COLLECTIONS = {"dask", "dask_expr"}  # libraries of data that lie on many machines
# exp below this is zero for every purpose, but makes denormal numbers, and a GEMM on denormals
# runs an order of magnitude slower.
_LEAST_EXPONENT, _LEAST_SINGLE_EXPONENT = -300.0, -40.0


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array."""
    return sparse.issparse(X)


def is_collection(*values: Any) -> bool:
    """Whether the type of one of some values is a Dask collection."""
    return any(type(value).__module__.partition(".")[0] in _COLLECTIONS for value in values)


def streamed(X: Any) -> bool:
    """Whether X are rows on many machines, of which a few are here at a time."""
    return getattr(type(X), "streamed", False)


def namespace(*arrays: Any) -> Any:
    """Array namespace shared by all arguments (``None`` and sparse arguments aside)."""
    dense = [a for a in arrays if a is not None and not is_sparse(a)]
    return array_namespace(*dense) if dense else array_namespace(np.empty(0))


def to_numpy(X: Any) -> np.ndarray:
    """NumPy copy or view of an array of any supported library, from any device."""
    return X if is_numpy_array(X) else backend_of(X).to_numpy(X)


def like(values: Any, X: Any) -> Any:
    """Values as an array of the library, dtype and device of X."""
    if is_sparse(X):
        return np.asarray(values, dtype=X.dtype)
    return array_namespace(X).asarray(values, dtype=X.dtype, device=device_of(X))


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array of any supported library, by a NumPy index array."""
    return backend_of(X).take_rows(X, rows)


def read_only(array: Any) -> Any:
    """An array that its maker keeps and nobody writes into: no cluster need compare its copies."""
    if isinstance(array, np.ndarray) and array.base is None:
        array.flags.writeable = False
    return array


def is_read_only(array: np.ndarray) -> bool:
    """Whether nobody writes into an array, as :func:`read_only` has it."""
    return array.base is None and not array.flags.writeable


def is_single(X: Any) -> bool:
    """Whether X, sparse or of any supported library, holds float32."""
    return str(X.dtype).endswith("float32")


def location_of(X: Any) -> np.ndarray | None:
    """Means and deviations of the features, two rows; None where float32 has digits enough."""
    if is_sparse(X) or streamed(X):
        return None
    xp = namespace(X)
    with np.errstate(all="ignore"):  # what overflows is refused by others
        moments = (xp.mean(X, axis=0), xp.std(X, axis=0))
        mean, deviation = np.stack([to_numpy(m).astype(np.float64) for m in moments])
        far = bool(np.any(np.abs(mean) > _FAR * deviation))
    good = far and np.isfinite(mean).all() and np.isfinite(deviation).all()
    return np.stack([mean, deviation]) if good else None


def widened(X: Any) -> Any:
    """X in float64, where small eigenvalues do not drown; itself where it is so already."""
    if is_sparse(X):
        return X.astype(np.float64, copy=False)
    xp = array_namespace(X)
    return xp.astype(X, xp.float64, copy=False)


def in_library_of(array: Any, X: Any) -> Any:
    """A fitted array in the library and on the device of X, its dtype as it is."""
    if is_sparse(array) or is_sparse(X) or not is_array_api_obj(X):
        return array
    xp = namespace(X)
    if is_array_api_obj(array) and namespace(array) is xp:
        return to_device(array, device_of(X))
    return xp.asarray(to_numpy(array), device=device_of(X))


def all_finite(K: Any) -> bool:
    """Whether K holds neither NaN nor infinity; one sum decides nearly always."""
    xp = namespace(K)
    with np.errstate(all="ignore"):
        return bool(xp.isfinite(xp.sum(K))) or bool(xp.all(xp.isfinite(K)))


def exp_of_negative(D: Any, gamma: float, *, overwrite: bool = False) -> Any:
    """exp(-gamma D); may overwrite D where that is said."""
    backend = backend_of(D)
    gamma = min(gamma, float(namespace(D).finfo(D.dtype).max))  # inf times zero is not a number
    with np.errstate(over="ignore"):
        S = backend.multiplied(D, -gamma) if overwrite else D * -gamma
    return backend.exponential(S, _LEAST_SINGLE_EXPONENT if is_single(D) else _LEAST_EXPONENT)


def l1_distances(A: Any, B: Any = None) -> Any:
    """L1 distances between the rows of A and of B (None: A); O(n m d) time, O(n m) memory."""
    return backend_of(A).l1_distances(A, A if B is None else B)


def check_points(
    estimator: Any, X: Any, *, reset: bool, accept_sparse: bool = False, **options
) -> Any:
    """Validate X as points in rows: two-dimensional, finite, float32 or float64.

    ``reset`` is True in ``fit``; ``options`` go to scikit-learn's ``validate_data``. What is
    NumPy's goes to the device in use, and arrays of other libraries stay where they are.
    """
    if streamed(X):
        return _check_streamed(estimator, X, reset=reset)
    if is_array_api_obj(X) and not is_numpy_array(X) and not is_sparse(X):
        return _check_foreign(estimator, X, reset=reset, **options)
    # those of pyarrow's columns are data
    refuse_twins(getattr(X, "column_names", None) or getattr(X, "columns", ()))
    refuse_unsaid(X, "X")
    with np.errstate(all="ignore"):  # its test for finite numbers adds up huge ones of both signs
        return there(
            validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr" if accept_sparse else False,
                dtype=[np.float64, np.float32],
                **options,
            )
        )


def refuse_twins(names: Any) -> None:
    """Refuse names of columns of which two are the same."""
    names = [str(name) for name in names]
    if len(set(names)) < len(names):
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"Got a table with {names.count(twin)} columns named {twin!r}, but expected different "
            "names: rename one, or leave it out."
        )


def check_labels(y: Any, X: Any, *, needs: str = "at least two classes") -> np.ndarray:
    """Codes 0, 1, ... of y in the order of the sorted labels; refused where they cannot teach."""
    if y is None:
        raise ValueError(
            "This learner requires y to be passed, but the target y is None: expected one class "
            "label per row of X."
        )
    y = label_column(y)
    check_consistent_length(X, y)
    classes, codes = classes_of(y)
    if not len(classes):
        raise ValueError(f"Got no labels, but expected {needs}.")
    if len(classes) < 2:
        raise ValueError(
            f"Got 1 class ({classes[0]!r} for all {len(y)} samples), but expected {needs}: "
            "a metric is learned from what tells classes apart."
        )
    return codes


def label_column(y: Any) -> np.ndarray:
    """Labels as an array of one dimension, from whatever scikit-learn takes for that."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iub":
        return y  # as scikit-learn would leave it, after a search for data frames
    y = column_or_1d(to_numpy(y) if is_array_api_obj(y) else y, warn=True)
    _refuse_unsorted(y)
    return y


def _refuse_unsorted(y: np.ndarray) -> None:
    """Refuse objects as labels of which one is neither before nor after another."""
    try:
        sorted(set(y.tolist() if y.dtype.kind == "O" else ()))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(
            f"Got labels of type {' and '.join(kinds)} in y, but expected labels that can be "
            "sorted: try y.astype(str)."
        ) from None


def classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted labels, each once, and the code of every row; refused if they are no classes."""
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity, but expected a label for every row.")
    classes, _, codes = coded_labels(y)
    # Whole numbers are classes, however many; scikit-learn warns of many.
    if y.dtype.kind not in "iub" or 2 * len(classes) > len(y):
        check_classification_targets(y)
    return classes, codes


def coded_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sorted labels, each once, the row where each is met first, and the code of every row."""
    # np.unique of all takes forty bytes a label; piece by piece it takes eight.
    _refuse_unsorted(y)
    starts = range(0, len(y), _LABELS_AT_ONCE)
    if len(starts) < 2:
        return np.unique(y, return_index=True, return_inverse=True)
    found = [np.unique(y[i : i + _LABELS_AT_ONCE], return_index=True) for i in starts]
    classes = np.unique(np.concatenate([some for some, _ in found]))
    first, codes = np.empty(len(classes), dtype=np.intp), np.empty(len(y), dtype=np.intp)
    for start, (some, rows) in zip(reversed(starts), reversed(found), strict=True):
        piece = slice(start, start + _LABELS_AT_ONCE)
        first[np.searchsorted(classes, some)] = start + rows
        codes[piece] = np.searchsorted(classes, y[piece])
    return classes, first, codes


def _check_foreign(estimator: Any, X: Any, *, reset: bool, ensure_min_samples: int = 1, **_) -> Any:
    name = type(estimator).__name__
    xp = array_namespace(X)
    if X.ndim != 2:
        raise ValueError(
            f"Got an array of shape {tuple(X.shape)}, but {name} expected a 2D array: "
            "points in rows, features in columns."
        )
    if X.shape[0] < ensure_min_samples or X.shape[1] < 1:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s), while a minimum "
            f"of {ensure_min_samples} sample(s) and 1 feature is required by {name}."
        )
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: got X of {X.dtype}, but {name} expected real numbers. "
            "Try the real and the imaginary parts side by side."
        )
    if not xp.isdtype(X.dtype, "real floating"):
        refuse_unsaid(to_numpy(X), "X")
        X = xp.astype(X, xp.float64)
    elif X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float32)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError(f"Input X contains NaN or infinity, which {name} cannot use.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def _check_streamed(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows on many machines, whose chunks are checked where they lie."""
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        if X.names is not None:
            estimator.feature_names_in_ = X.names
    return X


def as_points(X: Any) -> Any:
    """Points of no estimator, checked as scikit-learn does; those of other libraries stay."""
    if is_array_api_obj(X) and not is_numpy_array(X):
        return X
    refuse_unsaid(X, "X")
    with np.errstate(over="ignore", invalid="ignore"):  # of the sum that looks for NaN
        return check_array(X, dtype=[np.float64, np.float32], input_name="X")
