"""Learners that learn from pairs: cross-validated, and beside the points as they are."""

import inspect
import time
import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from kernelmetric.compute import take_rows
from kernelmetric.evaluation._retrieval import Comparison, Found, compared, find_matches
from kernelmetric.evaluation._verification import best_threshold, distances_of, known_distances
from kernelmetric.graphs import IndexTuples, Matches, Pairs, check_length
from kernelmetric.inputs._parameters import Numbers, require_word
from kernelmetric.kernelized._candidates import check_error_score
from kernelmetric.kernelized._places import NotBetterWarning
from kernelmetric.metric import refuse_signed

_RANKING = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
_DECIDING = {
    "accuracy": (lambda same, said: float(np.mean(same == said)), "accuracy"),
    "f1": (f1_score, "f_beta"),
}


def cross_validate_pairs(
    estimator: Any,
    X: Any,
    pairs: Pairs | IndexTuples,
    *,
    cv: Any = 5,
    by: str = "point",
    scoring: Any = "roc_auc",
    n_jobs: int | None = None,
    params: dict[str, Any] | None = None,
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
    random_state: Any = None,
) -> dict[str, Any]:
    """Learn from some pairs, be judged on others: scikit-learn's ``cross_validate`` for pairs.

    Parameters
    ----------
    estimator : estimator
        A learner whose ``fit`` takes ``pairs``, or a pipeline that ends in one. What takes none,
        such as ``StandardScaler()``, is fitted to the points alone.
    X : array-like of shape (n_samples, n_features)
        Points; the Gram matrix for a precomputed kernel.
    pairs : Pairs, Triplets or Quadruplets
        What is known of them.
    cv : int, splitter or iterable, default=5
        Number of shuffled folds; or a splitter; or (train, test) positions of points or pairs.
    by : {'point', 'pair'}, default='point'
        'point' cuts the points into folds. Pairs between two folds are left out. 'pair' cuts the
        pairs into folds, and the learner sees all points. Take no transitive closure of the pairs
        before: it would contain the test pairs.
    scoring : str, callable, list or dict, default='roc_auc'
        'roc_auc' and 'average_precision' ask whether similar pairs are nearer than others.
        'accuracy' and 'f1' use the threshold that is best on the training pairs. For triplets and
        quadruplets, 'roc_auc' and 'accuracy' are the share that holds. A callable gets
        ``(metric, X, pairs)``. A list, or a dict of names and callables, gives several.
    n_jobs : int, default=None
        Processes that share the folds. Inside
        ``joblib.parallel_config(backend="dask", scatter=[X, pairs])`` they are those of a cluster.
    params, return_train_score, return_estimator, return_indices, error_score : object
        As in ``cross_validate``; ``params`` for the estimator's ``fit`` are not sliced.
    random_state : int, RandomState or None, default=None
        For the shuffling.

    Returns
    -------
    dict
        As ``cross_validate`` gives it: ``fit_time``, ``score_time``, ``test_score`` (or
        ``test_<name>`` for several), and what was asked for beside.

    See Also
    --------
    PairVerifier : The threshold it judges.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelmetric import Pairs, cross_validate_pairs
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Pairs.from_labels(y, per_point=10, random_state=0)
    >>> results = cross_validate_pairs(StandardScaler(), X, pairs, random_state=0)
    >>> results["test_score"].shape
    (5,)
    """
    check_pairs(pairs, X)
    check_error_score(error_score)
    scorers, several = _scorers(scoring)
    folds = list(_folds(cv, by, pairs, random_state))
    how = (by, scorers, params or {}, return_train_score, error_score)
    outcomes = Parallel(n_jobs=n_jobs)(
        delayed(_one_fold)(clone(estimator), X, pairs, train, test, *how) for train, test in folds
    )
    _warn_or_raise_about_fit_failures(outcomes, error_score)
    times = "fit_time", "score_time"
    results: dict[str, Any] = {key: np.array([each[key] for each in outcomes]) for key in times}
    if return_estimator:
        results["estimator"] = [outcome["estimator"] for outcome in outcomes]
    for part in ("test", "train") if return_train_score else ("test",):
        for name in scorers:
            key = f"{part}_{name if several else 'score'}"
            results[key] = np.array([outcome[part][name] for outcome in outcomes])
    if return_indices:
        train, test = zip(*folds, strict=True)
        results["indices"] = {"train": train, "test": test}
    return results


def check_pairs(pairs: Any, X: Any) -> None:
    """Refuse what are no pairs or comparisons of the rows of X, which know the number of rows."""
    if not isinstance(pairs, Pairs | IndexTuples):
        raise ValueError(
            f"Got pairs of type {type(pairs).__name__}, but expected Pairs, Triplets or "
            "Quadruplets: try Pairs(similar, dissimilar, len(X)), or of labels y "
            "Pairs.from_labels(y, per_point=5)."
        )
    check_length(_num_samples(X), pairs.n_samples)


def _scorers(scoring: Any) -> tuple[dict[str, Any], bool]:
    """Names or functions that score, by name, and whether several were asked for."""
    several = isinstance(scoring, dict | list | tuple | set)
    scorers = {name: name for name in scoring} if several else {"score": scoring}
    scorers = scoring if isinstance(scoring, dict) else scorers
    for scorer in scorers.values():
        named = isinstance(scorer, str) and scorer in (*_RANKING, *_DECIDING)
        if not named and not callable(scorer):
            raise ValueError(
                f"Got scoring={scorer!r}, but expected one of "
                f"{', '.join([*_RANKING, *_DECIDING])}, or a function of a metric, X and pairs."
            )
    return scorers, several


def _score(scoring: Any, metric: Any, X: Any, pairs: Any, X_train: Any, pairs_train: Any) -> float:
    """The score of a metric on some points and pairs, given those that it was fitted to."""
    if callable(scoring):
        return float(scoring(metric, X, pairs))
    if isinstance(pairs, IndexTuples):  # the share whose near pair is nearer than the far one
        if scoring not in ("roc_auc", "accuracy"):
            raise ValueError(
                f"Got scoring={scoring!r} with {pairs.kind}s, but expected 'accuracy'."
            )
        near, far = (distances_of(metric, rows, X) for rows in (pairs.near, pairs.far))
        return float(np.mean(near < far))
    distances, same, _ = known_distances(metric, pairs, X)
    if scoring in _RANKING:
        return float(_RANKING[scoring](same, -distances))
    score, criterion = _DECIDING[scoring]
    known, answers, _ = known_distances(metric, pairs_train, X_train)
    threshold, _ = best_threshold(known, answers, criterion)
    return float(score(same, distances <= threshold))


def _folds(cv: Any, by: str, pairs: Pairs | IndexTuples, random_state: Any) -> Iterable[Any]:
    """Positions of training and test points, or pairs."""
    require_word("by", by, ("point", "pair"))
    if isinstance(cv, str | bytes):  # they have a method split
        raise ValueError(f"Got cv={cv!r}, but expected a number of folds or a splitter: try cv=3.")
    if isinstance(cv, Integral):
        whole = by == "point" or isinstance(pairs, IndexTuples)
        folds = KFold if whole else StratifiedKFold
        cv = folds(int(cv), shuffle=True, random_state=random_state)
    if by == "point":
        return check_cv(cv).split(np.empty((pairs.n_samples, 1)))
    return check_cv(cv).split(pairs.rows, getattr(pairs, "is_similar", None))


def _one_fold(
    estimator: Any,
    X: Any,
    pairs: Pairs,
    train: np.ndarray,
    test: np.ndarray,
    by: str,
    scorers: dict[str, Any],
    params: dict[str, Any],
    score_training: bool,
    error_score: Any,
) -> dict[str, Any]:
    missing = dict.fromkeys(scorers, error_score)
    result: dict[str, Any] = {"fit_time": np.nan, "score_time": np.nan, "estimator": None}
    result |= {"fit_error": None, "test": missing, "train": missing}
    # Cut here: the points travel to another machine once, not once a fold.
    X_test, part = X, pairs.take if by == "pair" else pairs.subset
    if by == "point":  # a Gram matrix has columns to cut too
        X_test, _ = _safe_split(estimator, X, None, test, train)
        X, _ = _safe_split(estimator, X, None, train)
    pairs, pairs_test = part(train), part(test)

    def scores(X_judged: Any, pairs_judged: Pairs) -> dict[str, float]:
        judged = (metric, X_judged, pairs_judged, X, pairs)
        return {name: _score(scoring, *judged) for name, scoring in scorers.items()}

    start = time.perf_counter()
    try:
        metric = estimator.fit(X, **_pairs_argument(estimator, pairs), **params)
        fitted = time.perf_counter()
        result |= {"estimator": metric, "fit_time": fitted - start}
        result["test"] = scores(X_test, pairs_test)
        result["score_time"] = time.perf_counter() - fitted
        if score_training:
            result["train"] = scores(X, pairs)
    except Exception as error:
        if isinstance(error_score, str):
            raise
        result["fit_error"] = f"{type(error).__name__}: {error}"
    return result


def _pairs_argument(estimator: Any, pairs: Pairs | IndexTuples) -> dict[str, Any]:
    """How the fit of an estimator wants its pairs; nothing where it wants none."""
    prefix, learner = "", estimator
    while isinstance(learner, Pipeline):
        prefix, learner = f"{prefix}{learner.steps[-1][0]}__", learner.steps[-1][1]
    learner = getattr(learner, "learner", learner)  # Kernelized hands pairs on
    name = f"{pairs.kind}s" if isinstance(pairs, IndexTuples) else "pairs"
    takes = hasattr(learner, "fit") and name in inspect.signature(learner.fit).parameters
    return {f"{prefix}{name}": pairs} if takes else {}


def compare_with_plain(
    estimator: Any,
    X: Any,
    pairs: Pairs | IndexTuples,
    *,
    documents: Any = None,
    plain: Any = None,
    cv: int = 5,
    random_state: Any = 0,
) -> Comparison:
    """Whether a learner from pairs finds more than the points as they are.

    The points of similar pairs are cut into parts. Without a part, and all pairs that touch it, the
    learner is fitted. Then each point of the part is a query: at which rank among all other points
    is the first one that it belongs with? A warning says so where the metric is clearly worse.

    Parameters
    ----------
    estimator : estimator
        A learner whose ``fit`` takes ``pairs``, ``triplets`` or ``quadruplets``; or a pipeline that
        ends in one.
    X : array-like of shape (n_samples, n_features)
        Points.
    pairs : Pairs, Triplets or Quadruplets
        What is known of them. Similar pairs belong together, or those that should be nearer.
    documents : array-like of int, default=None
        Row numbers among which is searched, such as those of the second of two tables. Other
        points of pairs are the queries then. None: all rows but the query.
    plain : transformer, default=None
        What to compare with, such as ``Normalizer()``; None is the Euclidean distance of X.
    cv : int, default=5
        Number of parts.
    random_state : int, RandomState or None, default=0
        For the parts.

    Returns
    -------
    Comparison
        Recall, MRR and nDCG before and after, with intervals over queries.

    See Also
    --------
    cross_validate_pairs : Whether similar pairs are nearer than dissimilar ones.

    Notes
    -----
    ``cv`` fits, and O(n_queries n_samples n_features) time; a block of queries in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric import ITML, Pairs
    >>> from kernelmetric.evaluation import compare_with_plain
    >>> rng = np.random.RandomState(0)
    >>> things = rng.standard_normal((60, 4))
    >>> X = np.vstack([things + rng.standard_normal((60, 4)) * [3, 0.1, 0.1, 0.1] for _ in "ab"])
    >>> rows = np.arange(60)
    >>> pairs = Pairs(np.c_[rows, rows + 60], np.c_[rows, 60 + (rows + 1) % 60], n_samples=120)
    >>> found = compare_with_plain(ITML(), X, pairs)
    >>> found.gain[1].low > 0
    True
    """
    check_pairs(pairs, X)
    n = pairs.n_samples
    rows, matches = _matches(pairs, documents, n)
    asked = check_random_state(random_state).permutation(matches.queries)
    hint = "folds of the points that are in a similar pair"
    Numbers(Integral, 2, len(asked)).require("cv", cv, hint=hint)
    before, after = (np.empty((3, len(asked))) for _ in range(2))
    for k in range(cv):
        held, part = asked[k::cv], slice(k, None, cv)
        teach = ~np.any(np.isin(pairs.rows, held), axis=1)
        metric = clone(estimator)
        metric.fit(X, **_pairs_argument(metric, pairs.take(np.flatnonzero(teach))))
        refuse_signed(metric)
        base = None if plain is None else clone(plain).fit(X)
        for found, of in ((before, base), (after, metric)):
            Z = X if of is None else of.transform(X)
            Z = Z if hasattr(Z, "take") and not hasattr(Z, "columns") else np.asarray(Z, float)
            Q, D = take_rows(Z, held), take_rows(Z, rows)
            found[:, part] = find_matches(Q, D, matches, held, rows, cosine=False)
    gain = 1 / after[0] - 1 / before[0]
    if np.mean(gain) < -2 * np.std(gain, ddof=1) / np.sqrt(len(gain)):
        new, old = (float(np.mean(found[0] <= 1)) for found in (after, before))
        warnings.warn(
            f"{type(estimator).__name__} finds fewer of the pairs left out than the points as they "
            f"are: recall at one {new:.3f} beside {old:.3f}. Try Adapter, which "
            "keeps the points as they are where nothing is better.",
            NotBetterWarning,
            stacklevel=2,
        )
    return compared(Found(*before), Found(*after))


def _matches(pairs: Pairs | IndexTuples, documents: Any, n: int) -> tuple[np.ndarray, Matches]:
    """The rows that are searched, and which queries match which of them."""
    near = pairs.near if isinstance(pairs, IndexTuples) else pairs.similar
    both = np.unique(np.concatenate([near, near[:, ::-1]]), axis=0)
    rows = np.arange(n)
    if documents is not None:
        rows = np.unique(np.asarray(documents))
        if rows.dtype.kind not in "iu" or not len(rows) or rows[0] < 0 or rows[-1] >= n:
            raise ValueError(
                f"Got documents of {rows.dtype}, from {min(rows, default=None)} to "
                f"{max(rows, default=None)}, but expected row numbers of {n} rows, as integers."
            )
        found = np.isin(both, rows)
        both = both[found[:, 1] & ~found[:, 0]]
    return rows, Matches.of_pairs(both, n)
