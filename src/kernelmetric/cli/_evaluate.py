"""``kernelmetric evaluate``: a metric beside what a user would pick instead."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from kernelmetric.cli._options import FILE, data_argument, metric_options, output_options
from kernelmetric.cli._study import MOST_COMPARED, Study, open_study, pair_trials
from kernelmetric.cli._talk import Talk, count, visible
from kernelmetric.cli._uneven import by_method, tell_uneven, trial_notes, uneven_summary
from kernelmetric.evaluation import run_trials
from kernelmetric.report import Cell, rich_table
from kernelmetric.tables import TableError, features_of, labels_of, open_table, weights_of


@click.command()
@data_argument
@metric_options
@click.option("--test", type=FILE, help="Judge on this table instead of on folds of DATA.")
@click.option("--folds", type=click.IntRange(2), default=5, help="Number of folds.")
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
    with talk.busy(f"Reading {data.name}", abrupt=True):
        study = open_study(data, **options)
        _ = study.X
    talk.say(f"Read {data}: {count(study.n_read or len(study.rows), 'row')}.")
    talk.listed(study.notes)
    how = f"mean±std over {folds} folds"
    said: list[str] = []
    if study.pairs is not None:
        names = ["Euclidean"] * folds + [study.name] * folds
        work, what = pair_trials(study, folds), study.pair_score
    else:
        X, y, weights = study.X, study.y, study.weights
        if test is None:
            splits = study.folds(folds)
        else:
            X, y, weights, said = _joined(study, test)
            judged = np.arange(len(study.y), len(y))
            if len(judged) > MOST_COMPARED:
                said.append(f"{test.name}: {MOST_COMPARED:,} of {len(judged):,} rows are judged.")
                rng = np.random.RandomState(study.wanted.seed)
                judged = rng.choice(judged, MOST_COMPARED, replace=False)
            splits = [(study.compared, judged)]
            how = f"on {test.name}"
            talk.listed(said)
        methods = study.methods
        names = list(methods) * len(splits)
        work = run_trials(methods, X, y, splits, sample_weight=weights)
        what = "Accuracy"
    trials = list(talk.tracked(work, names, abrupt=True))
    what = f"{what} in %, {how}"
    cells = [
        Cell(visible(data.stem, most=40), trial.method, trial.split, trial.accuracy, trial.seconds)
        for trial in trials
    ]
    talk.show(rich_table(cells, title=visible(what)))
    tell_uneven(talk, trials, study.name, study.y)
    notes = trial_notes(trials)
    talk.listed(f"{name}: {note}" for name, note in notes.items())
    seconds = by_method(trials, "seconds")
    talk.answer(
        {
            "metric": study.name,
            "score": what,
            "scores": by_method(trials, "accuracy"),
            **uneven_summary(trials, study.name),
            "seconds": {name: round(sum(values), 3) for name, values in seconds.items()},
            "warnings": notes,
            "notes": [*study.notes, *said],
        }
    )


def _joined(study: Study, test: Path) -> tuple[Any, np.ndarray, Any, list[str]]:
    """Rows, labels and weights of a study and below them those of a table; remarks on these."""
    import pandas as pd

    other = open_table(test)
    y, rows, said = labels_of(other.frame, str(study.wanted.label))
    unknown = sorted(set(y) - set(study.y))
    if unknown:
        named = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        raise TableError(f"The table {test} holds classes that {study.path} lacks: {named}.")
    weights = study.weights
    if weights is not None:
        of_other = weights_of(other.frame, str(study.wanted.weights))[rows]
        weights = np.concatenate([weights, of_other])
    encoder = study.encoder().fit(study.X)
    X = pd.concat([study.X, features_of(other, encoder)[rows]], ignore_index=True)
    found = [*other.notes, *said, *encoder.remarks(other)]
    notes = [f"{test.name}: {note}" for note in found]
    return X, np.concatenate([study.y, y]), weights, notes
