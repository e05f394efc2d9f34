"""Comparisons described as data, and the loops that run them; nothing here draws.

``_demo.py`` is the one behind ``kernelmetric demo``: data sets × methods × splits, one finished
cell at a time. ``_widths.py`` is the papers' protocol with a cross-validated kernel width.
"""

from kernelmetric.experiments._demo import (
    DATASETS,
    METHODS,
    Dataset,
    Demo,
    Split,
    fig2_panels,
    run_cells,
)
from kernelmetric.experiments._widths import WIDTHS, width_accuracies

__all__ = [
    "DATASETS",
    "METHODS",
    "WIDTHS",
    "Dataset",
    "Demo",
    "Split",
    "fig2_panels",
    "run_cells",
    "width_accuracies",
]
