"""All tables, by name."""

from reproduction.beyond import BEYOND
from reproduction.idealized import TABLES_OF_004
from reproduction.kernelization import TABLES_OF_000, TABLES_OF_003
from reproduction.transductive import TABLE1_OF_001, TABLE2_OF_001

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
