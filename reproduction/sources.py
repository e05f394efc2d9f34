"""The table of data sets, and the three places a set can come from, a function for each.

A source that cannot serve raises :class:`Unservable`, and the next one is tried. A source that
serves *other* data raises :class:`ChecksumError`, and nothing else is tried.
"""

import hashlib
import logging
import os
import re
import tomllib
import warnings
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sklearn.datasets
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

logger = logging.getLogger(__name__)

DATA_VARIABLE = "KERNELMETRIC_DATA"
# What holds where sets.toml, which describes the fields, says nothing else.
_UNSAID = {
    "file": None, "sha256": "", "features": "", "n_missing": 0, "dtype": "float64", "bundled": None,
    "openml": None, "target_codes": (), "extras": (), "note": "", "aliases": (),
}  # fmt: skip
_UNSAID_OPENML = {"decimals": 5, "columns": ".+", "drop_missing": False}
_MISSING = np.iinfo(np.int64).min  # in checksums
_BLOCK = 4096  # rows whose checksums are made at once


class ChecksumError(ValueError):
    """Data were found, but they are not the data that were asked for.

    Examples
    --------
    >>> from reproduction.sources import ChecksumError
    >>> issubclass(ChecksumError, ValueError)
    True
    """


def content_digest(X: ArrayLike, y: ArrayLike, *, decimals: int = 5) -> str:
    """Checksum the values of a labelled table, whatever the order of its rows.

    Each row becomes the integers ``(round(10^decimals x_1), ..., round(10^decimals x_d), y)`` as
    little-endian int64, a missing value the smallest int64. The digest is the sha256 of the sorted
    sha256 of the rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The features; columns count in the order given.
    y : array-like of shape (n_samples,)
        Integer codes of the classes.
    decimals : int, default=5
        Decimal places kept: at least as many as the data have.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> from reproduction.sources import content_digest
    >>> digest = content_digest([[0.1, 2.0], [3.0, 4.0]], [0, 1])
    >>> digest == content_digest([[3, 4], [0.1 + 1e-12, 2]], [1, 0])
    True
    """
    X, y = np.asarray(X), np.asarray(y)
    rows: list[bytes] = []
    for start in range(0, len(X), _BLOCK):
        block = slice(start, start + _BLOCK)
        scaled = np.rint(X[block].astype(np.float64) * 10.0**decimals)
        known = np.isfinite(scaled)
        table = np.full((len(scaled), X.shape[1] + 1), _MISSING, dtype="<i8")
        table[:, :-1][known] = scaled[known].astype(np.int64)
        table[:, -1] = y[block]
        rows.extend(hashlib.sha256(row.tobytes()).digest() for row in table)
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest()


class Unservable(Exception):  # noqa: N818  control flow between sources, never shown to a user
    """A source does not have the set; the message says why."""


@cache
def registry() -> dict[str, Bunch]:
    """The data sets by name."""
    text = Path(__file__).with_name("sets.toml").read_text(encoding="utf-8")
    table = {}
    for name, said in tomllib.loads(text).items():
        entry = Bunch(**(_UNSAID | said), name=name)
        if entry.openml is not None:
            unsaid = _UNSAID_OPENML | {"classes": entry.classes}
            entry.openml = Bunch(**(unsaid | entry.openml))
        table[name] = entry
    return table


def folder_of(data_home: str | os.PathLike | None) -> Path | None:
    """Return the user's folder: the argument, else the environment variable, else None."""
    home = data_home if data_home is not None else os.environ.get(DATA_VARIABLE)
    return Path(home).expanduser() if home else None


def from_folder(entry: Bunch, folder: Path | None) -> Bunch:
    """Read the set's file after checking its sha256."""
    if entry.file is None:
        raise Unservable("no file belongs to this set")
    if folder is None:
        raise Unservable(
            f"{DATA_VARIABLE} is not set; expected a folder with the file {entry.file}"
        )
    path = folder / entry.file
    if not path.is_file():
        raise Unservable(f"{folder} holds no file {entry.file}")
    got = hashlib.sha256(path.read_bytes()).hexdigest()
    if got != entry.sha256:
        raise ChecksumError(
            f"{path} is not the file that data set {entry.name!r} needs: expected sha256 "
            f"{entry.sha256}, got {got}. Replace the file, or take it away to try other sources."
        )
    source = f"file {path}, sha256 verified"
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            extras = {key: arrays[key].astype(np.int64) for key in entry.extras}
            data, target = arrays["data"], arrays["target"]
    else:
        table = np.loadtxt(path, delimiter=",", skiprows=1, converters=_number_or_gap)
        data, target, extras = np.ascontiguousarray(table[:, :-1]), table[:, -1], {}
    if entry.target_codes:
        target = np.searchsorted(entry.target_codes, target)
    return Bunch(data=data, target=target.astype(np.int64), source=source, **extras)


def _number_or_gap(text: str) -> float:
    return float(text or "nan")


def from_scikit_learn(entry: Bunch) -> Bunch:
    """Take the copy that is installed with scikit-learn."""
    if entry.bundled is None:
        raise Unservable("scikit-learn bundles no copy of this set")
    bunch = getattr(sklearn.datasets, entry.bundled)()
    source = f"sklearn.datasets.{entry.bundled}: {entry.bundled_note}"
    return Bunch(data=bunch.data, target=bunch.target.astype(np.int64), source=source)


def from_openml(entry: Bunch, download_if_missing: bool) -> Bunch:
    """Take the verified copy in scikit-learn's data home, else download, verify and keep it."""
    copy = entry.openml
    if copy is None:
        raise Unservable("OpenML has no copy known to hold the same data")
    kept = Path(sklearn.datasets.get_data_home()) / "kernelmetric" / f"{entry.name}.npz"
    arrays = _read_kept(kept, copy)
    if arrays is None:
        if not download_if_missing:
            raise Unservable(
                f"data id {copy.data_id}: not downloaded before, and download_if_missing=False"
            )
        data, target = arrays = _translate(_download(copy), entry)
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(kept, data=data, target=target)
        except OSError as error:
            logger.warning("could not keep the download in %s: %s", kept, error)
    source = f"OpenML data id {copy.data_id}, content verified; rows in OpenML's order"
    return Bunch(data=arrays[0], target=arrays[1], source=source)


def _read_kept(path: Path, copy: Bunch) -> tuple[NDArray, NDArray] | None:
    """Return the arrays kept after an earlier download, or None if there are no good ones."""
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as kept:
            data, target = kept["data"], kept["target"]
        if content_digest(data, target, decimals=copy.decimals) == copy.content:
            return data, target
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile):
        pass  # as bad as other content: say so and download again
    logger.warning("%s does not hold what was downloaded; downloading again", path)
    return None


def _download(copy: Bunch) -> Bunch:
    # The liac-arff parser needs no pandas but takes minutes on the large sets.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of retries: the error in the end tells their cause
            return sklearn.datasets.fetch_openml(
                data_id=copy.data_id,
                cache=False,  # it would keep the payload before its content is known to be good
                as_frame=False,
                parser=parser,
                n_retries=1,
                # Infer the types: as categories, classes that are written as numbers break
                # scikit-learn <= 1.9.1 with pandas >= 3.1 (scikit-learn pull request 34902).
                read_csv_kwargs={"dtype": None},
            )
    except Exception as error:  # network, server, md5, parser: whatever it was, the user reads it
        raise Unservable(f"data id {copy.data_id}: {type(error).__name__}: {error}") from error


def _translate(bunch: Bunch, entry: Bunch) -> tuple[NDArray, NDArray]:
    """Apply the entry's rules to what OpenML served, and verify the result."""
    copy = entry.openml
    refused = f"OpenML data id {copy.data_id} is not the data set {entry.name!r}"
    remedy = f"Nothing was kept. Put {entry.file} into a folder and set {DATA_VARIABLE} to it."
    ours = [re.fullmatch(copy.columns, str(name)) is not None for name in bunch.feature_names]
    try:
        data = np.asarray(np.asarray(bunch.data)[:, ours], dtype=np.float64)
        codes = [copy.classes.index(_spelling(label)) for label in np.ravel(bunch.target)]
        target = np.array(codes, dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise ChecksumError(
            f"{refused}: expected numbers and the classes {sorted(copy.classes)}, "
            f"got {type(error).__name__}: {error}. {remedy}"
        ) from error
    if copy.drop_missing:
        complete = ~np.isnan(data).any(axis=1)
        data, target = data[complete], target[complete]
    got = content_digest(data, target, decimals=copy.decimals)
    if got != copy.content:
        raise ChecksumError(
            f"{refused}: expected content {copy.content} ({sum(entry.counts)} x "
            f"{entry.n_features}), got {got} ({data.shape[0]} x {data.shape[1]}). {remedy}"
        )
    return data.astype(entry.dtype), target


def _spelling(label: object) -> str:
    """Spell a class as the table does: text without quotes, numbers without a decimal point."""
    try:
        number = float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(label).strip().strip("'\"")
    return str(int(number)) if number.is_integer() else str(label)
