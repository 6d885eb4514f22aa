"""Layer normalization: mean 0 and variance 1 along some dimensions, then scale and bias along the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ._attrs import Attr
from ._def import OpCall, OpDef, Operand
from ._normalization import NORMALIZATION, NORMALIZED, in_place, items_call, normalized, require_shape, rows_reached
from ._rows import to_type
from .gradients import normalization as normalization_gradients
from .interfaces.cost import per_element
from .interfaces.documentation import NORMALIZATIONS, Documentation, Method
from .interfaces.family import Family
from .interfaces.layout import ChannelsLast, Layout, moved


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    # All dimensions but the first. With rank 1 there are none: every element is its own mean, and the result is the bias or 0.
    axes = tuple(range(1, x.rank)) if axes is None else call.axes(axes, x.rank)
    shape = [x.shape[d] for d in axes]
    require_shape(call, 1, "scale", shape, "[input.shape[axis] for axis in axes]")
    require_shape(call, 2, "bias", shape, "[input.shape[axis] for axis in axes]")
    call.attrs["axes"] = axes
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x, scale, bias = arrays
    assert x is not None
    axes = attrs["axes"]
    scale, bias = in_place(scale, axes, x.ndim), in_place(bias, axes, x.ndim)
    return [to_type(np.broadcast_to(normalized(x, axes, scale, bias, attrs, outputs[0]), x.shape), outputs[0])]


def _layout(attrs: Attrs, shape: tuple[int, ...]) -> ChannelsLast | None:
    # Scale and bias have the shape of the dimensions that are normalized: channels alone stay a vector.
    return ChannelsLast(moved(attrs, len(shape), axes=("axes",))) if tuple(attrs["axes"]) == (1,) else None


OPS = (
    OpDef(
        name="layerNormalization",
        operands=(
            Operand(name="input", data_types=FLOATS),
            Operand(name="scale", same_as="input", required=False),
            Operand(name="bias", same_as="input", required=False),
        ),
        infer=_infer,
        reference=_reference,
        lower=items_call,
        attrs=(Attr("axes", "uints", None), Attr("epsilon", "float", 1e-5)),
        templates=(NORMALIZATION,),
        spec="#api-mlgraphbuilder-layernorm",
        family=Family.NORMALIZATION,
        without=("elementwise", "epilogue", "movement", "precision"),
        layout=Layout(_layout),
        cost=per_element(8),
        bounds=replace(NORMALIZED, reached=rows_reached(centered=True)),
        documentation=Documentation(
            group=NORMALIZATIONS,
            summary="`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with the mean and variance over `axes`.",
            arguments={
                "input": "{types}, with any shape.",
                "scale": (
                    "The input's data type, with the shape [input.shape[a] for a in axes]. The default is 1 for all elements."
                ),
                "bias": "The input's data type, with the shape of `scale`. The default is 0 for all elements.",
                "axes": (
                    "Dimensions to normalize over, in the order of the dimensions of scale and bias. The default is all "
                    "dimensions except the first."
                ),
                "epsilon": "Finite. It is cast to the input's data type.",
            },
            returns="An operand with the input's data type and shape.",
            raises=(
                "An axis is not a dimension of the input or is repeated, scale or bias has another shape, data types "
                "differ or are not allowed"
            ),
            numerics=(
                "With no axes, as for scalars and vectors without the option, every element is its own mean: the result is "
                "bias, or 0."
            ),
            example="""
                >>> b.layer_normalization(x, axes=[1]).shape
                (2, 3)
            """,
            method=Method(pywebnn=("scale", "bias", "epsilon", "axes")),
        ),
        gradient=normalization_gradients.layer,
    ),
)
