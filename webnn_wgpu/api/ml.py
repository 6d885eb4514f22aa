"""`ML`, the entry object, and its instance `ml`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from ..core.call_site import warn
from ..core.errors import MLTypeError, NotSupportedError
from ..core.names import snake_case
from ..runtime.device import Device, open_device
from .arrays import failing
from .backend import DeviceBackend, ReferenceBackend
from .context import MLContext
from .options import camel_attribute
from .promise import MLPromise
from .tuning import TuningSource, sources_of

if TYPE_CHECKING:
    from .types import CamelCaseContextOptions, GPUDevice, MLContextOptions, MLPowerPreference

logger = logging.getLogger("webnn_wgpu")

_OPTIONS = ("power_preference", "accelerated", "device_type", "gpu_device", "backend", "tuning")


class ML:
    """The factory of contexts. `webnn_wgpu.ml` is an instance, like `navigator.ml` in a browser.

    Example:
        >>> import webnn_wgpu as wn
        >>> with wn.ml.create_context() as context:
        ...     print(context.power_preference)
        default

    Spec: https://www.w3.org/TR/webnn/#api-ml
    """

    def create_context(
        self,
        device_or_options: GPUDevice | MLContextOptions | MLPowerPreference | None = None,
        accelerated: bool | None = None,
        device_type: Literal["auto", "cpu", "gpu"] | None = None,
        *,
        power_preference: MLPowerPreference | None = None,
        gpu_device: GPUDevice | None = None,
        backend: Literal["auto", "reference"] | None = None,
        tuning: TuningSource = None,
        **camel_case: Unpack[CamelCaseContextOptions],
    ) -> MLContext:
        """Return a context on a device.

        The call changes no settings of the process, unless `optimize_process` allowed it. Your own device gets two attributes,
        which it keeps after the context: `_webnn_wgpu`, the state that contexts on the device share, and a new `destroy`. This
        `destroy` first waits until no thread of this package submits, for at most 5 seconds. A submit on a destroyed device
        ends the process inside wgpu-native. The context also creates a buffer of 4 bytes on the device, and on a device with
        subgroups it may run one small kernel to measure their size.

        Args:
            device_or_options: your own `wgpu.GPUDevice`, a mapping of the options below (also with camelCase keys), or the
                power preference, which is pywebnn's first argument.
            accelerated: whether to prefer a GPU. False prefers the CPU: a software adapter, else the numpy reference.
            device_type: the 2024 form of `accelerated`: `cpu` or `gpu`. pywebnn's `auto` leaves the choice to the other
                options.
            power_preference: the choice between several adapters.
            gpu_device: your own `wgpu.GPUDevice`, as a keyword.
            backend: `reference` runs graphs in numpy, slowly and exactly, to check results.
            tuning: the fastest kernel variants as measured with `MLGraph.tune` on this device: a `Tuning` or a file. False also
                ignores the files in the default locations.
            **camel_case: the options with their camelCase names.

        Returns:
            A context. The default is the best hardware adapter, else a software adapter with one warning.

        Raises:
            NotSupportedError: there is no adapter. The message names the packages to install.
            MLTypeError: an option or value is unknown, or `device_type` contradicts `accelerated`.

        Example:
            >>> with wn.ml.create_context(backend="reference") as exact:
            ...     print(exact.accelerated)
            False

        Spec: https://www.w3.org/TR/webnn/#api-ml-createcontext
        """
        fail = failing("create_context")
        options: dict[str, Any] = {
            "power_preference": power_preference,
            "accelerated": accelerated,
            "device_type": device_type,
            "gpu_device": gpu_device,
            "backend": backend,
            "tuning": tuning,
        }
        extra: dict[str, Any] = dict(camel_case)
        if isinstance(device_or_options, Mapping):
            extra |= dict[str, Any](device_or_options)  # pyright: ignore[reportUnknownArgumentType] - keys are checked below
        elif isinstance(device_or_options, str):
            extra["power_preference"] = device_or_options
        elif device_or_options is not None:
            options["gpu_device"] = device_or_options
        for key, value in extra.items():
            name = snake_case(str(key))
            if name not in options:
                raise fail(f"unknown option {key!r}", allowed=", ".join(_OPTIONS))
            if value is None:
                continue
            if options[name] is not None and options[name] != value:
                raise fail(f"option {name} is given twice", got=f"{options[name]!r} and {value!r}")
            options[name] = value
        context = _create(options)
        context._needs_device = options.pop("gpu_device") is not None
        context._options = cast("MLContextOptions", options)
        return context

    def create_context_async(
        self,
        device_or_options: GPUDevice | MLContextOptions | MLPowerPreference | None = None,
        **options: Unpack[MLContextOptions],
    ) -> MLPromise[MLContext]:
        """Return a promise of the result of `create_context`.

        Args:
            device_or_options: as for `create_context`.
            **options: the keyword arguments of `create_context`.

        Returns:
            A promise that settles with the context.

        Raises:
            NotSupportedError, MLTypeError: as `create_context` does, from the promise.

        Example:
            >>> with wn.ml.create_context_async(backend="reference").result() as exact:
            ...     print(exact.device_type)
            cpu

        Spec: https://www.w3.org/TR/webnn/#api-ml-createcontext
        """
        return MLPromise[MLContext].in_background(lambda: self.create_context(device_or_options, **options))

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        createContext = create_context
        createContextAsync = create_context_async
    else:

        def __getattr__(self, name: str) -> Any:
            return camel_attribute(self, name)


def _create(options: Mapping[str, Any]) -> MLContext:
    fail = failing("create_context")
    preference = options["power_preference"] or "default"
    choices = {
        "power_preference": (None, "default", "high-performance", "low-power"),
        "device_type": (None, "auto", "cpu", "gpu"),
        "backend": (None, "auto", "reference"),
    }
    for name, allowed in choices.items():
        if options[name] not in allowed:
            raise fail(f"Invalid {name}", got=repr(options[name]), allowed=", ".join(str(a) for a in allowed if a))
    if options["device_type"] == "auto":
        options = {**options, "device_type": None}
    tuning = sources_of(options["tuning"], "create_context")
    if options["gpu_device"] is not None:
        given = [name for name in ("accelerated", "device_type", "backend") if options[name] is not None]
        if given:
            raise fail("a device of your own leaves nothing to choose", got=f"gpu_device and {given[0]}")
        return MLContext(DeviceBackend(Device.of(options["gpu_device"]), tuning), power_preference=preference)
    if options["backend"] == "reference":
        return MLContext(ReferenceBackend(), power_preference=preference)
    wants_cpu = _wants_cpu(options["accelerated"], options["device_type"])
    try:
        device = open_device(power_preference=preference, prefer_software=wants_cpu)
    except NotSupportedError as error:
        if not wants_cpu:
            raise
        _warn(f"{error.rule}: graphs run in the numpy reference, which is slow. {error.hint}")
        return MLContext(ReferenceBackend(), power_preference=preference)
    if device.caps.is_software and not wants_cpu:
        _warn(f"no hardware adapter was found: graphs run on the software adapter {device.description}")
    return MLContext(DeviceBackend(device, tuning), power_preference=preference)


def _wants_cpu(accelerated: bool | None, device_type: str | None) -> bool:
    if accelerated is not None and device_type is not None and bool(accelerated) != (device_type == "gpu"):
        raise MLTypeError(
            "accelerated and device_type contradict each other",
            operator="create_context",
            got=f"accelerated={accelerated}, device_type={device_type!r}",
        )
    return device_type == "cpu" or (accelerated is not None and not accelerated)


_warned: set[str] = set()


def _warn(message: str) -> None:
    """Warn once per process, as a Python warning and in the log."""
    if message not in _warned:
        _warned.add(message)
        logger.info(message)
        warn(message)


ml = ML()
"""The shared `ML` object."""
