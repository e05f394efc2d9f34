"""The report page says what is true of the metric, and holds all it needs."""

import base64
import html
import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from kernelmetric import (
    DNE,
    LDA,
    MLKR,
    KernelAlignment,
    Kernelized,
    LeaveOneOutRidge,
    Pairs,
)
from kernelmetric.evaluation import ClassScores, holdout
from kernelmetric.inspection import explain_pair
from kernelmetric.kernels import Convolutions, Tanimoto
from kernelmetric.report import _page_reasons, report_page, visible
from kernelmetric.report._page_data import (
    apart,
    choose_points,
    hardness,
    in_planes,
    on_a_line,
    ranges_of,
)
from kernelmetric.report._page_objects import drawn
from kernelmetric.report._page_reasons import columns_of, relevance
from kernelmetric.report._page_sections import loss_chart

pytestmark = pytest.mark.usefixtures("few_reasons")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def parts(wine):
    X, y = wine
    train, test = holdout(y)
    metric = DNE(3).fit(X[train], y[train])
    return metric, {"X": X[train], "y": y[train], "X_test": X[test], "y_test": y[test]}


def data_of(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text[1])


def test_the_neighbours_listed_are_the_nearest_training_points(parts):
    metric, points = parts
    data = data_of(report_page(metric, **points))
    n = len(points["X"])
    assert data["nTrain"] == n
    D = metric.pairwise_distances(points["X_test"], points["X"])
    nearest = np.argsort(D, axis=1, kind="stable")[:, :6]
    np.testing.assert_array_equal(data["points"]["after"]["neighbors"][n:], nearest)
    own = metric.pairwise_distances(points["X"])
    np.fill_diagonal(own, np.inf)
    first = [row[0] for row in data["points"]["after"]["neighbors"][:n]]
    np.testing.assert_array_equal(first, own.argmin(axis=1))


def test_the_errors_counted_are_those_of_the_nearest_neighbours(parts):
    from sklearn.neighbors import KNeighborsClassifier

    metric, points = parts
    page = report_page(metric, **points)
    wrong = []
    for transform in (np.asarray, metric.transform):
        knn = KNeighborsClassifier(3).fit(transform(points["X"]), points["y"])
        wrong.append(int(np.sum(knn.predict(transform(points["X_test"])) != points["y_test"])))
    assert f"{wrong[0]} are predicted wrong before and {wrong[1]} after" in page


def test_gram_matrices_are_symmetric_and_ordered_by_class(parts):
    metric, points = parts
    gram = data_of(report_page(metric, **points))["gram"]
    for side in ("before", "after"):
        K = np.frombuffer(base64.b64decode(gram[side]), dtype=np.uint8).reshape(gram["n"], -1)
        np.testing.assert_array_equal(K, K.T)
        assert K.min() < 128 < K.max()
    assert gram["codes"] == sorted(gram["codes"])


def test_nothing_is_fetched_from_anywhere(parts):
    page = report_page(parts[0], **parts[1])
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", page)
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page


def test_text_of_users_is_escaped_everywhere(wine):
    X, y = wine
    evil = "</script><img src=x onerror=alert(1)>"
    labels = np.where(y == "a", evil, y)
    train, test = holdout(labels)
    order = np.r_[train, test]
    page = report_page(
        DNE(2).fit(X[train], labels[train]), X[train], labels[train],
        X_test=X[test], y_test=labels[test], scores={evil: [0.5], "Euclidean": [0.4]},
        learned=evil, title=evil, label=evil, feature_names=[evil] * X.shape[1],
        shown={evil: [evil] * len(order)}, facts={evil: evil}, notes=[evil], command=evil,
    )  # fmt: skip
    assert "<img" not in page
    assert data_of(page)["classes"][0] == evil


def test_the_verdict_admits_a_difference_that_may_be_chance(parts):
    near = report_page(parts[0], **parts[1], scores={"mine": [0.9], "SVM": [0.91]}, learned="mine")
    far = report_page(parts[0], **parts[1], scores={"mine": [0.2], "SVM": [0.99]}, learned="mine")
    assert "may be chance" in near
    assert "may be chance" not in far
    assert "is 20.0 %" in far
    assert "(SVM) reaches 99.0 %" in far


@pytest.mark.slow
def test_an_aligned_kernel_shows_its_weights_and_an_automatic_one_its_candidates(wine):
    X, y = wine
    aligned = Kernelized(DNE(2), kernel=KernelAlignment()).fit(X, y)
    assert f"alignment {aligned.kernel_.alignment_:.3f}" in report_page(aligned, X, y)
    automatic = Kernelized(DNE(2), kernel=LeaveOneOutRidge()).fit(X, y)
    page = report_page(automatic, X, y)
    assert all(name in page for name in automatic.kernel_.candidates_)
    assert "The loss as it fell" not in page  # DNE does not iterate


def test_pairs_without_labels_list_the_hardest_pairs(wine):
    X, y = wine
    pairs = Pairs.from_labels(y, per_point=1, random_state=0)
    metric = DNE(2).fit(X, y)
    page = report_page(metric, X, pairs=pairs)
    assert data_of(page)["classes"] == []
    d = metric.pair_distance(pairs.rows, X)
    worst = pairs.similar[np.argmax(d[pairs.is_similar])]
    assert f"row {worst[0]} and row {worst[1]}" in page


@pytest.mark.slow
def test_of_many_points_a_sample_is_shown_and_said_to_be_one():
    rng = np.random.RandomState(0)
    X = rng.randn(3000, 2)
    page = report_page(DNE(2).fit(X[:50], np.arange(50) % 2), X, rng.randint(2, size=3000))
    assert len(data_of(page)["points"]["codes"]) == 2000
    assert "2,000 of 3,000 rows" in page


def test_the_linear_metric_counts_features_by_its_matrix_and_their_spread(parts):
    metric, points = parts
    expected = np.diag(metric.get_mahalanobis_matrix()) * points["X"].var(axis=0)
    found = relevance(columns_of(metric, points["X"]), points["X"])
    np.testing.assert_allclose(found.shares, expected / expected.sum(), rtol=1e-9)
    assert found.names[0] == "feature 0"


def test_features_of_one_name_count_as_one(parts):
    metric, points = parts
    names = ["a", "b", "b", *"cdefghijkl"]
    assert columns_of(metric, points["X"], names).names == tuple("abcdefghijkl")
    assert "How much each column counts" in report_page(metric, **points, feature_names=names)


def test_the_hardest_rows_say_what_parts_them_from_their_neighbours(parts):
    metric, points = parts
    n = len(points["X"])
    data = data_of(report_page(metric, **points))
    assert len(data["why"]) == min(_page_reasons.EXPLAINED, len(points["X_test"]))
    i = int(next(iter(data["why"])))
    j = data["points"]["after"]["neighbors"][i][0]
    why = explain_pair(metric, points["X_test"][i - n], points["X"][j])
    column, percent = data["why"][str(i)][0][0]
    assert data["whyColumns"][column] == f"feature {int(np.argmax(np.abs(why.shares)))}"
    assert percent == round(100 * why.shares[column] / np.abs(why.shares).sum())


def test_the_ends_of_the_loss_axis_are_within_the_picture():
    for values in ([1.58e3, 1.2e3, 1.1e3], [1.234e-5, 1.1e-5], [-1.5e-13, -1.6e-13]):
        texts = re.findall(r'<text x="(\d+)"[^>]*class="tick"[^>]*>([^<]*)<', loss_chart(values))
        for place, text in texts[:2]:
            assert int(place) >= 8 * len(text)  # pixels of a wide letter


def test_scores_by_class_and_the_confusion_are_shown_with_a_warning_where_it_is_due(parts):
    metric, points = parts
    found = ClassScores(0.5, 0.4, 0.95, float("nan"), 0.7, "b<", ("a", "b<"), ((1, 2), (3, 44)))
    page = report_page(
        metric, **points, scores={"ours": [0.5]}, learned="ours", class_scores={"ours": found}
    )
    assert "accuracy 50.0 ± 14.1 % is no better than always answering" in page
    assert "no probabilities" in page
    assert "Class by class" in page
    assert ">44</td>" in page
    assert "b&lt;" in page
    fine = found._replace(accuracy=0.9)
    page = report_page(
        metric, **points, scores={"ours": [0.8]}, learned="ours", class_scores={"ours": fine}
    )
    assert "Beware" not in page
    guessed = report_page(
        metric, **points, scores={"ours": [0.8]}, learned="ours", trained=0.99,
        class_scores={"ours": fine._replace(roc_auc=0.6)},
    )  # fmt: skip
    assert "With the learned metric, ROC-AUC on rows held out is 60.0 %" in guessed
    assert "no better than guessing" in guessed
    assert "Beware of overfitting: on the rows it learned from, ROC-AUC is 99.0 %" in guessed


def test_planes_keep_two_dimensions_as_they_are(wine):
    X, y = wine[0][:, :2], wine[1]
    points = choose_points(DNE(2).fit(X, y), X, y, None, None, predicted=None, regression=False)
    before, _, shares = in_planes(points)
    np.testing.assert_allclose(
        np.linalg.norm(before[0] - before[1:], axis=1), np.linalg.norm(X[0] - X[1:], axis=1)
    )
    assert shares[0] == pytest.approx(1)


def test_one_dimension_is_drawn_as_a_line(wine):
    X, y = wine[0][:, :1], wine[1]
    points = choose_points(DNE(1).fit(X, y), X, y, None, None, predicted=None, regression=False)
    assert np.ptp(in_planes(points)[0][:, 1]) < 1e-12


def test_marks_on_a_line_do_not_hide_each_other():
    Z = np.random.RandomState(0).standard_normal((300, 1))
    plane = apart(Z[:, 0])
    np.testing.assert_array_equal(plane[:, 0], Z[:, 0])
    assert np.ptp(plane[:, 1]) < 2 * np.ptp(plane[:, 0])
    column = np.round(plane[:, 0] / (np.ptp(plane[:, 0]) / 120), 0)
    assert len(np.unique(np.column_stack([column, plane[:, 1]]), axis=0)) > 250
    assert on_a_line(Z) and on_a_line(np.hstack([Z, 1e-3 * Z[::-1]]))
    assert not on_a_line(np.hstack([Z, Z[::-1]]))


def test_misplaced_points_have_positive_hardness():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    y = np.array([0, 0, 1, 1])
    X_test, y_test = np.array([[0.5], [10.2]]), np.array([0, 0])
    identity = DNE(1, n_neighbors=1).fit(X, y)
    given = {"predicted": None, "regression": False}
    points = choose_points(identity, X, y, X_test, y_test, **given)
    easy, hard = hardness(points)
    assert easy < 0 < hard


# --- text and numbers that would break a page -----------------------------------------------------

EVIL = "a\"'&</script><!--<img src=x onerror=alert(1)>\x00\x1b[1m\u202e\u2066\u2028\ud800"
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def test_no_text_of_a_user_is_markup_or_steers_what_is_around_it(wine):
    X, y = wine
    labels = np.where(y == "a", EVIL, y)
    train, test = holdout(labels)
    n = len(train) + len(test)
    page = report_page(
        DNE(2).fit(X[train], labels[train]), X[train], labels[train],
        X_test=X[test], y_test=labels[test], scores={EVIL: [0.5], "Euclidean": [0.4]},
        learned=EVIL, title=EVIL, label=EVIL, score_name=EVIL, feature_names=[EVIL] * X.shape[1],
        shown={EVIL: [EVIL] * n}, facts={EVIL: EVIL}, notes=[EVIL], command=EVIL,
    )  # fmt: skip
    page.encode("utf-8")  # halves of characters cannot be written
    assert not STEERING.search(page.replace("\n", ""))
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "<!--" not in page
    data = data_of(page)
    for text in (data["label"], *data["columns"], data["classes"][0], data["cells"][0][0]):
        assert text == visible(EVIL)


def strict(page):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON: the page would stay empty")

    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text[1], parse_constant=refuse)


@pytest.mark.parametrize("scale", [0.0, 1e-320, 1e-305, 1e-150, 1e150])
def test_points_of_any_size_are_numbers_on_the_page(scale):
    X = scale * np.random.RandomState(0).standard_normal((12, 3))
    y = np.arange(12) % 2

    class Doubling:
        def transform(self, X):
            return 2 * X

    shown = {"gap": [float("nan"), None, float("inf"), *range(9)]}
    data = strict(report_page(Doubling(), X, y, shown=shown))
    before = np.array(data["points"]["before"]["xy"])
    assert np.isfinite(before).all()
    if scale > 1e-300:
        assert before.max() > 0.1 * scale
    assert [row[0] for row in data["cells"][:4]] == ["", "", "inf", "0"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_no_numbers_are_refused(wine, bad):
    X, y = wine

    class Broken:
        def transform(self, X):
            return np.where(np.arange(len(X))[:, None] == 5, bad, X)

    with pytest.raises(ValueError, match="Got 1 points whose coordinates after the metric"):
        report_page(Broken(), X, y)


def test_remarks_on_a_wide_table_are_cut(parts):
    metric, points = parts
    notes = [f"column {j} {'x' * 1000}: left out." for j in range(5000)]
    page = report_page(metric, **points, notes=notes, label="l" * 10_000)
    assert "... and 4,800 more." in page
    assert page.count("<li>column ") == 200
    assert len(page) < 300_000


def test_every_number_of_a_row_is_the_one_it_was_given(parts):
    metric, points = parts
    n, m = len(points["X"]), len(points["X_test"])
    numbers = 1000 + np.random.RandomState(0).permutation(n + m)
    names = np.array([f"name of {number}" for number in numbers])
    page = report_page(metric, **points, rows=numbers, shown={"name": names})
    data = strict(page)
    assert data["points"]["rows"] == numbers.tolist()
    assert [cells[0] for cells in data["cells"]] == names.tolist()
    listed = re.findall(r'<tr data-point="(\d+)"><td>row (\d+)</td><td>(\w)</td>', page)
    assert listed
    labels = np.concatenate([points["y"], points["y_test"]])
    for point, row, label in listed:
        assert int(point) >= n  # held out
        assert numbers[int(point)] == int(row)
        assert labels[int(point)] == label


def test_numbers_of_rows_stay_with_their_points_in_a_sample():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((2600, 2))
    y = rng.randint(2, size=2600)
    numbers = 10 * np.arange(2600)[::-1]
    shown = {"first": X[:, 0]}
    metric = DNE(2).fit(X[:50], y[:50])
    page = report_page(
        metric, X[:2000], y[:2000], X_test=X[2000:], y_test=y[2000:], rows=numbers, shown=shown
    )
    data = strict(page)
    kept = 2599 - np.array(data["points"]["rows"]) // 10
    assert len(kept) == 1999
    assert (kept[: data["nTrain"]] < 2000).all()
    assert (kept[data["nTrain"] :] >= 2000).all()
    assert [cells[0] for cells in data["cells"]] == [f"{value:.4g}" for value in X[kept, 0]]
    labels = [data["classes"][code] for code in data["points"]["codes"]]
    assert labels == y[kept].astype(str).tolist()


def test_pairs_are_listed_by_the_numbers_of_their_rows(wine):
    X, y = wine
    pairs = Pairs.from_labels(y, per_point=1, random_state=0)
    metric = DNE(2).fit(X, y)
    numbers = 500 + np.arange(len(X))[::-1]
    page = report_page(metric, X, pairs=pairs, rows=numbers)
    d = metric.pair_distance(pairs.rows, X)
    worst = pairs.similar[np.argmax(d[pairs.is_similar])]
    assert f"row {numbers[worst[0]]} and row {numbers[worst[1]]}</td><td>alike" in page
    near = pairs.dissimilar[np.argmin(d[~pairs.is_similar])]
    assert f"row {numbers[near[0]]} and row {numbers[near[1]]}</td><td>different" in page


def test_as_many_classes_as_there_are_pairs_of_rows_are_no_warning():
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(40), 3)
    X = rng.standard_normal((40, 4))[y] + 0.1 * rng.standard_normal((120, 4))
    test = np.arange(120) % 3 == 0
    metric = DNE(2, n_neighbors=1).fit(X[~test], y[~test])
    page = report_page(metric, X[~test], y[~test], X_test=X[test], y_test=y[test])
    assert len(strict(page)["classes"]) == 40


def test_the_hardest_rows_come_first():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    y = np.array([0, 0, 1, 1])
    X_test, y_test = np.array([[8.0], [10.0], [9.0]]), np.array([0, 0, 0])
    metric = DNE(1, n_neighbors=1).fit(X, y)
    page = report_page(metric, X, y, X_test=X_test, y_test=y_test)
    assert re.findall(r"<td>row (\d)</td>", page) == ["5", "6", "4"]


def test_any_two_of_some_points_are_compared_by_the_shares_of_their_distance(parts):
    metric, points = parts
    data = data_of(report_page(metric, **points))
    pairs, n = data["pairs"], len(points["X"])
    chosen = pairs["points"]
    assert len(chosen) == min(_page_reasons.COMPARED, len(points["X_test"]))
    assert min(chosen) >= n  # held-out ones
    assert len(pairs["shares"]) == len(pairs["distances"]) == len(chosen) * (len(chosen) - 1) // 2
    m = len(chosen)
    for a, b in ((0, 1), (2, 7), (m - 2, m - 1)):
        k = a * m - a * (a + 1) // 2 + (b - a - 1)  # as the script of the page counts
        rows = points["X_test"][[chosen[a] - n, chosen[b] - n]]
        why = explain_pair(metric, *rows)
        assert pairs["distances"][k] ** 2 == pytest.approx(why.squared_distance, rel=1e-3)
        percent = np.round(100 * why.shares / np.abs(why.shares).sum())
        for column, share in pairs["shares"][k]:
            assert abs(percent[column] - share) <= 1


def test_a_metric_of_given_kernel_values_has_no_pairs_to_compare(wine):
    X, y = wine
    metric = Kernelized(DNE(2), "precomputed").fit(X @ X.T, y)
    data = data_of(report_page(metric, X @ X.T, y))
    assert data["pairs"] == {"points": [], "shares": [], "distances": []}


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((120, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(120)
    train, test = holdout(y, regression=True)
    metric = MLKR().fit(X[train], y[train])
    return metric, {"X": X[train], "y": y[train], "X_test": X[test], "y_test": y[test]}


def test_a_page_of_numbers_shows_ranges_and_how_far_predictions_are_off(numbers):
    metric, points = numbers
    page = report_page(
        metric,
        **points,
        regression=True,
        label="price",
        scores={"Euclidean": [-0.1], "MLKR": [0.9]},
        learned="MLKR",
        score_name="R²",
    )
    data = data_of(page)
    assert len(data["classes"]) == 5
    assert data["classes"][0].startswith("up to ")
    assert data["values"][0] == f"{points['y'][0]:.4g}"
    assert "Predicted numbers" in page
    assert "The hardest rows" not in page
    assert "nan" not in page.split('id="data"')[0]
    model = KNeighborsRegressor(5).fit(metric.transform(points["X"]), points["y"])
    off = np.abs(model.predict(metric.transform(points["X_test"])) - points["y_test"])
    assert f"{off.mean():.4g} in the mean" in page


def test_ranges_hold_every_number_and_few_numbers_make_few_ranges():
    values = np.random.RandomState(0).standard_normal(103)
    codes, names = ranges_of(values)
    assert np.bincount(codes).tolist() == [21, 21, 20, 21, 20] or np.ptp(np.bincount(codes)) <= 2
    assert len(names) == 5
    for lower, upper in ((0, 1), (3, 4)):
        assert values[codes == lower].max() < values[codes == upper].min()
    codes, names = ranges_of(np.array([1.0, 1.0, 1.0, 2.0]))
    assert len(names) == len(np.unique(codes)) == 2
    assert ranges_of(np.ones(4))[0].tolist() == [0, 0, 0, 0]


def test_a_notebook_shows_the_page_as_it_is(wine):
    X, y = wine[:2]
    page = report_page(LDA().fit(X, y), X, y)
    shown = page._repr_html_()
    (inside,) = re.findall(r'^<iframe srcdoc="([^"]*)" [^>]*></iframe>$', shown, re.DOTALL)
    assert html.unescape(inside) == page


def test_objects_are_drawn_beside_points_and_their_neighbours_are_those_of_the_metric():
    series, more = waves(24), waves(6)
    metric = Kernelized(LDA(), kernel=Convolutions(84)).fit(series, np.arange(24) % 2)
    given = {"X_test": more, "y_test": np.arange(6) % 2}
    data = data_of(report_page(metric, series, np.arange(24) % 2, **given))
    assert data["columns"] == ["object"]
    for (cell,), item in zip(data["cells"], [*series, *more], strict=True):
        assert cell["svg"] == metric.kernel_.picture(metric.kernel_.read(item))
        assert cell["text"] == f"1 × 30 numbers from {item.min():.3g} to {item.max():.3g}"
    D = np.linalg.norm(metric.transform(more)[:, None] - metric.transform(series), axis=2)
    nearest = np.argsort(D, axis=1, kind="stable")[:, 0]
    assert [row[0] for row in data["points"]["after"]["neighbors"][24:]] == nearest.tolist()


def test_objects_that_nobody_draws_are_texts():
    evil = "</script><img src=x onerror=alert(1)>"
    texts = [f"{('blue', 'red')[i % 2]} fox {i}" + evil * (i == 0) for i in range(20)]
    metric = Kernelized(LDA(), kernel="ngrams").fit(texts, np.arange(20) % 2)
    page = report_page(metric, texts, np.arange(20) % 2)
    assert "<img" not in page
    assert [cell for (cell,) in data_of(page)["cells"]] == texts
    assert drawn("ngrams", ["a"])[0].picture() is None
    assert drawn(None, ["a"]) == ["a"]
    bits = np.random.RandomState(0).randint(0, 256, (20, 4)).astype(np.uint8)
    packed = Kernelized(LDA(), kernel=Tanimoto(packed=True)).fit(bits, np.arange(20) % 2)
    data = data_of(report_page(packed, bits, np.arange(20) % 2))
    assert data["columns"] == []
    assert data["whyColumns"][0] == "coordinate 1"


def waves(n, length=30):
    """Series of two speeds."""
    rng = np.random.RandomState(n)
    t = np.arange(length)
    return [np.sin((0.4 + 0.5 * (i % 2)) * t + rng.uniform(0, 6)) for i in range(n)]
