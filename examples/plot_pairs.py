"""
Which pairs are the same?
=========================

Nobody names classes. Somebody says of some pairs that they are alike, or not. An idealized kernel
learns from these pairs, and a verifier turns its distances into decisions with probabilities.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.metrics import roc_curve
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from kernelmetric import IdealizedKernel, Pairs, PairVerifier

# %%
# Three groups of wines: one to learn from, one to set the threshold, one that is new. A metric
# pulls its own training pairs together, so the threshold must come from other wines. The scale,
# too, comes from the first group alone.
X, y = load_wine(return_X_y=True)
X, X_rest, y, y_rest = train_test_split(X, y, train_size=90, stratify=y, random_state=0)
X_some, X_new, y_some, y_new = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
scaler = StandardScaler().fit(X)
X, X_some, X_new = map(scaler.transform, (X, X_some, X_new))
known = Pairs.from_labels(y, per_point=3, random_state=0)
some = Pairs.from_labels(y_some, per_point=8, random_state=0)
new = Pairs.from_labels(y_new, per_point=8, random_state=0)

# %%
# Learn from the known pairs, calibrate on others, and ask about pairs of wines never seen.
metrics = {
    "Euclidean": StandardScaler(with_mean=False, with_std=False).fit(X),
    "learned from pairs": IdealizedKernel(C=1e3).fit(X, pairs=known),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for name, metric in metrics.items():
    verifier = PairVerifier(metric).calibrate(some, X_some)
    wrong, found, _ = roc_curve(new.is_similar, verifier.decision_pairs(new, X_new))
    left.plot(wrong, found, label=f"{name}: area {verifier.score_pairs(new, X_new):.2f}")
left.set(xlabel="different pairs called the same", ylabel="same pairs found")
left.legend(loc="lower right")

probability = verifier.predict_proba_pairs(new, X_new)[:, 1]
right.hist([probability[new.is_similar], probability[~new.is_similar]], bins=12)
right.set(xlabel="calibrated probability of one maker", ylabel="new pairs")
right.legend(["one maker", "two makers"])

# %%
# The share of new pairs that the threshold judges rightly:
print((verifier.predict_pairs(new, X_new) == new.is_similar).mean().round(3))
