"""Warnings that point at the line of the user."""

from __future__ import annotations

import sys
import warnings


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this library, however deep inside it we are."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.split(".")[0] == "kernelmetric" or module.startswith("sklearn.callback")
