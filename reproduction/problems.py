"""Data sets as comparisons use them: how many training points, how scaled, which split."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelmetric import datasets
from kernelmetric.demo import Split
from reproduction.datasets import load

N_TEST = 2000


class Problem(NamedTuple):
    """A data set, as the comparison uses it.

    Parameters
    ----------
    name : str
        Name, as the table shows it.
    n_train : int
        Training points; others are the test set.
    draw : callable
        ``draw(n, random_state) -> X, y``: at least n points in random order.
    scaling : {"features", "pixels", "unit", "raw"}
        What the training points say about scale: each feature has mean zero and variance one;
        all features together have them; each feature lies between 0 and 1; nothing.
    n_test : int
        The most test points.
    """

    name: str
    n_train: int
    draw: Callable[[int, np.random.RandomState], tuple[np.ndarray, np.ndarray]]
    scaling: str = "features"
    n_test: int = N_TEST

    def loaded(self) -> Problem:
        """The same problem with its points in it, for machines that do not have the files.

        Returns
        -------
        Problem
            It draws the same splits; what is generated is generated there.
        """
        if not isinstance(self.draw, Shuffled):
            return self
        points = self.draw.load()
        return self._replace(draw=Shuffled(lambda: points))

    def split(self, seed: int) -> Split:
        """Training and test points of one split, scaled as the training points say.

        Parameters
        ----------
        seed : int
            The only source of randomness.

        Returns
        -------
        Split
            Class codes as labels.
        """
        n, end = self.n_train, self.n_train + self.n_test
        X, y = self.draw(end, np.random.RandomState(seed))
        X, y = X[:end].astype(np.float64), np.unique(y, return_inverse=True)[1]
        X = _SCALINGS[self.scaling](X, n)
        return Split(X[:n], y[:n], X[n:], y[n:end])


_SCALINGS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "features": lambda X, n: StandardScaler().fit(X[:n]).transform(X),
    "pixels": lambda X, n: (X - X[:n].mean()) / X[:n].std(),
    "unit": lambda X, n: MinMaxScaler().fit(X[:n]).transform(X),
    "raw": lambda X, n: X,
}


def stored(name: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """How to draw points of a data set of the library, in random order."""
    return Shuffled(lambda: load(name, return_X_y=True))


class Shuffled:
    """Draws points of a data set in random order.

    Parameters
    ----------
    load : callable
        Gives all points and their labels.
    """

    def __init__(self, load: Callable[[], tuple[np.ndarray, np.ndarray]]):
        self.load = load

    def __call__(self, n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """As many points as there are, up to n."""
        X, y = self.load()
        order = rng.permutation(len(y))[:n]
        return X[order], y[order]


def make_gaussians(
    n_samples: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of three Gaussians each in the plane, and four features of noise.

    Parameters
    ----------
    n_samples : int
        Number of points.
    random_state : RandomState
        Source of the points; the nine centres are always the same.

    Returns
    -------
    X : ndarray of shape (n_samples, 6)
        Points.
    y : ndarray of shape (n_samples,)
        Classes.
    """
    centres = np.random.RandomState(7).uniform(-4.0, 4.0, size=(9, 2))
    which = random_state.randint(9, size=n_samples)
    signal = centres[which] + 0.7 * random_state.standard_normal((n_samples, 2))
    noise = 3.0 * random_state.standard_normal((n_samples, 4))
    return np.hstack([signal, noise]), which % 3


def _checkerboard(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_checkerboard(n, n_noise=4, random_state=rng)


def moons_in_noise(n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Two moons, and six features that say nothing."""
    X, y = make_moons(n, noise=0.25, random_state=rng)
    return np.hstack([X, rng.standard_normal((n, 6))]), y


def _problems(sizes: dict[str, int]) -> tuple[Problem, ...]:
    pixels = {"m_usps", "usps", "mnist", "digits"}
    return tuple(
        Problem(k, n, stored(k), "pixels" if k in pixels else "features") for k, n in sizes.items()
    )


_SMALL = dict.fromkeys(("glass", "iris", "sonar", "wine"), 100)
_TEN = "balance breast glass ionosphere iris musk2 pima satellite yeast m_usps"
_FRESH = "sonar wine letter usps mnist shuttle covtype"

#: The sets of 000 with its numbers of training points; sets at 400 points; many modes under
#: noise; and sets that played no part in the making of the default.
GROUPS: dict[str, tuple[Problem, ...]] = {
    "ten": _problems({name: _SMALL.get(name, 200) for name in _TEN.split()}),
    "fresh": _problems({name: _SMALL.get(name, 400) for name in _FRESH.split()}),
    "noisy": (
        Problem("checkerboard", 300, _checkerboard),
        Problem("gaussians", 200, make_gaussians),
    ),
    "unseen": (
        *_problems({"digits": 400, "colon": 40, "soybean_small": 24}),
        Problem("wdbc", 200, Shuffled(lambda: load_breast_cancer(return_X_y=True))),
        Problem("moons", 200, moons_in_noise),
    ),
}


def folds() -> StratifiedKFold:
    """The folds by which all comparisons tune: three, the same for every method."""
    return StratifiedKFold(3, shuffle=True, random_state=0)


@lru_cache(maxsize=1)
def split_of(problem: Problem, seed: int) -> Split:
    """A split of a problem, kept for the methods that are compared on it."""
    return problem.split(seed)
