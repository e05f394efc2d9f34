"""What the attributes of a fitted estimator must be like: checked before a file gives them.

Estimators trust what their own ``fit`` has left, and compiled code under them trusts it without
looking. So a file that says otherwise is refused: by the table of
``_fitted.py``, the functions of ``_agreement.py``, and by asking the object about a point.
"""

import copy
import warnings
from typing import Any

import numpy as np
from sklearn import config_context, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from kernelmetric.compute import to_numpy
from kernelmetric.inputs import is_objects
from kernelmetric.linkage._decision import TextModel
from kernelmetric.linkage._evidence import MatchModel
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.shipping._agreement import CHECKS
from kernelmetric.shipping._attributes import Attributes
from kernelmetric.shipping._fitted import TABLE
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.tables._frames import width_of

# What takes no rows of numbers: its parts do, or it reads tables.
_OF_OTHERS = (Pipeline, FeatureUnion, ColumnTransformer, TableEncoder, TableSchema)
_WHOLE = frozenset(("best_estimator_", "statistics_"))  # None where they are there: never
_PLAINLY: dict[str, Any] = {"transform_output": "default", "array_api_dispatch": False}


def check_fitted(value: Any) -> None:
    """Refuse an object whose attributes no fit could have left; its parts are checked already."""
    found = Attributes(value)
    d, names = found.get("n_features_in_"), found.get("feature_names_in_")
    if d is not None:
        found.check("n_features_in_", "count")
        found.sides["d"] = int(d)
    if names is not None:
        good = isinstance(names, np.ndarray) and names.shape == (d,)
        good = good and all(isinstance(name, str) for name in names)
        found.require(good, "feature_names_in_", "a name for each feature")
    for kind, table in TABLE.items():
        for wanted, listed in table.items() if isinstance(value, kind) else ():
            for name in listed.split():
                if found.get(name) is not None or name in _WHOLE & found.state.keys():
                    found.check(name, wanted)
    for classes, check in CHECKS:
        if isinstance(value, classes):
            check(found)
    _require_answer(found)


def _question(asked: Any) -> tuple[Any, list[str]]:
    """A point, and the methods that can be asked about it; none of what is not known."""
    if isinstance(asked, TextModel):
        width = len(asked.names) - asked.n_fields
        return np.zeros((1, width)), ["probability"]
    if isinstance(asked, MatchModel):
        return np.zeros((1, len(asked.weights))), ["probability"]
    if isinstance(asked, MetricClassifier | MetricRegressor) and hasattr(asked, "metric_"):
        asked.metric_ = preprocessing.FunctionTransformer()  # its own has answered: of a table?
        asked._features, asked.weights_ = None, asked.weights_[:2]  # they were checked themselves
        return asked.embedding_[:1], ["predict", "kneighbors", "score_samples"]
    if isinstance(asked, SimpleImputer) and hasattr(asked, "statistics_"):
        return np.asarray(asked.statistics_)[None], ["transform"]
    if isinstance(asked, OneHotEncoder | OrdinalEncoder) and hasattr(asked, "categories_"):
        first = [found[0] for found in asked.categories_ if len(found)]
        kinds = {found.dtype.kind for found in asked.categories_}
        dtype = None if kinds <= set("biuf") else object
        return np.array(first, dtype=dtype)[None], ["transform"]
    if not isinstance(asked, _OF_OTHERS) and hasattr(asked, "n_features_in_"):
        schema = asked.__dict__.pop("schema_", None)
        inner = getattr(asked, "best_estimator_", asked)
        anchors: Any = getattr(getattr(inner, "space_", inner), "anchors_", None)
        if schema is not None:  # then it is asked about what the schema makes of a row
            asked.__dict__.pop("feature_names_in_", None)
            asked.n_features_in_ = width_of(schema)
        methods = [name for name in ("transform", "predict") if hasattr(asked, name)]
        if is_objects(anchors):
            return anchors[:1], methods
        return np.zeros((1, asked.n_features_in_)), methods
    return None, []


def _require_answer(found: Attributes) -> None:
    """Refuse what fails, or has no finite answer, when it is asked of one point."""
    name = type(found.value).__name__
    asked: Any = object.__new__(type(found.value))  # which may keep what it computes
    vars(asked).update(found.state)
    if "best_estimator_" in found.state:
        asked.best_estimator_ = copy.copy(asked.best_estimator_)
    ours = type(asked).__module__.startswith("kernelmetric")
    with warnings.catch_warnings(), np.errstate(all="ignore"), config_context(**_PLAINLY):
        warnings.simplefilter("ignore")
        try:
            X, methods = _question(asked)
            answers = [getattr(asked, method)(X) for method in methods]
        except Exception as error:
            said = not ours or str(error).startswith(("Got", "The '"))
            if isinstance(error, ValueError) and said:
                return  # of a point at zero: a sentence that others may not get
            raise ValueError(
                f"Got a {name}, but expected one that can answer about a point "
                f"({type(error).__name__}: {error})."
            ) from error
    for answer in answers if ours else ():  # a column without values leaves NaN in a scaler
        parts = answer if isinstance(answer, tuple) else (answer,)
        if not all(a.dtype.kind != "f" or np.isfinite(a).all() for a in map(to_numpy, parts)):
            raise ValueError(
                f"Got a {name} that answers NaN or infinity about a point, but expected numbers."
            )
