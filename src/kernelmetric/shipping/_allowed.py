"""The classes that may be saved and restored: a closed list.

All of them keep their state in plain attributes, which is all that is restored: no constructor
and no other code of theirs runs while a file is read.
"""

import inspect
from functools import cache
from importlib import import_module

from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from kernelmetric import graphs, kernels, spaces, tables
from kernelmetric.prediction._features import FeatureScores
from kernelmetric.shipping._fitted_linkage import LINKAGE, LINKAGE_RULES

# All of whose estimators may.
ROOMS = "kernels selection spaces learners kernelized transductive prediction retrieval evaluation"
# A function is code.
REFUSED = {kernels.FunctionKernel: "try a kernel of this library, or a name of scikit-learn's"}
# Restored by a fit to the points they hold.
NEIGHBORS = (KNeighborsClassifier, KNeighborsRegressor)
# A FunctionTransformer is scikit-learn's own "passthrough": functions are not restored.
SCIKIT_LEARN = {
    "compose": "ColumnTransformer",
    "decomposition": "PCA TruncatedSVD",
    "discriminant_analysis": "LinearDiscriminantAnalysis",
    "impute": "MissingIndicator SimpleImputer",
    "linear_model": "LogisticRegression",
    "model_selection": "GroupKFold KFold StratifiedKFold",
    "neighbors": "KNeighborsClassifier KNeighborsRegressor NeighborhoodComponentsAnalysis",
    "pipeline": "FeatureUnion Pipeline",
    "preprocessing": (
        "FunctionTransformer LabelEncoder MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder "
        "OrdinalEncoder PowerTransformer QuantileTransformer RobustScaler StandardScaler"
    ),
}


@cache
def allowed_classes() -> dict[str, type]:
    """Classes by their names in a file, which say the package and not the module."""
    tuples = [graphs.Pairs, graphs.Triplets, graphs.Quadruplets]
    ours = [spaces.Gram, *tuples, tables.TableEncoder, FeatureScores, *LINKAGE_RULES, *LINKAGE]
    for room in [import_module(f"kernelmetric.{name}") for name in ROOMS.split()]:
        members = (getattr(room, name) for name in room.__all__)
        ours += [c for c in members if inspect.isclass(c) and issubclass(c, BaseEstimator)]
    named = {f"kernelmetric.{c.__name__}": c for c in ours if c not in REFUSED}
    for module, names in SCIKIT_LEARN.items():
        given = import_module(f"sklearn.{module}")
        named |= {f"sklearn.{name}": getattr(given, name) for name in names.split()}
    return named


@cache
def names_of_classes() -> dict[type, str]:
    """The names in a file, by class."""
    return {c: name for name, c in allowed_classes().items()}
