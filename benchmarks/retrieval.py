"""Retrieval with given vectors: recall of new matches after learning from some pairs.

``python benchmarks/retrieval.py run`` writes one line of JSON for each set, number of dimensions,
method, number of pairs and draw into ``retrieval.jsonl``, and goes on where it stopped. ``table``
prints what the page shows. ``learners`` has learners from pairs that match or not. ``large`` times
one fit to made vectors, ``latency`` the map of one query. ``--quick`` takes one set, 40 dimensions
and one draw; ``--jobs`` shares the draws among processes of one thread each.

The sets of products lie in ``$KERNELMETRIC_DATA/linkage``: their vectors are a truncated SVD of
idf-weighted 2-4-grams, normalised. Pairs come from the published training and validation matches,
and recall counts the published test matches among all documents; "apart" does so without the
other published matches of a query, which are no faults where they come first. Of the digits and of
MNIST's test images, pairs are of one class, and a document of the query's class is right.
``--methods head`` needs torch and pytorch-metric-learning.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed, wait
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from kernelmetric import ITML, MMC, RCA, IdealizedKernel, Pairs
from kernelmetric.retrieval import Adapter

FILE = Path(__file__).with_suffix(".jsonl")
PRODUCTS = ("abt_buy", "amazon_google", "walmart_amazon")
CLASSES = ("digits", "mnist")
COUNTS = (50, 200, 800, 0)  # pairs; 0 is all
DRAWS = 10
Maps = tuple[np.ndarray, np.ndarray]


class Task(NamedTuple):
    """Two tables of vectors, pairs to learn from, and what is right for queries left out."""

    Q: np.ndarray
    D: np.ndarray
    pairs: np.ndarray
    asked: np.ndarray
    right: Callable[[np.ndarray], np.ndarray]  # of ranked documents, for each query asked
    published: np.ndarray | None = None  # all matches, learned or asked for or neither


# --- data -----------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def products(name: str, dimensions: int) -> dict[str, np.ndarray]:
    """Vectors of both tables and the published matches, kept for the next call."""
    kept = Path(tempfile.gettempdir()) / f"kernelmetric-retrieval-{name}-{dimensions}.npz"
    if not kept.exists():
        import pandas as pd

        folder = Path(os.environ["KERNELMETRIC_DATA"]) / "linkage" / name
        read = {"dtype": str, "keep_default_na": False}
        tables = [pd.read_csv(folder / f"{side}.csv.gz", **read) for side in ("left", "right")]
        texts = [t.drop(columns="id").agg(" ".join, axis=1).tolist() for t in tables]
        grams = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, min_df=2
        ).fit_transform([*texts[0], *texts[1]])
        E = normalize(TruncatedSVD(dimensions, random_state=0).fit_transform(grams))
        E = E.astype(np.float32)
        found = pd.read_csv(folder / "pairs.csv.gz")
        found = found[found["match"] == 1]
        split = [
            np.unique(found.loc[(found["split"] == "test") == t, ["left", "right"]], axis=0)
            for t in (False, True)
        ]
        n, own = len(texts[0]), kept.with_suffix(f".{os.getpid()}.npz")
        np.savez(own, Q=E[:n], D=E[n:], known=split[0], asked=split[1])
        own.replace(kept)  # another process may be as far
    with np.load(kept) as file:
        return dict(file)


def product_task(name: str, dimensions: int, count: int, draw: int) -> Task:
    given = products(name, dimensions)
    order = np.random.RandomState(draw).permutation(len(given["known"]))
    pairs, asked = given["known"][order[: count or None]], given["asked"]
    published = np.concatenate([given["known"], asked])
    return Task(given["Q"], given["D"], pairs, asked[:, 0], lambda d: d == asked[:, 1:], published)


@lru_cache(maxsize=1)
def images(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        return load_digits(return_X_y=True)
    from reproduction.datasets import load

    X, y = load(name, return_X_y=True)
    return X[-10_000:], y[-10_000:]  # the test images


def class_task(name: str, _: int, count: int, draw: int) -> Task:
    X, y = images(name)
    rng = np.random.RandomState(draw)
    rows = rng.permutation(len(X))[:6_000]
    X, y = normalize(X[rows].astype(np.float32)), y[rows]
    half = len(X) // 2
    yq, yd = y[:half], y[half:]
    learn = np.arange(half // 2)
    of = rng.choice(learn, count or 800, replace=count == 0 or count > len(learn))
    pairs = [(i, rng.choice(np.flatnonzero(yd == yq[i]))) for i in of]
    asked = np.arange(half // 2, half)
    pairs = np.unique(pairs, axis=0)
    return Task(X[:half], X[half:], pairs, asked, lambda d: yd[d] == yq[asked, None])


# --- methods --------------------------------------------------------------------------------------


def cosine(task: Task, draw: int) -> Maps:
    return task.Q, task.D


def whitening(task: Task, draw: int) -> Maps:
    n = len(task.Q)
    rca = RCA().fit(np.r_[task.Q, task.D], similar=np.add(task.pairs, [0, n]))
    return rca.transform(task.Q), rca.transform(task.D)


def ridge(task: Task, draw: int) -> Maps:
    """Documents predicted from queries, the penalty by cross-validation of the squared error."""
    from sklearn.linear_model import RidgeCV

    rows, found = task.pairs.T
    fit = RidgeCV(np.logspace(-3, 3, 13)).fit(task.Q[rows], task.D[found])
    return fit.predict(task.Q).astype(np.float32), task.D


def head(task: Task, draw: int) -> Maps:
    """A linear layer from the identity, a contrastive softmax over batches, 30 epochs of Adam."""
    import torch
    from pytorch_metric_learning.losses import SupConLoss

    torch.manual_seed(draw)
    torch.set_num_threads(1)
    d, (rows, found) = task.Q.shape[1], task.pairs.T
    layer = torch.nn.Linear(d, d, bias=False)
    torch.nn.init.eye_(layer.weight)
    Q, D = torch.tensor(task.Q[rows]), torch.tensor(task.D[found])
    classes = torch.tensor(np.unique(found, return_inverse=True)[1])
    loss, optimizer = SupConLoss(0.05), torch.optim.Adam(layer.parameters(), lr=1e-3)
    for _ in range(30):
        for some in torch.randperm(len(Q)).split(128):
            optimizer.zero_grad()
            batch = layer(torch.cat([Q[some], D[some]]))
            loss(batch, classes[some].repeat(2)).backward()
            optimizer.step()
    with torch.no_grad():
        return tuple(layer(torch.tensor(X)).numpy() for X in (task.Q, task.D))


def adapter(side: str, share: int = 1) -> Callable[[Task, int], Maps]:
    """The adapter of a side, with all dimensions or a share of them: half for 2."""

    def fit(task: Task, draw: int) -> Maps:
        r = task.Q.shape[1] // share if share > 1 else None
        found = Adapter(side, n_components=r, random_state=draw)
        fitted = found.fit(task.Q, documents=task.D, pairs=task.pairs)
        return fitted.transform(task.Q), fitted.transform_documents(task.D)

    return fit


METHODS: dict[str, Callable[[Task, int], Maps]] = {
    "cosine": cosine,
    "whitening": whitening,
    "ridge": ridge,
    "head": head,
    "adapter": adapter("symmetric"),
    "query": adapter("query"),
    "both": adapter("both"),
    "half": adapter("symmetric", 2),
    "quarter": adapter("symmetric", 4),
}


FURTHER = ("both", "half", "quarter")


def recalls(task: Task, maps: Maps, *, cosine: bool = True) -> dict[str, float]:
    Q, D = maps
    S = (
        normalize(Q[task.asked]) @ normalize(D).T
        if cosine
        else Q[task.asked] @ D.T - 0.5 * np.sum(D**2, axis=1)
    )
    found = _recalls(task, S, "recall")
    if task.published is not None:  # another document of the query that is right is no fault
        others = task.published[None, :, 0] == task.asked[:, None]
        rows, pairs = np.nonzero(others)
        documents = task.published[pairs, 1]
        wrong = ~task.right(np.arange(S.shape[1])[None, :])[rows, documents]
        S[rows[wrong], documents[wrong]] = -np.inf
        found |= _recalls(task, S, "apart")
    return found


def _recalls(task: Task, S: np.ndarray, name: str) -> dict[str, float]:
    first = np.argsort(-S, axis=1, kind="stable")[:, :10]
    hits = np.logical_or.accumulate(task.right(first), axis=1)
    return {f"{name}@{k}": float(hits[:, k - 1].mean()) for k in (1, 5, 10)}


# --- commands -------------------------------------------------------------------------------------


def cells(quick: bool) -> Iterator[tuple[str, int, int, int]]:
    """Set, dimensions, pairs and draw: all pairs first, then draw after draw."""
    if quick:
        yield from (("abt_buy", 40, 200, 0), ("digits", 64, 200, 0))
        return
    own = {"digits": (64,), "mnist": (784,)}
    for draw in range(DRAWS):
        for count in (0, *COUNTS[:-1]) if draw == 0 else COUNTS[:-1]:
            for name in PRODUCTS + CLASSES if count else PRODUCTS:
                for dimensions in own.get(name, (200, 768)):
                    yield name, dimensions, count, draw


KEY = "set", "d", "method", "pairs", "draw"


def measured(key: tuple, until: float) -> dict[str, Any]:
    """The row of a cell; nothing of one that would begin too late."""
    name, dimensions, method, count, draw = key
    if time.monotonic() > until:
        return {}
    warnings.simplefilter("ignore")
    make = class_task if name in CLASSES else product_task
    task, start = make(name, dimensions, count, draw), time.process_time()
    maps = METHODS[method](task, draw)
    seconds = round(time.process_time() - start, 2)
    row = dict(zip(KEY, key, strict=True)) | recalls(task, maps, cosine=method != "whitening")
    return row | {"learned": len(task.pairs), "seconds": seconds}


def run(options: argparse.Namespace) -> None:
    until, done = time.monotonic() + options.seconds, set()
    if options.file.exists():
        rows = [json.loads(line) for line in options.file.read_text().splitlines()]
        done = {tuple(row[k] for k in KEY) for row in rows}
    wanted = [
        (name, dimensions, method, count, draw)
        for name, dimensions, count, draw in cells(options.quick)
        if options.only in f"{name}_{dimensions}" and count in options.pairs
        for method in options.methods
    ]
    # What is beside the goals comes last, and of all pairs what takes longest comes first.
    wanted = [key for key in wanted if key not in done]
    wanted.sort(key=lambda key: (key[2] in FURTHER and key[3] > 0, key[3] > 0, key[4], -key[1]))
    anew = multiprocessing.get_context("spawn")  # torch hangs in a fork
    with ProcessPoolExecutor(options.jobs, anew, threadpool_limits, (1,)) as pool:
        tables = sorted({key[:2] for key in wanted if key[0] in PRODUCTS})
        made = [pool.submit(products, *table) for table in tables]
        early = [key for key in wanted if key[0] in CLASSES and key[4] < 2]  # need no such vectors
        found = [pool.submit(measured, key, until) for key in early]
        wait(made)
        found += [pool.submit(measured, key, until) for key in wanted if key not in set(early)]
        for row in (done.result() for done in as_completed(found)):
            if row:
                with options.file.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)


def latency(options: argparse.Namespace) -> None:
    """Microseconds in which one query is mapped, beside the product alone: the best of many."""
    from timeit import repeat

    rng = np.random.default_rng(0)
    for d in (32, 200, 768):
        noise = np.where(np.arange(d) < d // 2, 3.0, 0.1)
        things = rng.standard_normal((300, d))
        Q, D = (things + noise * rng.standard_normal((300, d)) for _ in "qd")
        Q, D, pairs = Q.astype(np.float32), D.astype(np.float32), np.column_stack([range(300)] * 2)
        fitted = Adapter(softmax=False).fit(Q, documents=D, pairs=pairs)
        L, x = np.asarray(fitted.components_), Q[:1]
        ours, product = (
            min(repeat(work, number=20, repeat=200)) / 20 * 1e6
            for work in (lambda x=x, f=fitted: f.transform(x), lambda x=x, L=L: x @ L.T)
        )
        what = "mapped" if fitted.adapted_ else "kept as it is"
        print(f"{d} dimensions: {what} in {ours:.1f} µs, the product alone {product:.1f}")


def large(options: argparse.Namespace) -> None:
    """Seconds, memory and gain of one fit to made vectors, and of mapping all documents."""
    import resource
    from contextlib import nullcontext

    from kernelmetric import use_device

    if options.gpu:
        options.documents, options.known, options.device = 1_000_000, 100_000, "cuda"
    n, d, known = options.documents, options.dimensions, options.known
    rng = np.random.default_rng(0)
    noise = np.where(np.arange(d) < d // 4, 3.0, 0.5).astype(np.float32)
    Q = rng.standard_normal((known, d), dtype=np.float32)  # the things themselves, so far
    D = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 50_000):  # a second copy of all documents is never made
        part = D[start : start + 50_000]
        rng.standard_normal(out=part, dtype=np.float32)
        part *= noise
        things = Q[start : start + len(part)]
        part[: len(things)] += things
        part[len(things) :] += rng.standard_normal((len(part) - len(things), d), dtype=np.float32)
    Q += noise * rng.standard_normal((known, d), dtype=np.float32)
    pairs = np.column_stack([np.arange(known)] * 2)
    if options.mapped:  # documents stay in a file
        folder = tempfile.TemporaryDirectory()
        np.save(Path(folder.name) / "documents.npy", D)
        D = np.load(Path(folder.name) / "documents.npy", mmap_mode="r")
    with use_device(options.device) if options.device else nullcontext():
        begun = time.perf_counter(), time.process_time()
        fitted = Adapter(options.side).fit(Q, documents=D, pairs=pairs)
        spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
        begun = time.perf_counter()
        fitted.transform_documents(D)
        mapped = time.perf_counter() - begun
    judged, row = fitted.evaluation_, {"documents": n, "d": d, "pairs": known}
    row |= {"side": options.side, "device": options.device or "cpu", "seconds": round(spent[0], 2)}
    row |= {"processor": round(spent[1], 2), "documents_mapped_in": round(mapped, 2)}
    row |= {"gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)}
    if options.device == "cuda":
        import torch

        row["gigabytes_of_device"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    row |= {
        f"recall@{k}": [round(of.recall[k].value, 4) for of in (judged.before, judged.after)]
        for k in (1, 10)
    }
    print(json.dumps(row | {"map": fitted.recipe_["map"]}), flush=True)


def learners(options: argparse.Namespace) -> None:
    """Recall of test matches after learners from all pairs that are known to match or not."""
    import pandas as pd

    of_papers = ITML(power=1), MMC(power=1)
    for name in (name for name in PRODUCTS if options.only in f"{name}_200"):
        given, task = products(name, 200), product_task(name, 200, 0, 0)
        found = pd.read_csv(
            Path(os.environ["KERNELMETRIC_DATA"]) / "linkage" / name / "pairs.csv.gz"
        )
        found = found[found["split"] != "test"]
        rows = np.unique(found.loc[found["match"] == 0, ["left", "right"]], axis=0)
        both, n = np.concatenate([given["Q"], given["D"]]).astype(float), len(given["Q"])
        pairs = Pairs(
            *(np.add(some, [0, n]) for some in (task.pairs, rows)), len(both), faults="drop"
        )
        print(name, "cosine", recalls(task, (task.Q, task.D), cosine=False))
        for learner in (*of_papers, ITML(), MMC(), IdealizedKernel()):
            start = time.process_time()
            Z = learner.fit(both, pairs=pairs).transform(both)
            seconds = time.process_time() - start
            print(name, learner, recalls(task, (Z[:n], Z[n:]), cosine=False), f"{seconds:.1f} s")


def table(options: argparse.Namespace) -> None:
    rows = [json.loads(line) for line in options.file.read_text().splitlines()]
    groups = sorted({(r["set"], r["d"], r["pairs"]) for r in rows})
    print("| set | d | pairs | " + " | ".join(METHODS) + " |")
    for name, d, pairs in groups:
        words = []
        for method in METHODS:
            some = [r for r in rows if (r["set"], r["d"], r["pairs"]) == (name, d, pairs)]
            some = [r for r in some if r["method"] == method]
            r1, r10 = (np.mean([r[f"recall@{k}"] for r in some] or [np.nan]) for k in (1, 10))
            words.append(f"{r1:.3f} · {r10:.3f}")
        print(f"| {name} | {d} | {pairs or 'all'} | " + " | ".join(words) + " |")
    for measure in ("recall@1", "apart@1"):
        plain = {
            (r["set"], r["d"], r["pairs"], r["draw"]): r.get(measure, r["recall@1"])
            for r in rows
            if r["method"] == "cosine"
        }
        for method in list(METHODS)[1:]:
            some = [r for r in rows if r["method"] == method]
            keys = [(r["set"], r["d"], r["pairs"], r["draw"]) for r in some]
            gains = np.array(
                [r.get(measure, r["recall@1"]) - plain[k] for r, k in zip(some, keys, strict=True)]
            )
            if len(gains):
                print(
                    f"{measure} of {method}: {len(gains)} draws, {np.sum(gains < -0.01)} below "
                    f"cosine by more than a point, {np.sum(gains < 0)} below at all, worst "
                    f"{gains.min():+.3f}, mean {gains.mean():+.3f}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "table", "learners", "large", "latency"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="sets whose name_dimensions contains this")
    parser.add_argument("--pairs", nargs="*", type=int, default=COUNTS, help="0 is all")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--jobs", type=int, default=1, help="processes of run")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin nothing after that")
    parser.add_argument("--documents", type=int, default=50_000, help="of large")
    parser.add_argument("--dimensions", type=int, default=768, help="of large")
    parser.add_argument("--known", type=int, default=5_000, help="pairs of large")
    parser.add_argument("--side", default="symmetric", help="of large")
    parser.add_argument("--gpu", action="store_true", help="large: a million documents, on cuda")
    parser.add_argument("--mapped", action="store_true", help="large: documents in a memory map")
    parser.add_argument("--device", help="of large, such as cuda")
    options = parser.parse_args()
    if options.quick and options.file == FILE:
        options.file = Path(tempfile.mkdtemp()) / FILE.name
    warnings.simplefilter("ignore")
    commands = (run, table, learners, large, latency)
    {command.__name__: command for command in commands}[options.command](options)


if __name__ == "__main__":
    main()
