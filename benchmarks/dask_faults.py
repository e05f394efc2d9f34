"""A worker is killed at random moments of a fit on Dask arrays, which ends with the same numbers.

Every round starts a fit on a ``LocalCluster`` of processes, and sends SIGKILL to one of the workers
at a random moment of the time that an undisturbed fit takes. The victim is drawn, too: it may be
the worker that runs the fit. Prints when and whom, how long the fit took, and how far its map is
from that of a fit in this process.

    python benchmarks/dask_faults.py --kills 10
"""

import argparse
import os
import signal
import threading
import time
import warnings
from contextlib import suppress

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from kernelmetric import NCA

LEARNER = NCA(5, max_iter=30, tol=0, early_stopping=False)


def points(n, d=20):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int) + (X[:, 2] > 0.3)


def whose(client):
    """Process numbers of the workers, and that of the one which runs the fit."""

    def runs_the_fit(dask_worker):
        return any("kernelmetric-fit" in str(key) for key in dask_worker.state.tasks)

    pids, runs = client.run(os.getpid), client.run(runs_the_fit)
    return list(pids.values()), [pids[address] for address in pids if runs.get(address)]


def killed_at(client, moment, rng, story):
    """Kill one of the workers so many seconds from now."""
    pids, _ = whose(client)  # known before: a busy worker answers late
    victim = int(rng.choice(pids))

    def kill():
        try:
            story["driver"] = victim in whose(client)[1]
        finally:
            story["late"] = story.get("ended", False)
            os.kill(victim, signal.SIGKILL)

    timer = threading.Timer(moment, kill)
    timer.start()
    return timer


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = points(options.points)
    dX = da.from_array(X, chunks=(len(X) // 5, X.shape[1]))
    dy = da.from_array(y, chunks=len(X) // 3)
    rng = np.random.RandomState(options.seed)
    here = NCA(**LEARNER.get_params()).fit(X, y)
    same = 0
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        NCA(**LEARNER.get_params()).fit(dX, dy)
        usual = time.perf_counter() - start
        print(f"undisturbed: {usual:.1f} s", flush=True)
        number = 0
        while number < options.kills:
            with suppress(TimeoutError):  # of a machine too busy to start one
                client.wait_for_workers(3, timeout=60)
            if len(client.nthreads()) < 2:
                cluster.scale(len(cluster.workers) + 1)
                client.wait_for_workers(2)
            moment, story = rng.uniform(0, usual), {}
            timer = killed_at(client, moment, rng, story)
            start = time.perf_counter()
            there = NCA(**LEARNER.get_params()).fit(dX, dy)
            story["ended"], seconds = True, time.perf_counter() - start
            timer.join()
            if story["late"]:  # the fit was faster than the first one: it does not count
                usual = min(usual, seconds)
                continue
            number += 1
            apart = float(np.max(np.abs(there.components_ - here.components_)))
            apart /= float(np.max(np.abs(here.components_)))
            same += apart <= 1e-8
            who = "the worker of the fit" if story.get("driver") else "another worker"
            print(
                f"kill {number}: {who} after {moment:.1f} s; the fit took {seconds:.1f} s, "
                f"its map is off by {apart:.1e}",
                flush=True,
            )
        print(f"{same} of {options.kills} fits ended with the same map")
        left = [key for key in cluster.scheduler.tasks if "kernelmetric" in str(key)]
        print(f"tasks left behind: {len(left)}")


if __name__ == "__main__":
    main()
