"""webnn_wgpu: the W3C Web Neural Network API for Python, on any GPU through WebGPU.

Example:
    >>> import numpy as np
    >>> import webnn_wgpu as wn
    >>> context = wn.ml.create_context()
    >>> builder = wn.MLGraphBuilder(context)
    >>> x = builder.input("x", {"dataType": "float32", "shape": [2, 2]})
    >>> graph = builder.build({"y": builder.relu(x)})
    >>> print(context.compute(graph, {"x": np.float32([[-1, 2], [3, -4]])})["y"])
    [[0. 2.]
     [3. 0.]]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .api.activation import MLActivation
from .api.builder import MLGraphBuilder
from .api.context import MLComputeResult, MLContext, MLContextLostInfo, MLMemory
from .api.graph import MLGraph
from .api.limits import MLOpSupportLimits
from .api.measuring import measured_peak
from .api.ml import ML, ml
from .api.operand import MLOperand
from .api.optional import needed_by
from .api.own_kernels import run_wgsl
from .api.process import optimize_process
from .api.promise import MLPromise
from .api.pywebnn import AsyncMLContext, MLDeviceTensor
from .api.tensor import MLTensor
from .api.tuning import Tuning
from .core.errors import (
    DeviceLostError,
    DOMException,
    InvalidStateError,
    MLTensorStateError,
    MLTypeError,
    NotSupportedError,
    OperationError,
    OutOfMemoryError,
    SecurityError,
    UnknownError,
    WebNNError,
)

if TYPE_CHECKING:
    from . import exporters as exporters
    from . import tfjs as tfjs
    from . import train as train
    from .frontends.converting import convert
    from .frontends.hub import Hub
    from .frontends.loading import load, load_onnx
    from .frontends.onnx import Model, analyze
    from .frontends.stored import StoredModel
    from .frontends.tfjs import TfjsModel
    from .frontends.tflite import TfliteModel
    from .frontends.webnn import WebNNModel

__version__ = "0.1.0"

_FRONTENDS = {
    "Hub": "hub",
    "convert": "converting",
    "load": "loading",
    "load_onnx": "loading",
    "Model": "onnx",
    "analyze": "onnx",
    "TfjsModel": "tfjs",
    "TfliteModel": "tflite",
    "WebNNModel": "webnn",
    "StoredModel": "stored",
}
"""Names of frontends, and the modules that have them: imported when they are first used, as some need other packages."""


if not TYPE_CHECKING:  # of which type checkers would conclude that the module has any name

    def __getattr__(name: str) -> Any:
        if name in ("exporters", "tfjs", "train"):
            return import_module(f".{name}", __name__)
        if name not in _FRONTENDS:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        with needed_by(name, "tflite" if name == "TfliteModel" else "onnx"):
            return getattr(import_module(f".frontends.{_FRONTENDS[name]}", __name__), name)


__all__ = [
    "ML",
    "AsyncMLContext",
    "DOMException",
    "DeviceLostError",
    "Hub",
    "InvalidStateError",
    "MLActivation",
    "MLComputeResult",
    "MLContext",
    "MLContextLostInfo",
    "MLDeviceTensor",
    "MLGraph",
    "MLGraphBuilder",
    "MLMemory",
    "MLOpSupportLimits",
    "MLOperand",
    "MLPromise",
    "MLTensor",
    "MLTensorStateError",
    "MLTypeError",
    "Model",
    "NotSupportedError",
    "OperationError",
    "OutOfMemoryError",
    "SecurityError",
    "StoredModel",
    "TfjsModel",
    "TfliteModel",
    "Tuning",
    "UnknownError",
    "WebNNError",
    "WebNNModel",
    "analyze",
    "convert",
    "load",
    "load_onnx",
    "measured_peak",
    "ml",
    "optimize_process",
    "run_wgsl",
]
