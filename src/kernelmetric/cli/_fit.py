"""``kernelmetric fit``: from a table to a metric, a comparison and a page."""

import shlex
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

from kernelmetric._pulse import tell
from kernelmetric.cli._files import metric_of, require_outputs
from kernelmetric.cli._options import FILE, KNOWN, metric_options, output_options, several_data
from kernelmetric.cli._study import Study, open_study, pair_trials, varying_columns
from kernelmetric.cli._talk import Talk, count, this_command
from kernelmetric.cli._uneven import by_method, own_notes, tell_uneven, trial_notes, uneven_summary
from kernelmetric.compute.watch import TimeLimitWarning
from kernelmetric.evaluation import Trial, class_scores, holdout, run_trials
from kernelmetric.inspection import feature_columns, feature_importance
from kernelmetric.kernelized._recipe import described
from kernelmetric.report import report_page, write_atomically
from kernelmetric.report._page_objects import drawn
from kernelmetric.report._page_scores import Judged, verdict
from kernelmetric.shipping import save

_PAIR_FOLDS = 3
_SHOWN_COLUMNS = 4
_MOST_ASKED = 2_000  # rows learned from that are asked whether the model knows them by heart


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
@output_options
def fit(
    talk: Talk,
    data: tuple[Path, ...],
    out: Path | None,
    report: Path | None,
    test_size: float,
    **options: Any,
) -> None:
    """Learn a metric from a table (CSV, Parquet or npz).

    The command holds out some rows and compares the metric on them with Euclidean distance,
    tuned k-NN and a tuned SVM. Then it learns again from all rows and saves the model. With
    --task regression, the label is a number, and the score is R², the share of its variance
    that is predicted.

    Numbers may have units, percent and currency signs and marks of thousands. Dates, names and
    free text are used, and a missing value is a state of its own. Columns that are constant or
    identify the row are left out. The command says what it does with each column, and --use,
    --as and --ignore overrule it.

    \b
    Examples:
      kernelmetric fit flowers.csv --label species --report page.html
      kernelmetric fit flowers.csv --label species --learner lmnn --out model.km
      kernelmetric fit houses.csv --label price --task regression --report page.html
      kernelmetric fit customers.csv --label churn --as zip names --class-weight balanced
      kernelmetric fit flowers.csv --label species --recipe model.km --out again.km
      kernelmetric fit faces.npz --pairs pairs.csv --out model.km
      kernelmetric fit songs.csv --triplets heard.csv --out model.km
      kernelmetric fit assay.csv --smiles smiles --label pIC50 --task regression
      kernelmetric fit people.csv --text name --label person --out model.km

    A table of any size is read piece by piece, also one in several files. From more than 200,000
    rows a sample is drawn, which is what the metric learns from. The command says so.

    \b
      kernelmetric fit data/*.parquet --label kind --out model.km
    """
    inputs = {f"DATA {path}": path for path in data}
    inputs |= {f"--{name}": options[f"{name}_file"] for name in (*KNOWN, "recipe")}
    require_outputs({"--out": out, "--report": report}, inputs)
    with talk.busy("Reading " + " ".join(path.name for path in data), abrupt=True):
        study = open_study(data, **options)
    n_rows = count(study.n_read or len(study.rows), "row")
    source = str(study.path) if len(data) == 1 else count(len(data), "file")
    talk.say(f"Read {source}: {n_rows}, {count(study.frame.shape[1], 'column')}.")
    talk.listed(study.notes)
    keep = out is not None or (report is not None and study.pairs is not None)
    train, test, others = _split(study, test_size)
    with talk.busy("Making numbers of the columns", abrupt=True):
        _ = study.X
    with talk.busy("Looking how fast this machine is", abrupt=True):
        sizes = [len(others)] if keep else []
        forecast = [] if talk.silent else study.forecast(len(train), *sizes)
    talk.listed(forecast)
    found = _learn(study, talk, train, test, others, keep=keep)
    judged = _judged(study, found)
    _show(talk, study, found, judged)
    with talk.busy("Making the page", abrupt=True):
        page = "" if report is None else _page(study, found, judged)  # first: it may be refused
    files = {}
    with talk.busy("Writing"):
        if out is not None:
            files["model"] = save(found.model, out)
        if report is not None:
            files["report"] = write_atomically(report, page)
    talk.answer(_summary(study, found, judged, files))
    _farewell(talk, files, study)
    tell("Freeing the memory")  # of a large table, which takes seconds


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
        return own_notes(self.trials) | last

    @property
    def judge(self) -> Any:
        """The metric that was judged on rows; None where it was judged on pairs."""
        return self.trials[1].estimator

    def chosen(self) -> dict[str, tuple[str, str]]:
        """The parts of the model of all rows, or else of the one that was judged, and why."""
        model = self.model or self.judge
        recipe = None if model is None else getattr(metric_of(model), "recipe_", None)
        return {} if recipe is None else described(recipe)


def _split(study: Study, test_size: float) -> tuple[Any, Any, Any]:
    """Rows to compare on, to judge on, and to learn the model from: with pairs, all for all.

    Of a table that is sampled, the model does not see the rows it is judged on.
    """
    rows = np.arange(len(study.rows))
    if study.pairs is not None:
        return rows, None, rows
    chosen = study.compared
    seed, numbers = study.wanted.seed, study.wanted.regression
    train, test = holdout(study.y[chosen], test_size, seed, regression=numbers)
    train, test = chosen[train], chosen[test]
    return train, test, rows if study.n_read is None else np.setdiff1d(rows, test)


def _learn(study: Study, talk: Talk, train: Any, test: Any, others: Any, *, keep: bool) -> Found:
    """Compare the metric with its alternatives, and learn it from all rows where it is needed."""
    begun = time.perf_counter()
    ended: list[str] = []
    if study.pairs is None:
        methods, parts = study.methods, [(train, test)]
        work = run_trials(methods, study.X, study.y, parts, sample_weight=study.weights)
        names, everything = list(methods), count(len(others), "row")
    else:
        train, test = None, None
        work = pair_trials(study, _PAIR_FOLDS)
        names = ["Euclidean"] * _PAIR_FOLDS + [study.name] * _PAIR_FOLDS
        everything = f"all {study.wanted.known}"
    if keep:
        last = _fitted(study, others, test, ended)
        work, names = chain(work, last), [*names, everything]
    found = list(talk.tracked(work, names, abrupt=True))
    model = found.pop() if keep else None
    if isinstance(model, Trial):  # it was judged as well
        found.append(model)
        model = study.with_row_names(model.estimator, others)
    return Found(found, train, test, model, time.perf_counter() - begun, ended)


def _fitted(study: Study, others: Any, test: Any, ended: list[str]) -> Iterator[Any]:
    """The model, as the last step of the work, judged where the table is sampled.

    But for limits, the first fit warned of the same.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", TimeLimitWarning)
        model = study.fitted() if study.n_read is None else study.judged(others, test)
    ended += [str(warning.message) for warning in caught]
    yield model


def _show(talk: Talk, study: Study, found: Found, judged: Judged) -> None:
    if study.pairs is None:
        score = judged.score_name[:1].upper() + judged.score_name[1:]
        where = "of a sample, held out" if _is_limited(study) else "held out"
        learned = f", learned from {len(found.train):,}" if _is_limited(study) else ""
        talk.say(f"{score} on {count(len(found.test), 'row')} {where}{learned}:")
    else:
        talk.say(f"{study.pair_score}, {_PAIR_FOLDS} folds:")
    means = judged.means
    width = max(map(len, means))
    for name, mean in means.items():
        best = mean == max(means.values())
        told = _is_limited(study) and not study.wanted.regression
        sure = f" ± {196 * judged.error(name):.1f}" if told else ""
        own = "  (the learned metric)" if name == judged.learned else ""
        line = f"  {name:<{width}}  {100 * mean:5.1f} %{sure}{own}"
        talk.say(line, style="bold" if best else None)
    for sentence in verdict(judged)[1:]:
        talk.say(sentence)
    tell_uneven(talk, found.trials, study.name, study.y)
    said: dict[str, list[str]] = {}
    for name, note in found.notes.items():
        said.setdefault(note, []).append(name)
    for note, names in said.items():
        talk.say(f"  {', '.join(names)}: {note}", style="dim")
    if chosen := found.chosen():
        talk.say("What was chosen:")
    for name, (part, why) in chosen.items():
        talk.say(f"  {name:<8}{part}")
        if why:
            talk.say(f"          {why}", style="dim")


def _is_limited(study: Study) -> bool:
    """Whether the comparison is one of some of the rows."""
    return study.pairs is None and len(study.compared) < (study.n_read or len(study.rows))


def _judged(study: Study, found: Found) -> Judged:
    """What the trials have shown, by the score that fits the classes."""
    scores, of_classes = by_method(found.trials, "accuracy"), by_method(found.trials, "scores")
    n_train, n_test = (0 if rows is None else len(rows) for rows in (found.train, found.test))
    name = study.pair_score if study.pairs is not None else "accuracy"
    name = "R²" if study.wanted.regression else name
    firsts = {method: found[0] for method, found in of_classes.items()}
    chosen = study.wanted.decision is not None
    given = scores, study.name, name, n_train, n_test, firsts
    judged = Judged(*given, by_costs=chosen).leading()
    if study.pairs is not None or found.judge is None:
        return judged
    rows = found.train[:: 1 + len(found.train) // _MOST_ASKED]
    X, y = study.X.iloc[rows], study.y[rows]
    if judged.measure is None:
        return judged._replace(trained=found.judge.score(X, y))
    return judged._replace(trained=getattr(class_scores(found.judge, X, y), judged.measure))


def _page(study: Study, found: Found, judged: Judged) -> str:
    """The page; with labels it shows the model that has not seen the held-out rows."""
    X, y = study.X, study.y
    if study.pairs is None:
        encoder = study.table or found.judge["table"]
        metric = metric_of(found.judge)
        order = np.concatenate([found.train, found.test])
        X_test = encoder.transform(X.iloc[found.test])
        parts: dict[str, Any] = {"y": y[found.train], "X_test": X_test, "y_test": y[found.test]}
        predictor = found.judge[-1]
        parts["predicted"] = predictor.predict(X_test)
        if study.wanted.regression:
            parts |= {"regression": True, "score_name": "R²"}
        else:
            parts["probabilities"] = predictor.predict_proba(X_test)
            parts["costs"] = None if study.wanted.decision is None else predictor._costs()
            parts["test_weight"] = None if study.weights is None else study.weights[found.test]
        X = encoder.transform(X.iloc[found.train])
        if study.plan.objects:  # the page shows what is linear on their coordinates
            X, parts["X_test"] = (metric.space_.transform(part) for part in (X, X_test))
    else:
        encoder, metric = found.model["table"], found.model["metric"]
        order = np.arange(len(study.rows))
        pairs = study.pairs if study.wanted.known == "pairs" else None
        parts = {"y": y, "pairs": pairs, "score_name": study.pair_score}
        X = encoder.transform(X)
        X = metric.space_.transform(X) if study.plan.objects else X
    names = feature_columns(encoder)
    if study.plan.objects:
        names, metric = [f"coordinate {i}" for i in range(1, X.shape[1] + 1)], metric.learner_
    columns = [*study.plan.left_out, *study.plan.used]
    shown = varying_columns(study.frame, columns, _SHOWN_COLUMNS)
    n_shown = len(order)
    n_rows = study.n_read or len(study.rows)
    sample = f" of {n_rows:,}" if n_shown < n_rows else ""
    seconds = by_method(found.trials, "seconds")[study.name]
    return report_page(
        metric,
        X,
        **parts,
        scores=judged.scores,
        class_scores=judged.class_scores,
        trained=judged.trained,
        importance=_importance(study, found),
        learned=study.name,
        title=f"{study.name} on {study.path.name}",
        label=study.wanted.label or "class",
        feature_names=names,
        rows=study.row_names[order],
        shown={
            name: drawn((study.plan.objects or {}).get(name), study.frame[name].to_numpy()[order])
            for name in shown
        },
        facts={
            "rows": f"{n_shown:,}{sample}, {X.shape[1]:,} features",
            "time to learn": f"{np.mean(seconds):.1f} s",
            "time in all": f"{found.seconds:.1f} s",
            "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        },
        notes=study.notes,
        command=this_command(),
    )


def _importance(study: Study, found: Found) -> Any:
    """What each column counts in the model that is kept, as ``explain`` says of the same table."""
    try:
        return None if found.model is None else feature_importance(found.model, study.X)
    except ValueError:  # it sees no difference, or is no function of the columns
        return None


def _summary(study: Study, found: Found, judged: Judged, files: dict[str, Path]) -> dict[str, Any]:
    return {
        "metric": study.name,
        "rows": study.n_read or len(study.rows),
        **({"sample": len(study.rows)} if study.n_read is not None else {}),
        **({} if found.test is None else {"compared": [len(found.train), len(found.test)]}),
        "label": study.wanted.label,
        "numbers": study.plan.numbers,
        "categories": study.plan.categories,
        "dates": list(study.plan.dates or {}),
        "texts": study.plan.texts,
        "left_out": study.plan.left_out,
        "notes": study.notes,
        "scores": by_method(found.trials, "accuracy"),
        **uneven_summary(found.trials, study.name),
        "measure": judged.score_name,
        "verdict": verdict(judged),
        "warnings": trial_notes(found.trials) | found.notes,
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
