"""Options that several commands share, and the metric they describe."""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from sklearn.utils import get_tags

from kernelmetric.cli._talk import Talk
from kernelmetric.compute import use_device
from kernelmetric.compute.watch import time_limit
from kernelmetric.graphs import Pairs, Quadruplets, Triplets
from kernelmetric.kernelized import Kernelized
from kernelmetric.kernels._registry import KERNELS as NAMED_KERNELS
from kernelmetric.kernels._registry import Delta
from kernelmetric.learners import _registry
from kernelmetric.tables._plan import KINDS

_OF_POINTS = [kind for kind in NAMED_KERNELS if not kind.pairwise and kind is not Delta]
KERNELS = ("auto", "aligned", "none", "poly", *(kind.__name__.lower() for kind in _OF_POINTS))
KNOWN = {"pairs": Pairs, "triplets": Triplets, "quadruplets": Quadruplets}  # beside labels
LARGEST_SEED = 4_000_000
MOST_ROWS = 200_000  # beyond, the default metric learns no more from more
FILE: Any = click.Path(dir_okay=False, path_type=Path)
FOLDER: Any = click.Path(file_okay=False, path_type=Path)
LEARNERS = {  # nca, lmnn, idealized, ...
    kind.__name__.lower().removesuffix("kernel"): kind
    for kind in vars(_registry).values()
    if isinstance(kind, type)
}

Decorator = Callable[[Callable], Callable]


def takes(kind: type, known: str) -> bool:
    """Whether a learner learns from pairs, triplets or quadruplets."""
    return known in inspect.signature(kind.fit).parameters  # type: ignore[attr-defined]


def _takes_numbers(kind: type) -> bool:
    """Whether a learner learns from numbers to predict."""
    return get_tags(kind()).target_tags.multi_output


@dataclass(frozen=True)
class Wanted:
    """What the options of a command ask for: what to learn, from what, and how."""

    label: str | None = None
    learner: str | None = None
    kernel: str = "auto"
    components: int | None = None
    use: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    smiles: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    seed: int = 0
    pairs_file: Path | None = None
    triplets_file: Path | None = None
    quadruplets_file: Path | None = None
    task: str | None = None
    weights: str | None = None
    class_weight: str | None = None
    recipe_file: Path | None = None
    rows: int = MOST_ROWS
    decision: Any = None

    @property
    def told(self) -> dict[str, str]:
        """What columns are, by name; those of objects have the name of their kernel."""
        objects = dict.fromkeys(self.smiles, "molecules") | dict.fromkeys(self.text, "ngrams")
        if twice := [name for name in dict(self.kinds) if name in objects]:
            raise ValueError(f"Got --as {twice[0]} beside --smiles or --text, but expected one.")
        return dict(self.kinds) | objects

    @property
    def regression(self) -> bool:
        """Whether the label is a number to predict."""
        return self.task == "regression"

    @property
    def known(self) -> str | None:
        """What is known instead of labels: pairs, triplets or quadruplets; refused if several."""
        given = [name for name in KNOWN if getattr(self, f"{name}_file") is not None]
        if len(given) > 1:
            names = " and ".join(f"--{name}" for name in given)
            raise ValueError(f"Got {names}, but expected one of them.")
        return given[0] if given else None

    @property
    def learner_name(self) -> str:
        """The learner asked for, or the default; refused where it learns from another thing."""
        known = self.known
        if known is not None:
            what, able = known, [name for name, kind in LEARNERS.items() if takes(kind, known)]
        elif self.regression:
            numeric = [name for name, kind in LEARNERS.items() if _takes_numbers(kind)]
            what, able = "numbers", sorted(numeric, key=lambda name: name != "mlkr")
        else:
            kinds = {name: getattr(kind, "learns_from", "") for name, kind in LEARNERS.items()}
            what, able = "classes", ["nca", *(k for k in kinds if kinds[k] != "targets")]
        if self.learner is None:
            return "idealized" if known else able[0]
        if self.learner not in able:
            tried = "nca, or --task regression" if what == "classes" else " or ".join(able)
            raise ValueError(
                f"Got --learner {self.learner}, which learns from no {what}: try --learner {tried}."
            )
        return self.learner

    def metric(self, recipe: Any = None) -> Any:
        """The metric, not fitted."""
        learner = self.learner_name
        kind = LEARNERS[learner]
        known = inspect.signature(kind).parameters
        if self.components is not None and "n_components" not in known:
            raise ValueError(f"Got --components, but {learner} has no such choice.")
        if self.class_weight is not None and "class_weight" not in known:
            raise ValueError(
                f"Got --class-weight {self.class_weight}, but {learner} has no weights of classes: "
                "try --weights with a column of weights, or --learner nca."
            )
        wanted = {"n_components": self.components, "class_weight": self.class_weight}
        given: dict[str, Any] = {name: v for name, v in wanted.items() if v is not None}
        if "random_state" in known:
            given["random_state"] = self.seed
        if self.kernel != "none":
            return Kernelized(kind(**given), self.kernel, recipe=recipe, random_state=self.seed)
        if recipe is not None:
            raise ValueError(
                "Got --recipe with --kernel none, but expected a kernel: leave one out."
            )
        return kind(**given)


def metric_name(metric: Any) -> str:
    """What tables and pages call a metric."""
    if isinstance(metric, Kernelized):
        return f"Kernelized {type(metric.learner).__name__}"
    return type(metric).__name__


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order of the help."""

    def decorate(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


model_argument = click.argument("model", type=FILE)
data_argument = click.argument("data", type=FILE)
model_and_data = together(model_argument, data_argument)
several_data = click.argument("data", type=FILE, nargs=-1, required=True)
seed_option = click.option(
    "--seed", type=click.IntRange(0, LARGEST_SEED), default=0, help="Seed for everything random."
)


def output_options(function: Callable) -> Callable:
    """Quiet, or JSON: the command gets a ``talk``."""

    @wraps(function)
    def talking(*args: Any, quiet: bool, as_json: bool, **options: Any) -> Any:
        return function(*args, talk=Talk(quiet=quiet, as_json=as_json), **options)

    return together(
        click.option("--quiet", is_flag=True, help="Print nothing but errors."),
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    )(talking)


rows_out_options = together(
    click.option(
        "--out",
        type=FILE,
        help="Write a .csv, .tsv, .npz or .parquet file. Without it, the result is printed.",
    ),
    click.option(
        "--output",
        "folder",
        type=FOLDER,
        metavar="FOLDER",
        help="Read files piece by piece, and write a Parquet file of each piece into this folder.",
    ),
)


def _within(
    name: str, enter: Callable[[Any], AbstractContextManager[Any]], **how: Any
) -> Decorator:
    """An option whose value, where it is given, makes a context that the command runs in."""

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def inside(*args: Any, **options: Any) -> Any:
            value = options.pop(name)
            with nullcontext() if value is None else enter(value):
                return function(*args, **options)

        return click.option(f"--{name}", **how)(inside)

    return decorate


device_option = _within(
    "device",
    use_device,
    metavar="NAME",
    help="Compute on this device, such as cuda. It needs torch.",
)
minutes_option = _within(
    "minutes",
    lambda minutes: time_limit(60 * minutes),
    type=click.FloatRange(0, min_open=True),
    metavar="M",
    help="End choices and iterations after so many minutes, and keep what was best until then.",
)


def decision_options(function: Callable) -> Callable:
    """What wrong answers cost: the command gets a ``decision``, None where nothing is said."""

    @wraps(function)
    def decided(*args: Any, decision: str | None, costs: tuple, **options: Any) -> Any:
        if decision is not None and costs:
            raise ValueError("Got --decision and --cost, but expected one of them.")
        named: dict[str, dict[str, float]] = {}
        for true, predicted, cost in costs:
            named.setdefault(true, {})[predicted] = cost
        return function(*args, decision=named or decision, **options)

    return together(
        click.option(
            "--decision",
            type=click.Choice(["accuracy", "balanced"]),
            help="Predict what is most probable, or as if all classes were of one size. "
            "Probabilities stay as they are.",
        ),
        click.option(
            "--cost",
            "costs",
            multiple=True,
            type=(str, str, float),
            metavar="TRUE PREDICTED COST",
            help="What it costs to take a class for another; other wrong answers cost 1.",
        ),
    )(decided)


def columns_option(name: str, line: str) -> Decorator:
    """An option of a column, as often as there are such columns."""
    return click.option(name, multiple=True, metavar="COL", help=line)


def _known_option(name: str, line: str) -> Decorator:
    said = f"Learn from {name} of row numbers instead of labels. {line}"
    return click.option(f"--{name}", f"{name}_file", type=FILE, help=said)


metric_options = together(
    click.option("--label", metavar="COL", help="The column of classes, numbers or names."),
    _known_option(
        "pairs",
        "Rows count from 0. A line is 'i,j' or 'i,j,sign', with sign 1 for alike and -1 for "
        "different.",
    ),
    _known_option("triplets", "A line is 'a,b,c': a is nearer to b than to c."),
    _known_option("quadruplets", "A line is 'a,b,c,d': a is nearer to b than c is to d."),
    click.option(
        "--learner",
        type=click.Choice(sorted(LEARNERS)),
        help="The learner. Default: nca with labels, mlkr with numbers, idealized with pairs, "
        "triplets or quadruplets.",
    ),
    click.option(
        "--kernel", type=click.Choice(KERNELS), default="auto", help="none learns a linear metric."
    ),
    click.option(
        "--recipe",
        "recipe_file",
        type=FILE,
        metavar="MODEL",
        help="Look up what is auto in this model, which fit --out wrote, instead of choosing "
        "it. Columns are read as that model reads them.",
    ),
    click.option("--components", type=click.IntRange(1), help="Number of learned coordinates."),
    click.option(
        "--weights", metavar="COL", help="The column of what each row counts; zero leaves it out."
    ),
    click.option(
        "--class-weight", type=click.Choice(["balanced"]), help="Let all classes count alike."
    ),
    decision_options,
    click.option(
        "--rows",
        type=click.IntRange(100),
        default=MOST_ROWS,
        metavar="N",
        help="Learn from a sample of N rows, where the table has more.",
    ),
    columns_option("--use", "Use a column all the same."),
    click.option(
        "--as",
        "kinds",
        multiple=True,
        type=(str, click.Choice(KINDS)),
        metavar="COL KIND",
        help="Read a column as number, date, names or text.",
    ),
    columns_option(
        "--smiles", "This column holds molecules, compared by their substructures. It needs rdkit."
    ),
    columns_option(
        "--text", "This column holds names or other strings, compared by their n-grams."
    ),
    columns_option("--ignore", "Leave a column out."),
    seed_option,
    minutes_option,
    device_option,
)
