"""Reductions of torch tensors on a CUDA device, fused by Triton where it is installed.

float32 is split into two halves of float16, and three products of halves are as good as one in
float32; after ``torch.set_float32_matmul_precision("high")`` one is taken. The order of every sum
follows from the shapes alone, so results repeat bit for bit.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

WIDEST = 256  # coordinates that a program has room for
_TRITON = find_spec("triton") is not None
_WIDE = ((8, 0), (9, 0), (10, 0))  # compute capabilities with tensor cores for float64


def suits(E: Any) -> bool:
    """Whether a Triton kernel takes these points: float32 on CUDA, not too many coordinates."""
    return single_on_device(E) and 1 <= E.shape[1] <= WIDEST and _TRITON


def single_on_device(X: Any) -> bool:
    """Whether a tensor is of float32, on a CUDA device."""
    return X.is_cuda and str(X.dtype) == "torch.float32"


class Room(NamedTuple):
    """Memory of a device, in bytes."""

    total: int
    free: int  # or held by torch, and used by nobody


def room(device: Any) -> Room | None:
    """The free memory of a CUDA device, by its driver and torch; None for other devices."""
    if device.type != "cuda":
        return None
    torch = import_module("torch")
    free, total = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return Room(total, free + held)


def wide_is_fast(X: Any) -> bool:
    """Whether the card multiplies in float64 as fast as in float32: A100, H100, B200 and theirs."""
    torch = import_module("torch")
    return torch.version.hip is None and torch.cuda.get_device_capability(X.device) in _WIDE
