"""From typed columns to features, the same way for the rows of every table.

What a column is, is decided in ``fit``. Another table is read by these decisions, by the names of
its columns; what does not fit is refused, and what was never seen is told.
"""

import copy
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelmetric._warnings import warn
from kernelmetric.inputs._far_cells import FarCellWarning, far_cells
from kernelmetric.tables import _frames as frames
from kernelmetric.tables._columns import (
    MOST_NAMES,
    SHOWN,
    TableTransformer,
    few,
    frequent,
    places_of,
    require_names,
)
from kernelmetric.tables._moments import cycles_of, on_cycle
from kernelmetric.tables._ngrams import group_features, learn_groups

_MANY = 0.5  # share of rows: where more than these have a name that is not told apart, it is said
_OTHER = "(other)"
_GAP = "(missing)"
_HERE = 0.5**0.5  # two names differ in two features: their squared distance is one
_BEYOND = 10.0  # times as far from the median as all but a few cells: a gap, where some are farther


class TableSchema(TableTransformer):
    r"""The columns of a table as features: what each is, its scale, its names.

    ========================  ====================================================================
    column                    features
    ========================  ====================================================================
    numbers                   :math:`(x - m) / s` with the median m and a spread s, and one that is
                              1 where the number is missing, the first being 0 there
    durations, times          as numbers
    dates                     as numbers, and their places in the day, the week and the year, where
                              they are spread over these: sine and cosine, halved
    ordered names             their places in the order, as numbers
    names, booleans           a feature for every name of two or more rows, at most 100 of them,
                              :math:`\sqrt{1/2}` where it is that name and 0 elsewhere; one for
                              all other names, also those never seen; one for missing names, where
                              there are any
    free text, where the      16 directions in which groups of three and four letters vary
    caller says that it is
    nothing but gaps, or      none
    the same in every row
    ========================  ====================================================================

    Parameters
    ----------
    objects : list of str or int, default=()
        Columns that a kernel takes as they are; ``transform`` gives their rows beside features.

    Attributes
    ----------
    kinds_ : list of str
        What each column holds; the empty text for a column that is not used.
    centres_, scales_ : ndarray of shape (n_columns,)
        The median and the spread of numbers; 0 and 1 for names.
    rests_ : ndarray of shape (n_columns,)
        What to add to the median of long whole numbers, which a float cannot hold.
    names_ : list of list of str
        The names with features of their own, or the order of ordered names.
    rare_ : list of list of str
        The other names that were there.
    limits_ : ndarray of shape (n_columns, 2)
        The range of a column in which a few cells, such as 9999, are 100 times as far from the
        median as all others. Cells outside are read as missing. Two zeros mean no range.
    gaps_ : list of bool
        Whether values were missing.
    cycles_ : list of list of str
        The cycles that dates are spread over: "day", "week", "year".
    letters_ : dict of str to ndarray
        Of columns of free text, weights of groups of letters, and below them the directions.
    groups_ : ndarray of int of shape (n_features_out,)
        The column of each feature, counted among those used.
    notes_ : list of str
        A sentence on each column that is not used, or that is odd.
    feature_names_in_ : ndarray of str
        Names of the columns.
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    kernelmetric.tables.TableEncoder : Reads text files, and undoes units and marks.
    Kernelized : Reads data frames by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmetric.tables import TableSchema
    >>> table = np.array([[1.0, "a"], [3.0, "b"], [None, "a"], [2.0, "b"]], dtype=object)
    >>> schema = TableSchema().fit(table)
    >>> schema.get_feature_names_out().tolist()
    ['x0', 'x0=(missing)', 'x1=a', 'x1=b', 'x1=(other)']
    >>> schema.transform(table)[2].round(3).tolist()
    [0.0, 1.0, 0.707, 0.0, 0.0]
    """

    def __init__(self, objects: Any = ()):
        self.objects = objects

    def _fit(self, X: Any) -> None:
        names = frames.column_names(X)
        objects = {names[j] for j in frames.object_places(self, names)}
        found = frames.read_columns(X, [name for name in names if name not in objects])
        columns = {column.name: column for column in found}
        self.kinds_, self.names_, self.rare_, self.gaps_, self.notes_ = [], [], [], [], []
        self.centres_, self.rests_, self.scales_ = np.repeat([[0], [0], [1.0]], len(names), axis=1)
        self.limits_ = np.zeros((len(names), 2))
        self.cycles_: list[list[str]] = []
        self.letters_: dict[str, np.ndarray] = {}
        for j, name in enumerate(names):
            column = columns.get(name, frames.Column(name, frames.NOTHING, np.empty(0)))
            kind, kept, rare, why = column.kind, list(column.levels), list[str](), ""
            if kind == frames.NOTHING:
                why = "every value of it is missing" if name in columns else ""
            elif kind == frames.TEXT:
                self.letters_[column.name] = learn_groups(column.values)
            elif kind == frames.NAMES:
                kept, rare, share = frequent(column.values)
                if len(set(column.values)) < 2:
                    why = "it is the same in every row"
                elif not kept:
                    why = f"hardly one of its {len(set(column.values))} names occurs twice"
                elif len(kept) == MOST_NAMES and share > _MANY:
                    self.notes_.append(
                        f"Column {column.name!r} has {len(kept) + len(rare)} names: the "
                        f"{MOST_NAMES} most frequent are told apart, the others, in "
                        f"{100 * share:.0f} % of the rows, are one."
                    )
            else:
                column = self._read_limits(j, column)
                numbers = frames.quantities(column, kept)
                spread = frames.median_and_spread(column, numbers)
                self.centres_[j], self.rests_[j], self.scales_[j] = spread
                if len(np.unique(self._scaled(j, column, numbers))) < 2:  # NaN count as one
                    why = "it is the same in every row"
            if why:
                self.notes_.append(f"Column {column.name!r} is not used: {why}.")
            turns = kind == frames.DATES and not why
            self.cycles_.append(cycles_of(column.values) if turns else [])
            self.kinds_.append("" if why or name in objects else kind)
            self.names_.append([] if why else kept)
            self.rare_.append([] if why else rare)
            self.gaps_.append(bool(column.gaps.any()))
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        if not any(self.kinds_) and not objects:
            raise ValueError(
                f"Got a table none of whose {len(names)} columns tells rows apart, but expected "
                f"features. {' '.join(self.notes_[:SHOWN])}"
            )
        self.groups_ = self.groups()
        if self.notes_:
            far = np.any(self.limits_[:, 0] < self.limits_[:, 1])
            category = FarCellWarning if far else UserWarning
            warn(" ".join(self.notes_), category)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Learn what the columns are; their features. Cells are read once.

        Parameters
        ----------
        X : DataFrame, ndarray of objects, or list of columns
            The table.
        y : object, default=None
            Not used.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
            Finite numbers.
        """
        columns = frames.read_columns(X, frames.column_names(X))
        return self.fit(columns)._features(columns)

    def groups(self) -> np.ndarray:
        """The column of each feature, counted among those used.

        Returns
        -------
        ndarray of int of shape (n_features_out,)
            From 0 on, in order.
        """
        widths = [len(self._parts(j)) for j in self._used]
        return np.repeat(np.arange(len(widths)), widths)

    def features_of(self, columns: Iterable[Any] | None) -> np.ndarray:
        """Numbers of the features of some columns.

        Parameters
        ----------
        columns : iterable of str or int, mask, or None
            Names of columns, or their places, or a boolean for every column; None means all.

        Returns
        -------
        ndarray of int
            Places in a row of ``transform``.
        """
        check_is_fitted(self)
        if columns is None:
            return np.arange(len(self.groups_))
        known = self.feature_names_in_.tolist()
        used = self._used
        groups = [used.index(j) for j in places_of(columns, len(known), known) if j in used]
        if not groups:
            raise ValueError(
                f"Got columns={columns!r}, but expected at least one that tells rows apart. "
                f"{' '.join(self.notes_)}"
            )
        return np.flatnonzero(np.isin(self.groups_, groups))

    def __sklearn_clone__(self) -> Self:
        """A copy that knows what was learned: as a parameter of a kernel, it is what was chosen."""
        return copy.copy(self)

    def _features(self, X: Any) -> Any:
        features, said = self.encoded(X)
        if said:
            warn(" ".join(said))
        return frames.with_objects(self, X, features)

    def _remarks(self, X: Any) -> list[str]:
        return self.encoded(X)[1]

    def _names(self) -> np.ndarray:
        return np.array([part for j in self._used for part in self._parts(j)], dtype=object)

    @property
    def _used(self) -> list[int]:
        return [j for j, kind in enumerate(self.kinds_) if kind]

    def encoded(self, X: Any) -> tuple[np.ndarray, list[str]]:
        """The features of a table, and sentences on what was not there in fit.

        Parameters
        ----------
        X : DataFrame, ndarray of objects, or list of columns
            A table.

        Returns
        -------
        features, remarks : ndarray of shape (n_rows, n_features_out), list of str
            What ``transform`` and ``remarks`` give.
        """
        known = self.feature_names_in_.tolist()
        self._check_table(X, known)
        found = frames.column_names(X)
        require_names(found, known)
        said = []
        extra = [name for name in found if name not in set(known)]
        if extra:
            said.append(f"Got columns that were not there in fit, and are not used: {few(extra)}.")
        columns = frames.read_columns(X, [known[j] for j in self._used])
        parts = []
        for j, column in zip(self._used, columns, strict=True):
            expected, both = self.kinds_[j], {column.kind, self.kinds_[j]}
            alike = frames.NOTHING in both or both == {frames.NAMES, frames.ORDERED}
            if column.kind != expected and not alike:
                raise ValueError(
                    f"Got {column.kind} in column {column.name!r}, but expected {expected}, as in "
                    "fit: give it the type that it had there."
                )
            part, more = self._encoded_column(j, column)
            parts.append(part)
            said += more
        n_rows = len(X[0].values) if isinstance(X, list) else _num_samples(X)
        return np.hstack([np.empty((n_rows, 0)), *parts]), said

    def _encoded_column(self, j: int, column: frames.Column) -> tuple[np.ndarray, list[str]]:
        """The features of a column, and sentences on what was never seen."""
        parts = self._parts(j)
        out = np.zeros((len(column.values), len(parts)))
        if self.kinds_[j] in frames.QUANTITIES:
            column = self._within(j, column)
            values = frames.quantities(column, self.names_[j])
            gaps = np.isnan(values)
            out[:, 0] = np.where(gaps, 0.0, self._scaled(j, column, values))
            out[:, 1] = gaps
            for i, cycle in enumerate(self.cycles_[j]):
                out[:, 2 + 2 * i : 4 + 2 * i] = on_cycle(values, cycle)
            if not np.all(np.isfinite(out[:, 0])):
                raise ValueError(
                    f"Got {np.max(np.abs(values[~gaps])):.3g} in column {column.name!r}, but "
                    f"expected numbers like those of fit, whose spread is {self.scales_[j]:.3g}: "
                    "correct the cell, or its unit."
                )
            new, rule = gaps & ~column.gaps, "taken as missing"  # ordered names without a place
        elif self.kinds_[j] == frames.TEXT:
            learned = self.letters_[column.name]
            out[:, : len(learned) - 1] = group_features(column.values, learned)
            out[:, len(learned) - 1 :] = _HERE * column.gaps[:, None]
            new = np.zeros(len(out), dtype=bool)
        else:
            place = {name: i for i, name in enumerate(self.names_[j])}
            other, gap = len(place), len(parts) - 1  # which are one where fit met no gaps
            found = [gap if v is None else place.get(v, other) for v in column.values]
            out[np.arange(len(found)), found] = _HERE
            seen = {None, *self.names_[j], *self.rare_[j]}
            new = np.array([value not in seen for value in column.values], dtype=bool)
            rule = "taken as one of the other names"
        said = []
        if new.any():
            unknown = few(dict.fromkeys(column.values[new].tolist()))
            said.append(
                f"Column {column.name!r} has {unknown} in {int(new.sum())} of {len(new)} rows, "
                f"never seen in fit: {rule}."
            )
        if column.gaps.any() and not self.gaps_[j]:
            said.append(
                f"Column {column.name!r} has no value in {int(column.gaps.sum())} of {len(new)} "
                "rows, but had one in every row in fit: a state that nothing was learned of."
            )
        return out, said

    def _read_limits(self, j: int, column: frames.Column) -> frames.Column:
        """Decide where the numbers of a column end; the column without those far beyond."""
        known = column.values[~column.gaps]
        if column.values.dtype.kind != "f" or not (far := far_cells(known)).any():
            return column
        centre = float(np.median(known))
        widest = _BEYOND * float(np.max(np.abs(known[~far] - centre)))
        self.limits_[j] = centre - widest, centre + widest
        self.notes_.append(
            f"Column {column.name!r} holds {known[far][0]:.6g}, 100 times as far from the median "
            "as other values of it: such cells are read as missing."
        )
        return self._within(j, column)

    def _within(self, j: int, column: frames.Column) -> frames.Column:
        """A column whose cells far beyond all others of fit are gaps."""
        low, high = self.limits_[j]
        if not low < high:
            return column
        inside = (column.values >= low) & (column.values <= high)
        return column._replace(values=np.where(inside, column.values, np.nan))

    def _scaled(self, j: int, column: frames.Column, numbers: np.ndarray) -> np.ndarray:
        """The numbers of a column from its median on, in units of its spread."""
        with np.errstate(over="ignore"):
            apart = frames.apart(column, numbers, self.centres_[j], self.rests_[j])
            return apart / self.scales_[j]

    def _parts(self, j: int) -> list[str]:
        """Names of the features of a column that is used."""
        name = self.feature_names_in_[j]
        if self.kinds_[j] in frames.QUANTITIES:
            turns = [f"{name}: {c} {part}" for c in self.cycles_[j] for part in ("sine", "cosine")]
            return [name, f"{name}={_GAP}", *turns]
        if self.kinds_[j] == frames.TEXT:
            directions = [f"{name}: {i}" for i in range(1, len(self.letters_[name]))]
            return [*directions, f"{name}={_GAP}"]
        states = [*self.names_[j], _OTHER, *([_GAP] if self.gaps_[j] else [])]
        return [f"{name}={state}" for state in states]

    def _check_table(self, X: Any, known: list[str]) -> None:
        """Refuse an array where columns are told by name, and one of another width."""
        if frames.is_frame(X) or isinstance(X, list):
            return
        unnamed = known == [f"x{j}" for j in range(len(known))]
        if not isinstance(X, np.ndarray) or X.ndim != 2 or not unnamed:
            raise ValueError(
                f"Got {type(X).__name__}, but expected a table with the columns {few(known)}: try "
                "pandas.DataFrame(X, columns=metric.feature_names_in_)."
            )
        if X.shape[1] != len(known):
            raise ValueError(
                f"Got {X.shape[1]} columns, but expected {len(known)}, as in fit, in their order."
            )
