"""The columns of a data frame, or of an array of objects: what each holds, as numbers or as text.

Frames of pandas, polars and pyarrow come through narwhals, which is imported where one is read.
"""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, NamedTuple

import numpy as np

from kernelmetric.compute._objects import MixedRows, Objects, listed_objects
from kernelmetric.inputs._parameters import as_float
from kernelmetric.inputs._points import refuse_twins
from kernelmetric.inputs._refusals import rounded_column
from kernelmetric.tables._cells import is_gap
from kernelmetric.tables._columns import places_of, spread_of

# Kinds of columns. Those of QUANTITIES are numbers, NaN where nothing is known; NAMES are text.
NUMBERS, DATES, DURATIONS, ORDERED, NAMES, TEXT, NOTHING = (
    "numbers", "dates", "durations", "ordered names", "names", "text", "nothing",
)  # fmt: skip
QUANTITIES = (NUMBERS, DATES, DURATIONS, ORDERED)
_EPOCH = dt.datetime(1970, 1, 1)
_MOST = float(np.finfo(np.float64).max) / 4  # differences of larger numbers overflow
_EXACT = 2**53  # up to which floats hold all whole numbers


class Column(NamedTuple):
    """One column of a table."""

    name: str
    kind: str
    values: np.ndarray  # numbers with NaN for gaps, or text with None
    levels: tuple[str, ...] = ()  # the order of text
    lost: np.ndarray | None = None  # what to add to values whose digits a float cannot hold

    @property
    def gaps(self) -> np.ndarray:
        """Where nothing is known."""
        if self.values.dtype.kind == "f":
            return np.isnan(self.values)
        return np.array([value is None for value in self.values], dtype=bool)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame, of whatever library.

    >>> import numpy as np, pandas as pd
    >>> from kernelmetric.tables import is_frame
    >>> is_frame(pd.DataFrame({"a": [1.0]})), is_frame(np.ones((1, 1)))
    (True, False)
    """
    if isinstance(X, np.ndarray):
        return False
    if hasattr(X, "collect_schema") and hasattr(X, "lazy"):
        return True  # of polars; a lazy one is refused when it is read
    named = any(hasattr(X, name) for name in ("iloc", "__dataframe__", "__arrow_c_stream__"))
    return named and len(getattr(X, "shape", ())) == 2


def is_table(X: Any) -> bool:
    """Whether X has columns that only a schema can turn into numbers: names, dates, gaps.

    Also where floats do not tell the numbers of a column apart.

    >>> import pandas as pd
    >>> from kernelmetric.tables import is_table
    >>> is_table(pd.DataFrame({"a": ["x", "y"]})), is_table(pd.DataFrame({"a": [1.0, 2.0]}))
    (True, False)
    """
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "OUS" and not _all_numbers(X)
    if not is_frame(X):
        return False
    dtypes = getattr(X, "dtypes", None)
    if hasattr(X, "iloc") and dtypes is not None:  # pandas, also where narwhals is not installed
        objects = np.array([str(dtype) == "object" for dtype in dtypes], dtype=bool)
        others = [dtype for dtype, odd in zip(dtypes, objects, strict=True) if not odd]
        plain = all(getattr(dtype, "kind", "O") in "iufb" for dtype in others)
        plain = plain and _all_numbers(X.loc[:, objects].to_numpy(dtype=object))
        return not plain or bool(np.asarray(X.isna()).any()) or rounded_column(X) is not None
    frame = _narwhals(X)
    plain = all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in frame.schema.values())
    gaps = any(int(series.null_count()) for series in frame.iter_columns())
    return not plain or gaps or rounded_column(frame) is not None


def holds_objects(X: Any) -> bool:
    """Whether points are texts, other objects or cells of a table, and no rows of numbers."""
    if is_table(X):
        return True
    if not isinstance(X, np.ndarray | list | tuple) and not hasattr(X, "iloc"):
        return False
    try:
        cells = np.asarray(X)
    except ValueError:  # rows of several lengths
        return True
    return cells.dtype.kind in "OUS" and not _all_numbers(cells)


def column_names(X: Any) -> list[str]:
    """Names of the columns as text, all different."""
    if isinstance(X, list) and X and isinstance(X[0], Column):
        return [column.name for column in X]
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return [f"x{j}" for j in range(X.shape[1])]
    if hasattr(X, "collect"):
        raise TypeError("Got a lazy frame, but expected its rows: try X.collect().")
    if not is_frame(X):
        raise TypeError(
            f"Got X of type {type(X).__name__}, but expected a table: try a data frame, or "
            "numpy.array(X, dtype=object) with two dimensions."
        )
    found = getattr(X, "column_names", None) or X.columns  # those of pyarrow's columns are data
    names = [str(name) for name in found]
    refuse_twins(names)
    return names


def read_columns(X: Any, names: list[str]) -> list[Column]:
    """Columns of a table, by name, in the order of ``names``."""
    places = {name: j for j, name in enumerate(column_names(X))}
    if isinstance(X, list):
        return [X[places[name]] for name in names]
    if isinstance(X, np.ndarray):
        return [_of_objects(name, X[:, places[name]].tolist()) for name in names]
    series = list(_narwhals(X).iter_columns())
    return [_of_series(name, series[places[name]]) for name in names]


def raw_column(X: Any, name: str) -> list[Any]:
    """The cells of a column as they are."""
    place = column_names(X).index(name)
    if isinstance(X, list):
        return listed_objects(X[place].values)
    if isinstance(X, np.ndarray):
        return listed_objects(X[:, place])
    return listed_objects(X.iloc[:, place] if hasattr(X, "iloc") else X[name])


def of_kind(name: str, kind: str, values: np.ndarray) -> Column:
    """A column of a kind that is known; dates and durations are NumPy's."""
    if values.dtype.kind in "mM":
        numbers = values.astype(f"{values.dtype.kind}8[us]").astype(np.float64)
        values = np.where(np.isnat(values), np.nan, numbers)
    return _checked(Column(name, kind, values if kind in QUANTITIES else _texts(values.tolist())))


def _narwhals(X: Any) -> Any:
    try:
        import narwhals.stable.v2 as nw
    except ImportError as error:
        raise ImportError(
            f"Got a table of {type(X).__module__.partition('.')[0]}, which needs narwhals: try pip "
            "install narwhals, or pass an array of objects, X.to_numpy(dtype=object)."
        ) from error
    names = column_names(X)  # refuses those that occur twice
    if hasattr(X, "iloc"):
        X = X.set_axis(names, axis=1)
    return nw.from_native(X, eager_only=True)


def _of_series(name: str, series: Any) -> Column:
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if dtype.is_numeric():
        if not dtype.is_float() and max(abs(series.min() or 0), abs(series.max() or 0)) >= _EXACT:
            return _of_numbers(name, series.to_list())
        values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        return _checked(Column(name, NUMBERS, values))
    if dtype in (nw.Date, nw.Datetime, nw.Duration):
        times = series.cast(nw.Datetime("us")) if dtype == nw.Date else series
        return _of_times(name, DURATIONS if dtype == nw.Duration else DATES, times)
    if dtype == nw.Enum:
        levels = tuple(str(level) for level in dtype.categories)
        return _checked(Column(name, ORDERED, _texts(series.to_list()), levels))
    if dtype in (nw.String, nw.Categorical, nw.Boolean):
        return _checked(Column(name, NAMES, _texts(series.to_list())))
    return _of_objects(name, series.to_list())


def _of_objects(name: str, values: list[Any]) -> Column:
    """A column of Python objects: what it holds is told by all of them."""
    there = [value for value in values if not is_gap(value)]
    if all(isinstance(value, str | bool | np.bool_) for value in there):
        return _checked(Column(name, NAMES, _texts(values)))
    if all(_is_number(value) for value in there):
        return _of_numbers(name, values)
    for kind, kinds, number in _MOMENTS:
        if all(isinstance(value, kinds) for value in there):
            numbers = [np.nan if is_gap(value) else number(value) for value in values]
            return _checked(Column(name, kind, np.array(numbers)))
    odd = [value for value in there if not isinstance(value, str | Real | Decimal | np.bool_)]
    if odd:
        raise TypeError(
            f"Got {type(odd[0]).__name__} objects in column {name!r}, but the argument must be a "
            "string, a real number, a boolean or a date: turn it into columns of these, or name a "
            f"kernel of such objects, Columns([{name!r}], kernel)."
        )
    return _checked(Column(name, NAMES, _texts(values)))


def _of_numbers(name: str, values: list[Any]) -> Column:
    """A column of numbers of any kind, with what floats lose of them."""
    numbers = np.array([np.nan if is_gap(value) else as_float(value) for value in values])
    column = _checked(Column(name, NUMBERS, numbers))
    lost = np.zeros(len(values))
    for i in np.flatnonzero(np.abs(numbers) >= _EXACT):
        if isinstance(values[i], Rational | Decimal):
            lost[i] = Fraction(values[i]) - int(numbers[i])
    if np.any(np.abs(numbers) >= float(_EXACT) ** 2):  # two floats are not enough
        there = {value for value in values if not is_gap(value)}
        if len(there) > len(set(zip(numbers.tolist(), lost.tolist(), strict=True))):
            raise ValueError(
                f"Got whole numbers of more than 31 digits in column {name!r}, but expected "
                "shorter ones: subtract the smallest of them first."
            )
    return column._replace(lost=lost if lost.any() else None)


def _of_times(name: str, kind: str, series: Any) -> Column:
    """A column of dates or durations in microseconds, with their nanoseconds."""
    import narwhals.stable.v2 as nw

    there = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
    counts = np.asarray(series.drop_nulls().cast(nw.Int64).to_numpy(), dtype=np.int64)
    unit = series.dtype.time_unit
    values, lost = np.full(len(there), np.nan), np.zeros(len(there))
    if unit == "ns":
        counts, lost[there] = counts // 1000, counts % 1000 / 1000
    values[there] = counts * {"s": 1e6, "ms": 1e3}.get(unit, 1.0)
    return _checked(Column(name, kind, values, lost=lost if lost.any() else None))


def _checked(column: Column) -> Column:
    """A column of numbers that can be subtracted; NOTHING where all is missing."""
    if column.values.dtype.kind == "f" and np.any(np.abs(column.values) > _MOST):
        top = np.nanmax(np.abs(column.values))
        raise ValueError(
            f"Got {f'{top:.3g}' if top < np.inf else 'infinity'} in column {column.name!r}, but "
            f"expected numbers up to {_MOST:.2g}: empty the cell, or use a larger unit."
        )
    return column._replace(kind=NOTHING) if column.gaps.all() else column


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def _all_numbers(X: np.ndarray) -> bool:
    """Whether an array of objects holds nothing but numbers, which floats tell apart."""
    if X.dtype.kind != "O":
        return False
    plain = all(_is_number(value) and not is_gap(value) for value in X.ravel().tolist())
    return plain and rounded_column(X) is None


def _texts(values: list[Any]) -> np.ndarray:
    texts = np.empty(len(values), dtype=object)
    texts[:] = [v if type(v) is str else None if is_gap(v) else str(v) for v in values]
    return texts


def _microseconds(moment: dt.date) -> float:
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return (moment - _EPOCH) / dt.timedelta(microseconds=1)


_MOMENTS: tuple[tuple[str, Any, Any], ...] = (
    (DATES, dt.date, _microseconds),
    (DURATIONS, dt.timedelta, lambda span: span / dt.timedelta(microseconds=1)),
    (DURATIONS, dt.time, lambda time: _microseconds(dt.datetime.combine(_EPOCH, time, None))),
)


def quantities(column: Column, levels: list[str]) -> np.ndarray:
    """The values of a column of quantities; of ordered names their places."""
    if column.values.dtype.kind == "f":
        return column.values
    place = {name: float(i) for i, name in enumerate(levels)}
    return np.array([place.get(value, np.nan) for value in column.values])


def apart(column: Column, numbers: np.ndarray, centre: float, rest: float = 0.0) -> np.ndarray:
    """Differences of numbers and a centre; what floats have lost of both is in them."""
    return numbers - centre + ((0.0 if column.lost is None else column.lost) - rest)


def median_and_spread(column: Column, numbers: np.ndarray) -> tuple[float, float, float]:
    """Median, what a float has lost of it, and a spread: the standard deviation."""
    centre = float(np.nanmedian(numbers))
    rest = 0.0 if column.lost is None else float(np.nanmedian(apart(column, numbers, centre)))
    return centre, rest, spread_of(apart(column, numbers, centre, rest), column.name)


def object_places(schema: Any, names: list[str], columns: Any = None) -> list[int]:
    """Places of columns of objects among all names; None means all of those of a schema."""
    columns = schema.objects if columns is None else columns
    return places_of(columns, len(names), names) if len(columns) else []


def width_of(schema: Any) -> int:
    """Number of features, and of columns of objects beside them."""
    return len(schema.groups_) + len(schema.objects)


def with_objects(schema: Any, X: Any, features: np.ndarray) -> Any:
    """The features of a table, and beside them its columns of objects, where there are any."""
    names = schema.feature_names_in_.tolist()
    places = object_places(schema, names)
    columns = {j: Objects(raw_column(X, names[j])) for j in places}
    return MixedRows(features, columns) if places else features
