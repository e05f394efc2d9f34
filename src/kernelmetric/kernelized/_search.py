"""The kernel and the rank by cross-validation, with the work that candidates share done once."""

import time
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import GridSearchCV, check_cv
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, _num_samples

from kernelmetric.compute import require_memory, to_numpy
from kernelmetric.compute.watch import told_once
from kernelmetric.inputs import rows_of
from kernelmetric.kernelized import _candidates
from kernelmetric.kernelized._arguments import counted_rows, search_arguments
from kernelmetric.kernelized._candidates import listed_kernels, listed_ranks
from kernelmetric.kernelized._costs import search_bytes
from kernelmetric.kernelized._delegation import BestMetric, Predictions, inner_has, placed_among
from kernelmetric.kernelized._folds import Fold, Trial, all_outcomes, candidate, on_cluster
from kernelmetric.kernelized._kernelized import Kernelized
from kernelmetric.kernelized._parts import is_auto, metric_tags, read_points
from kernelmetric.kernelized._recipe import ShowsRecipe, given_space, space_for
from kernelmetric.learners._progress import CallbackSupportMixin, Iterations, with_callbacks
from kernelmetric.selection import LeaveOneOutRidge, automatic_kernel

_USUAL_FOLDS = 5  # where a splitter does not say how many there are


@dataclass(eq=False, repr=False)
class KernelizedCV(CallbackSupportMixin, ShowsRecipe, Predictions, BestMetric, BaseEstimator):
    """Kernelized, with its kernel and rank chosen by cross-validation.

    It finds what ``GridSearchCV`` over :class:`Kernelized` and a classifier would find. In each
    fold it computes distances once for all radial kernels, and eigenvectors once for all ranks of a
    kernel. After ``fit`` it is the metric of the best candidate, learned again from all points, and
    a classifier by the nearest neighbour in that metric.

    Parameters
    ----------
    learner : estimator
        A learner of this library, or any estimator with ``fit`` and ``transform``.
    kernels : list, str, Kernel or callable, default=None
        The candidates: a list of anything :class:`Kernelized` takes as its kernel, or one of
        them. Two names stand for families: 'rbf', which None means too, for the 21 widths
        σ = 1000, ..., 0.01 of [1]_, and 'poly' for the polynomial kernels of degrees 1 to 5.
    cv : int, splitter or iterable, default=3
        The folds, as in ``GridSearchCV``: an integer means stratified folds without shuffling.
    n_components : int, None or list of them, default=None
        The ranks: how many coordinates of the kernel's space the learner sees. None is as many
        as the space gives. In a list, ranks of a given kernel are those of :class:`KPCA`.
    space : Space or 'auto', default='auto'
        Where coordinates come from, as in :class:`Kernelized`; not :class:`KernelTrick`, whose
        coordinates cannot be cut.
    estimator : estimator, default=None
        What is fitted on the learned coordinates and scored; None is the nearest neighbour, or in
        the automatic space the vote of as many as the metric chose, ``n_neighbors_``. Where the
        learner learns from numbers, these are averaged.
    scoring : str or callable, default=None
        As in ``GridSearchCV``, one score; None is the estimator's own.
    n_jobs : int, default=None
        Processes that share the folds and kernels, and the memory budget. Inside
        ``joblib.parallel_config(backend="dask", scatter=[X, y])`` they are those of a cluster.
    refit : bool, default=True
        Whether to learn the best candidate again from all points.
    error_score : 'raise' or float, default=nan
        Score of candidates that fail, with a warning; 'raise' stops at the first.
    random_state : int, RandomState or None, default=None
        For the automatic space.
    verbose : bool, default=False
        Show a progress bar on standard error; its loss is minus the best score of a fold so far.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        As in ``GridSearchCV``. The time of shared work is counted with the first candidate that
        needs it.
    best_index_ : int
        Row of the best candidate; the first of equals wins.
    best_params_ : dict
        Its kernel and n_components.
    best_score_ : float
        Its mean score, the best of many: new points score a little less.
    best_estimator_ : Kernelized
        The metric, learned from all points. Only with ``refit``, as all that follows.
    estimator_ : estimator
        Fitted on the learned coordinates of all points.
    components_ : array of shape (n_components, rank)
        The learner's map, on the coordinates of the space.
    refit_time_ : float
        Seconds it took.
    n_splits_ : int
        Number of folds.
    scorer_ : callable
        What scored.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of str
        Names of the features seen in fit, where X had any.

    See Also
    --------
    Kernelized : The kernel chosen by points left out, which is faster.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 5.

    Examples
    --------
    >>> from kernelmetric import DNE
    >>> from kernelmetric.datasets import make_fig2_circles
    >>> from kernelmetric.kernelized import KernelizedCV
    >>> X, y = make_fig2_circles(80, random_state=0)
    >>> search = KernelizedCV(DNE(), kernels="poly").fit(X, y)
    >>> search.best_params_["kernel"].degree
    2
    >>> X_new, y_new = make_fig2_circles(200, random_state=1)
    >>> search.score(X_new, y_new) > 0.97
    True
    >>> search.pairwise_distances(X_new, X).shape
    (200, 80)
    """

    learner: Any
    kernels: Any = None
    cv: Any = 3
    n_components: Any = None
    _: KW_ONLY
    space: Any = "auto"
    estimator: Any = None
    scoring: Any = None
    n_jobs: int | None = None
    refit: bool = True
    error_score: Any = np.nan
    random_state: Any = None
    verbose: bool = False

    @with_callbacks
    def fit(self, X: Any, y: Any = None, **params) -> Self:
        """Score all candidates, and learn the best again from all points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels.
        **params : dict
            ``groups`` for the splitter, and what else the learner's ``fit`` takes. A
            ``sample_weight`` also counts in the kernel, the space, the estimator and the scores.

        Returns
        -------
        KernelizedCV
            The fitted metric.
        """
        self._search(X, y, params)
        return self

    @with_callbacks
    def fit_transform(self, X: Any, y: Any = None, **params) -> Any:
        """Search, and return the training points in the learned coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array-like of shape (n_samples,)
            Labels.
        **params : dict
            As in :meth:`fit`.

        Returns
        -------
        array of shape (n_samples, n_components)
            As :meth:`Kernelized.fit_transform` gives them for the best candidate.
        """
        rows, E = self._search(X, y, params)
        if E is None or rows is None:
            return self.transform(X) if E is None else E
        return placed_among(self, X, rows, E)

    @told_once()
    def _search(self, X: Any, y: Any, params: dict[str, Any]) -> tuple[Any, Any]:
        """Search; the rows that have weight, None for all, and their coordinates after a refit."""
        judge = _candidates.judge_of(self, y)
        scorer = _candidates.check_search(self, judge)
        kernels, ranks = listed_kernels(self.kernels), listed_ranks(self.n_components)
        X = read_once(self, X)
        points, labels = _candidates.checked_data(self, X, y, judge)
        require_memory(
            self.estimate_memory(*points.shape),
            f"KernelizedCV({type(self.learner).__name__}) on {points.shape[0]} points",
            "try fewer processes (n_jobs), or a lower rank, such as n_components=50.",
        )
        fit_params, split_params = search_arguments(self, params)
        rows = counted_rows(self, judge, X, labels, scorer, fit_params.get("sample_weight"))
        if rows is not None:
            fit_params = _check_method_params(X, fit_params, indices=rows)
            split_params = _check_method_params(X, split_params, indices=rows)
            X, y, points, labels = (rows_of(part, rows) for part in (X, y, points, labels))
        folds = [
            self._fold(X, train, test, fit_params)
            for train, test in _candidates.listed_folds(self.cv, judge, X, labels, split_params)
        ]
        by_metric = self.estimator is None
        trial = Trial(self.learner, judge, scorer, self.error_score, ranks, by_metric)
        report = Iterations(self, len(folds) * len(kernels), lambda _: {}, X, y)
        with report.running():
            how = {"refit": bool(self.refit)}
            outcomes = all_outcomes(trial, folds, points, labels, self.n_jobs, report, **how)
        _warn_or_raise_about_fit_failures(outcomes, self.error_score)
        candidates = [{"kernel": k, "n_components": r} for k in kernels for r in ranks]
        n_folds = len(outcomes) // len(candidates)  # a time limit may have left some out
        results = GridSearchCV(None, {})._format_results(candidates, n_folds, outcomes)
        best = int(results["rank_test_score"].argmin())
        fitted = {
            "cv_results_": results,
            "best_index_": best,
            "best_params_": candidates[best],
            "best_score_": results["mean_test_score"][best],
            "n_splits_": n_folds,
            "scorer_": scorer,
        }
        E = None
        if self.refit:
            more, E = self._refitted(candidates[best], trial, X, labels, fit_params)
            fitted |= more
        for name in ("best_estimator_", "estimator_", "refit_time_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.__dict__.update(fitted)
        return rows, E

    @available_if(inner_has("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """Score of the fitted estimator in the learned metric, by ``scoring``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : array-like of shape (n_samples,), default=None
            Labels.

        Returns
        -------
        float
            The score.
        """
        return self.scorer_(self.estimator_, to_numpy(self._embed(X)), y)

    def estimate_memory(self, n_samples: int, n_features: int) -> int:
        """Bytes that a fit takes at its peak, besides the data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the training points.

        Returns
        -------
        int
            An estimate of the folds or of the last fit, whichever takes more.
        """
        kernels = [automatic_kernel(kernel) for kernel in listed_kernels(self.kernels)]
        ranks = listed_ranks(self.n_components)
        highest = None if None in ranks else max(rank for rank in ranks if rank is not None)
        n_folds = int(self.cv) if isinstance(self.cv, Integral) else _USUAL_FOLDS
        n_folds = min(max(n_folds, 2), n_samples)
        n_test = -(-n_samples // n_folds)
        shape = n_samples - n_test, n_features, n_test
        n_jobs = min(effective_n_jobs(self.n_jobs), n_folds * len(kernels))
        rows = 8 * n_jobs * n_samples * n_features
        each = [search_bytes(self._candidate(k, highest, shape[0]), *shape) for k in kernels]
        folds = rows + n_jobs * max(each)
        if on_cluster():  # the machines that share the folds have memory of their own
            rows = folds = 0
        if not self.refit:
            return folds
        last = [self._candidate(k, highest, n_samples) for k in kernels]
        wholes = [metric.estimate_memory(n_samples, n_features) for metric in last]
        return max(folds, rows + max(wholes))

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reach the learner and the splitter.

        Returns
        -------
        MetadataRouter
            ``fit`` of this class to ``fit`` of the learner and ``split`` of the splitter.
        """
        splitter = check_cv(self.cv, classifier=is_classifier(_candidates.judge_of(self)))
        to_fit, to_split = MethodMapping(), MethodMapping()
        for caller in ("fit", "fit_transform"):  # which is what a pipeline calls
            to_fit.add(caller=caller, callee="fit")
            to_split.add(caller=caller, callee="split")
        router = MetadataRouter(owner=type(self).__name__)
        router.add(learner=self.learner, method_mapping=to_fit)
        return router.add(splitter=splitter, method_mapping=to_split)

    def __sklearn_tags__(self) -> Any:
        kernels = partial(listed_kernels, self.kernels)
        judge = _candidates.judge_of(self)
        tags = metric_tags(super().__sklearn_tags__(), self.learner, judge, kernels)
        tags.target_tags.required = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False  # learners know one label for each point
        return tags

    @cached_property
    def scorer_(self) -> Any:
        """What scores candidates, by ``scoring``; a file does not hold it."""
        return _candidates.check_search(self, self._inner)

    # --- what there is to search ----------------------------------------------------------------

    @property
    def _inner(self) -> Any:
        return vars(self).get("estimator_", _candidates.judge_of(self))

    def _through(self, method: str, X: Any) -> Any:
        return getattr(self._inner, method)(to_numpy(self._embed(X)))

    def _candidate(self, kernel: Any, rank: int | None, n_samples: int) -> Kernelized:
        """The candidate as an estimator, for a training set of this size."""
        space = self._space(kernel, n_samples)
        return candidate(self.learner, kernel, space, rank, self.random_state)

    def _space(self, kernel: Any, n_samples: int) -> Any:
        """The space of a kernel, as :class:`Kernelized` has it; its rank can be set."""
        cuts = listed_ranks(self.n_components) != [None]
        if is_auto(self.space):
            meant = automatic_kernel(kernel)
            # Ranks are those of a given kernel's components, unless labels choose the kernel too.
            by_rank = cuts and not isinstance(meant, LeaveOneOutRidge)
            learner = None if by_rank else self.learner
            space = space_for(meant, learner, n_samples, self.random_state)[0]
        else:
            space = given_space(self.space, None)
        params = space.get_params()
        known, own = "n_components" in params, params.get("n_components")
        can_cut = known and (own is None or is_auto(own) or isinstance(own, Integral))
        if not can_cut and (cuts or not known):
            raise ValueError(
                f"Got space={space!r} with n_components={self.n_components!r}, but expected a "
                "space whose leading coordinates can be taken: try space=KPCA()."
            )
        return space

    # --- the search -----------------------------------------------------------------------------

    def _fold(self, X: Any, train: Any, test: Any, fit_params: dict[str, Any]) -> Fold:
        weights = _check_method_params(X, fit_params, indices=test).get("sample_weight")
        fit_params = _check_method_params(X, fit_params, indices=train)
        pairwise = get_tags(self).input_tags.pairwise
        kernels = listed_kernels(self.kernels)
        candidates = [(kernel, self._space(kernel, len(train))) for kernel in kernels]
        return Fold(train, test, candidates, fit_params, pairwise, weights, self.random_state)

    def _refitted(
        self, best: dict[str, Any], trial: Trial, X: Any, y: Any, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], Any]:
        """The best candidate, learned from all points, and their coordinates in it."""
        started = time.perf_counter()
        metric = self._candidate(best["kernel"], best["n_components"], _num_samples(X))
        with config_context(transform_output="default"):
            E = metric.fit_transform(X, y, **fit_params)
        weights = fit_params.get("sample_weight")
        estimator = trial.fitted_judge(metric, to_numpy(E), y, weights)
        spent = time.perf_counter() - started
        return {"best_estimator_": metric, "estimator_": estimator, "refit_time_": spent}, E


def read_once(metric: Any, X: Any) -> Any:
    """X as the kernels of a metric take it: objects are read once, for all folds."""
    if isinstance(metric, Kernelized):
        return read_points(metric, X)
    for kernel in listed_kernels(metric.kernels) if isinstance(metric, KernelizedCV) else ():
        X = automatic_kernel(kernel).points(X)
    return X
