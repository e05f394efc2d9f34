"""The sections of the report page, each a function from what was found to HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelmetric.compute import to_numpy
from kernelmetric.evaluation import ClassScores
from kernelmetric.inspection import FeatureImportance
from kernelmetric.kernelized._recipe import described
from kernelmetric.report._kernel_plots import _names
from kernelmetric.report._page_charts import bars_svg, curve_svg
from kernelmetric.report._page_data import MOST_POINTS, Points, hardness, on_a_line
from kernelmetric.report._text import html_text
from kernelmetric.selection import AlignedSum

_LISTED_ERRORS = 12
_LISTED_FEATURES = 12
_LISTED_NOTES = 200
_MOST_CLASSES = 20  # of a confusion matrix
_LONGEST = 300  # characters of a note
_HALF = 460  # pixels of a picture beside another
Scores = Mapping[str, Sequence[float]]


def verdict(
    scores: Scores,
    learned: str,
    score_name: str,
    total: Mapping[str, int],
    class_scores: Mapping[str, ClassScores] | None = None,
) -> str:
    """What came out, in two sentences, and a third where the largest class would do better."""
    judged = (class_scores or {}).get(learned)
    warning = "" if judged is None or not judged.warning else judged.warning
    said = _verdict(scores, learned, score_name, total)
    return f"{said} <b>Beware: {html_text(warning)}</b>" if warning else said


def _verdict(scores: Scores, learned: str, score_name: str, total: Mapping[str, int]) -> str:
    if learned not in scores:
        return f"Learned from {total['train']:,} rows."
    mean = {name: float(np.mean(values)) for name, values in scores.items()}
    where = " on rows held out" if total["test"] else ""
    said = f"With the learned metric, {html_text(score_name)}{where} is "
    said += f"<b>{_percent(mean[learned])}</b>"
    if "Euclidean" in mean:
        said += f"; with Euclidean distance, {_percent(mean['Euclidean'])}"
    others = {name: m for name, m in mean.items() if name not in (learned, "Euclidean")}
    if not others:
        return said + "."
    best = max(others, key=lambda name: others[name])
    errors = [_spread(scores[name], total["test"], score_name) for name in (learned, best)]
    rest = f"The best of the others ({html_text(best)}) reaches {_percent(others[best])}"
    if abs(mean[learned] - others[best]) <= 2 * float(np.linalg.norm(errors)):
        rest += ", a difference that may be chance"
    return f"{said}. {rest}."


def tiles(scores: Scores, learned: str, score_name: str, total: Mapping[str, int]) -> str:
    """The scores as large numbers."""
    if not scores:
        return ""
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    best = max(means.values())
    boxes = "".join(
        f'<div class="tile{" best" if mean == best else ""}"><strong>{_percent(mean)}</strong>'
        f"<span>{html_text(name)}</span></div>"
        for name, mean in means.items()
    )
    return f'<div class="tiles">{boxes}</div>'


def comparison_section(scores: Scores, learned: str, score_name: str, n_test: int) -> str:
    """Bars of all methods with their uncertainty."""
    if not scores:
        return ""
    means = [float(np.mean(values)) for values in scores.values()]
    errors = [_spread(values, n_test, score_name) for values in scores.values()]
    low = max(0.0, np.floor(10 * (min(means) - max(errors) - 0.1)) / 10)
    n_splits = len(next(iter(scores.values())))
    how = f"over {n_splits} splits" if n_splits > 1 else f"on {n_test:,} rows held out"
    picture = bars_svg(
        list(scores),
        means,
        texts=[_percent(mean) for mean in means],
        errors=errors,
        strong=[name == learned for name in scores],
        low=low,
        high=1.0,
        label=f"{score_name} of each method",
    )
    name = html_text(score_name[:1].upper() + score_name[1:])
    return _section(
        "How well",
        f"{name} {how}; every method learned from the same data. Bars begin at {_percent(low)}, "
        "whiskers are one standard error.",
        picture,
    )


def confusion_section(class_scores: Mapping[str, ClassScores], learned: str, label: str) -> str:
    """Scores that uneven classes do not flatter, and what was taken for what."""
    if not class_scores:
        return ""
    lines = "".join(
        f"<tr><td>{html_text(name)}</td>"
        + "".join(
            f'<td class="n">{text}</td>'
            for text in (
                _percent(found.accuracy),
                _percent(found.balanced_accuracy),
                _percent(found.roc_auc),
                "" if np.isnan(found.log_loss) else f"{found.log_loss:.3f}",
            )
        )
        + "</tr>"
        for name, found in class_scores.items()
    )
    heads = ("accuracy", "balanced accuracy", "ROC-AUC", "log-loss")
    body = _table(["method"], heads, lines)
    judged = class_scores.get(learned)
    if judged is not None and len(judged.classes) <= _MOST_CLASSES:
        counts = "".join(
            f"<tr><td>{html_text(name, most=_LONGEST)}</td>"
            + "".join(
                f'<td class="n{" wrong" if i != j and value else ""}" style="background: '
                f"color-mix(in srgb, var(--{'warn' if i != j else 'c0'}) "
                f'{45 * value / max(sum(row), 1):.0f}%, transparent)">{value:.6g}</td>'
                for j, value in enumerate(row)
            )
            + "</tr>"
            for i, (name, row) in enumerate(zip(judged.classes, judged.confusion, strict=True))
        )
        names = [html_text(name, most=_LONGEST) for name in judged.classes]
        table = _table([f"{html_text(label, most=_LONGEST)}, and was taken for"], names, counts)
        body = f'<div class="two">{body}<div id="confusion">{table}</div></div>'
    return _section(
        "Class by class",
        "Balanced accuracy is the mean over the classes, ROC-AUC says how well rows of a class are "
        "ranked before others, log-loss how good the probabilities are: lower is better there. "
        "Always answering the largest class is right for "
        f"{_percent(next(iter(class_scores.values())).majority)} of the rows held out.",
        body,
    )


def map_section(points: Points, shares: tuple[float, float], total: Mapping[str, int]) -> str:
    """The two planes, to be filled by the script."""
    n, n_test = len(points.codes), len(points.codes) - points.n_train
    sample = f" Shown are {n:,} of {sum(total.values()):,} rows." if n > MOST_POINTS - 2 else ""
    held = (
        f" Bright marks are the {n_test:,} rows held out, pale ones the training rows."
        if n_test
        else ""
    )
    chooser = (
        '<label>Show <select id="part"><option value="all">all rows</option>'
        '<option value="held">held-out rows</option></select></label>'
        if n_test
        else ""
    )

    axes = "First two principal axes"
    if len(points.classes) > 1:
        kind = "classes" if points.values is None else "ranges"
        axes = f"Where the means of the {kind} differ most"

    def plane(side: str, title: str, share: float) -> str:
        said = f"{axes}: {100 * share:.0f} % of the variance."
        if side == "after" and on_a_line(points.after[: points.n_train]):
            said = "The metric is one direction. Heights only keep the marks apart."
        return (
            f'<figure><h3>{title}</h3><canvas id="plane-{side}" class="plane" tabindex="0" '
            f'role="application" aria-label="{title}: points in a plane. Arrow keys walk through '
            f'them, their neighbours are listed below."></canvas>'
            f"<figcaption>{said}</figcaption></figure>"
        )

    body = (
        f'<div class="controls"><ul id="legend" class="legend"></ul>{chooser}</div>'
        f'<div class="two">{plane("before", "Before: Euclidean distance", shares[0])}'
        f"{plane('after', 'After: the learned metric', shares[1])}</div>"
        '<div id="picked" aria-live="polite"><p class="note">Click a point, or press an arrow key '
        "in a plane, to see its nearest neighbours before and after, and of the hardest rows what "
        "parts them from their neighbours. Click two ringed points, one after the other, to see "
        "what parts the two.</p></div>"
    )
    return _section(
        "Before and after",
        f"Every mark is a row; near marks are alike.{held}{sample}",
        body,
        name="map",
    )


def gram_section(points: Points, label: str) -> str:
    """The two Gram matrices, to be filled by the script."""
    n_test = len(points.codes) - points.n_train
    order = f", ordered by {html_text(label)}" if points.classes else ""

    def picture(side: str, title: str) -> str:
        return (
            f'<figure><h3>{title}</h3><canvas id="gram-{side}" class="gram" role="img" '
            f'aria-label="{title}: centred Gram matrix"></canvas></figure>'
        )

    return _section(
        "Who resembles whom",
        f"Centred Gram matrices of {'held-out' if n_test >= 2 else 'training'} rows{order}: warm "
        "is alike, cold is unlike. A metric that suits the labels shows warm squares along the "
        "diagonal.",
        f'<div class="two">{picture("before", "Before")}{picture("after", "After")}</div>',
    )


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
    return _section("What was chosen", "", f"<dl>{entries}</dl>", name="chosen")


def learned_section(metric: Any, found: FeatureImportance | None) -> str:
    """What the kernel and the features count, and the loss as it fell."""
    boxes = []
    kernel: Any = getattr(metric, "kernel_", None)
    if isinstance(kernel, AlignedSum) and hasattr(kernel, "weights_"):
        names, below = _names(kernel.base_kernels_)
        shares = np.asarray(kernel.weights_) / np.sum(kernel.weights_)
        names = [f"{below} {name}".strip() for name in names]
        texts = [_percent(s) for s in shares]
        bars = bars_svg(names, shares, texts=texts, width=_HALF, label="kernel weights")
        boxes.append(_box(f"Weights of the kernels; alignment {kernel.alignment_:.3f}", bars))
    elif hasattr(kernel, "candidates_"):
        ranked = sorted(kernel.candidates_.items(), key=lambda item: item[1])
        best = ranked[0][1]
        bars = bars_svg(
            [name for name, _ in ranked],
            [error for _, error in ranked],
            strong=[error == best for _, error in ranked],
            width=_HALF,
            label="errors of the kernels that were tried",
        )
        boxes.append(_box("Kernels that were tried, by leave-one-out error", bars))
    if found is not None:
        ranked = found.ranked()
        listed = ranked[:_LISTED_FEATURES]
        bars = bars_svg(
            [name for name, _ in listed],
            [share for _, share in listed],
            texts=[_percent(share) for _, share in listed],
            width=_HALF,
            label="how much each feature counts",
        )
        rest = f" (the first {len(listed)} of {len(ranked)})" if len(listed) < len(ranked) else ""
        boxes.append(_box(f"How much each feature counts{rest}", bars))
    loss = getattr(getattr(metric, "learner_", metric), "loss_curve_", None)
    if loss is not None and len(loss) > 1:
        boxes.append(
            _box("The loss as it fell", curve_svg(loss, width=_HALF, label="loss by iteration"))
        )
    if not boxes:
        return ""
    return _section("What was learned", "", f'<div class="flow">{"".join(boxes)}</div>')


def error_section(points: Points, data: Mapping[str, Any], label: str) -> str:
    """Held-out points whose neighbours are of another class."""
    n = points.n_train
    if not points.classes or points.values is not None or len(points.codes) - n < 1:
        return ""
    true = points.codes[n:]
    wrong = {side: np.asarray(data["points"][side]["said"]) != true for side in ("before", "after")}
    hard = hardness(points)
    listed = np.flatnonzero(wrong["after"])
    listed = listed[np.argsort(-hard[listed], kind="stable")][:_LISTED_ERRORS]
    counts = (
        f"Of {len(true):,} held-out rows {np.sum(wrong['before']):,} had wrong neighbours before "
        f"and {np.sum(wrong['after']):,} after: {np.sum(wrong['before'] & ~wrong['after']):,} were "
        f"put right, {np.sum(~wrong['before'] & wrong['after']):,} were spoilt."
    )
    lines = "".join(
        f'<tr data-point="{n + i}"><td>row {data["points"]["rows"][n + i]}</td>'
        f"<td>{html_text(points.classes[true[i]])}</td>"
        f"<td>{html_text(points.classes[data['points']['after']['said'][i]])}</td>"
        f"<td>{'wrong' if wrong['before'][i] else 'right'}</td>"
        f'<td class="n">{hard[i]:+.2f}</td></tr>'
        for i in listed
    )
    table = (
        '<div class="scroll"><table class="hard"><thead><tr><th>row</th>'
        f"<th>{html_text(label)}</th>"
        '<th>neighbours say</th><th>before</th><th class="n">misplaced by</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        '<p class="note">Misplaced by: from −1, at home, to +1, among another class. Click a row '
        "to see it in the planes.</p>"
    )
    return _section("The hardest rows", counts, table if len(listed) else "")


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
        f"<tr><td>rows {numbers[rows[p, 0]]} and {numbers[rows[p, 1]]}</td>"
        f"<td>{'alike' if similar[p] else 'different'}</td>"
        f'<td class="n">{before[p]:.2f}</td><td class="n">{after[p]:.2f}</td></tr>'
        for p in [*far, *near]
    )
    return _section(
        "The hardest pairs",
        "Similar pairs that are far apart, and dissimilar ones that are near; distances in units "
        "of the median pair.",
        '<div class="scroll"><table><thead><tr><th>pair</th><th>said to be</th><th class="n">'
        f'before</th><th class="n">after</th></tr></thead><tbody>{lines}</tbody></table></div>',
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
    if hasattr(metric, "kernel_") and not hasattr(metric, "recipe_"):  # which says it above
        with np.printoptions(precision=3, threshold=8, edgeitems=3):
            known["kernel used"] = repr(metric.kernel_)
    if hasattr(metric, "space_"):
        rank = getattr(metric.space_, "rank_", metric.components_.shape[1])
        known["space used"] = f"{type(metric.space_).__name__} of rank {rank}"
    known |= facts
    known["versions"] = ", ".join(f"{name} {number}" for name, number in versions.items())
    entries = "".join(
        f"<dt>{html_text(name)}</dt><dd>{html_text(value, keep=chr(10))}</dd>"
        for name, value in known.items()
    )
    notes = list(notes)
    if len(notes) > _LISTED_NOTES:  # a table may have a remark on each of 20,000 columns
        rest = f"... and {len(notes) - _LISTED_NOTES:,} more."
        notes = [*notes[:_LISTED_NOTES], rest]
    sentences = "".join(f"<li>{html_text(note, most=_LONGEST)}</li>" for note in notes)
    body = f"<pre>{html_text(command, keep=chr(10))}</pre>" if command else ""
    body += f"<dl>{entries}</dl>"
    if sentences:
        body += f'<h3 style="margin-top:1.2em">The data</h3><ul class="notes">{sentences}</ul>'
    return _section("How it was made", "", body)


def _section(title: str, note: str, body: str, name: str = "") -> str:
    said = f'<p class="note">{note}</p>' if note else ""
    identity = f' id="{name}"' if name else ""
    return f"<section{identity}><h2>{title}</h2>{said}{body}</section>"


def _table(left: Sequence[str], right: Sequence[str], lines: str) -> str:
    """A table; its heads are HTML already."""
    heads = "".join(f"<th>{name}</th>" for name in left)
    heads += "".join(f'<th class="n">{name}</th>' for name in right)
    return (
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _box(title: str, picture: str) -> str:
    return f"<figure><h3>{html_text(title)}</h3>{picture}</figure>"


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{100 * share:.1f} %"


def _spread(values: Sequence[float], n_test: int, score_name: str) -> float:
    """Standard error of a mean: over splits, or binomial where there was one."""
    if len(values) > 1:
        return float(np.std(values, ddof=1) / np.sqrt(len(values)))
    share = float(values[0])
    if "R²" in score_name:  # that of large samples
        share = min(max(share, 0.0), 1.0)
        return float(2.0 * np.sqrt(share / n_test) * (1.0 - share)) if n_test else 0.0
    return float(np.sqrt(share * (1 - share) / n_test)) if n_test else 0.0
