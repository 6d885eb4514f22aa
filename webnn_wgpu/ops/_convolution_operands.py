"""The operands of convolutions, in the forms in which kernels read them: input, filter, bias, and operands of epilogues."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.data_types import DATA_TYPES
from ..kernels.packing import Permuted
from ..kernels.spec import Binding, KernelCall, Packed, Temp, texel_element
from ..kernels.spec import Operand as KernelOperand
from ._convolution_options import sizes_of
from ._patches import Patches, patch_uniforms
from ._product_kernel import Addend, ProductKernel, Read
from ._shapes import strides_of
from ._strided_copy import strided_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..costs import ConvolutionSize
    from ._def import Lowering


def filter_in(low: Lowering, size: ConvolutionSize, order: str, calls: list[KernelCall]) -> KernelOperand:
    """Return the filter in another order: permuted at build time if it is a constant, else by a copy.

    Args:
        low: the node.
        size: its sizes.
        order: the letters g (groups), h, w, i (input channels of a group), o (output channels of a group).
        calls: gets the copy.
    """
    value, type_, held = low.value(1), low.input(1), FilterOrder.of(low, size)
    packing = held.packing(order)
    moving = [axis for axis in packing.axes if packing.dims[axis] > 1]
    if low.is_constant(value):
        return Packed(value, packing)
    if moving == sorted(moving):
        return value
    temp = Temp("filter", type_.num_elements * DATA_TYPES[type_.data_type].size_bytes)
    space, strides = [packing.dims[axis] for axis in packing.axes], [held.strides()[letter] for letter in order]
    reason = f"filter from {low.attrs['filter_layout']} to {order}"
    calls.append(strided_call(value, type_.data_type, 0, space, strides, temp, low.target, reason))
    return temp


@dataclass(frozen=True)
class FilterOrder:
    """The order in which a filter is held: the letters of its dimensions, as `filter_in` names them, and their sizes."""

    letters: str
    dims: tuple[int, ...]

    @classmethod
    def of(cls, low: Lowering, size: ConvolutionSize) -> FilterOrder:
        """Return the order of a node's filter."""
        layout: str = low.attrs["filter_layout"]
        letters = layout.replace("i", "gi") if size.transposed else layout.replace("o", "go")
        sizes = sizes_of(low.input(1).shape, layout) | {"g": size.groups, "i": size.depth, "o": size.columns}
        return cls(letters, tuple(sizes[letter] for letter in letters))

    def packing(self, order: str) -> Permuted:
        """Return the packing that puts it into another order."""
        return Permuted(self.dims, tuple(self.letters.index(letter) for letter in order))

    def strides(self) -> dict[str, int]:
        """Return the steps along the dimensions, by letter."""
        return dict(zip(self.letters, strides_of(self.dims), strict=True))


def element_bytes_of(low: Lowering) -> int:
    """Return the bytes of an element of the input."""
    return DATA_TYPES[low.input().data_type].size_bytes


def bias_of(low: Lowering) -> Addend | None:
    """Return the bias, if there is one."""
    return Addend(low.value(2), low.input(2).data_type, low.input(2).shape, 1) if low.has(2) else None


def read_at(size: ConvolutionSize, vector: str) -> Read:
    """Return how the kernel addresses the bias and an epilogue's operands. A vector runs along the channels."""

    def read(shape: Sequence[int]) -> str:
        count = math.prod(shape)
        return "one" if count == 1 else vector if count == size.channels else "full"

    return read


def start_kernel(
    low: Lowering,
    size: ConvolutionSize,
    source: KernelOperand,
    weights: KernelOperand,
    texture: bool,
    quad: bool,
    patches: Patches | None = None,
) -> ProductKernel:
    """Return a kernel that reads the input and the filter, and knows where the elements of patches are."""
    data_type, weights_type = (low.input(i).data_type for i in range(2))
    kernel = ProductKernel()
    patches = patches or Patches.of(size, nhwc=size.nhwc and source != low.channels_first)
    kernel.bind(Binding(name="input", access="read", element=data_type, quad=patches.quads), source)
    binding = (
        Binding(name="weights", access="texture", element=texel_element(weights_type))
        if texture
        else Binding(name="weights", access="read", element=weights_type, quad=quad)
    )
    kernel.bind_weights(binding, weights, low.zero_point(1))
    kernel.params["transposed"] = size.transposed
    patch_uniforms(kernel, patches)
    return kernel
