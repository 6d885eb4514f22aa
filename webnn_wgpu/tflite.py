"""LiteRT's names for TFLite models on WebGPU: `import webnn_wgpu.tflite as tflite`.

Example:
    >>> import webnn_wgpu.tflite as tflite
    >>> interpreter = tflite.Interpreter(colors)
    >>> interpreter.get_output_details()[0]["shape"]
    array([1, 3], dtype=int32)
"""

from __future__ import annotations

try:
    from .frontends.tflite.accelerators import (
        CpuOptions,
        Environment,
        EnvironmentOptions,
        GpuOptions,
        HardwareAccelerator,
        Options,
    )
    from .frontends.tflite.compiled import CompiledModel
    from .frontends.tflite.delegate import DelegationReport, WebnnDelegate
    from .frontends.tflite.interpreter import (
        Delegate,
        Interpreter,
        InterpreterWithCustomOps,
        OpResolverType,
        SignatureRunner,
        load_delegate,
    )
    from .frontends.tflite.tensor_buffer import TensorBuffer
except ModuleNotFoundError as error:
    if (error.name or "").startswith("webnn_wgpu"):
        raise
    raise ModuleNotFoundError(
        f"webnn_wgpu.tflite needs the package '{error.name}': pip install 'webnn-wgpu[tflite]'", name=error.name
    ) from error

__all__ = [
    "CompiledModel",
    "CpuOptions",
    "Delegate",
    "DelegationReport",
    "Environment",
    "EnvironmentOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpResolverType",
    "Options",
    "SignatureRunner",
    "TensorBuffer",
    "WebnnDelegate",
    "load_delegate",
]
