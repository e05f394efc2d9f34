"""
Search in an index
==================

Euclidean distance after ``transform`` is the learned distance, so any index can search it. Here it
is a faiss index of digits. The learned metric finds more of the same digit.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kernelmetric import LMNN, Kernelized, to_faiss
from kernelmetric.spaces import KPCA

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, train_size=400, random_state=0, stratify=y)

# %%
# One index of the points as they are, and one of the learned metric.
metrics = {
    "Euclidean": KPCA(kernel="linear").fit(X),
    "learned": Kernelized(LMNN()).fit(X, y),
}
found = {}
for name, metric in metrics.items():
    index = to_faiss(metric, X)
    _, found[name] = index.search(metric.transform(X_new).astype("float32"), 6)
    print(f"{name}: {(y[found[name]] == y_new[:, None]).mean():.1%} of six are the same digit")

# %%
# Queries on which the two differ most. Frames mark another digit.
wrong = {name: (y[rows] != y_new[:, None]).sum(axis=1) for name, rows in found.items()}
queries = np.argsort(wrong["learned"] - wrong["Euclidean"], kind="stable")[:4]
figure, axes = plt.subplots(4, 15, figsize=(10, 3), layout="constrained")
for ax in axes.ravel():
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for row, query in zip(axes, queries, strict=True):
    row[0].imshow(X_new[query].reshape(8, 8), cmap="gray_r")
    for places, near in [(row[2:8], found["Euclidean"]), (row[9:], found["learned"])]:
        for ax, i in zip(places, near[query], strict=True):
            ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
            ax.spines[:].set(visible=y[i] != y_new[query], color="tab:red", linewidth=2.5)
for column, name in [(0, "query"), (2, "nearest, Euclidean"), (9, "nearest, learned")]:
    axes[0, column].set_title(name, fontsize=10, loc="left")
