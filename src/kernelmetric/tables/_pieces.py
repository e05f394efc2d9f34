"""A table in one file or several, read piece by piece: all of it is never held."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute.watch import stage
from kernelmetric.tables import _files
from kernelmetric.tables._cells import are_plain_numbers, is_plain_number, text_of, texts_of
from kernelmetric.tables._columns import few, require_columns
from kernelmetric.tables._targets import class_name, too_many_classes
from kernelmetric.tables._text import TableError

_PIECE_BYTES = 32_000_000  # of a piece of a Parquet file with all its columns as float64
_LISTS = 4  # times the bytes of numbers: a row with lists
_MANY = 1.6  # times the rows of a sample are held before it is cut
_FEWEST = 20  # rows of a class that a sample holds, where half of it suffices for all classes
_MOST_WORDS = 100  # of a column: those of more words are names of rows


def read_pieces(paths: str | Path | Iterable[str | Path]) -> Generator[_files.Table, None, None]:
    r"""Read a table in one file or several, some rows at a time.

    Parameters
    ----------
    paths : path-like, or iterable of them
        Text or Parquet, as in :func:`read_table`, all with the same columns; an npz is one piece.

    Yields
    ------
    Table
        Rows in their order, with their numbers. A table has the notes on its file once that is
        read to the end.

    See Also
    --------
    kernelmetric.tables.sample_table : Some rows of a large file.
    kernelmetric.tables.read_table : A file at once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelmetric.tables import read_pieces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.csv"
    ...     _ = path.write_text("weight,kind\n120,apple\n80,pear\n", encoding="utf-8")
    ...     sum(len(piece.frame) for piece in read_pieces(path))
    2
    """
    model: tuple[Path, dict[str, str]] | None = None
    n_rows = 0
    path = Path()
    for path in _different(paths):
        with closing(_parquet_pieces(path) if _is_parquet(path) else _others(path)) as pieces:
            for number, piece in enumerate(pieces):
                _files.check_names(piece.frame, path)
                if number == 0:
                    kinds = _kinds(path, piece.frame)
                    model = model or (path, kinds)
                    _require_alike(path, kinds, *model)
                rows = np.arange(n_rows, n_rows + len(piece.frame))
                n_rows += len(rows)
                yield replace(piece, frame=piece.frame[list(model[1])], rows=rows)  # type: ignore[index]
    if n_rows == 0:
        raise TableError(f"The table {path} has column names but no rows.")


def sample_table(
    paths: str | Path | Iterable[str | Path],
    label: str | None = None,
    *,
    most: int | None = None,
    classes: bool = True,
    random_state: Any = 0,
) -> tuple[_files.Table, int, int]:
    r"""Read a table piece by piece, and keep some of its rows where there are very many.

    All rows have the same chance, but for two kinds: a class has at least 20 rows in the sample, or
    all that it has, and a word that no row before had in its column is there too, up to a hundred
    words of a column. So whoever decides by the sample what the columns are knows all names, and
    all ways to write a gap. Of thousands of classes each has fewer rows, but one.

    Parameters
    ----------
    paths, label : as in :func:`read_pieces`, str or None
        The table, and its column of labels: rows without one are not drawn.
    most : int, default=None
        The table is read as it is up to so many rows, beyond that so many are drawn; None reads
        all.
    classes : bool, default=True
        Whether labels are classes.
    random_state : int, RandomState or None, default=0
        For the draw.

    Returns
    -------
    table, n_rows, n_labelled : Table, int, int
        The rows kept, how many were read, and how many of those have a label.

    See Also
    --------
    kernelmetric.tables.read_pieces : All rows, piece by piece.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelmetric.tables import sample_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.csv"
    ...     _ = path.write_text("g,kind\n" + "120,apple\n80,pear\n" * 500, encoding="utf-8")
    ...     table, n_rows, n_labelled = sample_table(path, "kind", most=100)
    >>> len(table.frame), n_rows, n_labelled
    (100, 1000, 1000)
    """
    draw = _Draw(most, random_state)
    files = _different(paths)
    name, notes = f"{len(files)} files", []
    n_rows = n_labelled = 0
    with closing(read_pieces(files)) as pieces:  # an error ends the reading
        for table in pieces:
            if label is not None:
                require_columns(table.frame, [label])
            codes = draw.codes(table.frame[label], classes) if label is not None else None
            name = table.name if len(files) == 1 else name
            notes += [note if len(files) == 1 else f"{table.name}: {note}" for note in table.notes]
            n_rows += len(table.frame)
            n_labelled += len(table.frame) if codes is None else int(np.sum(codes >= 0))
            draw.add(table, codes)
        if most is not None and 2 * len(draw.known) > max(most, 1_000):
            raise too_many_classes(label, len(draw.known), n_rows)
    frame, rows, lines = draw.result()
    lines = lines if len(files) == 1 else None
    return _files.Table(frame, tuple(notes), lines, name, rows), n_rows, n_labelled


class _Draw:
    """The rows with the smallest of random keys; rows that must be there have a negative one."""

    def __init__(self, most: int | None, random_state: Any):
        self.known: dict[str, int] = {}  # classes
        self._most = np.iinfo(np.intp).max if most is None else int(most)
        self._random = check_random_state(random_state)
        self._held: list[tuple[Any, ...]] = []  # frame, rows, lines, keys, codes
        self._n_held, self._largest, self._was_cut = 0, np.inf, False
        self._counts = np.zeros(0, dtype=int)  # rows of each class among those held
        self._words: dict[str, set[str | None]] = {}

    @property
    def _fewest(self) -> int:
        """Rows that a class has in the sample at the least."""
        return max(1, min(_FEWEST, self._most // (2 * max(len(self.known), 1))))

    def codes(self, column: Any, classes: bool) -> np.ndarray:
        """Numbers of the classes of some rows, -1 without a label; 0 if labels are no classes."""
        import pandas as pd

        whole = column.dtype.kind in "iufb"
        codes, values = pd.factorize(column if whole else np.array(texts_of(column), dtype=object))
        texts = [text_of(value) for value in values]
        if not classes:
            of_text = [-1 if text is None else 0 for text in texts]
        else:
            names = [None if text is None else class_name(text) for text in texts]
            known = self.known
            of_text = [-1 if n is None else known.setdefault(n, len(known)) for n in names]
        return np.array([*of_text, -1])[codes]

    def add(self, table: _files.Table, codes: np.ndarray | None) -> None:
        """Hold the rows of a piece that may be drawn."""
        frame = table.frame
        keys = self._random.random_sample(len(frame))
        keys[self._first_with_a_word(frame)] = -1.0
        codes = np.zeros(len(frame), dtype=int) if codes is None else codes
        keys[codes < 0] = np.inf
        counts = np.append(self._counts, np.zeros(codes.max(initial=0) + 1, dtype=int))
        wanted = (keys < self._largest) | ((counts[codes] < self._fewest) & (codes >= 0))
        rows = np.arange(len(frame)) if np.isinf(self._largest) else np.flatnonzero(wanted)
        numbers: Any = table.rows
        lines = None if table.lines is None else table.lines[rows]
        kept = frame if len(rows) == len(frame) else frame.iloc[rows]
        self._held.append((kept, numbers[rows], lines, keys[rows], codes[rows]))
        self._n_held += len(rows)
        if self._n_held > _MANY * self._most:
            self._cut()

    def result(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """The rows drawn, their numbers and their lines, in the order of the files."""
        if self._was_cut or self._n_held > self._most:
            self._cut()
        return self._together()[:3]

    def _together(self) -> tuple[Any, ...]:
        import pandas as pd

        frames, *arrays = zip(*self._held, strict=True)
        frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
        joined = [None if part[0] is None else np.concatenate(part) for part in arrays]
        return frame.reset_index(drop=True), *joined

    def _cut(self) -> None:
        import pandas as pd

        frame, rows, lines, keys, codes = self._together()
        order = np.argsort(keys, kind="stable")
        rank = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
        wanted = (np.arange(len(order)) < self._most) | (rank < self._fewest)
        chosen = np.sort(order[wanted & np.isfinite(keys[order])])
        self._largest = keys[order[self._most - 1]] if len(order) >= self._most else np.inf
        parts = (rows, lines, keys, codes)
        self._held = [(frame.iloc[chosen], *(p if p is None else p[chosen] for p in parts))]
        self._n_held, self._was_cut = len(chosen), True
        self._counts = np.bincount(codes[chosen], minlength=len(self.known))

    def _first_with_a_word(self, frame: Any) -> list[int]:
        """Rows whose text is no number, and no row had it in this column before; gaps likewise."""
        import pandas as pd

        rows = []
        for name, column in frame.items():
            if column.dtype.kind in "iufcbmM":
                continue
            seen = self._words.setdefault(name, set())
            there = column.notna().to_numpy()
            if not there.all() and None not in seen:
                seen.add(None)
                rows.append(int(np.argmin(there)))
            texts = list(map(str, column.to_numpy(dtype=object)[there]))
            if are_plain_numbers(texts):
                continue
            new = np.flatnonzero(~pd.Series(texts, dtype=object).duplicated().to_numpy())
            for place in new.tolist():
                text = texts[place]
                if len(seen) < _MOST_WORDS and text not in seen and not is_plain_number(text):
                    seen.add(text)
                    rows.append(int(np.flatnonzero(there)[place]))
        return rows


def _others(path: Path) -> Generator[_files.Table, None, None]:
    """The pieces of a text file, with notes at the end; another file as a whole."""
    if not _files.is_text(path):
        yield _files.open_table(path)
        return
    notes: list[str] = []
    before: _files.Table | None = None
    for piece in _files.text_pieces(path, notes):
        if before is not None:
            yield before
        before = piece
    if before is not None and len(before.frame):
        yield replace(before, notes=tuple(notes))


def _parquet_pieces(path: Path) -> Generator[_files.Table, None, None]:
    with _files.readable(path):
        _files.require_arrow()
        import pyarrow as pa
        import pyarrow.parquet as pq

        # A buffer: without it, all of a column that is one group of rows is read at once.
        with pq.ParquetFile(path, buffer_size=1 << 20) as file:
            n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
            all_groups = map(file.metadata.row_group, range(file.num_row_groups))
            held = sum(group.total_byte_size for group in all_groups) // max(n_rows, 1)
            plain = 8 * max(n_columns, 1)
            most = max(1, _PIECE_BYTES // (held if held > _LISTS * plain else plain))
            with stage(f"reading {path.name}", n_rows) as shown:
                for groups in _bundles(file.metadata, most):
                    for batch in file.iter_batches(most, row_groups=groups):
                        frame = pa.Table.from_batches([batch]).to_pandas().reset_index(drop=True)
                        yield _files.Table(frame, name=path.name)
                        shown.step("rows", len(frame))


def _bundles(metadata: Any, most: int) -> Iterator[list[int]]:
    """Groups of rows to read by one reader, which keeps all that it has read: few at a time."""
    bundle: list[int] = []
    n_rows = 0
    for group in range(metadata.num_row_groups):
        n_more = metadata.row_group(group).num_rows
        if bundle and n_rows + n_more > most:
            yield bundle
            bundle, n_rows = [], 0
        bundle.append(group)
        n_rows += n_more
    if bundle:
        yield bundle


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _different(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    found = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    twice = next((path for i, path in enumerate(found) if path in found[:i]), None)
    if twice is not None:
        raise TableError(f"Got {twice} twice, but expected every file once.")
    return found


def _kinds(path: Path, frame: Any) -> dict[str, str]:
    """What the columns of a Parquet file are to the encoder; of a text file that is still open."""
    if not _is_parquet(path):
        return dict.fromkeys(frame.columns, "nothing")
    import pyarrow.parquet as pq

    kinds = {field.name: _kind(field.type) for field in pq.read_schema(path)}
    return {name: kinds[name] for name in frame.columns}


def _kind(dtype: Any) -> str:
    """What a column is to the encoder: "nothing" where a file has only gaps in it."""
    from pyarrow import types

    if types.is_null(dtype):
        return "nothing"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numbers"
    if types.is_dictionary(dtype):
        return _kind(dtype.value_type)
    text = types.is_string(dtype) or types.is_large_string(dtype)
    return "text" if text else str(dtype)


def _require_alike(path: Path, kinds: dict[str, str], model: Path, wanted: dict[str, str]) -> None:
    lacks = [name for name in wanted if name not in kinds]
    extra = [name for name in kinds if name not in wanted]
    if lacks or extra:
        said = [f"{verb} {few(some)}" for verb, some in (("lacks", lacks), ("has", extra)) if some]
        raise TableError(
            f"Got {path}, which {' and '.join(said)} unlike {model}, but expected the same columns."
        )
    for name, kind in kinds.items():
        if "nothing" not in (kind, wanted[name]) and kind != wanted[name]:
            raise TableError(
                f"Got {path} with {kind} in the column {name!r}, but {model} has {wanted[name]} "
                "there: write both in one type."
            )
