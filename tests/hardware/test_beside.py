"""onnxruntime's kernels beside the package's own: logs are read, nodes are paired, and rates compared."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.hardware.assembly import Loop
from tests.hardware.beside import (
    VARIABLE,
    UnreadableRunError,
    kernels_of,
    operations_of,
    pairs,
    reach,
    side_by_side,
    source_name,
    their_rows,
)
from tests.hardware.collecting import Dispatch
from tests.hardware.compiler import Compiled
from tests.hardware.families import FAMILIES
from tests.hardware.measure import runtimes
from tests.hardware.report import Row
from tests.onnx.models import model_of

PYTHON = os.environ.get(VARIABLE, sys.executable)


def shader(key: str, *sizes: int) -> str:
    lines = [f"const workgroup_size_{axis}: u32 = {size};" for axis, size in zip("xyz", sizes, strict=True)]
    name, _, _ = key.partition("[")
    head, tail = (f'=== WebGPU Shader code [{name}, Key="{key}"] {end} ===' for end in ("Start", "End"))
    return "\n".join(["a line of the log", head, "", *lines, "fn main() {}", "", tail, ""])


def pipeline(*sizes: int, registers: int = 8, loop: Loop | None = None) -> Compiled:
    text = f"shader: MESA_SHADER_COMPUTE\nworkgroup-size: {', '.join(map(str, sizes))}\nshared-size: 0\n"
    return Compiled(registers=registers, spills=0, scratch_bytes=0, local_bytes=0, subgroup=64, waves=8, loop=loop, text=text)


def row(label: str, operations: int, slots: int, local_bytes: int, node: int = 0) -> Row:
    loop = Loop(
        label="BB1",
        multiply_adds=100,
        slots=slots,
        local_bytes=local_bytes,
        global_bytes=0,
        barriers=0,
        instructions=Counter[str](),
    )
    dispatch = Dispatch(
        model="m",
        label=label,
        kernel="MatMul[1]",
        wgsl=label,
        workgroups=4,
        invocations=64,
        node=(node, None),
        operations=operations,
    )
    return Row(dispatch=dispatch, compiled=pipeline(64, 1, 1, loop=loop))


def test_shaders_and_pipelines_belong_together_in_order_and_size() -> None:
    log = shader("MatMul[1]:8,8,1", 8, 8, 1) + shader("Add[2]", 64, 1, 1) + shader("MatMul[3]:8,8,1", 8, 8, 1)
    made = [pipeline(8, 8, 1, registers=1), pipeline(8, 1, 1, registers=2)]  # the second is Dawn's own
    made += [pipeline(64, 1, 1, registers=3), pipeline(8, 8, 1, registers=4)]
    found = kernels_of(log, made)
    assert {key: compiled.registers for key, (_, compiled) in found.items()} == {
        "MatMul[1]:8,8,1": 1,
        "Add[2]": 3,
        "MatMul[3]:8,8,1": 4,
    }
    assert "fn main() {}" in found["Add[2]"][0]
    with pytest.raises(UnreadableRunError, match=r"\(8, 8, 1\) invocations belongs to MatMul\[3\]"):
        kernels_of(log, made[:3])


def test_nodes_have_the_operations_of_their_weights(tmp_path: Path) -> None:
    convolution = onnx.helper.make_node("Conv", ["x", "w"], ["y"], name="/a/Conv", group=2)
    model = model_of([convolution], {"x": (np.float32, [1, 8, 5, 5])}, ["y"], {"w": np.zeros((6, 4, 3, 3), np.float32)})
    onnx.save(model, tmp_path / "a.onnx")
    outputs = [{"float": [1, 3, 3, 6]}]
    profile = [
        {"cat": "Node", "name": "/a/Conv_token_1_kernel_time", "args": {"op_name": "Conv", "output_type_shape": outputs}},
        {"cat": "Node", "name": "relu_kernel_time", "args": {"op_name": "Relu", "output_type_shape": outputs}},
        {"cat": "Session", "name": "run", "args": {}},
        {
            "cat": "Node",
            "name": "b_kernel_time",
            "args": {"op_name": "MatMul", "input_type_shape": [{"float": [4, 7]}], "output_type_shape": [{"float": [4, 2]}]},
        },
    ]
    assert operations_of(tmp_path / "a.onnx", profile) == {"/a/Conv_token_1": 2 * 54 * 36, "b": 2 * 8 * 7}


def test_names_of_both_sides_stand_for_the_same_node() -> None:
    assert {source_name(name) for name in ("/f/f.0/Conv", "/f/f.0/Conv_token_12", "/f/f.0/Conv.3")} == {"/f/f.0/Conv"}
    assert source_name("/f/f.0") == "/f/f.0"
    assert source_name("/dense/MatMul/MatMulAddFusion") == source_name("/dense/MatMul.1") == "/dense/MatMul"


def test_loops_are_compared_by_issue_slots_and_local_bytes() -> None:
    ours = [row("/a/Conv.1", 10, slots=125, local_bytes=100), row("/only/ours", 5, slots=100, local_bytes=0, node=1)]
    theirs = [row("/a/Conv_token_3", 1 << 28, slots=110, local_bytes=200)]
    (pair,) = pairs(ours, theirs)
    assert pair.ratio == pytest.approx(0.8 / 0.5)
    assert reach(theirs) == pytest.approx(0.5)
    assert reach(ours) == pytest.approx(1 / (2 / 3 / 0.8 + 1 / 3 / 1.0))
    text = "\n".join(side_by_side(FAMILIES["navi21"], ours, theirs, top=3))
    assert "/a/Conv" in text
    assert "ratio 1.60" in text
    assert "ours 0.86, theirs 0.50" in text
    assert "1 nodes of at least" in text
    assert "of their 1 shaders use subgroup matrices 0, packed integer products 0" in text


def test_a_kernel_that_adds_up_parts_does_not_stand_for_its_node() -> None:
    products = row("/a/MatMul_1.0", 10, slots=125, local_bytes=100)
    sums = row("/a/MatMul_1.1", 10, slots=250, local_bytes=0)
    assert sums.compiled
    assert sums.compiled.loop
    few = replace(sums.compiled, loop=replace(sums.compiled.loop, multiply_adds=4, slots=10))
    sums = replace(sums, compiled=few, dispatch=replace(sums.dispatch, workgroups=64))
    (pair,) = pairs([products, sums], [row("/a/MatMul_1", 10, slots=100, local_bytes=200)])
    assert pair.ours is products


@pytest.mark.slow
@pytest.mark.parametrize("family", ["navi21", "navi31"])
def test_a_run_of_onnxruntime_is_read(family: str, tmp_path: Path) -> None:
    if FAMILIES[family].missing:
        pytest.skip(FAMILIES[family].missing)
    if "onnxruntime WebGPU" not in runtimes([PYTHON]):
        pytest.skip(f"{PYTHON} has no onnxruntime-webgpu; {VARIABLE} names one that has")
    product = onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    weights = np.ones((256, 128), np.float32)
    onnx.save(model_of([product], {"x": (np.float32, [64, 256])}, ["y"], {"w": weights}), tmp_path / "a.onnx")
    (found,) = [each for each in their_rows(FAMILIES[family], tmp_path / "a.onnx", PYTHON) if each.dispatch.operations]
    assert found.dispatch.label == "product"
    assert found.dispatch.operations == 2 * 64 * 256 * 128
    assert found.compiled is not None
    assert found.compiled.loop is not None
    assert found.compiled.loop.multiply_adds > 0
