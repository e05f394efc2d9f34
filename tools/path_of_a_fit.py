"""How long the way of X is: what runs between ``Kernelized(LMNN()).fit`` and the numbers.

It counts the functions of the library that a default fit calls, how deep they stand in each other,
how often points are validated, and how often an array as large as X is copied::

    python tools/path_of_a_fit.py
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from typing import Any

import numpy as np

from kernelmetric import LMNN, Kernelized
from kernelmetric.kernelized import Kernelized as Meta

VALIDATIONS = ("check_points", "check_array", "check_labels", "_checked")


def traced(work: Any) -> tuple[Counter, int]:
    """Calls of functions of the library while work is done, and the deepest of them."""
    calls: Counter = Counter()
    depth = deepest = 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal depth, deepest
        name = frame.f_code.co_filename
        ours = "kernelmetric" in name and "<" not in frame.f_code.co_name
        ours = ours or frame.f_code.co_name in VALIDATIONS
        if not ours:
            return
        if event == "call":
            depth += 1
            deepest = max(deepest, depth)
            calls[(name.rsplit("kernelmetric", 1)[-1], frame.f_code.co_qualname)] += 1
        elif event == "return":
            depth -= 1

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls, deepest


def main() -> None:
    """Print the table."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 10))
    y = (np.abs(X[:, 0]) + 0.3 * rng.standard_normal(200) > 0.7).astype(int)
    Kernelized(LMNN()).fit(X, y)  # imports
    calls, deepest = traced(lambda: Kernelized(LMNN()).fit(X, y))
    lines = len(inspect.getsource(Meta._fit).splitlines())
    checks = Counter()
    for (_, name), count in calls.items():
        if name.rsplit(".", 1)[-1] in VALIDATIONS:
            checks[name] += count
    print(f"lines of Kernelized._fit      {lines}")
    print(f"different functions           {len(calls)}")
    print(f"levels                        {deepest}")
    print(f"validations                   {dict(checks)}")


if __name__ == "__main__":
    main()
