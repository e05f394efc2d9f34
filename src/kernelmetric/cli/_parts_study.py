"""A table in many files: decided about and compared on a sample of rows, learned from all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelmetric.cli._cluster import over_parts
from kernelmetric.cli._options import KNOWN, Wanted
from kernelmetric.cli._study import Study
from kernelmetric.cli._talk import Talk, count
from kernelmetric.spaces import automatic_space
from kernelmetric.tables import TableEncoder, labels_of, plan_columns, require_columns
from kernelmetric.tables._parts import Part, columns_of, counting_columns, open_parts
from kernelmetric.tables._targets import class_name, present

SAMPLE_ROWS = 4_000  # so many are compared within a minute, alternatives included
MOST_ROWS_EXACT = 100_000  # beyond, NCA goes over batches of rows instead of all pairs
_MOST_LABELS = 1_000_000  # of a column of classes that is looked at as a whole


@dataclass(frozen=True, kw_only=True)
class PartsStudy(Study):
    """A study of a sample, whose model is learned from all rows on the workers of a cluster."""

    sampled = True
    parts: list[Part]
    labelled: Sequence[int]  # rows of each part
    classes: Any  # all labels

    @property
    def n_rows(self) -> int:
        """How many rows are learned from."""
        return sum(self.labelled)

    def fitted(self) -> Pipeline:
        """The model: encoder from the sample, metric from Dask arrays read when they are needed."""
        import dask
        import dask.array as da

        model = self.model()
        encoder = model["table"].fit(self.X)
        label, dtype = self.wanted.label, self.classes.dtype
        shared = dask.delayed(encoder)  # one node of the graph, which all chunks share
        n_features = len(encoder.get_feature_names_out())
        blocks, labels = [], []
        for part, n_rows in zip(self.parts, self.labelled, strict=True):
            if n_rows:  # a chunk without a row is a nuisance to whoever works on it
                points = dask.delayed(_points)(part, shared, label)
                names = dask.delayed(_labels)(part, label, dtype)
                blocks.append(da.from_delayed(points, (n_rows, n_features), dtype=np.float64))
                labels.append(da.from_delayed(names, (n_rows,), dtype=dtype))
        model["metric"].fit(da.concatenate(blocks), da.concatenate(labels))
        return model


def open_parts_study(client: Any, talk: Talk, data: Sequence[Path], **options: Any) -> PartsStudy:
    """Read labels and a sample of the rows, and decide about the columns by the sample."""
    wanted = Wanted(**options)
    label, use, ignore = _label_alone(wanted), wanted.use, wanted.ignore
    metric = wanted.metric()
    parts = open_parts(data)
    require_columns(columns_of(parts[0]), [label, *use, *ignore])
    n_rows = sum(part.n_rows for part in parts)
    n_files = len({part.path for part in parts})
    talk.say(
        f"Reading {count(n_rows, 'row')} in {count(n_files, 'file')}, {count(len(parts), 'part')}."
    )
    share = min(1.0, SAMPLE_ROWS / n_rows)
    work = over_parts(client, _looked_at, parts, label, share, wanted.seed)
    found = dict(talk.tracked(work, ["labels and a sample"] * len(parts)))
    texts, labelled, drawn = zip(*(found[k] for k in range(len(parts))), strict=True)
    counts: Counter[str] = sum(texts, Counter())
    n_labelled = sum(labelled)
    notes = _class_notes(counts, label)
    if n_labelled < n_rows:
        notes.append(f"{n_rows - n_labelled} rows have no {label} and are left out.")
    frame, rows = _together(parts, drawn)
    if wanted.learner_name == "nca" and n_labelled > MOST_ROWS_EXACT:
        if wanted.kernel == "none":
            metric.set_params(solver="minibatch")
        else:  # the space that so many rows get, said now: workers need not hold them together
            space = automatic_space(n_labelled, wanted.seed)
            metric.set_params(learner__solver="minibatch", space=space)
        notes.append(f"More than {MOST_ROWS_EXACT:,} rows: NCA learns from batches of them.")
    y = np.array(_texts(frame, label)[0])
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"Got a sample of {len(y):,} rows of one class only, though there are {len(counts)}: "
            "the others are too rare to be compared here. Learn from all rows in Python."
        )
    counters = [name for name in counting_columns(parts) if frame[name].is_unique]
    counters = [name for name in counters if name not in {label, *use, *ignore}]
    notes += [f"{name}: left out, it counts the rows, like an identifier." for name in counters]
    plan = plan_columns(frame, label=label, use=use, ignore=(*ignore, *counters))
    first = (
        f"A sample of {len(frame):,} of {n_labelled:,} rows decides about columns, medians and "
        "scales; the comparison and the page show it. The model learns from all rows."
    )
    notes = [first, *plan.notes, *notes]
    study = (Path(parts[0].path), frame, rows, plan, metric, y, None, tuple(notes), wanted)
    return PartsStudy(*study, parts=parts, labelled=labelled, classes=np.array(sorted(counts)))


def _label_alone(wanted: Wanted) -> str:
    """The column of classes; refused with options that parts of a table do not have."""
    options = (*(f"{name}_file" for name in (*KNOWN, "recipe")), "weights", "class_weight")
    given = ["--" + name.removesuffix("_file") for name in options if getattr(wanted, name)]
    given += ["--task regression"] * wanted.regression + ["no --label"] * (wanted.label is None)
    if given:
        raise ValueError(
            f"Got {given[0]} for files to be read part by part, but expected a column of classes "
            "in --label, without weights or recipe: learn from one table, or in Python."
        )
    return str(wanted.label)


def _looked_at(
    part: Part, number: int, label: str, share: float, seed: int
) -> tuple[Counter[str], int, Any]:
    """Labels of a part, how many rows have one, and some rows of it with their numbers."""
    table = part.read()
    texts, has_label = _texts(table.frame, label)
    rng = np.random.RandomState([seed, number])
    rows = np.flatnonzero(has_label)
    n_drawn = min(len(rows), int(share * len(rows) + rng.random_sample()))
    drawn = np.sort(rng.choice(rows, n_drawn, replace=False)) if n_drawn else rows[:0]
    return Counter(texts), len(rows), table.frame.iloc[drawn]


def _points(part: Part, encoder: TableEncoder, label: str) -> np.ndarray:
    table = part.read([*encoder.numbers, *encoder.categories, label])
    return encoder.transform(table)[_texts(table.frame, label)[1]]


def _labels(part: Part, label: str, dtype: Any) -> np.ndarray:
    return np.array(_texts(part.read([label]).frame, label)[0], dtype=dtype)


def _texts(frame: Any, label: str) -> tuple[list[str], np.ndarray]:
    """Labels as texts, and which rows have one; what holds for all of them is not asked here."""
    texts, has_label = present(frame, label)
    return [class_name(text) for text in texts], has_label


def _class_notes(counts: Counter[str], label: str) -> list[str]:
    """Refuse what are no classes; sentences on those there are."""
    import pandas as pd

    most = max(2, _MOST_LABELS // max(len(counts), 1))  # of a class: more change no judgement
    texts = [text for text, number in counts.items() for _ in range(min(number, most))]
    return labels_of(pd.DataFrame({label: pd.Series(texts, dtype=object)}), label)[2]


def _together(parts: Sequence[Part], drawn: Sequence[Any]) -> tuple[Any, np.ndarray]:
    """The sample in one frame, and the numbers of its rows among all rows of all files."""
    import pandas as pd

    starts = np.cumsum([0, *(part.n_rows for part in parts)])
    rows = [start + frame.index.to_numpy() for start, frame in zip(starts, drawn, strict=False)]
    frames = [frame for frame in drawn if len(frame)]
    return pd.concat(frames, ignore_index=True), np.concatenate(rows)
