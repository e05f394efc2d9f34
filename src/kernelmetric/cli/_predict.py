"""``kernelmetric predict``: classes or numbers of new rows, how sure they are, and why."""

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from kernelmetric.cli import _options
from kernelmetric.cli._files import load_predictor
from kernelmetric.cli._talk import Talk, count
from kernelmetric.cli._transform import in_one, require_places, write_pieces
from kernelmetric.report._text import short
from kernelmetric.tables import features_of

_PRINTED = 20  # rows
_PRINTED_CLASSES = 5  # probabilities of so many
_NEW = 2.0  # times the usual distance to the training rows


@click.command()
@_options.model_argument
@_options.several_data
@_options.rows_out_options
@click.option(
    "-k", "--neighbors", "k", type=click.IntRange(0), default=3, help="Nearest rows to name."
)
@click.option(
    "--coverage",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    help="Share of true numbers that intervals hold.",
)
@_options.decision_options
@_options.device_option
@_options.output_options
def predict(
    talk: Talk,
    model: Path,
    data: tuple[Path, ...],
    out: Path | None,
    folder: Path | None,
    decision: Any,
    **options: Any,
) -> None:
    """Predict the label of new rows.

    A row gets its class and a probability of every class, or a number with an interval. Its
    novelty is its distance to the training rows: 1 is usual, and 2 is twice as far. The
    nearest training rows are named with their labels, which is why the row is predicted so.

    Columns are found by name. The label, and columns that the model does not use, may be
    missing; they are carried along where they are there.

    \b
    Examples:
      kernelmetric predict model.km new.csv
      kernelmetric predict model.km new.csv --out predictions.csv
      kernelmetric predict model.km data/*.parquet --output predictions
      kernelmetric predict model.km new.csv --decision balanced
      kernelmetric predict model.km new.csv --cost ill well 5
    """
    require_places(model, data, out, folder)
    fitted = load_predictor(model)
    if decision is not None:
        _decide(fitted["predictor"], decision)
    made = partial(predictions, fitted, **options)
    if folder is not None:
        write_pieces(talk, fitted, data, folder, made)
        return
    result, found = in_one(talk, fitted, data, out, made)
    if out is None:
        _print(talk, fitted, result, found)
    new = int(np.sum(found["novelty"] > _NEW))
    if new:
        talk.aside(
            [
                f"{count(new, 'row')} of {len(result):,} are more than twice as far from the "
                "training rows as usual: their predictions are less sure than they look."
            ]
        )
    if talk.as_json:
        talk.answer({"model": str(model), "rows": result.to_dict("records")})


def _decide(predictor: Any, decision: Any) -> None:
    """Let a model predict by other costs, refused before any row is read."""
    if not hasattr(predictor, "classes_"):
        raise ValueError("Got --decision or --cost, but the model predicts numbers, not classes.")
    predictor.set_params(decision=decision)._costs()


def predictions(model: Any, table: Any, *, k: int = 3, coverage: float = 0.9) -> Any:
    """What a model says of the rows of a table, as a frame."""
    import pandas as pd

    encoder, predictor = model["table"], model["predictor"]
    X = encoder.transform(features_of(table, encoder))
    label = encoder.label or "label"
    found: dict[str, Any] = {}
    if hasattr(predictor, "classes_"):
        P = predictor.predict_proba(X)
        found[f"predicted_{label}"] = predictor._decided(P)
        found |= {f"probability_{c}": p for c, p in zip(predictor.classes_, P.T, strict=True)}
    else:
        found[f"predicted_{label}"] = predictor.predict(X)
        found["low"], found["high"] = predictor.predict_interval(X, coverage).T
    found["novelty"] = -predictor.score_samples(X)
    names = encoder.row_names_
    targets = predictor.targets_ if "low" in found else predictor.classes_[predictor._codes]
    rows = predictor.kneighbors(X, min(k, len(names)), return_distance=False).T if k else ()
    for i, near in enumerate(rows, start=1):
        found |= {f"neighbor_{i}": names[near], f"neighbor_{i}_{label}": targets[near]}
    return pd.DataFrame(found)


def _print(talk: Talk, model: Any, result: Any, made: Any) -> None:
    """A table to read: who, what, how sure, how new, and why."""
    encoder = model["table"]
    named = encoder.identifier in result
    who = result[encoder.identifier] if named else result.index
    whole = ["neighbor_1"] if "neighbor_1" in made else []
    shown = [c for c in made.columns if not c.startswith(("neighbor_", "probability_"))]
    probable = [c for c in made.columns if c.startswith("probability_")]
    if len(probable) <= _PRINTED_CLASSES:
        shown[1:1] = probable
    lines = []
    for i, row in enumerate(made.head(_PRINTED).to_dict("records")):
        near = [str(value) for name, value in row.items() if name.startswith("neighbor_")]
        pairs = [" ".join(pair) for pair in zip(near[::2], near[1::2], strict=True)]
        cells = [f"{row[c]:.3f}" if c in probable else short(row[c]) for c in shown]
        lines.append([who[i], *cells, *([", ".join(pairs)] if whole else [])])
    heads = [encoder.identifier if named else "row", str(encoder.label or "label")]
    heads += [f"p({c.partition('_')[2]})" if c in probable else c for c in shown[1:]]
    talk.table(None, [*heads, *(["nearest training rows"] if whole else [])], lines)
    rest = len(made) - len(lines)
    if rest:
        talk.say(f"... and {count(rest, 'more row')}: add --out predictions.csv for all of them.")
