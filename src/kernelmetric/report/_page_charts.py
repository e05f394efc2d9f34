"""The still pictures of the report page, as SVG whose colours come from the page's style."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelmetric.report._text import html_text

_WIDTH = 720
_LETTER = 8.0  # a wide one of the 14-pixel font


def bars_svg(
    names: Sequence[str],
    values: Sequence[float],
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
    >>> bars_svg(["a", "b"], [0.5, 1.0]).count("<rect")
    2
    """
    texts = [f"{value:.3g}" for value in values] if texts is None else texts
    errors = [0.0] * len(names) if errors is None else errors
    strong = [True] * len(names) if strong is None else strong
    ends = [value + error for value, error in zip(values, errors, strict=True)]
    high = max(ends, default=1.0) if high is None else high
    most = 26 if width == _WIDTH else 20
    left, right, step = 12 + _LETTER * min(most, max(map(len, names), default=1)), 70, 28
    scale = (width - left - right) / max(high - low, np.finfo(float).tiny)
    parts = []
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        y = step * i
        length = max(1.0, scale * (value - low))
        kind = "bar strong" if strong[i] else "bar"
        shown = name if len(name) <= most else name[: most - 1] + "…"
        parts.append(
            f'<text x="{left - 10:.0f}" y="{y + 19}" class="name" text-anchor="end">'
            f"{html_text(shown)}</text>"
            f'<rect x="{left:.0f}" y="{y + 5}" width="{length:.1f}" height="20" rx="4" '
            f'class="{kind}"/>'
        )
        end = left + length
        if errors[i] > 0:
            reach = scale * errors[i]
            parts.append(
                f'<path d="M{end - reach:.1f} {y + 15}H{end + reach:.1f}" class="whisker"/>'
            )
            end += reach
        parts.append(
            f'<text x="{end + 8:.1f}" y="{y + 19}" class="value">{html_text(texts[i])}</text>'
        )
    return _svg("".join(parts), width, step * len(names), label)


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
    ticks = {height: f"{height:.4g}" for height in (y.max(), y.min())}
    left = 16 + _LETTER * max(map(len, ticks.values()))
    right, top, bottom, height = 14, 14, 34, 240
    span = max(float(np.ptp(heights)), 1e-12)
    xs = left + (width - left - right) * np.arange(len(y)) / max(len(y) - 1, 1)
    ys = top + (height - top - bottom) * (heights.max() - heights) / span
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(xs, ys, strict=True))
    floor = height - bottom
    grid = "".join(
        f'<path d="M{left:.0f} {at:.0f}H{width - right}" class="grid"/>'
        f'<text x="{left - 8:.0f}" y="{at + 4:.0f}" class="tick" text-anchor="end">{ticks[value]}'
        "</text>"
        for at, value in ((top, y.max()), (floor, y.min()))
    )
    scale = ", log scale" if logarithmic else ""
    return _svg(
        grid
        + f'<path d="{path}" class="curve"/>'
        + f'<circle cx="{xs[-1]:.1f}" cy="{ys[-1]:.1f}" r="4" class="end"/>'
        + f'<text x="{left:.0f}" y="{height - 8}" class="tick">1</text>'
        + f'<text x="{width - right}" y="{height - 8}" class="tick" text-anchor="end">'
        + f"{len(y)} iterations{scale}</text>",
        width,
        height,
        label,
    )


def scatter_svg(x: np.ndarray, y: np.ndarray, *, x_name: str, y_name: str, width: int = 460) -> str:
    """Points, and the line on which both numbers are the same, as an ``<svg>`` element.

    >>> import numpy as np
    >>> from kernelmetric.report._page_charts import scatter_svg
    >>> scatter_svg(np.arange(3.0), np.arange(3.0), x_name="is", y_name="said").count("<circle")
    3
    """
    low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
    ends = (f"{low:.4g}", f"{high:.4g}")
    left, right, top, bottom = 20 + _LETTER * max(map(len, ends)), 14, 24, 40
    side = width - left - right
    scale = side / max(high - low, np.finfo(float).tiny)
    marks = "".join(
        f'<circle cx="{left + scale * (a - low):.1f}" cy="{top + side - scale * (b - low):.1f}" '
        'r="3.5" class="dot"/>'
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    )
    floor = top + side
    frame = (
        f'<path d="M{left:.0f} {floor:.0f}L{left + side:.0f} {top}" class="grid"/>'
        f'<path d="M{left:.0f} {top}V{floor:.0f}H{left + side:.0f}" class="grid axis"/>'
    )
    texts = (
        f'<text x="{left - 8:.0f}" y="{top + 5}" class="tick" text-anchor="end">{ends[1]}</text>'
        f'<text x="{left - 8:.0f}" y="{floor:.0f}" class="tick" text-anchor="end">{ends[0]}</text>'
        f'<text x="{left:.0f}" y="{floor + 18:.0f}" class="tick">{ends[0]}</text>'
        f'<text x="{left + side:.0f}" y="{floor + 18:.0f}" class="tick" text-anchor="end">'
        f"{ends[1]}</text>"
        f'<text x="{left + side / 2:.0f}" y="{floor + 34:.0f}" class="name" text-anchor="middle">'
        f"{html_text(x_name)}</text>"
        f'<text x="{left:.0f}" y="{top - 10}" class="name">{html_text(y_name)}</text>'
    )
    label = f"{y_name} beside {x_name}, for {len(x)} rows"
    return _svg(frame + marks + texts, width, floor + bottom, label)


def _svg(content: str, width: int, height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" style="max-width: {width}px" role="img" '
        f'aria-label="{html_text(label)}">{content}</svg>'
    )
