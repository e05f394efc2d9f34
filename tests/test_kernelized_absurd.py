"""Absurd parameters of Kernelized, KernelizedCV and the automatic kernel: a fit or a sentence."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from kernelmetric import DNE, RBF, Kernelized, KernelizedCV
from kernelmetric.selection import LeaveOneOutRidge

ABSURD = [
    *(-1, np.inf, -np.inf, np.nan, 1e308, 0, 0.5, 10**30, True, 1j, "x", "", b"x", None),
    *(object(), len, type, Ellipsis, [], [3], ["x"], [None], [np.inf], {}, {"a": 1}, set()),
    *(np.zeros(3), np.array(2), RBF, DNE),
]
ESTIMATORS = [
    Kernelized(DNE(1), "rbf"),
    KernelizedCV(DNE(1), "linear", 2),
    LeaveOneOutRidge(),
]
PARAMETERS = [
    (estimator, name)
    for estimator in ESTIMATORS
    for name in inspect.signature(type(estimator)).parameters
]
# Scores and seeds are refused in scikit-learn's words; a function may be a score until it fails.
THEIRS = {"scoring": ("scoring value", "fits failed with"), "random_state": ("seed",)}


@pytest.mark.parametrize(
    ("estimator", "name"), PARAMETERS, ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::UserWarning")  # of scores that are not numbers
@pytest.mark.every(9)
def test_an_absurd_parameter_ends_in_a_fit_or_in_a_sentence(estimator, name, half, labelled):
    X, y = labelled
    for value in ABSURD[(half + PARAMETERS.index((estimator, name))) % 2 :: 2]:
        if name == "n_jobs" and value is ABSURD[0]:
            continue  # it is no absurd one, and starts processes
        changed = clone(estimator).set_params(**{name: value})
        try:
            changed.bind(X, y) if isinstance(changed, LeaveOneOutRidge) else changed.fit(X, y)
        except (ValueError, TypeError) as error:
            said = str(error)
            assert any(word in said for word in ("Got", *THEIRS.get(name, ()))), (value, said)
            assert len(said.split()) > 5, (value, said)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_jobs": np.inf}, r"Got n_jobs=inf, but expected None, a number of processes, or -1"),
        ({"n_jobs": 0}, r"Got n_jobs=0, but expected None, a number of processes"),
        ({"n_jobs": 10**30}, r"Got n_jobs=1000000000000000000000000000000, but expected"),
        ({"cv": 1}, r"Got cv=1, but expected from 2 to n_samples=30 folds"),
        ({"cv": 31}, r"Got cv=31, but expected from 2 to n_samples=30 folds"),
        ({"cv": []}, r"Got cv=\[\], but expected at least one pair \(train, test\)"),
        ({"cv": [([0, 1], [])]}, r"expected at least one pair .*neither of them empty"),
        ({"cv": "loo"}, r"Got cv='loo', but expected at least one pair"),
        ({"scoring": ["accuracy"]}, r"Got scoring=\['accuracy'\], but expected one score"),
        ({"estimator": StandardScaler()}, r"Got estimator=StandardScaler\(\), which has no score"),
        ({"estimator": "knn"}, r"Got estimator='knn', but KernelizedCV expected a scikit-learn"),
        ({"error_score": np.zeros(2)}, r"Got error_score=array.*expected 'raise' or a number"),
        ({"n_components": b"x"}, r"Got n_components=b'x', but expected None"),
    ],
)
def test_a_search_says_what_it_expected(params, match, labelled):
    with pytest.raises(ValueError, match=match):
        KernelizedCV(DNE(1), "linear").set_params(**params).fit(*labelled)


@pytest.mark.parametrize("most", [np.inf, np.nan, 7, 500.0, "all", True, None])
def test_a_sample_of_no_size_is_refused(most, labelled):
    with pytest.raises(ValueError, match=r"Got max_samples=.*expected an integer >= 8"):
        LeaveOneOutRidge(max_samples=most).bind(*labelled)


def test_more_rows_than_there_are_mean_all(labelled):
    most, all_of_them = (LeaveOneOutRidge(m).bind(*labelled) for m in (10**30, 500))
    np.testing.assert_array_equal(most.loo_errors_, all_of_them.loo_errors_)
