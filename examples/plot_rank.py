"""
How many components?
====================

At full rank a kernel's space has as many dimensions as there are points, and LDA can fit any
labels. Few components leave out what single points have alone, and much of the noise with it.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from kernelmetric import KPCA, LDA, Kernelized

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, train_size=250, random_state=0, stratify=y)

# %%
# One eigendecomposition would serve all ranks (``KernelizedCV`` does that); here each is fitted.
ranks = [5, 10, 20, 40, 80, 160, 249]
plain = []
for rank in ranks:
    lda = LinearDiscriminantAnalysis()
    plain.append(Kernelized(lda, "rbf", KPCA(rank)).fit(X, y).score(X_new, y_new))

# %%
# Shrinkage is the other remedy. Our ``LDA`` shrinks by itself; a nearest mean in its coordinates
# classifies.
from sklearn.neighbors import NearestCentroid  # noqa: E402

shrunk = []
for rank in ranks:
    metric = Kernelized(LDA(), "rbf", KPCA(rank)).fit(X, y)
    nearest = NearestCentroid().fit(metric.transform(X), y)
    shrunk.append(nearest.score(metric.transform(X_new), y_new))

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.semilogx(ranks, plain, "o-", label="LDA without shrinkage")
ax.semilogx(ranks, shrunk, "o-", label="LDA with shrinkage")
ax.set(xlabel="components kept, of 249", ylabel="accuracy on new digits", xticks=ranks)
ax.set_xticks([], minor=True)
ax.set_xticklabels(ranks)
ax.legend(loc="lower left")
