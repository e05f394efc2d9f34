"""
Where the nearest neighbours change their mind
==============================================

Two moons in two features, and two further features that are noise. The colour of the background is
the answer of the nearest neighbour for a point of the plane, or of as many as the metric chose.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import LMNN, Kernelized


def data(n, seed):
    """Two moons, and two features of noise."""
    moons, y = make_moons(n, noise=0.15, random_state=seed)
    noise = np.random.RandomState(seed).standard_normal((n, 2))
    return np.hstack([moons, noise]), y


X, y = data(150, 0)
X_new, y_new = data(1000, 1)
metrics = {
    "Euclidean": None,
    "LMNN": LMNN().fit(X, y),
    "kernelized LMNN": Kernelized(LMNN()).fit(X, y),
}

# %%
# The plane through the middle of the noise.
across, up = np.meshgrid(np.linspace(-1.6, 2.6, 160), np.linspace(-1.2, 1.7, 120))
plane = np.column_stack([across.ravel(), up.ravel(), np.zeros((across.size, 2))])
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for ax, (name, metric) in zip(axes, metrics.items(), strict=True):
    places, transform = (metric.places, metric.transform) if metric else (np.asarray, np.asarray)
    knn = KNeighborsClassifier(getattr(metric, "n_neighbors_", 1)).fit(places(X), y)
    accuracy = knn.score(transform(X_new), y_new)
    answers = knn.predict(transform(plane)).reshape(across.shape)
    ax.contourf(across, up, answers, levels=[-0.5, 0.5, 1.5], colors=["C0", "C1"], alpha=0.25)
    ax.scatter(*X[:, :2].T, c=[f"C{k}" for k in y], s=9)
    ax.set(title=f"{name}: {accuracy:.0%}", xticks=[], yticks=[])
