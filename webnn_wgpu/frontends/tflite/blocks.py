"""Weights with a scale for each block of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webnn_wgpu import MLOperand

from .contents import Quantization
from .module import TfliteModule
from .tensors import PACKED, TfliteTensor

if TYPE_CHECKING:
    from .call import TfliteCall


def blockwise(module: TfliteModule, call: TfliteCall, tensor: TfliteTensor, quantization: Quantization) -> MLOperand:
    """Return the numbers of a constant matrix [o, i] with scales [o, i / block], as float32."""
    subgraph = module.file.subgraphs[call.node.subgraph]

    def constant(index: int) -> np.ndarray:
        if not 0 <= index < len(subgraph.tensors) or not module.constants.has(subgraph.tensors[index]):
            call.fail(f"the scales of blocks are tensor {index}, which is no constant")
        return module.constants.array(subgraph.index, subgraph.tensors[index])

    scales = constant(quantization.block_scales).astype(np.float32)
    if tensor.array is None or tensor.rank != 2 or scales.ndim != 2:
        call.fail("a tensor with a scale per block must be a constant matrix")
    rows, columns = tensor.shape
    block = quantization.block_size
    if block < 1 or columns % block or scales.shape != (rows, columns // block):
        call.fail(f"blocks of {block} with scales {list(scales.shape)} do not fit {list(tensor.shape)}")
    zeros = np.zeros(scales.shape, np.int64)
    if quantization.block_zero_points >= 0:
        zeros = constant(quantization.block_zero_points).astype(np.int64).reshape(scales.shape)
    if tensor.dtype in PACKED:
        zero = call.stored(zeros.astype(tensor.dtype))
    else:
        zero = call.constant(zeros, call.integers(tensor).data_type)
    return call.build.dequantize_linear(call.integers(tensor), call.stored(scales), zero)
