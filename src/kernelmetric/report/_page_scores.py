"""The report page on how well: verdict, tiles, bars and confusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kernelmetric.evaluation import ClassScores
from kernelmetric.report._page_html import line, section, table
from kernelmetric.report._text import html_text, percent

_MOST_CLASSES = 20  # of a confusion matrix
_LONGEST = 300  # characters of the name of a class


class Judged(NamedTuple):
    """Scores of every method on every split, and which method is the learned metric."""

    scores: Mapping[str, Sequence[float]]
    learned: str
    score_name: str
    n_train: int
    n_test: int
    class_scores: Mapping[str, ClassScores]

    @property
    def means(self) -> dict[str, float]:
        """The mean over the splits, by method."""
        return {name: float(np.mean(values)) for name, values in self.scores.items()}

    def error(self, name: str) -> float:
        """Standard error of a mean: over splits, or binomial where there was one."""
        values, n_test = self.scores[name], self.n_test
        if len(values) > 1:
            return float(np.std(values, ddof=1) / np.sqrt(len(values)))
        share = float(values[0])
        if not n_test:
            return 0.0
        if "R²" in self.score_name:  # that of large samples
            share = min(max(share, 0.0), 1.0)
            return float(2.0 * np.sqrt(share / n_test) * (1.0 - share))
        return float(np.sqrt(share * (1 - share) / n_test))


def verdict(judged: Judged) -> str:
    """What came out, in two sentences, and a third where the largest class would do better."""
    mean, learned = judged.means, judged.learned
    if learned not in mean:
        return f"Learned from {judged.n_train:,} rows."
    where = " on rows held out" if judged.n_test else ""
    said = f"With the learned metric, {html_text(judged.score_name)}{where} is "
    said += f"<b>{percent(mean[learned])}</b>"
    if "Euclidean" in mean:
        said += f"; with Euclidean distance, {percent(mean['Euclidean'])}"
    others = {name: m for name, m in mean.items() if name not in (learned, "Euclidean")}
    if others:
        best = max(others, key=lambda name: others[name])
        said += f". The best of the others ({html_text(best)}) reaches {percent(others[best])}"
        noise = float(np.hypot(judged.error(learned), judged.error(best)))
        if abs(mean[learned] - others[best]) <= 2 * noise:
            said += ", a difference that may be chance"
    own = judged.class_scores.get(learned)
    beware = "" if own is None else own.warning
    return f"{said}. <b>Beware: {html_text(beware)}</b>" if beware else f"{said}."


def tiles(judged: Judged) -> str:
    """The scores as large numbers with their uncertainty."""
    means = judged.means
    if not means:
        return ""
    best = max(means.values())
    boxes = "".join(
        f'<div class="tile{" best" if mean == best else ""}"><strong>{percent(mean)}</strong>'
        f"<span>± {percent(judged.error(name))}, {html_text(name)}</span></div>"
        for name, mean in means.items()
    )
    n_splits = len(next(iter(judged.scores.values())))
    how = f"over {n_splits} splits" if n_splits > 1 else f"on {judged.n_test:,} rows held out"
    name = html_text(judged.score_name[:1].upper() + judged.score_name[1:])
    note = f"{name} {how}, ± one standard error; every method learned from the same data."
    return f'<div class="tiles">{boxes}</div><p class="note">{note}</p>'


def confusion_section(judged: Judged, label: str) -> str:
    """Scores that uneven classes do not flatter, and what was taken for what."""
    if not judged.class_scores:
        return ""
    lines = ""
    for name, found in judged.class_scores.items():
        shares = (found.accuracy, found.balanced_accuracy, found.roc_auc)
        loss = "" if np.isnan(found.log_loss) else f"{found.log_loss:.3f}"
        lines += line([name], [*map(percent, shares), loss])
    body = table(["method"], ("accuracy", "balanced accuracy", "ROC-AUC", "log-loss"), lines)
    own = judged.class_scores.get(judged.learned)
    if own is not None and len(own.classes) <= _MOST_CLASSES:
        body = f'<div class="two">{body}<div id="confusion">{_confusion(own, label)}</div></div>'
    return section(
        "Class by class",
        "Balanced accuracy is the mean over the classes, ROC-AUC says how well rows of a class are "
        "ranked before others, log-loss how good the probabilities are: lower is better there. "
        "Always answering the largest class is right for "
        f"{percent(next(iter(judged.class_scores.values())).majority)} of the rows held out.",
        body,
    )


def _confusion(found: ClassScores, label: str) -> str:
    """How many of each class were taken for which, the more the stronger in colour."""
    names = [html_text(name, most=_LONGEST) for name in found.classes]
    lines = ""
    for i, (name, row) in enumerate(zip(names, found.confusion, strict=True)):
        cells = "".join(
            f'<td class="n{" wrong" if i != j and value else ""}" style="background: '
            f"color-mix(in srgb, var(--{'warn' if i != j else 'c0'}) "
            f'{45 * value / max(sum(row), 1):.0f}%, transparent)">{value:.6g}</td>'
            for j, value in enumerate(row)
        )
        lines += f"<tr><td>{name}</td>{cells}</tr>"
    return table([f"{html_text(label, most=_LONGEST)}, and was taken for"], names, lines)
