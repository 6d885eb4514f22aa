"""Programs written for pywebnn, and lines of the specification's JavaScript samples."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import X
from webnn_wgpu.api.pywebnn import AsyncMLContext


def test_a_pywebnn_program(anywhere: wn.MLContext) -> None:
    builder = anywhere.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    w = builder.constant(np.ones((3, 2), np.float32))
    y = builder.relu(builder.matmul(x, w))
    assert x.shape == [2, 3]
    assert (x.name, x.data_type) == ("x", "float32")
    graph = builder.build({"y": y})
    assert graph.get_input_names() == ["x"]
    assert graph.get_output_names() == ["y"]
    assert graph.operation_count == 2
    result = anywhere.compute(graph, {"x": np.ones((2, 3), np.float32)})
    assert result["y"].tolist() == [[3, 3], [3, 3]]


def test_pywebnn_tensors(anywhere: wn.MLContext) -> None:
    builder = anywhere.create_graph_builder()
    graph = builder.build({"y": builder.neg(builder.input("x", [3], "float32"))})
    a = anywhere.create_host_tensor([3], "float32")
    b = anywhere.create_tensor([3], "float32", readable=True)
    anywhere.write_tensor(a, X)
    anywhere.dispatch(graph, {"x": a}, {"y": b})
    assert anywhere.read_tensor(b).tolist() == [-1, 2, -3]
    assert all(part in repr(a) for part in ("MLTensor", "[3]", "float32"))
    assert a.size == 12
    a.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        anywhere.read_tensor(a)
    with pytest.raises(RuntimeError, match="not writable"):
        anywhere.write_tensor(b, X)


def test_pywebnn_device_tensors(anywhere: wn.MLContext) -> None:
    builder = anywhere.create_graph_builder()
    graph = builder.build({"y": builder.neg(builder.input("x", [3], "float32"))})
    made = anywhere.create_device_tensor(graph, [3], "float32")
    made.write(X)
    assert made.read().tolist() == X.tolist()
    assert all(part in repr(made) for part in ("MLDeviceTensor", "[3]", "float32"))
    assert (made.size, made.shape, made.data_type) == (12, [3], "float32")
    assert made.device in ("cpu", "gpu")
    assert made.backend == anywhere.description
    made.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        made.read()


def test_pywebnn_async_context(anywhere: wn.MLContext) -> None:
    ctx = AsyncMLContext(anywhere)
    assert (ctx.accelerated, ctx.power_preference) == (anywhere.accelerated, "default")

    async def run() -> Any:
        builder = ctx.create_graph_builder()
        graph = builder.build({"y": builder.neg(builder.input("x", [3], "float32"))})
        a, b = (ctx.create_tensor([3], "float32") for _ in range(2))
        await ctx.write_tensor_async(a, X)
        await ctx.dispatch(graph, {"x": a}, {"y": b})
        return await ctx.read_tensor_async(b)

    assert asyncio.run(run()).tolist() == [-1, 2, -3]


def test_javascript_of_2026(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    descriptor = {"dataType": "float32", "shape": [2, 2]}
    a, b = builder.input("A", descriptor), builder.input("B", descriptor)
    constant = builder.constant(descriptor, np.full(4, 0.2, np.float32))
    c = builder.add(builder.mul(a, constant), b)
    graph = builder.build({"C": c})
    tensors = {n: anywhere.createTensor({**descriptor, "writable": True}) for n in "AB"}
    output = anywhere.createTensor({**descriptor, "readable": True})
    for tensor in tensors.values():
        anywhere.writeTensor(tensor, np.ones(4, np.float32))
    anywhere.dispatch(graph, tensors, {"C": output})
    np.testing.assert_allclose(anywhere.readTensor(output), np.full((2, 2), 1.2, np.float32))
    assert anywhere.opSupportLimits()["maxTensorByteLength"] > 0


def test_javascript_of_2024(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    operand_type = {"dataType": "float32", "dimensions": [2, 2]}
    a = builder.input("A", operand_type)
    c = builder.reduceMean(builder.leakyRelu(a, {"alpha": 0.5}), {"axes": [0], "keepDimensions": True})
    assert (c.shape(), c.dataType()) == ([1, 2], "float32")
    graph = builder.build({"C": c})
    outputs = {"C": np.zeros(2, np.float32)}
    result = anywhere.compute(graph, {"A": np.float32([-2, 2, -4, 4])}, outputs)
    assert result.outputs["C"] is outputs["C"]
    assert outputs["C"].tolist() == [-1.5, 3]
    assert graph.getInputNames() == ["A"]
