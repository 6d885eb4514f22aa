"""Rows that the kernel which adds the parts of sums normalizes besides, so that no other dispatch reads them for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.data_types import cast_number
from ..kernels.element import QUAD
from ..kernels.spec import Binding, Grid, KernelCall, KernelTemplate
from ._reduction import Field, RowShape, row_launch, workgroup_lanes

if TYPE_CHECKING:
    from ..costs import ProductSize
    from ._def import Lowering, RowNormalization
    from ._product_kernel import ProductKernel

NORMALIZED_SUMS = KernelTemplate(
    "normalized_sums",
    ("rows", "centered", "stores", "form", "half", "alpha", "c_read", "beta", "expression", "extra_reads"),
)

_MOST_QUADS = 8
"""The maximum number of quads of an invocation. The text of the epilogue is repeated for each."""


@dataclass(frozen=True)
class NormalizedRows:
    """The rows of a product's result, each of which a workgroup adds up and normalizes.

    Attributes:
        low: the node of the product.
        normalization: the normalization of the rows.
        shape: the invocations of a row and its quads.
        size: the sizes of the product.
    """

    low: Lowering
    normalization: RowNormalization
    shape: RowShape
    size: ProductSize

    @classmethod
    def of(cls, low: Lowering, size: ProductSize, parts: int, addends: int) -> NormalizedRows | None:
        """Return the rows of a product, or None if no normalization follows or a dispatch of its own is better.

        Args:
            low: the node, whose kernel stores whole rows of the product's result side by side.
            size: the sizes of the product.
            parts: the number of parts of the sums.
            addends: the number of operands that are added to the product besides those of its epilogue.
        """
        found = low.normalization
        if found is None or low.part is not None or size.N % QUAD:
            return None
        read = [*(low.epilogue.operands if low.epilogue else ()), *found.node.operands[1:]]
        # Besides these the kernel binds the parts of the sums and one or two results.
        if len(read) + addends + 2 + found.stored > low.caps.limit("max-storage-buffers-per-shader-stage"):
            return None
        if not low.target.costs.rows.normalizes_sums(size.matrices * size.M, size.N, parts):
            return None
        # As many invocations as those of a normalization alone, so that sums have the same order.
        shape = RowShape(lanes=workgroup_lanes(size.N, low.caps), quads=True).holding(size.N // QUAD)
        return cls(low, found, shape, size) if 0 < shape.held <= _MOST_QUADS else None

    @property
    def quads(self) -> int:
        """The number of quads of a row."""
        return self.size.N // QUAD

    def declare(self, kernel: ProductKernel) -> None:
        """Declare the operands, the uniforms and the result of the normalization."""
        node, graph = self.normalization.node, self.low.graph
        element = graph.type(node.outputs[0]).data_type
        for name, value in zip(("scale", "bias"), node.inputs[1:], strict=False):
            if value is not None:
                kernel.bind(Binding(name=name, access="read", element=element, quad=True), value)
        if self.normalization.stored:
            kernel.bind(Binding(name="normalized", access="write", element=element, quad=True), node.outputs[0])
        kernel.fields += self._launch[0]
        kernel.uniform("length", float(self.size.N), "f32")
        kernel.uniform("epsilon", float(cast_number(node.attrs["epsilon"], element)), "f32")
        kernel.uniform("opaque_row", 0)
        rows = self.low.target.costs.rows
        if "subgroup" in self.low.caps.features and self.low.caps.subgroup_size and rows.combines_by_subgroups:
            kernel.features.append("subgroup")
        kernel.params |= {"rows": self.shape, "centered": self.normalization.centered, "stores": self.normalization.stored}

    def call(self, kernel: ProductKernel, reason: str) -> KernelCall:
        """Return the call of a kernel whose last operand is the result of the product."""
        if not self.normalization.stored:
            kernel.operands[-1] = self.normalization.node.outputs[0]
        return kernel.call(NORMALIZED_SUMS, self._launch[1], f"{reason}, and normalizes rows of {self.size.N}")

    @property
    def _launch(self) -> tuple[list[Field], Grid]:
        return row_launch(self.shape, self.size.matrices * self.size.M, self.low.target)
