"""Packages that not every user has."""

import sys
from typing import Any


class MissingExtraError(ImportError):
    """A package of an extra is not installed; the message says how to get it."""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an extra when it is used; ``purpose`` begins a sentence of the refusal."""
    try:
        __import__(module)  # as an import statement would, whoever hides a package from it
    except ImportError as error:
        raise MissingExtraError(
            f'{purpose}, which is not installed: try pip install "kernelmetric[{extra}]", '
            f'or pip install ".[{extra}]" in a checkout.'
        ) from error
    return sys.modules[module]
