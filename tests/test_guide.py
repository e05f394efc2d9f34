"""The guide: its links lead somewhere, its calls run, its numbers stay in the appendix."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import kernelmetric
from kernelmetric.tables import TableSchema

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


def contents_of(page):
    """The pages that a page lists in its contents, in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                name = re.sub(r".*<(.*)>", r"\1", line)  # a title may stand before the name
                found.append((page.parent / f"{name}.md").resolve())
    return found


def links_of(page):
    """The pages of the repository that a page leads to by links, in its text or in its contents."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets} | set(contents_of(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page):
    for target in LINK.findall(text_of(page)):
        path = (page.parent / target).resolve()
        if path.is_relative_to(DOCS / "gallery"):  # made by `make docs` from the examples
            made = ROOT / "examples" / path.relative_to(DOCS / "gallery")
            path = made.with_name("README.rst") if path.stem == "index" else made.with_suffix(".py")
        assert path.exists(), f"{page} links to {target}"


def headings_of(page):
    """The anchors of a page, as MyST makes them of its headings."""
    words = re.findall(r"^#{1,3} (.*)$", text_of(page), re.M)
    return [re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in words]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_headings_lead_to_them(page):
    for target, anchor in re.findall(r"\]\(([^)#\s:]*\.md)?#([^)]*)\)", text_of(page)):
        path = (page.parent / target).resolve() if target else page
        assert anchor in headings_of(path), f"{page} links to {target}#{anchor}"


def test_every_box_of_the_chooser_leads_to_a_heading():
    boxes = (DOCS / "_static" / "choose.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(\w+)\.html#?([^"]*)"', boxes)
    assert len(links) == boxes.count("<a ") > 20
    for name, anchor in links:
        path = DOCS / "guide" / f"{name}.md"
        assert path.exists()
        assert not anchor or anchor in headings_of(path), f"{name}#{anchor}"


def test_the_contents_are_a_tree_of_nine_that_holds_every_page_once():
    tops = contents_of(DOCS / "index.md")
    assert len(tops) == 9
    listed, pages = [], [DOCS / "index.md"]
    while pages:
        below = contents_of(pages.pop())
        listed += below
        pages += [page for page in below if page.exists()]  # the gallery is made by `make docs`
    assert len(listed) == len(set(listed))
    assert [name_of(page) for page in PAGES if page not in {*listed, DOCS / "index.md"}] == []


# A question of a newcomer, and words of the answer, which must stand on a page two clicks away.
ANSWERS = {
    "How do I install it without gigabytes of CUDA?": "without torch",
    "What is the shortest code that works?": "LMNN().fit(X, y)",
    "How do I choose a learner?": "Start with what you have",
    "My data have text, dates and gaps. What now?": "A data frame goes in as it is",
    "I do not program. Can I use it on a file?": "kernelmetric predict model.km",
    "I have pairs instead of labels. What now?": "Pairs.from_labels(y)",
    "I have two lists of customers. Who is who?": "kernelmetric link a.csv b.csv",
    "How long will it take, and how much memory?": "estimate_time",
    "How do I put it into a product?": "save(metric",
    "I use metric-learn. What changes?": "RCA_Supervised()",
}


def clicks_from_the_start():
    """By page, the least number of links to follow from the start page."""
    clicks, now = {DOCS / "index.md": 0}, [DOCS / "index.md"]
    for click in (1, 2):
        found = {link for page in now for link in links_of(page) if link.suffix == ".md"}
        now = [page for page in found if page.exists() and page not in clicks]
        clicks |= dict.fromkeys(now, click)
    return clicks


@pytest.mark.parametrize("question", ANSWERS)
def test_a_question_is_answered_two_clicks_from_the_start(question):
    rows = re.findall(
        r"^\| (.*\?.*?) \| \[.*?\]\((.*?)\) \|$", text_of(DOCS / "guide/faq.md"), re.M
    )
    answer = (DOCS / "guide" / dict(rows)[question]).resolve()
    assert clicks_from_the_start()[answer] <= 2
    assert ANSWERS[question] in answer.read_text(encoding="utf-8")


def test_the_page_of_questions_has_no_others():
    rows = re.findall(r"^\| (.*\?.*?) \| \[", text_of(DOCS / "guide/faq.md"), re.M)
    assert rows == list(ANSWERS)


def test_every_page_is_three_clicks_from_the_start_at_most():
    near = clicks_from_the_start()
    near = {*near, *(link for page in near for link in links_of(page))}
    assert [name_of(page) for page in PAGES if page not in near] == []


@pytest.mark.parametrize(
    "page", [*GUIDE, DOCS / "index.md", ROOT / "README.md"], ids=lambda p: p.name
)
def test_one_encoder_is_taught(page):
    others = r"TableEncoder|OneHotEncoder|OrdinalEncoder|get_dummies"
    assert re.findall(others, page.read_text(encoding="utf-8")) == []


@pytest.fixture(scope="module")
def a_frame():
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra `pandas`")
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"kg": rng.gamma(2.0, size=60), "kind": rng.choice(["a", "b"], 60)})
    y = ((frame["kg"] > 2) ^ (frame["kind"] == "b")).astype(int).to_numpy()
    frame.loc[::9, "kg"] = np.nan
    return frame, y


def names_of_frames(column):
    """The estimators that the guide lists in a column of its table of what takes a frame."""
    text = (DOCS / "guide" / "mixed_tables.md").read_text(encoding="utf-8")
    rows = text.partition("| takes a frame as it is |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = " ".join(row.strip("|").split("|")[column] for row in rows)
    return [name for name in re.findall(r"`([A-Z]\w+)`", cells) if name != "PairVerifier"]


@pytest.mark.every(2)
@pytest.mark.parametrize("name", names_of_frames(0))
def test_what_is_said_to_take_a_frame_takes_it(name, a_frame):
    frame, y = a_frame
    estimator = getattr(kernelmetric, name)
    estimator = estimator(kernelmetric.DNE(2)) if name == "Kernelized" else estimator()
    estimator.fit(frame, y if name != "MetricRegressor" else y + frame["kg"].fillna(0.5))
    assert estimator.n_features_in_ == 2


@pytest.mark.every(2)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", names_of_frames(1))
def test_what_is_said_to_need_numbers_refuses_a_frame_and_takes_those_of_the_schema(name, a_frame):
    frame, y = a_frame
    estimator = getattr(kernelmetric, name)
    estimator = estimator(kernelmetric.DNE(2)) if name == "KernelizedCV" else estimator()
    with pytest.raises(ValueError, match=r"numbers|NaN|could not convert"):
        clone(estimator).fit(frame, y)
    make_pipeline(TableSchema(), estimator).fit(frame, y)


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
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra `pandas`")
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
        "metric": metric, "other_pairs": pairs, "rows": [[k, k] for k in range(20)],
        "words": [f"{'night' if kind else 'day'} {k}" for k, kind in enumerate(y)],
        "verifier": verifier, "estimator": LMNN(),
        "frame": pd.DataFrame({"kg": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")}),
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


WITH_EXAMPLES = [page for page in PAGES if "```{doctest}" in page.read_text(encoding="utf-8")]


@pytest.mark.slow  # `make docs` runs them too
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_the_examples_of_a_page_run(page):
    for package in ("pandas", "matplotlib", "onnxruntime", "faiss", "rapidfuzz"):
        pytest.importorskip(package, reason="an extra, of which some page has an example")
    blocks = re.findall(r"^```\{doctest\}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    said = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(verbose=False, optionflags=flags).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_cheat_sheet_runs(surroundings):
    text = (DOCS / "guide" / "cheat_sheet.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 5
    for block in blocks:
        exec(compile(block, "cheat sheet", "exec"), surroundings)  # noqa: S102, RUF100


def test_the_commands_of_the_cheat_sheet_have_these_options(tmp_path, monkeypatch):
    pytest.importorskip("click", reason="click comes with the extra `cli`")
    from kernelmetric.cli import build_application

    monkeypatch.chdir(tmp_path)
    for name in ("table.csv", "new.csv", "a.csv", "b.csv", "model.km"):
        (tmp_path / name).touch()
    application = build_application()
    text = (DOCS / "guide" / "cheat_sheet.md").read_text(encoding="utf-8")
    lines = re.findall(r"^kernelmetric (\w+)(.*)$", text, re.M)
    assert len(lines) >= 8
    for name, options in lines:
        application.commands[name].make_context(name, options.split())
