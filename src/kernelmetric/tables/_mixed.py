"""Columns of objects, which kernels take as they are, beside the features of other columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmetric.compute._objects import MixedRows, Objects
from kernelmetric.tables._columns import places_of
from kernelmetric.tables._frames import raw_column


def object_places(schema: Any, names: list[str], columns: Any = None) -> list[int]:
    """Places of columns of objects among all names; None means all of those of a schema."""
    if columns is None:
        columns = vars(schema).get("objects") or ()  # older files have none
    return places_of(columns, len(names), names) if len(columns) else []


def width_of(schema: Any) -> int:
    """Number of features, and of columns of objects beside them."""
    return len(schema.groups_) + len(vars(schema).get("objects") or ())


def with_objects(schema: Any, X: Any, features: np.ndarray) -> Any:
    """The features of a table, and beside them its columns of objects, where there are any."""
    names = schema.feature_names_in_.tolist()
    places = object_places(schema, names)
    columns = {j: Objects(raw_column(X, names[j])) for j in places}
    return MixedRows(features, columns) if places else features
