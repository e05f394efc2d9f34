"""What "auto" stands for: decided in one place, kept as a value, and used again where it is given.

:func:`choose` resolves "auto" and nothing else; a metric with ``recipe=`` looks it up there.
"""

import re
from html import escape
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from kernelmetric.kernelized._copies import Copies
from kernelmetric.kernelized._parts import is_auto, is_estimator, with_columns
from kernelmetric.kernelized._supervision import Supervision
from kernelmetric.kernels import Kernel, Sum
from kernelmetric.selection import RidgeKPCA, _ridge_kpca, automatic_kernel, automatic_space

_GIVEN = "as given"
_FROM_RECIPE = "from the recipe that was given"
_LONG = re.compile(r"\d+\.\d{5,}(?:e[-+]\d+)?")  # numbers with more digits than are read


class Recipe(BaseEstimator):
    """What a metric was made of, nothing in it left to choose.

    ``Kernelized(learner, recipe=metric.recipe_)`` takes from it whatever is "auto" in the new
    metric. A recipe is a record, and cannot be changed.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel, bound to the training points. None leaves it to be chosen, as None does below.
    space : Space or None
        The space, not fitted and without a kernel.
    learner : estimator or None
        The learner, not fitted, with its parameters resolved.
    schema : TableSchema, default=None
        What the columns of the table are, where X was one. Scales of features in the kernel belong
        to the features of this schema, so it goes wherever the kernel goes.
    reasons : dict of str to str, default=None
        For 'kernel', 'space', 'learner' and 'rows', a sentence that says why.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import Kernelized, LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> metric = Kernelized(LMNN()).fit(X[::2], y[::2])
    >>> metric.recipe_.reasons["rows"]
    'all 75 rows'
    >>> again = Kernelized(LMNN(), recipe=metric.recipe_).fit(X[1::2], y[1::2])
    >>> repr(again.kernel_) == repr(metric.kernel_)
    True
    """

    def __init__(self, kernel, space, learner, *, schema=None, reasons=None):
        self.kernel = kernel
        self.space = space
        self.learner = learner
        self.schema = schema
        self.reasons = reasons

    def __sklearn_clone__(self) -> Self:
        return self  # nobody can change it, and its schema is fitted

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            raise AttributeError(
                f"Got another {name} for a recipe, but a recipe is a record: give the {name} to "
                "Kernelized beside it."
            )
        super().__setattr__(name, value)

    def __str__(self) -> str:
        return "\n".join(
            f"{name:8}{part}" + (f"\n        ({why})" if why else "")
            for name, (part, why) in described(self).items()
        )


def described(recipe: Recipe) -> dict[str, tuple[str, str]]:
    """The kernel, the space, the learner and the rows of a recipe in words, and why."""
    reasons, parts = recipe.reasons or {}, ("kernel", "space", "learner")
    with np.printoptions(precision=3, threshold=8, edgeitems=3, suppress=True):
        words = [" ".join(repr(getattr(recipe, name)).split()) for name in parts]
    words = [_LONG.sub(lambda number: f"{float(number[0]):.4g}", text) for text in words]
    found = {name: (text, reasons.get(name, "")) for name, text in zip(parts, words, strict=True)}
    return {**found, "rows": (reasons.get("rows", "all rows"), "")}


class ShowsRecipe:
    """What notebooks show of a fitted estimator: scikit-learn's diagram, and its recipe."""

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._recipe_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in shown:
            shown["text/html"] += self._recipe_html()
        return shown

    def _recipe_html(self) -> str:
        recipe = getattr(self, "recipe_", None)
        if recipe is None:
            return ""
        rows = "".join(
            f"<tr><th>{name}</th><td><code>{escape(part)}</code></td><td>{escape(why)}</td></tr>"
            for name, (part, why) in described(recipe).items()
        )
        caption = '<caption style="text-align:left">What it is made of, and why (recipe_)</caption>'
        return f'<table style="text-align:left">{caption}{rows}</table>'


def choose(metric: Any, n_samples: int, supervision: Supervision) -> Recipe:
    """What a metric is about to be made of; its kernel is bound where the space is fitted."""
    known, reasons = metric.recipe, {}
    kernel, reasons["kernel"] = _kernel(metric.kernel, known)
    silent = [name for name in kernel.get_params() if name.split("__")[-1] == "verbose"]
    verbose = getattr(metric.learner, "verbose", False)
    if silent and isinstance(verbose, bool | Integral) and verbose:  # fit refuses others
        kernel = clone(kernel).set_params(**dict.fromkeys(silent, True))
    space, reasons["space"] = _space(metric, kernel, n_samples, supervision)
    learner, reasons["learner"] = _learner(metric.learner, space, known)
    return Recipe(kernel, space, learner, reasons=reasons)


def used(
    recipe: Recipe,
    space: Any,
    learner: Any,
    n_samples: int,
    schema: Any,
    some: Any = None,
    copies: Copies | None = None,
) -> Recipe:
    """The recipe of a fit that has ended: kernel and rows as the fitted space has them."""
    bound = getattr(space, "written_kernel", None) or space.kernel_
    kernel, plain = with_columns(bound, schema), clone(recipe.space)
    reasons = dict(recipe.reasons or {})
    candidates = getattr(space.kernel_, "candidates_", None)
    if candidates:
        errors = ", ".join(f"{name} {error:.3g}" for name, error in candidates.items())
        reasons["kernel"] = f"ridge regression on points left out has the errors {errors}"
    elif hasattr(space.kernel_, "ridge_"):
        reasons["kernel"] = "labels cannot choose, so the RBF of median width and a ridge"
    n_rows = n_samples if some is None else len(some)
    reasons["rows"] = f"all {n_samples:,} rows"
    if n_rows < n_samples:
        reasons["rows"] = f"a sample of {n_rows:,} rows of {n_samples:,}, for the time limit"
    if hasattr(space, "rows_"):
        n_rows = space.anchors_.shape[0] if space.rows_ == "boundary" else n_rows
        n_components = min(space._n_leading(n_rows), space.rank_)
        plain.set_params(rows=space.rows_, ridge=space.ridge_, n_components=n_components)
        if space.rows_ == "boundary":
            reasons["rows"] = f"{space.anchors_.shape[0]:,} boundary rows of {n_samples:,}"
        elif space.rows_ == "sample":
            reasons["rows"] = f"a sample of {_ridge_kpca.ENOUGH_ROWS:,} rows of {n_samples:,}"
        enough = getattr(learner, "_enough_rows", n_samples)
        if n_samples > enough:
            reasons["rows"] += f"; the learner takes {enough:,} of them all"
    if copies is not None:
        n_copies = len(copies.groups) - n_samples
        reasons["rows"] += f"; {n_copies:,} copies of them count by weights"
    resolved: dict[str, Any] = getattr(learner, "_resolved", dict)()
    if resolved:
        before = "'auto' is" if reasons["learner"] == _GIVEN else f"{reasons['learner']}, and"
        reasons["learner"] = f"{before} {_in_words(resolved)}"
    fresh = clone(learner).set_params(**resolved)
    return Recipe(kernel, plain, fresh, schema=schema, reasons=reasons)


def check_recipe(recipe: Any) -> None:
    """Refuse what is neither None nor a recipe."""
    if recipe is not None and not isinstance(recipe, Recipe):
        raise ValueError(
            f"Got recipe={recipe!r}, but expected None or the recipe_ of a fitted metric."
        )


def _kernel(kernel: Any, known: Recipe | None) -> tuple[Kernel, str]:
    """The kernel that a parameter stands for: what the data decide comes from a known recipe."""
    meant = automatic_kernel(kernel)
    bound = None if known is None or meant.is_bound else known.kernel
    if bound is not None and _may_become(meant, bound):
        return clone(bound), _FROM_RECIPE
    if is_auto(kernel):
        return meant, "without labels, the RBF of median width"
    return meant, _GIVEN


def _may_become(written: Any, bound: Any) -> bool:
    """Whether data may make this of a kernel, or of a part of it: what is written stays in it."""
    if isinstance(written, Kernel):
        if type(written).is_bound is False:  # it learns, and becomes what it likes
            return isinstance(bound, Kernel)
        if type(written) is not type(bound):
            return False
        known, params = (part.get_params(deep=False) for part in (bound, written))
        if isinstance(written, Sum):
            known, params = (
                part | {"weights": k._weights()} for part, k in ((known, bound), (params, written))
            )
        return all(_may_become(value, known[name]) for name, value in params.items())
    if isinstance(written, list | tuple) and isinstance(bound, list | tuple):
        return len(written) == len(bound) and all(map(_may_become, written, bound))
    left_open = written is None or (isinstance(written, str) and not isinstance(bound, str))
    return left_open or np.array_equal(written, bound)


def _space(
    metric: Any, kernel: Kernel, n_samples: int, supervision: Supervision
) -> tuple[Any, str]:
    """The space that a parameter stands for, without a kernel."""
    known = _known_space(metric.recipe, kernel)
    if not is_auto(metric.space):
        space = given_space(metric.space, metric.kernel)
        if type(known) is type(space):
            own, settled = (part.get_params(deep=False) for part in (space, known))
            space.set_params(**{name: settled[name] for name in own if is_auto(own[name])})
        return space, _GIVEN
    if known is not None:
        return known, _FROM_RECIPE
    learner = None if supervision.compared else metric.learner
    paired = supervision.pairs is not None
    return space_for(kernel, learner, n_samples, metric.random_state, paired=paired)


def _known_space(known: Recipe | None, kernel: Kernel) -> Any:
    """The space of a recipe, whose ridge goes with the recipe's kernel; None where it has none."""
    if known is None or known.space is None:
        return None
    space = clone(known.space)
    if isinstance(space, RidgeKPCA) and repr(kernel) != repr(known.kernel):
        space.set_params(ridge="auto")
    return space


def space_for(
    kernel: Kernel, learner: Any, n_samples: int, random_state: Any, *, paired: bool = False
) -> tuple[Any, str]:
    """The automatic space of a kernel, and why; without a learner that may see labels, by size."""
    # Only for who needs labels: others, such as clusterers, must not see them.
    labelled = learner is not None and get_tags(learner).target_tags.required
    if labelled and not (kernel.pairwise and n_samples > _ridge_kpca.ALL_ROWS):
        space = RidgeKPCA(random_state=0 if random_state is None else random_state)
        why = "the learner needs labels: predictions of left-out points, and components"
        wanted = getattr(learner, "n_components", None)
        if isinstance(wanted, Integral) and int(wanted) > space._n_leading(n_samples):
            space.set_params(n_components=int(wanted))  # a map of that rank has them all
        return space, why
    space = automatic_space(n_samples, random_state, paired=paired)
    told = "pairs of " if paired else ""
    return space, f"the automatic space of {told}{n_samples:,} points"


def given_space(space: Any, kernel: Any) -> Any:
    """A copy of the space that a user wrote, refused where it is none; the kernel is for words."""
    if not is_estimator(space) or "kernel" not in space.get_params():
        raise ValueError(
            f"Got space={space!r}, but expected 'auto' or a space with a kernel parameter, such as "
            "KPCA(50), Nystroem(500) or KernelTrick()."
        )
    if space.get_params()["kernel"] is not None:
        raise ValueError(
            f"Got a kernel in {space!r} beside kernel={kernel!r}, but expected one: "
            "leave it out of the space."
        )
    return clone(space)


def _learner(learner: Any, space: Any, known: Recipe | None) -> tuple[Any, str]:
    """A learner for the coordinates of a space: what is "auto" goes by them, the rest stays."""
    fresh = clone(learner)
    params = fresh.get_params(deep=False)
    open_ = [name for name, value in params.items() if is_auto(value)]
    meant: dict[str, Any] = {}
    if getattr(space, "knows_labels", False):
        # Points held out are no judges where coordinates of training points know their labels.
        meant = {"early_stopping": False} | getattr(learner, "_where_labels_are_known", {})
    if known is not None and type(known.learner) is type(learner):
        settled = known.learner.get_params(deep=False)
        meant |= {name: settled[name] for name in open_ if not is_auto(settled[name])}
    meant = {name: value for name, value in meant.items() if name in open_}
    if not meant:
        return fresh, _GIVEN
    return fresh.set_params(**meant), f"'auto' is {_in_words(meant)} on these coordinates"


def _in_words(meant: dict[str, Any]) -> str:
    """Parameters as they are written."""
    return ", ".join(f"{name}={value!r}" for name, value in meant.items())
