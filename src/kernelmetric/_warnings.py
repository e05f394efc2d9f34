"""Warnings at the line of the user, and the one way in which something public goes away."""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this library, however deep inside it we are."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    ours = module.split(".")[0] in ("kernelmetric", "contextlib")
    return ours or module.startswith(("sklearn.callback", "sklearn.utils._set_output"))


def deprecated(got: str, instead: str, *, stacklevel: int = 2) -> None:
    """Warn that something is going away, and what to write ``instead``; see ``warnings.warn``."""
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
