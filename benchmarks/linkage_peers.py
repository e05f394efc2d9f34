"""Other libraries on the sets of ``linkage_text.py``: F1 on labelled pairs, and seconds.

``python benchmarks/linkage_text.py FOLDER --peers PYTHON`` runs this file by another Python, which
has py_stringmatching and dedupe (they need NumPy 1), scikit-learn and pandas, and splink by its
own.

magellan
    The features that Magellan generates for a column, by its types and lengths, from
    py_stringmatching, and a forest of 500 trees.
dedupe
    dedupe's comparisons of the columns, and its regularized logistic regression. Blocks are not
    learned, as pairs are given.
splink
    No labels: frequencies by chance from 1,000,000 pairs, the others by expectation maximization
    on pairs whose titles begin with the same two words. Candidates are ours and the labelled pairs.

With all labels, the threshold is the one of the largest F1 on the validation split; with 100 (means
of five draws, those of ``linkage_text.py``) or none, it is 0.5.
"""

import argparse
import contextlib
import io
import json
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

DRAWS, FEW = 5, 100
BEGIN = 2  # words of a title that splink's expectation maximization wants to be equal
SHORT, MEDIUM = 5.0, 10.0  # words on average, of Magellan's kinds of texts


def read(folder):
    """Two tables of texts and of prices, and labelled pairs."""
    tables = []
    for side in ("left", "right"):
        table = pd.read_csv(folder / f"{side}.csv.gz").drop(columns="id")
        for name in table.columns:
            if not (name == "price" and table[name].dtype.kind == "f"):
                texts = table[name].astype(object)
                texts = texts.where(texts.isna(), texts.astype(str).str.lower().str.strip())
                table[name] = texts.where(texts.notna() & (texts != ""), None)
        tables.append(table)
    return *tables, pd.read_csv(folder / "pairs.csv.gz")


def f1(same, linked):
    """Of pairs that are linked."""
    return 2 * np.sum(same & linked) / max(same.sum() + linked.sum(), 1)


def best_threshold(same, p):
    """The probability above which F1 is largest."""
    return max(np.unique(p), key=lambda cut: f1(same, p >= cut))


# --- Magellan's features --------------------------------------------------------------------------


def magellan_features(left, right, pairs):
    """Those of py_entitymatching's get_features_for_matching, from py_stringmatching."""
    import py_stringmatching as sm

    words, grams = sm.WhitespaceTokenizer(return_set=True), sm.QgramTokenizer(3, return_set=True)
    jaccard, cosine = sm.Jaccard(), sm.Cosine()
    distance = sm.Levenshtein()
    monge = sm.MongeElkan()
    edits = [
        distance.get_raw_score, distance.get_sim_score, sm.Jaro().get_raw_score,
        sm.JaroWinkler().get_raw_score, lambda a, b: float(a == b),
    ]  # fmt: skip
    sets = [
        lambda a, b: jaccard.get_raw_score(grams.tokenize(a), grams.tokenize(b)),
        lambda a, b: cosine.get_raw_score(words.tokenize(a), words.tokenize(b)),
    ]
    more = [
        lambda a, b: jaccard.get_raw_score(words.tokenize(a), words.tokenize(b)),
        lambda a, b: monge.get_raw_score(a.split(), b.split()),
    ]
    aligned = [sm.NeedlemanWunsch().get_raw_score, sm.SmithWaterman().get_raw_score]
    columns = []
    for name in left.columns:
        a, b = (t[name].to_numpy(object)[pairs[:, k]] for k, t in enumerate((left, right)))
        if left[name].dtype.kind == "f":
            a, b = a.astype(float), b.astype(float)
            columns += [np.where(a == b, 1.0, 0.0), np.abs(a - b) / np.maximum(a, b)]
            continue
        known = [text for text in (*left[name], *right[name]) if text is not None]
        length = np.mean([len(text.split()) for text in known])
        if length <= 1:
            used = [*edits, sets[0]]
        elif length <= SHORT:
            used = [*sets, *more, distance.get_raw_score, distance.get_sim_score, *aligned]
        elif length <= MEDIUM:
            used = [*sets, more[1], distance.get_raw_score, distance.get_sim_score]
        else:
            used = sets
        columns += [
            [np.nan if p is None or q is None else score(p, q) for p, q in zip(a, b, strict=True)]
            for score in used
        ]
    return np.column_stack(columns)


def magellan(left, right, pairs):
    """A forest on Magellan's features."""
    from sklearn.ensemble import RandomForestClassifier

    X = np.nan_to_num(magellan_features(left, right, pairs), nan=-1.0)

    def learn(rows, same):
        forest = RandomForestClassifier(500, random_state=0).fit(X[rows], same)
        return lambda other: forest.predict_proba(X[other])[:, 1]

    return learn


# --- dedupe ---------------------------------------------------------------------------------------


def dedupe(left, right, pairs):
    """Dedupe's comparisons and its learner."""
    import dedupe as library
    from dedupe import variables

    fields = []
    for name in left.columns:
        if left[name].dtype.kind == "f":
            fields.append(variables.Price(name, has_missing=True))
            continue
        known = [text for text in (*left[name], *right[name]) if text is not None]
        long = np.mean([len(text.split()) for text in known]) > SHORT
        fields.append(variables.String(name, has_missing=True))
        if long:
            fields.append(variables.Text(name, corpus=known, has_missing=True))
    linker = library.RecordLink(fields, num_cores=1)

    def record(table, k):
        row = {name: table[name].iloc[k] for name in table.columns}
        return {n: None if pd.isna(v) or (n == "price" and v <= 0) else v for n, v in row.items()}

    X = linker.data_model.distances([(record(left, i), record(right, j)) for i, j in pairs])

    def learn(rows, same):
        learner = linker.classifier.set_params(n_jobs=1).fit(X[rows], same.astype(int))
        return lambda other: learner.predict_proba(X[other])[:, 1]

    return learn


# --- splink ---------------------------------------------------------------------------------------


def splink(left, right, pairs):
    """Probabilities of pairs, without labels."""
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    from kernelmetric.linkage import candidate_pairs

    joined = np.unique(np.concatenate([candidate_pairs(left, right), pairs]), axis=0)
    tables = []
    for side, table in enumerate((left, right)):
        at = pd.Series(np.arange(len(joined))).groupby(joined[:, side]).agg(list)
        table = table.assign(unique_id=np.arange(len(table)))
        table["pair"] = at.reindex(table["unique_id"]).to_numpy()
        table["pair"] = [p if isinstance(p, list) else [] for p in table["pair"]]
        first = [" ".join(str(text).split()[:BEGIN]) for text in table[table.columns[0]]]
        tables.append(table.assign(words=first))
    texts = [name for name in left.columns if left[name].dtype.kind != "f"]
    prices = [name for name in left.columns if name not in texts]
    rule = block_on("pair", arrays_to_explode=["pair"])
    # As many match as half of the smaller table has records.
    share = min(map(len, tables)) / 2 / (len(left) * len(right))
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[
            *(cl.JaroWinklerAtThresholds(c, [0.92, 0.8]) for c in texts),
            *(cl.ExactMatch(c) for c in prices),
        ],
        blocking_rules_to_generate_predictions=[rule],
        probability_two_random_records_match=share,
    )
    api = DuckDBAPI()
    linker = Linker([api.register(table) for table in tables], settings)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=0)
        linker.training.estimate_parameters_using_expectation_maximisation(block_on("words"))
        found = linker.inference.predict(threshold_match_probability=0).as_pandas_dataframe()
    p = found.set_index(["unique_id_l", "unique_id_r"])["match_probability"]
    wanted = pd.MultiIndex.from_arrays(pairs.T)
    return p.groupby(level=[0, 1]).max().reindex(wanted).fillna(0).to_numpy()


# --- all of them ----------------------------------------------------------------------------------


def judged(method, folder, split):
    """F1 with all labels, with 100, or without; seconds."""
    left, right, table = read(folder)
    pairs, same = table[["left", "right"]].to_numpy(), table["match"].to_numpy() > 0
    at = {name: np.flatnonzero(table["split"] == name) for name in ("train", "valid", split)}
    begin = time.process_time()
    if method == "splink":
        p = splink(left, right, pairs)
        spent = time.process_time() - begin
        cut = best_threshold(same[at["valid"]], p[at["valid"]])
        value, best = (f1(same[at[split]], p[at[split]] >= each) for each in (0.5, cut))
        return {"none": value, "none, threshold of the validation split": best, "seconds": spent}
    learn = {"magellan": magellan, "dedupe": dedupe}[method](left, right, pairs)
    said = learn(at["train"], same[at["train"]])
    cut = best_threshold(same[at["valid"]], said(at["valid"]))
    value = f1(same[at[split]], said(at[split]) >= cut)
    spent = time.process_time() - begin
    place = {tuple(pairs[k]): k for k in at["train"]}
    known = np.array([place[pair] for pair in sorted(place)])
    draws = []
    for seed in range(DRAWS):
        some = known[np.random.RandomState(seed).permutation(len(known))[:FEW]]
        linked = learn(some, same[some])(at[split]) >= 0.5
        draws.append(f1(same[at[split]], linked))
    return {"all": value, "100": np.mean(draws), "±": np.std(draws, ddof=1), "seconds": spent}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=["magellan", "dedupe", "splink"])
    parser.add_argument("split", choices=["valid", "test"])
    parser.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args()
    for folder in given.folders:
        found = judged(given.method, folder, given.split)
        told = {name: round(float(value), 4) for name, value in found.items()}
        print(f"{given.method} {folder.name}: {json.dumps(told, ensure_ascii=False)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    sys.exit(main())
