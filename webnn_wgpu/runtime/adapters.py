"""The adapters of the machine, and the choice among them."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, TypeAlias

import wgpu

from ..core.errors import NotSupportedError
from ..core.process import process_options
from .driver_symbols import separate_drivers
from .forks import FORK_HINT, FORKED, forked, watch_forks
from .llvmpipe import spare_threads
from .native_header import import_native
from .versions import tested_wgpu

PowerPreference: TypeAlias = Literal["default", "high-performance", "low-power"]

INSTALL_HINT = "Install a Vulkan driver for your GPU, or the software driver: apt-get install mesa-vulkan-drivers libvulkan1"


def all_adapters() -> list[wgpu.GPUAdapter]:
    """Return every adapter, also those that kernels cannot run on."""
    if forked.is_set():
        raise NotSupportedError(FORKED, operator="create_context", hint=FORK_HINT)
    import_native()
    if process_options().without_opengl:
        _leave_out_opengl()
    watch_forks()
    with spare_threads():
        separate_drivers()
        return wgpu.gpu.enumerate_adapters_sync()


def adapters() -> list[wgpu.GPUAdapter]:
    """Return the adapters kernels can run on. OpenGL ones are left out: they lack compute limits and hide Vulkan ones."""
    return [a for a in all_adapters() if a.info["backend_type"] != "OpenGL"]


def choose_adapter(power_preference: PowerPreference, prefer_software: bool) -> wgpu.GPUAdapter | None:
    """Return the first adapter in the order of preference. None if there is none."""
    order = {"DiscreteGPU": 0, "IntegratedGPU": 1, "VirtualGPU": 2, "Unknown": 3, "CPU": 4}
    if power_preference == "low-power":
        order |= {"IntegratedGPU": 0, "DiscreteGPU": 1}
    if prefer_software:
        order = {"CPU": 0}

    def rank(adapter: wgpu.GPUAdapter) -> tuple[int, bool]:
        # Windows offers most GPUs twice. wgpu compiles for Direct3D with FXC, which lacks float16, wide integers and subgroups.
        return order.get(adapter.info["adapter_type"], 5), adapter.info["backend_type"] == "D3D12"

    found = sorted(adapters(), key=rank)
    if prefer_software:
        found = [a for a in found if a.info["adapter_type"] == "CPU"]
    return found[0] if found else None


def _leave_out_opengl() -> None:
    """Have wgpu not load the driver of OpenGL, whose adapters kernels cannot run on: it takes some 11 MB.

    The process has one instance of wgpu, which finds the adapters of all its code: see `optimize_process`. Where the instance
    exists already, it stays as its owner made it.
    """
    if tested_wgpu():
        from wgpu.backends.wgpu_native import extras

        with suppress(RuntimeError):
            # The compiler for Direct3D stays the one that wgpu takes by itself.
            extras.set_instance_extras(backends=["Primary"], dx12_compiler="Undefined")
