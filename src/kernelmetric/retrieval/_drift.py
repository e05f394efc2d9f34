"""Vectors of one model, mapped to those of another, from vectors of the same things by both."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from kernelmetric.compute import like, map_rows, precise, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.reductions import k_smallest
from kernelmetric.evaluation import Estimate
from kernelmetric.evaluation._retrieval import directions, mean_of, similarities
from kernelmetric.inputs import check_points, unchanged_on_failure
from kernelmetric.inputs._parameters import COUNT, check_parameters
from kernelmetric.retrieval._forms import VectorMap, require_digits

_RIDGES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)  # beside the mean variance
_JUDGED = 1_000  # rows left out that are looked for, at most
_ROWS = 50_000  # among which these are looked for, at most
_FEWEST, _CELLS = 1_000, 4  # rows that a time limit leaves; passes over similarities


@dataclass(eq=False, repr=False)
class Drift(VectorMap):
    r"""Vectors of one model, mapped to those of another.

    A model is replaced, and an index holds vectors of the old one. Some things have vectors of
    both. From them ``Drift().fit(old, new)`` learns an affine map, so that old vectors can stay in
    the index of new ones, until they are made anew; ``fit(new, old)`` maps new queries to the old
    index. A rotation with a scale (Procrustes) and ridge regressions are tried, and the one is
    taken that finds most on rows left out: of the k vectors nearest to a row in the second model,
    how many are nearest to the row that was mapped? O(n d²) time for n rows.

    Parameters
    ----------
    geometry : {'cosine', 'euclidean'}, default='cosine'
        What is near. With the cosine, vectors have length one before and after.
    k : int, default=10
        Number of neighbours that should be found.
    random_state : int, RandomState or None, default=0
        For the rows left out.

    Attributes
    ----------
    components_ : array of shape (n_features_out, n_features)
        The map A.
    intercept_ : array of shape (n_features_out,)
        The shift b: x goes to A x + b.
    recall_ : Estimate
        Share of the k neighbours that mapped vectors find, on rows left out, with its interval.
    plain_recall_ : Estimate or None
        The same of vectors that are not mapped, where both models have equally many dimensions.
    recipe_ : dict of str to str
        The map in words.
    candidates_ : dict of str to float
        What each map found.
    n_features_in_ : int
        Number of features of the first model.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.retrieval import Drift
    >>> rng = np.random.RandomState(0)
    >>> things = rng.standard_normal((400, 6))
    >>> old, new = things @ rng.standard_normal((6, 12)), things @ rng.standard_normal((6, 16))
    >>> drift = Drift().fit(old[:300], new[:300])
    >>> drift.transform(old[300:]).shape, drift.recall_.value > 0.8
    ((100, 16), True)
    """

    geometry: str = "cosine"
    _: KW_ONLY
    k: int = 10
    random_state: Any = 0

    _allowed: ClassVar[dict[str, Any]] = {"geometry": ("cosine", "euclidean"), "k": COUNT}

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map from vectors of the same things by both models.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors of the first model, twenty rows or more.
        y : array-like of shape (n_samples, n_features_out)
            Vectors of the second model, of the same things in the same order.

        Returns
        -------
        Drift
            The fitted map.
        """
        check_parameters(self)
        with unchanged_on_failure(self):
            given = check_points(self, X, reset=True)
            if y is None:
                raise ValueError("Drift requires y to be passed, but the target y is None.")
            second = check_array(to_numpy(y) if hasattr(y, "dtype") else y, input_name="y")
            check_consistent_length(given, second)
            if len(second) < 20:
                raise ValueError(
                    f"Got {len(second)} rows of both models, but expected 20 or more: a map of all "
                    "dimensions is learned from them."
                )
            if self.geometry != "cosine":
                for Z, name in ((given, "X"), (second, "y")):
                    require_digits(Z, f"rows of {name}")
            first, second = (self._placed(to_numpy(precise(Z))) for Z in (given, second))
            if not np.ptp(first, axis=0).any() or not np.ptp(second, axis=0).any():
                raise ValueError(
                    "Got rows of one model that are all the same, but expected some that differ: "
                    "nothing has neighbours there."
                )
            if self.k >= len(first):
                raise ValueError(
                    f"Got k={self.k} with {len(first)} rows, but expected fewer: others are found "
                    "among them."
                )
            rng, n = check_random_state(self.random_state), len(first)
            shape = first.shape[1], second.shape[1]
            order = rng.permutation(n)
            most = most_in_time(lambda m: _seconds(m, *shape), n, max(_FEWEST, 2 * self.k), "Drift")
            if most < n:
                first, second, order = first[order[:most]], second[order[:most]], np.arange(most)
            held, known = np.split(order, [min(len(order) // 4, _JUDGED)])
            among = np.sort(order[:_ROWS])
            found = {
                name: self._found(first[held] @ A.T + b, second, held, among)
                for name, A, b in _maps(first[known], second[known])
            }
            best = max(found, key=lambda name: float(np.mean(found[name])))
            A, b = next((A, b) for name, A, b in _maps(first, second) if name == best)
            self.components_, self.intercept_ = like(A, given), like(b, given)
            self.recipe_ = {"map": best, "why": f"found most of {len(held)} rows left out"}
            self.candidates_ = {name: float(np.mean(shares)) for name, shares in found.items()}
            judged = [found[best]]
            if first.shape[1] == second.shape[1]:
                judged.append(self._found(first[held], second, held, among))
            weights = np.full(len(held), 1 / len(held))
            self._recalls = np.array([mean_of(shares, weights, 1.96) for shares in judged])
        return self

    @property
    def recall_(self) -> Estimate:
        """Share of the k neighbours that mapped vectors find, on rows left out."""
        check_is_fitted(self)
        return Estimate(*self._recalls[0].tolist())

    @property
    def plain_recall_(self) -> Estimate | None:
        """The same of vectors that are not mapped; None where dimensions differ."""
        check_is_fitted(self)
        return Estimate(*self._recalls[1].tolist()) if len(self._recalls) > 1 else None

    def transform(self, X: Any) -> Any:
        """Map vectors of the first model to those of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors of the first model.

        Returns
        -------
        array of shape (n_samples, n_features_out)
            The mapped vectors, of length one where the geometry is the cosine.
        """
        check_is_fitted(self)
        Z = self._placed(check_points(self, X, reset=False))
        A, b = (like(to_numpy(part), Z) for part in (self.components_, self.intercept_))
        return self._placed(Z @ A.T + b)

    def _placed(self, Z: Any) -> Any:
        return directions(Z) if self.geometry == "cosine" else Z

    def _found(
        self, mapped: np.ndarray, second: np.ndarray, held: np.ndarray, among: np.ndarray
    ) -> np.ndarray:
        """For each row left out the share of its true neighbours that are found."""
        D, mapped, cosine = second[among], self._placed(mapped), self.geometry == "cosine"
        k = min(self.k, len(among) - 1)

        def nearest(rows: slice) -> np.ndarray:
            own = held[rows, None] == among
            far = (-similarities(Q, D, cosine=cosine) for Q in (second[held[rows]], mapped[rows]))
            true, found = (k_smallest(np.where(own, np.inf, S), k)[0] for S in far)
            return np.mean(np.any(true[:, :, None] == found[:, None, :], axis=2), axis=1)

        return map_rows(nearest, len(held), 8.0 * 4 * len(among), most=128)


def _seconds(n: int, d: int, d_second: int) -> float:
    """Seconds in which the maps of n rows are learned and compared."""
    wide, rate = max(d, d_second), rates()
    compared = 2 * (len(_RIDGES) + 2) * min(n // 4, _JUDGED) * min(n, _ROWS)
    learned = 2 * (3 * n + 30 * wide) * wide**2
    return learned * rate.product + compared * (d_second * rate.product + _CELLS * rate.cell)


def _maps(X: np.ndarray, Y: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names, matrices and shifts of all maps of X to Y."""
    x, y = X.mean(axis=0), Y.mean(axis=0)
    across = (Y - y).T @ (X - x) / len(X)
    values, V = eigh((X - x).T @ (X - x) / len(X))
    U, s, Vt = np.linalg.svd(across, full_matrices=False)
    A = np.sum(s) / max(float(np.sum(values)), 1e-300) * (U @ Vt)
    yield "a rotation with a scale (Procrustes)", A, y - A @ x
    unit = max(float(np.mean(values)), 1e-300)
    for ridge in _RIDGES:
        A = (across @ V / (np.maximum(values, 0.0) + ridge * unit)) @ V.T
        yield f"ridge regression, ridge {ridge:g}", A, y - A @ x
