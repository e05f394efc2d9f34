"""Pieces of HTML that the sections of the report page are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmetric.report._text import html_text


def section(title: str, note: str, body: str, name: str = "") -> str:
    """A section with its heading and a note below it."""
    said = f'<p class="note">{note}</p>' if note else ""
    identity = f' id="{name}"' if name else ""
    return f"<section{identity}><h2>{title}</h2>{said}{body}</section>"


def figure(title: str, content: str) -> str:
    """A picture or a table below its title."""
    return f"<figure><h3>{html_text(title)}</h3>{content}</figure>"


def table(texts: Sequence[str], numbers: Sequence[str], lines: str, kind: str = "") -> str:
    """A table with columns of texts, then of numbers; heads and lines are HTML already."""
    heads = "".join(f"<th>{name}</th>" for name in texts)
    heads += "".join(f'<th class="n">{name}</th>' for name in numbers)
    named = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll"><table{named}><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def line(texts: Sequence[Any], numbers: Sequence[str], point: int | None = None) -> str:
    """A line of a table, which leads to a point in the planes where one is given."""
    cells = "".join(f"<td>{html_text(text)}</td>" for text in texts)
    cells += "".join(f'<td class="n">{number}</td>' for number in numbers)
    return f"<tr>{cells}</tr>" if point is None else f'<tr data-point="{point}">{cells}</tr>'


def percent(share: float) -> str:
    """A share with one digit, nothing where it is unknown."""
    return "" if np.isnan(share) else f"{100 * share:.1f} %"
