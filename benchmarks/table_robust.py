"""What happens to tables in use: other orders, names never seen, empty columns, a single row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from real_tables import CLASSES, NUMBERS, kind_of, split
from table_methods import METHODS, named

SIZE, MOST_TEST = 300, 200
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


def tried(name: str, method: str) -> dict[str, tuple[str, str]]:
    """What each trial of a table came to: "well", "differs", "refused" or "crashed", and how."""
    a, y, b, _ = split(name, SIZE, 0)
    b = b.iloc[:MOST_TEST]
    kind = kind_of(name)
    model = METHODS[method](kind).fit(a, y)
    plain = answers(model, b)
    spread = 1.0 if kind == "classes" else float(np.std(y))

    def same(found: np.ndarray) -> tuple[str, str]:
        gap = float(np.abs(found - plain[: len(found)]).max()) / spread
        return ("well", "") if gap <= TOLERANCE else ("differs", f"by {gap:.2g}")

    def sound(found: np.ndarray) -> tuple[str, str]:
        return ("well", "") if np.isfinite(found).all() else ("crashed", "not finite")

    def trained_in_another_order() -> tuple[str, str]:
        return same(answers(METHODS[method](kind).fit(shuffled(a), y), shuffled(b)))

    trials: dict[str, Callable[[], tuple[str, str]]] = {
        "trained and predicted in another order": trained_in_another_order,
        "predicted in another order": lambda: same(answers(model, shuffled(b))),
        "names never seen": lambda: sound(answers(model, strange(b))),
        "first column emptied": lambda: sound(answers(model, emptied(b, b.columns[0]))),
        "last column emptied": lambda: sound(answers(model, emptied(b, b.columns[-1]))),
        "one row": lambda: same(answers(model, b.iloc[:1])),
    }
    found = {}
    for title, trial in trials.items():
        try:
            found[title] = trial()
        except ValueError as problem:
            found[title] = ("refused", str(problem)[:200])
        except Exception as problem:
            found[title] = ("crashed", f"{type(problem).__name__}: {problem}"[:200])
    return found


def robust(method: str, only: list[str] | None) -> int:
    """Try every table, print what is not well, and return the number of crashes.

    A refusal is an error of scikit-learn's kind that says what is wrong with the rows.
    """
    names = [name for name in (*CLASSES, *NUMBERS) if not only or name in only]
    counts: Counter[tuple[str, str]] = Counter()
    for name in names:
        try:
            found = tried(name, method)
        except Exception as problem:
            found = {"fit": ("crashed", f"{type(problem).__name__}: {problem}"[:200])}
        counts.update((title, outcome) for title, (outcome, _) in found.items())
        problems = {title: " ".join(how) for title, how in found.items() if how[0] != "well"}
        print(name, problems or "all is well", flush=True)
    for (title, outcome), count in sorted(counts.items()):
        print(f"{title}: {outcome} {count}")
    return sum(count for (_, outcome), count in counts.items() if outcome == "crashed")
