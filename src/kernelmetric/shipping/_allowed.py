"""The classes that may be saved and restored: a closed list.

All of them keep their state in plain attributes, which is all that is restored: no constructor
and no other code of theirs runs while a file is read.
"""

from __future__ import annotations

import inspect
from functools import cache

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NeighborhoodComponentsAnalysis,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from kernelmetric import (
    evaluation,
    graphs,
    kernelized,
    kernels,
    learners,
    prediction,
    selection,
    spaces,
    tables,
    transductive,
)
from kernelmetric.shipping._linkage_checks import LINKAGE
from kernelmetric.spaces import Gram

ROOMS = (kernels, selection, spaces, learners, kernelized, transductive, prediction, evaluation)
# A function is code.
REFUSED = {kernels.FunctionKernel: "try a kernel of this library, or a name of scikit-learn's"}
NEIGHBORS = (KNeighborsClassifier, KNeighborsRegressor)  # restored by a fit to the points they hold
SCIKIT_LEARN = (
    ColumnTransformer,
    FeatureUnion,
    *NEIGHBORS,
    FunctionTransformer,  # as scikit-learn's own "passthrough": functions are not restored
    GroupKFold,
    KFold,
    LabelEncoder,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    MaxAbsScaler,
    MinMaxScaler,
    MissingIndicator,
    NeighborhoodComponentsAnalysis,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PCA,
    Pipeline,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
    StratifiedKFold,
    TruncatedSVD,
)


@cache
def allowed_classes() -> dict[str, type]:
    """Classes by their names in a file, which say the package and not the module."""
    tuples = [graphs.Pairs, graphs.Triplets, graphs.Quadruplets]
    ours = [Gram, *tuples, tables.TableEncoder, *LINKAGE]
    for room in ROOMS:
        members = (getattr(room, name) for name in room.__all__)
        ours += [c for c in members if inspect.isclass(c) and issubclass(c, BaseEstimator)]
    named = {f"kernelmetric.{c.__name__}": c for c in ours if c not in REFUSED}
    return named | {f"sklearn.{c.__name__}": c for c in SCIKIT_LEARN}


@cache
def names_of_classes() -> dict[type, str]:
    """The names in a file, by class."""
    return {c: name for name, c in allowed_classes().items()}
