"""What is learned from a table: labels, numbers to predict, and what its rows count."""

import re
from typing import Any

import numpy as np

from kernelmetric.tables._cells import Writing, is_code, numbers_of, texts_of, way_of, writing_of
from kernelmetric.tables._columns import require_columns
from kernelmetric.tables._text import TableError

_MANY_VALUES = 20  # numbers that may not be names of classes
_FEW_VALUES = 5  # numbers that may be
_WHOLE = re.compile(r"^([+-]?[1-9][0-9]*|0)\.0+$")


def labels_of(frame: Any, label: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Labels, the rows that have one, and sentences about them.

    Parameters
    ----------
    frame, label : DataFrame, str
        The table, and its column of labels: names, or whole numbers.

    Returns
    -------
    y, rows, notes : ndarray of str, ndarray of bool, list of str
        The labels of the rows that have one, which rows these are, and sentences on them.

    See Also
    --------
    kernelmetric.tables.targets_of : For numbers.
    kernelmetric.tables.features_of : The other columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import labels_of
    >>> y, rows, notes = labels_of(pd.DataFrame({"kind": ["a", "b", None, "a", "b"]}), "kind")
    >>> y.tolist(), notes
    (['a', 'b', 'a', 'b'], ['1 rows have no kind and are left out.'])
    """
    texts, rows = present(frame, label)
    writing = writing_of(texts)
    coded = any(map(is_code, texts))
    if writing in ("point", "comma") and not coded:
        values = numbers_of(frame[label][rows], Writing(writing))
        fractions = np.flatnonzero(values % 1 > 0)
        if len(fractions) and not np.isnan(values).any():
            raise TableError(
                f"The column {label!r} holds numbers with fractions such as {texts[fractions[0]]}, "
                "but expected classes: try --task regression to predict the numbers."
            )
    y = np.array([class_name(text) for text in texts])
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise TableError(
            f"The column {label!r} holds {len(classes)} class(es), but expected at least two."
        )
    if len(classes) > len(y) / 2:
        raise too_many_classes(label, len(classes), len(y))
    notes = _left_out(rows, label)
    if counts.min() == 1:
        alone = classes[counts == 1]
        notes.append(f"{len(alone)} classes have one row only, such as {alone[0]}.")
    if len(classes) > _MANY_VALUES and writing == "point" and not coded:
        notes.append(
            f"The {len(classes)} numbers of {label} are taken for classes: --task regression would "
            "predict them as numbers."
        )
    return y, rows, notes


def too_many_classes(label: str | None, n_classes: int, n_rows: int) -> TableError:
    """The refusal of labels of which hardly two are alike."""
    return TableError(
        f"The column {label!r} holds {n_classes:,} different values in {n_rows:,} rows, but "
        "expected classes of several rows each: try --task regression, or another column."
    )


def weights_of(frame: Any, column: str) -> np.ndarray:
    """What the rows of a table count, by one of its columns.

    Parameters
    ----------
    frame, column : DataFrame, str
        The table, and its column of weights.

    Returns
    -------
    ndarray of float
        One for every row, not negative; a row without one is refused.

    See Also
    --------
    kernelmetric.tables.labels_of : The column of classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import weights_of
    >>> weights_of(pd.DataFrame({"people": ["2", "0.5"]}), "people").tolist()
    [2.0, 0.5]
    """
    require_columns(frame, [column])
    cells = texts_of(frame[column])
    w = numbers_of(frame[column], way_of([text for text in cells if text is not None]))
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise TableError(
            f"The column {column!r} holds {cells[bad[0]] or 'nothing'} in row {bad[0]}, but "
            "expected weights: finite numbers that are not negative. Zero leaves a row out."
        )
    if not w.any():
        raise TableError(f"The column {column!r} holds zero in all rows, but expected some weight.")
    return w


def targets_of(frame: Any, label: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Numbers to predict, the rows that have one, and sentences about them.

    Parameters
    ----------
    frame, label : DataFrame, str
        The table, and its column of numbers.

    Returns
    -------
    y, rows, notes : ndarray of float, ndarray of bool, list of str
        The numbers of the rows that have one, which rows these are, and sentences on them.

    See Also
    --------
    kernelmetric.tables.labels_of : For classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelmetric.tables import targets_of
    >>> y, rows, notes = targets_of(pd.DataFrame({"price": ["1.5", None, "3"]}), "price")
    >>> y.tolist(), notes[0]
    ([1.5, 3.0], '1 rows have no price and are left out.')
    """
    texts, rows = present(frame, label)
    way = way_of(texts)
    y = numbers_of(frame[label][rows], way)
    if way.kind not in ("point", "comma") or np.isnan(y).any():
        odd = texts[int(np.argmax(np.isnan(y)))] if texts else ""
        raise TableError(
            f"The column {label!r} holds {odd!r}, but expected finite numbers to predict: try "
            "--task classification, or another column."
        )
    n_values = len(np.unique(y))
    if n_values < 2:
        raise TableError(
            f"The column {label!r} holds the same number in every row: nothing can be learned."
        )
    notes = _left_out(rows, label)
    if n_values <= _FEW_VALUES:
        notes.append(
            f"The column {label} holds only {n_values} different numbers: if they are classes, try "
            "--task classification."
        )
    return y, rows, notes


def present(frame: Any, label: str) -> tuple[list[str], np.ndarray]:
    """The cells of a column that are not missing, as texts, and which rows these are."""
    require_columns(frame, [label])
    cells = texts_of(frame[label])
    rows = np.array([text is not None for text in cells], dtype=bool)
    return [text for text in cells if text is not None], rows


def _left_out(rows: np.ndarray, label: str) -> list[str]:
    return [] if rows.all() else [f"{np.sum(~rows)} rows have no {label} and are left out."]


def class_name(text: str) -> str:
    """What a label is called: 2.0 is the class 2 in every file."""
    return _WHOLE.sub(r"\1", text)
