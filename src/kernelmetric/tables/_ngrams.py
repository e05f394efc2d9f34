"""Free text as numbers: groups of three and four letters, and the directions in which they vary."""

from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

N_GROUPS = 2**11  # of letters; several may share a place
N_DIRECTIONS = 16
_MOST_ROWS = 20_000  # that show the directions


def learn_groups(texts: np.ndarray) -> np.ndarray:
    """Weights of groups of letters, rare ones counting more, and below them the directions.

    Texts then spread as widely as a number that is divided by its standard deviation.
    """
    there = [text for text in texts if text is not None]
    counts = _counts(there[:: 1 + len(there) // _MOST_ROWS])
    n = counts.shape[0]
    weights = np.log((1 + n) / (1 + counts.getnnz(axis=0))) + 1
    rows = normalize(counts.multiply(weights).tocsr())
    k = min(N_DIRECTIONS, n - 1)
    directions = TruncatedSVD(k, random_state=0).fit(rows).components_
    spread = float(np.sqrt(np.sum(np.var(rows @ directions.T, axis=0)))) or 1.0
    return np.vstack([weights, directions / spread])


def group_features(texts: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """Texts along the directions; zeros where there is none."""
    counts = _counts(["" if text is None else text for text in texts])
    return normalize(counts.multiply(learned[0]).tocsr()) @ learned[1:].T


def _counts(texts: list[str]) -> Any:
    letters: Any = {"analyzer": "char_wb", "ngram_range": (3, 4), "n_features": N_GROUPS}
    return HashingVectorizer(alternate_sign=False, norm=None, **letters).transform(texts)
