from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from tests.unit.plans import check_plan
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.data_types import ANY, DATA_TYPES
from webnn_wgpu.kernels.element import ELEMENTS, element_of
from webnn_wgpu.kernels.emulation import emulated
from webnn_wgpu.kernels.expression import ExpressionBuilder, formula
from webnn_wgpu.kernels.spec import Binding, KernelSpec, KernelTemplate
from webnn_wgpu.kernels.templates import render
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._elementwise import ELEMENTWISE
from webnn_wgpu.plan import make_plan

NATIVE = Caps(features=frozenset(["shader-f16", "shader-int64"]))
COPY = KernelTemplate("strided", ("rank", "read"))
UNIFORMS = (("quads", "u32"), ("rounds", "u32"), ("input_base", "u32"))


def test_what_a_device_has_is_taken_as_it_is() -> None:
    assert [element_of(t, NATIVE) for t in ANY] == list(ANY)
    assert {t: element_of(t, Caps()) for t in ANY if element_of(t, Caps()) != t} == {
        "int64": "int64.pair",
        "uint64": "uint64.pair",
    }


def test_stand_ins_need_no_feature_and_are_as_large() -> None:
    for data_type, stand_in in (("float16", "half"), ("int64", "int64.pair"), ("uint64", "uint64.pair")):
        assert ELEMENTS[data_type].feature
        assert not ELEMENTS[stand_in].feature
        assert ELEMENTS[stand_in].size_bytes == DATA_TYPES[data_type].size_bytes


def copy(element: str, *, quad: bool) -> KernelSpec:
    bindings = [
        Binding(name="input", access="read", element=element, quad=True),
        Binding(name="output", access="write", element=element, quad=quad),
    ]
    return COPY.spec(bindings, UNIFORMS, rank=0, read="same")


def test_kernels_stay_as_they_are_where_nothing_is_missing() -> None:
    half = copy("float16", quad=True)
    assert emulated(half, NATIVE) is half
    other = copy("float32", quad=True)
    assert emulated(other, Caps()) is other


@pytest.mark.parametrize("quad", [True, False])
def test_halves_stand_in_for_float16(quad: bool) -> None:
    spec = emulated(copy("float16", quad=quad), Caps(features=frozenset(["subgroup"])))
    assert [b.element for b in spec.bindings] == ["half", "half"]
    assert not spec.features
    text = render(spec)
    assert "f16" not in text
    assert text.count("fn half_bits(") == 1
    # Single halves are stored by atomic operations on their word.
    assert ("array<atomic<u32>>" in text) is not quad


@pytest.mark.parametrize("output", ["float32", "float16"])
def test_roundings_within_a_chain_go_through_the_bits(output: str) -> None:
    builder = ExpressionBuilder()
    half = builder.apply(formula("x"), [builder.argument("float32")], "float16")
    result = builder.apply(formula("-x"), [half], output)
    expression = builder.finish(result)
    bindings = [
        Binding(name="input0", access="read", element="float32", quad=True),
        Binding(name="output", access="write", element=output, quad=True),
    ]
    spec = ELEMENTWISE.spec(
        bindings,
        [("quads", "u32"), ("rounds", "u32"), *((name, type_) for name, type_, _ in builder.uniforms)],
        features=expression.features,
        expression=expression,
        rank=0,
        reads=("same",),
        whole_quads=False,
        octets=False,
    )
    for text in (render(spec), render(emulated(spec, Caps()))):
        assert text.count("fn round_float16(") == 1
        assert text.count("round_float16(") == 2
    assert "f16" not in text


WIDE = [
    (op.name, data_type)
    for op in OPS.values()
    for data_type in ("int64", "uint64")
    if op.elementwise is not None and data_type in op.operands[-1 if op.name == "where" else 0].data_types
]


@pytest.mark.parametrize(("name", "data_type"), WIDE)
def test_operators_on_64_bit_integers_have_a_formula_in_pairs(name: str, data_type: str) -> None:
    for target in ANY if name == "cast" else ("",):
        s = Sketch()
        types = ["uint8", data_type, data_type] if name == "where" else [data_type] * len(OPS[name].operands)
        operands = [s.input(np.zeros(5, t)) for t in types]
        graph = s.graph(s.apply(name, *operands, **({"data_type": target} if target else {})))
        plan = make_plan(graph, DEFAULT_TARGET)
        check_plan(plan, Caps())
        text = re.sub(r"//.*", "", render(plan.dispatches[-1].spec))
        assert not re.search(r"\b[iu]64\b|\d(li|lu)\b|\bf16\b", text)
