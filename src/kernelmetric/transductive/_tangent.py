"""Tangent distance between images: small shifts, rotations and the like cost nothing."""

from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from kernelmetric.compute import over_rows, rough, to_device, to_numpy
from kernelmetric.compute.reductions import nearest_neighbors, subspace_distances
from kernelmetric.inputs import as_floats, device_like
from kernelmetric.inputs._parameters import POSITIVE

TANGENTS = (
    "shift in x",
    "shift in y",
    "rotation",
    "scaling",
    "stretching of the axes",
    "stretching of the diagonals",
    "thickness",
)
_RELATIVE_CUT = 1e-6  # of the squared length: a tangent that is a combination of the others
_IMAGES = 512  # whose tangents are computed together


def tangent_vectors(images: Any, *, shape: tuple[int, int], sigma: float = 0.9) -> np.ndarray:
    """The tangent vectors of images: how they change under seven small transformations.

    With the derivatives p_x and p_y of the smoothed image and coordinates from its centre: shifts
    p_x and p_y, rotation y p_x - x p_y, scaling x p_x + y p_y, stretching x p_x - y p_y and
    y p_x + x p_y, thickness p_x² + p_y².

    Parameters
    ----------
    images : array-like of shape (n, h * w) or (n, h, w)
        Grey values, one image per row.
    shape, sigma : tuple of (h, w), and float, default=0.9
        Height and width of an image, and of the Gaussian that smooths it, in pixels.

    Returns
    -------
    ndarray of shape (n, 7, h * w)
        In the order of ``TANGENTS``. Neither of unit length nor orthogonal.

    References
    ----------
    .. [1] Simard, LeCun, Denker, Victorri, "Transformation invariance in pattern recognition:
       tangent distance and tangent propagation", Neural Networks: Tricks of the Trade (1998).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import tangent_vectors
    >>> square = np.zeros((1, 8, 8))
    >>> square[0, 2:6, 2:6] = 1.0
    >>> tangent_vectors(square, shape=(8, 8)).shape
    (1, 7, 64)
    """
    pictures = _pictures(images, shape, sigma)
    height, width = shape
    p_x = gaussian_filter(pictures, (0, sigma, sigma), order=(0, 0, 1))
    p_y = gaussian_filter(pictures, (0, sigma, sigma), order=(0, 1, 0))
    x = (np.arange(width) - (width - 1) / 2).astype(pictures.dtype)
    y = (np.arange(height) - (height - 1) / 2).astype(pictures.dtype)[:, None]
    tangents = (
        p_x,
        p_y,
        y * p_x - x * p_y,
        x * p_x + y * p_y,
        x * p_x - y * p_y,
        y * p_x + x * p_y,
        p_x * p_x + p_y * p_y,
    )
    return np.stack(tangents, axis=1).reshape(len(pictures), len(TANGENTS), -1)


def tangent_distance(A: Any, B: Any, *, shape: tuple[int, int], sigma: float = 0.9) -> np.ndarray:
    r"""Tangent distance between each image of A and the image of B in the same place.

    The distance of their tangent planes, so that small transformations of either cost nothing:

    .. math:: d(a, b) = \min_{\alpha, \beta} \| (a + T_a \alpha) - (b + T_b \beta) \|

    Parameters
    ----------
    A, B : array-like of shape (n, h * w) or (n, h, w)
        As many images each.
    shape, sigma : tuple of (h, w), and float, default=0.9
        Height and width of an image, and of the Gaussian that smooths it, in pixels.

    Returns
    -------
    ndarray of shape (n,)
        Symmetric in A and B, never above the Euclidean distance of the smoothed images, zero
        between equal images.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.transductive import tangent_distance
    >>> bar = np.zeros((1, 16, 16))
    >>> bar[0, 4:12, 6:9] = 1.0
    >>> shifted = np.roll(bar, 1, axis=2)
    >>> float(np.linalg.norm(bar - shifted))
    4.0
    >>> tangent_distance(bar, shifted, shape=(16, 16)).round(2)
    array([0.05])
    """
    given, A, B = A, _pictures(A, shape, sigma), _pictures(B, shape, sigma)
    if len(A) != len(B):
        raise ValueError(f"Got {len(A)} and {len(B)} images, but expected as many in A as in B.")
    each = np.arange(len(A))
    with device_like(given):
        return np.sqrt(_squared_distances(np.concatenate([A, B]), each, len(A) + each, sigma))


def tangent_neighbors(
    images: Any,
    n_neighbors: int,
    *,
    shape: tuple[int, int],
    n_candidates: int = 150,
    sigma: float = 0.9,
    candidates: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Nearest images by tangent distance, among the nearest by Euclidean distance.

    O(n² h w) time for these candidates, O(n_candidates n h w) for the distances.

    Parameters
    ----------
    images : array-like of shape (n, h * w) or (n, h, w)
        The images.
    n_neighbors : int
        Number of neighbours, the image itself not counted.
    shape : tuple of (h, w)
        Height and width of an image.
    n_candidates : int, default=150
        Euclidean neighbours of each image to look at; all others where there are fewer.
    sigma : float, default=0.9
        Width of the Gaussian that smooths the images, in pixels.
    candidates : array-like of int of shape (n, n_candidates), default=None
        Candidates found elsewhere; None searches for them, exactly.

    Returns
    -------
    distances : ndarray of shape (n, n_neighbors)
        Tangent distances, ascending; inf where there are too few images.
    indices : ndarray of shape (n, n_neighbors)
        The neighbours; -1 where there are too few images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernelmetric.graphs import neighbor_graph
    >>> from kernelmetric.transductive import tangent_neighbors
    >>> images, _ = load_digits(return_X_y=True)
    >>> neighbors = tangent_neighbors(images[:300], 5, shape=(8, 8), n_candidates=30)
    >>> neighbor_graph(None, 5, neighbors=neighbors).shape
    (300, 300)
    """
    pictures = _pictures(images, shape, sigma)
    n = len(pictures)
    if candidates is None:
        if not n_candidates >= n_neighbors >= 1:
            raise ValueError(
                f"Got n_neighbors={n_neighbors} and n_candidates={n_candidates}, but expected "
                "1 <= n_neighbors <= n_candidates: try n_candidates=150."
            )
        with device_like(images):
            candidates, _ = nearest_neighbors(to_device(pictures.reshape(n, -1)), n_candidates)
    first, second = _unordered_pairs(np.asarray(candidates), n)
    with device_like(images):
        squared = _squared_distances(pictures, first, second, sigma)
    return _nearest_of_pairs(first, second, np.sqrt(squared), n, n_neighbors)


def _pictures(images: Any, shape: tuple[int, int], sigma: float) -> np.ndarray:
    """Images as a finite floating-point array of shape (n, h, w)."""
    pictures = np.asarray(to_numpy(images))
    # Whole numbers of grey have few digits.
    pictures = as_floats(pictures) if pictures.dtype.kind == "f" else rough(pictures)
    n_pixels = int(np.prod(shape))
    if len(shape) != 2 or pictures.ndim not in (2, 3) or np.prod(pictures.shape[1:]) != n_pixels:
        raise ValueError(
            f"Got images of shape {pictures.shape} and shape={shape}, but expected (n, h * w) or "
            "(n, h, w) with shape=(h, w)."
        )
    if not np.all(np.isfinite(pictures)):
        raise ValueError("Got images with NaN or infinity, but expected finite grey values.")
    POSITIVE.require("sigma", sigma, hint="try 0.9")
    return pictures.reshape(len(pictures), *shape)


def _planes(pictures: np.ndarray, sigma: float) -> np.ndarray:
    """The tangent plane of every image: the smoothed image and orthonormal directions."""
    n, height, width = pictures.shape
    planes = np.empty((n, len(TANGENTS) + 1, height * width), dtype=pictures.dtype)
    for start in range(0, n, _IMAGES):
        block = slice(start, start + _IMAGES)
        smoothed = gaussian_filter(pictures[block], (0, sigma, sigma))
        planes[block, 0] = smoothed.reshape(len(smoothed), -1)
        planes[block, 1:] = _orthonormal(
            tangent_vectors(pictures[block], shape=(height, width), sigma=sigma)
        )
    return planes


def _squared_distances(
    pictures: np.ndarray, first: np.ndarray, second: np.ndarray, sigma: float
) -> np.ndarray:
    """Squared tangent distances of pairs of images, block against block of them."""
    squared = np.empty(len(first), dtype=pictures.dtype)
    n, size = len(pictures), 2 * (len(TANGENTS) + 1) * pictures[:1].nbytes

    def from_block(I: slice) -> None:  # noqa: E741 (a block of rows)
        S = _planes(pictures[I], sigma)
        start, stop = np.searchsorted(first, (I.start, I.stop))

        def to_block(J: slice) -> None:
            chosen = start + np.flatnonzero(
                (second[start:stop] >= J.start) & (second[start:stop] < J.stop)
            )
            if len(chosen):  # none in blocks before: the second of a pair comes after the first
                T = S if I == J else _planes(pictures[J], sigma)
                i, j = first[chosen] - I.start, second[chosen] - J.start
                squared[chosen] = subspace_distances(S, T, i, j)

        over_rows(to_block, n, size)

    over_rows(from_block, n, size)
    return squared


def _orthonormal(T: np.ndarray) -> np.ndarray:
    """Rows that span those of each T; zero rows take the place of what depends on others."""
    length = np.linalg.norm(T, axis=2, keepdims=True)
    T = (T / np.where(length > 0, length, 1)).astype(np.float64)
    values, U = np.linalg.eigh(T @ T.transpose(0, 2, 1))
    clear = values > _RELATIVE_CUT * values[:, -1:]
    scale = np.where(clear, 1 / np.sqrt(np.where(clear, values, 1)), 0)
    return (U * scale[:, None, :]).transpose(0, 2, 1) @ T


def _unordered_pairs(candidates: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of an image and its candidate once, i < j, sorted by i."""
    if candidates.ndim != 2 or len(candidates) != n or candidates.dtype.kind not in "iu":
        raise ValueError(
            f"Got candidates of shape {candidates.shape} and dtype {candidates.dtype}, but "
            f"expected integers of shape ({n}, k): row numbers of images."
        )
    rows, slots = np.nonzero((candidates >= 0) & (candidates != np.arange(n)[:, None]))
    columns = candidates[rows, slots]
    joined = np.unique(np.minimum(rows, columns) * n + np.maximum(rows, columns))
    return joined // n, joined % n


def _nearest_of_pairs(
    first: np.ndarray, second: np.ndarray, distances: np.ndarray, n: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of every point among the pairs it belongs to."""
    both = np.concatenate([first, second]), np.concatenate([second, first]), np.tile(distances, 2)
    order = np.lexsort((both[1], both[2], both[0]))
    rows, columns, values = (each[order] for each in both)
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    near = place < k
    nearest = np.full((n, k), np.inf, dtype=distances.dtype)
    indices = np.full((n, k), -1, dtype=np.intp)
    nearest[rows[near], place[near]] = values[near]
    indices[rows[near], place[near]] = columns[near]
    return nearest, indices
