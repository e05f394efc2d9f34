"""``kernelmetric fit``: from a table to a metric, a comparison and a page."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np

from kernelmetric.cli._cluster import cluster, cluster_options
from kernelmetric.cli._files import require_outputs
from kernelmetric.cli._options import FILE, KNOWN, metric_options, output_options, several_data
from kernelmetric.cli._parts_study import open_parts_study
from kernelmetric.cli._study import Study, open_study, pair_trials, varying_columns
from kernelmetric.cli._talk import Talk, count
from kernelmetric.cli._uneven import by_method, tell_uneven, trial_notes, uneven_summary
from kernelmetric.compute.watch import TimeLimitWarning
from kernelmetric.evaluation import Trial, holdout, run_trials
from kernelmetric.inspection import feature_columns
from kernelmetric.kernelized._recipe import described
from kernelmetric.report import report_page, write_atomically
from kernelmetric.shipping import save

_PAIR_FOLDS = 3
_SHOWN_COLUMNS = 4


@click.command()
@several_data
@metric_options
@click.option("--out", type=FILE, help="Write the model to this file.")
@click.option("--report", type=FILE, metavar="FILE.html", help="Write a page for the browser.")
@click.option(
    "--test-size", type=click.FloatRange(0.05, 0.9), default=0.25, help="Share of rows to hold out."
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="What the column of --label holds: classes, which is the default, or numbers.",
)
@cluster_options
@output_options
def fit(
    talk: Talk,
    data: tuple[Path, ...],
    out: Path | None,
    report: Path | None,
    test_size: float,
    address: str | None,
    workers: int | None,
    **options: Any,
) -> None:
    """Learn a metric from a table (CSV, Parquet or npz).

    The command holds out some rows and compares the metric on them with Euclidean distance,
    tuned k-NN and a tuned SVM. Then it learns again from all rows and saves the model. With
    --task regression, the label is a number, and the score is R², the share of its variance
    that is predicted.

    Columns of names become zeros and ones. Missing values are filled. Columns that are constant
    or identify the row are left out. The command says what it does with each column.

    \b
    Examples:
      kernelmetric fit flowers.csv --label species --report page.html
      kernelmetric fit flowers.csv --label species --learner lmnn --out model.km
      kernelmetric fit houses.csv --label price --task regression --report page.html
      kernelmetric fit flowers.csv --label species --recipe model.km --out again.km
      kernelmetric fit faces.npz --pairs pairs.csv --out model.km
      kernelmetric fit songs.csv --triplets heard.csv --out model.km

    A table too large for one machine lies in several Parquet files. With --workers or --dask it
    is read part by part. A sample of its rows decides about the columns and is compared. The
    saved model learns from all rows.

    \b
      kernelmetric fit data/*.parquet --label kind --workers 4 --out model.km
    """
    inputs = {f"DATA {path}": path for path in data}
    inputs |= {f"--{name}": options[f"{name}_file"] for name in (*KNOWN, "recipe")}
    require_outputs({"--out": out, "--report": report}, inputs)
    with cluster(address, workers) as client:
        if client is None:
            if len(data) > 1:
                raise ValueError(
                    f"Got {len(data)} files, but expected one: add --workers 2, and the files are "
                    "read part by part, as those of one table."
                )
            study = open_study(data[0], **options)
            shape = f"{count(len(study.rows), 'row')}, {count(study.frame.shape[1], 'column')}"
            talk.say(f"Read {study.path}: {shape}.")
            talk.listed([] if talk.silent else study.forecast())
        else:
            study = open_parts_study(client, talk, data, **options)
        talk.listed(study.notes)
        needed = out is not None or (report is not None and study.pairs is not None)
        found = _learn(study, talk, test_size, keep=needed)
    _show(talk, study, found)
    page = "" if report is None else _page(study, found)  # first: it may be refused
    files = {}
    if out is not None:
        save(found.model, out)
        files["model"] = out
    if report is not None:
        files["report"] = write_atomically(report, page)
    talk.answer(_summary(study, found, files))
    _farewell(talk, files, study)


@dataclass
class Found:
    """Trials of all methods, on which rows, and the model of all rows to keep."""

    trials: list[Trial]
    train: Any = None
    test: Any = None
    model: Any = None
    seconds: float = 0.0
    ended: list[str] = field(default_factory=list)  # what a time limit ended in the last fit

    @property
    def notes(self) -> dict[str, str]:
        """What methods warned about, and the model of all rows."""
        last = {"the model of all rows": " ".join(self.ended)} if self.ended else {}
        return trial_notes(self.trials) | last

    @property
    def judged(self) -> Any:
        """The metric that was judged on rows; None where it was judged on pairs."""
        return self.trials[1].estimator

    def chosen(self) -> dict[str, tuple[str, str]]:
        """The parts of the model of all rows, or else of the one that was judged, and why."""
        model = self.model or self.judged
        recipe = None if model is None else getattr(model["metric"], "recipe_", None)
        return {} if recipe is None else described(recipe)


def _learn(study: Study, talk: Talk, test_size: float, *, keep: bool) -> Found:
    """Compare the metric with its alternatives, and learn it from all rows where it is needed."""
    begun = time.perf_counter()
    wanted, train, test = study.wanted, None, None
    ended: list[str] = []
    if study.pairs is None:
        train, test = holdout(study.y, test_size, wanted.seed, regression=wanted.regression)
        methods, parts = study.methods, [(train, test)]
        work = run_trials(methods, study.X, study.y, parts, sample_weight=study.weights)
        names, everything = list(methods), "all rows"
    else:
        work = pair_trials(study, _PAIR_FOLDS)
        names = ["Euclidean"] * _PAIR_FOLDS + [study.name] * _PAIR_FOLDS
        everything = f"all {wanted.known}"
    if keep:
        work, names = chain(work, _fitted(study, ended)), [*names, everything]
    found = list(talk.tracked(work, names))
    model = found.pop() if keep else None
    return Found(found, train, test, model, time.perf_counter() - begun, ended)


def _fitted(study: Study, ended: list[str]) -> Iterator[Any]:
    """The model, as the last step of the work; but for limits, the first fit warned of the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", TimeLimitWarning)
        model = study.fitted()
    ended += [str(warning.message) for warning in caught]
    yield model


def _show(talk: Talk, study: Study, found: Found) -> None:
    if study.pairs is None:
        score = "R²" if study.wanted.regression else "Accuracy"
        where = "of the sample, held out" if study.sampled else "held out"
        talk.say(f"{score} on {count(len(found.test), 'row')} {where}:")
    else:
        talk.say(f"{study.pair_score}, {_PAIR_FOLDS} folds:")
    scores = by_method(found.trials, "accuracy")
    width = max(map(len, scores))
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    for name, mean in means.items():
        best = mean == max(means.values())
        talk.say(f"  {name:<{width}}  {100 * mean:5.1f} %", style="bold" if best else None)
    tell_uneven(talk, found.trials, study.name, study.y)
    for name, note in found.notes.items():
        talk.say(f"  {name}: {note}", style="dim")
    if chosen := found.chosen():
        talk.say("What was chosen:")
    for name, (part, why) in chosen.items():
        talk.say(f"  {name:<8}{part}")
        if why:
            talk.say(f"          {why}", style="dim")


def _page(study: Study, found: Found) -> str:
    """The page; with labels it shows the model that has not seen the held-out rows."""
    X, y = study.X, study.y
    if study.pairs is None:
        encoder = study.table or found.judged["table"]
        metric = found.judged["metric"]
        order = np.concatenate([found.train, found.test])
        X_test = encoder.transform(X.iloc[found.test])
        parts: dict[str, Any] = {"y": y[found.train], "X_test": X_test, "y_test": y[found.test]}
        if study.wanted.regression:
            parts |= {"regression": True, "score_name": "R²"}
        X = encoder.transform(X.iloc[found.train])
    else:
        encoder, metric = found.model["table"], found.model["metric"]
        order = np.arange(len(study.rows))
        pairs = study.pairs if study.wanted.known == "pairs" else None
        parts = {"y": y, "pairs": pairs, "score_name": study.pair_score}
        X = encoder.transform(X)
    columns = [*study.plan.left_out, *study.plan.categories, *study.plan.numbers]
    shown = varying_columns(study.frame, columns, _SHOWN_COLUMNS)
    sample = f" of {study.n_rows:,}" if study.sampled else ""
    seconds = by_method(found.trials, "seconds")[study.name]
    return report_page(
        metric,
        X,
        **parts,
        scores=by_method(found.trials, "accuracy"),
        class_scores={t.method: t.scores for t in found.trials if t.scores is not None},
        learned=study.name,
        title=f"{study.name} on {study.path.name}",
        label=study.wanted.label or "class",
        feature_names=feature_columns(encoder),
        rows=study.rows[order],
        shown={name: study.frame[name].to_numpy()[order] for name in shown},
        facts={
            "rows": f"{len(study.rows):,}{sample}, {X.shape[1]:,} features",
            "time to learn": f"{np.mean(seconds):.1f} s",
            "time in all": f"{found.seconds:.1f} s",
            "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        },
        notes=study.notes,
        command=shlex.join(["kernelmetric", *sys.argv[1:]]),
    )


def _summary(study: Study, found: Found, files: dict[str, Path]) -> dict[str, Any]:
    return {
        "metric": study.name,
        "rows": study.n_rows,
        **({"sample": len(study.rows)} if study.sampled else {}),
        "label": study.wanted.label,
        "numbers": study.plan.numbers,
        "categories": study.plan.categories,
        "left_out": study.plan.left_out,
        "notes": study.notes,
        "scores": by_method(found.trials, "accuracy"),
        **uneven_summary(found.trials, study.name),
        "warnings": found.notes,
        "chosen": {name: {"is": is_, "why": why} for name, (is_, why) in found.chosen().items()},
        "seconds": round(found.seconds, 3),
        "files": {name: str(path) for name, path in files.items()},
    }


def _farewell(talk: Talk, files: dict[str, Path], study: Study) -> None:
    talk.saved(files.values())
    if not files:
        talk.say("Nothing was saved: add --out model.km to keep the metric, --report for a page.")
    if "model" in files:
        model, table = shlex.quote(str(files["model"])), shlex.quote(str(study.path))
        talk.suggest(f"kernelmetric neighbors {model} {table} --row 0")
