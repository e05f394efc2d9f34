"""Where blocks, devices, threads and dtypes are known, and nowhere else.

Everything above this room is written against an array namespace ``xp``: NumPy arrays in give
NumPy arrays out, torch tensors (CPU or CUDA) in give torch tensors out. Pairwise work is a
*reduction over row blocks* whose size obeys a memory budget, so that no algorithm needs an
n × n array::

    _arrays.py      which namespace, which dtype, validation of X and y
    _device.py      NumPy arrays on a device, there and back
    _budget.py      how much memory a block may take, and what cannot fit
    _deprecated.py  how something public goes away
    _elsewhere.py   data on many machines, handed to who knows them
    _execute.py     work on blocks of rows, mapped or summed: what other rooms call
    _machine.py     how much memory the machine, or its container, has
    _refusals.py    what would become numbers only by a guess
    _state.py       an estimator that a refused fit leaves as it was
    _threads.py     the one owner of the threads of BLAS
    _values.py      sums, products and exponentials of kernel values
    _warnings.py    warnings that point at the line of the user
    _weights.py     weights of rows, checked, and what they mean
    reductions/     sums over pairs of points, as functions of a tile
    backends/       what each library of arrays does in its own way
"""

from kernelmetric.compute._arrays import (
    all_finite,
    as_points,
    check_labels,
    check_points,
    classes_of,
    coded_labels,
    column_products,
    device_of,
    entries_above,
    fewer_rows,
    in_library_of,
    is_single,
    is_sparse,
    kept,
    label_column,
    like,
    lists_help,
    namespace,
    orthonormal_columns,
    positive_solver,
    refuse_twins,
    set_entries,
    streamed,
    symmetric_eigenpairs,
    take_rows,
    to_numpy,
    wide_is_fast,
    widened,
)
from kernelmetric.compute._budget import (
    block_budget,
    current_budget,
    memory_budget,
    require_memory,
    row_blocks,
    tile_bytes,
)
from kernelmetric.compute._deprecated import deprecated, moved
from kernelmetric.compute._device import (
    DeviceMixin,
    device_in_use,
    device_like,
    home,
    there,
    there_and_back,
    use_device,
)
from kernelmetric.compute._elsewhere import CollectionsMixin, anywhere, is_collection
from kernelmetric.compute._execute import (
    map_rows,
    over_rows,
    sum_entries,
    sum_rows,
    within_budget,
    worth_keeping,
)
from kernelmetric.compute._refusals import refuse_masked, refuse_unsaid, rounded_column
from kernelmetric.compute._state import unchanged_on_failure
from kernelmetric.compute._threads import (
    available_threads,
    calm_around,
    calm_blas,
    calm_if_small,
    one_thread,
)
from kernelmetric.compute._values import added, exp_of_negative, l1_distances, multiplied
from kernelmetric.compute._warnings import warn
from kernelmetric.compute._weights import (
    Weighed,
    Weights,
    check_class_weight,
    checked_weights,
    copies,
    refuse_streams,
    repeated_quantiles,
    repeated_rows,
    rows_of,
    unweighed,
    weigh,
    with_classes,
)
from kernelmetric.compute.backends._native import native
from kernelmetric.compute.reductions._centres import centres_there
from kernelmetric.compute.reductions._differences import overflow_error, pair_squares
from kernelmetric.compute.reductions._distances import (
    counted_squared_distances,
    median_squared_distance,
    sampled_squared_distances,
    squared_distances,
)
from kernelmetric.compute.reductions._gram_products import GramProducts, gram_products, row_products
from kernelmetric.compute.reductions._impostors import lmnn_hinge
from kernelmetric.compute.reductions._listed import lmnn_hinge_on, lmnn_step_on
from kernelmetric.compute.reductions._mining import lmnn_at_lengths, mine_impostors
from kernelmetric.compute.reductions._neighbors import class_neighbors, nearest_neighbors
from kernelmetric.compute.reductions._products import BlockProduct, map_points, product
from kernelmetric.compute.reductions._softmax import nca_loss, softmax_reduction
from kernelmetric.compute.reductions._subspaces import subspace_distances
from kernelmetric.compute.reductions._symmetric import softmax_bytes
from kernelmetric.compute.reductions._triplets import Triplets
from kernelmetric.compute.reductions._truncated import Listed, mine_softmax, nca_loss_on

__all__ = [
    "BlockProduct",
    "CollectionsMixin",
    "DeviceMixin",
    "GramProducts",
    "Listed",
    "Triplets",
    "Weighed",
    "Weights",
    "added",
    "all_finite",
    "anywhere",
    "as_points",
    "available_threads",
    "block_budget",
    "calm_around",
    "calm_blas",
    "calm_if_small",
    "centres_there",
    "check_class_weight",
    "check_labels",
    "check_points",
    "checked_weights",
    "class_neighbors",
    "classes_of",
    "coded_labels",
    "column_products",
    "copies",
    "counted_squared_distances",
    "current_budget",
    "deprecated",
    "device_in_use",
    "device_like",
    "device_of",
    "entries_above",
    "exp_of_negative",
    "fewer_rows",
    "gram_products",
    "home",
    "in_library_of",
    "is_collection",
    "is_single",
    "is_sparse",
    "kept",
    "l1_distances",
    "label_column",
    "like",
    "lists_help",
    "lmnn_at_lengths",
    "lmnn_hinge",
    "lmnn_hinge_on",
    "lmnn_step_on",
    "map_points",
    "map_rows",
    "median_squared_distance",
    "memory_budget",
    "mine_impostors",
    "mine_softmax",
    "moved",
    "multiplied",
    "namespace",
    "native",
    "nca_loss",
    "nca_loss_on",
    "nearest_neighbors",
    "one_thread",
    "orthonormal_columns",
    "over_rows",
    "overflow_error",
    "pair_squares",
    "positive_solver",
    "product",
    "refuse_masked",
    "refuse_streams",
    "refuse_twins",
    "refuse_unsaid",
    "repeated_quantiles",
    "repeated_rows",
    "require_memory",
    "rounded_column",
    "row_blocks",
    "row_products",
    "rows_of",
    "sampled_squared_distances",
    "set_entries",
    "softmax_bytes",
    "softmax_reduction",
    "squared_distances",
    "streamed",
    "subspace_distances",
    "sum_entries",
    "sum_rows",
    "symmetric_eigenpairs",
    "take_rows",
    "there",
    "there_and_back",
    "tile_bytes",
    "to_numpy",
    "unchanged_on_failure",
    "unweighed",
    "use_device",
    "warn",
    "weigh",
    "wide_is_fast",
    "widened",
    "with_classes",
    "within_budget",
    "worth_keeping",
]
