"""LSML, SCML and SDML beside metric-learn's, in one run: scores, and CPU seconds of one thread.

``python benchmarks/tuples.py --peer .venv-peers/bin/python`` draws tuples from labels, fits the
learners on them, and on labels with three folds; then it has metric-learn 0.7.0 do the same in its
own environment. Tuples are judged by new points: the share of triplets or quadruplets whose
distances are in the right order, the area under the ROC curve of pairs. Labels are judged by the
accuracy of five neighbours. Every learner is used as it comes, but metric-learn's from labels have
the parameters of its own example, and its ``SDML`` from pairs a balance at which it does not fail.
Its ``SDML`` needs scikit-learn 1.4 or older.

A second table is of one and the same objective: that of metric-learn's ``LSML``, which is ours with
another ``gamma``. Seconds are those of the best of three fits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kernelmetric import LSML, SCML, SDML, Pairs, Quadruplets, Triplets

N_TUPLES, N_MANY, N_FOLDS, N_NEIGHBORS = 1000, 10_000, 3, 5
N_TIMES = 3
TUPLES = {"pairs": SDML, "triplets": SCML, "quadruplets": LSML}
LABELS = {"LSML": LSML, "SCML": SCML, "SDML": SDML}
SAME = {"same": LSML, "same, many": LSML}  # the same objective here and there


def sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Points and labels by name; the first are those of metric-learn's example of its learners."""
    example = make_classification(
        n_samples=100,
        n_classes=3,
        n_clusters_per_class=2,
        n_informative=3,
        class_sep=4.0,
        n_features=5,
        n_redundant=0,
        shuffle=True,
        scale=[1, 1, 20, 20, 20],
        random_state=42,
    )
    found = {"example": example}
    for name, load in (("iris", load_iris), ("wine", load_wine), ("cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        found[name] = StandardScaler().fit_transform(X), y
    return found


def drawn(
    kind: str, X: np.ndarray, y: np.ndarray, seed: int, n: int = N_TUPLES
) -> tuple[np.ndarray, np.ndarray]:
    """Tuples of points, as metric-learn takes them, and the signs of pairs."""
    rng = np.random.RandomState(seed)
    per_point = -(-2 * n // len(y))
    if kind == "pairs":
        pairs = Pairs.from_labels(y, per_point=per_point, random_state=rng)
        rows, signs = pairs.rows, np.where(pairs.is_similar, 1, -1)
    else:
        make = Triplets if kind == "triplets" else Quadruplets
        rows = make.from_labels(y, per_point=per_point, random_state=rng).rows
        signs = np.ones(len(rows), dtype=int)
    chosen = rng.permutation(len(rows))[:n]
    return X[rows[chosen]], signs[chosen]


def cases() -> dict[str, np.ndarray]:
    """All that is fitted and judged, as flat arrays that another environment can read."""
    arrays = {}
    for name, (X, y) in sets().items():
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y)
        for fold, (train, test) in enumerate(folds):
            for kind in TUPLES:
                T, signs = drawn(kind, X[train], y[train], fold)
                T_new, signs_new = drawn(kind, X[test], y[test], fold)
                parts = {"X": T, "y": signs, "X_new": T_new, "y_new": signs_new}
                arrays |= {f"{name}/{kind}/{fold}/{key}": part for key, part in parts.items()}
            for kind, n in (("same", N_TUPLES), ("same, many", N_MANY)):
                T, signs = drawn("quadruplets", X[train], y[train], fold, n)
                parts = {"X": T, "y": signs, "X_new": T[:0], "y_new": signs[:0]}
                arrays |= {f"{name}/{kind}/{fold}/{key}": part for key, part in parts.items()}
            parts = {"X": X[train], "y": y[train], "X_new": X[test], "y_new": y[test]}
            for learner in LABELS:
                arrays |= {f"{name}/{learner}/{fold}/{key}": part for key, part in parts.items()}
    return arrays


def fitted(model: Any, X: np.ndarray, y: np.ndarray | None) -> float:
    """Fit a model; the CPU seconds that it takes, the best of some."""
    seconds = []
    for _ in range(N_TIMES):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def squares(M: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances of the near and the far pairs of quadruplets."""
    near, far = T[:, 0] - T[:, 1], T[:, 2] - T[:, 3]
    return np.sum((near @ M) * near, axis=1), np.sum((far @ M) * far, axis=1)


def peer_objective(M: np.ndarray, T: np.ndarray) -> float:
    """What metric-learn's LSML minimises, less its value where no quadruplet is wrong."""
    x, y = squares(M, T)
    residuals = np.maximum(np.sqrt(x) - np.sqrt(y), 0.0)
    return float(np.trace(M) - np.linalg.slogdet(M)[1] - len(M) + np.mean(residuals**2))


def measured(case: str, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray) -> Any:
    """The score and the CPU seconds of one fit."""
    kind = case.split("/")[1]
    model = (TUPLES | LABELS | SAME)[kind]()
    if kind in SAME:  # in units of features, not of the mean squared distance
        model.set_params(gamma=float(np.mean(squares(np.eye(X.shape[2]), X))))
        seconds = fitted(model, X, None)
        return peer_objective(model.get_mahalanobis_matrix(), X), seconds
    if kind == "SDML":  # as in metric-learn's example
        model.set_params(prior=np.linalg.inv(np.cov(X.T)))
    seconds = fitted(model, X, None if kind in ("triplets", "quadruplets") else y)
    if kind in LABELS:
        knn = KNeighborsClassifier(N_NEIGHBORS).fit(model.transform(X), y)
        return knn.score(model.transform(X_new), y_new), seconds
    near = model.pair_distance(X_new[:, [0, 1]])
    if kind == "pairs":
        return roc_auc_score(y_new, -near), seconds
    far = model.pair_distance(X_new[:, [0, 2]] if kind == "triplets" else X_new[:, [2, 3]])
    return np.mean(near < far), seconds


def main() -> None:
    """Measure both, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, help="the Python of metric-learn's environment")
    everything = (*TUPLES, *LABELS, *SAME)
    parser.add_argument("--only", nargs="+", help=", ".join(map(repr, everything)))
    options = parser.parse_args()
    kinds = [kind for kind in everything if kind in (options.only or everything)]
    arrays, found = cases(), {}
    arrays = {key: part for key, part in arrays.items() if key.split("/")[1] in kinds}
    names = sorted({key.rsplit("/", 1)[0] for key in arrays})
    parts = ("X", "y", "X_new", "y_new")
    with threadpool_limits(1):
        measured(names[0], *(arrays[f"{names[0]}/{part}"] for part in parts))  # imports, caches
        for case in names:
            found[case] = measured(case, *(arrays[f"{case}/{part}"] for part in parts))
    peer = {}
    if options.peer is not None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cases.npz"
            np.savez(file, **arrays)
            script = Path(__file__).with_name("peer_tuples.py")
            single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | single
            command = [str(options.peer), str(script), str(file)]
            peer = json.loads(subprocess.run(command, env=env, check=True, stdout=-1).stdout)
    for group, first in (((*TUPLES, *LABELS), "from"), ((*SAME,), "objective of")):
        rows = [(kind, name) for kind in kinds if kind in group for name in sets()]
        if rows:
            print(f"| {first} | set | here | CPU s | metric-learn | CPU s | times faster |")
            print("|---|---|---|---|---|---|---|")
        for kind, name in rows:
            cells = [
                np.mean([results[f"{name}/{kind}/{fold}"] for fold in range(N_FOLDS)], axis=0)
                if results
                else (np.nan, np.nan)
                for results in (found, peer)
            ]
            (ours, s), (theirs, t) = cells
            print(
                f"| {told(kind)} | {name} | {ours:.3f} | {s:.4f} | {theirs:.3f} | {t:.4f} "
                f"| {t / s:.1f} |"
            )


def told(kind: str) -> str:
    """What a row is called."""
    if kind in SAME:
        return f"{N_MANY if kind.endswith('many') else N_TUPLES:,} quadruplets"
    learner = (TUPLES | LABELS)[kind].__name__
    return f"{kind}, {learner}" if kind in TUPLES else f"labels, {learner}"


if __name__ == "__main__":
    main()
