"""int4 and uint4: constants of two elements to a byte, for dequantize_linear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import webnn_wgpu as wn

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNED = np.array([[1, -2, 7], [-8, 0, -1]], ml_dtypes.int4)
SIGNED_BYTES = bytes([0xE1, 0x87, 0xF0])
UNSIGNED = np.array([1, 14, 15, 8, 0], ml_dtypes.uint4)
UNSIGNED_BYTES = bytes([0xE1, 0x8F, 0x00])


def dequantized(context: wn.MLContext, make: Callable[[wn.MLGraphBuilder], wn.MLOperand], **options: Any) -> np.ndarray:
    """What a constant's numbers are, halved."""
    builder = wn.MLGraphBuilder(context)
    x = make(builder)
    scale = builder.input("scale", {"dataType": "float32", "shape": [1] * x.rank})
    zero_point = builder.constant({"dataType": x.data_type, "shape": [1] * x.rank}, bytes(1))
    with builder.build({"y": builder.dequantize_linear(x, scale, zero_point)}, **options) as graph:
        return context.compute(graph, {"scale": np.full([1] * x.rank, 0.5, np.float32)})["y"]


@pytest.mark.parametrize(
    "make",
    [
        lambda b: b.constant(SIGNED),
        lambda b: b.constant({"dataType": "int4", "shape": [2, 3]}, SIGNED),
        lambda b: b.constant({"dataType": "int4", "shape": [2, 3]}, SIGNED.reshape(-1)),
        lambda b: b.constant({"dataType": "int4", "shape": [2, 3]}, SIGNED.T.copy().T),
        lambda b: b.constant({"dataType": "int4", "shape": [2, 3]}, SIGNED_BYTES),
        lambda b: b.constant({"dataType": "int4", "shape": [2, 3]}, np.frombuffer(SIGNED_BYTES, np.uint8)),
        lambda b: b.constant({"dataType": "int4", "shape": [2, 3]}, [[1, -2, 7], [-8, 0, -1]]),
        lambda b: b.constant(np.frombuffer(SIGNED_BYTES, np.uint8), [2, 3], "int4"),
        lambda b: b.constant(SIGNED.astype(np.int8), dtype="int4"),
    ],
    ids=["array", "descriptor", "flat", "strided", "bytes", "uint8", "list", "named bytes", "named numbers"],
)
def test_forms_of_a_constant(anywhere: wn.MLContext, make: Callable[[wn.MLGraphBuilder], wn.MLOperand]) -> None:
    assert dequantized(anywhere, make).tolist() == [[0.5, -1, 3.5], [-4, 0, -0.5]]


def test_unsigned_and_an_odd_number(anywhere: wn.MLContext) -> None:
    for data in (UNSIGNED, UNSIGNED_BYTES, [1, 14, 15, 8, 0]):
        numbers = dequantized(anywhere, lambda b, data=data: b.constant({"dataType": "uint4", "shape": [5]}, data))
        assert numbers.tolist() == [0.5, 7, 7.5, 4, 0]


def test_folding_changes_nothing(anywhere: wn.MLContext) -> None:
    for disabled in ((), ("fold_constants",)):
        builder = wn.MLGraphBuilder(anywhere)
        scale = builder.constant(np.float32([[0.5], [2]]))
        y = builder.dequantize_linear(builder.constant(SIGNED), scale, builder.constant(SIGNED[:, :1].copy()))
        with builder.build({"y": y}, disabled_passes=disabled) as graph:
            assert anywhere.compute(graph, {})["y"].tolist() == [[0, -1.5, 3], [0, 16, 14]]


def test_a_scalar_is_limited_to_the_range(anywhere: wn.MLContext) -> None:
    assert dequantized(anywhere, lambda b: b.constant("int4", 100)).tolist() == 3.5
    assert dequantized(anywhere, lambda b: b.constant("uint4", -1)).tolist() == 0


def test_a_constant_tensor(anywhere: wn.MLContext) -> None:
    tensor = anywhere.create_constant_tensor({"dataType": "int4", "shape": [2, 3]}, SIGNED_BYTES)
    assert (tensor.data_type, tensor.size, tensor.nbytes) == ("int4", 6, 3)
    assert dequantized(anywhere, lambda b: b.constant(tensor)).tolist() == [[0.5, -1, 3.5], [-4, 0, -0.5]]


def test_two_to_a_byte_on_the_device(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    scale = builder.input("scale", {"dataType": "float32", "shape": [1]})
    x = builder.constant({"dataType": "uint4", "shape": [1001]}, bytes(501))
    with builder.build({"y": builder.dequantize_linear(x, scale, builder.constant(UNSIGNED[:1].copy()))}) as graph:
        sizes = {use.type.size_bytes for use in graph.plan.constants}
        assert sizes == {501, 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(2), r"must have exactly the tensor's bytes.*got uint8\[2\] of 2 bytes; allowed: int4\[5\] of 3 bytes"),
        (bytes(5), "must have exactly the tensor's bytes"),
        (np.zeros(6, ml_dtypes.int4), "must have exactly the tensor's bytes"),
        (np.zeros(5, ml_dtypes.uint4), "must have the tensor's data type.*got uint4 array"),
        (np.zeros(5, np.int8), "must have the tensor's data type.*allowed: int4, or uint8 for raw bytes"),
        ([0, 0, 0, 0, 8], r"does not fit the tensor's data type.*allowed: int4\[5\]"),
        ([0, 0, 0, 0, -9], "does not fit the tensor's data type"),
        ([0, 0, 0, 0, 0.5], "does not fit the tensor's data type"),
    ],
)
def test_wrong_data(context: wn.MLContext, data: Any, message: str) -> None:
    builder = wn.MLGraphBuilder(context)
    with pytest.raises(wn.MLTypeError, match=message):
        builder.constant({"dataType": "int4", "shape": [5]}, data)


def test_for_constants_alone(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    message = "int4 is a data type of constants alone; got 'int4'; allowed: float32, .*uint8$"
    with pytest.raises(wn.MLTypeError, match=f"^input: {message}"):
        builder.input("x", {"dataType": "int4", "shape": [2]})
    with pytest.raises(wn.MLTypeError, match=f"^create_tensor: {message}"):
        context.create_tensor({"dataType": "int4", "shape": [2]})
    x = builder.constant(SIGNED)
    with pytest.raises(wn.MLTypeError, match=r"identity: input data type is not allowed; got input int4\[2, 3\]"):
        builder.identity(x)
    with pytest.raises(wn.MLTypeError, match="data_type must be a data type; got 'int4'"):
        builder.cast(builder.constant("float32", 1), "int4")
    with pytest.raises(wn.MLTypeError, match="output 'x' must be the result of an operator"):
        builder.build({"x": x})


def test_support_limits(anywhere: wn.MLContext) -> None:
    limits = anywhere.op_support_limits()
    ends = ("input", "constant", "output")
    others = (*ends, "extensions")
    members = {
        (name, member): set(allowed["dataTypes"])
        for name, operator in limits.items()
        if isinstance(operator, dict) and name not in others
        for member, allowed in operator.items()
    }
    taking = {place for place, types in members.items() if types & {"int4", "uint4"}}
    assert all(members[place] >= {"int4", "uint4"} for place in taking)
    assert taking == {("dequantizeLinear", "input"), ("dequantizeLinear", "zeroPoint")}
    assert {end for end in ends if "int4" in limits[end]["dataTypes"]} == {"constant"}
