"""Gradients that do not exist are refused, with the operator and the path to it."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.ops import OPS

_COPY = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(6) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i]; }
"""


@pytest.fixture
def b() -> wn.MLGraphBuilder:
    return wn.MLGraphBuilder(wn.ml.create_context(backend="reference"))


@pytest.fixture
def x(b: wn.MLGraphBuilder) -> wn.MLOperand:
    return b.input("x", {"dataType": "float32", "shape": [2, 3]})


def test_the_message_names_the_operator_and_the_path(b: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    steps = b.floor(b.mul(x, x, label="square"), label="steps")
    with pytest.raises(wn.NotSupportedError, match=r"^floor\('steps'\): .*the path x -> square -> steps"):
        b.gradients(b.reduce_sum(steps), x)


def test_paths_begin_at_the_operand(b: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    middle = b.exp(b.sin(x))
    with pytest.raises(wn.NotSupportedError, match=r"the path float32\[2, 3\] -> neg -> round_even"):
        b.gradients(b.round_even(b.neg(middle)), middle)


def test_quantized_values_have_no_gradient(b: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    scale, zero = b.constant(np.float32([[0.1]])), b.constant(np.int8([[0]]))
    levels = b.quantize_linear(x, scale, zero)
    with pytest.raises(wn.NotSupportedError, match=r"quantize_linear.*the path x -> quantize_linear"):
        b.gradients(b.dequantize_linear(levels, scale, zero), x)
    # The scale of constant levels has one.
    assert b.gradients(b.dequantize_linear(b.constant(np.ones((2, 3), np.int8)), scale, zero), scale)[0].shape == (1, 1)


def test_own_kernels_have_no_gradient(b: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    y = b.wgsl_op(_COPY, [x], output_shapes=[2, 3], output_types="float32", workgroups=1)
    with pytest.raises(wn.NotSupportedError, match="wgsl_op"):
        b.gradients(y, x)


@pytest.mark.parametrize("name", sorted(op.name for op in OPS.values() if op.gradient is None and not op.internal))
def test_operators_without_a_gradient_give_integers_or_are_steps(name: str) -> None:
    op = OPS[name]
    integers = op.output_types and not {"float32", "float16"} & set(op.output_types)
    only_integers = not {"float32", "float16"} & set(op.operands[0].data_types)
    steps = {"ceil", "floor", "roundEven", "sign", "argMax", "argMin", "x.bitcast", "x.quantization_parameters"}
    assert integers or only_integers or name in steps, "give its OpDef a gradient, or list it here if its derivative is 0"


def test_arguments_are_checked(b: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    y = b.exp(x)
    other = wn.MLGraphBuilder(wn.ml.create_context(backend="reference")).input("x", {"dataType": "float32", "shape": [2, 3]})
    whole = b.cast(x, "int32")
    for arguments, message in (
        ((y, []), "operands must not be empty"),
        (([], x), "outputs must not be empty"),
        ((y, other), "operands must belong to this builder"),
        ((whole, x), "outputs must hold floats"),
        ((y, whole), "operands must hold floats"),
        ((y, ["x"]), "operands must be operands"),
        ((y, x, [y, y]), "seeds must have one item for each output"),
        ((y, x, b.reduce_sum(y)), "a seed must have the type of its output"),
    ):
        with pytest.raises(wn.MLTypeError, match=message):
            b.gradients(*arguments)
    b.build({"y": y})
    with pytest.raises(wn.InvalidStateError):
        b.gradients(y, x)


def test_operators_of_gradients_are_labelled_with_their_operator(b: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    loss = b.reduce_sum(b.softmax(b.matmul(x, b.transpose(x), label="scores"), axis=1))
    (gradient,) = b.gradients(loss, x)
    plan = b.build({"gradient": gradient})
    assert plan is not None
    labels = {node.label for node in b._nodes}
    assert labels == {
        "",
        "scores",
        "gradient of reduce_sum",
        "gradient of softmax",
        "gradient of scores",
        "gradient of transpose",
    }


def test_limits_list_the_differentiable_operators(b: wn.MLGraphBuilder) -> None:
    listed = wn.ml.create_context(backend="reference").op_support_limits()["differentiable"]
    assert listed == [op.name for op in OPS.values() if op.gradient is not None]
