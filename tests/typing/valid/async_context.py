"""A context whose tensor methods are coroutines; the others are the context's own."""

import asyncio
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    asynchronous = wn.AsyncMLContext(context)
    builder = asynchronous.create_graph_builder()
    assert_type(builder, wn.MLGraphBuilder)
    graph = builder.build({"y": builder.neg(builder.input("x", [2], "float32"))})
    assert_type(asynchronous.compute(graph, {"x": [1, 2]}), wn.MLComputeResult)
    assert asynchronous.accelerated == context.accelerated

    async def run() -> npt.NDArray[Any]:
        source, target = asynchronous.create_tensor([2], "float32"), asynchronous.createTensor([2], "float32")
        await asynchronous.write_tensor_async(source, [1, 2])
        await asynchronous.dispatch(graph, {"x": source}, {"y": target})
        memory = np.empty(2, np.float32)
        assert_type(await asynchronous.read_tensor_async(target), npt.NDArray[Any])
        await asynchronous.readTensorAsync(target, memory)
        return memory

    assert asyncio.run(run()).tolist() == [-1, -2]
