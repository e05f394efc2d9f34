"""What the command ``neighbors`` promises for a query that is a row of the table."""

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
pytest.importorskip("click", reason="click comes with the extra `cli`")
pytest.importorskip("rich", reason="rich comes with the extra `cli`")

import pandas as pd

from kernelmetric import LDA
from kernelmetric.cli._neighbors import find_neighbors
from kernelmetric.tables import plan_columns


class BatchDependent:
    """A model whose coordinates depend on the batch in their last bits, as those of a BLAS do."""

    def __init__(self, table, learner):
        self.table, self.learner = table, learner

    def __getitem__(self, name):
        return self.table

    def transform(self, X):
        Z = self.learner.transform(self.table.transform(X))
        return Z * (1 + 2.0**-52 * len(X))


@pytest.fixture
def frame():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.standard_normal((40, 3)), columns=list("abc"))
    frame["colour"] = np.array(["red", "blue"])[np.arange(40) % 2]
    frame.loc[5, "b"] = np.nan
    return frame


def test_a_row_of_the_table_is_at_no_distance_however_a_batch_is_rounded(frame):
    y = np.arange(40) % 2
    table = plan_columns(frame).encoder().fit(frame)
    learner = LDA().fit(table.transform(frame), y)
    model = BatchDependent(table, learner)
    queries = frame.iloc[[3, 5]]
    answers = find_neighbors(model, frame, queries, np.array([0, 1]), 2, ())
    for row, answer in zip((3, 5), answers, strict=True):
        assert (answer["neighbors"][0]["row"], answer["neighbors"][0]["distance"]) == (row, 0.0)
        assert answer["neighbors"][1]["distance"] > 0
