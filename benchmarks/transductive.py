"""Few labels: Table 1 of 001, the cliff at small λ, and semi-supervised peers; stops and resumes.

``python benchmarks/transductive.py --out cells.jsonl --methods TDL LE 1-NN`` runs Table 1; sets and
methods by name, ``--splits`` as many as wanted. Several processes may share the work, each with a
file of its own; ``--out`` with all the files only prints the table of them.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from kernelmetric.experiments import (
    FEW_LABEL_METHODS,
    MNIST,
    TABLE1,
    few_label_cells,
    read_cells,
)

PROBLEMS = {problem.name: problem for problem in (*TABLE1, *MNIST)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, nargs="+", help="JSON lines")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--sets", nargs="*", default=[p.name for p in TABLE1], choices=PROBLEMS)
    parser.add_argument("--methods", nargs="*", default=["TDL", "LE", "1-NN"])
    arguments = parser.parse_args()
    if len(arguments.out) == 1:
        problems = [PROBLEMS[name] for name in arguments.sets]
        cells = few_label_cells(problems, arguments.methods, arguments.splits, arguments.out[0])
        for cell in cells:
            print(*cell, flush=True)
    print(table([cell for path in arguments.out for cell in read_cells(path)]))


def table(cells):
    """Markdown: mean accuracy in percent, and the paired difference from LE with its error."""
    scores = defaultdict(dict)
    for cell in cells:
        scores[cell.dataset, cell.method][cell.split] = 100 * cell.accuracy
    names = [name for name in PROBLEMS if any(name == dataset for dataset, _ in scores)]
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for method in FEW_LABEL_METHODS:
        row = [_entry(scores.get((n, method)), scores.get((n, "LE"))) for n in names]
        if any(row):
            lines.append(f"| {method} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def _entry(found, baseline):
    if not found:
        return ""
    text = f"{np.mean(list(found.values())):.2f}"
    if baseline and baseline is not found and set(found) <= set(baseline):
        gain = np.array([found[split] - baseline[split] for split in found])
        text += f" ({gain.mean():+.2f} ± {gain.std() / np.sqrt(len(gain)):.2f})"
    return text


if __name__ == "__main__":
    main()
