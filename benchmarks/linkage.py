"""Record linkage at scale: the numbers of docs/guide/linkage.md.

    python benchmarks/linkage.py --people 6000

Every person has three records. The people numbered below 100 are reviewed to learn from, those up
to 180 to set the threshold, and all others judge.
"""

import argparse
import time

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import FunctionTransformer

from kernelmetric import IdealizedKernel, Pairs, PairVerifier, to_faiss
from kernelmetric.datasets import make_records

FIELDS = ("first", "last", "street", "city", "born")


def points(records):
    letters = HashingVectorizer(
        analyzer="char_wb", ngram_range=(1, 2), n_features=16, alternate_sign=False
    )
    columns = [letters.transform([r[f] for r in records]).toarray() for f in FIELDS]
    return np.hstack(columns).astype(np.float32)


def candidates(metric, X, k=5):
    """Pairs of each record with its k nearest, by an index."""
    _, rows = to_faiss(metric, X).search(metric.transform(X).astype(np.float32), k + 1)
    found = np.column_stack([np.repeat(np.arange(len(X)), k + 1), rows.ravel()])
    return np.unique(np.sort(found[found[:, 0] != found[:, 1]]), axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=6000)
    records, person = make_records(parser.parse_args().people, random_state=0)
    X = points(records)
    counts = np.bincount(person[person >= 180])
    true_pairs = (counts * (counts - 1) // 2).sum()

    def review(pairs, first, last):
        touched = ((person[pairs] >= first) & (person[pairs] < last)).any(axis=1)
        pairs = pairs[touched]
        same = person[pairs[:, 0]] == person[pairs[:, 1]]
        return Pairs(pairs[same], pairs[~same], n_samples=len(X))

    start = time.process_time()
    letters = FunctionTransformer().fit(X)
    found = candidates(letters, X)
    print(f"{len(X):,} records, {len(found):,} candidates: {time.process_time() - start:.1f} s")
    start = time.process_time()
    learned = IdealizedKernel(C=1e4).fit(X, pairs=review(found, 0, 100))
    print(f"learned from {learned.support_pairs_}: {time.process_time() - start:.1f} s")
    print("| metric | candidates | matches that are right | true pairs found |\n|---|---|---|---|")
    for name, metric in (("letters as they are", letters), ("learned", learned)):
        pairs = candidates(metric, X)
        verifier = PairVerifier(metric, "max_tpr", min_rate=0.99)
        answer = verifier.calibrate(review(pairs, 100, 180), X).predict_pairs(pairs, X)
        new = (person[pairs] >= 180).all(axis=1)
        same = person[pairs[:, 0]] == person[pairs[:, 1]]
        shares = [
            (same & new).sum() / true_pairs,
            same[answer & new].mean(),
            (same & answer & new).sum() / true_pairs,
        ]
        print(f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")


if __name__ == "__main__":
    main()
