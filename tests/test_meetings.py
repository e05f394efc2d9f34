"""Tests of meetings: any two options of the library in one small fit.

``dimensions.py`` lists the options and draws the cases. A case is refused in a sentence that is
declared there, or it is fitted and keeps what every fit promises.
"""

import inspect
import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.metaestimators import _safe_split

from dimensions import (
    DIMENSIONS,
    HAS_NEIGHBORS,
    LEARNERS,
    PACKAGES,
    PREDICTS,
    RIDGES,
    UNTOLD,
    Case,
    arguments,
    as_input,
    cases,
    estimator,
    kernel,
    points,
    refusals,
    shrunk,
    target,
    triples,
)
from kernelmetric import KPCA, RBF, TimeLimitWarning, learners, load, save, time_limit
from kernelmetric.kernelized import Recipe
from kernelmetric.selection import automatic_kernel

CASES = [*cases(), *triples()]
SPECTRAL = ("DNE", "DLA", "LDA", "LFDA", "LPP", "RCA", "scikit-learn's PCA")
BY_ROWS = ("labels", "names", "numbers")
EXACT_SPACES = ("KPCA", "low rank", "trick")


def fitted(case: Case, keep=None, weights="as given", model=None, limited=True):
    """Fit the case; of some rows alone, with other weights, or a model that has been fitted."""
    seconds = 1e6 if limited and case["limit"] == "ample" else None
    X, codes, X_new = points(case)
    anchors = None
    if case["kernel"] == "gram" and case["route"] != "alone":
        anchors = X if keep is None else X[keep]
    given, y = arguments(case, codes), target(case, codes)
    if not isinstance(weights, str):
        given.pop("sample_weight", None)
        given |= {} if weights is None else {"sample_weight": weights}
    if keep is not None:
        X, y = X[keep], y[keep]
        given = {name: value[keep] for name, value in given.items()}
    A, A_new = as_input(case, X, anchors), as_input(case, X_new, anchors)
    model = estimator(case) if model is None else model
    if case["route"] == "pipeline":
        given = {f"{model.steps[-1][0]}__{name}": value for name, value in given.items()}
    with warnings.catch_warnings(), time_limit(seconds):
        warnings.simplefilter("ignore")  # of convergence, and of columns that are not used
        warnings.simplefilter("error", TimeLimitWarning)
        model.fit(A, y, **given)
        where = places(case, model, A_new)
    return SimpleNamespace(model=model, A=A, A_new=A_new, X=X, where=where, y=y, given=given)


def places(case: Case, model, A):
    """What a model says of rows: learned coordinates, probabilities or numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case["route"] == "classifier":
            said = model.predict_proba(A), model.classes_.searchsorted(model.predict(A))
            return np.column_stack([np.asarray(part) for part in said])
        if case["route"] == "regressor":
            said = model.predict(A), model.predict_interval(A, 0.8)
            return np.column_stack([np.asarray(part) for part in said])
        return np.asarray(model.transform(A), dtype=np.float64)


def has_a_way_back_or_says_why_not(case, first):
    """Points of coordinates are as many and as wide as points, and finite."""
    if case["route"] in PREDICTS or not hasattr(first.model, "inverse_transform"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            back = np.asarray(first.model.inverse_transform(first.where))
        except ValueError as problem:
            assert "keeps no points of numbers" in str(problem)
            others = case["kernel"] in ("gram", "objects") or case["space"] == "random features"
            assert others or case["input"] in ("table", "frame")
            return
    assert back.shape == (len(first.where), first.X.shape[1])
    assert np.isfinite(back).all()


def distances(Z):
    return np.linalg.norm(Z[:, None] - Z[None], axis=2)


def assert_near(found, expected, share):
    """Distances agree up to a share of the largest."""
    a, b = distances(found.where), distances(expected.where)
    np.testing.assert_allclose(a, b, rtol=0, atol=share * b.max())


def is_spectral(case):
    """Whether a fit is one eigenproblem on coordinates that no random number decides."""
    inside = case["route"] in ("Kernelized", "pipeline")
    exact = case["space"] in EXACT_SPACES and case["kernel"] not in ("auto", "aligned")
    return case["learner"] in SPECTRAL and (case["route"] == "alone" or (inside and exact))


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(i, marks=pytest.mark.slow if case.is_slow else ())
        for i, case in enumerate(CASES)
    ],
    ids=lambda i: f"{i}: {CASES[i]}",
)
def test_any_two_options_meet(number, monkeypatch, tmp_path):
    case = CASES[number]
    shrunk(monkeypatch, case["size"])
    against = refusals(case.values)
    if against:
        with pytest.raises((ValueError, TypeError), match="|".join(r.says for r in against)):
            fitted(case)
        return
    first = fitted(case)
    assert np.isfinite(first.where).all()
    names_rows_that_count(case, first)
    predicts_what_costs_least(case, first)
    keeps_its_own(case, first)
    has_a_way_back_or_says_why_not(case, first)
    if number % 2:  # the others in slow runs
        is_restored(case, first, tmp_path)
    for check in further(number)[0]:
        check(case, first)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [i for i, case in enumerate(CASES) if not refusals(case.values)],
    ids=lambda i: f"{i}: {CASES[i]}",
)
def test_any_two_options_keep_the_rest_of_what_is_promised(number, monkeypatch, tmp_path):
    case = CASES[number]
    shrunk(monkeypatch, case["size"])
    first = fitted(case)
    if number % 2 == 0:
        is_restored(case, first, tmp_path)
    for check in further(number)[1]:
        check(case, first)


def further(number):
    """What else a case is to keep: a sixth in every run, in turn, and the rest in slow ones."""
    checks = [check for check, when in FURTHER if when(CASES[number])]
    now = checks[number % 6 :: 6]
    return now, [check for check in checks if check not in now]


def names_rows_that_count(case, first):
    """The reasons of a prediction are rows of the table that was given, and have weight."""
    if case["route"] in ("classifier", "regressor") and case["weights"] == "some zero":
        new = np.asarray(first.A_new) if case["input"] == "dask" else first.A_new
        rows = first.model.kneighbors(new, 3, return_distance=False)
        assert (first.given["sample_weight"][rows] > 0).all()


def predicts_what_costs_least(case, first):
    """No other class has a lower expected cost than the one that is predicted."""
    if case["route"] == "classifier":
        P, codes = first.where[:, :-1], first.where[:, -1].astype(int)
        shares = np.bincount(first.model._codes, first.model._mass) / len(first.model._codes)
        costs = {
            "accuracy": 1.0 - np.eye(3),
            "balanced": (1.0 - np.eye(3)) / shares[:, None],
        }.get(case["decision"], first.model.decision)
        expected = P @ costs
        chosen = expected[np.arange(len(P)), codes]
        np.testing.assert_allclose(chosen, expected.min(axis=1), rtol=1e-9, atol=1e-12)


def keeps_its_own(case, first):
    """What the caller does to his arrays afterwards changes nothing."""
    for part in (first.A, first.y, *first.given.values()):
        if case["input"] == "torch" and part is first.A:
            part.fill_(np.nan)
        elif isinstance(part, np.ndarray) and part.dtype.kind == "f":
            part[...] = np.nan
        elif isinstance(part, np.ndarray) and part.dtype.kind == "i":
            part[...] = 0
        elif hasattr(part, "data") and hasattr(part, "indptr"):
            part.data[:] = np.nan
    np.testing.assert_array_equal(places(case, first.model, first.A_new), first.where)


def is_restored(case, first, tmp_path):
    """A saved model answers as it did, or cannot be saved, in a sentence."""
    try:
        path = save(first.model, tmp_path / "model.km")
    except (ValueError, TypeError) as error:
        assert case["route"] in ("search", "pipeline"), str(error)
        return
    bits = 1e-9 if case["input"] == "torch" else 0.0  # a saved model has NumPy's arrays
    again = places(case, load(path), first.A_new)
    np.testing.assert_allclose(again, first.where, rtol=bits, atol=bits)


def is_repeated(case, first):
    """The same fit gives the same numbers."""
    np.testing.assert_allclose(fitted(case).where, first.where, rtol=1e-9, atol=1e-9)


def limit_that_is_not_reached_changes_nothing(case, first):
    """Work that ends in time is the work without a limit."""
    free = fitted(case, limited=False)
    np.testing.assert_allclose(free.where, first.where, rtol=1e-9, atol=1e-9)


def a_second_fit_forgets_the_first(case, first):
    """Whatever a model was fitted to before, it ends where a new one does."""
    X, codes, _ = points(case)
    X = 2.0 * X[::-1]
    anchors = X if case["kernel"] == "gram" and case["route"] != "alone" else None
    y = target(case, codes[::-1].copy())
    model = estimator(case)
    given = arguments(case, codes[::-1])
    if case["route"] == "pipeline":
        given = {f"{model.steps[-1][0]}__{name}": value for name, value in given.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(as_input(case, X, anchors), y, **given)
        places(case, model, first.A_new)
    again = fitted(case, model=model)
    np.testing.assert_allclose(again.where, first.where, rtol=1e-9, atol=1e-9)


def ones_are_no_weights(case, first):
    """Weights of one change no bit."""
    np.testing.assert_array_equal(fitted(case, weights=np.ones(len(first.X))).where, first.where)


def recipe_is_the_same(case, first):
    """What was chosen, given again, is not chosen again, and gives the same."""
    model = clone(estimator(case).set_params(recipe=first.model.recipe_))
    again = fitted(case, model=model)
    np.testing.assert_allclose(again.where, first.where, rtol=1e-9, atol=1e-9)
    if not automatic_kernel(kernel(case)).is_bound:
        assert again.model.recipe_.reasons["kernel"] == "from the recipe that was given"


def recipe_leaves_what_is_written(case, first):
    """Of a recipe that does not fit, only what is "auto" is taken."""
    foreign = Recipe(RBF(gamma=0.123), KPCA(3), first.model.learner_)
    model = fitted(case, model=estimator(case).set_params(recipe=foreign)).model
    if case["space"] != "auto":
        assert type(model.space_) is type(first.model.space_)
    if automatic_kernel(kernel(case)).is_bound:
        assert repr(model.kernel_) == repr(first.model.kernel_)


def columns_are_those_of_the_recipe(case, first):
    """Some rows of a table, some of whose names are gone, have the features of all."""
    X, _, _ = points(case)
    model = clone(estimator(case).set_params(recipe=first.model.recipe_))
    kept = np.flatnonzero(as_input(case, X, None)["name"] != "d")
    part = fitted(case, keep=kept, model=model)
    assert part.model.space_.n_features_in_ == first.model.space_.n_features_in_


def kernel_knows_its_table(case, first):
    """A kernel of columns takes the features of these columns."""
    params = first.model.kernel_.get_params(deep=True)
    schemas = [value for name, value in params.items() if name.endswith("schema")]
    assert schemas
    assert all(schema is not None for schema in schemas)


def learner_is_that_of_its_coordinates(case, first):
    """What the learner learned is what it learns from the coordinates of its space alone."""
    X, codes, _ = points(case)
    model, w = first.model, arguments(case, codes).get("sample_weight")
    rows = np.arange(len(X)) if w is None else np.flatnonzero(w > 0)
    boundary = getattr(model.space_, "boundary_rows", None)
    inputs = case["neighbors"] == "input"
    if boundary is not None and case["learner"] in ("LMNN", "LMCA") and not inputs:
        rows = rows[boundary]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = model._checked(as_input(case, X[rows], gram_of(case, X)))
        Z = seen_by_the_learner(case, model, rows)
        given = {} if w is None else {"sample_weight": w[rows]}
        if getattr(model.space_, "gram_", None) is not None:
            given["gram"] = model.space_.gram_
        if inputs:
            given["neighbors"] = inside.toarray() if hasattr(inside, "toarray") else inside
        again = clone(model.recipe_.learner).fit(Z, target(case, codes)[rows], **given)
        a, b = (distances(np.asarray(m.transform(Z), float)) for m in (again, model.learner_))
    descent = case["learner"] in DESCENTS  # along which the last bits grow
    loose = 2e-2 if descent or case["input"] == "float32" else 1e-5
    np.testing.assert_allclose(a, b, rtol=0, atol=loose * max(b.max(), 1e-12))


def seen_by_the_learner(case, model, rows):
    """Coordinates of training rows: left out, where the space knows the labels."""
    X, codes, _ = points(case)
    if not getattr(model.space_, "knows_labels", False):
        return model.space_.transform(model._checked(as_input(case, X[rows], gram_of(case, X))))
    space = clone(model.recipe_.space).set_params(kernel=model.recipe_.kernel)
    A = as_input(case, X, gram_of(case, X))
    A = model._checked(np.asarray(A) if case["input"] == "dask" else A)
    w = arguments(case, codes).get("sample_weight")
    return space.fit_transform(A, target(case, codes), sample_weight=w)[rows]


def gram_of(case, X):
    """The points with which kernel values are computed, where the kernel is precomputed."""
    return X if case["kernel"] == "gram" and case["route"] != "alone" else None


def whole_weights_are_repeated_rows(case, first):
    """Where objectives are sums over rows, a row of weight two stands for two."""
    X, codes, _ = points(case)
    rows = np.repeat(np.arange(len(X)), arguments(case, codes)["sample_weight"].astype(int))
    model = estimator(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(as_input(case, X[rows], None), target(case, codes)[rows])
    found = SimpleNamespace(where=places(case, model, first.A_new))
    assert_near(found, first, 2e-2 if case["input"] == "float32" else 1e-6)


def copies_count(case):
    """Whether a fit counts copies of rows by weights: rows that are left out judge it."""
    judged = case["kernel"] == "auto" or case["space"] in ("auto", *RIDGES)
    return (
        case["rows"] == "copies"
        and case["told"] in ("labels", "names")
        and case["kernel"] != "gram"
        and takes_weights(case)
        and case["learner"] not in UNTOLD
        and (case["route"] == "classifier" or (judged and case["route"] in HAS_NEIGHBORS))
    )


def copies_are_weights(case, first):
    """Rows without copies, with the weights of these, give the same."""
    X, codes, _ = points(case)
    w = arguments(case, codes).get("sample_weight", np.ones(len(X)))
    kept = np.flatnonzero(w)
    table = np.column_stack([X, codes])[kept]
    _, rows, groups = np.unique(table, axis=0, return_index=True, return_inverse=True)
    totals = np.zeros(len(X))
    totals[kept[rows]] = np.bincount(groups.ravel(), weights=w[kept])
    again = fitted(case, keep=np.sort(kept[rows]), weights=totals)
    np.testing.assert_allclose(again.where, first.where, rtol=1e-9, atol=1e-9)


def keeps_its_precision(case, first):
    """Single precision in, single precision out."""
    assert np.asarray(first.model.transform(first.A_new)).dtype == np.float32


def comes_back_as_it_was_given(case, first):
    """Tensors in, tensors out; of rows elsewhere nothing is computed before it is asked for."""
    assert type(first.model.transform(first.A_new)) is type(first.A_new)


def elsewhere_is_as_here(case, first):
    """Another library of arrays changes last bits, and nothing else."""
    here = fitted(Case({**case.values, "input": "float64"}))
    loose = 1e-3 if "NCA" in case["learner"] else 1e-6  # along a descent they grow
    np.testing.assert_allclose(np.abs(first.where), np.abs(here.where), rtol=loose, atol=loose)


def a_search_is_its_metric(case, first):
    """With one candidate, a search ends in the metric that Kernelized is."""
    plain = fitted(Case({**case.values, "route": "Kernelized", "neighbors": "feature"}))
    assert type(plain.model.space_) is type(first.model.best_estimator_.space_)
    np.testing.assert_allclose(plain.where, first.where, rtol=1e-6, atol=1e-6)


def a_search_scores_as_folds_do(case, first):
    """The score of a candidate is that of neighbours in folds, as many as the metric chose."""
    X, codes, _ = points(case)
    y, inside = target(case, codes), {**case.values, "route": "Kernelized", "neighbors": "feature"}
    A = as_input(case, X, gram_of(case, X))
    A = np.asarray(A) if case["input"] in ("list", "frame", *PACKAGES) else A
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in StratifiedKFold(3).split(X, y):
            model = estimator(Case(inside))
            seen, known = _safe_split(model, A, y, train)
            new, truth = _safe_split(model, A, y, test, train)
            E = model.fit_transform(seen, known)
            votes = KNeighborsClassifier(model.n_neighbors_ or 1).fit(E, known)
            scores.append(votes.score(model.transform(new), truth))
    found = first.model.cv_results_["mean_test_score"][0]
    assert found == pytest.approx(np.mean(scores), abs=2.1 / len(X))  # last bits of K may grow


def another_order_is_the_same(case, first):
    """Rows in another order make the same metric."""
    order = np.random.RandomState(0).permutation(len(first.X))
    assert_near(fitted(case, keep=order), first, 1e-4)


def zero_weight_is_absence(case, first):
    """Rows without weight might as well not be there."""
    kept = np.flatnonzero(np.arange(len(first.X)) % 11 != 5)
    other = fitted(case, keep=kept)
    if case["route"] in ("classifier", "regressor"):
        np.testing.assert_allclose(other.where, first.where, atol=1e-6)
    else:
        assert_near(other, first, 1e-6)
    if case["route"] == "search":
        scores = [part.model.cv_results_["mean_test_score"] for part in (other, first)]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-9)


def single_is_near_double(case, first):
    """Single precision loses digits, and nothing else."""
    wide = Case({**case.values, "input": "float64"})
    assert_near(first, fitted(wide), 2e-2)


def takes_weights(case):
    return "sample_weight" in inspect.signature(LEARNERS[case["learner"]].fit).parameters


SUMS = ("LDA", "RCA")
FIXED = ("rbf", "with a ridge", "linear", "poly", "columns")
DESCENTS = ("LMNN", "LMCA", "NCA", "NCA, shrunk", "MCML")

FURTHER = [
    (limit_that_is_not_reached_changes_nothing, lambda case: case["limit"] == "ample"),
    (
        recipe_leaves_what_is_written,
        lambda case: (
            case["route"] == "Kernelized"
            and case["input"] != "table"
            and case["kernel"] not in ("gram", "columns")
            and case["space"] not in ("trick", "random features")
            and case["told"] in BY_ROWS
        ),
    ),
    (
        columns_are_those_of_the_recipe,
        lambda case: (
            case["route"] == "Kernelized" and case["input"] == "table" and case["told"] in BY_ROWS
        ),
    ),
    (
        kernel_knows_its_table,
        lambda case: (
            case["route"] == "Kernelized"
            and case["input"] == "table"
            and case["kernel"] == "columns"
        ),
    ),
    (
        learner_is_that_of_its_coordinates,
        lambda case: (
            case["route"] == "Kernelized"
            and case["told"] in BY_ROWS
            and case["learner"] in (*SPECTRAL, *DESCENTS)
            # of copies, in single precision, rounding says which is the nearer
            and not (case["rows"] == "copies" and case["size"] == "single")
            and not copies_count(case)
            # at full rank the optimum is near zero, where a rough tolerance ends a descent anywhere
            and not (case["space"] == "KPCA" and case["learner"] == "LMNN")
        ),
    ),
    (
        whole_weights_are_repeated_rows,
        lambda case: (
            case["learner"] in SUMS
            and case["weights"] == "whole"
            and case["told"] in ("labels", "names")
            and case["input"] != "table"  # whose medians and spreads count rows alike
            and (
                case["route"] == "alone"
                or (
                    case["route"] == "Kernelized"
                    and case["kernel"] in FIXED
                    and case["space"] in ("KPCA", "low rank")
                )
            )
        ),
    ),
    (
        copies_are_weights,
        lambda case: copies_count(case) and case["input"] != "table",  # as above
    ),
    (
        keeps_its_precision,
        lambda case: (
            case["input"] == "float32"
            and case["route"] in ("alone", "Kernelized", "search")
            and not case["learner"].startswith("scikit")
        ),
    ),
    (
        comes_back_as_it_was_given,
        lambda case: (
            case["input"] in PACKAGES
            and case["route"] in ("alone", "Kernelized", "search")
            and not (case["route"] == "alone" and case["learner"].startswith("scikit"))
        ),
    ),
    (
        elsewhere_is_as_here,
        lambda case: case["input"] == "dask" or (case["input"] == "torch" and is_spectral(case)),
    ),
    (
        a_search_is_its_metric,
        lambda case: case["route"] == "search" and case["told"] in ("labels", "names"),
    ),
    (
        a_search_scores_as_folds_do,
        lambda case: (
            case["route"] == "search"
            and case["told"] in ("labels", "names")
            and case["weights"] in ("none", "classes")
        ),
    ),
    (
        a_second_fit_forgets_the_first,
        lambda case: (
            case["route"] != "search"
            # on the other points the aligned kernel is too narrow for the means of k-means
            and not (case["kernel"] == "aligned" and case["space"] == "landmarks")
        ),
    ),
    (is_repeated, lambda case: case["route"] == "search"),
    (
        ones_are_no_weights,
        lambda case: (
            case["weights"] == "none" and case["told"] != "triplets" and takes_weights(case)
        ),
    ),
    (recipe_is_the_same, lambda case: case["route"] == "Kernelized"),
    (
        another_order_is_the_same,
        lambda case: (
            is_spectral(case)
            and case["told"] in BY_ROWS
            # of copies that count unlike, the order says which is the neighbour
            and not (case["rows"] == "copies" and case["weights"] in ("whole", "fractions"))
            # scikit-learn's sums in single precision lose the digits that an offset leaves
            and not (case["rows"] == "offset" and case["input"] == "float32")
        ),
    ),
    (
        zero_weight_is_absence,
        lambda case: (
            (is_spectral(case) or (case["learner"] in SPECTRAL and case["route"] in PREDICTS))
            and case["weights"] == "some zero"
            and case["told"] in BY_ROWS
        ),
    ),
    (
        single_is_near_double,
        lambda case: is_spectral(case) and case["input"] == "float32" and case["rows"] != "offset",
    ),
]


def test_every_two_values_are_in_a_case():
    for a, b in itertools.combinations(DIMENSIONS, 2):
        met = {(case[a], case[b]) for case in CASES}
        assert met == set(itertools.product(DIMENSIONS[a], DIMENSIONS[b]))


def test_pairs_that_may_meet_are_met_in_a_fit():
    """A pair of values is left to refusals only where one is declared of these two."""
    alive = [case for case in CASES if not refusals(case.values)]
    for a, b in itertools.combinations(DIMENSIONS, 2):
        met = {(case[a], case[b]) for case in alive}
        for u, v in set(itertools.product(DIMENSIONS[a], DIMENSIONS[b])) - met:
            assert _always_refused({a: u, b: v}), (u, v)


def _always_refused(values):
    """Whether no choice of three further dimensions makes these values fit."""
    names = ("learner", "told", "route", "kernel", "space", "weights", "input", "size", "neighbors")
    left = [name for name in names if name not in values]

    def reachable(chosen, rest):
        if refusals(chosen):
            return False
        if not rest:
            return True
        return any(reachable(chosen | {rest[0]: v}, rest[1:]) for v in DIMENSIONS[rest[0]])

    return not reachable(values, left)


def test_every_learner_is_a_value():
    assert {type(learner) for learner in LEARNERS.values()} >= set(learners.LEARNERS)
