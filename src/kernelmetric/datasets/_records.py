"""A register of people that were written down more than once, with slips of the pen."""

import string

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernelmetric.datasets._generators import RandomState

FIELDS = ("first", "last", "street", "city", "born")
_FIRST = (
    "Anna Ben Clara David Emma Felix Greta Henry Ida Jacob Karla Leo Mara Noah Olga Paul Rita "
    "Simon Tara Victor Wanda Martin Maria Marta Jonas Johanna Helen Helena Stefan Stephanie"
)
_LAST = (
    "Adler Becker Braun Clark Cooper Dietrich Evans Fischer Foster Graham Haas Hoffmann Jensen "
    "Keller Koch Lang Larsen Mayer Meier Meyer Morgan Neumann Olsen Parker Quinn Richter Schmidt "
    "Schmitt Stone Taylor Turner Vogel Wagner Weber Winter Wolf"
)
_STREETS = "Oak Elm Mill Station Church Park River Garden Hill Market School Bridge"
_CITIES = "Ashford Brookfield Cliffton Dunmore Eastbury Fairview Glenwood Harborough"


def make_records(
    n_people: int = 200,
    *,
    n_copies: int = 3,
    n_typos: float = 1.0,
    random_state: RandomState = None,
) -> tuple[list[dict[str, str]], NDArray[np.int64]]:
    """Records of people, each written down several times, as record linkage meets them.

    People live in households of one to three, who share surname and address. Copies differ by
    typing errors, initials, a date with day and month exchanged, empty fields, and by people who
    have moved.

    Parameters
    ----------
    n_people, n_copies : int, default=200 and 3
        Number of people, and of records of each.
    n_typos : float, default=1.0
        Mean number of typing errors in a record, besides the other changes.
    random_state : int, RandomState instance or None, default=None
        Source of everything.

    Returns
    -------
    records : list of dict
        With the keys 'first', 'last', 'street', 'city' and 'born', all strings, in random order.
    person : ndarray of shape (n_people * n_copies,)
        Whose record it is.

    Examples
    --------
    >>> from kernelmetric.datasets import make_records
    >>> records, person = make_records(50, random_state=0)
    >>> len(records), sorted(records[0])
    (150, ['born', 'city', 'first', 'last', 'street'])
    """
    for name, value in (("n_people", n_people), ("n_copies", n_copies)):
        if value < 2:
            raise ValueError(f"Got {name}={value!r}, but expected at least 2: nothing to match.")
    rng = check_random_state(random_state)
    people: list[dict[str, str]] = []
    while len(people) < n_people:
        home, last = _address(rng), _one_of(_LAST.split(), rng)
        for _ in range(rng.randint(1, 4)):
            born = f"{rng.randint(1930, 2006)}-{rng.randint(1, 13):02}-{rng.randint(1, 29):02}"
            people.append(
                {"first": _one_of(_FIRST.split(), rng), "last": last, **home, "born": born}
            )
    person = np.repeat(np.arange(n_people), n_copies)
    person = person[rng.permutation(len(person))]
    return [_copied(people[i], n_typos, rng) for i in person], person


def _address(rng: np.random.RandomState) -> dict[str, str]:
    return {
        "street": f"{rng.randint(1, 100)} {_one_of(_STREETS.split(), rng)} Street",
        "city": _one_of(_CITIES.split(), rng),
    }


def _copied(record: dict[str, str], n_typos: float, rng: np.random.RandomState) -> dict[str, str]:
    """One more record of the same person."""
    copy = dict(record)
    if rng.uniform() < 0.15:
        copy.update(_address(rng))  # moved
    if rng.uniform() < 0.1:
        copy["first"] = copy["first"][0] + "."
    if rng.uniform() < 0.1:
        year, month, day = copy["born"].split("-")
        copy["born"] = f"{year}-{day}-{month}"
    for _ in range(rng.poisson(n_typos)):
        field = _one_of(FIELDS, rng)
        copy[field] = _mistyped(copy[field], rng)
    if rng.uniform() < 0.1:
        copy[_one_of(FIELDS[2:], rng)] = ""
    return copy


def _mistyped(text: str, rng: np.random.RandomState) -> str:
    if len(text) < 3:
        return text
    i, kind = rng.randint(len(text) - 1), rng.randint(4)
    letters = string.digits if text[i].isdigit() else string.ascii_lowercase
    middle = ("", 2 * text[i], _one_of(letters, rng), text[i + 1] + text[i])[kind]
    return text[:i] + middle + text[i + (2 if kind == 3 else 1) :]


def _one_of(choices, rng: np.random.RandomState) -> str:
    return choices[rng.randint(len(choices))]
