"""Small sets of objects of two classes, for every kernel that takes objects; and what is junk."""

import importlib.util

import numpy as np

from kernelmetric.kernels import (
    Convolutions,
    FromDistance,
    GlobalAlignment,
    MeanEmbedding,
    Molecules,
    NGrams,
    ObjectKernel,
    Tanimoto,
    WeisfeilerLehman,
)

N = 16
CLASSES = np.arange(N) % 2


class SharedLetters(ObjectKernel):
    """A kernel as a user writes it, by comparison."""

    normalize = True

    def compare(self, a, b):
        return sum(min(a.count(letter), b.count(letter)) for letter in set(a))


class LetterCounts(ObjectKernel):
    """The same way, by features."""

    def __init__(self, letters="abcdefghijklmnopqrstuvwxyz"):
        self.letters = letters

    def features(self, items):
        return np.array([[item.count(letter) for letter in self.letters] for item in items], float)


def words():
    rng = np.random.RandomState(0)
    stems = ("banana", "cherry")
    ends = ["".join(rng.choice(list("xyzuvw"), rng.randint(1, 5))) for _ in range(N)]
    return [stems[k] + end + str(i) for i, (k, end) in enumerate(zip(CLASSES, ends, strict=True))]


def series():
    """Sines of two speeds, of several lengths and two channels."""
    rng = np.random.RandomState(1)
    found = []
    for k in CLASSES:
        t = rng.uniform(0, 0.5) + np.arange(rng.randint(10, 12))
        found.append(np.stack([np.sin((0.5 + k) * t), 0.1 * rng.standard_normal(len(t))]))
    return found


def sets():
    rng = np.random.RandomState(2)
    return [rng.standard_normal((rng.randint(1, 5), 2)) + 2.0 * k for k in CLASSES]


def graphs():
    """Paths and rings of letters, no two alike."""
    rng = np.random.RandomState(3)
    found = []
    for i, k in enumerate(CLASSES):
        n = 3 + i // 2
        edges = [(i, i + 1) for i in range(n - 1)] + ([(n - 1, 0)] if k else [])
        found.append((edges, rng.choice(["C", "N"], n).tolist()))
    return found


def molecules():
    """Alcohols and amines."""
    return ["C" * (1 + i // 2) + ("O" if k else "N") for i, k in enumerate(CLASSES)]


def bytes_of_bits():
    rng = np.random.RandomState(4)
    bits = rng.random_sample((N, 20)) < np.where(CLASSES, 0.7, 0.3)[:, None]
    return np.packbits(bits, axis=1)


EXAMPLES = {
    NGrams(): (words, [3, None]),
    NGrams(2, gaps=1, similarity="minmax"): (words, [b"bytes"]),
    GlobalAlignment(): (series, ["text", [1.0, np.nan, 2.0], []]),
    Convolutions(84): (series, [np.zeros((2, 2, 2))]),
    MeanEmbedding(): (sets, [[1.0, 2.0], [[np.inf, 0.0]]]),
    WeisfeilerLehman(depth=2): (graphs, [([(0, 9)], ["C"]), 7]),
    FromDistance(lambda a, b: float(len(set(a) ^ set(b)))): (words, [None]),
    FromDistance("dtw"): (series, [None]),
    FromDistance("matches"): (sets, [[]]),
    Tanimoto(packed=True): (bytes_of_bits, []),
    SharedLetters(): (words, [None, float("nan")]),
    LetterCounts(): (words, [None]),
}
if importlib.util.find_spec("rapidfuzz"):
    EXAMPLES[FromDistance("indel")] = words, [1]
if importlib.util.find_spec("rdkit"):
    EXAMPLES[Molecules(radius=1)] = molecules, ["no molecule", None]
