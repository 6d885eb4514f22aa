from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import F32X3, X, tensor


def test_attributes_and_zero_fill(anywhere: wn.MLContext) -> None:
    made = anywhere.create_tensor({"dataType": "int8", "shape": [2, 3], "readable": True})
    assert (made.data_type, made.shape, made.size, made.rank) == ("int8", (2, 3), 6, 2)
    assert (made.readable, made.writable, made.constant, made.exportable_to_gpu) == (True, False, False, False)
    assert made.dataType() == "int8"
    assert made.shape() == [2, 3]
    assert repr(made) == "MLTensor(shape=[2, 3], dtype=int8, readable)"
    found = anywhere.read_tensor(made)
    assert found.dtype == np.int8
    assert found.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("name", ["readable", "writable", "constant", "shape", "data_type", "size"])
def test_attributes_are_read_only(anywhere: wn.MLContext, name: str) -> None:
    made = anywhere.create_tensor(F32X3)
    with pytest.raises(AttributeError):
        setattr(made, name, True)


def test_spellings(anywhere: wn.MLContext) -> None:
    same = [
        anywhere.create_tensor({"dataType": "float32", "shape": [3]}, readable=True, writable=True),
        anywhere.create_tensor({"data_type": "float32", "dimensions": (3,), "readable": True, "writable": True}),
        anywhere.create_tensor([3], "float32", True, True),
        anywhere.create_tensor(shape=[3], dtype="float32", readable=True, writable=True),
        anywhere.create_host_tensor([3], "float32"),
        anywhere.createTensor({"dataType": "float32", "shape": [3], "readable": True, "writable": True}),
        anywhere.create_tensor_async({"dataType": "float32", "shape": [3], "readable": True, "writable": True}).result(),
    ]
    assert {repr(t) for t in same} == {"MLTensor(shape=[3], dtype=float32, readable, writable)"}


@pytest.mark.parametrize("data_type", ["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"])
@pytest.mark.parametrize("count", [1, 3, 4, 1030])
def test_every_type_and_odd_sizes_come_back(context: wn.MLContext, data_type: str, count: int) -> None:
    made = context.create_tensor([count], data_type, readable=True, writable=True)
    data = np.arange(count).astype(data_type)
    context.write_tensor(made, data)
    assert np.array_equal(context.read_tensor(made), data)
    made.destroy()


def test_writes_copy_at_once(anywhere: wn.MLContext) -> None:
    data = X.copy()
    made = tensor(anywhere, data)
    data[:] = 0
    first = anywhere.read_tensor(made)
    assert first.tolist() == X.tolist()
    first[:] = 9
    assert anywhere.read_tensor(made).tolist() == X.tolist()


@pytest.mark.parametrize("into", [np.zeros((3, 1), np.float32), np.zeros(12, np.uint8), bytearray(12)])
def test_read_into_memory_of_the_caller(anywhere: wn.MLContext, into: Any) -> None:
    assert anywhere.read_tensor(tensor(anywhere, X), into) is None
    assert np.frombuffer(into, np.float32).tolist() == X.tolist()


BAD_DESCRIPTORS = {
    "type": (
        {"dataType": "float64", "shape": [1]},
        "create_tensor: unknown data type; got 'float64'; allowed: float32, float16, int32, uint32, int64, uint64, int8, uint8",
    ),
    "no type": (
        {"shape": [1]},
        "create_tensor: a descriptor must have a dataType;"
        " allowed: float32, float16, int32, uint32, int64, uint64, int8, uint8",
    ),
    "no shape": (
        {"dataType": "float32"},
        "create_tensor: a descriptor must have a shape; allowed: a list of sizes, [] for a scalar",
    ),
    "zero": (
        {"dataType": "float32", "shape": [2, 0]},
        "create_tensor: every dimension must be a valid dimension; got shape=[2, 0]; allowed: 1..2147483647",
    ),
    "too large": (
        {"dataType": "float32", "shape": [2**31]},
        "create_tensor: every dimension must be a valid dimension; got shape=[2147483648]; allowed: 1..2147483647",
    ),
    "float": (
        {"dataType": "float32", "shape": [2.0]},
        "create_tensor: every dimension must be a valid dimension; got shape=[2.0]; allowed: 1..2147483647",
    ),
    "bool": (
        {"dataType": "float32", "shape": [True]},
        "create_tensor: every dimension must be a valid dimension; got shape=[True]; allowed: 1..2147483647",
    ),
    "rank": (
        {"dataType": "float32", "shape": [1] * 9},
        "create_tensor: rank is not supported; got float32[1, 1, 1, 1, 1, 1, 1, 1, 1] of rank 9; allowed: rank 0..8",
    ),
    "elements": (
        {"dataType": "float32", "shape": [2**16, 2**16]},
        "create_tensor: element count must be a valid dimension; got float32[65536, 65536]; allowed: 1..2147483647 elements",
    ),
    "both": (
        {"dataType": "float32", "shape": [2], "dimensions": [3]},
        "create_tensor: shape and dimensions differ; got shape=[2], dimensions=[3]",
    ),
    "key": (
        {"dataType": "float32", "shape": [2], "readble": True},
        "create_tensor: unknown descriptor key 'readble'; allowed: dataType, shape, readable, writable, exportableToGPU",
    ),
    "shape": ({"dataType": "float32", "shape": "abc"}, "create_tensor: shape must be a list of dimensions; got 'abc'"),
}


@pytest.mark.parametrize("case", BAD_DESCRIPTORS)
def test_bad_descriptors(anywhere: wn.MLContext, case: str) -> None:
    descriptor, message = BAD_DESCRIPTORS[case]
    with pytest.raises(TypeError) as caught:
        anywhere.create_tensor(descriptor)
    assert str(caught.value) == message


def test_what_the_device_cannot_hold(context: wn.MLContext) -> None:
    limit = context.caps.limit("max-buffer-size")
    with pytest.raises(wn.UnknownError, match="a buffer is larger than the device allows") as caught:
        context.create_tensor([limit // 4 + 64], "float32")
    assert isinstance(caught.value, MemoryError)


def test_rules_of_reading_and_writing(anywhere: wn.MLContext, fresh: wn.MLContext) -> None:
    foreign, plain = tensor(fresh), anywhere.create_tensor(F32X3)
    constant = anywhere.create_constant_tensor(F32X3, X)
    destroyed = tensor(anywhere)
    destroyed.destroy()
    destroyed.destroy()
    for call, operator, access in (
        (anywhere.read_tensor, "read_tensor", "readable"),
        (lambda t: anywhere.write_tensor(t, X), "write_tensor", "writable"),
    ):
        for given, rule in (
            (
                foreign,
                "the tensor belongs to another context; got MLTensor(shape=[3], dtype=float32, readable, writable). "
                "Create it with this context",
            ),
            (destroyed, "the tensor was destroyed; got MLTensor(shape=[3], dtype=float32, readable, writable)"),
            (
                plain,
                f"the tensor is not {access}; got MLTensor(shape=[3], dtype=float32). Create it with {access}=True",
            ),
            (
                constant,
                "a constant tensor is used through MLGraphBuilder.constant only;"
                " got MLTensor(shape=[3], dtype=float32, constant)",
            ),
            (
                7,
                "a tensor must be an MLTensor; got int; allowed: MLTensor. "
                "create_tensor(), wrap_buffer() and tensor_from_texture() return one. compute() takes arrays",
            ),
        ):
            with pytest.raises(TypeError) as caught:
                call(given)
            assert str(caught.value) == f"{operator}: {rule}"
    with pytest.raises(TypeError, match="output must have the output's data type and size"):
        anywhere.read_tensor(tensor(anywhere), np.zeros(2, np.float32))
    with pytest.raises(TypeError, match="data must have exactly the tensor's bytes"):
        anywhere.write_tensor(tensor(anywhere), np.zeros(2, np.float32))
    for state in (destroyed, plain):  # pywebnn's programs catch these as RuntimeError
        with pytest.raises(RuntimeError, match=r"destroyed|not readable"):
            anywhere.read_tensor(state)


def test_destroyed_while_it_is_read(anywhere: wn.MLContext) -> None:
    made = tensor(anywhere, X)
    early = anywhere.read_tensor_async(made)
    assert early.result().tolist() == X.tolist()
    late = anywhere.read_tensor_async(made)
    made.destroy()
    with pytest.raises(wn.InvalidStateError, match="read_tensor: the tensor was destroyed while it was read"):
        late.result()
    assert early.result().tolist() == X.tolist()


def test_a_tensor_is_a_context_manager(anywhere: wn.MLContext) -> None:
    with tensor(anywhere) as made:
        assert not made.destroyed
    assert made.destroyed


def test_reads_that_nobody_waits_for(context: wn.MLContext) -> None:
    made = tensor(context, X)
    promises = [context.read_tensor_async(made) for _ in range(20)]
    del promises
    assert context.read_tensor(made).tolist() == X.tolist()


def test_a_buffer_that_its_holder_destroys(context: wn.MLContext) -> None:
    made = tensor(context, X)
    made.buffer.destroy()
    with pytest.raises(wn.InvalidStateError, match="read_tensor: the buffer was destroyed"):
        context.read_tensor(made)
    with pytest.raises(wn.InvalidStateError, match="write_tensor: the buffer was destroyed"):
        context.write_tensor(made, X)
    made.destroy()


def test_constant_tensors_live_in_the_graphs_they_built(anywhere: wn.MLContext) -> None:
    data = X.copy()
    made = anywhere.create_constant_tensor(F32X3, data)
    data[:] = 0
    assert (made.constant, made.readable, made.writable) == (True, False, False)
    builder = wn.MLGraphBuilder(anywhere)
    graph = builder.build({"y": builder.add(builder.constant(made), builder.input("x", F32X3))})
    made.destroy()
    assert anywhere.compute(graph, {"x": [0, 0, 0]})["y"].tolist() == X.tolist()
    with pytest.raises(TypeError, match="create_constant_tensor: data must have exactly the tensor's bytes"):
        anywhere.create_constant_tensor(F32X3, X[:2])
    assert anywhere.create_constant_tensor_async(F32X3, X).result().constant
