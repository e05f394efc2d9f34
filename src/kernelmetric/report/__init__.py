"""Tables and pictures: results in, text and axes out.

What is drawn comes in two records, and files are written whole or
not at all::

    _records.py   Cell: one fit; Panel: one embedding; Summary: mean and spread
    _tables.py    cells as a table: for the terminal, as Markdown, as CSV
    _text.py      text of users, made safe to show
    _plots.py     embeddings, the grid of Fig. 2, accuracies of linear and kernelized learners
    _fit_plots.py  loss and learning curves, neighbours before and after
    _why_plots.py  shares of features, of a metric or of a pair's distance
    _kernel_plots.py  weights of an aligned kernel, Gram matrices by class
    _page.py      report_page: one self-contained HTML file; its parts are _page_*.py and page/

rich and matplotlib are optional, and imported by the functions that use them.
"""

from kernelmetric.report._fit_plots import plot_learning_curve, plot_loss_curve, plot_neighbors
from kernelmetric.report._kernel_plots import plot_gram, plot_kernel_weights
from kernelmetric.report._page import report_page
from kernelmetric.report._plots import (
    plot_accuracies,
    plot_embedding,
    plot_fig2,
    png_bytes,
)
from kernelmetric.report._records import Cell, Panel, Summary
from kernelmetric.report._tables import csv_text, markdown_table, rich_table, summarize
from kernelmetric.report._text import STEERING, visible
from kernelmetric.report._why_plots import plot_shares
from kernelmetric.shipping import MissingExtraError, write_atomically

__all__ = [
    "STEERING",
    "Cell",
    "MissingExtraError",
    "Panel",
    "Summary",
    "csv_text",
    "markdown_table",
    "plot_accuracies",
    "plot_embedding",
    "plot_fig2",
    "plot_gram",
    "plot_kernel_weights",
    "plot_learning_curve",
    "plot_loss_curve",
    "plot_neighbors",
    "plot_shares",
    "png_bytes",
    "report_page",
    "rich_table",
    "summarize",
    "visible",
    "write_atomically",
]
