"""Golden models that are graphs, as data which the package of any revision can plan. This module imports none of its parts.

A graph is a mapping: `values`, its inputs and constants; `nodes`, its calls of operators; `outputs`, numbers of values by name,
without which the outputs are all results of the last node. `values` and the results of all nodes are numbered in this order.
A call of a builder's method, as programs make it, is a mapping too: `method`, and `arguments` by name.
"""

from __future__ import annotations

import base64
import zlib
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

import webnn_wgpu as wn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SEEDS = 256
"""Constants of standard normal numbers are stored as one of so many seeds."""


def packed(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return a constant as data: as few bytes as its contents allow."""
    found: dict[str, Any] = {"type": str(array.dtype), "shape": list(array.shape)}
    if array.size > 1 and array.dtype.kind == "f":
        for seed in np.flatnonzero(_first(array.dtype) == array.flat[0]):
            if np.array_equal(array, normal(int(seed), array.shape, array.dtype)):
                return found | {"normal": int(seed)}
    return found | {"zlib": base64.b64encode(zlib.compress(array.tobytes(), 9)).decode()}


def unpacked(data: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Return the constant that `packed` made data of."""
    dtype, shape = np.dtype(data["type"]), tuple(data["shape"])
    if "normal" in data:
        return normal(data["normal"], shape, dtype)
    return np.frombuffer(zlib.decompress(base64.b64decode(data["zlib"])), dtype).reshape(shape)


@cache
def _first(dtype: Any) -> np.ndarray[Any, Any]:
    """Return the first number of every seed."""
    return np.concatenate([normal(seed, (1,), dtype) for seed in range(SEEDS)])


def normal(seed: int, shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """Return standard normal numbers."""
    return _normal(seed, tuple(shape), np.dtype(dtype))


@lru_cache(2048)
def _normal(seed: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    # The same constants are in many graphs, and each graph is planned for all records.
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def plan_graph(context: wn.MLContext, graph: Mapping[str, Any]) -> None:
    """Plan a graph; the context's backend remembers the plan, or why there is none."""
    builder = wn.MLGraphBuilder(context)
    if "method" in graph:
        methods: Any = builder.ext if graph["method"].startswith("x.") else builder
        results = getattr(methods, graph["method"].removeprefix("x."))(**_arguments(builder, graph["arguments"]))
        _plan(builder, _named(results if isinstance(results, list | tuple) else [results]))
        return
    values: list[wn.MLOperand] = []
    for each in graph["values"]:
        if "name" in each:
            values.append(builder.input(each["name"], {"dataType": each["type"], "shape": each["shape"]}))
        else:
            values.append(builder.constant(unpacked(each)))
    results: list[wn.MLOperand] = []
    for node in graph["nodes"]:
        operands = [None if i is None else values[i] for i in node["inputs"]]
        results = builder._operator(node["op"], operands, node["attrs"], node["label"])
        values += results
    outputs = {name: values[i] for name, i in graph["outputs"].items()} if "outputs" in graph else _named(results)
    _plan(builder, outputs, wide_float16=graph.get("wide", False))


def _named(results: Sequence[wn.MLOperand]) -> dict[str, wn.MLOperand]:
    return {f"output{i}": result for i, result in enumerate(results)}


def _plan(builder: wn.MLGraphBuilder, outputs: Mapping[str, wn.MLOperand], **options: Any) -> None:
    with suppress(wn.WebNNError):
        builder.plan(outputs, **options)


def _arguments(builder: wn.MLGraphBuilder, arguments: Mapping[str, Any]) -> dict[str, Any]:
    operands: dict[str, wn.MLOperand] = {}

    def value(given: Any) -> Any:
        if isinstance(given, list):
            return [value(each) for each in given]
        if not isinstance(given, dict):
            return given
        if "activation" in given:
            return getattr(builder, given["activation"])()
        # Equal descriptions are the same operand.
        descriptor = {"dataType": given["type"], "shape": given["shape"]}
        if str(given) not in operands:
            operands[str(given)] = builder.input(f"i{len(operands)}", descriptor)
        return operands[str(given)]

    return {name: value(given) for name, given in arguments.items()}
