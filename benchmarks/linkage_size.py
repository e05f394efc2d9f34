"""A large register deduplicated end to end, beside splink on DuckDB: seconds, memory, F1.

``python benchmarks/linkage_size.py --rows 1000000`` draws the register, and runs each library in a
process of its own, with the same blocking rules. ``--memory 4GB`` is the memory budget of both,
``--cores 2`` how many cores each may use, ``--limit 300`` how many seconds each has,
``--method ours`` runs one alone. Both read the Parquet file and spill to disk; the tables of splink
are in a file of DuckDB.
"""

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

BASE = 100_000  # people drawn by make_records; larger registers have them again, renamed
COPIES = 3
RULES = [("last", "born"), ("first", "street"), ("phone",), ("first", "born", "city")]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw(rows, folder):
    """Write a register of so many rows, and who they are."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    from kernelmetric.datasets import make_records

    records, person = make_records(
        max(2, min(BASE, rows // COPIES)), n_copies=COPIES, random_state=0
    )
    base = pa.Table.from_pylist(records)
    rng, writer, people = np.random.RandomState(1), None, []
    for shift in range(-(-rows // len(base))):
        if shift >= len(LETTERS):
            raise ValueError(f"Got {rows} rows, but at most {len(base) * len(LETTERS)} are drawn.")
        # Another part of the country: other surnames, streets and cities, as alike as these.
        moved = LETTERS[shift:] + LETTERS[:shift]
        letters = str.maketrans(LETTERS + LETTERS.upper(), moved + moved.upper())
        part = base
        for name in ("last", "street", "city"):
            texts = base[name].combine_chunks().dictionary_encode()
            told = pa.array([text.translate(letters) for text in texts.dictionary.to_pylist()])
            place = part.column_names.index(name)
            part = part.set_column(place, name, told.take(texts.indices))
        own = rng.randint(10**7, 10**8, size=person.max() + 1)[person]
        slips = rng.uniform(size=len(own)) < 0.2
        own = np.where(slips, own + 10 ** rng.randint(7, size=len(own)), own)
        missing = rng.uniform(size=len(own)) < 0.2
        part = part.append_column("phone", pa.array(own, mask=missing).cast(pa.string()))
        part = part.slice(0, rows - shift * len(base))
        people.append(person[: len(part)] + shift * (person.max() + 1))
        writer = writer or ParquetWriter(folder / "people.parquet", part.schema)
        writer.write_table(part)
    writer.close()
    np.save(folder / "person.npy", np.concatenate(people))


def ours(folder, memory):
    """Links and clusters of this library."""
    import kernelmetric
    from kernelmetric.linkage import EqualKeys, RecordLinker, link_files

    linker = RecordLinker(rules=[EqualKeys(*keys) for keys in RULES])
    told = Told("ours")
    with kernelmetric.memory_budget(memory), kernelmetric.progress():
        links = link_files(folder / "people.parquet", None, linker, folder=folder / "ours")
        told(f"links of {len(links) + len(links.others)} candidates")
        codes = links.clusters().codes
    told("clusters")
    return links.pairs, codes


def splink(folder, memory):
    """Links and clusters of splink, on DuckDB."""
    import duckdb
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            *(cl.JaroWinklerAtThresholds(c, [0.92, 0.8]) for c in ("first", "last", "street")),
            cl.ExactMatch("city"),
            *(cl.DamerauLevenshteinAtThresholds(c, [1, 2]) for c in ("born", "phone")),
        ],
        blocking_rules_to_generate_predictions=[block_on(*keys) for keys in RULES],
    )
    options = {"memory_limit": memory, "temp_directory": str(folder / "splink")}
    connection = duckdb.connect(str(folder / "splink.duckdb"), config=options)
    connection.execute(
        "CREATE OR REPLACE TABLE people AS SELECT *, file_row_number AS unique_id "
        f"FROM read_parquet('{folder / 'people.parquet'}', file_row_number=true)"
    )
    api = DuckDBAPI(connection=connection)
    linker = Linker(api.register("people"), settings)
    told = Told("splink")
    linker.training.estimate_probability_two_random_records_match(
        [block_on("first", "last", "born")], recall=0.6
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=0)
    told("frequencies by chance")
    for keys in (("last", "born"), ("first", "street")):
        linker.training.estimate_parameters_using_expectation_maximisation(
            block_on(*keys), max_pairs=1e6
        )
    told("expectation maximization")
    found = linker.inference.predict(threshold_match_probability=0.5)
    told("comparing")
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(found, 0.5)
    told("clusters")
    links = f"SELECT unique_id_l, unique_id_r FROM {found.physical_name}"
    pairs = np.column_stack(list(connection.sql(links).fetchnumpy().values()))
    names = f"SELECT cluster_id FROM {clusters.physical_name} ORDER BY unique_id"
    return pairs, pd.factorize(connection.sql(names).fetchnumpy()["cluster_id"])[0]


class Told:
    """Says how long each step took, at once: a run that is cut tells that much."""

    def __init__(self, name):
        self.name, self.begun = name, time.monotonic()

    def __call__(self, step):
        """Note the end of a step."""
        spent, self.begun = time.monotonic() - self.begun, time.monotonic()
        print(f"{self.name}, {step}: {spent:.1f} s", flush=True)


def scores(pairs, codes, person):
    """Precision, recall and F1 of links, and of pairs inside clusters."""

    def pairs_in(codes):
        counts = np.unique(codes, return_counts=True)[1]
        return float((counts * (counts - 1) // 2).sum())

    true, found = pairs_in(person), pairs_in(codes)
    hits = float(np.sum(person[pairs[:, 0]] == person[pairs[:, 1]]))
    both = pairs_in(person.astype(np.int64) * (int(codes.max()) + 1) + codes)
    return {
        "precision": hits / len(pairs), "recall": hits / true,
        "F1": 2 * hits / (len(pairs) + true), "clusters F1": 2 * both / (found + true),
    }  # fmt: skip


def one(method, folder, memory):
    """One library, in this process."""
    warnings.simplefilter("ignore")
    logging.getLogger("splink").setLevel(logging.ERROR)
    begun = time.monotonic()
    pairs, codes = {"ours": ours, "splink": splink}[method](folder, memory)
    spent = time.monotonic() - begun
    usage = resource.getrusage(resource.RUSAGE_SELF)
    person = np.load(folder / "person.npy")
    found = scores(pairs, codes, person)
    print(
        f"{method}, {len(person)} rows: {spent:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} "
        f"s of processors, peak {usage.ru_maxrss / 1e6:.2f} GB, {len(pairs)} links, "
        + json.dumps({name: round(value, 4) for name, value in found.items()}),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--method", choices=["ours", "splink"], nargs="+")
    parser.add_argument("--limit", type=float, help="seconds of each library")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
        one(given.method[0], given.folder, given.memory)
        return
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder) if given.folder is None else given.folder / str(rows)
            if not (folder / "person.npy").is_file():
                folder.mkdir(parents=True, exist_ok=True)
                begun = time.monotonic()
                draw(rows, folder)
                print(f"{rows} rows drawn: {time.monotonic() - begun:.0f} s", flush=True)
            for method in given.method or ("ours", "splink"):
                own = ["--here", "--folder", str(folder), "--memory", given.memory]
                own += ["--cores", str(given.cores)]
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                run = [sys.executable, __file__, "--method", method, *own]
                try:
                    subprocess.run(run, check=False, timeout=given.limit)
                except subprocess.TimeoutExpired:
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                    print(
                        f"{method}, {rows} rows: not done after {given.limit:.0f} s, "
                        f"{used:.0f} s of processors",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
