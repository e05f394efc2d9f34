"""What every space can do: learn a basis, and give the coordinates of points in it."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kernelmetric import compute, inputs
from kernelmetric.compute.reductions import out_of_range
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.inputs._weights import refuse_partial_gram
from kernelmetric.kernels import Kernel, as_kernel, refuse_objects
from kernelmetric.kernels._names import with_tags_of
from kernelmetric.spaces._pre_images import PreImages

BLOCK_BYTES = 2**25  # features of one block of rows: past this, larger blocks are not faster


class Space(
    PreImages, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, inputs.DeviceMixin
):
    """Base class of spaces: z(x) = f(x)ᵀ P - offset.

    A subclass defines ``_check_parameters()``, ``_peak_bytes`` and ``_learn(X, y)``, which sets
    ``anchors_`` (or overrides ``_features``), ``projection_`` and ``offset_``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    basis_gram_ : None or array of shape (n, n)
        Gram matrix of the basis; None when it is orthonormal.
    gram_ : None or Gram
        The same as an object that computes with it.
    """

    kernel: Any
    kernel_: Kernel
    anchors_: Any
    projection_: Any
    offset_: Any
    basis_gram_: Any
    gram_: Any = None
    learns_from = "labels"  # which the kernel may see; or pairs
    takes_weights = True
    knows_labels = False  # whether coordinates are made of labels
    _advice = "try Nystroem(500), which needs no n × n array."  # where memory does not suffice

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the basis.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training points, or their Gram matrix when the kernel is precomputed.
        y : array-like of shape (n_samples,), default=None
            Passed to the kernel's ``bind``; ignored by kernels that need no labels.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the mean and in the directions; zero leaves it out.

        Returns
        -------
        self
            The fitted space.
        """
        with inputs.unchanged_on_failure(self):
            X, y = self._with_weights(self._checked(X), y, sample_weight)
            self._learn(self._begin(X, y), y)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Learn the basis and return the coordinates of the training points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training points, or their Gram matrix when the kernel is precomputed.
        y : array-like of shape (n_samples,), default=None
            Passed to the kernel's ``bind``.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the mean and in the directions; zero leaves it out.

        Returns
        -------
        array of shape (n_samples, rank_)
            As ``transform`` gives them; in a space that knows labels, as if the row was left out.
        """
        with inputs.unchanged_on_failure(self):
            X = self._checked(X)
            kept, y = self._with_weights(X, y, sample_weight)
            Z = self._fit_checked(kept, y)
            if kept is X:
                return Z
            placed = self._coordinates(X)  # rows without weight are new points
            placed[inputs.rows_and_weights(sample_weight, X)[0]] = Z
            return placed

    def transform(self, X: Any) -> Any:
        """Coordinates of points, one block of rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; with a precomputed kernel, rows of kernel values with the training points.

        Returns
        -------
        array of shape (n_samples, rank_)
            Coordinates, in the array library and dtype of X.
        """
        check_is_fitted(self)
        X = self.kernel_.points(X)
        X = inputs.check_points(self, X, reset=False, accept_sparse=self.kernel_.accepts_sparse)
        return self._coordinates(X)

    def estimate_memory(self, n_samples: int, n_features: int) -> int:
        """Bytes that a fit takes at its peak, besides the data.

        Parameters
        ----------
        n_samples : int
            Number of training points.
        n_features : int
            Number of features.

        Returns
        -------
        int
            An estimate, within a factor of two.
        """
        self._check_parameters()
        fit, bind = self._peak_bytes(n_samples, n_features), _bind_bytes(n_samples, n_features)
        return int(max(fit, bind))

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} must define _peak_bytes.")

    def _bytes_in_full(self, n_samples: int, n_features: int) -> float:
        """How much of the peak are arrays that no block size makes smaller: all, or less."""
        return self._peak_bytes(n_samples, n_features)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return with_tags_of(lambda: [as_kernel(self.kernel)], tags)

    @property
    def _n_features_out(self) -> int:
        return int(self.projection_.shape[1])

    def _streams(self) -> str | None:
        """When a fit goes through the rows of many machines: "always", "at need" or never."""
        return None

    def _checked(self, X: Any) -> Any:
        kernel = as_kernel(self.kernel)
        self._check_parameters()  # before anything is computed from them
        refuse_objects(kernel, X)
        X, sparse = kernel.points(X), kernel.accepts_sparse
        return inputs.check_points(self, X, reset=True, accept_sparse=sparse, ensure_min_samples=2)

    def _with_weights(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """The rows that have weight, and their labels with the weights."""
        rows, weights = inputs.rows_and_weights(sample_weight, X)
        refuse_partial_gram(rows, as_kernel(self.kernel).pairwise)
        if y is not None:
            check_consistent_length(X, y)
            y = inputs.rows_of(y, rows)
        return inputs.rows_of(X, rows), y if weights is None else inputs.WeightedLabels(y, weights)

    def _fit_checked(self, X: Any, y: Any) -> Any:
        """``fit_transform`` of points that the caller has checked."""
        coordinates = self._learn(self._begin(X, y), y)
        return as_finite(coordinates(), X.dtype)

    def _begin(self, X: Any, y: Any) -> Any:
        self.n_features_in_ = X.shape[1]
        compute.require_memory(
            self.estimate_memory(*X.shape),
            f"{type(self).__name__} of {X.shape[0]} points",
            self._advice,
            in_full=self._bytes_in_full(*X.shape),
        )
        self.kernel_ = as_kernel(self.kernel).bind(X, y)
        self.basis_gram_ = None
        return X

    def _check_parameters(self) -> None:
        """Refuse absurd parameters before anything is computed from them."""

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        """Learn from X and y; return a function that gives the coordinates of X."""
        raise NotImplementedError(f"{type(self).__name__} must define _learn(X, y).")

    def _features(self, X: Any) -> Any:
        return self.kernel_(X, compute.in_library_of(self.anchors_, X))

    def _coordinates(self, X: Any) -> Any:
        return self._affine(X, self.projection_, self.offset_)

    def _affine(self, X: Any, P: Any, offset: Any) -> Any:
        """The map f(x)ᵀ P - offset of points that are checked, one block of rows at a time."""

        def embed(block: Any) -> Any:
            Z = times(self._features(block), P)
            return Z - compute.in_library_of(offset, Z)

        return embedded(embed, X, P.shape[0])


def _bind_bytes(n_samples: int, n_features: int) -> float:
    """Bytes to find the width of a radial kernel: a chunk of differences, distances of pairs."""
    pairs = n_samples * (n_samples - 1) / 2
    pairs = pairs if pairs <= 80_000 else 20_000
    return min(20 * pairs * n_features, 2e6) + 24 * pairs


def embedded(embed: Callable[[Any], Any], X: Any, n_inner: int) -> Any:
    """Coordinates of points by blocks of rows, in the dtype of X; refused where not finite."""

    def part(rows: slice) -> Any:
        with np.errstate(all="ignore"):  # what overflows is reported, in a sentence
            return as_finite(embed(X[rows, :]), X.dtype)

    return compute.map_rows(part, X.shape[0], **block_size(X, n_inner))


def as_finite(Z: Any, dtype: Any) -> Any:
    """Coordinates in a dtype, refused where they are NaN, infinite or beyond its range."""
    if Z.dtype != dtype:
        with np.errstate(all="ignore"):
            Z = compute.namespace(Z).astype(Z, dtype)
    if not compute.all_finite(Z):
        raise out_of_range(f"kernel values or coordinates that are not finite numbers of {dtype}")
    return Z


def block_size(X: Any, n_inner: int) -> dict[str, int]:
    """What a row takes, three arrays of its inner columns at once, and how many fit the cache."""
    most = max(256, compute.backend_of(X).tile_bytes(BLOCK_BYTES, X) // (8 * max(n_inner, 1)))
    return {"bytes_per_row": 8 * (3 * n_inner + X.shape[1]), "most": most}


def times(F: Any, P: Any) -> Any:
    """Matrix product F P in the wider of the two dtypes."""
    P = compute.in_library_of(P, F)
    xp = compute.namespace(F, P)
    dtype = xp.result_type(F, P)
    return xp.astype(F, dtype, copy=False) @ xp.astype(P, dtype, copy=False)


def own(points: Any) -> Any:
    """A copy to keep: the original belongs to the caller, who may change it."""
    if compute.is_sparse(points) or inputs.is_objects(points):
        return points.copy()
    return compute.namespace(points).asarray(points, copy=True)


_INDEFINITE = 1e-6  # negative beyond this share of λmax is no round-off,
_TIMES_ROUNDING = 8e3  # and beyond so many times the rounding of points
_ROUND_OFF = 8.0  # of eps, for an entry that is a sum of few terms


def round_off(trace: float, n_features: int, *, eps: float) -> float:
    """How large the rounding of a Gram matrix, before it is centred, may make an eigenvalue."""
    # An entry is a sum over features, wrong by some eps √d of √(k_ii k_jj).
    return max(_ROUND_OFF, float(np.sqrt(n_features))) * eps * abs(trace)


def refuse_indefinite(smallest: float, largest: float, *, rounding: float, eps: float) -> None:
    """Refuse a Gram matrix with an eigenvalue that is negative beyond :func:`round_off`."""
    if smallest < -max(max(_INDEFINITE, _TIMES_ROUNDING * eps) * largest, rounding):
        raise ValueError(
            f"Got a Gram matrix whose smallest eigenvalue is {smallest:.3g} (the largest is "
            f"{largest:.3g}), but expected a positive semi-definite kernel: try another "
            "kernel, or add a multiple of the identity to a precomputed one."
        )


def check_n_components(value: Any) -> None:
    """Refuse what is neither None, a positive integer nor a fraction between 0 and 1."""
    whole = isinstance(value, Integral)
    count = whole and not isinstance(value, bool) and value >= 1
    share = isinstance(value, float | np.floating) and bool(0 < value < 1)
    if not (value is None or count or share):
        raise ValueError(
            f"Got n_components={value!r}, but expected None (full rank), a positive integer, or a "
            "fraction of the variance between 0 and 1: try n_components=None."
        )


# A fraction of the largest eigenvalue, or what rounding leaves.
CUT_OFF = Numbers(low=0, high=1, below=True, words=(None,))


def n_kept(values: np.ndarray, cut_off: float, n_components: Any, total: float) -> int:
    """Count the descending eigenvalues that ``n_components`` asks for and the cut-off allows."""
    rank = int(np.sum(values > cut_off))
    if n_components is None:
        return rank
    if isinstance(n_components, Integral):
        return min(rank, int(n_components))
    reached = np.cumsum(values[:rank]) >= (1 - 1e-12) * n_components * total  # but for rounding
    return int(np.argmax(reached)) + 1 if reached.any() else rank


def refuse_rank_zero(n_samples: int, kernel: Kernel) -> None:
    """Raise the error for points that all coincide in the feature space."""
    raise ValueError(
        f"Got {n_samples} points that coincide in the feature space of {kernel!r}, but expected "
        "at least two different ones: try rescaling the features or another kernel."
    )
