"""What trials have shown: scores by method, and what to say of them where classes are uneven."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmetric.cli._talk import Talk
from kernelmetric.evaluation import ClassScores, Trial, is_uneven
from kernelmetric.report._page_scores import graded
from kernelmetric.report._text import percent

_MOST_CLASSES = 10  # of a confusion matrix that fits a terminal
_MEASURES = ("balanced_accuracy", "roc_auc", "log_loss")


def by_method(trials: Sequence[Trial], what: str) -> dict[str, list[Any]]:
    """What the trials of each method have, in the order of the splits; without what is None."""
    found: dict[str, list[Any]] = {}
    for trial in trials:
        if getattr(trial, what) is not None:
            found.setdefault(trial.method, []).append(getattr(trial, what))
    return found


def own_notes(trials: Sequence[Trial]) -> dict[str, str]:
    """What methods warned about."""
    return {trial.method: trial.note for trial in trials if trial.note}


def trial_notes(trials: Sequence[Trial]) -> dict[str, str]:
    """What methods warned about, and whether answering the largest class would do as well."""
    notes = own_notes(trials)
    for method, scores in by_method(trials, "scores").items():
        accuracy, majority = _mean(scores, "accuracy"), _mean(scores, "majority")
        table = _confusion(scores)[1]
        joined = scores[0]._replace(accuracy=accuracy, majority=majority, confusion=table)
        warning = joined.warning
        if warning:
            notes[method] = f"{notes.get(method, '')} {warning}".strip()
    return notes


def tell_uneven(talk: Talk, trials: Sequence[Trial], learned: str, y: Any) -> None:
    """Print scores that do not flatter, and the confusion of the metric, if classes are uneven."""
    judged = by_method(trials, "scores")
    if not judged or not is_uneven(y):
        return
    rows = []
    for name, scores in judged.items():
        shares = [_mean(scores, measure) for measure in ("accuracy", *_MEASURES)]
        mean = scores[0]._replace(roc_auc=shares[2], log_loss=shares[3])
        rows.append([name, *map(percent, shares[:2]), *graded(mean)])
    head = ["", "accuracy", "balanced accuracy", "ROC-AUC", "log-loss"]
    talk.table("The classes are uneven, so accuracy flatters", head, rows)
    classes, table = _confusion(judged[learned])
    if len(classes) <= _MOST_CLASSES:
        lines = [[name, *row] for name, row in zip(classes, table, strict=True)]
        talk.table(f"Confusion by {learned}", ["true / predicted", *classes], lines)


def uneven_summary(trials: Sequence[Trial], learned: str) -> dict[str, Any]:
    """The same for JSON, whatever the classes; nothing where there was nothing to judge."""
    judged = by_method(trials, "scores")
    if not judged:
        return {}
    found: dict[str, Any] = {
        measure: {name: [getattr(s, measure) for s in scores] for name, scores in judged.items()}
        for measure in _MEASURES
    }
    classes, rows = _confusion(judged[learned])
    return {**found, "confusion": {"classes": classes, "rows": rows}}


def _confusion(scores: Sequence[ClassScores]) -> tuple[list[str], list[list[Any]]]:
    """Classes and counts, or weights to two digits, over all splits."""
    classes = sorted({name for score in scores for name in score.classes})
    total = np.zeros((len(classes), len(classes)))
    for score in scores:
        at = np.searchsorted(classes, score.classes)
        total[np.ix_(at, at)] += score.confusion
    whole = np.array_equal(total, np.round(total))
    return classes, (total.astype(int) if whole else np.round(total, 2)).tolist()


def _mean(scores: Sequence[ClassScores], measure: str) -> float:
    values = np.array([getattr(score, measure) for score in scores])
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
