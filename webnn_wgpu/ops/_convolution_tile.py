"""The tile that a workgroup computes of a convolution, and how it declares the kernel of tiles in workgroup memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.data_types import DATA_TYPES
from ..kernels.element import QUAD
from ._convolution_operands import element_bytes_of
from ._large_convolution import Images
from ._partial_sums import PartialSums
from ._product import most_rows

if TYPE_CHECKING:
    from ..costs import Choice, ConvolutionSize, ProductSize
    from ..costs.tiles import BlockTile
    from ._def import Lowering
    from ._patches import Patches
    from ._product_kernel import ProductKernel


@dataclass(frozen=True, kw_only=True)
class WorkgroupTile:
    """A tile of the product of patches with the filter.

    Attributes:
        tile: the tile.
        partial: the parts of the sums, or None for a single part.
        patches: how the kernel finds the elements of patches.
        rest: which slice of the sum has fewer steps than the others, "start" or "end", or "" for none.
    """

    tile: BlockTile
    partial: PartialSums | None
    patches: Patches
    rest: str

    @classmethod
    def of(
        cls, low: Lowering, size: ConvolutionSize, patches: Patches, choice: Choice, product: ProductSize, *, most: int
    ) -> WorkgroupTile:
        """Return the tile of a convolution.

        Args:
            low: the node.
            size: the sizes of the convolution.
            patches: how the kernel finds the elements of its patches.
            choice: the choice of the kernel, which may name a tile.
            product: the sizes of the product.
            most: parts that the sums may have.
        """
        output_bytes = max(DATA_TYPES[low.output().data_type].size_bytes, element_bytes_of(low))
        rows = most_rows(lambda rows: Images(size).fit(element_bytes_of(low), output_bytes, rows, low.caps))
        costs = low.target.costs.products
        tile, count = costs.tile_and_parts(choice, product, most_rows=rows, most_parts=most, patch_reads=patches.reads)
        rest = tile.rest(product.K, whole=patches.depth % QUAD == 0)
        found = cls(tile=tile, partial=PartialSums.of(product, tile, count), patches=patches, rest=rest)
        return replace(found, patches=patches.of_quads()) if found.taps in ("own", "whole") else found

    @property
    def sides(self) -> tuple[int, int]:
        """Pixels and channels of the tile."""
        return self.tile.rows, self.tile.columns

    @property
    def taps(self) -> str:
        """How slices of the sum follow from taps: see `conv2d.tiled`."""
        steps, slice_steps = self.patches.depth, self.tile.depth
        if steps % QUAD:
            return "cut"
        if steps % slice_steps == 0:
            return "even"
        if self.patches.is_run_of_quads and steps * self.patches.size.kernel[1] % slice_steps == 0:
            return "row"
        return "whole" if slice_steps % steps == 0 else "own"

    def declare(self, kernel: ProductKernel) -> None:
        """Declare the kernel's parameters, and the uniforms by which it moves along the sum."""
        taps, patches = self.taps, self.patches
        size = patches.size
        found = {"depth": patches.depth, "width": size.kernel[1], "dilations": tuple(size.dilations), "nhwc": patches.nhwc}
        kernel.params |= {"tile": self.tile, "parted": self.partial is not None, "phased": False, "planes": patches.planes}
        kernel.params |= {"rest": self.rest, "taps": taps, **(found if taps == "cut" else dict.fromkeys(found))}
        if taps in ("row", "whole", "own"):
            kernel.uniforms(**patches.walk(self.tile.depth))
