"""Formulas of operators, and the expressions that chains of them become."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from webnn_wgpu.core.data_types import ANY
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.kernels.element import ELEMENTS
from webnn_wgpu.kernels.expression import ExpressionBuilder, Formula, formula, hide_last, library_of
from webnn_wgpu.kernels.notation import term
from webnn_wgpu.kernels.templates import library_functions
from webnn_wgpu.kernels.terms import OPAQUE_ZERO, FunctionCall, Hidden, Rounded, Symbol
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._row_documentation import Text
from webnn_wgpu.ops._rows import unary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webnn_wgpu.kernels.expression import Expression

BUILT_IN = {"abs", "ceil", "extractBits", "floor", "max", "min", "select", "sign"}
TYPES = {element.value for element in ELEMENTS.values()}
ROUND_TRIP = {"scale": 0.1, "zero_point": 3, "data_type": "int8"}


def formulas() -> Iterator[Formula]:
    """Yield the formula of every element-wise operator on every data type, in pairs too where there is one."""
    for op in OPS.values():
        if op.elementwise is None:
            continue
        for data_type in op.operands[1 if op.name == "where" else 0].data_types:
            choices: list[dict[str, Any]] = [{"data_type": target} for target in ANY] if op.name == "cast" else [{}]
            for given in [ROUND_TRIP] if op.name == "quantizeDequantize" else choices:
                types = [data_type if data_type in o.data_types else o.data_types[0] for o in op.operands]
                (out,), attrs = op.check([TensorType(each, ()) for each in types], given)
                native = op.elementwise.formula(types, out.data_type, attrs)
                yield native
                stand_ins = {"int64": "i64x2", "uint64": "u64x2"}
                values = [stand_ins.get(each, ELEMENTS[each].value) for each in (*types, out.data_type)]
                if {*values} & {*stand_ins.values()}:
                    assert op.elementwise.pairs is not None
                    yield op.elementwise.pairs(native, values[:-1], values[-1])


FORMULAS = list(dict.fromkeys(formulas()))


@pytest.mark.parametrize("each", FORMULAS, ids=lambda each: str(each.value))
def test_formulas_name_what_there_is(each: Formula) -> None:
    uniforms = {name for name, _, _ in each.uniforms}
    names = {node.name for node in each.value.walk() if isinstance(node, Symbol)}
    assert names <= {*each.operands} | uniforms
    assert uniforms <= names
    called = {node.function for node in each.value.walk() if isinstance(node, FunctionCall)}
    assert called <= {*library_functions()} | BUILT_IN | TYPES
    assert {library_functions()[function] for function in called - BUILT_IN - TYPES} <= {*each.lib}


def test_the_library_follows_from_the_functions_that_are_called() -> None:
    assert formula("div_T(x, abs(is_nan_f32(x)))", type_="i32").lib == ("bits", "div_i32")
    assert formula("exp_f32(x)", lib=("pair", "exp")).lib == ("pair", "exp")
    assert library_of(term("log_f32(x)"), term("exp_f32(log_f32(x))")) == ("log", "exp")


def test_formulas_are_applied_to_operands() -> None:
    found = formula("select(b, a, a >= low)", ("a", "b"), (("low", "f32", 0.5),))
    assert str(found.applied([Symbol("x0"), Hidden(Symbol("x0"), 2)], "y3_")) == (
        f"select(bitcast<f32>(bitcast<u32>(x0) ^ (params.{OPAQUE_ZERO} << 2u)), x0, x0 >= params.y3_low)"
    )
    with pytest.raises(ValueError, match="zip"):
        found.applied([Symbol("x0")], "")


def chain(*data_types: str) -> Expression:
    """Return an expression that negates an element once for every data type behind the first."""
    builder = ExpressionBuilder()
    value = builder.argument(data_types[0])
    for data_type in data_types[1:]:
        value = builder.apply(formula("-x"), [value], data_type)
    return builder.finish(value)


def test_a_single_operator_is_its_formula() -> None:
    builder = ExpressionBuilder()
    scaled = formula("alpha * exp_f32(x)", uniforms=(("alpha", "f32", 0.5),))
    expression = builder.finish(builder.apply(scaled, [builder.argument("float32")], "float32"))
    assert [(s.name, s.type, str(s.code)) for s in expression.steps] == [("y0", "f32", "params.y0_alpha * exp_f32(x0)")]
    assert (expression.args, expression.result, expression.type) == ((("x0", "f32"),), "y0", "f32")
    assert (expression.lib, expression.features) == (("exp",), ())
    assert builder.uniforms == [("y0_alpha", "f32", 0.5)]


@pytest.mark.parametrize("data_type", ANY)
def test_results_are_rounded_to_their_data_type(data_type: str) -> None:
    first, last = (step.code for step in chain(data_type, data_type, data_type).steps)
    if isinstance(first, Hidden):
        first = first.value
    narrow = data_type in ("float16", "int8", "uint8")
    assert first == (Rounded(term("-x0"), data_type) if narrow else term("-x0"))
    # float16 is rounded where it is stored.
    assert last == (Rounded(term("-y0"), data_type) if narrow and data_type != "float16" else term("-y0"))


def test_compilers_cannot_see_through_a_chain() -> None:
    builder = ExpressionBuilder()
    x = builder.argument("float32")
    y = builder.apply(formula("(a - b)", ("a", "b")), [x, x], "float32")
    expression = builder.finish(builder.apply(formula("-x"), [y], "float32"))
    difference = term("(x0 - b)").substituted({"b": Hidden(Symbol("x0"), 1)})
    assert [s.code for s in expression.steps] == [Hidden(difference, 2), term("-y0")]
    assert [str(s.code) for s in expression.steps] == [
        "bitcast<f32>(bitcast<u32>((x0 - bitcast<f32>(bitcast<u32>(x0) ^ (params.opaque_zero << 1u))))"
        " ^ (params.opaque_zero << 2u))",
        "-y0",
    ]
    assert builder.uniforms == [("opaque_zero", "u32", 0)]


def test_integers_need_not_be_hidden() -> None:
    assert [s.code for s in chain("int32", "int32", "int32").steps] == [term("-x0"), term("-y0")]


def test_the_last_step_is_hidden_where_another_follows() -> None:
    steps = chain("float32", "float32", "float32").steps
    assert hide_last(steps) == (steps[0], replace(steps[1], code=Hidden(term("-y0"), 2)))
    assert hide_last(()) == ()


def test_features_are_those_of_every_type_on_the_way() -> None:
    assert chain("int32", "int64", "int32").features == ("shader-int64",)


def test_halves_are_rounded_through_their_bits() -> None:
    expression = chain("float32", "float16", "float16", "float32")
    assert [str(s.code) for s in expression.steps] == [
        f"bitcast<f32>(bitcast<u32>(round_float16(-x0)) ^ (params.{OPAQUE_ZERO} << 1u))",
        f"bitcast<f32>(bitcast<u32>(round_float16(-y0)) ^ (params.{OPAQUE_ZERO} << 2u))",
        "-y1",
    ]
    assert expression.lib == ("round_float16",)
    assert expression.features == ()


def test_expressions_are_keys() -> None:
    assert chain("float32", "float32") is not chain("float32", "float32")
    half, single = chain("float32", "float16", "float32"), chain("float32", "float32", "float32")
    assert len({single, chain("float32", "float32", "float32"), half}) == 2


@pytest.mark.parametrize("code", ["select(0.0, x, x != x)", "select(x, 0.0, x == x)"])
def test_a_row_finds_nan_by_its_bits(code: str) -> None:
    with pytest.raises(ValueError, match=r"the formula of x\.own must find NaN by is_nan_f32\(x\); got x [!=]= x in"):
        unary("x.own", code, np.abs, Text(summary="An operator."))
