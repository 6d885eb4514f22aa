"""The capabilities of a device: its features and limits, and the size of its subgroups, which a probe measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ..core import cache
from ..core.cache import key_of
from ..core.caps import DEFAULT_LIMITS, SCHEMA_VERSION, Caps


def driver_of(info: Mapping[str, Any]) -> str:
    """Return an adapter's driver for people: its version, or its name if the driver reports no more."""
    return str(info.get("description") or info.get("vendor") or "")


def caps_of(gpu: wgpu.GPUDevice) -> Caps:
    """Return the features, limits and identity of a device."""
    info: Mapping[str, Any] = gpu.adapter.info
    limits = {name: int(gpu.limits.get(name, default)) for name, default in DEFAULT_LIMITS.items()}
    features = frozenset(str(f) for f in gpu.features)
    identity: dict[str, Any] = {
        "adapter_type": str(info.get("adapter_type", "Unknown")),
        "vendor": str(info.get("vendor", "")),
        "device": str(info.get("device", "")),
        "driver": driver_of(info),
        "backend": str(info.get("backend_type", "")),
    }
    size = _subgroup_size(gpu, identity) if "subgroup" in features else 0
    return Caps(features=features, limits=tuple(limits.items()), subgroup_size=size, **identity)


_PROBE = """
@group(0) @binding(0) var<storage, read_write> size: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(subgroup_size) n: u32) { size[0] = n; }
"""


def _subgroup_size(gpu: wgpu.GPUDevice, identity: Mapping[str, str]) -> int:
    """Return the subgroup size that shaders really run with: adapters report a range, and drivers misreport it."""
    name = f"probes/subgroup-{key_of(SCHEMA_VERSION, wgpu.__version__, *identity.values())}"
    known = cache.read(name)
    if known is not None and known.isdecimal():
        return int(known)
    module = gpu.create_shader_module(code=_PROBE)
    layout = gpu.create_bind_group_layout(
        entries=[{"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}]
    )
    pipeline = gpu.create_compute_pipeline(
        layout=gpu.create_pipeline_layout(bind_group_layouts=[layout]), compute={"module": module, "entry_point": "main"}
    )
    buffer = gpu.create_buffer(size=4, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
    group = gpu.create_bind_group(
        layout=layout, entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 4}}]
    )
    encoder = gpu.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(1)
    compute.end()
    gpu.queue.submit([encoder.finish()])
    data: Any = gpu.queue.read_buffer(buffer)
    size = int(np.frombuffer(data, np.uint32)[0])
    cache.write(name, str(size))
    return size
