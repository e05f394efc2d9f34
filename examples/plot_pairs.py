"""
Which pairs are the same?
=========================

Nobody names classes; somebody says of some pairs that they are alike, or not. An idealized kernel
learns from these alone, and a verifier turns its distances into decisions with probabilities.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.metrics import roc_curve
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from kernelmetric import IdealizedKernel, Pairs, PairVerifier

X, y = load_wine(return_X_y=True)
X, X_new, y, y_new = train_test_split(StandardScaler().fit_transform(X), y, random_state=0)
known = Pairs.from_labels(y, per_point=3, random_state=0)
asked = Pairs.from_labels(y_new, per_point=8, random_state=0)

# %%
# Learn from the known pairs; ask about pairs of wines that were never seen.
metrics = {
    "Euclidean": StandardScaler().fit(X),
    "learned from pairs": IdealizedKernel(C=1e3).fit(X, pairs=known),
}
figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
for name, metric in metrics.items():
    verifier = PairVerifier(metric).calibrate(known, X)
    same = [1] * len(asked.similar) + [0] * len(asked.dissimilar)
    rows = [*asked.similar, *asked.dissimilar]
    wrong, right, _ = roc_curve(same, verifier.decision_pairs(rows, X_new))
    ax.plot(wrong, right, label=name)
ax.set(xlabel="different pairs called the same", ylabel="same pairs found")
ax.legend(loc="lower right")

# %%
# The probability that two wines have one maker:
print(verifier.predict_proba_pairs(asked.similar[:3], X_new)[:, 1].round(2))
