"""Workgroup memory that is not zero when a kernel begins.

WGSL says that it is, and wgpu leaves that to drivers that promise it, of which not every one keeps its word: what a kernel
finds there is left from another one, by chance. So kernels write before they read.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from webnn_wgpu.kernels.sources import source_of
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webnn_wgpu.kernels.spec import KernelSpec
    from webnn_wgpu.runtime.device import Device

_WORKGROUPS = 64  # some for each of a driver's threads

_SPOIL = """
var<workgroup> memory: array<u32, 4096>;  // as much as every device has
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    for (var k = i; k < 4096u; k += 64u) { memory[k] = 0x7fc00000u; }
}
"""


def spoil_workgroup_memory(device: Device) -> None:
    """Have the device's workgroup memory full of NaN."""
    gpu = device.gpu
    if "spoiling" not in device.shared:
        module = gpu.create_shader_module(code=_SPOIL)
        pipeline = gpu.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        device.shared["spoiling"] = pipeline
    encoder = gpu.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(device.shared["spoiling"])
    compute.dispatch_workgroups(_WORKGROUPS)
    compute.end()
    gpu.queue.submit([encoder.finish()])


@cache
def _has_workgroup_memory(spec: KernelSpec) -> bool:
    return "var<workgroup>" in source_of(spec)


@contextmanager
def spoiled_runs() -> Iterator[None]:
    """Have every run of a program whose kernels use workgroup memory begin with memory that is not zero."""
    start = Program.start

    def spoil_and_start(program: Program, *args: Any, **options: Any) -> Any:
        if any(_has_workgroup_memory(planned.spec) for planned in program.plan.dispatches):
            with program.device.lock:
                program.check()
                spoil_workgroup_memory(program.device)
        return start(program, *args, **options)

    patch: Any = Program
    patch.start = spoil_and_start
    try:
        yield
    finally:
        patch.start = start
