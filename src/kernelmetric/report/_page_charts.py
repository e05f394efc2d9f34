"""The still pictures of the report page, as SVG whose colours come from the page's style."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelmetric.report._text import html_text

_WIDTH = 720
HALF = 460  # of a picture beside another
_LETTER = 8.0  # a wide one of the 14-pixel font


def bars_svg(
    bars: Sequence[tuple[str, float]],
    *,
    texts: Sequence[str] | None = None,
    errors: Sequence[float] | None = None,
    strong: Sequence[bool] | None = None,
    low: float = 0.0,
    high: float | None = None,
    width: int = _WIDTH,
    label: str = "",
) -> str:
    """Horizontal bars with whiskers as an ``<svg>`` element, the ``strong`` in the accent colour.

    >>> from kernelmetric.report._page_charts import bars_svg
    >>> bars_svg([("a", 0.5), ("b", 1.0)]).count("<rect")
    2
    """
    texts = [f"{value:.3g}" for _, value in bars] if texts is None else texts
    errors = [0.0] * len(bars) if errors is None else errors
    strong = [True] * len(bars) if strong is None else strong
    high = max((value for _, value in bars), default=1.0) if high is None else high
    most = 26 if width == _WIDTH else 20
    longest = max((len(name) for name, _ in bars), default=1)
    left, right, step = 12 + _LETTER * min(most, longest), 70, 28
    scale = (width - left - right) / max(high - low, np.finfo(float).tiny)
    content = ""
    for i, (name, value) in enumerate(bars):
        y = step * i
        length = max(1.0, scale * (value - low))
        end = left + length
        reach = scale * errors[i] if errors[i] > 0 else 0.0  # of an unknown score there is none
        content += _text(left - 10, y + 19, html_text(name, most=most), "name", "end")
        content += (
            f'<rect x="{left:.0f}" y="{y + 5}" width="{length:.1f}" height="20" rx="4" '
            f'class="{"bar strong" if strong[i] else "bar"}"/>'
        )
        if reach > 0:
            content += f'<path d="M{end - reach:.1f} {y + 15}H{end + reach:.1f}" class="whisker"/>'
        content += _text(end + reach + 8, y + 19, html_text(texts[i]), "value")
    return _svg(content, width, step * len(bars), label)


def curve_svg(values: Sequence[float], *, width: int = _WIDTH, label: str = "") -> str:
    """A curve over 1, 2, ... as an ``<svg>``, on a logarithmic scale where it spans a decade.

    >>> from kernelmetric.report._page_charts import curve_svg
    >>> "log" in curve_svg([100.0, 10.0, 1.0]), "log" in curve_svg([3.0, 2.0])
    (True, False)
    """
    y = np.asarray(values, dtype=float)
    y = y[np.isfinite(y)]
    if len(y) == 0:
        return ""
    logarithmic = y.min() > 0 and y.max() > 10 * y.min()
    heights = np.log10(y) if logarithmic else y
    ends = [f"{value:.4g}" for value in (y.max(), y.min())]
    left, right, top, bottom, height = 16 + _LETTER * max(map(len, ends)), 14, 14, 34, 240
    floor = height - bottom
    span = max(float(np.ptp(heights)), 1e-12)
    xs = left + (width - left - right) * np.arange(len(y)) / max(len(y) - 1, 1)
    ys = top + (floor - top) * (heights.max() - heights) / span
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(xs, ys, strict=True))
    content = "".join(
        f'<path d="M{left:.0f} {at:.0f}H{width - right}" class="grid"/>'
        + _text(left - 8, at + 4, end, "tick", "end")
        for at, end in zip((top, floor), ends, strict=True)
    )
    content += f'<path d="M{path}" class="curve"/>'
    content += f'<circle cx="{xs[-1]:.1f}" cy="{ys[-1]:.1f}" r="4" class="end"/>'
    content += _text(left, height - 8, "1", "tick")
    scale = ", log scale" if logarithmic else ""
    content += _text(width - right, height - 8, f"{len(y)} iterations{scale}", "tick", "end")
    return _svg(content, width, height, label)


def scatter_svg(x: np.ndarray, y: np.ndarray, *, x_name: str, y_name: str) -> str:
    """Points, and the line on which both numbers are the same, as an ``<svg>`` element.

    >>> import numpy as np
    >>> from kernelmetric.report._page_charts import scatter_svg
    >>> scatter_svg(np.arange(3.0), np.arange(3.0), x_name="is", y_name="said").count("<circle")
    3
    """
    low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
    first, last = f"{low:.4g}", f"{high:.4g}"
    left, right, top, bottom = 20 + _LETTER * max(len(first), len(last)), 14, 24, 40
    side = HALF - left - right
    floor, end = top + side, left + side
    scale = side / max(high - low, np.finfo(float).tiny)
    content = (
        f'<path d="M{left:.0f} {floor:.0f}L{end:.0f} {top}" class="grid"/>'
        f'<path d="M{left:.0f} {top}V{floor:.0f}H{end:.0f}" class="grid axis"/>'
    )
    content += "".join(
        f'<circle cx="{left + scale * (a - low):.1f}" cy="{floor - scale * (b - low):.1f}" '
        'r="3.5" class="dot"/>'
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    )
    content += _text(left - 8, top + 5, last, "tick", "end")
    content += _text(left - 8, floor, first, "tick", "end")
    content += _text(left, floor + 18, first, "tick")
    content += _text(end, floor + 18, last, "tick", "end")
    content += _text(left + side / 2, floor + 34, html_text(x_name), "name", "middle")
    content += _text(left, top - 10, html_text(y_name), "name")
    label = f"{y_name} beside {x_name}, for {len(x)} rows"
    return _svg(content, HALF, floor + bottom, label)


def _text(x: float, y: float, text: str, kind: str, anchor: str = "") -> str:
    aligned = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}"{aligned}>{text}</text>'


def _svg(content: str, width: int, height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" style="max-width: {width}px" role="img" '
        f'aria-label="{html_text(label)}">{content}</svg>'
    )
