"""Helpers of the tests of operators that move elements: random bits, comparison bit by bit, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import op_graph
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.core.data_types import DATA_TYPES, numpy_dtype
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

TYPES = tuple(DATA_TYPES)

SIZES = ("uint8", "float16", "int32", "uint64")
"""One data type of each size."""

FOLDED_ELEMENTS = 65535 * 64 * 4 + 3
"""Elements for which one quad per invocation needs more workgroups than a dimension of the grid may have."""


def random_bits(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> Array:
    """Return an array of random bits: NaNs of any payload, subnormals, negative zeros."""
    dtype = numpy_dtype(data_type)
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return rng.integers(0, 256, count, np.uint8).view(dtype).reshape(tuple(shape))


def assert_same_bits(actual: Array, expected: Array) -> None:
    """Compare data type, shape and every bit."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    size = expected.dtype.itemsize
    differ = np.flatnonzero((_bytes(actual, size) != _bytes(expected, size)).any(axis=1))
    assert differ.size == 0, f"{differ.size} of {expected.size} elements differ, first at flat positions {differ[:8]}"


def _bytes(array: Array, size: int) -> Array:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).reshape(-1, size)


def run_moves(
    device: Device,
    graph: Graph,
    inputs: Sequence[Array],
    *,
    folded: bool = False,
    forced: Mapping[str, str] | None = None,
    binding_bytes: int = 0,
) -> list[Array]:
    """Run a graph without passes and compare every output with the reference bit by bit.

    With `folded` the plan is that of hardware, where an invocation writes one quad, and every grid must need folding; with
    `binding_bytes` that of a device which cannot bind more, and some tensor must be bound in parts.
    """
    feeds = {str(i): np.asarray(a, order="C") for i, a in enumerate(inputs) if str(i) in graph.inputs}
    expected = interpret(graph, feeds)
    caps = replace(device.caps, adapter_type="DiscreteGPU") if folded else device.caps
    if binding_bytes:
        caps = replace(caps, limits=(*caps.limits, ("max-storage-buffer-binding-size", binding_bytes)))
    plan = make_plan(verify(graph), Target.of(caps), forced)
    assert not folded or all(dispatch.grid[1] > 1 for dispatch in plan.dispatches)
    assert not binding_bytes or any(r.offset_bytes for d in plan.dispatches for r in d.bindings)
    program = Program(device, plan)
    try:
        actual = program.start(feeds, list(graph.outputs)).result()
    finally:
        program.destroy()
    for name, wanted in expected.items():
        assert_same_bits(actual[name], wanted)
    return list(actual.values())


def check_moves(
    device: Device,
    name: str,
    inputs: Sequence[Array],
    attrs: Mapping[str, Any] | None = None,
    *,
    folded: bool = False,
    forced: str = "",
    binding_bytes: int = 0,
) -> list[Array]:
    """Run one operator on a device, compare it with its reference bit by bit and return the outputs."""
    variants = {name: forced} if forced else {}
    return run_moves(device, op_graph(name, inputs, attrs), inputs, folded=folded, forced=variants, binding_bytes=binding_bytes)


def kernels(name: str, types: Sequence[TensorType], attrs: Mapping[str, Any] | None = None) -> list[str]:
    """Return the kernels chosen for an operator on a device with default limits and no features."""
    graph = op_graph(name, [np.zeros(t.shape, t.numpy) for t in types], attrs)
    return [str(d.spec) for d in make_plan(graph, DEFAULT_TARGET).dispatches]


def refusal(name: str, types: Sequence[TensorType | None], attrs: Mapping[str, Any] | None = None) -> str:
    """Return the message with which a call of label "here" is refused."""
    with pytest.raises(MLTypeError) as raised:
        OPS[name].check(types, attrs or {}, "here")
    return str(raised.value)


def typed(data_type: str, *shape: int) -> TensorType:
    """Return a tensor type."""
    return TensorType(data_type, shape)
