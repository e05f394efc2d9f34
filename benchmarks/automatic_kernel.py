"""``kernel="auto"`` beside tuned classifiers; stops and resumes at will.

``python benchmarks/automatic_kernel.py --out cells.jsonl ten fresh noisy unseen``
"""

import argparse
from collections import defaultdict
from pathlib import Path

from reproduction.automatic import CLASSIFIERS, default_cells
from reproduction.cells import read_cells
from reproduction.problems import GROUPS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    # argparse checks the empty default against the choices too
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="none: only the table")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--methods", nargs="+", choices=CLASSIFIERS)
    arguments = parser.parse_args()
    for group in arguments.groups:
        usual = [m for m in CLASSIFIERS if group == "noisy" or m != "CV width"]
        methods = arguments.methods or usual
        for cell in default_cells(GROUPS[group], methods, arguments.splits, arguments.out):
            print(*cell, flush=True)
    print(table(read_cells(arguments.out)))


def table(cells):
    """Markdown: mean accuracy of each method on each set, and over each group."""
    scores = defaultdict(list)
    for cell in cells:
        scores[cell.dataset, cell.method].append(cell.accuracy)
    means = {key: sum(found) / len(found) for key, found in scores.items()}
    methods = [m for m in CLASSIFIERS if any(method == m for _, method in means)]
    lines = ["| | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for group, problems in GROUPS.items():
        names = [p.name for p in problems]
        for name in names:
            lines.append(_row(name, [means.get((name, m)) for m in methods]))
        columns = [[means.get((name, m)) for name in names] for m in methods]
        lines.append(
            _row(f"**{group}, mean**", [None if None in c else sum(c) / len(c) for c in columns])
        )
    return "\n".join(lines)


def _row(name, values):
    return f"| {name} | " + " | ".join("" if v is None else f"{v:.3f}" for v in values) + " |"


if __name__ == "__main__":
    main()
