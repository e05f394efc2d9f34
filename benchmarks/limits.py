"""Whether fits keep a time limit, and how soon Ctrl-C ends them: learners, searches, predictors.

``python benchmarks/limits.py --out limits.jsonl`` fits each estimator of the table below under
limits of 1, 5 and 30 seconds, each in a process of its own, on points that would take it longer.
It prints how long the fit took, how long the processor worked for it (less, where others use the
machine too), what was kept, and what was said. A fit that took more than 1.2 times its limit has a
star, one that ended by itself before the limit has a dash, and both are counted. Limits of 20
seconds and more get more rows. ``--free`` also fits without a limit, for two minutes at most.

``--interrupts 0.5 2`` sends SIGINT so many seconds after a fit began, and prints how many seconds
later Python had the ``KeyboardInterrupt``; what took more than one second has a star.

``--jobs 4`` fits four at a time; each has one thread then. What stands in ``--out`` already is not
fitted again, and ``--page limits.jsonl`` makes a table of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FREE = 120.0  # seconds that a fit without a limit may take
LONG = 20.0  # seconds from which on a limit gets the second number of rows
KEPT, AT_ONCE = 1.2, 1.0  # what a limit may take, beside it; seconds that Ctrl-C may take

# What is fitted, and on how many points: under a short limit, and under a long one.
ESTIMATORS = {
    "MetricClassifier()": (12_000, 400_000),
    "MetricClassifier(NCA(), cv=5)": (20_000, 60_000),
    "MetricRegressor()": (12_000, 100_000),
    "KernelizedCV(NCA())": (2_000, 4_000),
    "KernelizedCV(LDA())": (10_000, 20_000),
    "KernelizedCV(NCA(), n_jobs=2)": (2_000, 4_000),
    "Kernelized(NCA())": (12_000, 400_000),
    "Kernelized(LMNN())": (100_000, 400_000),
    "Kernelized(MLKR())": (20_000, 100_000),
    "Kernelized(MCML())": (20_000, 100_000),
    "Kernelized(RFM())": (12_000, 100_000),
    "Kernelized(ITML())": (20_000, 100_000),
    "Kernelized(LDA(), 'rbf', KPCA())": (4_000, 12_000),
    "Kernelized(LDA(), 'rbf', KPCA(50))": (20_000, 60_000),
    "Kernelized(LDA(), 'rbf', Nystroem(2000))": (100_000, 150_000),
    "Kernelized(LDA(), 'aligned')": (12_000, 50_000),
    "NCA()": (20_000, 60_000),
    "NCA(solver='minibatch')": (400_000, 2_000_000),
    "MLKR()": (20_000, 60_000),
    "MCML()": (20_000, 60_000),
    "LMNN()": (20_000, 200_000),
    "LMCA(3)": (20_000, 60_000),
    "RFM(max_samples=4000)": (4_000, 4_000),
    "DNE()": (60_000, 200_000),
    "DLA()": (60_000, 200_000),
    "LFDA()": (60_000, 200_000),
    "LPP()": (60_000, 200_000),
    "LDA()": (1_000_000, 4_000_000),
    "RCA()": (1_000_000, 4_000_000),
    "ITML(tol=1e-12, max_iter=10**6)": (20_000, 100_000),
    "MMC(tol=1e-12, max_iter=10**6)": (20_000, 100_000),
    "SDML(tol=1e-12, max_iter=10**6)": (20_000, 100_000),
    "LSML(tol=1e-12, max_iter=10**6)": (20_000, 100_000),
    "SCML(tol=1e-9, max_iter=10**6)": (20_000, 100_000),
    "IdealizedKernel(tol=1e-9)": (20_000, 50_000),
    "IdealizedKernel('rbf')": (400, 1_500),
    "TransductiveDistance()": (20_000, 200_000),
    "TransductiveDistance(n_neighbors=10)": (100_000, 400_000),
    "TransductiveDistance(method='eigenvectors')": (20_000, 60_000),
    "TransductiveRegressor()": (20_000, 50_000),
    "Adapter()": (20_000, 60_000),
    "PLDA(tol=0, max_iter=10**6)": (20_000, 100_000),
    "Drift()": (50_000, 200_000),
    "RecordLinker()": (20_000, 200_000),
    "PairVerifier()": (20_000, 500_000),
    "cross_validate_pairs(ITML())": (20_000, 100_000),
    "compare_with_plain(ITML())": (20_000, 60_000),
    "LeaveOneOutRidge(max_samples=3000)": (4_000, 12_000),
    "KernelAlignment()": (5_000, 20_000),
    "KernelChoice([RBF(0.05), Laplacian(0.1)])": (4_000, 12_000),
    "AlignedScales()": (20_000, 60_000),
    "KPCA()": (4_000, 12_000),
    "KPCA(50)": (20_000, 60_000),
    "Nystroem(2000)": (100_000, 400_000),
    "RandomFeatures(2000)": (100_000, 400_000),
}
# Spaces by themselves, and what judges: Ctrl-C alone ends them.
WITHOUT_LIMIT = ("cross_validate", "compare_with_plain", "KPCA", "Nystroem", "RandomFeatures")


def main() -> None:
    """Fit what was asked for, and count what took too long."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limits", type=float, nargs="*", default=[1.0, 5.0, 30.0])
    parser.add_argument("--interrupts", type=float, nargs="*", default=[])
    parser.add_argument("--free", action="store_true", help="also fit without a limit")
    parser.add_argument("--only", nargs="*", default=[""], help="how names of estimators begin")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--out", type=Path, help="outcomes, a line of JSON for each")
    parser.add_argument("--page", type=Path, help="print a table of such a file")
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.page:
        print("\n".join(page(told(given.page))))
        return
    if given.fit:
        name, *numbers = given.fit
        print(json.dumps(fit(name, *(json.loads(number) for number in numbers))))
        return
    names = [name for name in ESTIMATORS if any(name.startswith(part) for part in given.only)]
    limits = [*given.limits, *[None] * given.free]
    asked = [*itertools.product(names, [None], given.interrupts)]
    limited = [name for name in names if not name.startswith(WITHOUT_LIMIT)]
    asked += [(name, limit, None) for limit in limits for name in limited]
    known = {(row["name"], row["limit"], row["interrupt"]) for row in told(given.out)}
    lock, rows = threading.Lock(), []

    def work(case: tuple[str, float | None, float | None]) -> None:
        row = apart(*case, alone=given.jobs > 1)
        with lock:
            rows.append(row)
            print(*lines(row), sep="\n", flush=True)
            if given.out:
                with given.out.open("a", encoding="utf-8") as file:
                    print(json.dumps(row), file=file, flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(work, [case for case in asked if case not in known]))
    late, early = (sum(mark(row) == sign for row in rows) for sign in "*-")
    print(f"Of {len(rows)}, {late} took too long, and {early} ended by themselves before.")


def told(path: Path | None) -> list[dict[str, Any]]:
    """The outcomes that stand in a file."""
    text = path.read_text(encoding="utf-8") if path and path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def mark(row: dict[str, Any]) -> str:
    """A star for what took too long, a dash for what needed no limit."""
    limit = row["limit"] or FREE
    if not row["seconds"] <= (AT_ONCE if row["interrupt"] else KEPT * limit):
        return "*"
    return "-" if row["by_itself"] and (row["limit"] or row["interrupt"]) else " "


def lines(row: dict[str, Any]) -> list[str]:
    """One line of a fit, and what was said below it."""
    asked = "no limit" if row["limit"] is None else f"{row['limit']:g} s"
    asked = f"^C {row['interrupt']:g} s" if row["interrupt"] else asked
    figures = f"{row['rows']:>9,} {asked:>9} {row['seconds']:7.2f} s {row['worked']:7.2f} s"
    first = f"{mark(row)} {row['name']:46} {figures}  {row['kept']}"
    return [first, *(f"      {message}" for message in row["said"])]


def page(rows: list[dict[str, Any]]) -> list[str]:
    """A table with a line for each estimator."""
    found = {(row["name"], row["limit"], row["interrupt"]): row for row in rows}
    columns = sorted({key[1:] for key in found}, key=lambda key: (key[0] or 1e3, key[1] or 0.0))
    heads = [f"limit {a:g} s" if a else f"Ctrl-C at {b:g} s" for a, b in columns if a or b]
    columns = [key for key in columns if any(key)]
    table = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name in dict.fromkeys(key[0] for key in found):
        cells = []
        for key in columns:
            row = found.get((name, *key))
            sign = "**" if row and mark(row) == "*" else ""
            word = f"{sign}{row['seconds']:.2f}{sign}" if row else ""
            cells.append(f"({word})" if row and mark(row) == "-" else word)
        table.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return table


def apart(name: str, limit: float | None, interrupt: float | None, *, alone: bool) -> Any:
    """The outcome of a fit in a process of its own."""
    n = ESTIMATORS[name][(limit or 0.0) >= LONG]
    row = {"name": name, "limit": limit, "interrupt": interrupt, "rows": n}
    command = [sys.executable, __file__, "--fit", name, *map(json.dumps, (n, limit, interrupt))]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | (dict.fromkeys(names, "1") if alone else {})
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,  # a signal reaches this process alone, unless it has others
    )
    assert process.stdout is not None
    process.stdout.readline()  # it is about to begin
    begun = time.monotonic()
    try:
        if interrupt:
            time.sleep(interrupt)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        written, errors = process.communicate(timeout=30 + 2 * (limit or FREE))
        return row | json.loads(written.splitlines()[-1])
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        kept = "did not end"
    except (IndexError, json.JSONDecodeError):
        kept = f"failed: {' '.join(errors.splitlines()[-1:])}"
    seconds = float("inf") if kept.startswith("failed") else time.monotonic() - begun
    return row | {"seconds": seconds, "worked": seconds, "kept": kept, "said": [], "by_itself": 0}


def fit(name: str, n: int, limit: float | None, interrupt: float | None) -> dict[str, Any]:
    """Fit; how long it took, or how long after the signal it ended, and what was kept."""
    import kernelmetric

    work, estimator = prepared(name, n)
    ended = None

    def note(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print("ready", flush=True)
        begun, worked = time.monotonic(), time.process_time()
        try:
            with kernelmetric.time_limit(limit):
                work()
        except KeyboardInterrupt:
            ended = time.monotonic() - begun
    seconds, worked = time.monotonic() - begun, time.process_time() - worked
    said = [str(w.message) for w in caught if w.category is kernelmetric.TimeLimitWarning]
    if ended is not None and interrupt is not None:
        seconds = ended - interrupt
    by_itself = ended is None if interrupt else not said
    seconds = 0.0 if interrupt and by_itself else seconds
    row = {"seconds": seconds, "worked": worked, "kept": kept(estimator), "said": said}
    return row | {"by_itself": by_itself}


def prepared(name: str, n: int) -> tuple[Callable[[], Any], Any]:
    """What to call, and the estimator that it fits."""
    import numpy as np

    import kernelmetric
    from kernelmetric import evaluation, linkage, retrieval, selection

    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, 20))
    noise = 0.7 * rng.standard_normal(n)
    y = (X[:, 0] * X[:, 1] + noise > 0).astype(int) + 2 * (X[:, 2] + noise > 0.3)
    known = {**vars(kernelmetric)}
    for room in (linkage, retrieval, selection):
        known |= {each: getattr(room, each) for each in room.__all__}
    if name.startswith(("cross_validate_pairs", "compare_with_plain")):
        called = getattr(evaluation, name.partition("(")[0])
        pairs = kernelmetric.Pairs.from_labels(y, per_point=3, random_state=0)
        learner = eval(name.partition("(")[2][:-1], known)  # of the table above
        return lambda: called(learner, X, pairs, random_state=0), learner
    if name == "PairVerifier()":
        pairs = kernelmetric.Pairs.from_labels(y, per_point=3, random_state=0)
        verifier = kernelmetric.PairVerifier(kernelmetric.LDA().fit(X, y))
        return lambda: verifier.calibrate(pairs, X), verifier
    estimator = eval(name, known)  # of the table above
    if name.startswith("RecordLinker"):
        return linked(estimator, rng, n), estimator
    if hasattr(estimator, "bind"):
        return lambda: estimator.bind(X, y), estimator
    if name.startswith("TransductiveDistance"):
        y = np.where(np.arange(n) % 10, -1, y)
    if "MLKR" in name or "Regressor" in name:
        y = np.sin(2 * X[:, 0]) + X[:, 1] + noise
    if name.startswith("TransductiveRegressor"):
        y = np.where(np.arange(n) % 10, np.nan, y)
    if name.startswith(("PLDA", "Drift")):  # vectors, as of a network
        X = rng.standard_normal((n, 256))
        y = rng.randint(0, n // 10, n)
        X += 2 * rng.standard_normal((n // 10, 256))[y]
    if name.startswith("Drift"):
        y = X @ rng.standard_normal((256, 256)) + 0.1 * rng.standard_normal((n, 256))
    if name.startswith("Adapter"):
        pairs = np.column_stack([np.arange(n // 2), n // 2 + np.arange(n // 2)])
        X[n // 2 :] = X[: n // 2] + 0.5 * rng.standard_normal((n // 2, 20))
        return lambda: estimator.fit(X, pairs=pairs), estimator
    return lambda: estimator.fit(X, y), estimator


def linked(estimator: Any, rng: Any, n: int) -> Callable[[], Any]:
    """The fit of a linker on two tables of names."""
    import numpy as np
    import pandas as pd

    letters = np.array(list("abcdefghijklmnoprstuvw"))
    names = ["".join(row) for row in letters[rng.randint(0, len(letters), (n, 12))]]
    left = pd.DataFrame({"name": names, "town": [name[4:9] for name in names], "year": range(n)})
    right = left.assign(name=left["name"].str[1:])
    some = rng.choice(n, 400, replace=False)
    pairs = np.array([[i, i] for i in some[:200]] + [[i, (i + 7) % n] for i in some[200:]])
    same = np.repeat([1, 0], 200)
    return lambda: estimator.fit(left, right, pairs, same)


def kept(estimator: Any) -> str:
    """What a fit has left on an estimator."""
    names = ("n_iter_", "loss_", "n_splits_", "graph_", "lam_")
    for part in (estimator, *(getattr(estimator, at, None) for at in ("metric_", "learner_"))):
        found = {name: getattr(part, name) for name in names if hasattr(part, name)}
        if found:
            return ", ".join(f"{key}={value!r}" for key, value in found.items())
    fitted = any(key.endswith("_") and key[0] != "_" for key in vars(estimator))
    return "fitted" if fitted else "nothing"


if __name__ == "__main__":
    main()
