"""Whether fits keep a time limit, and how soon Ctrl-C ends them, for every learner and search.

``python benchmarks/limits.py`` fits each estimator under limits of one and of five seconds, each in
a process of its own, on points that would take it far longer. It prints how long the fit took, how
long the processor worked for it (less, where others use the machine too), what was kept, and what
was said. A fit that took more than 1.2 times its limit and half a second beside
is marked with a star, and counted. ``--limits 30`` is for those that would take longer than that
on a usual machine. ``--free`` also fits without a limit, for two minutes at most.
``--interrupt 2`` sends SIGINT two seconds after a fit began, and prints how many seconds later
Python had the ``KeyboardInterrupt``; what took more than one second is marked.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import warnings
from typing import Any

FREE = 120  # seconds that a fit without a limit may take

# What is fitted, and on how many points. Those for which only "far too many" will do have the cost
# of their first step beside.
ESTIMATORS = {
    "NCA()": 20_000,
    "NCA(solver='minibatch')": 400_000,
    "MLKR()": 20_000,
    "MCML()": 20_000,
    "LMNN()": 20_000,
    "LMCA(3)": 20_000,
    "DNE()": 60_000,
    "DLA()": 60_000,
    "LFDA()": 60_000,
    "LPP()": 60_000,
    "LDA()": 1_000_000,
    "RCA()": 1_000_000,
    "RFM(max_samples=4000)": 4_000,
    "ITML(tol=1e-12, max_iter=10**6)": 20_000,
    "MMC(tol=1e-12, max_iter=10**6)": 20_000,
    "SDML(tol=1e-12, max_iter=10**6)": 20_000,
    "IdealizedKernel(tol=1e-9)": 20_000,
    "LSML(tol=1e-12, max_iter=10**6)": 20_000,
    "SCML(tol=1e-9, max_iter=10**6)": 20_000,
    "Kernelized(NCA())": 12_000,
    "Kernelized(LMNN())": 100_000,
    "Kernelized(MLKR())": 20_000,
    "Kernelized(MCML())": 20_000,
    "Kernelized(RFM())": 12_000,
    "Kernelized(ITML())": 20_000,
    "Kernelized(LDA(), 'rbf', KPCA())": 4_000,
    "Kernelized(LDA(), 'rbf', KPCA(50))": 20_000,
    "Kernelized(LDA(), 'rbf', Nystroem(2000))": 100_000,
    "Kernelized(LDA(), 'aligned')": 12_000,
    "KernelizedCV(NCA())": 2_000,
    "KernelizedCV(LDA())": 10_000,
    "KernelizedCV(NCA(), n_jobs=2)": 2_000,
    "MetricClassifier()": 12_000,
    "MetricClassifier(NCA(), cv=5)": 20_000,
    "MetricRegressor()": 12_000,
    "TransductiveDistance()": 20_000,
    "TransductiveDistance(n_neighbors=10)": 100_000,
    "TransductiveRegressor()": 20_000,
    "Adapter()": 20_000,
    "IdealizedKernel('rbf')": 400,
    "LeaveOneOutRidge(max_samples=3000)": 4_000,
    "AlignedScales()": 20_000,
    "RecordLinker()": 20_000,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limits", type=float, nargs="*", default=[1.0, 5.0], help="seconds")
    parser.add_argument("--interrupt", type=float, help="seconds after which SIGINT is sent")
    parser.add_argument("--free", action="store_true", help="also fit without a limit")
    parser.add_argument("--only", nargs="*", default=[""], help="how names of estimators begin")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.fit, arguments.limit, arguments.interrupt)))
        return
    names = [name for name in ESTIMATORS if any(name.startswith(part) for part in arguments.only)]
    limits = [None] if arguments.interrupt else [*[None] * arguments.free, *arguments.limits]
    n_late = 0
    for name in names:
        for limit in limits:
            found = apart(name, limit, arguments.interrupt)
            allowed = 1.0 if arguments.interrupt else 1.2 * (limit or FREE) + 0.5
            late = not found["seconds"] <= allowed
            n_late += late
            tell(name, limit, found, "*" if late else " ")
    print(f"{n_late} of {len(names) * len(limits)} took too long")


def tell(name: str, limit: float | None, found: dict[str, Any], mark: str) -> None:
    """Print one line, and what was said below it."""
    asked = "no limit" if limit is None else f"{limit:g} s"
    print(
        f"{mark} {name:46} {ESTIMATORS[name]:>9,} {asked:>9} {found['seconds']:7.2f} s"
        f" {found.get('worked', float('nan')):7.2f} s"
        f"  {found['kept']}",
        *(f"      {message}" for message in found["said"]),
        sep="\n",
        flush=True,
    )


def apart(name: str, limit: float | None, interrupt: float | None) -> dict[str, Any]:
    """The outcome of a fit in a process of its own."""
    command = [sys.executable, __file__, "--fit", name]
    command += [] if interrupt is None else ["--interrupt", str(interrupt)]
    command += [] if limit is None else ["--limit", str(limit)]
    seconds = FREE if limit is None else 30 + 2 * limit
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    begun = time.monotonic()
    try:
        process.stdout.readline()  # it is about to begin
        if interrupt:
            time.sleep(interrupt)
            process.send_signal(signal.SIGINT)
        written, _ = process.communicate(timeout=seconds)
        return json.loads(written.splitlines()[-1])
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"seconds": time.monotonic() - begun, "kept": "did not end", "said": []}
    except (IndexError, json.JSONDecodeError):
        return {"seconds": float("inf"), "kept": "failed", "said": []}


def fit(name: str, limit: float | None, interrupt: float | None) -> dict[str, Any]:
    """Fit; how long it took, or how long after the signal it ended, and what was kept."""
    import kernelmetric

    work, estimator = prepared(name)
    said: list[str] = []
    signalled: list[float] = []

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
            signalled.append(time.monotonic() - begun - interrupt)
    worked = time.process_time() - worked
    seconds = signalled[0] if signalled else time.monotonic() - begun
    said = [str(w.message) for w in caught if w.category is kernelmetric.TimeLimitWarning]
    if interrupt and not signalled:
        return {"seconds": seconds, "kept": "ended before", "said": said}
    return {"seconds": seconds, "worked": worked, "kept": kept(estimator), "said": said}


def prepared(name: str) -> tuple[Any, Any]:
    """What to call, and the estimator that it fits."""
    import numpy as np

    import kernelmetric
    from kernelmetric.linkage import RecordLinker

    n = ESTIMATORS[name]
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, 20))
    noise = 0.7 * rng.standard_normal(n)
    y = (X[:, 0] * X[:, 1] + noise > 0).astype(int) + 2 * (X[:, 2] + noise > 0.3)
    known = {**vars(kernelmetric), "RecordLinker": RecordLinker}
    estimator = eval(name, known)  # of the table above
    if isinstance(estimator, RecordLinker):
        return linked(estimator, rng, n), estimator
    if hasattr(estimator, "bind"):
        return lambda: estimator.bind(X, y), estimator
    if isinstance(estimator, kernelmetric.TransductiveDistance):
        y = np.where(np.arange(n) % 10, -1, y)
    if "MLKR" in name or "Regressor" in name:
        y = np.sin(2 * X[:, 0]) + X[:, 1] + noise
    if isinstance(estimator, kernelmetric.TransductiveRegressor):
        y = np.where(np.arange(n) % 10, np.nan, y)
    if isinstance(estimator, kernelmetric.Adapter):
        pairs = np.column_stack([np.arange(n // 2), n // 2 + np.arange(n // 2)])
        X[n // 2 :] = X[: n // 2] + 0.5 * rng.standard_normal((n // 2, 20))
        return lambda: estimator.fit(X, pairs=pairs), estimator
    return lambda: estimator.fit(X, y), estimator


def linked(estimator: Any, rng: Any, n: int) -> Any:
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
