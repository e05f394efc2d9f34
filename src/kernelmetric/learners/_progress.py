"""Iterations that can be watched: scikit-learn's callbacks, a progress bar, a time limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelmetric.compute.watch import stage, time_left

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
        self._stage = stage(type(estimator).__name__, max_iter, shown=estimator.verbose)

    def __call__(self, state: Any, loss: float) -> bool:
        """Record the end of an iteration; True asks the optimiser to stop."""
        if self.stopped:  # a stop is final, whichever stage goes on asking
            return True
        self.loss_curve.append(float(loss))
        if state is not None:  # a search has none
            self.state = state = np.array(state)  # a copy: the optimiser goes on in its own
        self._stage.step(f"loss {loss:.6g}")
        if self._open is not None:
            end = self._open.call_on_fit_task_end
            self.stopped = bool(
                end(**self._told, reconstruction_attributes=lambda: self.attributes(state))
            )
            self.start(state)
        if (self.held_out is not None and self.held_out(state)) or time_left() <= 0:
            self.stopped = True
        return self.stopped

    def best(self, start: np.ndarray) -> tuple[np.ndarray, float, bool]:
        """The best map so far, as points held out say, else the last; its loss; not converged."""
        last = start if self.state is None else self.state
        best = last if self.held_out is None else self.held_out.best
        return best, [np.nan, *self.loss_curve][-1], False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Show iterations; what Ctrl-C ends leaves attributes of the last one on the estimator."""
        try:
            with self._stage:
                yield
        except KeyboardInterrupt:
            if self.state is not None:
                vars(self.estimator).update(
                    self.attributes(self.state),
                    loss_curve_=self.loss_curve,
                    n_iter_=len(self.loss_curve),
                    converged_=False,
                )
            raise

    def finish(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open.call_on_fit_task_end(estimator=self.estimator)
            self._root.call_on_fit_task_end(**self._told, reconstruction_attributes={})

    def start(self, state: Any) -> None:
        """Begin an iteration from a state."""
        if self._root is not None:
            self._open = self._root.subcontext(task_name="iteration")
            self._open.call_on_fit_task_begin(
                **self._told, reconstruction_attributes=lambda: self.attributes(state)
            )


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
