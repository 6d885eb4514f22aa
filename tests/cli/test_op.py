"""`webnn-wgpu op`: what it says of operators, and that it has something to say of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from webnn_wgpu.cli.app import app
from webnn_wgpu.cli.op import close_names, find_operator, places
from webnn_wgpu.ops import OPS


def op_lines(name: str) -> list[str]:
    result = CliRunner().invoke(app, ["op", name])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_everything_it_says() -> None:
    assert op_lines("reshape") == [
        "reshape",
        "  builder        MLGraphBuilder.reshape(input: MLOperand, new_shape: Sequence[int], "
        "options: MLOperatorOptions = {}, *, label: str = '') -> MLOperand",
        "  specification  https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method",
        "  definition     webnn_wgpu/ops/views.py",
        "  templates      none",
        "  variants       one kernel",
        "  tests          tests/ops/test_views.py",
        "  operands       input: every data type, rank 0 to 8",
        "  options        new_shape: uints, required",
        "  outputs        output",
        "  tolerance      exact: moves bits",
    ]


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("exp", "exp_f32(x)"),
        ("add", "(a + b)"),
        ("elu", "select(alpha * expm1_f32(x), x, x >= 0.0)"),
        ("cast", ""),
        ("matmul", ""),
    ],
)
def test_an_element_wise_operator_shows_its_formula(name: str, formula: str) -> None:
    found = [line.removeprefix("  formula        ") for line in op_lines(name) if line.startswith("  formula")]
    assert found == [formula] * bool(formula)


def test_templates_come_with_their_parameters() -> None:
    templates = [f"shaders/ops/{t.name}.wgsl.j2 ({', '.join(t.params)})" for t in OPS["matmul"].templates]
    assert len(templates) > 1
    lines = op_lines("matmul")
    first = lines.index(f"  templates      {templates[0]}")
    assert [line.strip() for line in lines[first + 1 : first + len(templates)]] == templates[1:]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("softmax", "axis: uint, default None"),
        ("reduce_sum", "keep_dimensions: bool, default False"),
        ("matmul", "shaders/ops/matmul.tiled.wgsl.j2"),
        ("concat", "inputs: a list of operands, each every data type, rank 1 to 8"),
        ("gemm", "c: optional, data type of a"),
        ("isNaN", "MLGraphBuilder.is_nan(a: MLOperand"),
        ("gelu", "ULP in float32"),
        ("matmul", "variants       gemv, plain, subgroup, tiled"),
        ("fused", "none: passes make it"),
    ],
)
def test_what_it_says(name: str, expected: str) -> None:
    assert expected in "\n".join(op_lines(name))


@pytest.mark.parametrize("name", list(OPS))
def test_every_operator_has_places(name: str, repository: Path) -> None:
    op = OPS[name]
    found = places(op)
    assert re.search(rf"\"{re.escape(name)}\"", found.module.read_text(encoding="utf-8"))
    assert all(template.is_file() for template in found.templates)
    assert bool(found.templates) != (op.view or op.opaque)
    assert len(op_lines(name)) >= 10


@pytest.mark.parametrize("name", list(OPS))
def test_both_spellings_find_an_operator(name: str) -> None:
    assert find_operator(name) is OPS[name]
    assert find_operator(OPS[name].python_name) is OPS[name]


@pytest.mark.parametrize(
    ("name", "close"),
    [("sofmax", "softmax"), ("reduce_sums", "reduceSum"), ("ARGMAX", "argMax"), ("logical_nand", "logicalAnd")],
)
def test_a_misspelt_name_gets_close_ones(name: str, close: str) -> None:
    assert close in close_names(name)
    result = CliRunner().invoke(app, ["op", name])
    assert result.exit_code == 2
    assert f"'{name}' is no operator. Did you mean" in result.stderr
    assert close in result.stderr
    assert result.stdout == ""


def test_a_name_like_none_gets_the_list() -> None:
    result = CliRunner().invoke(app, ["op", "zzzz"])
    assert result.exit_code == 2
    listed = re.search(r"There are: (.*)\.$", result.stderr.strip())
    assert listed is not None
    assert listed[1].split(", ") == sorted(OPS)
