"""Means, ranks, wins and losses of the results of ``tables.py``, and the page of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from scipy.stats import rankdata, wilcoxon

from real_tables import CLASSES, NUMBERS, SIZES, load, part_of
from table_methods import METHODS, OF_NUMBERS, named

MEASURES = {  # measure: words, and whether more is better
    "accuracy": ("accuracy", True),
    "balanced": ("balanced accuracy", True),
    "auc": ("ROC-AUC", True),
    "precision": ("average precision", True),
    "log_loss": ("log-loss", False),
}
OURS = "metric"
WORDS = {"metric": "MetricClassifier, frame", "metric one-hot": "MetricClassifier, one-hot"}
FEWEST_SHOWN = 3  # tables of a group
ENOUGH = 0.9  # a method with results on fewer tables than that has a line of its own

Means = dict[tuple[str, str], dict[str, float]]


def means(cells: list[dict], kind: str, size: int, part: str) -> Means:
    """Every measure of a table and method, its mean over the splits that all methods there have."""
    known = CLASSES if kind == "classes" else NUMBERS
    mine = [c for c in cells if c["size"] == size and c["table"] in known]
    mine = [c for c in mine if part in (part_of(c["table"]), "all") and "error" not in c]
    groups = defaultdict(list)
    for cell in mine:
        groups[cell["table"], cell["method"]].append(cell)
    seeds: dict[str, set[int]] = {}
    for (table, _), group in groups.items():
        present = {c["seed"] for c in group}
        seeds[table] = seeds.get(table, present) & present or present
    found = {}
    for (table, method), group in groups.items():
        shared = [c for c in group if c["seed"] in seeds[table]] or group
        what = [k for k, v in shared[0].items() if isinstance(v, float)]
        found[table, method] = {k: float(np.mean([c[k] for c in shared])) for k in what}
    return found


def comparable(found: Means, order: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Methods with results on nearly all tables, the others, and the tables that all have."""
    needed = [OURS, "forest"] if "forest" in {m for _, m in found} else [OURS]
    tables = sorted({t for t, _ in found if all((t, m) in found for m in needed)})
    counts = {m: sum((t, m) in found for t in tables) for m in order}
    methods = [m for m in order if counts[m] and counts[m] >= ENOUGH * len(tables)]
    others = [m for m in order if counts[m] and m not in methods]
    return methods, others, [t for t in tables if all((t, m) in found for m in methods)]


def ranked(values: np.ndarray, *, more_is_better: bool) -> np.ndarray:
    """Mean rank of every column; equal values share theirs."""
    signed = -values if more_is_better else values
    return rankdata(signed.round(4), axis=1).mean(axis=0)


def of_classes(found: Means, methods: list[str], tables: list[str]) -> list[str]:
    """A line for every method: mean and, in brackets, mean rank of every measure, and seconds."""
    heads = [words for words, _ in MEASURES.values()]
    lines = [f"| | {' | '.join(heads)} | seconds |", "|---" * (len(heads) + 2) + "|"]
    columns = []
    for measure, (_, more) in MEASURES.items():
        values = np.array([[found[t, m][measure] for m in methods] for t in tables])
        average, ranks = values.mean(axis=0), ranked(values, more_is_better=more)
        best = average.max() if more else average.min()
        texts = [f"**{v:.4f}**" if v == best else f"{v:.4f}" for v in average]
        columns.append([f"{text} ({rank:.1f})" for text, rank in zip(texts, ranks, strict=True)])
    seconds = [np.mean([found[t, m]["seconds"] for t in tables]) for m in methods]
    for i, method in enumerate(methods):
        texts = " | ".join(column[i] for column in columns)
        lines.append(f"| {WORDS.get(method, method)} | {texts} | {seconds[i]:.1f} |")
    return lines


def of_numbers(found: Means, methods: list[str], tables: list[str]) -> list[str]:
    """A line for every method: RMSE relative to the forest's, mean rank, coverage, seconds."""
    lines = [
        "| | RMSE / forest's | mean rank | coverage of 90 % | seconds |",
        "|---|---|---|---|---|",
    ]
    values = np.array([[found[t, m]["rmse"] for m in methods] for t in tables])
    relative = values / values[:, [methods.index("forest")]]
    ranks = ranked(relative, more_is_better=False)
    for i, method in enumerate(methods):
        covered = [found[t, method].get("coverage", np.nan) for t in tables]
        shown = f"{np.mean(covered):.3f}" if np.isfinite(covered).all() else ""
        seconds = np.mean([found[t, method]["seconds"] for t in tables])
        name = WORDS.get(method, method).replace("Classifier", "Regressor")
        typical = np.exp(np.log(relative[:, i]).mean())
        lines.append(f"| {name} | {typical:.3f} | {ranks[i]:.2f} | {shown} | {seconds:.1f} |")
    return lines


def against(found: Means, ours: str, other: str, measure: str) -> tuple[int, int, int, float]:
    """Tables on which ours is better, equal, worse than the other, and Wilcoxon's p."""
    more = MEASURES[measure][1] if measure in MEASURES else False
    tables = [t for t, m in found if m == other and (t, ours) in found]
    gaps = np.array([found[t, ours][measure] - found[t, other][measure] for t in tables])
    gaps = (gaps if more else -gaps).round(4)
    p = float(wilcoxon(gaps).pvalue) if np.count_nonzero(gaps) > 5 else np.nan
    return int((gaps > 0).sum()), int((gaps == 0).sum()), int((gaps < 0).sum()), p


def duels(cells: list[dict], other: str, ours: str = OURS) -> str:
    """Wins, draws and losses against one method, in sum and for every table."""
    lines = []
    for kind, measures in (("classes", list(MEASURES)), ("numbers", ["rmse"])):
        for size in SIZES:
            for part in ("choose", "judge"):
                found = means(cells, kind, size, part)
                tables = [t for t, m in found if m == other and (t, ours) in found]
                if not tables:
                    continue
                lines.append(f"\n{kind}, {size:,} rows, {part}: {ours} against {other}")
                for measure in measures:
                    won, drawn, lost, p = against(found, ours, other, measure)
                    lines.append(f"  {measure}: {won} won, {drawn} equal, {lost} lost, p = {p:.3g}")
                for table in tables:
                    pairs = [(found[table, ours][k], found[table, other][k]) for k in measures]
                    texts = "  ".join(f"{a:.4f} {b:.4f}" for a, b in pairs)
                    lines.append(f"    {table:32} {texts}")
    return "\n".join(lines)


HEAD = """# Real tables beside peers

`MetricClassifier()` and `MetricRegressor()` as they come, on tables as people have them: text,
categories and gaps stay as they are. "one-hot" is the same model on one-hot, standardized columns
with medians in gaps. The peers have their defaults, but the SVM comes from a grid of nine by three
folds (its probabilities from Platt's sigmoid), and logistic regression has its C by five folds.
RealMLP, TabM and xRFM are those of pytabkit; a method with results on fewer than five tables has no
line.
`python benchmarks/tables.py --out tables.jsonl` computes the results, and `--page FILE` writes this
page.

The tables lie inside packages of PyPI; `benchmarks/real_tables.py` names the target and the columns
left out. Its name alone puts a table into one of two parts: settings may be chosen on "choose", and
"judge" is only looked at. Training rows are at most 1,500 or 6,000, or 70 % of a smaller table, and
up to 3,000 others are predicted. Only tables of 4,000 rows or more are in the second group. Average
precision is that of the rarer class, and its mean over the classes where there are several. No
probability counts as less than 1 / (2 n). The class most above its share of the training rows is
what `decision="balanced"` predicts; the peers get the same rule. Mean ranks are in brackets.
Seconds are those of one core for the fit.
"""


def page(cells: list[dict]) -> str:
    """The tables in Markdown."""
    lines = [HEAD]
    for kind, title in (("classes", "Classes"), ("numbers", "Numbers")):
        order = list(METHODS) if kind == "classes" else list(OF_NUMBERS)
        write = of_classes if kind == "classes" else of_numbers
        for size in SIZES:
            for part in ("judge", "choose"):
                found = means(cells, kind, size, part)
                methods, others, tables = comparable(found, order)
                if len(tables) < FEWEST_SHOWN:
                    continue
                seeds = {c["seed"] for c in cells if c["size"] == size and c["table"] in tables}
                rows = f"{title}, up to {size:,} training rows, {part}"
                lines += [f"## {rows}", "", f"{len(tables)} tables, splits: {len(seeds)}.", ""]
                lines += [*write(found, methods, tables), ""]
                lines += [*rivals(found, methods, kind), ""]
                lines += decisions(found) if kind == "classes" else []
                for other in others:
                    both = [t for t in tables if (t, other) in found]
                    if len(both) >= 5:
                        lines += [f"{other} was run on {len(both)} of them:", ""]
                        lines += [*write(found, [*methods, other], both), ""]
    return "\n".join([*lines, *failures(cells), listing(cells)])


def failures(cells: list[dict]) -> list[str]:
    """Every fit without a result."""
    failed = [c for c in cells if "error" in c and c["table"] in CLASSES | NUMBERS]
    if not failed:
        return []
    words = "Their tables are left out of the means above. The limit is one of the clock."
    lines = ["## Fits without a result", "", words, ""]
    lines += ["| method | table | training rows | what happened |", "|---|---|---|---|"]
    for c in failed:
        lines.append(f"| {c['method']} | {c['table']} | {c['size']:,} | {c['error']} |")
    return [*lines, ""]


def rivals(found: Means, methods: list[str], kind: str) -> list[str]:
    """Wins and losses of ours on the frame against every other method."""
    measures = ["auc", "log_loss", "balanced"] if kind == "classes" else ["rmse"]
    heads = [MEASURES[m][0] if m in MEASURES else "RMSE" for m in measures]
    lines = [f"| won : lost by the frame against | {' | '.join(heads)} |"]
    lines += ["|---" * (len(heads) + 1) + "|"]
    for other in methods:
        if other == OURS or OURS not in methods:
            continue
        duel = [against(found, OURS, other, measure) for measure in measures]
        texts = " | ".join(f"{won} : {lost} (p = {p:.2g})" for won, _, lost, p in duel)
        lines.append(f"| {other} | {texts} |")
    return lines


def decisions(found: Means) -> list[str]:
    """Balanced accuracy of what methods predict, and of the class most above its share."""
    tables = {t for t, m in found if m == OURS and "decided" in found[t, m]}
    counts = {m: sum("decided" in found.get((t, m), {}) for t in tables) for m in METHODS}
    methods = [m for m in METHODS if counts[m] and 2 * counts[m] >= len(tables)]
    tables = {t for t in tables if all("decided" in found.get((t, m), {}) for m in methods)}
    if len(tables) < FEWEST_SHOWN:
        return []
    lines = [f"Balanced accuracy by what is answered, {len(tables)} tables:", ""]
    lines += ["| | as it predicts | most above its share |", "|---|---|---|"]
    for method in methods:
        cells = [found[t, method] for t in tables]
        values = [np.mean([cell[measure] for cell in cells]) for measure in ("balanced", "decided")]
        name = WORDS.get(method, method)
        lines.append(f"| {name} | {values[0]:.4f} | {values[1]:.4f} |")
    return [*lines, ""]


def listing(cells: list[dict]) -> str:
    """Every table: what it holds, and a measure of ours and of two peers."""
    shown = ("metric", "metric one-hot", "CatBoost", "forest", "logistic")
    what = "ROC-AUC with up to 1,500 training rows, or RMSE relative to the forest's."
    lines = ["## Every table", "", what]
    heads = " | ".join(shown)
    lines += ["", f"| table | part | rows | columns | named | with gaps | classes | {heads} |"]
    lines += ["|---" * (7 + len(shown)) + "|"]
    for kind, tables in (("classes", CLASSES), ("numbers", NUMBERS)):
        found = means(cells, kind, SIZES[0], "all")
        for name in tables:
            if (name, OURS) not in found:
                continue
            frame, y = load(name)
            gaps = int(frame.isna().any().sum())
            many = str(len(np.unique(y))) if kind == "classes" else ""
            row = [
                name,
                part_of(name),
                f"{len(y):,}",
                frame.shape[1],
                len(named(frame)),
                gaps,
                many,
            ]
            for method in shown:
                cell = found.get((name, method), {})
                if kind == "classes":
                    value = cell.get("auc", np.nan)
                else:
                    value = cell.get("rmse", np.nan) / found.get((name, "forest"), cell).get(
                        "rmse", 1.0
                    )
                row.append(f"{value:.3f}" if np.isfinite(value) else "")
            lines.append("| " + " | ".join(str(v) for v in row) + " |")
    return "\n".join(lines) + "\n"
