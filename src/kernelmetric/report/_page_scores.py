"""The report page on how well: verdict, tiles, bars and confusion."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from kernelmetric.evaluation import ClassScores
from kernelmetric.report._page_html import grid, line, section, table
from kernelmetric.report._text import html_text, percent

_MOST_CLASSES = 20  # of a confusion matrix
_OVERFITTED = 0.15  # better on rows learned from than on rows held out
MEASURES = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "roc_auc": "ROC-AUC",
}  # fmt: skip


class Judged(NamedTuple):
    """Scores of every method on every split, and which method is the learned metric."""

    scores: Mapping[str, Sequence[float]]
    learned: str
    score_name: str
    n_train: int
    n_test: int
    class_scores: Mapping[str, ClassScores]
    trained: float | None = None  # the score of the learned metric on rows that it learned from
    by_costs: bool = False  # what was asked for is no high accuracy

    @property
    def measure(self) -> str | None:
        """Which of the scores of classes fits these; None where there are none."""
        own = self.class_scores.get(self.learned)
        return None if own is None else own.measure

    def leading(self) -> Self:
        """The same by the score that fits the classes."""
        measure = self.measure
        if measure is None:
            return self
        scores = {name: [getattr(s, measure)] for name, s in self.class_scores.items()}
        return self._replace(scores=scores, score_name=MEASURES[measure])

    @property
    def means(self) -> dict[str, float]:
        """The mean over the splits, by method, the best first."""
        found = {name: float(np.mean(values)) for name, values in self.scores.items()}
        order = sorted(found, key=lambda name: -np.nan_to_num(found[name], nan=-np.inf))
        return {name: found[name] for name in order}

    def error(self, name: str) -> float:
        """Standard error of a mean: over splits, or binomial where there was one."""
        values, n_test = self.scores[name], self.n_test
        if self.measure is not None and name in self.class_scores:
            return self.class_scores[name].error(self.measure)
        if len(values) > 1:
            return float(np.std(values, ddof=1) / np.sqrt(len(values)))
        share = float(values[0])
        if not n_test:
            return 0.0
        if "R²" in self.score_name:  # that of large samples
            share = min(max(share, 0.0), 1.0)
            return float(2.0 * np.sqrt(share / n_test) * (1.0 - share))
        return float(np.sqrt(share * (1 - share) / n_test))


def verdict(judged: Judged) -> list[str]:
    """What came out, in sentences: how well, against whom, and what to beware of."""
    mean, learned, name = judged.means, judged.learned, judged.score_name
    if learned not in mean:
        return [f"Learned from {judged.n_train:,} rows."]
    where = " on rows held out" if judged.n_test else ""
    said = f"With the learned metric, {name}{where} is {percent(mean[learned])}"
    if "Euclidean" in mean:
        said += f"; with Euclidean distance, {percent(mean['Euclidean'])}"
    sentences = [f"{said}."]
    others = {m: mean[m] for m in mean if m not in (learned, "Euclidean") and np.isfinite(mean[m])}
    if others:
        best = max(others, key=lambda method: others[method])
        lead = mean[learned] - others[best]
        noise = float(np.hypot(judged.error(learned), judged.error(best)))
        how = "which is better" if lead < 0 else "which is less"
        how = "a difference that may be chance" if abs(lead) <= 2 * noise else how
        sentences.append(f"The best of the others ({best}) reaches {percent(others[best])}, {how}.")
    own = judged.class_scores.get(learned)
    if own is not None:
        sentences += _no_better(own, judged)
    if judged.trained is not None and judged.trained - mean[learned] > _OVERFITTED:
        sentences.append(
            f"Beware of overfitting: on the rows it learned from, {name} is "
            f"{percent(judged.trained)}. Trust the figures of rows held out alone. More rows, "
            "fewer columns or --kernel none may bring the two together."
        )
    return sentences


def in_html(sentences: Sequence[str]) -> list[str]:
    """Sentences for the page, those to beware of in bold."""
    texts = map(html_text, sentences)
    bold = ("Beware", "That is no better")
    return [f"<b>{text}</b>" if text.startswith(bold) else text for text in texts]


def _no_better(own: ClassScores, judged: Judged) -> list[str]:
    """Whether guessing would do as well, and what to do then."""
    share = 1 / np.count_nonzero(np.sum(own.confusion, axis=1))
    if judged.measure == "roc_auc" and own.roc_auc - 2 * own.error("roc_auc") <= 0.5:
        return ["That is no better than guessing: these columns may not tell the classes apart."]
    if judged.by_costs or not own.warning:
        return []
    said = f"Beware: {own.warning}"
    if own.balanced_accuracy - 2 * own.error("balanced_accuracy") > share:
        found = percent(own.balanced_accuracy)
        return [f"{said} But balanced accuracy is {found}: rows of the rarer classes are found."]
    if judged.measure == "roc_auc":
        said += " Sort rows by their probabilities, or try --class-weight balanced."
    return [said]


def tiles(judged: Judged) -> str:
    """The scores as large numbers with their uncertainty."""
    means = judged.means
    if not means:
        return ""
    best = max(filter(np.isfinite, means.values()), default=np.nan)
    boxes = "".join(
        f'<div class="tile{" best" if mean == best else ""}"><strong>{percent(mean)}</strong>'
        f"<span>± {percent(judged.error(name))}, {html_text(name)}"
        f"{', the learned metric' if name == judged.learned else ''}</span></div>"
        for name, mean in means.items()
        if np.isfinite(mean)
    )
    n_splits = len(next(iter(judged.scores.values())))
    how = f"over {n_splits} splits" if n_splits > 1 else f"on {judged.n_test:,} rows held out"
    name = html_text(judged.score_name[:1].upper() + judged.score_name[1:])
    note = f"{name} {how}, ± one standard error; every method learned from the same data."
    return f'<div class="tiles">{boxes}</div><p class="note">{note}</p>'


def confusion_section(judged: Judged, label: str) -> str:
    """Scores that uneven classes do not flatter, and the confusion."""
    if not judged.class_scores:
        return ""
    lines = ""
    for name in filter(judged.class_scores.__contains__, judged.leading().means):
        found = judged.class_scores[name]
        shares = (found.accuracy, found.balanced_accuracy)
        lines += line([name], [*map(percent, shares), *graded(found)])
    body = table(["method"], ("accuracy", "balanced accuracy", "ROC-AUC", "log-loss"), lines)
    own = judged.class_scores.get(judged.learned)
    if own is not None and len(own.classes) <= _MOST_CLASSES:
        matrix = grid(own.classes, own.confusion, f"true {label} / predicted", ".6g")
        body = f'<div class="two">{body}<div id="confusion">{matrix}</div></div>'
    return section(
        "Class by class",
        "Balanced accuracy is the mean over the classes, ROC-AUC says how well rows of a class are "
        "ranked before others, log-loss how good the probabilities are: lower is better there. "
        "Always answering the largest class is right for "
        f"{percent(next(iter(judged.class_scores.values())).majority)} of the rows held out.",
        body,
    )


def graded(found: ClassScores) -> list[str]:
    """ROC-AUC and log-loss, each with a reason where there is none."""
    area = percent(found.roc_auc) or "no ranking"
    loss = f"{found.log_loss:.3f}" if np.isfinite(found.log_loss) else "no probabilities"
    return [area, loss]
