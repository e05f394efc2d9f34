"""
A metric for predicting numbers
===============================

The target depends on five of ten features. Nearest neighbours listen to all ten. MLKR learns a
metric in which near points have similar targets.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from kernelmetric import MLKR, Kernelized

X, y = make_friedman1(300, n_features=10, noise=0.5, random_state=0)
X_new, y_new = make_friedman1(1000, n_features=10, noise=0.5, random_state=1)
scaler = StandardScaler().fit(X)
X, X_new = scaler.transform(X), scaler.transform(X_new)

# %%
# MLKR, as it is and kernelized. ``reg`` keeps it from fitting the noise. The linear metric leaves
# five features out; the kernelized one also bends with the target.
metrics = {
    "Euclidean": StandardScaler(with_mean=False, with_std=False).fit(X),
    "MLKR": MLKR(reg=1.0).fit(X, y),
    "kernelized MLKR": Kernelized(MLKR(reg=1.0)).fit(X, y),
}

# %%
# What five neighbours predict for new points.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, metric) in zip(axes, metrics.items(), strict=True):
    places = getattr(metric, "places", metric.transform)(X)  # as if each had been left out
    knn = KNeighborsRegressor(5, weights="distance").fit(places, y)
    predicted = knn.predict(metric.transform(X_new))
    score = knn.score(metric.transform(X_new), y_new)
    ax.plot(y_new, predicted, ".", alpha=0.3, markeredgewidth=0)
    ax.axline((0, 0), slope=1, color="gray", linewidth=1)
    ax.set(title=f"{name}: R² = {score:.2f}", xlabel="true value")
axes[0].set_ylabel("predicted by 5 neighbours")

# %%
# The weights of the ten features in the linear metric. The last five carry nothing:
print(metrics["MLKR"].get_mahalanobis_matrix().diagonal().round(2))
