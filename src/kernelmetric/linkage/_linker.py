"""From two tables to the records that they share: candidates, comparison, probability, links."""

import math
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kernelmetric._warnings import warn
from kernelmetric.compute import map_rows
from kernelmetric.compute.rates import most_in_time
from kernelmetric.compute.watch import time_left, told_once, warn_of_limit
from kernelmetric.inputs._parameters import SHARE, Numbers
from kernelmetric.linkage._candidates import candidate_pairs
from kernelmetric.linkage._compared import checked_pairs
from kernelmetric.linkage._comparisons import RecordComparison
from kernelmetric.linkage._decision import TextModel, guessed
from kernelmetric.linkage._evidence import CUTS, LEVELS, Found
from kernelmetric.linkage._fields import as_tables
from kernelmetric.linkage._known import cross_fitted, groups_of, labelled
from kernelmetric.linkage._links import Links, link

_MOST_UNLABELLED = 200_000  # candidates that frequencies are learned from, evenly spread
_MOST_IN_FOLDS = 20_000  # of these, where labels are held out
_DRAWN = 50_000  # pairs that stand for all
_AT_ONCE = 200_000  # pairs whose comparisons are in memory
_TIMED = 500  # records whose candidates tell how long others take: a little less, all in all


@dataclass(eq=False, repr=False)
class RecordLinker(BaseEstimator):
    r"""Finds the records of two tables, or of one, that mean the same.

    Candidates are compared field by field. How often fields agree among matches and among other
    pairs is learned without labels, by Fellegi and Sunter's model. The log odds of a match are

    .. math:: b + \sum_f w_f \log \frac{m_f}{u_f} + \sum_f v_f s_f + g(s),

    with m and u these frequencies at the field's level of agreement and s how alike the fields
    are. Without labels w = 1, v = 0 and g = 0. Labelled pairs move w, v and b away from there,
    against a penalty; from 50 of them on, a kernel expansion g learns which fields must agree
    together. Where no candidate reaches a probability of 0.5 a warning says so.

    Where a column has long texts, such as titles of products, pairs are compared by their words,
    letters, model numbers and numbers as well, and with the other candidates of their records
    (:meth:`RecordComparison.between`). Without labels, candidates that are each other's best
    stand for matches, and a logistic regression learns from them. Labels move it; from 20 of each
    kind on they teach boosted trees too. How much regression, trees and the model above count is
    what makes the cross-fitted log-loss least, which also calibrates the probabilities. Pairs
    labelled twice count by the share of their answers.

    Parameters
    ----------
    comparison : RecordComparison, default=None
        How fields are compared; None sees from the values.
    rules : sequence, default=None
        Rules of :func:`candidate_pairs`; None means ``[NearestText()]``.
    match_share : float, default=None
        The part of the candidates that match, where it is known; None learns it.

    Attributes
    ----------
    comparison_ : RecordComparison
        The fields and their kinds.
    candidates_ : ndarray of shape (n_candidates, 2)
        Row numbers of the pairs compared.
    probability_ : ndarray of shape (n_candidates,)
        Of each that it is a match.
    match_share_ : float
        The part of the candidates that match.
    model_ : MatchModel or TextModel
        What was learned: ``agreement`` with log(m / u), ``constant``, ``weights`` and
        ``alike_weights``: b, w and v. See :meth:`weights` and :meth:`reasons`. With texts, a
        ``line``, ``trees``, the model of ``fields``, and the ``counts`` of the three.
    labelled_pairs_, labelled_same_ : ndarray of shape (n_labelled, 2) and (n_labelled,)
        The pairs learned from, each once, and which match.
    labelled_probability_ : ndarray of shape (n_labelled,), or None
        For each labelled pair the probability from others that share no record with it (no
        left record, where nearly all pairs are connected), for thresholds. None where the labels
        are too few, or the time limit was over.

    See Also
    --------
    kernelmetric.linkage.LabellingSession : Which pairs to label next.
    kernelmetric.linkage.candidate_pairs : Which pairs it looks at.
    kernelmetric.linkage.RecordComparison : How it compares them.

    References
    ----------
    Fellegi and Sunter, "A theory for record linkage", JASA 1969.

    Examples
    --------
    >>> from kernelmetric.datasets import make_records
    >>> from kernelmetric.linkage import RecordLinker
    >>> records, person = make_records(100, random_state=0)
    >>> linker = RecordLinker().fit(records)  # doctest: +SKIP
    >>> linker.links(threshold=0.9).to_frame().head()  # doctest: +SKIP
    """

    comparison: RecordComparison | None = None
    rules: Sequence[Any] | None = None
    _: KW_ONLY
    match_share: float | None = None

    def fit(
        self,
        left: Any,
        right: Any = None,
        pairs: Any = None,
        same: Any = None,
        *,
        by_kind: bool = True,
    ) -> Any:
        """Find candidates and learn what makes a match.

        Parameters
        ----------
        left, right : DataFrame or list of dict
            Records of two tables; without ``right``, copies inside ``left`` are looked for.
        pairs : array-like of shape (n_labelled, 2) or Pairs, default=None
            Pairs that are known, candidates or not. None learns without labels.
        same : array-like of shape (n_labelled,), default=None
            For arrays: 1 or True where the pair is a match, 0, -1 or False where it is not.
        by_kind : bool, default=True
            Whether matches and others were gathered apart, so that their numbers tell nothing of
            the share of matches. False for pairs chosen by what they look like, as
            :class:`LabellingSession` does.

        Returns
        -------
        RecordLinker
            Itself.
        """
        return self._fit(left, right, pairs, same, by_kind)

    @told_once()
    def _fit(
        self, left: Any, right: Any, pairs: Any, same: Any, by_kind: bool, compared: Any = None
    ) -> Any:
        """Learn from tables, or from parts of tables in files, which ``compared`` compares."""
        SHARE._replace(words=(None,)).check(self, "match_share")
        left, right = as_tables(left, right)
        known, same = labelled(pairs, same, left, right)
        some = (left, right) if compared else self._in_time(left, right)
        found = found_candidates(*some, self.comparison, self.rules, compared)
        self.comparison_, self.candidates_ = found.comparison, found.candidates
        if len(some[0]) < len(left) or _width(*some) < _width(left, right):
            found = found._replace(compare=found.comparison.between(left, right, found.candidates))
        S_known, groups = found.compare(known), groups_of(known, right is not None)
        model = self.model_ = found.learn(
            S_known, same, self.match_share, by_kind=by_kind, groups=groups
        )
        self.match_share_ = model.match_share
        self.labelled_pairs_, self.labelled_same_ = known, same > 0.5
        self.n_left_, self.n_right_ = len(left), None if right is None else len(right)
        if found.step == 1:
            self.probability_ = model.probability(found.S)
        else:
            self.probability_ = self._probability(found.compare, found.candidates)
        fewer = found._replace(S=found.S[:: -(-len(found.S) // _MOST_IN_FOLDS)])
        learned = partial(fewer.learn, share=self.match_share, by_kind=by_kind)
        self.labelled_probability_ = cross_fitted(learned, S_known, same, groups)
        if not np.any(self.probability_ >= 0.5):
            cause = "the tables may have no record in common"
            if len(found.comparison.fields_) == 1:
                cause = (
                    f"the column {found.comparison.fields_[0]!r} alone cannot tell copies from "
                    "values that different records share"
                )
            warn(
                f"Of {len(found.candidates)} candidates none is a match with a probability of 0.5: "
                f"{cause}. Try more columns, or label pairs."
            )
        return self

    def predict_proba(self, left: Any, right: Any, pairs: Any) -> np.ndarray:
        """Probabilities that pairs of records, perhaps of new tables, differ or match.

        Parameters
        ----------
        left, right : DataFrame or list of dict
            Tables with the columns of those of :meth:`fit`; ``right`` None for one.
        pairs : array-like of shape (n_pairs, 2)
            Row numbers.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Right where matches are as frequent as among the candidates of :meth:`fit`.
        """
        check_is_fitted(self)
        left, right = as_tables(left, right)
        pairs = checked_pairs(pairs, len(left), _width(left, right))
        p = self._probability(self._between(left, right), pairs)
        return np.column_stack([1 - p, p])

    def links(
        self,
        left: Any = None,
        right: Any = None,
        *,
        threshold: float = 0.5,
        one_to_one: bool = False,
        one_to_many: bool = False,
    ) -> Links:
        """Which records are taken for the same.

        Parameters
        ----------
        left, right : DataFrame or list of dict, default=None
            New tables, whose candidates the same rules find; None means those of :meth:`fit`.
        threshold : float, default=0.5
            The least probability of a link.
        one_to_one, one_to_many : bool, default=False
            For two tables, whether a record has at most one partner: then the links are those of
            the largest probability together. Or whether this is so of the records of the right
            table alone, each with its likeliest: several of them may be of one on the left.

        Returns
        -------
        Links
            With ``clusters()`` and ``to_frame()``.
        """
        check_is_fitted(self)
        Numbers(low=0, high=1).require("threshold", threshold)
        if left is None:
            pairs, p, sizes = self.candidates_, self.probability_, (self.n_left_, self.n_right_)
        else:
            left, right = as_tables(left, right)
            pairs = candidate_pairs(left, right, self.rules)
            p = self._probability(self.comparison_.between(left, right, pairs), pairs)
            sizes = (len(left), None if right is None else len(right))
        ways = {"one_to_one": one_to_one, "one_to_many": one_to_many}
        return link(pairs, p, *sizes, threshold=float(threshold), **ways)

    def weights(self) -> Any:
        """What each level of agreement of each field adds to the log odds of a match.

        Returns
        -------
        DataFrame
            One row a field, one column a level. What the field adds within a level is not in it.
            Where there are texts, one row a piece of evidence, and what the line adds where it is
            one deviation above the mean of the candidates.
        """
        import pandas as pd

        check_is_fitted(self)
        if isinstance(self.model_, TextModel):
            line = self.model_.counts[0] * self.model_.line.coef
            return pd.DataFrame(line, index=self.model_.names, columns=["a deviation"])
        added = self.model_.agreement.weights * self.model_.weights[:, None]
        return pd.DataFrame(added, index=self.comparison_.fields_, columns=LEVELS)

    def reasons(self, left: Any, right: Any, pairs: Any) -> Any:
        """Why pairs are linked or not: what each piece of evidence adds to their log odds.

        The log odds of a pair are a sum over the columns that it is compared by. Of trees, a
        column adds the steps on the way to their leaves that it decides.

        Parameters
        ----------
        left, right : DataFrame or list of dict
            Tables as in :meth:`predict_proba`.
        pairs : array-like of shape (n_pairs, 2)
            Row numbers.

        Returns
        -------
        DataFrame
            Of each pair, by its place in ``pairs``: the evidence, what it says in words, and what
            it adds, the most first; ``adds`` of a pair sum to its log odds. The row 'before
            comparing' is what any pair has.
        """
        import pandas as pd

        check_is_fitted(self)
        left, right = as_tables(left, right)
        pairs = checked_pairs(pairs, len(left), _width(left, right))
        compare = self._between(left, right)
        S = compare(pairs)
        names = ["before comparing", *getattr(self.model_, "names", self.comparison_.fields_)]
        rows: list[tuple[Any, ...]] = []
        for place, (row, shares) in enumerate(zip(S, self.model_.shares(S), strict=True)):
            for k in filter(shares.item, np.argsort(-np.abs(shares), kind="stable")):
                said = compare.says(k - 1, row, pairs[place]) if k else ""
                rows.append((place, names[k], said, shares[k]))
        return pd.DataFrame(rows, columns=["pair", "evidence", "says", "adds"])

    def _between(self, left: Any, right: Any) -> Any:
        """What compares pairs of tables, each beside the candidates of its records."""
        rivals = None
        if self.comparison_.text_ is not None:
            with suppress(ValueError):  # without candidates there are no rivals
                rivals = candidate_pairs(left, right, self.rules)
        return self.comparison_.between(left, right, rivals)

    def _probability(self, compare: Any, pairs: np.ndarray) -> np.ndarray:
        def of(rows: slice) -> np.ndarray:
            return self.model_.probability(compare(pairs[rows]))

        return map_rows(of, len(pairs), 60.0 * len(compare.names), most=_AT_ONCE)

    def _in_time(self, left: Any, right: Any) -> tuple[Any, Any]:
        """The tables, or so many of their first records as the time limit leaves time for."""
        n = len(left) if right is None else max(len(left), len(right))
        if math.isinf(time_left()) or n <= _TIMED:
            return left, right

        def first(k: int) -> tuple[Any, Any]:
            return left.iloc[:k], None if right is None else right.iloc[:k]

        begun = time.monotonic()
        with warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore")
            found_candidates(*first(_TIMED), self.comparison, self.rules)
        each = (time.monotonic() - begun) / _TIMED
        most = most_in_time(lambda k: each * k, n, _TIMED)
        if most < n:
            warn_of_limit(f"RecordLinker at the first {most:,} records: others have no links")
        return first(most)


def found_candidates(
    left: Any, right: Any, comparison: Any, rules: Any, compared: Any = None
) -> Found:
    """Candidates of tables, and how alike their fields are; ``compared`` is told the kinds."""
    comparison = RecordComparison((comparison or RecordComparison()).kinds).fit(left, right)
    candidates = candidate_pairs(left, right, rules)
    if not len(candidates):
        raise ValueError("Got rules that find no candidates: try a wider one.")
    step = -(-len(candidates) // _MOST_UNLABELLED)
    compare = compared(comparison) if compared else comparison.between(left, right, candidates)
    S = compare(candidates[::step])
    begin = min(0.5, min(len(left), _width(left, right)) / len(candidates))
    drawn, n_all = _drawn(left, right)
    if len(comparison.fields_) == 1:
        S_random = _of_others(comparison, left, right)
    else:
        S_random = comparison.similarities(left, right, drawn)
    found = Found(
        S, begin, S_random, len(candidates) / n_all, comparison, candidates, step, compare
    )
    if comparison.text_ is None:
        return found
    best = compare.texts.each_others_best(candidates[::step])
    return found._replace(start=guessed(S, compare.names, len(comparison.fields_), best))


def _of_others(comparison: RecordComparison, left: Any, right: Any) -> np.ndarray:
    """How alike pairs are that do not match, where one field alone is compared."""
    # A mixture of one field has no single solution, so something has to be known of one part.
    if right is not None:
        return np.concatenate(
            [comparison.similarities(each, None, _drawn(each, None)[0]) for each in (left, right)]
        )
    drawn, n_all = _drawn(left, None)
    S = comparison.similarities(left, None, drawn)
    equal = np.flatnonzero(S[:, 0] >= CUTS[-1])
    return np.delete(S, equal[: len(left) * len(drawn) // n_all], axis=0)


def _drawn(left: Any, right: Any) -> tuple[np.ndarray, int]:
    """All pairs, or pairs drawn from them, and how many there are; the same of tables exchanged."""
    sizes = len(left), _width(left, right)
    n_all = sizes[0] * (sizes[0] - 1) // 2 if right is None else sizes[0] * sizes[1]
    if n_all <= _DRAWN:
        if right is None:
            return np.column_stack(np.triu_indices(sizes[0], 1)), n_all
        return np.indices(sizes).reshape(2, -1).T, n_all
    rng = np.random.RandomState(0)
    small, large = sorted(sizes)
    pairs = np.column_stack([rng.randint(size, size=_DRAWN) for size in (small, large)])
    if right is None:
        return pairs[pairs[:, 0] != pairs[:, 1]], n_all
    if small == large:
        return np.concatenate([pairs[::2], pairs[::2, ::-1]]), n_all
    return pairs if sizes == (small, large) else pairs[:, ::-1], n_all


def _width(left: Any, right: Any) -> int:
    return len(left if right is None else right)
