"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write a file so that a reader, or an interruption, never meets half of it.

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
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(name).chmod(0o644)  # mkstemp makes files that only the owner can read
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path
