"""What operators take on the device, and which share of its peaks they reach."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.benchmarks.kernel_cases import CASES, Case
from tests.benchmarks.results import Results
from webnn_wgpu.plan import make_plan
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.program import Program

ROUNDS = 9


@pytest.mark.bench
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels(case: Case, context: wn.MLContext, results: Results) -> None:
    peak = wn.measured_peak(context)
    device = Device.of(context.device)
    graph = case.graph()
    plan = make_plan(graph, device.target)
    program = Program(device, plan)
    given = {str(i): array for i, array in enumerate(case.arrays()) if array is not None}
    try:
        times = [program.kernel_times({name: given[name] for name in graph.inputs}) for _ in range(ROUNDS)]
    finally:
        program.destroy()
    if times[0] is None:
        pytest.skip("the device takes no timestamps")
    totals = sorted(float(np.sum(found)) for found in times if found is not None)
    # A peak is what was seen at best, so a kernel is held against it at its best too.
    best = totals[0] * 1e-6
    results.add(
        "kernels",
        case.name,
        median_us=float(np.median(totals)),
        best_us=totals[0],
        gflops=case.flops / best / 1e9,
        gbytes=case.bytes() / best / 1e9,
        share_of_peak=max(case.flops / peak.flops, case.bytes() / peak.bytes_per_second) / best,
        kernels=[str(d.spec) for d in plan.dispatches],
        reason=plan.dispatches[-1].reason,
    )
