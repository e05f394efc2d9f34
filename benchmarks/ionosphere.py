"""Ionosphere, 200 training points, the width chosen by 3-fold cross-validation, beside the paper.

``python benchmarks/ionosphere.py --splits 40 DNE NCA LMNN`` (LMNN takes most of an hour).
"""

import argparse

from kernelmetric import DNE, LMNN, NCA, datasets
from kernelmetric.experiments import width_accuracies

PAPER = {"NCA": (NCA(), 0.94), "LMNN": (LMNN(), 0.95), "DNE": (DNE(), 0.95)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("learners", nargs="+", choices=PAPER)
    parser.add_argument("--splits", type=int, default=40)
    arguments = parser.parse_args()
    X, y = datasets.load("ionosphere", return_X_y=True)
    for name in arguments.learners:
        learner, paper = PAPER[name]
        found = width_accuracies(learner, X, y, n_train=200, n_splits=arguments.splits, n_jobs=-1)
        print(f"K{name}: {found.mean():.4f} ± {found.std():.4f} (paper {paper})", flush=True)


if __name__ == "__main__":
    main()
