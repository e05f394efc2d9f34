"""A large register deduplicated end to end, beside splink on DuckDB: seconds, memory, F1.

``python benchmarks/linkage_size.py --rows 1000000`` draws the register, and runs each library in a
process of its own, with the same blocking rules. ``--memory 4GB`` is our budget of memory.
"""

import argparse
import json
import logging
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
    base = pd.DataFrame(records)
    rng, writer, people = np.random.RandomState(1), None, []
    for shift in range(-(-rows // len(base))):
        if shift >= len(LETTERS):
            raise ValueError(f"Got {rows} rows, but at most {len(base) * len(LETTERS)} are drawn.")
        # Another part of the country: other surnames and streets, as long and as alike as these.
        moved = LETTERS[shift:] + LETTERS[:shift]
        table = str.maketrans(LETTERS + LETTERS.upper(), moved + moved.upper())
        part = base.copy()
        for name in ("last", "street"):
            part[name] = part[name].str.translate(table)
        own = rng.randint(10**7, 10**8, size=person.max() + 1)[person]
        slips = rng.uniform(size=len(own)) < 0.2
        own = np.where(slips, own + 10 ** rng.randint(7, size=len(own)), own).astype(str)
        part["phone"] = np.where(rng.uniform(size=len(own)) < 0.2, None, own)
        part = part.iloc[: rows - shift * len(base)]
        people.append(person[: len(part)] + shift * (person.max() + 1))
        piece = pa.Table.from_pandas(part, preserve_index=False)
        writer = writer or ParquetWriter(folder / "people.parquet", piece.schema)
        writer.write_table(piece)
    writer.close()
    np.save(folder / "person.npy", np.concatenate(people))


def ours(folder, memory):
    """Links and clusters of this library."""
    import kernelmetric
    from kernelmetric.linkage import EqualKeys, RecordLinker, link_files

    linker = RecordLinker(rules=[EqualKeys(*keys) for keys in RULES])
    work = folder / "ours"
    with kernelmetric.memory_budget(memory), kernelmetric.progress():
        links = link_files(folder / "people.parquet", None, linker, folder=work)
        print(f"{len(links) + len(links.others)} candidates", flush=True)
        return links.pairs, links.clusters().codes


def splink(folder, memory):
    """Links and clusters of splink, on DuckDB."""
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    table = pd.read_parquet(folder / "people.parquet")
    table["unique_id"] = np.arange(len(table))
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            *(cl.JaroWinklerAtThresholds(c, [0.92, 0.8]) for c in ("first", "last", "street")),
            cl.ExactMatch("city"),
            *(cl.DamerauLevenshteinAtThresholds(c, [1, 2]) for c in ("born", "phone")),
        ],
        blocking_rules_to_generate_predictions=[block_on(*keys) for keys in RULES],
    )
    api = DuckDBAPI()
    given = api.register(table) if hasattr(api, "register") else table
    linker = Linker(given, settings) if hasattr(api, "register") else Linker(given, settings, api)
    linker.training.estimate_probability_two_random_records_match(
        [block_on("first", "last", "born")], recall=0.6
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=0)
    for keys in (("last", "born"), ("first", "street")):
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(*keys))
    found = linker.inference.predict(threshold_match_probability=0.5)
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(found, 0.5)
    codes = clusters.as_pandas_dataframe().set_index("unique_id")["cluster_id"]
    pairs = found.as_pandas_dataframe()[["unique_id_l", "unique_id_r"]].to_numpy()
    return pairs, pd.factorize(codes.loc[np.arange(len(table))])[0]


def scores(pairs, codes, person):
    """Precision, recall and F1 of links, and of pairs inside clusters."""

    def pairs_in(*columns):
        counts = pd.DataFrame(dict(enumerate(columns))).value_counts().to_numpy()
        return float((counts * (counts - 1) // 2).sum())

    true, found = pairs_in(person), pairs_in(codes)
    hits = float(np.sum(person[pairs[:, 0]] == person[pairs[:, 1]]))
    both = pairs_in(person, codes)
    return {
        "precision": hits / len(pairs), "recall": hits / true,
        "F1": 2 * hits / (len(pairs) + true), "clusters F1": 2 * both / (found + true),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--method", choices=["ours", "splink"])
    given = parser.parse_args()
    if given.method is None:
        with tempfile.TemporaryDirectory() as folder:
            folder = given.folder or Path(folder)
            if not (folder / "person.npy").is_file():
                folder.mkdir(parents=True, exist_ok=True)
                draw(given.rows, folder)
            for method in ("ours", "splink"):
                own = ["--method", method, "--folder", str(folder), "--memory", given.memory]
                subprocess.run([sys.executable, __file__, *own], check=False)
        return
    warnings.simplefilter("ignore")
    logging.getLogger("splink").setLevel(logging.ERROR)
    begun = time.monotonic()
    pairs, codes = {"ours": ours, "splink": splink}[given.method](given.folder, given.memory)
    spent = time.monotonic() - begun
    usage = resource.getrusage(resource.RUSAGE_SELF)
    person = np.load(given.folder / "person.npy")
    found = scores(pairs, codes, person)
    print(
        f"{given.method}, {len(person)} rows: {spent:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} "
        f"s of processors, peak {usage.ru_maxrss / 1e6:.2f} GB, {len(pairs)} links, "
        + json.dumps({name: round(value, 4) for name, value in found.items()}),
        flush=True,
    )


if __name__ == "__main__":
    main()
