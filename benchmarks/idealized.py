"""Tables 2-4 of "Learning with idealized kernels", beside the paper's; stops and resumes at will.

``python benchmarks/idealized.py 4 --splits 50`` appends to ``benchmarks/idealized-table4.jsonl``
and prints the table; ``--splits 0`` prints what is there.
"""

import argparse
from pathlib import Path

from kernelmetric.report import summarize
from reproduction.cells import read_cells
from reproduction.idealized import IDEALIZED, PRINTED, Task, idealized_cells

HERE = Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=int, choices=PRINTED)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--rows", nargs="*", default=None, help="such as 'wine, rbf'")
    parser.add_argument("--methods", nargs="*", default=[*IDEALIZED], choices=IDEALIZED)
    arguments = parser.parse_args()
    out = HERE / f"idealized-table{arguments.table}.jsonl"
    tasks = [Task(arguments.table, name) for name in arguments.rows or PRINTED[arguments.table]]
    own = [method for method in arguments.methods if method != "Xing"]
    for split in range(1, arguments.splits + 1):
        for cell in idealized_cells(tasks, own, split, out):
            print(*cell, flush=True)
        if "Xing" in arguments.methods:
            few = [task for task in tasks if task.printed[2] is not None]
            for cell in idealized_cells(few, ["Xing"], split, out):
                print(*cell, flush=True)
    print(table(arguments.table, read_cells(out)))


def table(number, cells):
    """Markdown: errors in percent ± standard error of the mean, and the paper's."""
    found = summarize(cells)
    methods = [m for m in IDEALIZED if any(m in row for row in found.values())]
    head = ["error, %", "paper: kernel", "learned", *methods, "repetitions"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, printed in PRINTED[number].items():
        row = found.get(name, {})
        ours = [error(row[m]) if m in row else "" for m in methods]
        counts = sorted({row[m].n_splits for m in row})
        count = "-".join(str(n) for n in dict.fromkeys([*counts[:1], *counts[-1:]]))
        paper = [f"{value:.1f}" for value in printed[:2]]
        lines.append("| " + " | ".join([name, *paper, *ours, count]) + " |")
    return "\n".join(lines)


def error(summary):
    """Mean ± standard error, in percent."""
    spread = 100 * summary.std / max(summary.n_splits - 1, 1) ** 0.5
    return f"{100 * (1 - summary.mean):.1f} ± {spread:.1f}"


if __name__ == "__main__":
    main()
