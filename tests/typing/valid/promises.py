"""Promises carry the type of their result through `result`, `then` and `await`."""

import asyncio
from typing import Any, assert_type

import numpy.typing as npt

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    building = builder.build_async({"y": builder.abs(builder.input("x", [2], "float32"))})
    assert_type(building, wn.MLPromise[wn.MLGraph])
    graph = building.result()
    computing = context.compute_async(graph, {"x": [-1, -2]})
    assert_type(computing, wn.MLPromise[wn.MLComputeResult])
    total = computing.then(lambda result: float(result["y"].sum()))
    assert_type(total, wn.MLPromise[float])
    assert total.sync_wait() == 3

    async def awaited() -> npt.NDArray[Any]:
        result = await context.compute_async(graph, {"x": [-1, -2]})
        assert_type(result, wn.MLComputeResult)
        return result["y"]

    assert asyncio.run(awaited()).tolist() == [1, 2]
    assert_type(context.lost, wn.MLPromise[wn.MLContextLostInfo])
