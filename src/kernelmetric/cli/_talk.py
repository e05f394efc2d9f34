"""How commands speak: sentences, a progress bar, JSON; and how they fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED = 130  # what shells report of a program that Ctrl-C ended


class Talk:
    """What a command says: to people, unless it is quiet or speaks JSON.

    Parameters
    ----------
    quiet : bool
        Say nothing but errors.
    as_json : bool
        Say nothing but one JSON object at the end.
    """

    def __init__(self, *, quiet: bool, as_json: bool):
        from rich.console import Console

        self.as_json = as_json
        self.silent = quiet or as_json
        self._out = Console(quiet=self.silent, highlight=False, soft_wrap=True)
        self._err = Console(stderr=True, quiet=self.silent, highlight=False)

    def say(self, sentence: str = "", style: str | None = None) -> None:
        """Print a line as it is."""
        self._out.print(sentence, style=style, markup=False)

    def listed(self, sentences: Iterable[str]) -> None:
        """Print sentences, each on a line of its own."""
        for sentence in sentences:
            self.say(f"  {sentence}")

    def aside(self, sentences: Iterable[str]) -> None:
        """Print sentences beside the output, which may go to a file or another program."""
        for sentence in sentences:
            self._err.print(sentence, markup=False, soft_wrap=True)

    def show(self, renderable: Any) -> None:
        """Print one of rich's tables."""
        self._out.print(renderable, soft_wrap=False)

    def suggest(self, commands: dict[str, str]) -> None:
        """Print what to try next."""
        self.say("Try next:")
        for command, reason in commands.items():
            self.say(f"  {command}")
            self.say(f"      {reason}", style="dim")

    def answer(self, result: dict[str, Any]) -> None:
        """Print the result as JSON, where that was asked for."""
        if self.as_json:
            import click

            click.echo(json.dumps(result, indent=1, ensure_ascii=False))

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[str], None]]:
        """A bar of so many steps; calling what it gives ends one step and names the next."""
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
        )
        hidden = self.silent or not self._err.is_terminal  # a log file wants no bar
        with Progress(*columns, console=self._err, disable=hidden, transient=True) as bar:
            task = bar.add_task("reading".ljust(28), total=total)
            begun = False

            def begin(what: str) -> None:
                nonlocal begun
                bar.update(task, advance=int(begun), description=what.ljust(28))
                begun = True

            yield begin


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what may go wrong into a sentence and an exit code; files are written whole or not."""
    import click

    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted: no file was left half written.", err=True)
        sys.exit(INTERRUPTED)
    except (ValueError, OSError, MemoryError) as error:
        raise click.ClickException(str(error) or type(error).__name__) from error


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where there are several."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
