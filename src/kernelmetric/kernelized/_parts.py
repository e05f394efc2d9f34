"""What may stand inside Kernelized, and what is refused in a sentence before any work."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from kernelmetric.compute import rows_of, take_rows
from kernelmetric.kernels import Kernel, Linear
from kernelmetric.learners import NCA
from kernelmetric.learners._lmnn import LargeMargin
from kernelmetric.metric import Metric
from kernelmetric.selection import RidgeKPCA, automatic_kernel, automatic_space, has_ridge
from kernelmetric.selection._ridge_solution import LEAST_OF_CLASS
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
    try:
        known = [automatic_kernel(kernel) for kernel in kernels()]
    except ValueError:  # fit will say what is wrong; asking for tags must not
        return tags
    tags.input_tags.pairwise = all(kernel.pairwise for kernel in known)
    tags.input_tags.sparse = all(kernel.accepts_sparse for kernel in known)
    return tags


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


def checked_kernel(metric: Any, y: Any, *, compared: bool = False) -> Kernel:
    """The kernel of a metric about to be fitted, not bound, once all its parts are in order.

    ``compared`` says that there are tuples to learn from instead of labels.
    """
    check_learner(metric)
    kernel = automatic_kernel(metric.kernel)
    if not isinstance(metric.neighbors, str) or metric.neighbors not in ("feature", "input"):
        raise ValueError(f"Got neighbors={metric.neighbors!r}, but expected 'feature' or 'input'.")
    compared = compared and hasattr(metric.learner, "from_rows")
    if y is None and not compared and get_tags(metric.learner).target_tags.required:
        raise ValueError(
            f"{type(metric.learner).__name__} requires y to be passed, but the target y is None."
        )
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


def fresh_space(
    space: Any,
    kernel: Any,
    n_samples: int,
    random_state: Any,
    learner: Any = None,
    *,
    paired: bool = False,
) -> Any:
    """The space that a parameter stands for: new, not fitted, and without a kernel.

    'auto' goes by the number of training points, for a learner that needs labels by the ridge of
    the kernel, and by pairs where there are any to go by. The kernel is named in messages.
    """
    if isinstance(space, str):
        if space == "auto":
            # Only for who needs labels: others, such as clusterers, must not see them.
            labelled = learner is not None and get_tags(learner).target_tags.required
            if labelled and has_ridge(automatic_kernel(kernel)):
                return RidgeKPCA(random_state=0 if random_state is None else random_state)
            return automatic_space(n_samples, random_state, paired=paired)
        raise ValueError(
            f"Got space={space!r}, but expected 'auto' or a space such as KPCA(50), "
            "Nystroem(500) or KernelTrick()."
        )
    if not is_estimator(space) or "kernel" not in space.get_params():
        raise ValueError(
            f"Got space={space!r}, but expected 'auto' or a space with a kernel "
            "parameter, such as KPCA(50) or Nystroem(500)."
        )
    if space.get_params()["kernel"] is not None:
        raise ValueError(
            f"Got a kernel in {space!r} beside kernel={kernel!r}, but expected one: "
            "leave it out of the space."
        )
    return clone(space)


def learned_from(
    learner: Any, space: Any, Z: Any, y: Any, arguments: dict[str, Any]
) -> tuple[Any, Any]:
    """The coordinates and labels that a learner is fitted on: those of all points, or of some.

    Margins are those of the points between classes. Where the space was learned from the points
    that tell easy classes apart, these have the margins. Every class has as many neighbours among
    them as are asked for, if it has them at all.
    """
    rows = getattr(space, "_telling", None)
    few = isinstance(learner, LargeMargin) and isinstance(learner.n_neighbors, Integral)
    if rows is None or arguments or not (few and learner.n_neighbors < LEAST_OF_CLASS):
        return Z, y
    return take_rows(Z, rows), rows_of(y, rows)


def fresh_learner(learner: Any, space: Any) -> Any:
    """A learner to be fitted on the coordinates of a space.

    Where the coordinates of training points know their labels, as those of RidgeKPCA do, points
    held out are no judges: a learner that would stop early by itself does not, and penalizes the
    spread of the classes instead.
    """
    learner = clone(learner)
    early = learner.get_params(deep=False).get("early_stopping")
    if isinstance(space, RidgeKPCA) and isinstance(early, str) and early == "auto":
        learner.set_params(early_stopping=False)
        if isinstance(learner, NCA) and not isinstance(learner.reg, str) and learner.reg == 0:
            learner.set_params(reg="spread")
    return learner
