"""The door: what users hand over is checked once, here, and trusted everywhere else.

What comes in as a guess is refused: dates, gaps, numbers that floats lose. What comes in on many
machines, or should be computed with on a device, is brought there, and results are brought back::

    _points.py      points of any library: two-dimensional, finite, float32 or float64
    _labels.py      labels, and their codes
    _weights.py     weights of rows, checked, and what they mean
    _keys.py        rows and columns told apart by what they hold
    _parameters.py  parameters: numbers within bounds, or words
    _refusals.py    what would become numbers only by a guess
    _far_cells.py   cells far from all others of their column
    _extras.py      packages that not every user has
    _methods.py     what happens around a public method: clusters, devices, failures
"""

from kernelmetric.compute._objects import MixedRows, Objects, is_objects, listed_objects, shown
from kernelmetric.inputs._far_cells import (
    FarCellWarning,
    farthest_column,
    refuse_tiny_columns,
    silent_about_far_cells,
    warn_of_far_cells,
)
from kernelmetric.inputs._labels import check_labels, check_numbers, label_column
from kernelmetric.inputs._methods import (
    DeviceMixin,
    device_like,
    on_clusters,
    to_host,
    unchanged_on_failure,
)
from kernelmetric.inputs._points import as_floats, check_coordinates, check_points, location_of
from kernelmetric.inputs._refusals import refuse_ambiguous, refuse_text
from kernelmetric.inputs._weights import (
    WeightedLabels,
    Weights,
    check_weights,
    labels_and_weights,
    refuse_streams,
    rows_and_weights,
    rows_of,
    with_class_weights,
)
