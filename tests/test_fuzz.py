"""The fuzzer: some of its cases, faults that it must notice, and what it found."""

import json
import os
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.model_selection import PredefinedSplit

from kernelmetric import (
    DNE,
    ITML,
    KPCA,
    LDA,
    LFDA,
    LMNN,
    LPP,
    LSML,
    MLKR,
    NCA,
    RBF,
    RFM,
    SCML,
    IdealizedKernel,
    Kernelized,
    KernelizedCV,
    KernelTrick,
    Laplacian,
    Linear,
    MetricClassifier,
    MetricRegressor,
    Pairs,
    PairVerifier,
    Polynomial,
    TransductiveDistance,
    cross_validate_pairs,
)
from kernelmetric.kernels import (
    Columns,
    Convolutions,
    FunctionKernel,
    GlobalAlignment,
    PairwiseKernel,
    Precomputed,
    Product,
    Rescaled,
    Sum,
    TableSchema,
    Tanimoto,
)
from kernelmetric.kernels._registry import KERNELS
from kernelmetric.kernels._series import SeriesKernel
from kernelmetric.learners._spectral import ledoit_wolf
from kernelmetric.selection import (
    AlignedScales,
    AlignedSum,
    KernelAlignment,
    LeaveOneOutRidge,
    RidgeKPCA,
)
from object_examples import EXAMPLES

TOOLS = Path(__file__).parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import fuzz  # noqa: E402
import fuzz_cases  # noqa: E402

SOME = 60  # cases of the ordinary tests; make test-all runs 5,000


# --- the fuzzer itself ----------------------------------------------------------------------------


@pytest.mark.usefixtures("deadline")
@pytest.mark.filterwarnings("ignore")  # while cases are drawn
def test_some_cases_are_fitted_or_refused_in_a_sentence():
    faults, kinds = [], set()
    for number in range(SOME):
        case = fuzz.draw(7, number)
        outcome = fuzz.judge(case)
        kinds.add(outcome.kind)
        if outcome.kind in fuzz.FAULTS:
            faults.append(f"#{number}: {outcome.detail}\n{case}")
    assert not faults, "\n".join(faults)
    assert kinds == {"fitted", "refused"}


@pytest.mark.slow
def test_a_thousand_other_cases_are_fitted_or_refused_in_a_sentence(capsys):
    assert fuzz.main(["--cases", "1000", "--seed", "1"]) == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_case_is_its_number():
    for number in range(40):
        first, again = (str(fuzz.draw(3, number)) for _ in range(2))
        assert re.sub(r"0x\w+", "", first) == re.sub(r"0x\w+", "", again)  # addresses differ
    assert len({str(fuzz.draw(3, number)) for number in range(40)}) > 35


@pytest.mark.slow
def test_every_estimator_is_drawn():
    drawn = {type(fuzz.draw(0, number).estimator).__name__ for number in range(700)}
    learners = {learner.__name__ for learner in fuzz_cases.LEARNERS}
    others = {"Kernelized", "KernelizedCV", "MetricClassifier", "MetricRegressor", "PairVerifier"}
    assert drawn >= learners | others | {"TransductiveDistance", "KPCA", "RBF", "TableSchema"}


class Planted(BaseEstimator):
    """An estimator with one of some faults."""

    def __init__(self, fault="none"):
        self.fault = fault

    def fit(self, X, y=None):
        """Fail as planted."""
        if self.fault == "IndexError":
            [][0]
        if self.fault == "raised":
            raise ValueError("Got a sentence, but not one of the library's or of scikit-learn's.")
        if self.fault == "sleep":
            time.sleep(600)
        if self.fault == "killed":
            os._exit(3)
        if self.fault == "short":
            NCA(max_iter=-1).fit(X, y)
        if self.fault == "broadcast":
            np.ones(2) + np.ones(3)
        if self.fault == "singular":
            np.linalg.inv(np.zeros((2, 2)))
        return self

    def transform(self, X):
        """Points, not finite where that is the fault."""
        return np.full(np.shape(X), np.nan if self.fault == "NaN" else 1.0)

    def pairwise_distances(self, A):
        """Distances, below zero where that is the fault."""
        return np.full((len(A), len(A)), -1.0 if self.fault == "negative" else 1.0)


FAULTS = {
    "none": "fitted",
    "short": "refused",
    "IndexError": "raw",
    "raised": "raw",
    "broadcast": "raw",
    "singular": "raw",
    "NaN": "non-finite",
    "negative": "non-finite",
}
HANGING = ("none", "sleep", "killed", "none")


def planted(seed, number):
    """A case with the fault of this number, for other processes."""
    return _case(HANGING[number])


def _case(fault):
    X = np.arange(12.0).reshape(6, 2)
    return fuzz_cases.Case(Planted(fault), X, np.arange(6) % 2, X)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_noticed(fault):
    assert fuzz.judge(_case(fault)).kind == FAULTS[fault]


def test_not_finite_answers_to_points_that_are_not_finite_are_no_fault():
    case = _case("NaN")
    case.X[0, 0] = np.nan
    assert fuzz.judge(case).kind == "fitted"


@pytest.mark.slow
def test_a_case_that_hangs_is_late_and_one_that_dies_is_raw():
    ended = fuzz.run(range(4), jobs=1, limit=1.0, drawn=planted)
    kinds = {number: outcome.kind for number, _, outcome, _ in ended}
    assert kinds == {0: "fitted", 1: "late", 2: "raw", 3: "fitted"}


@pytest.mark.parametrize("fault", ["fitted", "raw", "non-finite", "late"])
def test_the_command_counts_and_writes(fault, tmp_path, capsys, monkeypatch):
    def run(numbers, seed, **options):
        for number in numbers:
            yield number, "words", fuzz.Outcome(fault if number == 2 else "refused"), 0.1

    monkeypatch.setattr(fuzz, "run", run)
    out = tmp_path / "found.json"
    assert fuzz.main(["--cases", "4", "--seed", "7", "--json", str(out)]) == (fault != "fitted")
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["counts"] == {"refused": 3, fault: 1}
    assert [case["case"] for case in found["cases"]] == [0, 1, 2, 3]
    assert f"4 cases with seed 7: {int(fault == 'fitted')} fitted" in capsys.readouterr().out


# --- what it found --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "match"),
    [
        (LSML(max_tuples=1e308), r"Got max_tuples=1e\+308, but LSML expected an integer"),
        (LSML(max_tuples=np.zeros((2, 2))), r"(?s)Got max_tuples=array.*expected an integer"),
        (SCML(n_basis=pd.Series([1, 2])), r"(?s)Got n_basis=.*expected an integer"),
        (RFM(max_samples=""), r"Got max_samples='', but RFM expected an integer"),
        (LMNN(n_neighbors=...), r"Got n_neighbors=Ellipsis, but LMNN expected an integer"),
        (LFDA(n_neighbors=()), r"Got n_neighbors=\(\), but LFDA expected an integer"),
        (DNE(n_components=np.nan), r"Got n_components=nan, but DNE expected an integer"),
        (NCA(n_components="auto"), r"Got n_components='auto', but NCA expected an integer"),
        (NCA(max_iter=10**400), r"Got max_iter=10+, but NCA expected an integer"),
        (SCML(warm_start=np.zeros(2)), r"Got warm_start=array.*expected True or False"),
        (IdealizedKernel(nu=10**400), r"Got nu=10+, but IdealizedKernel expected a number > 0"),
        (IdealizedKernel(C=10**400), r"Got C=10+, but IdealizedKernel expected 'auto' or a number"),
        (LFDA(shrinkage=10**400), r"Got shrinkage=10+, but LFDA expected 'auto' or a number"),
    ],
    ids=repr,
)
def test_parameters_are_refused_before_anything_is_computed_from_them(learner, match, labelled):
    for metric in (learner, Kernelized(learner, "rbf"), KernelizedCV(learner, ["rbf"])):
        with pytest.raises(ValueError, match=match):
            metric.fit(*labelled)
    with pytest.raises(ValueError, match=match):
        Kernelized(learner, "rbf", KernelTrick()).fit(*labelled)
    if not isinstance(learner, LFDA) or learner.shrinkage == "auto":
        with pytest.raises(ValueError, match=match):
            learner.estimate_memory(100, 5)


@pytest.mark.parametrize(
    "metric",
    [NCA(), RFM(), LSML(), Kernelized(NCA(), KernelAlignment()), MetricClassifier(NCA())],
    ids=repr,
)
def test_labels_of_several_types_are_refused(metric, labelled):
    X, y = labelled
    mixed = y.astype(object)
    mixed[0] = "a"
    with pytest.raises(ValueError, match=r"Got labels of type int and str in y, but expected"):
        metric.fit(X, mixed)


def test_zero_weights_for_a_class_of_words_are_refused_by_its_name(labelled):
    X, y = labelled
    words = np.array(["a", "b", "c"], dtype=object)[y]
    with pytest.raises(ValueError, match=r"sample_weight of zero for all rows of class 'b'"):
        NCA().fit(X, words, sample_weight=(y != 1) * 1.0)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.zeros((30, 0)), r"Got y of shape \(30, 0\), but expected a label or number"),
        (np.full((30, 2), "a"), r"Got 2 columns of type <U1 as y, but expected numbers"),
    ],
    ids=["none", "words"],
)
def test_targets_that_are_none_are_refused(y, match, labelled):
    with pytest.raises(ValueError, match=match):
        RFM().fit(labelled[0], y)


@pytest.mark.every(3)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    "cv",
    [
        [3],
        (np.nan, 1),
        np.zeros((2, 2)),
        np.full((3, 3), 1e308),
        np.array(["a", "b"]),
        [(np.arange(31), np.arange(5))],
        [(np.arange(20), np.array([], dtype=int))],
        PredefinedSplit(np.arange(40) % 2),
    ],
    ids=repr,
)
def test_what_are_no_folds_is_refused(cv, zeros, labelled):
    X, y = labelled
    w = np.where(np.arange(30) % 5 == 0, 0.0, 1.0) if zeros else None
    expected = r"(?s)Got cv=.*expected at least one pair \(train, test\) of row numbers below 30"
    for predictor in (MetricClassifier(DNE(1), cv=cv), MetricRegressor(KPCA(2), cv=cv)):
        weights = w if isinstance(predictor, MetricClassifier) else None
        with pytest.raises(ValueError, match=expected):
            predictor.fit(X, y, sample_weight=weights)
    if not zeros:
        with pytest.raises(ValueError, match=expected):
            KernelizedCV(DNE(1), ["linear"], cv=cv).fit(X, y)


@pytest.mark.slow
def test_predefined_splits_number_all_rows_beside_weights_of_zero(labelled):
    X, y = labelled
    w = np.where(np.arange(30) < 6, 0.0, 1.0)
    rows = np.arange(30)
    told = PredefinedSplit(rows // 15)  # halves of all rows: of those that count, 9 and 15
    listed = [(rows[15:], rows[:15]), (rows[:15], rows[15:])]
    masks = [(rows >= 15, rows < 15), (rows < 15, rows >= 15)]
    by_split, by_rows, by_masks = (
        MetricClassifier(DNE(2), cv=cv).fit(X, y, sample_weight=w) for cv in (told, listed, masks)
    )
    np.testing.assert_array_equal(by_split.predict_proba(X), by_rows.predict_proba(X))
    np.testing.assert_array_equal(by_split.predict_proba(X), by_masks.predict_proba(X))
    small = MetricClassifier(DNE(2), cv=PredefinedSplit(rows[6:] // 15)).fit(X[6:], y[6:])
    np.testing.assert_allclose(by_split.predict_proba(X), small.predict_proba(X), rtol=1e-9)
    with pytest.raises(ValueError, match="folds that are row numbers"):
        KernelizedCV(DNE(1), ["linear"], cv=told).fit(X, y, sample_weight=w)


def test_coordinates_that_are_none_are_refused(labelled):
    from sklearn.preprocessing import FunctionTransformer

    X, y = labelled
    for spoilt in (lambda A: A[:, :0], lambda A: A[:, :, None], lambda A: A * np.nan):
        with pytest.raises(ValueError, match=r"Got learned coordinates of shape"):
            MetricClassifier(FunctionTransformer(spoilt)).fit(X, y)


def test_truth_values_are_numbers_for_a_kernel_aligned_with_numbers(labelled):
    X, y = labelled
    kernel = KernelAlignment(target="regression")
    np.testing.assert_allclose(kernel.bind(X, y > 0)(X), kernel.bind(X, (y > 0) * 1.0)(X))


@pytest.mark.parametrize("name", ["criterion", "calibration"])
def test_words_that_are_arrays_are_refused(name, labelled):
    X, y = labelled
    verifier = PairVerifier(NCA(max_iter=1)).set_params(**{name: np.array(["a", "b"])})
    with pytest.raises(ValueError, match=rf"Got {name}=array.*but expected"):
        verifier.fit(X[:, None].repeat(2, axis=1), y > 0)


KERNELS_TO_SPOIL = [
    *(kind() for kind in KERNELS if kind is not Precomputed),
    *(FunctionKernel(fuzz_cases.linear), FunctionKernel(fuzz_cases.linear, objects=True)),
    *(PairwiseKernel("rbf"), Rescaled(RBF(), [1.0, 1.0, 1.0]), Sum([RBF()]), Product([RBF()])),
    *(Columns(kernel=RBF()), AlignedSum([RBF()], [1.0]), AlignedScales(), KernelAlignment()),
    *(kernel for kernel in EXAMPLES if type(kernel).__module__.startswith("kernelmetric")),
]
SPOILT = [np.array(["a", "b"]), pd.Series([1, 2]), pd.DataFrame({"a": [1, 2]}), object(), {1: 2}]
SPOILT += ["x", [3], 10**400]


@pytest.mark.every(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", KERNELS_TO_SPOIL, ids=lambda kernel: type(kernel).__name__)
def test_any_parameter_of_a_kernel_is_refused_in_a_sentence(kernel):
    X, y = np.abs(np.random.RandomState(0).standard_normal((16, 3))), np.arange(16) % 2
    points = EXAMPLES[kernel][0]() if kernel in EXAMPLES else X
    points = pd.DataFrame(X) if isinstance(kernel, Columns) else points
    for name in kernel.get_params(deep=False).keys() - {"learned"}:  # which bind sets
        for value in SPOILT:
            spoilt = clone(kernel, safe=False).set_params(**{name: value})
            outcome = fuzz.judge(fuzz_cases.Case(spoilt, points, y, points))
            assert outcome.kind in ("fitted", "refused"), (name, value, outcome.detail)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *((FunctionKernel(fuzz_cases.linear), "objects"), (Tanimoto(), "packed")),
        *((GlobalAlignment(), "scale"), (GlobalAlignment(), "derivative")),
        *((Convolutions(), "derivative"), (KernelAlignment(), "centered")),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_switches_of_kernels_are_true_or_false(kernel, name, labelled):
    X, y = labelled
    points = list(X) if isinstance(kernel, SeriesKernel) else X
    spoilt = clone(kernel, safe=False).set_params(**{name: "no"})
    for use in (spoilt.bind, Kernelized(NCA(), spoilt).fit):
        with pytest.raises(ValueError, match=f"Got {name}='no', but expected True or False."):
            use(points, y)


@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_widths_that_are_arrays_are_refused(kernel, labelled):
    with pytest.raises(ValueError, match=r"(?s)Got gamma=array.*but expected a number"):
        kernel(gamma=np.zeros(3)).bind(labelled[0])


@pytest.mark.parametrize(
    "kernel", [RBF(), Laplacian(), RBF("scale"), LeaveOneOutRidge(), KernelAlignment()], ids=repr
)
def test_kernels_are_bound_to_anything_that_holds_numbers(kernel, labelled):
    X, y = labelled
    X = np.round(4 * X) + 20
    K = kernel.bind(X, y)(X)
    kinds = [X.tolist(), pd.DataFrame(X), X.astype(np.uint8), X.astype(object)]
    for points in [*kinds, np.ma.masked_array(X)]:
        np.testing.assert_allclose(kernel.bind(points, y)(points), K, rtol=1e-9)


@pytest.mark.parametrize(
    ("points", "match"),
    [
        (np.full((5, 2), "a"), r"expected numbers|no rows of numbers"),
        (np.ones((5, 2), complex), r"type complex128, but expected real numbers"),
        (np.ones((5, 0)), r"shape \(5, 0\).*at least one for each point"),
        (np.ma.masked_array(np.ones((5, 2)), np.eye(5, 2)), r"Got a masked array with 2 masked"),
        ([[1, 2], [3]], r"no rows of numbers"),
    ],
    ids=["text", "complex", "none", "masked", "ragged"],
)
def test_points_without_numbers_are_refused_by_kernels(points, match):
    with pytest.raises(ValueError, match=match):
        RBF().bind(points)
    with pytest.raises(ValueError, match=match):
        RBF(gamma=1.0)(points)


@pytest.mark.parametrize("X", [[[1, 2]], np.arange(3), np.zeros((2, 2, 2))], ids=repr)
def test_what_is_no_table_has_no_schema(X):
    with pytest.raises(TypeError, match=r"Got X of type .*but expected a table"):
        TableSchema().fit(X)


def test_keyword_arguments_of_a_kernel_are_a_dict(labelled):
    with pytest.raises(ValueError, match=r"Got params=3, but expected a dict"):
        PairwiseKernel("rbf", 3)(labelled[0])


def test_huge_targets_are_refused_by_a_regressor(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"Got y with numbers up to 2e\+300, but expected at most"):
        MetricRegressor(KPCA(2)).fit(X, 1e300 * y)


def test_the_rank_of_a_space_is_checked_before_memory_is_estimated_from_it(labelled):
    search = KernelizedCV(DNE(1), ["rbf"], space=RidgeKPCA(n_components=None))
    with pytest.raises(
        ValueError, match="n_components=None, but RidgeKPCA expected 'auto' or an integer"
    ):
        search.fit(*labelled)


@pytest.mark.parametrize("rank", [sparse.eye_array(3).tocsr(), pd.Series([1, 2])], ids=type)
def test_a_rank_that_is_no_number_is_refused_by_a_search(labelled, rank):
    with pytest.raises(ValueError, match="Got n_components="):
        KernelizedCV(LDA(), ["rbf"], space=KPCA(n_components=rank)).fit(*labelled)


def test_a_degree_that_is_no_number_is_refused_before_memory_is_estimated_from_it(labelled):
    with pytest.raises(ValueError, match="Got degree=array"):
        Kernelized(LDA(), Polynomial(degree=np.zeros((2, 2))), KPCA()).fit(*labelled)


@pytest.mark.parametrize("y", [[0, 1] * 4, [0, 1] * 400, "labels"], ids=["few", "many", "a name"])
@pytest.mark.parametrize("model", [KPCA(2), KernelTrick(), TransductiveDistance()], ids=repr)
def test_labels_of_other_rows_are_refused_where_some_rows_have_no_weight(labelled, model, y):
    X = labelled[0]
    weights = np.ones(len(X))
    weights[3] = 0
    with pytest.raises(ValueError, match="Found input variables with inconsistent numbers"):
        model.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("composed", [KernelAlignment, Sum, Product])
def test_a_class_in_a_list_of_kernels_is_refused_as_one(labelled, composed):
    model = Kernelized(LDA(), composed(kernels=[RBF, Linear()]))
    for use in (lambda: model.fit(*labelled), lambda: clone(model).fit(*labelled)):
        with pytest.raises(ValueError, match=r"Got (the class RBF|<class .*RBF'>).*but expected"):
            use()


def test_a_method_that_is_a_table_is_refused_before_memory_is_estimated_from_it():
    with pytest.raises(ValueError, match=r"(?s)Got method=0 .*but expected 'auto'"):
        TransductiveDistance(method=pd.Series([1, 2])).estimate_memory(100, 3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_small_integers_of_numpy_are_counts_like_others(labelled):
    maps = [
        NCA(solver="minibatch", batch_size=size, max_iter=2, random_state=0).fit(*labelled)
        for size in (3, np.uint8(3))
    ]
    np.testing.assert_array_equal(maps[0].components_, maps[1].components_)


@pytest.mark.filterwarnings("ignore:Got a graph in which:UserWarning")
def test_a_graph_without_edges_is_refused(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match=r"Got a graph without any weight between points"):
        TransductiveDistance(graph=np.zeros((30, 30))).fit(X, y)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of so few points
def test_lsml_goes_on_where_a_slope_does_not_change():
    X, y = [[-2.0], [-1.0], [-1.0], [0.0], [0.0]], [0, 0, 1, 2, 1]
    w = [0.43, 0.96, 0.83, 0.34, 0.58]
    learner = LSML(max_iter=8, max_tuples=5, tol=1e-5)
    metric = Kernelized(learner, "laplacian").fit(X, y, sample_weight=w)
    assert np.isfinite(metric.transform(X)).all()


def test_what_speaks_of_rows_must_speak_of_all():
    X, w = np.arange(12.0).reshape(6, 2) ** 1.5, np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="Got neighbors of 2 rows, but expected 6"):
        LPP().fit(X, neighbors=np.ones((2, 2)), sample_weight=w)
    with pytest.raises(ValueError, match="Got y of 3 rows, but expected 6"):
        MLKR().fit(X, "nan", sample_weight=w)


def test_bytes_are_no_folds(labelled):
    with pytest.raises(ValueError, match="Got cv=b'x', but expected at least one pair"):
        MetricClassifier(DNE(1), cv=b"x").fit(*labelled)
    pairs = Pairs([[0, 2]], [[0, 1]], n_samples=len(labelled[0]))
    with pytest.raises(ValueError, match="Got cv=b'x', but expected"):
        cross_validate_pairs(ITML(), labelled[0], pairs, cv=b"x")


def test_a_number_of_folds_in_an_array_is_refused_in_a_sentence(labelled):
    with pytest.raises(ValueError, match=r"Got cv=array\(2\), an array, but expected an integer"):
        MetricClassifier(DNE(1), cv=np.array(2)).fit(*labelled)


def test_a_scatter_beyond_floats_asks_for_no_shrinkage():
    assert ledoit_wolf(1e200 * np.eye(3), 1e300, 3.0) == 0.0
    X = np.random.default_rng(0).normal(size=(30, 3))
    fourth = float(np.sum(np.sum(X**2, axis=1) ** 2))
    expected = ledoit_wolf_shrinkage(X, assume_centered=True)
    assert ledoit_wolf(X.T @ X / 30, fourth, 30.0) == pytest.approx(expected)
