"""Pairs of points that are known to be alike, or known to differ."""

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from kernelmetric.compute.reductions import median_squared_distance
from kernelmetric.graphs import _pair_sources as sources
from kernelmetric.graphs import _row_tuples
from kernelmetric.inputs._parameters import COUNT, require_word


class Pairs(_row_tuples.RowTuples):
    """Pairs of rows of X: similar ones (must-link) and dissimilar ones (cannot-link).

    Parameters
    ----------
    similar : array-like of shape (n_similar, 2), default=None
        Row numbers of points that are alike.
    dissimilar : array-like of shape (n_dissimilar, 2), default=None
        Row numbers of points that differ.
    n_samples : int
        Number of rows of X. Pairs are refused with an X of another length.
    faults : {'raise', 'drop'}, default='raise'
        Whether pairs of a point with itself, pairs listed twice, and pairs said to be both are
        named in an error, or left out with a warning, but for the first of duplicates.
    labelled : bool, default=False
        Whether they came from class labels: :meth:`select` may then leave out far similar ones.

    Attributes
    ----------
    similar, dissimilar : ndarray of shape (n_pairs, 2), dtype intp
        As given, read-only.
    n_samples : int
        Number of points.
    labelled : bool
        Whether the pairs came from class labels.

    See Also
    --------
    Triplets : Where only comparisons are known.
    PairVerifier : Whether two points are the same.

    Examples
    --------
    >>> from kernelmetric import Pairs
    >>> pairs = Pairs(similar=[[0, 1], [1, 2]], dissimilar=[[2, 3]], n_samples=5)
    >>> pairs
    Pairs(2 similar, 1 dissimilar, n_samples=5)
    >>> pairs.closure().similar.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> pairs.closure().dissimilar.tolist()
    [[0, 3], [1, 3], [2, 3]]
    """

    similar: np.ndarray
    dissimilar: np.ndarray
    n_samples: int
    labelled: bool
    _expected = "two different points in a pair, and every pair once"

    def __init__(
        self, similar=None, dissimilar=None, n_samples=None, *, faults="raise", labelled=False
    ):
        n = self._checked_size(n_samples, faults, "similar, dissimilar")
        S = _row_tuples.check_rows(similar, "similar", n)
        D = _row_tuples.check_rows(dissimilar, "dissimilar", n)
        found, keep_S, keep_D = _row_tuples.find_faults(S, D, n)
        if found:
            self._tell_faults(found, faults)
            S, D = S[keep_S], D[keep_D]
        S.flags.writeable = D.flags.writeable = False
        vars(self).update(similar=S, dissimilar=D, n_samples=n, labelled=bool(labelled))

    @classmethod
    def from_labels(
        cls,
        y: Any,
        *,
        per_point: int | None = None,
        components: float | None = None,
        random_state: Any = None,
    ) -> Self:
        """Pairs from class labels: similar inside a class, dissimilar across classes.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels.
        per_point : int, default=None
            Random partners of every point inside its class, and as many outside it; None makes
            all n (n - 1) / 2 pairs.
        components : float, default=None
            Draw random similar pairs until there are ``components * n`` connected groups, as in
            section 4.1 of [1]_ with 0.7; dissimilar pairs go by ``per_point``.
        random_state : int, RandomState or None, default=None
            For the random pairs.

        Returns
        -------
        Pairs
            O(n²) pairs, or O(n per_point).

        References
        ----------
        .. [1] Kwok and Tsang, "Learning with idealized kernels", ICML 2003.
        """
        codes = sources.class_codes(y)
        groups, n = sources.members_of(codes), len(codes)
        rng = check_random_state(random_state)
        if per_point is not None:
            COUNT.require("per_point", per_point)
        if components is not None:
            S = sources.draw_until_connected(groups, n, components, rng)
        elif per_point is not None:
            S = sources.draw_partners(codes, per_point, rng, inside=True)
        else:
            S = sources.pairs_within(groups)
        if per_point is None:
            D = sources.pairs_across(groups)
        else:
            D = sources.draw_partners(codes, per_point, rng, inside=False)
        return cls(S, D, n, labelled=components is None)

    @classmethod
    def from_neighbors(
        cls, X: Any, y: Any, n_neighbors: int = 5, radius: float | str | None = "median"
    ) -> Self:
        """Near pairs from class labels, without listing all pairs first.

        The pairs of ``Pairs.from_labels(y).select(X, n_neighbors, radius)`` in O(n m) memory.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,)
            Class labels.
        n_neighbors : int, default=5
            How many pairs of either kind each point asks for, m.
        radius : float, 'median' or None, default='median'
            Longest pair, R. 'median' is that of the distances between different points.

        Returns
        -------
        Pairs
            At most 2 m n pairs.
        """
        COUNT.require("n_neighbors", n_neighbors)
        codes = sources.class_codes(y)
        X = _row_tuples.points_of(X, len(codes))
        median = radius == "median"
        reach = np.sqrt(median_squared_distance(X)) if median else _row_tuples.check_radius(radius)
        S, D = (
            sources.near_pairs(X, codes, n_neighbors, reach, same=same) for same in (True, False)
        )
        return cls(S, D, len(codes), labelled=True)

    @classmethod
    def from_chunks(cls, codes: Any, *, between: bool = False) -> Self:
        """Pairs from groups of points that belong together.

        Parameters
        ----------
        codes : array-like of shape (n_samples,)
            Number of the chunk of every point; negative where nothing is known.
        between : bool, default=False
            Whether points of different chunks are dissimilar.

        Returns
        -------
        Pairs
            All pairs inside chunks, and between them where asked for.
        """
        codes = sources.chunk_codes(codes)
        groups = sources.members_of(codes)
        apart = sources.pairs_across(groups) if between else None
        return cls(sources.pairs_within(groups), apart, len(codes))

    _read = staticmethod(sources.read_pairs)

    @property
    def rows(self) -> np.ndarray:
        """All pairs, the similar ones first; shape (n_pairs, 2)."""
        return np.concatenate([self.similar, self.dissimilar])

    @property
    def is_similar(self) -> np.ndarray:
        """Which of :attr:`rows` are similar; shape (n_pairs,)."""
        return np.arange(len(self)) < len(self.similar)

    def _taken(self, chosen: Any) -> tuple[np.ndarray, np.ndarray]:
        rows, alike = self.rows[chosen], self.is_similar[chosen]
        return rows[alike], rows[~alike]

    def _made(self, n_samples: int, similar: np.ndarray, dissimilar: np.ndarray) -> Self:
        return type(self)(similar, dissimilar, n_samples, labelled=self.labelled)

    def components(self) -> np.ndarray:
        """The groups that similar pairs connect.

        Returns
        -------
        ndarray of shape (n_samples,)
            Number of the group of every point, from 0.
        """
        return _row_tuples.components_of(self.similar, self.n_samples)

    def closure(self) -> Self:
        """All pairs that follow: what is alike one point is alike, and differs from the same.

        Returns
        -------
        Pairs
            All inside groups of :meth:`components`, and between groups that a dissimilar one joins.
        """
        codes = self.components()
        ends = np.sort(codes[self.dissimilar], axis=1)
        inside = np.flatnonzero(ends[:, 0] == ends[:, 1])
        if len(inside):
            i, j = self.dissimilar[inside[0]]
            raise ValueError(
                f"Got {len(inside)} dissimilar pairs inside a group connected by similar pairs, "
                f"such as row {inside[0]}, ({i}, {j}), but expected no contradiction: correct "
                "either side."
            )
        groups = sources.members_of(codes)
        joined = ((groups[a], groups[b]) for a, b in np.unique(ends, axis=0).tolist())
        similar, dissimilar = sources.pairs_within(groups), sources.pairs_between(joined)
        return self._made(self.n_samples, similar, dissimilar)

    def select(
        self,
        X: Any,
        n_neighbors: int = 5,
        radius: float | str | None = "median",
        *,
        metric: str = "euclidean",
        limit_similar: bool | None = None,
    ) -> Self:
        """The near pairs, which matter most: the heuristic of section 3.2.5 of [1]_.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Points, or their distances (n_samples, n_samples) where metric is 'precomputed'.
        n_neighbors : int, default=5
            A pair stays if it is among the m shortest of its kind at one of its points.
        radius : float, 'median' or None, default='median'
            Longest pair that may stay, R; 'median' is that of all these pairs, None no limit.
        metric : {'euclidean', 'precomputed'}, default='euclidean'
            What X is.
        limit_similar : bool, default=None
            Whether the radius applies to similar pairs too. None: only if they come from labels.

        Returns
        -------
        Pairs
            At most 2 m n pairs, in their order here.

        References
        ----------
        .. [1] Kwok and Tsang, "Learning with idealized kernels", ICML 2003.
        """
        COUNT.require("n_neighbors", n_neighbors)
        X = _row_tuples.points_of(X, self.n_samples)
        require_word("metric", metric, ("euclidean", "precomputed"))
        distances = _row_tuples.pair_distances(X, self.rows, precomputed=metric == "precomputed")
        if not np.all(np.isfinite(distances)):
            raise ValueError("Got X with NaN or infinity, but expected finite distances.")
        if radius == "median":
            longest = float(np.median(distances)) if len(self) else np.inf
        else:
            longest = _row_tuples.check_radius(radius)
        near = distances <= longest
        if not (self.labelled if limit_similar is None else limit_similar):
            near |= self.is_similar
        for kind in (self.is_similar, ~self.is_similar):
            near[kind] &= _row_tuples.nearest_of(self.rows[kind], distances[kind], n_neighbors)
        return self.take(near)

    def __len__(self) -> int:
        return len(self.similar) + len(self.dissimilar)

    def __reduce__(self) -> Any:
        made = partial(type(self), labelled=self.labelled)
        return made, (self.similar, self.dissimilar, self.n_samples)

    def __repr__(self) -> str:
        kinds = f"{len(self.similar)} similar, {len(self.dissimilar)} dissimilar"
        return f"Pairs({kinds}, n_samples={self.n_samples})"
