"""
Features that are noise
=======================

Two of six features carry a checkerboard, four carry nothing. Distances drown in the four; the
automatic kernel learns a scale for each feature first.
"""

from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import NCA, RBF, Kernelized, datasets

X, y = datasets.make_checkerboard(300, n_noise=4, random_state=0)
X_new, y_new = datasets.make_checkerboard(1000, n_noise=4, random_state=1)

# %%
# Euclidean distance, a kernel of median width, and the kernel chosen from the data. The metric says
# how many neighbours vote, and where its training points would be had they been left out.
metrics = {
    "RBF of median width": Kernelized(NCA(), kernel=RBF(gamma="median")).fit(X, y),
    "kernel='auto'": Kernelized(NCA()).fit(X, y),
}
accuracies = {"Euclidean": KNeighborsClassifier(1).fit(X, y).score(X_new, y_new)}
for name, metric in metrics.items():
    knn = KNeighborsClassifier(metric.n_neighbors_).fit(metric.embedding_, y)
    accuracies[name] = knn.score(metric.transform(X_new), y_new)

figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(list(accuracies), list(accuracies.values()))
ax.bar_label(bars, fmt="{:.2f}", padding=3)
ax.set(xlim=(0.4, 1), xlabel="accuracy of the nearest neighbours")
ax.invert_yaxis()

# %%
# What was compared, and won:
print(metrics["kernel='auto'"].kernel_)
