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

from dimensions import (
    DIMENSIONS,
    LEARNERS,
    Case,
    arguments,
    as_input,
    cases,
    estimator,
    points,
    refusals,
    shrunk,
    target,
)
from kernelmetric import learners, load, save

CASES = cases()
SPECTRAL = ("DNE", "DLA", "LDA", "LFDA", "LPP", "RCA", "scikit-learn's PCA")
BY_ROWS = ("labels", "names", "numbers")
EXACT_SPACES = ("KPCA", "low rank", "trick")


def fitted(case: Case, keep=None, weights="as given", model=None):
    """Fit the case; of some rows alone, with other weights, or a model that has been fitted."""
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, and of columns that are not used
        model.fit(A, y, **given)
        where = places(case, model, A_new)
    return SimpleNamespace(model=model, A=A, A_new=A_new, X=X, where=where, y=y, given=given)


def places(case: Case, model, A):
    """What a model says of rows: learned coordinates, probabilities or numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case["route"] == "classifier":
            return model.predict_proba(A)
        if case["route"] == "regressor":
            return np.column_stack([model.predict(A), model.predict_interval(A, 0.8)])
        return np.asarray(model.transform(A), dtype=np.float64)


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


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{i}: {CASES[i]}")
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
    keeps_its_own(case, first)
    is_restored(case, first, tmp_path)
    checks = [check for check, when in FURTHER if when(case)]
    checks[number % len(checks)](case, first)


def names_rows_that_count(case, first):
    """The reasons of a prediction are rows of the table that was given, and have weight."""
    if case["route"] in ("classifier", "regressor") and case["weights"] == "some zero":
        rows = first.model.kneighbors(first.A_new, 3, return_distance=False)
        assert (first.given["sample_weight"][rows] > 0).all()


def keeps_its_own(case, first):
    """What the caller does to his arrays afterwards changes nothing."""
    for part in (first.A, first.y, *first.given.values()):
        if isinstance(part, np.ndarray) and part.dtype.kind == "f":
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
    np.testing.assert_array_equal(places(case, load(path), first.A_new), first.where)


def is_repeated(case, first):
    """The same fit gives the same numbers."""
    np.testing.assert_allclose(fitted(case).where, first.where, rtol=1e-9, atol=1e-9)


def a_second_fit_forgets_the_first(case, first):
    """Whatever a model was fitted to before, it ends where a new one does."""
    X, codes, _ = points(case)
    anchors = X[::-1] if case["kernel"] == "gram" and case["route"] != "alone" else None
    y = target(case, codes[::-1].copy())
    model = estimator(case)
    given = arguments(case, codes[::-1])
    if case["route"] == "pipeline":
        given = {f"{model.steps[-1][0]}__{name}": value for name, value in given.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(as_input(case, 2.0 * X[::-1], anchors), y, **given)
        places(case, model, first.A_new)
    again = fitted(case, model=model)
    np.testing.assert_allclose(again.where, first.where, rtol=1e-9, atol=1e-9)


def ones_are_no_weights(case, first):
    """Weights of one change no bit."""
    np.testing.assert_array_equal(fitted(case, weights=np.ones(len(first.X))).where, first.where)


def recipe_is_the_same(case, first):
    """What was chosen, given again, is not chosen again, and gives the same."""
    X, codes, _ = points(case)
    anchors = X if case["kernel"] == "gram" else None
    model = estimator(case).set_params(recipe=first.model.recipe_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(as_input(case, X, anchors), target(case, codes), **arguments(case, codes))
    np.testing.assert_allclose(places(case, model, first.A_new), first.where, rtol=1e-9, atol=1e-9)


def another_order_is_the_same(case, first):
    """Rows in another order make the same metric."""
    order = np.random.RandomState(0).permutation(len(first.X))
    assert_near(fitted(case, keep=order), first, 1e-4)


def zero_weight_is_absence(case, first):
    """Rows without weight might as well not be there."""
    kept = np.flatnonzero(np.arange(len(first.X)) % 11 != 5)
    assert_near(fitted(case, keep=kept), first, 1e-6)


def single_is_near_double(case, first):
    """Single precision loses digits, and nothing else."""
    wide = Case({**case.values, "input": "float64"})
    assert_near(first, fitted(wide), 2e-2)


def takes_weights(case):
    return "sample_weight" in inspect.signature(LEARNERS[case["learner"]].fit).parameters


FURTHER = [
    (a_second_fit_forgets_the_first, lambda case: case["route"] != "search"),
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
        lambda case: is_spectral(case) and case["told"] in BY_ROWS,
    ),
    (
        zero_weight_is_absence,
        lambda case: (
            is_spectral(case) and case["weights"] == "some zero" and case["told"] in BY_ROWS
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
    names = ("learner", "told", "route", "kernel", "space", "weights", "input", "size")
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
