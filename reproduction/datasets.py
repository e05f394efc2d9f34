"""Data sets of the papers by name: ``load("ionosphere")``."""

import difflib
import os
from typing import Any

from sklearn.utils import Bunch

from reproduction import sources
from reproduction.sources import registry


class DataUnavailableError(OSError):
    """No source could serve the data set; the message says why for each of them.

    Examples
    --------
    >>> from reproduction.datasets import DataUnavailableError
    >>> issubclass(DataUnavailableError, OSError)
    True
    """


def load(
    name: str,
    *,
    return_X_y: bool = False,
    data_home: str | os.PathLike | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple:
    """Load a data set of the papers by name.

    Three sources are tried in turn: the folder ``data_home``, scikit-learn's own copies, OpenML.
    Files are compared with their sha256, downloads with a checksum of their values
    (:func:`content_digest`). If they differ, a ChecksumError is raised. A verified download is
    kept in scikit-learn's data home. If no source has the set, a DataUnavailableError says why.

    Parameters
    ----------
    name : str
        A name of ``available()``, or an alias of one such as ``"ionos"``. Case, hyphens and
        spaces do not matter: ``"M-USPS"`` is ``"m_usps"``.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    data_home : path-like, default=None
        Folder with the data files; None means the environment variable ``KERNELMETRIC_DATA``.
    download_if_missing : bool, default=True
        Whether OpenML may be asked. A copy downloaded earlier is used in any case.

    Returns
    -------
    Bunch or tuple of (ndarray, ndarray)
        ``data`` of shape (n_samples, n_features), unscaled; ``target`` with integer codes from 0;
        ``feature_names``, ``target_names``, ``name``; ``source``, a sentence on where the values
        came from; ``n_missing``, the number of NaN in ``data``, left for the caller to fill;
        ``DESCR``. ``m_usps`` adds the splits ``labeled10`` and ``labeled100``, and ``lymphoma``
        the two-class labels ``target2``.

    Examples
    --------
    >>> from reproduction.datasets import load
    >>> X, y = load("digits", return_X_y=True)
    >>> X.shape
    (1797, 64)
    """
    entry = _find(name)
    served = _serve(entry, data_home, download_if_missing)
    if return_X_y:
        return served.data, served.target
    generic = [f"f{j + 1}" for j in range(entry.n_features)]
    return Bunch(
        **served,
        feature_names=entry.features.split() or generic,
        target_names=list(entry.classes),
        name=entry.name,
        n_missing=entry.n_missing,
        DESCR=_description(entry, served.source),
    )


def available() -> list[str]:
    """Return the names that ``load`` takes, sorted.

    Returns
    -------
    list of str
        The names; their aliases are not listed.

    Examples
    --------
    >>> from reproduction.datasets import available
    >>> available()[:4]
    ['balance', 'breast', 'breast699', 'colon']
    """
    return sorted(registry())


def _find(name: str) -> Bunch:
    entries = registry()
    aliases = {alias: entry.name for entry in entries.values() for alias in entry.aliases}
    key = name.lower().replace("-", "_").replace(" ", "_")
    key = aliases.get(key, key)
    if key not in entries:
        near = difflib.get_close_matches(key, [*entries, *aliases], n=3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"Got name={name!r}, but expected one of {available()}.{hint}")
    return entries[key]


def _serve(entry: Bunch, data_home: Any, download_if_missing: bool) -> Bunch:
    reasons = []
    for label, serve, *how in (
        ("folder", sources.from_folder, sources.folder_of(data_home)),
        ("scikit-learn", sources.from_scikit_learn),
        ("OpenML", sources.from_openml, download_if_missing),
    ):
        try:
            return serve(entry, *how)
        except sources.Unservable as reason:
            reasons.append(f"  {label}: {reason}")
    raise DataUnavailableError(
        f"No source has the data set {entry.name!r} ({entry.title}):\n"
        + "\n".join(reasons)
        + f"\nTo load it, put {entry.file} (sha256 {entry.sha256}) into a folder and set "
        f"{sources.DATA_VARIABLE} (or data_home=) to that folder"
        + (", or try again when OpenML can be reached." if entry.openml else ".")
    )


def _description(entry: Bunch, source: str) -> str:
    sizes = zip(entry.classes, entry.counts, strict=True)
    classes = ", ".join(f"{code} = {name} ({n})" for code, (name, n) in enumerate(sizes))
    lines = [
        f"{entry.title}: {sum(entry.counts)} rows, {entry.n_features} features.",
        f"Classes: {classes}.",
        f"Missing values: {entry.n_missing}, left as NaN." if entry.n_missing else "",
        entry.note,
        f"Source: {source}.",
    ]
    return "\n".join(filter(None, lines))
