"""Files of commands: models to read, and whether files can be written without loss."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
from sklearn.pipeline import Pipeline

from kernelmetric.shipping import load
from kernelmetric.tables import Table, TableEncoder


def require_outputs(
    outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None] | None = None
) -> None:
    """Refuse files that cannot be written, or are another output or an input by whatever name."""
    taken = [(name, path) for name, path in (inputs or {}).items() if path is not None]
    for name, path in outputs.items():
        if path is None:
            continue
        for other, used in taken:
            hard = path.exists() and used.exists() and path.samefile(used)  # a hard link
            if hard or os.path.realpath(path) == os.path.realpath(used):
                raise ValueError(
                    f"Got {name} {path}, but that is the file of {other}, which would be lost: "
                    "try another name."
                )
        _require_writable(name, path)
        taken.append((name, path))


def require_folder(path: Path, *, empty: bool = False) -> None:
    """Make a folder, where it is missing; refuse one in which no file can be made, or may be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()  # only the attempt tells
    except OSError as error:
        raise click.BadParameter(f"cannot make the folder {path}: {error}") from error
    if empty and any(path.iterdir()):
        raise ValueError(
            f"Got --output {path}, which is not empty: old files would be mixed with new ones. Try "
            "another folder."
        )


@contextmanager
def alone_at(path: Path) -> Iterator[None]:
    """Hold a lock on the folder of a file that is changed, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _require_writable(name: str, path: Path) -> None:
    if path.is_dir():
        raise OSError(f"Got {name} {path}, but expected a file: it is a folder.")
    if path.exists() and not path.is_file():
        return  # a device or a pipe is written to, whatever its folder
    if path.exists() and not os.access(path, os.W_OK):
        raise OSError(f"Got {name} {path}, but it is write-protected: try another name.")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise OSError(f"Got {name} {path}, but there is no folder {folder}: make it first.")
    try:
        tempfile.TemporaryFile(dir=folder).close()  # rights, file systems and quotas may forbid it
    except OSError as error:
        raise OSError(
            f"Got {name} {path}, but no file can be made in {folder}: {error.strerror}."
        ) from error


def remarks_on(table: Table, model: Pipeline) -> list[str]:
    """What there is to say of a table, and of what in it the model has to make do with."""
    return [*table.notes, *model["table"].remarks(table)]


def unused_columns(model: Pipeline, frame: Any) -> list[str]:
    """The columns of a table that a model does not use."""
    return list(frame.columns.difference(model["table"].used, sort=False))


def metric_of(model: Pipeline) -> Any:
    """The metric of a model, be it alone or that of a predictor."""
    return getattr(model[-1], "metric_", model[-1])


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


def load_predictor(path: Path) -> Pipeline:
    """Read a model that predicts."""
    model = _load(path)
    if "predictor" not in model.named_steps:
        raise ValueError(
            f"Got {path}, which holds a metric and predicts nothing, but expected a model of "
            "labels: write it anew with kernelmetric fit --label COL --out."
        )
    return model


def load_model(path: Path) -> Pipeline:
    """Read the table and the metric of a model."""
    model = _load(path)
    return Pipeline([model.steps[0], ("metric", metric_of(model))])


def _load(path: Path) -> Pipeline:
    """Read what ``kernelmetric fit --out`` wrote."""
    model = load(path)
    steps = dict(model.steps) if isinstance(model, Pipeline) else {}
    table = steps.get("table")
    known = list(steps) in (["table", "metric"], ["table", "predictor"])
    if not known or not isinstance(table, TableEncoder):
        raise ValueError(
            f"Got {path}, which holds a {type(model).__name__}, but expected a model that "
            "kernelmetric fit --out wrote: load it in Python with kernelmetric.load."
        )
    return model
