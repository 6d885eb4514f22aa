"""The checks of a caller's command encoders and passes before the package records into them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import wgpu

from ..core.errors import InvalidStateError, MLTypeError
from .device import Device
from .messages import wgpu_message

_LOCKED = "locked"
"""The word of wgpu's message about an encoder with an open pass."""


def check_encoder(device: Device, given: Any, kind: type[Any], what: str) -> None:
    """Raise unless `given` is an encoder or a pass of a kind, on a device that is still there.

    Raises:
        MLTypeError: another kind of object, or another device's.
        DeviceLostError: the device is gone.
    """
    if not isinstance(given, kind):
        others = {"encoder": wgpu.GPUCommandEncoder, "compute_pass": wgpu.GPUComputePassEncoder}
        hint = next((f"Give it as `{name}=`" for name, other in others.items() if isinstance(given, other)), "")
        raise MLTypeError(f"{what} must be a wgpu.{kind.__name__}", got=type(given).__name__, hint=hint)
    if given._device is not device.gpu:
        raise MLTypeError(
            f"{what} belongs to another device",
            label=given.label,
            got=repr(given._device),
            hint="Create it with the context's device, context.device",
        )
    device.check()


@contextmanager
def recording(what: str, with_open_pass: str = "End passes first") -> Generator[None]:
    """Raise wgpu's errors about an encoder or pass that has ended as InvalidStateError.

    Args:
        what: the argument of the call: "encoder" or "compute_pass".
        with_open_pass: the remedy for an encoder with an open pass.
    """
    try:
        yield
    except wgpu.GPUError as error:
        message = wgpu_message(error).rstrip(".")
        state, hint = ("has finished", "Create another one") if what == "encoder" else ("has ended", "Begin another one")
        if _LOCKED in message:
            state, hint = "has an open pass", f"{with_open_pass}. WebGPU makes the encoder invalid: create another one"
        raise InvalidStateError(f"{what} must accept commands", got=f"one that {state}: {message}", hint=hint) from error
