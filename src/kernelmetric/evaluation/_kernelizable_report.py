"""The report on the conditions of the KPCA trick."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

DECISIVE = ("translation", "rotation", "embedding", "pca")

_HOLDS = {
    "translation": "{name} does not notice where the origin is.",
    "rotation": "{name} is rotation-invariant.",
    "embedding": "{name} does not notice dimensions in which nothing happens.",
    "pca": "{name} says of full-rank principal components what it says of the points.",
    "span": "{name} depends on new points only through their projections onto the span.",
}
_FAILS = {
    "translation": (
        "{name} depends on where the origin is, and kernel coordinates are centred: give it an "
        "intercept that is not penalized, or parameters that do not look at the mean."
    ),
    "rotation": (
        "{name} is not rotation-invariant: what it does feature by feature has no meaning for "
        "kernel coordinates. Scale or select features before the kernel."
    ),
    "embedding": (
        "{name} notices dimensions in which nothing happens: a parameter that goes by the number "
        "of features, or an inverse that does not exist there, must be set by hand."
    ),
    "pca": "{name} says something else of full-rank principal components than of the points.",
    "span": (
        "{name} also looks at what leaves the span of the training points: kernelized, it answers "
        "for the projections of new points."
    ),
}


@dataclass(frozen=True)
class Condition:
    """One condition of the KPCA trick, tried out.

    Parameters
    ----------
    name : str
        'translation', 'rotation', 'embedding', 'pca' or 'span'.
    holds : bool
        Whether the result stayed the same.
    change : float
        By how much it changed; infinite where the estimator raised an error.
    sentence : str
        What that means, and what to do about it.
    """

    name: str
    holds: bool
    change: float
    sentence: str

    @classmethod
    def judged(cls, name: str, blamed: Any, change: float, tol: float, error: str) -> Condition:
        """The condition from the change measured, with the estimator to be named."""
        holds = change <= tol
        sentence = (_HOLDS if holds else _FAILS)[name].format(name=type(blamed).__name__)
        if error:
            sentence += f" It raised {error}"
        return cls(name, holds, change, sentence)


@dataclass(frozen=True, repr=False)
class KernelizableReport:
    """What :func:`check_kernelizable` found.

    Parameters
    ----------
    estimator, tol : estimator, float
        The estimator that was tried, and the change up to which a condition holds.
    conditions : tuple of Condition
        One for each experiment.
    floor : float
        Change by noise of the size of round-off, in the original coordinates.
    constant : bool
        Whether the estimator says the same of all points, so that nothing could be seen.
    """

    estimator: Any
    conditions: tuple[Condition, ...]
    tol: float
    floor: float
    constant: bool

    @property
    def kernelizable(self) -> bool:
        """Whether ``Kernelized(estimator)`` is the estimator's kernel version, as far as seen."""
        return not self.undecided and not self.failed

    @property
    def undecided(self) -> bool:
        """Whether these data can tell nothing: all answers alike, or chaotic."""
        return self.constant or self.floor > self.tol

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the decisive conditions that fail."""
        return tuple(name for name in DECISIVE if not self[name].holds)

    def __getitem__(self, name: str) -> Condition:
        found = {condition.name: condition for condition in self.conditions}
        if name not in found:
            raise KeyError(f"Got {name!r}, but expected one of {', '.join(found)}.")
        return found[name]

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        if self.constant:
            return "Its result is the same for all points, so nothing can be seen: pass other data."
        if self.undecided:
            return f"Round-off alone changes its result by {self.floor:.0e}: nothing can be told."
        if not self.kernelizable:
            return f"Not kernelizable as it is: see {', '.join(self.failed)}."
        return "Kernelizable: run on kernel coordinates it is its kernel version."

    def __repr__(self) -> str:
        lines = [" ".join(repr(self.estimator).split()), self.verdict, ""]
        for c in self.conditions:
            mark = "holds" if c.holds else "fails"
            lines.append(f"  {c.name:<12}{mark}   {_amount(c.change):>8}   {c.sentence}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{c.name}</td><td>{'holds' if c.holds else '<b>fails</b>'}</td>"
            f"<td>{_amount(c.change)}</td><td>{escape(c.sentence)}</td></tr>"
            for c in self.conditions
        )
        name = escape(" ".join(repr(self.estimator).split()))
        head = "<tr><th>condition</th><th></th><th>change</th><th>meaning</th></tr>"
        return f"<p><code>{name}</code>: {escape(self.verdict)}</p><table>{head}{rows}</table>"


def _amount(change: float) -> str:
    return "error" if change == float("inf") else f"{change:.1e}"
