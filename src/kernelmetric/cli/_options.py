"""Options that several commands share, and the metric they describe."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from kernelmetric import learners
from kernelmetric.cli._talk import sentences
from kernelmetric.compute import use_device
from kernelmetric.graphs import Pairs, Quadruplets, Triplets
from kernelmetric.kernelized import Kernelized

KERNELS = ("auto", "aligned", "none", "rbf", "laplacian", "poly", "linear", "cosine")
KNOWN = {"pairs": Pairs, "triplets": Triplets, "quadruplets": Quadruplets}  # beside labels
LARGEST_SEED = 4_000_000
_LEFT_OUT = ("Learner", "GradientLearner", "SpectralLearner")  # abstract
_OF_NUMBERS = ("mlkr", "rfm")  # what predicts them, the default first


def learner_classes() -> dict[str, type]:
    """The learners by the names of the command line: ``nca``, ``lmnn``, ``idealized``, ..."""
    classes = {
        name.lower().removesuffix("kernel"): getattr(learners, name)
        for name in learners.__all__
        if name not in _LEFT_OUT
    }
    return {
        name: kind
        for name, kind in sorted(classes.items())
        if isinstance(kind, type) and issubclass(kind, learners.Learner)
    }


def chosen_learner(learner: str | None, *, known: str | None, regression: bool) -> str:
    """The learner asked for, or the default; refused where it learns from another thing."""
    kinds = learner_classes()
    if known is not None:
        able = [name for name, kind in kinds.items() if takes(kind, known)]
        if learner is not None and learner not in able:
            what = "learns from labels"
            if any(takes(kinds[learner], name) for name in KNOWN):
                what = f"takes no {known}"
            raise ValueError(
                f"Got --{known} with --learner {learner}, which {what}: try --learner "
                f"{' or '.join(able)}."
            )
        return learner or "idealized"
    if regression and learner not in (None, *_OF_NUMBERS):
        raise ValueError(
            f"Got --task regression with --learner {learner}, which learns from classes: try "
            f"--learner {' or '.join(_OF_NUMBERS)}."
        )
    if (
        not regression
        and learner is not None
        and vars(kinds[learner]).get("learns_from") == "targets"
    ):
        raise ValueError(
            f"Got --learner {learner}, which learns from numbers: add --task regression, or try "
            "--learner nca."
        )
    return learner or (_OF_NUMBERS[0] if regression else "nca")


def takes(kind: type, known: str) -> bool:
    """Whether a learner learns from pairs, triplets or quadruplets."""
    return known in inspect.signature(kind.fit).parameters  # type: ignore[attr-defined]


def build_metric(
    learner: str, kernel: str, components: int | None, seed: int, class_weight: str | None = None
) -> Any:
    """The metric that the options describe, not fitted."""
    kind = learner_classes()[learner]
    known = inspect.signature(kind).parameters
    wanted = {"n_components": components, "random_state": seed, "class_weight": class_weight}
    if components is not None and "n_components" not in known:
        raise ValueError(f"Got --components {components}, but {learner} has no such choice.")
    if class_weight is not None and "class_weight" not in known:
        raise ValueError(
            f"Got --class-weight {class_weight}, but {learner} has no weights of classes: try "
            "--weights with a column of weights, or --learner nca."
        )
    given = {name: value for name, value in wanted.items() if name in known and value is not None}
    metric = kind(**given)
    return metric if kernel == "none" else Kernelized(metric, kernel, random_state=seed)


def metric_name(metric: Any) -> str:
    """What tables and pages call a metric."""
    if isinstance(metric, Kernelized):
        return f"Kernelized {type(metric.learner).__name__}"
    return type(metric).__name__


def data_argument(function: Callable) -> Callable:
    """The table to read."""
    import click

    return click.argument("data", type=click.Path(dir_okay=False, path_type=Path))(function)


def several_data(function: Callable) -> Callable:
    """The table to read, or the files of one that are read part by part."""
    import click

    file = click.Path(dir_okay=False, path_type=Path)
    return click.argument("data", type=file, nargs=-1, required=True)(function)


def output_options(function: Callable) -> Callable:
    """Quiet, or JSON."""
    import click

    function = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(
        function
    )
    return click.option("--quiet", is_flag=True, help="Print nothing but errors.")(function)


def seed_option(function: Callable) -> Callable:
    """Where all randomness comes from."""
    import click

    return click.option(
        "--seed",
        type=click.IntRange(0, LARGEST_SEED),
        default=0,
        show_default=True,
        help="Seed for everything random.",
    )(function)


def device_option(function: Callable) -> Callable:
    """Where to compute."""
    import click

    @wraps(function)
    def on_device(*args: Any, device: str | None, **options: Any) -> Any:
        if device is None:
            return function(*args, **options)
        with sentences(), use_device(device):
            return function(*args, **options)

    return click.option(
        "--device", metavar="NAME", help="Compute on this device, such as cuda. It needs torch."
    )(on_device)


def metric_options(function: Callable) -> Callable:
    """What to learn, from what."""
    import click

    options: list[Callable[[Callable], Callable]] = [
        click.option("--label", metavar="COL", help="The column of classes, numbers or names."),
        click.option(
            "--pairs",
            "pairs_file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Learn from pairs of row numbers instead of labels. Rows count from 0. A line is "
            "'i,j' or 'i,j,sign', with sign 1 for alike and -1 for different.",
        ),
        click.option(
            "--triplets",
            "triplets_file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Learn from triplets of row numbers instead of labels. A line is 'a,b,c': a is "
            "nearer to b than to c.",
        ),
        click.option(
            "--quadruplets",
            "quadruplets_file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Learn from quadruplets of row numbers instead of labels. A line is 'a,b,c,d': a "
            "is nearer to b than c is to d.",
        ),
        click.option(
            "--learner",
            type=click.Choice(list(learner_classes())),
            help="The learner. Default: nca with labels, mlkr with numbers, idealized with pairs, "
            "triplets or quadruplets.",
        ),
        click.option(
            "--kernel",
            type=click.Choice(KERNELS),
            default="auto",
            show_default=True,
            help="The kernel. auto chooses it from the data. none learns a linear metric.",
        ),
        click.option("--components", type=click.IntRange(1), help="Number of learned coordinates."),
        click.option(
            "--weights",
            metavar="COL",
            help="The column that says what each row counts: zero leaves a row out, and three "
            "counts three times as much as one.",
        ),
        click.option(
            "--class-weight",
            type=click.Choice(["balanced"]),
            help="balanced lets all classes count alike, however many rows they have.",
        ),
        click.option("--use", multiple=True, metavar="COL", help="Use a column all the same."),
        click.option("--ignore", multiple=True, metavar="COL", help="Leave a column out."),
        seed_option,
        device_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function
