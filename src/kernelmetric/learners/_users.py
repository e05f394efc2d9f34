"""What users of scikit-learn and metric-learn expect of a learner: a score, and known names.

A learner has no ``predict``: scikit-learn calls that with rows, metric-learn with pairs.
"""

from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.neighbors import NearestNeighbors

from kernelmetric.compute import to_numpy
from kernelmetric.graphs import are_tuples, coded_targets
from kernelmetric.inputs import refuse_text
from kernelmetric.metric import refuse_signed

_NEIGHBORS = 3
_NEW_NAMES = {
    "k": "n_neighbors",
    "num_dims": "n_components",
    "num_constraints": "max_pairs",
    "n_constraints": "max_pairs",
    "convergence_threshold": "tol",
    "convergence_tol": "tol",
    "regularization": "c",
}
_NOT_NEEDED = {
    "learn_rate": "the solver chooses its steps",
    "min_iter": "tol says when a fit ends",
    "preprocessor": "tuples are row numbers of X",
}
_TAUGHT_BY = "From pairs learn ITML and IdealizedKernel, from comparisons LSML, from chunks RCA"
_OF_ROWS = (
    "MetricClassifier(learner) predicts classes of rows, and MetricRegressor(learner) numbers"
)
_OF_PAIRS = (
    "PairVerifier(learner).calibrate(pairs, X) finds a threshold, and its predict_pairs, "
    "decision_pairs and predict_proba_pairs tell of pairs"
)
_ELSE_BY = {
    **dict.fromkeys(("predict", "predict_proba"), f"{_OF_ROWS}; {_OF_PAIRS}"),
    **dict.fromkeys(("decision_function", "calibrate_threshold", "set_threshold"), _OF_PAIRS),
    "plot": "kernelmetric.report.report_page(learner, X, y) makes a page, which a notebook shows",
    "score_pairs": "it is called pair_score here",
    "kneighbors": (
        "its places(X) and transform(X_new) go to scikit-learn's NearestNeighbors, or to to_faiss"
    ),
}


def missing(learner: Any, name: str) -> AttributeError:
    """What to say of an attribute that a learner lacks, and other libraries' estimators have."""
    said = f"{type(learner).__name__!r} object has no attribute {name!r}"
    said = f"{said}: {_ELSE_BY[name]}." if name in _ELSE_BY else said
    return AttributeError(said, name=name, obj=learner)  # Python then names one that is alike


def refuse_unknown(kind: type, given: dict[str, Any], fit: Any = None) -> None:
    """Refuse a parameter of a class, or an argument of its fit, that it lacks, with a hint."""
    known = signature(kind if fit is None else fit).parameters
    unknown = [name for name in given if name not in known]
    if not unknown or any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return
    name, called = unknown[0], kind.__name__
    if fit is not None:
        called, hint = f"{called}.fit", f"it takes {', '.join(list(known)[1:])}. {_TAUGHT_BY}"
    elif _NEW_NAMES.get(name) in known:
        hint = f"it is called {_NEW_NAMES[name]} here"
    elif name in ("kernel", "space"):
        hint = f"it is linear by itself; try Kernelized({kind.__name__}(), {name}=...)"
    elif name in _NOT_NEEDED:
        hint = f"it is not needed here, as {_NOT_NEEDED[name]}"
    else:
        hint = f"the parameters are {', '.join(known)}"
    raise TypeError(f"{called} got an unexpected keyword argument {name!r}: {hint}.")


def score_of(metric: Any, X: Any, y: Any) -> float:
    """How well distances tell labels, numbers, or which tuples are right."""
    refuse_signed(metric)
    if are_tuples(X):
        T = to_numpy(X) if hasattr(X, "dtype") else np.asarray(X)
        signs = 0 if y is None else len(np.unique(y))
        if T.shape[1] not in (2, 3, 4) or (T.shape[1] == 2 and signs != 2):
            raise ValueError(
                f"Got tuples of {T.shape[1]} points with {signs} different labels in y, but "
                "expected pairs with 1 and -1, or triplets or quadruplets."
            )
        if T.shape[1] == 2:
            return float(roc_auc_score(y, to_numpy(metric.pair_score(T))))
        near, far = (metric.pair_score(T[:, ends]) for ends in ([0, 1], [-2, -1]))
        far = metric.pair_score(T[:, [0, 2]]) if T.shape[1] == 3 else far
        return float(np.mean(to_numpy(near) > to_numpy(far)))
    Z = to_numpy(metric._embed(X))
    if y is None or len(Z) < 2:
        raise ValueError(
            f"Got {len(Z)} rows and {'no' if y is None else 'a'} y, but score expected a label or "
            "number for each of two rows or more."
        )
    found = coded_targets(y, Z)
    k = min(_NEIGHBORS, len(Z) - 1)
    near = NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(return_distance=False)
    if found.values is not None or metric.learns_from == "targets":
        refuse_text(np.asarray(y))
        numbers = np.asarray(y, dtype=np.float64)
        return float(r2_score(numbers, numbers[near].mean(axis=1)))
    votes = np.zeros((len(Z), int(found.key.max()) + 1))
    np.add.at(votes, (np.arange(len(Z))[:, None], found.key[near]), 1.0)
    return float(accuracy_score(found.key, votes.argmax(axis=1)))
