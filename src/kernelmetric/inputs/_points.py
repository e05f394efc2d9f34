"""Points as they come in: two-dimensional, finite, float32 or float64, of any library."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from kernelmetric._warnings import warn
from kernelmetric.compute import in_memory, is_sparse, namespace, precise, to_device, to_numpy
from kernelmetric.compute._objects import is_objects
from kernelmetric.inputs._refusals import refuse_ambiguous

MOST_LOST = 1e-3  # of the spread of points: what float32 may cost
_LOOKED_AT = 5_000  # rows whose medians say how far points lie
_FAR = 100.0  # deviations from zero, which leave five of the digits of float32


def check_points(
    estimator: Any, X: Any, *, reset: bool, accept_sparse: bool = False, **options
) -> Any:
    """Validate X as points in rows: two-dimensional, finite, float32 or float64.

    ``reset`` is True in ``fit``; ``options`` go to scikit-learn's ``validate_data``. What is
    NumPy's goes to the device in use, and arrays of other libraries stay where they are.
    """
    if is_objects(X) or not in_memory(X):
        return _check_rows(estimator, X, reset=reset, **options)
    if is_array_api_obj(X) and not is_numpy_array(X) and not is_sparse(X):
        return _check_foreign(estimator, X, reset=reset, **options)
    # those of pyarrow's columns are data
    names: Any = getattr(X, "column_names", None) or getattr(X, "columns", ())
    refuse_twins(names)
    refuse_ambiguous(X, "X")
    X = X if reset else in_order(estimator, X)
    medians = vars(estimator).get("_medians") if len(names) and not reset else None
    options |= {"accept_sparse": accept_sparse and "csr", "dtype": [np.float64, np.float32]}
    if medians is not None:
        options["ensure_all_finite"] = "allow-nan"
    try:
        with np.errstate(all="ignore"):  # its test for finite numbers adds up huge ones, ± both
            checked = validate_data(estimator, X, reset=reset, **options)
    except (ValueError, TypeError) as refusal:
        name, said = type(estimator).__name__, str(refusal)
        if said.startswith("Input X contains NaN"):
            raise ValueError(_gaps(name, reset)) from None
        if "could not convert" in said or "must be a string or a real number" in said:
            raise type(refusal)(
                f"Got X with text or other objects, but {name} expected numbers ({said}). Try a "
                "data frame with Kernelized or a predictor, which read its columns, a kernel of "
                "objects there, such as kernel='ngrams', or TableSchema() before it in a pipeline."
            ) from None
        raise
    return to_device(checked if medians is None else _filled(estimator, checked, medians))


def _filled(estimator: Any, X: np.ndarray, medians: np.ndarray) -> np.ndarray:
    """Rows of a frame with the medians of the fit, which met no gaps, where they have some."""
    gaps = np.isnan(X)
    if gaps.any():
        names = getattr(estimator, "feature_names_in_", np.arange(X.shape[1]))
        warn(
            f"Got no value in {int(gaps.sum())} cells of {names[gaps.any(axis=0)].tolist()}, but "
            "one in every row in fit: a state that nothing was learned of. Medians of fit stand in."
        )
    return np.where(gaps, medians.astype(X.dtype), X)


def _gaps(name: str, fits: bool) -> str:
    """What to do about missing numbers."""
    if not fits:
        return (
            f"Input X contains NaN or infinity, but {name} learned from points without gaps, and "
            "does not know what one means: fill the gaps, for instance by SimpleImputer in a "
            "pipeline, or learn from a data frame that has such gaps."
        )
    return (
        f"Input X contains NaN or infinity, which {name} cannot use. Try Kernelized or a "
        "predictor with a data frame, where a missing number is a state of its own, or fill the "
        "gaps first, for instance by SimpleImputer in a pipeline."
    )


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
        refuse_ambiguous(to_numpy(X), "X")
        X = xp.astype(X, xp.float64)
    elif X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float32)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError(_gaps(name, reset))
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def _check_rows(estimator: Any, X: Any, *, reset: bool, ensure_min_samples: int = 1, **_) -> Any:
    """Objects, which their kernel has read, or rows that are checked where they lie."""
    if len(X) < ensure_min_samples:
        raise ValueError(
            f"Found array with {len(X)} sample(s), while a minimum of {ensure_min_samples} is "
            f"required by {type(estimator).__name__}."
        )
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        if getattr(X, "names", None) is not None:
            estimator.feature_names_in_ = X.names
    return X


def in_order(estimator: Any, X: Any) -> Any:
    """A frame with its columns as they were in fit, where these are in another order."""
    names: list[Any] = list(getattr(estimator, "feature_names_in_", ()))
    columns: Any = getattr(X, "column_names", None)
    found = list(columns or getattr(X, "columns", ()))
    if found == names or len(found) != len(names) or set(found) != set(names):
        return X
    return X.select(names) if hasattr(X, "select") else X[names]


def check_coordinates(Z: Any, width: int) -> np.ndarray:
    """Learned coordinates to go back from, as many for each point as ``transform`` gives."""
    Z = check_array(to_numpy(Z) if hasattr(Z, "dtype") else Z, dtype=np.float64, input_name="Z")
    if Z.shape[1] != width:
        raise ValueError(
            f"Got coordinates of shape {Z.shape}, but expected (n_samples, {width}), as transform "
            "gives them."
        )
    return Z


def as_points(X: Any) -> Any:
    """Points of no estimator, checked as scikit-learn does; those of other libraries stay."""
    if is_array_api_obj(X) and not is_numpy_array(X):
        return X
    refuse_ambiguous(X, "X")
    with np.errstate(over="ignore", invalid="ignore"):  # of the sum that looks for NaN
        return check_array(X, dtype=[np.float64, np.float32], input_name="X")


def as_floats(A: Any) -> Any:
    """Numbers that are computed with as they are, float32 or float64; others in float64."""
    return A if str(A.dtype).endswith(("float32", "float64")) else precise(A)


def refuse_twins(names: Any) -> None:
    """Refuse names of columns of which two are the same."""
    names = [str(name) for name in names]
    if len(set(names)) < len(names):
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"Got a table with {names.count(twin)} columns named {twin!r}, but expected different "
            "names: rename one, or leave it out."
        )


def location_of(X: Any) -> np.ndarray | None:
    """Means and deviations of the features, two rows; None where float32 has digits enough."""
    if is_sparse(X) or not in_memory(X):
        return None
    xp = namespace(X)
    with np.errstate(all="ignore"):  # what overflows is refused by others
        moments = (xp.mean(X, axis=0), xp.std(X, axis=0))
        mean, deviation = np.stack([to_numpy(m).astype(np.float64) for m in moments])
        far = bool(np.any(np.abs(mean) > _FAR * deviation))
    good = far and np.isfinite(mean).all() and np.isfinite(deviation).all()
    return np.stack([mean, deviation]) if good else None


def refuse_lost(Z: Any, what: str, centre: str, scale: str, power: int = 1) -> None:
    """Refuse points that float32 cannot tell apart, or whose squares it has no numbers for.

    ``power`` 2: distances are computed with by inner products.
    """
    Z = to_numpy(Z)
    some = precise(Z[:: -(-len(Z) // _LOOKED_AT)])
    with np.errstate(over="ignore"):
        unit = float(np.median(np.linalg.norm(some - np.median(some, axis=0), axis=1)))
    size, single = float(np.median(np.abs(some).max(axis=1, initial=0.0))), np.finfo(np.float32)
    eps, tiny, most = float(single.eps), float(single.tiny), float(single.max)
    if 0 < unit < np.inf and (size / unit) ** power * eps > MOST_LOST:
        raise ValueError(
            f"Got {what} {size / unit:.0e} times as far from zero as they spread, of which float32 "
            f"keeps too few digits. {centre}"
        )
    far = max(float(np.abs(Z).max(initial=0.0)), unit)
    if far > np.sqrt(most) / Z.shape[1] or 0 < unit < np.sqrt(tiny) / MOST_LOST:
        raise ValueError(
            f"Got {what} up to {far:.0e} with a spread of {unit:.0e}, whose squares float32 has no "
            f"numbers for: {scale}"
        )
