"""The epilogue of kernels that compute results one by one, as reductions do: see `shaders/lib/epilogue.wgsl.j2`."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

from ..kernels.element import element_of
from ..kernels.expression import Expression
from ..kernels.spec import Binding, Interval
from ..kernels.terms import OPAQUE_ZERO
from ._def import Lowering
from ._reduction import Field

EPILOGUE_PARAMS = ("expression", "epilogue")
"""The template parameters of kernels with an epilogue. Kernels without one leave them out."""


@dataclass(frozen=True, kw_only=True)
class EpilogueForm:
    """The template parameter that a kernel has besides the expression.

    Attributes:
        reads: where the elements of each operand are, in the words of the template.
        half: whether the kernel rounds an element to float16 before it applies the expression.
        lib: the files of `shaders/lib/math` that the epilogue calls.
    """

    reads: tuple[str, ...]
    half: bool
    lib: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ElementEpilogue:
    """The parts of a kernel call that the epilogue of its node adds. Without an epilogue, it adds nothing.

    Attributes:
        expression, form: the template parameters.
        bindings: the bindings of the epilogue's operands, in front of that of the result.
        operands: the values of these.
        fields: the uniforms.
        features: the device features that the kernel needs.
    """

    expression: Expression | None = None
    form: EpilogueForm | None = None
    bindings: tuple[Binding, ...] = ()
    operands: tuple[int, ...] = ()
    fields: tuple[Field, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def params(self) -> dict[str, Hashable]:
        """The template parameters by name."""
        return dict(zip(EPILOGUE_PARAMS, (self.expression, self.form), strict=True)) if self.form else {}

    def reach(self, first: int, end: int) -> list[Interval | None]:
        """Return the elements of each operand that results first..end-1 read."""
        return [(first, end) if read == "full" else None for read in (self.form.reads if self.form else ())]


NO_EPILOGUE = ElementEpilogue()
"""The epilogue of calls whose results are stored as they are."""


def element_epilogue(low: Lowering, axis: int) -> ElementEpilogue:
    """Return the epilogue of a node, for kernels of its result.

    Args:
        low: the node.
        axis: the dimension of the channels, along which operands may be vectors, counted from the end.
    """
    epilogue = low.epilogue
    if epilogue is None:
        return NO_EPILOGUE
    output = low.output()
    row = math.prod(output.shape[axis:][1:])
    reads: list[str] = []
    for value in epilogue.operands:
        own = low.graph.type(value)
        if own.num_elements == 1:
            reads.append("one")
        elif own.num_elements == output.num_elements:
            reads.append("full")
        else:
            reads.append("columns" if row == 1 else "rows")
    half = output.data_type == "float16"
    fields: list[Field] = [*epilogue.uniforms]
    if not half and OPAQUE_ZERO not in {name for name, *_ in fields}:
        fields.append((OPAQUE_ZERO, "u32", 0))
    if "columns" in reads or "rows" in reads:
        fields.append(("extra_channels", "u32", output.shape[axis]))
    if "rows" in reads:
        fields.append(("extra_row", "u32", row))
    lib = epilogue.expression.lib
    return ElementEpilogue(
        expression=epilogue.expression,
        form=EpilogueForm(reads=tuple(reads), half=half, lib=("round_float16", *lib) if half else lib),
        bindings=tuple(
            Binding(name=f"extra{i}", access="read", element=element_of(low.graph.type(value).data_type, low.caps))
            for i, value in enumerate(epilogue.operands)
        ),
        operands=epilogue.operands,
        fields=tuple(fields),
        features=epilogue.expression.features,
    )
