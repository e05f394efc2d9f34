"""All tables, by name."""

from reproduction.aligned import ALIGNED
from reproduction.automatic import AUTOMATIC
from reproduction.beyond import BEYOND
from reproduction.idealized import FORMS_OF_004, TABLES_OF_004
from reproduction.kernelization import TABLES_OF_000, TABLES_OF_003
from reproduction.learners import LEARNERS, REGRESSION
from reproduction.multimodal import MULTIMODAL
from reproduction.table import Table
from reproduction.transductive import FEW_LABELS, TABLE1_OF_001, TABLE2_OF_001


def _by_name(*tables: Table) -> dict[str, Table]:
    return {table.name: table for table in tables}


#: Those of the papers, and one that no paper has; docs/reproduction.md shows them.
TABLES = _by_name(
    *TABLES_OF_000, TABLE1_OF_001, TABLE2_OF_001, *TABLES_OF_003, *TABLES_OF_004, BEYOND
)

#: Comparisons that the guide speaks of.
STUDIES = _by_name(
    ALIGNED, *AUTOMATIC, *FORMS_OF_004, *FEW_LABELS, LEARNERS, REGRESSION, *MULTIMODAL
)
