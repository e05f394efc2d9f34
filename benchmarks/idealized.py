"""Tables 2-4 of "Learning with idealized kernels", beside the paper's; stops and resumes at will.

``python benchmarks/idealized.py 4 --splits 50`` appends to ``benchmarks/idealized-table4.jsonl``
and prints the table; ``--splits 0`` prints what is there.
"""

import argparse
from pathlib import Path

from kernelmetric.experiments import IDEALIZED, PRINTED, Task, idealized_cells, read_cells
from kernelmetric.report import summarize

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
    """Markdown: errors in percent, the paper's first."""
    found = summarize(cells)
    lines = [
        "| error, % | paper: kernel | learned | Xing | " + " | ".join(IDEALIZED) + " | splits |",
        "|---" * (len(IDEALIZED) + 5) + "|",
    ]
    for name, printed in PRINTED[number].items():
        row = found.get(name, {})
        paper = [f"{value:.1f}" if value is not None else "" for value in printed]
        ours = [f"{100 * (1 - row[m].mean):.1f}" if m in row else "" for m in IDEALIZED]
        splits = {row[m].n_splits for m in row}
        count = f"{min(splits)}" + (f"-{max(splits)}" if len(splits) > 1 else "") if splits else ""
        lines.append(f"| {name} | " + " | ".join([*paper, *ours, count]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
