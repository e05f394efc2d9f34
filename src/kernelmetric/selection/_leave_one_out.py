"""Kernel and ridge by the leave-one-out error of ridge regression, which has a closed form."""

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from kernelmetric import inputs
from kernelmetric.compute import in_memory, is_sparse, like, repeatable, take_rows, to_numpy
from kernelmetric.compute.rates import most_in_time, rates
from kernelmetric.compute.reductions import l1_distances, squared_distances
from kernelmetric.compute.watch import ended_by_limit, stage, told_once
from kernelmetric.graphs import coded_targets, spread_rows
from kernelmetric.inputs._keys import column_order
from kernelmetric.inputs._parameters import Numbers, check_flags
from kernelmetric.kernels import RBF, Kernel, Laplacian, Rescaled
from kernelmetric.selection import _relevance
from kernelmetric.selection._many_rows import LANDMARKS, MANY_ROWS, for_many_rows
from kernelmetric.selection._relevance import CHOICE, Sample
from kernelmetric.solvers import RIDGES, Family, Grid, evenly

FAMILIES = (
    Family(RBF, squared_distances, 2.0 ** np.arange(-4, 5)),
    Family(Laplacian, l1_distances, 2.0 ** np.arange(-2, 5)),
)
FALLBACK_RIDGE = 0.1  # where labels cannot choose
_GAIN = 0.9  # scales must lower the error this far on points they were not learned from
_GROUP_GAIN = 0.96  # where columns have one scale for several features: fewer, so safer
_CLEAR, _HOPELESS = 0.83, 0.97  # gains after which no second judgement is asked for
_FEW_ROWS = 160  # to find out where to look
_JUDGED = 400  # rows that tell widths and ridges apart, each predicted from all others
_ROWS_FOR_SCALES = 250  # to find out whether scales help
_FIRST_STEPS, _MORE_STEPS, _LAST_STEPS = 4, 6, 5  # of the descent on scales
_STEPS = 2  # over the grid, with all rows
_SHARE = 8  # of many points an eighth is looked at in the end, at most four times max_samples
_MORE = 4
_JUDGED_AGAIN = 800
_IN_THE_RACE = 1.05  # families whose error is within this factor are compared to the end
_LEAST_ROWS = 40  # for learning scales: a third of them must still say something
_LEAST_BYTES = 2**19  # of small arrays
_FEWEST_ROWS = 8  # for choosing anything at all
_ROWS_IN_HASTE = 250  # that a time limit leaves
_PRODUCTS, _PRODUCTS_AGAIN = 14.0, 4.0  # that a choice takes, times the third power of the rows


class Choice(NamedTuple):
    """The chosen kernel, not bound, and errors of what it was compared with on points left out.

    ``grid`` is that of the chosen family and scales, ``racing`` those of all that came near.
    """

    kernel: Kernel
    ridge: float
    candidates: dict[str, float]
    grid: Grid
    racing: list[Grid]


@dataclass(eq=False, repr=False)
class LeaveOneOutRidge(Kernel):
    r"""The kernel, width and ridge for which ridge regression predicts left-out points best.

    RBF and Laplacian kernels of several widths are compared. Each point is left out in turn and
    predicted from the others. What the prediction of point i misses has a closed form:

    .. math:: r_i = \frac{(GY)_i}{G_{ii}}, \qquad G = (K + 1 + \lambda I)^{-1},

    where Y holds a column of ±1 for each class, or the standardized target. ``bind`` returns the
    kernel whose mean square of r is smallest; its ``ridge_`` is λ.

    On some of the points, ``bind`` also learns a scale for each feature, and a linear map of up to
    128 features as in :class:`~kernelmetric.learners.RFM`. Where either clearly lowers the error on
    the other points, the kernel that it returns takes rescaled or mapped features. It takes m³ time
    and some m × m arrays for m rows, on one thread.

    Parameters
    ----------
    max_samples : int, default=500
        The most rows to look at, a stratified sample; where these are less than an eighth of all,
        up to four times as many judge width and ridge in the end. Of more than 16,000 rows, so many
        tell whether a narrower kernel or a smaller ridge predicts better, by 800 landmarks.
    random_state : int, RandomState or None, default=0
        For the sample.
    groups : array-like of int of shape (d,), default=None
        The group of each feature, from 0 on: those of one group have one scale. None: each has its
        own.
    verbose : bool, default=False
        Say on standard error when the choice begins, and which kernel it is.

    Notes
    -----
    Without y, ``bind`` returns the RBF of median width. Where labels cannot choose (one class,
    fewer than eight points, or points that coincide) it returns ``RBF("median")``, its ridge 0.1.
    A floating-point y with fractions, or with fewer than four rows per value, is a continuous
    target. For sparse X only the RBF is tried, on common scales. Where rows have weights, errors
    count by them, and the ridge is that of a row of mean weight.

    Cells that are 100 times as far from the median of their column as all others, such as 9999 for
    a missing value, are named in a :class:`~kernelmetric.inputs.FarCellWarning`; the choice does
    not follow them. A column 10³⁰ times as wide or as narrow as others is rescaled to their width.
    Where the spreads of columns differ by more than ten times, and left-out points are predicted
    better so, all columns get one spread.

    What ``bind`` returns carries ``ridge_`` and what was tried: ``candidates_`` (the error of each
    family, and of each with scales, by name), and for the chosen one ``gammas_``, ``ridges_`` and
    the grid ``loo_errors_``, NaN where the search did not go; what more than 16,000 rows narrow
    afterwards is in ``gamma`` and ``ridge_`` alone. ``effective_dimension_`` is the sum
    of w / (w + λ) over the eigenvalues w of K + 1. Of more than 4,000 points in classes,
    ``loo_mistakes_`` is the share that is given another class when left out, NaN otherwise.

    Examples
    --------
    >>> from kernelmetric.datasets import make_checkerboard
    >>> from kernelmetric.selection import LeaveOneOutRidge
    >>> X, y = make_checkerboard(200, n_noise=2, random_state=2)
    >>> kernel = LeaveOneOutRidge().bind(X, y)
    >>> bool(kernel.scales[:2].min() > 2 * kernel.scales[2:].max())  # the noise is found out
    True
    """

    max_samples: int = 500
    random_state: Any = 0
    _: KW_ONLY
    groups: Any = None
    verbose: bool = False

    accepts_sparse = True
    is_bound = False

    @told_once()
    def _bound(self, X: Any, y: Any) -> Kernel:
        check_flags(self)
        if in_memory(X) and not is_sparse(X):
            if (units := _relevance.units_of(X)) is not None:
                return _relevance.in_units(self.bind(X * like(units, X), y), units)
            _relevance.refuse_overflow(X)
            inputs.refuse_tiny_columns(X)
            if self.groups is None:  # a table speaks for itself
                inputs.warn_of_far_cells(X)
        labels, weights = inputs.labels_and_weights(y)
        some = None if weights is None else inputs.WeightedLabels(None, weights)
        median = RBF(gamma="median").bind(X, some)  # also refuses points whose distances overflow
        if labels is None:
            return median
        targets = coded_targets(labels, X)
        shares = None if weights is None else weights.shares
        usual = float(median._gamma()) ** -0.5
        # By rounding alone, searches in another order of columns end elsewhere.
        order = np.arange(X.shape[1]) if is_sparse(X) else column_order(X)

        def sample_of(rows: np.ndarray) -> Sample:
            roots = None if shares is None else np.sqrt(shares[rows] / np.mean(shares[rows]))
            points = take_rows(X, rows)
            if not is_sparse(points):
                points = to_numpy(points).astype(np.float64)
                points = _relevance.without_gaps(points, usual)[:, order]
            return Sample(points, targets.columns(rows), roots)

        most = min(self._most_rows(), len(targets.key))
        rows = targets.sample(_rows_in_time(most, _ROWS_IN_HASTE, _PRODUCTS), self.random_state)
        sample = sample_of(rows)
        unlike = np.ptp(sample.Y, axis=0).any() and squared_distances(sample.X).any()
        if len(rows) < _FEWEST_ROWS or not unlike:
            median.__dict__["ridge_"] = FALLBACK_RIDGE
            return median
        if self.groups is None and not is_sparse(X):
            units = _relevance.better_units(sample.X, lambda X: _soon_told(sample._replace(X=X)))
            if units is not None:
                units = units[np.argsort(order)]  # far cells have been told of
                with warnings.catch_warnings(category=inputs.FarCellWarning, action="ignore"):
                    return _relevance.in_units(self.bind(_relevance.scaled(X, units), y), units)
        # Far points may underflow.
        what = f"{type(self).__name__}: comparing kernels on {len(rows):,} rows"
        working = stage(what, shown=self.verbose)
        with np.errstate(all="ignore"), repeatable(), working:
            groups = _relevance.checked_groups(self.groups, X.shape[1], order)
            choice, mistakes = choose(sample, targets.key[rows], groups), np.nan
            more = self._rows_again(len(targets.key))
            if more > len(rows) and not ended_by_limit(CHOICE):
                more = _rows_in_time(more, len(rows), _PRODUCTS_AGAIN)
            if more > len(rows) and not ended_by_limit(CHOICE):
                rows = targets.sample(more, self.random_state)
                choice = choose_again(choice, sample_of(rows))
                mistakes = choice.grid.mistakes()
            how = {1: ", rescaled", 2: ", mapped"}.get(np.ndim(getattr(choice.kernel, "scales", 0)))
            named = f"{choice.grid.name}{how or ''}"
            working.note = f"{named}, left-out error {choice.grid.error:.3g}"
        many = len(targets.key) > MANY_ROWS and not is_sparse(X)
        if many and not ended_by_limit(CHOICE):
            rows = targets.sample(MANY_ROWS, self.random_state)
            with stage(f"{type(self).__name__}: widths for many rows", shown=self.verbose):
                choice = choose_for_many(choice, sample_of(rows))
        kernel = choice.kernel
        if isinstance(kernel, Rescaled):
            kernel = Rescaled(kernel.kernel, kernel.scales[..., np.argsort(order)])
        bound = kernel.bind(X, some)
        bound.__dict__.update(
            ridge_=choice.ridge,
            candidates_=choice.candidates,
            gammas_=choice.grid.gammas,
            ridges_=RIDGES.copy(),
            loo_errors_=choice.grid.errors,
            effective_dimension_=float(choice.grid.dimensions[choice.grid.best]),
            loo_mistakes_=mistakes,
        )
        return bound

    def estimate_memory(self, n_samples: int, n_features: int) -> int:
        """Bytes that ``bind`` takes at its peak, besides the data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the training points.

        Returns
        -------
        int
            An estimate, within a factor of two.
        """
        m = max(min(n_samples, self._most_rows()), self._rows_again(n_samples))
        many = 0 if n_samples <= MANY_ROWS else MANY_ROWS * (4 * LANDMARKS + 3 * n_features)
        return 8 * max(m * (7 * m + 5 * n_features), many) + _LEAST_BYTES

    def _most_rows(self) -> int:
        Numbers(Integral, _FEWEST_ROWS).check(self, "max_samples")
        return int(self.max_samples)

    def _rows_again(self, n: int) -> int:
        return min(n // _SHARE, _MORE * self._most_rows())


def _rows_in_time(most: int, least: int, products: float) -> int:
    """So many rows as choose a kernel in the time that is left."""
    what = "the choice of a kernel"
    return most_in_time(lambda m: products * rates().product * m**3, most, least, what)


def choose(sample: Sample, key: np.ndarray, groups: np.ndarray) -> Choice:
    """The kernel with the smallest error on points left out."""
    order, columns = spread_rows(sample.X, key, sample.Y.shape[1])
    sample = sample._replace(Y=sample.Y[:, columns]).take(order)
    n, d = sample.X.shape
    families = FAMILIES[:1] if is_sparse(sample.X) else FAMILIES
    coarse, grids = _looked_up(sample, families)
    common = min(grids, key=lambda grid: grid.error)
    candidates = {grid.name: grid.error for grid in grids}
    scales = learned = None
    grouped = groups.max() + 1 < d
    if not is_sparse(sample.X) and n >= _LEAST_ROWS and d > 1 and not ended_by_limit(CHOICE):
        learned = _learned_scales(sample, coarse[0].starts(d), common, groups)
        errors = common.error * learned.gains
        candidates |= {f"{g.name}, rescaled": float(e) for g, e in zip(grids, errors, strict=True)}
        if learned.gains.min() < (_GROUP_GAIN if grouped else _GAIN):
            # Two blocks of half the points take a quarter of the time of one of all.
            halves = [sample.take(slice(k, None, 2)) for k in (0, 1)]
            last = _relevance.relevances(halves, learned.logs[-1], _LAST_STEPS, groups)[1]
            scales = _scales(last)
            mapped, places = sample.mapped(scales), zip(grids, learned.places, strict=True)
            grids = [mapped.grid(g.family, _JUDGED).look([place]) for g, place in places]
    grid, racing = _best(grids)
    if scales is None:
        candidates |= {grid.name: grid.error for grid in racing}
    if learned is not None and not grouped and not ended_by_limit(CHOICE):
        used: list[np.ndarray | None] = [None] * 2
        error = grid.error
        if scales is not None:  # those of the first third serve the second, where it was not asked
            used = [_scales(logs) for logs in (learned.logs * 2)[:2]]
            error = common.error * float(learned.gains.min())
        found = _relevance.learned_map(sample, grid.family, grid.best, used)
        if found is not None:
            candidates["mapped"] = error * found.gain
            if found.L is not None and found.is_better:
                scales = found.L
                grid, racing = _best(_looked_up(sample.mapped(scales), families)[1])
    return _choice(grid, scales, candidates, racing)


def choose_again(choice: Choice, sample: Sample) -> Choice:
    """The same choice, on its scales, with the width, ridge and perhaps family more rows prefer."""
    scales = choice.kernel.scales if isinstance(choice.kernel, Rescaled) else None
    sample = sample.mapped(scales)
    begun = (sample.grid(g.family, _JUDGED_AGAIN).look([g.best]) for g in choice.racing)
    racing = [grid.climb(_STEPS) for grid in begun]
    grid = min(racing, key=lambda grid: grid.error).settle()
    candidates = choice.candidates
    if scales is None:
        candidates = candidates | {grid.name: grid.error for grid in racing}
    return _choice(grid, scales, candidates, racing)


def choose_for_many(choice: Choice, sample: Sample) -> Choice:
    """The same choice, with the width and ridge that landmarks of many rows prefer."""
    kernel, scales = choice.kernel, None
    if isinstance(kernel, Rescaled):
        kernel, scales = kernel.kernel, kernel.scales
    kernel, ridge = for_many_rows(kernel, choice.ridge, sample.mapped(scales))
    kernel = kernel if scales is None else Rescaled(kernel, scales)
    return choice._replace(kernel=kernel, ridge=ridge)


def _choice(
    grid: Grid, scales: np.ndarray | None, candidates: dict[str, float], racing: list[Grid]
) -> Choice:
    """The best kernel of a grid, on rescaled features where there are scales."""
    i, j = grid.best
    kernel: Kernel = grid.family.kernel(gamma=float(grid.gammas[i]))
    kernel = kernel if scales is None else Rescaled(kernel, scales)
    return Choice(kernel, float(RIDGES[j]), candidates, grid, racing)


def _soon_told(sample: Sample) -> float:
    """The smallest error on few rows."""
    few = sample.take(evenly(len(sample.Y), _FEW_ROWS))
    with np.errstate(all="ignore"), repeatable():
        return min(few.grid(family).sweep().error for family in FAMILIES)


def _looked_up(sample: Sample, families: tuple[Family, ...]) -> tuple[list[Grid], list[Grid]]:
    """Grids of few rows, and of all rows at the best places of the few."""
    few = sample.take(evenly(len(sample.Y), _FEW_ROWS))
    coarse = [few.grid(family).sweep() for family in families]
    return coarse, [sample.grid(grid.family, _JUDGED).look(grid.valleys) for grid in coarse]


def _best(grids: list[Grid]) -> tuple[Grid, list[Grid]]:
    """The grid with the smallest error, after a climb, and those that were near enough to it."""
    least = min(grid.error for grid in grids)
    racing = [grid for grid in grids if grid.error <= _IN_THE_RACE * least]
    climbed = (grid.climb(_STEPS).settle() for grid in racing)
    return min(climbed, key=lambda grid: grid.error), racing


class _Learned(NamedTuple):
    """Scales, and how far they lower the error on points that they were not learned from.

    The error on the points that they were learned from is far too good where features are many.
    """

    gains: np.ndarray  # of each family, relative to the best on common scales
    logs: list[np.ndarray]  # for each third: of relevances, then of the ridge
    places: list[tuple[int, int]]  # on the grid of each family, where the error was smallest


def _learned_scales(
    sample: Sample, starts: list[np.ndarray], common: Grid, groups: np.ndarray
) -> _Learned:
    after, before, found = np.zeros(len(FAMILIES)), 0.0, []
    for k in range(2):
        judges = slice(k, None, 3)
        others = np.delete(np.arange(len(sample.Y)), judges)
        learn = [sample.take(others[evenly(len(others), _ROWS_FOR_SCALES)])]
        judge = sample.take(judges)
        ends = [_relevance.relevances(learn, start, _FIRST_STEPS, groups) for start in starts]
        lead = int(np.argmin([loss for loss, _ in ends]))
        starts = [starts[lead]]
        logs = _relevance.relevances(learn, ends[lead][1], _MORE_STEPS, groups)[1]
        found.append(logs)
        ridge = int(np.argmin(np.abs(np.log(RIDGES) - logs[-1])))
        grids = [judge.mapped(_scales(logs)).grid(f).sweep([ridge]) for f in FAMILIES]
        after += [grid.error for grid in grids]
        before += judge.grid(common.family).look([common.best]).climb().error
        gains = after / before if before > 0 else np.ones_like(after)
        if not _CLEAR < gains.min() < _HOPELESS:
            break
    return _Learned(gains, found, [grid.best for grid in grids])


def _scales(logs: np.ndarray) -> np.ndarray:
    """Scales with geometric mean one from logarithms of relevances and of a ridge."""
    return np.exp(0.5 * (logs[:-1] - logs[:-1].mean()))
