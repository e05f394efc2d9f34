"""A basis that need not be orthonormal: its Gram matrix, and the way to one that is."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from kernelmetric.compute import like, namespace, precise, rounding_of, to_numpy
from kernelmetric.compute.lapack import eigh
from kernelmetric.inputs._parameters import Numbers, require_word
from kernelmetric.solvers import right_singular
from kernelmetric.spaces._base import Space, embedded, own, refuse_indefinite, round_off

_RELATIVE_CUT = 1e-10
_SINGULAR = ("range", "ridge", "raw")


class Gram:
    """Gram matrix G of a basis, and how to compute with it when it is singular.

    A point whose inner products with the basis vectors are z has squared norm zᵀ G⁺ z, and a map
    with rows L of basis coefficients has squared Frobenius norm tr(L G Lᵀ). With repeated points G
    is singular, and what G⁺ means in floating point is a choice.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Symmetric positive semi-definite matrix G.
    singular : {"range", "ridge", "raw"}, default="range"
        "range": work where the eigenvalues exceed max(1e-10 λmax, n eps trace G);
        "ridge": replace G by G + ε I; "raw": take G as it is, with whatever round-off brings.
    ridge : float, default=1e-6
        ε as a fraction of the mean eigenvalue: ε = ridge · trace(G) / n. Used by "ridge".

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.spaces import Gram
    >>> G = Gram(np.array([[4.0, 4.0], [4.0, 4.0]]))
    >>> G.inv_sqrt().shape
    (2, 1)
    >>> G.penalty(np.array([[1.0, 0.0]]))
    (4.0, array([[8., 8.]]))
    """

    def __init__(self, matrix: Any, singular: str = "range", ridge: float = 1e-6):
        require_word("singular", singular, _SINGULAR)
        hint = "a fraction of the mean eigenvalue, such as 1e-6"
        Numbers(low=0, high=1, above=singular == "ridge").require("ridge", ridge, hint=hint)
        self.matrix = np.asarray(to_numpy(matrix), dtype=np.float64)
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise ValueError(
                f"Got a matrix of shape {self.matrix.shape}, but expected a square Gram matrix."
            )
        self.singular = singular
        self.ridge = ridge

    @cached_property
    def _spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        return eigh(self.matrix)

    @property
    def _epsilon(self) -> float:
        return self.ridge * float(np.trace(self.matrix)) / len(self.matrix)

    @cached_property
    def _inverse_sqrt(self) -> np.ndarray:
        eigenvalues, V = self._spectrum
        if self.singular == "ridge":
            shifted = np.maximum(eigenvalues, 0.0) + self._epsilon
            return (V / np.sqrt(shifted)) @ V.T
        kept = eigenvalues > (self.cut_off if self.singular == "range" else 0.0)
        W = V[:, kept] / np.sqrt(eigenvalues[kept])
        return W if self.singular == "range" else W @ V[:, kept].T

    @cached_property
    def cut_off(self) -> float:
        """Eigenvalues up to this number are round-off: max(1e-10 λmax, n eps trace G)."""
        eigenvalues, _ = self._spectrum
        round_off = len(self.matrix) * np.finfo(np.float64).eps * np.trace(self.matrix)
        return float(max(_RELATIVE_CUT * eigenvalues[-1], round_off))

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of G, ascending."""
        return self._spectrum[0]

    @property
    def rank(self) -> int:
        """Number of eigenvalues above the cut-off."""
        return int(np.sum(self._spectrum[0] > self.cut_off))

    def inv_sqrt(self) -> np.ndarray:
        """Return W with W Wᵀ the inverse of G that ``singular`` asks for.

        Returns
        -------
        ndarray of shape (n, r)
            "range": r is the rank and Wᵀ G W = I; "ridge": the symmetric (G + ε I)^{-1/2};
            "raw": the symmetric G^{-1/2} over the positive eigenvalues. O(n³) time, once.
        """
        return self._inverse_sqrt

    def whiten(self, Z: Any) -> Any:
        """Map coordinates so that Euclidean distance becomes (zᵢ - zⱼ)ᵀ G⁺ (zᵢ - zⱼ).

        Parameters
        ----------
        Z : array of shape (m, n)
            Coordinates: inner products with the basis vectors.

        Returns
        -------
        ndarray of shape (m, r)
            Z W with W of ``inv_sqrt``.
        """
        return to_numpy(Z) @ self._inverse_sqrt

    def eigh(self, S: Any) -> tuple[np.ndarray, np.ndarray]:
        """Solve S u = λ G u for a symmetric S.

        Parameters
        ----------
        S : array of shape (n, n)
            Symmetric matrix.

        Returns
        -------
        eigenvalues : ndarray of shape (r,)
            In ascending order. "raw" drops those that are infinite or complex.
        U : ndarray of shape (n, r)
            Vectors in columns, Uᵀ G U = I ("ridge": with G + ε I; "raw": as far as round-off
            allows). O(n³) time.
        """
        S = np.asarray(to_numpy(S), dtype=np.float64)
        S = (S + S.T) / 2
        if self.singular == "ridge":
            return eigh(S, self.matrix + self._epsilon * np.eye(len(S)))
        if self.singular == "raw":
            try:
                return self._raw_eigh(S)
            except linalg.LinAlgError:  # QZ failed altogether; the range always has an answer
                return Gram(self.matrix).eigh(S)
        W = self._inverse_sqrt
        eigenvalues, vectors = eigh(W.T @ S @ W)
        return eigenvalues, W @ vectors

    def penalty(self, L: np.ndarray) -> tuple[float, np.ndarray]:
        """Squared norm of a map in the feature space, and its gradient.

        Parameters
        ----------
        L : ndarray of shape (r, n)
            Rows of basis coefficients.

        Returns
        -------
        value : float
            tr(L G Lᵀ).
        gradient : ndarray of shape (r, n)
            2 L G.
        """
        LG = L @ self.matrix
        return float(np.sum(LG * L)), 2.0 * LG

    def _raw_eigh(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(all="ignore"):  # 0 / 0 is what "raw" is there to show
            eigenvalues, U = linalg.eig(S, self.matrix)
            real = np.abs(eigenvalues.imag) <= 1e-6 * np.abs(eigenvalues.real)
            kept = np.isfinite(eigenvalues) & real & np.isfinite(U).all(axis=0)
            values, vectors = eigenvalues.real[kept], U.real[:, kept]
            norms = np.sqrt(np.abs(np.einsum("ij,ij->j", vectors, self.matrix @ vectors)))
            vectors = np.where(norms > 0, vectors / norms, vectors)
        usable = np.isfinite(vectors).all(axis=0)
        order = np.argsort(values[usable], kind="stable")
        return values[usable][order], vectors[:, usable][:, order]


class Coordinates(NamedTuple):
    """Centred points in an orthonormal basis, as :func:`orthonormal` gives them."""

    Z: Any  # (n, r)
    size: float  # of a unit of Z in those of X
    rotation: np.ndarray | None  # (r, d): orthonormal rows that span the points, where asked for
    gram: Gram | None  # of the basis of X, where it is not orthonormal

    @property
    def basis(self) -> np.ndarray:
        """The rows B with ``Z = (X - mean) Bᵀ``; shape (r, d)."""
        return self.leave(np.eye(self.Z.shape[1]))

    def leave(self, A: np.ndarray) -> np.ndarray:
        """From a map on these coordinates to one on those of X: A B."""
        A = A / self.size
        A = A if self.rotation is None else A @ self.rotation
        return A if self.gram is None else A @ self.gram.inv_sqrt().T

    def enter(self, L: np.ndarray) -> np.ndarray:
        """From a map on the coordinates of X to one on these."""
        L = L if self.gram is None else L @ self.gram.matrix @ self.gram.inv_sqrt()
        L = L if self.rotation is None else L @ self.rotation.T
        return L * self.size


def orthonormal(
    X: Any, gram: Gram | None = None, *, span: bool = True, unit: bool = True
) -> Coordinates:
    """Coordinates that moving and scaling the points, or another basis, leaves alike.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    gram : Gram, default=None
        Of the basis of X, where it is not orthonormal.
    span : bool, default=True
        Whether to use no more dimensions than the points span, in float64 of NumPy: scatter
        matrices have full rank there. Otherwise Z stays in the library and dtype of X.
    unit : bool, default=True
        Whether the mean squared length of the points becomes one: its powers stay in range.

    Returns
    -------
    Coordinates
        O(n d²) time.
    """
    X = np.asarray(to_numpy(X), dtype=np.float64) if span else X
    xp = namespace(X)
    Z = X if gram is None else like(gram.whiten(X), X)
    Z = Z - xp.mean(Z, axis=0, keepdims=True)  # last: what whitening rounds would be a direction
    # Divided by the largest entry first: squares of features at 1e200 leave the range.
    top = (float(xp.max(xp.abs(Z))) or 1.0) if unit else 1.0
    if not span:
        size = top * float(xp.sqrt(xp.mean((Z / top) ** 2) * Z.shape[1])) if unit else 1.0
        return Coordinates(Z / (size or 1.0), size or 1.0, None, gram)
    Z = Z / top
    rotation = _spanning_rows(Z)
    Z = Z @ rotation.T
    length = float(np.sqrt(np.sum(Z * Z) / len(Z))) if unit else 1.0
    return Coordinates(Z / length, top * length, rotation, gram)


def _spanning_rows(Z: np.ndarray) -> np.ndarray:
    """Orthonormal rows that span those of Z; the identity where these have all directions."""
    R: Any = np.linalg.qr(Z, mode="r") if len(Z) > Z.shape[1] else Z
    s, Vt = right_singular(R)
    rows = Vt[s > max(Z.shape) * np.finfo(np.float64).eps * s[0]]
    return np.eye(Z.shape[1]) if len(rows) == Z.shape[1] else rows


@dataclass(eq=False, repr=False)
class KernelTrick(Space):
    r"""Coordinates with respect to the training points, the classical kernel trick.

    .. math:: z(x) = (k(x, x_1), \dots, k(x, x_n))

    The map is not centred and the basis :math:`\phi(x_1), \dots, \phi(x_n)` not orthonormal: its
    Gram matrix is K, and a learner has to know it (``gram_``). Distances in the feature space are
    :math:`(z_i - z_j)^\top K^+ (z_i - z_j)`. O(n² d) time and one n × n array.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Anything ``as_kernel`` understands; None is the RBF of median width.
    singular : {"range", "ridge", "raw"}, default="range"
        What K⁺ means where K is singular: solve in its range, with K + εI, or with K as it is.
    ridge : float, default=1e-6
        ε as a fraction of the mean eigenvalue, for ``singular="ridge"``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, bound to the training points.
    basis_gram_ : array of shape (n, n)
        The Gram matrix K.
    gram_ : Gram
        The same, with ``singular`` and ``ridge``.
    anchors_ : array of shape (n, d)
        The training points.
    eigenvalues_ : ndarray of shape (r,)
        Eigenvalues of the centred Gram matrix above round-off, descending; computed when asked.
    rank_ : int
        Numerical rank of K; computed when asked.
    explained_variance_ratio_ : float
        1: nothing is left out.
    n_features_in_ : int
        Number of features seen in ``fit``.

    See Also
    --------
    KPCA : Orthonormal coordinates, which any learner can use.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.spaces import KernelTrick
    >>> X = np.random.RandomState(0).randn(5, 2)
    >>> space = KernelTrick(kernel="linear").fit(X)
    >>> space.transform(X).shape
    (5, 5)
    >>> space.rank_
    2
    """

    kernel: Any = None
    _: KW_ONLY
    singular: str = "range"
    ridge: float = 1e-6

    def _peak_bytes(self, n_samples: int, n_features: int) -> float:
        return 8.0 * (4 * n_samples * n_samples + 2 * n_samples * n_features)

    def _learn(self, X: Any, y: Any) -> Callable[[], Any]:
        self.__dict__.pop("eigenvalues_", None)
        points = precise(X)
        self.anchors_ = own(self.kernel_.anchors(points))
        K = self.kernel_(points)
        # A symmetric copy: X itself may be K, and belongs to the caller.
        self.basis_gram_ = (K + K.T) / 2
        self.gram_ = Gram(self.basis_gram_, singular=self.singular, ridge=self.ridge)
        values = self.gram_.eigenvalues
        eps = rounding_of(X if self.kernel_.pairwise else points)
        trace = float(np.trace(self.gram_.matrix))
        rounding = round_off(trace, X.shape[1], eps=eps)
        ends = float(values[0]), float(values[-1])
        refuse_indefinite(*ends, rounding=rounding, eps=rounding_of(X))
        self.explained_variance_ratio_ = 1.0
        return lambda: own(self.basis_gram_)

    @cached_property
    def eigenvalues_(self) -> np.ndarray:
        """Eigenvalues of the centred Gram matrix, descending."""
        K = to_numpy(self.basis_gram_)
        Kc = K - K.mean(axis=0)
        Kc -= Kc.mean(axis=1, keepdims=True)
        values = linalg.eigvalsh(Kc)[::-1]
        return values[values > self.gram_.cut_off]

    @property
    def rank_(self) -> int:
        """Numerical rank of K."""
        return self.gram_.rank

    @property
    def _n_features_out(self) -> int:
        return int(self.basis_gram_.shape[0])

    def _coordinates(self, X: Any) -> Any:
        return embedded(self._features, X, self.basis_gram_.shape[0])
