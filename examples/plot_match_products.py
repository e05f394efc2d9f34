"""
Two shops, one product
======================

Two shops sell the same things under other titles. Words are missing, exchanged or abbreviated, and
`eos-40d` is not `eos-50d`. Which offers are one product, without labels and with a hundred answers?
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from kernelmetric.linkage import LabellingSession, RecordLinker

rng = np.random.RandomState(0)
BRANDS = ["canon", "sony", "bosch", "nikon", "philips", "makita", "epson", "braun"]
KINDS = ["digital camera", "lcd television", "cordless drill", "inkjet printer", "coffee maker"]
EXTRAS = ["black", "silver", "compact", "professional", "with case", "kit", "series", "new"]


def product():
    """A brand, a kind, a model number, and words that a shop may add."""
    letters = "".join(rng.choice(list("abcdefgh"), 2))
    return rng.choice(BRANDS), rng.choice(KINDS), f"{letters}-{rng.randint(10, 100)}0"


def offer(brand, kind, model):
    """How a shop writes it: words in some order, some left out, the number with or without -."""
    words = [brand, *kind.split(), model.replace("-", rng.choice(["-", "", " "]))]
    words = [word for word in words if rng.uniform() > 0.08]
    more = list(rng.choice(EXTRAS, rng.randint(1, 4), replace=False))
    return " ".join(rng.permutation(words + more))


products = [product() for _ in range(400)]
left = pd.DataFrame({"title": [offer(*each) for each in products]})
right = pd.DataFrame({"title": [offer(*each) for each in products]})
for i in range(3):
    print(f"{left['title'][i]:55s} | {right['title'][i]}")

# %%
# **Without labels.** Row i of one list is row i of the other, so we can count. Rare words and model
# numbers weigh most, whichever way they are written.


def f1(links):
    """Of the links, from what we know."""
    hits = np.sum(links.pairs[:, 0] == links.pairs[:, 1])
    return 2 * hits / (len(links) + len(products))


linker = RecordLinker().fit(left, right)
links = linker.links(one_to_one=True)
print(f"No labels: {len(links)} links, F1 {f1(links):.3f}")

# %%
# **A hundred answers.** A session asks about the pairs in doubt. Here a program answers.
session = LabellingSession(left, right)
for _ in range(100):
    i, j = session.question()
    session.answer(i, j, i == j)
asked = session.linker()
print(f"100 answers: F1 {f1(asked.links(one_to_one=True)):.3f}")

# %%
# **Why?** What each piece of evidence adds to the log odds of a pair. The parts add up.
pair = asked.links(one_to_one=True).pairs[0]
why = asked.reasons(left, right, [pair])
print(left["title"][pair[0]], "|", right["title"][pair[1]])
print(why[["evidence", "says", "adds"]].head(6).to_string(index=False))

# %%
# **All thresholds at once.** Of all offers, how many are linked rightly, and how many of the links
# are right?
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for name, each in (("no labels", linker), ("100 answers", asked)):
    pairs, p = each.candidates_, each.probability_
    order = np.argsort(-p)
    hits = np.cumsum(pairs[order, 0] == pairs[order, 1])
    ax.plot(hits / len(products), hits / np.arange(1, len(p) + 1), linewidth=2.5, label=name)
ax.set_xlim(0.5, 1)
ax.set_xlabel("part of the products found", fontsize=12)
ax.set_ylabel("part of the links that are right", fontsize=12)
ax.set_title("Titles of two shops, matched", fontsize=14)
ax.legend(fontsize=12)
plt.show()

# %%
# **On the command line** the same is ``kernelmetric label a.csv b.csv --out answers.csv`` and
# ``kernelmetric link a.csv b.csv --answers answers.csv --one-to-one --out links.csv``. With
# ``--report why.html`` a page shows each link with its reasons.
