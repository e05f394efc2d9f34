"""
One person, several records
===========================

A register lists people more than once, with typing errors. We compare each record with its nearest
records only, learn from pairs that somebody reviewed, and decide about the others.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import precision_recall_curve
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import FunctionTransformer

from kernelmetric import IdealizedKernel, Pairs, PairVerifier
from kernelmetric.datasets import make_records

records, person = make_records(120, random_state=0)
for record in records[:3]:
    print(record)

# %%
# Letters and pairs of letters, counted for each field separately.
letters = HashingVectorizer(
    analyzer="char_wb", ngram_range=(1, 2), n_features=16, alternate_sign=False
)
fields = ["first", "last", "street", "city", "born"]
X = np.hstack([letters.transform([r[f] for r in records]).toarray() for f in fields])


# %%
# Candidates are the five nearest records of each. This step does not know who is who. Then
# somebody says which of them are the same.
def candidates(rows):
    """Points, and the reviewed pairs of near ones."""
    near = NearestNeighbors(n_neighbors=5).fit(X[rows]).kneighbors(return_distance=False)
    found = np.unique(np.sort([(i, j) for i, row in enumerate(near) for j in row]), axis=0)
    same = person[rows][found[:, 0]] == person[rows][found[:, 1]]
    return X[rows], Pairs(found[same], found[~same], n_samples=len(X[rows]))


X_known, known = candidates(person % 4 < 2)
X_some, some = candidates(person % 4 == 2)
X_new, new = candidates(person % 4 == 3)
metrics = {
    "letters as they are": FunctionTransformer(),
    "learned": IdealizedKernel(C=1e4).fit(X_known, pairs=known),
}

# %%
# How many matches are right, and how many of the true ones are found, at every threshold. The dot
# is the threshold that other people's records suggest.
figure, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
for name, metric in metrics.items():
    verifier = PairVerifier(metric).calibrate(some, X_some)
    right, found, _ = precision_recall_curve(new.is_similar, verifier.decision_pairs(new, X_new))
    (line,) = ax.plot(found, right, label=name)
    answer = verifier.predict_pairs(new, X_new)
    ax.plot(
        answer[new.is_similar].mean(), new.is_similar[answer].mean(), "o", color=line.get_color()
    )
ax.set(
    xlabel="share of true matches found", ylabel="share of matches that are right", ylim=(0, 1.03)
)
ax.legend(loc="lower left")
