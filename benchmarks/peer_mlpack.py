"""LMNN of mlpack on the digits, in an environment of its own with an older NumPy.

Prints a JSON object, and writes the learned map to the file named on the command line. Its NCA is
left out: fifty iterations on the same points did not end within five minutes.
"""

import json
import resource
import sys
import time

import numpy as np
from mlpack import lmnn
from sklearn.datasets import load_digits

ITERATIONS = 50

X, y = load_digits(return_X_y=True)
X, y = X[:1347], y[:1347].astype(np.uint64)
start = time.perf_counter()
result = lmnn(input_=X, labels=y, k=3, optimizer="lbfgs", max_iterations=ITERATIONS, seed=1)
seconds = time.perf_counter() - start
np.save(sys.argv[1], np.asarray(result["output"]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "iterations": ITERATIONS, "peak_mb": peak}))
