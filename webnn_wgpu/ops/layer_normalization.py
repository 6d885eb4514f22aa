"""Layer normalization: mean 0 and variance 1 along some dimensions, then scale and bias along the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Call, Lowering, OpDef, Operand
from ._normalization import NORMALIZATION, normalization_call, normalized, require_shape
from ._rows import to_type
from ._shapes import strides_of


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    # All dimensions but the first; of rank 1, none: then every element is its own mean and the result is the bias, or 0.
    axes = tuple(range(1, x.rank)) if axes is None else call.axes(axes, x.rank)
    shape = [x.shape[d] for d in axes]
    require_shape(call, 1, "scale", shape, "[input.shape[axis] for axis in axes]")
    require_shape(call, 2, "bias", shape, "[input.shape[axis] for axis in axes]")
    call.attrs["axes"] = axes
    return (x,)


def _in_place(parameter: Array | None, axes: Sequence[int], rank: int) -> Array | None:
    """Return scale or bias, whose dimensions follow `axes`, as an array that broadcasts to the input."""
    if parameter is None:
        return None
    ascending = np.transpose(parameter, np.argsort(axes)) if axes else parameter
    return np.expand_dims(ascending, tuple(d for d in range(rank) if d not in axes))


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x, scale, bias = arrays
    assert x is not None
    axes = attrs["axes"]
    scale, bias = _in_place(scale, axes, x.ndim), _in_place(bias, axes, x.ndim)
    return [to_type(np.broadcast_to(normalized(x, axes, scale, bias, attrs["epsilon"]), x.shape), outputs[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    shape = low.input().shape
    axes: tuple[int, ...] = low.attrs["axes"]
    steps = dict(zip(axes, strides_of([shape[d] for d in axes]), strict=True))
    return normalization_call(low, sorted(axes), "item", [steps.get(d, 0) for d in range(len(shape))])


OPS = (
    OpDef(
        "layerNormalization",
        (
            Operand("input", FLOATS),
            Operand("scale", same_as="input", required=False),
            Operand("bias", same_as="input", required=False),
        ),
        _infer,
        _reference,
        _lower,
        attrs=(Attr("axes", "uints", None), Attr("epsilon", "float", 1e-5)),
        templates=(NORMALIZATION,),
        spec="#api-mlgraphbuilder-layernorm",
    ),
)
