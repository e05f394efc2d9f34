"""Discriminative locality alignment."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from kernelmetric.graphs import patch_graph
from kernelmetric.inputs import Weights
from kernelmetric.inputs._parameters import COUNT, PRICE
from kernelmetric.learners._dne import SignedEmbedding


@dataclass(eq=False, repr=False)
class DLA(SignedEmbedding):
    r"""Discriminative locality alignment: patches of neighbours, aligned.

    The patch of a point holds the nearest points of its class, to be drawn near, and the nearest
    of other classes, to be pushed away; the patches are added up [1]_:

    .. math:: \min_{L L^\top = I}\; \sum_i \Bigl( \sum_{j \in N_i} \|L x_i - L x_j\|^2
              - \beta \sum_{l \in O_i} \|L x_i - L x_l\|^2 \Bigr)

    Here N_i are the neighbours of point i in its own class and O_i those in other classes.
    :class:`DNE` does nearly the same. It has β = 1 and as many neighbours of either kind, and a
    pair that is in two patches counts once. O(n² d + d³) time; a block of rows × n in memory.

    Parameters
    ----------
    n_components : int, default=None
        Dimension of the embedding; None takes every negative eigenvalue.
    n_neighbors : int, default=3
        Neighbours of each point inside its class.
    n_others : int, default=3
        Neighbours of each point outside its class.
    beta : float, default=1.0
        Weight β of those outside.
    class_weight : dict, 'balanced' or None, default=None
        What the points of each class count; 'balanced' lets all classes count alike.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The learned map L.
    eigenvalues_ : ndarray
        All eigenvalues of the problem, ascending; last, zeros for directions along which no two
        points differ.
    loss_ : float
        The objective: the sum of the eigenvalues kept.
    n_features_in_ : int
        Number of features seen in fit.

    See Also
    --------
    DNE : One eigenproblem too, from near pairs.

    References
    ----------
    .. [1] Zhang, Tao, Li and Yang, "Patch alignment for dimensionality reduction", IEEE
       Transactions on Knowledge and Data Engineering 21 (2009).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from kernelmetric import DLA
    >>> X, y = load_wine(return_X_y=True)
    >>> DLA(n_components=2, beta=0.5).fit(scale(X), y).transform(scale(X)).shape
    (178, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    n_neighbors: int = 3
    n_others: int = 3
    beta: float = 1.0
    class_weight: Any = None

    _advice = "more neighbours, a larger beta"
    _allowed: ClassVar = {"n_others": COUNT, "beta": PRICE}

    def _graph(self, where: Any, codes: np.ndarray, weights: Weights | None) -> Any:
        return patch_graph(where, codes, self.n_neighbors, self.n_others, self.beta, weights)
