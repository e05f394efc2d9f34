"""Make the model files of this folder: one for each kind of metric, in the schema of now.

They are made once for each schema, and never again: a file of today must be read for ever. Run
``python tests/models/make.py`` when ``SCHEMA`` has grown, and keep the older ones.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    DNE,
    KPCA,
    NCA,
    RBF,
    Delta,
    IdealizedKernel,
    Kernelized,
    KernelTrick,
    Nystroem,
    Polynomial,
    RandomFeatures,
    TransductiveDistance,
    save,
)
from kernelmetric.shipping._container import SCHEMA

HERE = Path(__file__).parent


def training():
    """15 points of three classes, and five others."""
    rng = np.random.RandomState(0)
    y = np.arange(15) % 3
    X = np.round(rng.standard_normal((20, 2)) + np.r_[y, [0, 1, 2, 0, 1]][:, None], 2)
    return X[:15], y, X[15:]


def noted():
    """A metric beside which lies one of every kind of thing that a file can hold."""
    X, y, _ = training()
    metric = NCA(2).fit(pd.DataFrame(X, columns=["width", "height"]), y)
    frozen = np.arange(3)
    frozen.flags.writeable = False
    metric.notes_ = {
        "floats": [0.1, float("nan"), float("inf"), float("-inf")],
        "slice": slice(1, None, 2),
        "dtype": np.dtype("float32"),
        "type": np.float32,
        "scalar": np.int64(5),
        "tuple": (1, "two", None, True),
        3: np.array(["elm", None, 2.5], dtype=object).reshape(3, 1),
        "frozen": frozen,
        "text": np.array(["elm", "oak"]),
        "order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "sparse": sparse.csr_matrix(np.eye(2)),
        "random": np.random.RandomState(0),
    }
    return metric


def models():
    """Fitted metrics by the names of their files."""
    X, y, _ = training()
    random = np.random.RandomState(3)
    return {
        "notes": noted(),
        "kernel": Kernelized(DNE(2), RBF(gamma=0.3), KPCA(3, random_state=random)).fit(X, y),
        "landmarks": Kernelized(
            DNE(1), RBF(gamma=0.2) + 0.1 * Delta(), Nystroem(5, random_state=0)
        ).fit(X, y),
        "waves": Kernelized(
            DNE(2), RBF(gamma=0.2), RandomFeatures(8, n_components=3, random_state=0)
        ).fit(X, y),
        "trick": Kernelized(DNE(1), Polynomial(2) * RBF(gamma=0.2), KernelTrick()).fit(X, y),
        "sparse": Kernelized(DNE(1), RBF(gamma=0.2), KPCA(2)).fit(sparse.csr_array(X), y),
        "pairs": IdealizedKernel("rbf", C=10.0).fit(X, y),
        "indefinite": IdealizedKernel(C=10.0, psd="none").fit(X, y),
        "transductive": TransductiveDistance(2, n_neighbors=4, lam=5000.0).fit(X, y),
        "pipeline": make_pipeline(StandardScaler(), NCA(2)).fit(X, y),
    }


def distances(metric, X):
    """Learned distances between points, whatever the class."""
    if hasattr(metric, "steps"):
        return metric[-1].pairwise_distances(metric[:-1].transform(X))
    columns = getattr(metric, "feature_names_in_", None)
    return metric.pairwise_distances(X if columns is None else pd.DataFrame(X, columns=columns))


def main():
    """Write the files of this schema, and what they must answer."""
    answers = {}
    for name, metric in models().items():
        file = f"schema_{SCHEMA}_{name}.metric"
        save(metric, HERE / file)
        answers[file] = np.asarray(distances(metric, training()[2])).tolist()
    (HERE / f"schema_{SCHEMA}.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
