"""Adapted vectors in the store that you run: faiss, usearch, DuckDB and LanceDB.

``python examples/stores/stores.py`` learns an adapter of made vectors, writes the documents into
every store that is installed, asks for each query, and prints recall and the time of one query. A
store is two lines: what ``transform_documents`` gives goes in, what ``transform`` gives is asked
for. Both have length one, so inner product, cosine and Euclidean distance rank alike.
"""

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelmetric import Adapter, to_faiss

Asked = Callable[[np.ndarray, int], np.ndarray]  # rows of the k nearest documents of a query


def in_faiss(adapter: Adapter, documents: np.ndarray, folder: Path) -> Asked:
    """An index in memory, written to a file and read again."""
    import faiss

    path = str(folder / "documents.index")
    faiss.write_index(to_faiss(adapter, documents), path)
    index = faiss.read_index(path)
    return lambda query, k: index.search(query[None].astype("float32"), k)[1][0]


def in_usearch(adapter: Adapter, documents: np.ndarray, folder: Path) -> Asked:
    """A graph of neighbours, with int8 in the place of floats, opened from its file."""
    from usearch.index import Index

    path = str(folder / "documents.usearch")
    vectors = adapter.transform_documents(documents).astype("float32")
    index = Index(ndim=vectors.shape[1], metric="cos", dtype="i8")
    index.add(np.arange(len(vectors)), vectors)
    index.save(path)
    opened = Index.restore(path, view=True)
    return lambda query, k: opened.search(query.astype("float32"), k).keys


def in_duckdb(adapter: Adapter, documents: np.ndarray, folder: Path) -> Asked:
    """A column of arrays beside the other columns of a table, asked in SQL."""
    import duckdb
    import pandas as pd

    vectors = adapter.transform_documents(documents).astype("float32")
    d = vectors.shape[1]
    frame = pd.DataFrame({"row": np.arange(len(vectors)), "vector": list(vectors)})  # noqa: F841
    base = duckdb.connect(str(folder / "documents.duckdb"))
    base.execute(f"CREATE TABLE documents AS SELECT row, vector::FLOAT[{d}] AS vector FROM frame")
    ask = (
        "SELECT row FROM documents ORDER BY "
        f"array_inner_product(vector, ?::FLOAT[{d}]) DESC, row LIMIT ?"
    )

    def asked(query: np.ndarray, k: int) -> np.ndarray:
        return np.ravel(base.execute(ask, [query.tolist(), k]).fetchall())

    return asked


def in_lancedb(adapter: Adapter, documents: np.ndarray, folder: Path) -> Asked:
    """A table of an embedded vector database."""
    import lancedb

    vectors = adapter.transform_documents(documents).astype("float32")
    rows = [{"row": i, "vector": vector} for i, vector in enumerate(vectors)]
    table = lancedb.connect(str(folder / "lance")).create_table("documents", rows)

    def asked(query: np.ndarray, k: int) -> np.ndarray:
        found = table.search(query.astype("float32")).distance_type("dot").limit(k).to_list()
        return np.array([row["row"] for row in found])

    return asked


STORES = {"faiss": in_faiss, "usearch": in_usearch, "duckdb": in_duckdb, "lancedb": in_lancedb}


def vectors_of_things(n: int = 600, d: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Queries and documents of the same things, with noise in a quarter of the coordinates."""
    rng = np.random.RandomState(0)
    things = rng.standard_normal((n, d))
    noise = np.where(np.arange(d) < d // 4, 4.0, 0.3)
    return tuple((things + noise * rng.standard_normal((n, d))).astype("float32") for _ in "ab")


def main() -> None:
    """Recall at one of queries that no adapter has seen, and microseconds of one of them."""
    queries, documents = vectors_of_things()
    known, new = np.arange(400), np.arange(400, 600)
    pairs = np.column_stack([known, known])
    adapter = Adapter().fit(queries, documents=documents, pairs=pairs)
    plain = np.mean((queries[new] @ documents.T).argmax(axis=1) == new)
    print(f"{'as they are':12} recall@1 {plain:.3f}")
    for name, write in STORES.items():
        if importlib.util.find_spec(name) is None:
            print(f"{name:12} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            ask = write(adapter, documents, Path(folder))
            begun = time.perf_counter()
            found = [ask(adapter.transform(queries[[row]])[0], 10) for row in new]
            micro = (time.perf_counter() - begun) / len(new) * 1e6
        hits = np.mean([rows[0] == row for rows, row in zip(found, new, strict=True)])
        print(f"{name:12} recall@1 {hits:.3f}   {micro:6.0f} µs a query, transform included")


if __name__ == "__main__":
    main()
