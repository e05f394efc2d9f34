"""
Clusters with a little help
===========================

One feature separates two groups. Ten features of noise are five times as large, and k-means follows
the noise. Somebody names a few pairs that belong together, and the groups appear.
"""

from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from kernelmetric import IdealizedKernel, Pairs
from kernelmetric.datasets import make_toy004
from kernelmetric.evaluation import pair_counting_accuracy
from kernelmetric.report import plot_embedding

X, y = make_toy004(150, random_state=0)

# %%
# More and more similar pairs, named at random. ``components`` is the number of groups that they
# leave, as a share of the points: the lower, the more is known. Of pairs that differ, the near ones
# teach most, and ``select`` keeps them.
shares = [0.995, 0.99, 0.98, 0.97, 0.95, 0.9]
accuracies, counts = [], []
for share in shares:
    pairs = Pairs.from_labels(y, components=share, random_state=0).select(X)
    metric = IdealizedKernel(C=1e3).fit(X, pairs=pairs)
    clusters = KMeans(2, n_init=10, random_state=0).fit_predict(metric.transform(X))
    accuracies.append(pair_counting_accuracy(y, clusters))
    counts.append(len(pairs.similar))

# %%
# Clusters before, clusters after, and how many named pairs it takes.
before = KMeans(2, n_init=10, random_state=0).fit_predict(X)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
plot_embedding(PCA(2).fit_transform(X), before, ax=left, title="k-means, as they are")
Z = metric.transform(X)
plot_embedding(PCA(2).fit_transform(Z), clusters, ax=middle, title=f"k-means, {counts[-1]} pairs")
right.plot(counts, accuracies, "o-", label="after learning")
right.axhline(pair_counting_accuracy(y, before), color="gray", linestyle="--", label="before")
right.set(xlabel="similar pairs named", ylabel="agreement with the truth", ylim=(0.45, 1.03))
right.legend(loc="center right")
