"""The scale and the zero point that a tensor's own range asks for, as dynamic quantization has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ..kernels.spec import Operand as Resource
from ._def import Lowering, OpCall, OpDef, Operand
from ._quantization_range import FROM_TENSOR, RESULTS, STEPS, call_of_range
from ._reduction import view_rows
from ._reduction_functions import extremum
from .interfaces.bounds import EXACT
from .interfaces.cost import PER_RESULT
from .interfaces.documentation import QUANTIZED_EXTENSIONS, Documentation
from .interfaces.family import Family
from .reduce import REDUCE, ReduceTensor, number_of_parts, parts_needed, totals_of_parts

FROM_EXTREMA = KernelTemplate("quantization_parameters", ("of_parts",))


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    ones = (1,) * call.input().rank
    return call.output("float32", ones), call.output("uint8", ones)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    zero = np.float32(0)
    with np.errstate(all="ignore"):
        low, high = np.minimum(x.min(), zero), np.maximum(x.max(), zero)
        scale = np.float32(1) if high == low else (high - low) / np.float32(255)
        steps = np.rint(-(low / scale))
    zero_point = 0 if np.isnan(steps) else int(np.clip(steps, 0, 255))
    return [np.full(out[0].shape, scale, np.float32), np.full(out[1].shape, zero_point, np.uint8)]


def _lower(low: Lowering) -> list[KernelCall]:
    x = low.input()
    costs = low.target.costs.rows
    if x.num_elements <= costs.few_elements:
        if costs.range_loads:
            return [call_of_range(low, x.num_elements, costs.range_loads)]
        return [
            _end(
                low, [(Binding(name="input", access="read", element=x.data_type), low.value(0))], x.num_elements, "few elements"
            )
        ]
    source = ReduceTensor(low.value(0), x.data_type, (x.num_elements,))
    needed = parts_needed(view_rows(source.shape, (0,)), source.element, low.caps)
    parts = max(needed, number_of_parts(1, x.num_elements, QUAD, low.target))
    chunk = -(-x.num_elements // (parts * QUAD)) * QUAD
    calls: list[KernelCall] = []
    resources: list[tuple[Binding, Resource]] = []
    for name, step in (("least", extremum("min", "f32")), ("greatest", extremum("max", "f32"))):
        call, totals = totals_of_parts(low, replace(step, finish="t"), source, 0, chunk, f"{name} of parts")
        calls.append(call)
        resources.append((Binding(name=name, access="read", element=totals.element), totals.resource))
    return [*calls, _end(low, resources, -(-x.num_elements // chunk), "of parts")]


def _end(low: Lowering, read: Sequence[tuple[Binding, Resource]], count: int, reason: str) -> KernelCall:
    """Return the call that makes scale and zero point of elements, or of the extremes of parts."""
    bindings = [*(binding for binding, _ in read), *RESULTS]
    spec = FROM_EXTREMA.spec(bindings, [("count", "u32"), ("steps", "f32")], of_parts=len(read) == 2)
    return KernelCall(
        spec=spec,
        operands=(*(value for _, value in read), *low.node.outputs),
        uniforms=(count, STEPS),
        grid=(1, 1, 1),
        reason=reason,
    )


QUANTIZATION_PARAMETERS = OpDef(
    name="x.quantization_parameters",
    operands=(Operand(name="input", data_types=("float32",)),),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    templates=(REDUCE, FROM_EXTREMA, FROM_TENSOR),
    outputs=("scale", "zeroPoint"),
    output_types=("float32", "uint8"),
    family=Family.OTHER,
    without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
    cost=PER_RESULT,
    bounds=EXACT,
    documentation=Documentation(
        group=QUANTIZED_EXTENSIONS,
        summary=(
            "The scale and the zero point with which `quantize_linear` makes uint8 of a tensor's whole range, including 0."
        ),
        details="Together with `quantize_linear` it is ONNX's DynamicQuantizeLinear.",
        arguments={
            "input": "{types}, with any shape.",
        },
        returns="The scale, float32, and the zero point, uint8. Both have the input's rank and one element.",
        raises="The data type is not allowed",
        numerics=(
            "255 steps of the scale lead from the least to the greatest element. If all elements are 0, the scale is 1. If "
            "NaN or an infinity is among them, the scale is that."
        ),
        example="""
            >>> scale, zero_point = b.ext.quantization_parameters(x)
            >>> b.quantize_linear(x, scale, zero_point)
            MLOperand(uint8[2, 3])
        """,
    ),
)

OPS = (QUANTIZATION_PARAMETERS,)
