"""What a fit takes beside what its estimate says, for every estimator at three sizes.

``python benchmarks/memory.py`` writes the table of docs/measurements/memory.md, a file of its own.
``--limit 512MB`` instead fits each at growing sizes in a process that may take no more than that,
by a control group where this user may make one, else by ``ulimit -v``, and says how each size
ended: it fitted, or it was refused in a sentence. A process that is killed, or ends in any other
error, makes the command fail.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "measurements" / "_memory.md"
GROUPS = Path("/sys/fs/cgroup/memory")
POINTS, FEATURES = (1_000, 3_000, 9_000), 20
CUBIC = (500, 1_000, 2_000)  # for what takes n³ operations
LIMITED = (1_000, 4_000, 16_000)

ESTIMATORS = {
    "NCA()": ("NCA(max_iter=1)", POINTS),
    "MLKR()": ("MLKR(max_iter=1)", POINTS),
    "MCML()": ("MCML(max_iter=1)", POINTS),
    "LMNN()": ("LMNN(max_iter=1)", POINTS),
    "LMCA(3)": ("LMCA(3, max_iter=1)", POINTS),
    "DNE()": ("DNE()", POINTS),
    "DLA()": ("DLA()", POINTS),
    "LFDA()": ("LFDA()", POINTS),
    "LPP()": ("LPP()", POINTS),
    "LDA()": ("LDA()", POINTS),
    "RCA()": ("RCA()", POINTS),
    "ITML()": ("ITML(max_iter=1)", POINTS),
    "MMC()": ("MMC(max_iter=1)", POINTS),
    "IdealizedKernel()": ("IdealizedKernel(C=10.0, max_iter=10)", POINTS),
    'IdealizedKernel("rbf")': ('IdealizedKernel("rbf", C=10.0, max_iter=5)', (100, 200, 400)),
    "KPCA()": ("KPCA()", CUBIC),
    "KPCA(50)": ("KPCA(50)", POINTS),
    "KernelTrick()": ("KernelTrick()", CUBIC),
    "Nystroem(300)": ("Nystroem(300)", POINTS),
    "RandomFeatures(300)": ("RandomFeatures(300)", POINTS),
    "Kernelized(LMNN())": ("Kernelized(LMNN(max_iter=1))", (500, 2_000, 9_000)),
    "Kernelized(LDA(), space=Nystroem(300))": ("Kernelized(LDA(), space=Nystroem(300))", POINTS),
    "KernelizedCV(LDA())": ("KernelizedCV(LDA(), cv=3)", (200, 400, 800)),
    "TransductiveDistance()": ("TransductiveDistance(lam=10.0)", POINTS),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", help="megabytes, such as 512MB: fit within, or be refused")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--only", default="", help="part of the name of an estimator")
    parser.add_argument("--fit", nargs=2, metavar=("NAME", "N"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.fit[0], int(arguments.fit[1]), arguments.limit)))
        return
    sizes = {
        name: LIMITED if arguments.limit else sizes
        for name, (_, sizes) in ESTIMATORS.items()
        if arguments.only in name
    }
    work = [(name, n) for name, all_n in sizes.items() for n in all_n]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda item: apart(*item, arguments.limit), work))
    rows = {name: [] for name in sizes}
    for (name, _), outcome in zip(work, outcomes, strict=True):
        rows[name].append(outcome)
    if arguments.limit:
        sys.exit(tell_limited(rows, arguments.limit))
    text = page(rows)
    print(text)
    if not arguments.only:
        PAGE.write_text(text, encoding="utf-8")


def apart(name, n, limit):
    """Fit in a process of its own, of two threads."""
    command = [sys.executable, __file__, "--fit", name, str(n)]
    command += ["--limit", limit] if limit else []
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)
    out, errors = process.communicate()
    group = GROUPS / f"kernelmetric-{process.pid}"
    if group.exists():
        group.rmdir()
    print(f"{name}, {n} points: exit {process.returncode}", file=sys.stderr, flush=True)
    if process.returncode:
        return {"n": n, "error": (errors.strip().splitlines() or ["killed"])[-1]}
    return {"n": n, **json.loads(out.splitlines()[-1])}


def fit(name, n, limit):
    if limit:
        keep_within(limit)
    import numpy as np

    import kernelmetric

    rng = np.random.RandomState(0)
    estimator = eval(ESTIMATORS[name][0], vars(kernelmetric))
    warnings.simplefilter("ignore")
    estimator.fit(*data(name, 60, rng))  # what is imported late, once
    X, y = data(name, n, rng)
    if limit:
        try:
            estimator.fit(X, y)
        except MemoryError as error:
            return {"refused": str(error)}
        return {"refused": None}
    estimate = estimator.estimate_memory(n, FEATURES)
    tracemalloc.start()
    estimator.fit(X, y)
    return {"estimate": estimate, "peak": tracemalloc.get_traced_memory()[1]}


def data(name, n, rng):
    y = rng.permutation(n) % 3
    X = rng.standard_normal((n, FEATURES))
    X[:, :2] += y[:, None]
    if name.startswith("MLKR"):
        return X, y.astype(float)
    if name.startswith("Transductive"):
        y[rng.permutation(n)[30:]] = -1
    return X, y


def keep_within(limit):
    """Let this process take so many bytes and no more, from its start on, as a container does."""
    n_bytes = int(limit.removesuffix("MB")) * 10**6
    try:
        group = GROUPS / f"kernelmetric-{os.getpid()}"
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(n_bytes))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, resource.RLIM_INFINITY))


def page(rows):
    lines = [
        "| fit | points | estimate MB | measured MB | estimate / measured |",
        "|---|---|---|---|---|",
    ]
    for name, outcomes in rows.items():
        for o in outcomes:
            if "error" in o:
                raise SystemExit(f"{name} on {o['n']} points failed: {o['error']}")
            ratio = o["estimate"] / o["peak"]
            figures = f"{o['estimate'] / 1e6:.1f} | {o['peak'] / 1e6:.1f} | {ratio:.2f}"
            lines.append(f"| `{name}` | {o['n']:,} | {figures} |")
    return "\n".join(lines) + "\n"


def tell_limited(rows, limit):
    failed = 0
    for name, outcomes in rows.items():
        for o in outcomes:
            failed += "error" in o
            end = f"FAILED: {o['error']}" if "error" in o else o["refused"] or "fitted"
            print(f"{name:40} {o['n']:7,} within {limit}: {end}")
    return int(failed > 0)


if __name__ == "__main__":
    main()
