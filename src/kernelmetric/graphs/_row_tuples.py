"""Row numbers of X in tuples: checked, compared, measured, and kept from changing."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from kernelmetric._warnings import warn
from kernelmetric.compute import to_numpy
from kernelmetric.compute.reductions import pair_squares
from kernelmetric.compute.reductions._smallest import smallest_of_rows
from kernelmetric.inputs._parameters import require_word
from kernelmetric.inputs._refusals import refuse_masked

_SHOWN = 5  # offending rows that a message names


class RowTuples:
    """What pairs and comparisons share: they number the rows of one X, and do not change.

    A subclass says how tuples are read from a file (``_read``), which lists of row numbers some of
    its tuples are (``_taken``), and how it is made of such lists (``_made``).
    """

    n_samples: int
    rows: Any
    _read: Any
    _taken: Any
    _made: Any
    _expected: ClassVar[str]  # what a list without faults holds

    def _checked_size(self, n_samples: Any, faults: Any, arguments: str) -> int:
        """The number of points, where both arguments are what they should be."""
        if not isinstance(n_samples, Integral) or n_samples < 0:
            raise ValueError(
                f"Got n_samples={n_samples!r}, but expected the number of rows of X: "
                f"{type(self).__name__}({arguments}, n_samples=len(X))."
            )
        require_word("faults", faults, ("raise", "drop"))
        return int(n_samples)

    def _tell_faults(self, found: list[str], faults: str) -> None:
        """Refuse what was found, or warn that it is left out."""
        if faults == "raise":
            raise ValueError(
                f"Got {'; '.join(found)}, but expected {self._expected}: correct the list, or "
                "leave these out with faults='drop'."
            )
        warn(f"Left out {'; '.join(found)}.")

    @classmethod
    def from_file(cls, path: Any, n_samples: int, *, faults: str = "raise") -> Self:
        """Row numbers from a text file, one tuple in a line.

        Parameters
        ----------
        path : str or path
            Columns of row numbers, counted from 0, parted by commas, semicolons, tabs or blanks.
            Pairs may have a third column: 1 for similar, -1 or 0 for dissimilar. A line of names
            may come first; ``#`` begins a comment. UTF-8, or UTF-16 with its mark.
        n_samples : int
            Number of rows of X.
        faults : {'raise', 'drop'}, default='raise'
            As in the constructor.

        Returns
        -------
        Pairs, Triplets or Quadruplets
            In the order of the file.
        """
        make: Any = cls
        return make(*cls._read(path), n_samples, faults=faults)

    def take(self, chosen: Any) -> Self:
        """Some of the tuples, of the same points.

        Parameters
        ----------
        chosen : ndarray of int or bool
            Positions in ``rows``, or a mask over them.

        Returns
        -------
        Pairs, Triplets or Quadruplets
            Those.
        """
        return self._made(self.n_samples, *self._taken(chosen))

    def subset(self, rows: Any) -> Self:
        """The tuples inside some of the points, counted anew: tuples of ``X[rows]``.

        Parameters
        ----------
        rows : ndarray of int or bool
            Row numbers of X, each once, or a mask over its rows.

        Returns
        -------
        Pairs, Triplets or Quadruplets
            Those all of whose points are among the rows.
        """
        numbers = np.arange(self.n_samples)[rows]
        place = np.full(self.n_samples, -1, dtype=np.intp)
        place[numbers] = np.arange(len(numbers))
        if np.sum(place >= 0) != len(numbers):
            raise ValueError("Got rows with repetitions, but expected every point at most once.")
        moved = [place[part] for part in self._taken(slice(None))]
        return self._made(len(numbers), *(part[np.all(part >= 0, axis=1)] for part in moved))

    def __getitem__(self, key: Any) -> Any:
        name = type(self).__name__
        raise TypeError(
            f"{name} cannot be indexed: they number the rows of X, and slicing them beside X, as "
            "scikit-learn's GridSearchCV does, would make them number other points. Use "
            f"cross_validate_pairs, or {name.lower()}.subset(rows) beside X[rows]."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        raise ValueError(
            f"Got {name} in place of an array, but expected labels or numbers: pass tuples by "
            f"name, fit(X, {name.lower()}=...), to a learner that takes them."
        )

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self).__name__
        raise AttributeError(f"{kind} do not change: make new ones instead of setting {name}.")


def check_rows(rows: Any, name: str, n_samples: int, width: int = 2) -> np.ndarray:
    """A copy of the tuples as an intp array (n_pairs, 2), refused where they do not number points.

    None and an empty list mean no pairs; ``width`` is the length of a tuple.
    """
    kind, count = (f"{name} pair", "two") if width == 2 else (name, str(width))
    refuse_masked(rows)
    array = np.asarray([] if rows is None else rows)
    if array.size == 0:
        return np.empty((0, width), dtype=np.intp)
    if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iu":
        raise ValueError(
            f"Got {kind}s of shape {array.shape} and dtype {array.dtype}, but expected "
            f"integers of shape (n_{kind.split()[-1]}s, {width}): {count} row numbers of X each."
        )
    if array.min() < 0 or array.max() >= n_samples:
        outside = np.any((array < 0) | (array >= n_samples), axis=1)
        (found,) = described(kind, array, {"outside the data": outside})
        raise ValueError(f"Got {found}, but expected row numbers from 0 to {n_samples - 1}.")
    return array.astype(np.intp)


def unordered_keys(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """One integer for each pair, whichever of its two points comes first."""
    i, j = rows.T
    return np.minimum(i, j) * n_samples + np.maximum(i, j)


def unique_pairs(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """The pairs without repetitions, in the order in which they first occur."""
    return rows[~repeated_keys(unordered_keys(rows, n_samples))]


def repeated_keys(keys: np.ndarray) -> np.ndarray:
    """Which of the keys occurred before."""
    repeated = np.ones(len(keys), dtype=bool)
    repeated[np.unique(keys, return_index=True)[1]] = False
    return repeated


def find_faults(
    similar: np.ndarray, dissimilar: np.ndarray, n_samples: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Self pairs, duplicates and contradictions in words, and masks of the pairs without them."""
    rows = np.concatenate([similar, dissimilar])
    ordered = np.sort(unordered_keys(rows, n_samples))
    if np.all(rows[:, 0] != rows[:, 1]) and np.all(ordered[1:] != ordered[:-1]):
        return [], np.ones(len(similar), dtype=bool), np.ones(len(dissimilar), dtype=bool)
    lists = {"similar pair": similar, "dissimilar pair": dissimilar}
    keys = [unordered_keys(rows, n_samples) for rows in lists.values()]
    both = np.isin(keys[0], keys[1]), np.isin(keys[1], keys[0])
    faults, kept = [], []
    for (kind, rows), key, contradicted in zip(lists.items(), keys, both, strict=True):
        selves, repeated = rows[:, 0] == rows[:, 1], repeated_keys(key)
        kinds = {"of a point with itself": selves, "listed before": repeated}
        faults += described(kind, rows, kinds)
        kept.append(~(selves | repeated | contradicted))
    faults += described("similar pair", similar, {"also dissimilar": both[0]})
    return faults, kept[0], kept[1]


def described(kind: str, rows: np.ndarray, faults: dict[str, np.ndarray]) -> list[str]:
    """A sentence for each kind of fault that occurs, with the first rows that have it."""
    sentences = []
    for text, found in faults.items():
        where = np.flatnonzero(found)
        shown = ", ".join(f"row {i} is {tuple(rows[i].tolist())}" for i in where[:_SHOWN].tolist())
        if len(where):
            more = ", ..." if len(where) > _SHOWN else ""
            sentences.append(f"{len(where)} {kind}(s) {text} ({shown}{more})")
    return sentences


def components_of(similar: np.ndarray, n_samples: int) -> np.ndarray:
    """Component of every point in the graph of similar pairs, numbered from 0."""
    ones = np.ones(len(similar), dtype=np.int8)
    links = sparse.coo_array((ones, (similar[:, 0], similar[:, 1])), shape=(n_samples, n_samples))
    return connected_components(links.tocsr(), directed=False)[1]


def pair_distances(X: Any, rows: np.ndarray, *, precomputed: bool = False) -> np.ndarray:
    """Euclidean distance of every pair, one block of pairs in memory; X may hold the distances."""
    if precomputed:
        return to_numpy(X)[rows[:, 0], rows[:, 1]].astype(np.float64)
    return np.sqrt(pair_squares(X, X, rows[:, 0], rows[:, 1]))


def nearest_of(rows: np.ndarray, distances: np.ndarray, k: int) -> np.ndarray:
    """Which pairs are among the k nearest of at least one of their two points."""
    chosen = np.zeros(len(rows), dtype=bool)
    # each pair twice: once for each of its points
    chosen[smallest_of_rows(rows.ravel(), np.repeat(distances, 2), k) // 2] = True
    return chosen


def check_length(n_rows: int, n_samples: int) -> None:
    """Refuse points that are not as many as the pairs number."""
    if n_rows != n_samples:
        raise ValueError(
            f"Got pairs of n_samples={n_samples} points, but X has {n_rows} rows: expected the X "
            "that the pairs number. For some rows of it, use pairs.subset(rows)."
        )


def check_radius(radius: Any) -> float:
    """A length; infinity for None."""
    if radius is None:
        return np.inf
    if not isinstance(radius, Real) or not float(radius) > 0:
        raise ValueError(
            f"Got radius={radius!r}, but expected a positive number, 'median' or None."
        )
    return float(radius)


def points_of(X: Any, n_samples: int) -> Any:
    """X as an array, refused where the pairs number other rows than it has."""
    X = X if hasattr(X, "dtype") else np.asarray(X)  # lists, data frames
    check_length(X.shape[0], n_samples)
    return X
