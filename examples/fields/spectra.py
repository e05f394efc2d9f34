"""
Spectra with chemotools: local regression in a learned metric, with intervals
=============================================================================

``python spectra.py --picture spectra.png`` predicts the glucose in a fermentation from its
mid-infrared spectra, which come with chemotools. Of the samples that chromatography measured too,
every second one teaches. The others are predicted. Spectra are cut, corrected and derived by
chemotools, in one pipeline with :class:`kernelmetric.MetricRegressor`. Partial least squares stand
beside it.

.. image:: /_static/fields-spectra.png
   :alt: The spectra by their glucose, and measured glucose beside predictions with intervals.

Left, the spectra that teach, the lighter the more glucose. Right, the predictions of the other
samples with intervals of 90 %.

It needs ``pip install chemotools ikpls matplotlib``.
"""

# sphinx_gallery_thumbnail_path = '_static/fields-spectra.png'

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

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


def draw(waves: Any, X: Any, y: Any, truth: Any, said: Any, ends: Any, path: Path) -> None:
    """Spectra by what is in them, and predictions with intervals."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    shown = (waves >= 950) & (waves <= 1500)
    for spectrum, amount in zip(X, y, strict=True):
        left.plot(waves[shown], spectrum[shown], color=plt.cm.viridis(amount / y.max()), lw=1)
    left.set(title="spectra that teach", xlabel="wavenumber, 1/cm", ylabel="absorbance")
    right.plot([0, y.max()], [0, y.max()], color="0.7", lw=1)
    sizes = np.abs(ends.T - said)
    right.errorbar(truth, said, yerr=sizes, fmt="o", ms=5, capsize=3)
    right.set(title="glucose, g/l", xlabel="measured", ylabel="predicted, with 90 % intervals")
    figure.savefig(path, dpi=90)


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Learn, predict; the root of the mean squared errors, and the part inside the intervals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--picture", type=Path, help="where to draw spectra and predictions")
    given = parser.parse_args(arguments)
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
    if given.picture is not None:
        draw(waves, X, y, y_new, local.predict(X_new), ends, given.picture)
    return found


if __name__ == "__main__":
    main()
