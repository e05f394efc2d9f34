"""Text of users, made safe to show: on a terminal, on a page."""

import re
from html import escape
from typing import Any

import numpy as np

from kernelmetric.tables._cells import is_gap

# What would steer a terminal, or reorder what is around it, instead of being shown: control
# characters (escape sequences begin with one), separators of lines and paragraphs, embeddings,
# overrides and isolates of writing direction, and halves of characters, which no file can hold.
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: Any, *, most: int | None = None, keep: str = "") -> str:
    r"""Text of a user as one line that is shown and does nothing: ``\x1b`` instead of an escape.

    What is longer than ``most`` ends in an ellipsis; control characters in ``keep`` stay.

    >>> from kernelmetric.report import visible
    >>> print(visible("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    text = str(text)
    if most is not None and len(text) > most:
        text = text[: most - 1] + "…"
    return STEERING.sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)


def html_text(text: Any, *, most: int | None = None, keep: str = "") -> str:
    """A user's text for HTML, also in an attribute: no tags, quotes or control characters.

    What is longer than ``most`` ends in an ellipsis; control characters in ``keep`` stay.
    """
    return escape(visible(text, most=most, keep=keep))


def percent(share: float) -> str:
    """A share with one digit, nothing where it is unknown."""
    return f"{100 * share:.1f} %" if np.isfinite(share) else ""


def short(value: Any) -> str:
    """A value in a cell of a table: of a number four digits, nothing where it is missing."""
    if is_gap(value):
        return ""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
