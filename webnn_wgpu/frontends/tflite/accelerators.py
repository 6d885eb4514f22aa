"""LiteRT's names for the choice of a device: accelerators, options and environments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from webnn_wgpu import MLContext, ml


class HardwareAccelerator(IntFlag):
    """Kinds of devices. `CPU` alone asks for a software adapter, and every other value for a GPU if there is one.

    Example:
        >>> from webnn_wgpu.tflite import CompiledModel, HardwareAccelerator
        >>> with CompiledModel.from_file(colors, HardwareAccelerator.GPU | HardwareAccelerator.CPU) as compiled:
        ...     compiled.is_fully_accelerated()
        True
    """

    CPU = 1
    GPU = 2
    NPU = 4


@dataclass(kw_only=True)
class CpuOptions:
    """Options of LiteRT's kernels for the CPU, which have no effect."""

    num_threads: int | None = None
    kernel_mode: Any = None
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str | None = None


@dataclass(kw_only=True)
class GpuOptions:
    """Options of LiteRT's accelerator for GPUs, which have no effect.

    Models are computed in the data types of their tensors: float32 stays float32 as with `enforce_f32=True`.
    """

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False


@dataclass(kw_only=True)
class Options:
    """The options of a compiled model.

    Attributes:
        hardware_accelerators: the kinds of devices that may run the model.
        cpu_options: accepted for LiteRT's programs.
        gpu_options: accepted for LiteRT's programs.
    """

    hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU
    cpu_options: CpuOptions | None = None
    gpu_options: GpuOptions | None = None


@dataclass(kw_only=True)
class EnvironmentOptions:
    """Folders of LiteRT's libraries, which have no effect."""

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""


class Environment:
    """The contexts that compiled models share.

    Args:
        context: the context of all models. By default the environment creates one for each kind of device.

    Example:
        >>> from webnn_wgpu.tflite import CompiledModel, Environment
        >>> environment = Environment(context)
        >>> first, second = (CompiledModel.from_file(colors, environment=environment) for _ in range(2))
        >>> first.environment is second.environment
        True
        >>> first.close(), second.close()
        (None, None)
    """

    def __init__(self, context: MLContext | None = None) -> None:
        self._given = context
        self._contexts: dict[bool, MLContext] = {}

    @classmethod
    def create(cls, *, options: EnvironmentOptions | str | None = None, **folders: str) -> Environment:
        """Return a new environment. The arguments are LiteRT's and have no effect.

        Args:
            options: folders of LiteRT's libraries.
            folders: the same folders, by name.
        """
        del options, folders
        return cls()

    def context(self, accelerators: HardwareAccelerator) -> MLContext:
        """Return the context for kinds of devices.

        Args:
            accelerators: the kinds of devices. `HardwareAccelerator.CPU` alone selects a software adapter.
        """
        if self._given is not None:
            return self._given
        software = accelerators == HardwareAccelerator.CPU
        if software not in self._contexts:
            self._contexts[software] = ml.create_context(device_type="cpu" if software else "gpu")
        return self._contexts[software]
