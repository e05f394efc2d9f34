"""Comparisons of distances: triplets and quadruplets of points."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute import require_memory
from kernelmetric.compute.reductions import class_neighbors
from kernelmetric.graphs import _row_tuples
from kernelmetric.graphs._pair_sources import class_codes, read_row_numbers
from kernelmetric.inputs._parameters import COUNT


class IndexTuples(_row_tuples.RowTuples):
    """Comparisons: every one says that its ``near`` pair is nearer than its ``far`` pair."""

    rows: np.ndarray
    width: ClassVar[int]  # row numbers in a tuple
    kind: ClassVar[str]  # what one is called, and the argument of ``fit`` without its plural
    _near: ClassVar[list[int]]  # columns of the near pair
    _far: ClassVar[list[int]]
    _expected = "comparisons of two different pairs of different points, every one once"

    def __init__(self, rows=None, n_samples=None, *, faults="raise"):
        n = self._checked_size(n_samples, faults, "rows")
        R = _row_tuples.check_rows(rows, self.kind, n, self.width)
        found, kept = self._faults(R, n)
        if found:
            self._tell_faults(found, faults)
            R = R[kept]
        R.flags.writeable = False
        vars(self).update(rows=R, n_samples=n)

    @classmethod
    def _faults(cls, rows: np.ndarray, n_samples: int) -> tuple[list[str], np.ndarray]:
        """A sentence for each kind of fault, and a mask of what remains."""
        near, far = (
            _row_tuples.unordered_keys(rows[:, part], n_samples) for part in (cls._near, cls._far)
        )
        selves = np.any([rows[:, a] == rows[:, b] for a, b in (cls._near, cls._far)], axis=0)
        # The pairs are numbered, so that two numbers make one integer.
        near, far = np.unique([near, far], return_inverse=True)[1].reshape(2, -1)
        size = 2 * len(rows)
        forth, back = near * size + far, far * size + near
        ordered = np.sort(np.concatenate([forth, back]))
        if not selves.any() and np.all(ordered[1:] != ordered[:-1]):
            return [], np.ones(len(rows), dtype=bool)
        repeated = _row_tuples.repeated_keys(forth)
        against = np.isin(back, forth) & ~selves
        kinds = {
            "with a pair of a point and itself": selves,
            "of a pair with itself": against & (near == far),
            "listed before": repeated,
            "also listed the other way round": against & (near != far),
        }
        return _row_tuples.described(cls.kind, rows, kinds), ~(selves | repeated | against)

    @classmethod
    def _read(cls, path: Any) -> tuple[np.ndarray]:
        return (read_row_numbers(path, cls.width),)

    @property
    def near(self) -> np.ndarray:
        """The pairs that shall be nearer; shape (n_tuples, 2)."""
        return self.rows[:, self._near]

    @property
    def far(self) -> np.ndarray:
        """The pairs that shall be farther apart; shape (n_tuples, 2)."""
        return self.rows[:, self._far]

    def _taken(self, chosen: Any) -> tuple[np.ndarray]:
        return (self.rows[chosen],)

    def _made(self, n_samples: int, rows: np.ndarray) -> Self:
        return type(self)(rows, n_samples)

    def __len__(self) -> int:
        return len(self.rows)

    def __reduce__(self) -> Any:
        return type(self), (self.rows, self.n_samples)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)}, n_samples={self.n_samples})"


class Triplets(IndexTuples):
    """Triplets (a, b, c) of rows of X: a is nearer to b than to c.

    Parameters
    ----------
    rows : array-like of shape (n_triplets, 3)
        Row numbers of a, b and c.
    n_samples : int
        Number of rows of X. Triplets are refused with an X of another length.
    faults : {'raise', 'drop'}, default='raise'
        As in :class:`Pairs`; a triplet also listed the other way round is a fault too.

    Attributes
    ----------
    rows : ndarray of shape (n_triplets, 3), dtype intp
        As given, read-only.
    n_samples : int
        Number of points.

    See Also
    --------
    Quadruplets : Comparisons of two separate pairs.
    SCML : Learns from them.

    Examples
    --------
    >>> from kernelmetric import Triplets
    >>> triplets = Triplets([[0, 1, 2], [3, 2, 0]], n_samples=4)
    >>> triplets
    Triplets(2, n_samples=4)
    >>> triplets.far.tolist()
    [[0, 2], [3, 0]]
    """

    width, kind = 3, "triplet"
    _near, _far = [0, 1], [0, 2]

    @classmethod
    def from_labels(
        cls, y: Any, *, per_point: int | None = None, random_state: Any = None
    ) -> Triplets:
        """Triplets from class labels: b is of the class of a, and c is not.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels.
        per_point : int, default=None
            Random triplets of every point, fewer where two are the same; None makes all of them.
        random_state : int, RandomState or None, default=None
            For the draws.

        Returns
        -------
        Triplets
            O(n³) triplets, or O(n per_point).
        """
        if per_point is None:
            codes = class_codes(y)
            require_memory(
                6 * 24.0 * count_triplets(codes), "All triplets", "draw some with per_point."
            )
            a, b = np.nonzero((codes[:, None] == codes) & ~np.eye(len(codes), dtype=bool))
            which, c = np.nonzero(codes[a][:, None] != codes)
            return cls(np.column_stack([a[which], b[which], c]), len(codes))
        a, b, c, codes = _draws(y, per_point, random_state)
        return cls(np.unique(np.column_stack([a, b, c]), axis=0), len(codes))

    @classmethod
    def from_neighbors(cls, X: Any, y: Any, n_neighbors: int = 3, n_others: int = 10) -> Triplets:
        """Near triplets from class labels, those that nearest neighbours are decided by.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,)
            Class labels.
        n_neighbors : int, default=3
            Nearest points b of the class of a.
        n_others : int, default=10
            Nearest points c of other classes.

        Returns
        -------
        Triplets
            At most ``n_neighbors * n_others`` for every point.
        """
        COUNT.require("n_neighbors", n_neighbors)
        COUNT.require("n_others", n_others)
        codes = class_codes(y)
        X = _row_tuples.points_of(X, len(codes))
        B = class_neighbors(X, codes, min(n_neighbors, len(codes)), same=True)[0]
        C = class_neighbors(X, codes, min(n_others, len(codes)), same=False)[0]
        shape = len(codes), B.shape[1], C.shape[1]
        parts = np.arange(len(codes))[:, None, None], B[:, :, None], C[:, None, :]
        rows = np.stack([np.broadcast_to(part, shape).ravel() for part in parts], axis=1)
        return cls(rows[np.all(rows >= 0, axis=1)], len(codes))

    def as_quadruplets(self) -> Quadruplets:
        """The same comparisons as quadruplets (a, b, a, c).

        Returns
        -------
        Quadruplets
            In the same order.
        """
        return Quadruplets(self.rows[:, [0, 1, 0, 2]], self.n_samples)


class Quadruplets(IndexTuples):
    """Quadruplets (a, b, c, d) of rows of X: a is nearer to b than c is to d.

    Parameters
    ----------
    rows : array-like of shape (n_quadruplets, 4)
        Row numbers of a, b, c and d.
    n_samples : int
        Number of rows of X. Quadruplets are refused with an X of another length.
    faults : {'raise', 'drop'}, default='raise'
        As in :class:`Triplets`.

    Attributes
    ----------
    rows : ndarray of shape (n_quadruplets, 4), dtype intp
        As given, read-only.
    n_samples : int
        Number of points.

    See Also
    --------
    Triplets : Comparisons that share a point.
    LSML : Learns from them.

    Examples
    --------
    >>> from kernelmetric import Quadruplets
    >>> Quadruplets([[0, 1, 2, 3], [0, 2, 1, 3]], n_samples=4).near.tolist()
    [[0, 1], [0, 2]]
    """

    width, kind = 4, "quadruplet"
    _near, _far = [0, 1], [2, 3]

    @classmethod
    def from_labels(cls, y: Any, *, per_point: int = 5, random_state: Any = None) -> Quadruplets:
        """Random quadruplets from class labels: a and b are of one class, c and d of two.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels.
        per_point : int, default=5
            Quadruplets that every point begins, fewer where two draws are the same.
        random_state : int, RandomState or None, default=None
            For the draws.

        Returns
        -------
        Quadruplets
            At most ``per_point`` for every point whose class has another one.
        """
        rng = check_random_state(random_state)
        a, b, _, codes = _draws(y, per_point, rng)
        c, _, d, _ = _draws(y, per_point, rng)
        # one for every pair inside a class, in an order of its own
        order = rng.permutation(len(c))
        rows = np.column_stack([np.sort(np.column_stack([a, b]), axis=1), c[order], d[order]])
        rows[:, 2:] = np.sort(rows[:, 2:], axis=1)
        return cls(np.unique(rows, axis=0), len(codes))


def count_triplets(codes: np.ndarray) -> int:
    """How many triplets class codes make: two different points of a class, and one of another."""
    sizes = np.bincount(codes)
    return int(np.sum(sizes * (sizes - 1) * (len(codes) - sizes)))


def _draws(
    y: Any, per_point: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points, for each a random one of its class and one of another; and the class codes."""
    COUNT.require("per_point", per_point)
    codes, rng = class_codes(y), check_random_state(random_state)
    n, sizes = len(codes), np.bincount(codes)
    order = np.argsort(codes, kind="stable")
    place, size = np.argsort(order), sizes[codes]
    able = np.flatnonzero((size > 1) & (size < n))  # others have no partner of their class, or none
    a = np.repeat(able, int(per_point))
    begin = (np.cumsum(sizes) - sizes)[codes[a]]
    size = size[a]
    inside = (rng.random_sample(len(a)) * (size - 1)).astype(np.intp)
    outside = (rng.random_sample(len(a)) * (n - size)).astype(np.intp)
    b = order[begin + (place[a] - begin + 1 + inside) % np.maximum(size, 1)]
    c = order[(begin + size + outside) % max(n, 1)]
    return a, b, c, codes
