"""Transposed convolutions with strides as forward ones: output pixels in phases, each of which has its own taps.

Under strides of 2 an output pixel meets every other row and every other column of the taps: a quarter of the filter. Pixels
that are whole strides apart meet the same taps. Such a phase is a forward convolution of the input with a part of the filter,
whose output pixels are as dense as those of the input. All phases are matrices of one product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..kernels.packing import PhasedFilter

if TYPE_CHECKING:
    from ..costs import ConvolutionSize, ProductSize

_BACKWARD = 2**32 - 1
"""A step of -1 between the input pixels of neighboring taps, as an unsigned number."""


@dataclass(frozen=True)
class Phases:
    """The phases of a transposed convolution, in the order (row, column).

    In rows, output pixel y is of phase (y + padding) % stride, and is number (y + padding) // stride of it. Pixels before the
    first one of the output count as well, up to a whole stride.
    """

    size: ConvolutionSize

    @property
    def count(self) -> int:
        """How many there are."""
        return math.prod(self.size.strides)

    @property
    def skipped(self) -> tuple[int, int]:
        """Pixels of each phase, in rows and columns, that padding cuts off."""
        top, left = (p // s for p, s in zip(self.size.padding, self.size.strides, strict=True))
        return top, left

    @property
    def forward(self) -> ConvolutionSize:
        """The forward convolution of one phase."""
        size = self.size
        (top, left), sides = self.skipped, zip(size.output, size.padding, size.strides, self.skipped, strict=True)
        height, width = (-(-(n + p) // s) - skipped for n, p, s, skipped in sides)
        rows, columns = (-(-k // s) for k, s in zip(size.kernel, size.strides, strict=True))
        return replace(
            size,
            transposed=False,
            output=(height, width),
            kernel=(rows, columns),
            strides=(1, 1),
            dilations=(_BACKWARD, _BACKWARD),
            padding=(-top, -left),
        )

    @property
    def product(self) -> ProductSize:
        """The product of all phases."""
        return replace(self.forward.product, matrices=self.count)

    def packing(self, zero_point: int) -> PhasedFilter:
        """Return the packing of a filter in the order of its steps. Taps that a phase lacks have the value of a zero."""
        return PhasedFilter(self.size.kernel, self.size.strides, zero_point)

    @property
    def uniforms(self) -> dict[str, int]:
        """The uniforms by which the kernel finds the pixels of the output."""
        size, (top, left) = self.size, self.skipped
        return {
            "phases_y": size.strides[0],
            "phases_x": size.strides[1],
            "first_y": (top * size.strides[0] - size.padding[0]) % 2**32,
            "first_x": (left * size.strides[1] - size.padding[1]) % 2**32,
            "full_height": size.output[0],
            "full_width": size.output[1],
        }


def phases_of(size: ConvolutionSize) -> Phases | None:
    """Return the phases of a convolution, if it has any and the kernel of tiles can take them."""
    plain = size.transposed and size.groups == 1 and size.dilations == (1, 1) and size.nhwc
    return Phases(size) if plain and max(size.strides) > 1 else None
