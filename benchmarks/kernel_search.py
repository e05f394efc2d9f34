"""21 widths × 5 ranks by three-fold cross-validation: GridSearchCV beside KernelizedCV.

``python benchmarks/kernel_search.py ionosphere digits`` (minutes each). The peer is scikit-learn's
KernelPCA + NeighborhoodComponentsAnalysis; the second row puts our learner into its pipeline, so
that the gain of the shared path alone is seen. Seconds of the processor are robust against other
work on the machine; for both to mean the same, run with ``OPENBLAS_NUM_THREADS=1``.
"""

import argparse
import time
import warnings

from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import scale

from kernelmetric import DNE, LMNN, NCA, datasets
from kernelmetric.kernelized import KernelizedCV
from kernelmetric.kernels import rbf_widths

LEARNERS = {"NCA": NCA(), "LMNN": LMNN(tol=1e-2), "DNE": DNE()}
PEERS = {"NCA": NeighborhoodComponentsAnalysis(random_state=0)}
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def load(name: str):
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:300] / 16, y[:300]
    X, y = datasets.load(name, return_X_y=True)
    return scale(X), y


def grid_search(learner, n_features: int, ranks: list[int | None]) -> GridSearchCV:
    pipeline = Pipeline(
        [("kpca", KernelPCA(kernel="rbf")), ("nca", learner), ("knn", KNeighborsClassifier(1))]
    )
    widths = [kernel.sigma for kernel in reversed(rbf_widths())]
    grid = {
        "kpca__gamma": [1 / (2 * n_features * sigma**2) for sigma in widths],
        "kpca__n_components": ranks,
    }
    return GridSearchCV(pipeline, grid, cv=FOLDS, refit=False)


def measured(name: str, search, X, y, reference: dict | None) -> dict:
    """Fit a search, print its row, and return what the next rows are compared with."""
    started, worked = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the widest kernels do not converge, and never win
        search.fit(X, y)
    row = {
        "seconds": time.perf_counter() - started,
        "processor": time.process_time() - worked,
        "best": search.best_score_,
    }
    reference = reference or row
    mean = search.cv_results_["mean_test_score"].mean()
    print(
        f"{name:38} {row['seconds']:8.1f} {row['processor']:10.1f} "
        f"{reference['processor'] / row['processor']:7.1f} {row['best']:8.4f} "
        f"{row['best'] - reference['best']:+11.4f} {mean:8.4f}",
        flush=True,
    )
    return reference


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["ionosphere", "digits"])
    parser.add_argument("--learner", choices=LEARNERS, default="NCA")
    parser.add_argument("--ranks", default="10,20,50,100,None")
    parser.add_argument("--n-samples", type=int, default=None)
    arguments = parser.parse_args()
    ranks = [None if rank == "None" else int(rank) for rank in arguments.ranks.split(",")]
    ours = LEARNERS[arguments.learner]
    name = arguments.learner
    for data in arguments.data:
        X, y = (block[: arguments.n_samples] for block in load(data))
        print(f"\n{data}: {len(y)} points, {X.shape[1]} features, ranks {arguments.ranks}")
        print(f"{'':38}  seconds  processor  faster     best  difference     mean")
        reference = None
        if name in PEERS:
            peer = grid_search(PEERS[name], X.shape[1], ranks)
            reference = measured(f"GridSearchCV, scikit-learn's {name}", peer, X, y, None)
        ours_there = grid_search(ours, X.shape[1], ranks)
        reference = measured(f"GridSearchCV, our {name}", ours_there, X, y, reference)
        search = KernelizedCV(ours, "rbf", FOLDS, ranks, refit=False)
        measured(f"KernelizedCV, our {name}", search, X, y, reference)


if __name__ == "__main__":
    main()
