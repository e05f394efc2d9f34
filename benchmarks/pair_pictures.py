"""The pictures of the guide on matching and clustering."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import roc_curve
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import FunctionTransformer

from kernelmetric import IdealizedKernel, Pairs, PairVerifier
from kernelmetric.datasets import make_records, make_toy004

STATIC = Path(__file__).parents[1] / "docs" / "_static"
FIELDS = ("first", "last", "street", "city", "born")


def matching():
    """ROC curves of new candidate pairs, and their calibrated probabilities."""
    records, person = make_records(120, random_state=0)
    letters = HashingVectorizer(
        analyzer="char_wb", ngram_range=(1, 2), n_features=16, alternate_sign=False
    )
    X = np.hstack([letters.transform([r[f] for r in records]).toarray() for f in FIELDS])

    def candidates(rows):
        near = NearestNeighbors(n_neighbors=5).fit(X[rows]).kneighbors(return_distance=False)
        found = np.unique(np.sort([(i, j) for i, row in enumerate(near) for j in row]), axis=0)
        same = person[rows][found[:, 0]] == person[rows][found[:, 1]]
        return X[rows], Pairs(found[same], found[~same], n_samples=len(X[rows]))

    X_known, known = candidates(person % 4 < 2)
    X_some, some = candidates(person % 4 == 2)
    X_new, new = candidates(person % 4 == 3)
    metric = IdealizedKernel(C=1e4).fit(X_known, pairs=known)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name, each in (("letters alike", FunctionTransformer()), ("learned", metric)):
        verifier = PairVerifier(each).calibrate(some, X_some)
        wrong, right_ones, _ = roc_curve(new.is_similar, verifier.decision_pairs(new, X_new))
        area = verifier.score_pairs(new, X_new)
        left.plot(wrong, right_ones, label=f"{name}, area {area:.3f}")
        print("matching", name, f"AUC {area:.4f}")
    left.set(xlabel="different people taken for one", ylabel="copies recognized", title="new pairs")
    left.legend(loc="lower right")
    probability = verifier.predict_proba_pairs(new, X_new)[:, 1]
    bins = np.linspace(0, 1, 21)
    right.hist(
        [probability[new.is_similar], probability[~new.is_similar]],
        bins,
        label=["one person", "two people"],
        log=True,
    )
    right.set(xlabel="probability of being one person", ylabel="pairs", title="learned, calibrated")
    right.legend(loc="upper center")
    figure.savefig(STATIC / "matching.png", dpi=90)


def clustering():
    """The toy data in two principal directions, before and after learning from few pairs."""
    X, y = make_toy004(100, random_state=0)
    known = Pairs.from_labels(y, components=0.7, random_state=0).select(X)
    metric = IdealizedKernel(C=1e3).fit(X, pairs=known)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for axis, Z, title in zip(
        axes, (X, metric.transform(X)), ("as given", "learned from pairs"), strict=True
    ):
        flat = PCA(2).fit_transform(Z)
        for code, marker in ((0, "o"), (1, "^")):
            axis.plot(*flat[y == code].T, marker, alpha=0.7, label=f"class {code}")
        for i, j in known.similar:
            axis.plot(*flat[[i, j]].T, color="0.7", linewidth=0.7, zorder=0)
        axis.set(title=title, xlabel="first principal direction", ylabel="second")
    axes[0].legend()
    figure.savefig(STATIC / "clustering.png", dpi=90)
    print("clustering", known)


if __name__ == "__main__":
    matching()
    clustering()
