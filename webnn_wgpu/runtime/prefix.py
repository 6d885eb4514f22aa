"""What a dispatch of a program finds in its buffers: the run up to it, read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.data_types import Array
from .recorder import PlainRecorder

if TYPE_CHECKING:
    from .program import Program


def found_by(program: Program, position: int, inputs: Mapping[str, Array]) -> dict[int, Array]:
    """Run the dispatches before one and return the bytes of what it is bound to, but for constants, by binding.

    Args:
        program: the program, with the kernels that are installed in it.
        position: number of the dispatch in the plan.
        inputs: the inputs by name.

    Raises:
        InvalidStateError: the program was destroyed.
        DeviceLostError: the device is gone.
    """
    with program.device.lock:
        program.check()
        program._check_no_steps()
        program._over_own()
        with program.device.translated("running a part of a graph"):
            program._write(inputs)
            program.submit(PlainRecorder(program._dispatches(program._ends)[:position]), program._ends)
            found: dict[int, Array] = {}
            planned = program.plan.dispatches[position]
            for i, bound in program.resources(planned, program._ends).items():
                if i < len(planned.bindings) and planned.bindings[i].kind != "constant":
                    data: Any = program.device.gpu.queue.read_buffer(bound["buffer"], bound["offset"], bound["size"])
                    found[i] = np.frombuffer(data, np.uint8)
            return found
