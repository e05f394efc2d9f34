"""Write the decision picture of docs/guide/choose.md: ``python docs/figures/choose.py``.

It is HTML of the page itself, so that its boxes are links, its colours follow the theme, and its
columns go below each other on a narrow screen. ``pages.css`` says how it looks.
"""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "_static" / "choose.html"

# What you have, and its page; what to try first, and its page; then when to try what else.
ROWS = [
    (
        ("A class for every point", "predict.html"),
        ("MetricClassifier(), Kernelized(NCA())", "predict.html"),
        [
            ("you want a plane to look at", "NCA(2)", "learners.html#nca"),
            ("linear will do, and fast", "LFDA(), DNE()", "learners.html"),
            ("some features are noise", "AlignedScales()", "multimodal.html"),
        ],
    ),
    (
        ("A number for every point", "predict.html#numbers-with-intervals"),
        ("MetricRegressor(), MLKR(reg=1.0)", "predict.html#numbers-with-intervals"),
        [("the relation is curved", "Kernelized(MLKR(reg=1.0))", "learners.html#mlkr")],
    ),
    (
        ("A data frame, or a file", "tables.html"),
        ("MetricClassifier(), kernelmetric fit", "tables.html"),
        [
            ("you do not want to program", "kernelmetric fit", "command_line.html"),
            ("a learner needs numbers", "TableSchema()", "mixed_tables.html"),
        ],
    ),
    (
        ("Two lists of the same people", "linkage.html"),
        ("kernelmetric link, RecordLinker()", "linkage.html"),
        [
            (
                "nobody has labelled pairs yet",
                "kernelmetric label",
                "linkage.html#what-to-label-next",
            )
        ],
    ),
    (
        ("Pairs: alike, or not", "pairs_and_linkage.html"),
        ("IdealizedKernel()", "idealized.html"),
        [
            (
                "you ask whether two are the same",
                "PairVerifier(metric)",
                "pairs.html#the-same-or-not-verification",
            ),
            ("you have a metric to stay near", "ITML(prior=M)", "learners.html#itml"),
            ("you know small groups only", "RCA()", "learners.html"),
        ],
    ),
    (
        ("A few labels, many points", "semisupervised.html"),
        ("TransductiveDistance()", "spread.html"),
        [
            ("the points are images", "tangent_neighbors()", "tangent.html"),
            ("labels are all you want", "LabelSpreading()", "semisupervised.html"),
        ],
    ),
    (
        ("No labels at all", "clustering.html"),
        ("Kernelized(KMeans(3))", "kernelizable.html"),
        [
            ("you want a map", "LPP(), KPCA()", "learners.html"),
            ("you can name some pairs", "IdealizedKernel()", "clustering.html"),
        ],
    ),
    (
        ("Vectors of a network, to search", "retrieval.html"),
        ("Adapter()", "retrieval.html#vectors-of-a-network"),
        [
            ("an index shall hold them", "to_faiss()", "retrieval.html#put-it-into-an-index"),
            ("the network was replaced", "Drift()", "retrieval.html#a-new-model"),
        ],
    ),
    (
        ("Molecules, strings, series, sets, graphs", "objects.html"),
        ('Kernelized(LDA(), kernel="molecules")', "objects.html"),
        [
            ("your own kernel", "ObjectKernel", "objects.html#a-kernel-of-your-own"),
            ("you have the values", 'kernel="precomputed"', "kernels.html"),
            ("you have your own learner", "Kernelized(Mine())", "own_learner.html"),
        ],
    ),
]


def link(kind, page, words):
    """Return something to click on."""
    return f'<a class="{kind}" href="{page}">{escape(words)}</a>'


def draw():
    """Return the picture as HTML."""
    parts = ['<div class="chooser">']
    for (have, page), (first, first_page), others in ROWS:
        parts += ["<div>", link("have", page, have), link("first", first_page, first), "<ul>"]
        for when, call, address in others:
            parts.append(f"<li>{escape(when)}: {link('then', address, call)}</li>")
        parts += ["</ul>", "</div>"]
    return "\n".join([*parts, "</div>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
