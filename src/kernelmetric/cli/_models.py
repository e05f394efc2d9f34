"""Models in files: a pipeline of the steps "table" and "metric"."""

from __future__ import annotations

from pathlib import Path

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from kernelmetric.datasets import TableEncoder
from kernelmetric.shipping import load, save


def require_writable(*paths: Path | None) -> None:
    """Refuse files that could not be written, before the time to compute them is spent."""
    for path in filter(None, paths):
        if path.is_dir():
            raise OSError(f"Got {path} to write to, but it is a folder.")
        if not path.absolute().parent.is_dir():
            raise OSError(f"Got {path} to write to, but there is no folder {path.parent}.")


def save_model(model: Pipeline, path: Path) -> Path:
    """Write a fitted model, without pickle."""
    try:
        save(model, path)
    except TypeError as error:  # what it says of objects that no file can hold safely
        raise ValueError(str(error)) from error
    return path


def load_model(path: Path) -> Pipeline:
    """Read a model that ``kernelmetric fit --out`` wrote."""
    model = load(path)
    if not isinstance(model, Pipeline) or [name for name, _ in model.steps] != ["table", "metric"]:
        raise ValueError(
            f"Got {path}, which holds a {type(model).__name__}, but expected a model that "
            "kernelmetric fit --out wrote: load it in Python with kernelmetric.load."
        )
    if isinstance(model["table"], ColumnTransformer):  # of files written before 0.2
        model.steps[0] = ("table", TableEncoder.of_columns(model["table"]))
    return model
