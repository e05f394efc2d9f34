"""Probabilities and intervals of links where the truth is known: drawn offers and drawn people.

``python benchmarks/linkage_truth.py [DRAWS [FIRST]]`` draws tables anew each time, learns without
labels and from pairs drawn from the candidates, and looks at all candidates: how many matches the
probabilities let expect for each that there is; how far probabilities are from frequencies, the
mean over ten bins of as many candidates of a probability of .01 to .99; and, above a threshold
chosen for a precision of .9, how often the intervals of nominal 95 % hold the true precision and
the true recall among the candidates, and how wide they are. Draws are numbered from FIRST, 2000:
the intervals were chosen on those below.
"""

import sys
import warnings

import numpy as np
import pandas as pd

from kernelmetric.datasets import make_records
from kernelmetric.evaluation import threshold_for
from kernelmetric.linkage import RecordLinker

BRANDS = ["canon", "sony", "bosch", "nikon", "philips", "makita", "epson", "braun"]
KINDS = ["digital camera", "lcd television", "cordless drill", "inkjet printer", "coffee maker"]
EXTRAS = ["black", "silver", "compact", "professional", "with case", "kit", "series", "new"]
LABELS = (0, 100, 1_000)
BINS = 10


def offers(seed, n=400):
    """Two shops; row i of one is row i of the other."""
    rng = np.random.RandomState(seed)

    def offer(brand, kind, model):
        words = [brand, *kind.split(), model.replace("-", rng.choice(["-", "", " "]))]
        words = [word for word in words if rng.uniform() > 0.08]
        more = list(rng.choice(EXTRAS, rng.randint(1, 4), replace=False))
        return " ".join(rng.permutation(words + more))

    letters = ["".join(rng.choice(list("abcdefgh"), 2)) for _ in range(n)]
    sold = [
        (rng.choice(BRANDS), rng.choice(KINDS), f"{each}-{rng.randint(10, 100)}0")
        for each in letters
    ]
    tables = [pd.DataFrame({"title": [offer(*each) for each in sold]}) for _ in range(2)]
    return *tables, lambda pairs: pairs[:, 0] == pairs[:, 1]


def people(seed, n=400):
    """One table, each person twice."""
    records, person = make_records(n, n_copies=2, random_state=seed)
    return pd.DataFrame(records), None, lambda pairs: person[pairs[:, 0]] == person[pairs[:, 1]]


def looked_at(linker, truth):
    """Expected matches beside true ones, and the distance of probabilities from frequencies."""
    p, same = linker.probability_, truth(linker.candidates_)
    doubt = (p > 0.01) & (p < 0.99)
    order = np.argsort(p[doubt])
    bins = zip(*(np.array_split(each[doubt][order], BINS) for each in (p, same)), strict=True)
    return p.sum() / same.sum(), np.mean([abs(q.mean() - s.mean()) for q, s in bins])


def covered(linker, truth, two):
    """Whether the intervals of precision and recall hold the true ones; how wide they are."""
    known = linker.labelled_probability_, linker.labelled_same_, linker.labelled_pairs_
    found = threshold_for(*known, precision=0.9, two_tables=two)
    linked, same = linker.probability_ >= found.threshold.value, truth(linker.candidates_)
    hits = np.sum(linked & same)
    true = hits / max(linked.sum(), 1), hits / same.sum()
    sides = list(zip((found.precision, found.recall), true, strict=True))
    return [low <= value <= high for (_, low, high), value in sides] + [
        high - low for (_, low, high), _ in sides
    ]


def main():
    draws, first = map(int, [*sys.argv[1:], *("20", "2000")[len(sys.argv) - 1 :]])
    for make in (offers, people):
        for n_labels in LABELS:
            seen, held = [], []
            for seed in range(first, first + draws):
                left, right, truth = make(seed)
                linker = RecordLinker().fit(left, right)
                if n_labels:
                    pairs = linker.candidates_
                    pairs = pairs[np.random.RandomState(seed).permutation(len(pairs))[:n_labels]]
                    linker.fit(left, right, pairs, truth(pairs), by_kind=False)
                seen.append(looked_at(linker, truth))
                if linker.labelled_probability_ is not None and n_labels:
                    held.append(covered(linker, truth, right is not None))
            ratio, gap = np.mean(seen, axis=0)
            said = "-"
            if held:
                precision, recall, *widths = np.mean(held, axis=0)
                said = (
                    f"{precision:.2f} and {recall:.2f} of {len(held)}, widths {np.round(widths, 2)}"
                )
            print(
                f"{make.__name__}, {n_labels} labels: expected / true matches {ratio:.2f} "
                f"±{np.std([each[0] for each in seen], ddof=1):.2f}, distance {gap:.3f}, "
                f"intervals of precision and recall held in {said}",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
