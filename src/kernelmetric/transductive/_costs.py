"""Costs: how much labels, or pairs, may weigh against the geometry."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from kernelmetric.graphs import laplacian
from kernelmetric.inputs._parameters import COUNT, PRICE


@dataclass(eq=False, repr=False)
class PaperCost(BaseEstimator):
    """The cost of the paper: near points of one class together, of two classes apart.

    ``c_ij = 1/k`` for the k neighbours in the class of a point, ``-1/k`` for the k outside it
    (section 3.1 of [1]_). It is unbounded, and can take over the embedding where λ is small.

    Parameters
    ----------
    n_neighbors : int, default=20
        Labelled neighbours of each labelled point, in its class and outside it.

    References
    ----------
    .. [1] Li, Yang and Wang, "A transductive framework of distance metric learning by spectral
       dimensionality reduction", ICML 2007.

    Examples
    --------
    >>> from scipy import sparse
    >>> from kernelmetric.transductive import PaperCost
    >>> similar = sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])
    >>> PaperCost().weights(similar, 0 * similar).toarray()
    array([[0., 2.],
           [2., 0.]])
    """

    n_neighbors: int = 20

    floor = 0.0

    def weights(self, similar: Any, dissimilar: Any) -> sparse.csr_array:
        """The symmetric weights C, positive where points should be near.

        Parameters
        ----------
        similar, dissimilar : sparse arrays of shape (n, n)
            Non-negative weights.

        Returns
        -------
        sparse array of shape (n, n)
            Their difference; of a bounded cost, each with row sums of at most one.
        """
        return sparse.csr_array(self._limited(similar) - self._limited(dissimilar))

    def least_lam(self, scale: float) -> float:
        """The smallest λ that labels cannot take the embedding over with.

        Parameters
        ----------
        scale : float
            Size of the penalty's diagonal.

        Returns
        -------
        float
            ``floor / scale``; zero where the cost promises nothing.
        """
        return self.floor / scale

    def _limited(self, C: Any) -> Any:
        return C


@dataclass(eq=False, repr=False)
class RobustCost(PaperCost):
    """The same, bounded, so that labels move the geometry but cannot take it over.

    The weights of a point add up to one at most, on either side: ``c_ij min(t_i, t_j)`` with
    ``t_i = min(1, 1 / Σ_j c_ij)``. From ``λ = floor / scale`` on, by Weyl's inequality, no
    eigenvalue of the penalty moves by more than ``4 / floor`` of its mean diagonal.

    Parameters
    ----------
    n_neighbors : int, default=20
        Labelled neighbours of each labelled point, in its class and outside it.
    floor : float, default=2048
        λ in units of one over the penalty's scale, from which on that holds. A smaller λ given by
        hand is used, with a warning.

    Examples
    --------
    >>> from scipy import sparse
    >>> from kernelmetric.transductive import RobustCost
    >>> similar = sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])
    >>> RobustCost().weights(similar, 0 * similar).toarray()
    array([[0., 1.],
           [1., 0.]])
    """

    floor: float = field(default=2048.0, kw_only=True)

    def _limited(self, C: Any) -> Any:
        return bounded(C)


def bounded(C: Any) -> sparse.csr_array:
    """``c_ij min(t_i, t_j)``, ``t_i = min(1, 1 / Σ_j c_ij)``: a point's sum is one at most."""
    C = sparse.coo_array(C)
    t = 1.0 / np.maximum(np.bincount(C.row, weights=C.data, minlength=C.shape[0]), 1.0)
    return sparse.csr_array((C.data * np.minimum(t[C.row], t[C.col]), (C.row, C.col)), C.shape)


def gram_form(A: Any) -> sparse.csr_array:
    """Proposition 3: ``A' = 2 (diag(Ae) - A)``, so that ``Tr(A D) = Tr(A' G)``.

    Parameters
    ----------
    A : sparse array of shape (n, n)
        Symmetric weights of squared distances.

    Returns
    -------
    sparse array of shape (n, n)
        Weights of the Gram matrix that goes with them.

    Examples
    --------
    >>> from scipy import sparse
    >>> from kernelmetric.transductive import gram_form
    >>> gram_form(sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])).toarray()
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    return 2.0 * laplacian(sparse.csr_array(A))


def as_cost(cost: Any) -> Any:
    """The cost that a name, or an object, means."""
    found = named(cost, {"paper": PaperCost, "robust": RobustCost}, "cost", "weights")
    if isinstance(found, PaperCost):
        COUNT.check(found, "n_neighbors")
        PRICE.check(found, "floor")
    return found


def named(value: Any, names: dict[str, Any], what: str, method: str) -> Any:
    """An object with the method, from its name or as it is; else an error that lists the names."""
    if isinstance(value, str) and value in names:
        return names[value]()
    if hasattr(value, method) and not isinstance(value, type):
        return value
    raise ValueError(
        f"Got {what}={value!r}, but expected an object with {method}, or one of {sorted(names)}."
    )
