"""The one way in which something public goes away.

It works for one minor version more, with a warning that says what to write instead.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def deprecated(got: str, instead: str, *, stacklevel: int = 2) -> None:
    """Warn that something is going away: what was got, and what to write ``instead``.

    ``stacklevel`` is 1 where the user's line calls this function itself, 2 one call further up.
    """
    warnings.warn(
        f"{got}: try {instead}. The next minor version will not know the old form.",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def moved(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose names moved to other rooms; it warns."""

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        room = f"kernelmetric.{places[name]}"
        got = f"Got {name} from {module}, but it lives in {room} now"
        deprecated(got, f"from {room} import {name}", stacklevel=2)
        return getattr(importlib.import_module(room), name)

    return find
