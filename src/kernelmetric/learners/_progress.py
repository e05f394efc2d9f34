"""Iterations that can be watched: scikit-learn's callbacks, and a progress bar of our own."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

logger = logging.getLogger("kernelmetric")

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn versions without callbacks."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


class Iterations:
    """Record of an iterative fit: its loss curve, shown and reported as it grows."""

    def __init__(self, estimator: Any, max_iter: int, attributes: Any, X: Any, y: Any):
        self.estimator = estimator
        self.attributes = attributes
        self.loss_curve: list[float] = []
        self.stopped = False
        self.state: Any = None
        self.held_out: Any = None  # judges every state; its True asks to stop
        self._told = {"estimator": estimator, "X": X, "y": y}
        self._root: Any = None
        self._open: Any = None
        if hasattr(estimator, "_init_callback_context"):
            # one more than max_iter: the last iteration opened is never run
            self._root = estimator._init_callback_context(max_subtasks=max(max_iter, 1) + 1)
            self._root.call_on_fit_task_begin(**self._told)
        self._bar = _Bar(type(estimator).__name__, max_iter) if estimator.verbose else None

    def __call__(self, state: Any, loss: float) -> bool:
        """Record the end of an iteration; True asks the optimiser to stop."""
        if self.stopped:  # a stop is final, whichever stage goes on asking
            return True
        self.loss_curve.append(float(loss))
        self.state = state = np.array(state)  # a copy: the optimiser goes on in its own array
        if self._bar is not None:
            self._bar.show(len(self.loss_curve), loss)
        if self._open is not None:
            end = self._open.call_on_fit_task_end
            self.stopped = bool(
                end(**self._told, reconstruction_attributes=lambda: self.attributes(state))
            )
            self.start(state)
        if self.held_out is not None and self.held_out(state):
            self.stopped = True
        return self.stopped

    def keep(self) -> None:
        """Leave the attributes of the last iteration on the estimator that Ctrl-C has ended."""
        if self.state is not None:
            done = {"n_iter_": len(self.loss_curve), "converged_": False}
            vars(self.estimator).update(
                self.attributes(self.state), loss_curve_=self.loss_curve, **done
            )

    def finish(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open.call_on_fit_task_end(estimator=self.estimator)
            self._root.call_on_fit_task_end(**self._told, reconstruction_attributes={})
        if self._bar is not None:
            self._bar.close()

    def start(self, state: Any) -> None:
        """Begin an iteration from a state."""
        if self._root is not None:
            self._open = self._root.subcontext(task_name="iteration")
            self._open.call_on_fit_task_begin(
                **self._told, reconstruction_attributes=lambda: self.attributes(state)
            )


class _Bar:
    """One line on standard error, rewritten at most ten times a second."""

    def __init__(self, name: str, total: int):
        self.name, self.total = name, total
        self.started = self.shown = time.monotonic()
        self.line = ""

    def show(self, done: int, loss: float) -> None:
        elapsed = time.monotonic() - self.started
        full = int(20 * min(1.0, done / max(self.total, 1)))
        self.line = (
            f"{self.name} [{'#' * full}{'.' * (20 - full)}] "
            f"{done}/{self.total}  loss {loss:.6g}  {elapsed:.1f} s"
        )
        logger.debug(self.line)
        if time.monotonic() - self.shown > 0.1:
            self.shown = time.monotonic()
            self._write(self.line)

    def close(self) -> None:
        self._write(self.line + "\n" if self.line else "")

    @staticmethod
    def _write(line: str) -> None:
        sys.stderr.write("\r" + line)
        sys.stderr.flush()


@contextmanager
def told(name: str, what: str, verbose: Any) -> Iterator[list[str]]:
    """A line when work begins, and one when it ends, with what was put into the list."""
    found: list[str] = []
    if verbose:
        sys.stderr.write(f"{name}: {what}\n")
    started = time.monotonic()
    yield found
    if verbose:
        sys.stderr.write(f"{name}: {', '.join(found)}  {time.monotonic() - started:.1f} s\n")


@contextmanager
def propagated_callbacks(outer: Any, inner: Any, X: Any, y: Any) -> Iterator[None]:
    """Let the callbacks of a meta-estimator watch the fit of the estimator inside it."""
    if not hasattr(outer, "_init_callback_context"):
        yield
        return
    root = outer._init_callback_context(max_subtasks=1)
    root.call_on_fit_task_begin(estimator=outer, X=X, y=y)
    task = root.subcontext(task_name="learner")
    task.call_on_fit_task_begin(estimator=outer, X=X, y=y)
    with task.propagate_callback_context(inner):
        yield
    task.call_on_fit_task_end(estimator=outer, X=X, y=y)
    root.call_on_fit_task_end(estimator=outer, X=X, y=y)
