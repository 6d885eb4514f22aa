"""Instance normalization: mean 0 and variance 1 of every channel of every image, then scale and bias by channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._normalization import NORMALIZATION, NORMALIZED, normalization_call, normalized, require_shape
from ._rows import to_type
from .gradients import normalization as normalization_gradients
from .interfaces.cost import per_element
from .interfaces.documentation import NORMALIZATIONS, Documentation, Method
from .interfaces.family import Family
from .interfaces.layout import option

_CHANNEL = {"nchw": 1, "nhwc": 3}
_SPATIAL = {"nchw": (2, 3), "nhwc": (1, 2)}


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, channel = call.input(), _CHANNEL[call.attrs["layout"]]
    for index, name in ((1, "scale"), (2, "bias")):
        require_shape(call, index, name, (x.shape[channel],), f"[input.shape[{channel}]]")
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x, *parameters = arrays
    assert x is not None
    axes = _SPATIAL[attrs["layout"]]
    scale, bias = (None if p is None else np.expand_dims(p, (0, *axes)) for p in parameters)
    return [to_type(normalized(x, axes, scale, bias, attrs, outputs[0]), outputs[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    layout = low.attrs["layout"]
    return normalization_call(low, _SPATIAL[layout], "row", [int(d == _CHANNEL[layout]) for d in range(4)])


OPS = (
    OpDef(
        name="instanceNormalization",
        operands=(
            Operand(name="input", data_types=FLOATS, min_rank=4, max_rank=4),
            Operand(name="scale", same_as="input", min_rank=1, max_rank=1, required=False),
            Operand(name="bias", same_as="input", min_rank=1, max_rank=1, required=False),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(
            Attr("epsilon", "float", 1e-5),
            Attr("layout", "enum", "nchw", ("nchw", "nhwc")),
        ),
        templates=(NORMALIZATION,),
        spec="#api-mlgraphbuilder-instancenorm",
        family=Family.NORMALIZATION,
        without=("elementwise", "epilogue", "movement", "precision"),
        layout=option("layout"),
        cost=per_element(8),
        bounds=NORMALIZED,
        documentation=Documentation(
            group=NORMALIZATIONS,
            summary=(
                "`scale * (x - mean) / sqrt(variance + epsilon) + bias`, with the mean and variance of each image's channels."
            ),
            arguments={
                "input": "{types}, with rank 4 in the order of `layout`.",
                "scale": "The input's data type, with the shape [channels]. The default is 1 for all channels.",
                "bias": "The input's data type, with the shape [channels]. The default is 0 for all channels.",
                "epsilon": "Finite. It is cast to the input's data type.",
                "layout": '"nchw" or "nhwc".',
            },
            returns="An operand with the input's data type and shape.",
            raises=(
                "The rank is not 4, scale or bias is not [channels], the layout is unknown, data types differ or are not "
                "allowed"
            ),
            example="""
                >>> b.instance_normalization(image, layout="nchw").shape
                (1, 2, 4, 4)
            """,
            method=Method(pywebnn=("scale", "bias", "epsilon", "layout")),
        ),
        gradient=normalization_gradients.instance,
    ),
)
