"""A sign of life of the command line, also while Python itself can give none.

Libraries take seconds to load, and most calls of LAPACK let no other thread run. So a small process
stands beside the command, when that runs in a terminal. A pipe tells it what the command is doing.
Where nothing comes through the pipe for a second, it writes a line. It ends with the command.
"""

import os
import signal
import sys
import time

_SILENT = {"--quiet", "--json", "--help", "-h", "--version"}
_LONGEST = 70  # characters of a line
_BYE = "\x04"
_pipe: list[int] = []  # to the process, where there is one


def tell(words: str) -> None:
    """Say what is being done, or by an empty text that nothing is."""
    if _pipe:
        try:
            os.write(_pipe[0], f"{words}\n".encode())
        except OSError:  # the process is gone
            _pipe.clear()


def arrived() -> None:
    """The command has been loaded, and speaks for itself."""
    if _pipe:
        _clear("")
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _clear(words: str) -> None:
    """Tell words, and remove the line that was shown."""
    tell(words)
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def _start() -> None:
    """Start the process beside, and let Ctrl-C end the command at once until it is loaded."""
    import atexit
    import subprocess

    process = subprocess.Popen([sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE)
    assert process.stdin is not None
    _pipe.append(os.dup(process.stdin.fileno()))
    process.stdin.close()
    process.returncode = 0  # it ends after us: nobody waits for it
    atexit.register(_clear, _BYE)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it may be ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    tell("Loading kernelmetric")


def _is_command() -> bool:
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 (pathlib takes long)
    called = name == "kernelmetric" or (name == "-m" and "kernelmetric" in sys.orig_argv)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return called and os.name == "posix" and terminal and not _SILENT & {*sys.argv}


def _watch() -> None:
    """What the process does: write a line where the command has been silent."""
    import select

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    words, since, frame = "", 0.0, 0
    while True:
        if select.select([0], [], [], 0.5)[0]:
            data = os.read(0, 1 << 16)
            if not data:  # the command has ended, without a word
                os.write(2, b"\r\x1b[K\x1b[?25hThe command was ended before it was done.\n")
                return
            lines = data.decode(errors="replace").splitlines()
            if lines[-1] == _BYE:
                return
            words = lines[-1]
            since = time.monotonic() if frame else 0.0  # the first words are shown at once
        if words and time.monotonic() - since >= 1.0:
            frame += 1
            mark = "-\\|/"[frame % 4]
            os.write(2, f"\r\x1b[K{mark} {words[:_LONGEST]} ...".encode())


if __name__ == "__main__":
    _watch()
elif _is_command():
    _start()
