"""Learners, to the letter: defaults, estimates of memory, stages, folds, and whose words count."""

import ast
import inspect
import re
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import kernelmetric
import kernelmetric.solvers
from kernelmetric import ITML, LMNN, LPP, MMC, RCA, SCML, SDML, IdealizedKernel, Pairs
from kernelmetric.compute.reductions import sampled_squared_distances
from kernelmetric.graphs import rows_by_place
from kernelmetric.learners import _idealized_choice as choice
from kernelmetric.learners import _margin as margin
from kernelmetric.learners._checks import check_neighbors
from kernelmetric.learners._tuple_learner import SAMPLED_BYTES, PairCounts, all_or_random_pairs
from kernelmetric.solvers._lbfgs import Minimum

# --- defaults -----------------------------------------------------------------------------------


def documented(module):
    """Parameters with a default, as the signature has it and as the docstring says."""
    things = {name: getattr(module, name) for name in sorted(set(module.__all__))}
    methods = {
        f"{name}.{key}": getattr(thing, key)
        for name, thing in things.items()
        if inspect.isclass(thing)
        for key in vars(thing)
        if key[0] != "_" and not key.endswith("_request")  # scikit-learn writes these
        if inspect.isfunction(getattr(thing, key))
    }
    for name, thing in {**things, **methods}.items():
        warning = inspect.isclass(thing) and issubclass(thing, Warning)
        if not callable(thing) or warning or not getattr(thing, "__doc__", None):
            continue
        said = dict(re.findall(r"^ {4,8}(\w+) : .*?default=(.+)$", thing.__doc__, re.MULTILINE))
        for parameter in inspect.signature(thing).parameters.values():
            if parameter.default is not parameter.empty and parameter.name in said:
                yield name, parameter.name, parameter.default, said[parameter.name].strip()


def read(text):
    return ast.literal_eval(text.rstrip("."))


ROOMS = [
    kernelmetric,
    *(getattr(kernelmetric, room) for room in ("graphs", "kernels", "selection")),
    *(getattr(kernelmetric, room) for room in ("spaces", "learners", "evaluation", "transductive")),
]


@pytest.mark.parametrize("module", ROOMS, ids=lambda m: m.__name__)
def test_every_default_is_the_one_that_the_docstring_says(module):
    rows = list(documented(module))
    assert len(rows) >= 8
    for name, parameter, default, said in rows:
        if isinstance(default, float) and np.isnan(default):
            assert "nan" in said, (name, parameter)
        else:
            assert read(said) == default, f"{name}({parameter}={default!r}) says {said}"


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        ("NCA", {"max_iter": 200, "tol": "auto", "solver": "auto", "reg": "auto"}),
        ("LMNN", {"n_neighbors": 3, "c": 1.0, "max_iter": 500, "tol": 1e-3}),
        ("LMCA", {"n_neighbors": 3, "c": 1.0, "max_iter": 500, "tol": 1e-3, "reg": 0.0}),
        ("MLKR", {"max_iter": 200, "tol": 1e-5, "reg": "auto", "init": "auto"}),
        ("MCML", {"max_iter": 500, "tol": 1e-5, "reg": 0.0}),
        ("ITML", {"gamma": 1.0, "percentiles": (5, 95), "max_pairs": 2000, "tol": 1e-3}),
        ("MMC", {"reg": 1e-6, "max_pairs": 200_000, "tol": 1e-3, "max_iter": 2000}),
        ("IdealizedKernel", {"C": "auto", "nu": 0.2, "n_neighbors": 5, "tol": 1e-2}),
        ("DNE", {"n_neighbors": 3, "reg": 0.0}),
        ("DLA", {"n_neighbors": 3, "n_others": 3, "beta": 1.0}),
        ("LFDA", {"n_neighbors": 7, "shrinkage": "auto"}),
        ("LPP", {"n_neighbors": 3, "shrinkage": "auto"}),
        ("LDA", {"shrinkage": "auto"}),
        ("RCA", {"shrinkage": "auto"}),
    ],
)
def test_learners_begin_with_the_same_parameters_as_ever(name, defaults):
    parameters = inspect.signature(getattr(kernelmetric, name)).parameters
    assert {key: parameters[key].default for key in defaults} == defaults


# --- estimates of memory ------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(30, 2), (1000, 20), (50_000, 7)])
def test_itml_counts_pairs_points_matrices_and_a_sample(n, d):
    most = max(2000, 2 * n)
    N = min(most, n * (n - 1) // 2)
    at_first = max(2 * 1024**2, 8 * 3 * min(N, 16_384) * d)  # sampled distances, or differences
    assert ITML().estimate_memory(n, d) == at_first + 8 * (6 * N + 2 * n * d + 25 * d**2)


@pytest.mark.parametrize(("n", "d"), [(30, 2), (1000, 20), (50_000, 7)])
def test_mmc_counts_pairs_points_and_matrices(n, d):
    N = min(200_000, n * (n - 1) // 2)
    assert MMC().estimate_memory(n, d) == 8 * (N * (d + 6) + 4 * n * d + 25 * d**2)
    assert MMC(max_pairs=10).estimate_memory(n, d) == 8 * (10 * (d + 6) + 4 * n * d + 25 * d**2)


@pytest.mark.parametrize(("n", "d"), [(30, 2), (1000, 20), (50_000, 7)])
def test_sdml_and_scml_count_pairs_or_directions_points_and_matrices(n, d):
    N = min(20_000, n * (n - 1) // 2)
    pairs = 6 * N + 3 * min(N, 16_384) * d
    assert SDML().estimate_memory(n, d) == 8 * (pairs + 4 * n * d + 16 * d**2)
    k, N = min(20 * d, 300), min(10_000, 15 * n)
    compared = 180 * n + 3 * N * k
    assert SCML().estimate_memory(n, d) == 8 * (compared + n * (k + 4 * d) + 8 * min(n, d) ** 2)
    assert SCML(n_basis=k).estimate_memory(n, d) == SCML().estimate_memory(n, d)


@pytest.mark.parametrize(("n", "k"), [(40, 3), (40, 100), (5000, 3)])
def test_lmnn_counts_a_hundred_impostors_of_every_point(monkeypatch, n, k):
    monkeypatch.setattr("kernelmetric.compute._threads._BLAS.available", lambda: 1)
    monkeypatch.setattr("kernelmetric.learners._lmnn.BLOCK_BYTES", 1000)
    d = 6
    plain = super(type(LMNN()), LMNN())  # of the class above: LMNN adds nothing of its own
    assert plain.estimate_memory(n, d) == LMNN().estimate_memory(n, d)
    base = kernelmetric.learners.Learner._fit_bytes(LMNN(), n, d)
    blocks = (1 + 3 * min(k, n)) * (1000 if n == 5000 else 6 * n**2)  # few points all at once
    listed = 24 * n * min(100, n)  # three numbers of 8 bytes for each
    assert LMNN(n_neighbors=k).estimate_memory(n, d) == base + blocks + listed


def test_a_sample_of_distances_takes_what_is_set_aside_for_it():
    X = np.random.RandomState(0).standard_normal((400, 5))  # nearly all pairs of few points
    sampled_squared_distances(X[:10])
    tracemalloc.start()
    try:
        sampled_squared_distances(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.25 < SAMPLED_BYTES / peak < 4.0
    for learner in (ITML(), IdealizedKernel(C=1.0), IdealizedKernel()):
        assert learner.estimate_memory(5, 2) >= SAMPLED_BYTES


def test_the_choice_of_c_is_counted_where_there_is_one():
    # The pairs of a fold are at most a thousand: for many points they are what is small.
    for n, d in ((100, 60), (3000, 10)):
        fixed = IdealizedKernel(C=1.0).estimate_memory(n, d)
        assert IdealizedKernel().estimate_memory(n, d) >= fixed
    # With 80 features there are Newton steps over a thousand pairs, and none over all of them.
    fixed = IdealizedKernel(C=1.0).estimate_memory(300, 80)
    assert IdealizedKernel().estimate_memory(300, 80) > 1.1 * fixed


# --- RCA: whose words count ---------------------------------------------------------------------


def test_pairs_beside_labels_are_what_rca_learns_from(labelled):
    X, y = labelled
    pairs = Pairs([[0, 1], [1, 2], [5, 6]], None, n_samples=len(X))
    beside, alone = RCA().fit(X, y, pairs=pairs), RCA().fit(X, pairs=pairs)
    np.testing.assert_array_equal(beside.chunks_, alone.chunks_)
    np.testing.assert_array_equal(np.flatnonzero(beside.chunks_ >= 0), [0, 1, 2, 5, 6])
    np.testing.assert_allclose(beside.components_, alone.components_)


def test_row_numbers_beside_labels_are_refused_by_rca(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match="Got y beside similar or dissimilar row numbers"):
        RCA().fit(X, y, similar=[[0, 1]])
    with pytest.raises(ValueError, match="Got neither y nor pairs"):
        RCA().fit(X)
    with pytest.raises(ValueError, match="Got chunks beside similar pairs"):
        RCA().fit(X, chunks=y, similar=[[0, 1]])


def test_chunks_count_where_labels_stand_beside_them(labelled):
    X, y = labelled
    chunks = np.where(np.arange(len(X)) < 6, np.arange(len(X)) // 2, -1)
    learner = RCA().fit(X, y, chunks=chunks)
    np.testing.assert_array_equal(learner.chunks_, chunks)


# --- LPP: how many directions are kept ----------------------------------------------------------


@pytest.mark.parametrize("both", [False, True])
def test_lpp_keeps_the_directions_in_which_neighbours_are_alike(both):
    # Twenty pairs of neighbours, alike in the first feature. In the second they are opposites.
    t = np.repeat(np.arange(20.0), 2) + np.tile([0.0, 0.1], 20)
    other = np.repeat(np.random.RandomState(0).standard_normal(20), 2)
    second = other if both else np.tile([-1.0, 1.0], 20)
    learner = LPP(n_neighbors=1, shrinkage=0.0).fit(np.c_[t, second], neighbors=t[:, None])
    assert learner.eigenvalues_[0] < 0.1
    assert (learner.eigenvalues_[1] < 1.0) == both
    assert learner.components_.shape == (1 + both, 2)
    assert learner.loss_ == pytest.approx(np.sum(learner.eigenvalues_[: 1 + both]))


def test_lpp_keeps_one_direction_where_neighbours_are_alike_in_none():
    t = np.repeat(np.arange(20.0), 2) + np.tile([0.0, 0.1], 20)
    sign = np.tile([-1.0, 1.0], 20)
    size = np.repeat(np.random.RandomState(0).uniform(1.0, 2.0, 20), 2)
    learner = LPP(n_neighbors=1, shrinkage=0.0).fit(np.c_[sign, sign * size], neighbors=t[:, None])
    assert learner.eigenvalues_.min() > 1.0
    assert learner.components_.shape == (1, 2)


# --- large margins: stages ----------------------------------------------------------------------


class Quiet:
    """What a descent reports to."""

    stopped = False

    def __call__(self, L, value):
        return False


class Flat:
    """A problem without impostors whose objective is as given, whatever the map."""

    unit, few, codes = 10.0, True, np.zeros(4)

    def __init__(self, exact=0.0):
        self.exact = exact

    def mine(self, L, most, slack):
        return self.exact, np.empty((0, 2), dtype=np.int32)

    def look(self, L, pairs, most, slack):
        return self.exact, self.exact, np.empty((0, 2), dtype=np.int32)

    def slack(self, corner):
        return 0.5 * corner

    def of_map(self, L, pairs, corner):
        return self.exact / self.unit, np.zeros_like(L)


@pytest.fixture
def lbfgs(monkeypatch):
    """Replace L-BFGS: the limits and tolerances of its calls, and minima in turn."""
    calls, minima = [], []

    def fake(objective, L, *, max_iter, tol, report, corrections):
        calls.append((max_iter, pytest.approx(tol)))
        n_iter, good = minima.pop(0)
        return Minimum(L, objective(L)[0], n_iter, good, "")

    monkeypatch.setattr(margin, "minimize_lbfgs", fake)
    return calls, minima


def test_a_descent_without_a_step_to_a_finite_value_ends_at_once(lbfgs):
    calls, minima = lbfgs
    minima.append((0, False))
    _, good, _ = margin.descend(Flat(5.0), np.eye(2), Quiet(), 500, 1e-3, 1.0)
    assert not good and len(calls) == 1


def test_a_descent_of_one_step_goes_on(lbfgs):
    calls, minima = lbfgs
    minima += [(1, False), (5, True), (0, True)]
    _, good, _ = margin.descend(Flat(5.0), np.eye(2), Quiet(), 500, 1e-3, 1.0)
    assert good and minima == []
    # Rounds double; the last is as strict as the tolerance, the first as rough as the corner.
    assert calls == [(20, 1e-2), (40, 1e-2), (80, 1e-4)]


def test_a_descent_takes_no_more_steps_than_it_may(lbfgs):
    calls, minima = lbfgs
    minima += [(20, False), (2, False)]
    _, good, _ = margin.descend(Flat(5.0), np.eye(2), Quiet(), 22, 1e-3, 1.0)
    assert not good
    assert [limit for limit, _ in calls] == [20, 2]


# --- idealized kernels: folds -------------------------------------------------------------------


def test_every_point_is_left_out_of_one_of_fivefolds_of_points():
    pairs = Pairs.from_labels(np.arange(40) % 2)
    Z = np.random.RandomState(1).standard_normal((40, 2))
    folds = list(choice.folds_of_points(Z, pairs, 1000, np.random.RandomState(0)))
    assert len(folds) == 5
    left_out = [set(range(40)) - set(teach.rows.ravel().tolist()) for teach, _ in folds]
    assert sorted(len(points) for points in left_out) == [8] * 5
    assert set().union(*left_out) == set(range(40))
    for (teach, judge), points in zip(folds, left_out, strict=True):
        assert len(teach) + len(judge) == len(pairs)
        assert all(points & set(row) for row in judge.rows.tolist())


def test_a_fold_has_a_thousand_pairs_of_either_kind_at_most():
    rng = np.random.RandomState(0)
    mask = np.ones(1000, dtype=bool)
    np.testing.assert_array_equal(choice._some(mask, 1000, rng), np.arange(1000))
    chosen = choice._some(np.r_[False, mask, True], 1000, rng)
    assert len(chosen) == len(np.unique(chosen)) == 1000
    assert np.all(np.diff(chosen) > 0) and chosen[0] > 0


def test_without_two_kinds_of_pairs_in_any_fold_there_is_no_choice():
    pairs = Pairs([[0, 1]], [[2, 3]], n_samples=4)
    C, scores = choice.choose_C(np.eye(4), pairs, None, clip=False, counts=len, random_state=0)
    assert (C, len(scores)) == (1000.0, 0)


def test_powers_of_ten_are_tried_until_the_margin_dwarfs_the_distances(monkeypatch):
    tried = []

    def solved(C, *_):
        tried.append(C)
        found = {"metric": np.eye(2), "certificate": SimpleNamespace(gamma=C / 1e3)}
        return SimpleNamespace(alpha=None, **found)

    monkeypatch.setattr(choice, "_solved", solved)
    monkeypatch.setattr(choice, "roc_auc_score", lambda differ, q, sample_weight: 0.7)
    Z = np.random.RandomState(0).standard_normal((40, 2))
    pairs = Pairs.from_labels(np.arange(40) % 2)
    how = {"clip": True, "counts": len, "random_state": 0}
    C, scores = choice.choose_C(Z, pairs, lambda Z, teach, C: C, **how)
    assert tried == [10.0**k for k in range(1, 7) for _ in range(5)]  # a margin of 100 is not yet
    assert C == 1e6 and len(scores) == 6  # all are as good: the largest
    np.testing.assert_allclose(scores, 0.7)
    C, scores = choice.choose_C(Z, pairs, lambda Z, teach, C: C / 1e9, **how)
    assert C == 1e8 and len(scores) == 8


def test_where_C_only_scales_the_metric_nothing_is_solved_for_a_larger_one(monkeypatch):
    rng = np.random.RandomState(0)
    y = np.arange(30) % 2
    Z = rng.standard_normal((30, 2)) + 6.0 * y[:, None]
    pairs = Pairs.from_labels(y).take(np.arange(0, 435, 5))
    learner = IdealizedKernel()
    counts = PairCounts(None, np.ones(30))
    problems = {C: learner._problem(Z, pairs, C, None, counts, psd=False) for C in (1e2, 1e3, 1e4)}
    path, solve, options = [], choice.solve_pairs, []

    def counted(problem, **given):
        options.append(given)
        return solve(problem, **given)

    monkeypatch.setattr(choice, "solve_pairs", counted)
    for C, problem in problems.items():
        found = choice._solved(problem, C, path)
        path.append((C, found.alpha, found.metric))
        assert found.certificate.gap <= 1e-2
    # The second is the first times ten, and the third lies on their line.
    assert options == [{"tol": 1e-2, "max_iter": 300, "sharp": False, "metric": None}]
    wrong = [(C, 0.0 * alpha, np.eye(2)) for C, alpha, _ in path[:2]]
    choice._solved(problems[1e4], 1e4, wrong)  # a line that ends nowhere good is not followed
    assert len(options) == 2 and options[1]["metric"] is wrong[1][2]


def test_all_pairs_are_taken_while_they_are_few():
    codes = np.arange(20) % 4
    Z = np.random.RandomState(0).standard_normal((20, 2))
    rows = rows_by_place(Z)

    def drawn(each):
        found = Pairs.from_labels(codes[rows], per_point=each, random_state=0)
        return Pairs(rows[found.similar], rows[found.dissimilar], 20).rows

    assert len(all_or_random_pairs(Z, codes, 190, 0)) == 190
    some = all_or_random_pairs(Z, codes, 189, 0)
    assert len(some) < 190
    np.testing.assert_array_equal(some.rows, drawn(4))
    # one for each point at the least
    np.testing.assert_array_equal(all_or_random_pairs(Z, codes, 3, 0).rows, drawn(1))


# --- words --------------------------------------------------------------------------------------


def test_other_coordinates_are_counted_against_the_points():
    X = np.zeros((7, 3))
    assert check_neighbors(np.zeros((7, 1)), X).shape == (7, 1)
    for bad, shape in ((np.zeros((3, 7)), r"\(3, 7\)"), (np.zeros(7), r"\(7,\)")):
        with pytest.raises(
            ValueError, match=rf"^Got neighbors of shape {shape}, .* each of the 7 points\.$"
        ):
            check_neighbors(bad, X)


def test_row_numbers_are_neighbours_only_where_they_are_welcome():
    X, rows = np.zeros((2, 3)), np.array([[1], [0]])
    assert check_neighbors(rows, X, rows=True) is rows
    with pytest.raises(ValueError, match=r"^Got neighbors of dtype int64, .* of the points\. Int"):
        check_neighbors(rows, X)
    with pytest.raises(ValueError, match=r"points, or integers: the row numbers of neighbours\. "):
        check_neighbors(rows > 0, X, rows=True)
    with pytest.raises(ValueError, match="Got neighbors with NaN or infinity"):
        check_neighbors(np.array([[1.0], [np.inf]]), X)


@pytest.mark.parametrize("tilt", [-1e-9, -1e-7])
def test_a_prior_may_be_indefinite_by_rounding_and_no_more(labelled, tilt):
    X, y = labelled
    prior = np.diag([1.0, 1.0, 1.0, tilt])
    learner = IdealizedKernel(C=1.0, prior=prior)
    if tilt > -1e-8:
        learner.fit(X, y)
    else:
        with pytest.raises(ValueError, match=r"Got a prior of shape \(4, 4\), but expected a sym"):
            learner.fit(X, y)
