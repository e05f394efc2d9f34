"""``kernelmetric link``: which records of two tables, or of one, mean the same."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from kernelmetric.cli._files import require_outputs
from kernelmetric.cli._options import FILE, output_options
from kernelmetric.cli._records import AnswerFile, Records, open_records, record_options
from kernelmetric.cli._talk import Talk, count, this_command
from kernelmetric.evaluation import threshold_for
from kernelmetric.graphs import read_pairs
from kernelmetric.report import link_page, write_atomically
from kernelmetric.tables import TableError, open_table, table_bytes

_WORDS = {"1": True, "true": True, "yes": True} | dict.fromkeys(("0", "-1", "false", "no"), False)
_PART = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.option(
    "--pairs",
    "pairs_file",
    type=FILE,
    help="Known pairs: lines 'left,right,sign' of row numbers from 0, or of ids with --id; "
    "sign 1 for a match, 0 or -1 for none. A line of names may come first.",
)
@click.option("--answers", type=FILE, help="What kernelmetric label has saved.")
@record_options
@click.option("--threshold", type=_PART, help="The least probability of a link.  [default: 0.5]")
@click.option("--precision", type=_PART, help="Choose the threshold for this part of right links.")
@click.option("--one-to-one", is_flag=True, help="A record has at most one partner.")
@click.option(
    "--one-to-many", is_flag=True, help="One of RIGHT has at most one; several may share it."
)
@click.option(
    "--clusters",
    "method",
    type=click.Choice(["components", "correlation"]),
    default="components",
    help="Whatever links connect, or the clusters that agree best with all compared pairs.",
)
@click.option("--out", type=FILE, required=True, help="Where the links and their records go.")
@click.option("--report", type=FILE, help="Write a page: how sure the links are, and why.")
@output_options
def link(
    talk: Talk,
    left: Path,
    right: Path | None,
    pairs_file: Path | None,
    answers: Path | None,
    threshold: float | None,
    precision: float | None,
    one_to_one: bool,
    one_to_many: bool,
    method: str,
    out: Path,
    report: Path | None,
    **compared: Any,
) -> None:
    """Find the records of two tables that mean the same; of one table, its copies.

    Candidates are the records whose letters are most alike. They are compared field by field,
    and what agreement is worth is learned: without labels from the candidates alone, with
    --pairs or --answers from known pairs as well. The links are written with their
    probabilities, with the cluster of records that they connect, and with both records side by
    side. Columns that number the records are not compared.

    \b
    Examples:
      kernelmetric link a.csv b.csv --out links.csv
      kernelmetric link a.csv b.csv --pairs known.csv --precision 0.99 --out links.csv
      kernelmetric link a.csv b.csv --out links.csv --report page.html
      kernelmetric link people.csv --id number --out copies.csv
    """
    if threshold is not None and precision is not None:
        raise ValueError("Got --threshold beside --precision, but expected one of them.")
    if answers is not None and pairs_file is not None:
        raise ValueError("Got --answers beside --pairs, but expected one of them.")
    inputs = {"LEFT": left, "RIGHT": right, "--pairs": pairs_file, "--answers": answers}
    require_outputs({"--out": out, "--report": report}, inputs)
    records = open_records(left, right, **compared)
    notes, known, same = records.notes, None, None
    if pairs_file is not None:
        known, same = _known(pairs_file, records)
    if answers is not None:
        found, said = AnswerFile(answers, records.left, records.right).read()
        sure = [answer for answer in found if answer[2] is not None]
        if sure:
            known, same = np.array([each[:2] for each in sure]), np.array([s for _, _, s in sure])
        notes += said
    linker = records.linker.fit(*records.compared, known, same, by_kind=answers is None)
    least, chosen = threshold or 0.5, None
    if precision is not None:
        if linker.labelled_probability_ is None:
            raise ValueError(
                "Got --precision, but expected --pairs with at least five matches and five others, "
                "which share few records: the threshold is found on them."
            )
        labelled = (linker.labelled_probability_, linker.labelled_same_, linker.labelled_pairs_)
        share, two = linker.match_share_, right is not None
        chosen = threshold_for(*labelled, precision=precision, match_share=share, two_tables=two)
        least = chosen.threshold.value
    links = linker.links(threshold=least, one_to_one=one_to_one, one_to_many=one_to_many)
    clusters = links.clusters(method)
    write_atomically(out, table_bytes(_with_records(links, clusters, records), out))
    talk.aside(notes)
    kinds = linker.comparison_.kinds_
    talk.say("Compared " + ", ".join(f"{name} ({kind})" for name, kind in kinds.items()) + ".")
    n_again = 0 if same is None else len(same) - len(linker.labelled_same_)
    talk.aside([f"{count(n_again, 'label')} given again: a pair counts once."] * (n_again > 0))
    known_ones = "no pairs" if same is None else count(len(linker.labelled_same_), "pair")
    talk.say(
        f"{count(len(linker.candidates_), 'candidate')}; about {100 * linker.match_share_:.2g} % "
        f"of the candidates match; {known_ones} known."
    )
    if chosen is not None:
        talk.say(f"Chosen: {chosen}.")
    n_links = len(links) - len(clusters.cut)
    talk.say(f"Saved {out}: {count(n_links, 'link')} of probability {least:.3g} or more.")
    if len(clusters.cut):
        cut = count(len(clusters.cut), "link")
        talk.say(f"{cut} between clusters left out: other pairs contradict them.")
    if len(clusters.violations):
        doubts = count(len(clusters.violations), "pair")
        talk.say(f"{doubts} inside clusters were compared and not linked: look at those.")
    if report is not None:
        names: Any = dict(zip(("left_names", "right_names"), records.names, strict=True))
        page = link_page(
            linker, links, *records.compared, cut=clusters.cut, command=this_command(), **names
        )
        write_atomically(report, page)
        talk.say(f"Saved {report}.")
    talk.answer(
        {
            "out": str(out), "links": n_links, "candidates": len(linker.candidates_),
            "match_share": linker.match_share_, "threshold": least, "fields": kinds,
            "precision": None if chosen is None else list(chosen.precision),
            "recall": None if chosen is None else list(chosen.recall),
            "violations": len(clusters.violations), "cut": len(clusters.cut), "notes": notes,
        }
    )  # fmt: skip


def _with_records(links: Any, clusters: Any, records: Records) -> Any:
    """The links as a table, with the columns of both records side by side."""
    two = records.right is not records.left
    named = links.to_frame(records.left.ids, records.right.ids if two else None, clusters)
    rows = links.to_frame(clusters=clusters)
    sides = {"left": records.left.frame, "right": records.right.frame}
    every = dict.fromkeys(name for frame in sides.values() for name in frame.columns)
    return named.assign(
        **{
            f"{side}_{name}": frame[name].to_numpy()[rows[side]]
            for name in every
            for side, frame in sides.items()
            if name in frame
        }
    )


def _known(path: Path, records: Records) -> tuple[Any, Any]:
    """Row numbers of known pairs, and which are matches."""
    if records.left.ids is None:
        matches, others = read_pairs(path)
        same = np.arange(len(matches) + len(others)) < len(matches)
        return np.concatenate([matches, others]), same
    table = open_table(path).frame
    if table.shape[1] != 3:
        raise TableError(
            f"Got {path} with {count(table.shape[1], 'column')}, but expected three: the two ids "
            "and 1 for a match, 0 for none, below a line of names."
        )
    sides = enumerate((records.left, records.right))
    rows = [side.rows_named(table.iloc[:, k].astype(str), path) for k, side in sides]
    signs = table.iloc[:, 2].astype(str).str.lower()
    wrong = signs[~signs.isin(_WORDS)]
    if len(wrong):
        raise TableError(
            f"Got the sign {wrong.iloc[0]!r} in {path}, but expected 1 for a match, 0 for none."
        )
    return np.column_stack(rows), signs.map(_WORDS).to_numpy(bool)
