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

# "finite r d": finite numbers of shape (r, d), see _attributes.py. The letter d is the number of
# features, * any number; every other letter stands for one number in all attributes of an object.
# NaN is allowed where a column without any value leaves it.
_DECOMPOSITION = {
    "components_": "finite r d",
    "explained_variance_": "variance r",
    "explained_variance_ratio_": "number r",
    "singular_values_": "finite r",
}
_PREDICTOR = {
    "embedding_": "finite n r",
    "weights_": "finite 2",
    "_mass": "finite n",
    "_kept": "count n",
}
_ATTRIBUTES: dict[type, dict[str, str]] = {
    preprocessing.StandardScaler: {"mean_": "number d", "var_": "number d", "scale_": "scale d"},
    preprocessing.MinMaxScaler: {
        "min_": "number d",
        "scale_": "scale d",
        "data_min_": "number d",
        "data_max_": "number d",
        "data_range_": "number d",
    },
    preprocessing.MaxAbsScaler: {"max_abs_": "number d", "scale_": "scale d"},
    preprocessing.RobustScaler: {"center_": "number d", "scale_": "scale d"},
    preprocessing.PowerTransformer: {"lambdas_": "number d"},
    preprocessing.QuantileTransformer: {"references_": "finite q", "quantiles_": "quantile q d"},
    preprocessing.LabelEncoder: {"classes_": "any c"},
    decomposition.PCA: {
        "mean_": "finite d",
        **_DECOMPOSITION,
    },
    decomposition.TruncatedSVD: _DECOMPOSITION,
    LinearDiscriminantAnalysis: {
        "xbar_": "finite d",
        "scalings_": "finite d r",
        "means_": "finite c d",
        "priors_": "finite c",
        "classes_": "any c",
        "coef_": "finite b d",
        "intercept_": "finite b",
    },
    LogisticRegression: {"coef_": "finite b d", "intercept_": "finite b", "classes_": "any c"},
    KNeighborsClassifier: {"_fit_X": "finite n r", "classes_": "any c", "_y": "count<c n"},
    KNeighborsRegressor: {"_fit_X": "finite n r"},
    NeighborhoodComponentsAnalysis: {"components_": "finite r d"},
    SimpleImputer: {"statistics_": "any d"},
    MissingIndicator: {"features_": "count m"},
    Space: {
        "projection_": "finite n r",
        "offset_": "finite 1 r",
        "eigenvalues_": "finite r",
        "basis_gram_": "finite n n",
    },
    RandomFeatures: {
        "frequencies_": "finite d p",
        "amplitudes_": "finite 1 p",
        "_location": "finite 2 d",
    },
    Learner: {
        "components_": "finite r k",
        "_location": "finite 2 d",
        "signature_": "sign r",
        "eigenvalues_": "number *",
        "alpha_": "finite p",
        "upper_": "finite p",
        "slacks_": "finite *",
        "chunks_": "code *",
    },
    AlignedSum: {
        "S_": "finite m m",
        "b_": "finite m",
        "weights_": "finite m",
        "base_alignments_": "number m",
    },
    TransductiveDistance: {
        "embedding_": "finite n r",
        "eigenvalues_": "finite r",
        "label_mass_": "number r",
        "components_": "finite r k",
        "_points": "finite n p",
        "classes_": "any c",
        "_codes": "code<c n",
        "transduction_": "any n",
    },
    MetricClassifier: {
        **_PREDICTOR,
        "classes_": "any c",
        "_codes": "count<c n",
        "coef_": "finite r c",
        "intercept_": "finite c",
        "biases_": "finite c",
    },
    MetricRegressor: {
        **_PREDICTOR,
        "targets_": "finite n",
        "coef_": "finite r 1",
        "intercept_": "finite 1",
        "residuals_": "ascending m",
        "_residual_mass": "finite m",
    },
    Gram: {"matrix": "finite n n"},
    TableSchema: {
        "centres_": "finite d",
        "rests_": "finite d",
        "scales_": "scale d",
        "limits_": "finite d 2",
    },
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
    for kind, table in _ATTRIBUTES.items():
        for name, wanted in table.items() if isinstance(value, kind) else ():
            if found.get(name) is not None:
                found.array(name, wanted)
    for kind, parts in _PARTS.items():
        for name, wanted_kind in parts.items() if isinstance(value, kind) else ():
            found.part(name, wanted_kind)
    for classes, check in FURTHER:
        if isinstance(value, classes):
            check(found)
    if "d" in found.sides or "metric_" in found.state:
        _require_answer(found)


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
