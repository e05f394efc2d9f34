"""How commands speak: sentences, a progress bar, JSON; and how they fail."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich import box, progress
from rich.console import Console
from rich.table import Table

from kernelmetric.report import STEERING, visible

INTERRUPTED = 130  # what shells report of a program that Ctrl-C ended

_MOST_SENTENCES = 40  # of a list; a table may have a remark on each of 20,000 columns
_LONGEST = 300  # characters of a sentence, for a name may be as long as a book
_LONGEST_CELL = 60
_LONGEST_ERROR = 2_000


def json_text(result: Any) -> str:
    """One JSON value as text: no number that JSON lacks, no character that steers a terminal."""
    result = _json_value(result)
    text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
    text = STEERING.sub(lambda c: c[0] if c[0] == "\n" else f"\\u{ord(c[0]):04x}", text)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(result, indent=1, allow_nan=False)
    return text


def _json_value(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value  # one of NumPy's numbers
    if isinstance(value, Mapping):
        return {str(name): _json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def make_console(*, stderr: bool = False, quiet: bool = False, **options: Any) -> Any:
    """A console that takes no text for markup, for an emoji or for something to colour."""
    plain: Any = {"markup": False, "emoji": False, "highlight": False}
    return Console(stderr=stderr, quiet=quiet, **plain, **options)


class Talk:
    """What a command says: errors only if ``quiet``, one JSON object at the end if ``as_json``."""

    def __init__(self, *, quiet: bool, as_json: bool):
        self.as_json = as_json
        self.silent = quiet or as_json
        self._out = make_console(quiet=self.silent, soft_wrap=True)
        self._err = make_console(stderr=True, quiet=self.silent)

    def say(self, sentence: str = "", style: str | None = None) -> None:
        """Print a line."""
        self._out.print(visible(sentence), style=style)

    def listed(self, sentences: Iterable[str]) -> None:
        """Print sentences, each on a line of its own; of very many the first."""
        for line in _lines(sentences, "; --json prints all"):
            self.say(f"  {line}")

    def aside(self, sentences: Iterable[str]) -> None:
        """Print sentences beside the output, which may go to a file or another program."""
        for line in _lines(sentences):
            self._err.print(line, markup=False, soft_wrap=True)

    def show(self, renderable: Any) -> None:
        """Print one of rich's tables."""
        self._out.print(renderable, soft_wrap=False)

    def table(
        self, title: str | None, columns: Sequence[tuple[str, Any]], rows: Iterable[Iterable[Any]]
    ) -> None:
        """Print a table of texts; each column comes with the side that it is aligned to."""
        title = None if title is None else visible(title, most=_LONGEST)
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
        for name, justify in columns:
            table.add_column(visible(name, most=_LONGEST_CELL), justify=justify)
        for row in rows:
            table.add_row(*(visible(cell, most=_LONGEST_CELL) for cell in row))
        self.show(table)

    def suggest(self, commands: dict[str, str]) -> None:
        """Print what to try next."""
        self.say("Try next:")
        for command, reason in commands.items():
            self.say(f"  {command}")
            self.say(f"      {reason}", style="dim")

    def answer(self, result: dict[str, Any]) -> None:
        """Print the result as JSON, where that was asked for."""
        if self.as_json:
            click.echo(json_text(result))

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[..., None]]:
        """A bar of so many steps; a call ends one and names the next, or ``further`` the same."""
        columns = (
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
        )
        hidden = self.silent or not self._err.is_terminal  # a log file wants no bar
        with progress.Progress(*columns, console=self._err, disable=hidden, transient=True) as bar:
            task = bar.add_task("reading".ljust(28), total=total)
            begun = False

            def begin(what: str, further: bool = False) -> None:
                nonlocal begun
                ended = int(begun and not further)
                bar.update(task, advance=ended, description=visible(what).ljust(28))
                begun = True

            yield begin


class Refused(click.ClickException):
    """Ends the program with a sentence and an exit code."""

    def __init__(self, message: str, exit_code: int = 1):
        super().__init__(message)
        vars(self)["exit_code"] = exit_code  # click's types call it the class's


@contextmanager
def sentences(exit_code: int = 1) -> Iterator[None]:
    """Turn what may go wrong into a sentence and an exit code."""
    try:
        yield
    except BrokenPipeError:  # the reader, such as head, has seen enough: click ends in silence
        raise
    except ImportError as error:  # a package that is optional
        raise Refused(str(error), exit_code=2) from error
    except (ValueError, OSError, MemoryError) as error:
        raise Refused(str(error) or type(error).__name__, exit_code) from error


@contextmanager
def spoken() -> Iterator[None]:
    """Let errors be shown as they are, and an interruption end in one sentence."""
    try:
        yield
    except click.ClickException as error:
        shown = visible(error.message, most=_LONGEST_ERROR, keep="\n")
        vars(error)["message"] = shown  # click's types call it final
        raise
    except KeyboardInterrupt:
        click.echo("Interrupted: no file was left half written.", err=True)
        sys.exit(INTERRUPTED)


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where there are several."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share with one digit, nothing where it is unknown."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else ""


def short(value: Any) -> str:
    """A value in a cell of a table: of a number four digits."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def _lines(sentences: Iterable[str], further: str = "") -> list[str]:
    """Sentences that steer no terminal; long ones cut, and of very many the first."""
    all_of_them = list(sentences)
    lines = [visible(sentence, most=_LONGEST) for sentence in all_of_them[:_MOST_SENTENCES]]
    rest = len(all_of_them) - len(lines)
    return [*lines, f"... and {count(rest, 'more line')}{further}."] if rest else lines
