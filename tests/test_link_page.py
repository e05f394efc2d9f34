"""The page of ``kernelmetric link``, and what the command leaves out, writes and says."""

import re

import numpy as np
import pytest
from scipy.special import logit

from kernelmetric.datasets import make_records
from kernelmetric.evaluation import threshold_for
from kernelmetric.linkage import RecordLinker
from kernelmetric.report import link_page
from kernelmetric.report._link_page import _Pairs

pd = pytest.importorskip("pandas", reason="pandas comes with the extra `linkage`")
pytest.importorskip("rapidfuzz", reason="rapidfuzz comes with the extra `linkage`")


@pytest.fixture(scope="module")
def two():
    """Two tables, of which row i is row i."""
    records, person = make_records(80, n_copies=2, random_state=2)
    order = np.argsort(person, kind="stable")
    table = pd.DataFrame(records)
    return [table.iloc[order[k::2]].reset_index(drop=True) for k in (0, 1)]


@pytest.fixture(scope="module")
def linker(two):
    return RecordLinker().fit(*two)


@pytest.fixture(scope="module")
def taught(two):
    rows = np.column_stack([np.arange(80), np.arange(80)])
    others = np.column_stack([np.arange(80), np.arange(80) ^ 1])  # few records in common
    return RecordLinker().fit(*two, np.concatenate([rows, others]), np.repeat([1, 0], 80))


def text_of(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.split("</style>")[1])).strip()


@pytest.mark.every(2)
@pytest.mark.parametrize("which", ["linker", "taught"])
def test_what_columns_add_sums_to_the_log_odds_of_a_pair(two, which, request):
    linker = request.getfixturevalue(which)
    rows = linker.candidates_[::50]
    adds = [sum(share for _, share, _ in said) for said in explained(linker, two, rows)]
    expected = logit(np.clip(linker.probability_[::50], 1e-12, 1 - 1e-12))
    assert np.allclose(adds, expected, atol=1e-6)


def explained(linker, tables, rows):
    """What the page knows of pairs: evidence, what it adds, and what it says."""
    pairs = _Pairs(linker, tables, (None, None), True)
    pairs.explain(list(rows))
    return [pairs.reasons[tuple(row)] for row in rows.tolist()]


def test_a_column_adds_the_weight_of_its_level_where_weights_are_all_there_is(two, linker):
    rows = np.column_stack([np.arange(80)] * 2)
    equal = np.flatnonzero((two[0]["last"] == two[1]["last"]).to_numpy())
    assert len(equal) > 10
    for said in explained(linker, two, rows[equal]):
        adds = {name: share for name, share, _ in said}
        assert adds["last"] == pytest.approx(linker.weights().loc["last", "equal"], abs=1e-6)


def test_a_column_of_numbers_that_nothing_is_said_of_adds_nothing(two):
    tables = [table.assign(age=np.arange(len(table)), note=None) for table in two]
    linker = RecordLinker().fit(*tables)
    for said in explained(linker, tables, linker.candidates_[:5]):
        assert "note" not in {name for name, _, _ in said}
    assert tables[0]["age"].dtype.kind == "i"  # the tables of the user stay as they are


def test_the_page_counts_the_links_and_calls_records_by_their_names(two, linker):
    links = linker.links(threshold=0.7)
    names = [[f"{side}{k}" for k in range(80)] for side in "AB"]
    said = text_of(link_page(linker, links, *two, left_names=names[0], right_names=names[1]))
    assert f"{len(links)} links of probability 0.7 or more" in said
    i, j = links.pairs[np.argmax(links.probability)]
    assert f"A{i} and B{j}" in said
    assert str(two[0]["last"][i]) in said
    assert "row " not in said
    assert "Expected from the probabilities" in said


def test_refused_pairs_say_why(two, linker):
    links = linker.links(threshold=0.05, one_to_one=True)
    lost = links.others[links.other_probability >= 0.05]
    assert len(lost)
    cut = links.pairs[:1]
    said = text_of(link_page(linker, links, *two, cut=cut))
    assert f"{len(links) - 1} links" in said
    assert re.search(
        rf"row {cut[0, 0]} and row {cut[0, 1]}: [\d.]+ %, other pairs contradict", said
    )
    assert "a record has a likelier partner" in said
    assert "below the threshold" in said


def test_precision_and_recall_are_those_of_the_labels(two, taught):
    found = threshold_for(
        taught.labelled_probability_, taught.labelled_same_, taught.labelled_pairs_,
        recall=0.9, match_share=taught.match_share_, two_tables=True,
    )  # fmt: skip
    links = taught.links(threshold=found.threshold.value)
    said = text_of(link_page(taught, links, *two))
    assert "Counted on 160 labelled pairs" in said
    chosen = re.search(r"\(chosen\) ([\d,]+) ([\d.]+) % \( (\d+) to (\d+) \) ([\d.]+) %", said)
    if chosen is None:
        chosen = re.search(r"\(chosen\) ([\d,]+) ([\d.]+) % \((\d+) to (\d+)\) ([\d.]+) %", said)
    assert int(chosen[1]) == len(links)
    assert float(chosen[2]) == pytest.approx(100 * found.precision.value, abs=0.06)
    assert int(chosen[3]) == pytest.approx(100 * found.precision.low, abs=0.6)
    assert float(chosen[5]) == pytest.approx(100 * found.recall.value, abs=0.06)


def test_intervals_of_labels_are_bands_around_the_curves(two, taught, linker):
    page = link_page(taught, taught.links(), *two)
    for colour in ("c0", "c1"):
        drawn = re.findall(
            rf'<polyline points="([^"]*)" class="curve" style="([^"]*{colour}[^"]*)"', page
        )
        (band, _), (line, _) = sorted(drawn, key=lambda each: "fill" not in each[1])
        line = dict(tuple(map(float, point.split(","))) for point in line.split())
        half = band.split()[: len(band.split()) // 2], band.split()[len(band.split()) // 2 :]
        for each, sign in zip(half, (1, -1), strict=True):  # the page counts downwards
            for x, y in (map(float, point.split(",")) for point in each):
                assert sign * (y - line[x]) >= -0.11
    assert page.count("opacity: 0.15") == 2
    unlabelled = link_page(linker, linker.links(), *two)
    assert 'points="" ' in unlabelled or "opacity: 0.15" not in unlabelled
    assert "nan" not in unlabelled


def test_expected_precision_is_the_mean_probability_of_what_is_accepted(two, linker):
    links = linker.links(threshold=0.6)
    said = text_of(link_page(linker, links, *two))
    row = re.search(r"0\.6 \(chosen\) (\d+) ([\d.]+) % ([\d.]+) %", said.replace("&nbsp;", " "))
    assert float(row[2]) == pytest.approx(100 * links.probability.mean(), abs=0.06)
    part = links.probability.sum() / linker.probability_.sum()
    assert float(row[3]) == pytest.approx(100 * part, abs=0.06)


def test_text_of_users_does_nothing_on_the_page(two):
    tables = [table.rename(columns={"city": "<i>city"}) for table in two]
    tables[0] = tables[0].assign(first="<script>alert(1)</script>")
    linker = RecordLinker().fit(*tables)
    names = ["</style><b>"] * 80
    page = link_page(linker, linker.links(), *tables, left_names=names, command="<b>")
    for bad in ("<script>alert", "<i>city", "</style><b>", "<b></pre>"):
        assert bad not in page


def test_no_link_and_one_table_make_a_page_too(linker, two):
    said = text_of(link_page(linker, linker.links(threshold=1.0), *two))
    assert "0 links" in said
    assert "There are no such pairs" in said
    one = pd.concat(two, ignore_index=True).to_dict("records")
    own = RecordLinker().fit(one)
    assert f"{len(own.links())} links" in text_of(link_page(own, own.links(), one))


def test_a_linker_that_gives_its_own_reasons_is_quoted(two, linker):
    class Talker(RecordLinker):
        def reasons(self, left, right, pairs):
            assert right.equals(two[1])
            names = ["rare words", "before comparing", *(f"piece {k}" for k in range(20))]
            adds = [4.0, -1.0, *np.full(20, 0.1)]
            told = {"evidence": names, "says": "meier in both", "adds": adds}
            return pd.concat([pd.DataFrame({"pair": k, **told}) for k in range(len(pairs))])

    talker = Talker()
    vars(talker).update(vars(linker))
    links = linker.links()
    said = text_of(link_page(talker, links, *two))
    first = said.split(" evidence ", 1)[1]
    assert first.index("before comparing") < first.index("rare words meier in both +4.0")
    assert "10 others" in first
    assert "sum +5.0" in first  # 4 - 1 + 20 times 0.1
    i = links.pairs[np.argmax(links.probability), 0]
    assert f"row {i} : " + " · ".join(map(str, two[0].iloc[i])) in said


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def files(two, tmp_path):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    for name, table in zip("ab", two, strict=True):
        numbered = table.assign(id=[f"r{k}" for k in range(80)], visits=np.arange(80) % 7)
        if name == "b":
            numbered = numbered.iloc[::-1]
        numbered.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.mark.slow
def test_identifiers_are_left_out_unless_they_are_asked_for(files, run):
    def linked(*options):
        out = files / "links.csv"
        return run("link", files / "a.csv", files / "b.csv", "--out", out, *options)

    said = linked()
    assert said.exit_code == 0, said.stderr
    assert "id: not compared, it differs in every record, like an identifier" in said.stderr
    assert "id (" not in said.stdout
    assert "visits (" in said.stdout
    assert re.search(r"about [\d.]+ % of the candidates match", said.stdout)
    links = pd.read_csv(files / "links.csv")
    assert {"left_last", "right_last", "left_id", "right_id"} <= set(links)
    for side, name in (("left", "a.csv"), ("right", "b.csv")):
        rows = pd.read_csv(files / name)["last"]
        assert links[f"{side}_last"].equals(rows[links[side]].reset_index(drop=True))
    assert "id (" in linked("--use", "id").stdout
    assert "visits (" not in linked("--ignore", "visits").stdout
    assert "Got no column 'vistis'" in linked("--ignore", "vistis").stderr


@pytest.mark.slow
def test_a_column_that_counts_the_records_is_an_identifier_and_an_address_of_mail_is_none(
    two, tmp_path, run
):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    for name, table in zip("ab", two, strict=True):
        mail = [f"{k * 7919 % 10**6:06d}@example.org" for k in range(80)]
        table.assign(nr=np.arange(80) + 1, mail=mail).to_csv(tmp_path / f"{name}.csv", index=False)
    said = run("link", tmp_path / "a.csv", tmp_path / "b.csv", "--out", tmp_path / "l.csv")
    assert "nr: not compared" in said.stderr
    assert "mail (" in said.stdout
    for side in "ab":  # what is all there is to compare is compared
        (tmp_path / f"{side}.csv").write_text("id\n" + "\n".join(f"r{k}" for k in range(30)))
    said = run("link", tmp_path / "a.csv", tmp_path / "b.csv", "--out", tmp_path / "l.csv")
    assert "id (text)" in said.stdout


def test_the_command_writes_the_page_with_records_by_their_ids(files, run):
    out, report = files / "links.csv", files / "page.html"
    said = run("link", files / "a.csv", files / "b.csv", "--out", out, "--report", report)
    assert said.exit_code == 0, said.stderr
    page = text_of(report.read_text(encoding="utf-8"))
    assert re.search(r"r\d+ and r\d+: [\d.]+ %, linked", page)
    assert "kernelmetric" in page
    said = run("link", files / "a.csv", files / "b.csv", "--out", out, "--report", out)
    assert said.exit_code == 1
    assert "would be lost" in " ".join(said.stderr.split())


@pytest.mark.slow
def test_fields_that_changed_places_are_found_and_others_stay_where_they_are(two, tmp_path, run):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    left, right = two[0], two[1].copy()
    right["partner"] = left["first"].to_numpy()[::-1]  # the same names, in another role
    left = left.assign(partner=right["partner"])
    swapped = np.arange(5)
    right.loc[swapped, ["first", "last"]] = right.loc[swapped, ["last", "first"]].to_numpy()
    for name, table in (("a", left), ("b", right)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    out = tmp_path / "links.csv"
    said = run("link", tmp_path / "a.csv", tmp_path / "b.csv", "--one-to-one", "--out", out)
    told = re.findall(r"(\w+) and (\w+): exchanged in (\d+)", said.stderr)
    assert [pair[:2] for pair in told] == [("first", "last")]
    assert 3 <= int(told[0][2]) <= 5
    links = pd.read_csv(out)
    found = links[links["left"] == links["right"]]
    assert len(set(found["left"]) & {*swapped}) >= 4
    first = right["first"][found["right"]].reset_index(drop=True)
    assert found["right_first"].reset_index(drop=True).equals(first)  # rows as they are in the file


@pytest.mark.parametrize(
    ("cell", "n"),
    [("", 2), ("x{row}{k}", 10), pytest.param("x{row}{k}", 300, marks=pytest.mark.slow)],
    ids=["all missing", "10 columns", "300 columns"],
)
def test_odd_files_end_in_a_sentence_or_in_links(tmp_path, run, cell, n):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    lines = [",".join(f"c{k}" for k in range(n))]
    lines += [",".join(cell.format(row=row, k=k) for k in range(n)) for row in range(12)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines), encoding="utf-8")
    done = run("link", table, table, "--out", tmp_path / "links.csv")
    if cell:
        assert done.exit_code == 0, done.output
    else:
        assert done.exit_code != 0
        assert "Got no column to compare" in done.output


def test_labels_that_are_given_again_are_counted_and_said(files, run):
    known = files / "known.csv"
    lines = [f"r{k},r{k},1\nr{k},r{k + 1},0" for k in range(10)]
    known.write_text("\n".join(["left,right,same", *lines, "r0,r0,1"]), encoding="utf-8")
    two = files / "a.csv", files / "b.csv"
    done = run("link", *two, "--id", "id", "--pairs", known, "--out", files / "links.csv")
    assert done.exit_code == 0, done.output
    assert "20 pairs known" in done.output
    assert "1 label given again" in done.output
