"""``kernelmetric adapt``: a map of vectors that are there already, from known matches."""

from contextlib import closing
from pathlib import Path
from typing import Any

import click
import numpy as np

from kernelmetric.cli._files import require_outputs
from kernelmetric.cli._options import FILE, minutes_option, output_options, seed_option
from kernelmetric.cli._talk import Talk, count, this_command
from kernelmetric.report import adapter_page, write_atomically
from kernelmetric.retrieval import Adapter
from kernelmetric.shipping import save
from kernelmetric.tables import read_pieces, read_table


@click.command()
@click.argument("documents", type=FILE)
@click.option("--queries", type=FILE, required=True, help="Vectors of queries.")
@click.option("--pairs", type=FILE, required=True, help="Which query and document match.")
@click.option("--out", type=FILE, help="Write the adapter; kernelmetric.load reads it.")
@click.option("--report", type=FILE, help="Write a page: before and after, query by query.")
@click.option("--id", "id_column", metavar="COL", help="Column of names; pairs are of names then.")
@click.option("--vector", metavar="COL", help="Column of lists that are vectors.")
@click.option("--side", type=click.Choice(["symmetric", "query", "both"]), default="symmetric",
              help="One map for both, one of queries alone, or a map for each.")  # fmt: skip
@click.option("--geometry", type=click.Choice(["cosine", "euclidean"]), default="cosine",
              help="How documents are ranked.")  # fmt: skip
@click.option("--components", type=click.IntRange(1), help="Dimensions of the mapped vectors.")
@seed_option
@minutes_option
@output_options
def adapt(
    documents: Path,
    queries: Path,
    pairs: Path,
    out: Path | None,
    report: Path | None,
    id_column: str | None,
    vector: str | None,
    side: str,
    geometry: str,
    components: int | None,
    seed: int,
    talk: Talk,
) -> None:
    """Adapt vectors to known matches, or leave them as they are.

    DOCUMENTS and --queries are tables of vectors: one column of lists, or a column for each
    coordinate; or arrays in files .npy, which may be larger than the memory. The first two
    columns of --pairs are row numbers, counted from 0, of a query and of its document; with
    --id they are names. A third column, if any, is a weight.

    \b
    Example:
      kernelmetric adapt docs.parquet --queries q.parquet --pairs pairs.csv \\
          --out adapter.km --report page.html
    """
    inputs = {"DOCUMENTS": documents, "--queries": queries, "--pairs": pairs}
    require_outputs({"--out": out, "--report": report}, inputs)
    Q, query_names = _vectors(queries, id_column, vector)
    D, document_names = _vectors(documents, id_column, vector)
    rows, weights = _pairs(pairs, (query_names, document_names) if id_column else None)
    talk.say(
        f"Read vectors of {len(Q):,} queries and {count(len(D), 'document')}, and "
        f"{count(len(rows), 'pair')}."
    )
    adapter = Adapter(side, geometry, n_components=components, random_state=seed)
    with talk.busy("Looking for a map"):
        adapter.fit(Q, documents=D, pairs=rows, pair_weight=weights)
    found = adapter.evaluation_
    talk.say(f"Map: {adapter.recipe_['map']}. {adapter.recipe_['why'].capitalize()}.")
    for said in str(found).splitlines():
        talk.say(said)
    if out is not None:
        save(adapter, out)
        talk.say(f"Saved {out}.")
    if report is not None:
        names: Any = {"query_names": query_names, "document_names": document_names}
        page = adapter_page(adapter, Q, D, rows, command=this_command(), **names)
        write_atomically(report, page)
        talk.say(f"Saved {report}.")
    talk.answer(_as_json(adapter))


def _vectors(path: Path, id_column: str | None, vector: str | None) -> tuple[np.ndarray, Any]:
    """The vectors of a table, and the names of its rows; a file of NumPy stays where it is."""
    if path.suffix == ".npy":
        if id_column is not None or vector is not None:
            raise ValueError(f"Got {path}, whose rows have no names, with --id or --vector.")
        return np.load(path, mmap_mode="r"), None
    if path.suffix != ".parquet":
        return _of_frame(read_table(path), path, id_column, vector)
    # Lists of numbers take several times as much memory as a table of them.
    with closing(read_pieces(path)) as read:  # an error ends the reading
        pieces = [_of_frame(p.frame, path, id_column, vector) for p in read]
    if len({part.shape[1] for part, _ in pieces}) > 1:
        raise ValueError(f"Got lists of several lengths in {path}, but expected vectors of one.")
    vectors, names = zip(*pieces, strict=True)
    return np.concatenate(vectors), None if id_column is None else np.concatenate(names)


def _of_frame(
    frame: Any, path: Path, id_column: str | None, vector: str | None
) -> tuple[np.ndarray, Any]:
    for column in (id_column, vector):
        if column is not None and column not in frame:
            raise ValueError(
                f"Got no column {column!r} in {path}, but expected one of {list(frame.columns)}."
            )
    names = None if id_column is None else frame.pop(id_column).astype(str).to_numpy()
    lists = [c for c in frame if isinstance(frame[c].iloc[0], list | np.ndarray)]
    if vector is None and len(lists) > 1:
        raise ValueError(f"Got columns {lists} of lists in {path}: say which with --vector.")
    if vector is not None or lists:
        column = vector or lists[0]
        widths = {np.size(value) for value in frame[column]}
        if column not in lists or len(widths) > 1:
            raise ValueError(
                f"Got column {column!r} of {path} with lists of {sorted(widths)} numbers, but "
                "expected vectors of one length."
            )
        return np.stack(frame[column].tolist()), names
    numbers = frame.select_dtypes("number")
    if not numbers.shape[1]:
        raise ValueError(
            f"Got no numbers in {path}, but expected a column of lists, or one for each coordinate."
        )
    return numbers.to_numpy(), names


def _pairs(path: Path, names: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Row numbers of queries and documents, and weights."""
    frame = read_table(path)
    if frame.shape[1] < 2:
        raise ValueError(f"Got one column in {path}, but expected two: query and document.")
    weights = frame.iloc[:, 2].to_numpy(dtype=float) if frame.shape[1] > 2 else None
    columns = [frame.iloc[:, i] for i in (0, 1)]
    if names is None:
        if any(column.dtype.kind not in "iu" for column in columns):
            raise ValueError(
                f"Got {path} with cells that are no whole numbers, but expected row numbers, "
                "counted from 0: say --id COL if these are names."
            )
        return np.column_stack(columns), weights
    rows = []
    for column, known, what in zip(columns, names, ("query", "document"), strict=True):
        place = {name: row for row, name in enumerate(known)}
        lost = [name for name in column.astype(str) if name not in place]
        if lost or len(place) < len(known):
            said = f"no {what} named {lost[0]!r}" if lost else f"two {what} rows of one name"
            raise ValueError(f"Got {said} for {path}, but expected a row for each name.")
        rows.append([place[name] for name in column.astype(str)])
    return np.column_stack(rows), weights


def _as_json(adapter: Adapter) -> dict[str, Any]:
    found = adapter.evaluation_
    told: dict[str, Any] = {"adapted": adapter.adapted_, **adapter.recipe_}
    for name, part in (("before", found.before), ("after", found.after)):
        told[name] = {f"recall@{k}": e.value for k, e in part.recall.items()}
        told[name] |= {"mrr": part.mrr.value, "ndcg": part.ndcg.value}
    changed = {"mended": found.mended, "broken": found.broken, "n_queries": found.before.n_queries}
    return told | changed
