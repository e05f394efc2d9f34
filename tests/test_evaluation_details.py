"""What reports say and how results are put together, down to the single line of text."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from sklearn.covariance import EllipticEnvelope
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import OneClassSVM

from kernelmetric import DNE, Pairs, PairVerifier
from kernelmetric.evaluation import _compare_tricks as tricks
from kernelmetric.evaluation import _pair_cv as pair_cv
from kernelmetric.evaluation import (
    baselines,
    check_kernelizable,
    compare_tricks,
    cross_validate_pairs,
    holdout,
)
from kernelmetric.evaluation._compare_tricks import TrickComparison, _condition, _distance_gap
from kernelmetric.evaluation._kernelizable import (
    DECISIVE,
    Condition,
    KernelizableReport,
    _between,
    _default_data,
)
from kernelmetric.evaluation._outcomes import Answer, answers, constant
from kernelmetric.graphs import discriminant_graph, laplacian
from kernelmetric.kernelized._places import other_neighbors

DEFAULT_SPREAD = [0.694027, 0.515532, 0.369579, 0.200502]
DEFAULT_MEAN = [1.671729, 1.868679, 0.853131, 1.133593]
DEFAULT_TARGET = 3.141008

# --- the two tricks -------------------------------------------------------------------------


def comparison(**options):
    facts = {
        "kpca": None,
        "trick": None,
        "objectives": (-4.0, -4.5),
        "distance_gap": 0.25,
        "condition_gram": 3e7,
        "condition_kept": 200.0,
        "condition_problem": 1e9,
    }
    return TrickComparison(**{**facts, **options})


def test_a_comparison_tells_all_it_found_in_lines():
    expected = [
        ("objective, KPCA trick and kernel trick", "-4, -4.5"),
        ("largest difference of distances, relative", "2.5e-01"),
        ("condition number of K", "3.0e+07"),
        ("condition number of what KPCA keeps", "2.0e+02"),
        ("condition number of K(D-W)K", "1.0e+09"),
    ]
    found = comparison()
    lines = repr(found).split("\n")
    assert lines[:2] == [found.verdict, ""]
    assert [line.split("  ")[1] for line in lines[2:]] == [what for what, _ in expected]
    for (what, text), line in zip(expected, lines[2:], strict=True):
        assert line == f"  {what:<44}{text}"


def test_a_comparison_leaves_out_what_there_is_not():
    found = comparison(objectives=None, condition_problem=None)
    assert [line[2:46].strip() for line in repr(found).split("\n")[2:]] == [
        "largest difference of distances, relative",
        "condition number of K",
        "condition number of what KPCA keeps",
    ]


@pytest.mark.parametrize(
    ("options", "gap", "begins"),
    [
        ({"distance_gap": 1e-3}, 0.125, "Both tricks give the same metric."),
        ({"objectives": (2.0, 2.002)}, 1e-3, "Both tricks reach the same objective by different"),
        ({"objectives": (-4.0, -4.5)}, 0.125, "The tricks end in different optima"),
        ({"objectives": (0.0, 1e-4)}, 1e-4, "Both tricks reach the same objective by different"),
        ({"objectives": None}, None, "The tricks end in different optima"),
    ],
)
def test_the_verdict_follows_from_the_gaps(options, gap, begins):
    found = comparison(**options)
    assert found.objective_gap == (None if gap is None else pytest.approx(gap, rel=1e-9))
    if options.get("objectives") != (2.0, 2.002):  # at the bound itself rounding decides
        assert found.verdict.startswith(begins)
    assert comparison(objectives=(2.0, 2.0019)).verdict.startswith("Both tricks reach")


def test_a_gap_is_relative_to_the_largest_distance_by_the_kpca_trick():
    A = np.array([[0.0], [10.0]])
    assert _distance_gap(A, 0.5 * A) == pytest.approx(0.5)
    assert _distance_gap(A, 3.0 * A) == pytest.approx(2.0)
    assert _distance_gap(0.0 * A, 0.0 * A) == 0.0
    assert _distance_gap(0.0 * A, A) == pytest.approx(10.0)


def test_a_condition_number_goes_by_sizes_and_may_be_infinite():
    assert _condition(np.array([-8.0, 2.0, 4.0])) == pytest.approx(4.0)
    assert _condition(np.array([0.0, 1.0])) == np.inf


def test_the_eigenproblem_is_that_of_the_neighbours_that_were_asked_for(monkeypatch):
    # The smallest eigenvalue is rounding: the largest is the same on every machine.
    monkeypatch.setattr(tricks, "_condition", lambda eigenvalues: float(np.abs(eigenvalues).max()))
    X = np.random.RandomState(3).standard_normal((24, 2)) * [1.0, 3.0]
    y = np.arange(24) % 2
    largest = {}
    for neighbors in ("feature", "input"):
        found = compare_tricks(DNE(1, n_neighbors=2), "poly", X, y, neighbors=neighbors)
        where = X if neighbors == "input" else found.kpca.space_.transform(X)
        K = found.trick.space_.gram_.matrix
        expected = np.abs(linalg.eigvalsh(K @ (laplacian(discriminant_graph(where, y, 2)) @ K)))
        assert found.condition_problem == pytest.approx(expected.max(), rel=1e-6)
        largest[neighbors] = expected.max()
    assert not np.isclose(largest["feature"], largest["input"], rtol=0.05)


# --- whether an estimator is kernelizable ---------------------------------------------------


def report(changes, **options):
    conditions = tuple(
        Condition(name, changes.get(name, 0.0) <= 0.01, changes.get(name, 0.0), "A sentence.")
        for name in (*DECISIVE, "span")
    )
    facts = {"tol": 0.01, "floor": 0.0, "constant": False, **options}
    return KernelizableReport(FunctionTransformer(), conditions, **facts)


def test_a_change_is_told_in_numbers_and_an_error_in_a_word():
    found = report({"rotation": np.inf, "pca": 0.25})
    rows = {line.split()[0]: line.split()[1:3] for line in repr(found).split("\n")[3:]}
    assert rows["translation"] == ["holds", "0.0e+00"]
    assert rows["rotation"] == ["fails", "error"]
    assert rows["pca"] == ["fails", "2.5e-01"]


@pytest.mark.parametrize(
    ("found", "kernelizable", "verdict"),
    [
        (report({}), True, "Kernelizable: run on kernel coordinates it is its kernel version."),
        (report({"span": 1.0}), True, "Kernelizable: run on"),
        (report({"pca": 0.01}), True, "Kernelizable: run on"),  # up to tol it holds
        (report({"pca": 0.02, "rotation": 1}), False, "Not kernelizable as it is: see rotation, p"),
        (report({}, floor=0.01), True, "Kernelizable: run on"),
        (report({}, floor=0.2), False, "Round-off alone changes its result by 2e-01: nothing"),
        (report({}, constant=True), False, "Its result is the same for all points, so nothing"),
    ],
    ids=["good", "span", "at tol", "two fail", "floor at tol", "chaotic", "constant"],
)
def test_the_verdict_on_an_estimator(found, kernelizable, verdict):
    assert found.kernelizable is kernelizable
    assert found.verdict.startswith(verdict)
    assert found.undecided is (found.constant or found.floor > 0.01)


def test_an_unknown_condition_is_refused_with_those_there_are():
    with pytest.raises(KeyError, match="expected one of translation, rotation, embedding, pca, s"):
        report({})["turning"]


def test_scores_of_classes_are_values_and_those_of_clusters_points():
    rng = np.random.RandomState(0)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 2)) + 3.0 * y[:, None]
    kinds = {
        name: {a.method: a.kind for a in answers(estimator, X, y, X[:9] + 0.1, {})}
        for name, estimator in {
            "classes": LinearDiscriminantAnalysis(),
            "mixture": GaussianMixture(2, random_state=0),
            "outliers": OneClassSVM(),
            "more outliers": EllipticEnvelope(random_state=0),
        }.items()
    }
    assert kinds["classes"] == {
        "predict": "labels",
        "transform": "points",
        "predict_proba": "values",
        "decision_function": "values",
    }
    assert kinds["mixture"] == {"predict": "clusters", "predict_proba": "points"}
    # The sign of an outlier detector's score is its label, without classes to say so.
    assert kinds["outliers"] == {"predict": "labels", "decision_function": "values"}
    assert kinds["more outliers"] == {"predict": "labels", "decision_function": "values"}


def test_answers_are_alike_where_all_rows_are():
    assert constant([Answer("predict_proba", "values", np.tile([0.3, 0.7], (5, 1)))])
    assert not constant([Answer("transform", "points", np.array([[1.0, 1.0], [2.0, 2.0]]))])


def test_the_points_that_estimators_are_tried_on_stay_the_same():
    X, y = _default_data(continuous=False)
    assert X.shape == (90, 4)
    assert_array_equal(np.bincount(y), [30, 30, 30])
    assert_allclose(X.min(axis=0), 0.1)
    assert_allclose(X.std(axis=0), DEFAULT_SPREAD, rtol=1e-4)
    assert_allclose(X.mean(axis=0), DEFAULT_MEAN, rtol=1e-4)
    same, target = _default_data(continuous=True)
    assert_allclose(same, X)
    assert target.mean() == pytest.approx(DEFAULT_TARGET, rel=1e-4)


def test_probes_lie_between_points_and_never_half_way():
    X = np.array([[0.0], [1.0]])
    probes = _between(X, np.random.RandomState(0))
    assert probes.shape == (150, 1)
    away = np.minimum(probes, 1.0 - probes)
    assert np.all((away == 0) | ((away >= 0.05) & (away <= 0.45)))


@pytest.mark.parametrize("tol", [0, -1.0, np.inf, np.nan, "0.01"])
def test_a_tolerance_out_of_bounds_is_refused(tol):
    with pytest.raises(ValueError, match=r"Got tol=.*, but expected a .*number > 0: try 0\.01"):
        check_kernelizable(FunctionTransformer(), tol=tol)


# --- baselines, scores, pairs ---------------------------------------------------------------


def test_the_baselines_search_wide_grids():
    found = baselines([0, 1] * 100)
    assert found["RBF-SVM, tuned"].param_grid == {
        "C": [0.5, 3, 20, 100],
        "gamma": ["scale", 0.003, 0.01, 0.03, 0.1],
    }
    assert found["k-NN, tuned"].param_grid == {
        "n_neighbors": [1, 3, 5, 9, 15, 25],
        "weights": ["uniform", "distance"],
    }


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.1, "half", None])
def test_a_share_at_the_bounds_is_refused(share):
    with pytest.raises(ValueError, match=r"Got test_size=.*, but expected a number > 0 and < 1"):
        holdout([0, 1] * 8, share)


def test_a_row_among_twins_is_no_neighbour_of_its_own():
    rows = np.arange(6)
    found, _ = other_neighbors(np.zeros((6, 1)), rows, 2)
    assert found.shape == (6, 2)
    assert not np.any(found == rows[:, None])


def test_times_are_differences_of_the_clock(monkeypatch):
    ticks = iter([10.0, 13.0, 18.0, 20.0, 21.0, 28.0])
    monkeypatch.setattr(pair_cv, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    y = np.arange(12) % 2
    found = cross_validate_pairs(
        FunctionTransformer(), y[:, None] + 0.0, Pairs.from_labels(y), cv=2, random_state=0
    )
    assert_allclose(found["fit_time"], [3.0, 1.0])
    assert_allclose(found["score_time"], [5.0, 7.0])


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("min_rate", 0, True),
        ("min_rate", 1, True),
        ("min_rate", -1e-9, False),
        ("min_rate", 1.001, False),
        ("min_rate", True, False),
        ("beta", 1e-100, True),
        ("beta", 1e100, True),
        ("beta", 0, False),
        ("beta", 1.1e100, False),
        ("beta", None, False),
    ],
)
def test_bounds_of_a_verifier_may_be_taken_and_not_passed(name, value, good):
    verifier = PairVerifier(FunctionTransformer(), **{name: value})
    known = [[0, 1], [0, 2]], np.array([[0.0], [1.0], [3.0]]), [1, 0]
    if good:
        assert verifier.calibrate(*known).tpr_ == 1.0
    else:
        with pytest.raises(ValueError, match=rf"Got {name}=.*, but PairVerifier expected a num"):
            verifier.calibrate(*known)
