"""Start a scheduler and two workers on this machine, run a job on them, and stop them."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE = 180  # seconds: a busy machine takes its time to start three programs
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def running(name, *arguments):
    """A program of Dask, which is stopped at the end, come what may."""
    command = [sys.executable, "-m", "dask", name, *arguments]
    program = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | ALONE)
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def address_in(file, scheduler):
    """The address that a scheduler writes when it listens."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if scheduler.poll() is not None:
            sys.exit(f"dask scheduler ended at once, with exit code {scheduler.returncode}.")
        try:
            return json.loads(file.read_text(encoding="utf-8"))["address"]
        except (OSError, ValueError):  # not there yet, or half written
            time.sleep(0.2)
    sys.exit(f"dask scheduler said nothing within {PATIENCE} seconds.")


def main():
    """Compose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--job", type=Path, default=HERE / "job.py")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is stopped stops the others
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        quiet = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"]
        scheduler = stack.enter_context(running("scheduler", *quiet, "--scheduler-file", str(file)))
        address = address_in(file, scheduler)
        print(f"scheduler at {address}", flush=True)
        for number in range(options.workers):
            given = ["--nthreads", "1", "--nworkers", "1", "--name", f"worker-{number}"]
            given += ["--local-directory", folder, "--dashboard-address", ":0"]
            stack.enter_context(running("worker", address, *given))
        done = subprocess.run([sys.executable, str(options.job), address], check=False)
    print("all stopped", flush=True)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
