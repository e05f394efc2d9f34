"""One fit, measured: its score, its seconds, its memory, and what it warned about."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kernelmetric.compute import one_thread


class Measured(NamedTuple):
    """What came of a fit.

    Parameters
    ----------
    value : object
        What the function returned.
    seconds : float
        Processor time.
    megabytes : float
        The most memory of the process meanwhile; 0 where the system is not Linux.
    note : str
        Warnings, each once.
    """

    value: Any
    seconds: float
    megabytes: float
    note: str


def measured(function: Callable[..., Any], *arguments: Any) -> Measured:
    """Call a function on one thread, and look at the clock, the memory and the warnings.

    Parameters
    ----------
    function : callable
        What to call.
    *arguments : object
        Its arguments.

    Returns
    -------
    Measured
        Its value and what it took.

    Examples
    --------
    >>> from kernelmetric.evaluation import measured
    >>> measured(max, 1.0, 2.0).value
    2.0
    """
    with contextlib.suppress(OSError):  # let Linux count the peak of memory anew
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    begin = time.process_time()
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = function(*arguments)
    seconds = round(time.process_time() - begin, 6)
    note = " ".join(dict.fromkeys(_in_a_line(str(warning.message)) for warning in caught))
    return Measured(value, seconds, _peak(), note)


def _in_a_line(message: str) -> str:
    """A warning without the traceback that scikit-learn adds, and without its array of scores."""
    text, scores, _ = message.partition(": [nan")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return f"{lines[0]} {lines[-1]}."
    return f"{' '.join(lines)}." if scores else message


def _peak() -> float:
    """The most memory since it was counted anew, as Linux tells."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)
    return 0.0
