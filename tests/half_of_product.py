"""Half of a product of parameters for the ordinary run, and the other half for slow ones."""

from itertools import product

import pytest


def half_of(*lists):
    """The product of some lists, every second member of which is slow.

    Any values of all lists but one still meet in the ordinary run, as long as each list has two.
    """
    places = product(*(range(len(values)) for values in lists))
    return [
        pytest.param(*values, marks=pytest.mark.slow if sum(at) % 2 else ())
        for at, values in zip(places, product(*lists), strict=True)
    ]
