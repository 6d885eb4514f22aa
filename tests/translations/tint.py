"""Tint, the shader compiler of Dawn and therefore of Chrome: it checks WGSL on Dawn's null backend, which takes no driver.

The bindings are those of the package `dawn-python`, from which only the functions needed here are called.
"""

from __future__ import annotations

import ctypes
from typing import Any

FEATURES = ("ShaderF16", "Subgroups", "SubgroupsF16")


def missing() -> str:
    """Return what must be installed before Tint can be asked; "" where nothing is missing."""
    try:
        import pydawn.webgpu  # noqa: F401 - loads Dawn's library
    except (ImportError, OSError, AssertionError) as error:
        return f"Tint is not tested: the package dawn-python cannot be loaded here ({error})"
    return ""


def for_tint(wgsl: str, features: frozenset[str]) -> str:
    """Return a kernel as browsers get it. They require `enable subgroups;`, which wgpu's parser refuses."""
    return f"enable subgroups;\n{wgsl}" if "subgroup" in features else wgsl


class Tint:
    """A device of Dawn's null backend, whose shader modules Tint validates."""

    def __init__(self) -> None:
        from pydawn import utils, webgpu

        self._utils: Any = utils
        self._webgpu: Any = webgpu
        options = webgpu.WGPURequestAdapterOptions()
        options.backendType = webgpu.WGPUBackendType_Null
        found: list[Any] = []

        def note(status: int, adapter: Any, message: Any, _: Any) -> None:
            assert status == webgpu.WGPURequestAdapterStatus_Success, utils.from_wgpu_str(message)
            found.append(adapter)

        info = webgpu.WGPURequestAdapterCallbackInfo()
        info.mode = webgpu.WGPUCallbackMode_WaitAnyOnly
        info.callback = webgpu.WGPURequestAdapterCallback(note)
        utils.wait(webgpu.wgpuInstanceRequestAdapterF(utils.instance, options, info))
        features = [getattr(webgpu, f"WGPUFeatureName_{name}") for name in FEATURES]
        self._device = utils.request_device_sync(found[0], features)

    def refusal(self, wgsl: str) -> str:
        """Return why Tint refuses a shader; "" where it accepts it."""
        webgpu = self._webgpu
        text = wgsl.encode()
        source = webgpu.WGPUShaderModuleWGSLDescriptor()
        source.chain.sType = webgpu.WGPUSType_ShaderSourceWGSL
        source.code.data = ctypes.cast(ctypes.create_string_buffer(text), ctypes.POINTER(ctypes.c_char))
        source.code.length = len(text)
        descriptor = webgpu.WGPUShaderModuleDescriptor()
        descriptor.nextInChain = ctypes.cast(ctypes.pointer(source), ctypes.POINTER(webgpu.struct_WGPUChainedStruct))
        webgpu.wgpuDevicePushErrorScope(self._device, webgpu.WGPUErrorFilter_Validation)
        module = webgpu.wgpuDeviceCreateShaderModule(self._device, descriptor)
        refusal: str | None = self._utils.pop_error(self._device)
        webgpu.wgpuShaderModuleRelease(module)
        return refusal or ""
