"""What learners do at their edges: defaults, bounds, first steps, and how descents are led."""

import inspect
import warnings
from ast import literal_eval
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from kernelmetric import (
    DLA,
    DNE,
    ITML,
    LDA,
    LFDA,
    LMCA,
    LMNN,
    LPP,
    LSML,
    MCML,
    MLKR,
    MMC,
    NCA,
    RCA,
    RFM,
    SCML,
    SDML,
    IdealizedKernel,
    learners,
)
from kernelmetric.compute import rough
from kernelmetric.learners import _log_det as log_det
from kernelmetric.learners import _margin as margin
from kernelmetric.learners import _mmc as mmc
from kernelmetric.learners import _nca_solvers as nca_solvers
from kernelmetric.learners._checks import check_reach
from kernelmetric.learners._descent import OF_POINTS, _discriminant_directions
from kernelmetric.learners._itml import _is_ascending
from kernelmetric.learners._lmnn import _check_targets
from kernelmetric.learners._margin import MarginProblem
from kernelmetric.learners._nca_solvers import NCAProblem, descend_batches
from kernelmetric.solvers._lbfgs import Minimum
from kernelmetric.spaces import orthonormal

# --- parameters -----------------------------------------------------------------------------

_LARGE_MARGIN = {
    "n_components": None, "n_neighbors": 3, "c": 1.0, "init": "auto", "reg": 0.0, "max_iter": 500,
    "tol": 1e-3, "warm_start": False, "class_weight": None, "random_state": None, "verbose": False,
}  # fmt: skip
_REGRESSION = {
    "n_components": None, "init": "auto", "reg": "auto", "max_iter": 200, "tol": 1e-5,
    "warm_start": False, "random_state": None, "verbose": False,
}  # fmt: skip
DEFAULTS = {
    DLA: {"n_components": None, "n_neighbors": 3, "n_others": 3, "beta": 1.0, "class_weight": None},
    DNE: {"n_components": None, "n_neighbors": 3, "reg": 0.0, "class_weight": None},
    IdealizedKernel: {
        "kernel": "linear", "C": "auto", "C_similar": None, "C_dissimilar": None, "nu": 0.2,
        "psd": "solve", "n_neighbors": 5, "radius": "median", "prior": None, "tol": 1e-2,
        "max_iter": 2000, "warm_start": False, "random_state": 0, "verbose": False,
    },
    ITML: {
        "gamma": 1.0, "prior": None, "bounds": None, "percentiles": (5, 95),
        "max_pairs": 2000, "tol": 1e-3, "max_iter": 1000, "warm_start": False, "random_state": 0,
        "verbose": False, "power": "auto",
    },
    LDA: {"n_components": None, "shrinkage": "auto", "class_weight": None},
    LFDA: {
        "n_components": None, "n_neighbors": 7, "shrinkage": "auto", "class_weight": None,
    },
    LMCA: _LARGE_MARGIN,
    LMNN: _LARGE_MARGIN,
    LPP: {"n_components": None, "n_neighbors": 3, "shrinkage": "auto"},
    MCML: {
        "n_components": None, "reg": 0.0, "max_iter": 500, "tol": 1e-5, "class_weight": None,
        "verbose": False,
    },
    MLKR: _REGRESSION,
    MMC: {
        "diagonal": False, "reg": 1e-6, "max_pairs": 200_000, "tol": 1e-3, "max_iter": 2000,
        "warm_start": False, "random_state": 0, "verbose": False, "power": "auto",
    },
    LSML: {
        "gamma": 1e4, "prior": None, "max_tuples": 1000, "tol": 1e-3, "max_iter": 1000,
        "warm_start": False, "random_state": 0, "verbose": False,
    },
    SCML: {
        "beta": 0.01, "basis": None, "n_basis": None, "max_tuples": 10_000, "tol": 0.01,
        "max_iter": 2000, "warm_start": False, "random_state": 0, "verbose": False,
    },
    SDML: {
        "balance": 0.5, "sparsity": 0.1, "prior": None, "max_pairs": 20_000, "tol": 1e-4,
        "max_iter": 1000, "warm_start": False, "random_state": 0, "verbose": False,
    },
    RFM: {
        "n_components": None, "diagonal": False, "regression": "laplace", "max_samples": 1000,
        "max_iter": 5, "class_weight": None, "random_state": 0,
    },
    NCA: {
        **_REGRESSION, "reg": "auto", "tol": "auto", "solver": "auto",
        "batch_size": 1000, "early_stopping": "auto", "class_weight": None,
    },
    RCA: {"n_components": None, "shrinkage": "auto"},
}  # fmt: skip


def test_the_table_of_defaults_has_every_learner():
    assert set(DEFAULTS) == set(learners.LEARNERS)


@pytest.mark.parametrize("cls", list(DEFAULTS), ids=lambda cls: cls.__name__)
def test_defaults_are_those_that_the_documentation_names(cls):
    parameters = cls().get_params()
    assert parameters == DEFAULTS[cls]
    assert {name: type(value) for name, value in parameters.items()} == {
        name: type(value) for name, value in DEFAULTS[cls].items()
    }
    documented = inspect.getdoc(cls)
    for name, value in parameters.items():
        if value is not None:
            entry = documented.partition(f"\n{name} : ")[2].partition("\n")[0]
            assert literal_eval(entry.partition("default=")[2]) == value, name


EDGES = [
    # learner, parameter, at the bound, beyond it
    (LMNN, "n_neighbors", 1, 0),
    (LMNN, "c", 0, -1e-9),
    (LMNN, "c", 1.0, 1.1e100),
    (LMNN, "reg", 0, -1e-9),
    (LMNN, "reg", 1.0, 1.1e100),
    (LMNN, "max_iter", 1, 0),
    (MLKR, "tol", 0, -1e-9),
    (LMCA, "n_components", 1, 0),
    (NCA, "batch_size", 2, 1),
    (MLKR, "max_iter", 1, 0),
    (MCML, "reg", 0, -1e-9),
    (DLA, "n_neighbors", 1, 0),
    (DLA, "n_others", 1, 0),
    (DLA, "beta", 0, -1e-9),
    (DLA, "beta", 1.0, 1.1e100),
    (DNE, "reg", 0, -1e-9),
    (DNE, "reg", 1.0, 1.1e100),
    (LFDA, "n_neighbors", 1, 0),
    (LPP, "n_neighbors", 1, 0),
    (MMC, "max_pairs", 1, 0),
    (MMC, "max_iter", 1, 0),
    (MMC, "tol", 0, -1e-9),
    (MMC, "reg", 0, -1e-9),
    (ITML, "gamma", 1e-9, 0),
    (ITML, "max_pairs", 1, 0),
    (ITML, "max_iter", 1, 0),
    (ITML, "tol", 0, -1e-9),
    (IdealizedKernel, "n_neighbors", 1, 0),
    (IdealizedKernel, "max_iter", 1, 0),
    (IdealizedKernel, "tol", 0, -1e-9),
]


@pytest.mark.every(5)
@pytest.mark.parametrize(("cls", "name", "good", "bad"), EDGES)
def test_bounds_of_learners_may_be_taken_and_not_passed(cls, name, good, bad):
    X = np.random.RandomState(0).standard_normal((12, 2))
    y = np.arange(12) % 2
    given = {"C": 1.0} if cls is IdealizedKernel else {}
    given |= {"max_iter": 3} if "max_iter" in DEFAULTS[cls] else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # three iterations are not enough
        learner = cls(**{**given, name: good}).fit(X, y)
    assert np.all(np.isfinite(learner.components_))
    with pytest.raises(ValueError, match=rf"Got {name}=.*, but {cls.__name__} expected an? .*>=? "):
        cls(**{**given, name: bad}).fit(X, y)


@pytest.mark.parametrize(
    ("shrinkage", "good"),
    [
        (0, True),
        (1, True),
        (0.0, True),
        (np.float32(0.5), True),
        ("auto", True),
        (-1e-9, False),
        (1 + 1e-9, False),
        (True, False),
        (np.nan, False),
        ("none", False),
        (None, False),
    ],
)
def test_shrinkage_is_a_share(shrinkage, good):
    learner = LFDA(shrinkage=shrinkage)
    if good:
        learner._check_parameters()
    else:
        with pytest.raises(ValueError, match=r"Got shrinkage=.*expected 'auto' or a number"):
            learner._check_parameters()


@pytest.mark.parametrize(
    ("value", "high", "good"),
    [
        ((0, 0), 100.0, True),
        ((5, 100), 100.0, True),
        ((5, 100.1), 100.0, False),
        ((6, 5), 100.0, False),
        ((-1, 5), 100.0, False),
        ((1, np.inf), np.inf, False),
        ((1, 2, 3), np.inf, False),
        ((np.nan, 2), np.inf, False),
        (7, np.inf, False),
    ],
)
def test_bounds_ascend_up_to_the_highest(value, high, good):
    assert _is_ascending(value, high) is good


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("nu", 1, True),
        ("nu", 0, False),
        ("nu", 1.001, False),
        ("C", 1e100, True),
        ("C", 1e-100, True),
        ("C", 1.1e100, False),
        ("C", 0.9e-100, False),
        ("C", "some", False),
        ("C_similar", 0, False),
        ("C_dissimilar", None, True),
        ("radius", None, True),
        ("radius", 0, False),
        ("radius", "mean", False),
    ],
)
def test_bounds_of_an_idealized_kernel_may_be_taken_and_not_passed(name, value, good):
    metric = IdealizedKernel(**{name: value})
    if good:
        metric._check_parameters()
    else:
        with pytest.raises(ValueError, match=rf"Got {name}=.*, but "):
            metric._check_parameters()


def test_asking_a_learner_with_an_unknown_kernel_for_its_tags_is_no_error():
    assert get_tags(IdealizedKernel("nonsense")).input_tags.pairwise is False
    assert get_tags(IdealizedKernel("precomputed")).input_tags.pairwise is True


@pytest.mark.parametrize("targets", [[[-2], [0]], [[4], [0]]])
def test_targets_that_are_no_rows_are_refused_with_the_rows_there_are(targets):
    codes = np.zeros(4, dtype=int)
    targets = np.array([*targets, [1], [2]])
    low, high = targets.min(), targets.max()
    with pytest.raises(
        ValueError,
        match=rf"from {low} to {high}, but expected row numbers from 0 to 3, or -1 for none",
    ):
        _check_targets(targets, codes)
    assert_array_equal(_check_targets(np.array([[3], [-1], [0], [0]]), codes)[:2], [[3], [-1]])
    with pytest.raises(ValueError, match="Got a target neighbour of another class for row 2"):
        _check_targets(np.array([[1], [0], [1], [-1]]), np.array([0, 0, 1, 1]))


def test_a_map_reaches_as_far_as_points_are_from_their_mean():
    far = np.array([[1e160, 0.0], [1e160, 1.0]])
    check_reach(np.eye(2), far, "init")


# --- few points, many features --------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [LDA(6), LFDA(6), DNE(6), DLA(6), LPP(6), RCA(6), NCA(6), MCML(6), LMNN(6), LMCA(6)],
    ids=repr,
)
def test_components_may_be_more_than_the_points_and_not_than_the_features(learner):
    X = np.random.RandomState(0).standard_normal((5, 6))
    y = [0, 0, 0, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few points say little, and some learners say so
        fitted = learner.fit(X, y)
    assert fitted.components_.shape[1] == 6
    with pytest.raises(ValueError, match="Got n_components=6, but expected at most 5, the number"):
        learner.fit(X[:, :5], y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_idealized_kernel_learns_from_two_points_and_not_from_one(kernel):
    X = np.array([[0.0, 1.0], [1.0, 3.0]])
    metric = IdealizedKernel(kernel, C=1.0).fit(X, dissimilar=[[0, 1]])
    assert metric.pair_distance([[0, 1]], X)[0] > 0
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        IdealizedKernel(kernel, C=1.0).fit(X[:1], dissimilar=[[0, 0]])


def test_what_does_not_part_classes_is_no_direction_of_lfda():
    # Both classes vary alike along the second feature, and all of a class are neighbours.
    X = np.array([[0.0, -1.0], [0.0, 1.0], [0.0, 0.0], [4.0, -1.0], [4.0, 1.0], [4.0, 0.0]])
    y = np.repeat([0, 1], 3)
    learner = LFDA().fit(X, y, neighbors=y[:, None] * 1.0)
    assert learner.components_.shape == (1, 2)
    assert abs(learner.components_[0, 1]) < 1e-9 * abs(learner.components_[0, 0])


def test_a_feature_below_the_rounding_of_another_spans_nothing():
    one = np.tile([1.0, -1.0], 500)
    other = np.tile([1.0, 1.0, -1.0, -1.0], 250)
    # Singular values: 31.6 and 1e-12; rounding of so many points is 31.6 * 1000 * 2.2e-16 = 7e-12.
    assert orthonormal(np.c_[one, other * 1e-12 / np.sqrt(1000)]).Z.shape == (1000, 1)
    assert orthonormal(np.c_[one, other * 1e-10 / np.sqrt(1000)]).Z.shape == (1000, 2)


def test_after_as_many_directions_as_classes_need_come_principal_ones():
    rng = np.random.RandomState(0)
    codes = np.arange(60) % 3
    Z = rng.standard_normal((60, 5)) * [1.0, 2.0, 6.0, 0.5, 3.0]
    Z[:, 0] += 9.0 * (codes == 1)
    Z[:, 3] += 9.0 * (codes == 2)
    rows = _discriminant_directions(Z, codes, 4)
    assert rows.shape == (4, 5)
    assert_allclose(rows @ rows.T, np.eye(4), atol=1e-9)
    rest = (Z - Z.mean(axis=0)) @ (np.eye(5) - rows[:2].T @ rows[:2])
    _, _, Vt = linalg.svd(rest, full_matrices=False)
    assert_allclose(np.abs(np.sum(rows[2:] * Vt[:2], axis=1)), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "dtype", "tol", "single"),
    [
        ((100, 100), "float64", 1e-5, True),
        ((100, 100), "float64", 1e-2, True),
        ((100, 100), "float64", 0.9e-5, False),
        ((100, 99), "float64", 1e-5, False),
        ((100, 100), "float32", 1e-5, False),  # it is in single precision already
    ],
)
def test_single_precision_is_for_large_problems_of_modest_tolerance(shape, dtype, tol, single):
    points, (n, d) = np.zeros(shape, dtype), shape
    found = rough(points, OF_POINTS * tol, operations=n * n * d)
    assert found.dtype == (np.float32 if single else dtype)
    assert (found is not points) is single


# --- how descents are led -------------------------------------------------------------------


def silent_report():
    curve = []

    def report(state, loss):
        curve.append(float(loss))
        return False

    report.loss_curve, report.stopped = curve, False
    return report


def test_a_minibatch_descent_is_that_of_adam(monkeypatch):
    monkeypatch.setattr(nca_solvers, "_LEAST_BATCHES", 1)
    rng = np.random.RandomState(0)
    codes = np.repeat([0, 1], 10)
    points = rng.standard_normal((20, 3))
    problem = NCAProblem(points, codes, 0.0, None)
    start = rng.standard_normal((2, 3))
    report = silent_report()
    found, value, converged = descend_batches(
        problem, start, report, 4, batch_size=20, random_state=0
    )
    L, m, v = start, 0.0, 0.0
    values = []
    for t in range(1, 5):
        f, G = problem.objective(L)
        values.append(f)
        m, v = 0.9 * m + 0.1 * G, 0.99 * v + 0.01 * G**2
        step = 0.02 * np.sqrt(np.mean(start**2))
        L = L - step * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-12)
    assert np.all(np.diff(values) < -1e-3 * np.abs(values[:-1]))  # else the step would be halved
    assert_allclose(found, L, rtol=1e-9)
    assert_allclose(report.loss_curve, values, rtol=1e-9)
    assert value == pytest.approx(values[-1])
    assert not converged


def test_a_first_stage_that_is_near_is_finished_and_not_repeated():
    rng = np.random.RandomState(0)
    y = np.arange(30) % 2
    X = rng.standard_normal((30, 2)) + 2.0 * y[:, None]
    # Impostors weigh next to nothing: the corner of the hinge is below tol from the beginning.
    learner = LMNN(c=1e-6, tol=1e-3).fit(X, y)
    assert learner.converged_


def test_a_descent_that_runs_out_of_rounds_has_not_converged(monkeypatch):
    monkeypatch.setattr(margin, "_MAX_ROUNDS", 1)
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    with pytest.warns(ConvergenceWarning, match="LMNN stopped after"):
        learner = LMNN(tol=1e-6).fit(rng.standard_normal((60, 4)) + y[:, None], y)
    assert not learner.converged_


class Watched:
    """A problem whose impostors a round misses once, and that is solved from then on."""

    few, unit, codes = False, 1.0, np.zeros(3)

    def __init__(self, missing):
        self.missing, self.watched = list(missing), []

    def mine(self, L, most, slack):
        assert slack == 0.5
        self.watched.append(most)
        first = len(self.watched) == 1
        extra = 0.0 if first or not self.missing else self.missing.pop(0)
        return 5.0 + extra, np.array([[0, 1]], dtype=np.int32)

    def look(self, L, pairs, most, slack):
        exact, nearby = self.mine(L, most, slack)
        return exact, 5.0, nearby

    def listed(self, pairs, nearby):
        return nearby

    def slack(self, corner):
        return 0.5

    def of_map(self, L, pairs, corner):
        return 5.0, 0.0 * L


def test_a_list_that_was_too_short_doubles_and_another_stays():
    problem = Watched([1.0, 0.0, 1.0])
    _, good, corner = margin.descend(
        problem, np.eye(2), SimpleNamespace(stopped=False, loss_curve=[]), 99, 1e-3, 1.0
    )
    # Round by round: too short; near, but the stage was rough; too short; good.
    assert problem.watched == [50, 50, 100, 100, 200]
    assert good
    assert corner == 1.0


@pytest.mark.parametrize(("n", "listed"), [(300, False), (301, True)])
def test_only_large_problems_keep_a_list_of_impostors(n, listed, monkeypatch):
    monkeypatch.setattr(margin, "FEW_POINTS", 300)
    rng = np.random.RandomState(0)
    codes = np.repeat([0, 1], [n // 2, n - n // 2])
    targets = np.where(codes == 0, 0, n - 1)[:, None]
    problem = MarginProblem(rng.standard_normal((n, 2)), targets, codes, 1.0, 0.0)
    value, pairs = problem.mine(np.eye(2))
    assert bool(len(pairs)) is listed
    assert value == pytest.approx(problem.value(np.eye(2)), rel=1e-6)


def test_the_first_map_of_large_margins_has_the_best_length_of_a_grid():
    rng = np.random.RandomState(0)
    codes = np.repeat([0, 1], 15)
    points = rng.standard_normal((30, 2)) + 2.0 * codes[:, None]
    targets = ((np.arange(30) + 1) % 15 + 15 * codes)[:, None]
    problem = MarginProblem(points, targets, codes, 1.0, 0.5)
    L = np.array([[1.0, 0.5], [0.0, 2.0]])
    E = points @ L.T
    pull = np.mean(np.sum((E - E[targets[:, 0]]) ** 2, axis=1))
    lengths = np.sqrt(4.0 ** np.arange(-3, 4) / pull)
    values = [problem.value(length * L) for length in lengths]
    assert 0 < np.argmin(values) < 6
    assert problem.best_length(L) == pytest.approx(lengths[np.argmin(values)])
    assert problem.best_length(0.0 * L) == 1.0


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("best", range(7))
def test_the_best_length_is_found_wherever_it_is(best, few, monkeypatch):
    codes = np.repeat([0, 1], 4)
    points = np.arange(8.0)[:, None]
    problem = MarginProblem(points, np.array([1, 0, 3, 2, 5, 4, 7, 6])[:, None], codes, 1.0, 0.0)
    squares = 4.0 ** np.arange(-3, 4)  # targets are at a distance of one
    asked = []

    def convex(E, some, every):
        asked.extend(some)
        return np.abs(some - squares[best])

    monkeypatch.setattr(problem, "_at_lengths", convex)
    monkeypatch.setattr(problem, "few", few)
    assert problem.best_length(np.eye(1)) == pytest.approx(np.sqrt(squares[best]))
    assert len(asked) == len(set(asked)) <= 6 + (not few)


@pytest.mark.slow
def test_many_points_end_where_they_would_without_a_start_from_some(monkeypatch):
    rng = np.random.RandomState(0)
    y = np.arange(240) % 3
    X = rng.standard_normal((240, 4)) + 0.8 * y[:, None]
    plain = LMNN(tol=1e-5, max_iter=2000).fit(X, y)
    monkeypatch.setattr(margin, "_MANY_POINTS", 200)
    monkeypatch.setattr(margin, "_SOME_POINTS", 80)
    sizes = []
    real = margin._rounds

    def watched(problem, *arguments):
        sizes.append(len(problem.codes))
        return real(problem, *arguments)

    monkeypatch.setattr(margin, "_rounds", watched)
    begun = LMNN(tol=1e-5, max_iter=2000).fit(X, y)
    assert sizes == [80, 240]
    assert begun.converged_
    assert begun.n_iter_ == len(begun.loss_curve_)
    assert begun.loss_ == pytest.approx(plain.loss_, rel=1e-3)
    with pytest.warns(ConvergenceWarning):
        short = LMNN(max_iter=3).fit(X, y)
    assert short.n_iter_ == 3


@pytest.mark.slow
@pytest.mark.parametrize(("most_listed", "most"), [(1e7, 200), (1.0, 50)])
def test_many_points_leave_out_no_impostors_where_some_had_few(monkeypatch, most_listed, most):
    rng = np.random.RandomState(0)
    y = np.arange(4000) % 2
    X = rng.standard_normal((4000, 2)) + 1.5 * y[:, None]
    monkeypatch.setattr(margin, "_MANY_POINTS", 3000)
    monkeypatch.setattr(margin, "_SOME_POINTS", 1200)
    monkeypatch.setattr(margin, "_MOST_LISTED", most_listed)
    monkeypatch.setattr(margin, "FEW_POINTS", 900)
    seen, real = [], margin.mine_impostors

    def mined(E, targets, codes, c, *, most, slack, **options):
        seen.append((len(codes), most, slack))
        return real(E, targets, codes, c, most=most, slack=slack, **options)

    monkeypatch.setattr(margin, "mine_impostors", mined)
    LMNN(tol=1e-2).fit(X, y)
    assert next(rest for n, *rest in seen if n == 1000) == [100, 0.5]
    found, slack = next(rest for n, *rest in seen if n == 4000)
    assert found == most
    assert slack < 0.5  # the corner is narrow by then


def test_many_points_take_no_step_where_some_of_them_were_enough(monkeypatch):
    rng = np.random.RandomState(0)
    y = np.arange(240) % 2
    X = rng.uniform(-0.01, 0.01, (240, 3)) + y[:, None]
    monkeypatch.setattr(margin, "_MANY_POINTS", 200)
    monkeypatch.setattr(margin, "_SOME_POINTS", 80)
    sizes = []
    real = margin.minimize_lbfgs

    def watched(objective, *arguments, **options):
        sizes.append(len(objective.func.__self__.codes))
        return real(objective, *arguments, **options)

    monkeypatch.setattr(margin, "minimize_lbfgs", watched)
    learner = LMNN(tol=1e-2).fit(X, y)
    assert set(sizes) == {80}
    assert learner.converged_
    assert learner.n_iter_ == len(learner.loss_curve_) > 0
    assert learner.loss_ <= 1e-2 * 3 * 240  # as good as none for each target pair


def test_rounds_go_on_with_what_the_descent_knows_and_some_points_lead_roughly(monkeypatch):
    rng = np.random.RandomState(0)
    y = np.arange(240) % 3
    X = rng.standard_normal((240, 4)) + 0.8 * y[:, None]
    monkeypatch.setattr(margin, "_MANY_POINTS", 200)
    monkeypatch.setattr(margin, "_SOME_POINTS", 80)
    calls, real = [], margin.minimize_lbfgs

    def watched(objective, start, *, tol, corrections, **options):
        found = real(objective, start, tol=tol, corrections=corrections, **options)
        size, corner = len(objective.func.__self__.codes), objective.keywords["corner"]
        calls.append((size, corner, tol, corrections, found.corrections))
        return found

    monkeypatch.setattr(margin, "minimize_lbfgs", watched)
    LMNN().fit(X, y)
    assert len(calls) > 2
    given, left = zip(*(call[3:] for call in calls), strict=True)
    assert given[0] is None
    assert all(a is b for a, b in zip(given[1:], left[:-1], strict=True))
    assert all(tol >= 0.01 for size, _, tol, *_ in calls if size == 80)
    assert next(corner for size, corner, *_ in calls if size == 240) == 1e-3
    assert all(corner <= 1e-3 for size, corner, *_ in calls if size == 240)


def test_a_descent_that_ends_with_some_of_the_points_has_not_converged(monkeypatch):
    monkeypatch.setattr(margin, "_MANY_POINTS", 20)
    monkeypatch.setattr(margin, "_SOME_POINTS", 10)
    codes = np.repeat([0, 1], 15)
    targets = ((np.arange(30) + 1) % 15 + 15 * codes)[:, None]
    problem = MarginProblem(np.random.RandomState(0).randn(30, 2), targets, codes, 1.0, 0.0)

    def rounds(problem, where, *how):
        assert len(problem.codes) == 10
        where.done, where.good = 7, True

    monkeypatch.setattr(margin, "_rounds", rounds)
    _, good, _ = margin.descend(problem, np.eye(2), SimpleNamespace(stopped=False), 7, 1e-3, 1.0)
    assert not good


@pytest.mark.parametrize(("n", "widest"), [(100, 0.5), (101, 0.75)])
def test_lists_of_many_points_reach_farther_and_narrow_with_the_corner(n, widest, monkeypatch):
    monkeypatch.setattr(margin, "_MANY_POINTS", 100)
    codes = np.zeros(n, dtype=int)
    problem = MarginProblem(np.zeros((n, 2)), np.full((n, 1), -1), codes, 1.0, 0.0)
    assert problem.slack(1.0) == widest
    assert problem.slack(1e-3) == pytest.approx(0.1 * widest)


def test_an_objective_that_is_as_good_as_none_ends_the_descent():
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 20)
    X = 1e-3 * rng.standard_normal((40, 2)) + 100.0 * y[:, None]
    learner = LMNN(tol=1e-2).fit(X, y)
    assert learner.converged_
    assert learner.loss_ <= 1e-2 * 3 * 40


def counted_descents(monkeypatch, module, most):
    """The tolerances and the iterations left of every descent; each makes one step."""
    calls = []

    def descend(objective, L, *, max_iter, tol, report):
        assert len(calls) < most, "no end"
        calls.append((tol, max_iter))
        report(L, 1.0)
        return Minimum(L, 1.0, 1, True, "")

    monkeypatch.setattr(module, "minimize_lbfgs", descend)
    return calls


def test_itml_asks_for_more_digits_until_there_are_no_more(monkeypatch):
    calls = counted_descents(monkeypatch, log_det, 20)
    problem = SimpleNamespace(
        objective=lambda L: (1.0, np.ones_like(L)), certificate=lambda L: (1.0, 1.0)
    )
    log_det.descend(problem, np.eye(2), silent_report(), 10, 1e-3)
    digits = [1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14]
    assert_allclose([tol for tol, _ in calls], [*digits, *[1e-16] * 4])  # then it is stuck
    assert [left for _, left in calls] == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    calls.clear()
    log_det.descend(problem, np.eye(2), silent_report(), 3, 1e-3)
    assert [left for _, left in calls] == [3, 2, 1]
    calls.clear()
    problem.certificate = lambda L: (1.0, 1e-3)
    log_det.descend(problem, np.eye(2), silent_report(), 10, 1e-3)
    assert len(calls) == 1


def test_mmc_asks_for_more_digits_until_there_are_no_more(monkeypatch):
    calls = counted_descents(monkeypatch, mmc, 20)
    monkeypatch.setattr(mmc.FarApart, "gap", lambda self, L: 1.0)
    X = np.random.RandomState(0).standard_normal((8, 2))
    for max_iter, fewest, most in ((10, 5, 6), (2, 2, 2)):  # rounding decides on 1e-15 itself
        calls.clear()
        with pytest.warns(ConvergenceWarning, match="MMC stopped after") as caught:
            MMC(max_iter=max_iter).fit(X, np.arange(8) % 2)
        assert fewest <= len(calls) <= most
        assert f"after {len(calls)} iterations within 1 of" in str(caught[0].message)
        assert [left for _, left in calls] == list(range(max_iter, max_iter - len(calls), -1))
        assert_allclose([tol for tol, _ in calls], 1e-7 * 0.01 ** np.arange(len(calls)))
