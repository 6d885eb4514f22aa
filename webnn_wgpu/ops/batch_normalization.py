"""Batch normalization with given means and variances: an element-wise formula whose operands lie along one dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS, cast_number
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.expression import ExpressionBuilder, formula
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._elementwise import ELEMENTWISE, Source, elementwise_call
from ._normalization import require_shape
from ._rows import scalar_uniform, to_type, wide
from .gradients import normalization as normalization_gradients
from .interfaces.bounds import EPSILON, Bounds, ReferenceResults, sizes
from .interfaces.cost import per_element
from .interfaces.documentation import ACTIVATION, NORMALIZATIONS, Documentation, Method
from .interfaces.family import Family
from .interfaces.layout import dimensions

_PARAMETERS = ("mean", "variance", "scale", "bias")


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x = call.input()
    axis = call.axis(call.attrs["axis"], x.rank)
    for index, name in enumerate(_PARAMETERS, 1):
        require_shape(call, index, name, (x.shape[axis],), "[input.shape[axis]]")
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x, *parameters = arrays
    assert x is not None
    others = tuple(d for d in range(x.ndim) if d != attrs["axis"])
    mean, variance, scale, bias = (None if p is None else np.expand_dims(wide(p), others) for p in parameters)
    assert mean is not None
    assert variance is not None
    with np.errstate(all="ignore"):
        y = (wide(x) - mean) / np.sqrt(variance + cast_number(attrs["epsilon"], outputs[0].data_type))
        y = y if scale is None else y * scale
        y = y if bias is None else y + bias
    return [to_type(y, outputs[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x, axis = low.input(), low.attrs["axis"]
    # Along the last dimension the operands broadcast as they are.
    strides = None if axis == x.rank - 1 else tuple(int(d == axis) for d in range(x.rank))
    builder = ExpressionBuilder()
    sources = [Source(low.value(0), x)]
    names = ["x"]
    operands = [builder.argument(x.data_type)]
    for index, name in enumerate(_PARAMETERS, 1):
        if low.has(index):
            names.append(name)
            sources.append(Source(low.value(index), low.input(index), strides))
            operands.append(builder.argument(x.data_type))
    # One formula, so that float16 is rounded once.
    code = "div_f32(x - mean, sqrt_f32(variance + epsilon))"
    code += " * scale" if "scale" in names else ""
    code += " + bias" if "bias" in names else ""
    uniforms = (scalar_uniform("epsilon", low.attrs["epsilon"], x.data_type),)
    result = builder.apply(formula(code, tuple(names), uniforms), operands, x.data_type)
    return elementwise_call(
        builder.finish(result),
        builder.uniforms,
        sources,
        low.node.outputs[0],
        low.output(),
        low.target,
        f"element-wise along axis {axis}",
    )


def _bounds(found: ReferenceResults) -> list[Array]:
    x, mean, _, scale, bias = sizes(found.operands)
    assert mean is not None
    # With the opposite sign of the mean, no terms cancel.
    (size,) = found.of([x, -mean, found.operand(2).astype(np.float32), scale, bias])
    return [np.nan_to_num(8 * EPSILON * np.abs(size.astype(np.float64)), posinf=0)]


_BOUNDS = Bounds(tolerance=6, allowed=_bounds)
"""The conformance tests allow 6 ULP. Digits that x - mean and the sum with the bias lose depend on the operands."""

OPS = (
    OpDef(
        name="batchNormalization",
        operands=(
            Operand(name="input", data_types=FLOATS, min_rank=1),
            Operand(name="mean", same_as="input", min_rank=1, max_rank=1),
            Operand(name="variance", same_as="input", min_rank=1, max_rank=1),
            Operand(name="scale", same_as="input", min_rank=1, max_rank=1, required=False),
            Operand(name="bias", same_as="input", min_rank=1, max_rank=1, required=False),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("axis", "uint", 1), Attr("epsilon", "float", 1e-5)),
        templates=(ELEMENTWISE,),
        spec="#api-mlgraphbuilder-batchnorm",
        family=Family.NORMALIZATION,
        without=("elementwise", "epilogue", "movement", "precision"),
        layout=dimensions(axes=("axis",)),
        cost=per_element(4),
        bounds=_BOUNDS,
        documentation=Documentation(
            group=NORMALIZATIONS,
            summary="`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with a given mean and variance.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "mean": (
                    "The input's data type, with the shape [C], where C is the input's size along `axis`. The next three "
                    "operands have the same data type and shape."
                ),
                "variance": "[C].",
                "scale": "[C]. The default is 1 for all channels.",
                "bias": "[C]. The default is 0 for all channels.",
                "axis": "The dimension that holds the channels.",
                "epsilon": "Finite. It is cast to the input's data type.",
                "activation": "Activation of the result (an option of the 2024 text).",
            },
            returns="An operand with the input's data type and shape.",
            raises="The axis is not a dimension of the input, a vector is not [C], data types differ or are not allowed",
            example="""
                >>> mean, variance = b.constant("float32", 0.0), b.constant("float32", 1.0)
                >>> mean, variance = b.expand(mean, [3]), b.expand(variance, [3])
                >>> b.batch_normalization(x, mean, variance, activation=b.relu()).shape
                (2, 3)
            """,
            method=Method(parameters=(ACTIVATION,), pywebnn=("scale", "bias", "epsilon", "axis")),
        ),
        gradient=normalization_gradients.batch,
    ),
)
