"""The default as it comes beside a grid-searched SVM: seconds, memory and accuracy at every size.

``python benchmarks/default.py --out default.jsonl`` fits ``Kernelized(LMNN())``,
``Kernelized(NCA())`` and scikit-learn's SVC with a grid of nine and three folds to 500 up to 50,000
points of real sets, each in a process of its own with two threads, the grid with two jobs, or
with as many as ``--threads`` says: on a busy machine one, as threads that wait cost time too. From
10,000 points on one of its 28 fits comes first, that of ``SVC(C=1, gamma=1/d)`` to all points;
where the grid would take longer by it than ``--patience`` says, that is all. Every result is
appended to the file at once, and what is there is not run again. A fit that takes longer than
``--limit`` seconds is stopped and counts as that long. ``--page FILE`` writes the tables.
``--extra FILE.npz`` brings sets that the library has no loader for, as arrays NAME_X and NAME_y.
``--renew SET:N ...`` runs these cells alone, of the methods given, and puts them in the place of
what the file holds of them: ``--renew shuttle:4000 magic:500 --methods LMNN``.
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
EXTRA = ("magic", "fars")  # of KEEL, where --extra brings them
SIZES = (500, 1000, 2000, 4000, 10_000, 50_000)
METHODS = ("LMNN", "NCA", "SVM")
ONE_FIT = 10_000  # from so many points on, one fit of the grid is timed
N_FITS = 28  # nine points of the grid on three folds, and the best on all
PIXELS = ("usps", "mnist")  # one scale for all features; the others are standardized
N_TEST = 2000


def split(name: str, n: int, seed: int, extra: str | None) -> list[np.ndarray]:
    """Training points and labels, test points and labels."""
    from reproduction.datasets import load

    if name in EXTRA:
        if extra is None:
            raise SystemExit(f"{name} needs --extra FILE.npz with {name}_X and {name}_y")
        with np.load(extra) as arrays:
            X, y = arrays[f"{name}_X"], arrays[f"{name}_y"]
    else:
        X, y = load(name, return_X_y=True)
    if len(X) < n + 500:
        raise SystemExit(f"{name} has {len(X)} rows: too few for {n} and a test")
    rows = np.random.RandomState(seed).permutation(len(X))
    y = np.asarray(y)[rows[: n + N_TEST]]
    X = np.asarray(X[rows[: n + N_TEST]], dtype=np.float64)
    train, test = slice(0, n), slice(n, None)
    scale = X[train].std() if name in PIXELS else X[train].std(axis=0)
    X -= X[train].mean(axis=0)
    X /= np.where(scale > 0, scale, 1.0)
    return [X[train], y[train], X[test], y[test]]


def measured(
    name: str, n: int, method: str, seed: int, extra: str | None, jobs: int, patience: float
) -> dict:
    """One fit in this process."""
    from joblib import parallel_config
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    from kernelmetric import LMNN, NCA, Kernelized

    warnings.simplefilter("ignore")
    X, y, X_test, y_test = split(name, n, seed, extra)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu_started = time.perf_counter(), time.process_time()
    more: dict = {}
    whole = True
    if method == "SVM" and n >= ONE_FIT:
        model = SVC(C=1, gamma=1 / X.shape[1]).fit(X, y)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
        whole = N_FITS * cpu <= patience
        started, cpu_started = time.perf_counter(), time.process_time()
    if not whole:
        accuracy, chosen, more = model.score(X_test, y_test), "C=1, gamma=1/d", {"fits": 1}
    elif method == "SVM":
        grid = {"C": [1, 10, 100], "gamma": [g / X.shape[1] for g in (0.1, 1, 10)]}
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        with parallel_config(
            "threading"
        ):  # libsvm lets threads run; processes take seconds to start
            model = GridSearchCV(SVC(), grid, cv=folds, n_jobs=jobs).fit(X, y)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
        accuracy = model.score(X_test, y_test)
        chosen = str(model.best_params_)
    else:
        metric = Kernelized({"LMNN": LMNN, "NCA": NCA}[method](), random_state=0)
        E = metric.fit_transform(X, y)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        judge = KNeighborsClassifier(metric.n_neighbors_ or 1, algorithm="brute").fit(E, y)
        accuracy = judge.score(metric.transform(X_test), y_test)
        chosen = f"{metric.space_.rank_} coordinates, {metric.kernel_!r}"[:200]
        more = {"megabytes": (peak - before) / 1024, "peak": peak / 1024}
    found = {"seconds": seconds, "cpu": cpu, "threads": jobs, "accuracy": accuracy}
    return {**found, "chosen": chosen, **more}


def key_of(cell: dict) -> tuple:
    """What a cell is a result of."""
    return cell["set"], cell["n"], cell["method"], cell["seed"]


def run(arguments: argparse.Namespace) -> None:
    """Every cell that is not there yet, each in a process of its own."""
    wanted = {(name, int(n)) for name, n in (cell.split(":") for cell in arguments.renew)}
    done = {key_of(cell) for cell in read(arguments.out)}
    if wanted:
        arguments.sets = list(dict.fromkeys(name for name, _ in wanted))
        arguments.sizes = sorted({n for _, n in wanted})
        done = {key for key in done if key[:2] not in wanted or key[2] not in arguments.methods}
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    threads = dict.fromkeys(names, str(arguments.threads))
    for n in arguments.sizes:
        for name in arguments.sets:
            for seed in range(arguments.splits):
                for method in arguments.methods:
                    cell = {"set": name, "n": n, "method": method, "seed": seed}
                    if key_of(cell) in done or (wanted and (name, n) not in wanted):
                        continue
                    command = [sys.executable, __file__, "--one", json.dumps(cell)]
                    command += ["--threads", str(arguments.threads)]
                    command += ["--patience", str(arguments.patience)]
                    command += ["--extra", arguments.extra] if arguments.extra else []
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
                        limit = arguments.limit
                        cell |= {"seconds": limit, "cpu": limit, "stopped": True}
                    else:
                        if answer.returncode:
                            print(name, n, method, answer.stderr.strip().splitlines()[-1:])
                            continue
                        cell |= json.loads(answer.stdout.splitlines()[-1])
                    kept = [old for old in read(arguments.out) if key_of(old) != key_of(cell)]
                    lines = [json.dumps(one) + "\n" for one in (*kept, cell)]
                    arguments.out.write_text("".join(lines))
                    print(json.dumps(cell), flush=True)


def read(path: Path) -> list[dict]:
    """What a file of results holds."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


HEAD = """# The default beside a grid-searched SVM

Seconds of the fit · accuracy in percent: of `n_neighbors_` neighbours for `Kernelized(LMNN())` and
`Kernelized(NCA())` as they come, of the best of nine SVMs by three folds. `>` marks a fit that was
stopped. `python benchmarks/default.py --out benchmarks/default.jsonl --page docs/default.md` runs
what is missing in that file and writes this page. Features are standardized, pixels by one scale.
"""
WORDS = """
Two threads each, or two jobs for the grid; 14 fits ran beside each other on 16 cores of an x86-64
Xeon, so that seconds are up to twice those of a quiet machine, for all columns alike. They are
those of the clock. "> x, one of 28 fits" is the time of `SVC(C=1, gamma=1/d)` on all points: the
grid takes longer. Every cell is one split. Memory is what the fit adds to the peak of the process,
– where loading the set took more. From 501 to 1,000 points LMNN keeps a list of impostors where it
is short. How short was chosen with a look at these sets and two others.
"""


def page(cells: list[dict]) -> str:
    """The tables in Markdown."""
    return HEAD + WORDS + tables(cells, "seconds")


def tables(cells: list[dict], clock: str) -> str:
    """Every set and size, the means of each size, and how the time grows."""
    found = defaultdict(list)
    for cell in cells:
        found[cell["set"], cell["n"], cell["method"]].append(cell)

    def mean(name: str, n: int, method: str, what: str) -> float:
        values = [cell.get(what, np.nan) for cell in found.get((name, n, method), [])]
        return float(np.mean(values)) if values else np.nan

    def some(name: str, n: int, method: str, what: str) -> bool:
        return any(cell.get(what) for cell in found.get((name, n, method), []))

    def text(name: str, n: int, method: str) -> str:
        seconds, accuracy = (mean(name, n, method, w) for w in (clock, "accuracy"))
        if not np.isfinite(seconds):
            return ""
        if some(name, n, method, "fits"):
            return f"> {seconds:.1f}, one of {N_FITS} fits"
        if some(name, n, method, "stopped"):
            return f"> {seconds:.0f}"
        return f"{seconds:.1f} · {100 * accuracy:.1f}"

    sizes = sorted({n for _, n, _ in found})
    names = [name for name in (*SETS, *EXTRA) if any(key[0] == name for key in found)]
    lines = ["", "| set | n | LMNN | NCA | SVM grid | LMNN / SVM, time | LMNN, MB |"]
    lines += ["|---|---|---|---|---|---|---|"]
    ratios = defaultdict(list)
    for name in names:
        for n in sizes:
            if not any((name, n, method) in found for method in METHODS):
                continue
            ratio = mean(name, n, "LMNN", clock) / mean(name, n, "SVM", clock)
            bound = some(name, n, "SVM", "fits") or some(name, n, "SVM", "stopped")
            if np.isfinite(ratio) and not bound:
                ratios[n].append(ratio)
            texts = " | ".join(text(name, n, method) for method in METHODS)
            memory = mean(name, n, "LMNN", "megabytes")
            shown = f"{'< ' if bound else ''}{ratio:.2f}" if np.isfinite(ratio) else ""
            if bound and ratio >= 1.0:
                shown = "?"  # one fit is no proof
            held = f"{memory:.0f}" if memory > 0 else "–"
            lines.append(f"| {name} | {n:,} | {texts} | {shown} | {held} |")
    lines += ["", "| n | sets | time LMNN / SVM, geometric mean | largest | LMNN | NCA | SVM |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for n in sizes:
        both = [s for s in names if all(np.isfinite(mean(s, n, m, clock)) for m in ("LMNN", "SVM"))]
        both = [s for s in both if not some(s, n, "SVM", "fits")]
        if both:
            means = [np.mean([mean(s, n, m, "accuracy") for s in both]) for m in METHODS]
            typical = np.exp(np.mean(np.log(ratios[n])))
            texts = " | ".join(f"{100 * v:.2f}" if np.isfinite(v) else "" for v in means)
            largest = max(ratios[n])
            lines.append(f"| {n:,} | {len(both)} | {typical:.2f} | {largest:.2f} | {texts} |")
    powers = []
    for name in names:
        points = [(n, mean(name, n, "LMNN", clock)) for n in sizes]
        points = [(n, seconds) for n, seconds in points if np.isfinite(seconds)]
        if len(points) > 2:
            power = np.polyfit(*np.log(np.array(points).T), 1)[0]
            powers.append(f"{name} {power:.2f} ({points[0][0]:,} to {points[-1][0]:,})")
    if powers:
        grows = "The time of `Kernelized(LMNN())` grows as a power of n, by least squares:"
        lines += ["", grows, f"{'; '.join(powers)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON lines, appended to")
    parser.add_argument("--page", type=Path, help="where to write the tables")
    parser.add_argument("--threads", type=int, default=2, help="of a fit, and jobs of the grid")
    parser.add_argument("--extra", help="a file of further sets: arrays NAME_X and NAME_y")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=[*SETS, *EXTRA, []])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=[*METHODS, []])
    parser.add_argument("--renew", nargs="*", default=[], help="cells to run again, as SET:N")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds of one fit at most")
    parser.add_argument(
        "--patience", type=float, default=30.0, help="CPU seconds that a grid may be foretold"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        cell = json.loads(arguments.one)
        more = (arguments.extra, arguments.threads, arguments.patience)
        print(json.dumps(measured(*key_of(cell), *more)))
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
