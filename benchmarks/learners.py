"""All learners, linear and kernelized, on three real sets; stops and resumes at will.

``python benchmarks/learners.py --out learners.jsonl``; with ``--peer path/to/python``, that of an
environment with metric-learn, also its learners on the same splits. 1-NN accuracy, and for MLKR
the R² of ten neighbours.
"""

import argparse
import json
import subprocess
import time
import warnings
from collections import defaultdict
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    DLA,
    DNE,
    ITML,
    LDA,
    LFDA,
    LMNN,
    LPP,
    MCML,
    MLKR,
    NCA,
    RCA,
    Kernelized,
)
from kernelmetric.compute import one_thread
from kernelmetric.demo import Split
from kernelmetric.report import Cell
from reproduction.cells import read_cells, resumed_cells
from reproduction.multimodal import MULTIMODAL
from reproduction.problems import Problem

CLASSIFYING = [p for p in MULTIMODAL["uci"] if p.name in ("wine", "ionosphere", "sonar")]
LEARNERS = {
    type(learner).__name__: learner
    for learner in [
        LDA(),
        LFDA(),
        LPP(),
        DLA(),
        RCA(),
        ITML(),
        MCML(),
        DNE(),
        LMNN(),
        NCA(),
    ]
}
REGS = [0.0, 1.0, 10.0]


class Diabetes(Problem):
    """442 patients, of which 300 for training; the target is a number."""

    def split(self, seed):
        """Training and test points, both standardized by the training points."""
        X, y = load_diabetes(return_X_y=True)
        order = np.random.RandomState(seed).permutation(len(y))
        train, test = order[: self.n_train], order[self.n_train :]
        X = StandardScaler().fit(X[train]).transform(X)
        return Split(X[train], y[train], X[test], y[test])


DIABETES = Diabetes("diabetes", 300, None)


def classifier(method):
    """``kernel LDA``: the learner on the automatic kernel, and one neighbour."""
    if method == "Euclidean":
        return KNeighborsClassifier(1)
    learner = clone(LEARNERS[method.removeprefix("kernel ")])
    metric = Kernelized(learner, kernel="auto") if method.startswith("kernel ") else learner
    return make_pipeline(metric, KNeighborsClassifier(1))


def regressor(method):
    """MLKR, perhaps kernelized, perhaps with its regularizer by cross-validation."""
    if method == "Euclidean":
        return KNeighborsRegressor(10)
    kernelized = method.startswith("kernel ")
    metric = Kernelized(MLKR(), kernel="auto") if kernelized else MLKR()
    model = make_pipeline(metric, KNeighborsRegressor(10))
    if not method.endswith("CV"):
        return model
    name = "kernelized__learner__reg" if kernelized else "mlkr__reg"
    return GridSearchCV(model, {name: REGS}, cv=3)


def run(problem, method, seed):
    split = problem.split(100 + seed)
    model = (regressor if problem is DIABETES else classifier)(method)
    begin = time.perf_counter()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no negative eigenvalue, iterations spent
        model.fit(split.X_train, split.y_train)
        score = float(model.score(split.X_test, split.y_test))
    return Cell(problem.name, method, seed, score, round(time.perf_counter() - begin, 3))


def run_peers(python, problem, n_splits, out):
    """metric-learn's learners on the same splits, in a process of their own."""
    splits = [problem.split(100 + seed) for seed in range(n_splits)]
    with NamedTemporaryFile(suffix=".npz") as file:
        names = Split._fields
        arrays = {f"{k}{i}": getattr(s, k) for i, s in enumerate(splits) for k in names}
        np.savez(file.name, **arrays)
        script = Path(__file__).with_name("peer_learners.py")
        kind = "regression" if problem is DIABETES else "classes"
        lines = subprocess.run(
            [python, script, file.name, str(n_splits), kind],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    with out.open("a", encoding="utf-8") as file:
        for line in lines.splitlines():
            file.write(json.dumps({"dataset": problem.name, **json.loads(line)}) + "\n")


def table(cells):
    """Markdown: a row for each learner; linear and kernelized columns for each set; seconds."""
    scores = defaultdict(list)
    for cell in cells:
        scores[cell.dataset, cell.method].append((cell.accuracy, cell.seconds))

    def mean(dataset, method, what=0):
        found = [pair[what] for pair in scores.get((dataset, method), []) if np.isfinite(pair[0])]
        return f"{np.mean(found):.3f}" if found else ""

    names = [p.name for p in CLASSIFYING]
    lines = ["| learner | " + " | ".join(f"{n} | kernelized" for n in names) + " |"]
    lines.append("|---" * (2 * len(names) + 1) + "|")
    for method in ["Euclidean", *LEARNERS]:
        row = [mean(n, prefix + method) for n in names for prefix in ("", "kernel ")]
        lines.append(f"| {method} | " + " | ".join(row) + " |")
    found = sorted({(c.dataset, c.method) for c in cells})
    counts = [len(scores[name, method]) for name in names for method in ("Euclidean", "kernel NCA")]
    lines += ["", f"{min(counts)} to {max(counts)} splits.", ""]
    lines += ["| set | method | score | seconds | splits without error |", "|---|---|---|---|---|"]
    for key in found:
        if key[0] == "diabetes" or "metric-learn" in key[1] or key[1] in ("LFDA", "RCA", "ITML"):
            done = sum(np.isfinite(score) for score, _ in scores[key])
            splits = f"{done} of {len(scores[key])}"
            values = [*key, mean(*key), mean(*key, 1), splits]
            lines.append("| " + " | ".join(values) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--peer", help="a Python with metric-learn; run once")
    arguments = parser.parse_args()
    out, n_splits = arguments.out, arguments.splits
    methods = ["Euclidean", *LEARNERS, *(f"kernel {name}" for name in LEARNERS)]
    regressing = ["Euclidean", "MLKR", "kernel MLKR", "MLKR, reg by CV", "kernel MLKR, reg by CV"]
    for problems, names in ((CLASSIFYING, methods), ([DIABETES], regressing)):
        for cell in resumed_cells(problems, names, n_splits, out, run):
            print(*cell, flush=True)
    if arguments.peer:
        for problem in [*CLASSIFYING, DIABETES]:
            run_peers(arguments.peer, problem, min(n_splits, 3), out)
    print(table(read_cells(out)))


if __name__ == "__main__":
    main()
