"""Changing the data type element by element, and choosing between two tensors element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import ANY, DATA_TYPES
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS, PAIRS
from ..kernels.expression import Formula, formula
from ._attrs import Attr
from ._def import OpCall, OpDef, Operand
from ._elementwise import ELEMENTWISE
from ._rows import infer_broadcast, lower_elementwise
from .gradients import elementwise as elementwise_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import PER_RESULT
from .interfaces.documentation import SELECTION, Documentation, Method
from .interfaces.elementwise import ElementWise, in_pairs
from .interfaces.family import Family
from .interfaces.layout import BROADCAST


def _cast_formula(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
    source, target = DATA_TYPES[inputs[0]], DATA_TYPES[out]
    value = ELEMENTS[out].value
    if target.kind == "float":
        # An integer is rounded to float32 and a float16 target rounds once more when stored. Integers above 2^24 that a
        # double rounding could hurt are beyond float16's range.
        return formula({"float32": "x", "float16": "x", "uint32": "uint32_to_f32(x)"}.get(inputs[0], "f32(x)"))
    if source.kind == "float":
        return formula(f"f32_to_{out}(x)")
    if target.size_bytes == 8 and source.size_bytes < 8 and source.kind != target.kind:
        # Drivers differ in the sign extension of a conversion that changes both width and signedness. The width changes first.
        return formula(f"T({'i64' if source.kind == 'int' else 'u64'}(x))", type_=value)
    return formula("T(x)" if value != ELEMENTS[inputs[0]].value else "x", type_=value)


def _cast_in_pairs(native: Formula, inputs: Sequence[str], target: str) -> Formula:
    source = inputs[0]
    if source in PAIRS and target in PAIRS:
        return formula("x", lib=("pair",))
    if source in PAIRS:
        if target == "f32":
            return formula(f"{source}_to_f32(x)")
        return formula("bitcast<i32>(x.x)" if target == "i32" else "x.x", lib=("pair",))
    if source == "f32":
        return formula(f"f32_to_{target}(x)")
    words = "bitcast<u32>(x), bitcast<u32>(x >> 31u)" if source == "i32" else "x, 0u"
    return formula(f"{target}({words})", lib=("pair",))


def _cast_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    target = DATA_TYPES[out[0].data_type]
    with np.errstate(all="ignore"):
        if target.kind == "float" or x.dtype.kind != "f":
            return [x.astype(out[0].numpy)]
        # Numbers out of range saturate, and NaN becomes 0. float64 cannot hold the largest 64-bit integers, so both limits are
        # treated separately.
        limits = np.iinfo(target.name)
        whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
        top, bottom = whole >= float(limits.max), whole <= float(limits.min)
        inside = np.where(top | bottom, 0, whole).astype(target.numpy)
        return [np.where(top, target.numpy.type(limits.max), np.where(bottom, target.numpy.type(limits.min), inside))]


def _infer_where(call: OpCall) -> tuple[TensorType, ...]:
    return infer_broadcast(call, call.input(1).data_type)


def _where_formula(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
    return formula("select(false_value, true_value, condition != 0u)", ("condition", "true_value", "false_value"))


def _where_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    condition, true_value, false_value = arrays
    assert condition is not None
    assert true_value is not None
    assert false_value is not None
    return [np.where(condition != 0, true_value, false_value)]


CAST = OpDef(
    name="cast",
    operands=(Operand(name="input"),),
    infer=lambda call: (call.input().with_data_type(call.attrs["data_type"]),),
    reference=_cast_reference,
    lower=lower_elementwise,
    attrs=(Attr("data_type", "data_type"),),
    templates=(ELEMENTWISE,),
    spec="#api-mlgraphbuilder-cast",
    elementwise=ElementWise(_cast_formula, _cast_in_pairs),
    family=Family.ELEMENT_WISE,
    without=("epilogue", "movement", "precision"),
    layout=BROADCAST,
    cost=PER_RESULT,
    bounds=EXACT,
    output_types=ANY,
    copies=True,
    documentation=Documentation(
        group=SELECTION,
        summary="The elements in another data type.",
        arguments={
            "input": "{types}, with any shape.",
            "data_type": "The output's data type. Its name is `type` in the 2024 text.",
        },
        returns="An operand of data type `data_type` with the input's shape.",
        raises="The data type is unknown",
        numerics=(
            "Floats that are cast to integers lose their fraction and saturate, and NaN becomes 0. Integers that are cast "
            "to integers keep their low bits."
        ),
        example="""
            >>> b.cast(x, "int32")
            MLOperand(int32[2, 3])
        """,
        method=Method(aliases={"type": "data_type"}),
    ),
    gradient=elementwise_gradients.CAST,
)

OPS = (
    CAST,
    OpDef(
        name="where",
        operands=(
            Operand(name="condition", data_types=("uint8",)),
            Operand(name="trueValue"),
            Operand(name="falseValue", same_as="trueValue"),
        ),
        infer=_infer_where,
        reference=_where_reference,
        lower=lower_elementwise,
        templates=(ELEMENTWISE,),
        spec="#api-mlgraphbuilder-where",
        elementwise=ElementWise(_where_formula, in_pairs("select(false_value, true_value, condition != 0u)")),
        family=Family.ELEMENT_WISE,
        without=("epilogue", "movement", "precision"),
        layout=BROADCAST,
        cost=PER_RESULT,
        bounds=EXACT,
        output_types=ANY,
        documentation=Documentation(
            group=SELECTION,
            summary="`true_value` where the condition is not 0, else `false_value`.",
            details="The three shapes broadcast as in numpy.",
            arguments={
                "condition": "{types}, as comparisons return it, with any shape.",
                "true_value": "{types}, with any shape. Its name is `input` in the 2024 text.",
                "false_value": "The data type of `true_value`, with any shape. Its name is `other` in the 2024 text.",
            },
            returns="An operand with the values' data type and the broadcast shape.",
            raises="The condition is not uint8, the values have different data types, the shapes do not broadcast",
            numerics="NaN and infinities in the value that is not taken have no effect.",
            example="""
                >>> b.where(b.greater(x, y), x, y).shape
                (2, 3)
            """,
            method=Method(aliases={"input": "true_value", "other": "false_value"}),
        ),
        gradient=elementwise_gradients.WHERE,
    ),
)
