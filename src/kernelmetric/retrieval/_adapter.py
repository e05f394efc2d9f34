"""An adapter of vectors that are there already, for better neighbours; never for worse ones."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kernelmetric._warnings import warn
from kernelmetric.compute import in_library_of, like, namespace, rough, take_rows, to_numpy
from kernelmetric.compute.reductions import map_points
from kernelmetric.evaluation._retrieval import Comparison, Found, compared, directions
from kernelmetric.graphs import Matches, Triplets, check_length
from kernelmetric.inputs import check_points, unchanged_on_failure
from kernelmetric.inputs._parameters import COUNT_OR_NONE, Numbers, check_parameters, is_auto
from kernelmetric.kernelized._places import NotBetterWarning
from kernelmetric.metric import Metric
from kernelmetric.retrieval._search import Result, Search

_FEW_ROWS = 8  # that are mapped without the checks of many
_SMALL = 1e-30  # squared lengths from here to its inverse are numbers in any dtype


@dataclass(eq=False, repr=False)
class Adapter(Metric, BaseEstimator):
    r"""A linear map of given vectors, learned from what belongs together, or none.

    Vectors of a network are there: of texts, images or products. Some queries are known with their
    documents. The adapter looks for maps A of queries and B of documents, with which the documents
    of a query come first among all: closed forms, and a softmax over batches that starts at the
    best of them. Which one, and how far from the identity, is decided on queries left out. Where
    none is better with confidence, the vectors stay as they are, and ``recipe_`` says so.

    Parameters
    ----------
    side : {'symmetric', 'query', 'both'}, default='symmetric'
        One map for both; a map of queries alone, so that an index of documents stays as it is; or
        a map for each.
    geometry : {'cosine', 'euclidean'}, default='cosine'
        How documents are ranked, before and after. With the cosine, mapped vectors have length
        one: Euclidean distance, inner product and cosine then rank alike.
    n_components : int, default=None
        Dimension of the mapped vectors; None keeps it. Coordinates come by the variance that the
        map leaves them, so the first ones of an adapter are one of fewer dimensions. Not with
        side='query'.
    softmax : bool or 'auto', default='auto'
        Whether the softmax is tried; 'auto' where that takes some twenty seconds at most. Not
        with side='query', where it finds less.
    cv : int, default=5
        Number of parts of the queries, each of which is left out once.
    confidence : float, default=0.95
        How sure it must be that the map is better than none. Where matches are seldom among the
        first ten, three standard errors are asked for.
    random_state : int, RandomState or None, default=0
        For the parts, and for draws from large tables.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map A of queries.
    document_components_ : array of shape (n_components, n_features)
        The map B of documents.
    adapted_ : bool
        Whether any map was better than none.
    recipe_ : dict of str to str
        The map in words, and why this one.
    candidates_ : dict of str to float
        Every map that was tried, and its mean of 1/√rank on queries left out.
    evaluation_ : Comparison
        Recall, MRR and nDCG before and after, with intervals, on queries left out.
    n_features_in_ : int
        Number of features seen in fit.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import Adapter
    >>> rng = np.random.RandomState(0)
    >>> things = rng.standard_normal((300, 8))
    >>> noise = np.array([3.0, 3.0, 3.0, 0.1, 0.1, 0.1, 0.1, 0.1])  # of the vectors
    >>> documents = things + noise * rng.standard_normal((300, 8))
    >>> queries = things + noise * rng.standard_normal((300, 8))
    >>> known = [[i, i] for i in range(150)]
    >>> adapter = Adapter().fit(queries, documents=documents, pairs=known)
    >>> adapter.adapted_
    True
    >>> adapter.evaluation_.gain[1].value > 0.2
    True
    >>> index = adapter.transform_documents(documents)
    >>> found = adapter.transform(queries[150:]) @ index.T
    >>> bool(np.mean(found.argmax(axis=1) == np.arange(150, 300)) > 0.6)
    True
    """

    side: str = "symmetric"
    geometry: str = "cosine"
    _: KW_ONLY
    n_components: int | None = None
    softmax: Any = "auto"
    cv: int = 5
    confidence: float = 0.95
    random_state: Any = 0
    verbose: bool = False

    _allowed: ClassVar[dict[str, Any]] = {
        "side": ("symmetric", "query", "both"),
        "geometry": ("cosine", "euclidean"),
        "n_components": COUNT_OR_NONE,
        "cv": Numbers(Integral, low=2, high=1000),
        "confidence": Numbers(Real, low=0.5, high=1 - 1e-9),
    }

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        documents: Any = None,
        pairs: Any = None,
        document_labels: Any = None,
        triplets: Any = None,
        dissimilar: Any = None,
        pair_weight: Any = None,
    ) -> Self:
        """Look for a map of vectors that finds more of what belongs together.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Vectors of queries, or of all things where queries and documents are one table. Rows
            that nothing is known of help too.
        y : array-like of shape (n_queries,), default=None
            Classes: documents of the same class match.
        documents : array-like of shape (n_documents, n_features), default=None
            Vectors of documents, of the same model; None: every other row of X. Of many, a draw is
            read, so a memory map will do.
        pairs : array-like of shape (n_pairs, 2), default=None
            Row numbers (query, document) that belong together.
        document_labels : array-like of shape (n_documents,), default=None
            Classes of the documents, with ``y``.
        triplets : Triplets, or array-like of shape (n_triplets, 3), default=None
            Row numbers (query, document, one that is farther).
        dissimilar : array-like of shape (n_pairs, 2), default=None
            Row numbers (query, document) that look alike and do not belong together.
        pair_weight : array-like of shape (n_pairs,), default=None
            What each of ``pairs`` counts, such as clicks.

        Returns
        -------
        Adapter
            The fitted adapter.
        """
        check_parameters(self)
        with unchanged_on_failure(self):
            Q = _vectors(self, X, "queries", reset=True)
            D = Q if documents is None else _vectors(self, documents, "documents", reset=False)
            self._check(Q)
            n_documents = None if documents is None else D.shape[0]
            n_given = sum(part is not None for part in (pairs, triplets, y))
            if not n_given:
                raise ValueError(
                    "Adapter requires y to be passed, but the target y is None: expected labels, "
                    "pairs or triplets, which say what documents belong to a query."
                )
            if n_given > 1:
                raise ValueError(f"Got {n_given} of pairs, triplets and y, but expected one.")
            for name, part, of, there in (
                ("pair_weight", pair_weight, "pairs", pairs is not None),
                ("document_labels", document_labels, "y", y is not None),
                ("dissimilar", dissimilar, "pairs or triplets", y is None),
            ):
                if part is not None and not there:
                    raise ValueError(f"Got {name} without {of}, but expected both, or neither.")
            if y is not None:
                matches = _of_labels(y, document_labels, Q, documents, D, self.random_state)
            else:
                if triplets is not None:
                    if documents is None and isinstance(triplets, Triplets):
                        check_length(Q.shape[0], triplets.n_samples)
                    pairs, dissimilar = _of_triplets(triplets, dissimilar)
                how = {"weights": pair_weight, "apart": dissimilar}
                matches = Matches.of_pairs(pairs, Q.shape[0], n_documents, **how)
            if self.geometry == "cosine" and y is None:
                for X, rows, what in zip(
                    (Q, D), matches.pairs.T, ("query", "document"), strict=True
                ):
                    _refuse_zero(X, np.unique(rows), what)
            self._keep(Search(Q, D, matches, self).run(), Q)
        return self

    def _keep(self, found: Result, X: Any) -> None:
        """The maps as arrays like X, and what was found out on the way."""
        form, choice = found.form, found.choice
        maps = [np.eye(X.shape[1]) if L is None else L for L in (form.queries, form.documents)]
        self.components_, self.document_components_ = (
            like(np.ascontiguousarray(L), X) for L in maps
        )
        self.adapted_ = choice.best > 0
        self.recipe_ = {"map": form.name, "why": choice.why}
        self.candidates_ = found.means
        self._judged = found.queries
        self._before, self._after = (np.stack(part) for part in (found.before, found.after))
        self._plain_queries, self._plain_documents = form.queries is None, form.documents is None
        seen = self.evaluation_
        if self.n_components is not None and seen.gain[1].high < 0:
            old, new = seen.before.recall[1].value, seen.after.recall[1].value
            why = "" if self.adapted_ else ": no map is surely better than principal components"
            warn(
                f"Got n_components={self.n_components}, with which recall at one is {new:.3f} on "
                f"queries left out, beside {old:.3f} of all {X.shape[1]} dimensions{why}. Try more "
                "of them, or more pairs.",
                NotBetterWarning,
            )

    @property
    def evaluation_(self) -> Comparison:
        """Retrieval before and after, on queries left out, of which other queries chose the map."""
        check_is_fitted(self)
        return compared(Found(*self._before), Found(*self._after))

    def transform(self, X: Any) -> Any:
        """Map queries, or the rows of the one table.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Vectors.

        Returns
        -------
        array of shape (n_queries, n_components)
            The mapped vectors, of length one where the geometry is the cosine.
        """
        return self._mapped(X, "components_", "_plain_queries")

    def transform_documents(self, X: Any) -> Any:
        """Map documents, for an index.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            Vectors.

        Returns
        -------
        array of shape (n_documents, n_components)
            The mapped vectors. With side='query' these are the vectors as they are, but for their
            length where the geometry is the cosine.
        """
        return self._mapped(X, "document_components_", "_plain_documents")

    def places(self, X: Any) -> Any:
        """Where documents lie: what an index of them holds.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            Vectors.

        Returns
        -------
        array of shape (n_documents, n_components)
            What :meth:`transform_documents` gives.
        """
        return self.transform_documents(X)

    def _mapped(self, X: Any, name: str, of_plain: str) -> Any:
        if name not in vars(self):
            check_is_fitted(self)  # which takes longer than to map one query
        L, plain = getattr(self, name), getattr(self, of_plain)
        quick = self._quickly(X, L, plain)
        if quick is not None:
            return quick
        Z = _vectors(self, X, "X", reset=False)
        if not plain:
            L = in_library_of(L, Z)
            Z = map_points(Z, L if L.dtype == Z.dtype else like(to_numpy(L), Z))
        return directions(Z) if self.geometry == "cosine" else Z

    def _quickly(self, X: Any, L: Any, plain: bool) -> Any:
        """A few rows of NumPy, for whose checks others take longer; None where these are needed."""
        if not (type(X) is type(L) is np.ndarray and X.ndim == 2 and 0 < len(X) <= _FEW_ROWS):
            return None
        if X.shape[1] != L.shape[1] or X.dtype.char not in "fd":
            return None
        if hasattr(self, "feature_names_in_"):  # of which X has none: a warning
            return None
        with np.errstate(all="ignore"):
            Z = X.copy() if plain else X.astype(L.dtype, copy=False) @ L.T
            Z = Z.astype(X.dtype, copy=False)
            squares = np.einsum("ij,ij->i", Z, Z)
            if not all(_SMALL < square < 1 / _SMALL for square in squares.tolist()):
                return None  # NaN too
            return Z / np.sqrt(squares)[:, None] if self.geometry == "cosine" else Z

    @property
    def _one_map(self) -> bool:
        return self.side == "symmetric"

    def _embed_second(self, A: Any) -> Any:
        return self.transform_documents(A)

    def get_mahalanobis_matrix(self) -> Any:
        """The matrix ``M = LᵀL`` of the inner product, where queries and documents share the map.

        Returns
        -------
        array of shape (n_features, n_features)
            With the cosine, ``qᵀMd`` over the roots of ``qᵀMq`` and ``dᵀMd`` ranks documents.
        """
        if not self._one_map:
            raise ValueError(
                f"Got side={self.side!r}, with a map for queries and one for documents, but "
                "expected side='symmetric': components_ and document_components_ are the maps."
            )
        return super().get_mahalanobis_matrix()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check(self, Q: Any) -> None:
        """Refuse wishes that tables of this width cannot have."""
        if not isinstance(self.softmax, bool | np.bool_) and not is_auto(self.softmax):
            raise ValueError(f"Got softmax={self.softmax!r}, but expected 'auto', True or False.")
        r, wished = self.n_components, not is_auto(self.softmax) and self.softmax
        for wish, expected, there in (
            (f"n_components={r}", "None", r is not None),
            ("softmax=True", "'auto' or False", wished),
        ):
            if there and self.side == "query":
                why = "documents stay as they are, with all coordinates. Try side='symmetric'."
                raise ValueError(f"Got {wish} with side='query', but expected {expected}: {why}")
        if r is not None and r > Q.shape[1]:
            raise ValueError(
                f"Got n_components={r}, but expected at most {Q.shape[1]}, the number of features."
            )


def _vectors(adapter: Adapter, X: Any, what: str, *, reset: bool) -> Any:
    """Checked vectors; those of half precision in single."""
    width = getattr(adapter, "n_features_in_", None)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    dtype: Any = getattr(X, "dtype", None)
    if len(shape) == 1 and getattr(dtype, "kind", "") == "O":  # a column of vectors
        vectors = [np.asarray(vector) for vector in X]
        if len({vector.shape for vector in vectors}) > 1:
            raise ValueError(f"Got {what} of several lengths, but expected vectors of one length.")
        X = np.stack(vectors)
        shape, dtype = X.shape, X.dtype
    if not reset and what == "documents" and len(shape) == 2 and shape[1] != width:
        raise ValueError(
            f"Got queries of {width} features and documents of {shape[1]}, but expected vectors of "
            "one model: see kernelmetric.retrieval.Drift for vectors of two."
        )
    if getattr(dtype, "kind", "") == "f" and dtype.itemsize < 4:
        X = rough(X)
    return check_points(adapter, X, reset=reset)


def _refuse_zero(X: Any, rows: np.ndarray, what: str) -> None:
    Z = directions(take_rows(X, rows))
    lengths = to_numpy(namespace(Z).sum(Z * Z, axis=1))
    if not np.all(lengths > 0):
        raise ValueError(
            f"Got the zero vector as {what} {rows[np.argmin(lengths)]}, which has no direction, "
            "but expected others in pairs: leave it out, or try geometry='euclidean'."
        )


def _of_labels(y: Any, document_labels: Any, Q: Any, documents: Any, D: Any, seed: Any) -> Matches:
    """Matches of labels, one for each row of either table."""
    if (document_labels is None) != (documents is None):
        raise ValueError(
            "Got y with only one of documents and document_labels, but expected both, or neither: "
            "labels for the rows of both tables."
        )
    check_consistent_length(Q, y)
    if documents is not None:
        check_consistent_length(D, document_labels)
    return Matches.of_labels(y, document_labels, seed)


def _of_triplets(triplets: Any, dissimilar: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that match, and pairs that do not."""
    rows = triplets.rows if isinstance(triplets, Triplets) else np.asarray(triplets)
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"Got triplets of shape {rows.shape} and dtype {rows.dtype}, but expected integers of "
            "shape (n_triplets, 3): a query, its document, and one that is farther."
        )
    near, far = (np.unique(rows[:, [0, i]], axis=0) for i in (1, 2))
    return near, far if dissimilar is None else np.concatenate([far, np.asarray(dissimilar)])
