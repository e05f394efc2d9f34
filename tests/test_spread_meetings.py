"""Options of what spreads few labels and numbers, each with every other one."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dimensions
from kernelmetric import LDA, TransductiveDistance, TransductiveRegressor, load, save, time_limit

N = 60


def points(case):
    """Rows of three classes, new rows, and the classes."""
    rng = np.random.RandomState(4)
    codes = np.arange(N) % 3
    X, X_new = rng.standard_normal((N, 4)), rng.standard_normal((7, 4))
    X[:, :2] += 4.0 * np.column_stack([codes == 1, codes == 2])
    if case["rows"] == "copies":
        X[40:] = X[10:30]  # of which nearly all have another class
    elif case["rows"] == "constant":
        X[:, 2] = X_new[:, 2] = 3.0
    elif case["rows"] == "offset":
        X, X_new = X + 100.0, X_new + 100.0
    elif case["rows"] == "two parts":
        X[codes == 2, 3] += 1e3  # no neighbour is in the other part
    return *(A.astype(np.float32).astype(float) for A in (X, X_new)), codes


def as_given(case, X):
    forms = {
        "float32": lambda X: X.astype(np.float32),
        "frame": pd.DataFrame,
        "columns first": np.asfortranarray,
        "list": np.ndarray.tolist,
        "sparse": sparse.csr_array,
    }
    return forms.get(case["input"], np.asarray)(X)


def graph(case, X):
    if case["graph"] != "given":
        return case["graph"]
    squares = np.square(X[:, None] - X[None]).sum(axis=2)
    return np.exp(-squares / np.median(squares)) * (1.0 - np.eye(len(X)))


def known_rows(case, codes):
    counts = {"one": 1, "two": 1, "few": 3, "many": 12}
    return np.concatenate([np.flatnonzero(codes == c)[: counts[case["known"]]] for c in range(3)])


def what_is_told(case, codes, rows):
    if case["told"] == "pairs":
        pairs = np.array([(i, j) for i in rows for j in rows if i < j])
        alike = codes[pairs[:, 0]] == codes[pairs[:, 1]]
        some = {"similar": pairs[alike], "dissimilar": pairs[~alike]}
        return {name: kept for name, kept in some.items() if len(kept)}
    y = np.full(N, -1)
    y[rows] = codes[rows]
    if case["told"] == "names":
        y = np.array([None if c < 0 else "abc"[c] for c in y], dtype=object)
    return {"y": y}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.every(4)
@pytest.mark.parametrize("case", dimensions.cases(dimensions.SPREAD), ids=str)
def test_all_options_of_few_labels_meet(case, tmp_path):
    X, X_new, codes = points(case)
    rows = known_rows(case, codes)
    told = what_is_told(case, codes, rows)
    sizes = {"none": None, "equal": "equal", "given": [20, 20, 20]}[case["class_sizes"]]
    prior = {"none": None, "function": lambda X: 2.0 * X}
    if case["prior"] == "metric":
        prior["metric"] = LDA().fit(X, codes)
    weights = {"fractions": np.linspace(0.3, 2.0, N), "some zero": 1.0 * (np.arange(N) % 7 != 5)}
    eigenproblem = {
        "usual": {}, "normalized": {"penalty": "normalized"}, "kernel": {"penalty": "kernel"},
        "warped": {"penalty": "warped"}, "cost": {"cost": "paper"}, "n_votes": {"n_votes": 3},
    }  # fmt: skip
    model = TransductiveDistance(
        2 if case["method"] == "eigenvectors" else None,
        {"auto": "auto", "number": 30.0, "infinite": np.inf}[case["lam"]],
        {"auto": "auto", "some": 7}[case["n_neighbors"]],
        method=case["method"], graph=graph(case, X), class_sizes=sizes,
        prior=prior[case["prior"]], warm_start=case["warm_start"] == "yes", random_state=0,
        **eigenproblem[case["eigenproblem"]],
    )  # fmt: skip
    w = weights.get(case["weights"])
    told["sample_weight"] = w
    refused = dimensions.refusals(case.values)
    if refused:
        with pytest.raises((ValueError, TypeError), match="|".join(r.says for r in refused)):
            model.fit(as_given(case, X), **told)
        return
    with time_limit(3_600.0 if case["limit"] == "ample" else None):
        model.fit(as_given(case, X), **told)
        if model.warm_start:
            model.fit(as_given(case, X), **told)
    counted = np.arange(N) if w is None else np.flatnonzero(w)
    if case["later"] == "more labels" and "y" in told:
        more = np.intersect1d(np.arange(42, 50), counted)
        names = codes[more] if case["told"] == "labels" else np.array(list("abc"))[codes[more]]
        model.add_labels(more, names)
    E, new = model.embedding_, model.transform(as_given(case, X_new))
    assert np.isfinite(E).all()
    assert np.isfinite(new).all()
    assert E.shape == (len(counted), new.shape[1])
    if "y" in told:
        if case["later"] == "more labels":
            rows = np.union1d(rows, more)
            assert not np.intersect1d(model.to_label(3), rows).size
        right = codes if case["told"] == "labels" else np.array(list("abc"))[codes]
        known = np.intersect1d(rows, counted)
        here = np.searchsorted(counted, known)
        np.testing.assert_array_equal(model.transduction_[here], right[known])
        P = model.predict_proba(as_given(case, X_new))
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-5)
        assert set(model.predict(as_given(case, X_new))) <= set(model.classes_)
    if case["prior"] != "function":  # which is code
        again = load(save(model, tmp_path / "m.km"))
        np.testing.assert_array_equal(again.transform(as_given(case, X_new)), new)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.every(4, 1)
@pytest.mark.parametrize("case", dimensions.cases(dimensions.SPREAD_NUMBERS), ids=str)
def test_all_options_of_few_numbers_meet(case, tmp_path):
    X, X_new, codes = points(case)
    rows = known_rows(case, codes)[: 2 if case["known"] == "two" else None]
    truth = np.column_stack([X[:, 0] - X[:, 1], codes])
    y = np.full(truth.shape, np.nan)
    y[rows] = truth[rows]
    y = y if case["outputs"] == "two" else y[:, 0]
    model = TransductiveRegressor(graph=graph(case, X), cv=3)
    with time_limit(3_600.0 if case["limit"] == "ample" else None):
        model.fit(as_given(case, X), y)
    np.testing.assert_array_equal(model.transduction_[rows], y[rows])
    assert np.isfinite(model.transduction_).all()
    found = model.predict(as_given(case, X_new))
    assert found.shape == (7, *y.shape[1:])
    assert np.isfinite(found).all()
    low, high = np.moveaxis(model.predict_interval(as_given(case, X_new), 0.6), -1, 0)
    assert (low < high).all()
    again = load(save(model, tmp_path / "m.km"))
    np.testing.assert_array_equal(again.predict(as_given(case, X_new)), found)
