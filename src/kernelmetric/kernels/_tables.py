"""Kernels that know the schema of the table they read."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from kernelmetric.tables import TableSchema


def schema_of(kernel: Any) -> TableSchema | None:
    """The schema that a kernel reads tables by, if any."""
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return next((part for part in parts if isinstance(part, TableSchema)), None)


def reads_columns(kernel: Any) -> bool:
    """Whether a part of a kernel takes the columns of a table."""
    return any(name.split("__")[-1] == "schema" for name in kernel.get_params(deep=True))


def with_schema(kernel: Any, schema: TableSchema) -> Any:
    """An unbound copy of a kernel for the features that a fitted schema makes of a table."""
    given = {"schema": schema, "groups": schema.groups_}
    kernel = clone(kernel, safe=False)
    names = [name for name in kernel.get_params(deep=True) if name.split("__")[-1] in given]
    return kernel.set_params(**{name: given[name.split("__")[-1]] for name in names})
