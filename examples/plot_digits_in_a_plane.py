"""
Digits in a plane
=================

Two coordinates of handwritten digits: the first principal components, and what NCA makes of them
when it is told which digits they are.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import NCA
from kernelmetric.report import plot_embedding

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, random_state=0, stratify=y)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
maps = {"principal components": PCA(2, random_state=0), "NCA": NCA(2, tol=1e-4, random_state=0)}
for ax, (name, model) in zip(axes, maps.items(), strict=True):
    model.fit(X, y)
    knn = KNeighborsClassifier(5).fit(model.transform(X), y)
    accuracy = knn.score(model.transform(X_new), y_new)
    plot_embedding(model.transform(X_new), y_new, ax=ax, title=f"{name}: {accuracy:.0%} of 5-NN")
