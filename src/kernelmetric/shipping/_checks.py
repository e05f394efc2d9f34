"""What the attributes of a fitted estimator must be like: checked before a file gives them.

Estimators trust what their own ``fit`` has left, and compiled code under them trusts it without
looking. So a file that says otherwise is refused.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from kernelmetric.compute import to_numpy
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.shipping import _linkage_checks, _metric_checks, _sklearn_checks
from kernelmetric.shipping._attributes import Attributes, are_texts, is_count
from kernelmetric.spaces import Space
from kernelmetric.transductive import TransductiveDistance

_MODULES = (_sklearn_checks, _metric_checks, _linkage_checks)
_ATTRIBUTES = {kind: table for module in _MODULES for kind, table in module.ATTRIBUTES.items()}
_CHECKS = [check for module in _MODULES for check in module.CHECKS]
# What takes any numbers.
_NUMERIC = (Learner, Space, Kernelized, TransductiveDistance, *_sklearn_checks.NUMERIC)
_PLAINLY: dict[str, Any] = {"transform_output": "default", "array_api_dispatch": False}


def check_fitted(value: Any) -> None:
    """Refuse an object whose attributes no fit could have left; its parts are checked already."""
    found = Attributes(value)
    _check_features(found)
    for name, wanted in _table_of(value):
        if isinstance(wanted, type):
            found.part(name, wanted)
        elif found.get(name) is not None:
            found.array(name, wanted)
    for classes, check in _CHECKS:
        if isinstance(value, classes):
            check(found)
    if "d" in found.sides or "metric_" in found.state:
        _require_answer(found)


def _table_of(value: Any) -> list[tuple[str, Any]]:
    """Names of attributes that an object may have, each with what it must be like."""
    return [
        (name, wanted)
        for kind, table in _ATTRIBUTES.items()
        if isinstance(value, kind)
        for wanted, names in table.items()
        for name in names.split()
    ]


def _check_features(found: Attributes) -> None:
    """Learn the number of features, if there is one, and see that their names are as many."""
    d, names = found.get("n_features_in_"), found.get("feature_names_in_")
    if d is not None:
        found.require(is_count(d), "n_features_in_", "a number of features")
        found.sides["d"] = int(d)
    if names is not None:
        good = isinstance(names, np.ndarray) and names.shape == (d,) and are_texts(names)
        found.require(good, "feature_names_in_", "a name for each feature")


def _require_answer(found: Attributes) -> None:
    """Refuse what fails, or has no finite answer, when it is asked of one point."""
    value = found.value
    asked: Any = object.__new__(type(value))  # which may keep what it computes
    vars(asked).update(found.state)
    if isinstance(value, MetricClassifier | MetricRegressor):
        # Its own metric has answered, and may want a table; an index would be of all points.
        asked.metric_, asked.index = FunctionTransformer(), None
        X, methods = value.embedding_[:1], ["predict", "kneighbors", "score_samples"]
    elif isinstance(value, _NUMERIC) and found.get("schema_") is None:
        X, methods = np.zeros((1, found.sides["d"])), ["transform"]
        methods += ["predict"] * isinstance(value, TransductiveDistance)
        methods = [method for method in methods if hasattr(asked, method)]
    elif (row := _own_row(value)) is not None:
        X, methods = row[None], ["transform"]
    else:
        return
    ours = type(value).__module__.startswith("kernelmetric")
    with warnings.catch_warnings(), np.errstate(all="ignore"), config_context(**_PLAINLY):
        warnings.simplefilter("ignore")
        try:
            answers = [getattr(asked, method)(X) for method in methods]
        except Exception as error:
            said = not ours or str(error).startswith(("Got", "The '"))
            if isinstance(error, ValueError) and said:
                return  # of a point at zero: a sentence that others may not get
            raise ValueError(
                f"Got a {type(value).__name__} that cannot answer about a point "
                f"({type(error).__name__}: {error})."
            ) from error
    for answer in answers if ours else ():  # a column without values leaves NaN in a scaler
        parts = answer if isinstance(answer, tuple) else (answer,)
        if not all(a.dtype.kind != "f" or np.isfinite(a).all() for a in map(to_numpy, parts)):
            raise ValueError(
                f"Got a {type(value).__name__} that answers NaN or infinity about a point, but "
                "expected finite numbers."
            )


def _own_row(step: Any) -> np.ndarray | None:
    """A row of what an imputer or an encoder has seen, be it text; None of any other."""
    if isinstance(step, SimpleImputer):
        return np.asarray(step.statistics_)
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        first = [found[0] for found in step.categories_ if len(found)]
        kinds = {found.dtype.kind for found in step.categories_}
        return np.array(first, dtype=None if kinds <= set("biuf") else object)
    return None
