"""Where blocks, devices, threads and dtypes are known, and nowhere else.

Everything above this room is written against an array namespace ``xp``: NumPy arrays in give
NumPy arrays out, torch tensors (CPU or CUDA) in give torch tensors out. Pairwise work is a
*reduction over row blocks* whose size obeys a memory budget, so that no algorithm needs an
n × n array::

    _arrays.py      which library of arrays, how many digits
    _device.py      the device on which NumPy arrays are computed with
    _budget.py      how much memory a block may take, and what cannot fit
    _machine.py     how much memory the machine, or its container, has
    _execute.py     work on blocks of rows, mapped or summed: what other rooms call
    _threads.py     the one owner of the threads of BLAS
    watch.py        how far work is, and until when it may run
    conjugate_gradients.py  equations known by their products, many right sides at once
    rates.py        how fast the machine is, and what can end in the time that is left
    reductions/     sums over pairs of points, as functions of a tile: a face of its own
    backends/       what each library of arrays does in its own way: ``backend_of(X)``

Rooms above say what they need, and this one decides: ``precise`` numbers or ``rough`` ones that
are right to a tolerance, with a rounding that ``rounding_of`` tells; ``small_steps`` that more
threads would slow down, or ``repeatable`` ones; rows that are ``in_memory`` or are gone through.
What comes in from outside is checked in ``kernelmetric.inputs``.
"""

from kernelmetric._warnings import moved
from kernelmetric.compute._arrays import (
    all_finite,
    in_library_of,
    in_memory,
    is_sparse,
    like,
    namespace,
    precise,
    rough,
    rounding_of,
    take_rows,
    to_numpy,
)
from kernelmetric.compute._budget import (
    block_budget,
    fits_budget,
    memory_budget,
    require_memory,
    within_budget,
)
from kernelmetric.compute._device import to_device, use_device
from kernelmetric.compute._execute import map_rows, over_rows, sum_rows
from kernelmetric.compute._threads import bytes_at_once, repeatable, small_steps
from kernelmetric.compute.backends import backend_of

__getattr__ = moved(__name__, {"FarCellWarning": "inputs"})
