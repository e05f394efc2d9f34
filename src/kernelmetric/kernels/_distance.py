"""A kernel from any distance of objects: of names, of series, of sets, or one of your own."""

from collections.abc import Hashable, Iterator
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from kernelmetric._warnings import warn
from kernelmetric.compute import take_rows
from kernelmetric.inputs._extras import require
from kernelmetric.inputs._parameters import COUNT, is_auto
from kernelmetric.kernels._objects import ObjectKernel
from kernelmetric.kernels._points import check_number
from kernelmetric.kernels._series import WIDTHS, SeriesKernel, over_alignments, prepared
from kernelmetric.kernels._sets import MeanEmbedding, check_lengths
from kernelmetric.kernels._strings import NGrams

_CUT = 1e-10  # of the largest eigenvalue: below, a direction is round-off
_MUCH = 0.1  # of all eigenvalues: so much left out is told
_WINDOW = 0.1  # of the longer of two series, which DTW may warp
_STRINGS = {
    "levenshtein": "Levenshtein.normalized_distance",
    "damerau": "DamerauLevenshtein.normalized_distance",
    "indel": "Indel.normalized_distance",
    "jaro_winkler": "JaroWinkler.normalized_distance",
}


@dataclass(eq=False, repr=False)
class FromDistance(ObjectKernel):
    r"""A kernel from any distance, made positive semi-definite; what that leaves out is told.

    .. math:: k(x, y) = s(x)^\top S^+ s(y), \qquad s_j(x) = \exp(-d(x, r_j) / \sigma),
              \quad S_{ij} = \exp(-d(r_i, r_j) / \sigma)

    with references :math:`r_j` among the objects that ``bind`` sees, and :math:`S^+` the inverse of
    S on its positive eigenvalues. Between references it is S, its negative part cut off. So it is
    positive semi-definite whatever d is; new objects are known by their distances to the
    references.

    O(m) distances for an object, once, of m references.

    Parameters
    ----------
    distance : str or callable, default="levenshtein"
        "levenshtein", "damerau", "indel" or "jaro_winkler" of strings, normalized (``pip install
        rapidfuzz``); "dtw" of series, dynamic time warping within a tenth of the length, scaled;
        "matches" of sets of vectors, the mean distance to the nearest vector of the other set; or a
        function of two objects, symmetric, which cannot be saved.
    relative_width : float or "auto", default="auto"
        The width σ as a multiple of the median distance. "auto": where labels choose, the one that
        predicts left-out points best; 1 without labels.
    n_references : int, default=500
        The most references; drawn at random where there are more objects.
    random_state : int, default=0
        For the references.
    learned : dict, default=None
        References, width and projection; ``bind`` sets it.

    Attributes
    ----------
    negative_share_ : float
        Sum of the negative eigenvalues of S, beside that of all, without sign: what was cut off.
        Over a tenth of it is told in a warning. Of a bound kernel.

    Examples
    --------
    >>> from kernelmetric.kernels import FromDistance
    >>> kernel = FromDistance(lambda a, b: abs(len(a) - len(b))).bind(["a", "bc", "defg"])
    >>> kernel(["h", "ij"]).round(2)
    array([[1.  , 0.61],
           [0.61, 1.  ]])
    """

    expects: ClassVar[str] = "objects that its distance takes"

    distance: Any = "levenshtein"
    relative_width: Any = "auto"
    _: KW_ONLY
    n_references: int = 500
    random_state: int = 0
    learned: dict[str, Any] | None = None

    _open = "relative_width", WIDTHS, "learned"

    @property
    def is_bound(self) -> bool:
        """Whether there are references."""
        return self.learned is not None

    @property
    def negative_share_(self) -> float:
        """What was cut off of the eigenvalues."""
        self._require_bound()
        known: Any = self.learned
        return known["negative_share"]

    def read(self, item: Any) -> Any:
        """An object of the kind that the distance takes."""
        return self._kind().read(self, item)

    def parts(self, item: Any) -> Iterator[tuple[str, Any]]:
        """Parts of an object of that kind; none of objects of another kind."""
        return self._kind().parts(self, item)

    def picture(self, item: Any) -> str | None:
        """A drawing of an object of that kind, where there is one."""
        return self._kind().picture(self, item)

    def _kind(self) -> Any:
        """The class that knows objects of the kind that the distance takes."""
        kinds = dict.fromkeys(_STRINGS, NGrams) | {"dtw": SeriesKernel, "matches": MeanEmbedding}
        if callable(self.distance):
            return ObjectKernel
        if not isinstance(self.distance, str) or self.distance not in kinds:
            raise ValueError(
                f"Got distance={self.distance!r}, but expected a function of two objects, 'dtw', "
                f"'matches', or one of {sorted(_STRINGS)}."
            )
        return kinds[self.distance]

    def _reader(self) -> Hashable:
        return type(self), self._kind(), self.distance, "read"

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        if self.learned is not None:
            return {}
        COUNT.check(self, "n_references")
        n, rng = len(X), check_random_state(self.random_state)
        rows = np.sort(rng.permutation(n)[: self.n_references])
        given = 1.0 if is_auto(self.relative_width) else self.relative_width
        relative = check_number("relative_width", given, positive=True)
        references = take_rows(X, rows).copy().listed()
        D = self._distances(references, references)
        if not np.allclose(D, D.T):
            raise ValueError(
                f"Got distances by {self.distance!r} that differ by up to "
                f"{np.max(np.abs(D - D.T)):.3g} when two objects change places, but expected a "
                "symmetric distance: try the mean of both."
            )
        width = relative * (float(np.median(D[D > 0])) if np.any(D > 0) else 1.0)
        values, U = linalg.eigh(np.exp(D / -width))
        share = float(np.abs(values[values < 0]).sum() / np.abs(values).sum())
        if share > _MUCH:
            warn(
                f"{100 * share:.0f} % of the eigenvalues of {self!r} are negative and left out: "
                "the kernel sees less than the distance does. Try a smaller relative_width."
            )
        kept = values > _CUT * values[-1]
        learned = {
            "references": references,
            "width": width,
            "projection": U[:, kept] / np.sqrt(values[kept]),
            "negative_share": share,
        }
        return {"learned": learned}

    def features(self, items: list[Any]) -> Any:
        """Coordinates by the distances to the references."""
        known: Any = self.learned
        D = self._distances(items, known["references"])
        return np.exp(D / -known["width"]) @ known["projection"]

    def _distances(self, A: list[Any], B: list[Any]) -> np.ndarray:
        if callable(self.distance):
            D = np.array([[float(self.distance(a, b)) for b in B] for a in A])
        elif self.distance in _STRINGS:
            D = _of_strings(_STRINGS[self.distance], A, B)
        elif self.distance == "dtw":
            D = _of_series(A, B)
        else:
            check_lengths([*A, *B])
            D = np.array([[_of_sets(a, b) for b in B] for a in A])
        if not np.all(np.isfinite(D)) or np.any(D < 0):
            raise ValueError(
                f"Got distances from {np.min(D):.3g} to {np.max(D):.3g} by {self.distance!r}, but "
                "expected finite ones, none of them negative."
            )
        return D.reshape(len(A), len(B))


def _of_strings(name: str, A: list[str], B: list[str]) -> np.ndarray:
    require("rapidfuzz", "linkage", "Unlike NGrams(), distances of strings need rapidfuzz")
    from rapidfuzz import distance, process

    scorer = attrgetter(name)(distance)
    return process.cdist(A, B, scorer=scorer, dtype=np.float64, workers=1)


def _of_series(A: list[np.ndarray], B: list[np.ndarray]) -> np.ndarray:
    """Dynamic time warping of scaled series: the root of the least sum of squares."""
    A, B = (prepared(items, scale=True, derivative=False) for items in (A, B))
    rows, columns = np.indices((len(A), len(B))).reshape(2, -1)

    def step(squares, offsets, corner, above, left):
        squares += np.minimum(np.minimum(corner, above), left)
        return squares

    def reach(n: int, m: int) -> int:
        return max(int(np.ceil(_WINDOW * max(n, m))), abs(n - m))

    return np.sqrt(over_alignments(A, B, rows, columns, step, reach)).reshape(len(A), len(B))


def _of_sets(a: np.ndarray, b: np.ndarray) -> float:
    D = cdist(a, b)
    return float(D.min(axis=1).mean() + D.min(axis=0).mean()) / 2.0
