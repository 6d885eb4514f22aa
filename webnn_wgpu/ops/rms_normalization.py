"""RMS normalization: over a tensor's own dimensions, by the root of the mean of squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._normalization import NORMALIZATION, in_place, items_call, normalized, require_shape, rows_reached
from ._rows import to_type
from .gradients import normalization as normalization_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import per_element
from .interfaces.documentation import NORMALIZATION_EXTENSIONS, Documentation
from .interfaces.family import Family


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    call.attrs["axes"] = axes = (x.rank - 1,) if axes is None else call.axes(axes, x.rank)
    require_shape(call, 1, "scale", [x.shape[d] for d in axes], "[input.shape[axis] for axis in axes]")
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x, scale = arrays
    assert x is not None
    axes = attrs["axes"]
    return [to_type(normalized(x, axes, in_place(scale, axes, x.ndim), None, attrs, outputs[0], centered=False), outputs[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    return items_call(low, centered=False)


OPS = (
    OpDef(
        name="x.rms_normalization",
        operands=(Operand(name="input", data_types=FLOATS, min_rank=1), Operand(name="scale", same_as="input", required=False)),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("axes", "uints", None), Attr("epsilon", "float", 1e-5)),
        templates=(NORMALIZATION,),
        family=Family.NORMALIZATION,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=per_element(4),
        bounds=replace(CONDITIONED, reached=rows_reached(centered=False)),
        documentation=Documentation(
            group=NORMALIZATION_EXTENSIONS,
            summary="`scale * x / sqrt(mean(x * x) + epsilon)`, with the mean along `axes`.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "scale": (
                    "The input's data type, with the shape `[input.shape[axis] for axis in axes]`. The default is 1 for "
                    "all elements."
                ),
                "axes": "Dimensions of the input. The default is the last one.",
                "epsilon": "Finite. It is cast to the input's data type.",
            },
            returns="An operand with the input's data type and shape.",
            raises=(
                "An axis is not a dimension of the input or is repeated, the scale has another shape, data types differ or "
                "are not allowed"
            ),
            example="""
                >>> b.ext.rms_normalization(x, epsilon=1e-6)
                MLOperand(float32[2, 3])
            """,
        ),
        gradient=normalization_gradients.rms,
    ),
)
