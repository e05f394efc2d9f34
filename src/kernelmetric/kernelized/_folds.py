"""What a search does in one fold: all kernels, all ranks, the work they share done once."""

import math
import time
import traceback
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, has_fit_parameter

from kernelmetric.compute import block_budget, take_rows, to_numpy, within_budget
from kernelmetric.compute.watch import time_kept, time_left, time_limit, warn_of_limit
from kernelmetric.inputs import FarCellWarning, WeightedLabels, silent_about_far_cells
from kernelmetric.kernelized._arguments import weighted_rows
from kernelmetric.kernelized._copies import CopiesWarning
from kernelmetric.kernelized._kernelized import Kernelized
from kernelmetric.kernelized._places import among_candidates
from kernelmetric.learners._progress import Iterations
from kernelmetric.selection import KernelPath
from kernelmetric.spaces import Space

_CHUNKS_PER_JOB = 4  # more and smaller tasks than workers, so that none waits long for the last
_LAST_FIT = 0.4  # of the time that a limit leaves is kept for it at the most
_LONGER = 1.5  # than a fit of its own rows may the last one take
_START = 10.0  # seconds of a time limit below which other processes would begin too late


class Outcome(NamedTuple):
    """What came of one candidate in one fold, in scikit-learn's words."""

    test_scores: float
    fit_time: float
    score_time: float
    fit_error: str | None = None


@dataclass(frozen=True)
class Fold:
    """One split of the data by row numbers: it is cut where it is used, so all points travel once.

    ``candidates`` are kernels, each with its space; ``weights`` are those of the rows
    to be scored on. ``pairwise``: the points are a Gram matrix, which has columns to cut too.
    """

    train: Any
    test: Any
    candidates: Sequence[tuple[Any, Space]]
    fit_params: dict[str, Any]
    pairwise: bool
    weights: Any = None
    random_state: Any = None

    def part(self, start: int, step: int) -> Self:
        """The fold of every n-th kernel."""
        return replace(self, candidates=self.candidates[start::step])

    def cut(self, X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
        """Points and labels to learn from, points and labels to be scored on."""
        X_train, X_new = take_rows(X, self.train), take_rows(X, self.test)
        if self.pairwise:
            X_train, X_new = X_train[:, self.train], X_new[:, self.train]
        return X_train, _safe_indexing(y, self.train), X_new, _safe_indexing(y, self.test)


@dataclass(frozen=True)
class Trial:
    """How a candidate is judged: learn on coordinates, fit an estimator on the result, score it.

    ``error_score`` is the score of a candidate that fails, or 'raise'. ``chosen``: the estimator
    has as many neighbours as the metric says should vote, where it does.
    """

    learner: Any
    estimator: Any
    scorer: Any
    error_score: Any
    ranks: Sequence[int | None]
    chosen: bool = False

    def run(self, fold: Fold, X: Any, y: Any) -> Iterator[list[Outcome]]:
        """Outcomes of one kernel after the other, one outcome for each rank."""
        ranks = self.ranks
        X, y, X_new, y_new = fold.cut(X, y)
        weights = weighted_rows(self.learner, None, X, y, fold.fit_params)[2]
        target = y if weights is None else WeightedLabels(y, weights)
        path = KernelPath(X, target, X_new, ranks)
        for kernel, space in fold.candidates:
            started = time.perf_counter()
            if getattr(space, "knows_labels", False):  # no two ranks share anything
                learner, state = self.learner, fold.random_state
                metrics = [candidate(learner, kernel, space, rank, state) for rank in ranks]
                with warnings.catch_warnings(), among_candidates():
                    for told in (FarCellWarning, CopiesWarning):  # the last fit says it
                        warnings.simplefilter("ignore", told)
                    found = [self._judged(metric, X, y, X_new, y_new, fold) for metric in metrics]
                yield found
                continue
            path.space = space
            try:
                Z, Z_new = path.coordinates(kernel)
            except Exception:
                failed = self._failed(started)
                yield [failed] + [failed._replace(fit_time=0.0)] * (len(ranks) - 1)
                continue
            columns = [path.n_columns(rank, Z) for rank in ranks]
            known: dict[int, Outcome] = {}
            spent = time.perf_counter() - started
            for r in dict.fromkeys(columns):
                learner = clone(self.learner)
                outcome = self._judged(learner, Z[:, :r], y, Z_new[:, :r], y_new, fold)
                known[r], spent = outcome._replace(fit_time=outcome.fit_time + spent), 0.0
            yield [
                known[r] if r not in columns[:i] else known[r]._replace(fit_time=0, score_time=0)
                for i, r in enumerate(columns)
            ]

    def _judged(self, metric: Any, Z: Any, y: Any, Z_new: Any, y_new: Any, fold: Fold) -> Outcome:
        """The outcome of a metric that is still to be fitted."""
        started = time.perf_counter()
        counts = {} if fold.weights is None else {"sample_weight": fold.weights}
        whole = isinstance(metric, Kernelized)
        quiet = nullcontext() if whole else silent_about_far_cells()
        try:
            with config_context(transform_output="default"), quiet:
                if whole:  # rows are placed as if they were left out
                    E = to_numpy(metric.fit_transform(Z, y, **fold.fit_params))
                else:
                    E = to_numpy(metric.fit(Z, y, **fold.fit_params).transform(Z))
                estimator = self.fitted_judge(metric, E, y, fold.fit_params.get("sample_weight"))
                fitted = time.perf_counter()
                score = self.scorer(estimator, to_numpy(metric.transform(Z_new)), y_new, **counts)
        except Exception:
            return self._failed(started)
        return Outcome(float(score), fitted - started, time.perf_counter() - fitted)

    def fitted_judge(self, metric: Any, E: np.ndarray, y: Any, sample_weight: Any) -> Any:
        """A copy of the estimator, fitted in learned coordinates, by weights where it takes any."""
        estimator = clone(self.estimator)
        number = getattr(metric, "n_neighbors_", None)
        if self.chosen and number is not None:
            estimator.set_params(n_neighbors=number)
        takes = sample_weight is not None and has_fit_parameter(estimator, "sample_weight")
        return estimator.fit(E, y, **({"sample_weight": sample_weight} if takes else {}))

    def _failed(self, started: float) -> Outcome:
        """The outcome of a failure, from inside its except clause."""
        if isinstance(self.error_score, str):
            raise  # noqa: PLE0704, RUF100 (the exception being handled)
        spent = time.perf_counter() - started
        return Outcome(float(self.error_score), spent, 0.0, traceback.format_exc())


def candidate(
    learner: Any, kernel: Any, space: Any, rank: int | None, random_state: Any
) -> Kernelized:
    """A candidate as an estimator, not fitted."""
    space = clone(space)
    if rank is not None:
        space.set_params(n_components=rank)
    return Kernelized(clone(learner), kernel, space, random_state=random_state)


def all_outcomes(
    trial: Trial,
    folds: Sequence[Fold],
    X: Any,
    y: Any,
    n_jobs: int | None,
    report: Iterations,
    *,
    refit: bool = True,
) -> list[dict[str, Any]]:
    """The outcomes of the first candidate in all folds, then those of the next.

    A time limit leaves out folds that are not finished; in the first, candidates have NaN. Some of
    the time is left for a ``refit``.
    """
    report.start(None)
    untried = Outcome(np.nan, 0.0, 0.0)
    found: list[list[Any]] = [[[untried] * len(trial.ranks)] * len(f.candidates) for f in folds]
    done, best = 0, -np.inf
    most = _LAST_FIT * max(time_left(), 0.0) if refit else 0.0
    kept = most  # until the first fit says more
    growth = _LONGER * (_num_samples(X) / len(folds[0].train)) ** 2
    stream = _stream(trial, folds, X, y, n_jobs)
    while True:
        with time_kept(kept):
            following = next(stream, None)
            if following is None:
                break
            fold, kernel, outcomes = following
            found[fold][kernel] = outcomes
            done += 1
            best = max(best, np.nanmax([-np.inf, *(outcome.test_scores for outcome in outcomes)]))
            kept = min(most, growth * max(outcome.fit_time for outcome in outcomes))
            if report(None, -best) and time_left() <= 0:
                break
    stream.close()
    report.finish()
    n_kernels = len(folds[0].candidates)
    if done < n_kernels * len(folds):
        whole = max(1, done // n_kernels)
        warn_of_limit(
            f"the search after {done} of {n_kernels * len(folds)} fits: candidates are compared in "
            f"{whole} of {len(folds)} folds"
        )
        found = found[:whole]
    by_candidate = zip(*(chain(*of_fold) for of_fold in found), strict=True)
    return [outcome._asdict() for outcome in chain(*by_candidate)]


def _stream(
    trial: Trial, folds: Sequence[Fold], X: Any, y: Any, n_jobs: int | None
) -> Generator[tuple[int, int, list[Outcome]]]:
    """Number of the fold, number of the kernel and its outcomes, one kernel after the other."""
    n_jobs = effective_n_jobs(n_jobs)
    if (n_jobs == 1 or time_left() < _START) and not on_cluster():
        for number, fold in enumerate(folds):
            for kernel, outcomes in enumerate(trial.run(fold, X, y)):
                yield number, kernel, outcomes
        return
    # neighbours in the list cost about the same, so a chunk takes every n-th kernel
    n = min(len(folds[0].candidates), -(-_CHUNKS_PER_JOB * n_jobs // len(folds)))
    tasks = {(k, i): fold.part(i, n) for k, fold in enumerate(folds) for i in range(n)}
    share = None if on_cluster() else int(within_budget(math.inf)) // n_jobs
    chunks = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_run_apart)(trial, part, X, y, share, time_left(), time.time())
        for part in tasks.values()
    )
    try:
        for (number, start), chunk in zip(tasks, chunks, strict=True):
            for step, outcomes in enumerate(chunk):
                yield number, start + step * n, outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib would tell of tasks that are not wanted
            chunks.close()


def on_cluster() -> bool:
    """Whether joblib hands work to other machines, such as Dask's, whose memory is their own."""
    backend, _ = get_active_backend()
    return not type(backend).__module__.startswith("joblib._parallel_backends")


def _run_apart(
    trial: Trial, fold: Fold, X: Any, y: Any, n_bytes: int | None, left: float, since: float
) -> list[list[Outcome]]:
    """All outcomes of a trial in another process, which has its own share of the memory.

    So much time was ``left`` at a time ``since``, which clocks of other machines do not know.
    """
    left -= 0.0 if n_bytes is None else time.time() - since
    # What runs on a cluster must not send its own small loops to the cluster again.
    alone = parallel_config(backend="sequential") if n_bytes is None else block_budget(n_bytes)
    found: list[list[Outcome]] = []
    with alone, time_limit(None if math.isinf(left) else max(left, 1e-6)):
        for outcomes in trial.run(fold, X, y):
            found.append(outcomes)
            if time_left() <= 0:
                break
    return found
