"""Two versions of the library side by side: how long fits and searches take.

``python benchmarks/engine.py --before PATH`` takes the ``src`` folder of another checkout. Every
case is run by both versions in turn, each time in a process of its own, so that a machine that
slows down slows both; the best time of each is shown, and how far the two results are apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def blobs(n: int, d: int = 20, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Points of overlapping classes."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % classes
    return 2.0 * rng.standard_normal((classes, d))[y] + rng.standard_normal((n, d)), y


def kernelized_lmnn(n: int):
    """LMNN on all principal components of a kernel: a map of n × n."""
    from kernelmetric import KPCA, LMNN, Kernelized

    X, y = blobs(n)
    metric = Kernelized(LMNN(max_iter=15), kernel="rbf", space=KPCA())
    return lambda: metric.fit(X, y).learner_.loss_


def nca(n: int):
    """NCA at a low rank."""
    from kernelmetric import NCA

    X, y = blobs(n, 50)
    return lambda: NCA(20, max_iter=15).fit(X, y).loss_


def lmnn(n: int):
    """LMNN on few features."""
    from kernelmetric import LMNN

    X, y = blobs(n, 50)
    return lambda: LMNN(max_iter=15).fit(X, y).loss_


def neighbours(classes: int):
    """Neighbours of 6,000 points within their classes and outside."""
    from kernelmetric.compute.reductions import class_neighbors

    X, _ = blobs(6000)
    codes = np.arange(len(X)) % classes
    return lambda: sum(
        float(np.sum(class_neighbors(X, codes, 3, same=same)[1])) for same in (True, False)
    )


CASES = {
    "kernelized LMNN, n = 1,000": (kernelized_lmnn, 1000),
    "kernelized LMNN, n = 2,000": (kernelized_lmnn, 2000),
    "NCA, n = 2,000": (nca, 2000),
    "NCA, n = 300": (nca, 300),
    "LMNN, n = 2,000": (lmnn, 2000),
    "LMNN, n = 300": (lmnn, 300),
    "neighbours, 3 classes": (neighbours, 3),
    "neighbours, 1,500 classes": (neighbours, 1500),
}


def measure(case: str) -> dict:
    """The best of three runs of a case, or as many as begin within two seconds."""
    prepare, argument = CASES[case]
    work = prepare(argument)
    warnings.simplefilter("ignore")  # so few iterations do not converge
    times: list[tuple[float, float]] = []
    while len(times) < 3 and sum(seconds for seconds, _ in times) < 2:
        start, cpu = time.perf_counter(), time.process_time()
        value = work()
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    seconds, cpu = min(times)
    return {"seconds": seconds, "cpu": cpu, "value": float(value)}


def run(source: Path, case: str, threads: int) -> dict:
    """A case by the version in a folder, in a process of its own."""
    counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    done = subprocess.run(
        [sys.executable, __file__, "--case", case],
        env={**os.environ, **counts, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the cases, or one of them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the src folder of another checkout")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.case)))
        return
    after = HERE.parent / "src"
    print(f"{'case':28} {'before':>8} {'after':>8} {'ratio':>6} {'CPU':>6} {'difference':>10}")
    for case in (case for case in CASES if options.only in case):
        best = [{"seconds": np.inf}, {"seconds": np.inf}]
        for _ in range(options.rounds):
            for side, source in enumerate((options.before or after, after)):
                best[side] = min(
                    best[side], run(source, case, options.threads), key=lambda row: row["seconds"]
                )
        old, new = best
        difference = abs(new["value"] / old["value"] - 1)
        print(
            f"{case:28} {old['seconds']:8.3f} {new['seconds']:8.3f} "
            f"{old['seconds'] / new['seconds']:6.2f} {old['cpu'] / new['cpu']:6.2f} "
            f"{difference:10.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
