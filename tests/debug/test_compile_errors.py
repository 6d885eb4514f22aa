"""What is said of a kernel that does not compile: file, line and column of the template, and who made the operator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.shaders import changed_shaders
from webnn_wgpu.runtime.pipelines import PipelineCache

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.float32([[1, 2, 3, 4], [5, 6, 7, 8]])

Build = "Callable[[wn.MLGraphBuilder, wn.MLOperand], wn.MLOperand]"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have all kernels compiled anew, and sources that do not compile written into a folder."""
    monkeypatch.setattr(PipelineCache, "of", PipelineCache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def line_of(function: Callable[..., object], text: str) -> int:
    """The line of this file, within a function, that holds a text."""
    code = function.__code__
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if i > code.co_firstlineno and text in line)


def softmax(b: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLOperand:
    return b.softmax(x, 1, label="probabilities")


def chain(b: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLOperand:
    grown = b.exp(x, label="grow")
    return b.tanh(grown, label="squash")


CASES = {
    "template": (
        softmax,
        ("ops/softmax.wgsl.j2", "let start = row_start(i);", "let start = row_begin(i);"),
        "'probabilities'",
        "let start =",
        17,
        "no definition in scope for identifier: `row_begin` in 'let start = row_begin(i);'",
        "b.softmax(",
    ),
    "macro": (
        softmax,
        ("lib/rows.wgsl.j2", "    var rest = i;", "    var rest: f32 = i;"),
        "'probabilities'",
        "    var rest: f32",
        9,
        "the type of `rest` is expected to be `f32`, but got `u32` in 'var rest: f32 = i;'",
        "b.softmax(",
    ),
    "included function": (
        softmax,
        ("lib/math/exp.wgsl", "    let scale = i32(n);", "    let scale = i32(n)"),
        "'probabilities'",
        "    let first = scale",
        5,
        "expected `;`, found \"let\" in 'let first = scale >> 1u;'",
        "b.softmax(",
    ),
    "function that does not hold": (
        softmax,
        ("lib/math/exp.wgsl", "    return keep_nan_f32(x, exp_parts_f32(x, 0.0));", "    let y = 1; return 7u;"),
        "'probabilities'",
        "    let y = 1;",
        23,
        "Shader validation error: Function [N] 'exp_f32' is invalid; The `return` expression Some([N]) does not match the "
        "declared return type Some([N]) in 'let y = 1; return 7u;'",
        "b.softmax(",
    ),
    "fused": (
        chain,
        ("lib/math/tanh.wgsl", "fn tanh_f32(", "fn tanh_of("),
        "'grow'",
        "let {{ step.name }}: {{ step.type }} = {{ step.code }};",
        44,
        "no definition in scope for identifier: `tanh_f32` in 'let y1: f32 = tanh_f32(y0);'",
        "b.tanh(",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_templates(context: wn.MLContext, fresh: Path, what: str) -> None:
    build, change, label, there, column, message, made = CASES[what]
    builder = wn.MLGraphBuilder(context)
    result = build(builder, builder.input("x", [2, 4], "float32"))
    with changed_shaders(fresh / "shaders", change) as shaders:
        with pytest.raises(wn.OperationError) as raised:
            builder.build({"y": result})
        file = "lib/values.wgsl.j2" if what == "fused" else change[0]
        lines = (shaders / file).read_text(encoding="utf-8").splitlines()
    number = next(i for i, line in enumerate(lines, 1) if there in line)
    template = "ops/elementwise.wgsl.j2" if what == "fused" else "ops/softmax.wgsl.j2"
    text = re.sub(r"\[\d+\]", "[N]", str(raised.value))
    source = re.search(r"Its source is in (\S+)\. ", text)
    assert source is not None
    assert Path(source[1]).is_file()
    assert text == (
        f"build({label}): shader of template {template} does not compile: {file}:{number}:{column}: {message}; "
        f"got {raised.value.got}. Its source is in {source[1]}. "
        f"The operator was made at {__file__}:{line_of(build, made)}"
    )


@pytest.mark.parametrize(
    ("file", "there", "change", "message"),
    [
        ("ops/softmax.wgsl.j2", "row_start(i)", "{{ offset }}", "'offset' is undefined"),
        ("ops/softmax.wgsl.j2", "row_start(i)", "{{ offset ", "expected token 'end of print statement', got ';'"),
        ("lib/rows.wgsl.j2", "    var rest = i;", "    var rest = {{ index }};", "'index' is undefined"),
    ],
    ids=["name", "syntax", "macro"],
)
def test_templates_that_do_not_render(
    context: wn.MLContext, fresh: Path, file: str, there: str, change: str, message: str
) -> None:
    builder = wn.MLGraphBuilder(context)
    result = softmax(builder, builder.input("x", [2, 4], "float32"))
    with changed_shaders(fresh / "shaders", (file, there, change)) as shaders:
        with pytest.raises(wn.OperationError) as raised:
            builder.build({"y": result})
        lines = (shaders / file).read_text(encoding="utf-8").splitlines()
    number = next(i for i, line in enumerate(lines, 1) if change in line)
    assert str(raised.value) == (
        f"build('probabilities'): template ops/softmax.wgsl.j2 does not render: {file}:{number}: {message}; "
        f"got {raised.value.got}. The operator was made at {__file__}:{line_of(softmax, 'b.softmax(')}"
    )


OWN = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
    dbg(i, "lane");
    y[i] = twice(x[i]);
}"""


def test_a_kernel_of_the_programs_own(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [2, 4], "float32")
    message = "line 6, column 12: no definition in scope for identifier: `twice` in 'y[i] = twice(x[i]);'"
    with pytest.raises(wn.OperationError) as raised:
        builder.wgsl_op(OWN, [x], output_shapes=[2, 4], output_types="float32", workgroups=1, label="mine")
    assert str(raised.value).startswith(f"wgsl_op('mine'): the shader does not compile: {message}. Its source is in ")
    with pytest.raises(wn.OperationError) as raised:
        wn.run_wgsl(OWN, X, X, workgroups=1, context=context)
    assert str(raised.value).startswith(f"run_wgsl: the shader does not compile: {message}. Its source is in ")


def test_an_overridden_kernel(context: wn.MLContext, tmp_path: Path) -> None:
    builder = wn.MLGraphBuilder(context)
    graph = builder.build({"y": chain(builder, builder.input("x", [2, 4], "float32"))})
    file = tmp_path / "own.wgsl"
    file.write_text(OWN, encoding="utf-8")
    with pytest.raises(wn.OperationError) as raised:
        graph.override("squash", file)
    made = f"{__file__}:{line_of(chain, 'b.exp(')}, {__file__}:{line_of(chain, 'b.tanh(')}"
    assert str(raised.value) == (
        f"override('grow'): the source does not compile: {file}:6:12: no definition in scope for identifier: `twice` in "
        f"'y[i] = twice(x[i]);'; allowed: bindings and uniforms of {graph.kernels['grow'].spec}, entry point main. "
        f"Its operators were made at {made}"
    )
