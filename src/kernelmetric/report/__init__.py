"""Tables and pictures: results in, text and axes out.

What is drawn comes in two records, and files are written whole or
not at all::

    _records.py   Cell: one fit; Panel: one embedding; Summary: mean and spread
    _tables.py    cells as a table: for the terminal, as Markdown, as CSV
    _text.py      text of users, made safe to show
    _plots.py     embeddings, the grid of Fig. 2, accuracies of linear and kernelized learners
    _fit_plots.py  loss curves, neighbours before and after
    _kernel_plots.py  weights of an aligned kernel, Gram matrices by class
    _page.py      report_page: one self-contained HTML file; its parts are _page_*.py and page/
    _comparison.py    verdicts on cells beside a paper's, wins and losses, paired tests
    _ranking.py       many methods on many data sets: mean ranks, and a picture of them
    _reproduction.py  pages that set our tables beside the papers'
    _figures.py       the two tricks, Gram matrices side by side, our cells over the papers'

rich and matplotlib are optional, and imported by the functions that use them.
"""

from kernelmetric.report._comparison import (
    Compared,
    PairedTest,
    Reproduction,
    compare,
    paired_tests,
    verdict,
    win_draw_loss,
)
from kernelmetric.report._figures import TrickPoint, plot_agreement, plot_grams, plot_tricks
from kernelmetric.report._fit_plots import plot_loss_curve, plot_neighbors
from kernelmetric.report._kernel_plots import plot_gram, plot_kernel_weights
from kernelmetric.report._page import report_page
from kernelmetric.report._plots import (
    plot_accuracies,
    plot_embedding,
    plot_fig2,
    png_bytes,
)
from kernelmetric.report._ranking import Ranked, plot_ranking, rank_methods
from kernelmetric.report._records import Cell, Panel, Printed, Summary
from kernelmetric.report._reproduction import (
    comparison_grid,
    ranking_grid,
    reproduction_csv,
    reproduction_html,
    reproduction_markdown,
    summary_line,
    tally,
    tests_grid,
)
from kernelmetric.report._tables import csv_text, markdown_table, rich_table, summarize
from kernelmetric.report._text import STEERING, visible
from kernelmetric.shipping import MissingExtraError, write_atomically

__all__ = [
    "STEERING",
    "Cell",
    "Compared",
    "MissingExtraError",
    "PairedTest",
    "Panel",
    "Printed",
    "Ranked",
    "Reproduction",
    "Summary",
    "TrickPoint",
    "compare",
    "comparison_grid",
    "csv_text",
    "markdown_table",
    "paired_tests",
    "plot_accuracies",
    "plot_agreement",
    "plot_embedding",
    "plot_fig2",
    "plot_gram",
    "plot_grams",
    "plot_kernel_weights",
    "plot_loss_curve",
    "plot_neighbors",
    "plot_ranking",
    "plot_tricks",
    "png_bytes",
    "rank_methods",
    "ranking_grid",
    "report_page",
    "reproduction_csv",
    "reproduction_html",
    "reproduction_markdown",
    "rich_table",
    "summarize",
    "summary_line",
    "tally",
    "tests_grid",
    "verdict",
    "visible",
    "win_draw_loss",
    "write_atomically",
]
