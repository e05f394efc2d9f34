"""
Which measurements matter?
==========================

The rows of ``components_`` say what the learned coordinates are made of. On standardized features
the numbers can be compared.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from kernelmetric import LFDA
from kernelmetric.report import plot_embedding

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
metric = LFDA(2).fit(X, wine.target)

# %%
# Left: the wines in the two learned coordinates. An arrow shows where one standard deviation of a
# measurement moves a wine. Right: how much of all squared distances each measurement makes, the
# diagonal of the learned matrix.
weights = metric.get_mahalanobis_matrix().diagonal()
names = [name.replace("_", " ") for name in wine.feature_names]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
Z = metric.transform(X) - metric.transform(X).mean(axis=0)
plot_embedding(Z, wine.target, ax=left, title="learned coordinates")
arrows = metric.components_.T * 0.8 * np.abs(Z).max() / np.abs(metric.components_).max()
for i in np.argsort(weights)[[-1, -2, -3, -5]]:
    left.annotate("", arrows[i], (0, 0), arrowprops={"arrowstyle": "->", "linewidth": 1.6})
    end = "right" if arrows[i, 0] < 0 else "left"
    left.annotate(names[i], arrows[i] * 1.08, ha=end, fontsize=9, fontweight="bold")
order = np.argsort(weights)
right.barh(np.array(names)[order], weights[order] / weights.sum())
right.set(xlabel="share of the squared distance", title="diagonal of M")
