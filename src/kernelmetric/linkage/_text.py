"""Evidence from text: what two records say in common, what only one says, and who says it better.

Every field of letters is a scope, and so is the whole record, in which a value that slipped into
another field is found, and a column that only one table has counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelmetric.compute import map_rows
from kernelmetric.linkage._bags import Bag, Frequencies, counted, largest, sums, unit, weighed
from kernelmetric.linkage._fields import coded_texts, column_of
from kernelmetric.linkage._parts import PARTS, PartedTexts
from kernelmetric.linkage._words import folded, lists_names, names_of

WHOLE = "whole record"
_MOST_SCOPES = 8  # fields that are scopes, the fullest: others are in the whole record
_LOOKED_AT = 2_000  # texts that tell whether a field lists names
_AT_ONCE = 20_000  # pairs
_BAGS = (
    "words alike", "letters alike", "words in both", "left words in right", "right words in left",
    "rarest word in both", "rarest word on the left alone", "rarest word on the right alone",
)  # fmt: skip
_NAMES = ("names in both", "names that differ")
_SIDES = ("beside other partners of the left", "beside other partners of the right")
_RIVALS = _BAGS[:2]  # in which a pair is compared with the other candidates of its records
# Of the candidates of each record, (n, columns): the two largest values, and with whom the largest.
Rivals = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class TextEvidence:
    """What was learned of texts before any label: how rare words and letters are, scope by scope.

    Parameters
    ----------
    scopes : dict of str to (Frequencies, Frequencies)
        Of words and of three letters.
    columns : list of str
        What the whole record is made of, where a table has it.
    parted : list of str
        Scopes that are looked through for model numbers, numbers, years and spellings.
    listed : list of str
        Fields that list names.
    """

    scopes: dict[str, tuple[Frequencies, Frequencies]]
    columns: list[str]
    parted: list[str]
    listed: list[str]

    @property
    def names(self) -> list[tuple[str, str]]:
        """Scope and evidence of every column."""
        names = [(scope, column) for scope in self.scopes for column in _BAGS]
        names += [(scope, column) for scope in self.parted for column in PARTS]
        names += [(field, column) for field in self.listed for column in _NAMES]
        rivals = [(scope, each) for scope in self.scopes for each in _RIVALS]
        return names + [(scope, f"{each} {side}") for side in _SIDES for scope, each in rivals]

    def columns_of(self, scope: str) -> list[str]:
        """What a scope is made of."""
        return self.columns if scope == WHOLE else [scope]

    def counted_in(self, tables: Iterable[Any]) -> TextEvidence:
        """The same, where words and letters are as rare as in these tables, one after the other."""
        scopes: dict[str, Any] = dict.fromkeys(self.scopes, ())
        for table in tables:
            for scope, before in scopes.items():
                found = counted([_folded(table, self.columns_of(scope))])
                scopes[scope] = tuple(map(Frequencies.and_in, before, found)) if before else found
        return replace(self, scopes=scopes)


def learned_of(left: Any, right: Any, kinds: Mapping[str, str], *, chosen: bool) -> TextEvidence:
    """How rare the words of two tables are; of chosen columns alone, or of all that they have."""
    columns = list(dict.fromkeys(list(left.columns) + list(right.columns)))
    columns = [name for name in columns if not chosen or name in kinds]
    spoken = [name for name, kind in kinds.items() if kind in ("text", "long_text", "code")]
    texts = {name: [_folded(table, [name]) for table in (left, right)] for name in spoken}
    full = {name: sum(map(bool, a)) + sum(map(bool, b)) for name, (a, b) in texts.items()}
    fullest = sorted(spoken, key=lambda name: -full[name])[:_MOST_SCOPES]
    kept = {name: texts[name] for name in spoken if name in fullest and len(spoken) > 1}
    listed = [
        name
        for name, sides in kept.items()
        if kinds[name] != "code" and lists_names([t for t in sides[0] + sides[1] if t][:_LOOKED_AT])
    ]
    kept[WHOLE] = [_folded(table, columns) for table in (left, right)]
    long = [name for name in kept if kinds.get(name) == "long_text" and name not in listed]
    two = 1 if right is left else 2  # records of one table count once
    scopes = {name: counted(sides[:two]) for name, sides in kept.items()}
    return TextEvidence(scopes, columns, [*long[:1], WHOLE], listed)


class Texts:
    """The texts of two tables, ready to be compared pair by pair."""

    def __init__(self, evidence: TextEvidence, left: Any, right: Any, candidates: Any):
        self.evidence = evidence
        self._sides: dict[str, tuple[Any, ...]] = {}
        self._parts: dict[str, PartedTexts] = {}
        self._names: dict[str, Any] = {}
        for scope, rarity in evidence.scopes.items():
            sides = [_folded(table, evidence.columns_of(scope)) for table in (left, right)]
            bag, n = Bag(sides[0] + sides[1]), len(left)
            words, W = bag.of_words()
            weights = rarity[0].rarity(words)
            grams, G = bag.of_letters()
            U, V = unit(weighed(W, weights)), unit(weighed(G, rarity[1].rarity(grams)))
            self._sides[scope] = (W[:n], W[n:], weights, U[:n], U[n:], V[:n], V[n:])
            if scope in evidence.parted:
                self._parts[scope] = PartedTexts(sides, words, W, weights)
            if scope in evidence.listed:
                self._names[scope] = [[set(names_of(text)) for text in side] for side in sides]
        known = isinstance(candidates, list)
        self.rivals: list[Rivals] = candidates if known else self._best_two(candidates)

    def columns(self, pairs: np.ndarray) -> np.ndarray:
        """All evidence on some pairs."""
        own = self._alike(pairs)
        parts = [self._of_bags(scope, own, k, pairs) for k, scope in enumerate(self._sides)]
        parts += [each.columns(pairs) for each in self._parts.values()]
        parts += [self._of_names(field, pairs) for field in self._names]
        parts += [self._margins(own, pairs, side) for side in (0, 1)]
        return np.hstack(parts)

    def each_others_best(self, pairs: np.ndarray) -> np.ndarray:
        """Which pairs' whole records have more letters in common than any rival of either."""
        at = 2 * list(self._sides).index(WHOLE) + 1
        own = self._alike(pairs)
        margins = [self._margins(own, pairs, side)[:, at] for side in (0, 1)]
        return np.minimum(*margins) > 0

    def says(self, place: int, value: float, i: int, j: int) -> str:
        """In words what a column of evidence found in a pair."""
        scope, column = self.evidence.names[place]
        said = self._parts[scope].says(column, value, i, j) if scope in self._parts else None
        return f"{value:.3g}" if said is None else said

    def _alike(self, pairs: np.ndarray) -> np.ndarray:
        """Cosines of words and of letters of every scope, (n_pairs, 2 n_scopes)."""

        def work(rows: slice) -> np.ndarray:
            i, j = pairs[rows].T
            found = []
            for _, _, _, U, U2, V, V2 in self._sides.values():
                found += [sums(U[i] * U2[j]), sums(V[i] * V2[j])]
            return np.stack(found, axis=1)

        return map_rows(work, len(pairs), 4000.0 * len(self._sides), most=_AT_ONCE)

    def _of_bags(self, scope: str, own: np.ndarray, k: int, pairs: np.ndarray) -> np.ndarray:
        A, B, weights = self._sides[scope][:3]
        i, j = pairs.T
        P, Q = weighed(A[i], weights), weighed(B[j], weights)
        both = P * B[j]
        alone = [P - both, Q - both]
        for each in alone:
            each.eliminate_zeros()
        p, q, shared = sums(P), sums(Q), sums(both)
        shares = [shared / np.maximum(total, 1e-9) for total in (p + q - shared, p, q)]
        rarest = [largest(each.tocsr()) for each in (both, *alone)]
        return np.column_stack([own[:, 2 * k : 2 * k + 2], *shares, *rarest])

    def _of_names(self, field: str, pairs: np.ndarray) -> np.ndarray:
        left, right = self._names[field]
        found = np.zeros((len(pairs), 2))
        for k, (i, j) in enumerate(pairs.tolist()):
            p, q = sorted((left[i], right[j]), key=len)
            hits = sum(any(_one_name(name, other) for other in q) for name in p)
            found[k] = hits / max(len(p), 1), len(p) - hits
        return found

    def _best_two(self, candidates: np.ndarray) -> list[Rivals]:
        """Of each record of each side the two largest values, and with whom the largest is."""
        values = self._alike(candidates)
        sizes = [next(iter(self._sides.values()))[k].shape[0] for k in (0, 1)]
        found: list[Rivals] = []
        for side, n in enumerate(sizes):
            at, (first, second) = candidates[:, side], np.zeros((2, n, values.shape[1]))
            whom = np.full((n, values.shape[1]), -1)
            for k, column in enumerate(values.T):
                order = np.lexsort((column, at))  # of a record, what is written last stays
                first[at[order], k], whom[at[order], k] = column[order], candidates[order, 1 - side]
                below = order[:-1][np.diff(at[order]) == 0]
                second[at[below], k] = column[below]
            found.append((first, second, whom))
        return found

    def _margins(self, own: np.ndarray, pairs: np.ndarray, side: int) -> np.ndarray:
        """How much more alike than the best other candidate of its record on a side."""
        first, second, whom = self.rivals[side]
        at = pairs[:, side]
        best = whom[at] == pairs[:, 1 - side, None]
        return own - np.where(best, second[at], first[at])


def _one_name(a: tuple[str, str], b: tuple[str, str]) -> bool:
    """Whether last names are equal, and initials where both have one."""
    return a[0] == b[0] and (a[1] == b[1] or not (a[1] and b[1]))


def _folded(table: Any, columns: list[str]) -> list[str]:
    """The texts of some columns together, of those that the table has."""
    lines = [""] * len(table)
    for name in columns:
        if name in table.columns:
            codes, texts = coded_texts(column_of(table, name))
            more = np.array([*map(folded, texts), ""], dtype=object)[codes]
            lines = [
                f"{old} {new}" if old and new else old or new
                for old, new in zip(lines, more, strict=True)
            ]
    return lines
