"""LMNN of metric-learn on the digits, in an environment of its own with an older scikit-learn.

Prints a JSON object, and writes the learned map to the file named on the command line. Nothing of
kernelmetric is imported here: metric-learn does not run beside the scikit-learn it needs.
"""

import json
import resource
import sys
import time

import numpy as np
from metric_learn import LMNN
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
model = LMNN(n_neighbors=3, max_iter=1000)
start = time.perf_counter()
model.fit(X[:1347], y[:1347])
seconds = time.perf_counter() - start
np.save(sys.argv[1], model.components_)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "iterations": int(model.n_iter_), "peak_mb": peak}))
