"""The state of an estimator while it is fitted: what was, until all of the new is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Put an estimator back as it was when the work inside raises, or is interrupted.

    A fit that is refused half-way would otherwise leave a mixture: the map of the last fit beside
    the number of features of this one.

    Parameters
    ----------
    estimator : estimator
        Its attributes are remembered, not copied: the work replaces arrays and writes into none.

    Yields
    ------
    None
        Once.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
