"""Comparisons described as data, and the loops that run them; nothing here draws.

``_demo.py`` is the one behind ``kernelmetric demo``: data sets × methods × splits, one finished
cell at a time. ``_widths.py`` is the papers' protocol with a cross-validated kernel width,
``_aligned.py`` sets aligned kernels beside it, ``_defaults.py`` the automatic kernel beside tuned
classifiers, ``_multimodal.py`` compares ideas for alignment where classes have several clusters,
``_idealized.py`` has the tables of metrics learned from pairs,
``_transductive.py`` learns from few labels among many points.
"""

from kernelmetric.experiments._aligned import CHOICES, LEARNERS, UCI, aligned_cells
from kernelmetric.experiments._cells import read_cells, resumed_cells
from kernelmetric.experiments._defaults import (
    CLASSIFIERS,
    GROUPS,
    Problem,
    SelectingRidge,
    default_cells,
)
from kernelmetric.experiments._demo import (
    DATASETS,
    METHODS,
    Dataset,
    Demo,
    Split,
    fig2_panels,
    run_cells,
)
from kernelmetric.experiments._idealized import (
    IDEALIZED,
    PRINTED,
    Task,
    idealized_cells,
    idealized_points,
)
from kernelmetric.experiments._multimodal import (
    ALIGNMENTS,
    MULTIMODAL,
    Clustered,
    multimodal_cells,
    noise_curve,
)
from kernelmetric.experiments._transductive import (
    FEW_LABEL_METHODS,
    LAMS,
    MNIST,
    TABLE1,
    FewLabels,
    few_label_cells,
)
from kernelmetric.experiments._widths import width_accuracies

__all__ = [
    "ALIGNMENTS",
    "CHOICES",
    "CLASSIFIERS",
    "DATASETS",
    "FEW_LABEL_METHODS",
    "GROUPS",
    "IDEALIZED",
    "LAMS",
    "LEARNERS",
    "METHODS",
    "MNIST",
    "MULTIMODAL",
    "PRINTED",
    "TABLE1",
    "UCI",
    "Clustered",
    "Dataset",
    "Demo",
    "FewLabels",
    "Problem",
    "SelectingRidge",
    "Split",
    "Task",
    "aligned_cells",
    "default_cells",
    "few_label_cells",
    "fig2_panels",
    "idealized_cells",
    "idealized_points",
    "multimodal_cells",
    "noise_curve",
    "read_cells",
    "resumed_cells",
    "run_cells",
    "width_accuracies",
]
