"""Fitted metrics to files, and back, without pickle."""

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from kernelmetric._warnings import warn
from kernelmetric.shipping._container import SavedFileError, pack, unpack
from kernelmetric.shipping._files import write_atomically
from kernelmetric.shipping._tree import TreeReader, TreeWriter, refuse


def save(metric: Any, path: str | os.PathLike) -> Path:
    """Write a fitted metric to a file that can be opened without trusting it.

    The file is a zip archive of JSON and plain arrays, written whole or not at all. Equal metrics
    make equal files. Callbacks, metadata requests and the cache of a pipeline are left out.

    Parameters
    ----------
    metric : estimator
        A fitted metric of this library, a :class:`PairVerifier`, :class:`MetricClassifier` or
        :class:`MetricRegressor`, a :class:`~kernelmetric.linkage.RecordLinker`, or a pipeline of
        them and scikit-learn's scalers, imputers, encoders and column transformers.
    path : path-like
        The file; replaced where it exists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TypeError
        For what cannot be restored without running code: kernels that are functions, and classes
        of other packages, but for classes of kernels.
    ValueError
        For attributes that no fit leaves, such as a map with NaN: ``load`` would refuse them.

    See Also
    --------
    load : Reads it.
    to_onnx : A model for other languages.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import DNE, Kernelized, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> metric = Kernelized(DNE(2)).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(metric, pathlib.Path(folder) / "iris.metric")
    ...     again = load(path)
    >>> np.allclose(again.transform(X), metric.transform(X))
    True
    """
    if isinstance(metric, str | os.PathLike):
        raise TypeError(f"Got {metric!r} first, but expected save(metric, path).")
    if not isinstance(metric, BaseEstimator):
        refuse(metric, "metric")
    if hasattr(metric, "fit"):  # a kernel has none, and nothing to fit
        check_is_fitted(metric)
    writer = TreeWriter()
    tree = writer.node(metric, "metric")
    return write_atomically(path, pack(tree, writer.arrays, versions()))


def load(path: str | os.PathLike, *, kernels: Iterable[type] = ()) -> Any:
    """Read a metric that :func:`save` wrote.

    Nothing in a file is ever run. Only numbers, text and the attributes of a closed list of
    classes are restored, and only if they fit together.

    Parameters
    ----------
    path : path-like
        The file.
    kernels : iterable of type, default=()
        Classes of kernels of your own, which are allowed beside those of the library: attributes
        of them are restored, and the code that the classes have in your program is run.

    Returns
    -------
    estimator
        The fitted metric. Its arrays are those that were saved, bit by bit.

    Raises
    ------
    SavedFileError
        A ValueError, for every file that is not exactly what ``save`` writes.

    See Also
    --------
    save : Writes it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from kernelmetric import NCA, load, save
    >>> metric = NCA(2).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(metric, pathlib.Path(folder) / "iris.metric"))
    NCA(n_components=2)
    """
    content = unpack(path)
    reader = TreeReader(content.arrays, kernels)
    metric = reader.value(content.tree)
    if not isinstance(metric, BaseEstimator):
        raise SavedFileError(
            f"Got a {type(metric).__name__} at the root of the file, but expected an estimator."
        )
    if hasattr(metric, "fit"):
        try:
            check_is_fitted(metric)
        except (NotFittedError, TypeError, AttributeError, IndexError) as error:
            raise SavedFileError(
                f"Got a {type(metric).__name__} that is not fitted at the root of the file."
            ) from error
    _warn_of_versions(content.versions, reader.names)
    return metric


def versions() -> dict[str, str]:
    """Versions of this library, of what it computes with, and of Python, by name."""
    from kernelmetric import __version__  # it stands in the flat API above all rooms

    return {
        "kernelmetric": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def _warn_of_versions(saved_with: dict[str, str], names: set[str]) -> None:
    """Say so where other code than that which saved will work on the attributes."""
    here = versions()
    foreign = any(name.startswith("sklearn.") for name in names)
    for package in ("kernelmetric", "scikit-learn") if foreign else ("kernelmetric",):
        then = saved_with.get(package)
        if then != here[package]:
            warn(
                f"The metric was saved with {package} {then}, and is loaded with {here[package]}: "
                "check its output on points you know.",
            )
