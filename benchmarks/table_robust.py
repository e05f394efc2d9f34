"""What happens to tables in use: other orders, names never seen, empty columns, a single row."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from real_tables import CLASSES, NUMBERS, kind_of, split
from table_methods import METHODS, named

SIZE = 300
TOLERANCE = 1e-6


def answers(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Probabilities of classes, or numbers as one column."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    return np.asarray(model.predict(X))[:, None]


def shuffled(X: pd.DataFrame) -> pd.DataFrame:
    """The columns in another order."""
    return X[list(np.random.RandomState(0).permutation(X.columns))]


def strange(X: pd.DataFrame) -> pd.DataFrame:
    """The first row with names that nobody has seen, or a huge number where there are no names."""
    X = X.copy()
    for name in named(X):
        X[name] = X[name].astype(object)
        X.loc[X.index[0], name] = "never seen before"
    if not named(X):
        X[X.columns[0]] = X[X.columns[0]].astype(np.float64)
        X.loc[X.index[0], X.columns[0]] = 1e9
    return X


def emptied(X: pd.DataFrame, column: str) -> pd.DataFrame:
    """One column without any value."""
    X = X.copy()
    X[column] = None if column in named(X) else np.nan
    return X


def tried(name: str, method: str) -> dict[str, str]:
    """What each trial of a table came to: "" where all is well."""
    a, y, b, _ = split(name, SIZE, 0)
    b = b.iloc[:200]
    kind = kind_of(name)
    model = METHODS[method](kind).fit(a, y)
    plain = answers(model, b)
    spread = 1.0 if kind == "classes" else float(np.std(y))

    def same(found: np.ndarray) -> str:
        gap = float(np.abs(found - plain).max()) / spread
        return "" if gap <= TOLERANCE else f"differs by {gap:.2g}"

    def sound(found: np.ndarray) -> str:
        return "" if np.isfinite(found).all() else "not finite"

    def trained_in_another_order() -> str:
        return same(answers(METHODS[method](kind).fit(shuffled(a), y), shuffled(b)))

    def one_row() -> str:
        gap = np.abs(answers(model, b.iloc[:1]) - plain[:1]).max() / spread
        return "" if gap <= TOLERANCE else f"differs by {gap:.2g}"

    trials: dict[str, Callable[[], str]] = {
        "trained and predicted in another order": trained_in_another_order,
        "predicted in another order": lambda: same(answers(model, shuffled(b))),
        "names never seen": lambda: sound(answers(model, strange(b))),
        "first column emptied": lambda: sound(answers(model, emptied(b, b.columns[0]))),
        "last column emptied": lambda: sound(answers(model, emptied(b, b.columns[-1]))),
        "one row": one_row,
    }
    found = {}
    for title, trial in trials.items():
        try:
            found[title] = trial()
        except Exception as problem:
            found[title] = f"{type(problem).__name__}: {problem}"[:200]
    return found


def robust(method: str, only: list[str] | None) -> int:
    """Try every table, print what is not well, and return how often that was."""
    warnings.simplefilter("ignore")
    names = [name for name in (*CLASSES, *NUMBERS) if not only or name in only]
    bad = 0
    for name in names:
        try:
            found = tried(name, method)
        except Exception as problem:
            found = {"fit": f"{type(problem).__name__}: {problem}"[:200]}
        problems = {title: text for title, text in found.items() if text}
        bad += len(problems)
        print(name, problems or "all is well", flush=True)
    print(f"{len(names)} tables, {bad} trials that did not go well")
    return bad
