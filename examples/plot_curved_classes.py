"""
Classes that curve
==================

No linear map separates a ring from the ring around it. The same learner, run on the coordinates of
a kernel's feature space, does.
"""

from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import NCA, Kernelized, Polynomial, datasets
from kernelmetric.report import plot_embedding

X, y = datasets.make_fig2_circles(40, random_state=0)
X_new, y_new = datasets.make_fig2_circles(400, random_state=1)

# %%
# NCA, as it is and kernelized. The kernel :math:`(x \cdot x')^2` knows the squared radius.
metrics = {
    "NCA": NCA().fit(X, y),
    "kernelized NCA": Kernelized(NCA(), Polynomial(degree=2, coef0=0)).fit(X, y),
}

# %%
# What a nearest neighbour makes of 400 new points, before and after.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
accuracy = KNeighborsClassifier(1).fit(X, y).score(X_new, y_new)
plot_embedding(X_new, y_new, ax=axes[0], title=f"as they are: {accuracy:.0%}")
for ax, (name, metric) in zip(axes[1:], metrics.items(), strict=True):
    Z, Z_new = metric.places(X), metric.transform(X_new)
    accuracy = KNeighborsClassifier(1).fit(Z, y).score(Z_new, y_new)
    plot_embedding(Z_new, y_new, ax=ax, title=f"{name}: {accuracy:.0%}")
