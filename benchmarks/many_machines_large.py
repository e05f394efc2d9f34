"""A table larger than the memory of its workers: fit and transform, from Parquet to Parquet.

``python benchmarks/many_machines_large.py`` draws 2 * 10^7 rows of 50 numbers (4 GB) in pieces,
starts a scheduler and two workers of 2 GB as programs of their own, fits
``Kernelized(NCA(10, solver="minibatch"), space=Nystroem(1000))`` and writes the coordinates of all
rows. It reports seconds, and the most memory that each process ever had: this is what the kernel
counts (VmHWM), asked once a second, so a worker that is started anew is seen too. ``--rows 100000``
makes a small version; ``--folder`` keeps the drawn files for the next run.

The result is a line in a file of JSON lines; ``--page`` writes the table of the page from it.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

N_FEATURES = 50
PATIENCE = 300


# --- the table ----------------------------------------------------------------------------------


def draw(folder, n_rows, rows_per_file):
    """Ten classes on curved sheets, in files that no process holds together."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{j:02d}" for j in range(N_FEATURES)]
    mix = np.random.RandomState(7).standard_normal((8, N_FEATURES)).astype(np.float32)
    for number, start in enumerate(range(0, n_rows, rows_per_file)):
        path = folder / f"rows-{number:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(number)
        n = min(rows_per_file, n_rows - start)
        y = rng.integers(10, size=n, dtype=np.int32)
        hidden = rng.standard_normal((n, 8), dtype=np.float32)
        hidden[:, 0] += y % 5
        hidden[:, 1] = hidden[:, 0] ** 2 / 4 + (y // 5)
        X = hidden @ mix + rng.standard_normal((n, N_FEATURES), dtype=np.float32)
        table = pa.table({name: X[:, j] for j, name in enumerate(names)} | {"y": y})
        half = path.with_suffix(".half")
        pq.write_table(table, half, compression="none", use_dictionary=False)
        half.rename(path)


# --- the job, in a program of its own ------------------------------------------------------------


def job(address, folder, out, options):
    """Fit and transform; seconds of both, and what was learned, as JSON on standard output."""
    import dask.dataframe as dd
    import pyarrow.parquet as pq
    from dask.distributed import Client

    from kernelmetric import NCA, Kernelized, Nystroem

    files = sorted(Path(folder).glob("*.parquet"))
    with Client(address, timeout=f"{PATIENCE}s") as client:
        client.wait_for_workers(options.workers, timeout=PATIENCE)
        frame = dd.read_parquet([str(file) for file in files], blocksize=None)
        lengths = [pq.read_metadata(file).num_rows for file in files]
        names = [name for name in frame.columns if name != "y"]
        X = frame[names].to_dask_array(lengths=lengths)
        y = frame["y"]  # Dask 2026.8 loses the chunks of a column that to_dask_array has made
        learner = NCA(options.components, solver="minibatch", max_iter=options.passes)
        space = Nystroem(options.landmarks, random_state=0)
        metric = Kernelized(learner, options.kernel, space, random_state=0)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some passes are not meant to converge
            metric.fit(X, y)
        fitted = time.perf_counter()
        Z = metric.transform(X)
        columns = [f"z{j}" for j in range(Z.shape[1])]
        dd.from_dask_array(Z, columns=columns).to_parquet(str(out), write_index=False)
        done = time.perf_counter()
    found = {
        "fit_seconds": fitted - start,
        "transform_seconds": done - fitted,
        "kernel": repr(metric.kernel_),
        "rank": int(metric.space_.rank_),
        "components": int(Z.shape[1]),
    }
    print(json.dumps(found))


# --- programs, and what they take ----------------------------------------------------------------


@contextmanager
def running(peaks, name, command):
    """A program that is stopped at the end, watched with all that it starts."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # A forked worker has the name of what it is forked from: only a spawned one can be told.
    spawned = {"DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "spawn"}
    hidden = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    streams = {"stdout": subprocess.PIPE, "text": True} if name == "client" else hidden
    program = subprocess.Popen(command, env=os.environ | threads | spawned, **streams)
    peaks.watch(name, program.pid)
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


class Peaks:
    """The most memory of processes and of their children, asked once a second."""

    def __init__(self):
        self.most, self._roots, self._over = {}, {}, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    def watch(self, name, pid):
        """Look at a process from now on."""
        self._roots[name] = pid

    def _run(self):
        while not self._over.wait(1.0):
            self.look()

    def look(self):
        """Ask the system for all of them."""
        import psutil

        for name, pid in list(self._roots.items()):
            try:
                root = psutil.Process(pid)
                family = [root, *root.children(recursive=True)]
            except psutil.Error:
                continue
            for process in family:
                try:
                    words = " ".join(process.cmdline())
                except psutil.Error:
                    continue
                kind = self._kind(name, process.pid == pid, words)
                if kind is not None:
                    key = f"{kind}, process {process.pid}"
                    self.most[key] = max(self.most.get(key, 0), peak_of(process))

    @staticmethod
    def _kind(name, first, words):
        if not name.startswith("worker"):
            return name if first else None
        if first:
            return f"nanny of {name}"
        return name if "spawn_main" in words else None  # beside it, Python's tracker of resources


def peak_of(process):
    """Bytes: what the kernel counted, or where it does not tell, what there is now."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])
    except (OSError, TypeError):
        try:
            return process.memory_info().rss
        except Exception:
            return 0


def address_in(file):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            return json.loads(file.read_text(encoding="utf-8"))["address"]
        except (OSError, ValueError):
            time.sleep(0.2)
    sys.exit("dask scheduler did not start.")


def measure(options, folder, out, scratch):
    """Start all, run the job, and stop all; its result with the peaks."""
    dask = [sys.executable, "-m", "dask"]
    quiet = ["--dashboard-address", ":0"]
    with Peaks() as peaks, ExitStack() as stack:
        file = scratch / "scheduler.json"
        given = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file), *quiet]
        stack.enter_context(running(peaks, "scheduler", [*dask, "scheduler", *given]))
        address = address_in(file)
        for number in range(options.workers):
            given = ["--nthreads", str(options.threads), "--nworkers", "1", *quiet]
            given += ["--memory-limit", options.memory, "--local-directory", str(scratch)]
            command = [*dask, "worker", address, *given]
            stack.enter_context(running(peaks, f"worker {number}", command))
        command = [sys.executable, __file__, "--job", address, str(folder), str(out), *sys.argv[1:]]
        client = stack.enter_context(running(peaks, "client", command))
        try:
            said, _ = client.communicate()
        finally:  # of a job that was stopped, the memory is what one wants to know
            peaks.look()
            print(json.dumps(peaks.most, indent=1), flush=True)
        if client.returncode:
            sys.exit(f"The job ended with exit code {client.returncode}; its error is above.")
    return json.loads(said.splitlines()[-1]) | {"peaks": peaks.most}


def lines_of(record):
    """The table of the page."""
    lines = [
        f"{record['machine']}; {record['workers']} workers of {record['memory']} and "
        f"{record['threads']} threads; {record['rows']:,} × {N_FEATURES} float32 in "
        f"{record['files']} files, {record['gigabytes']:.1f} GB; {record['landmarks']} landmarks, "
        f"{record['passes']} passes of NCA to {record['components']} coordinates. The fit took "
        f"{record['fit_seconds']:.0f} s, the transform to Parquet "
        f"{record['transform_seconds']:.0f} s.",
        "",
        "| process | most memory, MB |",
        "|---|---|",
    ]
    for key, value in record["peaks"].items():
        lines.append(f"| {key.partition(', process')[0]} | {value / 1e6:.0f} |")
    return lines


def main():
    from many_machines import keep, latest, machine, replace_block

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rows-per-file", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of every worker")
    parser.add_argument("--memory", default="2GB", help="of every worker")
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--passes", type=int, default=1, help="of NCA over all rows, at most")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--folder", type=Path, help="of the drawn files, which are kept there")
    parser.add_argument("--out", type=Path, default=HERE / "many_machines.jsonl")
    parser.add_argument("--page", type=Path, help="write the table of this page")
    if sys.argv[1:2] in (["--job"], ["--draw"]):
        kind, *places = sys.argv[1:5] if sys.argv[1] == "--job" else sys.argv[1:3]
        options = parser.parse_args(sys.argv[len(places) + 2 :])
        if kind == "--job":
            job(*places, options)
        else:
            draw(Path(places[0]), options.rows, options.rows_per_file)
        return
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the programs are to be stopped too
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "rows"
        start = time.perf_counter()
        subprocess.run([sys.executable, __file__, "--draw", str(folder), *sys.argv[1:]], check=True)
        files = sorted(folder.glob("*.parquet"))
        size = sum(file.stat().st_size for file in files)
        print(f"drawn {size / 1e9:.2f} GB in {time.perf_counter() - start:.0f} s", flush=True)
        found = measure(options, folder, Path(scratch) / "coordinates", Path(scratch))
    names = ("rows", "workers", "threads", "memory", "landmarks", "passes")
    record = {name: getattr(options, name) for name in names} | found
    record |= {"part": "large", "files": len(files), "gigabytes": size / 1e9, "machine": machine()}
    print("\n".join(lines_of(record)), flush=True)
    keep(options.out, record)
    if options.page:
        replace_block(options.page, "large", lines_of(latest(options.out)["large"]))


if __name__ == "__main__":
    main()
