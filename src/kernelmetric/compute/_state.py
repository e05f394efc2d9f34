"""The state of an estimator while it is fitted: what was, until all of the new is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Put an estimator back as it was when the work inside raises, or is interrupted.

    Attributes are remembered, not copied: the work replaces arrays and writes into none.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
