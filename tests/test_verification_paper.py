"""Verification of pairs of points never seen: the learned metric beside the Euclidean one."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kernelmetric import IdealizedKernel, Pairs, PairVerifier, datasets

pytestmark = pytest.mark.paper


@pytest.mark.parametrize(("name", "n_train"), [("wine", 89), ("ionosphere", 175), ("sonar", 104)])
def test_the_learned_metric_verifies_held_out_pairs_better_than_the_euclidean_one(name, n_train):
    try:
        X, y = datasets.load(name, return_X_y=True)
    except OSError as error:
        pytest.skip(f"{name} is not to be had: {error}")
    order = np.random.RandomState(0).permutation(len(y))
    train, new = order[:n_train], order[n_train : 2 * n_train]
    before = make_pipeline(StandardScaler(), FunctionTransformer()).fit(X[train])
    after = make_pipeline(StandardScaler(), IdealizedKernel()).fit(X[train], y[train])
    pairs = Pairs.from_labels(y[new], per_point=10, random_state=0)
    areas = [PairVerifier(metric).score_pairs(pairs, X[new]) for metric in (before, after)]
    assert areas[1] > areas[0]
