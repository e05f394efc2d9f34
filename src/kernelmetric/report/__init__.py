"""Tables and pictures: results in, text and axes out; files are written whole or not at all.

::

    _tables.py    Cell: one fit, Panel: one embedding; cells as a table
    _text.py      text of users, made safe to show
    _plots.py     embeddings, the grid of Fig. 2, learning curves, shares of features
    _kernel_plots.py  weights of an aligned kernel, Gram matrices by class
    _retrieval_page.py  adapter_page: what an adapter of vectors mended and broke
    _link_page.py  link_page: how sure links are, and why
    _page.py      report_page: one self-contained HTML file; its parts are _page_*.py and page/

rich and matplotlib are optional, and imported by the functions that use them. The page draws by
itself, in SVG and on canvases: it needs no matplotlib, and answers to clicks.
"""

from kernelmetric.report._kernel_plots import plot_gram, plot_kernel_weights
from kernelmetric.report._link_page import link_page
from kernelmetric.report._page import report_page
from kernelmetric.report._plots import (
    plot_embedding,
    plot_fig2,
    plot_learning_curve,
    plot_shares,
    png_bytes,
)
from kernelmetric.report._retrieval_page import adapter_page
from kernelmetric.report._tables import Cell, Panel, Summary, csv_text, rich_table, summarize
from kernelmetric.report._text import visible
from kernelmetric.shipping import MissingExtraError, write_atomically

__all__ = [
    "Cell",
    "Panel",
    "Summary",
    "adapter_page",
    "link_page",
    "plot_embedding",
    "plot_fig2",
    "plot_gram",
    "plot_kernel_weights",
    "plot_learning_curve",
    "plot_shares",
    "png_bytes",
    "report_page",
    "summarize",
    "visible",
]
