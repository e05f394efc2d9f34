"""The picture of docs/guide/features.md: ``python benchmarks/features_picture.py`` draws it anew.

Two classes are the XOR of two directions in 20 dimensions, neither of which is a feature. The
picture shows new points along two features, along the two directions that RFM found, and the error
after every round.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from kernelmetric import RFM, Kernelized
from kernelmetric.learners import LMNN

STATIC = Path(__file__).parents[1] / "docs" / "_static"
COLOURS = ("#1f6fb2", "#e08a00")


def make_directions(n_samples, seed, n_features=20):
    """Points, and whether they lie on the same side of two hidden planes."""
    Q = np.linalg.qr(np.random.RandomState(5).standard_normal((n_features, 2)))[0]
    X = np.random.RandomState(seed).standard_normal((n_samples, n_features))
    Z = X @ Q
    return X, ((Z[:, 0] > 0) ^ (Z[:, 1] > 0)).astype(int)


def main():
    """Fit, draw, and print the accuracies that the page quotes."""
    X, y = make_directions(500, 0)
    X_new, y_new = make_directions(1000, 1)
    rfm = RFM(2).fit(X, y)
    Z = rfm.transform(X_new)
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.5), layout="constrained")
    parts = ((X_new, "features 1 and 2"), (Z, "the two directions of RFM"))
    for axis, (points, title) in zip(axes, parts, strict=False):
        for code, colour in enumerate(COLOURS):
            axis.scatter(*points[y_new == code, :2].T, s=7, color=colour, alpha=0.7, linewidths=0)
        axis.set_title(title, fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    axes[2].plot(rfm.loss_curve_, "o-", color=COLOURS[0])
    axes[2].axvline(rfm.n_iter_, color="0.7", lw=1, ls=":")
    axes[2].set(ylim=(0, None), xlabel="rounds")
    axes[2].set_title("error on points that no round has seen", fontsize=10)
    axes[2].spines[["top", "right"]].set_visible(False)
    figure.savefig(STATIC / "features.png", dpi=110)
    maps = {"features": None, "RFM": RFM(), "RFM(diagonal=True)": RFM(diagonal=True)}
    maps["Kernelized(LMNN())"] = Kernelized(LMNN(), random_state=0)
    for name, metric in maps.items():
        A, B = (X, X_new) if metric is None else (metric.fit(X, y).transform(X), None)
        B = metric.transform(X_new) if B is None else B
        print(name, KNeighborsClassifier(5).fit(A, y).score(B, y_new))


if __name__ == "__main__":
    main()
