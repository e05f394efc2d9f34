"""Fit estimators to data with parameters, all drawn at random, and count how it ends.

``python tools/fuzz.py --cases 5000 --seed 0`` draws estimator, parameters and data, see
``fuzz_cases.py``. A case ends in one of five ways:

fitted
    ``fit`` and all that follows from it gave finite answers.
refused
    The library, or scikit-learn's validation, said in a sentence what is wrong: a ``raise`` of
    theirs is where the error began.
raw
    Any other exception: what Python, NumPy or SciPy says when nobody looked. A process that dies
    counts here too.
non-finite
    Answers with NaN or infinity, or distances below zero, of points without.
late
    No end after ``--limit`` seconds.

The last three are faults, and the exit status is then 1. ``--only NUMBER`` runs one case in this
process, and shows its traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import dis
import io
import json
import multiprocessing
import os
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from fuzz_cases import Case, draw
from scipy import sparse
from sklearn.exceptions import NotFittedError

import kernelmetric
from kernelmetric.kernels import Kernel, as_kernel

KINDS = ("fitted", "refused", "raw", "non-finite", "late")
FAULTS = KINDS[2:]
LIMIT = 60.0  # seconds for one case
_STARTING = 300.0  # seconds for a process to import all, and draw its first case
_MEMORY = 6 * 2**30  # bytes of address space for one process
_ROOMS = tuple(str(Path(package.__file__).parent) for package in (kernelmetric, sklearn))
_CHECKS = os.path.join(_ROOMS[1], "utils")  # noqa: PTH118 (compared with names of files)
_ERRORS = (ValueError, TypeError, NotFittedError, NotImplementedError, ImportError, MemoryError)
_WORDS = 3  # at least, in a sentence


class Outcome(NamedTuple):
    """How a case ended.

    Attributes
    ----------
    kind : str
        One of ``KINDS``.
    detail : str
        The error and where it began, or which answer is not finite.
    warned : str
        The first warning of NumPy about numbers, if there was one.
    """

    kind: str
    detail: str = ""
    warned: str = ""


# --- one case -------------------------------------------------------------------------------------


def judge(case: Case) -> Outcome:
    """Fit a case, ask for all answers, and say how it ended."""
    np.random.seed(0)  # noqa: NPY002 (that is where random_state=None draws from)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            fault = _fault_of_answers(case)
            kind, detail = ("non-finite", fault) if fault else ("fitted", "")
        except Exception as error:
            theirs = case.foreign and _rooms(error)[-1:] == [_ROOMS[1]]  # the user's own metric
            kind, detail = ("refused" if theirs or is_refusal(error) else "raw"), _said(error)
    numeric = [w for w in caught if " encountered in " in str(w.message)]
    warned = [f"{w.message} ({_place(w.filename)}:{w.lineno})" for w in numeric[:1]]
    return Outcome(kind, detail, *warned)


def is_refusal(error: BaseException) -> bool:
    """Whether the library or scikit-learn's validation raised this on purpose, in a sentence.

    The innermost frame decides: its last instruction must be a ``raise``. Where scikit-learn's
    ``utils`` called what failed, whose work is to check, the words of NumPy or pandas will do.
    """
    if not isinstance(error, _ERRORS) or isinstance(error, np.linalg.LinAlgError):
        return False
    if len(str(error).split()) < _WORDS:
        return False
    frames = [(trace.tb_frame.f_code, trace.tb_lasti) for trace in _traces(error)]
    known = [code.co_filename for code, _ in frames if code.co_filename.startswith(_ROOMS)]
    if known and known[-1].startswith(_CHECKS):
        return True
    code, place = frames[-1]
    if not code.co_filename.startswith(_ROOMS):
        return False
    last = next(step for step in dis.get_instructions(code) if step.offset == place)
    return last.opname in ("RAISE_VARARGS", "RERAISE")


def _rooms(error: BaseException) -> list[str]:
    """The packages among ours and scikit-learn that an error came through."""
    names = [trace.tb_frame.f_code.co_filename for trace in _traces(error)]
    return [room for name in names for room in _ROOMS if name.startswith(room)]


def _traces(error: BaseException) -> Iterator[Any]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _said(error: BaseException) -> str:
    where = traceback.extract_tb(error.__traceback__)
    inner = [frame for frame in where if _ROOMS[0] in frame.filename] or list(where)
    place = f"{_place(inner[-1].filename)}:{inner[-1].lineno}" if inner else "nowhere"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({place})"


def _place(filename: str) -> str:
    return "/".join(Path(filename).parts[-3:])


def _fault_of_answers(case: Case) -> str:
    """What is wrong with the answers of a fit: nothing, in words, where all is well."""
    finite = all(_is_finite(rows) for rows in (case.X, case.new))
    if isinstance(case.estimator, Kernel) or not hasattr(case.estimator, "fit"):
        kernel = as_kernel(case.estimator).bind(case.X, case.y)
        answers = {"kernel(X)": kernel(case.X), "kernel(new, X)": kernel(case.new, case.X)}
        return next((f"{k} is not finite" for k, v in answers.items() if _bad(v) and finite), "")
    fitted = case.estimator.fit(case.X, case.y, **case.options)
    signed = getattr(fitted, "signature_", None) is not None
    for method in ("transform", "predict", "predict_proba", "pairwise_distances"):
        for name, rows in (("X", case.X), ("new", case.new)):
            if signed and method == "transform":
                continue
            answer = getattr(fitted, method, None)
            if answer is None or (
                method == "pairwise_distances" and not hasattr(fitted, "transform")
            ):
                break
            found = answer(rows)
            if not finite:
                continue
            if _bad(found):
                return f"{method}({name}) is not finite"
            if method == "pairwise_distances" and not signed and np.min(found, initial=0) < 0:
                return f"{method}({name}) is below zero"
            if method == "predict_proba" and np.max(np.abs(np.sum(found, axis=1) - 1)) > 1e-5:
                return f"{method}({name}) does not sum to one"
    return ""


def _is_finite(rows: Any) -> bool:
    """Whether all that are numbers among some rows are finite ones."""
    if sparse.issparse(rows):
        rows = rows.data
    try:
        return bool(np.all(np.isfinite(np.asarray(rows, dtype=float))))
    except (TypeError, ValueError, OverflowError):
        return True  # a table of names: its answers are finite, or it is refused


def _bad(answer: Any) -> bool:
    if sparse.issparse(answer):
        answer = answer.data
    found = np.asarray(answer)
    return found.dtype.kind in "fc" and not bool(np.all(np.isfinite(found)))


# --- many cases -----------------------------------------------------------------------------------


def run(
    numbers: Iterable[int],
    seed: int = 0,
    *,
    jobs: int = 2,
    limit: float = LIMIT,
    drawn: Callable[[int, int], Case] = draw,
) -> Iterator[tuple[int, str, Outcome, float]]:
    """Number, words, outcome and seconds of every case, as they end.

    The cases run in other processes, each of which is ended, and replaced, when its case is late.

    Parameters
    ----------
    numbers : iterable of int
        The cases.
    seed : int, default=0
        Of all.
    jobs : int, default=2
        Number of processes.
    limit : float, default=60
        Seconds for one case.
    drawn : callable, default=draw
        Makes the case from seed and number.

    Yields
    ------
    tuple
        One for each case.
    """
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(threads, "1")  # in the processes: two pools on one core are slower
    left = iter(numbers)
    workers = [_Worker(seed, drawn) for _ in range(jobs)]
    try:
        busy = [worker for worker in workers if worker.take(left)]
        while busy:
            soonest = min(worker.started for worker in busy) + limit
            wait([worker.pipe for worker in busy], timeout=max(0.0, soonest - time.monotonic()))
            for worker in list(busy):
                found = worker.found(limit)
                if found is None:
                    continue
                yield found
                if not worker.take(left):
                    busy.remove(worker)
    finally:
        for worker in workers:
            worker.process.kill()


class _Worker:
    """A process that runs one case after the other, and is replaced when one is late."""

    def __init__(self, seed: int, drawn: Callable[[int, int], Case]) -> None:
        self.arguments = seed, drawn
        self._start()

    def _start(self) -> None:
        quick = "forkserver" in multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if quick else "spawn")
        if quick:  # what takes seconds to import is there already
            context.set_forkserver_preload(["kernelmetric", "pandas", "sklearn.neighbors"])
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, *self.arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.about = "not drawn"

    def take(self, left: Iterator[int]) -> bool:
        """Begin the next case; whether there was one."""
        number = next(left, None)
        if number is None:
            return False
        self.number, self.about = number, "not drawn"
        self.started = time.monotonic() + _STARTING
        self.pipe.send(number)
        return True

    def found(self, limit: float) -> tuple[int, str, Outcome, float] | None:
        """How the case ended, if it has."""
        try:
            while self.pipe.poll():
                said = self.pipe.recv()
                if isinstance(said, str):  # the words come first, in case nothing follows
                    self.about, self.started = said, time.monotonic()
                    continue
                return self.number, self.about, said, time.monotonic() - self.started
        except (EOFError, ConnectionError):
            self.process.join()
            return self._replaced(Outcome("raw", f"the process ended: {self.process.exitcode}"))
        if time.monotonic() - self.started > limit:
            return self._replaced(Outcome("late", f"after {limit:g} seconds"))
        return None

    def _replaced(self, outcome: Outcome) -> tuple[int, str, Outcome, float]:
        ended = self.number, self.about, outcome, time.monotonic() - self.started
        self.process.kill()
        self.process.join()
        self._start()
        return ended


def _serve(pipe: Any, seed: int, drawn: Callable[[int, int], Case]) -> None:
    """Run the cases whose numbers come through a pipe."""
    limit_memory()
    warnings.simplefilter("ignore")  # while a case is drawn
    while True:
        number = pipe.recv()
        try:
            case = drawn(seed, number)
            pipe.send(str(case))
        except Exception as error:
            pipe.send(Outcome("raw", f"the fuzzer cannot draw it: {_said(error)}"))
        else:
            pipe.send(judge(case))


def limit_memory() -> None:
    """Make a request for far too much memory an error instead of the machine's end."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


# --- the command ----------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=5000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of all cases")
    parser.add_argument("--only", type=int, help="one case, in this process")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a case")
    parser.add_argument("--json", type=Path, help="where to write all outcomes")
    options = parser.parse_args(arguments)
    if options.only is not None:
        return _show(options.seed, options.only)
    counts: Counter[str] = Counter()
    lines, slowest, warned = [], (0.0, -1), 0
    numbers = range(options.first, options.first + options.cases)
    started = time.monotonic()
    for ended in run(numbers, options.seed, jobs=options.jobs, limit=options.limit):
        number, about, outcome, seconds = ended
        counts[outcome.kind] += 1
        warned += bool(outcome.warned)
        slowest = max(slowest, (seconds, number))
        if options.json:
            line = {"case": number, "about": about, "seconds": round(seconds, 3)}
            lines.append({**line, **outcome._asdict()})
        if outcome.kind in FAULTS:
            print(f"{outcome.kind} #{number}: {outcome.detail}\n    {about}", flush=True)
    report = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
    print(
        f"{sum(counts.values())} cases with seed {options.seed}: {report}; {warned} warned of "
        f"overflow or the like; {time.monotonic() - started:.0f} s, the slowest #{slowest[1]} "
        f"{slowest[0]:.1f} s"
    )
    if options.json:
        found = {"seed": options.seed, "counts": dict(counts), "warned": warned, "cases": lines}
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return int(any(counts[kind] for kind in FAULTS))


def _show(seed: int, number: int) -> int:
    """Run one case here, and show all there is to see."""
    case = draw(seed, number)
    print(f"#{number}: {case}")
    outcome = judge(case)
    print(re.sub(r"^", "  ", "\n".join(map(str, outcome)), flags=re.MULTILINE))
    if outcome.kind in ("refused", "raw"):
        try:
            _fault_of_answers(draw(seed, number))
        except Exception:
            traceback.print_exc()
    return int(outcome.kind in FAULTS)


if __name__ == "__main__":
    sys.exit(main())
