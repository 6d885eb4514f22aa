"""An application's own kernel on a device, run between guard regions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..api.backend import DeviceBackend
from ..api.context import MLContext
from ..api.internals import internals
from ..api.own_kernels import completed, grid_of
from ..core.data_types import Array
from ..kernels.element import ELEMENTS
from ..kernels.own import declared_bindings, unused
from ..kernels.spec import Grid
from ..kernels.templates import environment
from ..runtime.device import Device
from ..runtime.own_kernels import RunArgument, run_kernel
from .guards import FILL_PATTERN, GUARD_BYTES, GuardedBuffer
from .kernel_report import KernelCase, Number

_CLEAR = """
var<workgroup> memory: array<u32, 4096>;  // as much as every device has
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    for (var k = i; k < 4096u; k += 64u) { memory[k] = 0u; }
}
"""
_CLEAR_GRID: Grid = (256, 1, 1)
"""Some workgroups for each of a software adapter's threads."""


class KernelOnDevice:
    """A source for a case on a context, and how it is run."""

    def __init__(
        self,
        source: str,
        case: KernelCase,
        workgroups: Any,
        parameters: Mapping[str, Any] | None,
        context: MLContext,
        fail: Callable[..., Exception],
    ) -> None:
        self.case, self.context, self.fail = case, context, fail
        self.device: Device = cast("DeviceBackend", internals(context).backend).device
        self._workgroups, self._parameters, self._given = workgroups, parameters, source
        if parameters is not None:
            source = environment().from_string(source).render(dict(parameters), dtypes=case.dtypes, shapes=case.shapes)
        self.source, _ = completed(source, case.constants, case.dtypes, fail)
        self.bindings = declared_bindings(self.source, fail)
        self.grid: Grid = grid_of(workgroups(case) if callable(workgroups) else workgroups, context.caps, fail)

    @property
    def missing(self) -> str:
        """The features that its data types need and the device lacks."""
        needed = {ELEMENTS[name].feature for name in self.case.dtypes if name in ELEMENTS} - {""}
        return ", ".join(sorted(needed - self.context.caps.features))

    def varied(self, changes: Mapping[str, Number]) -> KernelOnDevice:
        """Return it with other constants.

        Raises:
            MLTypeError: neither the source nor the case has a constant of the name, so the run would repeat the case.
        """
        if unknown := unused(self._given, changes.keys() - self.case.constants.keys()):
            rule = "variations must name constants of the source or the case"
            raise self.fail(rule, got=", ".join(sorted(unknown)), allowed=", ".join(self.case.constants))
        case = replace(self.case, constants={**self.case.constants, **changes})
        return KernelOnDevice(self._given, case, self._workgroups, self._parameters, self.context, self.fail)

    def run(
        self,
        contents: Mapping[str, Array],
        sizes: Mapping[str, int],
        *,
        source: str = "",
        free: Collection[str] = (),
        guard_pattern: int = FILL_PATTERN,
        content_pattern: int = FILL_PATTERN,
    ) -> tuple[dict[str, Array], list[str]]:
        """Run the kernel once, and return the bytes of its outputs and messages about writes outside of buffers.

        The method clears workgroup memory before. WGSL requires that of drivers, but not every driver complies. The content of
        an earlier run may happen to be the values that a kernel should have waited for.

        Args:
            contents: the initial content of buffers. The other buffers get a fill pattern.
            sizes: the size of each buffer in bytes.
            source: the source to run instead of its own source.
            free: the buffers that are bound together with the guard region behind them.
            guard_pattern: the byte that fills the guard regions of buffers.
            content_pattern: the byte that fills buffers without a content.
        """
        guarded: dict[str, GuardedBuffer] = {}
        try:
            arguments: list[RunArgument] = []
            for binding in self.bindings:
                name, words = binding.name, -(-sizes[binding.name] // 4) * 4
                buffer = GuardedBuffer(
                    self.device,
                    words,
                    name,
                    behind_bytes=behind_bytes(words),
                    guard_pattern=guard_pattern,
                    content_pattern=content_pattern,
                )
                guarded[name] = buffer
                if name in contents:
                    buffer.tensor.write(np.ascontiguousarray(contents[name]))
                bound = buffer.open if name in free else buffer.tensor
                arguments.append(RunArgument(bound, name, "read" if binding.access == "read" else "write"))
            run_kernel(self.device, _CLEAR, (), _CLEAR_GRID)
            run_kernel(self.device, source or self.source, arguments, self.grid)
            read = {name: buffer.read() for name, buffer in guarded.items()}
        finally:
            for buffer in guarded.values():
                buffer.destroy()
        outputs = [b.name for b in self.bindings if b.access != "read"]
        return {n: read[n][0][: sizes[n]] for n in outputs}, [damage for _, damage in read.values() if damage]


def behind_bytes(size_bytes: int) -> int:
    """Return the size of the guard region behind a buffer: its own size, so that a wrong stride is seen, within limits."""
    return min(max(GUARD_BYTES, -(-size_bytes // GUARD_BYTES) * GUARD_BYTES), 64 * GUARD_BYTES)
