"""Bounce buffers: the package's memory between a caller's tensor and kernels that need more padding than the tensor has.

Kernels read and write quads of elements, and 8-bit elements in whole words. The package's own buffers have padding for that
behind the last element (`padded_bytes`). In a caller's buffer, the bytes behind a tensor belong to the caller. Kernels may read
these bytes, because no result depends on them. Kernels never write them.

A tensor whose size is a multiple of the unit that a kernel stores is therefore bound directly. For any other tensor, a run
begins with a copy of the tensor into a bounce buffer. If the run writes the tensor, the run ends with a copy back. The copy
back preserves the other bytes of the tensor's last word. All copies are dispatches of the run's compute pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ..kernels.element import STORAGE_ALIGNMENT_BYTES
from ..kernels.spec import Binding
from ..plan.execution_plan import ExecutionPlan, Resource
from .bound import Ends
from .buffer import Buffer
from .device import Device
from .recorder import Dispatch
from .transfers import copy_bytes

Key: TypeAlias = tuple[str, str]
"""One of a graph's ends: "input" or "output", and the name."""


def bound_bytes(binding: Binding, resource: Resource, buffer: Buffer) -> int | None:
    """Return the number of bytes of a buffer to bind.

    Args:
        binding: a binding of a kernel.
        resource: the part of a tensor that the plan binds there, with the padding behind the last element.
        buffer: the tensor's memory.

    Returns:
        None if the kernel would write behind the tensor's last element, or could not read it.
    """
    reads = binding.access == "read"
    if resource.offset_bytes + resource.size_bytes <= (buffer.reach_bytes if reads else buffer.data_bytes):
        return resource.size_bytes
    whole = (buffer.size_bytes if reads else buffer.data_bytes) % binding.unit_bytes == 0
    return buffer.size_bytes - resource.offset_bytes if whole else None


def bounce_buffers(plan: ExecutionPlan, ends: Ends, own: Callable[[Key], Buffer]) -> dict[Key, Buffer]:
    """Return the package's own buffers to bind in place of the tensors that some kernel cannot bind.

    Args:
        plan: the program's plan.
        ends: the caller's tensors.
        own: returns the program's own buffer of a graph input or output. For an output that is an alias, that is the buffer of
            the input.
    """
    if all(buffer.data_bytes % STORAGE_ALIGNMENT_BYTES == 0 for buffer in ends.values()):
        return {}
    tight = {
        id(ends[end])
        for dispatch in plan.dispatches
        for binding, resource in zip(dispatch.spec.bindings, dispatch.bindings, strict=True)
        if (end := (resource.kind, str(resource.key))) in ends and bound_bytes(binding, resource, ends[end]) is None
    }
    return {end: own(end) for end, buffer in ends.items() if id(buffer) in tight}


def with_copies(
    device: Device, plan: ExecutionPlan, ends: Ends, bounces: Mapping[Key, Buffer], dispatches: Sequence[Dispatch]
) -> list[Dispatch]:
    """Return a plan's dispatches, with copies into bounce buffers before the first and copies out of them after the last."""
    written = {
        (resource.kind, str(resource.key))
        for dispatch in plan.dispatches
        for binding, resource in zip(dispatch.spec.bindings, dispatch.bindings, strict=True)
        if binding.access == "write"
    }
    before: list[Dispatch] = []
    after: list[Dispatch] = []
    for end, own in bounces.items():
        size = ends[end].data_bytes
        if end[0] == "input":
            before += copy_bytes(device, ends[end], own, size)
        if end in written:
            after += copy_bytes(device, own, ends[end], size)
    found = list(dispatches)
    found[0] = replace(found[0], before=tuple(before))
    found[-1] = replace(found[-1], after=tuple(after))
    return found
