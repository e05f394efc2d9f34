"""``kernelmetric evaluate``: a metric beside what a user would pick instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from kernelmetric.cli._options import FILE, data_argument, metric_options, output_options
from kernelmetric.cli._study import Study, judged_on_pairs, open_study
from kernelmetric.cli._talk import Talk, count, visible
from kernelmetric.cli._uneven import tell_uneven, trial_notes, uneven_summary
from kernelmetric.evaluation import Trial, is_uneven, run_trials
from kernelmetric.report import Cell, rich_table
from kernelmetric.tables import TableError, features_of, labels_of, open_table, weights_of


@click.command()
@data_argument
@metric_options
@click.option("--test", type=FILE, help="Judge on this table instead of on folds of DATA.")
@click.option(
    "--folds", type=click.IntRange(2), default=5, show_default=True, help="Number of folds."
)
@output_options
def evaluate(talk: Talk, data: Path, test: Path | None, folds: int, **options: Any) -> None:
    """Compare a metric with k-NN and SVM on held-out rows.

    The command judges Euclidean distance, the metric, tuned k-NN and a tuned SVM by
    cross-validation on the rows of DATA. With --test it learns from DATA and judges on another
    table. Everything learns from training rows only, also the filling of missing values.

    \b
    Examples:
      kernelmetric evaluate flowers.csv --label species
      kernelmetric evaluate train.csv --label species --test test.csv --learner lmnn
      kernelmetric evaluate faces.npz --pairs pairs.csv --json
    """
    study = open_study(data, **options)
    talk.say(f"Read {data}: {count(len(study.rows), 'row')}.")
    talk.listed(study.notes)
    trials: list[Trial] = []
    said: list[str] = []
    if study.pairs is not None:
        with talk.progress(2) as begin:
            scores, _, notes = judged_on_pairs(study, folds, begin)
        what = f"{study.pair_score} in %, mean±std over {folds} folds"
    else:
        trials, said = _trials(study, talk, test, folds)
        scores, notes = _by_method(trials, "accuracy"), trial_notes(trials)
        how = f"mean±std over {folds} folds" if test is None else f"on {test.name}"
        what = f"Accuracy in %, {how}"
    cells = [
        Cell(visible(data.stem, most=40), name, split, value, 0.0)
        for name, values in scores.items()
        for split, value in enumerate(values)
    ]
    talk.show(rich_table(cells, title=visible(what)))
    judged, seconds = _by_method(trials, "scores"), _by_method(trials, "seconds")
    if trials and is_uneven(study.y):
        tell_uneven(talk, judged, study.name)
    talk.listed(f"{name}: {note}" for name, note in notes.items())
    talk.answer(
        {
            "metric": study.name,
            "score": what,
            "scores": scores,
            **uneven_summary(judged, study.name),
            "seconds": {name: round(sum(seconds.get(name, [])), 3) for name in scores},
            "warnings": notes,
            "notes": [*study.notes, *said],
        }
    )


def _trials(
    study: Study, talk: Talk, test: Path | None, n_folds: int
) -> tuple[list[Trial], list[str]]:
    """The trials, and what there is to say about the table they were judged on."""
    methods, X, y, weights = study.methods, study.X, study.y, study.weights
    notes: list[str] = []
    if test is None:
        splits = study.folds(n_folds)
    else:
        import pandas as pd

        other = open_table(test)
        y_other, rows, said = labels_of(other.frame, str(study.wanted.label))
        if weights is not None:
            of_other = weights_of(other.frame, str(study.wanted.weights))[rows]
            weights = np.concatenate([weights, of_other])
        encoder = study.encoder().fit(X)
        X_other = features_of(other, encoder)[rows]
        found = [*other.notes, *said, *encoder.remarks(other)]
        notes = [f"{test.name}: {note}" for note in found]
        talk.listed(notes)
        unknown = sorted(set(y_other) - set(y))
        if unknown:
            named = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
            raise TableError(f"The table {test} holds classes that {study.path} lacks: {named}.")
        splits = [(np.arange(len(X)), len(X) + np.arange(len(X_other)))]
        X = pd.concat([X, X_other], ignore_index=True)
        y = np.concatenate([y, y_other])
    names = [f"{name}, {i + 1} of {len(splits)}" for i in range(len(splits)) for name in methods]
    trials: list[Trial] = []
    with talk.progress(len(names)) as begin:
        begin(names[0])
        for trial in run_trials(methods, X, y, splits, sample_weight=weights):
            trials.append(trial)
            begin(names[len(trials)] if len(trials) < len(names) else "done")
    return trials, notes


def _by_method(trials: list[Trial], what: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for trial in trials:
        found.setdefault(trial.method, []).append(getattr(trial, what))
    return found
