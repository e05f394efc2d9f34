"""What the table of data sets says of each set."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OpenML:
    """A copy of the set on openml.org, and the rules that turn it into ours."""

    data_id: int
    """Number of the data set on OpenML."""
    labels: Mapping[str, int]
    """OpenML's spelling of each class -> our integer code."""
    content: str
    """Expected :func:`content_digest` after the rules below."""
    decimals: int = 5
    """Decimal places that count in ``content``."""
    columns: str = ".+"
    """Regular expression the names of the feature columns match in full; others are dropped."""
    drop_missing: bool = False
    """Whether rows with a missing value are dropped."""


@dataclass(frozen=True)
class Entry:
    """One data set. ``counts`` are the class sizes in code order; their sum is the row count."""

    name: str
    title: str
    n_features: int
    counts: tuple[int, ...]
    target_names: tuple[str, ...]
    file: str | None = None
    sha256: str = ""
    features: str = ""
    n_missing: int = 0
    dtype: str = "float64"
    bundled: str | None = None
    bundled_note: str = ""
    openml: OpenML | None = None
    target_codes: tuple[int, ...] = ()
    extras: tuple[str, ...] = ()
    note: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.counts)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns: the source's own, or ``f1 ... fd`` where it gives none."""
        return self.features.split() or [f"f{j + 1}" for j in range(self.n_features)]


def codes(*names: str) -> dict[str, int]:
    """Give the names of classes the codes 0, 1, ..."""
    return {name: code for code, name in enumerate(names)}
