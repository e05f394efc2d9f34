"""Where blocks, devices, threads and dtypes are known, and nowhere else.

Everything above this room is written against an array namespace ``xp``: NumPy arrays in give
NumPy arrays out, torch tensors (CPU or CUDA) in give torch tensors out. Pairwise work is a
*reduction over row blocks* whose size obeys a memory budget, so that no algorithm needs an
n × n array::

    _arrays.py      which namespace, which dtype, validation of X and y
    _budget.py      how much memory a block may take, and what cannot fit
    _execute.py     work on blocks of rows, mapped or summed: what other rooms call
    _machine.py     how much memory the machine, or its container, has
    _differences.py  what keeps distances right whatever else is in a batch
    _distances.py   squared distances, each right by itself, and the median distance
    _neighbors.py   exact k nearest neighbours, also within and between classes
    _table.py       the search, which knows what rounding may have done
    _pruned.py      the same, most points ruled out in few coordinates
    _selection.py   the k smallest entries of rows
    _softmax.py     a softmax over all other points: NCA's loss, and any loss row by row
    _truncated.py   the same over near points alone, with a certificate
    _state.py       an estimator that a refused fit leaves as it was
    _impostors.py   the LMNN hinge: triplets mined block by block
    _gram_products.py  Frobenius products between Gram matrices, for kernel alignment
    _products.py    points times a map, a sparse matrix times a block of vectors
    _subspaces.py   distances between points that may move along directions of their own
    _values.py      sums, products and exponentials of kernel values, L1 distances
    _native.py      two passes over a tile of it, compiled from _native.c or in NumPy
    _threads.py     blocks shared among threads, and the one owner of the threads of BLAS
"""

from kernelmetric.compute._arrays import (
    all_finite,
    check_labels,
    check_points,
    device_of,
    in_library_of,
    is_numpy,
    is_single,
    is_sparse,
    like,
    namespace,
    set_entries,
    take_rows,
    to_numpy,
    widened,
)
from kernelmetric.compute._budget import (
    block_budget,
    current_budget,
    memory_budget,
    require_memory,
    row_blocks,
)
from kernelmetric.compute._differences import overflow_error, pair_squares
from kernelmetric.compute._distances import (
    median_squared_distance,
    sampled_squared_distances,
    squared_distances,
)
from kernelmetric.compute._execute import (
    map_rows,
    over_rows,
    sum_rows,
    within_budget,
    worth_keeping,
)
from kernelmetric.compute._gram_products import GramProducts, gram_products, row_products
from kernelmetric.compute._impostors import lmnn_hinge, lmnn_hinge_on, mine_impostors
from kernelmetric.compute._native import native
from kernelmetric.compute._neighbors import class_neighbors, nearest_neighbors
from kernelmetric.compute._products import BlockProduct, map_points
from kernelmetric.compute._softmax import nca_loss, softmax_bytes, softmax_reduction
from kernelmetric.compute._state import unchanged_on_failure
from kernelmetric.compute._subspaces import subspace_distances
from kernelmetric.compute._threads import available_threads, one_thread, own_threads
from kernelmetric.compute._truncated import Listed, mine_softmax, nca_loss_on
from kernelmetric.compute._values import added, exp_of_negative, l1_distances, multiplied

__all__ = [
    "BlockProduct",
    "GramProducts",
    "Listed",
    "added",
    "all_finite",
    "available_threads",
    "block_budget",
    "check_labels",
    "check_points",
    "class_neighbors",
    "current_budget",
    "device_of",
    "exp_of_negative",
    "gram_products",
    "in_library_of",
    "is_numpy",
    "is_single",
    "is_sparse",
    "l1_distances",
    "like",
    "lmnn_hinge",
    "lmnn_hinge_on",
    "map_points",
    "map_rows",
    "median_squared_distance",
    "memory_budget",
    "mine_impostors",
    "mine_softmax",
    "multiplied",
    "namespace",
    "native",
    "nca_loss",
    "nca_loss_on",
    "nearest_neighbors",
    "one_thread",
    "over_rows",
    "overflow_error",
    "own_threads",
    "pair_squares",
    "require_memory",
    "row_blocks",
    "row_products",
    "sampled_squared_distances",
    "set_entries",
    "softmax_bytes",
    "softmax_reduction",
    "squared_distances",
    "subspace_distances",
    "sum_rows",
    "take_rows",
    "to_numpy",
    "unchanged_on_failure",
    "widened",
    "within_budget",
    "worth_keeping",
]
