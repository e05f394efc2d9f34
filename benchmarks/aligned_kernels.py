"""Aligned against cross-validated kernels on the nine UCI sets of 000; stops and resumes at will.

``python benchmarks/aligned_kernels.py --out cells.jsonl`` takes an hour on one core, and prints
the table; several processes may share the work by ``--learners`` and ``--sets``, each with a file
of its own, and ``--out`` with all the files prints the table of them all.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import median

from reproduction.aligned import CHOICES, LEARNERS, UCI, aligned_cells
from reproduction.cells import read_cells


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, nargs="+", help="JSON lines")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--learners", nargs="*", default=[*LEARNERS], choices=LEARNERS)
    parser.add_argument("--sets", nargs="*", default=[p.name for p in UCI])
    arguments = parser.parse_args()
    if len(arguments.out) == 1:
        problems = [problem for problem in UCI if problem.name in arguments.sets]
        for cell in aligned_cells(problems, arguments.learners, arguments.splits, arguments.out[0]):
            print(*cell, flush=True)
    print(table([cell for path in arguments.out for cell in read_cells(path)]))


def table(cells):
    """Markdown: mean accuracy by learner and choice, and how much faster alignment chooses."""
    accuracy, seconds = defaultdict(list), defaultdict(list)
    for cell in cells:
        accuracy[cell.dataset, cell.method].append(cell.accuracy)
        seconds[cell.method].append(cell.seconds)
    methods = [f"{n}, {c}" for n in LEARNERS for c in CHOICES if f"{n}, {c}" in seconds]
    names = [p.name for p in UCI if any((p.name, m) in accuracy for m in methods)]
    lines = ["| | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    means = {key: sum(values) / len(values) for key, values in accuracy.items()}
    for name in names:
        row = [f"{means[name, m]:.3f}" if (name, m) in means else "" for m in methods]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    overall = [[means[n, m] for n in names if (n, m) in means] for m in methods]
    row = [f"**{sum(values) / len(values):.3f}**" for values in overall]
    lines.append("| **mean** | " + " | ".join(row) + " |")
    row = [f"{median(seconds[m]):.2g}" for m in methods]
    lines.append("| seconds to choose, median | " + " | ".join(row) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
