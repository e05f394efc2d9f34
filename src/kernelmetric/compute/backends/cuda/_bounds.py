"""Products of queries with points by tensor cores: three of float16 in one, summed in float32."""

from typing import Any

import torch

_LIKE = 4.0  # rows of a size within this of the largest keep all their digits beside it


class HalfBounds:
    """``b_j - 2 q a_j`` for queries q and points a, given divided by ``scale`` to at most 1."""

    slack = 2.0  # tensor cores cut off where others round

    def __init__(self, points: Any, scale: Any):
        high, low = _halves(points)
        self.columns, self.scale = torch.cat([high, low, high], dim=1).T, scale

    def add(self, b: Any) -> None:
        """Keep a number b for each point."""
        self.b = b

    def __call__(self, q: Any) -> Any:
        """The numbers (m, n) for some queries (m, d), in float32."""
        size = _power_of_two(torch.amax(torch.abs(q), dim=1, keepdim=True))
        high, low = _halves(q / size)
        rows = torch.cat([high, high, low], dim=1)
        products = torch.mm(rows, self.columns, out_dtype=torch.float32)
        return torch.addcmul(self.b[None, :], products, -2.0 * self.scale * size, out=products)


def bounds_from(points: Any) -> HalfBounds | None:
    """Bounds for points in float32; None where rows differ so much in size that digits are lost."""
    if points.shape[0] == 0 or not _mixed_products():
        return None
    sizes = torch.amax(torch.abs(points), dim=1)
    scale = _power_of_two(torch.amax(sizes))
    if bool(torch.any((sizes > 0) & (sizes * _LIKE < scale))):
        return None
    return HalfBounds(points / scale, scale)


def _halves(x: Any) -> tuple[Any, Any]:
    high = x.to(torch.float16)
    return high, (x - high).to(torch.float16)


def _power_of_two(x: Any) -> Any:
    """A power of two not below x; one for zero."""
    _, exponent = torch.frexp(x)
    return torch.ldexp(torch.ones_like(x), torch.clamp(exponent, min=-100))


def _mixed_products() -> bool:
    """Whether torch multiplies float16 into float32: since 2.8."""
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)
