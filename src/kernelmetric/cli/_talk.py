"""How commands speak: sentences, a progress bar, JSON; and how they fail."""

import json
import math
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from kernelmetric._pulse import tell
from kernelmetric.compute.watch import progress
from kernelmetric.report import visible
from kernelmetric.tables._cells import is_gap

INTERRUPTED = 130  # what shells report of a program that Ctrl-C ended

_MOST_SENTENCES = 40  # of a list; a table may have a remark on each of 20,000 columns
_LONGEST = 300  # characters of a sentence, for a name may be as long as a book
_LONGEST_CELL = 60
_LONGEST_LINE = 120
_LONGEST_ERROR = 2_000
_NUMBER = re.compile(r"(-?\d[\d.,e+-]*( %)?)?")


def json_text(result: Any) -> str:
    """One JSON value in ASCII: no number that JSON lacks, no character that steers a terminal."""
    return json.dumps(_json_value(result), indent=1, allow_nan=False)


def _json_value(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value  # one of NumPy's numbers
    if isinstance(value, Mapping):
        return {str(name): _json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    if is_gap(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, int | float | str) else str(value)


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

    def table(self, title: str | None, columns: Sequence[str], rows: Iterable[Sequence]) -> None:
        """Print a table of texts; columns of numbers are aligned to the right."""
        title = None if title is None else visible(title, most=_LONGEST)
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
        lines = [[visible(cell, most=_LONGEST_CELL) for cell in row] for row in rows]
        for j, name in enumerate(columns):
            numbers = all(_NUMBER.fullmatch(line[j]) for line in lines)
            shown = visible(name, most=_LONGEST_CELL)
            table.add_column(shown, justify="right" if numbers else "left")
        for line in lines:
            table.add_row(*line)
        self.show(table)

    def saved(self, files: Iterable[Any]) -> None:
        """Print where files are, where there are any."""
        names = [str(path) for path in files]
        if names:
            self.say("Saved:")
            self.listed(names)

    def suggest(self, command: str) -> None:
        """Print what to try next."""
        self.say("Try next:")
        self.say(f"  {command}")

    def answer(self, result: dict[str, Any]) -> None:
        """Print the result as JSON, where that was asked for."""
        if self.as_json:
            click.echo(json_text(result))

    @contextmanager
    def busy(self, name: str, *, abrupt: bool = False) -> Iterator[Any]:
        """Show what work is going on, and how far it is, in lines that go away with the block.

        Ctrl-C ends what is ``abrupt``, which writes no file, even within a call of LAPACK.
        """
        hidden = self.silent or not self._err.is_terminal  # a log file wants no bar
        words = TextColumn("{task.description}", markup=False)
        on: Any = {"console": self._err, "disable": hidden, "transient": True}
        on |= {"redirect_stdout": False, "redirect_stderr": False}
        ending = _ended_at_once() if abrupt and not hidden else nullcontext()
        with ending, Progress(SpinnerColumn(), words, _Beat(), **on) as bar:
            task = bar.add_task(visible(name, most=_LONGEST_LINE), total=None)
            within = bar.add_task("", total=None, visible=False)

            def tell_line(line: str) -> None:
                bar.update(within, description=visible(line, most=_LONGEST_LINE), visible=True)

            with progress(not hidden, to=tell_line):
                yield lambda words: bar.update(task, description=words)
        tell("")

    def tracked(
        self, work: Iterable[Any], names: Sequence[str], *, abrupt: bool = False
    ) -> Iterator[Any]:
        """The results of work, while the step that is being taken is shown."""
        steps = [f"{name}, step {k} of {len(names)}" for k, name in enumerate(names, start=1)]
        with self.busy(steps[0], abrupt=abrupt) as update:
            for n_done, result in enumerate(work, start=1):
                update(steps[min(n_done, len(steps) - 1)])
                yield result


class _Beat(TimeElapsedColumn):
    """The time that went by; whenever it is shown, the process beside hears of it."""

    def render(self, task: Any) -> Any:
        tell(task.description)
        return super().render(task)


@contextmanager
def _ended_at_once() -> Iterator[None]:
    """Let the system end the program at Ctrl-C, for Python waits until a call returns."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def spoken(exit_code: int = 1) -> Iterator[None]:
    """Turn what may go wrong into a sentence and an exit code."""
    try:
        yield
    except click.ClickException as error:
        shown = visible(error.message, most=_LONGEST_ERROR, keep="\n")
        vars(error)["message"] = shown  # click's types call it final
        raise
    except BrokenPipeError:  # the reader, such as head, has seen enough: click ends in silence
        raise
    except (ImportError, ValueError, OSError, MemoryError) as error:
        said = visible(str(error) or type(error).__name__, most=_LONGEST_ERROR, keep="\n")
        refused = click.ClickException(said)
        missing = isinstance(error, ImportError)  # a package that is optional
        vars(refused)["exit_code"] = 2 if missing else exit_code  # click's types call it a class's
        raise refused from error
    except KeyboardInterrupt:
        click.echo("Interrupted: no file was left half written.", err=True)
        sys.exit(INTERRUPTED)


def this_command() -> str:
    """What was typed, as a shell would take it."""
    return shlex.join(["kernelmetric", *sys.argv[1:]])


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where there are several."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _lines(sentences: Iterable[str], further: str = "") -> list[str]:
    """Sentences that steer no terminal; long ones cut, and of very many the first."""
    all_of_them = list(sentences)
    lines = [visible(sentence, most=_LONGEST) for sentence in all_of_them[:_MOST_SENTENCES]]
    rest = len(all_of_them) - len(lines)
    return [*lines, f"... and {count(rest, 'more line')}{further}."] if rest else lines
