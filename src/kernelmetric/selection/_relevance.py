"""What ridge regression learns of features: their scales, a map of them, and odd columns."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg, optimize

from kernelmetric import solvers
from kernelmetric.compute import like, map_rows, namespace, rough, take_rows, to_numpy
from kernelmetric.compute.reductions import overflow_error
from kernelmetric.compute.watch import ended_by_limit
from kernelmetric.inputs import farthest_column
from kernelmetric.kernels import Kernel, Rescaled, rescaled
from kernelmetric.learners._feature_rounds import KERNELS, feature_rounds, square_root
from kernelmetric.solvers import Family, Grid

CHOICE = "the choice of a kernel: the best so far is kept"  # what a time limit ends
_PRIOR = 1.0  # weight of a squared log-relevance; it is one sample against n
_LOG_BOUNDS = (-8.0, 4.0)  # of a relevance, around the common one
_LOG_RIDGE_BOUNDS = (np.log(1e-3), np.log(30.0))  # a smaller one would ask for all digits
_RIGHT = 1.2e-4  # over the rows, so right need be points: else the smallest ridge is lost
_SQUARE = 10.0  # likewise over a tenth of squares: distances are differences of these
_UNUSUAL = 20.0  # spreads from the median, as no value of a usual column is
_UNLIKE = 10.0  # times as wide as another feature is: perhaps its unit is another
_SPREAD_ROWS = 200  # tell the spread of a column
_BEYOND = 1e30  # of another column: rounding leaves nothing so small, and no unit is so large
_RANGE = 1e-100, 1e100  # of a spread, whose square and inverse are numbers
_FARTHEST = 1e5  # usual distances, beyond which every kernel that is tried is zero
_GAIN = 0.95  # a map must lower the error this far on points that it was not learned from
_GAIN_OF_NUMBERS = 0.9  # where there are no classes that would have to become better too
_LARGE_GAIN = 0.75  # after it classes need not become better, only no worse
_STANDARD_ERRORS = 1.5  # by so many more points must change to their right class than from it
_HOPELESS = 1.0, 0.97  # gains of the first round, and of all, after which no more is tried
_TO_WIN = 0.005  # where fewer of the points are wrong, no map is looked for
_ROUNDS = 2  # the most; a third one gains little for its time
_MAP_ROWS = 350  # to find out whether a map helps
_FEW_ROWS = 160  # to find out where to begin
_LEAST_ROWS = 100  # gradients of fewer say little
_ROWS_A_FEATURE = 3  # likewise
_MOST_FEATURES = 128  # d³ of more would take longer than all else


class Sample(NamedTuple):
    """Points, a column of targets for each class, and roots of the weights where there are any."""

    X: Any
    Y: np.ndarray
    roots: np.ndarray | None = None

    def take(self, rows: Any) -> Self:
        """Some rows of it."""
        roots = None if self.roots is None else self.roots[rows]
        return self._replace(X=self.X[rows], Y=self.Y[rows], roots=roots)

    def mapped(self, scales: np.ndarray | None) -> Self:
        """The same of rescaled, or mapped points; of the points themselves where None."""
        return self if scales is None else self._replace(X=rescaled(self.X, scales))

    def grid(self, family: Family, judged: int | None = None) -> Grid:
        """Errors of a family of kernels, on some of the points."""
        return Grid(self.X, self.Y, family, judged, self.roots)


def relevance_loss(
    parameters: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    tol: float = 0.0,
    roots: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """Logarithm of the leave-one-out error of ridge regression, and its gradient.

    With ``K_ij = exp(-Σ_f w_f (x_if - x_jf)²)``, ``G = (K + 1 + λI)⁻¹`` and the residuals
    ``r_i = (GY)_i / G_ii`` of points left out, it is ``log mean r²``; the parameters are the
    logarithms of w and λ. Points need be right to ``tol``. O(n³ + n² d) time, some n × n arrays.
    """
    ridge = float(np.exp(parameters[-1]))
    Z = rough((X - X.mean(axis=0)) * np.exp(0.5 * parameters[:-1]), tol)
    K = np.exp(-np.clip(_squared_distances(Z), 0.0, solvers.FARTHEST))
    factor = solvers.cholesky_factor(solvers.with_intercept(K, roots), ridge)
    G = solvers.inverse_of(factor, "potri")
    np.copyto(G, G.T, where=np.tri(len(G), k=-1, dtype=bool).T)
    if roots is not None:
        Y, K = roots[:, None] * Y, like(roots[:, None] * K * roots, Z)
    alpha, diagonal = G @ like(Y, Z), np.diag(G)[:, None]
    residuals = alpha / diagonal
    squares = np.sum(residuals**2, axis=1)
    syrk, syr2k, symm = linalg.get_blas_funcs(("syrk", "syr2k", "symm"), (G,))
    # d mean r² = tr(M dK): the first term through the diagonal of G, the others through GY. Of M,
    # which is symmetric, only the lower half is computed.
    M = syrk(1.0, G * np.sqrt(2.0 * squares / diagonal[:, 0]), lower=1)
    second = G @ (residuals / diagonal)
    M = syr2k(-1.0, alpha, second, beta=1.0, c=M, lower=1, overwrite_c=1)
    trace = np.trace(M)
    M *= K.T
    around = symm(2.0, M, np.column_stack([Z, np.ones_like(Z[:, :1])]), lower=1)
    moved = np.einsum("if,if->f", Z, around[:, :-1]) - around[:, -1] @ Z**2
    gradient = np.append(moved, ridge * trace).astype(np.float64) / squares.sum()
    return float(np.log(squares.sum() / Y.size)), gradient


def relevances(
    blocks: Sequence[tuple[Any, ...]], start: np.ndarray, max_iter: int, groups: np.ndarray
) -> tuple[float, np.ndarray]:
    """Logarithms of relevances and ridge, by descent on the leave-one-out error."""
    n = sum(len(block[1]) for block in blocks)

    scales = np.exp(0.5 * start[:-1])
    far = max(np.max(np.abs((X - X.mean(axis=0)) * scales)) for X, *_ in blocks) ** 2
    tol = _RIGHT / max(n, far / _SQUARE)

    def loss_of_block(parameters: np.ndarray, *block: Any) -> tuple[float, np.ndarray]:
        X, Y, *roots = block
        try:
            return relevance_loss(parameters, X, Y, tol, *roots)
        except linalg.LinAlgError:  # relevances may have grown on the way
            return relevance_loss(parameters, X, Y, 0.0, *roots)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        found = [loss_of_block(parameters, *block) for block in blocks]
        values, gradients = zip(*found, strict=True)
        return float(np.mean(values)), np.mean(gradients, axis=0)

    return descend(loss, start, groups, prior=_PRIOR / n, max_iter=max_iter)


def descend(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    groups: np.ndarray,
    *,
    prior: float,
    max_iter: int = 30,
    what: str = CHOICE,
) -> tuple[float, np.ndarray]:
    """The least of a loss of log-relevances from a start, with a prior that they are alike."""
    n_groups = int(groups.max()) + 1
    # every parameter of the loss is one of these; the ridge is of no group
    place = np.append(groups, np.full(len(start) - len(groups), n_groups)).astype(np.intp)

    def objective(few: np.ndarray) -> tuple[float, np.ndarray]:
        value, by_feature = loss(few[place])
        gradient = np.bincount(place, by_feature, minlength=len(few))
        away = few[:n_groups] - few[:n_groups].mean()
        gradient[:n_groups] += 2.0 * prior * away
        return value + prior * float(away @ away), gradient

    first = np.empty(place.max() + 1)
    first[place] = start  # those of one group begin alike
    middle = float(np.mean(first[:n_groups]))
    bounds = [(middle + _LOG_BOUNDS[0], middle + _LOG_BOUNDS[1])] * n_groups
    bounds += [_LOG_RIDGE_BOUNDS] * (len(first) - n_groups)

    def in_time(intermediate_result: Any) -> None:
        if ended_by_limit(what):
            raise StopIteration

    options: Any = {"method": "L-BFGS-B", "bounds": bounds, "options": {"maxiter": max_iter}}
    found = optimize.minimize(objective, first, jac=True, callback=in_time, **options)
    return float(found.fun), found.x[place]


def checked_groups(groups: Any, n_features: int, order: Any = slice(None)) -> np.ndarray:
    """The group of each feature, in some order, numbered as they come; None: each its own."""
    if groups is None:
        return np.arange(n_features)
    found = np.asarray(groups)
    if found.shape != (n_features,) or found.dtype.kind not in "iu":
        raise ValueError(
            f"Got groups={groups!r} for points with {n_features} features, but expected the number "
            "of a group for each: try groups=None."
        )
    _, first, found = np.unique(found[order], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[found.reshape(-1)]


def scaled(X: Any, units: np.ndarray) -> Any:
    """Points in other units, wherever their rows lie."""
    return map_rows(lambda rows: X[rows, :] * like(units, X)[None, :], X.shape[0], 1)


def in_units(kernel: Kernel, units: np.ndarray) -> Kernel:
    """A kernel that was bound to points in other units, for the points themselves."""
    inside, scales = (kernel.kernel, kernel.scales) if isinstance(kernel, Rescaled) else (kernel, 1)
    found = Rescaled(inside, scales * units)
    found.__dict__.update({name: part for name, part in vars(kernel).items() if name.endswith("_")})
    return found


def _squared_distances(Z: np.ndarray) -> np.ndarray:
    """For a descent; those of ``compute`` are exact where points nearly coincide, and slower."""
    norms = np.einsum("ij,ij->i", Z, Z)
    D = Z @ (-2.0 * Z.T)
    D += norms
    D += norms[:, None]
    return D


def units_of(X: Any) -> np.ndarray | None:
    """Scales that bring columns 10³⁰ times as wide, or narrow, as others to the spread of these."""
    with np.errstate(all="ignore"):
        some = to_numpy(take_rows(X, solvers.evenly(X.shape[0], _SPREAD_ROWS))).astype(np.float64)
        wide = np.max(np.abs(some - some[:1]), axis=0)
        used = np.flatnonzero(wide > 0)
        if not len(used):
            return None
        least, most = wide[used].min(), wide[used].max()
        if _RANGE[0] < least and most < _RANGE[1] and most < _BEYOND * least:
            return None
        spreads = np.array([_spread(some[:, j]) for j in used])
        amid = np.sort(spreads)[[(len(spreads) - 1) // 2, len(spreads) // 2]]
        middle = float(amid[np.argmin(np.abs(np.log(amid)))])
        off = (spreads > _BEYOND * middle) | (spreads < middle / _BEYOND)
        units = np.ones(X.shape[1])
        units[used[off]] = middle / spreads[off]
    return units if off.any() and _RANGE[0] < middle < _RANGE[1] else None


def better_units(X: np.ndarray, error: Callable[[np.ndarray], float]) -> np.ndarray | None:
    """Scales that give all features one spread, where spreads differ and the error prefers it."""
    used = np.ptp(X, axis=0) > 0
    spreads = np.array([_deviation(X[:, j]) if used[j] else 0.0 for j in range(X.shape[1])])
    if not used.any() or spreads[used].max() <= _UNLIKE * spreads[used].min():
        return None
    units = np.ones(X.shape[1])
    units[used] = np.exp(np.mean(np.log(spreads[used]))) / spreads[used]
    return units if error(X * units) < error(X) else None


def _deviation(values: np.ndarray) -> float:
    """The standard deviation of values, those that are far from all others drawn nearer."""
    middle, most = np.median(values), _UNUSUAL * _spread(values)
    return float(np.std(np.clip(values, middle - most, middle + most)))


def _spread(values: np.ndarray) -> float:
    """The median distance from the median, of values that are not the median."""
    away = np.abs(values - np.median(values))
    return float(np.median(away[away > 0]))


def without_gaps(X: np.ndarray, usual: float) -> np.ndarray:
    """Points whose far values are drawn nearer, to where every kernel is still zero."""
    most = _FARTHEST * usual
    wide = np.flatnonzero(np.ptp(X, axis=0) > most)
    if not len(wide):
        return X
    X = X.copy()
    for j in wide:
        order = np.argsort(X[:, j], kind="stable")
        values, middle = X[order, j], len(X) // 2
        steps = np.append(0.0, np.cumsum(np.minimum(np.diff(values), most)))
        X[order, j] = values[middle] + (steps - steps[middle])
    return X


def refuse_overflow(X: Any) -> None:
    """Refuse points whose squared distances overflow, and name the column."""
    xp = namespace(X)
    with np.errstate(all="ignore"):
        wide = 0.5 * xp.max(X, axis=0) - 0.5 * xp.min(X, axis=0)
        if not float(xp.max(wide)) < (float(xp.finfo(X.dtype).max) / (8 * X.shape[1])) ** 0.5:
            raise ValueError(f"{overflow_error(X.dtype)} It is {farthest_column(X)}.")


class Judged(NamedTuple):
    """A map, and what thirds of the points say of it that it was not learned from.

    ``gain`` is its squared error in units of that of the kernel to beat; ``won`` and ``lost`` count
    points that change to their right class and from it. L is None where it was given up early.
    """

    gain: float
    won: float
    lost: float
    L: np.ndarray | None

    @property
    def is_better(self) -> bool:
        """Whether it should be used."""
        if np.isnan(self.won):
            return self.gain < _GAIN_OF_NUMBERS
        more, error = self.won - self.lost, np.sqrt(self.won + self.lost)
        better = self.gain < _GAIN and more > _STANDARD_ERRORS * error
        return bool(better or (self.gain < _LARGE_GAIN and more >= -error))


def learned_map(
    sample: Sample, family: Family, place: tuple[int, int], scales: Sequence[np.ndarray | None]
) -> Judged | None:
    """A map under which ridge regression may predict others of the points better.

    Thirds of the points are predicted from the others, on mapped points and by the kernel to beat:
    of ``family`` at ``place`` on its grid, with ``scales`` for each third to look at.
    """
    n, d = sample.X.shape
    if n < max(_LEAST_ROWS, _ROWS_A_FEATURE * d) or d > _MOST_FEATURES:
        return None
    classes = bool(np.all(np.abs(sample.Y) == 1.0))
    after, before = np.zeros(_ROUNDS), 0.0
    won, lost = np.full((2, _ROUNDS), 0.0 if classes else np.nan)
    maps = np.zeros((_ROUNDS, d, d))
    start = None
    for k, s in enumerate(scales):
        s = np.ones(d) if s is None else s
        others = np.delete(np.arange(n), slice(k, None, 3))
        learn = sample.mapped(s).take(others[solvers.evenly(len(others), _MAP_ROWS)])
        judged = sample.mapped(s).take(slice(k, None, 3))
        w = np.ones(len(judged.Y)) if judged.roots is None else judged.roots**2
        plain = judged.Y - _predicted(learn, judged.X, family, place)
        before += np.sum(w @ plain**2)
        if k == 0 and classes and np.sum(w * ~_right(judged.Y, plain)) < _TO_WIN * n:
            return None  # there is nothing left to win
        if start is None:
            few = learn.take(solvers.evenly(len(learn.Y), _FEW_ROWS))
            start = few.grid(KERNELS["laplace"]).sweep().best
        given: Any = {"place": start, "roots": learn.roots, "what": CHOICE}
        rounds = feature_rounds(learn.X, learn.Y, "laplace", **given)
        t = -1
        for t, fit in enumerate(islice(rounds, 1, _ROUNDS + 1)):
            mapped = judged.Y - fit.predict(judged.X)
            after[t] += np.sum(w @ mapped**2)
            if k == t == 0 and not after[0] < _HOPELESS[0] * before:
                break
            right = [_right(judged.Y, residuals) for residuals in (mapped, plain)]
            won[t] += np.sum(w * (right[0] > right[1]))
            lost[t] += np.sum(w * (right[0] < right[1]))
            maps[t] += s[:, None] * (fit.L.T @ fit.L) * s
        after[t + 1 :] = np.inf  # rounds that were not reached
        best = int(np.argmin(after))
        if not np.isfinite(after[best]):
            return None
        if k == 0 and not after[best] < _HOPELESS[1] * before:
            gain = float(after[best] / before) if before > 0 else 1.0
            return Judged(gain, np.nan, np.nan, None)
    # The mean over two thirds of the points and other two thirds: every point has its say.
    L = square_root(maps[best])
    return Judged(float(after[best] / before), float(won[best]), float(lost[best]), L)


def _right(Y: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Which points are given their class."""
    return np.argmax(Y - residuals, axis=1) == np.argmax(Y, axis=1)


def _predicted(
    known: Sample, X_new: np.ndarray, family: Family, place: tuple[int, int]
) -> np.ndarray:
    """Targets of new points, with the width and ridge of a place."""
    gamma = float(Grid(known.X, known.Y, family).gammas[place[0]])

    def values(D: np.ndarray) -> np.ndarray:
        return np.exp(-np.minimum(gamma * D, solvers.FARTHEST))

    K = values(family.distances(known.X))
    alpha = solvers.ridge_solution(K, known.Y, float(solvers.RIDGES[place[1]]), known.roots)
    return (values(family.distances(X_new, known.X)) + 1.0) @ alpha
