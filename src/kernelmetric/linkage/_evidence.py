"""What agreement of a field is worth: Fellegi and Sunter's weights, and their logistic correction.

How frequent levels of agreement are among matches and among the others is learned without labels
where there are none. Labelled pairs teach how far to trust each field, and many of them what fields
say together.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from kernelmetric.kernels import RBF
from kernelmetric.linkage._decision import LinkModel, TextModel, design, learned_decision, logistic
from kernelmetric.spaces import Nystroem

CUTS = np.array([0.7, 0.85, 1 - 1e-6])  # levels: below, between, equal
N_LEVELS = len(CUTS) + 1
LEVELS = ["different", "alike", "nearly equal", "equal"]
_SMOOTH = 0.5  # pairs that each level is given in advance
_TOL, _MAX_ITER = 1e-5, 300
_LEAST = 1e-7  # share of matches
_MOST_JUDGED = 4_000  # candidates with texts that tell the share of matches
_MANY = 50  # labelled pairs that a kernel can learn from
_LANDMARKS, _GAMMA = 200, 1.0  # fields are alike from 0 to 1
# Precisions of the weights around what evidence alone says: of the constant, of the trust in all
# evidence, of the trust in a field, of how alike a field is, and of the kernel expansion. Labels
# fewer than the constant's precision move it little: ten must not do harm.
_PRECISION = (3.0, 4.0, 10.0, 1.0, 0.1)
_START = (0.0, 1.0, 0.0, 0.0, 0.0)  # what evidence alone says


@dataclass(frozen=True)
class Agreement:
    """What levels of agreement add to the log odds of a match, (n_fields, n_levels)."""

    weights: np.ndarray
    constant: float  # where as many candidates match as do not
    match_share: float  # of the candidates


@dataclass(frozen=True)
class Doubt:
    """What candidates in doubt look like: the point about which labels turn the weights."""

    evidence: np.ndarray
    alike: np.ndarray


@dataclass(frozen=True)
class MatchModel(LinkModel):
    """The log odds of a match: b + Σ w_f evidence_f + Σ v_f (s_f - doubt_f) + g(s)."""

    agreement: Agreement
    doubt: Doubt
    match_share: float
    constant: float  # without the log odds of the share
    weights: np.ndarray
    alike_weights: np.ndarray
    space: Any = None  # that of g, a kernel expansion, where the labels are many
    space_weights: Any = None

    def odds(self, S: np.ndarray) -> np.ndarray:
        """The log odds of a match where as many pairs match as do not."""
        evidence = evidence_of(self.agreement.weights, levels_of(S))
        odds = self.constant + evidence @ self.weights
        odds += _filled(S, self.doubt.alike) @ self.alike_weights
        return odds if self.space is None else odds + self._together(S)

    def probability(self, S: np.ndarray) -> np.ndarray:
        """Of a match, for pairs whose fields are so alike."""
        return expit(self.odds(S) + logit(self.match_share))

    def shares(self, S: np.ndarray) -> np.ndarray:
        """Log odds before any field is compared, and what each field adds: (n, 1 + n_fields).

        Of the kernel expansion, a field adds what is lost where it is missing; what fields say
        together, and none of them alone, is shared out equally.
        """
        evidence = evidence_of(self.agreement.weights, levels_of(S)) * self.weights
        shares = np.empty((len(S), 1 + S.shape[1]))
        shares[:, 0] = self.constant + logit(self.match_share)
        shares[:, 1:] = evidence + _filled(S, self.doubt.alike) * self.alike_weights
        if self.space is not None:
            whole, none = self._together(S), self._together(np.full_like(S, np.nan))
            alone = np.empty(S.shape)
            for field in range(S.shape[1]):
                without = S.copy()
                without[:, field] = np.nan
                alone[:, field] = whole - self._together(without)
            rest = whole - none - alone.sum(axis=1)
            shares[:, 0] += none
            shares[:, 1:] += alone + rest[:, None] / S.shape[1]
        return shares

    def _together(self, S: np.ndarray) -> np.ndarray:
        return self.space.transform(pair_points(S, self.doubt.alike)) @ self.space_weights


class Found(NamedTuple):
    """Candidates of tables, compared: all that is needed to learn, with other labels again."""

    S: np.ndarray
    begin: float  # the share of matches to begin with
    S_random: np.ndarray | None = None  # of pairs that stand for all
    candidate_share: float = 1.0  # of all pairs
    comparison: Any = None
    candidates: Any = None
    step: int = 1  # every so many of them are in S
    compare: Any = None  # what gives the rows of S for other pairs
    start: TextModel | None = None  # what the candidates teach, where there are texts

    @property
    def points(self) -> np.ndarray:
        """Candidates as points, near where they look alike."""
        if self.start is None:
            return pair_points(self.S, 0.5)
        line = self.start.line
        return line.points(design(self.S, self.start.n_fields)) * line.coef

    def learn(
        self,
        S_known: np.ndarray,
        same: np.ndarray,
        share: float | None = None,
        *,
        by_kind: bool = True,
        groups: Any = (),
    ) -> Any:
        """What labelled pairs that are so alike teach beside the candidates.

        Labels of one group are held out together, where labels judge what to believe.
        """
        if self.start is None:
            return self._learn_fields(S_known, same, share, by_kind)
        if not len(same):
            return self.start if share is None else replace(self.start, match_share=share)
        n, ratio = self.start.n_fields, float(logit((same.sum() + 0.5) / (len(same) + 1)))
        own = self._replace(S=self.S[:, :n])
        model = learned_decision(
            self.start,
            lambda rows: own._learn_fields(S_known[rows, :n], same[rows], share, by_kind),
            S_known, same, groups, ratio, by_kind,
        )  # fmt: skip
        odds = model.odds(self.S[:: -(-len(self.S) // _MOST_JUDGED)])
        if by_kind:
            matching = self.start.match_share if share is None else share
            if share is None and min(same.sum(), (1 - same).sum()) >= _MANY:
                matching = _share_of(odds - ratio, matching)
            return replace(model, constant=model.constant - ratio, match_share=matching)
        matching = float(np.clip(np.mean(expit(odds)), _LEAST, 1 - _LEAST))
        constant = model.constant - float(logit(matching))
        return replace(model, constant=constant, match_share=matching if share is None else share)

    def _learn_fields(
        self, S_known: np.ndarray, same: np.ndarray, share: float | None, by_kind: bool
    ) -> MatchModel:
        """What they teach by Fellegi and Sunter's model."""
        found = self._agreement(levels_of(S_known), same, share)
        model = _with_weights(found, _doubt(found, self.S), S_known, same, by_kind)
        if share is not None or not len(same):
            return model
        if not by_kind:
            matching = float(np.clip(np.mean(model.probability(self.S)), _LEAST, 1 - _LEAST))
            moved = logit(found.match_share) - logit(matching)
            return replace(model, match_share=matching, constant=float(model.constant + moved))
        if len(same) >= _MANY:
            # What the labels taught tells matches apart better, and so counts them better.
            return replace(model, match_share=_share_of(model.odds(self.S), found.match_share))
        return model

    def _agreement(self, labelled: np.ndarray, same: np.ndarray, share: float | None) -> Agreement:
        """What each level of agreement is worth: a mean of two opinions.

        One takes the candidates as they are, and misses records with many slips. The other compares
        with pairs drawn from all, and takes a family at one address for one person: it counts the
        less the more matches it sees beyond the first.
        """
        # Most candidates have the levels of others: each combination is looked at once.
        patterns, counts = np.unique(levels_of(self.S), axis=0, return_counts=True)
        opinions: list[tuple[np.ndarray | None, float]] = [(None, 1.0)]
        if self.S_random is not None:
            u = _normalized(_SMOOTH + _frequencies(levels_of(self.S_random)))
            # Of one field the first has no single solution.
            opinions = [*opinions, (u, self.candidate_share)][patterns.shape[1] == 1 :]
        found = [
            frequencies(patterns, counts, labelled, same, self.begin, share, u, part)
            for u, part in opinions
        ]
        (m, u, near), (m_far, u_far, far) = found[0], found[-1]
        trust = min(1.0, near / far) ** 2
        weights = (1 - trust) * np.log(m / u) + trust * np.log(m_far / u_far)
        constant = float((1 - trust) * logit(near) + trust * logit(opinions[-1][1] * far))
        matching = np.average(
            expit(constant + evidence_of(weights, patterns).sum(axis=1)), weights=counts
        )
        matching = float(np.clip(matching, _LEAST, 1 - _LEAST))
        return Agreement(weights, constant - logit(matching), matching if share is None else share)


def _doubt(found: Agreement, S: np.ndarray) -> Doubt:
    evidence, there = evidence_of(found.weights, levels_of(S)), np.isfinite(S)
    p = expit(evidence.sum(axis=1) + found.constant + logit(found.match_share))
    doubt = np.maximum(p * (1 - p), 1e-12)
    known = np.maximum(doubt @ there, 1e-300)  # of a field that is always missing nothing
    return Doubt(doubt @ evidence / doubt.sum(), doubt @ np.where(there, S, 0) / known)


def _with_weights(
    found: Agreement, doubt: Doubt, S: np.ndarray, same: np.ndarray, by_kind: bool
) -> MatchModel:
    """The model whose weights labelled pairs have moved; gathered by kind, not its constant."""
    points = pair_points(S, doubt.alike)
    evidence = evidence_of(found.weights, levels_of(S))
    space, Z = None, np.empty((len(S), 0))
    distinct = np.unique(points, axis=0)
    if len(same) >= _MANY and len(distinct) > 2:
        chosen = np.random.RandomState(0).permutation(len(distinct))[:_LANDMARKS]
        space = Nystroem(kernel=RBF(gamma=_GAMMA), landmarks=distinct[chosen])
        Z = space.fit_transform(points)
    share, offset = float(logit(found.match_share)), 0.0
    if by_kind:  # labelled pairs have a share of matches of their own
        offset = float(logit((same.sum() + 0.5) / (len(same) + 1))) - share
    constant = found.constant + share
    total = evidence.sum(axis=1, keepdims=True) + constant
    parts = [np.ones_like(total), total, evidence - doubt.evidence, _filled(S, doubt.alike), Z]
    sizes = [part.shape[1] for part in parts]
    start, precision = np.repeat(_START, sizes), np.repeat(_PRECISION, sizes)
    theta = logistic(np.hstack(parts), same, start, precision, offset)
    b, scale, w, v, g = np.split(theta, np.cumsum(sizes)[:-1])
    moved = float((b + scale * constant)[0] - w @ doubt.evidence - share)
    expansion = (space, g) if space is not None else ()
    return MatchModel(found, doubt, found.match_share, moved, scale + w, v, *expansion)


def _share_of(odds: np.ndarray, share: float) -> float:
    """The share of matches that the log odds of many pairs speak for (Saerens et al., 2002)."""
    for _ in range(_MAX_ITER):
        before, share = share, float(np.mean(expit(odds + logit(share))))
        share = float(np.clip(share, _LEAST, 1 - _LEAST))
        if abs(share - before) < _TOL * share:
            break
    return share


def _filled(S: np.ndarray, middle: Any) -> np.ndarray:
    return np.where(np.isnan(S), 0.0, S - middle)


def pair_points(S: np.ndarray, middle: Any) -> np.ndarray:
    """Pairs as points of the kernel: how alike their fields are, and which are missing."""
    return np.hstack([_filled(S, middle), 0.5 * np.isnan(S)])


def evidence_of(weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The weight of every field of every pair; 0 where it is missing."""
    table = np.column_stack([weights, np.zeros(len(weights))])
    return np.take_along_axis(table, levels.T, axis=1).T  # level -1 is the last column


def levels_of(S: np.ndarray) -> np.ndarray:
    """Levels of agreement from 0, -1 where a side is missing."""
    levels = np.searchsorted(CUTS, S.ravel(), side="right").reshape(S.shape).astype(np.int8)
    levels[np.isnan(S)] = -1
    return levels


def frequencies(
    patterns: np.ndarray,
    counts: np.ndarray,
    labelled: np.ndarray,
    same: np.ndarray,
    begin: float,
    share: float | None = None,
    u: np.ndarray | None = None,
    part: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, float]:
    """How frequent levels are among matches and among others, and the share of matches.

    Expectation maximisation for the mixture of the two, labels held fixed. With ``u``, the
    frequencies among others are known, and ``part`` of the population are patterns.
    Winkler, "Using the EM algorithm for weight computation in the Fellegi-Sunter model", 1988.
    """
    known_m = _frequencies(labelled, same.astype(float))
    known_u = _frequencies(labelled, 1.0 - same)
    first = np.tile(np.arange(1.0, N_LEVELS + 1) ** 2, (patterns.shape[1], 1))
    m, fixed = _normalized(first + known_m), u
    if u is None:
        u = _normalized(_SMOOTH + _frequencies(patterns, counts.astype(float)))
    now = begin if share is None else share
    for _ in range(_MAX_ITER):
        odds = evidence_of(np.log(m / u), patterns).sum(axis=1)
        p = expit(odds + logit(part * now))
        before = m, now
        m = _normalized(_SMOOTH + known_m + _frequencies(patterns, counts * p))
        if fixed is None:
            u = _normalized(_SMOOTH + known_u + _frequencies(patterns, counts * (1 - p)))
        if share is None:
            now = float(np.clip(np.average(p, weights=counts), _LEAST, 1 - _LEAST))
        if np.max(np.abs(m - before[0])) + abs(now - before[1]) < _TOL:
            break
    return m, u, now


def _frequencies(levels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Weighted counts of the levels of every field; missing ones are in none."""
    counts = np.empty((levels.shape[1], N_LEVELS))
    for field, column in enumerate(levels.T):
        counts[field] = np.bincount(column + 1, weights, minlength=N_LEVELS + 1)[1:]
    return counts


def _normalized(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(axis=1, keepdims=True)
