"""The guide: its links lead somewhere, its calls run, its numbers stay in the appendix."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDE = sorted((DOCS / "guide").glob("*.md"))
PAGES = [*GUIDE, *sorted(DOCS.glob("*.md")), *sorted((DOCS / "measurements").glob("*.md"))]
PAGES = [page for page in PAGES if not page.name.startswith("_")]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")


def name_of(page):
    return page.relative_to(DOCS).as_posix()


def text_of(page):
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def links_of(page):
    """The pages of the repository that a page leads to by links, in its text or in its contents."""
    text = page.read_text(encoding="utf-8")
    found = {(page.parent / target).resolve() for target in LINK.findall(text)}
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                found.add((page.parent / f"{line}.md").resolve())
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page):
    for target in LINK.findall(text_of(page)):
        path = (page.parent / target).resolve()
        if path.is_relative_to(DOCS / "gallery"):  # made by `make docs` from the examples
            path = ROOT / "examples" / path.with_suffix(".py").name
        assert path.exists(), f"{page} links to {target}"


def test_every_page_is_in_the_contents():
    listed = links_of(DOCS / "index.md") | links_of(DOCS / "measurements" / "index.md")
    assert [name_of(page) for page in PAGES if page not in {*listed, DOCS / "index.md"}] == []


def questions():
    rows = re.findall(
        r"^\| (.*\?.*?) \| \[.*?\]\((.*?)\) \|$", text_of(DOCS / "guide/questions.md"), re.M
    )
    return [pytest.param(DOCS / "guide" / target, id=question) for question, target in rows]


def test_there_are_ten_questions():
    assert len(questions()) == 10


@pytest.mark.parametrize("answer", questions())
def test_an_answer_is_two_clicks_from_the_start(answer):
    start = DOCS / "index.md"
    one = {page for page in links_of(start) if page.suffix == ".md" and page.exists()}
    two = one.union(*(links_of(page) for page in one))
    assert answer.resolve() in two


def is_measured(table):
    """Whether a third of the cells, without the names of rows, are numbers with a fraction."""
    cells = [c.strip() for row in table.splitlines()[2:] for c in row.strip("|").split("|")[1:]]
    numbers = [c for c in cells if re.match(r"[-+*]*\d*[.,]\d+|\d+ ?%", c)]
    return len(numbers) > len(cells) / 3


@pytest.mark.parametrize("page", GUIDE, ids=name_of)
def test_a_page_of_the_guide_has_one_table_of_measurements_at_most(page):
    tables = re.findall(r"(?:^\|.*\n){3,}", text_of(page), re.M)
    assert sum(map(is_measured, tables)) <= 1


def test_tables_of_measurements_are_told_from_others():
    assert is_measured("| set | a |\n|---|---|\n| wine | 0.91 |\n| iris | **.95** |\n")
    assert not is_measured("| you have | take |\n|---|---|\n| labels | `LMNN()` |\n")


def sentences_of(page):
    text = re.sub(r"\$\$.*?\$\$|^[|#][^\n]*$", "", text_of(page), flags=re.M | re.S)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d\.) )", text)
    return [s for part in parts for s in re.split(r"(?<=[.!?:])\s", " ".join(part.split()))]


@pytest.mark.parametrize("page", GUIDE, ids=name_of)
def test_no_sentence_of_the_guide_is_long(page):
    assert [s for s in sentences_of(page) if len(s.split()) > 40] == []


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """The names that the cheat sheet takes for granted."""
    pytest.importorskip("onnx", reason="onnx comes with the extra `onnx`")
    pytest.importorskip("faiss", reason="faiss comes with the extra `faiss`")
    from sklearn.cluster import KMeans

    from kernelmetric import LMNN, Kernelized, Pairs, PairVerifier

    monkeypatch.chdir(tmp_path)
    rng = np.random.RandomState(0)
    X = rng.standard_normal((66, 3))
    y = (X[:, 0] > 0).astype(int)
    few = np.where(np.arange(66) < 20, y, -1)
    pairs = Pairs.from_labels(y, per_point=3, random_state=0)
    metric = Kernelized(LMNN(), kernel="rbf").fit(X, y)
    verifier = PairVerifier(metric).calibrate(pairs, X)
    return {
        "X": X, "A": X, "B": X, "X_new": X, "X_other": X, "y": y, "numbers": X[:, 0], "few": few,
        "groups": np.arange(66) // 3, "codes": np.arange(66) // 3, "pairs": pairs,
        "metric": metric, "other_pairs": pairs, "rows": [[0, 1]],
        "verifier": verifier, "estimator": LMNN(),
        "KMeans": lambda k: KMeans(k, n_init=1, random_state=0),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_programs_for_many_machines_run(tmp_path, monkeypatch, forked_workers):
    pytest.importorskip("distributed", reason="distributed comes with the extra `dask`")
    pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `dask`")
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((600, 12)).astype(np.float32), rng.randint(2, size=600)
    X[:, 0] += 3 * y
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)]).assign(kind=y)
    frame[:350].to_parquet("data/a.parquet")
    frame[350:].to_parquet("data/b.parquet")
    text = (DOCS / "guide" / "many_machines.md").read_text(encoding="utf-8")
    start, large, search = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    known = {"__name__": "__main__"}
    start = start.replace("n_workers", 'dashboard_address=":0", n_workers')  # the port may be taken
    exec(compile(start, "start", "exec"), known)  # noqa: S102, RUF100
    client = known["client"]
    try:
        assert known["metric"].components_.shape == (10, 12)
        exec(compile(large, "large", "exec"), known)  # noqa: S102, RUF100
        written = pd.read_parquet("coordinates")
        assert written.shape == (600, 10)
        known |= {"X": X[:90], "y": y[:90]}
        exec(compile(search, "search", "exec"), known)  # noqa: S102, RUF100
        assert known["search"].score(X[90:], y[90:]) > 0.7
    finally:
        client.cluster.close()
        client.close()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_cheat_sheet_runs(surroundings):
    text = (DOCS / "guide" / "cheat_sheet.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 5
    for block in blocks:
        exec(compile(block, "cheat sheet", "exec"), surroundings)  # noqa: S102, RUF100
