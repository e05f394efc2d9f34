"""Discriminant neighbourhood embedding."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from kernelmetric._warnings import warn
from kernelmetric.compute import to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.graphs import discriminant_graph, laplacian
from kernelmetric.inputs import Weights
from kernelmetric.inputs._parameters import PRICE
from kernelmetric.learners._spectral import LocalLearner
from kernelmetric.spaces import Gram


class SignedEmbedding(LocalLearner):
    """Orthonormal directions along which ``_graph``, of signed weights, has the least variation."""

    _advice = "more neighbours"

    def _learn(
        self, X: Any, codes: np.ndarray, gram: Gram | None, where: Any, weights: Weights | None
    ) -> None:
        rank = self._check_n_components(X.shape[1])
        Z = to_numpy(X).astype(np.float64)
        if where is None:
            where = X if gram is None else gram.whiten(Z)
        Z = Z - Z.mean(axis=0)
        S = Z.T @ (laplacian(self._graph(where, codes, weights)) @ Z)
        S = 0.5 * (S + S.T)
        if gram is None:
            values, V = _seen_first(S, Z)
        else:
            values, V = gram.eigh(S)
        self.eigenvalues_ = values + getattr(self, "reg", 0.0)
        kept = min(rank, len(values)) if self.n_components is not None else self._automatic_rank()
        self._store(V[:, :kept].T, X)
        self.loss_ = float(np.sum(self.eigenvalues_[:kept]))

    def _automatic_rank(self) -> int:
        """Number of negative eigenvalues beyond round-off, at least one."""
        values = self.eigenvalues_
        tol = len(values) * np.finfo(np.float64).eps * np.max(np.abs(values))
        negative = int(np.sum(values < -tol))
        if negative == 0:
            warn(
                f"{type(self).__name__} found no negative eigenvalue, so no direction separates "
                "the classes better than it spreads them; the best one is kept. Try "
                f"{self._advice}, or set n_components."
            )
        return max(negative, 1)


def _seen_first(S: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of S in ascending order; directions along which no two points differ come last.

    Constant and repeated columns have such directions. A metric of them alone would be zero.
    """
    scales = Z.std(axis=0)
    scales[scales == 0] = 1.0
    C = (Z / scales).T @ (Z / scales)
    found, V = eigh(C)
    flat = found <= len(C) * np.finfo(np.float64).eps * max(found[-1], 1.0)
    if not flat.any():
        return eigh(S)
    N = linalg.orth(V[:, flat] / scales[:, None])
    values, V = eigh(S + (2.0 * linalg.norm(S) or 1.0) * (N @ N.T))
    seen = len(values) - N.shape[1]
    return np.where(np.arange(len(values)) < seen, values, 0.0), V


@dataclass(eq=False, repr=False)
class DNE(SignedEmbedding):
    r"""Discriminant neighbourhood embedding.

    Near points of one class are drawn together, and near points of different classes are pushed
    apart, eq. (4) of [1]_:

    .. math:: \min_{L L^\top = I}\; \tfrac12 \sum_{ij} w_{ij} \|L x_i - L x_j\|^2
              = \min_{L L^\top = I}\; \operatorname{tr} L X^\top (D - W) X L^\top

    where w is 1 between nearest neighbours of one class, -1 between nearest points of two classes,
    and 0 otherwise, and D holds the sums of the rows of W. The rows of L are the eigenvectors of
    :math:`X^\top (D - W) X` with the most negative eigenvalues. O(n² d + d³) time.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None takes every negative eigenvalue.
    n_neighbors : int, default=3
        Neighbours of each point inside its class, and outside it.
    reg : float, default=0.0
        Weight of ``tr(L Lᵀ)``, which shifts all eigenvalues: the automatic dimension is smaller.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    eigenvalues_ : ndarray
        All eigenvalues of the problem, ascending, the shift included; last, those of directions
        along which no two points differ.
    loss_ : float
        The objective: the sum of the eigenvalues kept.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    DLA : One eigenproblem too, from patches of neighbours.
    LMNN : Slower, and usually the better metric.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance
       learning algorithms", Neurocomputing 73 (2010), section 2.3.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from kernelmetric import DNE
    >>> X, y = load_wine(return_X_y=True)
    >>> DNE(n_components=2).fit(scale(X), y).transform(scale(X)).shape
    (178, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    n_neighbors: int = 3
    reg: float = 0.0
    class_weight: Any = None

    _advice = "more neighbours, a smaller reg"
    _allowed: ClassVar = {"reg": PRICE}

    def _graph(self, where: Any, codes: np.ndarray, weights: Weights | None) -> Any:
        return discriminant_graph(where, codes, self.n_neighbors, weights)
