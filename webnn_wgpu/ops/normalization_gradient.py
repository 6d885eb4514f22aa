"""The gradient of normalizations by the mean and variance of rows: one kernel for layer, instance and RMS normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.data_types import FLOATS, cast_number
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.expression import formula
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef
from ._def import Operand as OperandDef
from ._elementwise import ELEMENTWISE
from ._reduction import VARIANTS, Field, RowView, choose_variant, row_call, rows_fit, view_rows
from ._rows import scalar_uniform, to_type, wide
from ._shapes import broadcast_strides, unidirectional
from ._steps import StepCalls
from .gradients import normalization as normalization_gradients
from .interfaces.bounds import EPSILON, SMALLEST, Bounds, ReferenceResults
from .interfaces.cost import per_element
from .interfaces.documentation import NORMALIZATION_EXTENSIONS, Documentation
from .interfaces.family import Family
from .reduce import REDUCE

_TEMPLATE = KernelTemplate("normalization_gradient", ("variant", "rows", "parameters", "centered"), VARIANTS)

_MOST_HELD = 8
"""Items of the input and of the gradient that an invocation keeps in registers."""

_PASSES = 5
"""The number of times that the kernel reads a row that its registers do not hold."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    gradient, x, scale, addend = call.input(0), call.input(1), call.inputs[2], call.inputs[3]
    call.require(gradient.shape == x.shape, "gradient must have the shape of input", allowed=str(list(x.shape)))
    call.attrs["axes"] = call.axes(call.attrs["axes"], x.rank)
    call.require(
        scale is None or unidirectional(scale.shape, x.shape),
        "Incompatible shapes: scale must broadcast to input",
        allowed=f"a shape that broadcasts to {list(x.shape)}",
    )
    call.require(addend is None or addend.shape == x.shape, "addend must have the shape of input", allowed=str(list(x.shape)))
    return (x, call.output("float32", x.shape)) if call.attrs["products"] else (x,)


def _parts(arrays: Sequence[Array | None], attrs: Attrs, data_type: str) -> tuple[Any, Any, Any, Any]:
    """Return the gradient, the same times scale, the normalized input and its factor, in float64."""
    gradient, x, scale, *_ = arrays
    assert gradient is not None
    assert x is not None
    axes: tuple[int, ...] = attrs["axes"]
    d = wide(x) - wide(x).mean(axis=axes, keepdims=True) if attrs["centered"] else wide(x)
    factor = 1 / np.sqrt((d * d).mean(axis=axes, keepdims=True) + cast_number(attrs["epsilon"], data_type))
    return wide(gradient), wide(gradient) if scale is None else wide(gradient) * wide(scale), d * factor, factor


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    axes: tuple[int, ...] = attrs["axes"]
    with np.errstate(all="ignore"):
        gradient, inner, normal, factor = _parts(arrays, attrs, outputs[0].data_type)
        rest = inner - normal * (inner * normal).mean(axis=axes, keepdims=True)
        rest = rest - inner.mean(axis=axes, keepdims=True) if attrs["centered"] else rest
        added = factor * rest if arrays[3] is None else factor * rest + wide(arrays[3])
        found = [added, gradient * normal]
        return [to_type(np.broadcast_to(array, outputs[0].shape), type_) for array, type_ in zip(found, outputs, strict=False)]


def _lower(low: Lowering) -> list[KernelCall]:
    x, attrs = low.input(1), low.attrs
    strides = broadcast_strides(low.input(2).shape, x.shape) if low.has(2) else (0,) * x.rank
    view = view_rows(x.shape, sorted(attrs["axes"]), strides)
    parameters = _owner(view) if low.has(2) else ""
    if parameters is None or not rows_fit(view, x.data_type, low.caps):
        return _in_steps(low, strides)
    of_items = parameters == "item"
    quads = view.items_are_quads and (view.reduced.parameter_in_quads or not of_items)
    variant = choose_variant(low, view, passes=_PASSES, quads=quads)
    items = view.items(quads)
    shape = variant.shape(view, quads=quads)
    if items.size <= _MOST_HELD * shape.lanes:
        shape = shape.holding(items.size)
    fields: list[Field] = [("length", "f32", float(view.reduced.size))]
    fields.append(("epsilon", "f32", float(cast_number(attrs["epsilon"], x.data_type))))
    if parameters:
        fields += items.parameter_fields("reduced") if of_items else view.kept.parameter_fields("kept")
    resources: list[tuple[Binding, int]] = [
        (Binding(name="input", access="read", element=x.data_type, quad=quads), low.value(1)),
        (Binding(name="gradient", access="read", element=x.data_type, quad=quads), low.value(0)),
    ]
    if parameters:
        resources.append((Binding(name="scale", access="read", element=x.data_type, quad=quads and of_items), low.value(2)))
    if low.has(3):
        resources.append((Binding(name="addend", access="read", element=x.data_type, quad=quads), low.value(3)))
    resources.append((Binding(name="output", access="write", element=x.data_type, quad=quads), low.node.outputs[0]))
    if attrs["products"]:
        resources.append((Binding(name="products", access="write", element="float32", quad=quads), low.node.outputs[1]))
    return [
        row_call(
            _TEMPLATE,
            low,
            view,
            variant,
            shape.in_octets(low, view, resources),
            resources,
            fields,
            passes=_PASSES,
            parameters=parameters,
            centered=attrs["centered"],
        )
    ]


def _owner(view: RowView) -> str | None:
    """Return the owner of an element of scale: an "item" of each row, or a "row". None if it belongs to both."""
    if not any(view.kept.parameter_strides):
        return "item"
    return None if any(view.reduced.parameter_strides) else "row"


def _in_steps(low: Lowering, strides: tuple[int, ...]) -> list[KernelCall]:
    centered, epsilon = low.attrs["centered"], scalar_uniform("epsilon", low.attrs["epsilon"], low.input(1).data_type)
    steps = StepCalls(low, sorted(low.attrs["axes"]), of=1)
    gradient, x = steps.operand(0), steps.operand(1)
    d = steps.formula(formula("x - mean", ("x", "mean")), x, steps.total("mean", x)) if centered else x
    variance = steps.total("mean", steps.formula(formula("d * d", ("d",)), d))
    code = "d * div_f32(1.0, sqrt_f32(variance + epsilon))"
    normal = steps.formula(formula(code, ("d", "variance"), (epsilon,)), d, variance)
    inner = gradient
    if low.has(2):
        inner = steps.formula(formula("g * scale", ("g", "scale")), gradient, steps.operand(2, strides))
    products = steps.total("mean", steps.formula(formula("inner * normal", ("inner", "normal")), inner, normal))
    code, operands = "inner - normal * products", {"inner": inner, "normal": normal, "products": products}
    if centered:
        code, operands["mean"] = f"{code} - mean", steps.total("mean", inner)
    code = f"({code}) * div_f32(1.0, sqrt_f32(variance + epsilon))"
    operands["variance"] = variance
    if low.has(3):
        code, operands["addend"] = f"{code} + addend", steps.operand(3)
    steps.formula(formula(code, tuple(operands), (epsilon,)), *operands.values(), result=0)
    if low.attrs["products"]:
        steps.formula(formula("g * normal", ("g", "normal")), gradient, normal, result=1)
    return steps.calls


def _bounds(found: ReferenceResults) -> list[Array]:
    attrs = found.node.attrs
    axes: tuple[int, ...] = attrs["axes"]
    arrays = [None if a is None else a.astype(np.float64) for a in found.operands]
    with np.errstate(all="ignore"):
        gradient, inner, normal, factor = _parts(arrays, attrs, str(found.operand().dtype))
        x = arrays[1]
        assert x is not None

        def largest(array: Any) -> Any:
            return np.max(np.abs(array), axis=axes, keepdims=True)

        roundings = (math.prod(x.shape[a] for a in axes) + 16) * EPSILON
        # The error of the mean, in deviations.
        shifted = roundings * largest(x) * factor if attrs["centered"] else 0.0
        off = roundings * (1 + largest(normal)) + 2 * shifted * (1 + shifted)
        of_input = factor * largest(inner) * (1 + largest(normal)) ** 2 * (4 * off + 4 * roundings)
        largest_term = np.abs(found.expected[0].astype(np.float64)) + (0.0 if arrays[3] is None else np.abs(arrays[3]))
        allowed = [of_input + 2 * EPSILON * largest_term, np.abs(gradient) * 2 * off]
    shape = found.expected[0].shape
    return [np.broadcast_to(np.nan_to_num(array), shape) + SMALLEST for array in allowed][: len(found.expected)]


NORMALIZATION_GRADIENT = OpDef(
    name="x.normalization_gradient",
    operands=(
        OperandDef(name="gradient", data_types=FLOATS),
        OperandDef(name="input", same_as="gradient"),
        OperandDef(name="scale", same_as="gradient", required=False),
        OperandDef(name="addend", same_as="gradient", required=False),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(
        Attr("axes", "uints"),
        Attr("epsilon", "float", 1e-5),
        Attr("centered", "bool", True),
        Attr("products", "bool", False),
    ),
    templates=(_TEMPLATE, REDUCE, ELEMENTWISE),
    outputs=("inputGradient", "products"),
    output_types=FLOATS,
    family=Family.NORMALIZATION,
    without=("elementwise", "epilogue", "movement", "layout", "precision"),
    cost=per_element(14),
    bounds=Bounds(allowed=_bounds),
    documentation=Documentation(
        group=NORMALIZATION_EXTENSIONS,
        summary="The gradient of a normalization of rows with respect to its input, for `gradients`.",
        details=(
            "With n = (x - mean) / sqrt(variance + epsilon) and h = gradient * scale, it is "
            "`(h - mean(h) - n * mean(h * n)) / sqrt(variance + epsilon) + addend`, with the means along `axes`."
        ),
        arguments={
            "gradient": "{types}, the gradient of the result.",
            "input": "The data type and shape of `gradient`: the input of the normalization.",
            "scale": "The same data type, with a shape that broadcasts to the input's. The default is 1.",
            "addend": "The same data type and shape as the input: another gradient of it. The default is 0.",
            "axes": "Dimensions that are normalized.",
            "epsilon": "Finite. It is cast to the input's data type.",
            "centered": "Whether the normalization subtracts the mean. RMS normalization does not.",
            "products": "Whether `gradient * n` is a second result. Its sums are the gradient of the scale.",
        },
        returns=(
            "A list of the gradient of the input, with its data type and shape. With `products` a float32 operand of that "
            "shape follows."
        ),
        raises="An axis is not a dimension of the input or is repeated, shapes do not fit, data types differ",
        example="""
                >>> b.ext.normalization_gradient(x, x, axes=[1])
                [MLOperand(float32[2, 3])]
            """,
    ),
    gradient=normalization_gradients.GRADIENT,
)

OPS = (NORMALIZATION_GRADIENT,)
