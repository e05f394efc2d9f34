"""The one way in which something public goes away.

It works for one minor version more, with a warning that says what to write instead.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def deprecated(got: str, instead: str, *, stacklevel: int = 2) -> None:
    """Warn that something is going away.

    Parameters
    ----------
    got : str
        What was used, and what is true of it now: "Got x=3, but x has no effect".
    instead : str
        What to write.
    stacklevel : int, default=2
        How many calls up the user's line is: 1 where it calls this function itself, 2 where it
        calls the function that does.
    """
    warnings.warn(
        f"{got}: try {instead}. The next minor version will not know the old form.",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def moved(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose names moved to other rooms.

    Parameters
    ----------
    module : str
        The module's ``__name__``.
    places : dict of str
        The room of each name that moved.

    Returns
    -------
    callable
        Finds a name in its room, with a warning.
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        room = f"kernelmetric.{places[name]}"
        got = f"Got {name} from {module}, but it lives in {room} now"
        deprecated(got, f"from {room} import {name}", stacklevel=2)
        return getattr(importlib.import_module(room), name)

    return find
