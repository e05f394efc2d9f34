"""Pieces of HTML, and charts in SVG, of the report page; colours come from the page's style."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmetric.report._text import html_text

_LONGEST = 30  # characters of the name of a bar
_LONGEST_CLASS = 300  # of the name of a class


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
    lines = lines.replace(" %</td>", "&nbsp;%</td>")  # cells may wrap on narrow screens
    return (
        f'<div class="scroll" tabindex="0"><table{named}><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def line(texts: Sequence[Any], numbers: Sequence[str], point: int | None = None) -> str:
    """A line of a table, which leads to a point in the planes where one is given."""
    cells = "".join(f"<td>{html_text(text)}</td>" for text in texts)
    cells += "".join(f'<td class="n">{number}</td>' for number in numbers)
    return f"<tr>{cells}</tr>" if point is None else f'<tr data-point="{point}">{cells}</tr>'


def grid(names: Sequence[str], rows: Sequence[Sequence[Any]], corner: str, digits: str) -> str:
    """A matrix by class, wrong answers in a warning colour, the more the stronger."""
    heads = [html_text(name, most=_LONGEST_CLASS) for name in names]
    lines = ""
    for i, (name, row) in enumerate(zip(heads, rows, strict=True)):
        whole = sum(map(abs, row)) or 1
        cells = "".join(
            f'<td class="n{" wrong" if i != j and value else ""}" style="background: '
            f"color-mix(in srgb, var(--{'warn' if i != j else 'c0'}) "
            f'{45 * abs(value) / whole:.0f}%, transparent)">{value:{digits}}</td>'
            for j, value in enumerate(row)
        )
        lines += f"<tr><td>{name}</td>{cells}</tr>"
    return table([html_text(corner, most=_LONGEST_CLASS)], heads, lines)


def bars(values: Sequence[tuple[str, float]], texts: Sequence[str]) -> str:
    """Horizontal bars with their names and numbers, the longest as wide as there is place."""
    longest = max((value for _, value in values), default=1.0) or 1.0
    lines = "".join(
        f'<tr><td>{html_text(name, most=_LONGEST)}</td><td class="bars"><span class="share" '
        f'style="width: {100 * value / longest:.0f}%"></span></td><td class="n">{text}</td></tr>'
        for (name, value), text in zip(values, texts, strict=True)
    )
    return f"<table>{lines}</table>"


_LEFT, _RIGHT, _TOP, _FLOOR = 100, 446, 28, 270  # where a chart has its axes
DIAGONAL = f'<path d="M{_LEFT} {_FLOOR}L{_RIGHT} {_TOP}" class="grid"/>'


def curve(x: np.ndarray, y: np.ndarray, colour: str = "accent", paint: str = "stroke") -> str:
    """Points of the unit square as a line, or painted otherwise, for :func:`chart`."""
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in _places(x, y))
    return f'<polyline points="{points}" class="curve" style="{paint}: var(--{colour})"/>'


def dots(x: np.ndarray, y: np.ndarray) -> str:
    """Points of the unit square beside the diagonal, for :func:`chart`."""
    marks = (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" class="dot"/>' for a, b in _places(x, y))
    return DIAGONAL + "".join(marks)


def columns(heights: np.ndarray, threshold: float) -> str:
    """Upright bars, side by side, pale below a threshold on their axis, for :func:`chart`."""
    content, n = "", len(heights)
    for k, height in enumerate(heights.tolist()):
        ((x, y),) = _places(np.array([k / n]), np.array([height]))
        colour = "accent" if (k + 1) / n > threshold else "muted"
        size = f'width="{(_RIGHT - _LEFT) / n - 2:.1f}" height="{_FLOOR - y:.1f}"'
        content += f'<rect x="{x + 1:.1f}" y="{y:.1f}" {size} style="fill: var(--{colour})"/>'
    return content + upright(threshold)


def upright(x: float) -> str:
    """A line from the floor to the top, for :func:`chart`."""
    at = _LEFT + (_RIGHT - _LEFT) * x
    return f'<path d="M{at:.1f} {_FLOOR}V{_TOP}" class="mark"/>'


def _places(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    xs, ys = _LEFT + (_RIGHT - _LEFT) * x, _FLOOR - (_FLOOR - _TOP) * y
    return list(zip(xs.tolist(), ys.tolist(), strict=True))


def chart(content: str, ends: Sequence[str], names: Sequence[str]) -> str:
    """Curves and dots between two axes.

    ``ends`` are the texts of least and largest x, then y; ``names`` are those of the two axes.

    >>> import numpy as np
    >>> from kernelmetric.report._page_html import chart, dots
    >>> unit = np.linspace(0, 1, 3)
    >>> chart(dots(unit, unit), ("0", "2", "0", "2"), ("is", "said")).count("<circle")
    3
    """
    content = f'<path d="M{_LEFT} {_TOP}V{_FLOOR}H{_RIGHT}" class="grid axis"/>{content}'
    texts = (
        (_LEFT - 8, _FLOOR, "end", ends[2]),
        (_LEFT - 8, _TOP + 5, "end", ends[3]),
        (_LEFT, _FLOOR + 18, "start", ends[0]),
        (_RIGHT, _FLOOR + 18, "end", ends[1]),
        ((_LEFT + _RIGHT) / 2, _FLOOR + 34, "middle", html_text(names[0])),
        (_LEFT, _TOP - 12, "start", html_text(names[1])),
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
