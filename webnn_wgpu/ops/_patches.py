"""Where the kernels of convolutions find the elements of the patches under their taps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..kernels.element import QUAD

if TYPE_CHECKING:
    from ..costs import ConvolutionSize
    from ._product_kernel import ProductKernel


@dataclass(frozen=True, kw_only=True)
class Patches:
    """How a kernel finds the input pixels under taps. A step of the sum is a tap and one of its elements.

    Attributes:
        size: the sizes by which it finds them: those of the convolution, or of another one with the same patches.
        nhwc: whether the elements under a tap are neighbors in the input.
        depth: the elements under a tap: in most cases, those of the input channels of a group.
        quads: whether it reads the input in quads of elements under a tap.
        planes: whether the rows of an nchw input are its pixels: channels count as rows, and rows as columns.
    """

    size: ConvolutionSize
    nhwc: bool
    depth: int
    quads: bool
    planes: bool = False

    @classmethod
    def of(cls, size: ConvolutionSize, *, nhwc: bool) -> Patches:
        """Return the patches of a convolution, whose input has some layout."""
        # A quad of channels is contiguous, and all its channels are in one group.
        return cls(size=size, nhwc=nhwc, depth=size.depth, quads=nhwc and size.depth % QUAD == 0)

    @property
    def filter_order(self) -> str:
        """The filter's dimensions in the order of the steps, as `filter_in` names them."""
        return "gihwo" if self.planes else "ghwio"

    @property
    def reads(self) -> int:
        """The number of places in the input that a quad of steps reads: 1, or 4 if its elements may be under several taps."""
        return QUAD if self.depth % QUAD else 1

    def of_rows(self) -> Patches | None:
        """Return the same patches with each row of taps as one tap, or None if these are not read in quads.

        Patches of an image often come without padding, with strides of whole quads and with few channels. A kernel then reads
        the elements under a row of taps in quads, where it would otherwise read them one by one.
        """
        size = self.size
        (height, width), (rows, columns) = size.input, size.kernel
        channels = size.depth if self.nhwc else 1
        inside = size.padding[1] == 0 and (size.output[1] - 1) * size.strides[1] + columns <= width
        near = not size.transposed and size.groups == 1 and (size.dilations[1] == 1 or columns == 1)
        whole = all(n * channels % QUAD == 0 for n in (columns, size.strides[1], width))
        if self.quads or not (inside and near and whole):
            return None
        if self.nhwc:
            return replace(self, size=replace(size, kernel=(rows, 1)), depth=columns * channels, quads=True)
        kernel, dilations = (size.depth, rows), (1, size.dilations[0])
        planes = replace(size, depth=width, input=(size.depth, height), kernel=kernel, dilations=dilations)
        return Patches(size=planes, nhwc=True, depth=columns, quads=True, planes=True)

    def of_quads(self) -> Patches:
        """Return the same patches with the quads of an input row as pixels, if they are read in quads.

        A row of taps is then one run of quads, so a kernel computes one coordinate less for each step.
        """
        size = self.size
        if not self.quads or self.planes or self.depth != size.depth or not self._is_contiguous:
            return self

        def in_quads(pair: tuple[int, int]) -> tuple[int, int]:
            return pair[0], pair[1] * size.depth // QUAD

        runs = replace(
            size,
            depth=QUAD,
            input=in_quads(size.input),
            kernel=in_quads(size.kernel),
            strides=in_quads(size.strides),
            padding=in_quads(size.padding),
            dilations=(size.dilations[0], 1),
        )
        return replace(self, size=runs, depth=QUAD)

    @property
    def is_run_of_quads(self) -> bool:
        """Whether each row of taps reads neighboring quads of the input, which are its pixels."""
        return self.quads and not self.planes and self.depth == self.size.depth == QUAD and self._is_contiguous

    @property
    def _is_contiguous(self) -> bool:
        size = self.size
        return self.nhwc and not size.transposed and size.groups == 1 and (size.dilations[1] == 1 or size.kernel[1] == 1)

    def walk(self, steps: int) -> dict[str, int]:
        """Return the uniforms by which a kernel moves so many steps on: elements of a tap, and taps to the right and down."""
        down, right = divmod(steps // self.depth, self.size.kernel[1])
        return {
            "walk_channel": steps % self.depth,
            "walk_right": right * self.size.dilations[1] % 2**32,
            "walk_down": down * self.size.dilations[0] % 2**32,
        }


def patch_uniforms(kernel: ProductKernel, patches: Patches) -> None:
    """Add the uniforms by which `shaders/lib/patches.wgsl.j2` finds input pixels, and the filter's sizes."""
    size, nhwc = patches.size, patches.nhwc
    (in_height, in_width), channels = size.input, size.groups * size.depth
    kernel.uniforms(
        pixels=math.prod(size.output),
        out_height=size.output[0],
        out_width=size.output[1],
        in_height=in_height,
        in_width=in_width,
        in_image=in_height * in_width * channels,
        in_row=in_width * (channels if nhwc else 1),
        in_column=channels if nhwc else 1,
        in_channel=1 if nhwc else in_height * in_width,
        kernel_height=size.kernel[0],
        kernel_width=size.kernel[1],
        stride_y=size.strides[0],
        stride_x=size.strides[1],
        dilation_y=size.dilations[0],
        dilation_x=size.dilations[1],
        # Where the first rows of taps are left out it may be negative.
        pad_y=size.padding[0] % 2**32,
        pad_x=size.padding[1] % 2**32,
        depth=patches.depth,
        channels=size.channels,
    )
