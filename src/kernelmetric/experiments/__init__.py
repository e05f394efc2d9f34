"""Comparisons described as data, and the loops that run them; nothing here draws.

``_demo.py`` is the one behind ``kernelmetric demo``: data sets × methods × splits, one finished
cell at a time. ``_widths.py`` is the papers' protocol with a cross-validated kernel width,
``_aligned.py`` sets aligned kernels beside it, ``_defaults.py`` the automatic kernel beside tuned
classifiers, ``_multimodal.py`` compares ideas for alignment where classes have several clusters.
"""

from kernelmetric.experiments._aligned import CHOICES, LEARNERS, UCI, aligned_cells
from kernelmetric.experiments._beyond import BEYOND
from kernelmetric.experiments._cells import CellFile, CellFileError, read_cells
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
from kernelmetric.experiments._few_labels import TABLE1_OF_001, TABLE2_OF_001, TABLES_OF_004
from kernelmetric.experiments._figures import FIGURES, Figure
from kernelmetric.experiments._kernelization import (
    TABLES_OF_000,
    TABLES_OF_003,
    SearchedKernel,
    distinct_kernels,
)
from kernelmetric.experiments._measure import Measured, measured, provenance
from kernelmetric.experiments._multimodal import (
    ALIGNMENTS,
    MULTIMODAL,
    Clustered,
    multimodal_cells,
    noise_curve,
)
from kernelmetric.experiments._printed import read_printed
from kernelmetric.experiments._problems import GROUPS, Problem, Split
from kernelmetric.experiments._reproduction import reproduced, write_pages
from kernelmetric.experiments._table import (
    Method,
    MissingMethodError,
    Plan,
    Smoke,
    Table,
    plan,
    run_table,
)
from kernelmetric.experiments._widths import width_accuracies

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
    "FIGURES",
    "GROUPS",
    "LEARNERS",
    "METHODS",
    "MULTIMODAL",
    "TABLES",
    "UCI",
    "CellFile",
    "CellFileError",
    "Clustered",
    "Dataset",
    "Demo",
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
    "aligned_cells",
    "default_cells",
    "distinct_kernels",
    "fig2_panels",
    "measured",
    "multimodal_cells",
    "noise_curve",
    "plan",
    "provenance",
    "read_cells",
    "read_printed",
    "reproduced",
    "run_cells",
    "run_table",
    "width_accuracies",
    "write_pages",
]
