"""
Tutorial: a hundred labels for many images
==========================================

There are 1,797 images of digits, and money for a hundred labels. Four ways to label the others
compete. The tutorial ends in a decision: which one to take, and which images a person still has to
look at.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from kernelmetric import MetricClassifier, TransductiveDistance

X, truth = load_digits(return_X_y=True)
X = X / 16
rng = np.random.RandomState(0)
known = np.sort(rng.permutation(len(X))[:100])
others = np.setdiff1d(np.arange(len(X)), known)
y = np.full(len(X), -1)  # -1: nobody has looked
y[known] = truth[known]

# %%
# **Compare.** Two ways look at the labelled images alone. Two also use the shape of all images.
semi = TransductiveDistance(random_state=0).fit(X, y)
guesses = {
    "nearest labelled image": KNeighborsClassifier(1).fit(X[known], y[known]).predict(X),
    "MetricClassifier": MetricClassifier().fit(X[known], y[known]).predict(X),
    "LabelSpreading": LabelSpreading(kernel="knn", n_neighbors=7).fit(X, y).transduction_,
    "TransductiveDistance": semi.transduction_,
}
accuracy = {name: np.mean(guess[others] == truth[others]) for name, guess in guesses.items()}
for name, share in accuracy.items():
    print(f"{name:24} {share:.1%} of {len(others):,} images")

# %%
# **Whom to ask again?** In the learned coordinates, an image between two classes is nearly as far
# from the nearest label of another class as from that of its own.
Z = semi.embedding_
apart = np.linalg.norm(Z[others, None] - Z[known][None], axis=2)
labels = semi.transduction_[others]
same = y[known][None] == labels[:, None]
own = np.where(same, apart, np.inf).min(axis=1)
other = np.where(same, np.inf, apart).min(axis=1)
doubt = own / np.maximum(other, 1e-12)
order = np.argsort(-doubt)
wrong = labels != truth[others]
share = np.cumsum(wrong[order]) / wrong.sum()
asked = 200
print(f"A look at {asked} doubtful images finds {share[asked - 1]:.0%} of the {wrong.sum()} errors")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
axes[0].barh(list(accuracy), list(accuracy.values()), color=["C7", "C7", "C0", "C0"])
for i, value in enumerate(accuracy.values()):
    axes[0].text(
        value - 0.01, i, f"{value:.1%}", ha="right", va="center", color="white", fontsize=12
    )
axes[0].set_xlim(0.5, 1)
axes[0].tick_params(labelsize=11)
axes[0].set_title("Images labelled right", fontsize=13)
axes[1].plot(np.arange(1, len(others) + 1), share, linewidth=2.5)
axes[1].axvline(asked, color="tab:red", linestyle="--", linewidth=2)
axes[1].set_xlabel("images looked at, the most doubtful first", fontsize=12)
axes[1].set_title("Share of the errors found", fontsize=13)
plt.show()

# %%
# **The decision:** take the best of the four, and let a person look at the doubtful images. For
# more images the graph is the expensive part: the guide on few labels says what 70,000 take.
best = max(accuracy, key=accuracy.get)
after = 1 - (wrong.sum() - wrong[order][:asked].sum()) / len(others)
print(f"Take {best}. With {asked} more looks, TransductiveDistance is right for {after:.1%}.")
