"""
A rare class
============

One point in twenty belongs to the rare class, and twelve of fifteen features are noise. Two things
help, and they help together: a learned metric, and a vote in which both classes have equal numbers.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kernelmetric import NCA

X, y = make_classification(
    12_000,
    n_features=15,
    n_informative=3,
    n_redundant=0,
    n_clusters_per_class=1,
    weights=[0.95],
    class_sep=1.2,
    flip_y=0,
    random_state=3,
)
X, X_new, y, y_new = train_test_split(X, y, train_size=1600, random_state=0, stratify=y)
scaler = StandardScaler().fit(X)
X, X_new = scaler.transform(X), scaler.transform(X_new)

# %%
# The metric learns from all points. Then either all of them vote, or as many of each class as the
# rare one has.
everything = np.arange(len(X))
rare, common = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
few = np.random.RandomState(0).choice(common, len(rare), replace=False)
equal = np.concatenate([rare, few])
metrics = {"Euclidean": FunctionTransformer(), "NCA": NCA(3).fit(X, y)}
results = {}
for voters, rows in {"all points vote": everything, "equal numbers vote": equal}.items():
    for name, metric in metrics.items():
        knn = KNeighborsClassifier(5).fit(metric.transform(X[rows]), y[rows])
        answer = knn.predict(metric.transform(X_new))
        results[f"{name}, {voters}"] = recall_score(y_new, answer, average=None)

# %%
# Accuracy would hide the difference, because nearly all points are of the common class. Look at
# each class by itself.
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
place = np.arange(len(results))
for shift, column, name in [(-0.2, 0, "common class"), (0.2, 1, "rare class")]:
    bars = ax.barh(place + shift, [r[column] for r in results.values()], 0.4, label=name)
    ax.bar_label(bars, fmt="{:.2f}", padding=3)
ax.set(yticks=place, yticklabels=list(results), xlim=(0, 1.12), xlabel="share recognized (recall)")
ax.invert_yaxis()
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
