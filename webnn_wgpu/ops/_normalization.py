"""Normalization of rows to mean 0 and variance 1, shared by layer and instance normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..core.data_types import cast_number
from ..ir.graph import Array, Attrs, Node
from ..ir.types import TensorType
from ..kernels.expression import formula
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._def import Lowering, OpCall
from ._reduction import VARIANTS, Field, choose_variant, row_call, rows_fit, view_rows
from ._rows import scalar_uniform, wide
from ._shapes import strides_of
from ._steps import StepCalls
from .interfaces.bounds import EPSILON, Bounds, Reached, ReferenceResults

NORMALIZATION = KernelTemplate("normalization", ("variant", "rows", "parameters", "centered", "again"), VARIANTS)


ROW_NORMALIZATIONS = MappingProxyType({"layerNormalization": True, "x.rms_normalization": False})
"""The operators whose scale and bias belong to the items of a row, and whether they subtract the mean."""


def normalizes_last(node: Node, rank: int) -> bool:
    """Return whether a node normalizes along the last dimension of its operand alone, which has so many dimensions."""
    return node.op in ROW_NORMALIZATIONS and tuple(node.attrs["axes"]) == (rank - 1,)


def require_shape(call: OpCall, index: int, name: str, shape: Sequence[int], rule: str) -> None:
    """Refuse the call unless the optional operand `index`, called `name`, is absent or has `shape`."""
    given = call.inputs[index]
    call.require(
        given is None or given.shape == tuple(shape),
        f"Shape mismatch: {name} must have shape {rule}",
        allowed=str(list(shape)),
    )


def in_place(parameter: Array | None, axes: Sequence[int], rank: int) -> Array | None:
    """Return scale or bias, whose dimensions follow `axes`, as an array that broadcasts to the input."""
    if parameter is None:
        return None
    ascending = np.transpose(parameter, np.argsort(axes)) if axes else parameter
    return np.expand_dims(ascending, tuple(d for d in range(rank) if d not in axes))


def normalized(
    x: Array,
    axes: Sequence[int],
    scale: Array | None,
    bias: Array | None,
    attrs: Attrs,
    output: TensorType,
    *,
    centered: bool = True,
) -> Any:
    """Return the reference in float64. `scale` and `bias` broadcast to `x`, and epsilon is cast to the output's data type."""
    with np.errstate(all="ignore"):
        d = wide(x)
        d = d - d.mean(axis=tuple(axes), keepdims=True) if centered else d
        variance = (d * d).mean(axis=tuple(axes), keepdims=True)
        y = d / np.sqrt(variance + cast_number(attrs["epsilon"], output.data_type))
        y = y if scale is None else y * wide(scale)
        return y if bias is None else y + wide(bias)


def normalization_call(
    low: Lowering,
    axes: Sequence[int],
    parameters: Literal["item", "row"],
    parameter_strides: Sequence[int],
    *,
    centered: bool = True,
) -> list[KernelCall]:
    """Return the kernel call that normalizes the rows along `axes`.

    Args:
        low: the node, with operands input, scale, bias.
        axes: the reduced dimensions, ascending.
        parameters: whether scale and bias vary along the reduced dimensions or from row to row.
        parameter_strides: the strides of scale and bias along every dimension of the input.
        centered: whether the kernel subtracts the mean. Otherwise it takes the mean for 0.
    """
    x = low.input()
    view = view_rows(x.shape, axes, parameter_strides)
    if not rows_fit(view, x.data_type, low.caps):
        return _in_steps(low, axes, parameter_strides, centered)
    given = [(i, name) for i, name in ((1, "scale"), (2, "bias")) if low.has(i)]
    of_items = bool(given) and parameters == "item"
    quads = view.items_are_quads and (view.reduced.parameter_in_quads or not of_items)
    variant = choose_variant(low, view, passes=3, quads=quads)
    items = view.items(quads)
    shape = variant.shape(view, quads=quads).holding(items.size)
    fields: list[Field] = [("length", "f32", float(view.reduced.size))]
    fields.append(("epsilon", "f32", float(cast_number(low.attrs["epsilon"], x.data_type))))
    if given:
        fields += items.parameter_fields("reduced") if of_items else view.kept.parameter_fields("kept")
    resources = [
        (Binding(name="input", access="read", element=x.data_type, quad=quads), low.value(0)),
        *((Binding(name=name, access="read", element=x.data_type, quad=quads and of_items), low.value(i)) for i, name in given),
        (Binding(name="output", access="write", element=x.data_type, quad=quads), low.node.outputs[0]),
    ]
    again = low.target.costs.rows.reads_again(shape.held, view.kept.size)
    return [
        row_call(
            NORMALIZATION,
            low,
            view,
            variant,
            shape if again else shape.in_octets(low, view, resources),
            resources,
            fields,
            parameters=parameters,
            centered=centered,
            again=again,
        )
    ]


def items_call(low: Lowering, *, centered: bool = True) -> list[KernelCall]:
    """Return the same for an operator whose scale and bias have the dimensions of its attribute `axes`, in that order."""
    shape = low.input().shape
    axes: tuple[int, ...] = low.attrs["axes"]
    steps = dict(zip(axes, strides_of([shape[d] for d in axes]), strict=True))
    return normalization_call(low, sorted(axes), "item", [steps.get(d, 0) for d in range(len(shape))], centered=centered)


def _in_steps(low: Lowering, axes: Sequence[int], parameter_strides: Sequence[int], centered: bool) -> list[KernelCall]:
    steps = StepCalls(low, axes)
    x = steps.operand(0)
    distances = steps.formula(formula("x - mean", ("x", "mean")), x, steps.total("mean", x)) if centered else x
    squares = steps.formula(formula("x * x"), distances)
    code = "distance * div_f32(1.0, sqrt_f32(variance + epsilon))"
    operands = {"distance": distances, "variance": steps.total("mean", squares)}
    for index, operator, name in ((1, "*", "scale"), (2, "+", "bias")):
        if low.has(index):
            code += f" {operator} {name}"
            operands[name] = steps.operand(index, tuple(parameter_strides))
    epsilon = scalar_uniform("epsilon", low.attrs["epsilon"], low.input().data_type)
    steps.formula(formula(code, tuple(operands), (epsilon,)), *operands.values(), result=0)
    return steps.calls


def normalized_off(x: Array, axes: Sequence[int], epsilon: float, *, centered: bool = True) -> tuple[Array, Array]:
    """Return the normalized elements of `x` in float64, without scale and bias, and by how much each of them may be off."""
    count = math.prod(x.shape[a] for a in axes) + 1
    d = x - x.mean(axis=tuple(axes), keepdims=True) if centered else x
    variance = (d * d).mean(axis=tuple(axes), keepdims=True)
    deviation = np.sqrt(variance + epsilon)
    mean_off = count * EPSILON * np.max(np.abs(x), axis=tuple(axes), keepdims=True)
    variance_off = 2 * np.sqrt(variance) * mean_off + mean_off**2 + count * EPSILON * variance
    off = 2 * mean_off / deviation + np.abs(d / deviation) * (variance_off / (2 * deviation**2) + 4 * EPSILON)
    return d / deviation, off


def _bounds(found: ReferenceResults) -> list[Array]:
    attrs, epsilon = found.node.attrs, cast_number(found.node.attrs["epsilon"], str(found.operand().dtype))
    x = found.operand().astype(np.float64)
    scale, bias = (None if a is None else a.astype(np.float64) for a in found.operands[1:])
    axes = attrs["axes"] if "axes" in attrs else {"nchw": (2, 3), "nhwc": (1, 2)}[attrs["layout"]]
    items, off = normalized_off(x, axes, epsilon)
    largest_scale = 1.0 if scale is None else float(np.max(np.abs(scale), initial=0))
    largest_bias = 0.0 if bias is None else float(np.max(np.abs(bias), initial=0))
    size = np.abs(items) * largest_scale + largest_bias
    return [off * largest_scale + 2 * EPSILON * size]


def rows_reached(*, centered: bool) -> Reached:
    """Return the function of the changes of normalized rows by errors of the rows, with or without their mean subtracted."""

    def reached(found: ReferenceResults, off: Array) -> list[Array]:
        x, axes = found.operand().astype(np.float64), tuple(found.node.attrs["axes"])
        scale = in_place(found.operands[1], axes, x.ndim)
        d = x - x.mean(axis=axes, keepdims=True) if centered else x
        moved = off + off.mean(axis=axes, keepdims=True) if centered else off
        epsilon = cast_number(found.node.attrs["epsilon"], str(found.operand().dtype))
        variance = (d * d).mean(axis=axes, keepdims=True) + epsilon
        least = np.maximum(variance - (2 * np.abs(d) * moved + moved**2).mean(axis=axes, keepdims=True), epsilon)
        change = moved / np.sqrt(least) + np.abs(d) * (1 / np.sqrt(least) - 1 / np.sqrt(variance))
        return [np.nan_to_num(change * (1 if scale is None else np.abs(scale)), nan=np.inf)]

    return reached


NORMALIZED = Bounds(allowed=_bounds)
"""The bounds of elements less their mean, divided by their deviation."""
