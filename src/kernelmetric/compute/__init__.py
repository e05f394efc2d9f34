"""Where blocks, devices, threads and dtypes are known, and nowhere else.

Everything above this room is written against an array namespace ``xp``: NumPy arrays in give
NumPy arrays out, torch tensors (CPU or CUDA) in give torch tensors out. Pairwise work is a
*reduction over row blocks* whose size obeys a memory budget, so that no algorithm needs an
n × n array::

    _arrays.py      which namespace, which dtype, validation of X and y
    _device.py      the device on which NumPy arrays are computed with
    _methods.py     what happens around a public method: clusters, devices, failures
    _budget.py      how much memory a block may take, and what cannot fit
    _machine.py     how much memory the machine, or its container, has
    _execute.py     work on blocks of rows, mapped or summed: what other rooms call
    _threads.py     the one owner of the threads of BLAS
    _refusals.py    what would become numbers only by a guess
    _far_cells.py   cells far from all others of their column
    _warnings.py    warnings at the line of the user; how something public goes away
    _weights.py     weights of rows, checked, and what they mean
    reductions/     sums over pairs of points, as functions of a tile
    backends/       what each library of arrays does in its own way: ``backend_of(X)``
"""

from kernelmetric.compute._arrays import (
    all_finite,
    as_points,
    check_labels,
    check_points,
    classes_of,
    coded_labels,
    device_of,
    exp_of_negative,
    in_library_of,
    is_single,
    is_sparse,
    l1_distances,
    label_column,
    like,
    location_of,
    namespace,
    read_only,
    refuse_twins,
    streamed,
    take_rows,
    to_numpy,
    widened,
)
from kernelmetric.compute._budget import block_budget, memory_budget, require_memory, tile_bytes
from kernelmetric.compute._device import device_in_use, device_like, there, use_device
from kernelmetric.compute._execute import (
    map_rows,
    over_rows,
    sum_entries,
    sum_rows,
    within_budget,
    worth_keeping,
)
from kernelmetric.compute._far_cells import (
    FarCellWarning,
    far_cells,
    far_columns,
    farthest_column,
    mention_far_cells,
    refuse_tiny_columns,
    silent_about_far_cells,
)
from kernelmetric.compute._methods import (
    CollectionsMixin,
    DeviceMixin,
    on_clusters,
    on_devices,
    to_host,
    unchanged_on_failure,
)
from kernelmetric.compute._refusals import refuse_masked, refuse_text, refuse_unsaid, rounded_column
from kernelmetric.compute._threads import (
    one_blas_thread,
    one_thread,
    tiles_at_once,
)
from kernelmetric.compute._warnings import deprecated, moved, warn
from kernelmetric.compute._weights import (
    Weighed,
    Weights,
    checked_weights,
    refuse_streams,
    rows_of,
    unweighed,
    weigh,
    weighted_quantiles,
    with_classes,
)
from kernelmetric.compute.backends import backend_of
from kernelmetric.compute.reductions._distances import (
    median_squared_distance,
    overflow_error,
    pair_squares,
    squared_distances,
)
from kernelmetric.compute.reductions._neighbors import nearest_neighbors
from kernelmetric.compute.reductions._products import map_points, product

__all__ = [
    "CollectionsMixin",
    "DeviceMixin",
    "FarCellWarning",
    "Weighed",
    "Weights",
    "all_finite",
    "as_points",
    "backend_of",
    "block_budget",
    "check_labels",
    "check_points",
    "checked_weights",
    "classes_of",
    "coded_labels",
    "deprecated",
    "device_in_use",
    "device_like",
    "device_of",
    "exp_of_negative",
    "far_cells",
    "far_columns",
    "farthest_column",
    "in_library_of",
    "is_single",
    "is_sparse",
    "l1_distances",
    "label_column",
    "like",
    "location_of",
    "map_points",
    "map_rows",
    "median_squared_distance",
    "memory_budget",
    "mention_far_cells",
    "moved",
    "namespace",
    "nearest_neighbors",
    "on_clusters",
    "on_devices",
    "one_blas_thread",
    "one_thread",
    "over_rows",
    "overflow_error",
    "pair_squares",
    "product",
    "read_only",
    "refuse_masked",
    "refuse_streams",
    "refuse_text",
    "refuse_tiny_columns",
    "refuse_twins",
    "refuse_unsaid",
    "require_memory",
    "rounded_column",
    "rows_of",
    "silent_about_far_cells",
    "squared_distances",
    "streamed",
    "sum_entries",
    "sum_rows",
    "take_rows",
    "there",
    "tile_bytes",
    "tiles_at_once",
    "to_host",
    "to_numpy",
    "unchanged_on_failure",
    "unweighed",
    "use_device",
    "warn",
    "weigh",
    "weighted_quantiles",
    "widened",
    "with_classes",
    "within_budget",
    "worth_keeping",
]
