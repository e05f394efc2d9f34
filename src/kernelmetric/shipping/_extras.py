"""Packages that not every user has."""

from __future__ import annotations

import sys
from typing import Any


class MissingExtraError(ImportError):
    """A package of an extra is not installed; the message says how to get it."""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import a package of an extra when it is used, never before.

    Parameters
    ----------
    module : str
        Name of the module.
    extra : str
        The extra of this library that installs it.
    purpose : str
        What needs it, as the beginning of a sentence: "Plots need matplotlib".

    Returns
    -------
    module
        The imported module.
    """
    try:
        __import__(module)  # as an import statement would, whoever hides a package from it
    except ImportError as error:
        raise MissingExtraError(
            f'{purpose}, which is not installed: try pip install "kernelmetric[{extra}]".'
        ) from error
    return sys.modules[module]


def library_version() -> str:
    """The version of this library, which stands in the flat API above all rooms."""
    from kernelmetric import __version__

    return __version__
