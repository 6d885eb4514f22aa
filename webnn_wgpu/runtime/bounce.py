"""Bounce buffers: memory of a program's own between a caller's tensor and kernels that need more room than the tensor has.

Kernels read and write quads of elements, and 8-bit elements in whole words. Buffers of the package's own have room for that
behind the last element (`padded_bytes`). Bytes behind a tensor in a caller's buffer belong to somebody else. They may be read,
because no result depends on them, but they are never written.

So a tensor whose size is a multiple of what a kernel writes at once is bound exactly. Where that is not so, a run begins with a
copy of the tensor into a bounce buffer, and ends with a copy out of it if the run has written it. That copy leaves the other
bytes of the tensor's last word as they are. All copies are dispatches of the run's compute pass.
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
    """Return how many bytes of a buffer to bind.

    Args:
        binding: a binding of a kernel.
        resource: the part of a tensor that the plan binds there, with the room behind the last element.
        buffer: the tensor's memory.

    Returns:
        None where the kernel would write behind the tensor's last element, or could not read it.
    """
    reads = binding.access == "read"
    if resource.offset_bytes + resource.size_bytes <= (buffer.reach_bytes if reads else buffer.data_bytes):
        return resource.size_bytes
    whole = (buffer.size_bytes if reads else buffer.data_bytes) % binding.unit_bytes == 0
    return buffer.size_bytes - resource.offset_bytes if whole else None


def bounce_buffers(plan: ExecutionPlan, ends: Ends, own: Callable[[Key], Buffer]) -> dict[Key, Buffer]:
    """Return the memory of the program's own to bind in place of those tensors that some kernel cannot be bound to.

    Args:
        plan: the program's plan.
        ends: the caller's tensors.
        own: returns the program's own buffer of an end; of an output that is an alias the input's.
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
