"""How many operations and bytes plans count."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.ops._operations import operations_of

Build = Callable[[wn.MLGraphBuilder], wn.MLOperand]

_numbers = count()


def operand(builder: wn.MLGraphBuilder, *shape: int) -> wn.MLOperand:
    return builder.input(f"x{next(_numbers)}", {"dataType": "float32", "shape": shape})


def weights(builder: wn.MLGraphBuilder, *shape: int) -> wn.MLOperand:
    return builder.constant(np.ones(shape, np.float32))


CASES: dict[str, tuple[Build, int]] = {
    "element by element": (lambda b: b.exp(operand(b, 3, 4)), 12),
    "broadcast": (lambda b: b.add(operand(b, 3, 4), weights(b, 4)), 12),
    "moved": (lambda b: b.transpose(operand(b, 3, 4)), 0),
    "matmul": (lambda b: b.matmul(operand(b, 2, 3, 4), weights(b, 4, 5)), 2 * 2 * 3 * 4 * 5),
    "gemm": (lambda b: b.gemm(operand(b, 4, 3), weights(b, 4, 5), c=weights(b, 5), a_transpose=True), 2 * 3 * 4 * 5 + 15),
    "convolution": (lambda b: b.conv2d(operand(b, 1, 4, 5, 5), weights(b, 6, 4, 3, 3)), 2 * 6 * 3 * 3 * 4 * 9),
    "groups": (lambda b: b.conv2d(operand(b, 1, 4, 5, 5), weights(b, 4, 1, 3, 3), groups=4), 2 * 4 * 3 * 3 * 9),
    "channels last": (
        lambda b: b.conv2d(operand(b, 1, 5, 5, 4), weights(b, 6, 3, 3, 4), input_layout="nhwc", filter_layout="ohwi"),
        2 * 6 * 3 * 3 * 4 * 9,
    ),
    "transposed convolution": (
        lambda b: b.conv_transpose2d(operand(b, 1, 4, 5, 5), weights(b, 4, 6, 3, 3)),
        2 * 25 * 4 * 6 * 9,
    ),
    "pooling": (lambda b: b.max_pool2d(operand(b, 1, 2, 6, 6), window_dimensions=[2, 3], strides=[2, 3]), 2 * 3 * 2 * 6),
    "global pooling": (lambda b: b.average_pool2d(operand(b, 1, 2, 6, 5)), 2 * 30),
    "softmax": (lambda b: b.softmax(operand(b, 3, 4), 1), 5 * 12),
    "reduction": (lambda b: b.reduce_sum(operand(b, 3, 4)), 12),
    "attention": (
        lambda b: b.ext.attention(operand(b, 1, 3, 8), operand(b, 1, 5, 8), operand(b, 1, 5, 8), heads=2),
        2 * (2 * 3 * 5 * 4) * 2 + 5 * 2 * 3 * 5,
    ),
    "lstm": (
        lambda b: b.lstm(operand(b, 3, 2, 4), weights(b, 1, 20, 4), weights(b, 1, 20, 5), steps=3, hidden_size=5)[0],
        2 * 3 * 2 * 20 * (4 + 5) + 8 * 3 * 2 * 20,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_operations_of_an_operator(context: wn.MLContext, case: str) -> None:
    build, expected = CASES[case]
    builder = wn.MLGraphBuilder(context)
    graph = builder.build({"y": build(builder)}, disabled_passes=["keep_channels_last"])
    (node,) = graph.source.nodes
    assert operations_of(node, graph.source) == expected
    assert graph.plan is not None
    assert {d.operations for d in graph.plan.dispatches if d.node is not None} == {expected}


def test_a_fused_group_takes_what_its_members_take(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    product = builder.matmul(operand(builder, 4, 8), weights(builder, 8, 16))
    plan = builder.plan({"y": builder.relu(builder.add(product, weights(builder, 16)))})
    assert plan is not None
    (dispatch,) = plan.dispatches
    assert dispatch.operations == 2 * 4 * 8 * 16 + 2 * 4 * 16
    assert dispatch.touched_bytes == 4 * (4 * 8 + 8 * 16 + 16 + 4 * 16)


def test_of_a_table_only_the_rows_that_are_taken_count(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    rows = builder.input("rows", {"dataType": "int32", "shape": [3]})
    plan = builder.plan({"y": builder.gather(weights(builder, 1000, 8), rows)})
    assert plan is not None
    assert plan.dispatches[0].touched_bytes <= 2 * 4 * 3 * 8 + 32


def test_nothing_is_said_of_kernels_of_a_programs_own(context: wn.MLContext) -> None:
    source = """@group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn main() { y[0] = x[0]; }"""
    builder = wn.MLGraphBuilder(context)
    y = builder.wgsl_op(source, [operand(builder, 1)], output_shapes=[1], output_types="float32", workgroups=1)
    plan = builder.plan({"y": y})
    assert plan is not None
    assert plan.dispatches[0].operations is None
