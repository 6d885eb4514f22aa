"""Runs graphs on a device whose limit on what it binds at once is lowered, so that small tensors are too large."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import op_graph
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import ExecutionPlan, make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

LIMIT = 2048
"""Bytes of a binding, unless a test says otherwise: 512 float32."""


def limited(caps: Caps, binding: int = LIMIT, **limits: int) -> Caps:
    changed = dict(caps.limits) | {"max-storage-buffer-binding-size": binding}
    changed |= {name.replace("_", "-"): value for name, value in limits.items()}
    return replace(caps, limits=tuple(changed.items()))


def run_limited(
    device: Device, graph: Graph, feeds: Mapping[str, Array], caps: Caps, forced: Mapping[str, str] | None = None
) -> tuple[ExecutionPlan, dict[str, Array]]:
    """Run a graph planned for lowered limits, and check that the plan keeps them."""
    plan = make_plan(graph, Target.of(caps), forced)
    limit, alignment = (
        caps.limit(f"{name}") for name in ("max-storage-buffer-binding-size", "min-storage-buffer-offset-alignment")
    )
    for dispatch in plan.dispatches:
        for binding, resource in zip(dispatch.spec.bindings, dispatch.bindings, strict=True):
            assert binding.is_texture or resource.size_bytes <= limit
            assert resource.offset_bytes % alignment == 0
    program = Program(device, plan)
    try:
        return plan, program.start(feeds, list(graph.outputs)).result()
    finally:
        program.destroy()


def check_large(
    device: Device,
    name: str,
    inputs: Sequence[Array | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    constants: Collection[int] = (),
    forced: Mapping[str, str] | None = None,
    caps: Caps | None = None,
    atol: float = 0,
    divided: bool = True,
) -> ExecutionPlan:
    """Run one operator with a lowered limit and compare it with its reference; `divided` says that not everything fits."""
    graph = op_graph(name, inputs, attrs, constants)
    feeds = {str(i): a for i, a in enumerate(inputs) if a is not None and i not in constants}
    plan, actual = run_limited(device, graph, feeds, caps or limited(device.caps), forced)
    parts = any(b.window for d in plan.dispatches for b in d.spec.bindings) or len(plan.constants) > len(constants)
    assert parts or not divided, "everything fits: nothing is tested"
    for output, wanted in interpret(graph, feeds).items():
        assert_within(actual[output], wanted, "ATOL", atol)
    return plan


def numbered(data_type: str, shape: Sequence[int]) -> Array:
    """Elements that are all different, as far as the data type has so many."""
    return np.arange(math.prod(shape), dtype=np.int64).astype(data_type).reshape(shape)
