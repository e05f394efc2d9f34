"""What a search does in one fold: all kernels, all ranks, the work they share done once."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from joblib import effective_n_jobs
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from kernelmetric.compute import block_budget, to_numpy, within_budget
from kernelmetric.selection import KernelPath
from kernelmetric.spaces import Space

_CHUNKS_PER_JOB = 4  # more and smaller tasks than workers, so that none waits long for the last


class Outcome(NamedTuple):
    """What came of one candidate in one fold."""

    score: float
    fit_time: float
    score_time: float
    error: str | None = None


@dataclass(frozen=True)
class Fold:
    """One split of the data, and where its coordinates come from.

    Attributes
    ----------
    X, y : array
        Training points and labels.
    X_new, y_new : array
        Points to be scored on.
    space : Space
        The space, without a kernel.
    fit_params : dict
        What else the learner's fit gets.
    """

    X: Any
    y: Any
    X_new: Any
    y_new: Any
    space: Space
    fit_params: dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """How a candidate is judged: learn on coordinates, fit an estimator on the result, score it.

    Attributes
    ----------
    learner : estimator
        From coordinates to the learned coordinates.
    estimator : estimator
        Fitted on the learned coordinates.
    scorer : callable
        ``scorer(estimator, E, y) -> float``.
    error_score : 'raise' or float
        The score of a candidate that fails.
    """

    learner: Any
    estimator: Any
    scorer: Any
    error_score: Any

    def run(
        self, fold: Fold, kernels: Sequence[Any], ranks: Sequence[int | None]
    ) -> Iterator[list[Outcome]]:
        """Outcomes of one kernel after the other, one outcome for each rank.

        Every candidate is learned from its own start: started from the map of the rank below, NCA
        took two thirds of the time, but scored lower (ionosphere, 200 points: 0.85 instead of
        0.87 on average).
        The time for distances and bases is counted with the first candidate that needs them. A
        rank that the kernel does not reach has the outcome of the rank it reaches.
        """
        path = KernelPath(fold.X, fold.y, fold.X_new, fold.space, ranks)
        for kernel in kernels:
            started = time.perf_counter()
            try:
                Z, Z_new = path.coordinates(kernel)
            except Exception:
                failed = self._failed(started)
                yield [failed] + [failed._replace(fit_time=0.0)] * (len(ranks) - 1)
                continue
            columns = [path.n_columns(rank, Z) for rank in ranks]
            known: dict[int, Outcome] = {}
            for r in dict.fromkeys(columns):
                known[r] = self._outcome(fold, Z[:, :r], Z_new[:, :r], started)
                started = time.perf_counter()
            yield [
                known[r] if r not in columns[:i] else known[r]._replace(fit_time=0, score_time=0)
                for i, r in enumerate(columns)
            ]

    def _outcome(self, fold: Fold, Z: Any, Z_new: Any, started: float) -> Outcome:
        try:
            with config_context(transform_output="default"):
                learner = clone(self.learner).fit(Z, fold.y, **fold.fit_params)
                estimator = clone(self.estimator).fit(to_numpy(learner.transform(Z)), fold.y)
                fitted = time.perf_counter()
                score = self.scorer(estimator, to_numpy(learner.transform(Z_new)), fold.y_new)
        except Exception:
            return self._failed(started)
        return Outcome(float(score), fitted - started, time.perf_counter() - fitted)

    def _failed(self, started: float) -> Outcome:
        """The outcome of a failure, from inside its except clause."""
        if isinstance(self.error_score, str):
            raise  # noqa: PLE0704, RUF100 (the exception being handled)
        spent = time.perf_counter() - started
        return Outcome(float(self.error_score), spent, 0.0, traceback.format_exc())


def stream(
    trial: Trial,
    folds: Sequence[Fold],
    kernels: Sequence[Any],
    ranks: Sequence[int | None],
    n_jobs: int | None,
) -> Iterator[tuple[int, int, list[Outcome]]]:
    """Number of the fold, number of the kernel and its outcomes, one kernel after the other.

    Processes share the work by folds and kernels; what comes out does not depend on how many.
    """
    n_jobs = effective_n_jobs(n_jobs)
    if n_jobs == 1:
        for number, fold in enumerate(folds):
            for kernel, outcomes in enumerate(trial.run(fold, kernels, ranks)):
                yield number, kernel, outcomes
        return
    n_chunks = min(len(kernels), -(-_CHUNKS_PER_JOB * n_jobs // len(folds)))
    tasks = [(number, start) for number in range(len(folds)) for start in range(n_chunks)]
    share = int(within_budget(math.inf)) // n_jobs
    chunks = Parallel(n_jobs=n_jobs, return_as="generator")(
        # neighbours in the list cost about the same, so a chunk takes every n-th kernel
        delayed(_run_apart)(trial, folds[number], kernels[start::n_chunks], ranks, share)
        for number, start in tasks
    )
    for (number, start), chunk in zip(tasks, chunks, strict=True):
        for step, outcomes in enumerate(chunk):
            yield number, start + step * n_chunks, outcomes


def _run_apart(
    trial: Trial, fold: Fold, kernels: Sequence[Any], ranks: Sequence[int | None], n_bytes: int
) -> list[list[Outcome]]:
    """All outcomes of a trial in another process, which has its own share of the memory."""
    with block_budget(n_bytes):
        return list(trial.run(fold, kernels, ranks))
