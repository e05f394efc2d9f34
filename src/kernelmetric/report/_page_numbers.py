"""The part of the report page for targets that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from kernelmetric.report._page_charts import scatter_svg
from kernelmetric.report._page_data import Points
from kernelmetric.report._text import html_text

_LISTED = 12
_VOTERS = 5  # neighbours whose mean is the prediction where the metric chose no number


def number_predictions(Z: np.ndarray, points: Points, voters: int) -> np.ndarray:
    """Means of the nearest training points' numbers, for every held-out point."""
    n = points.n_train
    knn = KNeighborsRegressor(min(voters, n)).fit(Z[:n], points.values[:n])
    return knn.predict(Z[n:])


def number_section(points: Points, data: Mapping[str, Any], label: str) -> str:
    """Numbers of held-out points beside predicted ones, and where these are farthest off."""
    n = points.n_train
    if points.values is None or len(points.codes) - n < 1:
        return ""
    true = points.values[n:]
    voters = points.voters or _VOTERS
    said = {
        "before": number_predictions(points.before, points, _VOTERS),
        "after": number_predictions(points.after, points, voters),
    }
    errors = {side: np.abs(values - true) for side, values in said.items()}
    listed = np.argsort(-errors["after"], kind="stable")[:_LISTED]
    better = int(np.sum(errors["after"] < errors["before"]))
    note = (
        f"The mean of {_VOTERS} neighbours is off by {np.mean(errors['before']):.4g} before, that "
        f"of {voters} by {np.mean(errors['after']):.4g} after, in the mean of {len(true):,} "
        f"held-out rows; {better:,} of them are predicted better than before."
    )
    lines = "".join(
        f'<tr data-point="{n + i}"><td>row {data["points"]["rows"][n + i]}</td>'
        + "".join(
            f'<td class="n">{value:.4g}</td>'
            for value in (true[i], said["after"][i], said["before"][i])
        )
        + "</tr>"
        for i in listed.tolist()
    )
    heads = (html_text(label), "neighbours say", "before")
    head = "<th>row</th>" + "".join(f'<th class="n">{name}</th>' for name in heads)
    table = (
        f'<div class="scroll"><table class="hard"><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )
    picture = scatter_svg(true, said["after"], x_name=label, y_name="neighbours say")
    return (
        f'<section id="numbers"><h2>Predicted numbers</h2><p class="note">{note}</p>'
        f'<div class="two"><figure>{picture}</figure><figure><h3>Farthest off</h3>{table}'
        '<p class="note">Click a row to see it in the planes.</p></figure></div></section>'
    )
