"""The sections of the report page on points, pairs and how it was made, as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelmetric.compute import to_numpy
from kernelmetric.inspection import FeatureImportance
from kernelmetric.kernelized._recipe import described
from kernelmetric.report import _page_html as html
from kernelmetric.report._kernel_plots import _names
from kernelmetric.report._page_data import MOST_POINTS, Points, hardness, on_a_line, predictions
from kernelmetric.report._text import html_text, percent
from kernelmetric.selection import AlignedSum

_LISTED = 12  # errors and features
_LISTED_NOTES = 200
_LONGEST = 300  # characters of a note
_VOTERS = 5  # neighbours whose mean is the prediction where the metric chose no number


def captions(
    points: Points, shares: tuple[float, float], n_rows: int, label: str
) -> dict[str, str]:
    """What stands beside the two planes and the two Gram matrices, by its name in the page."""
    n, n_test = len(points.codes), len(points.codes) - points.n_train
    said = "Every mark is a row; near marks are alike."
    if n_test:
        said += f" Bright marks are the {n_test:,} rows held out, pale ones the training rows."
    if n > MOST_POINTS - 2:
        said += f" Shown are {n:,} of {n_rows:,} rows."
    axes = "First two principal axes"
    if len(points.classes) > 1:
        kind = "classes" if points.values is None else "ranges"
        axes = f"Where the means of the {kind} differ most"
    before, after = (f"{axes}: {100 * share:.0f} % of the variance." for share in shares)
    if on_a_line(points.after[: points.n_train]):
        after = "The metric is one direction. Heights only keep the marks apart."
    order = f", ordered by {html_text(label)}" if points.classes else ""
    rows = f"{'held-out' if n_test >= 2 else 'training'} rows{order}"
    return {"marks": said, "before": before, "after": after, "rows": rows}


def chosen_section(metric: Any) -> str:
    """What "auto" became, and why."""
    recipe = getattr(metric, "recipe_", None)
    if recipe is None:
        return ""
    entries = "".join(
        f"<dt>{name}</dt><dd><code>{html_text(part)}</code>"
        + (f'<br><span class="note">{html_text(why)}</span>' if why else "")
        + "</dd>"
        for name, (part, why) in described(recipe).items()
    )
    return html.section("What was chosen", "", f"<dl>{entries}</dl>", name="chosen")


def learned_section(metric: Any, found: FeatureImportance | None) -> str:
    """What the kernel and the features count, and the loss as it fell."""
    boxes = _kernel_boxes(getattr(metric, "kernel_", None))
    if found is not None:
        listed = found.ranked()[:_LISTED]
        shares = html.bars(listed, [percent(share) for _, share in listed])
        total = len(found.names)
        rest = f" (the first {len(listed)} of {total})" if len(listed) < total else ""
        boxes += html.figure(f"How much each column counts{rest}", shares)
    loss = getattr(getattr(metric, "learner_", metric), "loss_curve_", None)
    if loss is not None and len(loss) > 1:
        boxes += html.figure("The loss as it fell", loss_chart(loss))
    return html.section("What was learned", "", f'<div class="flow">{boxes}</div>') if boxes else ""


def loss_chart(values: Sequence[float]) -> str:
    """The finite values of a loss by iteration, on a log scale where they span a decade.

    >>> from kernelmetric.report._page_sections import loss_chart
    >>> "log" in loss_chart([100.0, 10.0, 1.0]), "log" in loss_chart([3.0, 2.0])
    (True, False)
    """
    loss = np.asarray(values, dtype=float)
    loss = loss[np.isfinite(loss)]
    if not len(loss):
        return ""
    low, high = loss.min(), loss.max()
    ends = ("1", str(len(loss)), f"{low:.4g}", f"{high:.4g}")
    steps, name = html.scaled(np.arange(len(loss)), 0, len(loss) - 1), "loss"
    if low > 0 and high > 10 * low:
        loss, low, high, name = np.log10(loss), np.log10(low), np.log10(high), "loss, log scale"
    return html.chart(html.curve(steps, html.scaled(loss, low, high)), ends, ("iteration", name))


def _kernel_boxes(kernel: Any) -> str:
    """Weights of an aligned sum, or errors of the kernels that were tried."""
    if isinstance(kernel, AlignedSum) and hasattr(kernel, "weights_"):
        names, below = _names(kernel.base_kernels_)
        shares = np.asarray(kernel.weights_) / np.sum(kernel.weights_)
        weights = [(f"{below} {name}".strip(), s) for name, s in zip(names, shares, strict=True)]
        content = html.bars(weights, [percent(share) for share in shares])
        return html.figure(f"Weights of the kernels; alignment {kernel.alignment_:.3f}", content)
    if hasattr(kernel, "candidates_"):
        ranked = sorted(kernel.candidates_.items(), key=lambda item: item[1])
        content = html.bars(ranked, [f"{error:.3g}" for _, error in ranked])
        return html.figure("Kernels that were tried, by leave-one-out error", content)
    return ""


def error_section(points: Points, data: Mapping[str, Any], label: str) -> str:
    """Held-out points whose neighbours are of another class."""
    n = points.n_train
    if not points.classes or points.values is not None or len(points.codes) - n < 1:
        return ""
    true = points.codes[n:]
    said = {side: np.asarray(data["points"][side]["said"]) for side in ("before", "after")}
    before, after = (codes != true for codes in said.values())
    hard = hardness(points)
    listed = np.flatnonzero(after)
    listed = listed[np.argsort(-hard[listed], kind="stable")][:_LISTED]
    counts = (
        f"Of {len(true):,} held-out rows {np.sum(before):,} are predicted wrong before and "
        f"{np.sum(after):,} after: {np.sum(before & ~after):,} were put right, "
        f"{np.sum(~before & after):,} were spoilt."
    )
    lines = ""
    for i in listed.tolist():
        row = row_name(data["points"]["rows"][n + i])
        names = (points.classes[true[i]], points.classes[said["after"][i]])
        texts = (row, *names, "wrong" if before[i] else "right")
        lines += html.line(texts, [f"{hard[i]:+.2f}"], point=n + i)
    heads = ("row", f"true {html_text(label)}", "predicted", "before")
    body = html.table(heads, ["misplaced by"], lines, "hard") + (
        '<p class="note">Misplaced by: from −1, at home, to +1, among another class. Click a row '
        "to see it in the planes.</p>"
    )
    return html.section("The hardest rows", counts, body if lines else "")


def number_section(points: Points, data: Mapping[str, Any], label: str) -> str:
    """Numbers of held-out points beside predicted ones, and where these are farthest off."""
    n = points.n_train
    if points.values is None or len(points.codes) - n < 1:
        return ""
    true, voters = points.values[n:], points.voters or _VOTERS
    before = predictions(points.before, points.values, n, _VOTERS)
    after = points.predicted
    if after is None:
        after = predictions(points.after, points.values, n, voters)
    off = {"before": np.abs(before - true), "after": np.abs(after - true)}
    better = int(np.sum(off["after"] < off["before"]))
    note = (
        f"Predictions of {len(true):,} held-out rows are off by {np.mean(off['after']):.4g} in "
        f"the mean, and by {np.mean(off['before']):.4g} before, by the mean of {_VOTERS} "
        f"neighbours; {better:,} rows are predicted better than before."
    )
    lines = ""
    for i in np.argsort(-off["after"], kind="stable")[:_LISTED].tolist():
        numbers = [f"{value:.4g}" for value in (true[i], after[i], before[i])]
        row = row_name(data["points"]["rows"][n + i])
        lines += html.line([row], numbers, point=n + i)
    listed = html.table(["row"], (f"true {html_text(label)}", "predicted", "before"), lines, "hard")
    listed += '<p class="note">Click a row to see it in the planes.</p>'
    low, high = (float(end(np.concatenate([true, after]))) for end in (np.min, np.max))
    x, y = (html.scaled(numbers, low, high) for numbers in (true, after))
    ends = 2 * (f"{low:.4g}", f"{high:.4g}")
    picture = html.chart(html.dots(x, y), ends, (f"true {label}", "predicted"))
    body = f'<div class="two"><figure>{picture}</figure>{html.figure("Farthest off", listed)}</div>'
    return html.section("Predicted numbers", note, body, name="numbers")


def row_name(row: Any) -> str:
    """What a row is called, by its number or its own name."""
    return str(row) if isinstance(row, str) else f"row {row}"


def pairs_section(metric: Any, X: Any, pairs: Any, numbers: np.ndarray) -> str:
    """Similar pairs that are still far, dissimilar ones that are still near."""
    if pairs is None:
        return ""
    X = np.asarray(X)
    rows, similar = pairs.rows, pairs.is_similar
    before = np.linalg.norm(X[rows[:, 0]] - X[rows[:, 1]], axis=1)
    after = to_numpy(metric.pair_distance(rows, X))
    before, after = (d / max(np.median(d), np.finfo(float).tiny) for d in (before, after))
    far = np.flatnonzero(similar)[np.argsort(-after[similar], kind="stable")][:6]
    near = np.flatnonzero(~similar)[np.argsort(after[~similar], kind="stable")][:6]
    lines = "".join(
        html.line(
            [f"{row_name(numbers[rows[p, 0]])} and {row_name(numbers[rows[p, 1]])}", said],
            [f"{before[p]:.2f}", f"{after[p]:.2f}"],
        )
        for said, some in (("alike", far), ("different", near))
        for p in some
    )
    return html.section(
        "The hardest pairs",
        "Similar pairs that are far apart, and dissimilar ones that are near; distances in units "
        "of the median pair.",
        html.table(("pair", "said to be"), ("before", "after"), lines),
    )


def details_section(
    metric: Any,
    facts: Mapping[str, str],
    notes: Iterable[str],
    command: str | None,
    versions: Mapping[str, str],
) -> str:
    """Parameters, versions, timings, how the data were prepared, and the command."""
    known = {"metric": repr(metric)} if hasattr(metric, "get_params") else {}
    known |= facts
    known["versions"] = ", ".join(f"{name} {number}" for name, number in versions.items())
    body = f"<pre>{html_text(command, keep=chr(10))}</pre>" if command else ""
    entries = "".join(
        f"<dt>{html_text(name)}</dt><dd>{html_text(value, keep=chr(10))}</dd>"
        for name, value in known.items()
    )
    body += f"<dl>{entries}</dl>"
    notes = list(notes)
    if len(notes) > _LISTED_NOTES:  # a table may have a remark on each of 20,000 columns
        notes = [*notes[:_LISTED_NOTES], f"... and {len(notes) - _LISTED_NOTES:,} more."]
    if notes:
        sentences = "".join(f"<li>{html_text(note, most=_LONGEST)}</li>" for note in notes)
        body += f'<h3 style="margin-top:1.2em">The data</h3><ul class="notes">{sentences}</ul>'
    return html.section("How it was made", "", body)
