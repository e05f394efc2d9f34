"""What a fit leaves, by class: kinds and sides of attributes, and parts.

"finite r d" are finite numbers of shape (r, d), see ``_attributes.py``. The letter d is the number
of features, * any number; every other letter stands for one number in all attributes of an object.
NaN is allowed where a column without values leaves it. What a table cannot say stands in
``_agreement.py``. Sides that do not fit, and parts that are missing, show where the object is asked
about a point (``_checks.py``).
"""

from typing import Any

from sklearn import preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion

from kernelmetric.evaluation import PairVerifier
from kernelmetric.kernelized import Kernelized, KernelizedCV
from kernelmetric.kernels import Kernel
from kernelmetric.learners import Learner
from kernelmetric.prediction import MetricClassifier, MetricRegressor
from kernelmetric.prediction._features import FeatureScores
from kernelmetric.retrieval import PLDA, Adapter, Drift
from kernelmetric.selection import AlignedSum
from kernelmetric.shipping._fitted_linkage import LINKAGE_TABLE
from kernelmetric.spaces import Gram, RandomFeatures, Space
from kernelmetric.tables import TableEncoder, TableSchema
from kernelmetric.transductive import TransductiveDistance, TransductiveRegressor

_DECOMPOSITION = {
    "finite r d": "components_",
    "variance r": "explained_variance_",
    "number r": "explained_variance_ratio_",
    "finite r": "singular_values_",
}
_PREDICTOR: dict[Any, str] = {
    "finite n r": "embedding_",
    "finite f": "weights_",
    FeatureScores: "_features",
    "finite n": "_mass",
    "finite n q": "_points",
    "count n": "_kept",
    "whole": "n_neighbors_ _feature_neighbors",
    "positive": "temperature_ usual_distance_ floor_ _feature_width",
}
# What attributes must be like where an object has them, by its class and those it derives from.
TABLE: dict[type, dict[Any, str]] = {
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
    preprocessing.OneHotEncoder: {bool: "_infrequent_enabled"},
    preprocessing.OrdinalEncoder: {bool: "_infrequent_enabled"},
    PCA: {"finite d": "mean_"} | _DECOMPOSITION,
    TruncatedSVD: _DECOMPOSITION,
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
    NeighborhoodComponentsAnalysis: {"finite r d": "components_"},
    SimpleImputer: {"any d": "statistics_", MissingIndicator: "indicator_"},
    MissingIndicator: {"count m": "features_", "count": "_n_features"},
    FeatureUnion: {dict: "transformer_weights"},
    ColumnTransformer: {dict: "transformer_weights"},
    Space: {
        "finite n r": "projection_",
        "finite 1 r": "offset_",
        "finite r": "eigenvalues_",
        "finite n n": "basis_gram_",
        "count": "n_landmarks_",
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
        "points n p": "_points",
        "any c": "classes_",
        "code<c n": "_codes",
        "finite n": "_mass",
        "count n": "_rows",
        "any n": "transduction_",
        "whole": "n_neighbors_",
    },
    TransductiveRegressor: {
        "finite n p": "_points",
        "finite n q": "_along",
        "finite m p": "_anchors",
        "finite p": "_middle",
        "finite q": "_levels",
        "positive": "_width",
        bool: "_single",
        list: "candidates_ residuals_",
        dict: "_coef",
    },
    MetricClassifier: _PREDICTOR
    | {
        "any c": "classes_",
        "count<c n": "_codes",
        "finite r c": "coef_",
        "finite c": "intercept_ biases_",
    },
    MetricRegressor: _PREDICTOR
    | {
        "finite n": "targets_ _mass",
        "finite r 1": "coef_",
        "finite 1": "intercept_",
        "ascending m": "residuals_",
        "finite m": "_residual_mass",
        "real": "bias_",
    },
    FeatureScores: {
        "finite q p": "coef",
        "finite p": "intercept",
        "finite 2 q": "location",
        "count m 3": "nodes",
        "count<m t": "roots",
        "finite m": "cuts",
        "finite m p": "votes",
    },
    Adapter: {
        "finite r d": "components_ document_components_",
        "finite 3 n": "_before _after",
        "count n": "_judged",
        bool: "adapted_ _plain_queries _plain_documents",
        dict: "recipe_ candidates_",
    },
    Drift: {
        "finite r d": "components_",
        "finite r": "intercept_",
        "finite m 3": "_recalls",
        dict: "recipe_ candidates_",
    },
    PLDA: {
        "finite r d": "components_",
        "finite d": "mean_",
        "variance r": "spread_",
        "real": "shrinkage_ log_likelihood_",
        "count": "n_iter_",
    },
    PairVerifier: {"real": "threshold_ criterion_value_"},
    Gram: {"finite n n": "matrix"},
    TableSchema: {
        "finite d": "centres_ rests_",
        "scale d": "scales_",
        "finite d 2": "limits_",
        "texts": "kinds_ notes_",
        list: "names_ rare_ gaps_ cycles_",
        dict: "letters_",
    },
    Kernelized: {
        Space: "space_",
        Kernel: "kernel_",
        TableSchema: "schema_",
        "finite d": "_medians",
    },
    KernelizedCV: {Kernelized: "best_estimator_", dict: "cv_results_", "count": "best_index_"},
    TableEncoder: {
        TableSchema: "schema_",
        "texts": "numbers categories commas texts unused",
        dict: "missing marks units dates spellings",
    },
    **LINKAGE_TABLE,
}
