"""Comparisons described as data, and the one loop that runs them.

A table of a paper is a :class:`Table`: data sets × methods × splits, a protocol in sentences, and
the printed numbers in ``printed/*.csv``. :func:`run_table` runs what is not finished yet, one cell
at a time, and :func:`reproduced` sets the cells beside the paper's::

    _table.py          Table, Method, and how they are run
    _kernelization.py  Tables 1-3 of 000 and 003: NCA, LMNN, DNE and their kernel versions
    _transductive.py   Tables 1-2 of 001: few labels among many points
    _idealized.py      Tables 2-4 of 004: metrics learned from pairs
    _beyond.py         a table that no paper has: all methods beside tuned classifiers
    _figures.py        what the figures show
    _printed.py        what the papers print
    _reproduction.py   from cells to pages
    _cells.py          the file of finished cells, and the loop that resumes
    _problems.py       data sets: training points, scaling, splits

``_demo.py`` is behind ``kernelmetric demo``, ``_aligned.py`` compares the time to choose a kernel,
``_defaults.py`` the automatic kernel with tuned classifiers, ``_multimodal.py`` ideas for
alignment where classes have several clusters.
"""

from kernelmetric.evaluation import Measured, measured
from kernelmetric.experiments._aligned import CHOICES, LEARNERS, UCI, aligned_cells
from kernelmetric.experiments._beyond import BEYOND, TunedNeighbors, settled
from kernelmetric.experiments._cells import (
    CellFile,
    CellFileError,
    provenance,
    read_cells,
    resumed_cells,
)
from kernelmetric.experiments._defaults import (
    CLASSIFIERS,
    SelectingRidge,
    default_cells,
)
from kernelmetric.experiments._demo import (
    DATASETS,
    METHODS,
    Dataset,
    Demo,
    fig2_panels,
    run_cells,
)
from kernelmetric.experiments._figures import FIGURES, Figure
from kernelmetric.experiments._idealized import (
    IDEALIZED,
    PRINTED,
    TABLES_OF_004,
    Task,
    idealized_cells,
    idealized_points,
)
from kernelmetric.experiments._kernelization import (
    TABLES_OF_000,
    TABLES_OF_003,
    SearchedKernel,
    distinct_kernels,
)
from kernelmetric.experiments._multimodal import (
    ALIGNMENTS,
    MULTIMODAL,
    Clustered,
    multimodal_cells,
    noise_curve,
)
from kernelmetric.experiments._printed import PAPERS, read_printed
from kernelmetric.experiments._problems import GROUPS, Problem, Split
from kernelmetric.experiments._reproduction import reproduced, result_pictures, write_pages
from kernelmetric.experiments._table import (
    Method,
    MissingMethodError,
    Plan,
    Smoke,
    Table,
    plan,
    run_table,
)
from kernelmetric.experiments._transductive import (
    FEW_LABEL_METHODS,
    LAMS,
    MNIST,
    TABLE1,
    TABLE1_OF_001,
    TABLE2_OF_001,
    FewLabels,
    few_label_cells,
)

#: All tables, by name.
TABLES = {
    table.name: table
    for table in (
        *TABLES_OF_000,
        TABLE1_OF_001,
        TABLE2_OF_001,
        *TABLES_OF_003,
        *TABLES_OF_004,
        BEYOND,
    )
}

__all__ = [
    "ALIGNMENTS",
    "CHOICES",
    "CLASSIFIERS",
    "DATASETS",
    "FEW_LABEL_METHODS",
    "FIGURES",
    "GROUPS",
    "IDEALIZED",
    "LAMS",
    "LEARNERS",
    "METHODS",
    "MNIST",
    "MULTIMODAL",
    "PAPERS",
    "PRINTED",
    "TABLE1",
    "TABLES",
    "UCI",
    "CellFile",
    "CellFileError",
    "Clustered",
    "Dataset",
    "Demo",
    "FewLabels",
    "Figure",
    "Measured",
    "Method",
    "MissingMethodError",
    "Plan",
    "Problem",
    "SearchedKernel",
    "SelectingRidge",
    "Smoke",
    "Split",
    "Table",
    "Task",
    "TunedNeighbors",
    "aligned_cells",
    "default_cells",
    "distinct_kernels",
    "few_label_cells",
    "fig2_panels",
    "idealized_cells",
    "idealized_points",
    "measured",
    "multimodal_cells",
    "noise_curve",
    "plan",
    "provenance",
    "read_cells",
    "read_printed",
    "reproduced",
    "result_pictures",
    "resumed_cells",
    "run_cells",
    "run_table",
    "settled",
    "write_pages",
]
