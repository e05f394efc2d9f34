"""
Clusters that are not round
===========================

Any estimator becomes its kernel version: here scikit-learn's k-means, which knows nothing of
kernels, finds two rings.
"""

from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles

from kernelmetric import RBF, Kernelized
from kernelmetric.report import plot_embedding

X, _ = make_circles(300, factor=0.35, noise=0.06, random_state=0)

clusterings = {
    "k-means": KMeans(2, n_init=10, random_state=0),
    "kernelized": Kernelized(KMeans(2, n_init=10, random_state=0), kernel=RBF(gamma=4.0)),
}
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for ax, (name, clustering) in zip(axes, clusterings.items(), strict=True):
    plot_embedding(X, clustering.fit(X).labels_, ax=ax, title=name)
