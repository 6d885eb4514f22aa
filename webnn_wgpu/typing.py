"""Types for annotations in programs: dictionaries of options and descriptors, data types, shapes, tensor data.

Example:
    >>> from webnn_wgpu.typing import MLOperandDescriptor, MLReduceOptions
    >>> descriptor: MLOperandDescriptor = {"dataType": "float32", "shape": [2, 4]}
    >>> options: MLReduceOptions = {"axes": [1], "keepDimensions": True}
    >>> builder = wn.MLGraphBuilder(context)
    >>> builder.reduce_sum(builder.input("x", descriptor), options).shape
    (2, 1)
"""

from __future__ import annotations

from .api.operators._cells import Activations
from .api.operators.dictionaries import (
    MLArgMinMaxOptions,
    MLBatchNormalizationOptions,
    MLClampOptions,
    MLConv2dOptions,
    MLConvTranspose2dOptions,
    MLCumulativeSumOptions,
    MLEluOptions,
    MLGatherOptions,
    MLGemmOptions,
    MLGruCellOptions,
    MLGruOptions,
    MLHardSigmoidOptions,
    MLInstanceNormalizationOptions,
    MLLayerNormalizationOptions,
    MLLeakyReluOptions,
    MLLinearOptions,
    MLLstmCellOptions,
    MLLstmOptions,
    MLOperatorOptions,
    MLPadOptions,
    MLPool2dOptions,
    MLReduceOptions,
    MLResample2dOptions,
    MLReverseOptions,
    MLScatterOptions,
    MLSliceOptions,
    MLSoftplusOptions,
    MLSplitOptions,
    MLTransposeOptions,
    MLTriangularOptions,
)
from .api.tuning import TuningSource
from .api.types import (
    ConstantDataType,
    ConstantDataTypeLike,
    DataTypeLike,
    GPUDevice,
    MLConstantDescriptor,
    MLContextOptions,
    MLOperandDataType,
    MLOperandDescriptor,
    MLPowerPreference,
    MLTensorDescriptor,
    Number,
    OperandDataType,
    ShapeLike,
    TensorData,
    WritableArray,
)

__all__ = [
    "Activations",
    "ConstantDataType",
    "ConstantDataTypeLike",
    "DataTypeLike",
    "GPUDevice",
    "MLArgMinMaxOptions",
    "MLBatchNormalizationOptions",
    "MLClampOptions",
    "MLConstantDescriptor",
    "MLContextOptions",
    "MLConv2dOptions",
    "MLConvTranspose2dOptions",
    "MLCumulativeSumOptions",
    "MLEluOptions",
    "MLGatherOptions",
    "MLGemmOptions",
    "MLGruCellOptions",
    "MLGruOptions",
    "MLHardSigmoidOptions",
    "MLInstanceNormalizationOptions",
    "MLLayerNormalizationOptions",
    "MLLeakyReluOptions",
    "MLLinearOptions",
    "MLLstmCellOptions",
    "MLLstmOptions",
    "MLOperandDataType",
    "MLOperandDescriptor",
    "MLOperatorOptions",
    "MLPadOptions",
    "MLPool2dOptions",
    "MLPowerPreference",
    "MLReduceOptions",
    "MLResample2dOptions",
    "MLReverseOptions",
    "MLScatterOptions",
    "MLSliceOptions",
    "MLSoftplusOptions",
    "MLSplitOptions",
    "MLTensorDescriptor",
    "MLTransposeOptions",
    "MLTriangularOptions",
    "Number",
    "OperandDataType",
    "ShapeLike",
    "TensorData",
    "TuningSource",
    "WritableArray",
]
