"""Tables and pictures: results in, text and axes out.

Nothing here fits or computes; what is drawn comes in two records, and files are written whole or
not at all::

    _records.py   Cell: one fit; Panel: one embedding; Summary: mean and spread
    _tables.py    cells as a table: for the terminal, as Markdown, as CSV
    _plots.py     embeddings, the grid of Fig. 2, accuracies of linear and kernelized learners
    _kernel_plots.py  weights of an aligned kernel, Gram matrices by class
    _files.py     atomic writing

rich and matplotlib are optional, and imported by the functions that use them.
"""

from kernelmetric.report._files import write_atomically
from kernelmetric.report._kernel_plots import plot_gram, plot_kernel_weights
from kernelmetric.report._plots import (
    MissingExtraError,
    plot_accuracies,
    plot_embedding,
    plot_fig2,
    png_bytes,
)
from kernelmetric.report._records import Cell, Panel, Printed, Summary
from kernelmetric.report._tables import csv_text, markdown_table, rich_table, summarize

__all__ = [
    "Cell",
    "MissingExtraError",
    "Panel",
    "Printed",
    "Summary",
    "csv_text",
    "markdown_table",
    "plot_accuracies",
    "plot_embedding",
    "plot_fig2",
    "plot_gram",
    "plot_kernel_weights",
    "png_bytes",
    "rich_table",
    "summarize",
    "write_atomically",
]
