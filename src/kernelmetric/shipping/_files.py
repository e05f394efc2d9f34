"""Files that are there as a whole or not at all."""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write text (UTF-8) or bytes so that nobody ever meets half a file, by `replace_file`."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    return replace_file(path, lambda stream: stream.write(data))


def replace_file(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> Path:
    """Let ``write(stream)`` write a file that takes the place of the old one when it is complete.

    The new file has the mode of the old one. A symbolic link stays, and what it points to is
    replaced. A device or a pipe is written to. If ``write`` raises, the old file stays as it was.
    """
    path = Path(path)
    try:
        old = path.stat()
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with path.open("wb") as stream:  # a folder is refused here
            write(stream)
        return path
    if old is not None and not os.access(path, os.W_OK):
        # To rename over a protected file is allowed where its folder is not protected.
        raise PermissionError(f"Got {path} to write to, but it is write-protected.")
    target = Path(os.path.realpath(path))
    # A short name of its own: the target's with an ending might be longer than names may be.
    part = target.with_name(f".kernelmetric-{secrets.token_hex(8)}.part")
    # The mode is given when the file is made, so that the system applies the umask; and a file
    # that takes the place of a private one is private from the first byte on.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(part, flags, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        if old is not None:
            if hasattr(os, "chown"):
                with suppress(OSError):  # root alone may give files away
                    os.chown(part, old.st_uid, old.st_gid)
            part.chmod(stat.S_IMODE(old.st_mode))
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path
