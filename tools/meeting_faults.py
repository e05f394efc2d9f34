"""Plant a fault at places where two options meet, and see whether the tests of meetings notice.

Each fault is a line of the library and what it becomes, in a copy of the sources. The tests of
``tests/test_meetings.py`` run against the copy and stop at the first failure::

    python tools/meeting_faults.py --jobs 4

It prints a line for each fault, and those that nobody noticed at the end. Exit code 1 means that
there are such, or that a fault no longer finds its line.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/kernelmetric")


class Fault(NamedTuple):
    """What meets, where, and the line before and after."""

    meeting: str
    file: str
    line: str
    fault: str


FAULTS = [
    Fault(
        "weights x full-rank space",
        "spaces/_kpca.py",
        "            weights=weights,\n",
        "            weights=None,\n",
    ),
    Fault(
        "zero weights x weights of the others",
        "kernelized/_arguments.py",
        'kept["sample_weight"] = inputs.check_weights(sample_weight, _num_samples(X))[rows]',
        'kept["sample_weight"] = inputs.check_weights(sample_weight, _num_samples(X))[: len(rows)]',
    ),
    Fault(
        "kernel trick x learner",
        "kernelized/_arguments.py",
        'arguments["gram"] = space.gram_',
        "pass",
    ),
    Fault(
        "neighbours of the input x learner",
        "kernelized/_arguments.py",
        'arguments["neighbors"] = X.toarray() if hasattr(X, "toarray") else X',
        "pass",
    ),
    Fault(
        "zero weights x points of a search",
        "kernelized/_search.py",
        "X, y, points, labels = (rows_of(part, rows) for part in (X, y, points, labels))",
        "X, y, labels = (rows_of(part, rows) for part in (X, y, labels))",
    ),
    Fault(
        "gram x columns of a fold",
        "prediction/_cross_fit.py",
        "return take_rows(part.T, seen).T if get_tags(metric).input_tags.pairwise else part",
        "return part",
    ),
    Fault(
        "zero weights x rows of a prediction",
        "prediction/_regressor.py",
        "y = np.array(rows_of(y, self._kept))",
        "y = np.array(y if self._kept is None else y[: len(self._kept)])",
    ),
    Fault(
        "names of classes x weights of classes",
        "prediction/_classifier.py",
        "self._codes = codes = inputs.rows_of(codes, self._kept)",
        "self._codes = codes",
    ),
    Fault(
        "frame x order of its columns",
        "tables/_schema.py",
        "columns = frames.read_columns(X, [known[j] for j in self._used])",
        "columns = frames.read_columns(X, [known[j] for j in self._used[::-1]])",
    ),
    Fault(
        "weights x space",
        "kernelized/_supervision.py",
        "labels if self.weights is None or not weighs else WeightedLabels(labels, self.weights)",
        "labels",
    ),
    Fault(
        "pairs x automatic space",
        "kernelized/_supervision.py",
        "return self._replace(y=y, tuples=tuples, pairs=told, given=given)",
        "return self._replace(y=y, tuples=tuples, pairs=told, given={})",
    ),
    Fault(
        "zero weights x labels",
        "kernelized/_arguments.py",
        'return kept.pop("X"), kept.pop("y"), weights, kept',
        'kept.pop("y")\n    return kept.pop("X"), y, weights, kept',
    ),
    Fault(
        "boundary rows x labels",
        "kernelized/_arguments.py",
        "return take_rows(Z, rows), inputs.rows_of(y, rows), part",
        "return take_rows(Z, rows), inputs.rows_of(y, np.arange(len(rows))), part",
    ),
    Fault(
        "boundary rows x weights",
        "kernelized/_arguments.py",
        '{"sample_weight": inputs.rows_of(np.asarray(weights), rows)}',
        '{"sample_weight": inputs.rows_of(np.asarray(weights), np.arange(len(rows)))}',
    ),
    Fault(
        "neighbours x arguments of boundary rows",
        "kernelized/_arguments.py",
        'set(arguments) - {"sample_weight"}',
        "set()",
    ),
    Fault(
        "recipe x kernel",
        "kernelized/_recipe.py",
        "if bound is not None and _may_become(meant, bound):",
        "if False:",
    ),
    Fault(
        "recipe x rows",
        "kernelized/_recipe.py",
        "plain.set_params(rows=space.rows_, ",
        'plain.set_params(rows="all", ',
    ),
    Fault(
        "recipe x what the user wrote",
        "kernelized/_recipe.py",
        "if not is_auto(metric.space):",
        "if not is_auto(metric.space) and metric.recipe is None:",
    ),
    Fault(
        "recipe x schema",
        "kernelized/_recipe.py",
        "return self  # nobody can change it, and its schema is fitted",
        "return Recipe(self.kernel, self.space, self.learner, reasons=self.reasons)",
    ),
    Fault(
        "table x recipe",
        "kernelized/_parts.py",
        "schema = None if metric.recipe is None else metric.recipe.schema",
        "schema = None",
    ),
    Fault(
        "table x kernel of columns",
        "kernelized/_parts.py",
        "return clone(kernel) if schema is None else with_schema(kernel, schema)",
        "return clone(kernel)",
    ),
    Fault(
        "table x new rows",
        "kernelized/_delegation.py",
        "return to_device(schema.transform(X if is_frame(X) else np.asarray(X)))",
        "return to_device(type(schema)().fit(X).transform(X))",
    ),
    Fault(
        "search x spaces of kernels",
        "kernelized/_search.py",
        "space = space_for(meant, learner, n_samples, self.random_state)[0]",
        "space = space_for(meant, None, n_samples, self.random_state)[0]",
    ),
    Fault(
        "search x weights of rows to score",
        "kernelized/_search.py",
        "fit_params = _check_method_params(X, fit_params, indices=train)",
        "fit_params = _check_method_params(X, fit_params, indices=test)",
    ),
    Fault(
        "gram x folds of a search",
        "kernelized/_folds.py",
        "X_train, X_new = X_train[:, self.train], X_new[:, self.train]",
        "X_train, X_new = X_train[:, self.train], X_new[:, : len(self.train)]",
    ),
    Fault(
        "weights x folds of a prediction",
        "prediction/_cross_fit.py",
        "weights = None if sample_weight is None else sample_weight[train]",
        "weights = sample_weight",
    ),
    Fault(
        "gram x folds of a prediction",
        "prediction/_base.py",
        "X = np.asarray(X)  # of a Gram matrix, folds take columns too",
        "pass",
    ),
    Fault(
        "caller's array x targets",
        "prediction/_regressor.py",
        "y = np.array(rows_of(y, self._kept))",
        "y = rows_of(y, self._kept)",
    ),
    Fault(
        "zero weights x reasons",
        "prediction/_base.py",
        "rows = found.rows if kept is None else kept[found.rows]",
        "rows = found.rows",
    ),
    Fault(
        "weights x copies x landmarks",
        "selection/_ridge_solution.py",
        "masses = np.bincount(group, weights=counts)",
        "masses = np.bincount(group)",
    ),
    Fault(
        "weights x boundary rows of the space",
        "selection/_ridge_kpca.py",
        "some = None if weights is None else weights.take(rows)",
        "some = weights",
    ),
    Fault(
        "caller's array x anchors",
        "spaces/_base.py",
        "return compute.namespace(points).asarray(points, copy=True)",
        "return points",
    ),
    Fault(
        "sparse rows x anchors",
        "spaces/_base.py",
        "        return points.copy()\n",
        "        return points\n",
    ),
    Fault(
        "zero weights x pairs",
        "learners/_checks.py",
        'kept["pairs"] = as_pairs(pairs, similar, dissimilar, y, n).subset(rows)',
        'kept["pairs"] = as_pairs(pairs, similar, dissimilar, y, n)',
    ),
    Fault(
        "zero weights x triplets",
        "learners/_checks.py",
        "kept[name] = as_tuples(name, given[name], n).subset(rows)",
        "kept[name] = as_tuples(name, given[name], n)",
    ),
    Fault(
        "float32 x learners that widen",
        "learners/_base.py",
        "self.components_ = like(np.ascontiguousarray(L), X)",
        "self.components_ = L",
    ),
]


def planted(fault: Fault, folder: Path) -> str | None:
    """Copy the sources with the fault in them; a sentence where its line is not there once."""
    shutil.copytree(ROOT / "src", folder / "src")
    path = folder / PACKAGE / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.line) != 1:
        return f"the line stands there {text.count(fault.line)} times"
    path.write_text(text.replace(fault.line, fault.fault), encoding="utf-8")
    return None


def noticed(fault: Fault, slow: bool = False) -> tuple[Fault, bool, str]:
    """Whether the tests of meetings fail with the fault in the library, and where."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        wrong = planted(fault, Path(name))
        if wrong is not None:
            return fault, False, wrong
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        paths = [str(Path(name) / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, **one, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no"]
        command += ["-p", "no:cacheprovider", "tests/test_meetings.py"]
        command += ["-m", "slow"] if slow else []
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    last = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    spent = time.monotonic() - started
    return fault, run.returncode == 1, f"{spent:.0f} s {last[0][:120] if last else ''}"


def main() -> int:
    """Plant all faults, or those whose meeting holds a word."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="faults that are tried at once")
    parser.add_argument("--only", default="", help="a word of the meetings to try")
    parser.add_argument("--slow", action="store_true", help="with the tests of slow runs alone")
    arguments = parser.parse_args()
    faults = [fault for fault in FAULTS if arguments.only in fault.meeting]
    missed = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for fault, seen, how in pool.map(partial(noticed, slow=arguments.slow), faults):
            print(f"{'noticed' if seen else 'MISSED ':8} {fault.meeting:42} {how}", flush=True)
            missed += [] if seen else [fault]
    print(f"{len(faults) - len(missed)} of {len(faults)} faults were noticed.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
