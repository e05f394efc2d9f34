"""Run a command in a terminal, and tell how long it was silent.

``python tools/record_terminal.py -- kernelmetric fit big.csv --label y --out model.km`` runs the
command in a pseudo-terminal, notes the time of every piece of output, and prints when the first one
came and how long the longest silence was, after which words. ``--interrupt 5`` presses Ctrl-C after
five seconds, and ``--interrupt-at WORDS`` as soon as these words are shown; the time until the end
is then printed too. ``--show`` prints the output itself. ``--log FILE`` appends the command, these
figures and what the terminal showed, with times; a line that is written again and again, such as
progress, at most every ``--every`` seconds.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import select
import signal
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_CTRL_C = b"\x03"


@dataclass
class Recording:
    """What a command wrote to its terminal, and when."""

    chunks: list[tuple[float, str]] = field(default_factory=list)
    seconds: float = 0.0
    code: int = 0
    interrupted: float | None = None

    @property
    def text(self) -> str:
        """The output without what steers the terminal."""
        return _CONTROL.sub("", "".join(text for _, text in self.chunks))

    @property
    def first(self) -> float:
        """Seconds until the first output."""
        return self.chunks[0][0] if self.chunks else self.seconds

    @property
    def silences(self) -> list[float]:
        """Times between two pieces of output, from the first one on to the end."""
        times = [*(when for when, _ in self.chunks), self.seconds]
        return [after - before for before, after in pairwise(times)]

    @property
    def longest_silence(self) -> tuple[float, str]:
        """The longest time without output from the first one on, and the words before it."""
        gaps = self.silences
        if not gaps:
            return self.seconds, ""
        longest = max(range(len(gaps)), key=gaps.__getitem__)
        words = _CONTROL.sub("", "".join(text for _, text in self.chunks[: longest + 1]))
        return gaps[longest], " ".join(words[-200:].split())[-100:]

    def log(self, every: float = 10.0) -> list[str]:
        """What the terminal showed, line by line, after the second in which it came.

        Of lines that differ in digits and signs alone, there is one in so many seconds.
        """
        lines: list[str] = []
        told: dict[str, float] = {}
        for when, text in self.chunks:
            for part in re.split(r"\n|\r|\x1b\[K", text):
                words = _CONTROL.sub("", part).strip()
                name = re.sub(r"[^A-Za-z]", "", words)
                if name and when - told.get(name, -every) >= every:
                    told[name] = when
                    lines.append(f"{when:7.1f} s  {' '.join(words.split())}")
        return lines

    def figures(self) -> list[str]:
        """When it spoke, for how long it was silent, and how it ended."""
        silence, words = self.longest_silence
        lines = [
            f"exit code {self.code} after {self.seconds:.1f} s",
            f"first output after {self.first:.2f} s",
            f"longest silence {silence:.2f} s, after: {words}",
            f"silences of more than 2 s: {sum(gap > 2 for gap in self.silences)}",
        ]
        if self.interrupted is not None:
            lines.append(f"ended {self.seconds - self.interrupted:.2f} s after Ctrl-C")
        return lines


def record(command: list[str], after: float | None = None, at: str | None = None) -> Recording:
    """Run a command; press Ctrl-C after some seconds, or as soon as some words are shown."""
    found = Recording()
    begun = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.setdefault("TERM", "xterm-256color")
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which nohup has it ignore
        os.execvp(command[0], command)
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        now = time.monotonic() - begun
        if ready:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:  # how Linux says that the other end is closed
                break
            if not data:
                break
            found.chunks.append((now, data.decode("utf-8", "replace")))
        due = after is not None and now >= after
        if found.interrupted is None and (due or (at is not None and at in found.text)):
            os.write(terminal, _CTRL_C)
            found.interrupted = now
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    found.seconds = time.monotonic() - begun
    found.code = os.waitstatus_to_exitcode(status)
    return found


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interrupt", type=float, metavar="SECONDS")
    parser.add_argument("--interrupt-at", metavar="WORDS")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--log", type=Path, help="file to which the recording is appended")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between such lines")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    found = record(given.command, given.interrupt, given.interrupt_at)
    if given.show:
        print(found.text)
    print(*found.figures(), sep="\n")
    if given.log:
        with given.log.open("a", encoding="utf-8") as file:
            print(f"$ {' '.join(given.command)}", *found.figures(), "", sep="\n", file=file)
            print(*found.log(given.every), "", sep="\n", file=file)


if __name__ == "__main__":
    main()
