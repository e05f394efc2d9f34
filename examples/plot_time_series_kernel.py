"""
A kernel of your own, for time series
=====================================

A heartbeat is the same heartbeat wherever the recording begins. The kernel here compares two
series at every shift. It is a function of two blocks of points, and ``Kernelized`` takes it.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import LMNN, RBF, Kernelized


def series(n, seed):
    """Two kinds of beats that begin at a random time."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    time = np.linspace(0, 1, 64, endpoint=False)
    shapes = [
        np.exp(-((time - 0.3) ** 2) / 0.002) + 0.45 * np.exp(-((time - 0.5) ** 2) / 0.004),
        np.exp(-((time - 0.3) ** 2) / 0.002) + 0.45 * np.exp(-((time - 0.72) ** 2) / 0.004),
    ]
    beats = [np.roll(shapes[k], rng.integers(64)) for k in kind]
    return np.array(beats) + 0.25 * rng.standard_normal((n, 64)), kind


# %%
# The mean of an RBF over all shifts of one series is a kernel again. The Fourier transform gives
# the inner products of all shifts at once.
def shift_kernel(A, B, gamma=1.0):
    """Mean over shifts of exp(-gamma |a - shifted b|²)."""
    squared = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1)
    spectra = np.fft.rfft(A)[:, None, :] * np.fft.rfft(B).conj()[None, :, :]
    products = np.fft.irfft(spectra, n=A.shape[1])
    return np.exp(-gamma * (squared[:, :, None] - 2 * products)).mean(axis=2)


X, y = series(60, 0)
X_new, y_new = series(300, 1)
metrics = {
    "RBF of the points as they are": Kernelized(LMNN(), kernel=RBF()).fit(X, y),
    "mean over shifts": Kernelized(LMNN(), kernel=shift_kernel).fit(X, y),
}
accuracies = {"Euclidean": KNeighborsClassifier(1).fit(X, y).score(X_new, y_new)}
for name, metric in metrics.items():
    knn = KNeighborsClassifier(metric.n_neighbors_).fit(metric.embedding_, y)
    accuracies[name] = knn.score(metric.transform(X_new), y_new)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
for i in range(6):
    left.plot(X[i] + 1.6 * i, color=f"C{y[i]}", linewidth=1)
left.set(title="six of 60 series, by kind", xlabel="time", yticks=[])
bars = right.barh(list(accuracies), list(accuracies.values()))
right.bar_label(bars, fmt="{:.2f}", padding=3)
right.set(xlim=(0.4, 1.08), xlabel="accuracy of the nearest neighbours")
right.invert_yaxis()
