"""Classes and their probabilities, of points that are embedded where some have labels."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernelmetric.metric import Metric
from kernelmetric.transductive._choice import vote
from kernelmetric.transductive._shares import shares_by_distance


class Classifying(Metric):
    """A metric that knows the labels of some of its training points."""

    classes_: np.ndarray
    embedding_: np.ndarray
    n_votes: int
    _codes: Any

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
