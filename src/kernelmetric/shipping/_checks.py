"""What the attributes of a fitted estimator must be like: checked before a file gives them.

Estimators trust what their own ``fit`` has left, and compiled code under them trusts it without
looking. So a file that says otherwise is refused, for every class by the same table: an attribute
that is there has its kind of numbers, and its sides agree with those of the others.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import config_context, decomposition, preprocessing
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NeighborhoodComponentsAnalysis,
)

from kernelmetric.compute import to_numpy
from kernelmetric.kernelized import Kernelized
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.selection import AlignedSum
from kernelmetric.shipping._cross_checks import FURTHER
from kernelmetric.shipping._require import check_array, is_count, require
from kernelmetric.spaces import Gram, RandomFeatures, Space
from kernelmetric.tables import TableSchema
from kernelmetric.transductive import TransductiveDistance

# "finite r d": finite numbers of shape (r, d). The letter d is the number of features, * any
# number; every other letter stands for one number in all attributes of an object. NaN is allowed
# where a column without any value leaves it.
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
    preprocessing.QuantileTransformer: {"references_": "finite q", "quantiles_": "number q d"},
    preprocessing.LabelEncoder: {"classes_": "any c"},
    decomposition.PCA: {
        "mean_": "finite d",
        "components_": "finite r d",
        "explained_variance_": "finite r",
        "explained_variance_ratio_": "number r",
        "singular_values_": "finite r",
    },
    decomposition.TruncatedSVD: {
        "components_": "finite r d",
        "explained_variance_": "finite r",
        "explained_variance_ratio_": "number r",
        "singular_values_": "finite r",
    },
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
    KNeighborsClassifier: {"_fit_X": "finite n r", "_y": "count n", "classes_": "any c"},
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
        "_codes": "code n",
        "classes_": "any c",
        "transduction_": "any n",
    },
    MetricClassifier: {
        "embedding_": "finite n r",
        "_codes": "count n",
        "classes_": "any c",
        "coef_": "finite r c",
        "intercept_": "finite c",
        "weights_": "finite 2",
        "biases_": "finite c",
        "_mass": "finite n",
        "_kept": "count n",
    },
    MetricRegressor: {
        "embedding_": "finite n r",
        "targets_": "finite n",
        "coef_": "finite r 1",
        "intercept_": "finite 1",
        "weights_": "finite 2",
        "residuals_": "finite m",
        "_residual_mass": "finite m",
        "_mass": "finite n",
        "_kept": "count n",
    },
    Gram: {"matrix": "finite n n"},
    TableSchema: {
        "centres_": "finite d",
        "rests_": "finite d",
        "scales_": "scale d",
        "limits_": "finite d 2",
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
    name, sides = type(value).__name__, _known_sides(value)
    for kind, attributes in _ATTRIBUTES.items():
        if isinstance(value, kind):
            for attribute, wanted in attributes.items():
                if vars(value).get(attribute) is not None:
                    check_array(f"{name}.{attribute}", vars(value)[attribute], wanted, sides)
    for classes, check in FURTHER:
        if isinstance(value, classes):
            check(value, name, sides)
    if "d" in sides or "metric_" in vars(value):
        _require_answer(value, sides)


def _require_answer(value: Any, sides: dict[str, int]) -> None:
    """Refuse what fails, or has no finite answer, when it is asked of one point."""
    asked: Any = object.__new__(type(value))  # which may keep what it computes
    vars(asked).update(vars(value))
    if isinstance(value, MetricClassifier | MetricRegressor):
        # Its own metric has answered, and may want a table; an index would be of all points.
        asked.metric_, X = preprocessing.FunctionTransformer(), value.embedding_[:1]
        asked.index = None
        methods = ["predict", "kneighbors", "score_samples"]
    elif isinstance(value, _NUMERIC) and vars(value).get("schema_") is None:
        X, methods = np.zeros((1, sides["d"])), ["transform"]
        methods += ["predict"] * isinstance(value, TransductiveDistance)
        methods = [method for method in methods if hasattr(asked, method)]
    elif (row := _own_row(value)) is not None:
        X, methods = row[None], ["transform"]
    else:
        return
    name = type(value).__name__
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
                f"Got a {name} that cannot answer about a point ({type(error).__name__}: {error})."
            ) from error
    for answer in answers if ours else ():  # a column without values leaves NaN in a scaler
        parts = answer if isinstance(answer, tuple) else (answer,)
        good = all(a.dtype.kind != "f" or np.isfinite(a).all() for a in map(to_numpy, parts))
        require(good, value, "transform", "NaN or infinity", "a finite answer")


def _own_row(step: Any) -> np.ndarray | None:
    """A row of what an imputer or an encoder has seen, be it text; None of any other."""
    if isinstance(step, SimpleImputer):
        return np.asarray(step.statistics_)
    if isinstance(step, preprocessing.OneHotEncoder | preprocessing.OrdinalEncoder):
        first = [found[0] for found in step.categories_ if len(found)]
        kinds = {found.dtype.kind for found in step.categories_}
        return np.array(first, dtype=None if kinds <= set("biuf") else object)
    return None


def _known_sides(value: Any) -> dict[str, int]:
    sides: dict[str, int] = {}
    d = vars(value).get("n_features_in_")
    if d is not None:
        require(is_count(d), value, "n_features_in_", d, "a number of features")
        sides["d"] = int(d)
    names = vars(value).get("feature_names_in_")
    if names is not None:
        good = isinstance(names, np.ndarray) and names.shape == (sides.get("d", -1),)
        good = good and all(isinstance(item, str) for item in names)
        require(good, value, "feature_names_in_", names, "a name for each feature")
    return sides
