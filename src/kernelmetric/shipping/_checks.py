"""What the attributes of a fitted estimator must be like: checked before a file gives them.

Estimators trust what their own ``fit`` has left, and compiled code under them trusts it without
looking. So a file that says otherwise is refused, by one table of kinds and sides for all classes.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import config_context, decomposition, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NeighborhoodComponentsAnalysis,
)
from sklearn.pipeline import FeatureUnion

from kernelmetric.compute import to_numpy
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import Learner
from kernelmetric.linkage import RecordComparison, RecordLinker
from kernelmetric.linkage._evidence import Agreement, Doubt, MatchModel
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.selection import AlignedSum
from kernelmetric.shipping._attributes import Attributes, are_texts, is_count
from kernelmetric.shipping._cross_checks import FURTHER
from kernelmetric.spaces import Gram, RandomFeatures, Space
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.transductive import TransductiveDistance

# Attributes by what they must be like: "finite r d" are finite numbers of shape (r, d), see
# _attributes.py. The letter d is the number of features, * any number; every other letter stands
# for one number in all attributes of an object. NaN is allowed where a column without values
# leaves it.
_DECOMPOSITION = {
    "finite r d": "components_",
    "variance r": "explained_variance_",
    "number r": "explained_variance_ratio_",
    "finite r": "singular_values_",
}
_ATTRIBUTES: dict[type, dict[str, str]] = {
    preprocessing.StandardScaler: {"number d": "mean_ var_", "scale d": "scale_"},
    preprocessing.MinMaxScaler: {
        "number d": "min_ data_min_ data_max_ data_range_",
        "scale d": "scale_",
    },
    preprocessing.MaxAbsScaler: {"number d": "max_abs_", "scale d": "scale_"},
    preprocessing.RobustScaler: {"number d": "center_", "scale d": "scale_"},
    preprocessing.PowerTransformer: {"number d": "lambdas_"},
    preprocessing.QuantileTransformer: {"finite q": "references_", "quantile q d": "quantiles_"},
    preprocessing.LabelEncoder: {"any c": "classes_"},
    decomposition.PCA: {"finite d": "mean_"} | _DECOMPOSITION,
    decomposition.TruncatedSVD: _DECOMPOSITION,
    LinearDiscriminantAnalysis: {
        "any c": "classes_",
        "finite d": "xbar_",
        "finite d r": "scalings_",
        "finite c d": "means_",
        "finite c": "priors_",
        "finite b d": "coef_",
        "finite b": "intercept_",
    },
    LogisticRegression: {"finite b d": "coef_", "finite b": "intercept_", "any c": "classes_"},
    KNeighborsClassifier: {"finite n r": "_fit_X", "any c": "classes_", "count<c n": "_y"},
    KNeighborsRegressor: {"finite n r": "_fit_X"},
    NeighborhoodComponentsAnalysis: {"finite r d": "components_"},
    SimpleImputer: {"any d": "statistics_"},
    MissingIndicator: {"count m": "features_"},
    Space: {
        "finite n r": "projection_",
        "finite 1 r": "offset_",
        "finite r": "eigenvalues_",
        "finite n n": "basis_gram_",
    },
    RandomFeatures: {
        "finite d p": "frequencies_",
        "finite 1 p": "amplitudes_",
        "finite 2 d": "_location",
    },
    Learner: {
        "finite r k": "components_",
        "finite 2 d": "_location",
        "sign r": "signature_",
        "number *": "eigenvalues_",
        "finite p": "alpha_ upper_",
        "finite *": "slacks_",
        "code *": "chunks_",
    },
    AlignedSum: {"finite m m": "S_", "finite m": "b_ weights_", "number m": "base_alignments_"},
    TransductiveDistance: {
        "finite n r": "embedding_",
        "finite r": "eigenvalues_",
        "number r": "label_mass_",
        "finite r k": "components_",
        "finite n p": "_points",
        "any c": "classes_",
        "code<c n": "_codes",
        "any n": "transduction_",
    },
    MetricClassifier: {
        "finite n r": "embedding_",
        "any c": "classes_",
        "count<c n": "_codes",
        "finite r c": "coef_",
        "finite c": "intercept_ biases_",
        "finite 2": "weights_",
        "finite n": "_mass",
        "count n": "_kept",
    },
    MetricRegressor: {
        "finite n r": "embedding_",
        "finite n": "targets_ _mass",
        "finite r 1": "coef_",
        "finite 1": "intercept_",
        "finite 2": "weights_",
        "ascending m": "residuals_",
        "finite m": "_residual_mass",
        "count n": "_kept",
    },
    Gram: {"finite n n": "matrix"},
    TableSchema: {"finite d": "centres_ rests_", "scale d": "scales_", "finite d 2": "limits_"},
}
# What an attribute is an instance of, unless it is None.
_PARTS: dict[type, dict[str, type]] = {
    preprocessing.OneHotEncoder: {"_infrequent_enabled": bool},
    preprocessing.OrdinalEncoder: {"_infrequent_enabled": bool},
    SimpleImputer: {"indicator_": MissingIndicator},
    FeatureUnion: {"transformer_weights": dict},
    ColumnTransformer: {"transformer_weights": dict},
    TableEncoder: {"columns_": ColumnTransformer},
    Kernelized: {"space_": Space, "kernel_": Kernel, "schema_": TableSchema},
    KernelizedCV: {"best_estimator_": Kernelized},
    MetricClassifier: {"index": str},
    MetricRegressor: {"index": str},
    MatchModel: {"agreement": Agreement, "doubt": Doubt, "space": Space},
    RecordLinker: {
        "comparison": RecordComparison,
        "comparison_": RecordComparison,
        "model_": MatchModel,
    },
}
# What takes any numbers.
_NUMERIC = (
    Learner,
    Space,
    Kernelized,
    TransductiveDistance,
    preprocessing.StandardScaler,
    preprocessing.MinMaxScaler,
    preprocessing.MaxAbsScaler,
    preprocessing.RobustScaler,
    preprocessing.PowerTransformer,
    preprocessing.QuantileTransformer,
    decomposition.PCA,
    decomposition.TruncatedSVD,
    LinearDiscriminantAnalysis,
    NeighborhoodComponentsAnalysis,
)
_PLAINLY: dict[str, Any] = {"transform_output": "default", "array_api_dispatch": False}


def check_fitted(value: Any) -> None:
    """Refuse an object whose attributes no fit could have left; its parts are checked already."""
    found = Attributes(value)
    _check_features(found)
    for name, wanted in _table_of(value):
        if found.get(name) is not None:
            found.array(name, wanted)
    for kind, parts in _PARTS.items():
        for name, part in parts.items() if isinstance(value, kind) else ():
            found.part(name, part)
    for classes, check in FURTHER:
        if isinstance(value, classes):
            check(found)
    if "d" in found.sides or "metric_" in found.state:
        _require_answer(found)


def _table_of(value: Any) -> list[tuple[str, str]]:
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
        asked.metric_, asked.index = preprocessing.FunctionTransformer(), None
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
    if isinstance(step, preprocessing.OneHotEncoder | preprocessing.OrdinalEncoder):
        first = [found[0] for found in step.categories_ if len(found)]
        kinds = {found.dtype.kind for found in step.categories_}
        return np.array(first, dtype=None if kinds <= set("biuf") else object)
    return None
