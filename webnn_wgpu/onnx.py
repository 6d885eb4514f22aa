"""onnxruntime's names for ONNX models on WebGPU: `import webnn_wgpu.onnx as ort`.

Example:
    >>> import webnn_wgpu.onnx as ort
    >>> session = ort.InferenceSession(mlp.SerializeToString())
    >>> session.run(["y"], {"x": np.zeros((1, 4), np.float32)})[0].dtype
    dtype('float32')
"""

from __future__ import annotations

try:
    from .frontends.onnx.ort_values import IOBinding, OrtValue
    from .frontends.onnx.session import (
        InferenceSession,
        ModelMetadata,
        NodeArg,
        get_all_providers,
        get_available_providers,
        get_device,
        set_default_logger_severity,
    )
    from .frontends.onnx.session_options import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        RunOptions,
        SessionOptions,
    )
except ModuleNotFoundError as error:
    if (error.name or "").startswith("webnn_wgpu"):
        raise
    raise ModuleNotFoundError(
        f"webnn_wgpu.onnx needs the package '{error.name}': pip install 'webnn-wgpu[onnx]'", name=error.name
    ) from error

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_default_logger_severity",
]
