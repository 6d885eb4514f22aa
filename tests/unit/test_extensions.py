"""Extension operators: `builder.ext`."""

from __future__ import annotations

import inspect
import re

import pytest

import webnn_wgpu as wn
from tests.generation.methods import method_of
from webnn_wgpu.api.operators import Operators
from webnn_wgpu.api.operators.ext import Extensions
from webnn_wgpu.core.data_types import ANY, CONSTANT_TYPES
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ops import OPS, OpDef
from webnn_wgpu.ops._attrs import REQUIRED

EXTENSIONS = [op for op in OPS.values() if op.extension]


@pytest.mark.parametrize("op", EXTENSIONS, ids=lambda op: op.name)
def test_every_extension_has_its_method(op: OpDef) -> None:
    ours = inspect.signature(method_of(op)).parameters
    assert list(ours)[-1] == "label"
    for operand in op.operands:
        assert snake_case(operand.name) in ours
    for attr in op.attrs:
        default = inspect.Parameter.empty if attr.default is REQUIRED else attr.default
        assert ours[attr.name].default == default, attr.name


@pytest.mark.parametrize("op", EXTENSIONS, ids=lambda op: op.name)
def test_documentation_names_every_argument_and_type(op: OpDef) -> None:
    text = inspect.getdoc(method_of(op)) or ""
    for part in ("Args:", "Returns:", "Raises:", "Example:", ">>> "):
        assert part in text
    assert "Spec:" not in text
    for parameter in inspect.signature(method_of(op)).parameters:
        assert parameter == "self" or f"\n    {parameter}: " in text
    for operand in op.operands:
        line = next(line for line in text.splitlines() if line.startswith(f"    {snake_case(operand.name)}: "))
        named = {t for t in CONSTANT_TYPES if t in re.findall(r"\w+", line)}
        assert operand.same_as or named == (set() if operand.data_types == ANY else set(operand.data_types))


def test_methods_that_are_no_operator_s_are_few() -> None:
    methods = {n for n, _ in inspect.getmembers(Extensions, inspect.isfunction) if not n.startswith("_")}
    # Made of other operators.
    composed = {"resample", "random_uniform", "random_normal", "dropout"}
    assert methods - {op.name.removeprefix("x.") for op in EXTENSIONS} == composed


def test_names_keep_apart_from_the_specification_s() -> None:
    builders = {n for n in dir(Operators) if not n.startswith("_")}
    assert "ext" in builders
    assert all(not hasattr(Operators, op.python_name) for op in EXTENSIONS)
    assert all("x." not in op.name for op in OPS.values() if not op.extension)


def test_errors_name_the_method(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    with pytest.raises(wn.MLTypeError, match=r"ext\.bitwise_not\('mask'\): input data type is not allowed") as raised:
        builder.ext.bitwise_not(x, label="mask")
    assert "See" not in str(raised.value)
    other = wn.MLGraphBuilder(context).input("x", {"dataType": "int32", "shape": [2]})
    with pytest.raises(wn.MLTypeError, match="belong to this builder"):
        builder.ext.bitwise_not(other)
    with pytest.raises(AttributeError, match=r"'Extensions' object has no attribute 'bitwise_nand'\. Did you mean"):
        builder.ext.bitwise_nand(x)


def test_camel_case_names(context: wn.MLContext) -> None:
    ext = wn.MLGraphBuilder(context).ext
    assert ext.bitwiseAnd == ext.bitwise_and


def test_a_graph_of_extensions_runs(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "int32", "shape": [3]})
    graph = builder.build({"y": builder.ext.shift_left(builder.abs(x), builder.constant("int32", 4), label="up")})
    assert context.compute(graph, {"x": [1, -2, 3]})["y"].tolist() == [16, 32, 48]
