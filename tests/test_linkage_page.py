"""The guide from tables to linked records does what it says."""

import doctest
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "linkage.md"


@pytest.mark.slow  # the documentation is built with its examples, too
def test_the_examples_of_the_page_run():
    pytest.importorskip("pandas", reason="pandas comes with the extra `linkage`")
    pytest.importorskip("rapidfuzz", reason="rapidfuzz comes with the extra `linkage`")
    blocks = re.findall(r"^```\{doctest\}\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(blocks) >= 6
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    said = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)
