"""
A smaller model
===============

A kernelized metric asks every training point about a new one. A hundred landmarks answer nearly the
same, and the loss is stated.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import DNE, KPCA, RBF, Kernelized, compress

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, train_size=800, random_state=0, stratify=y)
metric = Kernelized(DNE(20), kernel=RBF(gamma="median"), space=KPCA()).fit(X, y)


def accuracy(metric):
    """Of the nearest neighbour, on digits that were not there."""
    knn = KNeighborsClassifier(1).fit(metric.transform(X), y)
    return knn.score(metric.transform(X_new), y_new)


# %%
# Landmarks, the error that ``compress`` states, and what becomes of the accuracy.
sizes = [10, 25, 50, 100, 200, 400]
small = [compress(metric, m) for m in sizes]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(sizes, [m.compression_["distance_error"] for m in small], "o-")
left.set(xlabel="landmarks", ylabel="error of distances", xscale="log", ylim=0)
right.plot(sizes, [accuracy(m) for m in small], "o-", label="compressed")
right.axhline(accuracy(metric), color="gray", linestyle="--", label=f"all {len(X)} points")
right.set(xlabel="landmarks", ylabel="accuracy of the nearest neighbour", xscale="log")
right.legend()
