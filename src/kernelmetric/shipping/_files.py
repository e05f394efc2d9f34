"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


def replace_file(path: str | os.PathLike, write: Callable[[BinaryIO], None]) -> Path:
    """Write a file so that a reader, or an interruption, never meets half of it.

    A file that is replaced keeps its permissions; a new one gets those that the umask leaves. A
    link stays one: the file it points to is replaced. What is no file, such as a pipe, is written
    to as it is.

    Parameters
    ----------
    path : path-like
        The file.
    write : callable
        Writes the content to the open file it is given.

    Returns
    -------
    Path
        The path as given.
    """
    target = Path(os.path.realpath(path))
    before = target.stat().st_mode if target.exists() else None
    if before is not None and not stat.S_ISREG(before):
        with target.open("wb") as stream:
            write(stream)
        return Path(path)
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    # While it is written, a file that replaces another is its owner's alone.
    handle = os.open(beside, _NEW, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        if before is not None:
            beside.chmod(stat.S_IMODE(before))
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return Path(path)


def write_atomically(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write text or bytes as :func:`replace_file` does.

    Parameters
    ----------
    path : path-like
        The file; replaced where it exists.
    content : str or bytes
        What to write; text as UTF-8.

    Returns
    -------
    Path
        The file.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content

    def write(stream: BinaryIO) -> None:
        stream.write(data)

    return replace_file(path, write)
