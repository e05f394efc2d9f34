"""Labels that come later, and which point to label next."""

from functools import cached_property
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from kernelmetric.inputs import device_like, unchanged_on_failure
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.transductive._classifying import Classifying
from kernelmetric.transductive._diffusion import Diffusion
from kernelmetric.transductive._given import Source, partial_labels
from kernelmetric.transductive._learn import learn
from kernelmetric.transductive._shares import shares_by_distance
from kernelmetric.transductive._spread import Graphs

_AROUND = 0.1  # leak of a walk: doubt is that of ten steps around


class Asking(Classifying, BaseEstimator):
    """A metric on points of which more labels come in."""

    graph: Any
    n_neighbors: Any
    _mass: Any
    _points: Any
    _keep: Any

    @cached_property
    def _graphs(self) -> Graphs:  # of a metric that was not fitted, but copied or loaded
        return Graphs(self.graph, self.n_neighbors, self._points)

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in super().__getstate__().items() if name != "_graphs"}

    def add_labels(self, rows: Any, labels: Any) -> Self:
        """Learn more labels of the points of ``fit``, on the graphs that were made then.

        Parameters
        ----------
        rows : array-like of shape (m,)
            Row numbers of training points.
        labels : array-like of shape (m,)
            Their classes, new ones too. One that means unknown takes a label back.

        Returns
        -------
        TransductiveDistance
            The metric, as if it had been fitted with these labels too.
        """
        check_is_fitted(self)
        rows, labels = np.asarray(rows), column_or_1d(labels)
        check_consistent_length(rows, labels)
        n, codes = len(self.embedding_), self._codes
        if codes is None:
            raise ValueError("Got labels after pairs, but expected labels in fit too.")
        whole = rows.ndim == 1 and rows.dtype.kind in "iu" and len(np.unique(rows)) == len(rows)
        if not whole or (len(rows) and not 0 <= rows.min() <= rows.max() < n):
            raise ValueError(
                f"Got rows={rows!r}, but expected different row numbers from 0 to {n - 1}."
            )
        y = np.full(n, None, dtype=object)
        y[codes >= 0] = self.classes_[codes[codes >= 0]].tolist()
        y[rows] = labels.tolist()
        with unchanged_on_failure(self), device_like(self._points):
            source = Source(*partial_labels(y, n))
            learned = learn(self, self._points, source, None, self._mass, graphs=self._graphs)
            self._keep(*learned, source, slice(None), self._points, self.embedding_)
        return self

    def to_label(self, n: int = 1) -> np.ndarray:
        """Which training points to label next: those with most doubt around, and not together.

        Parameters
        ----------
        n : int, default=1
            How many.

        Returns
        -------
        ndarray of shape (n,)
            Row numbers, the most useful first; fewer where fewer have no label.
        """
        check_is_fitted(self)
        Numbers(Integral, 1).require("n", n)
        if self._codes is None:
            raise ValueError("Got no labels in fit, but expected some: try y instead of pairs.")
        graphs, E, labelled = self._graphs, self.embedding_, self._codes >= 0
        diffusion = Diffusion(next(iter(graphs))[2], graphs.place)
        spread = self._kind == "diffusion"
        P = E if spread else shares_by_distance(E, self._codes, E)
        doubt, found = np.where(labelled, 0.0, 1.0 - P.max(axis=1))[:, None], []
        open_ = ~labelled
        for _ in range(min(n, int(open_.sum()))):
            around = diffusion.covariance(np.arange(len(doubt)), doubt, _AROUND)[:, 0]
            row = int(np.argmax(np.where(open_, around, -np.inf)))
            found.append(row)
            open_[row] = False
            near = diffusion.covariance(np.array([row]), np.ones((1, 1)), _AROUND)
            doubt = doubt * (1.0 - near / near[row])
        return np.array(found, dtype=np.intp)
