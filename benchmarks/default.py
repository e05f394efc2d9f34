"""The default as it comes beside a grid-searched SVM: seconds, memory and accuracy at every size.

``python benchmarks/default.py --out default.jsonl`` fits ``Kernelized(LMNN())``,
``Kernelized(NCA())`` and scikit-learn's SVC with a grid of nine and three folds to 400 up to 50,000
points of real sets, each in a process of its own with two threads, the grid with two jobs. Every
result is appended to the file at once, and what is there is not run again. A fit that takes longer
than ``--limit`` seconds is stopped and counts as that long. ``--page FILE`` writes the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

SETS = ("satellite", "usps", "letter", "musk2", "covtype", "shuttle", "mnist")
SIZES = (400, 500, 1000, 2000, 4000, 10_000, 50_000)
METHODS = ("LMNN", "NCA", "SVM")
PIXELS = ("usps", "mnist")  # one scale for all features; the others are standardized
N_TEST = 2000


def split(name: str, n: int, seed: int) -> list[np.ndarray]:
    """Training points and labels, test points and labels."""
    from kernelmetric.datasets import load

    X, y = load(name, return_X_y=True)
    if len(X) < n + 500:
        raise SystemExit(f"{name} has {len(X)} rows: too few for {n} and a test")
    rows = np.random.RandomState(seed).permutation(len(X))
    train, test = rows[:n], rows[n : n + N_TEST]
    X = np.asarray(X, dtype=np.float64)
    mean = X[train].mean(axis=0)
    scale = X[train].std() if name in PIXELS else X[train].std(axis=0)
    X = (X - mean) / np.where(scale > 0, scale, 1.0)
    return [X[train], np.asarray(y)[train], X[test], np.asarray(y)[test]]


def measured(name: str, n: int, method: str, seed: int) -> dict:
    """One fit in this process."""
    from joblib import parallel_config
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    from kernelmetric import LMNN, NCA, Kernelized

    warnings.simplefilter("ignore")
    X, y, X_test, y_test = split(name, n, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    if method == "SVM":
        grid = {"C": [1, 10, 100], "gamma": [g / X.shape[1] for g in (0.1, 1, 10)]}
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        with parallel_config(
            "threading"
        ):  # libsvm lets threads run; processes take seconds to start
            model = GridSearchCV(SVC(), grid, cv=folds, n_jobs=2).fit(X, y)
        seconds = time.perf_counter() - started
        accuracy = model.score(X_test, y_test)
        chosen = str(model.best_params_)
    else:
        metric = Kernelized({"LMNN": LMNN, "NCA": NCA}[method](), random_state=0)
        E = metric.fit_transform(X, y)
        seconds = time.perf_counter() - started
        judge = KNeighborsClassifier(1, algorithm="brute").fit(E, y)
        accuracy = judge.score(metric.transform(X_test), y_test)
        chosen = f"{metric.space_.rank_} coordinates, {metric.kernel_!r}"[:200]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": seconds,
        "accuracy": accuracy,
        "megabytes": (peak - before) / 1024,
        "chosen": chosen,
    }


def key_of(cell: dict) -> tuple:
    """What a cell is a result of."""
    return cell["set"], cell["n"], cell["method"], cell["seed"]


def run(arguments: argparse.Namespace) -> None:
    """Every cell that is not there yet, each in a process of its own."""
    done = {key_of(cell) for cell in read(arguments.out)}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
    for n in arguments.sizes:
        for name in arguments.sets:
            for seed in range(arguments.splits):
                for method in arguments.methods:
                    cell = {"set": name, "n": n, "method": method, "seed": seed}
                    if key_of(cell) in done:
                        continue
                    command = [sys.executable, __file__, "--one", json.dumps(cell)]
                    try:
                        answer = subprocess.run(
                            command,
                            env=os.environ | threads,
                            capture_output=True,
                            text=True,
                            timeout=arguments.limit + 30,
                            check=False,
                        )
                    except subprocess.TimeoutExpired:
                        cell |= {"seconds": arguments.limit, "stopped": True}
                    else:
                        if answer.returncode:
                            print(name, n, method, answer.stderr.strip().splitlines()[-1:])
                            continue
                        cell |= json.loads(answer.stdout.splitlines()[-1])
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(cell) + "\n")
                    print(json.dumps(cell), flush=True)


def read(path: Path) -> list[dict]:
    """What a file of results holds."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def page(cells: list[dict]) -> str:
    """The tables in Markdown."""
    found = defaultdict(list)
    for cell in cells:
        found[cell["set"], cell["n"], cell["method"]].append(cell)

    def mean(name: str, n: int, method: str, what: str) -> float:
        values = [cell.get(what, np.nan) for cell in found.get((name, n, method), [])]
        return float(np.mean(values)) if values else np.nan

    def text(name: str, n: int, method: str) -> str:
        runs = found.get((name, n, method), [])
        if not runs:
            return ""
        if any(cell.get("stopped") for cell in runs):
            return f"> {max(cell['seconds'] for cell in runs):.0f}"
        seconds, accuracy = (mean(name, n, method, w) for w in ("seconds", "accuracy"))
        return f"{seconds:.1f} · {100 * accuracy:.1f}"

    sizes = sorted({n for _, n, _ in found})
    names = [name for name in SETS if any(key[0] == name for key in found)]
    lines = [
        "# The default beside a grid-searched SVM",
        "",
        "Seconds of the fit · accuracy in percent: of the nearest neighbour for "
        "`Kernelized(LMNN())` and `Kernelized(NCA())` as they come, of the best of nine SVMs by "
        "three folds. Two threads, or two jobs for the grid; `>` marks a fit that was stopped. "
        "`python benchmarks/default.py` runs what is missing in `benchmarks/default.jsonl`.",
        "",
        "Measured on 2 of 16 cores of an x86-64 Xeon, several sets beside each other, one split "
        "each; memory is what the fit adds to the peak of the process, – where loading took more. "
        "Features are standardized, pixels by one scale.",
        "",
        "| set | n | LMNN | NCA | SVM grid | LMNN / SVM, time | LMNN, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios = defaultdict(list)
    for name in names:
        for n in sizes:
            if not any((name, n, method) in found for method in METHODS):
                continue
            ratio = mean(name, n, "LMNN", "seconds") / mean(name, n, "SVM", "seconds")
            if np.isfinite(ratio):
                ratios[n].append(ratio)
            texts = " | ".join(text(name, n, method) for method in METHODS)
            memory = mean(name, n, "LMNN", "megabytes")
            shown = f"{ratio:.2f}" if np.isfinite(ratio) else ""
            held = f"{memory:.0f}" if memory > 0 else "–"
            lines.append(f"| {name} | {n:,} | {texts} | {shown} | {held} |")
    lines += ["", "| n | sets | time LMNN / SVM, geometric mean | accuracy LMNN | NCA | SVM |"]
    lines += ["|---|---|---|---|---|---|"]
    for n in sizes:
        both = [s for s in names if all(np.isfinite(mean(s, n, m, "accuracy")) for m in METHODS)]
        if both:
            means = [np.mean([mean(s, n, m, "accuracy") for s in both]) for m in METHODS]
            typical = np.exp(np.mean(np.log(ratios[n])))
            texts = " | ".join(f"{100 * value:.2f}" for value in means)
            lines.append(f"| {n:,} | {len(both)} | {typical:.2f} | {texts} |")
    lines += ["", "Growth of the time of `Kernelized(LMNN())` as a power of n, by least squares:"]
    for name in names:
        points = [(n, mean(name, n, "LMNN", "seconds")) for n in sizes]
        points = [(n, seconds) for n, seconds in points if np.isfinite(seconds)]
        if len(points) > 2:
            power = np.polyfit(*np.log(np.array(points).T), 1)[0]
            lines.append(f"{name} {power:.2f} ({points[0][0]:,} to {points[-1][0]:,});")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON lines, appended to")
    parser.add_argument("--page", type=Path, help="where to write the tables")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=[*SETS, []])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=[*METHODS, []])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds of one fit at most")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        cell = json.loads(arguments.one)
        print(json.dumps(measured(cell["set"], cell["n"], cell["method"], cell["seed"])))
        return
    if arguments.out is None:
        parser.error("--out is needed: a file of JSON lines, for instance default.jsonl")
    run(arguments)
    text = page(read(arguments.out))
    print(text)
    if arguments.page:
        arguments.page.write_text(text)


if __name__ == "__main__":
    main()
