"""The table of a search, as GridSearchCV writes it."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from kernelmetric.kernelized._folds import Outcome


def cv_results(params: list[dict[str, Any]], outcomes: list[list[Outcome]]) -> dict[str, Any]:
    """The ``cv_results_`` of a search, as scikit-learn's ``GridSearchCV`` has it.

    ``outcomes`` has a list for each split, with an outcome for each candidate.
    """
    results: dict[str, Any] = {}
    for key in ("fit_time", "score_time"):
        times = np.array([[getattr(outcome, key) for outcome in split] for split in outcomes])
        results[f"mean_{key}"], results[f"std_{key}"] = times.mean(axis=0), times.std(axis=0)
    for name in params[0]:
        results[f"param_{name}"] = _masked([candidate[name] for candidate in params])
    results["params"] = params
    scores = np.array([[outcome.score for outcome in split] for split in outcomes])
    for number, split in enumerate(scores):
        results[f"split{number}_test_score"] = split
    mean = scores.mean(axis=0)
    results["mean_test_score"], results["std_test_score"] = mean, scores.std(axis=0)
    if not np.all(np.isfinite(mean)):
        warnings.warn(
            f"One or more of the test scores are non-finite: {mean}", UserWarning, stacklevel=3
        )
    results["rank_test_score"] = _ranks(mean)
    return results


def report_failures(outcomes: list[list[Outcome]], error_score: Any) -> None:
    """Warn of candidates that failed; raise when none did not."""
    errors = [outcome.error for split in outcomes for outcome in split]
    failed = Counter(error for error in errors if error is not None)
    if not failed:
        return
    details = "\n".join(f"{count} fits failed with:\n{error}" for error, count in failed.items())
    if failed.total() == len(errors):
        raise ValueError(
            f"All the {len(errors)} fits failed: set error_score='raise' to stop at the first.\n"
            f"{details}"
        )
    warnings.warn(
        f"{failed.total()} fits failed out of a total of {len(errors)}; their score is set to "
        f"{error_score}. Set error_score='raise' to stop at the first.\n{details}",
        FitFailedWarning,
        stacklevel=3,
    )


def _ranks(mean: np.ndarray) -> np.ndarray:
    """1 for the best; candidates without a score share the last place."""
    if np.isnan(mean).all():
        return np.ones(len(mean), dtype=np.int32)
    worst = np.nanmin(mean) - 1
    return rankdata(-np.where(np.isnan(mean), worst, mean), method="min").astype(np.int32)


def _masked(values: list[Any]) -> np.ma.MaskedArray:
    numbers = all(isinstance(value, (int, np.integer)) for value in values)
    array = np.empty(len(values), dtype=np.array(values).dtype if numbers else object)
    for number, value in enumerate(values):
        array[number] = value
    return np.ma.MaskedArray(array, mask=False)
