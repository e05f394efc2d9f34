"""
Tutorial: search over product vectors
=====================================

A network has made a vector of each product picture. Nearest vectors look alike, but they agree in
background and light rather than in the product. Labels of some products teach a metric. Is it worth
an index of its own? The tutorial ends in yes or no.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.preprocessing import normalize

from kernelmetric import LDA, NCA, Kernelized, map_at_r, recall_at_k

rng = np.random.RandomState(0)
n_kinds, n_dims = 30, 64
centres = rng.standard_normal((n_kinds, n_dims))
light = rng.standard_normal((6, n_dims))  # six directions of background and light


def draw_products(n):
    """Vectors of products, as a network would give them, and their kinds."""
    kind = rng.randint(n_kinds, size=n)
    scene = 0.8 * rng.standard_normal((n, 6))
    noise = 1.5 * rng.standard_normal((n, n_dims))
    return normalize(centres[kind] + scene @ light + noise), kind


X, kind = draw_products(1_500)
X_new, kind_new = draw_products(1_000)

# %%
# **Measure first.** What do the vectors find as they are? These products are new: no metric has
# learned from them. ``recall_at_k`` asks whether one of k answers is of the right kind,
# ``map_at_r`` whether all of them come first. Length one makes cosine and Euclidean distance the
# same ranking.
metrics = {
    "vectors as they are": None,
    "LDA": LDA().fit(X, kind),
    "Kernelized(NCA(16))": Kernelized(NCA(16)).fit(X, kind),
}
k = [1, 5, 10]
found = {name: recall_at_k(metric, X_new, kind_new, k=k) for name, metric in metrics.items()}
whole = {name: map_at_r(metric, X_new, kind_new) for name, metric in metrics.items()}
for name, recall in found.items():
    print(f"{name:20} recall@1 {recall[0]:.3f}   MAP@R {whole[name]:.3f}")

# %%
# **Look at it.**
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
width = 0.26
for i, (name, recall) in enumerate(found.items()):
    ax.bar(np.arange(3) + (i - 1) * width, recall, width, label=name)
ax.set_xticks(range(3), [f"recall at {number}" for number in k], fontsize=12)
ax.set_ylim(0, 1.25)
ax.set_ylabel("share of queries", fontsize=12)
ax.legend(fontsize=11, loc="upper left", ncols=3, frameon=False)
ax.set_title("Does the learned metric find more?", fontsize=14)
plt.show()

# %%
# **Decide.** The simplest metric that is as good as the best one wins: a linear map costs one
# matrix product, and fits into every index. "As good" means: within two standard errors.
best = max(whole, key=whole.get)
first = {name: recall[0] for name, recall in found.items()}
error = np.sqrt(first[best] * (1 - first[best]) / len(X_new))
chosen = next(name for name in found if first[name] > first[best] - 2 * error)
print(
    f"The decision: {chosen}. The first answer is right for {first[chosen]:.0%} of the queries, "
    f"with the vectors as they are for {first['vectors as they are']:.0%}."
)

# %%
# Put ``metric.transform(X)`` into the index in place of ``X``, and ask with
# ``metric.transform(query)``. The guide on retrieval has the lines for faiss and for others.
