"""From the columns of a table to features: which are used, how, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelmetric.datasets._tables import TableError, require_columns

if TYPE_CHECKING:
    import pandas as pd

_MOST_CATEGORIES = 40
_FEW = 5  # names may all differ in a small table
_MOSTLY_NUMBERS = 0.8  # of the values present: the rest are taken for ways to write "missing"
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|index|key|row)($|[_\W\d])", re.IGNORECASE)
_MISSING = "(missing)"


@dataclass(frozen=True)
class ColumnPlan:
    """Which columns of a table become features, and what was decided about the others.

    Parameters
    ----------
    numbers : tuple of str
        Columns of numbers: missing ones become the median, then each is standardized.
    categories : tuple of str
        Columns of names: a feature of zeros and ones for each; a missing name is one of them.
    left_out : tuple of str
        Columns that are not used.
    notes : tuple of str
        A sentence for every decision that the user should know of.

    See Also
    --------
    plan_columns : Makes the plan of a table.

    Examples
    --------
    >>> from kernelmetric.datasets import ColumnPlan
    >>> plan = ColumnPlan(numbers=("kg",), categories=("colour",), left_out=(), notes=())
    >>> [name for name, _, _ in plan.encoder().transformers]
    ['numbers', 'categories']
    """

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def encoder(self) -> ColumnTransformer:
        """The plan as a transformer, still to be fitted.

        Returns
        -------
        ColumnTransformer
            From data frames to arrays of numbers.
        """
        parts: list[tuple[str, Any, list[str]]] = []
        if self.numbers:
            scaled = make_pipeline(
                SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
            )
            parts.append(("numbers", scaled, list(self.numbers)))
        if self.categories:
            named = make_pipeline(
                SimpleImputer(strategy="constant", fill_value=_MISSING),
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            )
            parts.append(("categories", named, list(self.categories)))
        return ColumnTransformer(parts, verbose_feature_names_out=False)


def plan_columns(
    frame: pd.DataFrame,
    *,
    label: str | None = None,
    use: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> ColumnPlan:
    """Decide what every column of a table is good for.

    Numbers are standardized, names become zeros and ones, missing values are filled. Columns
    that hold one value, nothing, or an identifier are left out, as are names of too many kinds.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str, default=None
        The column of labels, no feature.
    use : iterable of str, default=()
        Columns to use even though they look like identifiers.
    ignore : iterable of str, default=()
        Columns not to use.

    Returns
    -------
    ColumnPlan
        The decisions, with a sentence for each that is not plain.

    Raises
    ------
    TableError
        If a named column is not there, or none is left.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import plan_columns
    >>> frame = pd.DataFrame({"kg": [1.0, 2.0, None], "colour": ["red", "red", "blue"],
    ...                       "unit": ["EUR"] * 3, "kind": ["a", "b", "a"]})
    >>> plan = plan_columns(frame, label="kind")
    >>> plan.numbers, plan.categories, plan.left_out
    (('kg',), ('colour',), ('unit',))
    >>> plan.notes
    ('kg: 1 of 3 values are missing and become the median.',
     'colour: 2 names become 2 features of zeros and ones.',
     'unit: left out, it holds one value only.')
    """
    use, ignore = tuple(use), tuple(ignore)
    require_columns(frame, [*use, *ignore, *([] if label is None else [label])])
    found: dict[str, list[str]] = {"number": [], "category": [], "out": []}
    notes = []
    for name in frame.columns:
        if name == label:
            continue
        if name in ignore:
            found["out"].append(name)
            continue
        kind, said = _judge(frame[name], forced=name in use)
        found[kind].append(name)
        notes += [f"{name}: {sentence}" for sentence in said]
    if not found["number"] and not found["category"]:
        raise TableError(
            "No column is left to learn from: "
            + (" ".join(notes) or "the table holds nothing but the label.")
            + " Try --use COLUMN for one that is left out wrongly."
        )
    return ColumnPlan(
        tuple(found["number"]), tuple(found["category"]), tuple(found["out"]), tuple(notes)
    )


def features_of(frame: pd.DataFrame, encoder: ColumnTransformer) -> pd.DataFrame:
    """The columns that an encoder reads, in the types it reads them in.

    Parameters
    ----------
    frame : DataFrame
        A table as it was read.
    encoder : ColumnTransformer
        What :meth:`ColumnPlan.encoder` made, fitted or not.

    Returns
    -------
    DataFrame
        Numbers as float, whatever else stood in their columns as missing; names as text.

    Raises
    ------
    TableError
        If a column is not there.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import features_of, plan_columns
    >>> frame = pd.DataFrame({"kg": ["1", "2", "3", "4", "?"], "unit": ["EUR"] * 5})
    >>> features_of(frame, plan_columns(frame).encoder())["kg"].tolist()
    [1.0, 2.0, 3.0, 4.0, nan]
    """
    columns = {name: part for part, _, names in encoder.transformers for name in names}
    require_columns(frame, columns)
    ready = frame[list(columns)].copy()
    for name, part in columns.items():
        ready[name] = _numbers(ready[name]) if part == "numbers" else _names(ready[name])
    return ready


def labels_of(frame: pd.DataFrame, label: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Labels, the rows that have one, and sentences about them.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str
        The column of labels: names, or whole numbers.

    Returns
    -------
    y : ndarray of str
        The labels of the rows that have one.
    rows : ndarray of bool
        Which rows these are.
    notes : list of str
        Sentences on rows and classes.

    Raises
    ------
    TableError
        If the column holds no classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.datasets import labels_of
    >>> y, rows, notes = labels_of(pd.DataFrame({"kind": ["a", "b", None, "a", "b"]}), "kind")
    >>> y.tolist(), notes
    (['a', 'b', 'a', 'b'], ['1 rows have no kind and are left out.'])
    """
    require_columns(frame, [label])
    rows = frame[label].notna().to_numpy()
    column = frame[label][rows]
    if column.dtype.kind == "f":
        values = column.to_numpy()
        fractions = values[values != np.round(values)]
        if len(fractions):
            raise TableError(
                f"The column {label!r} holds numbers with fractions such as {fractions[0]:g}, but "
                "expected classes: try another column, or cut the numbers into classes first."
            )
        column = column.astype(np.int64)  # whole numbers that stood beside missing ones
    y = np.asarray(column).astype(str)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise TableError(
            f"The column {label!r} holds {len(classes)} class(es), but expected at least two."
        )
    if len(classes) > len(y) / 2:
        raise TableError(
            f"The column {label!r} holds {len(classes)} different values in {len(y)} rows, but "
            "expected classes of several rows each: is it the right column?"
        )
    notes = [] if rows.all() else [f"{np.sum(~rows)} rows have no {label} and are left out."]
    if counts.min() == 1:
        alone = classes[counts == 1]
        notes.append(f"{len(alone)} classes have one row only, such as {alone[0]}.")
    return y, rows, notes


def _judge(column: Any, *, forced: bool) -> tuple[str, list[str]]:
    """What a column is: a number, a category or nothing; and what to say about it."""
    n, n_present = len(column), int(column.notna().sum())
    if n_present == 0:
        return "out", ["left out, it is empty."]
    if column.dtype.kind in "mM":
        return "out", ["left out, dates say nothing as they are: make them numbers first."]
    if column.dropna().astype(str).nunique() == 1:
        return "out", ["left out, it holds one value only."]
    numbers = _numbers(column)
    readable = int(numbers.notna().sum())
    if readable >= _MOSTLY_NUMBERS * n_present and numbers.nunique() > 1:
        return _judge_numbers(column, numbers, n, n_present - readable, forced)
    kinds = _names(column).nunique()
    if not forced and kinds > max(_FEW, n_present / 2):
        return "out", ["left out, most rows have a text of their own, like an identifier."]
    if not forced and kinds > _MOST_CATEGORIES:
        return "out", [f"left out, {kinds} different texts are too many for categories."]
    extra = "" if n_present == n else f", {n - n_present} missing ones included"
    width = kinds + (n_present < n)
    return "category", [f"{kinds} names become {width} features of zeros and ones{extra}."]


def _judge_numbers(
    column: Any, numbers: Any, n: int, unreadable: int, forced: bool
) -> tuple[str, list[str]]:
    values = numbers.dropna().to_numpy()
    own = len(values) == n > 2 and len(np.unique(values)) == n and np.all(values % 1 == 0)
    counting = own and np.ptp(np.diff(values)) == 0
    if not forced and own and (counting or _ID_NAME.search(str(column.name))):
        return "out", ["left out, whole numbers that differ in every row are an identifier."]
    said = []
    if unreadable:
        text = column[column.notna() & numbers.isna()].iloc[0]
        said.append(f"{unreadable} values such as {str(text)!r} are no numbers, taken as missing.")
    missing = n - len(values)
    if missing:
        said.append(f"{missing} of {n} values are missing and become the median.")
    return "number", said


def _numbers(column: Any) -> Any:
    """A column as float; what is no finite number is missing."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    return numbers.where(np.isfinite(numbers))


def _names(column: Any) -> Any:
    """A column as text; missing ones stay missing."""
    return column.astype(str).astype(object).where(column.notna(), np.nan)
