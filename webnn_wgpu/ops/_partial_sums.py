"""Sums of products that several workgroups share: each computes a part of them, and a second kernel adds the parts.

A small result with long sums has too few tiles for a GPU. Its tiles are then computed several times, each time from another
part of the sums. The parts are float32 numbers in scratch memory, and are always added in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..kernels.element import QUAD, padded_bytes
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, grid_1d
from ._normalized_sums import NORMALIZED_SUMS, NormalizedRows
from ._product_kernel import Addend, ProductKernel, Read, finish

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..costs import ProductSize
    from ..costs.tiles import BlockTile
    from ._def import Lowering

_ADD = KernelTemplate("partial_sums", ("form", "half", "alpha", "c_read", "beta", "expression", "extra_reads"))
TEMPLATES = (_ADD, NORMALIZED_SUMS)
"""The templates of products whose sums are computed in parts, besides that of the product."""

_SCRATCH_BYTES = 64 << 20
"""The maximum scratch memory of the parts of a product, in bytes."""


@dataclass(frozen=True, kw_only=True)
class PartialSums:
    """The parts of a product's sums.

    Attributes:
        size: the sizes of the product.
        count: the number of parts.
        steps: the number of elements in the sum of each part. The last part may have fewer.
    """

    size: ProductSize
    count: int
    steps: int

    @classmethod
    def of(cls, size: ProductSize, tile: BlockTile, parts: int) -> PartialSums | None:
        """Return about `parts` parts, each of whole slices of the kernel's loop, or None for a single part."""
        steps = -(-size.K // (parts * tile.depth)) * tile.depth
        count = -(-size.K // steps)
        return cls(size=size, count=count, steps=steps) if count > 1 else None

    @property
    def scratch(self) -> Temp:
        """The memory of the parts: all matrices of the first part, then those of the others."""
        size_bytes = self.count * self.size.matrices * self.size.M * self.size.N * 4
        return Temp(f"partial sums, {size_bytes} bytes", size_bytes)

    def declare(self, kernel: ProductKernel, low: Lowering, read: Read) -> None:
        """Declare the uniforms and the result of the kernel that computes the parts. This kernel has no epilogue."""
        kernel.uniforms(matrices=self.size.matrices, part_steps=self.steps)
        finish(kernel, low, self.size.N % QUAD == 0, read, None, row=self.size.N, into=self.scratch)

    def added(
        self,
        low: Lowering,
        read: Read,
        addend: Addend | None,
        *,
        half: bool,
        whole: bool,
        row: int,
        into: Temp | None,
        alpha: float = 1,
        form: str = "matrix",
        **uniforms: int,
    ) -> KernelCall:
        """Return the call that adds the parts and applies the epilogue to the result, whose rows it may normalize.

        Args:
            low: the node, with its epilogue.
            read: returns how the kernel addresses the addend and the epilogue's operands.
            addend: the addend of the product, or None.
            half: whether the factors are float16, so that the kernel rounds the product to float16 before the epilogue.
            whole: whether the kernel stores the result in whole quads.
            row: the number of columns of the whole result.
            into: scratch memory for a float32 result without an epilogue, or None for the node's result.
            alpha: a factor of every element.
            form: the order of elements in the result (`shaders/lib/product.wgsl.j2`).
            uniforms: further uniforms of the form.
        """
        size, kernel = self.size, ProductKernel()
        kernel.bind(Binding(name="partial", access="read", quad=size.N % QUAD == 0), self.scratch)
        whole_rows = into is None and row == size.N and form != "nchw"
        rows = NormalizedRows.of(low, size, self.count, int(addend is not None)) if whole_rows else None
        items = rows.quads if rows else size.matrices * size.M * -(-size.N // QUAD)
        part = size.matrices * size.M * size.N
        kernel.uniforms(M=size.M, N=size.N, items=items, parts=self.count, part=part, **uniforms)
        kernel.params |= {"form": form, "half": half, "alpha": alpha != 1, "beta": addend is not None and addend.beta != 1}
        if alpha != 1:
            kernel.uniform("alpha", alpha, "f32")
        if rows:
            rows.declare(kernel)
        finish(kernel, low, whole, read, addend, row=row, scaled=alpha != 1, into=into)
        reason = f"adds {self.count} parts of the sums"
        return rows.call(kernel, reason) if rows else kernel.call(_ADD, grid_1d(-(-items // 64), low.caps), reason)


def operands_fit(low: Lowering, other_bytes: Iterable[int]) -> bool:
    """Return whether all operands of a node and its epilogue fit a binding, and so do buffers of some other sizes."""
    epilogue = [*low.epilogue.operands, low.epilogue.output, *low.epilogue.others] if low.epilogue else []
    values = [value for value in (*low.node.inputs, *low.node.outputs, *epilogue) if value is not None]
    sizes = [*other_bytes, *(low.graph.type(value).size_bytes for value in values)]
    return max(map(padded_bytes, sizes)) <= low.caps.limit("max-storage-buffer-binding-size")


def most_parts(low: Lowering, size: ProductSize, factor_bytes: Iterable[int] = ()) -> int:
    """Return the maximum number of parts of a product's sums, or 1 if an operand does not fit a binding.

    Args:
        low: the node, with its epilogue.
        size: the sizes of the product.
        factor_bytes: the sizes in bytes of factors that are no operands of the node.
    """
    limit = low.caps.limit("max-storage-buffer-binding-size")
    result = 4 * math.prod((size.matrices, size.M, size.N))
    if not operands_fit(low, (*factor_bytes, result)):
        return 1
    return max(1, min(limit, _SCRATCH_BYTES) // padded_bytes(result))
