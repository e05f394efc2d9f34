"""Two workers of one core each against one, and against a fit without Dask on two threads.

``python benchmarks/many_machines.py`` runs all parts, less than half an hour in all; ``--only
knn,lmnn`` runs some, and the page keeps what it says of the others. ``--who one`` runs a part on
one worker only, where all three are too long at once: it is done when each of them has run.
Fits of the three take turns, ``--repeats`` times; medians are what counts. Cores of a shared
machine are not alike: with ``--cores 3,5`` every worker keeps to one of two cores, a single one
takes the first and the second in turn, and the fit without Dask has both. Every run adds its times
to a file of JSON lines. ``--page docs/measurements/many_machines.md``
writes the tables of that page from it. The parts are those that the guide speaks of::

    nca        the exact gradient of NCA, five evaluations, 30,000 x 50
    knn        twenty nearest neighbours of every point, 70,000 x 784
    lmnn       five iterations of LMNN, 60,000 x 50
    lmnn_fit   LMNN as it comes, until it ends, on the same points
    nystroem   the fit of 1,000 landmarks, 1,000,000 x 50
    constants  what a task, a byte and a number of work cost: for benchmarks/many_machines_model.py

Points are drawn, in classes that overlap. They lie on the workers before the clock starts. The file
is not called dask.py: Python would take it for the library.
"""

import argparse
import json
import logging
import os
import platform
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from kernelmetric import LMNN, RBF, Nystroem
from kernelmetric.compute import repeatable
from kernelmetric.compute.reductions import nca_loss, nearest_neighbors
from kernelmetric.inputs._methods import CollectionsMixin

HERE = Path(__file__).parent
SHAPES = {
    "nca": (30_000, 50),
    "knn": (70_000, 784),
    "lmnn": (60_000, 50),
    "lmnn_fit": (60_000, 50),
    "nystroem": (1_000_000, 50),
}
TITLES = {
    "nca": "NCA, 5 exact steps",
    "knn": "20 nearest neighbours",
    "lmnn": "LMNN, 5 iterations",
    "lmnn_fit": "LMNN, the whole fit",
    "nystroem": "Nystroem, 1,000 landmarks",
}
CHUNKS = 8
WHO = ("plain", "one", "two")


class Graph(CollectionsMixin, BaseEstimator):
    """Twenty neighbours of every point, as learners and the transductive distance ask for them."""

    def fit(self, X, y=None):
        """Search."""
        self.neighbors_ = nearest_neighbors(X, 20)[0]
        return self


class Steps(CollectionsMixin, BaseEstimator):
    """Five evaluations of the loss of NCA and its gradient, each at another map."""

    def fit(self, X, y):
        """Step."""
        L = np.eye(30, X.shape[1], dtype=X.dtype)
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
        for _ in range(5):
            self.value_, gradient = nca_loss(L, X, y)
            L = L - 0.1 * gradient / np.abs(gradient).max()
        self.components_ = L
        return self


def estimator(part, n_rows):
    return {
        "nca": Steps(),
        "knn": Graph(),
        "lmnn": LMNN(max_iter=5),
        "lmnn_fit": LMNN(),
        "nystroem": Nystroem(
            min(1_000, n_rows // 10), kernel=RBF(gamma=0.01), landmarks="uniform", random_state=0
        ),
    }[part]


def answer(model):
    """A number by which two fits are compared."""
    for name in ("components_", "neighbors_", "projection_", "eigenvalues_"):
        if hasattr(model, name):
            return float(np.linalg.norm(np.asarray(getattr(model, name), dtype=np.float64)))
    return float("nan")


def draw(n_rows, n_features, seed):
    """Ten classes that overlap, in float32."""
    rng = np.random.RandomState(seed)
    centres = np.random.RandomState(7).standard_normal((10, n_features)).astype(np.float32)
    y = rng.randint(10, size=n_rows)
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    return X + 0.7 * centres[y], y


def edges(n_rows):
    return [n_rows * i // CHUNKS for i in range(CHUNKS + 1)]


def whole(n_rows, n_features):
    cuts = edges(n_rows)
    parts = [draw(b - a, n_features, i) for i, (a, b) in enumerate(pairwise(cuts))]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def on_workers(client, n_rows, n_features):
    """The same points as Dask arrays, drawn by the workers that keep them."""
    import dask.array as da
    from dask.distributed import wait

    cuts = edges(n_rows)
    blocks, labels = [], []
    for i, (a, b) in enumerate(pairwise(cuts)):
        future = client.submit(draw, b - a, n_features, i, pure=False)
        X, y = (client.submit(pick, future, k, pure=False) for k in (0, 1))
        blocks.append(da.from_delayed(X, (b - a, n_features), dtype=np.float32))
        labels.append(da.from_delayed(y, (b - a,), dtype=np.int64))
    X, y = client.persist((da.concatenate(blocks), da.concatenate(labels)))
    wait([X, y])
    return X, y


def pick(pair, k):
    return pair[k]


def timed(model, *data):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations are not meant to converge
        model.fit(*data)
    return time.perf_counter() - start, answer(model)


def answer_lines(part, n_rows, n_features):
    """Without Dask: a fit for every line that comes in, and its time as a line that goes out."""
    X, y = whole(int(n_rows), int(n_features))
    timed(estimator(part, 2_000), X[:2_000], y[:2_000])  # what is loaded at the first call
    for _ in sys.stdin:
        print(json.dumps(timed(estimator(part, len(X)), X, y)), flush=True)


@contextmanager
def in_two_threads(part, shape, cores):
    """Such a program, of its own: how many threads BLAS has is settled when it starts."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    command = [sys.executable, __file__, "--plain", part, *map(str, shape)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(command, env=os.environ | threads, **pipes) as program:
        if cores:
            os.sched_setaffinity(program.pid, cores)

        def fit(turn):
            program.stdin.write("\n")
            return json.loads(program.stdout.readline())

        yield fit
        program.stdin.close()


@contextmanager
def on_cluster(part, shape, cores, n_workers):
    """Fits on a cluster that has the points, each worker on one of the cores."""
    with cluster(n_workers) as client:
        small = on_workers(client, 2_000, shape[1])
        timed(estimator(part, 2_000), *small)
        data = on_workers(client, *shape)
        addresses = sorted(client.scheduler_info()["workers"])

        def fit(turn):
            for i, address in enumerate(addresses if cores else ()):
                client.run(keep_to, cores[(turn + i) % len(cores)], workers=[address])
            with client.as_current():  # another cluster may wait for its turn
                return timed(estimator(part, shape[0]), *data)

        yield fit


def keep_to(core):
    """Let all threads of this process run on one core."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), [core])


RUNS = {
    "plain": in_two_threads,
    "one": partial(on_cluster, n_workers=1),
    "two": partial(on_cluster, n_workers=2),
}


def measured(part, shape, who, repeats, cores):
    """Times and answers of each, one fit after the other, in turn: speed changes with time."""
    times = {name: [] for name in who}
    with ExitStack() as stack:
        fits = {name: stack.enter_context(RUNS[name](part, shape, cores)) for name in who}
        for turn in range(repeats):
            for name, fit in fits.items():
                times[name].append(fit(turn))
                print(part, name, times[name][-1], flush=True)
    return times


def times_before(path, part, shape):
    """What was measured of a part on this machine, by whoever ran it, of as many points."""
    found = {}
    for record in records(path):
        alike = record["part"] in (part, f"{part}, unfinished") and record["machine"] == machine()
        if alike and record["shape"] == list(shape):
            found |= {who: record[who] for who in WHO if who in record}
    return found


def among(names):
    """An option that is some of these names, with commas between them."""
    known = names.split(",")

    def parsed(text):
        wanted = text.split(",")
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"Got {unknown[0]!r}, but expected some of {names}.")
        return wanted

    return parsed


@contextmanager
def cluster(n_workers, memory="auto"):
    """So many workers of one thread, and a client of them."""
    from dask.distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    local = LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit=memory,
        silence_logs=logging.CRITICAL,
    )
    with local, Client(local, timeout="120s") as client:
        client.wait_for_workers(n_workers, timeout=120)
        yield client


# --- what a model of many workers needs ----------------------------------------------------------


def constants():
    """Seconds of an empty task, bytes a second between workers, and pairs a second of NCA."""
    found = {}
    with cluster(2) as client:
        client.gather(client.map(empty, range(50), pure=False))
        start = time.process_time()  # of client and scheduler, which live here: not of the machine
        client.gather(client.map(empty, range(2_000), pure=False))
        found["seconds_per_task"] = (time.process_time() - start) / 2_000
        rounds = []
        for i in range(50):
            start = time.perf_counter()
            client.submit(empty, i, pure=False).result()
            rounds.append(time.perf_counter() - start)
        found["seconds_there_and_back"] = min(rounds)
        first, second = client.scheduler_info()["workers"]
        seconds = []
        for _ in range(5):
            array = client.submit(np.ones, 12_500_000, workers=[first], pure=False)
            client.submit(len, array, workers=[first], pure=False).result()
            start = time.perf_counter()
            client.submit(len, array, workers=[second], pure=False).result()
            seconds.append(time.perf_counter() - start)
        found["bytes_per_second"] = 1e8 / min(seconds)
        data = on_workers(client, 8_000, 50)
        before = sum(client.run(sent).values())
        timed(Steps(), *data)
        found["bytes_per_step"] = (sum(client.run(sent).values()) - before) / 5
    X, y = draw(8_000, 50, 0)
    order = np.argsort(y, kind="stable")
    X, y, L = X[order], y[order], np.eye(30, 50, dtype=np.float32)
    with repeatable():
        nca_loss(L, X, y)
        seconds = []
        for _ in range(3):
            start = time.process_time()
            nca_loss(L, X, y)
            seconds.append(time.process_time() - start)
    # operations as the reduction counts them: 6 n^2 r
    found["operations_per_second"] = 6.0 * 8_000**2 * 30 / min(seconds)
    return found


def empty(i):
    return i


def sent(dask_worker):
    return sum(transfer["total"] for transfer in dask_worker.transfer_outgoing_log)


# --- what is kept, and the page ------------------------------------------------------------------


def machine():
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def keep(path, record):
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"machine": machine(), "when": time.strftime("%Y-%m-%d")} | record))
        stream.write("\n")


def records(path):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def latest(path):
    """The last record of every part, constants among them."""
    return {record["part"]: record for record in records(path)}


def middle_ratio(times, others):
    """The median of what fits took beside those that ran next to them."""
    n = min(len(times), len(others))
    return float(np.median(times[:n] / others[:n]))


def table(found):
    lines = [
        "| work | points | one worker, s | two workers, s | gain | without Dask, two threads, s "
        "| two workers beside it | largest difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for part, title in TITLES.items():
        if part not in found:
            continue
        record = found[part]
        times = {who: np.array([s for s, _ in record[who]]) for who in WHO}
        one, two, alone = (np.median(times[who]) for who in ("one", "two", "plain"))
        gain, beside = (
            middle_ratio(times["one"], times["two"]),
            middle_ratio(times["two"], times["plain"]),
        )
        answers = [a for who in WHO for _, a in record[who]]
        spread = np.ptp(answers) / max(np.abs(answers).max(), 1e-300)
        n, d = record["shape"]
        lines.append(
            f"| {title} | {n:,} × {d} | {one:.2f} | {two:.2f} | {gain:.2f} × | {alone:.2f} | "
            f"{100 * (beside - 1):+.0f} % | {spread:.1e} |"
        )
    return lines


def write_page(path, found):
    where = sorted({record["machine"] for part, record in found.items() if part in TITLES})
    if where:
        replace_block(path, "table", [*(f"{name}." for name in where), "", *table(found)])
    if "constants" in found:
        known = found["constants"]
        replace_block(
            path,
            "constants",
            [
                f"A task costs the scheduler {1e3 * known['seconds_per_task']:.2f} ms. One alone "
                f"is back after {1e3 * known['seconds_there_and_back']:.1f} ms. Arrays travel at "
                f"{known['bytes_per_second'] / 1e6:.0f} MB/s between two workers of one machine. "
                f"An exact step of NCA on 8,000 points moves "
                f"{known['bytes_per_step'] / 1e6:.0f} MB between two workers. "
                f"One core does {known['operations_per_second'] / 1e9:.1f} · 10⁹ operations of "
                f"NCA's step a second ({known['machine']}).",
            ],
        )


def replace_block(path, name, lines):
    """Put lines between the two comments that bear a name."""
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition(f"<!-- {name} -->\n")
    _, _, tail = rest.partition(f"<!-- end of {name} -->")
    body = "\n".join(lines)
    path.write_text(
        f"{head}<!-- {name} -->\n{body}\n<!-- end of {name} -->{tail}", encoding="utf-8"
    )


def main():
    if sys.argv[1:2] == ["--plain"]:
        answer_lines(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = ",".join([*SHAPES, "constants"])
    parser.add_argument("--only", type=among(parts), default=parts, help=f"some of {parts}")
    parser.add_argument(
        "--who", type=among(",".join(WHO)), default=",".join(WHO),
        help="plain, one, two: which of these run; times of the others are those of the last run",
    )  # fmt: skip
    parser.add_argument("--rows", type=int, help="points of each part, if not those of the page")
    parser.add_argument("--features", type=int, help="features of each part, likewise")
    parser.add_argument("--repeats", type=int, default=1, help="fits of each, in turn")
    parser.add_argument(
        "--cores", type=lambda text: [int(core) for core in text.split(",")], default=[],
        help="two cores that workers keep to, such as 3,5 (Linux)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=HERE / "many_machines.jsonl")
    parser.add_argument("--page", type=Path, help="write the tables of this page")
    options = parser.parse_args()
    for part in options.only:
        if part == "constants":
            record = constants()
            print(json.dumps(record, indent=1), flush=True)
        else:
            shape = (options.rows or SHAPES[part][0], options.features or SHAPES[part][1])
            times = measured(part, shape, options.who, options.repeats, options.cores)
            # read now: another of them may have run meanwhile, on other cores
            record = {"shape": list(shape)} | times_before(options.out, part, shape) | times
            if not all(who in record for who in WHO):
                keep(options.out, {"part": f"{part}, unfinished"} | record)
                continue
            print(table({part: record})[-1], flush=True)
        keep(options.out, {"part": part} | record)
    if options.page:
        write_page(options.page, latest(options.out))


if __name__ == "__main__":
    main()
