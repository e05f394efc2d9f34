"""How far long work is, shown while it runs; and until when it may run.

A stage is a piece of work with a name. While one is open and progress is asked for, a line on
standard error tells its name, how much of it is done, and how long it took and will take. It moves
once a second, also while a single call of LAPACK runs.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from numbers import Real
from typing import Any, TypeVar

from kernelmetric._warnings import warn

logger = logging.getLogger("kernelmetric")

T = TypeVar("T")
_QUIET = 2.0  # seconds after which work without ``verbose`` begins to be shown
_EVERY = 1.0  # seconds between two looks at the clock
_LOG_EVERY = 10.0  # seconds between two lines where none can be rewritten, as in a file
_BAR = 20  # characters
_STAGE: ContextVar[Stage | None] = ContextVar("kernelmetric_stage", default=None)
_DEADLINE: ContextVar[float | None] = ContextVar("kernelmetric_deadline", default=None)
_LEAVABLE: ContextVar[bool] = ContextVar("kernelmetric_leavable", default=False)
_TOLD: ContextVar[list[str] | None] = ContextVar("kernelmetric_told", default=None)
# Set where the thread that waits for this one has gone: an error, or Ctrl-C.
GONE = ContextVar("kernelmetric_gone", default=threading.Event())  # noqa: B039 (never set)
_shown: list[bool] = [False]  # what progress() has said, for the whole process
_taker: list[Any] = [None]  # who shows lines in place of standard error


class TimeLimitWarning(UserWarning):
    """A time limit ended work early; what was best until then is what there is.

    See Also
    --------
    time_limit : The limit.

    Examples
    --------
    >>> import warnings
    >>> from kernelmetric import TimeLimitWarning
    >>> warnings.simplefilter("ignore", TimeLimitWarning)  # a program that expects it
    """


class OutOfTime(Exception):  # noqa: N818 (the end of work, and no fault of it)
    """A pass over blocks was left: by a time limit, or as nobody waits for it any more."""


class progress:  # noqa: N801  (it is called as a function)
    """Show how far fits are: stages, iterations, time that went by and time that is left.

    Every fit that takes longer than two seconds then writes a line to standard error, in a terminal
    and in a notebook. ``kernelmetric.progress()`` switches that on for the whole process, and
    ``progress(False)`` off again. In a ``with`` statement it ends with the block. ``verbose=True``
    of an estimator does the same for its own fits, from the first moment on.

    Parameters
    ----------
    shown : bool, default=True
        Whether progress is shown.
    to : callable, default=None
        Gets each line, at least once a second, in place of standard error.

    See Also
    --------
    time_limit : Ends what takes too long.

    Examples
    --------
    >>> import kernelmetric
    >>> from sklearn.datasets import load_iris
    >>> with kernelmetric.progress():  # says nothing of work that ends in a moment
    ...     metric = kernelmetric.NCA().fit(*load_iris(return_X_y=True))
    """

    def __init__(self, shown: bool = True, *, to: Callable[[str], object] | None = None):
        self._before = _shown[0], _taker[0]
        _shown[0], _taker[0] = bool(shown), to

    def __enter__(self) -> progress:
        return self

    def __exit__(self, *error: object) -> None:
        _shown[0], _taker[0] = self._before


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """End choices, searches and iterations inside of it after so many seconds.

    What was best until then is kept, and one :class:`TimeLimitWarning` of a fit says so. Descents
    end between two blocks of a pass. What cannot be cut is foretold, and gets fewer rows where it
    would take longer than the limit leaves. Of limits inside of each other the earliest counts.

    Parameters
    ----------
    seconds : float or None
        Seconds from now on; None is no limit.

    Yields
    ------
    None
        Nothing; the block runs under the limit.

    See Also
    --------
    progress : What takes the time.
    memory_budget : Bytes instead of seconds.
    TimeLimitWarning : What it says when it ends work.

    Examples
    --------
    >>> import kernelmetric
    >>> from sklearn.datasets import load_iris
    >>> with kernelmetric.time_limit(30):
    ...     metric = kernelmetric.NCA().fit(*load_iris(return_X_y=True))
    """
    if seconds is None:
        yield
        return
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0:
        raise ValueError(
            f"Got a time limit of {seconds!r}, but expected None or a number of seconds above 0."
        )
    end, before = time.monotonic() + float(seconds), _DEADLINE.get()
    with within(_DEADLINE, end if before is None else min(end, before)):
        yield


def time_left() -> float:
    """Seconds until the time limit; infinite where there is none."""
    end = _DEADLINE.get()
    return float("inf") if end is None else end - time.monotonic()


def time_kept(seconds: float) -> AbstractContextManager[Any]:
    """Leave so many seconds of a time limit for what comes after."""
    end = _DEADLINE.get()
    return within(_DEADLINE, None if end is None else end - max(seconds, 0.0))


def without_limit() -> AbstractContextManager[Any]:
    """Work that means nothing in part goes on to its end, whatever the time limit."""
    return within(_DEADLINE, None)


def warn_of_limit(what: str) -> None:
    """Say what a time limit has ended: at once, or with the rest (:func:`told_once`)."""
    told = _TOLD.get()
    if told is None:
        with told_once():
            warn_of_limit(what)
    elif what not in told:
        told.append(what)


@contextmanager
def told_once(*, unheard: bool = False) -> Iterator[None]:
    """Say in one warning what a time limit ended inside; nothing where that is ``unheard``."""
    if _TOLD.get() is not None and not unheard:
        yield
        return
    told: list[str] = []
    with within(_TOLD, told):
        yield
    if told and not unheard:
        words = ". It also ended ".join(told)
        warn(f"The time limit ended {words}. A longer time_limit allows more.", TimeLimitWarning)


def ended_by_limit(what: str, seconds: Callable[[], float] = lambda: 0.0) -> bool:
    """Whether the time is over, or too short for what takes so long; if so, say what that ends."""
    left = time_left()
    over = left != float("inf") and left <= seconds()
    if over:
        warn_of_limit(what)
    return over


def leavable() -> AbstractContextManager[Any]:
    """Let a time limit end passes over blocks inside, by :class:`OutOfTime`."""
    return within(_LEAVABLE, True)


@contextmanager
def within(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Give a variable another value inside."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def watched(blocks: Iterable[T]) -> Iterator[T]:
    """Blocks of a pass, between two of which it is left if it may be and should be."""
    for number, block in enumerate(blocks):
        if number:
            leave_if_over()
        yield block


def leave_if_over() -> None:
    """Leave work that may be left where its time is over, and any that nobody waits for."""
    if (_LEAVABLE.get() and time_left() <= 0) or GONE.get().is_set():
        raise OutOfTime


def warn_of_choice(what: str, n_tried: int) -> None:
    """Say after how many candidates a time limit has ended a choice."""
    tried = "1 candidate" if n_tried == 1 else f"{n_tried} candidates"
    warn_of_limit(f"the choice of {what} after {tried}: the best so far is kept")


def until_limit(candidates: Iterable[T], what: str | None) -> Iterator[T]:
    """Candidates, the first in any case; a time limit ends them, and says so of what has a name.

    One that is as long as the one before would not end in time is not begun.
    """
    took = 0.0
    for n_tried, candidate in enumerate(candidates):
        if n_tried and time_left() <= took:
            if what is not None:
                warn_of_choice(what, n_tried)
            return
        begun = time.monotonic()
        yield candidate
        took = time.monotonic() - begun


class Stage:
    """A piece of work with a name, entered while it runs."""

    above: Stage | None
    _at_once: bool
    _screen: _Screen

    def __init__(self, name: str, total: int | None = None, *, shown: Any = False, told=True):
        self.name, self.total, self.done, self.note = name, total, 0, ""
        self.told = told  # whether its end is worth a line
        self.above = _STAGE.get()
        self._at_once = bool(shown) or (self.above is not None and self.above._at_once)

    def __enter__(self) -> Stage:
        self.started = time.monotonic()
        self._token = _STAGE.set(self)
        self._screen = _Screen() if self.above is None else self.above._screen
        self._screen.show(self)
        return self

    def __exit__(self, *error: object) -> None:
        _STAGE.reset(self._token)
        self._screen.leave(self)

    def step(self, note: str = "", by: int = 1) -> None:
        """Some more is done."""
        self.done += by
        self.note = note
        self._screen.show(self)

    def is_shown(self) -> bool:
        """Whether it is time to say something."""
        return self._at_once or (_shown[0] and time.monotonic() - self._screen.started > _QUIET)

    def line(self) -> str:
        """What there is to say."""
        names, stage = [], self
        while stage is not None:
            names.append(stage.name)
            stage = stage.above  # type: ignore[assignment]
        words = [": ".join(reversed(names))]
        elapsed = time.monotonic() - self.started
        if self.total:
            done = min(self.done, self.total)
            full = _BAR * done // self.total
            words[0] += f" [{'#' * full}{'.' * (_BAR - full)}] {done}/{self.total}"
        words += [self.note] if self.note else []
        words.append(f"{elapsed:.1f} s")
        if self.total and 0 < self.done < self.total:
            words.append(f"at most {elapsed * (self.total - self.done) / self.done:.0f} s left")
        return "  ".join(words)


def stage(name: str, total: int | None = None, *, shown: Any = False, told: Any = True) -> Stage:
    """A stage of work, shown where ``shown`` or :class:`progress` asks; its end may be ``told``."""
    return Stage(name, total, shown=shown, told=told)


class _Screen:
    """The line on standard error that all stages of one fit write to."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self._written, self._width = 0.0, 0
        self._current: Stage | None = None
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._clock: threading.Thread | None = None

    def show(self, stage: Stage) -> None:
        """Write a stage's line, at most ten times a second."""
        with self._lock:
            self._current = stage
            if not stage._at_once and not _shown[0]:
                return
            if self._clock is None:
                self._clock = threading.Thread(target=self._watch, daemon=True)
                self._clock.start()
            self._write(0.1 if _rewritten() else _LOG_EVERY)

    def leave(self, stage: Stage) -> None:
        """Write a stage's last line, and go on with the one above."""
        with self._lock:
            self._current = stage.above
            if stage.told and stage.is_shown():
                self._put(stage.line(), ended=True)
        if stage.above is None:
            self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY):
            with self._lock:
                self._write(_EVERY if _rewritten() else _LOG_EVERY)

    def _write(self, pause: float) -> None:
        stage = self._current
        if stage is None or not stage.is_shown() or time.monotonic() - self._written < pause:
            return
        self._put(stage.line(), ended=not _rewritten())

    def _put(self, line: str, *, ended: bool) -> None:
        """Show a line, over the one before where that was not the end of it."""
        logger.debug(line)
        self._written = time.monotonic()
        if _taker[0] is not None:
            _taker[0](line)
            return
        over = f"\r{line.ljust(self._width)}" if _rewritten() else line
        sys.stderr.write(over + "\n" if ended else over)
        sys.stderr.flush()
        self._width = 0 if ended else len(line)


def _rewritten() -> bool:
    """Whether a line can be written over the one before."""
    return _taker[0] is not None or sys.stderr.isatty()
