"""LSML, SCML and SDML beside metric-learn's, in one run: scores, and CPU seconds of one thread.

``python benchmarks/tuples.py --peer .venv-peers/bin/python`` draws tuples from labels, fits the
learners on them, and on labels with three folds; then it has metric-learn 0.7.0 do the same in its
own environment. Tuples are judged by new points: the share of triplets or quadruplets whose
distances are in the right order, the area under the ROC curve of pairs. Labels are judged by the
accuracy of five neighbours. Every learner is used as it comes, but metric-learn's from labels have
the parameters of its own example, and its ``SDML`` from pairs a balance at which it does not fail.
Its ``SDML`` needs scikit-learn 1.4 or older.
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

N_TUPLES, N_FOLDS, N_NEIGHBORS = 1000, 3, 5
TUPLES = {"pairs": SDML, "triplets": SCML, "quadruplets": LSML}
LABELS = {"LSML": LSML, "SCML": SCML, "SDML": SDML}


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


def drawn(kind: str, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tuples of points, as metric-learn takes them, and the signs of pairs."""
    rng = np.random.RandomState(seed)
    per_point = -(-2 * N_TUPLES // len(y))
    if kind == "pairs":
        pairs = Pairs.from_labels(y, per_point=per_point, random_state=rng)
        rows, signs = pairs.rows, np.where(pairs.is_similar, 1, -1)
    else:
        make = Triplets if kind == "triplets" else Quadruplets
        rows = make.from_labels(y, per_point=per_point, random_state=rng).rows
        signs = np.ones(len(rows), dtype=int)
    chosen = rng.permutation(len(rows))[:N_TUPLES]
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
            parts = {"X": X[train], "y": y[train], "X_new": X[test], "y_new": y[test]}
            for learner in LABELS:
                arrays |= {f"{name}/{learner}/{fold}/{key}": part for key, part in parts.items()}
    return arrays


def measured(case: str, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray) -> Any:
    """The score and the CPU seconds of one fit."""
    kind = case.split("/")[1]
    model = (TUPLES | LABELS)[kind]()
    if kind == "SDML":  # as in metric-learn's example
        model.set_params(prior=np.linalg.inv(np.cov(X.T)))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, None if kind in ("triplets", "quadruplets") else y)
    seconds = time.process_time() - start
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
    parser.add_argument("--only", nargs="+", help="pairs, triplets, quadruplets, LSML, SCML, SDML")
    options = parser.parse_args()
    kinds = [kind for kind in (*TUPLES, *LABELS) if kind in (options.only or (*TUPLES, *LABELS))]
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
    print("| from | set | here | CPU s | metric-learn | CPU s | times faster |")
    print("|---|---|---|---|---|---|---|")
    for kind in kinds:
        learner = (TUPLES | LABELS)[kind].__name__
        told = f"{kind}, {learner}" if kind in TUPLES else f"labels, {learner}"
        for name in sets():
            rows = [
                np.mean([found_[f"{name}/{kind}/{fold}"] for fold in range(N_FOLDS)], axis=0)
                if found_
                else (np.nan, np.nan)
                for found_ in (found, peer)
            ]
            (ours, s), (theirs, t) = rows
            print(
                f"| {told} | {name} | {ours:.3f} | {s:.3f} | {theirs:.3f} | {t:.3f} | {t / s:.1f} |"
            )


if __name__ == "__main__":
    main()
