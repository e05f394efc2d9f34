"""What the table of data sets, ``sets.toml``, says of each set."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class OpenML:
    """A copy of the set on openml.org, and the rules that turn it into ours."""

    data_id: int
    labels: Mapping[str, int]  # OpenML's spelling of each class -> our integer code
    content: str  # expected content_digest after the rules below
    decimals: int = 5  # that count in content
    columns: str = ".+"  # names of the feature columns match it in full; others are dropped
    drop_missing: bool = False  # whether rows with a missing value are dropped


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


@cache
def registry() -> dict[str, Entry]:
    """The data sets by name."""
    text = files("kernelmetric.datasets").joinpath("sets.toml").read_text(encoding="utf-8")
    return {name: _entry(name, **said) for name, said in tomllib.loads(text).items()}


def aliases() -> dict[str, str]:
    """Other names of data sets."""
    return {alias: entry.name for entry in registry().values() for alias in entry.aliases}


def _entry(name: str, *, classes: list[str], openml: Any = None, **said: Any) -> Entry:
    """The entry of a table of the file."""
    if openml is not None:
        spellings = openml.pop("classes", classes)
        labels = {spelling: code for code, spelling in enumerate(spellings)}
        openml = OpenML(labels=labels, **openml)
    said.setdefault("n_features", len(said.get("features", "").split()))
    lists = {key: tuple(value) for key, value in said.items() if isinstance(value, list)}
    return Entry(name=name, target_names=tuple(classes), openml=openml, **(said | lists))
