"""Pieces of HTML and SVG that the report page is made of; colours come from the page's style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmetric.report._text import html_text

_LONGEST = 30  # characters of the name of a bar


def section(title: str, note: str, body: str, name: str = "") -> str:
    """A section with its heading and a note below it."""
    said = f'<p class="note">{note}</p>' if note else ""
    identity = f' id="{name}"' if name else ""
    return f"<section{identity}><h2>{title}</h2>{said}{body}</section>"


def figure(title: str, content: str) -> str:
    """A picture or a table below its title."""
    return f"<figure><h3>{html_text(title)}</h3>{content}</figure>"


def table(texts: Sequence[str], numbers: Sequence[str], lines: str, kind: str = "") -> str:
    """A table with columns of texts, then of numbers; heads and lines are HTML already."""
    heads = "".join(f"<th>{name}</th>" for name in texts)
    heads += "".join(f'<th class="n">{name}</th>' for name in numbers)
    named = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll" tabindex="0"><table{named}><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def line(texts: Sequence[Any], numbers: Sequence[str], point: int | None = None) -> str:
    """A line of a table, which leads to a point in the planes where one is given."""
    cells = "".join(f"<td>{html_text(text)}</td>" for text in texts)
    cells += "".join(f'<td class="n">{number}</td>' for number in numbers)
    return f"<tr>{cells}</tr>" if point is None else f'<tr data-point="{point}">{cells}</tr>'


def bars(values: Sequence[tuple[str, float]], texts: Sequence[str]) -> str:
    """Horizontal bars with their names and numbers, the longest as wide as there is place."""
    longest = max((value for _, value in values), default=1.0) or 1.0
    lines = "".join(
        f'<tr><td>{html_text(name, most=_LONGEST)}</td><td class="bars"><span class="share" '
        f'style="width: {100 * value / longest:.0f}%"></span></td><td class="n">{text}</td></tr>'
        for (name, value), text in zip(values, texts, strict=True)
    )
    return f"<table>{lines}</table>"


def chart(
    x: np.ndarray, y: np.ndarray, ends: Sequence[str], names: Sequence[str], *, joined: bool = False
) -> str:
    """Points of the unit square: joined to a curve, or beside the diagonal.

    ``ends`` are the texts of least and largest x, then y; ``names`` are those of the two axes.

    >>> import numpy as np
    >>> from kernelmetric.report._page_html import chart
    >>> unit = np.linspace(0, 1, 3)
    >>> chart(unit, unit, ("0", "2", "0", "2"), ("is", "said")).count("<circle")
    3
    """
    left, right, top, floor = 100, 446, 28, 270
    xs, ys = left + (right - left) * x, floor - (floor - top) * y
    places = list(zip(xs.tolist(), ys.tolist(), strict=True))
    content = f'<path d="M{left} {top}V{floor}H{right}" class="grid axis"/>'
    if joined:
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        content += f'<polyline points="{points}" class="curve"/>'
    else:
        content += f'<path d="M{left} {floor}L{right} {top}" class="grid"/>'
        content += "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" class="dot"/>' for a, b in places
        )
    texts = (
        (left - 8, floor, "end", ends[2]),
        (left - 8, top + 5, "end", ends[3]),
        (left, floor + 18, "start", ends[0]),
        (right, floor + 18, "end", ends[1]),
        ((left + right) / 2, floor + 34, "middle", html_text(names[0])),
        (left, top - 12, "start", html_text(names[1])),
    )
    for a, b, anchor, text in texts:
        content += f'<text x="{a:.0f}" y="{b}" class="tick" text-anchor="{anchor}">{text}</text>'
    label = html_text(f"{names[1]} by {names[0]}")
    return (
        '<svg viewBox="0 0 460 310" style="max-width: 460px" role="img" '
        f'aria-label="{label}">{content}</svg>'
    )


def scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers between two ends as parts of the way from one to the other."""
    return (values - low) / max(high - low, np.finfo(float).tiny)
