"""
Few labels, many points
=======================

Two moons, two labels on each. The nearest labelled point is often on the wrong moon; an embedding
that follows the shape of all points knows better.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import TransductiveDistance
from kernelmetric.report import plot_embedding

X, truth = make_moons(400, noise=0.07, random_state=0)
y = np.full(len(X), -1)
rng = np.random.default_rng(0)
for label in np.unique(truth):
    known = rng.choice(np.flatnonzero(truth == label), 2, replace=False)
    y[known] = label

# %%
# The nearest labelled point, as they lie and in the learned embedding. Four labels can judge one
# coordinate, not ten.
nearest = KNeighborsClassifier(1).fit(X[y >= 0], y[y >= 0]).predict(X)
semi = TransductiveDistance(1, n_neighbors=8, random_state=0).fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
answers = {"nearest label": nearest, "transductive": semi.transduction_}
for ax, (name, answer) in zip(axes, answers.items(), strict=True):
    accuracy = np.mean(answer == truth)
    plot_embedding(X, answer, ax=ax, title=f"{name}: {accuracy:.0%}")
    ax.plot(*X[y >= 0].T, "k.", markersize=9)

# %%
# The share of each coordinate on labelled points; near one, few labels would have captured it:
print(semi.label_mass_.round(2))
