"""Scores where classes are uneven: they agree with scikit-learn's, and the commands tell them."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelmetric import LDA, MetricClassifier
from kernelmetric.evaluation import class_scores, is_uneven


@pytest.fixture(scope="module")
def uneven():
    return make_classification(
        200, 4, n_informative=3, n_redundant=0, weights=[0.85], flip_y=0.05, random_state=0
    )


def test_two_classes_are_judged_as_scikit_learn_does(uneven):
    X, y = uneven
    fitted = LogisticRegression().fit(X[:100], y[:100])
    X, y = X[100:], y[100:]
    found = class_scores(fitted, X, y)
    p = fitted.predict_proba(X)
    assert found.accuracy == pytest.approx(fitted.score(X, y))
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, fitted.predict(X)))
    assert found.roc_auc == pytest.approx(roc_auc_score(y, p[:, 1]))
    assert found.log_loss == pytest.approx(log_loss(y, p))
    assert np.sum(found.confusion) == 100
    assert found.majority == pytest.approx(np.mean(y == 0))


@pytest.mark.every(4)
@pytest.mark.parametrize("decision", ["accuracy", "balanced"])
@pytest.mark.parametrize("scaled", [False, True])
def test_our_classifier_looks_for_neighbours_once(uneven, monkeypatch, decision, scaled):
    X, y = uneven
    fitted = MetricClassifier(LDA(), decision=decision)
    fitted = (make_pipeline(StandardScaler(), fitted) if scaled else fitted).fit(X[:100], y[:100])
    predicted, asked = fitted.predict(X[100:]), []
    usual = MetricClassifier.predict_proba
    monkeypatch.setattr(
        MetricClassifier, "predict_proba", lambda *given: asked.append(1) or usual(*given)
    )
    found = class_scores(fitted, X[100:], y[100:])
    assert len(asked) == 1
    assert found.accuracy == np.mean(predicted == y[100:])
    assert np.sum(found.confusion, axis=0)[1] == np.sum(predicted == 1)


def test_three_classes_are_ranked_one_against_the_rest():
    X, y = make_classification(150, 5, n_informative=4, n_classes=3, n_redundant=0, random_state=0)
    fitted = LogisticRegression().fit(X, y)
    expected = roc_auc_score(y, fitted.predict_proba(X), multi_class="ovr")
    assert class_scores(fitted, X, y).roc_auc == pytest.approx(expected)


@pytest.mark.parametrize("classifier", [SVC(), RidgeClassifier()], ids=repr)
def test_scores_without_probabilities_rank_and_have_no_log_loss(classifier, uneven):
    X, y = uneven
    found = class_scores(classifier.fit(X, y), X, y)
    assert found.roc_auc == pytest.approx(roc_auc_score(y, classifier.decision_function(X)))
    assert np.isnan(found.log_loss)


def test_a_class_that_was_never_seen_leaves_only_what_can_be_said(uneven):
    X, y = uneven
    fitted = LogisticRegression().fit(X, y)
    found = class_scores(fitted, X, np.where(np.arange(200) < 5, 2, y))
    assert found.classes == ("0", "1", "2")
    assert np.isnan(found.roc_auc)
    assert np.isnan(found.log_loss)


def test_rows_of_one_class_cannot_be_ranked(uneven):
    X, y = uneven
    found = class_scores(LogisticRegression().fit(X, y), X[y == 0], y[y == 0])
    assert np.isnan(found.roc_auc)


def test_accuracy_below_the_majority_is_a_sentence(uneven):
    X, y = uneven
    always = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    said = class_scores(always, X, y).warning
    assert said.startswith("accuracy ")
    assert (
        f"no better than always answering '0', which is right for {100 * np.mean(y == 0):.1f} %"
        in said
    )
    assert class_scores(DummyClassifier().fit(X, y), X, y).warning  # as good is no better
    assert class_scores(KNeighborsClassifier(1).fit(X, y), X, y).warning == ""


def test_the_score_that_leads_fits_the_classes(uneven):
    X, y = uneven
    found = class_scores(LogisticRegression().fit(X, y), X, y)
    assert found.measure == "roc_auc"
    assert found._replace(roc_auc=float("nan")).measure == "balanced_accuracy"
    assert found._replace(confusion=((40, 10), (5, 45))).measure == "accuracy"


@pytest.mark.slow
def test_errors_of_scores_are_those_of_other_draws():
    rng = np.random.RandomState(0)

    class Given:
        classes_ = np.array([0, 1])
        predict_proba = staticmethod(lambda s: np.column_stack([1 - s[:, 0], s[:, 0]]))
        predict = staticmethod(lambda s: (s[:, 0] > 0.5).astype(int))

    found = []
    for _ in range(80):
        y = np.repeat([0, 1], [160, 40])
        s = 1 / (1 + np.exp(-rng.randn(200) - 1.5 * y + 0.5))
        found.append(class_scores(Given, s[:, None], y))
    for measure in ("accuracy", "balanced_accuracy", "roc_auc"):
        spread = np.std([getattr(scores, measure) for scores in found])
        said = np.mean([scores.error(measure) for scores in found])
        assert said == pytest.approx(spread, rel=0.3)


def test_the_error_of_a_mean_area_of_many_classes_is_that_of_other_draws():
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(5), [300, 150, 60, 20, 6])

    class Given:
        classes_ = np.arange(5)
        predict_proba = staticmethod(lambda s: s)
        predict = staticmethod(lambda s: s.argmax(axis=1))

    found = []
    for _ in range(60):
        s = np.exp(rng.randn(len(y), 5) + 2.0 * np.eye(5)[y])
        found.append(class_scores(Given, s / s.sum(axis=1, keepdims=True), y))
    spread = np.std([scores.roc_auc for scores in found])
    assert np.mean([scores.error("roc_auc") for scores in found]) == pytest.approx(spread, rel=0.5)


def test_classes_are_uneven_when_one_is_more_than_twice_another():
    assert not is_uneven(["a", "a", "b"])
    assert is_uneven(["a", "a", "a", "b"])


@pytest.fixture
def table(uneven, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra `cli`")
    X, y = uneven
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["no", "yes"])[y])
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.mark.slow
@pytest.mark.usefixtures("one_alternative")
def test_fit_tells_of_uneven_classes(run, table, tmp_path):
    page = tmp_path / "page.html"
    options = ["--label", "kind", "--kernel", "none", "--learner", "lda"]
    told = run("fit", table, *options, "--report", page)
    assert told.exit_code == 0
    assert "The classes are uneven" in told.stdout
    assert "Confusion by LDA" in told.stdout
    assert "Class by class" in page.read_text(encoding="utf-8")
    answer = json.loads(run("fit", table, *options, "--json").stdout)
    assert set(answer["balanced_accuracy"]) == set(answer["scores"])
    assert np.sum(answer["confusion"]["rows"]) == 50
    assert answer["confusion"]["classes"] == ["no", "yes"]


@pytest.mark.usefixtures("untuned")
def test_evaluate_adds_the_confusions_of_its_folds(run, table):
    options = ["--label", "kind", "--kernel", "none", "--learner", "lda", "--folds", 2]
    told = run("evaluate", table, *options)
    assert "The classes are uneven" in told.stdout
    answer = json.loads(run("evaluate", table, *options, "--json").stdout)
    assert np.sum(answer["confusion"]["rows"]) == 200
    assert len(answer["log_loss"]["LDA"]) == 2
    assert answer["log_loss"]["RBF-SVM, tuned"] == [None, None]
