"""What a fit takes: said beforehand, and kept to."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelmetric import KPCA, LFDA, NCA, Kernelized, Nystroem, RandomFeatures
from kernelmetric.compute import _budget

FIT_20_000 = """
import json, warnings
from pathlib import Path
import numpy as np
from kernelmetric import NCA, Kernelized, Nystroem
warnings.simplefilter("ignore")  # one iteration does not converge
X = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
y = (X[:, 0] * X[:, 1] > 0).astype(int)
metric = Kernelized(NCA(max_iter=1), kernel="rbf", space=Nystroem(500, random_state=0)).fit(X, y)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").open())
peak = int(status["VmHWM"].split()[0]) / 1024  # ru_maxrss would begin at the parent's peak
print(json.dumps({"peak_mb": peak, "shape": list(metric.components_.shape)}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are told by Linux")
def test_a_kernelized_fit_of_20_000_points_stays_under_1500_mb():
    done = subprocess.run(
        [sys.executable, "-c", FIT_20_000], capture_output=True, text=True, check=True
    )
    result = json.loads(done.stdout)
    assert result["shape"] == [500, 500]
    assert result["peak_mb"] < 1500


@pytest.mark.parametrize(
    "estimator",
    [KPCA(), KPCA(50), Nystroem(100), RandomFeatures(100), NCA(), LFDA(), Kernelized(NCA())],
)
def test_an_estimate_grows_with_the_data(estimator):
    small, large = (estimator.estimate_memory(n, 20) for n in (1_000, 100_000))
    assert 0 < small < large


@pytest.mark.parametrize("estimator", [KPCA(), Kernelized(NCA(), space=KPCA()), NCA()])
def test_what_cannot_fit_is_refused_before_it_starts(estimator, monkeypatch):
    monkeypatch.setattr(_budget, "_free_memory", lambda: 10)
    monkeypatch.setattr(_budget, "_ALWAYS_ALLOWED", 10)
    X = np.random.RandomState(0).randn(20, 3)
    with pytest.raises(MemoryError, match=r"would take about .* GB, but .* GB are free: .*"):
        estimator.fit(X, np.arange(20) % 2)
