"""Links between records, and the clusters that they make."""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.special import logit

from kernelmetric.graphs._row_tuples import components_of
from kernelmetric.inputs._parameters import require_word

_COLUMNS = ("left", "right", "probability", "cluster")


@dataclass(frozen=True)
class Links:
    """Pairs of records taken for the same.

    Parameters
    ----------
    pairs, probability : ndarray of shape (n_links, 2) and (n_links,)
        Row numbers, and of each pair the probability that it is a match.
    others, other_probability : ndarray of shape (n_others, 2) and (n_others,)
        Candidates that were not linked, and their probabilities.
    n_left, n_right : int
        Records of the tables; ``n_right`` is None where links are inside one.
    threshold : float
        The least probability of a link.

    See Also
    --------
    kernelmetric.linkage.RecordLinker : Finds them.
    """

    pairs: np.ndarray
    probability: np.ndarray
    others: np.ndarray
    other_probability: np.ndarray
    n_left: int
    n_right: int | None = None
    threshold: float = 0.5

    def __len__(self) -> int:
        return len(self.pairs)

    def clusters(self, method: str = "components") -> Clusters:
        """Records that mean the same, as links and what was not linked say.

        Parameters
        ----------
        method : {"components", "correlation"}, default="components"
            Whatever links connect; or clusters that agree best with the log odds of all compared
            pairs, where a link that many pairs contradict is cut.

        Returns
        -------
        Clusters
            With what contradicts them.
        """
        require_word("method", method, ("components", "correlation"))
        shift = np.array([0, 0 if self.n_right is None else self.n_left])
        n = self.n_left + (self.n_right or 0)
        rows, others = self.pairs + shift, self.others + shift
        if method == "correlation":
            p = np.concatenate([self.probability, self.other_probability])
            gains = _log_odds(p) - _log_odds(self.threshold)
            codes = correlation_clusters(n, np.concatenate([rows, others]), gains)
        else:
            codes = components_of(rows, n)
        cut = codes[rows[:, 0]] != codes[rows[:, 1]]
        doubts = np.argsort(-self.probability[cut], kind="stable")
        inside = codes[others[:, 0]] == codes[others[:, 1]]
        order = np.argsort(self.other_probability[inside], kind="stable")
        # Of two tables, records of one are not compared with each other.
        left = np.bincount(codes[: self.n_left], minlength=codes.max(initial=-1) + 1)
        right = np.bincount(codes[self.n_left :], minlength=len(left))
        total = left * (left - 1) // 2 if self.n_right is None else left * right
        return Clusters(
            codes,
            self.others[inside][order],
            self.other_probability[inside][order],
            int(total.sum()) - int(np.sum(~cut)) - int(inside.sum()),
            self.pairs[cut][doubts],
            self.probability[cut][doubts],
        )

    def to_frame(
        self, left_ids: Any = None, right_ids: Any = None, clusters: Clusters | None = None
    ) -> Any:
        """The links as a table, the surest first.

        Parameters
        ----------
        left_ids, right_ids : array-like, default=None
            What records are called; None means by their row numbers.
        clusters : Clusters, default=None
            Those of :meth:`clusters`, whose cut links are left out; None means its components.

        Returns
        -------
        DataFrame
            With the columns left, right, probability, cluster.
        """
        import pandas as pd

        codes = (self.clusters() if clusters is None else clusters).codes
        ends = self.pairs + np.array([0, 0 if self.n_right is None else self.n_left])
        kept = np.flatnonzero(codes[ends[:, 0]] == codes[ends[:, 1]])
        order = kept[np.argsort(-self.probability[kept], kind="stable")]
        pairs = self.pairs[order]
        right_ids = left_ids if right_ids is None and self.n_right is None else right_ids
        names = [
            pairs[:, side] if ids is None else np.asarray(ids)[pairs[:, side]]
            for side, ids in enumerate((left_ids, right_ids))
        ]
        columns = (*names, self.probability[order], codes[pairs[:, 0]])
        return pd.DataFrame(dict(zip(_COLUMNS, columns, strict=True)))


@dataclass(frozen=True)
class Clusters:
    """Groups of records, and which of their pairs contradict them.

    Parameters
    ----------
    codes : ndarray of shape (n_records,)
        The cluster of every record, those of the right table after those of the left.
    violations, violation_probability : ndarray of shape (n, 2) and (n,)
        Row numbers of pairs inside a cluster that were compared and not linked, the least likely
        first, and their probabilities.
    n_unseen : int
        How many pairs inside clusters were never compared.
    cut, cut_probability : ndarray of shape (n_cut, 2) and (n_cut,)
        Row numbers of links between clusters, which other pairs contradict, the likeliest first,
        and their probabilities.

    See Also
    --------
    kernelmetric.linkage.RecordLinker : Finds them.
    """

    codes: np.ndarray
    violations: np.ndarray
    violation_probability: np.ndarray
    n_unseen: int
    cut: np.ndarray
    cut_probability: np.ndarray


def link(
    pairs: np.ndarray,
    probability: np.ndarray,
    n_left: int,
    n_right: int | None,
    *,
    threshold: float,
    one_to_one: bool,
    one_to_many: bool = False,
) -> Links:
    """Links from candidates: all that reach the threshold, or of these the best."""
    accepted = probability >= threshold
    if one_to_one or one_to_many:
        said = "one_to_one" if one_to_one else "one_to_many"
        if n_right is None:
            raise ValueError(
                f"Got {said}=True for one table, but expected two: inside a table take clusters."
            )
        chosen = np.flatnonzero(accepted)
        if one_to_one:
            accepted[chosen] = one_to_one_choice(pairs[chosen], probability[chosen], threshold)
        else:  # of equal ones the first
            order = chosen[np.argsort(-probability[chosen], kind="stable")]
            accepted[:] = False
            accepted[order[np.unique(pairs[order, 1], return_index=True)[1]]] = True
    return Links(
        pairs[accepted], probability[accepted], pairs[~accepted], probability[~accepted],
        n_left, n_right, threshold,
    )  # fmt: skip


def one_to_one_choice(pairs: np.ndarray, probability: np.ndarray, threshold: float) -> np.ndarray:
    """Which pairs to keep so that no record is in two, and their log odds are the most together."""
    if not len(pairs):
        return np.zeros(0, dtype=bool)
    # Every record of the left table has one partner, its own blank one where that is better.
    used, rows = np.unique(pairs[:, 0], return_inverse=True)
    columns = np.unique(pairs[:, 1], return_inverse=True)[1].ravel()
    rows, n, width = rows.ravel(), len(used), int(columns.max()) + 1
    gain = _log_odds(probability) - _log_odds(threshold) + 1e-9  # linking beats a blank
    top = float(gain.max()) + 1.0
    costs = np.concatenate([top - gain, np.full(n, top)])
    at = (np.concatenate([rows, np.arange(n)]), np.concatenate([columns, width + np.arange(n)]))
    graph = sparse.csr_matrix((costs, at), shape=(n, width + n))
    of_row, of_column = min_weight_full_bipartite_matching(graph)
    partner = np.empty(n, dtype=np.intp)
    partner[of_row] = of_column
    return partner[rows] == columns


def _log_odds(p: Any) -> Any:
    return logit(np.clip(p, 1e-12, 1 - 1e-12))


def correlation_clusters(n: int, pairs: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Cluster records so that the gains of the pairs inside clusters are large together.

    Clusters are joined greedily, the largest gain first: Keuper et al., "Efficient decomposition of
    image and mesh graphs by lifted multicuts", ICCV 2015. To move single records after that gains
    next to nothing.
    """
    between: dict[int, dict[int, float]] = defaultdict(dict)
    for (i, j), gain in zip(pairs.tolist(), gains.tolist(), strict=True):
        between[i][j] = between[j][i] = between[i].get(j, 0.0) + gain
    members = {i: [i] for i in between}
    # Equal gains are joined in the order of the records, so that the result is repeatable.
    queue = [(-g, i, j) for i, near in between.items() for j, g in near.items() if i < j and g > 0]
    heapq.heapify(queue)
    while queue:
        gain, i, j = heapq.heappop(queue)
        if i not in between or between[i].get(j) != -gain:  # joined before, or another gain now
            continue
        if len(between[i]) < len(between[j]):
            i, j = j, i
        members[i] += members.pop(j)
        del between[i][j]
        for k, more in between.pop(j).items():
            if k == i:
                continue
            del between[k][j]
            between[i][k] = between[k][i] = between[i].get(k, 0.0) + more
            if between[i][k] > 0:
                heapq.heappush(queue, (-between[i][k], min(i, k), max(i, k)))
    codes = np.arange(n)
    for code, records in members.items():
        codes[records] = code
    first = {code: k for k, code in enumerate(dict.fromkeys(codes.tolist()))}
    return np.array([first[code] for code in codes.tolist()], dtype=np.intp)
