"""Alignment for classes of several clusters under noise; stops and resumes at will.

``python benchmarks/multimodal.py --out cells.jsonl noisy clean uci``, and with
``--plot multimodal.png`` the picture: noise beside XOR, and the accuracies of the file.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from reproduction.cells import read_cells
from reproduction.multimodal import ALIGNMENTS, MULTIMODAL, multimodal_cells, noise_curve


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[*MULTIMODAL, []], help="data sets to run")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--methods", nargs="+", choices=ALIGNMENTS)
    parser.add_argument("--plot", type=Path, help="picture to write")
    arguments = parser.parse_args()
    for group in arguments.groups:
        methods = arguments.methods or ALIGNMENTS
        for cell in multimodal_cells(MULTIMODAL[group], methods, arguments.splits, arguments.out):
            print(*cell, flush=True)
    cells = read_cells(arguments.out)
    print(table(cells))
    if arguments.plot:
        picture(cells, arguments.plot)


def picture(cells, path):
    """Two panels: accuracy against the number of features of noise, and method by method."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    rows = noise_curve()
    numbers = sorted({noise for noise, _, _ in rows})
    for view, marker in zip(rows[0][2], "so^", strict=True):
        found = [[a[view] for n, _, a in rows if n == number] for number in numbers]
        left.plot(numbers, [sum(f) / len(f) for f in found], marker=marker, label=view)
    left.axhline(0.5, color="0.7", linewidth=0.8)
    left.set(xlabel="features of noise beside XOR", ylabel="accuracy of the nearest neighbour")
    left.legend(frameon=False)
    methods = [m for m in ALIGNMENTS if any(c.method == m for c in cells)]
    for problem, marker in zip(MULTIMODAL["noisy"], "os^D", strict=True):
        for height, method in enumerate(reversed(methods)):
            found = [c.accuracy for c in cells if (c.dataset, c.method) == (problem.name, method)]
            if found:
                label = problem.name if height == len(methods) - 1 else None
                mean = sum(found) / len(found)
                colour = f"C{'os^D'.index(marker)}"
                right.plot(mean, height, marker, color=colour, label=label, alpha=0.8)
    right.set_yticks(range(len(methods)), methods[::-1])
    right.set(xlabel="accuracy, kernelized LMNN")
    right.grid(axis="y", color="0.9")
    right.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)
    figure.savefig(path, dpi=150)


def table(cells):
    """Markdown: a row for each method, a column for each set, mean accuracy and splits."""
    scores = defaultdict(list)
    for cell in cells:
        scores[cell.dataset, cell.method].append(cell.accuracy)
    lines = []
    for group, problems in MULTIMODAL.items():
        names = [p.name for p in problems]
        lines += ["", f"| {group} | " + " | ".join(names) + " | mean |"]
        lines.append("|---" * (len(names) + 2) + "|")
        for method in ALIGNMENTS:
            found = [scores.get((name, method)) for name in names]
            if any(found):
                means = [sum(s) / len(s) if s else None for s in found]
                whole = None if None in means else sum(means) / len(means)
                texts = ["" if m is None else f"{m:.3f}" for m in [*means, whole]]
                lines.append(f"| {method} | " + " | ".join(texts) + " |")
        counts = {len(s) for (name, _), s in scores.items() if name in names}
        lines.append(f"\nSplits: {min(counts, default=0)} to {max(counts, default=0)}.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
