"""
Tutorial: one list of two
=========================

Two shops have merged. Both have a list of customers, with typing errors and old addresses. Who is
who? The tutorial ends in three piles: merge, keep apart, and have a person look.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from kernelmetric.datasets import make_records
from kernelmetric.evaluation import threshold_for
from kernelmetric.linkage import RecordLinker

records, person = make_records(300, n_copies=2, random_state=0)
order = np.argsort(person, kind="stable")
left = pd.DataFrame([records[i] for i in order[::2]])
right = pd.DataFrame([records[i] for i in order[1::2]])
print(pd.concat([left.head(3), right.head(3)], keys=["shop A", "shop B"]))

# %%
# **Link without labels.** The linker chooses pairs worth comparing. It learns from them how often
# fields agree among matches and among others. Here row i of one list is row i of the other, so we
# can count.
linker = RecordLinker().fit(left, right)
links = linker.links(one_to_one=True)
right_ones = np.sum(links.pairs[:, 0] == links.pairs[:, 1])
print(f"{len(linker.candidates_):,} of {len(left) * len(right):,} pairs were compared")
print(f"{len(links)} links: {right_ones} right, {len(links) - right_ones} wrong")

# %%
# **Look at 600 pairs.** Somebody answers for 600 candidates whether they are the same. The answers
# correct the linker, and choose a threshold with a stated precision.
rng = np.random.RandomState(0)
asked = linker.candidates_[rng.permutation(len(linker.candidates_))[:600]]
same = asked[:, 0] == asked[:, 1]  # what the person says
linker = RecordLinker().fit(left, right, asked, same)
found = threshold_for(
    linker.labelled_probability_, linker.labelled_same_, linker.labelled_pairs_,
    precision=0.95, match_share=linker.match_share_, two_tables=True,
)  # fmt: skip
print(f"Precision {found.precision.value:.1%} above the probability {found.threshold.value:.2f}")

# %%
# **Decide.** Above the threshold, merge. Below 5 %, keep apart. Between them, a person looks.
upper = min(found.threshold.value, 0.99)
chance = linker.probability_
truth = linker.candidates_[:, 0] == linker.candidates_[:, 1]
piles = {"keep apart": chance < 0.05, "have a look": (chance >= 0.05) & (chance < upper)}
piles["merge"] = chance >= upper
for name, pile in piles.items():
    print(f"{name}: {np.sum(pile)} pairs, of which {np.sum(truth[pile])} are the same customer")

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
edges = np.linspace(0, 1, 26)
ax.hist([chance[truth], chance[~truth]], edges, stacked=True, label=["the same", "different"])
ax.axvline(0.05, color="gray", linestyle="--", linewidth=2)
ax.axvline(upper, color="tab:red", linestyle="--", linewidth=2)
ax.set_yscale("log")
ax.set_xlabel("probability that two records are one customer", fontsize=12)
ax.set_ylabel("pairs", fontsize=12)
ax.set_title("Keep apart · have a look · merge", fontsize=14)
ax.legend(fontsize=12)
plt.show()

# %%
# **The decision:** merge the last pile by a program, and give the middle one to a person. On the
# command line it is ``kernelmetric link a.csv b.csv --precision 0.95 --one-to-one``.
