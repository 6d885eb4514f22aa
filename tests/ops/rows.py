"""Helpers of the tests of operators that reduce rows: the variants, numbers that do not cancel, choices of other devices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import op_graph
from webnn_wgpu.core.data_types import numpy_dtype
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device

VARIANTS = ("subgroup", "workgroup", "plain")


def runs(variant: str, data_type: str) -> bool:
    """Return whether a variant exists for a data type: subgroup operations take no 64-bit integers."""
    return variant != "subgroup" or numpy_dtype(data_type).itemsize < 8


def positive(rng: np.random.Generator, data_type: str, shape: Sequence[int]) -> Array:
    """Return numbers of 0.5 to 1.5, whose sums do not cancel, so that errors can be counted in ULP; integers at random."""
    dtype = numpy_dtype(data_type)
    if dtype.kind == "f":
        return rng.uniform(0.5, 1.5, tuple(shape)).astype(dtype).reshape(shape)
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, tuple(shape), dtype, endpoint=True))


def as_hardware(caps: Caps) -> Caps:
    """Return the capabilities of a hardware adapter with a usual number of cores that is otherwise the same."""
    return replace(caps, adapter_type="DiscreteGPU", device="")


def plan_of(
    caps: Caps,
    name: str,
    inputs: Sequence[Array | None],
    attrs: Mapping[str, Any] | None = None,
    forced: Mapping[str, str] | None = None,
) -> ExecutionPlan:
    """Return the plan of one operator."""
    return make_plan(op_graph(name, inputs, attrs), Target.of(caps), forced)


def variants_of(plan: ExecutionPlan) -> list[str]:
    """Return the variant of every dispatch."""
    return [dispatch.spec.param("variant") for dispatch in plan.dispatches]


def run_plan(device: Device, plan: ExecutionPlan, inputs: Sequence[Array | None]) -> Array:
    """Run a plan with one output."""
    program = Program(device, plan)
    try:
        return program.start({str(i): a for i, a in enumerate(inputs) if a is not None}, ["0"]).result()["0"]
    finally:
        program.destroy()
