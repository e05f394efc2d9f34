"""The file: a zip archive of JSON and arrays, in which nothing can hide.

::

    manifest.json    format, schema, versions, and the SHA-256 of every other member
    tree.json        the objects, with a number wherever an array stands
    arrays/0.npy     the arrays, in NumPy's own format, without pickle

Members are stored, not compressed, so that no small file can fill the memory. Nothing is extracted,
and what does not fit to the last byte is refused.
"""

import hashlib
import io
import json
import math
import os
import re
import struct
import tokenize
import warnings
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

FORMAT = "kernelmetric"
SCHEMA = 1
KINDS = "biufU"  # of dtypes: booleans, numbers and text, nothing that refers to an object
MANIFEST, TREE = "manifest.json", "tree.json"
_ARRAY = re.compile(r"arrays/(0|[1-9]\d{0,8})\.npy")
_FIRST_BYTES = b"PK\x03\x04"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every member: equal metrics make equal files
_ENCRYPTED = 0x1
# Bytes of the parts of an archive, without names and data; the last two where it exceeds 4 GiB.
_LOCAL, _ENTRY, _END, _END_64 = 30, 46, 22, 76
_MOST_OF_NOTHING = 2**20  # the longest side, and the widest text, of an array without numbers
MOST_DIGITS = 20  # of an integer: larger ones collide as keys, and no array holds them
# What zipfile raises for an archive that is none; NotImplementedError is a RuntimeError.
_NO_ARCHIVE = (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error)
# What NumPy raises for the header of an array; TokenError from Python 3.12 on.
_BAD_INPUT = (ValueError, TypeError, SyntaxError, tokenize.TokenError)
_NO_HEADER = (*_BAD_INPUT, RecursionError, MemoryError, Warning)


class SavedFileError(ValueError):
    """A file that is damaged, foreign, or not to be trusted; the message says which."""


class Content(NamedTuple):
    """What was read from a file: nodes of JSON, the arrays they number, and package versions."""

    tree: Any
    arrays: list[np.ndarray]
    versions: dict[str, str]


def pack(tree: Any, arrays: list[bytes], versions: dict[str, str]) -> bytes:
    """The bytes of a file, from nodes and what ``npy_bytes`` made of their arrays."""
    members = {TREE: _json_bytes(tree)}
    members |= {f"arrays/{i}.npy": data for i, data in enumerate(arrays)}
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "versions": versions,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {MANIFEST: _json_bytes(manifest), **members}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return stream.getvalue()


def unpack(path: str | os.PathLike) -> Content:
    """Read a file, and refuse whatever ``pack`` would not have written."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise SavedFileError(f"Got {str(path)!r}, but expected a file.")
    with path.open("rb") as stream:
        members = _members(stream, os.fstat(stream.fileno()).st_size)
    manifest = _checked_manifest(members)
    for name, digest in manifest["sha256"].items():
        if digest != hashlib.sha256(members[name]).hexdigest():
            raise SavedFileError(
                f"Got {name} with another SHA-256 than the manifest has: the file was changed "
                "after it was saved."
            )
    names = [f"arrays/{i}.npy" for i in range(len(members) - 2)]
    if not all(name in members for name in names):
        raise SavedFileError("Got arrays that are not numbered 0, 1, 2, ...: the file is damaged.")
    arrays = [read_npy(members[name], name) for name in names]
    return Content(_parsed(members[TREE], TREE), arrays, manifest["versions"])


def _members(stream: BinaryIO, size: int) -> dict[str, bytes]:
    if stream.read(4) != _FIRST_BYTES:
        raise SavedFileError(
            "Got a file of another kind, but expected one that kernelmetric.save wrote: pickles "
            "are never opened."
        )
    try:
        with zipfile.ZipFile(stream) as archive:
            _check_members(archive, stream, size)
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except SavedFileError:
        raise
    except _NO_ARCHIVE as error:
        raise SavedFileError(
            f"Got a file that is truncated or damaged ({error}): take another copy of it."
        ) from error


def _check_members(archive: zipfile.ZipFile, stream: BinaryIO, size: int) -> None:
    """Refuse an archive by its list of members, before any of them is read.

    None is another than expected, no two overlap, and no bytes lie before, between or after them.
    """
    infos, end, entries, names = archive.infolist(), 0, 0, set[str]()
    if not {MANIFEST, TREE} <= {info.filename for info in infos}:
        raise SavedFileError(
            f"Got an archive without {MANIFEST} and {TREE}: it is another program's."
        )
    for info in infos:
        if info.filename not in (MANIFEST, TREE) and not _ARRAY.fullmatch(info.filename):
            raise SavedFileError(
                f"Got a member named {info.filename[:80]!r}, but expected {MANIFEST}, {TREE} and "
                "arrays/0.npy, ... only."
            )
        if info.filename in names:
            raise SavedFileError(f"Got {info.filename} twice in one file: which counts is unclear.")
        names.add(info.filename)
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not stored or info.flag_bits & _ENCRYPTED:
            raise SavedFileError(
                f"Got {info.filename} compressed or encrypted, but expected it stored as it is."
            )
        if info.header_offset != end:
            raise SavedFileError(
                f"Got {info.filename} at byte {info.header_offset}, but expected it at {end}: "
                "members overlap, or something hides between them."
            )
        stream.seek(info.header_offset)
        _, name, extra = struct.unpack("<26sHH", stream.read(_LOCAL))
        end += _LOCAL + name + extra + info.file_size
        entries += _ENTRY + len(info.filename) + len(info.extra) + len(info.comment)
    rest = size - (end + entries)
    if archive.start_dir != end or archive.comment or rest not in (_END, _END + _END_64):
        raise SavedFileError(
            f"Got an archive of {size} bytes, of which {rest - _END} are no part of any member, "
            "but expected none: a comment, or something that hides at its end."
        )


def _checked_manifest(members: dict[str, bytes]) -> dict[str, Any]:
    manifest = _parsed(members[MANIFEST], MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SavedFileError(f"Got a manifest of another format, but expected {FORMAT!r}.")
    schema = manifest.get("schema")
    if type(schema) is not int or schema < 1:
        raise SavedFileError(f"Got schema={schema!r}, but expected a positive integer.")
    if schema > SCHEMA:
        raise SavedFileError(
            f"Got a file of schema {schema}, but this version reads up to {SCHEMA}: try a "
            "newer kernelmetric."
        )
    for key in ("versions", "sha256"):
        table = manifest.get(key)
        if not isinstance(table, dict) or not all(type(v) is str for v in table.values()):
            raise SavedFileError(f"Got a manifest without a table of {key}: the file is damaged.")
    if set(manifest["sha256"]) != set(members) - {MANIFEST}:
        raise SavedFileError("Got members that the manifest does not list, or misses.")
    return manifest


def _json_bytes(tree: Any) -> bytes:
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _parsed(data: bytes, name: str) -> Any:
    """JSON as the standard has it: UTF-8, every key once, no NaN."""
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_each_once,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except ValueError as error:
        raise SavedFileError(f"Got {name} that is not valid JSON ({error}).") from error
    except RecursionError as error:
        raise SavedFileError(f"Got {name} with lists in lists, too deep to be a metric.") from error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return table


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if math.isinf(float(text)):
        raise ValueError(f"{text[:40]} is larger than any number")
    return float(text)


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def npy_bytes(array: np.ndarray) -> bytes:
    """An array in NumPy's format, version 1.0; its order in memory, C or Fortran, is kept."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def read_npy(data: bytes, name: str) -> np.ndarray:
    """An array from its bytes; the header must announce exactly the bytes that follow."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"version {version} of the format")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a header of Python 2 is none of ours
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except _NO_HEADER as error:
        raise SavedFileError(f"Got {name} with a header that is no array's ({error}).") from error
    wide = dtype.kind != "U" and dtype.itemsize > 8  # numbers of 16 bytes differ by machine
    if dtype.kind not in KINDS or dtype.itemsize == 0 or wide:
        raise SavedFileError(
            f"Got {name} of dtype {dtype}, but expected numbers, booleans or text: arrays of "
            "objects are pickles, which can run any code."
        )
    start = stream.tell()
    n = math.prod(shape)
    too_long = n == 0 and max((dtype.itemsize, *shape)) > _MOST_OF_NOTHING
    if min(shape, default=0) < 0 or n * dtype.itemsize != len(data) - start or too_long:
        raise SavedFileError(
            f"Got {name} that announces shape {str(shape)[:80]} of {dtype}, but holds "
            f"{len(data) - start} bytes: the file is damaged."
        )
    flat = np.frombuffer(data, dtype, offset=start) if n else np.empty(0, dtype)
    try:
        array = flat.reshape(shape, order="F" if fortran else "C")
    except ValueError as error:  # more axes than NumPy knows
        raise SavedFileError(f"Got {name} with {len(shape)} axes ({error}).") from error
    array = array.astype(dtype.newbyteorder("="), order="K", copy=True)
    # Compiled code trusts that a truth value is 0 or 1, and that a letter is one of Unicode's.
    kind, most = {"b": (np.uint8, 1), "U": (np.uint32, 0x10FFFF)}.get(dtype.kind, (None, 0))
    if kind is not None and np.any(array.ravel(order="K").view(kind) > most):
        raise SavedFileError(f"Got {name} with bytes that are no {dtype}: the file is damaged.")
    return array
