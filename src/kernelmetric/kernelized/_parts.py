"""What may stand inside Kernelized, which points it is fitted to, and what is refused."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from kernelmetric.compute import to_numpy
from kernelmetric.inputs import check_points
from kernelmetric.inputs._far_cells import far_columns
from kernelmetric.inputs._labels import require_target
from kernelmetric.inputs._parameters import is_auto, require_word
from kernelmetric.kernels import (
    Kernel,
    Linear,
    TableSchema,
    is_frame,
    is_table,
    object_columns,
    reads_columns,
    refuse_objects,
    with_schema,
)
from kernelmetric.kernels._names import with_tags_of
from kernelmetric.metric import Metric
from kernelmetric.selection import automatic_kernel
from kernelmetric.spaces import Space

_EXPECTED = ("fit", "get_params", "__sklearn_tags__")


def is_estimator(thing: Any) -> bool:
    """Whether something is an instance of a scikit-learn estimator."""
    return not isinstance(thing, type) and all(hasattr(thing, name) for name in _EXPECTED)


def tags_of(thing: Any, fallback: Any) -> Any:
    """The tags of an estimator; of anything else the fallback, because fit says what is wrong."""
    return get_tags(thing) if is_estimator(thing) else fallback


def metric_tags(tags: Any, learner: Any, judge: Any, kernels: Callable[[], list[Any]]) -> Any:
    """Tags of a metric: it learns as its learner, predicts as its judge, takes what kernels do."""
    learned, judged = tags_of(learner, tags), tags_of(judge, tags)
    for name in ("estimator_type", "classifier_tags", "regressor_tags"):
        setattr(tags, name, getattr(judged, name))
    tags.target_tags, tags.non_deterministic = learned.target_tags, learned.non_deterministic
    if tags.transformer_tags is not None:
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return with_tags_of(lambda: [automatic_kernel(kernel) for kernel in kernels()], tags)


def check_estimator(owner: Any, name: str, example: str) -> None:
    """Refuse a parameter of an owner that is no estimator, with an example of what to try."""
    value = getattr(owner, name)
    if isinstance(value, type):
        raise ValueError(
            f"Got the class {value.__name__} as {name}, but {type(owner).__name__} expected an "
            f"estimator: try {value.__name__}()."
        )
    if not is_estimator(value):
        raise ValueError(
            f"Got {name}={value!r}, but {type(owner).__name__} expected a scikit-learn estimator "
            f"(a BaseEstimator with fit): try {example}."
        )


def check_learner(owner: Any) -> None:
    """Refuse a learner that is no estimator, or that means something else inside a kernel."""
    check_estimator(owner, "learner", "LMNN()")
    outer, learner = type(owner).__name__, owner.learner
    params = learner.get_params(deep=True)
    for part in (learner, *params.values()):
        if _has_own_kernel(part):
            raise ValueError(
                f"Got learner={learner!r}, but {part!r} has a kernel of its own, and points "
                f"would be kernelized twice: expected a linear learner. Give the kernel to "
                f"{outer} alone, or fit {type(part).__name__} by itself."
            )
        if part is not learner and is_indefinite(part):
            raise ValueError(
                f"Got learner={learner!r}, in which the metric of {part!r} may be indefinite: "
                f"coordinates cannot hold its distances. Expected it to be the learner itself, or "
                "psd='solve' or 'clip'."
            )
    warm = [params[name] for name in params if name.split("__")[-1] == "warm_start"]
    if any(isinstance(flag, bool | Integral) and flag for flag in warm):  # fit refuses others
        raise ValueError(
            f"Got learner={learner!r}, but {outer} begins every fit afresh: the coordinates of "
            "another fit are another basis, in which the last map means nothing. Expected "
            "warm_start=False; to go on after a fit, call metric.learner_.set_params("
            "warm_start=True).fit(metric.space_.transform(X), y)."
        )


def check_parts(metric: Any, y: Any = None, *, compared: bool | None = None) -> Kernel:
    """The kernel of a metric, not bound, once all its parts are in order."""
    check_learner(metric)
    kernel = automatic_kernel(metric.kernel)
    require_word("neighbors", metric.neighbors, ("feature", "input"))
    told = y is not None or compared is None
    told |= bool(compared) and hasattr(metric.learner, "from_rows")
    if not told and get_tags(metric.learner).target_tags.required:
        require_target(y, type(metric.learner).__name__, "labels or numbers, one for each row")
    return kernel


def is_indefinite(learner: Any) -> bool:
    """Whether squared distances of a learner, once fitted, may be negative."""
    return isinstance(learner, Metric) and getattr(learner, "psd", None) == "none"


def _has_own_kernel(part: Any) -> bool:
    """Whether a metric or a space of this library brings a kernel that is not linear."""
    if not isinstance(part, Metric | Space):
        return False
    params = part.get_params(deep=False)
    kernels = [params[name] for name in ("kernel", "kernels") if name in params]
    return not all(isinstance(k, Linear) or (isinstance(k, str) and k == "linear") for k in kernels)


def fit_points(metric: Any, X: Any, kernel: Kernel) -> tuple[Any, TableSchema | None]:
    """Points to fit to, and the schema of their table, which is left in the metric."""
    for name in ("schema_", "_medians"):
        vars(metric).pop(name, None)
    given = X
    refuse_objects(kernel, X)
    schema = None if metric.recipe is None else metric.recipe.schema
    if schema is not None:
        X = schema.transform(X)
    # A schema reads cells such as 9999, far from all others, as missing, and says so.
    elif not kernel.pairwise and (
        is_table(X)
        or (is_frame(X) and reads_columns(kernel))
        or (is_auto(metric.kernel) and far_columns(_plain(X)))
    ):
        X = X if is_frame(X) else np.asarray(X)
        schema = TableSchema(object_columns(kernel))
        X = schema.fit_transform(X)
    sparse = kernel.accepts_sparse
    X = check_points(metric, X, reset=True, accept_sparse=sparse, ensure_min_samples=2)
    if schema is None and is_frame(given) and not kernel.pairwise:
        metric._medians = np.median(to_numpy(X), axis=0)  # for gaps in rows to come
    if schema is not None:
        metric.schema_ = schema
        metric.n_features_in_ = schema.n_features_in_
        metric.feature_names_in_ = schema.feature_names_in_
    return X, schema


def _plain(X: Any) -> Any:
    """Numbers of a list or a frame as an array; what is none of these as it is."""
    if is_frame(X) and hasattr(X, "to_numpy"):
        return X.to_numpy()
    try:
        return np.asarray(X) if isinstance(X, list | tuple) else X
    except ValueError:  # rows of several lengths, of which others tell
        return X


def read_points(metric: Any, X: Any) -> Any:
    """X as the kernel of a metric takes it: objects are read, rows of numbers stay as they are."""
    known = getattr(metric.recipe, "kernel", None)  # what is no recipe is refused by fit
    kernel = known if is_auto(metric.kernel) and known is not None else metric.kernel
    return automatic_kernel(kernel).points(X)


def with_columns(kernel: Kernel, schema: TableSchema | None) -> Kernel:
    """A copy of a kernel that knows the columns of its table, where there is one."""
    return clone(kernel) if schema is None else with_schema(kernel, schema)
