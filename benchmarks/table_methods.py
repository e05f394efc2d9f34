"""Predictors that take a data frame as it is, for ``tables.py``: ours, and peers as they come.

Every method is a model with ``fit``, ``predict`` and, for classes, ``predict_proba``, whose X is a
frame with text and gaps. Peers get the frame in the form that their documentation asks for.
Packages are imported when a model is made, so that a missing one costs its method alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

MISSING = "(missing)"
MOST_NAMES = 250  # HistGradientBoosting takes 255 at most


def named(frame: pd.DataFrame) -> list[str]:
    """The columns that hold no numbers."""
    return [name for name in frame if frame[name].dtype.kind not in "iufb"]


def numbered(frame: pd.DataFrame) -> list[str]:
    """The columns that hold numbers."""
    return [name for name in frame if name not in named(frame)]


class Plain(TransformerMixin, BaseEstimator):
    """Numbers as floats, names as text, gaps among names as a name."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Plain:
        """Keep which columns are names."""
        self.named_ = named(X)
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """The same columns, in the two types that are left."""
        columns = {}
        for name in X:
            if name in self.named_:
                texts = X[name].astype(object)
                columns[name] = texts.map(str).where(texts.notna(), MISSING)
            else:
                columns[name] = X[name].astype(np.float64)
        return pd.DataFrame(columns)


class Categories(Plain):
    """Names as categories of pandas, the most frequent ones; the others and gaps are missing."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Categories:
        """Keep the names of every column."""
        super().fit(X)
        X = super().transform(X)
        self.types_ = {}
        for name in self.named_:
            counts = X[name][X[name] != MISSING].value_counts()
            self.types_[name] = pd.CategoricalDtype(sorted(counts.index[:MOST_NAMES]))
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """The same columns, with categories."""
        X = super().transform(X)
        for name, kind in self.types_.items():
            X[name] = X[name].where(X[name].isin(kind.categories)).astype(kind)
        return X


class Filled(Plain):
    """Names as text, and the median for gaps among numbers, which these networks refuse."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Filled:
        """Keep the medians."""
        super().fit(X)
        X = super().transform(X)
        self.medians_ = X.drop(columns=self.named_).median().fillna(0.0)
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """The same columns without gaps, names as categories."""
        X = super().transform(X).fillna(self.medians_)
        return X.astype(dict.fromkeys(self.named_, "category"))


class Safe(TransformerMixin, BaseEstimator):
    """Columns numbered, as LightGBM refuses some characters in names."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Safe:
        """Nothing to learn."""
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """The same frame under other names."""
        return X.set_axis([f"x{i}" for i in range(X.shape[1])], axis=1)


def one_hot(*, scaled: bool = False) -> Pipeline:
    """Zeros and ones for names, the median for gaps among numbers."""
    numbers: Any = SimpleImputer(strategy="median", keep_empty_features=True)
    if scaled:
        numbers = make_pipeline(numbers, StandardScaler())
    names = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(Plain(), make_column_transformer((numbers, numbered), (names, named)))


class TunedSVC(BaseEstimator):
    """An RBF-SVM from a grid of nine; probabilities by Platt's sigmoid on three folds."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedSVC:
        """Choose C and gamma, then calibrate."""
        grid = {"C": [1, 10, 100], "gamma": [g / X.shape[1] for g in (0.1, 1, 10)]}
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        self.model_ = GridSearchCV(SVC(), grid, cv=folds).fit(X, y).best_estimator_
        calibrated = CalibratedClassifierCV(self.model_, cv=folds, ensemble=False)
        self.calibrated_ = calibrated.fit(X, y)
        self.classes_ = self.calibrated_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The classes of the SVM."""
        return self.model_.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """The calibrated probabilities."""
        return self.calibrated_.predict_proba(X)


class TunedSVR(BaseEstimator):
    """An RBF-SVR from a grid of sixteen, the target standardized."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedSVR:
        """Choose C and gamma."""
        grid = {"C": [0.3, 3, 30, 300], "gamma": [g / X.shape[1] for g in (0.1, 0.3, 1, 3)]}
        search = GridSearchCV(SVR(epsilon=0.05), grid, cv=KFold(3, shuffle=True, random_state=0))
        self.model_ = TransformedTargetRegressor(search, transformer=StandardScaler()).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Numbers."""
        return self.model_.predict(X)


class Boosted(BaseEstimator):
    """CatBoost with its own treatment of names."""

    def __init__(self, kind: str = "classes") -> None:
        self.kind = kind

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Boosted:
        """Fit the defaults on one thread."""
        from catboost import CatBoostClassifier, CatBoostRegressor

        model = CatBoostClassifier if self.kind == "classes" else CatBoostRegressor
        options = {"random_seed": 0, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
        self.model_ = model(cat_features=named(X), **options).fit(X, y)
        self.classes_ = getattr(self.model_, "classes_", None)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Classes or numbers."""
        return np.asarray(self.model_.predict(X)).ravel()

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Probabilities of the classes."""
        return self.model_.predict_proba(X)


def _lightgbm(kind: str) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = LGBMClassifier if kind == "classes" else LGBMRegressor
    return make_pipeline(Safe(), Categories(), model(random_state=0, n_jobs=1, verbose=-1))


def _histogram(kind: str) -> Any:
    classes = kind == "classes"
    model = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return make_pipeline(Categories(), model(random_state=0))


def _forest(kind: str) -> Any:
    model = RandomForestClassifier if kind == "classes" else RandomForestRegressor
    return make_pipeline(one_hot(), model(300, random_state=0))


def _catboost(kind: str) -> Any:
    import catboost  # noqa: F401

    return make_pipeline(Plain(), Boosted(kind))


def _svm(kind: str) -> Any:
    if kind == "classes":
        return make_pipeline(one_hot(scaled=True), TunedSVC())
    return make_pipeline(one_hot(scaled=True), TunedSVR())


def _logistic(kind: str) -> Any:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = LogisticRegressionCV(
        Cs=np.logspace(-3, 3, 10), cv=folds, max_iter=2000, scoring="neg_log_loss"
    )
    return make_pipeline(one_hot(scaled=True), model)


def _metric(kind: str) -> Any:
    from kernelmetric import MetricClassifier, MetricRegressor

    return MetricClassifier() if kind == "classes" else MetricRegressor()


def _metric_one_hot(kind: str) -> Any:
    return make_pipeline(one_hot(scaled=True), _metric(kind))


def _network(name: str) -> Callable[[str], Any]:
    """Make a model of pytabkit, with its defaults, on one thread."""

    def make(kind: str) -> Any:
        from pytabkit.models.sklearn import sklearn_interfaces

        model = getattr(
            sklearn_interfaces, f"{name}_{'Classifier' if kind == 'classes' else 'Regressor'}"
        )
        return make_pipeline(Filled(), model(device="cpu", n_threads=1, random_state=0))

    return make


METHODS: dict[str, Callable[[str], Any]] = {
    "metric": _metric,
    "metric one-hot": _metric_one_hot,
    "CatBoost": _catboost,
    "LightGBM": _lightgbm,
    "HGB": _histogram,
    "forest": _forest,
    "SVM": _svm,
    "logistic": _logistic,
    "RealMLP": _network("RealMLP_TD"),
    "TabM": _network("TabM_D"),
    "xRFM": _network("XRFM_D"),
}
OF_NUMBERS = ("metric", "metric one-hot", "CatBoost", "LightGBM", "HGB", "forest", "SVM")
NEEDS = {
    "CatBoost": "catboost",
    "LightGBM": "lightgbm",
    "RealMLP": "pytabkit",
    "TabM": "pytabkit",
    "xRFM": "pytabkit xrfm",
}
