"""What learners share: checks, the linear map, and fits that leave no mixture of two."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kernelmetric import inputs
from kernelmetric.compute import bytes_at_once, in_memory, like, namespace, require_memory, to_numpy
from kernelmetric.compute.reductions import map_points
from kernelmetric.inputs._parameters import COUNT_OR_NONE, check_parameters
from kernelmetric.learners._checks import check_spread, keep_time, take_weights
from kernelmetric.learners._users import missing, refuse_unknown, score_of
from kernelmetric.metric import Metric
from kernelmetric.spaces import Gram

_LAST_MAP = ("components_", "signature_")  # where a warm start begins
BLOCK_BYTES = 8 * 2**20  # a block of rows × n, as the passes over all pairs have it


class Learner(Metric, BaseEstimator):
    """A linear metric learner: ``fit`` ends in ``components_``, a map L of shape (r, d).

    A fit that is refused or fails leaves the learner as it was before, and one that succeeds
    leaves nothing of an earlier one.
    """

    learns_from = "labels"  # or targets, pairs, comparisons, chunks; points, where labels only help
    _allowed: ClassVar[dict[str, Any]] = {"n_components": COUNT_OR_NONE}
    _passes: Any = 0.7  # over all pairs of rows, before a fit is worth anything; 0 for no pairs
    _others: int | None = None  # rows that each meets in a pass; None for all
    _least_rows = 2_000  # that a time limit leaves to learn from
    _takes_numbers = False  # targets, one or several for each point
    _blocks = 1  # that one thread holds at a time

    def __init_subclass__(cls, **options: Any) -> None:
        if "fit" in vars(cls):
            cls.fit = _all_or_nothing(cls.fit)
        super().__init_subclass__(**options)

    def __new__(cls, *_: Any, **given: Any) -> Any:
        refuse_unknown(cls, given)
        return super().__new__(cls)

    if not TYPE_CHECKING:  # to which every name would be known

        def __getattr__(self, name: str) -> Any:
            raise missing(self, name)

    def transform(self, X: Any) -> Any:
        """Map points to the coordinates in which Euclidean distance is the learned one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples, n_components)
            ``X Lᵀ``.
        """
        check_is_fitted(self)
        Z, L = self._coordinates(X), self.components_
        # It may have been fitted in another array library.
        return map_points(Z, L if namespace(L) is namespace(Z) else like(to_numpy(L), Z))

    def inverse_transform(self, Z: Any) -> Any:
        """Points of given coordinates.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Learned coordinates.

        Returns
        -------
        array of shape (n_samples, n_features)
            The shortest points that :meth:`transform` takes to Z. Where the map keeps all
            directions there is only one; otherwise what it left out of a point is zero.
        """
        check_is_fitted(self)
        L = to_numpy(self.components_)
        back = np.linalg.pinv(L).T
        return like(inputs.check_coordinates(Z, len(L)) @ back, self.components_)

    def score(self, X: Any, y: Any = None) -> float:
        """How well the learned distance tells the labels of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, at least two; or tuples of points, of shape (n_tuples, 2 to 4, n_features).
        y : array-like of shape (n_samples,), default=None
            Labels, or numbers; for pairs 1 where they are similar and -1 where not.

        Returns
        -------
        float
            The share of rows whose three nearest other rows of X have the same label; of numbers
            the coefficient of determination of their mean. For pairs the area under the ROC
            curve, for other tuples the share in the right order.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import cross_val_score
        >>> from kernelmetric import LDA
        >>> cross_val_score(LDA(), *load_iris(return_X_y=True)).mean().round(2)
        np.float64(1.0)
        """
        return score_of(self, X, y)

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
            An estimate, within a factor of two; of learners from pairs, for pairs from labels.
        """
        self._check_parameters()  # before anything is computed from them
        return int(self._fit_bytes(n_samples, n_features))

    def _fit_bytes(self, n_samples: int, n_features: int) -> float:
        r = int(getattr(self, "n_components", None) or n_features)
        # copies of X and its images, L with twenty vectors of L-BFGS, blocks of rows × n
        arrays = 4 * n_samples * (n_features + r) + 25 * n_features * r
        blocks = bytes_at_once(self._blocks * BLOCK_BYTES)
        return 8 * arrays + min(blocks, 8 * n_samples**2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.learns_from in ("labels", "targets")
        tags.target_tags.multi_output = self._takes_numbers
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _streams(self) -> str | None:
        """When a fit goes through the rows of many machines: "always", "at need" or never."""
        return None

    def _meets(self, n_samples: int, n_features: int) -> int:
        """How many rows each meets in a pass."""
        return min(n_samples, self._others or n_samples)

    def _products(self, n_samples: int, n_features: int) -> float:
        """Multiplications that a fit takes beside its passes, before it is worth anything."""
        return 0.0

    def _coordinates(self, X: Any) -> Any:
        """The points as the map takes them."""
        return inputs.check_points(self, X, reset=False)

    def _check_training(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Validated points, and class codes."""
        X = self._check_points(X)
        return X, inputs.check_labels(y, X)

    def _check_points(self, X: Any) -> Any:
        X = inputs.check_points(self, X, reset=True, ensure_min_samples=2)
        if not in_memory(X):
            return X
        check_spread(X)
        inputs.warn_of_far_cells(X)
        self._location = inputs.location_of(X)
        if hasattr(self, "n_components"):
            self._check_n_components(X.shape[1])
        self._require_memory(X)
        return X

    def _require_memory(self, X: Any) -> None:
        require_memory(
            self.estimate_memory(*X.shape),
            f"{type(self).__name__} on {X.shape[0]} points with {X.shape[1]} features",
            "reduce the features first (PCA, or a space of lower rank), or set n_components.",
        )

    def _check_parameters(self) -> None:
        """Refuse absurd parameters, before the data are looked at."""
        check_parameters(self)

    def _check_n_components(self, n_features: int) -> int:
        r = self.n_components
        if r is None:
            return n_features
        if r > n_features:
            raise ValueError(
                f"Got n_components={r}, but expected at most {n_features}, the number of features."
            )
        return int(r)

    def _store(self, L: np.ndarray, X: Any) -> None:
        """Keep the map, in the dtype and library of the data; never with a NaN in it."""
        if not np.all(np.isfinite(L)):
            raise ValueError(
                f"{type(self).__name__} ended in a map with NaN or infinity, so nothing was kept: "
                "the features probably differ too much in scale. Standardize them first."
            )
        # A view's strides would send it to another routine than its copy; torch takes none < 0.
        self.components_ = like(np.ascontiguousarray(L), X)


class FromLabels:
    """The ``fit`` of learners that need no more than points and their labels or targets."""

    _fit: Callable[..., Any]

    def fit(self, X: Any, y: Any, *, gram: Any = None, sample_weight: Any = None) -> Any:
        """Learn the map from labelled points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Class labels; numbers to predict, for learners that take them.
        gram : array of shape (n_features, n_features), default=None
            Gram matrix of the basis, where X are coordinates in one that is not orthonormal.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts in the objective, zero to leave it out.

        Returns
        -------
        object
            The fitted learner.
        """
        self._fit(X, y, gram, sample_weight)
        return self


def _all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A fit whose results are all of one call: of this one, or, where it fails, of the last."""

    @wraps(fit)
    def whole(self: Any, *args: Any, **options: Any) -> Any:
        refuse_unknown(type(self), options, fit)
        self._check_parameters()
        last, interrupted = vars(self).get("components_"), None
        with inputs.unchanged_on_failure(self):
            self.__dict__.pop("_location", None)
            for name in list(vars(self)):
                kept = name in _LAST_MAP and getattr(self, "warm_start", False)
                if name.endswith("_") and not name.startswith("_") and not kept:
                    delattr(self, name)
            try:
                given = signature(fit).bind(self, *args, **options)
                take_weights(self, given.arguments)
                keep_time(self, given.arguments)
                fit(*given.args, **given.kwargs)
            except KeyboardInterrupt as stop:  # which leaves a map of this call where there is one
                if vars(self).get("components_", last) is last:
                    raise
                interrupted = stop
        if interrupted is not None:
            raise interrupted
        return self

    return whole


def as_gram(gram: Any) -> Gram | None:
    """A Gram object from what a caller passed: None, an array, or a Gram."""
    return gram if gram is None or isinstance(gram, Gram) else Gram(np.asarray(gram))


def frobenius(L: np.ndarray, gram: Gram | None) -> tuple[float, np.ndarray]:
    """Squared Hilbert-Schmidt norm of the map, ``tr(L G Lᵀ)``, and its gradient."""
    return (float(np.sum(L * L)), 2.0 * L) if gram is None else gram.penalty(L)
