"""Absurd parameters and extreme data end in a finite fit, or in a refusal that is a sentence."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

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

LEARNERS = [
    NCA(max_iter=5),
    NCA(solver="minibatch", max_iter=1, batch_size=4),
    LMNN(max_iter=5),
    LMCA(max_iter=5),
    MCML(max_iter=5),
    MLKR(max_iter=5),
    DNE(),
    DLA(),
    LDA(),
    LFDA(),
    LPP(),
    RCA(),
    ITML(max_iter=5),
    MMC(max_iter=5),
    MMC(diagonal=True, max_iter=5),
    IdealizedKernel(C=10.0, max_iter=5),
    IdealizedKernel(C=10.0, psd="none", max_iter=5),
    IdealizedKernel("rbf", C=10.0, psd="clip", max_iter=5),
]
ABSURD = [
    np.inf,
    -np.inf,
    np.nan,
    1e308,
    1e-308,
    -1,
    0,
    2,
    1.5,
    10**30,
    "x",
    "auto",
    None,
    object(),
    len,
    True,
    [],
    {},
    np.zeros((2, 2)),
    np.full((3, 3), 1e308),
]
y = np.arange(15) % 3
X = np.random.RandomState(0).standard_normal((15, 3))
X[:, 0] += y
EXTREME = {
    "1e-40": (1e-40 * X, y),
    "1e-40 in float32": ((1e-40 * X).astype(np.float32), y),
    "1e-15 in float32": ((1e-15 * X).astype(np.float32), y),
    "1e16 in float32": ((1e16 * X).astype(np.float32), y),
    "1e19 in float32": ((1e19 * X).astype(np.float32), y),
    "1e-150": (1e-150 * X, y),
    "1e-140": (1e-140 * X, y),
    "1e100": (1e100 * X, y),
    "1e150": (1e150 * X, y),
    "1e154": (1e154 * X, y),
    "1e300": (1e300 * X, y),
    "half the largest number": (X / np.abs(X).max() * 8e307, y),
    "constant": (np.ones((15, 3)), y),
    "a constant feature": (np.c_[X, np.ones(15)], y),
    "one feature": (X[:, :1], y),
    "two points": (X[:2], y[:2]),
    "three points": (X[:3], y[:3]),
    "repeated points": (np.repeat(X[:5], 3, axis=0), np.repeat(y[:5], 3)),
    "one point repeated, and another": (np.r_[np.repeat(X[:1], 14, axis=0), X[1:2]], y),
    "two collapsed classes": (np.repeat(X[:2], 6, axis=0), np.repeat([0, 1], 6)),
    "three collapsed classes": (np.repeat(X[:3], 5, axis=0), np.repeat([0, 1, 2], 5)),
    "the same points in two classes": (np.r_[X[:7], X[:7]], np.repeat([0, 1], 7)),
    "a class of one": (X, np.r_[np.zeros(14, dtype=int), 1]),
    "classes of one": (X, np.arange(15)),
    "far away": (X + 1e8, y),
    "an outlier": (np.r_[X, [[1e10, 0, 0]]], np.r_[y, 0]),
    "a far outlier": (np.r_[X, [[1e100, 0, 0]]], np.r_[y, 0]),
    "scales from 1e-8 to 1e8": (X * [1e-8, 1, 1e8], y),
    "scales from 1e-100 to 1e100": (X * [1e-100, 1, 1e100], y),
    "more features than points": (np.random.RandomState(1).standard_normal((6, 20)), y[:6]),
}


def fault_of(learner, X, y):
    """What is wrong with a fit: None for a finite one, and for a refusal that is a sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)
            learner.fit(X, y.astype(float) if isinstance(learner, MLKR) else y)
            Z = learner.transform(X)
    except (ValueError, TypeError) as error:
        said = str(error)
        # Seeds are refused by scikit-learn and NumPy, in their words.
        sentence = said.startswith("Got ") and ", but " in said
        seeds = "cannot be used to seed" in said or said.startswith("Seed must be")
        if not (sentence or seeds):
            return f"{type(error).__name__}: {said}"
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not (Z.shape[1] and np.all(np.isfinite(Z)) and np.all(np.isfinite(learner.components_))):
        return f"coordinates {Z.shape} that are not finite"
    if hasattr(learner, "loss_") and not np.isfinite(learner.loss_):
        return f"a loss of {learner.loss_}"
    return None


@pytest.fixture(autouse=True)
def few_batches(monkeypatch):
    monkeypatch.setattr("kernelmetric.learners._nca_solvers._LEAST_BATCHES", 2)


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.every(12)
def test_absurd_parameters_are_fitted_or_refused_in_a_sentence(learner, half):
    faults = []
    start = half + [repr(some) for some in LEARNERS].index(repr(learner))
    for i, name in enumerate(learner.get_params(deep=False), start):
        for value in ABSURD[i % 2 :: 2]:
            tried = clone(learner).set_params(**{name: value})
            fault = fault_of(tried, X, y)
            if fault is not None:
                faults.append(f"{name}={value!r}: {fault}")
    assert not faults, "\n".join(faults)


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.every(12)
def test_extreme_data_are_fitted_or_refused_in_a_sentence(learner, half):
    faults = []
    start = half + [repr(some) for some in LEARNERS].index(repr(learner))
    for name, data in [*EXTREME.items()][start % 2 :: 2]:
        fault = fault_of(clone(learner), *data)
        if fault is not None:
            faults.append(f"{name}: {fault}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_features_out_of_range_are_refused_with_advice(learner, scale, labelled):
    points, labels = labelled
    with pytest.raises(
        ValueError, match=r"Got features that spread over .*, but .* of float64: rescale them"
    ):
        learner.fit(scale * points, labels)
