"""LSML, SCML and SDML of metric-learn, in an environment of its own with an older scikit-learn.

Reads the tuples and folds that ``tuples.py`` wrote, and prints a JSON object: for each set and
learner the mean score of held-out tuples or points, and CPU seconds of a fit. Nothing of
kernelmetric is imported here: metric-learn does not run beside the scikit-learn it needs.
"""

import json
import sys
import time
import warnings

import numpy as np
from metric_learn import LSML, SCML, SDML, LSML_Supervised, SCML_Supervised, SDML_Supervised
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

warnings.simplefilter("ignore")
N_NEIGHBORS, N_TIMES = 5, 3


def timed(fit):
    """What a fit returns, and the CPU seconds that it takes, the best of some."""
    seconds = []
    for _ in range(N_TIMES):
        start = time.process_time()
        model = fit()
        seconds.append(time.process_time() - start)
    return model, min(seconds)


def squares(model, T, i, j):
    """Squared distances of two columns of an array of tuples."""
    return np.sum(((T[:, i] - T[:, j]) @ model.components_.T) ** 2, axis=1)


def objective(M, T):
    """What LSML minimises, less its value where no quadruplet is wrong."""
    near, far = T[:, 0] - T[:, 1], T[:, 2] - T[:, 3]
    x, y = np.sum((near @ M) * near, axis=1), np.sum((far @ M) * far, axis=1)
    residuals = np.maximum(np.sqrt(x) - np.sqrt(y), 0.0)
    return np.trace(M) - np.linalg.slogdet(M)[1] - len(M) + np.mean(residuals**2)


def of_tuples(kind, T, y, T_new, y_new):
    """Score on new tuples and seconds: their share in the right order, or the area of pairs."""
    if kind == "pairs":
        model, seconds = timed(lambda: SDML(balance_param=1e-4, sparsity_param=0.01).fit(T, y))
        return roc_auc_score(y_new, -squares(model, T_new, 0, 1)), seconds
    if kind == "triplets":
        model, seconds = timed(lambda: SCML(random_state=0).fit(T))
        return np.mean(squares(model, T_new, 0, 1) < squares(model, T_new, 0, 2)), seconds
    model, seconds = timed(lambda: LSML(random_state=0).fit(T))
    if kind.startswith("same"):
        return objective(model.get_mahalanobis_matrix(), T), seconds
    return np.mean(squares(model, T_new, 0, 1) < squares(model, T_new, 2, 3)), seconds


def of_labels(name, X, y, X_new, y_new):
    """Accuracy of 5 neighbours, and seconds; parameters are those of metric-learn's own example."""
    learners = {
        "LSML": LSML_Supervised(tol=0.0001, max_iter=10000, random_state=42),
        "SCML": SCML_Supervised(random_state=42),
        "SDML": SDML_Supervised(
            sparsity_param=0.1, balance_param=0.0015, prior="covariance", random_state=42
        ),
    }
    model, seconds = timed(lambda: learners[name].fit(X, y))
    knn = KNeighborsClassifier(N_NEIGHBORS).fit(model.transform(X), y)
    return knn.score(model.transform(X_new), y_new), seconds


def main():
    """Score everything in the file."""
    data, results = np.load(sys.argv[1]), {}
    for case in sorted({key.rsplit("/", 1)[0] for key in data.files}):
        what = case.split("/")[1]
        parts = [data[f"{case}/{name}"] for name in ("X", "y", "X_new", "y_new")]
        score_of = of_labels if what in ("LSML", "SCML", "SDML") else of_tuples
        try:
            score, seconds = score_of(what, *parts)
        except Exception as error:  # it may diverge: then that is the result
            print(case, repr(error)[:80], file=sys.stderr)
            score, seconds = float("nan"), float("nan")
        results[case] = [float(score), seconds]
    print(json.dumps(results))


main()
