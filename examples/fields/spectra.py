"""Spectra with chemotools: local regression in a learned metric, with intervals.

``python spectra.py`` predicts the glucose in a fermentation from its mid-infrared spectra, which
come with chemotools. Of the samples that chromatography measured too, every second one teaches.
The others are predicted. Spectra are cut, corrected and derived by chemotools, in one pipeline with
:class:`kernelmetric.MetricRegressor`. Partial least squares stand beside it.

It needs ``pip install chemotools ikpls``.
"""

from __future__ import annotations

import numpy as np
from chemotools.baseline import LinearCorrection
from chemotools.datasets import load_fermentation_test
from chemotools.derivative import SavitzkyGolay
from chemotools.feature_selection import RangeCut
from sklearn.cross_decomposition import PLSRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmetric import MLKR, Kernelized, MetricRegressor

EVERY = 1.25 / 60  # hours from one spectrum to the next


def pipeline(model: object, waves: np.ndarray) -> Pipeline:
    """Spectra as chemotools prepares them, then a model."""
    return make_pipeline(
        RangeCut(start=950, end=1500, x_axis=waves),
        LinearCorrection(),
        SavitzkyGolay(window_length=15, polyorder=2, deriv=1),
        StandardScaler(with_std=False),
        model,
    )


def main() -> dict[str, float]:
    """Learn, predict; the root of the mean squared errors, and the part inside the intervals."""
    X, samples = load_fermentation_test()
    waves = X.columns.to_numpy(dtype=float)
    rows = np.round(samples["time"].to_numpy() / EVERY).astype(int)
    X, y = X.to_numpy()[np.minimum(rows, len(X) - 1)], samples["glucose"].to_numpy()
    there = np.ptp(X, axis=1) > 0  # the last spectrum is flat
    X, y = X[there], y[there]
    new = np.arange(len(y)) % 2 == 1
    X, y, X_new, y_new = X[~new], y[~new], X[new], y[new]
    local = pipeline(MetricRegressor(Kernelized(MLKR(), kernel="rbf")), waves).fit(X, y)
    lines = pipeline(PLSRegression(6), waves).fit(X, y)
    found = {
        name: float(np.sqrt(np.mean((model.predict(X_new).ravel() - y_new) ** 2)))
        for name, model in (("local regression", local), ("partial least squares", lines))
    }
    ends = local[-1].predict_interval(local[:-1].transform(X_new), coverage=0.9)
    for name, error in found.items():
        print(f"{name}: {error:.2f} g/l off")
    found["inside"] = float(np.mean((ends[:, 0] <= y_new) & (y_new <= ends[:, 1])))
    print(f"intervals of 90 %: {found['inside']:.0%} of {len(y_new)} samples inside")
    return found


if __name__ == "__main__":
    main()
