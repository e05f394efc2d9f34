"""Synthetic data with known geometry, whose classes alternate along the rows."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

RandomState = int | np.random.RandomState | None
Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]


def make_fig2_circles(
    n_samples: int = 40,
    *,
    radii: tuple[float, float] = (1.0, 1.25),
    random_state: RandomState = None,
) -> Labelled:
    r"""Two concentric circles, one per class.

    Class ``c`` lies on :math:`r_c (\cos\theta, \sin\theta)`, with :math:`\theta` uniform. No
    linear map separates the classes, while the kernel :math:`(x \cdot y)^2` does.

    Parameters
    ----------
    n_samples : int, default=40
        Number of points; class 0 gets the odd one.
    radii : tuple of two floats, default=(1.0, 1.25)
        Radius of each class.
    random_state : int, RandomState instance or None, default=None
        Source of the angles.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2) and of shape (n_samples,)
        The points, and the classes, 0 and 1 in turn.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance learning
       algorithms", Neurocomputing, 2010, Fig. 2. The radii are our choice.

    Examples
    --------
    >>> from kernelmetric.datasets import make_fig2_circles
    >>> X, y = make_fig2_circles(6, random_state=0)
    >>> (X[:, 0] ** 2 + X[:, 1] ** 2).round(12).tolist()
    [1.0, 1.5625, 1.0, 1.5625, 1.0, 1.5625]
    """
    y = _alternate(n_samples)
    theta = check_random_state(random_state).uniform(0.0, 2.0 * np.pi, n_samples)
    r = _positive(radii, "radii")[y]
    return np.column_stack([r * np.cos(theta), r * np.sin(theta)]), y


def make_fig2_hyperbolas(
    n_samples: int = 40,
    *,
    radii: tuple[float, float] = (1.0, 1.3),
    t_max: float = 1.0,
    random_state: RandomState = None,
) -> Labelled:
    r"""Two nested hyperbolas of two branches each, one hyperbola per class.

    Class ``c`` lies on :math:`(\pm r_c \cosh t, r_c \sinh t)`, with :math:`|t| \le t_{\max}` such
    that :math:`x_1 x_2` is uniform on each curve, and the branches taken in turn.

    Parameters
    ----------
    n_samples : int, default=40
        Number of points; a multiple of 4 gives every branch of every class as many.
    radii : tuple of two floats, default=(1.0, 1.3)
        Semi-axis of each class.
    t_max : float, default=1.0
        Length of the branches.
    random_state : int, RandomState instance or None, default=None
        Source of the positions.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2) and of shape (n_samples,)
        The points, and the classes, 0 and 1 in turn.

    References
    ----------
    .. [1] Chatpatanasiri et al., "A new kernelization framework for Mahalanobis distance learning
       algorithms", Neurocomputing, 2010, Fig. 2. The semi-axes are our choice.

    Examples
    --------
    >>> from kernelmetric.datasets import make_fig2_hyperbolas
    >>> X, y = make_fig2_hyperbolas(4, random_state=0)
    >>> (X[:, 0] ** 2 - X[:, 1] ** 2).round(12).tolist()
    [1.0, 1.69, 1.0, 1.69]
    """
    y = _alternate(n_samples)
    r = _positive(radii, "radii")[y]
    side = 1 - 2 * (np.arange(n_samples) // 2 % 2)
    u = check_random_state(random_state).uniform(-1.0, 1.0, n_samples)
    t = 0.5 * np.arcsinh(u * np.sinh(2.0 * t_max))  # x1 x2 = r² sinh(2t) / 2 is uniform
    return np.column_stack([side * r * np.cosh(t), r * np.sinh(t)]), y


def make_toy004(
    n_samples: int = 100, *, n_irrelevant: int = 10, random_state: RandomState = None
) -> Labelled:
    r"""One relevant feature under many irrelevant ones of larger spread.

    The first feature is :math:`N(3, 1)` in class 0 and :math:`N(-3, 1)` in class 1; each of the
    others is :math:`N(0, 25)` (variance 25) in both.

    Parameters
    ----------
    n_samples : int, default=100
        Number of points, as in the paper; class 0 gets the odd one.
    n_irrelevant : int, default=10
        Number of irrelevant features, as in the paper.
    random_state : int, RandomState instance or None, default=None
        Source of the values.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 1 + n_irrelevant) and of shape (n_samples,)
        The points, and the classes, 0 and 1 in turn.

    References
    ----------
    .. [1] Kwok, Tsang, "Learning with idealized kernels", ICML, 2003. Section 4, Table 1.

    Examples
    --------
    >>> from kernelmetric.datasets import make_toy004
    >>> X, y = make_toy004(random_state=0)
    >>> X.shape
    (100, 11)
    """
    y = _alternate(n_samples)
    X = check_random_state(random_state).standard_normal((n_samples, 1 + n_irrelevant))
    X[:, 0] += np.where(y == 0, 3.0, -3.0)
    X[:, 1:] *= 5.0
    return X, y


def make_checkerboard(
    n_samples: int = 200, n_noise: int = 0, *, n_cells: int = 4, random_state: RandomState = None
) -> Labelled:
    r"""Points on a checkerboard, the colour their class, with irrelevant features beside.

    With :math:`m` cells a side, :math:`y = (\lfloor m x_1 \rfloor + \lfloor m x_2 \rfloor)
    \bmod 2`. Features 3 and up are uniform on [0, 1) and say nothing of the class.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points; class 0 gets the odd one.
    n_noise, n_cells : int, default=0 and 4
        Number of irrelevant features, and of cells a side, at least 2.
    random_state : int, RandomState instance or None, default=None
        Source of the points.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2 + n_noise) and of shape (n_samples,)
        The points, all coordinates in [0, 1), and the classes, 0 and 1 in turn.

    Examples
    --------
    >>> from kernelmetric.datasets import make_checkerboard
    >>> X, y = make_checkerboard(100, n_noise=3, random_state=0)
    >>> X.shape
    (100, 5)
    """
    if n_cells < 2:
        raise ValueError(f"Got n_cells={n_cells}, but expected at least 2.")
    y = _alternate(n_samples)
    rng = check_random_state(random_state)
    row, column = np.divmod(np.arange(n_cells**2), n_cells)
    cells = np.column_stack([row, column])
    corner = np.empty((n_samples, 2))
    for c in (0, 1):  # apart, for an odd board has one cell more of colour 0
        of_class = cells[(row + column) % 2 == c]
        corner[y == c] = of_class[rng.randint(len(of_class), size=np.count_nonzero(y == c))]
    inside = (corner + rng.uniform(size=(n_samples, 2))) / n_cells
    return np.column_stack([inside, rng.uniform(size=(n_samples, n_noise))]), y


def make_close_moons(
    n_samples: int = 200,
    *,
    radius: float = 2.0,
    lift: float = 0.15,
    noise: float = 0.02,
    random_state: RandomState = None,
) -> Labelled:
    r"""Two moons, one pushed up into the other until a neighbour graph no longer parts them.

    Class 0 lies on :math:`r (\cos t, \sin t)`, class 1 on
    :math:`r (1 - \cos t, \tfrac12 + l - \sin t)`, for evenly spaced :math:`0 \le t \le \pi` and
    lift l, plus Gaussian noise.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points; class 0 gets the odd one.
    radius, lift, noise : float, default=2.0, 0.15 and 0.02
        Radius of the moons, how far the lower one is pushed up, in units of the radius, and the
        standard deviation of the noise.
    random_state : int, RandomState instance or None, default=None
        Source of the noise.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2) and of shape (n_samples,)
        The points, and the classes, 0 and 1 in turn.

    References
    ----------
    .. [1] Li, Yang and Wang, "A transductive framework of distance metric learning by spectral
       dimensionality reduction", ICML 2007, Fig. 1. The numbers are our choice.

    Examples
    --------
    >>> from kernelmetric.datasets import make_close_moons
    >>> X, y = make_close_moons(4, noise=0.0)
    >>> X.round(2).tolist()
    [[2.0, 0.0], [0.0, 1.3], [-2.0, 0.0], [4.0, 1.3]]
    """
    y = _alternate(n_samples)
    radius = float(_positive((radius, radius), "radius")[0])
    t = np.pi * (np.arange(n_samples) // 2) / max((n_samples + 1) // 2 - 1, 1)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.column_stack([1.0 - np.cos(t), 0.5 + lift - np.sin(t)])
    X = radius * np.where(y[:, None] == 0, upper, lower)
    return X + noise * check_random_state(random_state).standard_normal(X.shape), y


def _alternate(n_samples: int) -> NDArray[np.int64]:
    if n_samples < 2:
        raise ValueError(f"Got n_samples={n_samples}, but expected at least one point per class.")
    return np.arange(n_samples, dtype=np.int64) % 2


def _positive(values: tuple[float, float], name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (2,) or not (array > 0).all():
        raise ValueError(f"Got {name}={values!r}, but expected two positive numbers.")
    return array
