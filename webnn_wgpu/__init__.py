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

from .api.activation import MLActivation
from .api.builder import MLGraphBuilder
from .api.context import MLComputeResult, MLContext, MLContextLostInfo
from .api.graph import MLGraph
from .api.limits import MLOpSupportLimits
from .api.ml import ML, ml
from .api.operand import MLOperand
from .api.promise import MLPromise
from .api.pywebnn import AsyncMLContext, MLDeviceTensor
from .api.tensor import MLTensor
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

__version__ = "0.1.0"

__all__ = [
    "ML",
    "AsyncMLContext",
    "DOMException",
    "DeviceLostError",
    "InvalidStateError",
    "MLActivation",
    "MLComputeResult",
    "MLContext",
    "MLContextLostInfo",
    "MLDeviceTensor",
    "MLGraph",
    "MLGraphBuilder",
    "MLOpSupportLimits",
    "MLOperand",
    "MLPromise",
    "MLTensor",
    "MLTensorStateError",
    "MLTypeError",
    "NotSupportedError",
    "OperationError",
    "OutOfMemoryError",
    "SecurityError",
    "UnknownError",
    "WebNNError",
    "ml",
]
