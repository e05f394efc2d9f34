"""Classes and their probabilities, labels that come later, and which point to label next."""

from contextlib import suppress
from functools import cached_property
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from kernelmetric.inputs import device_like, unchanged_on_failure
from kernelmetric.inputs._parameters import Numbers
from kernelmetric.metric import Metric
from kernelmetric.transductive._choice import vote
from kernelmetric.transductive._diffusion import Diffusion
from kernelmetric.transductive._given import Source, partial_labels
from kernelmetric.transductive._learn import learn, spreads
from kernelmetric.transductive._shares import shares_by_distance
from kernelmetric.transductive._spread import LabelGraph

_AROUND = 0.1  # leak of a walk: doubt is that of ten steps around


class FewLabels(Metric, BaseEstimator):
    """A metric on points of which some have labels, and more come in."""

    embedding_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Classes of points, by their nearest labelled training points in the embedding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels. Those of the training points are in ``transduction_``.
        """
        E = self._embed_of_labels(X)
        return self.classes_[self._vote(E)]

    def predict_proba(self, X: Any) -> np.ndarray:
        r"""Probabilities of classes.

        By diffusion, the coordinates of ``transform``. Otherwise
        :math:`p_c \propto d_c^{-2t}`, where :math:`d_c` is the distance in the embedding to the
        nearest label of class c, and t the number under which labels that are left out in turn are
        most probable.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that add up to one, in the order of ``classes_``.
        """
        E = self._embed_of_labels(X)
        if self._kind == "diffusion":
            return E / E.sum(axis=1, keepdims=True)
        return shares_by_distance(self.embedding_, self._codes, E)

    score = ClassifierMixin.score

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags()  # as predictions are classes
        with suppress(ValueError):  # fit will say what is wrong; asking for tags must not
            tags.input_tags.sparse = spreads(self, Source(None, np.empty(0, dtype=np.intp)))
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _kind(self) -> str:
        """The method; files from before there were two do not say."""
        return getattr(self, "method_", "eigenvectors")

    def _embed_of_labels(self, X: Any) -> np.ndarray:
        """New points, where labels say what may be predicted of them."""
        check_is_fitted(self)
        if self._codes is None:
            raise ValueError(
                "Got no labels in fit, but predict expected some: pairs have no names to give."
            )
        return self._embed(X)

    def _vote(self, E: np.ndarray, some: Any = slice(None)) -> np.ndarray:
        """Class codes of embedded points by some of the labelled ones."""
        if self._kind == "diffusion":  # the corner of the most probable class is nearest
            return np.argmax(E, axis=1)
        return vote(self.embedding_[some], self._codes[some], E, self.n_votes)

    @cached_property
    def _graph(self) -> LabelGraph:  # of a metric that was not fitted, but copied or loaded
        return LabelGraph(self.graph, self.n_neighbors, self._points)

    @property
    def _row_numbers(self) -> np.ndarray:
        """Of the training points, in the X of fit: those of weight zero are none."""
        rows = getattr(self, "_rows", None)  # which older files do not have
        return np.arange(len(self.embedding_)) if rows is None else rows

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in super().__getstate__().items() if name != "_graph"}

    def add_labels(self, rows: Any, labels: Any) -> Self:
        """Learn more labels of the points of ``fit``, on the graphs that were made then.

        Parameters
        ----------
        rows : array-like of shape (m,)
            Row numbers of training points, in the X of ``fit``.
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
        numbers, codes = self._row_numbers, self._codes
        if codes is None:
            raise ValueError("Got labels after pairs, but expected labels in fit too.")
        whole = rows.ndim == 1 and rows.dtype.kind in "iu" and len(np.unique(rows)) == len(rows)
        if not whole or not np.isin(rows, numbers).all():
            raise ValueError(
                f"Got rows={rows!r}, but expected different row numbers from 0 to {numbers[-1]}, "
                "of rows whose sample_weight was not zero."
            )
        y = np.full(len(codes), None, dtype=object)
        y[codes >= 0] = self.classes_[codes[codes >= 0]].tolist()
        y[np.searchsorted(numbers, rows)] = labels.tolist()
        with unchanged_on_failure(self), device_like(self._points):
            source = Source(*partial_labels(y, len(y)))
            learned = learn(self, self._points, source, None, self._mass, graph=self._graph)
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
            Row numbers in the X of ``fit``, the most useful first; fewer where fewer have no label.
        """
        check_is_fitted(self)
        Numbers(Integral, 1).require("n", n)
        if self._codes is None:
            raise ValueError("Got no labels in fit, but expected some: try y instead of pairs.")
        E, labelled = self.embedding_, self._codes >= 0
        diffusion = Diffusion(self._graph.weights, self._graph.place)
        P = E if self._kind == "diffusion" else shares_by_distance(E, self._codes, E)
        doubt, found = np.where(labelled, 0.0, 1.0 - P.max(axis=1))[:, None], []
        open_ = ~labelled
        for _ in range(min(n, int(open_.sum()))):
            around = diffusion.covariance(np.arange(len(doubt)), doubt, _AROUND)[:, 0]
            row = int(np.argmax(np.where(open_, around, -np.inf)))
            found.append(row)
            open_[row] = False
            near = diffusion.covariance(np.array([row]), np.ones((1, 1)), _AROUND)
            doubt = doubt * (1.0 - near / near[row])
        return self._row_numbers[np.array(found, dtype=np.intp)]
