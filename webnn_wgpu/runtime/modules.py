"""Shader modules of the package's own kernels, whose loops wgpu need not bound on some drivers.

A loop without an end is undefined behavior for a driver, so wgpu adds a counter and an exit to every loop of a shader. Drivers
keep both. NVIDIA's compiler then has a second copy of a product's sums for that exit: 150 to 165 registers instead of 125, and
up to a seventh more time. The loops of the package's templates end for all data, because each moves a counter to a bound or
halves a range. wgpu-native can make a module without such counters. Accesses to buffers stay checked. Other drivers may depend
on the counters: Mesa 22.3 repeats the body of some loops without them (`RuntimeCosts.unbounded_loops`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import wgpu

from .device import Device
from .recorder import uses_raw_calls


def own_module(device: Device, label: str, source: str) -> wgpu.GPUShaderModule:
    """Return the module of a kernel of which it is known that all loops end.

    Args:
        device: the device.
        label: the label of the module.
        source: its WGSL.

    Raises:
        wgpu.GPUError: the source does not compile.
    """
    if not (device.target.costs.runtime.unbounded_loops and can_unbound_loops()):
        return device.gpu.create_shader_module(label=label, code=source)
    native = _native()
    # These C structs keep what they refer to alive.
    wgsl = native.new_struct_p("WGPUShaderSourceWGSL *", code=native.to_c_string_view(source))
    wgsl.chain.next = native.ffi.NULL
    wgsl.chain.sType = native.lib.WGPUSType_ShaderSourceWGSL
    descriptor = native.new_struct_p(
        "WGPUShaderModuleDescriptor *",
        nextInChain=native.ffi.cast("WGPUChainedStruct *", wgsl),
        label=native.to_c_string_view(label),
    )
    internal: Any = device.gpu
    checks = native.lib.WGPUShaderRuntimeChecks_BoundsChecks
    module = native.libf.wgpuDeviceCreateShaderModuleTrusted(internal._internal, descriptor, checks)
    return native.GPUShaderModule(label, module, device.gpu)


def can_unbound_loops() -> bool:
    """Return whether the installed wgpu can leave loops as they are: the C library of wgpu 0.31 always bounds them."""
    return uses_raw_calls() and hasattr(_native().libf, "wgpuDeviceCreateShaderModuleTrusted")


@cache
def _native() -> Any:
    """Return the module of wgpu that calls its C library."""
    from wgpu.backends.wgpu_native import _api

    return _api
