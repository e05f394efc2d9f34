"""Whom to ask about which pairs: a session of questions that learns from every few answers."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from kernelmetric.evaluation import pairs_to_label
from kernelmetric.linkage._fields import as_tables
from kernelmetric.linkage._known import groups_of
from kernelmetric.linkage._linker import RecordLinker, found_candidates

_EVERY = 5  # answers between two fits


class Expected(NamedTuple):
    """What links at 0.5 are expected to be worth, by the model's own probabilities.

    See Also
    --------
    kernelmetric.linkage.RecordLinker : Says what to expect.
    """

    n_answers: int
    n_matches: float
    precision: float
    recall: float
    f1: float


class LabellingSession:
    """Asks about pairs of records, one after the other, and learns from the answers.

    Every five answers the model learns again, and chooses the next pairs: in doubt, unlike those
    that were answered (:func:`~kernelmetric.evaluation.pairs_to_label`).

    Parameters
    ----------
    left, right : DataFrame or list of dict
        Records of two tables; without ``right``, copies inside ``left`` are looked for.
    linker : RecordLinker, default=None
        How records are compared and candidates found; it is not changed.
    random_state : int, RandomState instance or None, default=0
        Source of the choice.

    Attributes
    ----------
    answers : list of (int, int, bool or None)
        Row numbers and whether the two are the same, None where that was not sure; in order.
    curve : list of Expected
        How good the links were expected to be, after every fit.

    See Also
    --------
    kernelmetric.linkage.RecordLinker : Learns from the labels.

    Examples
    --------
    >>> from kernelmetric.datasets import make_records
    >>> from kernelmetric.linkage import LabellingSession
    >>> records, person = make_records(60, random_state=0)
    >>> session = LabellingSession(records)  # doctest: +SKIP
    >>> for _ in range(20):  # doctest: +SKIP
    ...     i, j = session.question()
    ...     session.answer(i, j, person[i] == person[j])
    >>> session.linker().links().to_frame().head()  # doctest: +SKIP
    """

    def __init__(self, left: Any, right: Any = None, linker: Any = None, *, random_state: Any = 0):
        self._left, self._right = as_tables(left, right)
        self._linker = RecordLinker() if linker is None else clone(linker)
        self._rng = check_random_state(random_state)
        self._found = found_candidates(
            self._left, self._right, self._linker.comparison, self._linker.rules
        )
        self._pairs = self._found.candidates[:: self._found.step]
        self._place = {(int(i), int(j)): place for place, (i, j) in enumerate(self._pairs)}
        self._points = self._found.points
        self._queue: list[int] = []
        self._learned_from: list[Any] | None = None
        self.answers: list[tuple[int, int, bool | None]] = []
        self.curve: list[Expected] = []
        self._refit()

    @property
    def n_candidates(self) -> int:
        """How many pairs may be asked about."""
        return len(self._pairs)

    def question(self) -> tuple[int, int] | None:
        """The pair to ask about next; the same until it is answered. None where all are.

        Returns
        -------
        (int, int) or None
            Row numbers.
        """
        asked = {pair[:2] for pair in self.answers}
        self._queue = [k for k in self._queue if self._named(k) not in asked]
        if not self._queue:
            self._refit()
            known = [self._place[pair] for pair in asked if pair in self._place]
            if len(known) == len(self._pairs):
                return None
            self._queue = pairs_to_label(
                self._probability, self._points, _EVERY, known=known, random_state=self._rng
            ).tolist()
        return self._named(self._queue[0])

    def answer(self, i: int, j: int, same: bool | None) -> None:
        """Note an answer.

        Parameters
        ----------
        i, j : int
            Row numbers.
        same : bool or None
            Whether they are the same; None where that is not sure: it is not asked again, and
            nothing is learned from it.
        """
        i, j = (int(i), int(j)) if self._right is not None else sorted((int(i), int(j)))
        size = len(self._left), len(self._left if self._right is None else self._right)
        if not (0 <= i < size[0] and 0 <= j < size[1]) or (self._right is None and i == j):
            raise ValueError(
                f"Got the pair {(i, j)}, but expected row numbers of two different records, "
                f"below {size}."
            )
        if any(pair[:2] == (i, j) for pair in self.answers):
            raise ValueError(f"Got a second answer for {(i, j)}: take the first one back, undo().")
        self.answers.append((i, j, None if same is None else bool(same)))

    def undo(self) -> tuple[int, int] | None:
        """Take the last answer back; its pair is the next question.

        Returns
        -------
        (int, int) or None
            The pair, None where there was no answer.
        """
        if not self.answers:
            return None
        i, j, _ = self.answers.pop()
        if (i, j) in self._place:
            self._queue.insert(0, self._place[i, j])
        self.curve = [point for point in self.curve if point.n_answers <= len(self.answers)]
        return i, j

    def probability(self, i: int, j: int) -> float | None:
        """Of a match, by what was learned last; None for a pair that is no candidate.

        Parameters
        ----------
        i, j : int
            Row numbers.

        Returns
        -------
        float or None
            From 0 to 1.
        """
        place = self._place.get((int(i), int(j)))
        return None if place is None else float(self._probability[place])

    def expected(self) -> Expected:
        """How good links at 0.5 would be, if the probabilities are right.

        Returns
        -------
        Expected
            After the last fit.
        """
        p = self._probability
        linked = p >= 0.5
        n, hits, total = int(linked.sum()), float(p[linked].sum()), float(p.sum())
        return Expected(
            len(self._learned_from or ()), self._found.step * total, hits / max(n, 1),
            hits / max(total, 1e-300), 2 * hits / max(n + total, 1e-300),
        )  # fmt: skip

    def linker(self) -> RecordLinker:
        """The linker, fitted on the tables with all answers.

        Returns
        -------
        RecordLinker
            A new one.
        """
        sure = self._sure()
        pairs, same = ([p[:2] for p in sure], [p[2] for p in sure]) if sure else (None, None)
        return clone(self._linker).fit(self._left, self._right, pairs, same, by_kind=False)

    def _named(self, place: int) -> tuple[int, int]:
        i, j = self._pairs[place]
        return int(i), int(j)

    def _sure(self) -> list[tuple[int, int, bool | None]]:
        return [answer for answer in self.answers if answer[2] is not None]

    def _refit(self) -> None:
        if self._learned_from == self.answers:
            return
        sure = self._sure()
        same = np.array([answer[2] for answer in sure], dtype=bool)
        known = np.array([answer[:2] for answer in sure], dtype=np.intp).reshape(-1, 2)
        groups = groups_of(known, self._right is not None)
        share = self._linker.match_share
        S = self._found.compare(known)
        model = self._found.learn(S, same, share, by_kind=False, groups=groups)
        self._probability = model.probability(self._found.S)
        self._learned_from = list(self.answers)
        self.curve = [p for p in self.curve if p.n_answers < len(self.answers)]
        self.curve.append(self.expected())
