"""A kernel, a space and any learner make a kernel learner."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric._warnings import warn
from kernelmetric.compute import in_library_of, in_memory, require_memory
from kernelmetric.compute.watch import stage
from kernelmetric.graphs import are_tuples
from kernelmetric.inputs import check_weights, on_clusters, rows_of, to_host, unchanged_on_failure
from kernelmetric.kernelized import _arguments, _parts, _places, _supervision
from kernelmetric.kernelized._copies import Copies
from kernelmetric.kernelized._costs import Costs, fit_bytes, rows_in_time
from kernelmetric.kernelized._delegation import NewPoints, in_dtype_of, inner_has, placed_among
from kernelmetric.kernelized._folded import FoldedMap, can_fold
from kernelmetric.kernelized._recipe import Recipe, ShowsRecipe, check_recipe, choose, used
from kernelmetric.kernelized._supervision import Supervision
from kernelmetric.learners._progress import (
    CallbackSupportMixin,
    propagated_callbacks,
    with_callbacks,
)
from kernelmetric.metric import Metric
from kernelmetric.spaces._base import own


@dataclass(eq=False, repr=False)
class Kernelized(CallbackSupportMixin, ShowsRecipe, NewPoints, Costs, BaseEstimator):
    """Any learner, run in the feature space of a kernel.

    The points become coordinates of the kernel's feature space (kernel PCA, section 3 of [1]_),
    and the learner is run on them unchanged. Where the learner's objective depends on its data
    only through inner products, the optimum is that of its kernel version (Theorems 1 and 2).

    Parameters
    ----------
    learner : estimator
        A learner of this library, or any scikit-learn-style estimator, also one that predicts,
        clusters or fits on tuples of points; see :func:`check_kernelizable`.
    kernel : str, Kernel or callable, default='auto'
        'auto' is :class:`LeaveOneOutRidge`, without y the RBF of median width; 'aligned' is
        :class:`KernelAlignment`. Otherwise a kernel; a name such as 'rbf', 'poly', 'linear',
        'laplacian', 'cosine', 'precomputed' or any of scikit-learn's; or a function of two blocks.
    space : Space or 'auto', default='auto'
        Where coordinates come from: :class:`KPCA`, :class:`Nystroem`, :class:`RandomFeatures` or
        :class:`KernelTrick`, without a kernel of its own. 'auto' is
        :class:`~kernelmetric.selection.RidgeKPCA` where the learner needs labels, and
        :class:`~kernelmetric.spaces.PairKPCA` for :class:`IdealizedKernel` from pairs of 101 to
        2,000 points. Otherwise it is full-rank KPCA up to 2,000 points, KPCA of rank 256 up to
        10,000, and 1,000 landmarks reduced to rank 256 beyond.
    neighbors : {'feature', 'input'}, default='feature'
        Where learners that look for neighbours look: in the feature space, or among X itself.
    recipe : Recipe, default=None
        The ``recipe_`` of a fitted metric. What is "auto" here is taken from it, and its kernel in
        place of one that learns, or of the same formula with something left to the data, such as
        ``RBF()``. Any other kernel that you write stays.
    random_state : int, RandomState or None, default=None
        For the automatic space; :class:`~kernelmetric.selection.RidgeKPCA` has 0 for None.

    Attributes
    ----------
    recipe_ : Recipe
        What "auto" became, with a sentence on each: ``print(metric.recipe_)``.
    kernel_ : Kernel
        The kernel, bound to the training points.
    space_ : Space
        The fitted space.
    learner_ : estimator
        The fitted learner.
    components_ : array of shape (n_components, rank)
        The learner's map, on the coordinates of the space.
    signature_ : array of shape (n_components,) or None
        The learner's signs of the rows of ``components_``, where its metric is indefinite.
    embedding_ : array of shape (n_samples, n_components) or None
        The training rows that have weight in learned coordinates, each where it would be had it
        been left out. None where the space is not made of labels: :meth:`transform` tells.
    n_neighbors_ : int or None
        How many neighbours predict rows of ``embedding_`` best that are left out.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of str
        Names of the features seen in fit, where X had any.
    schema_ : TableSchema
        What the columns of X are, where X was a table of names, dates or gaps.

    See Also
    --------
    MetricClassifier : Classes and probabilities in a learned metric.
    KernelizedCV : The kernel chosen by cross-validation.
    check_kernelizable : Whether a learner may go in.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010).
    .. [2] Zhang, Nie and Xiang, "A general kernelization framework for learning algorithms based
       on kernel PCA", Neurocomputing 73 (2009).

    Examples
    --------
    Two rings, one inside the other: no linear map makes the nearest neighbour right, a
    polynomial kernel does.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from kernelmetric import Kernelized, LMNN, Polynomial
    >>> from kernelmetric.datasets import make_fig2_circles
    >>> X, y = make_fig2_circles(40, random_state=0)
    >>> X_new, y_new = make_fig2_circles(200, random_state=1)
    >>> def accuracy(metric):
    ...     knn = KNeighborsClassifier(1).fit(metric.fit_transform(X, y), y)
    ...     return knn.score(metric.transform(X_new), y_new)
    >>> accuracy(LMNN()) < 0.95
    True
    >>> accuracy(Kernelized(LMNN(), kernel=Polynomial(degree=2, coef0=0))) > 0.97
    True
    """

    learner: Any
    kernel: Any = "auto"
    space: Any = "auto"
    neighbors: str = "feature"
    _: KW_ONLY
    recipe: Recipe | None = None
    random_state: Any = None

    @with_callbacks
    def fit(self, X, y=None, *, similar=None, dissimilar=None, tuples=None, **fit_params) -> Self:
        """Fit kernel, space and learner.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; a data frame, see :class:`~kernelmetric.kernels.TableSchema`; the Gram matrix
            for a precomputed kernel; (n_tuples, t, n_features) for a learner from tuples.
        y : array-like of shape (n_samples,), default=None
            Labels, for learners that want them; those of the tuples, where there are tuples.
        similar, dissimilar : array-like of shape (n_pairs, 2), default=None
            Row numbers of pairs, for learners that take pairs.
        tuples : array-like of shape (n_tuples, t), default=None
            Row numbers of tuples, for learners that fit on tuples of points.
        **fit_params : dict
            What else the learner's ``fit`` takes. A ``sample_weight`` also counts in the space and
            in the choice of the kernel; the learner's ``class_weight`` counts in that choice.

        Returns
        -------
        Kernelized
            The fitted metric.
        """
        fit_params |= {"similar": similar, "dissimilar": dissimilar, "tuples": tuples}
        self._fit(X, y, **fit_params)
        return self

    @available_if(inner_has("fit_predict"))
    @on_clusters
    def fit_predict(self, X: Any, y: Any = None, **fit_params) -> Any:
        """Fit, and return what the learner says of the training points: clusters, or outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,), default=None
            Labels.
        **fit_params : dict
            As in :meth:`fit`.

        Returns
        -------
        array of shape (n_samples,)
            What the learner's own ``fit_predict`` gives.
        """
        _arguments.refuse_zeros(fit_params.get("sample_weight"), _num_samples(X))
        return self._fit(X, y, how="fit_predict", **fit_params)[1]

    @with_callbacks
    def fit_transform(self, X: Any, y: Any = None, **fit_params) -> Any:
        """Fit, and return the training points in the learned coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,), default=None
            Labels.
        **fit_params : dict
            As in :meth:`fit`.

        Returns
        -------
        array of shape (n_samples, n_components)
            As :meth:`transform` gives them, or where there is none, as the learner does. In the
            automatic space of labelled points, each row is where it would be had it not been in
            the table: use these coordinates for training rows alone.
        """
        X = _parts.read_points(self, X)
        if not hasattr(self.learner, "transform"):
            _arguments.refuse_zeros(fit_params.get("sample_weight"), _num_samples(X))
            Z, E = self._fit(X, y, how="fit_transform", **fit_params)
            return in_dtype_of(Z, E)
        Z, _ = self._fit(X, y, **fit_params)
        if are_tuples(X):  # of which no point is a row
            return self.transform(X)
        E = self.embedding_
        if E is None:
            with config_context(transform_output="default"):
                E = in_dtype_of(Z, self.learner_.transform(Z))
        else:
            E = own(E)
        if Z.shape[0] == _num_samples(X):
            return E
        weights = check_weights(fit_params["sample_weight"], _num_samples(X))
        return placed_among(self, X, np.flatnonzero(weights), E)

    def transform(self, X: Any) -> Any:
        """Map points to the coordinates in which Euclidean distance is the learned one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; for a precomputed kernel, kernel values with the training points.

        Returns
        -------
        array of shape (n_samples, n_components)
            One block of rows at a time is in memory besides the result.
        """
        check_is_fitted(self)
        given, X = X, self.kernel_.points(X)
        if can_fold(self.space_, self.learner_) and not are_tuples(X):
            E = self._folded(self.space_, self.components_, self._checked(X))
        else:
            E = self._apply(lambda Z: in_dtype_of(Z, self.learner_.transform(Z)), X)
        return E if X is given else in_library_of(E, given)  # objects may be those of a tensor

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reach the learner.

        Returns
        -------
        MetadataRouter
            ``fit`` of this class to ``fit`` of the learner.
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="fit_transform", callee="fit")  # what a pipeline calls
        return router.add(learner=self.learner, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return _parts.metric_tags(tags, self.learner, self.learner, lambda: [self.kernel])

    def _fit(self, X: Any, y: Any, *, how: str = "fit", **given) -> tuple[Any, Any]:
        """Fit everything; coordinates of the training points, and what the learner returned."""
        X = _parts.read_points(self, X)
        compared = _supervision.is_compared(X, given.get("tuples"), given)
        kernel = _parts.check_parts(self, y, compared=compared)
        check_recipe(self.recipe)
        interrupted, name = None, f"Kernelized({type(self.learner).__name__})"
        verbose = getattr(self.learner, "verbose", False) is True
        with unchanged_on_failure(self), stage(name, shown=verbose):
            X, supervision = Supervision.of(self.learner, kernel, X, y, given)
            table, schema = _parts.fit_points(self, X, kernel)
            copies = supervision.copies(self, table, kernel) if how == "fit" else None
            X, supervision = supervision.without_copies(table, copies)
            supervision = supervision.for_learner(self.learner, X.shape[0])
            recipe = choose(self, X.shape[0], supervision)
            elsewhere = not in_memory(X)
            require_memory(
                0 if elsewhere else fit_bytes(recipe, *X.shape),
                f"{name} on {X.shape[0]} points",
                "try a space of lower rank, such as KPCA(50) or Nystroem(500, n_components=50).",
            )
            kernel = _parts.with_columns(recipe.kernel, schema)
            space = clone(recipe.space).set_params(kernel=kernel)
            some = None if elsewhere else rows_in_time(recipe, X, supervision)
            Z = _supervision.fit_coordinates_of(space, X, supervision, some)
            arguments = _arguments.learner_arguments(self, space, X, supervision.given)
            if not isinstance(self.learner, Metric):
                Z = to_host(Z)
            y = supervision.y
            data: list[Any] = [Z, y]
            if supervision.tuples is not None:
                T = _supervision.coordinates_of_tuples(Z, supervision.tuples)
                data = [T] if y is None else [T, y]
            else:
                *data, arguments = _arguments.boundary_part(self.learner, space, Z, y, arguments)
            learner, result = clone(recipe.learner), None
            try:
                naming = _arguments.naming(supervision.given, learner)
                with propagated_callbacks(self, learner, X, y), naming:
                    result = getattr(learner, how)(*data, **arguments)
            except KeyboardInterrupt as stop:
                if not hasattr(learner, "components_"):
                    raise
                interrupted = stop  # the learner kept the best map so far, and so do we
            self.kernel_, self.space_, self.learner_ = space.kernel_, space, learner
            self._keep_places(table, X, Z, supervision, copies)
            self.recipe_ = used(recipe, space, learner, X.shape[0], schema, some, copies)
            self._folded = FoldedMap()
        if interrupted is not None:
            raise interrupted
        return rows_of(Z, None if copies is None else copies.groups), result

    def _keep_places(
        self, table: Any, X: Any, Z: Any, supervision: Supervision, copies: Copies | None
    ) -> None:
        """Keep where rows of the table lie, in a space that places them as if they were left out.

        X are its rows without copies, which share the place of the first.
        """
        self.embedding_ = self.n_neighbors_ = self._training_table = None
        knows = getattr(self.space_, "knows_labels", False) and isinstance(self.learner_, Metric)
        known = _places.fingerprint(table) if knows else None
        if known is None:
            return
        with config_context(transform_output="default"):
            E = in_dtype_of(Z, self.learner_.transform(Z))
        self.n_neighbors_ = _places.chosen_voters(E, supervision.y, supervision.weights)
        if not _parts.is_auto(self.kernel):
            said = _places.worse_than_kernel(self.kernel_, X, E, supervision.y, supervision.weights)
            if said is not None:
                warn(said, _places.NotBetterWarning)
        self.embedding_, self._training_table = E, known
        if copies is not None:  # among all rows, a neighbour comes with its copies
            self.embedding_ = rows_of(E, copies.groups)
            self.n_neighbors_ = round((self.n_neighbors_ or 1) * len(self.embedding_) / len(E))

    def _streams(self) -> str | None:
        """When a fit goes through the rows of many machines: its space, and then its learner."""
        if not all(hasattr(part, "_streams") for part in (self.space, self.learner)):
            return None
        return self.learner._streams() if self.space._streams() else None

    @cached_property
    def _folded(self) -> FoldedMap:  # of a metric that was not fitted, but copied or loaded
        return FoldedMap()

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in super().__getstate__().items() if name != "_folded"}


# scikit-learn wraps two of these when the class is made, and the wrapper would hide the condition.
_NEEDS = {
    "transform": ["transform"],
    "fit_transform": ["transform", "fit_transform"],
    "inverse_transform": ["transform"],
}
for _method, _needs in _NEEDS.items():
    setattr(Kernelized, _method, available_if(inner_has(*_needs))(getattr(Kernelized, _method)))
