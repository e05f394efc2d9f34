"""check_kernelizable: what it says of the field's estimators, and how it says it."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.covariance import EllipticEnvelope
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import NMF, PCA, FactorAnalysis, FastICA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
)
from sklearn.manifold import Isomap
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    LocalOutlierFactor,
    NearestCentroid,
    NeighborhoodComponentsAnalysis,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from kernelmetric import DNE, LMCA, LMNN, MMC, NCA, check_kernelizable
from kernelmetric.evaluation import assert_kernelizable

ROOT = Path(__file__).parents[1]

# Every estimator with the first condition it fails; None: it is kernelizable. The page
# docs/guide/kernelizable.md holds the same table, and a test compares the two.
TABLE = [
    (LinearDiscriminantAnalysis(), None),
    (PCA(n_components=2), None),
    (PCA(), None),
    (NeighborhoodComponentsAnalysis(), None),
    (KMeans(n_clusters=3, n_init=3), None),
    (Ridge(), None),
    (LinearRegression(), None),
    (BayesianRidge(), None),
    (LogisticRegression(), None),
    (SVC(kernel="linear"), None),
    (NearestCentroid(), None),
    (KNeighborsClassifier(), None),
    (GaussianMixture(n_components=3), None),
    (SpectralClustering(n_clusters=3), None),
    (AgglomerativeClustering(n_clusters=3), None),
    (DBSCAN(), None),
    (LocalOutlierFactor(novelty=True), None),
    (OneClassSVM(gamma=0.5), None),
    (FastICA(n_components=2), None),
    (KernelPCA(gamma=0.5, kernel="rbf", n_components=2), None),
    (Isomap(), None),
    (PLSRegression(scale=False), None),
    (make_pipeline(PCA(n_components=2), LogisticRegression()), None),
    (Ridge(fit_intercept=False), "translation"),
    (LinearSVC(), "translation"),
    (TruncatedSVD(), "translation"),
    (Normalizer(), "translation"),
    (NMF(n_components=2), "translation"),
    (SVC(), "translation"),
    (StandardScaler(), "rotation"),
    (make_pipeline(StandardScaler(), SVC(kernel="linear")), "rotation"),
    (Lasso(alpha=0.02), "rotation"),
    (ElasticNet(alpha=0.05), "rotation"),
    (ARDRegression(), "rotation"),
    (GaussianNB(), "rotation"),
    (GaussianMixture(covariance_type="diag", n_components=3), "rotation"),
    (DecisionTreeClassifier(), "rotation"),
    (RandomForestClassifier(n_estimators=20), "rotation"),
    (IsolationForest(n_estimators=20), "rotation"),
    (FactorAnalysis(n_components=2), "rotation"),
    (PLSRegression(), "rotation"),
    (GaussianMixture(covariance_type="spherical", n_components=3), "embedding"),
    (LinearDiscriminantAnalysis(shrinkage=0.3, solver="lsqr"), "embedding"),
    (QuadraticDiscriminantAnalysis(), "embedding"),
    (EllipticEnvelope(), "embedding"),
]


def written(estimator):
    """An estimator as the page writes it: pipelines by their steps."""
    if hasattr(estimator, "steps"):
        return " + ".join(written(step) for _, step in estimator.steps)
    return " ".join(repr(estimator).split())


@pytest.mark.parametrize(
    ("estimator", "fails"),
    [
        pytest.param(*row, marks=pytest.mark.slow if number % 2 else ())
        for number, row in enumerate(TABLE)
    ],
)
@pytest.mark.every(12)
def test_the_field_is_classified(estimator, fails):
    report = check_kernelizable(estimator)
    assert not report.undecided
    assert report.kernelizable == (fails is None), report
    assert (report.failed or (None,))[0] == fails, report


def test_the_page_holds_the_same_table():
    page = (ROOT / "docs" / "guide" / "kernelizable.md").read_text(encoding="utf-8")
    section = page.partition("## scikit-learn, tried out")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert [row.split("|")[1].strip().strip("`") for row in rows] == [written(e) for e, _ in TABLE]
    said = [row.split("|")[2].strip() for row in rows]
    assert said == ["yes" if fails is None else f"no: {fails}" for _, fails in TABLE]


@pytest.mark.every(9)
@pytest.mark.parametrize("learner", [NCA(), LMNN(), LMCA(2), DNE(), MMC()])
def test_our_learners_are_kernelizable(learner):
    assert_kernelizable(learner)


@pytest.mark.slow
def test_the_verdict_is_true_of_users_data_too(labelled):
    X, y = labelled
    assert check_kernelizable(NearestCentroid(), X, y).kernelizable
    assert not check_kernelizable(GaussianNB(), X, y).kernelizable
    assert check_kernelizable(KMeans(3, n_init=3), X).kernelizable


def test_further_arguments_reach_the_fit(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match="Sample weights"):
        check_kernelizable(Ridge(), X, y, sample_weight=np.ones((3, 3)))
    assert check_kernelizable(Ridge(), X, y, sample_weight=1.0 + y).kernelizable


def test_the_estimator_itself_is_left_alone():
    forest = RandomForestClassifier(n_estimators=3)
    check_kernelizable(forest)
    assert forest.random_state is None
    assert not hasattr(forest, "estimators_")


# --- conditions one by one: estimators that break exactly one -----------------------------------


class Means(ClassifierMixin, BaseEstimator):
    """Nearest class mean, with a fault of choice."""

    def __init__(self, fault=None):
        self.fault = fault

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        Z = self._seen(X)
        self.means_ = np.stack([Z[y == c].mean(axis=0) for c in self.classes_])
        return self

    def _seen(self, X):
        if self.fault == "translation":
            return X / np.linalg.norm(X, axis=1, keepdims=True)
        if self.fault == "rotation":
            return np.sign(X - 1) * (X - 1) ** 2
        if self.fault == "embedding":
            return np.minimum(
                np.linalg.norm(X - X.mean(axis=0), axis=1, keepdims=True), X.shape[1] / 9
            )
        return X

    def predict(self, X):
        Z = self._seen(X)
        return self.classes_[np.linalg.norm(Z[:, None] - self.means_, axis=2).argmin(axis=1)]


@pytest.mark.parametrize("fault", ["translation", "rotation", "embedding"])
def test_a_fault_is_found_under_its_name(fault):
    assert check_kernelizable(Means()).kernelizable
    report = check_kernelizable(Means(fault))
    assert fault in report.failed
    assert "pca" in report.failed  # what Kernelized does is all moves at once
    others = {"translation", "rotation", "embedding"} - {fault}
    assert fault == "rotation" or not others & set(report.failed)


class Whole(TransformerMixin, BaseEstimator):
    """The identity: it keeps what leaves the span of the training points."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


class Chaotic(Whole):
    """The last bits of the training points decide."""

    def transform(self, X):
        return X * (1 + np.sin(1e16 * self.bits_))

    def fit(self, X, y=None):
        self.bits_ = np.linalg.norm(X - X[0])
        return super().fit(X)


def test_what_leaves_the_span_is_reported_and_does_not_decide():
    report = check_kernelizable(Whole())
    assert report.kernelizable
    assert not report["span"].holds
    assert "projections" in report["span"].sentence
    assert check_kernelizable(PCA(n_components=2))["span"].holds


# --- the report ---------------------------------------------------------------------------------


def test_a_pipeline_names_the_step_to_blame():
    report = check_kernelizable(make_pipeline(StandardScaler(), SVC(kernel="linear")))
    assert report["rotation"].sentence.startswith("StandardScaler is not rotation-invariant")
    assert "before the kernel" in report["rotation"].sentence


def test_an_error_of_the_estimator_is_a_failed_condition_with_its_words():
    condition = check_kernelizable(NMF(n_components=2))["translation"]
    assert not condition.holds
    assert condition.change == float("inf")
    assert "Negative values" in condition.sentence


def test_the_report_can_be_read():
    report = check_kernelizable(Lasso(alpha=0.02))
    lines = str(report).splitlines()
    assert lines[0] == "Lasso(alpha=0.02)"
    assert lines[1] == "Not kernelizable as it is: see rotation, pca."
    assert [line.split()[0] for line in lines[3:]] == [c.name for c in report.conditions]
    with pytest.raises(KeyError, match="expected one of translation"):
        report["reflection"]


def test_data_that_show_nothing_decide_nothing():
    nobody = check_kernelizable(DBSCAN(eps=1e-6))
    assert nobody.undecided
    assert not nobody.kernelizable
    assert "pass other data" in nobody.verdict
    chaotic = check_kernelizable(Chaotic())
    assert chaotic.undecided
    assert not chaotic.kernelizable
    assert "Round-off alone" in chaotic.verdict


def test_assert_kernelizable_fails_with_the_report():
    with pytest.raises(AssertionError, match="GaussianNB is not rotation-invariant"):
        assert_kernelizable(GaussianNB())


def test_what_says_nothing_of_points_is_refused():
    class Mute(BaseEstimator):
        def fit(self, X, y=None):
            return self

    with pytest.raises(ValueError, match="Got Mute, but expected an estimator with predict"):
        check_kernelizable(Mute())


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def check(run):
    pytest.importorskip("rich", reason="rich comes with the extra `cli`")
    return partial(run, "check")


def test_the_command_says_yes_with_exit_code_0_and_no_with_1(check):
    yes = check("sklearn.cluster.KMeans", "--param", "n_clusters=3", "--param", "n_init=3")
    assert yes.exit_code == 0, yes.output
    assert "Kernelizable" in yes.output
    no = check("sklearn.linear_model:Lasso", "--param", "alpha=0.01")
    assert no.exit_code == 1
    assert "rotation" in no.output


def test_words_are_parameters_too(check):
    assert check("sklearn.svm.SVC", "--param", "kernel=linear").exit_code == 0


def test_the_command_prints_json(check):
    result = check("sklearn.decomposition.NMF", "--param", "n_components=2", "--json")
    printed = json.loads(result.output)
    assert printed["kernelizable"] is False
    assert printed["conditions"][0]["name"] == "translation"
    assert printed["conditions"][0]["change"] is None


def test_the_command_reads_a_file(check, tmp_path, labelled):
    X, y = labelled
    path = tmp_path / "points.csv"
    names = np.array(["ash", "birch", "cedar"])[y]
    rows = [",".join([*map(str, x), name]) for x, name in zip(X, names, strict=True)]
    path.write_text("\n".join(["a,b,c,d,tree", *rows]), encoding="utf-8")
    assert check("sklearn.neighbors.NearestCentroid", "--data", str(path)).exit_code == 0
    path.write_text("a,b\nx,y\n", encoding="utf-8")
    bad = check("sklearn.neighbors.NearestCentroid", "--data", str(path))
    assert bad.exit_code == 2
    assert "expected a header and rows of numbers" in bad.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["sklearn.cluster.NoSuchThing"],
        ["nonsense"],
        ["sklearn.cluster.KMeans", "--param", "clusters=3"],
        ["sklearn.cluster.KMeans", "--param", "three"],
        ["sklearn.cluster.KMeans", "--tol", "nan"],
        ["sklearn.cluster"],  # a module
        ["os.path.join"],  # functions are not called: they might do anything
        ["os.abort"],
        ["math.pi"],
        ["builtins.dict"],
        ["json.JSONDecoder"],
        ["sklearn.base.BaseEstimator"],  # no fit
        [".KMeans"],
        [""],
        ["sklearn.ensemble.VotingClassifier"],  # needs an argument
        ["sklearn.cluster.KMeans", "--param", "n_clusters=0"],  # refused by fit
        ["sklearn.cluster.KMeans", "--param", "n_clusters=many"],
        ["sklearn.neighbors.NearestNeighbors"],  # answers nothing
        ["sklearn.feature_extraction.text.CountVectorizer"],  # wants text
    ],
)
def test_what_cannot_be_tried_is_refused_in_a_sentence_with_exit_code_2(check, arguments):
    result = check(*arguments)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert "Error: " in result.stderr


def test_an_estimator_that_fails_in_its_own_way_is_an_error_and_no_answer(
    check, tmp_path, monkeypatch
):
    (tmp_path / "broken_estimators.py").write_text(
        "from sklearn.base import BaseEstimator\n"
        "class Raises(BaseEstimator):\n"
        "    def fit(self, X, y=None):\n        raise ZeroDivisionError('of its own')\n"
        "    def predict(self, X):\n        return X[:, 0]\n"
        "class Unmade(Raises):\n    def __init__(self):\n        raise LookupError('unmade')\n",
        encoding="utf-8",
    )
    (tmp_path / "broken_module.py").write_text("1 +", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for path, said in {
        "broken_estimators.Raises": "ZeroDivisionError: of its own",
        "broken_estimators.Unmade": "unmade",
        "broken_module.Anything": "SyntaxError",
    }.items():
        result = check(path)
        assert result.exit_code == 2
        assert said in " ".join(result.stderr.split())


def test_the_help_of_the_command_tells_its_exit_codes(check):
    said = " ".join(check("--help").output.split())
    assert "The exit code is 0 for yes, 1 for no (or if the data cannot tell), and 2 for" in said


@pytest.mark.parametrize(
    "content", ["a,b,c\n1,2,x\n3,,y\n", "a\n1\n", "a,b\n1,x\n2,\n", "a,b\n", "\xff,b\n1,2\n"]
)
def test_a_table_that_cannot_be_used_is_an_error_and_not_a_no(check, tmp_path, content):
    path = tmp_path / "points.csv"
    path.write_bytes(content.encode("latin-1"))
    result = check("sklearn.neighbors.NearestCentroid", "--data", str(path))
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert "Error: " in result.stderr
