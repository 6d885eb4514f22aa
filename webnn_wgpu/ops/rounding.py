"""Extension operators: rounding to data types that WebNN does not have. The results keep the data type of the operand.

Importers take them for a cast to bfloat16, to one of the formats of 8 bits, or to an integer type of another width.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

import ml_dtypes
import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.expression import Formula, formula
from ._attrs import Attr
from ._def import OpCall, OpDef, Operand
from ._elementwise import ELEMENTWISE
from ._row_documentation import Text
from ._rows import lower_elementwise, unary
from .gradients import elementwise as elementwise_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import PER_RESULT
from .interfaces.documentation import ROUNDING_EXTENSIONS, Documentation
from .interfaces.elementwise import ElementWise
from .interfaces.family import Family
from .interfaces.layout import BROADCAST

_INFINITY, _NAN = 0x7F800000, 0x7FC00000


class _Format(NamedTuple):
    """A floating-point format of 8 bits: bits of its fraction, exponent of its lowest normal number, largest number."""

    dtype: type[np.generic]
    fraction: int
    lowest: int
    largest: float
    infinity: bool
    signed_zero: bool


FORMATS = MappingProxyType(
    {
        "e4m3fn": _Format(ml_dtypes.float8_e4m3fn, 3, -6, 448.0, False, True),
        "e4m3fnuz": _Format(ml_dtypes.float8_e4m3fnuz, 3, -7, 240.0, False, False),
        "e5m2": _Format(ml_dtypes.float8_e5m2, 2, -14, 57344.0, True, True),
        "e5m2fnuz": _Format(ml_dtypes.float8_e5m2fnuz, 2, -15, 57344.0, False, False),
    }
)
"""The formats of ONNX by name. Formats that end in `fn` have no infinity, and formats that end in `uz` no negative zero."""


def _bfloat16(x: Array) -> Array:
    return x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)


def _float8_formula(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
    found = FORMATS[attrs["format"]]
    largest = int(np.float32(found.largest).view(np.uint32))
    beyond = largest if attrs["saturate"] else _INFINITY if found.infinity else _NAN
    return formula(
        "round_float8(x, fraction, lowest, largest, beyond, zero_sign)",
        uniforms=(
            ("fraction", "u32", found.fraction),
            ("lowest", "i32", found.lowest),
            ("largest", "f32", found.largest),
            ("beyond", "u32", beyond),
            ("zero_sign", "u32", 0xFFFFFFFF if found.signed_zero else 0),
        ),
    )


def _float8_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    found = FORMATS[attrs["format"]]
    with np.errstate(all="ignore"):
        rounded = x.astype(np.float32)
        if attrs["saturate"]:
            # Numbers between the largest one and its would-be successor round to the largest one in both directions.
            rounded = np.clip(rounded, -found.largest, found.largest)
        return [rounded.astype(found.dtype).astype(out[0].numpy)]


def _infer_wrap(call: OpCall) -> tuple[TensorType, ...]:
    bits = call.attrs["bits"]
    call.require(1 <= bits <= 32, "bits is out of range", got=f"bits={bits}", allowed="1..32")
    return (call.input(),)


def _wrap_formula(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
    code = "extractBits(x, 0u, bits)"
    if not attrs["signed"]:
        code = "bitcast<i32>(extractBits(bitcast<u32>(x), 0u, bits))"
    return formula(code, uniforms=(("bits", "u32", attrs["bits"]),))


def _wrap_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    size = 1 << attrs["bits"]
    low = -(size >> 1) if attrs["signed"] else 0
    return [((x.astype(np.int64) - low) % size + low).astype(np.int32)]


OPS = (
    unary(
        "x.round_bfloat16",
        "round_bfloat16(x)",
        _bfloat16,
        Text(
            summary="Each element rounded to bfloat16, and kept as float32.",
            numerics="The result is exact: halves go to even, numbers that are too large become infinity, and NaN stays NaN.",
            group=ROUNDING_EXTENSIONS,
            example=">>> b.ext.round_bfloat16(x)\nMLOperand(float32[2, 3])",
        ),
        types=("float32",),
        spec="",
        gradient=elementwise_gradients.SAME,
    ),
    OpDef(
        name="x.round_float8",
        operands=(Operand(name="input", data_types=("float32",)),),
        infer=lambda call: (call.input(),),
        reference=_float8_reference,
        lower=lower_elementwise,
        attrs=(Attr("format", "enum", "e4m3fn", tuple(FORMATS)), Attr("saturate", "bool", True)),
        templates=(ELEMENTWISE,),
        elementwise=ElementWise(_float8_formula),
        family=Family.ELEMENT_WISE,
        without=("epilogue", "movement", "precision"),
        layout=BROADCAST,
        cost=PER_RESULT,
        bounds=EXACT,
        documentation=Documentation(
            group=ROUNDING_EXTENSIONS,
            summary="Each element rounded to an 8-bit floating-point format, and kept as float32.",
            arguments={
                "input": "{types}, with any shape.",
                "format": '"e4m3fn", "e4m3fnuz", "e5m2" or "e5m2fnuz", as ONNX names them.',
                "saturate": (
                    "Whether numbers that are too large, infinity included, become the largest number. Otherwise they "
                    "become infinity if the format has it, else NaN."
                ),
            },
            returns="An operand with the input's data type and shape.",
            raises="The format is unknown, the data type is not allowed",
            numerics=(
                "The result is exact: halves go to even, NaN stays NaN, and formats that end in `uz` have no negative zero."
            ),
            example="""
                >>> b.ext.round_float8(x, format="e5m2", saturate=False)
                MLOperand(float32[2, 3])
            """,
        ),
        gradient=elementwise_gradients.SAME,
    ),
    OpDef(
        name="x.wrap_integer",
        operands=(Operand(name="input", data_types=("int32",)),),
        infer=_infer_wrap,
        reference=_wrap_reference,
        lower=lower_elementwise,
        attrs=(Attr("bits", "uint", 8), Attr("signed", "bool", True)),
        templates=(ELEMENTWISE,),
        elementwise=ElementWise(_wrap_formula),
        family=Family.ELEMENT_WISE,
        without=("epilogue", "movement", "precision", "gradient"),
        layout=BROADCAST,
        cost=PER_RESULT,
        bounds=EXACT,
        documentation=Documentation(
            group=ROUNDING_EXTENSIONS,
            summary="The lowest bits of each element, read as an integer of that width and kept as int32.",
            arguments={
                "input": "{types}, with any shape.",
                "bits": "The width, 1 to 32.",
                "signed": "Whether the highest of the bits is a sign.",
            },
            returns="An operand with the input's data type and shape.",
            raises="The width is out of range, the data type is not allowed",
            example="""
                >>> b.ext.wrap_integer(b.cast(x, "int32"), bits=16)
                MLOperand(int32[2, 3])
            """,
        ),
    ),
)
