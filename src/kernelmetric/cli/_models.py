"""Models in files: a pipeline of the steps "table" and "metric"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from kernelmetric.shipping import load
from kernelmetric.tables import Table, TableEncoder


def remarks_on(table: Table, model: Pipeline) -> list[str]:
    """What there is to say of a table, and of what in it the model has to make do with."""
    return [*table.notes, *model["table"].remarks(table)]


def unused_columns(model: Pipeline, frame: Any) -> list[str]:
    """The columns of a table that a model does not use."""
    encoder = model["table"]
    used = {*encoder.numbers, *encoder.categories}
    return [name for name in frame.columns if name not in used]


def load_recipe(path: Path) -> tuple[Any, TableEncoder]:
    """The recipe of a model, and the fitted encoder of the table it was made for."""
    model = load_model(path)
    recipe = getattr(model["metric"], "recipe_", None)
    if recipe is None:
        raise ValueError(
            f"Got --recipe {path}, whose metric has no recipe, but expected a model with a kernel: "
            "try one that kernelmetric fit writes without --kernel none."
        )
    return recipe, model["table"]


def load_model(path: Path) -> Pipeline:
    """Read a model that ``kernelmetric fit --out`` wrote."""
    model = load(path)
    steps = dict(model.steps) if isinstance(model, Pipeline) else {}
    table = steps.get("table")
    if isinstance(table, ColumnTransformer):  # what older versions wrote
        table = TableEncoder.of_columns(table)
        model.steps[0] = ("table", table)
    if list(steps) != ["table", "metric"] or not isinstance(table, TableEncoder):
        raise ValueError(
            f"Got {path}, which holds a {type(model).__name__}, but expected a model that "
            "kernelmetric fit --out wrote: load it in Python with kernelmetric.load."
        )
    return model
