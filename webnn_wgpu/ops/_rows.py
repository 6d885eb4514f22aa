"""Functions that create the `OpDef`s of element-wise operators from table rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np

from ..core.data_types import ANY, DATA_TYPES, cast_number
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS, PAIRS, element_of
from ..kernels.expression import ExpressionBuilder, Formula, formula
from ..kernels.spec import KernelCall, UniformType
from ._attrs import Attr
from ._def import Interface, Lowering, OpCall, OpDef, Operand
from ._elementwise import ELEMENTWISE, Source, elementwise_call
from ._row_documentation import Text, binary_documentation, unary_documentation
from ._shapes import broadcast
from .interfaces.bounds import Bounds, ulp
from .interfaces.cost import PER_RESULT
from .interfaces.elementwise import ElementWise, in_pairs
from .interfaces.family import Family
from .interfaces.gradient import GradientRule
from .interfaces.layout import BROADCAST
from .interfaces.precision import Precision

NumpyFunction = Callable[..., Any]


def wide(array: Array) -> Array:
    """Return a float array in float64, so that the reference rounds once, at its end. Integer arrays stay as they are."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def to_type(array: Any, data_type: TensorType) -> Array:
    """Return a computed array in its declared type: one rounding for floats, wrapping for integers."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array).astype(data_type.numpy)


def broadcast_output(call: OpCall, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the shape that all of `shapes` broadcast to, or refuse the call."""
    found: tuple[int, ...] = tuple(shapes[0])
    for shape in shapes[1:]:
        both = broadcast(found, shape)
        if both is None:
            raise call.fail(
                "Incompatible shapes: operands must broadcast together, each dimension equal or 1", got=call.describe()
            )
        found = both
    return found


def infer_broadcast(call: OpCall, data_type: str = "") -> tuple[TensorType, ...]:
    """Infer an element-wise operator: broadcast shape, data type of the first operand unless another is given."""
    types = [t for t in call.inputs if t is not None]
    return (call.output(data_type or types[0].data_type, broadcast_output(call, [t.shape for t in types])),)


def lower_elementwise(low: Lowering) -> list[KernelCall]:
    """Lower one element-wise node to the element-wise kernel."""
    builder = ExpressionBuilder()
    sources = [Source(low.value(i), low.input(i)) for i in range(len(low.node.inputs))]
    result = apply_node(builder, low, [builder.argument(element_of(s.type.data_type, low.caps)) for s in sources])
    expression = builder.finish(result)
    output = low.node.outputs[0]
    return elementwise_call(expression, builder.uniforms, sources, output, low.output(), low.target, "element-wise")


def apply_node(builder: ExpressionBuilder, low: Lowering, operands: Sequence[str]) -> str:
    """Add the formula of an element-wise node to an expression and return the name of its result."""
    elementwise = low.ops[low.node.op].elementwise
    assert elementwise is not None
    types = [low.input(i).data_type for i in range(len(low.node.inputs))]
    out = low.output().data_type
    found = elementwise.formula(types, out, low.attrs)
    kinds = [element_of(t, low.caps) for t in (*types, out)]
    values = [ELEMENTS[kind].value for kind in kinds]
    if any(value in PAIRS for value in values):
        assert elementwise.pairs is not None, f"{low.node.op} has no formula on pairs"
        found = elementwise.pairs(found, values[:-1], values[-1])
    return builder.apply(found, operands, kinds[-1])


def unary(
    name: str,
    code: str,
    function: NumpyFunction,
    text: Text,
    *,
    types: tuple[str, ...] = ("float32", "float16"),
    integer: str = "",
    pairs: str = "",
    attrs: tuple[Attr, ...] = (),
    output: str = "",
    operand: str = "input",
    spec: str = "#api-mlgraphbuilder-unary",
    tolerance: float = 0,
    bounds: Bounds | None = None,
    precision: Precision | None = None,
    gradient: GradientRule | None = None,
) -> OpDef:
    """Return the OpDef of a one-operand operator.

    Args:
        name: the specification's name.
        code: the float formula in WGSL's notation. `x` is the operand, and attributes have their own names.
        function: the numpy function of a float64 or integer array, with the attributes as keywords.
        text: the documentation.
        types: the allowed data types.
        integer: the formula of integers, or "" for `code`. `T` is their WGSL type.
        pairs: the formula of 64-bit integers as pairs of words, for devices without such integers (see `ElementWise`).
        attrs: the scalar options, each with a default. Each becomes a float uniform, after a cast to the operand's type.
        output: the data type of the output, or "" for that of the operand.
        operand: the specification's name of the operand.
        spec: the anchor of the specification's section.
        tolerance: the permitted error of the kernel against `function` in float32, in ULP.
        bounds: the bounds that replace `tolerance`.
        precision: the treatment of float16, if the operator has a particular one.
        gradient: the rule of the gradient. None means that the operator has none.

    Raises:
        ValueError: a formula compares a value with itself.
    """
    _check_formulas(name, code, integer, pairs)

    def formula_for(operands: Sequence[str], out: str, values: Attrs) -> Formula:
        uniforms = tuple(scalar_uniform(a.name, values[a.name], operands[0]) for a in attrs)
        kind, value = DATA_TYPES[operands[0]].kind, ELEMENTS[operands[0]].value
        return formula(code if kind == "float" else integer or code, uniforms=uniforms, type_=value)

    def reference(arrays: Sequence[Array | None], values: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
        x = arrays[0]
        assert x is not None
        scalars = {a.name: cast_number(values[a.name], out[0].data_type) for a in attrs}
        with np.errstate(all="ignore"):
            return [to_type(function(wide(x), **scalars), out[0])]

    return OpDef(
        name=name,
        operands=(Operand(name=operand, data_types=types),),
        infer=lambda call: infer_broadcast(call, output),
        reference=reference,
        lower=lower_elementwise,
        attrs=attrs,
        templates=(ELEMENTWISE,),
        spec=spec,
        family=Family.ELEMENT_WISE,
        without=_without(precision=precision, gradient=gradient),
        elementwise=ElementWise(formula_for, in_pairs(pairs)),
        layout=BROADCAST,
        precision=precision,
        cost=PER_RESULT,
        bounds=bounds or ulp(tolerance),
        gradient=gradient,
        output_types=(output,) if output else (),
        documentation=unary_documentation(name, text, operand, output),
    )


def binary(
    name: str,
    code: str,
    function: NumpyFunction,
    text: Text,
    *,
    types: tuple[str, ...] = ANY,
    integer: str = "",
    pairs: str = "",
    output: str = "",
    operands: tuple[str, str] = ("a", "b"),
    spec: str = "#api-mlgraphbuilder-binary",
    tolerance: float = 0,
    bounds: Bounds | None = None,
    commutative: bool = False,
    gradient: GradientRule | None = None,
) -> OpDef:
    """Return the OpDef of an operator of two operands of one data type that broadcast together.

    Args:
        name: the specification's name.
        code: the float formula in WGSL's notation. `a` and `b` are the operands.
        function: the numpy function of two arrays, float64 or integer.
        text: the documentation.
        types: the allowed data types.
        integer: the formula of integers, or "" for `code`. `T` is their WGSL type.
        pairs: the formula of 64-bit integers as pairs of words, for devices without such integers (see `ElementWise`).
        output: the data type of the output, or "" for that of the operands.
        operands: the specification's names of the operands.
        spec: the anchor of the specification's section.
        tolerance: the permitted error of the kernel against `function` in float32, in ULP.
        bounds: the bounds that replace `tolerance`.
        commutative: whether the operands may be swapped.
        gradient: the rule of the gradient. None means that the operator has none.

    Raises:
        ValueError: a formula compares a value with itself.
    """
    _check_formulas(name, code, integer, pairs)

    def formula_for(inputs: Sequence[str], out: str, values: Attrs) -> Formula:
        kind, value = DATA_TYPES[inputs[0]].kind, ELEMENTS[inputs[0]].value
        return formula(code if kind == "float" else integer or code, ("a", "b"), type_=value)

    def reference(arrays: Sequence[Array | None], values: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
        a, b = arrays
        assert a is not None
        assert b is not None
        with np.errstate(all="ignore"):
            return [to_type(function(wide(a), wide(b)), out[0])]

    return OpDef(
        name=name,
        operands=(
            Operand(name=operands[0], data_types=types),
            Operand(name=operands[1], data_types=types, same_as=operands[0]),
        ),
        infer=lambda call: infer_broadcast(call, output),
        reference=reference,
        lower=lower_elementwise,
        templates=(ELEMENTWISE,),
        spec=spec,
        family=Family.ELEMENT_WISE,
        without=_without(precision=None, gradient=gradient),
        elementwise=ElementWise(formula_for, in_pairs(pairs)),
        layout=BROADCAST,
        cost=PER_RESULT,
        bounds=bounds or ulp(tolerance),
        gradient=gradient,
        output_types=(output,) if output else (),
        commutative=commutative,
        documentation=binary_documentation(name, text, operands, output),
    )


def _check_formulas(name: str, *codes: str) -> None:
    """Refuse formulas that compare a value with itself to find NaN: compilers assume that NaN does not occur."""
    for code in codes:
        if found := re.search(r"\b(\w+) [!=]= \1\b", code):
            raise ValueError(f"the formula of {name} must find NaN by is_nan_f32({found[1]}); got {found[0]} in {code!r}")


def _without(**optional: object) -> tuple[Interface, ...]:
    """Return the interfaces that an element-wise operator does not have, those of the optional ones that are None included."""
    absent = {name for name, given in optional.items() if given is None}
    return tuple(name for name in get_args(Interface) if name in {"epilogue", "movement"} | absent)


def scalar_uniform(name: str, value: float | int, data_type: str) -> tuple[str, UniformType, int | float]:
    """Return a scalar option as a float uniform, cast to the operand's data type as the specification says."""
    return name, "f32", float(cast_number(value, data_type))
