"""Charts of the report page in SVG; colours come from the page's style."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelmetric.report._text import html_text

_LEFT, _RIGHT, _TOP, _FLOOR = 100, 446, 28, 270  # where a chart has its axes
DIAGONAL = f'<path d="M{_LEFT} {_FLOOR}L{_RIGHT} {_TOP}" class="grid"/>'


def curve(x: np.ndarray, y: np.ndarray, colour: str = "accent") -> str:
    """Points of the unit square as a line, for :func:`chart`."""
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in _places(x, y))
    return f'<polyline points="{points}" class="curve" style="stroke: var(--{colour})"/>'


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
    >>> from kernelmetric.report._page_charts import chart, dots
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
