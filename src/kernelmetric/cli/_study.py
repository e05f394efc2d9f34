"""A table with the decisions about it, and trials of a metric on it."""

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from kernelmetric import tables
from kernelmetric.cli._files import load_recipe
from kernelmetric.cli._options import KNOWN, Wanted, metric_name
from kernelmetric.cli._talk import count
from kernelmetric.compute._device import found_device, use_device
from kernelmetric.compute.reductions import nearest_neighbors
from kernelmetric.evaluation import Trial, baselines, cross_validate_pairs, holdout, measured
from kernelmetric.evaluation._baselines import fit_and_judge
from kernelmetric.kernels import Columns
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.selection import KernelAlignment, RidgeKPCA
from kernelmetric.selection._ridge_kpca import ALL_ROWS
from kernelmetric.spaces import KPCA
from kernelmetric.tables import ColumnPlan, TableEncoder

MOST_ROWS_FOR_SVM = 5_000  # beyond, a tuned SVM takes longer than everything else
MOST_CLASSES_FOR_SVM = 100  # likewise: it is a machine for every two of them
MOST_COMPARED = 25_000  # rows: more would narrow the interval of a score by little
MOST_ROWS_EXACT = 100_000  # beyond, linear NCA goes over batches of rows instead of all pairs
_COORDINATES = 100  # of a kernel of objects, for methods that take numbers
_SOON_DONE = 2_000  # rows: fewer take a few seconds
_WORTH_SAYING = 5.0  # seconds
_WORTH_A_DEVICE, _SHORTER = 30.0, 1.5  # seconds; and how many times as fast a device must be
_ASKED, _MAY_BE_EASY = 2_000, 0.1  # rows with a neighbour of another class, fewer of so many


@dataclass(frozen=True)
class Study:
    """A table, what is learned from it (labels, numbers or pairs), and by what metric.

    Rows without a label are gone; ``rows`` are the numbers of the others in the file. ``table`` is
    the fitted encoder of the model whose recipe is used.
    """

    path: Path
    frame: Any
    rows: np.ndarray
    plan: ColumnPlan
    metric: Any
    y: Any
    pairs: Any
    notes: tuple[str, ...]
    wanted: Wanted
    weights: np.ndarray | None = None
    table: TableEncoder | None = None
    n_read: int | None = None  # rows with a label, where those here are a sample of them

    @property
    def name(self) -> str:
        """What to call the metric."""
        return metric_name(self.metric)

    @property
    def pair_score(self) -> str:
        """What pairs that were left out are judged by."""
        if self.wanted.known == "pairs":
            return "AUC of held-out pairs"
        return f"Share of held-out {self.wanted.known} that hold"

    @cached_property
    def compared(self) -> np.ndarray:
        """The rows on which the metric is compared with others: all, or a sample of so many."""
        n, numbers = len(self.rows), self.wanted.regression
        if n <= MOST_COMPARED:
            return np.arange(n)
        return holdout(self.y, MOST_COMPARED / n, self.wanted.seed, regression=numbers)[1]

    def encoder(self) -> Any:
        """What makes features of the columns: still to be fitted, or that of a recipe."""
        return self.plan.encoder() if self.table is None else FrozenEstimator(self.table)

    @cached_property  # several times the work of learning, where columns are many thousands
    def X(self) -> Any:
        """The columns that are used, in the types the encoder reads."""
        return tables.features_of(self.frame, self.encoder())

    @property
    def methods(self) -> dict[str, Any]:
        """The metric among its alternatives, each a classifier or regressor of rows."""
        encoder, y, numbers = self.encoder(), self.y, self.wanted.regression
        found = baselines(y, random_state=self.wanted.seed, regression=numbers)
        if len(self.rows) > MOST_ROWS_FOR_SVM:
            found = {"Euclidean": found["Euclidean"]}
        elif not numbers and len(np.unique(y)) > MOST_CLASSES_FOR_SVM:
            del found["RBF-SVM, tuned"]
        methods = {"Euclidean": None, self.name: self.model()}
        steps = [("table", encoder)]
        if self.plan.objects:  # of which no table of numbers is at hand
            steps.append(("coordinates", KPCA(_COORDINATES, kernel=self.metric.kernel)))
        for name, method in found.items():
            methods[name] = Pipeline([*steps, ("classifier", method)])
        return methods

    def folds(self, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Shuffled folds, even in their classes where those are large enough."""
        rows = self.compared
        counts = np.unique(self.y[rows], return_counts=True)[1]
        kind: Any = StratifiedKFold if counts.min() >= n_folds else KFold
        splitter = kind(n_folds, shuffle=True, random_state=self.wanted.seed)
        folds = splitter.split(np.empty((len(rows), 0)), self.y[rows])
        return [(rows[train], rows[test]) for train, test in folds]

    def forecast(self, *n_rows: int) -> list[str]:
        """How long the metric takes to learn from so many rows, if not a moment, and on a GPU."""
        if self.pairs is not None or len(self.rows) <= _SOON_DONE:
            return []
        models = [self.model()[-1]]
        if self._may_be_easy():  # a sample cannot say whether boundary rows will do
            models.append(clone(models[0]).set_params(metric__space=RidgeKPCA(rows="boundary")))

        def seconds(model: Any) -> float:
            return sum(model.estimate_time(n, len(self.plan.used)) for n in n_rows)

        taken = sorted(map(seconds, models))
        if taken[-1] < _WORTH_SAYING:
            return []
        times = " and then ".join(f"{n:,}" for n in n_rows)
        said = [f"To learn from {times} rows takes about {_in_words(*taken)}."]
        device = found_device() if taken[0] > _WORTH_A_DEVICE else None
        if device is not None:
            with suppress(RuntimeError, ValueError), use_device(device):  # it may be full
                there = seconds(models[0])
                if _SHORTER * there < taken[0]:
                    said.append(f"With --device {device} it would take about {_in_words(there)}.")
        return said

    def _may_be_easy(self) -> bool:
        """Whether classes may be told apart by boundary rows: most rows are next to their like."""
        n, automatic = len(self.rows), self.wanted.kernel == "auto" and not self.plan.objects
        if self.wanted.regression or not automatic or n <= ALL_ROWS:
            return False
        rows = np.random.RandomState(self.wanted.seed).permutation(n)[:_ASKED]
        X = self.X.iloc[rows]
        with warnings.catch_warnings(), suppress(ValueError):  # all rows may have what these lack
            warnings.simplefilter("ignore")
            found = nearest_neighbors(self.encoder().fit(X).transform(X), 1)[0][:, 0]
            return bool(np.mean(self.y[rows][found] != self.y[rows]) < _MAY_BE_EASY)
        return False

    def model(self) -> Pipeline:
        """The model to keep, not fitted: predictions in the metric, or with pairs it alone."""
        metric, seed = clone(self.metric), self.wanted.seed
        if self.pairs is not None:
            return Pipeline([("table", self.encoder()), ("metric", metric)])
        as_it_comes = self.wanted.learner is None and self.wanted.kernel == "auto"
        as_it_comes &= len(self.plan.used) > len(self.plan.objects or ())
        given: Any = {"random_state": seed, "use_features": as_it_comes}
        predictor: Any = MetricRegressor(metric, **given)
        if not self.wanted.regression:
            weight, decision = self.wanted.class_weight, self.wanted.decision or "accuracy"
            given |= {"class_weight": weight, "decision": decision}
            predictor = MetricClassifier(metric, **given)
        return Pipeline([("table", self.encoder()), ("predictor", predictor)])

    def judged(self, train: np.ndarray, test: np.ndarray) -> Trial:
        """The metric learned from some rows, on all threads, and its score on others."""
        fitted, w, begun = self.model(), self.weights, time.process_time()
        parts = ((self.X.iloc[rows], self.y[rows]) for rows in (train, test))
        counts = (None, None) if w is None else (w[train], w[test])
        score, scores = fit_and_judge(fitted, *parts, *counts)
        name = f"{self.name}, {count(len(train), 'row')}"
        return Trial(name, 0, score, time.process_time() - begun, "", fitted, scores)

    def fitted(self) -> Pipeline:
        """The model, fitted to all rows."""
        if self.pairs is None:
            counts = {} if self.weights is None else {"predictor__sample_weight": self.weights}
            model = self.model().fit(self.X, self.y, **counts)
        else:  # labels beside pairs are for the eye: nothing may be learned from them
            model = self.model().fit(self.X, **{f"metric__{self.wanted.known}": self.pairs})
        return self.with_row_names(model, np.arange(len(self.rows)))

    @property
    def row_names(self) -> np.ndarray:
        """What the rows are called, or their numbers in the file."""
        identifier = self.plan.identifier
        return self.rows if identifier is None else self.frame[identifier].map(str).to_numpy(str)

    def with_row_names(self, model: Pipeline, rows: np.ndarray) -> Pipeline:
        """A fitted model that knows how its training rows are called; no part of it is frozen."""
        table = model["table"] if self.table is None else self.table
        table.row_names_ = self.row_names[rows]
        return Pipeline([("table", table), model.steps[1]])


def _in_words(*seconds: float) -> str:
    """A time, or from when to when, in the unit of the longest."""
    unit, name = (1, "seconds") if max(seconds) < 100 else (60, "minutes")
    return " to ".join(dict.fromkeys(f"{max(1, t / unit):.0f}" for t in seconds)) + f" {name}"


def kernel_of(plan: ColumnPlan, *, regression: bool) -> Any:
    """The kernel of a table with columns of objects: one of each, and of all others together."""
    names = [*(plan.objects or {}).values()]
    first = len(plan.used) - len(names)  # the encoder has them at the end
    parts = [Columns([first + i], name) for i, name in enumerate(names)]
    parts += [Columns()] if first else []
    if len(parts) == 1:
        return parts[0]
    return KernelAlignment(parts, "regression" if regression else "classes", centered=True)


def varying_columns(frame: Any, names: Iterable[str], most: int) -> list[str]:
    """The first columns that do not hold the same in every row."""
    return list(islice((name for name in names if frame[name].nunique() > 1), most))


def pair_trials(study: Study, n_folds: int) -> Iterator[Trial]:
    """Euclidean distance, then the metric, judged on every fold of the pairs."""
    how: Any = {"pairs": study.pairs, "by": "pair", "cv": n_folds}
    how["random_state"] = study.wanted.seed
    for name, method in (("Euclidean", study.encoder()), (study.name, study.model())):
        found, _, note = measured(partial(cross_validate_pairs, method, study.X, **how))
        folds = zip(found["test_score"].tolist(), found["fit_time"].tolist(), strict=True)
        for fold, (score, seconds) in enumerate(folds):
            yield Trial(name, fold, score, seconds, note, None, None)


def open_study(data: Path | Sequence[Path], **options: Any) -> Study:
    """Read a table and decide about its columns, as the options of a command say."""
    wanted = Wanted(**options)
    label, known, weights = wanted.label, wanted.known, wanted.weights
    _require_sense(wanted)
    recipe, encoder = load_recipe(wanted.recipe_file) if wanted.recipe_file else (None, None)
    metric = wanted.metric(recipe)
    paths = [data] if isinstance(data, Path) else list(data)
    asked = (weights, *wanted.use, *wanted.ignore, *wanted.told)
    if named := [name for name in asked if name is not None]:
        tables.require_columns(next(tables.read_pieces(paths)).frame, named)  # before all is read
    drawn: Any = {"classes": not wanted.regression, "random_state": wanted.seed}
    drawn |= {"label": label, "most": wanted.rows} if known is None else {}  # pairs count all rows
    table, n_read, n_labelled = tables.sample_table(paths, **drawn)
    frame = table.frame
    rows, numbers = np.arange(len(frame)), np.asarray(table.rows)
    counts = None if weights is None else tables.weights_of(frame, weights)
    y, pairs = None, None
    notes: list[str] = []
    sampled = len(frame) < n_labelled
    if len(frame) <= n_labelled < n_read:  # the draw has left them out
        notes.append(f"{n_read - n_labelled} rows have no {label} and are left out.")
    if known is not None:
        file = getattr(wanted, f"{known}_file")
        pairs = KNOWN[known].from_file(file, len(frame))  # type: ignore[attr-defined]
    if label is not None:
        read = tables.targets_of if wanted.regression else tables.labels_of
        y, labelled, said = read(frame, label)
        notes += said
        if wanted.task == "classification":  # asked for
            notes = [note for note in notes if "--task" not in note]
        if pairs is not None and not labelled.all():
            raise ValueError(
                f"Got --{known} beside --label {label}, which {np.sum(~labelled)} rows lack: the "
                f"{known} count all rows. Leave --label out, or fill it."
            )
        rows = rows[labelled]
        if counts is not None:
            counted = counts[labelled] > 0
            if not counted.all():
                notes.append(f"{count(int(np.sum(~counted)), 'row')} of weight zero are left out.")
            rows, y = rows[counted], y[counted]
            counts = counts[rows]
        frame = frame.iloc[rows].reset_index(drop=True)
    if encoder is None:
        ignore = wanted.ignore if weights is None else (*wanted.ignore, weights)
        size = n_read if sampled else None
        told: Any = {"use": wanted.use, "ignore": ignore, "kinds": wanted.told}
        plan = tables.plan_columns(frame, label=label, n_rows=size, **told)
        if plan.objects and wanted.kernel == "auto":
            metric.set_params(kernel=kernel_of(plan, regression=wanted.regression))
    else:
        plan = _plan_of(encoder, frame, wanted)
        if plan.objects:
            metric.set_params(kernel=getattr(recipe, "kernel", None))
    notes = [*table.notes, *plan.notes, *notes]
    if plan.objects:
        notes.append(
            "Euclidean distance, k-NN and SVM are those of 100 coordinates of the same kernel."
        )
    if sampled:
        first = (
            f"A sample of {len(rows):,} of {n_labelled:,} rows decides about columns, medians and "
            "scales, and is all that is learned from: --rows N draws another number."
        )
        notes = [first, *notes]
    if y is not None and pairs is None:
        notes += _notes_on_size(metric, wanted, y)
    return Study(
        paths[0], frame, numbers[rows], plan, metric, y, pairs, tuple(notes), wanted, counts,
        encoder, n_labelled if sampled else None,
    )  # fmt: skip


def _notes_on_size(metric: Any, wanted: Wanted, y: np.ndarray) -> list[str]:
    """What is left out or done otherwise where rows or classes are many."""
    notes = []
    if len(y) > MOST_ROWS_EXACT and wanted.learner_name == "nca" and wanted.kernel == "none":
        metric.set_params(solver="minibatch")
        notes.append(f"More than {MOST_ROWS_EXACT:,} rows: NCA learns from batches of them.")
    if len(y) > MOST_COMPARED:
        notes.append(f"The comparison takes a sample of {MOST_COMPARED:,} of {len(y):,} rows.")
    if len(y) > MOST_ROWS_FOR_SVM:
        notes.append(f"More than {MOST_ROWS_FOR_SVM:,} rows: no tuned k-NN and SVM beside.")
    elif not wanted.regression and len(np.unique(y)) > MOST_CLASSES_FOR_SVM:
        notes.append(f"More than {MOST_CLASSES_FOR_SVM:,} classes: no tuned SVM beside.")
    return notes


def _require_sense(wanted: Wanted) -> None:
    """Refuse options that contradict each other, before anything is read."""
    known = wanted.known
    if wanted.label is None and known is None:
        raise ValueError(
            "Got neither --label nor --pairs, but expected the column to predict, or a table of "
            "pairs of rows: try --label COLUMN."
        )
    if wanted.regression and known is not None:
        raise ValueError(f"Got --task regression with --{known}, but expected --label alone.")
    if known is not None and (wanted.weights is not None or wanted.class_weight is not None):
        raise ValueError(
            f"Got --weights or --class-weight with --{known}, but expected --label: {known} on the "
            "command line count alike."
        )
    if wanted.decision is not None and (wanted.regression or known is not None):
        raise ValueError("Got --decision or --cost, but expected --label with classes beside it.")
    if wanted.recipe_file is not None and (wanted.use or wanted.ignore or wanted.told):
        raise ValueError(
            "Got --use, --as, --smiles, --text or --ignore with --recipe, but expected none of "
            "them: columns are those of the model."
        )


def _plan_of(encoder: TableEncoder, frame: Any, wanted: Wanted) -> ColumnPlan:
    """The columns as the encoder of a model reads them, whose kernel is one of their features."""
    recipe = wanted.recipe_file
    used = encoder.used
    asked = {"--label": wanted.label, "--weights": wanted.weights}
    for option, name in asked.items():
        if name in used:
            raise ValueError(
                f"Got {option} {name}, which is a feature of the model {recipe}, but expected "
                "another column: choose without --recipe."
            )
    others = tuple(name for name in frame.columns if name not in (*used, wanted.label))
    notes = (
        f"Columns are read, and what is auto is looked up, as in {recipe}. Where its rows are "
        "among these, the comparison flatters the metric.",
        *encoder.remarks(frame.drop(columns=[c for c in asked.values() if c is not None])),
    )
    own = encoder.get_params() | {"label": wanted.label, "objects": encoder.objects or {}}
    own["identifier"] = encoder.identifier if encoder.identifier in others else None
    return ColumnPlan(**own, left_out=others, notes=notes)
