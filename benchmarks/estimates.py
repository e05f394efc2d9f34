"""What is foretold of a fit beside what it takes: ``estimate_time`` and ``estimate_memory``.

``python benchmarks/estimates.py --out estimates.jsonl`` fits the metrics and predictors of the
table below at several sizes, each fit in a process of its own that is pinned to two cores and has
as many threads. The tables are those of ``size.py``: 30 columns, five classes; regression predicts
a number of three of them. A row of the result has the seconds foretold and taken, the megabytes
foretold, where the estimator foretells them, and how far the process grew in the fit.
``--jobs 4 --first 0`` takes four at a time on the cores 0 to 7. What stands in the file already is
not fitted again; ``--page estimates.jsonl`` prints a table, in which a star marks what is not
within a factor of two.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import resource
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

CORES = 2
SIZES = (1_000, 4_000, 16_000, 64_000)
LARGE = (1_000, 16_000, 100_000, 1_000_000)  # of what is recommended for any size
ESTIMATORS = {
    "Kernelized(LMNN())": LARGE,
    "MetricClassifier()": LARGE,
    "MetricRegressor()": SIZES,
    "Kernelized(NCA())": SIZES,
    "Kernelized(LDA())": SIZES,
    "Kernelized(MLKR())": SIZES,
    "Kernelized(MCML())": SIZES[:3],
    "Kernelized(LMNN(), 'aligned')": SIZES[:3],
    "Kernelized(NCA(), 'rbf', KPCA(50))": SIZES[:3],
    "Kernelized(NCA(), 'rbf', Nystroem(500))": SIZES,
    "MetricClassifier(LMNN())": SIZES[:3],
    "MetricClassifier(NCA(), cv=3)": SIZES[:2],
}
FACTOR = 2.0


def main() -> None:
    """Fit what is not in the file, or print its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("estimates.jsonl"))
    parser.add_argument("--only", nargs="*", default=[""], help="how names of estimators begin")
    parser.add_argument("--most", type=int, default=10**7, help="rows")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--first", type=int, default=0, help="the first core that they may have")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        print(json.dumps(fit(given.fit[0], int(given.fit[1]))))
        return
    if given.page:
        print("\n".join(page(told(given.page))))
        return
    known = {(row["name"], row["n"]) for row in told(given.out)}
    names = [name for name in ESTIMATORS if any(name.startswith(part) for part in given.only)]
    cases = [(name, n) for name in names for n in ESTIMATORS[name] if n <= given.most]
    cases = sorted(set(cases) - known, key=lambda case: -case[1])  # the longest first
    lanes: queue.Queue[int] = queue.Queue()
    for lane in range(given.jobs):
        lanes.put(given.first + CORES * lane)

    def work(case: tuple[str, int]) -> None:
        lane = lanes.get()
        row = apart(*case, lane)
        lanes.put(lane)
        print(row, flush=True)
        with given.out.open("a", encoding="utf-8") as file:
            print(json.dumps(row), file=file, flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(work, cases))


def told(path: Path) -> list[dict[str, Any]]:
    """The rows that stand in a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def apart(name: str, n: int, core: int) -> dict[str, Any]:
    """A fit in a process of its own, on two cores."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    cores = set(range(core, core + CORES)) & os.sched_getaffinity(0)
    found = subprocess.run(
        [sys.executable, __file__, "--fit", name, str(n)],
        env=os.environ | dict.fromkeys(threads, str(CORES)),
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
        capture_output=True,
        text=True,
    )
    if found.returncode:
        return {"name": name, "n": n, "error": found.stderr.splitlines()[-1]}
    return json.loads(found.stdout.splitlines()[-1])


def fit(name: str, n: int) -> dict[str, Any]:
    """The estimates, then the fit, in this process."""
    import kernelmetric
    from size import drawn

    warnings.simplefilter("ignore")
    estimator = eval(name, vars(kernelmetric))  # of the table above
    X, y = drawn(n, 1)
    if "MLKR" in name or "Regressor" in name:
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * np.random.default_rng(0).normal(size=n)
    row: dict[str, Any] = {"name": name, "n": n}
    row["foretold_seconds"] = round(estimator.estimate_time(*X.shape), 2)
    if hasattr(estimator, "estimate_memory"):
        row["foretold_mb"] = round(estimator.estimate_memory(*X.shape) / 1e6)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    estimator.fit(X, y)
    row["seconds"] = round(time.perf_counter() - begun, 2)
    row["mb"] = round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
    return row


def page(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each fit, estimators together."""
    lines = ["| | rows | seconds | foretold | MB | foretold |", "|---" * 6 + "|"]
    for row in sorted(rows, key=lambda row: (list(ESTIMATORS).index(row["name"]), row["n"])):
        cells = [row.get("error", "")] * 4
        if "error" not in row:
            cells = [f"{row['seconds']:.1f}", compared(row, "seconds")]
            cells += [f"{row['mb']:,}", compared(row, "mb")]
        lines.append(f"| `{row['name']}` | {row['n']:,} | " + " | ".join(cells) + " |")
    return lines


def compared(row: dict[str, Any], what: str) -> str:
    """What was foretold, with a star where it is not within a factor of two."""
    foretold, true = row.get(f"foretold_{what}"), max(row[what], 1e-9)
    if foretold is None:
        return ""
    star = "" if 1 / FACTOR <= foretold / true <= FACTOR else " *"
    return f"{foretold:,.1f}{star}" if what == "seconds" else f"{foretold:,}{star}"


if __name__ == "__main__":
    main()
