"""What every plan must keep, and the capability records of several devices."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from webnn_wgpu.core.caps import Caps
from webnn_wgpu.kernels.element import padded_bytes
from webnn_wgpu.kernels.templates import render

if TYPE_CHECKING:
    from webnn_wgpu.plan import ExecutionPlan

RECORDS = Path(__file__).resolve().parents[1] / "data" / "caps"
DEVICES = ("lavapipe", "webgpu-default", "nvidia", "amd", "intel", "apple", "qualcomm", "d3d12")


def caps_of(device: str) -> Caps:
    """Return the record of a device."""
    return Caps.from_json((RECORDS / f"{device}.json").read_text(encoding="utf-8"))


def check_plan(plan: ExecutionPlan, caps: Caps, *, rendered: bool = False) -> None:
    """Assert that a device can run a plan and that nothing is read before it is written; `rendered` renders its shaders."""
    assert json.loads(plan.to_json())["summary"] == plan.summary()
    assert plan.slot_bytes <= plan.unshared_bytes
    lengths = {("slot", i): slot.size_bytes for i, slot in enumerate(plan.slots)}
    lengths |= {("input", name): padded_bytes(t.size_bytes) for name, t in plan.inputs.items()}
    lengths |= {("output", name): padded_bytes(t.size_bytes) for name, t in plan.outputs.items()}
    lengths |= {("constant", i): padded_bytes(c.type.size_bytes) for i, c in enumerate(plan.constants)}
    filled = {key for key in lengths if key[0] in ("input", "constant")}
    offset_alignment = caps.limit("min-storage-buffer-offset-alignment")
    used = 0
    for dispatch in plan.dispatches:
        spec = dispatch.spec
        assert set(spec.features) <= caps.features, dispatch.label
        bound = list(zip(spec.bindings, dispatch.bindings, strict=True))
        buffers = [r for b, r in bound if not b.is_texture]
        assert len(buffers) <= caps.limit("max-storage-buffers-per-shader-stage"), dispatch.label
        assert len(bound) - len(buffers) <= caps.limit("max-storage-textures-per-shader-stage")
        for binding, resource in bound:
            assert binding.is_texture <= (resource.kind == "constant")
            packed = resource.kind == "constant" and plan.constants[int(resource.key)].packing is not None
            key = (resource.kind, resource.key)
            assert resource.offset_bytes % offset_alignment == 0
            if not packed:
                assert resource.offset_bytes + resource.size_bytes <= lengths[key], (dispatch.label, binding.name)
                assert resource.size_bytes % 4 == 0
                assert resource.size_bytes <= caps.limit("max-storage-buffer-binding-size")
            assert binding.access == "write" or key in filled, f"{dispatch.label} reads {resource} before it is written"
        wrote = [(r.kind, r.key) for b, r in bound if b.access == "write"]
        assert wrote, dispatch.label
        assert len(set(wrote)) == len(wrote)
        assert not {kind for kind, _ in wrote} & {"input", "constant"}
        assert not set(wrote) & {(r.kind, r.key) for b, r in bound if b.access != "write"}, dispatch.label
        filled |= set(wrote)
        _check_uniforms(plan, dispatch.uniform_offset, dispatch.uniform_size, len(spec.uniforms), caps)
        assert dispatch.uniform_offset >= used
        used = dispatch.uniform_offset + dispatch.uniform_size
        limit = caps.limit("max-compute-workgroups-per-dimension")
        assert all(1 <= n <= limit for n in dispatch.grid), dispatch.label
        if rendered:
            assert "fn main(" in render(spec)
    assert used == len(plan.uniforms)
    assert set(lengths) == filled, "a slot or output that nothing writes"


def _check_uniforms(plan: ExecutionPlan, offset: int, size: int, fields: int, caps: Caps) -> None:
    assert offset % caps.limit("min-uniform-buffer-offset-alignment") == 0
    assert size == -(-fields * 4 // 16) * 16 <= caps.limit("max-uniform-buffer-binding-size")
    assert len(struct.unpack(f"<{size // 4}I", plan.uniforms[offset : offset + size])) >= fields
