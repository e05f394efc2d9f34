"""LFDA, RCA, ITML and MLKR of metric-learn, in an environment with an older scikit-learn.

``python peer_learners.py splits.npz 3 classes`` prints a JSON object for each fit. Nothing of
kernelmetric is imported here: metric-learn does not run beside the scikit-learn it needs.
"""

import json
import sys
import time
import warnings

import numpy as np
from metric_learn import LFDA, MLKR, RCA, ITML_Supervised
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

warnings.simplefilter("ignore")
splits, n_splits, kind = np.load(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if kind == "classes":
    models = {"LFDA": LFDA(), "RCA": RCA(), "ITML": ITML_Supervised(random_state=0)}
else:
    models = {"MLKR": MLKR()}
for i in range(n_splits):
    X, y, X_test, y_test = (splits[f"{k}{i}"] for k in ("X_train", "y_train", "X_test", "y_test"))
    for name, model in models.items():
        start = time.perf_counter()
        try:
            model.fit(X, y)
            E, E_test = model.transform(X), model.transform(X_test)
            knn = KNeighborsClassifier(1) if kind == "classes" else KNeighborsRegressor(10)
            score, note = float(knn.fit(E, y).score(E_test, y_test)), ""
        except Exception as error:
            score, note = float("nan"), f"{type(error).__name__}: {error}"[:200]
        seconds = round(time.perf_counter() - start, 3)
        cell = {"method": f"metric-learn {name}", "split": i, "accuracy": score}
        print(json.dumps({**cell, "seconds": seconds, "note": note}), flush=True)
