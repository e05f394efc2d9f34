"""Every learner says beforehand what its fit takes, within a factor of two."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from kernelmetric import (
    DLA,
    DNE,
    ITML,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    MCML,
    MLKR,
    MMC,
    NCA,
    RCA,
    IdealizedKernel,
)
from kernelmetric.compute import _budget

SMALL, WIDE = (1000, 20), (400, 120)


@pytest.mark.parametrize(
    ("learner", "shape"),
    [
        (NCA(max_iter=1), SMALL),
        (MLKR(max_iter=1), SMALL),
        (MCML(max_iter=1), SMALL),
        (LMNN(max_iter=1), SMALL),
        (LMCA(3, max_iter=1), SMALL),
        (DNE(), SMALL),
        (DLA(), SMALL),
        (LFDA(), SMALL),
        (LPP(), SMALL),
        (LDA(), SMALL),
        (RCA(), SMALL),
        (LDA(), WIDE),
        (RCA(), WIDE),
        (ITML(max_iter=1), SMALL),
        (MMC(max_iter=1), SMALL),
        (MMC(max_iter=1, max_pairs=20_000), WIDE),
        (IdealizedKernel(C=10.0, max_iter=2), (700, 25)),
        (IdealizedKernel(C=10.0, max_iter=2), WIDE),
        (IdealizedKernel("rbf", C=10.0, max_iter=2), (200, 5)),
    ],
    ids=repr,
)
@pytest.mark.every(18)
def test_an_estimate_is_within_a_factor_of_two(learner, shape):
    rng = np.random.RandomState(0)
    n, d = shape
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d))
    # classes far apart let LMNN try short maps too, with which most points are impostors
    X[:, :2] += (20 if type(learner) is LMNN else 1) * y[:, None]
    y = y.astype(float) if isinstance(learner, MLKR) else y
    with warnings.catch_warnings(), threadpool_limits(1):  # every thread has a block of its own
        warnings.simplefilter("ignore", UserWarning)  # of so few iterations
        clone(learner).fit(X[:60, : min(d, 50)], y[:60])  # what is imported late, once
        tracemalloc.start()
        learner.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        estimate = learner.estimate_memory(n, d)
    assert peak / 2 <= estimate <= 2 * peak, f"{estimate / 1e6:.1f} of {peak / 1e6:.1f} MB"


def test_every_thread_has_a_block_of_its_own(monkeypatch):
    monkeypatch.setattr("kernelmetric.compute._threads._BLAS.available", lambda: 1)
    alone = LMNN().estimate_memory(20_000, 20)
    monkeypatch.setattr("kernelmetric.compute._threads._BLAS.available", lambda: 16)
    assert LMNN().estimate_memory(20_000, 20) > 5 * alone
    assert LMNN().estimate_memory(1000, 20) < alone  # there are not so many blocks


def test_few_operations_have_one_block(monkeypatch):
    monkeypatch.setattr("kernelmetric.compute._threads._BLAS.available", lambda: 16)
    assert LMCA(1).estimate_memory(9000, 20) < 0.3 * LMCA(20).estimate_memory(9000, 20)
    assert LMNN(1).estimate_memory(9000, 20) == pytest.approx(
        LMNN().estimate_memory(9000, 20), rel=0.1
    )  # M is optimised whole


def test_an_idealized_kernel_counts_its_space(monkeypatch):
    plain = IdealizedKernel().estimate_memory(1000, 5)
    assert IdealizedKernel("rbf").estimate_memory(1000, 5) > plain + 8 * 1000**2
    monkeypatch.setattr(_budget, "_free_memory", lambda: 10)
    monkeypatch.setattr(_budget, "_ALWAYS_ALLOWED", 10)
    with pytest.raises(MemoryError, match="IdealizedKernel on 20 points with 3 features"):
        IdealizedKernel("rbf").fit(np.random.RandomState(0).randn(20, 3), np.arange(20) % 2)
