"""The operators. `OPS` holds each operator by name. The list of modules below registers them.

A name is the specification's name. Extension operators are named `x.name` and are methods of `MLGraphBuilder.ext`.
"""

from __future__ import annotations

from types import MappingProxyType

from . import (
    activation,
    arg,
    attention,
    attention_gradient,
    attention_weights,
    batch_normalization,
    bitwise,
    cache_update,
    cast,
    column_sums,
    concat,
    conv2d,
    conv_transpose2d,
    cumulative_sum,
    elementwise,
    filter_gradient,
    fused,
    gather,
    gather_block_quantized,
    gemm,
    grid_sample,
    gru,
    hyperbolic,
    instance_normalization,
    integer_product,
    layer_normalization,
    lstm,
    matmul,
    matmul_nbits,
    normalization_gradient,
    normalized_product,
    pad,
    pool2d,
    projected_product,
    quantization,
    quantization_parameters,
    random_bits,
    recurrent_stack,
    reduce,
    remainder,
    resample2d,
    rms_normalization,
    rotary_embedding,
    rounding,
    scatter,
    scatter_reduce,
    softmax,
    strided,
    top_k,
    triangular,
    views,
    weighted_gather,
    weights_gradient,
    wgsl_op,
)
from ._def import OpDef, Signature

_MODULES = (
    elementwise,
    activation,
    cast,
    quantization,
    views,
    strided,
    concat,
    pad,
    gather,
    scatter,
    triangular,
    softmax,
    layer_normalization,
    instance_normalization,
    integer_product,
    normalized_product,
    projected_product,
    batch_normalization,
    matmul,
    gemm,
    conv2d,
    conv_transpose2d,
    reduce,
    column_sums,
    arg,
    gru,
    lstm,
    recurrent_stack,
    pool2d,
    resample2d,
    cumulative_sum,
    fused,
    wgsl_op,
    # Extension operators.
    attention,
    attention_gradient,
    cache_update,
    rms_normalization,
    normalization_gradient,
    rotary_embedding,
    matmul_nbits,
    gather_block_quantized,
    quantization_parameters,
    bitwise,
    grid_sample,
    hyperbolic,
    random_bits,
    remainder,
    rounding,
    scatter_reduce,
    top_k,
    weighted_gather,
    attention_weights,
    weights_gradient,
    filter_gradient,
)

__all__ = ["OPS", "OpDef", "Signature", "operator"]

OPS = MappingProxyType({op.name: op for module in _MODULES for op in module.OPS})
"""Every operator by name."""


def operator(name: str) -> OpDef:
    """Return the definition of an operator by its name."""
    return OPS[name]
