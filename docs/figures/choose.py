"""Draw the decision picture of docs/guide/choose.md: ``python docs/figures/choose.py``.

The picture is put into the page itself rather than linked, so that its boxes are links and its
colours follow the theme. Each colour is a variable of the theme, with a value for other viewers.
"""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "_static" / "choose.svg"

# What you have; what to try first, and its page; then what else to try, when, and its page.
ROWS = [
    (
        ("A class for every point",),
        ("Kernelized(LMNN())", "start.html"),
        [
            ("you want a plane to look at", "NCA(2)", "learners.html#nca"),
            ("linear will do, and fast", "LFDA(), DNE()", "learners.html"),
            ("some features are noise", "AlignedScales()", "multimodal.html"),
        ],
    ),
    (
        ("A number for every point",),
        ("MLKR(reg=1.0)", "learners.html#mlkr"),
        [("the relation is curved", "Kernelized(MLKR(reg=1.0))", "learners.html#mlkr")],
    ),
    (
        ("Pairs: alike, or not",),
        ("IdealizedKernel()", "idealized.html"),
        [
            ("you ask: the same, or not?", "PairVerifier(metric)", "pairs.html"),
            ("you have a metric to stay near", "ITML(prior=M)", "learners.html#itml"),
            ("you know small groups only", "RCA()", "learners.html"),
        ],
    ),
    (
        ("A few labels,", "many points"),
        ("TransductiveDistance()", "transductive.html"),
        [
            ("the points are images", "tangent_neighbors()", "tangent.html"),
            ("labels are all you want", "LabelSpreading()", "semisupervised.html"),
        ],
    ),
    (
        ("No labels at all",),
        ("Kernelized(KMeans(3))", "own_learner.html"),
        [
            ("you want a map", "LPP(), KPCA()", "learners.html"),
            ("you can name some pairs", "IdealizedKernel()", "clustering.html"),
        ],
    ),
    (
        ("Strings, graphs, series:", "your own kernel"),
        ("kernel=my_function", "kernels.html"),
        [
            ("you have the values", 'kernel="precomputed"', "kernels.html"),
            ("you have your own learner", "Kernelized(Mine())", "own_learner.html"),
        ],
    ),
]
COLUMNS = [("you have", 16, 196), ("try first", 250, 206), ("then, if", 500, 232)]
LINE = 30  # between the suggestions of a row
STYLE = """
.km-choose text { font: 14px system-ui, sans-serif;
  fill: var(--color-foreground-primary, #1f2328); }
.km-choose .head { font-size: 12px; letter-spacing: .06em;
  fill: var(--color-foreground-muted, #59636e); }
.km-choose .when { fill: var(--color-foreground-secondary, #59636e); font-size: 13px; }
.km-choose .code { font: 13px ui-monospace, monospace; }
.km-choose rect.have { fill: var(--color-background-secondary, #f3f5f7);
  stroke: var(--color-background-border, #d1d9e0); }
.km-choose rect.first { fill: none; stroke: var(--color-brand-primary, #0a58ca); stroke-width: 2; }
.km-choose a .code { fill: var(--color-brand-content, #0a58ca); }
.km-choose a:hover .code { text-decoration: underline; }
.km-choose path { fill: none; stroke: var(--color-foreground-muted, #818b98); stroke-width: 1.5; }
"""


def text(x, y, words, kind="", anchor="start"):
    """Return one line of text."""
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def link(address, inside):
    """Return something to click on."""
    return f'<a href="{address}">{inside}</a>'


def draw():
    """Return the picture as SVG."""
    parts = [text(x, 22, words.upper(), "head") for words, x, _ in COLUMNS]
    top = 40
    (_, x0, w0), (_, x1, w1), (_, x2, w2) = COLUMNS
    for have, (first, page), others in ROWS:
        height = max(LINE * len(others), 46)
        middle = top + height / 2
        box = f'y="{middle - 22}" height="44" rx="8"'
        parts.append(f'<rect class="have" x="{x0}" width="{w0}" {box}/>')
        for i, words in enumerate(have):
            y = middle + 5 + 17 * (i - (len(have) - 1) / 2)
            parts.append(text(x0 + w0 / 2, y, words, anchor="middle"))
        parts.append(f'<path d="M{x0 + w0 + 4} {middle}H{x1 - 10}m-7 -5l7 5l-7 5"/>')
        inside = f'<rect class="first" x="{x1}" width="{w1}" {box}/>'
        inside += text(x1 + w1 / 2, middle + 5, first, "code", "middle")
        parts.append(link(page, inside))
        start = x1 + w1 + 4
        for i, (when, call, other) in enumerate(others):
            y = middle + LINE * (i - (len(others) - 1) / 2)
            curve = f"C{start + 22} {middle} {x2 - 32} {y} {x2 - 8} {y}"
            parts.append(f'<path d="M{start} {middle}{curve}"/>')
            parts.append(text(x2, y + 5, when, "when"))
            parts.append(link(other, text(x2 + w2, y + 5, call, "code")))
        top += height + 22
    label = "A decision chart: what you have, what to try first, what to try then"
    head = f'<svg class="km-choose" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 {top}" '
    head += f'role="img" aria-label="{label}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
