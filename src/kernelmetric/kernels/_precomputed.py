"""Kernel values that the user computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from kernelmetric.compute import all_finite, in_library_of, is_single, namespace, over_rows
from kernelmetric.kernels._base import Kernel
from kernelmetric.kernels._points import as_block

_ASYMMETRY, _SINGLE_ASYMMETRY = 1e-8, 1e-4  # tolerated, relative to the largest entry


class Precomputed(Kernel):
    r"""X itself holds the kernel values.

    In ``fit`` X is the Gram matrix of the training points, :math:`X_{ij} = k(x_i, x_j)`; later a
    row of X holds the kernel values of one new point with all training points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.kernels import Precomputed
    >>> gram = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> kernel = Precomputed().bind(gram)
    >>> kernel(gram, kernel.anchors(gram, [1]))
    array([[1.],
           [3.]])
    """

    pairwise = True

    def _from_data(self, X: Any, y: Any) -> dict[str, Any]:
        n = X.shape[0]
        if n != X.shape[1]:
            raise ValueError(
                f"Got a precomputed kernel of shape {tuple(X.shape)}, but expected a square Gram "
                "matrix (n_samples, n_samples) in fit: try passing kernel(X_train, X_train)."
            )
        if not all_finite(X):
            raise ValueError(
                "Got NaN or infinity in the precomputed kernel, but expected finite numbers: "
                "try rescaling the features it was computed from."
            )
        xp = namespace(X)
        largest = float(xp.max(xp.abs(X))) if n else 0.0

        def differences(rows: slice) -> float:
            return float(xp.max(xp.abs(X[rows, :] - X[:, rows].T)))

        asymmetry = max(over_rows(differences, n, 4 * 8 * n), default=0.0)
        if asymmetry > (_SINGLE_ASYMMETRY if is_single(X) else _ASYMMETRY) * largest:
            raise ValueError(
                f"Got a precomputed kernel with |K - Kᵀ| up to {asymmetry:.3g}, but expected a "
                "symmetric Gram matrix: try (K + K.T) / 2 if that is round-off."
            )
        return {}

    def _check_blocks(self, A: Any, B: Any) -> tuple[Any, Any]:
        A = as_block(A, self)
        if B is None:
            return A, None
        B = B if is_array_api_obj(B) else np.asarray(B)
        xp = namespace(B)
        if B.ndim != 1 or not xp.isdtype(B.dtype, "integral"):
            raise ValueError(
                f"Got B of shape {tuple(B.shape)} and dtype {B.dtype}, but Precomputed expected "
                "indices of training points: try kernel.anchors(X, indices)."
            )
        return A, B

    def _evaluate(self, A: Any, B: Any) -> Any:
        return A if B is None else namespace(A).take(A, in_library_of(B, A), axis=1)

    def _diagonal(self, A: Any) -> Any:
        if A.shape[0] != A.shape[1]:
            raise ValueError(
                f"Got rows of kernel values of shape {tuple(A.shape)}, but expected the square "
                "Gram matrix: k(x, x) of new points is not among their values with training points."
            )
        return namespace(A).linalg.diagonal(A)
